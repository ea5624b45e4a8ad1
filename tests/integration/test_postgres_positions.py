"""The SQLSTATE of an error and where it points in its statement, against those of a real PostgreSQL.

The wrong statements stand in `wrong_statements.txt`, one on a line. All of them fail before anything runs, so nothing
here needs Spark. A few positions differ by design: those of statements that PostgreSQL does not analyze (TRUNCATE,
CREATE TABLE with a column twice, ALTER TABLE to an unknown type) are given here and not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from seiche.errors import UserError
from seiche.session.run import Session
from tests.golden.session import harbour_database
from tests.integration.postgres import temporary_server

HARBOUR = """
CREATE TABLE ships (id integer PRIMARY KEY, name text, flag text, tons integer, draught real, fee numeric(10,2));
CREATE TABLE berths (id integer PRIMARY KEY, quay text, depth double precision, free boolean);
CREATE TABLE arrivals (ship integer, berth integer, day date, at timestamp, tons integer, crew text[]);
CREATE TABLE tides (at timestamptz, height double precision, high boolean);
CREATE MATERIALIZED VIEW heavy AS SELECT id, name, tons FROM ships WHERE tons > 1000;
CREATE VIEW calls AS SELECT s.name, a.at, a.tons FROM ships s JOIN arrivals a ON a.ship = s.id;
"""
WRONG = (Path(__file__).parent / "wrong_statements.txt").read_text(encoding="utf-8").splitlines()
OVER_LINES = (
    "SELECT\n  1,\n  nofunc(2)",
    "SELECT -- a comment\n nosuch FROM ships",
    "SELECT 1 AS a,\n       name + 1 AS b\n  FROM ships",
    "SET timezone = 'UTC';\n\n  SELECT flag, tons\n  FROM ships GROUP BY flag",
    "SET timezone = 'UTC';\nSET timezone = 'UTC';\nINSERT INTO ships (id, nosuch)\nVALUES (1, 2);\nSELECT 1",
)
# Statements that fail by another SQLSTATE here: what PostgreSQL finds no function or operator for is told as types that
# do not match, other databases can be read, and names of many parts are looked for.
OTHER_SQLSTATES = {
    "SELECT crew || 1 FROM arrivals": "42804",
    "SELECT array_append(crew, 1) FROM arrivals": "42804",
    "SELECT * FROM generate_series(true, false)": "42804",
    "SELECT * FROM nosuch.public.ships": "3D000",
    "SELECT a.b.c.d.e FROM ships": "42P01",
}


@pytest.fixture(scope="module")
def postgres() -> Iterator[psycopg.Connection[Any]]:
    with temporary_server() as server, psycopg.connect(server.create_database(), autocommit=True) as connection:
        connection.execute(HARBOUR)
        yield connection


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    database = harbour_database()
    yield Session(database)
    database.system.close()


@pytest.mark.parametrize("statement", [*WRONG, *OVER_LINES])
def test_an_error_is_and_points_where_that_of_postgres_is_and_points(
    postgres: psycopg.Connection[Any], session: Session, statement: str
) -> None:
    with pytest.raises(psycopg.Error) as wanted:
        postgres.execute(statement)
    with pytest.raises(UserError) as caught:
        session.execute(statement)
    assert caught.value.sqlstate == OTHER_SQLSTATES.get(statement, wanted.value.sqlstate)
    there = wanted.value.diag.statement_position
    assert _pointed(statement, caught.value.position) == _pointed(statement, int(there) if there else None)


def _pointed(statement: str, position: int | None) -> str | None:
    """The statement with a mark where the error points."""
    return None if position is None else f"{statement[: position - 1]}>>>{statement[position - 1 :]}"
