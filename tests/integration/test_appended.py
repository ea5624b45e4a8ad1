"""Views over tables that only grow, in epochs too large for the driver: rows are written as they come."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import seiche
from tests.integration.conftest import Open

pytestmark = [pytest.mark.spark]

VIEWS = {
    "mapped": "SELECT ship, berth + 1 AS next, tons * 2 AS doubled FROM arrivals",
    "chosen": "SELECT ship FROM arrivals WHERE berth > 2",
    "failing": "SELECT ship, 100 / berth AS q FROM arrivals",
    "named": "SELECT a.ship, s.name FROM arrivals a JOIN ships s ON a.ship = s.id",
    "all_ids": "SELECT ship AS id FROM arrivals UNION ALL SELECT id FROM ships",
    "pairs": "SELECT a.ship, b.berth FROM arrivals a JOIN arrivals b ON a.ship = b.ship",
    "on_top": "SELECT doubled FROM mapped WHERE next < 4",
    "summed": "SELECT ship, count(*) AS n, sum(doubled) AS t FROM mapped GROUP BY ship",
}


def same(db: seiche.Engine) -> None:
    for name, query in VIEWS.items():
        expected = query.replace("100 / berth", "100 / nullif(berth, 0)")
        assert _rows(db, f"SELECT * FROM {name}") == _rows(db, expected), name


def _rows(db: seiche.Engine, query: str) -> list[str]:
    return sorted(map(repr, db.sql(query).rows or []))


def test_views_over_tables_that_grow_by_many_rows_at_a_time_equal_their_queries(open_database: Open) -> None:
    settings = {"inline_rows_max": 3, "fold_min_rows": 40}
    db = open_database(**settings)
    db.execute("CREATE TABLE arrivals (ship int, berth int, tons bigint) APPEND ONLY")
    db.execute("CREATE TABLE ships (id int, name varchar) APPEND ONLY")
    for name, query in VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.execute("INSERT INTO arrivals SELECT i % 7, i % 5, i FROM generate_series(1, 30) AS g(i)")
    same(db)
    at_once = [
        "INSERT INTO ships SELECT i, 'ship ' || i FROM generate_series(1, 9) AS g(i)",
        "INSERT INTO arrivals SELECT i % 7, i % 5, i FROM generate_series(20, 50) AS g(i)",
    ]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda statement: db.session().execute(statement), at_once))
    same(db)
    db.execute("INSERT INTO arrivals VALUES (1, 0, 5)")
    same(db)
    db.close()
    db = open_database(**settings)
    db.execute("INSERT INTO ships SELECT i, 'again ' || i FROM generate_series(5, 9) AS g(i)")
    same(db)
    db.database.maintenance.settle()
    same(db)
    told = db.sql("SELECT info FROM rw_catalog.rw_event_logs WHERE event_type = 'EXPRESSION_FAILED'").rows or []
    failed = [json.loads(info)["rows"] for (info,) in told if json.loads(info)["view"] == "failing"]
    assert sorted(failed) == [1, 6, 7]


def test_many_rows_of_a_view_that_only_grows_are_written_bare(open_database: Open) -> None:
    db = open_database(inline_rows_max=3, fold_min_rows=10_000)
    db.execute("CREATE TABLE arrivals (ship int, berth int) APPEND ONLY")
    db.execute("CREATE TABLE tides (id int PRIMARY KEY, level int)")
    db.execute("CREATE MATERIALIZED VIEW grows AS SELECT ship FROM arrivals")
    db.execute("CREATE MATERIALIZED VIEW changes AS SELECT level FROM tides")
    db.execute("INSERT INTO arrivals SELECT i, i FROM generate_series(1, 30) AS g(i)")
    db.execute("INSERT INTO tides SELECT i, i FROM generate_series(1, 30) AS g(i)")
    assert [_bare(db, name) for name in ("grows", "changes")] == [{True}, {False}]


def _bare(db: seiche.Engine, name: str) -> set[bool]:
    found = db.database.catalog.find((name,)).id
    return {segment.bare for segment in db.database.runtime.versions.segments(found)}  # type: ignore[arg-type]
