"""Joins and windows by time: temporal and ASOF joins, proctime() and sessions, in one harbour.

A temporal join is a history, so it is compared with what each row met when it came; the others are compared with a slow
answer in Python over the same rows, and with their own query.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seiche import errors
from tests.integration.hand_clock import TimedHarbour

pytestmark = pytest.mark.spark

Row = tuple[object, ...]
START = dt.datetime(2026, 1, 1)


class Harbour(TimedHarbour):
    def rows(self, query: str) -> list[Row]:
        return sorted((tuple(row) for row in self.db.sql(query).rows or []), key=repr)


@pytest.fixture
def harbour(tmp_path: Path, spark: SparkSession) -> Iterator[Harbour]:
    made = Harbour(tmp_path / "harbour", spark)
    yield made
    made.db.close()


def test_a_temporal_join_keeps_what_each_row_met_when_it_came(harbour: Harbour) -> None:
    harbour.execute(
        "CREATE TABLE arrivals (ship int, tons int) APPEND ONLY",
        "CREATE TABLE visits (id int PRIMARY KEY, ship int)",
        "CREATE TABLE ships (id int PRIMARY KEY, tons int)",
    )
    join = "JOIN ships FOR SYSTEM_TIME AS OF PROCTIME() AS s ON a.ship = s.id"
    views = {
        "found": f"SELECT a.ship, a.tons, s.tons AS known FROM arrivals a {join}",
        "all_": f"SELECT a.ship, a.tons, s.tons AS known FROM arrivals a LEFT {join} AND a.tons > s.tons",
        "larger": "SELECT a.tons, s.id FROM arrivals a"
        " JOIN ships FOR SYSTEM_TIME AS OF PROCTIME() AS s ON a.tons > s.tons",
        "seen": f"SELECT a.id, s.tons FROM visits a LEFT {join}",
        "counted": f"SELECT s.tons, count(*) AS n FROM arrivals a {join} GROUP BY s.tons",
    }
    for name, query in views.items():
        harbour.execute(f"CREATE MATERIALIZED VIEW {name} WITH (incremental = 'strict') AS {query}")
    harbour.execute(
        "INSERT INTO arrivals VALUES (1, 10)",
        "INSERT INTO visits VALUES (1, 1), (2, 1)",
        "INSERT INTO ships VALUES (1, 5)",
        "INSERT INTO arrivals VALUES (1, 11), (2, 11)",
        "INSERT INTO visits VALUES (3, 1)",
        "UPDATE ships SET tons = 100 WHERE id = 1",
        "INSERT INTO arrivals VALUES (1, 12)",
    )
    harbour.restart()
    harbour.execute("DELETE FROM ships", "INSERT INTO arrivals VALUES (1, 13)")
    assert harbour.rows("SELECT * FROM found") == [(1, 11, 5), (1, 12, 100)]
    assert harbour.rows("SELECT * FROM all_") == sorted(
        [(1, 10, None), (1, 11, 5), (2, 11, None), (1, 12, None), (1, 13, None)], key=repr
    )
    assert harbour.rows("SELECT * FROM larger") == [(11, 1), (11, 1)]
    assert harbour.rows("SELECT * FROM counted") == [(100, 1), (5, 1)]
    assert harbour.rows("SELECT * FROM seen") == [(1, None), (2, None), (3, 5)]
    harbour.execute(
        "INSERT INTO ships VALUES (1, 7)", "UPDATE visits SET ship = 1 WHERE id = 2", "DELETE FROM visits WHERE id = 3"
    )
    assert harbour.rows("SELECT * FROM seen") == [(1, None), (2, None)]
    harbour.execute("UPDATE visits SET ship = 4 WHERE id = 1", "UPDATE visits SET ship = 1 WHERE id = 1")
    assert harbour.rows("SELECT * FROM seen") == [(1, 7), (2, None)]
    harbour.execute(f"CREATE MATERIALIZED VIEW later AS {views['found']}")
    assert harbour.rows("SELECT * FROM later") == [(1, tons, 7) for tons in (10, 11, 12, 13)]
    late = "WHERE NOT now() < '2020-01-01'"
    with pytest.raises(errors.FeatureNotSupported, match="temporal join cannot stand"):
        harbour.execute(f"CREATE MATERIALIZED VIEW no AS SELECT a.ship FROM arrivals a {join} {late}")


def test_the_time_of_arrival_is_stored_with_the_row(harbour: Harbour) -> None:
    harbour.execute(
        "CREATE TABLE arrivals (ship int, came timestamptz AS proctime()) APPEND ONLY",
        "CREATE TABLE calls (ship int PRIMARY KEY, tons int)",
        "CREATE MATERIALIZED VIEW seen AS SELECT ship, tons, proctime() AS at FROM calls",
        "CREATE MATERIALIZED VIEW by_minute WITH (incremental = 'strict') AS SELECT window_start, count(*) AS n"
        " FROM TUMBLE((SELECT *, proctime() AS p FROM calls), p, INTERVAL '1 minute') GROUP BY window_start",
    )
    for minute in range(3):
        harbour.execute(f"INSERT INTO arrivals VALUES ({minute})", f"INSERT INTO calls VALUES ({minute}, 1)")
        harbour.clock.ms += 60_000
    harbour.restart()
    harbour.execute("UPDATE calls SET tons = 2 WHERE ship = 0", "DELETE FROM calls WHERE ship = 1")
    times = [START.replace(tzinfo=dt.UTC) + dt.timedelta(minutes=each) for each in range(4)]
    assert harbour.rows("SELECT ship, came FROM arrivals") == [(0, times[0]), (1, times[1]), (2, times[2])]
    assert harbour.rows("SELECT * FROM seen") == [(0, 2, times[3]), (2, 1, times[2])]
    assert harbour.rows("SELECT * FROM by_minute") == sorted([(times[2], 1), (times[3], 1)], key=repr)


COMPARISONS = {">=": lambda a, b: a >= b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b, "<": lambda a, b: a < b}


def nearest(arrivals: list[Row], tides: list[Row], word: str, *, left: bool) -> list[Row]:
    """The slow answer: for each arrival the tide of its berth that is nearest in time, the first by id of equals."""
    found: list[Row] = []
    for ship, berth, at in arrivals:
        fitting = [
            (abs(moment - at), number)
            for number, place, moment in tides
            if berth is not None and place == berth and None not in (at, moment) and COMPARISONS[word](at, moment)
        ]
        if fitting or left:
            found.append((ship, min(fitting)[1] if fitting else None))
    return sorted(found, key=repr)


def test_asof_joins_find_the_nearest_row_while_both_sides_change(harbour: Harbour) -> None:
    chance = random.Random(7)
    harbour.execute(
        "CREATE TABLE arrivals (ship int PRIMARY KEY, berth int, at int)",
        "CREATE TABLE tides (id int PRIMARY KEY, berth int, at int)",
    )
    views = {
        f"{kind}{number}": (
            f"SELECT a.ship, t.id FROM arrivals a ASOF {kind} JOIN tides t ON a.berth = t.berth AND a.at {word} t.at",
            word,
            kind == "LEFT",
        )
        for kind in ("", "LEFT")
        for number, word in enumerate(COMPARISONS)
        if (kind, word) in {("", ">="), ("", "<"), ("LEFT", ">"), ("LEFT", "<=")}
    }
    for name, (query, _, _) in views.items():
        harbour.execute(f"CREATE MATERIALIZED VIEW v{name} WITH (incremental = 'strict') AS {query}")
    number = 0
    for step in range(4):
        for table in ("arrivals", "tides"):
            new = []
            for _ in range(chance.randint(2, 4)):
                number += 1
                new.append(f"({number}, {chance.choice(['NULL', 1, 1, 2])}, {chance.choice(['NULL', *range(6)])})")
            harbour.execute(f"INSERT INTO {table} VALUES {', '.join(new)}")
        if step:
            harbour.execute(
                f"DELETE FROM tides WHERE id % 5 = {step}",
                f"UPDATE arrivals SET at = at + 1 WHERE ship % 3 = {step - 1}",
            )
        arrivals, tides = harbour.rows("SELECT * FROM arrivals"), harbour.rows("SELECT * FROM tides")
        for name, (query, word, left) in views.items():
            expected = nearest(arrivals, tides, word, left=left)
            assert harbour.rows(f"SELECT * FROM v{name}") == expected, (name, step)
            if step == 3:
                assert harbour.rows(query) == expected, name
    with pytest.raises(errors.InvalidDefinition, match="exactly one inequality"):
        harbour.execute(
            "CREATE MATERIALIZED VIEW no AS SELECT a.ship FROM arrivals a ASOF JOIN tides t ON a.berth = t.berth"
        )


def sessions(rows: list[Row], gap: int) -> list[Row]:
    """The slow answer: (id, first moment, last moment, rows) of the session of each row."""
    found: list[Row] = []
    for number, berth, at in rows:
        mine = sorted(moment for _, place, moment in rows if place == berth)
        first = last = at
        for moment in mine:
            last = moment if moment >= at and moment - last <= gap else last
        for moment in reversed(mine):
            first = moment if moment <= at and first - moment <= gap else first
        found.append((number, first, last, sum(first <= moment <= last for moment in mine)))
    return sorted(found, key=repr)


def test_sessions_grow_meet_and_part_as_rows_come_and_go(harbour: Harbour) -> None:
    chance = random.Random(3)
    over = "OVER (PARTITION BY berth ORDER BY at SESSION WITH GAP"
    harbour.execute(
        "CREATE TABLE calls (id int PRIMARY KEY, berth int, at int)",
        "CREATE TABLE moored (id int PRIMARY KEY, berth int, at timestamp)",
        "CREATE MATERIALIZED VIEW spans WITH (incremental = 'strict') AS SELECT id,"
        f" first_value(at) {over} 3) AS f, last_value(at) {over} 3) AS l, count(*) {over} 3) AS n FROM calls",
        "CREATE MATERIALIZED VIEW stays AS"
        f" SELECT id, first_value(at) {over} '10 minutes') AS f, max(at) {over} '10 minutes') AS l FROM moored",
    )
    for step in range(3):
        rows = [f"({step * 10 + n}, {chance.randint(1, 2)}, {chance.randint(0, 30)})" for n in range(6)]
        harbour.execute(f"INSERT INTO calls VALUES {', '.join(rows)}", f"DELETE FROM calls WHERE id % 7 = {step}")
        assert harbour.rows("SELECT * FROM spans") == sessions(harbour.rows("SELECT * FROM calls"), 3)
    minutes = (0, 5, 15, 26)
    rows = [f"({n}, 1, timestamp '2026-01-01' + interval '{each} minutes')" for n, each in enumerate(minutes)]
    harbour.execute(f"INSERT INTO moored VALUES {', '.join(rows)}")
    at = [START + dt.timedelta(minutes=each) for each in minutes]
    assert harbour.rows("SELECT * FROM stays") == [
        (0, at[0], at[2]),
        (1, at[0], at[2]),
        (2, at[0], at[2]),
        (3, at[3], at[3]),
    ]
