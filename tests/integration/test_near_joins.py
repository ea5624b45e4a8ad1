"""Joins that the driver puts together, over bases that are not in memory: right after every change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import seiche
from seiche.model import RelationId
from seiche.storage import relation, row_groups
from seiche.storage.far_groups import FarGroups

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]

VIEWS = {
    "by_tons": """SELECT s.tons, count(*) AS n, sum(a.cargo) AS cargo, max(b.quay) AS quay
        FROM arrivals a JOIN ships s ON s.id = a.ship JOIN berths b ON b.name = a.berth AND b.depth < a.cargo + 500
        WHERE lower(b.quay) <> 'closed' AND s.name LIKE 'ship%' GROUP BY s.tons""",
    "idle": """SELECT id, name FROM ships
        WHERE id < 1500 AND NOT EXISTS (SELECT 1 FROM arrivals WHERE ship = id AND cargo > 10)""",
    "visits": """SELECT s.id, s.name, a.id AS arrival, a.cargo
        FROM ships s LEFT JOIN arrivals a ON a.ship = s.id WHERE s.id BETWEEN 995 AND 1010""",
    "heaviest": """SELECT a.id, a.cargo, s.name FROM arrivals a, ships s WHERE s.id = a.ship
        ORDER BY a.cargo DESC NULLS LAST, a.id LIMIT 3""",
    "above_mean": """SELECT a.id, a.cargo FROM arrivals a, (SELECT avg(cargo) AS mean FROM arrivals) m
        WHERE a.cargo > m.mean""",
}
CHANGES = [
    """INSERT INTO arrivals SELECT 100 + n, 900 + n * 7, CASE n % 3 WHEN 0 THEN 'A' WHEN 1 THEN 'B' END, n * 10
       FROM generate_series(0, 60) AS g(n)""",
    "UPDATE ships SET tons = tons + 1, name = name || '!' WHERE id BETWEEN 1000 AND 1100",
    "DELETE FROM ships WHERE id = 1005; INSERT INTO ships VALUES (1005, 'ship of old', 3), (3000, 'ship new', 9)",
    "INSERT INTO arrivals VALUES (500, 3000, 'A', 7), (501, 1001, 'B', 5000), (502, 1001, 'gone', 12)",
    "UPDATE berths SET quay = 'closed' WHERE name = 'A'",
    "UPDATE arrivals SET ship = ship + 1, cargo = cargo + 1 WHERE id % 5 = 0",
    """BEGIN; DELETE FROM arrivals WHERE id > 495; DELETE FROM ships WHERE id IN (1001, 3000);
       INSERT INTO arrivals VALUES (600, 1001, 'B', 9000), (601, 1999, 'B', NULL); COMMIT""",
    "INSERT INTO ships VALUES (1001, 'ship again', 4)",
    "DELETE FROM arrivals",
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("bytes_max", "turnover_ms"),
    [(1 << 25, row_groups.TURNOVER_MS), (1, row_groups.TURNOVER_MS), (1, 0), (0, 0)],
    ids=["by the driver", "by executors", "in memory", "by Spark's reader"],
)
def test_few_changes_of_joins_find_their_partners_in_large_bases(
    open_database: Open, monkeypatch: pytest.MonkeyPatch, bytes_max: int, turnover_ms: int
) -> None:
    db = open_database(nearby_bytes_max=bytes_max)
    monkeypatch.setattr(relation, "NEAR_BASE_BYTES_MAX", 0)  # no base is small
    monkeypatch.setattr(row_groups, "TURNOVER_MS", turnover_ms)  # 0: every base changes slowly
    db.execute(
        "CREATE TABLE ships (id int PRIMARY KEY, name varchar, tons bigint);"
        "CREATE TABLE arrivals (id int PRIMARY KEY, ship int, berth varchar, cargo bigint);"
        "CREATE TABLE berths (name varchar PRIMARY KEY, quay varchar, depth int);"
        "INSERT INTO ships SELECT n, 'ship ' || n, n % 7 FROM generate_series(0, 1999) AS g(n);"
        "INSERT INTO berths VALUES ('A', 'north', 400), ('B', 'South', 520), ('C', 'closed', 1)"
    )
    for name, query in VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    for number, change in enumerate(CHANGES):
        db.execute(f"{change}; FLUSH")
        for name, query in VIEWS.items():
            held, asked = (sorted(map(str, db.sql(text))) for text in (f"SELECT * FROM {name}", query))
            assert held == asked, f"{name} after {change}"
        db.database.runtime.reader.settle()
        if number in (0, 4):
            for name in ("ships", "arrivals", "berths", "idle", "visits"):
                db.database.maintenance.fold_now(RelationId(db.database.catalog.find((name,)).id))


def _looked_for_by_executors(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Sees to it that no base counts as small, and collects what executors find in them."""
    monkeypatch.setattr(relation, "NEAR_BASE_BYTES_MAX", 0)
    monkeypatch.setattr(relation, "DRIVER_FILES_BYTES_MAX", 0)
    found: list[Any] = []
    rows = FarGroups.rows

    def seen(*arguments: Any) -> Any:
        found.append(rows(*arguments))
        return found[-1]

    monkeypatch.setattr(FarGroups, "rows", seen)
    return found


