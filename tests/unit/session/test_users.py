"""Users, grants, owners, comments and databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seiche.errors import (
    DependentObjects,
    DuplicateObject,
    InsufficientPrivilege,
    InvalidDefinition,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedSchema,
)
from tests.unit.session.port import Port, open_port


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        yield opened


def test_a_user_may_what_was_granted_until_it_is_revoked(port: Port) -> None:
    port.execute("CREATE TABLE ships (imo bigint PRIMARY KEY, name varchar); CREATE USER pilot WITH PASSWORD 'tide'")
    pilot = port.session("pilot")
    with pytest.raises(InsufficientPrivilege, match='permission denied for table "ships"'):
        pilot.execute("SELECT * FROM ships")
    with pytest.raises(InsufficientPrivilege):
        pilot.insert("ships", [(2, "Rigel")])
    port.execute("GRANT SELECT, INSERT ON TABLE ships TO pilot")
    asked = "SELECT has_table_privilege('ships', 'SELECT'), has_table_privilege('pilot', 'ships', 'DELETE')"
    assert pilot.execute(asked)[0].rows == [(True, False)]
    assert pilot.execute("SELECT current_user, session_user")[0].rows == [("pilot", "pilot")]
    acl = "SELECT relacl FROM pg_class WHERE relname = 'ships'"
    assert port.rows(acl) == [(["pilot=ar/root"],)]
    port.execute("REVOKE ALL ON ships FROM pilot")
    assert port.rows(acl) == [(None,)]
    with pytest.raises(InsufficientPrivilege):
        pilot.execute("SELECT * FROM ships")


def test_what_a_user_makes_is_the_users_own(port: Port) -> None:
    port.execute("CREATE USER pilot; CREATE USER ada; GRANT CREATE ON SCHEMA public TO pilot")
    pilot, ada = port.session("pilot"), port.session("ada")
    pilot.execute("CREATE TABLE tides (at integer); CREATE VIEW high AS SELECT max(at) AS at FROM tides")
    owners = "SELECT relname, pg_get_userbyid(relowner) FROM pg_class WHERE relname IN ('tides', 'high') ORDER BY 1"
    assert port.rows(owners) == [("high", "pilot"), ("tides", "pilot")]
    with pytest.raises(InsufficientPrivilege, match='must be owner of table "tides"'):
        ada.execute("DROP TABLE tides CASCADE")
    with pytest.raises(DependentObjects):
        port.execute("DROP USER pilot")
    pilot.execute("GRANT SELECT ON high TO ada WITH GRANT OPTION")
    ada.execute("GRANT SELECT ON high TO postgres")
    with pytest.raises(InsufficientPrivilege):
        ada.execute("GRANT SELECT ON tides TO postgres")
    pilot.execute("REVOKE GRANT OPTION FOR SELECT ON high FROM ada")
    with pytest.raises(InsufficientPrivilege):
        ada.execute("GRANT SELECT ON high TO postgres")
    port.execute("ALTER TABLE tides OWNER TO root; ALTER VIEW high OWNER TO root; DROP USER pilot")
    assert port.rows("SHOW USERS") == [("ada",), ("postgres",), ("root",), ("rwadmin",)]
    assert port.rows(owners) == [("high", "root"), ("tides", "root")]


def test_show_tells_a_user_of_what_the_user_may_do_something_with(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE USER pilot; CREATE SCHEMA quay; GRANT USAGE ON SCHEMA quay TO pilot")
        port.execute("CREATE TABLE quay.berths (id int); CREATE VIEW quay.free AS SELECT id FROM quay.berths")
        pilot = port.session("pilot")

        def shown(text: str) -> list[tuple[Any, ...]]:
            return list(pilot.execute(text)[-1].rows)

        assert shown("SHOW TABLES FROM quay") == shown("SHOW VIEWS FROM quay") == []
        with pytest.raises(InsufficientPrivilege, match='permission denied for table "quay.berths"'):
            pilot.execute("SHOW COLUMNS FROM quay.berths")
        port.execute("GRANT INSERT ON quay.berths TO pilot")
        assert (shown("SHOW TABLES FROM quay"), shown("SHOW VIEWS FROM quay")) == ([("quay.berths",)], [])
        assert shown("DESCRIBE quay.berths")[0][:2] == ("id", "integer")
        port.execute("REVOKE USAGE ON SCHEMA quay FROM pilot")
        with pytest.raises(InsufficientPrivilege, match='permission denied for schema "quay"'):
            pilot.execute("DESCRIBE quay.berths")
        assert port.rows("SHOW VIEWS FROM quay") == [("quay.free",)]


def test_passwords_are_kept_as_verifiers_and_shown_nowhere(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE USER pilot WITH PASSWORD 'ebb and flow' CREATEDB")
        user = port.database.catalog.user("pilot")
        assert user.verifier is not None and user.verifier.startswith("SCRAM-SHA-256$4096:") and user.create_db
        other = port.session("postgres")
        shown = [other.execute(f"SELECT * FROM {view}")[0].rows for view in ("pg_stat_activity", "pg_roles", "pg_user")]
        assert "ebb and flow" not in str(shown) and user.verifier not in f"{shown}{user!r}"
        assert ("CREATE USER pilot",) in port.session("root").execute("SELECT query FROM pg_stat_activity")[0].rows
    with open_port(tmp_path) as port:
        assert port.database.catalog.user("pilot") == user
        port.execute("ALTER USER pilot PASSWORD NULL NOCREATEDB; ALTER USER pilot RENAME TO captain")
        renamed = port.database.catalog.user("captain")
        assert renamed.verifier is None and not renamed.create_db


def test_a_renamed_user_keeps_what_it_owns(port: Port) -> None:
    port.execute("CREATE USER pilot; CREATE SCHEMA port AUTHORIZATION pilot; ALTER USER pilot RENAME TO captain")
    assert port.rows("SELECT schema_owner FROM information_schema.schemata WHERE schema_name = 'port'") == [
        ("captain",)
    ]


def test_grants_and_comments_survive_a_restart(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE ships (imo bigint PRIMARY KEY, name varchar); CREATE USER pilot")
        port.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO pilot")
        port.execute("COMMENT ON TABLE ships IS 'every ship'; COMMENT ON COLUMN ships.name IS 'as painted'")
        port.execute("COMMENT ON SCHEMA public IS 'the harbour'; COMMENT ON DATABASE dev IS 'ours'")
    with open_port(tmp_path) as port:
        assert port.rows("SELECT has_table_privilege('pilot', 'ships', 'SELECT')") == [(True,)]
        told = """SELECT obj_description('ships'::regclass, 'pg_class'), col_description('ships'::regclass, 2),
                         obj_description('public'::regnamespace, 'pg_namespace'),
                         (SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'dev')"""
        assert port.rows(told) == [("every ship", "as painted", "the harbour", "ours")]
        port.execute("COMMENT ON TABLE ships IS NULL")
        assert port.rows("SELECT count(*) FROM pg_description WHERE objsubid = 0 AND classoid = 1259") == [(0,)]


def test_statements_that_make_no_sense_are_refused(port: Port) -> None:
    port.execute("CREATE TABLE ships (imo bigint); CREATE VIEW v AS SELECT imo FROM ships")
    with pytest.raises(InvalidDefinition, match='INSERT does not apply to view "v"'):
        port.execute("GRANT INSERT ON v TO postgres")
    with pytest.raises(UndefinedObject, match='user "nobody" does not exist'):
        port.execute("GRANT SELECT ON ships TO nobody")
    with pytest.raises(DuplicateObject):
        port.execute("CREATE USER root")
    with pytest.raises(DependentObjects, match="current user"):
        port.execute("DROP USER root")
    with pytest.raises(UndefinedColumn):
        port.execute("COMMENT ON COLUMN ships.nme IS 'x'")
    with pytest.raises(UndefinedObject):
        port.session("nobody")


def test_databases_and_schemas_come_and_go(port: Port) -> None:
    port.execute("CREATE DATABASE tides; CREATE SCHEMA port AUTHORIZATION postgres")
    (again,) = port.execute("CREATE DATABASE IF NOT EXISTS tides")
    assert again.notices == ('database "tides" already exists, skipping',)
    assert port.rows("SELECT datname FROM pg_database ORDER BY 1") == [("dev",), ("tides",)]
    port.execute("DROP DATABASE tides; DROP SCHEMA port")
    with pytest.raises(DependentObjects, match="currently open"):
        port.execute("DROP DATABASE dev")


def test_the_first_schema_that_exists_takes_what_is_new(port: Port) -> None:
    port.execute("CREATE SCHEMA port; SET search_path TO nowhere, port, public; CREATE TABLE berths (id integer)")
    assert port.rows("SELECT current_schema(), current_schemas(true), 'berths'::regclass::text") == [
        ("port", ["pg_catalog", "port", "public"], "berths")
    ]
    port.execute("SET search_path TO public")
    assert port.rows("SELECT 'port.berths'::regclass::text") == [("port.berths",)]
    port.execute("SELECT set_config('search_path', 'nowhere', false)")
    with pytest.raises(UndefinedSchema, match="no schema has been selected"):
        port.execute("CREATE TABLE tides (at integer)")


def test_a_function_is_listed_with_its_arguments(port: Port) -> None:
    port.execute(
        "CREATE FUNCTION knots(kmh double precision) RETURNS double precision LANGUAGE sql AS 'SELECT kmh / 1.852'"
    )
    listed = """SELECT proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), l.lanname
                FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang"""
    assert port.rows(listed) == [("knots", "kmh double precision", "double precision", "sql")]
    assert port.rows("SELECT parameter_name, data_type FROM information_schema.parameters") == [
        ("kmh", "double precision")
    ]


@pytest.mark.parametrize("name", ["now()", "upper(text)", "pg_catalog.count(*)", "generate_series(int, int)", "rank()"])
def test_functions_of_sql_are_open_to_all(port: Port, name: str) -> None:
    port.execute("CREATE USER pilot")
    assert port.rows(f"SELECT has_function_privilege('pilot', '{name}', 'EXECUTE')") == [(True,)]


@pytest.mark.parametrize("name", ["moor()", "quay.upper(text)"])
def test_a_privilege_on_a_function_that_is_not_there_is_an_error(port: Port, name: str) -> None:
    with pytest.raises(UndefinedFunction, match="does not exist"):
        port.rows(f"SELECT has_function_privilege('root', '{name}', 'EXECUTE')")
