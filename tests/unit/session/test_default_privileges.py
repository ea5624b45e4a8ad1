"""Grants to everybody, and what is granted on objects when they are made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche.errors import (
    InsufficientPrivilege,
    InvalidDefinition,
    SyntaxError_,
    UndefinedObject,
)
from tests.unit.session.port import Port, open_port


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        opened.execute("CREATE USER pilot")
        yield opened


def holds(port: Port, relation: str, privilege: str = "SELECT") -> bool:
    return bool(port.rows(f"SELECT has_table_privilege('pilot', '{relation}', '{privilege}')")[0][0])


def test_what_is_granted_to_public_everybody_may_until_it_is_revoked(port: Port) -> None:
    port.execute("CREATE TABLE ships (imo int PRIMARY KEY); GRANT SELECT ON ships TO PUBLIC; CREATE USER ada")
    assert holds(port, "ships")
    port.session("ada").execute("SELECT has_table_privilege('ships', 'SELECT')")
    assert port.rows("SELECT relacl FROM pg_class WHERE relname = 'ships'") == [(["=r/root"],)]
    grantees = (
        "SELECT grantee FROM information_schema.table_privileges WHERE table_name = 'ships' AND grantee <> 'root'"
    )
    assert port.rows(grantees) == [("PUBLIC",)]
    port.execute("REVOKE ALL ON ships FROM PUBLIC")
    assert not holds(port, "ships")


def test_public_is_no_user_and_grants_nothing_on(port: Port) -> None:
    port.execute("CREATE TABLE ships (imo int PRIMARY KEY)")
    with pytest.raises(InvalidDefinition, match="grant options can only be granted to users"):
        port.execute("GRANT SELECT ON ships TO PUBLIC WITH GRANT OPTION")
    for statement in ('CREATE USER "public"', 'ALTER USER pilot RENAME TO "public"'):
        with pytest.raises(InvalidDefinition, match="is reserved"):
            port.execute(statement)


def test_defaults_are_for_what_is_made_from_now_on(port: Port) -> None:
    port.execute("CREATE SCHEMA quay; CREATE TABLE quay.before (a int)")
    port.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA quay GRANT ALL PRIVILEGES ON TABLES TO pilot WITH GRANT OPTION")
    port.execute("CREATE TABLE quay.ships (a int); CREATE VIEW quay.names AS SELECT a FROM quay.ships")
    port.execute("CREATE TABLE elsewhere (a int)")
    assert not holds(port, "quay.before")
    assert holds(port, "quay.ships", "DELETE WITH GRANT OPTION")
    assert not holds(port, "quay.names")
    assert not holds(port, "elsewhere")
    port.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA quay REVOKE GRANT OPTION FOR ALL ON TABLES FROM pilot")
    port.execute("CREATE TABLE quay.tugs (a int)")
    assert holds(port, "quay.tugs")
    assert not holds(port, "quay.tugs", "SELECT WITH GRANT OPTION")
    port.execute("ALTER DEFAULT PRIVILEGES REVOKE ALL ON TABLES FROM pilot; CREATE TABLE quay.after (a int)")
    assert not holds(port, "quay.after")


def test_defaults_hold_for_schemas_views_and_functions_too(port: Port) -> None:
    port.execute("ALTER DEFAULT PRIVILEGES GRANT USAGE, CREATE ON SCHEMAS TO pilot")
    port.execute("ALTER DEFAULT PRIVILEGES GRANT SELECT ON VIEWS TO PUBLIC")
    port.execute("ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO pilot")
    port.execute(
        "CREATE SCHEMA quay; CREATE TABLE quay.ships (a int); CREATE VIEW quay.names AS SELECT a FROM quay.ships"
    )
    port.execute("CREATE FUNCTION quay.deeper(int) RETURNS int LANGUAGE sql AS 'select $1 + 1'")
    asked = "SELECT has_schema_privilege('pilot', 'quay', 'CREATE'), has_schema_privilege('pilot', 'public', 'CREATE')"
    assert port.rows(asked) == [(True, False)]
    assert holds(port, "quay.names")
    asked = "SELECT has_function_privilege('pilot', 'quay.deeper(int)', 'EXECUTE')"
    assert port.rows(asked) == [(True,)]
    port.execute("ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM pilot")
    port.execute("CREATE FUNCTION quay.lower(int) RETURNS int LANGUAGE sql AS 'select $1 - 1'")
    assert port.rows("SELECT has_function_privilege('pilot', 'quay.lower(int)', 'EXECUTE')") == [(False,)]


def test_defaults_are_each_users_own(port: Port) -> None:
    port.execute("GRANT CREATE ON SCHEMA public TO pilot; CREATE USER ada")
    port.session("pilot").execute("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO ada")
    port.execute("CREATE TABLE mine (a int)")
    port.session("pilot").execute("CREATE TABLE pilots (a int)")
    asked = "SELECT has_table_privilege('ada', 'mine', 'SELECT'), has_table_privilege('ada', 'pilots', 'SELECT')"
    assert port.rows(asked) == [(False, True)]
    with pytest.raises(InsufficientPrivilege, match="default privileges of others"):
        port.session("pilot").execute("ALTER DEFAULT PRIVILEGES FOR USER root GRANT SELECT ON TABLES TO pilot")
    port.execute("ALTER DEFAULT PRIVILEGES FOR USER pilot REVOKE ALL ON TABLES FROM ada")
    port.session("pilot").execute("CREATE TABLE more (a int)")
    assert port.rows("SELECT has_table_privilege('ada', 'more', 'SELECT')") == [(False,)]


def test_defaults_are_there_after_a_restart_and_go_with_their_user(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE USER pilot; ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO pilot, PUBLIC")
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE ships (a int)")
        assert port.rows("SELECT relacl FROM pg_class WHERE relname = 'ships'") == [(["=r/root", "pilot=r/root"],)]
        port.execute("DROP USER pilot; CREATE TABLE tugs (a int)")
    with open_port(tmp_path) as port:
        assert port.rows("SELECT relacl FROM pg_class WHERE relname = 'tugs'") == [(["=r/root"],)]
        assert port.rows("SELECT relacl FROM pg_class WHERE relname = 'ships'") == [(["=r/root"],)]


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT ALL ON SCHEMAS TO pilot", SyntaxError_),
        ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO nobody", UndefinedObject),
        ("ALTER DEFAULT PRIVILEGES IN SCHEMA nowhere GRANT SELECT ON TABLES TO pilot", UndefinedObject),
        ("ALTER DEFAULT PRIVILEGES GRANT INSERT ON VIEWS TO pilot", InvalidDefinition),
        ("GRANT INSERT ON ALL SOURCES IN SCHEMA public TO pilot", InvalidDefinition),
        ("REVOKE INSERT ON ALL VIEWS IN SCHEMA public FROM pilot", InvalidDefinition),
        ("GRANT SELECT ON ALL TABLES IN SCHEMA public TO pilot GRANTED BY nobody", UndefinedObject),
        ('CREATE USER ada WITH "LOGIN"', SyntaxError_),
        ("DROP USER rwadmin", InsufficientPrivilege),
        ("ALTER USER rwadmin WITH PASSWORD ''", InsufficientPrivilege),
    ],
)
def test_what_makes_no_sense_is_refused(port: Port, statement: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        port.execute(statement)


def test_a_user_may_be_called_user(port: Port) -> None:
    port.execute("CREATE SCHEMA quay; CREATE TABLE quay.ships (a int)")
    port.execute("""CREATE USER user WITH "login" SUPERUSER PASSWORD 'tide'""")
    port.execute("GRANT ALL ON ALL TABLES IN SCHEMA quay TO pilot WITH GRANT OPTION GRANTED BY user")
    assert holds(port, "quay.ships", "UPDATE WITH GRANT OPTION")
    port.execute(
        "REVOKE ALL ON ALL TABLES IN SCHEMA quay FROM pilot GRANTED BY user; ALTER USER user RENAME TO captain"
    )
    assert not holds(port, "quay.ships")
    port.execute("DROP USER captain")


def test_secrets_are_granted_as_others_are(port: Port) -> None:
    port.execute("CREATE SECRET before WITH (backend = 'meta') AS 'a'")
    port.execute("ALTER DEFAULT PRIVILEGES GRANT USAGE ON SECRETS TO pilot")
    port.execute("CREATE SECRET later WITH (backend = 'meta') AS 'b'")
    acls = "SELECT name, acl FROM rw_secrets ORDER BY name"
    assert port.rows(acls) == [("before", []), ("later", ["pilot=U/root"])]
    port.execute("GRANT USAGE ON ALL SECRETS IN SCHEMA public TO pilot")
    assert port.rows(acls) == [("before", ["pilot=U/root"]), ("later", ["pilot=U/root"])]
    with pytest.raises(InvalidDefinition, match="SELECT does not apply"):
        port.execute("GRANT SELECT ON SECRET later TO pilot")