def test_executors_look_through_the_row_groups_of_keys_from_all_over_a_base(
    open_database: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = _looked_for_by_executors(monkeypatch)
    db = open_database(nearby_bytes_max=1)
    db.execute(
        "CREATE TABLE ships (id bigint PRIMARY KEY, name varchar, built date);"
        "INSERT INTO ships SELECT n, 'ship ' || n, date '2000-01-01' + n FROM generate_series(1, 3000) AS g(n);"
        "CREATE TABLE arrivals (id int PRIMARY KEY, ship bigint)"
    )
    db.database.maintenance.fold_now(RelationId(db.database.catalog.find(("ships",)).id))
    query = "SELECT a.id, s.name, s.built FROM arrivals a JOIN ships s ON s.id = a.ship"
    db.execute(f"CREATE MATERIALIZED VIEW visits AS {query}")
    db.execute("INSERT INTO arrivals SELECT n, n * 37 FROM generate_series(1, 100) AS g(n)")
    db.execute("UPDATE ships SET name = 'renamed' WHERE id % 111 = 0; DELETE FROM arrivals WHERE id % 2 = 0")
    held, asked = (sorted(map(str, db.sql(text))) for text in ("SELECT * FROM visits", query))
    assert held == asked
    assert len(held) == 41
    assert found
    assert all(each is not None for each in found), "executors could read"
    assert sum(table.num_rows for each in found for table in each.values()) < 1_000, "and sent few rows"


def test_what_was_looked_up_once_is_found_in_memory_until_a_fold(
    open_database: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_groups, "TURNOVER_MS", 0)  # every base changes slowly
    found = _looked_for_by_executors(monkeypatch)
    db = open_database(nearby_bytes_max=1)
    db.execute(
        "CREATE TABLE ships (id bigint PRIMARY KEY, name varchar);"
        "INSERT INTO ships SELECT n, 'ship ' || n FROM generate_series(1, 3000) AS g(n);"
        "CREATE TABLE arrivals (id int PRIMARY KEY, ship bigint)"
    )
    query = "SELECT a.id, s.name FROM arrivals a JOIN ships s ON s.id = a.ship"
    db.execute(f"CREATE MATERIALIZED VIEW visits AS {query}")
    ships = RelationId(db.database.catalog.find(("ships",)).id)
    for number, fold in enumerate((True, False, False, True, False)):
        if fold:
            db.database.maintenance.fold_now(ships)
        found.clear()
        first = number * 100
        db.execute(f"INSERT INTO arrivals SELECT n, n * 5 FROM generate_series({first + 1}, {first + 100}) AS g(n)")
        assert bool(found) == fold, "executors look through the files of a new base, and nobody through the others"
        db.database.runtime.reader.settle()
        db.execute(
            f"UPDATE ships SET name = 'renamed {number}' WHERE id % 55 = 0; DELETE FROM ships WHERE id = {first + 5}"
        )
        held, wanted = (sorted(map(str, db.sql(text))) for text in ("SELECT * FROM visits", query))
        assert held == wanted
        assert len(held) == first + 100 - number - 1


def test_a_join_by_several_columns_of_which_both_sides_are_shown_is_planned_in_time(open_database: Open) -> None:
    """Where many rows of both sides change in one epoch: Spark would look for what all the equal columns imply."""
    db = open_database()
    db.execute(
        "CREATE TABLE ships (id bigint, name varchar, at timestamp) APPEND ONLY;"
        "CREATE TABLE arrivals (ship bigint, at timestamp) APPEND ONLY"
    )
    query = """
        SELECT s.id, s.name, s.begun FROM
          (SELECT id, name, window_start AS begun, window_end AS ended FROM TUMBLE(ships, at, INTERVAL '10' SECOND)
           GROUP BY id, name, window_start, window_end) s
        JOIN
          (SELECT ship, window_start AS begun, window_end AS ended FROM TUMBLE(arrivals, at, INTERVAL '10' SECOND)
           GROUP BY ship, window_start, window_end) a
        ON s.id = a.ship AND s.begun = a.begun AND s.ended = a.ended"""
    db.execute(f"CREATE MATERIALIZED VIEW together AS {query}")
    for first in (0, 10):
        db.execute("ALTER SYSTEM SET inline_rows_max = 50000")
        session = db.session()
        session.execute("BEGIN")
        rows = f"timestamp '2026-01-01' + n * interval '1 second' FROM generate_series({first}, {first + 12}) AS g(n)"
        session.execute(f"INSERT INTO ships SELECT n, 'ship ' || n, {rows}; INSERT INTO arrivals SELECT n, {rows}")
        db.execute("ALTER SYSTEM SET inline_rows_max = 0")
        session.execute("COMMIT")
    held, wanted = (sorted(map(str, db.sql(text))) for text in ("SELECT * FROM together", query))
    assert held == wanted
    assert len(held) == 23
