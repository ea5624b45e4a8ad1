"""Questions about the system: what DuckDB is asked, what it may not do, and PostgreSQL's functions and types."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seiche.catalog.facts import Facts, SessionFact
from seiche.errors import (
    InsufficientPrivilege,
    InvalidParameter,
    SeicheError,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedTable,
)
from seiche.session.system.parameters import filled, parameter_types
from seiche.session.system.rewrite import NotForUs, is_system_query, rewrite
from seiche.sql.parse import parse_query
from seiche.types import BIGINT, INTEGER, VARCHAR, array_of
from tests.unit.session.port import open_port
from tests.unit.session.system.harbour import Office, catalog, office


@pytest.fixture(scope="module")
def port() -> Iterator[Office]:
    with office() as opened:
        yield opened


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("SELECT 'ships'::regclass::oid", 16484),
        ("SELECT 'public.ships'::regclass", "ships"),
        ("SELECT '16484'::regclass::text", "ships"),
        ("SELECT 16484::regclass", "ships"),
        ("SELECT 'ships_pkey'::regclass::text", "ships_pkey"),
        ("SELECT 'pg_class'::regclass::oid", 1259),
        ("SELECT 'int4'::regtype::oid", 23),
        ("SELECT 'timestamp with time zone'::regtype::oid", 1184),
        ("SELECT 1007::regtype", "integer[]"),
        ("SELECT 'public'::regnamespace::text", "public"),
        ("SELECT to_regclass('nothing')", None),
        ("SELECT to_regtype('varchar')", 1043),
        ("SELECT format_type(1700, 393222)", "numeric(6,2)"),
        ("SELECT format_type(1043, 24)", "character varying(20)"),
        ("SELECT format_type(NULL, -1)", None),
        ("SELECT current_database()", "dev"),
        (
            "SELECT interval '1 month 2 days 03:00' FROM pg_class LIMIT 1",
            {"months": 1, "days": 2, "micros": 10_800_000_000},
        ),
        ("SELECT now() - now() FROM pg_class LIMIT 1", {"months": 0, "days": 0, "micros": 0}),
        ("SELECT time '03:00:01' FROM pg_class LIMIT 1", 10_801_000_000),
        ("SELECT current_schemas(true)", ["pg_catalog", "public"]),
        ("SELECT (current_schemas(false))[1]", "public"),
        ("SELECT pg_get_userbyid(1)", "root"),
        ("""SELECT json_build_object('a', json_build_array(1, 'x')) #>> '{a,1}' FROM pg_class LIMIT 1""", "x"),
        ("""SELECT json_build_object('a', 'x') -> 'a' #>> '{}' FROM pg_class LIMIT 1""", "x"),
        ("SELECT usesysid FROM pg_shadow WHERE usename = 'root'", 1),
        ("SELECT pg_cancel_backend(1024)", False),
        ("SELECT 1 < ANY(current_schemas(NULL)::integer[])", None),
        ("SELECT pg_postmaster_start_time() <= now()", True),
        ("SELECT pg_get_userbyid(7)", "unknown (OID=7)"),
        ("SELECT quote_ident('Ship')", '"Ship"'),
        ("SELECT quote_literal('it''s')", "'it''s'"),
        ("SELECT quote_nullable(NULL)", "NULL"),
        ("SELECT pg_size_pretty(10240::bigint)", "10 kB"),
        ("SELECT pg_size_pretty(123456789::bigint)", "118 MB"),
        ("SELECT pg_table_is_visible('ships'::regclass)", True),
        ("SELECT has_schema_privilege('public', 'USAGE')", True),
        ("SELECT has_table_privilege('pilot', 'ships', 'SELECT')", True),
        ("SELECT has_table_privilege('pilot', 'ships', 'INSERT, DELETE')", False),
        ("SELECT has_database_privilege('pilot', 'dev', 'CREATE')", False),
        ("SELECT pg_get_constraintdef(oid) FROM pg_constraint", "PRIMARY KEY (imo)"),
        ("SELECT indkey[0] FROM pg_index WHERE indisprimary", 1),
        ("SELECT conkey[1] FROM pg_constraint", 1),
        ("SELECT indkey FROM pg_index WHERE indisprimary", "1"),
        ("SELECT count(*) FROM pg_class WHERE relname LIKE 'by\\_%'", 1),
        (
            "SELECT count(*) FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(ships)$' COLLATE pg_catalog.default",
            1,
        ),
        ("SELECT count(*) FROM pg_namespace WHERE nspname = ANY(current_schemas(true))", 2),
        ("SELECT count(*) FROM pg_namespace WHERE nspname <> ALL('{public,port}'::text[])", 3),
        ("SELECT format('%I.%s has %L', 'Port', 'ships', 'one')", "\"Port\".ships has 'one'"),
        ("SELECT tableoid FROM pg_class WHERE relname = 'ships'", 1259),
        ("SELECT pg_get_indexdef('by_ship'::regclass, -3, true) || 'none'", "none"),
        ("SELECT pg_get_indexdef('by_ship'::regclass)", "CREATE INDEX by_ship ON public.arrivals USING btree (ship)"),
        ("SELECT current_setting('server_version_num')", "130014"),
        ("SELECT current_setting('no_such_thing', true)", None),
    ],
)
def test_functions_and_types_answer_as_postgresql_does(port: Office, query: str, value: Any) -> None:
    assert port.value(query) == value


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT 'nothing'::regclass", UndefinedTable),
        ("SELECT 'nothing'::regtype", UndefinedObject),
        ("SELECT nothing FROM pg_class", UndefinedColumn),
        ("SELECT x.relname FROM pg_class", UndefinedTable),
        ("SELECT * FROM pg_catalog.pg_nothing", UndefinedTable),
        ("SELECT format_type(1)", UndefinedFunction),
        ("SELECT current_setting('no_such_thing')", UndefinedObject),
        ("SELECT has_table_privilege('ships', 'FLY')", InvalidParameter),
        ("SELECT has_schema_privilege('public', 'INSERT')", InvalidParameter),
        ("SELECT has_any_column_privilege('ships', 'DELETE')", InvalidParameter),
        ("SELECT has_table_privilege('nobody', 'ships', 'SELECT')", UndefinedObject),
        ("SELECT 'x'::int4 FROM pg_class", SeicheError),
    ],
)
def test_mistakes_get_postgresqls_errors(port: Office, query: str, error: type[SeicheError]) -> None:
    with pytest.raises(error):
        port.ask(query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT relname FROM pg_class, read_text('/etc/passwd')",
        "SELECT getenv('HOME') FROM pg_class",
        "SELECT read_csv('/etc/passwd') FROM pg_class",
        "SELECT relname FROM pg_class, duckdb_settings()",
        "SELECT current_setting('x'), query('SELECT 1') FROM pg_class",
    ],
)
def test_what_only_duckdb_has_is_out_of_reach(port: Office, query: str) -> None:
    with pytest.raises((NotForUs, UndefinedTable)):
        port.ask(query)


