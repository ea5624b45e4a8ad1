"""Writes of one text that take effect together, where they are large and where sessions meet."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from seiche.errors import DivisionByZero
from tests.integration.conftest import Open


def test_a_statement_too_large_for_a_transaction_runs_by_itself(open_database: Open) -> None:
    db = open_database(inline_rows_max=10)
    db.execute("CREATE TABLE arrivals (id int PRIMARY KEY, tons int)")
    with pytest.raises(DivisionByZero):
        db.execute(
            "INSERT INTO arrivals VALUES (1, 1); INSERT INTO arrivals SELECT g, g FROM generate_series(2, 100) AS t(g);"
            "INSERT INTO arrivals VALUES (101, 1); UPDATE arrivals SET tons = tons / 0 WHERE id = 101"
        )
    ((rows, last),) = db.execute("SELECT count(*), max(id) FROM arrivals")[0].rows
    assert (rows, last) == (100, 100)


def test_sessions_that_write_to_the_same_tables_wait_for_each_other(open_database: Open) -> None:
    db = open_database()
    db.execute(
        "CREATE TABLE berths (id int PRIMARY KEY, calls int); CREATE TABLE quays (id int PRIMARY KEY, calls int)"
    )
    db.execute("INSERT INTO berths VALUES (1, 0); INSERT INTO quays VALUES (1, 0)")
    tables = ("berths", "quays")

    def call(order: tuple[str, ...]) -> None:
        session = db.session()
        for _ in range(3):
            session.execute("; ".join(f"UPDATE {table} SET calls = calls + 1" for table in order))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(call, [tables, tables[::-1]]))
    assert [db.execute(f"SELECT calls FROM {table}")[0].rows[0][0] for table in tables] == [6, 6]
