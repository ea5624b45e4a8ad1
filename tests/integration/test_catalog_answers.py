"""Clients' questions about the system, compared with a real PostgreSQL's answers over the same relations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.integration.postgres import temporary_server
from tests.unit.session.system.harbour import (
    RELATIONS,
    SETUP,
    Office,
    client_queries,
    office,
    own_oids,
    with_oids,
)

QUERIES = client_queries("psql", "sqlalchemy")

# Where the rows differ, and must: what one of the two has and the other has not.
DIFFERENT = {
    "sizes on disk": [r"psql \d+", r"psql \dt+", r"psql \di+"],
    "schema rw_catalog, and who owns the schema public": [
        r"psql \dn", r"psql \dn+", r"psql \dn public", "sqlalchemy get_schema_names",
    ],
    "users and databases": [r"psql \du", r"psql \du+", r"psql \l", r"psql \l+"],
    "a default is shown as it was written, without PostgreSQL's cast": [
        r"psql \d ships #3", r"psql \d+ ships #2", "sqlalchemy get_columns", "sqlalchemy get_columns schema",
        "sqlalchemy get_multi_columns", "sqlalchemy reflect",
    ],
    "a view is shown as it was written": [
        r"psql \d+ visits #3", r"psql \d+ norwegian #3", r"psql \sv norwegian #2", "sqlalchemy get_view_definition",
    ],
    "PostgreSQL's own languages, operators, text search and settings": [
        r"psql \dx", r"psql \dS", r"psql \dC", r"psql \dL", r"psql \dF", r"psql \dA", r"psql \dconfig",
        "sqlalchemy connect", "sqlalchemy get_indexes #3", "sqlalchemy get_indexes #4", "sqlalchemy reflect #5",
    ],
    "privileges that were granted": [r"psql \dp"],
}  # fmt: skip
_DIFFERENT = {title for titles in DIFFERENT.values() for title in titles}


@pytest.fixture(scope="module")
def theirs() -> Iterator[psycopg.Connection[Any]]:
    with temporary_server() as server, psycopg.connect(server.create_database(), autocommit=True) as connection:
        connection.execute(SETUP)
        yield connection


@pytest.fixture(scope="module")
def ours() -> Iterator[Office]:
    with office() as opened:
        yield opened


@pytest.mark.parametrize("title", QUERIES)
def test_the_answer_is_postgresqls(theirs: psycopg.Connection[Any], ours: Office, title: str) -> None:
    oids = {
        name: theirs.execute("SELECT %s::regclass::oid::int8", [name]).fetchone()[0]  # type: ignore[index]
        for name in RELATIONS
    }
    cursor = theirs.execute(with_oids(QUERIES[title], oids).encode())  # type: ignore[arg-type]
    assert cursor.description is not None
    mine = ours.ask(with_oids(QUERIES[title], own_oids()))
    assert [column.name for column in mine.columns] == [column.name for column in cursor.description]
    if title not in _DIFFERENT:
        shown = list(zip(*mine.table.to_pydict().values(), strict=True)) if mine.columns else []
        expected = [_plain(row, {oid: name for name, oid in oids.items()}) for row in cursor.fetchall()]
        found = [_plain(row, {oid: name for name, oid in own_oids().items()}) for row in shown]
        ordered = "ORDER BY" in QUERIES[title].rpartition(")")[2].upper()
        assert found == expected if ordered else sorted(map(repr, found)) == sorted(map(repr, expected))


def _plain(value: Any, names: dict[int, str]) -> Any:
    """The value with names in place of oids and owners, which differ."""
    if isinstance(value, list | tuple):
        return [_plain(each, names) for each in value]
    if value in ("harbour", "root"):
        return "<owner>"
    if isinstance(value, int | str) and str(value).isdecimal() and int(value) in names:
        return f"<{names[int(value)]}>"
    return value