def test_names_of_columns_are_postgresqls(port: Office) -> None:
    query = """SELECT pg_catalog.format_type(23, -1), 'ships'::regclass, count(*), 1 + 1, current_user, relname,
                      CASE WHEN true THEN 1 END, ARRAY[1], c.relkind::text, '1'::pg_catalog.oid
               FROM pg_class c GROUP BY relname, c.relkind LIMIT 1"""
    assert [column.name for column in port.ask(query).columns] == [
        "format_type", "regclass", "count", "?column?", "current_user", "relname", "case", "array", "relkind", "oid",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("query", "system"),
    [
        ("SELECT 1", False),
        ("SELECT * FROM ships", False),
        ("SELECT * FROM ships, pg_class", False),
        ("SELECT * FROM pg_class", True),
        ("WITH c AS (SELECT * FROM pg_class) SELECT * FROM c", True),
        ("SELECT version()", True),
        ("SELECT current_user", True),
        ("SELECT * FROM rw_tables", True),
        ("SELECT * FROM information_schema.tables", True),
        ("SELECT lower('A')", False),
    ],
)
def test_only_questions_about_the_system_alone_leave_spark_out(query: str, system: bool) -> None:
    assert is_system_query(parse_query(query).tree, catalog(), ("public",)) is system


def test_the_users_own_relation_goes_before_one_of_rw_catalog() -> None:
    harbour = catalog()
    tables = harbour.get(100)
    own = harbour.with_objects(type(tables)(**{**_fields(tables), "id": 150, "name": "rw_tables"}))
    assert not is_system_query(parse_query("SELECT * FROM rw_tables").tree, own, ("public",))
    assert is_system_query(parse_query("SELECT * FROM rw_catalog.rw_tables").tree, own, ("public",))


def _fields(item: Any) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__slots__}


def test_parameters_get_types_and_values(port: Office) -> None:
    tree = parse_query(
        "SELECT relname FROM pg_class WHERE oid = $1 AND relname = $2 AND oid = any($3::oid[]) AND relnatts > $4::int4"
    ).tree
    assert parameter_types(tree) == {1: BIGINT, 2: VARCHAR, 3: array_of(BIGINT), 4: INTEGER}
    given = filled(tree, {1: "16484", 2: "ships", 3: "{16484,1}", 4: "1"})
    assert "$" not in rewrite(given).sql
    with pytest.raises(NotForUs):
        rewrite(tree)


def test_the_views_follow_the_catalog(tmp_path: Path) -> None:
    with open_port(tmp_path) as opened:
        names = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace ORDER BY 1"
        assert opened.rows(names) == []
        opened.execute("CREATE TABLE ships (imo bigint)")
        assert opened.rows(names) == [("ships",)]
        opened.execute("DROP TABLE ships")
        assert opened.rows(names) == []


def test_sessions_ask_side_by_side(port: Office) -> None:
    found: list[Any] = []

    def ask(user: str) -> None:
        for _ in range(5):
            found.append((user, port.value("SELECT current_user", user=user)))

    threads = [threading.Thread(target=ask, args=(user,)) for user in ("root", "pilot") for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20 and all(asked == told for asked, told in found)


def test_a_session_is_stopped_or_sent_away_by_its_number() -> None:
    told: list[tuple[int, bool]] = []
    facts = Facts(catalog(), sessions=(SessionFact(4, "pilot"), SessionFact(5, "root")))
    with office(facts) as port:
        for user, query, answer in (
            ("root", "SELECT pg_cancel_backend(4)", True),
            ("pilot", "SELECT pg_terminate_backend(4)", True),
            ("root", "SELECT pg_terminate_backend(6)", False),
        ):
            asking = replace(port.asking(user), signal=lambda pid, ends: told.append((pid, ends)))
            found = port.queries.answer(parse_query(query).tree, asking, lambda stop: None)
            assert found.table.column(0)[0].as_py() is answer
        with pytest.raises(InsufficientPrivilege, match="must be a superuser"):
            port.ask("SELECT pg_cancel_backend(5)", user="pilot")
    assert told == [(4, False), (4, True)]
