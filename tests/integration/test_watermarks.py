"""WATERMARK FOR and EMIT ON WINDOW CLOSE: late rows are dropped, and views hold what the watermark has closed.

A view that is emitted on window close equals its query over the rows of its tables, restricted to what is closed at the
epoch's watermark. Here that restriction is written down for each view by hand, and the watermark is the test's own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import seiche

pytestmark = pytest.mark.spark

NOON = datetime(2024, 5, 6, 12)
COLUMNS = {"calls": "id int, at timestamp, berth int, tons int", "tides": "height int, at timestamp"}
WAIT = {"calls": timedelta(minutes=10), "tides": timedelta(minutes=5)}

# A view's query, and its answer, in which {calls}, {tides} and {both} are watermarks: rows are closed below them.
VIEWS = {
    "passed": (
        "SELECT id, at, berth FROM calls WHERE berth < 3",
        "SELECT id, at, berth FROM calls WHERE berth < 3 AND at < {calls}",
    ),
    "hours": (
        (
            "SELECT window_start, berth, count(*) AS n, max(tons) AS m FROM tumble(calls, at, INTERVAL '1 hour')"
            " GROUP BY 1, 2"
        ),
        (
            "SELECT window_start, berth, count(*) AS n, max(tons) AS m FROM tumble(calls, at, INTERVAL '1 hour')"
            " WHERE window_end <= {calls} GROUP BY 1, 2"
        ),
    ),
    "hops": (
        "SELECT window_end, sum(tons) AS t FROM hop(calls, at, INTERVAL '20 minutes', INTERVAL '1 hour') GROUP BY 1",
        (
            "SELECT window_end, sum(tons) AS t FROM hop(calls, at, INTERVAL '20 minutes', INTERVAL '1 hour')"
            " WHERE window_end <= {calls} GROUP BY 1"
        ),
    ),
    "many_hops": (
        "SELECT window_start, count(*) AS n FROM hop(calls, at, INTERVAL '1 minute', INTERVAL '20 minutes') GROUP BY 1",
        (
            "SELECT window_start, count(*) AS n FROM hop(calls, at, INTERVAL '1 minute', INTERVAL '20 minutes')"
            " WHERE window_end <= {calls} GROUP BY 1"
        ),
    ),
    "days": (
        "SELECT date_trunc('month', at) AS m, at::date AS d, count(*) AS n FROM calls GROUP BY 1, 2",
        (
            "SELECT date_trunc('month', at) AS m, at::date AS d, count(*) AS n FROM calls"
            " WHERE date_trunc('month', at) < date_trunc('month', {calls}) GROUP BY 1, 2"
        ),
    ),
    "lists": (
        (
            "SELECT window_start, string_agg(id::varchar, ',' ORDER BY id) AS ids, count(DISTINCT berth) AS b"
            " FROM tumble(calls, at, INTERVAL '30 minutes') GROUP BY 1"
        ),
        (
            "SELECT window_start, string_agg(id::varchar, ',' ORDER BY id) AS ids, count(DISTINCT berth) AS b"
            " FROM tumble(calls, at, INTERVAL '30 minutes') WHERE window_end <= {calls} GROUP BY 1"
        ),
    ),
    "firsts": (
        (
            "SELECT window_start, id FROM (SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY tons, id) n"
            " FROM tumble(calls, at, INTERVAL '1 hour')) q WHERE n <= 2"
        ),
        (
            "SELECT window_start, id FROM (SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY tons, id) n"
            " FROM tumble(calls, at, INTERVAL '1 hour') WHERE window_end <= {calls}) q WHERE n <= 2"
        ),
    ),
    "numbered": (
        (
            "SELECT id, row_number() OVER (PARTITION BY berth ORDER BY at, id) AS n, lag(tons) OVER (PARTITION BY berth"
            " ORDER BY at, id) AS l FROM calls"
        ),
        (
            "SELECT id, row_number() OVER (PARTITION BY berth ORDER BY at, id) AS n, lag(tons) OVER (PARTITION BY berth"
            " ORDER BY at, id) AS l FROM calls WHERE at < {calls}"
        ),
    ),
    "around": (
        (
            "SELECT id, max(tons) OVER (PARTITION BY berth ORDER BY at, id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) m"
            " FROM calls"
        ),
        (
            "SELECT id, m FROM (SELECT id, lead(id, 2) OVER (PARTITION BY berth ORDER BY at, id) AS l, max(tons) OVER"
            " (PARTITION BY berth ORDER BY at, id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) m"
            " FROM calls WHERE at < {calls}) q WHERE l IS NOT NULL"
        ),
    ),
    "stays": (
        (
            "SELECT id, first_value(at) OVER (PARTITION BY berth ORDER BY at SESSION WITH GAP '15 minutes') AS a,"
            " last_value(at) OVER (PARTITION BY berth ORDER BY at SESSION WITH GAP '15 minutes') AS z FROM calls"
        ),
        (
            "SELECT id, a, z FROM (SELECT id, max(at) OVER (PARTITION BY berth) AS m,"
            " first_value(at) OVER (PARTITION BY berth ORDER BY at SESSION WITH GAP '15 minutes') AS a,"
            " last_value(at) OVER (PARTITION BY berth ORDER BY at SESSION WITH GAP '15 minutes') AS z"
            " FROM calls WHERE at < {calls}) q WHERE m > z"
        ),
    ),
    "met": (
        "SELECT c.id, t.height, c.at FROM calls c JOIN tides t ON t.at = c.at",
        "SELECT c.id, t.height, c.at FROM calls c JOIN tides t ON t.at = c.at WHERE c.at < {both}",
    ),
    "at_tide": (
        "SELECT c.id, t.height, c.at FROM calls c LEFT JOIN tides t ON t.at = c.at",
        "SELECT c.id, t.height, c.at FROM calls c LEFT JOIN tides t ON t.at = c.at WHERE c.at < {both}",
    ),
    "soon_after": (
        (
            "SELECT c.at, c.id, t.height FROM calls c JOIN tides t"
            " ON t.at >= c.at AND t.at <= c.at + INTERVAL '20 minutes'"
        ),
        (
            "SELECT c.at, c.id, t.height FROM calls c JOIN tides t"
            " ON t.at >= c.at AND t.at <= c.at + INTERVAL '20 minutes'"
            " WHERE c.at < {calls} AND c.at < {tides} - INTERVAL '20 minutes'"
        ),
    ),
    "on_view": (
        "SELECT * FROM per_hour WHERE n > 1",
        (
            "SELECT window_start, count(*) AS n FROM tumble(calls, at, INTERVAL '1 hour') WHERE window_end <= {calls}"
            " GROUP BY 1 HAVING count(*) > 1"
        ),
    ),
    "filled": (
        "SELECT at, tons FROM gap_fill(calls, at, INTERVAL '10 minutes', PARTITION_BY(berth))",
        (
            "SELECT at, tons FROM gap_fill((SELECT * FROM calls WHERE at < {calls}), at, INTERVAL '10 minutes',"
            " PARTITION_BY(berth))"
        ),
    ),
    "pieces": (
        "SELECT at, unnest(ARRAY[id, berth]) AS x FROM calls",
        "SELECT at, unnest(ARRAY[id, berth]) AS x FROM calls WHERE at < {calls}",
    ),
    "either": (
        "SELECT at, id AS n FROM calls UNION ALL SELECT at, height FROM tides",
        "SELECT at, id AS n FROM calls WHERE at < {both} UNION ALL SELECT at, height FROM tides WHERE at < {both}",
    ),
    "last_tides": (
        (
            "SELECT c.at, c.id, t.at AS tide FROM calls c LEFT JOIN tides t"
            " ON t.height = c.berth AND c.at BETWEEN t.at AND t.at + INTERVAL '40 minutes'"
        ),
        (
            "SELECT c.at, c.id, t.at AS tide FROM calls c LEFT JOIN tides t"
            " ON t.height = c.berth AND c.at BETWEEN t.at AND t.at + INTERVAL '40 minutes' WHERE c.at < {both}"
        ),
    ),
    "next_tides": (
        (
            "SELECT c.at, c.id, t.at AS tide FROM tides t RIGHT JOIN calls c"
            " ON t.height = c.berth AND t.at BETWEEN c.at AND c.at + INTERVAL '40 minutes' WHERE c.tons > 2"
        ),
        (
            "SELECT c.at, c.id, t.at AS tide FROM tides t RIGHT JOIN calls c"
            " ON t.height = c.berth AND t.at BETWEEN c.at AND c.at + INTERVAL '40 minutes'"
            " WHERE c.tons > 2 AND c.at < {calls} AND c.at < {tides} - INTERVAL '40 minutes'"
        ),
    ),
    "without_tide": (
        (
            "SELECT c.at, c.id FROM calls c WHERE NOT EXISTS (SELECT FROM tides t"
            " WHERE t.height = c.berth AND t.at BETWEEN c.at AND c.at + INTERVAL '40 minutes')"
        ),
        (
            "SELECT c.at, c.id FROM calls c WHERE NOT EXISTS (SELECT FROM tides t"
            " WHERE t.height = c.berth AND t.at BETWEEN c.at AND c.at + INTERVAL '40 minutes')"
            " AND c.at < {calls} AND c.at < {tides} - INTERVAL '40 minutes'"
        ),
    ),
    "hours_of_tides": (
        (
            "SELECT date_trunc('hour', c.at) AS h, count(t.at) AS n FROM calls c LEFT JOIN tides t"
            " ON t.height = c.berth AND c.at BETWEEN t.at AND t.at + INTERVAL '40 minutes' GROUP BY 1"
        ),
        (
            "SELECT date_trunc('hour', c.at) AS h, count(t.at) AS n FROM calls c LEFT JOIN tides t"
            " ON t.height = c.berth AND c.at BETWEEN t.at AND t.at + INTERVAL '40 minutes'"
            " WHERE date_trunc('hour', c.at) < date_trunc('hour', {both}) GROUP BY 1"
        ),
    ),
}


@dataclass
class Harbour:
    """A database with two tables, and what the test knows of them: the rows that came in time, and the watermarks."""

    folder: Path
    spark: SparkSession
    rows: dict[str, list[tuple[Any, ...]]] = field(default_factory=lambda: {"calls": [], "tides": []})
    marks: dict[str, datetime] = field(default_factory=dict)
    late: int = 0

    def __post_init__(self) -> None:
        self.db = seiche.connect(self.folder, spark=self.spark)

    def restart(self) -> None:
        self.db.close()
        self.db = seiche.connect(self.folder, spark=self.spark)

    def define(self) -> None:
        for name, rest in (
            ("calls", "id int, at timestamp, berth int, tons int"),
            ("tides", "height int, at timestamp"),
        ):
            minutes = WAIT[name].seconds // 60
            self.db.execute(
                f"CREATE TABLE {name} ({rest}, WATERMARK FOR at AS at - INTERVAL '{minutes} minutes') APPEND ONLY"
            )

    def view(self, name: str) -> None:
        self.db.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name][0]} EMIT ON WINDOW CLOSE")

    def insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        place = 1
        values = ", ".join("(" + ", ".join("NULL" if v is None else f"'{v}'" for v in row) + ")" for row in rows)
        self.db.execute(f"INSERT INTO {table} VALUES {values}")
        mark = self.marks.get(table)
        on_time = [row for row in rows if mark is None or row[place] is None or row[place] >= mark]
        self.late += len(rows) - len(on_time)
        self.rows[table] += on_time
        seen = [row[place] - WAIT[table] for row in on_time if row[place] is not None]
        if seen:
            self.marks[table] = max([*seen, *([mark] if mark else [])])

    def jobs_of(self, statement: str) -> int:
        """How many Spark jobs a statement takes, with all that follows from it."""
        scheduler = self.spark.sparkContext._jsc.sc().dagScheduler()
        before = int(scheduler.numTotalJobs())
        self.db.execute(statement)
        return int(scheduler.numTotalJobs()) - before

    def check(self, *names: str) -> None:
        for table, rows in self.rows.items():
            assert _sorted(self.db.sql(f"SELECT * FROM {table}").rows) == _sorted(rows), table
        marks = {name: f"TIMESTAMP '{self.marks.get(name, datetime(1970, 1, 1))}'" for name in WAIT}
        both = f"TIMESTAMP '{min(self.marks.get(name, datetime(1970, 1, 1)) for name in WAIT)}'"
        for name in names:
            expected = self.db.sql(VIEWS[name][1].format(**marks, both=both)).rows
            assert _sorted(self.db.sql(f"SELECT * FROM {name}").rows) == _sorted(expected), (name, self.marks)

    def happen(self, dice: random.Random, now: datetime) -> None:
        """Rows about a moment, some of them too late, some without one, some at the same time in both tables."""
        for table in dice.sample(["calls", "tides"], dice.choice([1, 2, 2])):
            rows: list[tuple[Any, ...]] = []
            for _ in range(dice.randint(1, 8)):
                at = now + timedelta(minutes=dice.randint(-60, 15)) if dice.random() < 0.95 else None
                number = len(self.rows["calls"]) + len(rows)
                rows.append(
                    (number, at, dice.randint(1, 3), dice.randint(1, 9))
                    if table == "calls"
                    else (dice.randint(1, 9), at)
                )
            self.insert(table, rows)


def _sorted(rows: object) -> list[object]:
    assert isinstance(rows, list)
    return sorted((tuple(row) for row in rows), key=repr)


@pytest.fixture
def harbour(tmp_path: Path, spark: SparkSession) -> Iterator[Harbour]:
    opened = Harbour(tmp_path / "harbour", spark)
    opened.define()
    yield opened
    opened.db.close()


def test_late_rows_are_dropped_and_told_and_the_watermark_outlives_a_restart(harbour: Harbour) -> None:
    harbour.view("hours")
    harbour.insert("calls", [(1, NOON, 1, 5), (2, NOON - timedelta(hours=2), 1, 7)])
    harbour.insert(
        "calls", [(3, NOON - timedelta(minutes=11), 1, 9), (4, NOON - timedelta(minutes=10), 2, 1), (5, None, 2, 2)]
    )
    assert harbour.late == 1
    harbour.check("hours")
    harbour.restart()
    harbour.insert("calls", [(6, NOON - timedelta(hours=1), 1, 3), (7, NOON + timedelta(hours=2), 1, 3)])
    harbour.check("hours")
    assert harbour.late == 2
    events = harbour.db.sql("SELECT event_type FROM rw_catalog.rw_event_logs").rows
    assert [row[0] for row in events or []].count("LATE_ROWS_DROPPED") == 2
    harbour.db.execute("CREATE TABLE given (id int, at timestamp, berth int, tons int)")
    harbour.db.execute(f"INSERT INTO given VALUES (8, '{NOON}', 1, 1), (9, '{NOON + timedelta(hours=4)}', 1, 1)")
    harbour.db.execute("BEGIN")
    harbour.db.execute("INSERT INTO calls SELECT * FROM given")
    harbour.db.execute("COMMIT")
    assert sorted(row[0] for row in harbour.db.sql("SELECT id FROM calls").rows or []) == [1, 2, 4, 5, 7, 9]
    # Too many for the driver: executors drop them.
    harbour.db.execute("ALTER SYSTEM SET inline_rows_max = 1")
    harbour.db.execute("INSERT INTO calls SELECT id + 10, at, berth, tons FROM given UNION ALL SELECT 20, NULL, 1, 1")
    assert sorted(row[0] for row in harbour.db.sql("SELECT id FROM calls WHERE id > 9").rows or []) == [19, 20]
    rows = harbour.db.sql("SELECT info FROM rw_catalog.rw_event_logs WHERE event_type = 'LATE_ROWS_DROPPED'").rows
    assert sum(json.loads(row[0])["rows"] for row in rows or []) == 4


def test_an_epoch_in_which_no_window_closes_asks_spark_for_nothing(harbour: Harbour) -> None:
    for name in ("hours", "hops", "firsts"):
        harbour.view(name)
    harbour.db.execute("CREATE TABLE others (id int, at timestamp, berth int, tons int) APPEND ONLY")
    harbour.insert("calls", [(1, NOON, 1, 5)])
    row = f"(2, '{NOON + timedelta(minutes=1)}', 1, 5)"
    alone = harbour.jobs_of(f"INSERT INTO others VALUES {row}")
    assert harbour.jobs_of(f"INSERT INTO calls VALUES {row}") == alone
    assert harbour.jobs_of(f"INSERT INTO calls VALUES (3, '{NOON + timedelta(hours=2)}', 1, 5)") > alone


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(4))
def test_views_hold_what_is_closed_after_every_epoch(harbour: Harbour, seed: int) -> None:
    dice = random.Random(seed)
    harbour.db.execute(
        "CREATE MATERIALIZED VIEW per_hour AS SELECT window_start, count(*) AS n"
        " FROM tumble(calls, at, INTERVAL '1 hour') GROUP BY 1"
    )
    names = list(VIEWS)[seed::4]
    dice.shuffle(names)
    early, later = names[: len(names) // 2], names[len(names) // 2 :]
    for name in early:
        harbour.view(name)
    now = NOON
    for _ in range(4):
        harbour.happen(dice, now)
        now += timedelta(minutes=dice.randint(10, 90))
        harbour.check(*early)
    for name in later:
        harbour.view(name)
    harbour.check(*names)
    harbour.restart()
    for _ in range(3):
        now += timedelta(minutes=dice.choice([20, 60, 50_000]))
        harbour.happen(dice, now)
        harbour.insert("calls", [(-1, now, 1, 1), (-2, NOON - timedelta(days=1), 1, 1)])
        harbour.check(*names)
    assert harbour.late >= 2  # the first of them comes before any watermark, perhaps
