"""The queries that psql, SQLAlchemy, pgjdbc, dbt, Metabase and DBeaver send, and what they get."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seiche.catalog.facts import Facts
from seiche.session.system.rewrite import is_system_query
from seiche.sql.parse import parse_query
from tests.unit.session.system.harbour import Office, catalog, client_queries, office, own_oids, with_oids

QUERIES = client_queries("psql", "sqlalchemy", "pgjdbc", "tools")


@pytest.fixture(scope="module")
def port() -> Iterator[Office]:
    with office() as opened:
        yield opened


def answer(port: Office, title: str) -> list[tuple[object, ...]]:
    return port.rows(with_oids(QUERIES[title], own_oids()))


@pytest.mark.parametrize("title", QUERIES)
def test_a_client_query_is_answered_without_spark(port: Office, title: str) -> None:
    query = with_oids(QUERIES[title], own_oids())
    assert is_system_query(parse_query(query).tree, port.facts.catalog, ("public",))
    assert port.ask(query).columns


def test_psql_lists_relations_with_their_kinds(port: Office) -> None:
    assert answer(port, r"psql \d") == [
        ("public", "arrivals", "table", "root"),
        ("public", "norwegian", "view", "root"),
        ("public", "ships", "table", "root"),
        ("public", "visits", "materialized view", "root"),
    ]
    assert answer(port, r"psql \dm") == [("public", "visits", "materialized view", "root")]
    assert answer(port, r"psql \di") == [
        ("public", "by_ship", "index", "root", "arrivals"),
        ("public", "ships_pkey", "index", "root", "ships"),
    ]


def test_psql_describes_a_table(port: Office) -> None:
    assert answer(port, r"psql \d ships") == [(16484, "public", "ships")]
    columns = answer(port, r"psql \d+ ships #2")
    assert [(row[0], row[1], row[2], row[3], row[-1]) for row in columns] == [
        ("imo", "bigint", None, True, None),
        ("name", "character varying", None, True, None),
        ("flag", "character varying", "'NO'", False, "two letters"),
        ("built", "date", None, False, None),
    ]
    ((*_, index, constraint, kind, _, _, _, _),) = answer(port, r"psql \d ships #4")
    assert index == "CREATE UNIQUE INDEX ships_pkey ON ships USING btree (imo)"
    assert (constraint, kind) == ("PRIMARY KEY (imo)", "p")


def test_psql_shows_the_query_of_a_view(port: Office) -> None:
    assert answer(port, r"psql \d+ norwegian #3") == [("SELECT imo, name FROM ships WHERE flag = 'NO';",)]


def test_sqlalchemy_finds_keys_and_indexes(port: Office) -> None:
    ((table, columns, name, *_),) = answer(port, "sqlalchemy get_pk_constraint #2")
    assert (table, columns, name) == (16484, ["imo"], "ships_pkey")
    ((table, name, unique, *rest),) = answer(port, "sqlalchemy get_indexes #4")
    assert (table, name, unique, rest[2]) == (16485, "by_ship", False, "0")  # SQLAlchemy splits the text of a vector


def test_jdbc_finds_the_primary_key(port: Office) -> None:
    title = next(title for title, query in QUERIES.items() if "KEY_SEQ" in query and "_pg_expandarray" in query)
    ((_, schema, table, column, sequence, name),) = answer(port, title)
    assert (schema, table, column, sequence, name) == ("public", "ships", "imo", 1, "ships_pkey")


def test_dbt_sees_tables_and_what_views_read(port: Office) -> None:
    assert sorted(answer(port, "dbt list_relations")) == [
        ("dev", "arrivals", "public", "table"),
        ("dev", "norwegian", "public", "view"),
        ("dev", "ships", "public", "table"),
        ("dev", "visits", "public", "materialized_view"),
    ]
    assert answer(port, "dbt relation dependencies") == [
        ("public", "norwegian", "public", "ships"),
        ("public", "visits", "public", "arrivals"),
    ]
    assert answer(port, "dbt get_columns")[-1] == ("draught", "numeric", None, 6, 2)


def test_metabase_sees_keys_and_comments(port: Office) -> None:
    fields = {(row[4], row[0]): row for row in answer(port, "metabase describe fields")}
    assert fields["ships", "imo"][5] is True and fields["ships", "name"][5] is False
    assert fields["ships", "flag"][6] == "two letters"
    assert [(row[2], row[3], row[4]) for row in answer(port, "metabase privileges")][1] == ("norwegian", True, True)


def test_metabase_sees_what_it_syncs(port: Office) -> None:
    tables = [(row[1], row[2], row[3]) for row in answer(port, "metabase tables")]
    assert tables == [
        ("visits", "MATERIALIZED VIEW", None),
        ("arrivals", "TABLE", None),
        ("ships", "TABLE", "every ship"),
        ("norwegian", "VIEW", None),
    ]
    # It adds the columns of materialized views, which the standard's view has here too, and makes a set of all.
    fields = set(answer(port, "metabase fields of tables and materialized views"))
    assert sorted((row[4], row[0]) for row in fields)[-2:] == [("visits", "ship"), ("visits", "visits")]
    assert len(fields) == 4 + 4 + 2 + 2
    assert answer(port, "metabase foreign keys") == []
    assert sorted(answer(port, "metabase indexes")) == [("public", "arrivals", "ship"), ("public", "ships", "imo")]


def test_dbeaver_sees_definitions_and_who_may_what(port: Office) -> None:
    index = "CREATE INDEX by_ship ON public.arrivals USING btree (ship)"
    assert answer(port, "dbeaver definition of an index") == [(index,)]
    assert answer(port, "dbeaver definition of a constraint") == [("PRIMARY KEY (imo)",)]
    assert [row[1] for row in answer(port, "dbeaver search of relations")] == ["norwegian", "ships"]
    assert [(row[6], row[7]) for row in answer(port, "dbeaver dependents")] == [("R", "norwegian")]
    ((number,),) = port.rows("SELECT oid FROM pg_authid WHERE rolname = 'pilot'")
    exploded = "SELECT (aclexplode(relacl)).grantee, (aclexplode(relacl)).privilege_type FROM pg_class"
    assert port.rows(f"{exploded} WHERE relname = 'ships'") == [(number, "SELECT")]
    named = "SELECT a.grantee, a.is_grantable FROM pg_class c, aclexplode(c.relacl) a WHERE c.relname = 'ships'"
    assert port.rows(named) == [(number, False)]


def test_asyncpg_learns_an_array_type_with_its_element(port: Office) -> None:
    assert answer(port, "asyncpg type introspection") == [
        (23, "pg_catalog", "int4", "b", 0),
        (1007, "pg_catalog", "_int4", "b", 23),
    ]


def test_sizes_are_those_of_the_files(port: Office) -> None:
    assert answer(port, "size of each relation")[0] == ("public.ships", "20 kB")


def test_the_indexes_of_a_table_have_a_size() -> None:
    with office(Facts(catalog(), sizes={101: 500, 104: 300})) as port:
        assert port.value("SELECT pg_indexes_size('arrivals')") == 300
        assert port.value("SELECT pg_total_relation_size('arrivals')") == 800
        assert port.value("SELECT pg_indexes_size('ships')") == 0
