"""Views that compare with now(): after every epoch they equal their query at the time of that epoch.

The clock stands still until a test moves it, so a query and the views see the same time, and an insert into an
unrelated table makes the epoch in which the views follow.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.hand_clock import TimedHarbour

pytestmark = pytest.mark.spark

HOUR_MS = 3_600_000

QUERIES = {
    "recent": "SELECT id, at FROM arrivals WHERE at > now() - INTERVAL '1 hour'",
    "coming": "SELECT id, at FROM arrivals WHERE at BETWEEN now() AND now() + INTERVAL '2 hours' AND tons > 3",
    "past": "SELECT id FROM arrivals WHERE now() >= at + INTERVAL '30 minutes'",
    "today": "SELECT id, at FROM arrivals WHERE at::date = current_date",
    "month": "SELECT id FROM arrivals WHERE at + INTERVAL '1 month' > now()",
    "named": "SELECT a.id, s.name FROM arrivals a JOIN ships s ON s.id = a.ship"
    " WHERE a.at > now() - INTERVAL '2 hours'",
    "loads": "SELECT ship, count(*) AS n, sum(tons) AS t, max(tons) AS m FROM arrivals"
    " WHERE at <= now() AND at > now() - INTERVAL '3 hours' GROUP BY ship",
    "busy": "SELECT ship, max(at) AS last FROM arrivals GROUP BY ship HAVING max(at) > now() - INTERVAL '1 hour'",
    "outer_": "SELECT s.name, a.id FROM ships s"
    " LEFT JOIN (SELECT * FROM arrivals WHERE at > now() - INTERVAL '1 hour') a ON a.ship = s.id",
    "first_": "SELECT ship, id, n FROM (SELECT ship, id, row_number() OVER (PARTITION BY ship ORDER BY at, id) AS n"
    " FROM arrivals WHERE at > now()) q WHERE n <= 2",
    "both_": "SELECT at AS x FROM arrivals WHERE at > now() UNION ALL SELECT at FROM arrivals WHERE at < now()",
    "spans": "SELECT a.id, s.id AS ship FROM arrivals a JOIN ships s ON s.id = a.ship"
    " WHERE a.at + s.stay > now() - INTERVAL '1 hour'",
    "top": "SELECT id, at FROM arrivals WHERE at > now() - INTERVAL '1 hour' ORDER BY at, id LIMIT 3",
}


class Harbour(TimedHarbour):
    def pass_time(self, ms: int) -> None:
        self.clock.ms += ms
        self.db.execute("INSERT INTO ticks VALUES (1)")

    def check(self, *names: str) -> None:
        for name in names or QUERIES:
            expected = sorted(self.db.sql(QUERIES[name]).rows or [], key=repr)
            assert sorted(self.db.sql(f"SELECT * FROM {name}").rows or [], key=repr) == expected, name

    def jobs_of_ticks(self, ms: int) -> int:
        """How many Spark jobs some epochs take between which so much time passes."""
        scheduler = self.spark.sparkContext._jsc.sc().dagScheduler()
        before = int(scheduler.numTotalJobs())
        for _ in range(5):
            self.pass_time(ms)
        return int(scheduler.numTotalJobs()) - before


@pytest.fixture
def harbour(tmp_path: Path, spark: SparkSession) -> Iterator[Harbour]:
    made = Harbour(tmp_path / "harbour", spark)
    made.db.execute("CREATE TABLE ticks (n int)")
    made.db.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar, stay interval)")
    made.db.execute("INSERT INTO ships VALUES (1, 'Aurora', '1 hour'), (2, 'Borealis', '0'), (3, 'Calypso', '1 day')")
    made.db.execute("CREATE TABLE arrivals (id int PRIMARY KEY, ship int, at timestamp, tons int)")
    yield made
    made.db.close()


def moment(offset_minutes: int) -> str:
    return f"timestamp '2026-01-01 00:00:00' + interval '{offset_minutes} minutes'"


@pytest.mark.long
def test_views_equal_their_query_while_rows_and_time_come_and_go(harbour: Harbour) -> None:
    chance = random.Random(4)
    created = passed = 0
    early = list(QUERIES)[::2]  # half of the views before the rows, half after
    for name in early:
        harbour.db.execute(f"CREATE MATERIALIZED VIEW {name} WITH (incremental = 'strict') AS {QUERIES[name]}")
    for step, minutes in enumerate((20, 90, 1, 40 * 24 * 60)):
        rows = []
        for _ in range(6):
            created += 1
            at = "NULL" if chance.random() < 0.1 else moment(passed + chance.randint(-240, 240))
            rows.append(f"({created}, {chance.choice(['NULL', '1', '2', '3', '4'])}, {at}, {chance.randint(1, 9)})")
        harbour.db.execute(f"INSERT INTO arrivals VALUES {', '.join(rows)}")
        match step:
            case 1:
                for name in set(QUERIES) - set(early):
                    harbour.db.execute(f"CREATE MATERIALIZED VIEW {name} AS {QUERIES[name]}")
            case 2:
                harbour.db.execute("DELETE FROM arrivals WHERE id % 4 = 2")
                harbour.restart()
            case 3:
                harbour.db.execute("UPDATE arrivals SET at = at + interval '45 minutes' WHERE id % 3 = 1")
        passed += minutes
        harbour.pass_time(minutes * 60_000)
        if step:
            harbour.check()


def test_time_that_passed_while_the_database_was_closed_is_made_up_for(harbour: Harbour) -> None:
    harbour.db.execute(f"INSERT INTO arrivals VALUES (1, 1, {moment(0)}, 5), (2, 1, {moment(60)}, 5)")
    harbour.db.execute(f"CREATE MATERIALIZED VIEW recent AS {QUERIES['recent']}")
    harbour.db.close()
    harbour.clock.ms += HOUR_MS + 1
    harbour.db = harbour._opened()
    harbour.pass_time(0)
    assert harbour.db.sql("SELECT id FROM recent").rows == [(2,)]


def test_rows_that_leave_with_time_and_changes_of_another_input_share_an_epoch(harbour: Harbour) -> None:
    harbour.db.execute(f"CREATE MATERIALIZED VIEW outer_ AS {QUERIES['outer_']}")
    harbour.db.execute(f"INSERT INTO arrivals VALUES (1, 1, {moment(0)}, 5), (2, 2, {moment(90)}, 5)")
    harbour.clock.ms += 3 * HOUR_MS
    harbour.db.execute("INSERT INTO ships VALUES (4, 'Dorado', '0')")
    harbour.check("outer_")


def test_no_spark_job_runs_while_nothing_crosses_a_bound(harbour: Harbour) -> None:
    harbour.db.execute(f"INSERT INTO arrivals VALUES (1, 1, {moment(0)}, 5), (2, 1, {moment(300)}, 5)")
    harbour.db.execute(f"CREATE MATERIALIZED VIEW recent AS {QUERIES['recent']}")
    harbour.db.execute(f"CREATE MATERIALIZED VIEW today AS {QUERIES['today']}")
    harbour.pass_time(60_000)
    assert harbour.jobs_of_ticks(60_000) == harbour.jobs_of_ticks(0)
    harbour.pass_time(HOUR_MS)
    harbour.check("recent", "today")
