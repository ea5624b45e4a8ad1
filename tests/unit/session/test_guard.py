"""Who may run which statement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, Grant, ObjectKind, ObjectStatus, Privilege, Schema
from seiche.errors import InsufficientPrivilege
from seiche.model import ObjectId
from seiche.session.guard import Guard
from seiche.sql.parse import parse
from tests.unit.session.system.harbour import catalog

PILOT = ObjectId(99)  # may read ships, and nothing else
SHIPS, ARRIVALS, NORWEGIAN, VISITS = (ObjectId(number) for number in range(100, 104))
PUBLIC, PORT = ObjectId(2), ObjectId(98)


def run(text: str, harbour: Catalog | None = None, user: str = "pilot") -> None:
    harbour = harbour or catalog()
    (parsed,) = parse(text)
    Guard(harbour, harbour.user(user), ("public",)).check(parsed.statement)


def granted(target: ObjectId, *privileges: Privilege) -> Catalog:
    return catalog().with_grants(*(Grant(PILOT, target, privilege) for privilege in privileges))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM arrivals",
        "SELECT * FROM ships WHERE imo IN (SELECT ship FROM arrivals)",
        "WITH a AS (SELECT * FROM arrivals) SELECT * FROM a",
        "WITH arrivals AS (SELECT * FROM arrivals) SELECT * FROM arrivals",
        "SELECT * FROM arrivals, (WITH arrivals AS (SELECT 1) SELECT * FROM arrivals) a",
        "CREATE MATERIALIZED VIEW m AS WITH arrivals AS CHANGELOG FROM arrivals SELECT * FROM arrivals",
        "SELECT * FROM norwegian",
        "EXPLAIN SELECT * FROM arrivals",
        "INSERT INTO ships SELECT * FROM ships",
        "UPDATE ships SET name = 'x'",
        "DELETE FROM ships",
        "CREATE TABLE tides (at timestamptz)",
        "CREATE TABLE port.tides (at timestamptz)",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM ships",
        "CREATE SCHEMA tides",
        "CREATE DATABASE tides",
        "CREATE USER ada",
        "ALTER USER root PASSWORD 'x'",
        "ALTER USER pilot SUPERUSER",
        "DROP USER postgres",
        "DROP TABLE ships",
        "DROP MATERIALIZED VIEW visits",
        "DROP SCHEMA port",
        "ALTER TABLE ships RENAME TO boats",
        "ALTER TABLE ships OWNER TO pilot",
        "COMMENT ON TABLE ships IS 'mine'",
        "DESCRIBE arrivals",
        "SHOW COLUMNS FROM arrivals",
        "SHOW CREATE TABLE arrivals",
        "SHOW INDEXES FROM arrivals",
        "COMMENT ON COLUMN ships.flag IS 'mine'",
        "ALTER SYSTEM SET barrier_interval_ms = 10",
        "CANCEL JOBS 103",
    ],
)
def test_a_stranger_is_refused(text: str) -> None:
    with pytest.raises(InsufficientPrivilege) as caught:
        run(text)
    assert caught.value.sqlstate == "42501"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM ships",
        "SELECT relname FROM pg_class",
        "SELECT name FROM rw_catalog.rw_tables",
        "SELECT * FROM information_schema.tables",
        "WITH arrivals AS (SELECT 1) SELECT * FROM arrivals",
        "WITH arrivals AS (SELECT 1), a AS (SELECT * FROM arrivals) SELECT * FROM a, (SELECT * FROM arrivals) b",
        "SELECT * FROM no_such_table",
        "DROP TABLE IF EXISTS no_such_table",
        "ALTER USER pilot PASSWORD 'new'",
        "SHOW TABLES",
        "DESCRIBE ships",
        "DESCRIBE pg_class",
        "SET timezone = 'UTC'",
        "FLUSH",
    ],
)
def test_what_is_open_or_granted_passes(text: str) -> None:
    run(text)


def test_a_superuser_may_anything() -> None:
    run("ALTER SYSTEM SET barrier_interval_ms = 10", user="root")
    run("DROP TABLE ships", user="postgres")


def test_each_privilege_opens_its_statement_only() -> None:
    run("INSERT INTO arrivals VALUES (1)", granted(ARRIVALS, Privilege.INSERT))
    with pytest.raises(InsufficientPrivilege, match='permission denied for table "arrivals"'):
        run("INSERT INTO arrivals VALUES (1) RETURNING ship", granted(ARRIVALS, Privilege.INSERT))
    run("INSERT INTO arrivals VALUES (1) ON CONFLICT DO NOTHING", granted(ARRIVALS, Privilege.INSERT))
    met = "INSERT INTO arrivals VALUES (1) ON CONFLICT (ship) DO UPDATE SET ship = 2"
    every = (Privilege.INSERT, Privilege.UPDATE, Privilege.SELECT)
    run(met, granted(ARRIVALS, *every))
    for missing in every:
        with pytest.raises(InsufficientPrivilege):
            run(met, granted(ARRIVALS, *(each for each in every if each is not missing)))
    run("DELETE FROM arrivals WHERE ship = 1", granted(ARRIVALS, Privilege.DELETE, Privilege.SELECT))
    with pytest.raises(InsufficientPrivilege):
        run("DELETE FROM arrivals WHERE ship = 1", granted(ARRIVALS, Privilege.DELETE))


def test_a_view_is_read_with_its_owners_rights() -> None:
    run("SELECT * FROM visits", granted(VISITS, Privilege.SELECT))


def test_creating_takes_create_on_the_schema() -> None:
    run("CREATE TABLE tides (at timestamptz)", granted(PUBLIC, Privilege.CREATE))
    run("CREATE MATERIALIZED VIEW m AS SELECT * FROM ships", granted(PUBLIC, Privilege.CREATE))
    with pytest.raises(InsufficientPrivilege):
        run("CREATE MATERIALIZED VIEW m AS SELECT * FROM arrivals", granted(PUBLIC, Privilege.CREATE))


def test_a_sink_takes_the_rights_to_write_into_its_table() -> None:
    text = "CREATE SINK s INTO arrivals FROM ships"
    run(
        text,
        granted(PUBLIC, Privilege.CREATE).with_grants(
            Grant(PILOT, ARRIVALS, Privilege.INSERT), Grant(PILOT, ARRIVALS, Privilege.DELETE)
        ),
    )
    for missing in (Privilege.INSERT, Privilege.DELETE):
        given = {Privilege.INSERT, Privilege.DELETE} - {missing}
        harbour = granted(PUBLIC, Privilege.CREATE).with_grants(*(Grant(PILOT, ARRIVALS, each) for each in given))
        with pytest.raises(InsufficientPrivilege, match='permission denied for table "arrivals"'):
            run(text, harbour)


def test_a_function_in_python_takes_a_superuser() -> None:
    harbour = granted(PUBLIC, Privilege.CREATE)
    run(
        "CREATE FUNCTION knots(kmh double precision) RETURNS double precision LANGUAGE sql AS 'SELECT kmh / 1.852'",
        harbour,
    )
    with pytest.raises(InsufficientPrivilege, match="must be superuser"):
        run("CREATE FUNCTION f() RETURNS integer LANGUAGE python AS 'def f(): return 1'", harbour)


def test_replacing_a_view_takes_its_owner() -> None:
    with pytest.raises(InsufficientPrivilege, match='must be owner of view "norwegian"'):
        run("CREATE OR REPLACE VIEW norwegian AS SELECT imo, name FROM ships", granted(PUBLIC, Privilege.CREATE))


def test_a_relation_in_another_schema_takes_usage_of_it() -> None:
    harbour = catalog()
    moved = harbour.with_objects(replace(harbour.get(SHIPS), schema="port"))
    with pytest.raises(InsufficientPrivilege, match='schema "port"'):
        run("SELECT * FROM port.ships", moved)
    run("SELECT * FROM port.ships", moved.with_grants(Grant(PILOT, PORT, Privilege.USAGE)))


def test_the_owner_may_change_and_drop() -> None:
    harbour = catalog()
    own = harbour.with_objects(
        replace(harbour.get(ARRIVALS), owner="pilot"),
        replace(harbour.get(VISITS), owner="pilot", status=ObjectStatus.CREATING),
    )
    for text in (
        "SELECT * FROM arrivals",
        "INSERT INTO arrivals VALUES (1)",
        "DROP TABLE arrivals",
        "COMMENT ON COLUMN arrivals.ship IS 'mine'",
        "CANCEL JOBS 103",
    ):
        run(text, own)


def test_the_owner_of_a_schema_may_drop_what_is_in_it() -> None:
    harbour = catalog()
    own = harbour.with_schema(replace(harbour.schema("public"), owner="pilot"))
    run("DROP TABLE ships", own)


def test_a_maker_of_users_makes_no_superusers() -> None:
    harbour = catalog()
    maker = harbour.with_user(replace(harbour.user("pilot"), create_user=True))
    run("CREATE USER ada", maker)
    for text in ("CREATE USER ada SUPERUSER", "ALTER USER root NOLOGIN", "DROP USER root"):
        with pytest.raises(InsufficientPrivilege, match="must be superuser"):
            run(text, maker)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE ships SET name = 'x' FROM arrivals",
        "DELETE FROM ships USING arrivals",
        "WITH a AS (SELECT * FROM arrivals) DELETE FROM ships USING a",
        "WITH a AS (SELECT * FROM arrivals) UPDATE ships SET name = 'x'",
    ],
)
def test_who_may_write_to_a_table_may_not_read_others_for_it(text: str) -> None:
    harbour = granted(SHIPS, Privilege.UPDATE, Privilege.DELETE)
    with pytest.raises(InsufficientPrivilege, match="arrivals"):
        run(text, harbour)


def test_everybody_may_have_temporary_tables_and_nothing_more_for_it() -> None:
    harbour = catalog().with_schema(Schema(ObjectId(400), "dev", "pg_temp_7", "pilot"))
    guard = Guard(harbour, harbour.user("pilot"), ("pg_temp_7", "public"))
    for text in (
        "CREATE TEMP TABLE tides (at timestamptz)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "CREATE TEMP VIEW v AS SELECT 1",
    ):
        guard.check(parse(text)[0].statement)
    for text in ("CREATE TABLE tides (at timestamptz)", "CREATE VIEW v AS SELECT 1"):
        with pytest.raises(InsufficientPrivilege):
            guard.check(parse(text)[0].statement)


def test_a_secret_is_used_by_its_owner_and_by_those_who_were_granted_it() -> None:
    key = CatalogObject(ObjectId(500), ObjectKind.SECRET, "key", "", properties={"text": "open sesame"})
    harbour = catalog().with_objects(key)
    statements = ("SELECT sealed(name, SECRET key) FROM ships", "ALTER SECRET key AS 'x'", "DROP SECRET key")
    for text in statements:
        run(text, harbour, "root")
        with pytest.raises(InsufficientPrivilege):
            run(text, harbour)
    run(statements[0], harbour.with_grants(Grant(PILOT, key.id, Privilege.USAGE)))
    with pytest.raises(InsufficientPrivilege):
        run("CREATE SECRET other WITH (backend = 'meta') AS 'x'", harbour)
