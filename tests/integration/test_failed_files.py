"""A statement that fails leaves no file behind: not until the next start, but at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import seiche
from seiche import errors
from tests.folders import relation_files

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO ships SELECT g, 10 / (g - 20000) FROM generate_series(1000, 60000) g",
        "INSERT INTO calls SELECT 10 / (g - 20000) FROM generate_series(1000, 60000) g",
        "UPDATE ships SET tons = 10 / (id - 40)",
        "DELETE FROM ships WHERE 10 / (id - 40) > 1",
    ],
)
def test_a_statement_that_fails_among_the_executors_leaves_no_file(
    open_database: Open, tmp_path: Path, statement: str
) -> None:
    db = open_database(inline_rows_max=0, inline_bytes_max=1)
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, tons int); CREATE TABLE calls (ship int)")
    db.execute("INSERT INTO ships SELECT g, g FROM generate_series(1, 90) g")
    db.database.maintenance.settle()
    before = relation_files(tmp_path / "harbour")
    assert before
    with pytest.raises(errors.DivisionByZero):
        db.execute(statement)
    assert relation_files(tmp_path / "harbour") == before
    assert db.sql("SELECT count(*) FROM ships").rows == [(90,)]


def test_a_view_that_is_given_up_leaves_no_file(open_database: Open, tmp_path: Path) -> None:
    db = open_database(inline_rows_max=0)
    db.execute("CREATE TABLE calls (ship int, berth int)")
    db.execute("INSERT INTO calls SELECT g % 1000, g FROM generate_series(1, 200000) g")
    db.database.maintenance.settle()
    before = relation_files(tmp_path / "harbour")
    db.execute("SET statement_timeout = 1")
    with pytest.raises(errors.QueryCanceled):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT a.ship, b.berth FROM calls a JOIN calls b ON a.ship = b.ship")
    db.execute("SET statement_timeout = 0")
    assert not db.database.jobs.listed()
    deadline = time.monotonic() + 20
    while relation_files(tmp_path / "harbour") != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert relation_files(tmp_path / "harbour") == before
    assert db.sql("SHOW JOBS").rows == []
