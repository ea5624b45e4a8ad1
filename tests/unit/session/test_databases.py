"""Databases keep their names to themselves, read each other by full names, and stay as long as they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche.errors import (
    DependentObjects,
    FeatureNotSupported,
    InvalidParameter,
    ObjectNotReady,
    SeicheError,
    UndefinedDatabase,
    UndefinedTable,
)
from seiche.session.run import Session
from tests.unit.session.port import Port, open_port


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        opened.execute("CREATE TABLE ships (id int PRIMARY KEY, tons int); CREATE DATABASE office")
        yield opened


@pytest.fixture
def clerk(port: Port) -> Session:
    session = Session(port.database, home="office")
    session.execute("CREATE TABLE ships (id int PRIMARY KEY, owner text); CREATE TABLE fees (ship int)")
    return session


def rows(session: Session, text: str) -> list[tuple[object, ...]]:
    found = session.execute(text)[-1].rows
    assert found is not None
    return found


def names(session: Session, text: str) -> list[object]:
    return sorted(str(row[0]) for row in rows(session, text))


def test_tables_of_one_name_live_side_by_side(port: Port, clerk: Session) -> None:
    assert names(clerk, "SHOW TABLES") == ["public.fees", "public.ships"]
    assert port.rows("SHOW TABLES") == [("public.ships",)]
    assert [row[0] for row in rows(clerk, "SHOW COLUMNS FROM ships")][:2] == ["id", "owner"]
    assert [row[0] for row in port.rows("SHOW COLUMNS FROM ships")][:2] == ["id", "tons"]
    clerk.execute("CREATE SCHEMA archive; CREATE TABLE archive.fees (ship int); DROP TABLE ships")
    assert port.rows("SHOW TABLES") == [("public.ships",)]
    assert "archive" in names(clerk, "SHOW SCHEMAS") and ("archive",) not in port.rows("SHOW SCHEMAS")
    with pytest.raises(UndefinedTable):
        port.execute("DESCRIBE fees")


def test_catalogs_show_the_database_of_the_session(port: Port, clerk: Session) -> None:
    clerk.execute("COMMENT ON TABLE fees IS 'what a berth costs'; CREATE VIEW dear AS SELECT ship FROM fees")
    for query in (
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'v') AND pg_table_is_visible(oid) AND oid > 16384",
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
        "SELECT name FROM rw_relations",
    ):
        assert names(clerk, query) == ["dear", "fees", "ships"], query
        assert port.rows(query) == [("ships",)], query
    assert rows(clerk, "SELECT DISTINCT table_catalog FROM information_schema.columns") == [("office",)]
    for query in (
        "SELECT count(*) FROM pg_namespace WHERE nspname = 'public'",
        "SELECT count(*) FROM rw_schemas",
        "SELECT count(*) FROM pg_description",
        "SELECT count(*) FROM rw_description",
    ):
        there = 0 if "description" in query else 1
        assert (rows(clerk, query), port.rows(query)) == ([(1,)], [(there,)]), query
    assert rows(clerk, "SELECT current_database(), current_catalog") == [("office", "office")]
    for asking in (clerk, port):
        assert asking.execute("SELECT count(*) FROM pg_database")[-1].rows == [(2,)]
    seen = "SELECT datname FROM pg_stat_activity WHERE datid IS NOT NULL"
    assert names(clerk, seen) == sorted(["dev", "office"])
    (oid,) = rows(clerk, "SELECT 'ships'::regclass::int")[0]
    assert oid != port.rows("SELECT 'ships'::regclass::int")[0][0]
    assert rows(clerk, f"SELECT pg_table_is_visible({oid})") == [(True,)]
    assert port.rows(f"SELECT pg_table_is_visible({oid})") == [(None,)]


def test_nobody_sees_a_session_that_has_ended(port: Port) -> None:
    session = Session(port.database, home="office")
    seen = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {session.pid}"
    assert port.rows(seen) == [(1,)]
    session.close()
    assert port.rows(seen) == [(0,)]
    port.execute("ALTER DATABASE office RENAME TO bureau; ALTER DATABASE bureau RENAME TO office")


def test_a_session_goes_to_another_database_and_back(port: Port) -> None:
    session = Session(port.database)
    session.execute("SET database TO office; CREATE TABLE tides (id int)")
    assert rows(session, "SHOW database") == [("office",)]
    assert rows(session, "SELECT count(*) FROM office.information_schema.tables WHERE table_name = 'tides'") == [(1,)]
    with pytest.raises(UndefinedDatabase) as caught:
        session.execute("SET database TO ofice")
    assert caught.value.sqlstate == "3D000" and caught.value.hint == 'Perhaps you meant "office".'
    assert rows(session, "SHOW TABLES") == [("public.tides",)]
    session.execute("BEGIN; SET database = dev; ROLLBACK")
    assert rows(session, "SHOW TABLES") == [("public.tides",)]
    session.execute("RESET database")
    assert rows(session, "SHOW TABLES") == [("public.ships",)]
    session.execute("SET database TO office; DISCARD ALL")
    assert rows(session, "SELECT current_database()") == [("dev",)]
    for text in ("BEGIN; SET LOCAL database TO office", "SELECT set_config('database', 'office', false)"):
        with pytest.raises(InvalidParameter):
            Session(port.database).execute(text)
    with pytest.raises(UndefinedDatabase):
        Session(port.database, home="ofice")


def test_other_databases_are_read_and_nothing_else(port: Port, clerk: Session) -> None:
    clerk.execute(
        "CREATE VIEW fleet AS SELECT s.tons FROM dev.public.ships s JOIN office.public.fees f ON s.id = f.ship"
    )
    (fleet,) = [item for item in port.database.catalog.objects() if item.name == "fleet"]
    assert {port.database.catalog.get(each).database for each in fleet.dependencies} == {"dev", "office"}
    with pytest.raises(UndefinedDatabase, match='database "a" does not exist'):
        clerk.execute("CREATE VIEW none AS SELECT * FROM a.b.c")
    with pytest.raises(UndefinedTable):
        clerk.execute("CREATE VIEW none AS SELECT * FROM dev.public.fees")
    for text in (
        "DROP TABLE dev.public.ships",
        "ALTER TABLE dev.public.ships RENAME TO boats",
        "CREATE TABLE dev.public.tides (id int)",
        "CREATE INDEX by_tons ON dev.public.ships (tons)",
        "CREATE SUBSCRIPTION log FROM dev.public.ships WITH (retention = '1 day')",
        "INSERT INTO dev.public.ships VALUES (1, 2)",
        "CREATE SCHEMA dev.north",
        "DROP SCHEMA dev.public",
        "SELECT 'dev.public.ships'::regclass",
    ):
        with pytest.raises(FeatureNotSupported):
            clerk.execute(text)


def test_a_view_of_another_database_keeps_meaning_what_it_meant(port: Port, clerk: Session) -> None:
    clerk.execute("CREATE VIEW owners AS SELECT id, owner FROM ships")
    port.execute("CREATE VIEW owned AS SELECT owner FROM office.public.owners")
    clerk.execute("ALTER TABLE ships RENAME TO boats")
    port.execute("ALTER TABLE ships RENAME TO vessels; CREATE TABLE boats (other int)")
    clerk.execute("CREATE SCHEMA archive; ALTER VIEW owners SET SCHEMA archive")
    assert port.rows("SHOW CREATE VIEW owned")[0][1].endswith("FROM office.archive.owners")
    port.execute("CREATE VIEW again AS SELECT owner FROM owned")


def test_following_what_is_elsewhere_takes_a_subscription_there(port: Port, clerk: Session) -> None:
    following = "EXPLAIN CREATE MATERIALIZED VIEW heavy AS SELECT id FROM dev.public.ships WHERE tons > 10"
    with pytest.raises(FeatureNotSupported, match="cannot follow") as caught:
        clerk.execute(following)
    assert caught.value.hint is not None and "CREATE SUBSCRIPTION" in caught.value.hint
    port.execute("CREATE SUBSCRIPTION ship_log FROM ships WITH (retention = '1 day')")
    clerk.execute(following.removeprefix("EXPLAIN "))
    for text in ("DROP SUBSCRIPTION ship_log", "DROP TABLE ships CASCADE", "DROP SCHEMA public CASCADE"):
        with pytest.raises(DependentObjects, match='materialized view "heavy" of database "office" depends on it'):
            port.execute(text)
    port.execute("CREATE SUBSCRIPTION other_log FROM ships WITH (retention = '1 day'); DROP SUBSCRIPTION ship_log")
    clerk.execute("DROP MATERIALIZED VIEW heavy")
    port.execute("DROP TABLE ships CASCADE")
    assert port.rows("SHOW SUBSCRIPTIONS") == []


def test_what_another_database_needs_stays_whatever_cascades(port: Port, clerk: Session) -> None:
    clerk.execute("CREATE VIEW fleet AS SELECT tons FROM dev.public.ships")
    before = port.database.catalog
    for text in ("DROP TABLE ships CASCADE", "DROP TABLE ships"):
        with pytest.raises(DependentObjects):
            port.execute(text)
    port.execute("CREATE DATABASE archive")
    keeper = Session(port.database, home="archive")
    keeper.execute("CREATE VIEW old AS SELECT ship FROM office.public.fees")
    with pytest.raises(
        DependentObjects, match='table "fees" cannot be dropped because view "old" of database "archive"'
    ):
        port.execute("DROP DATABASE office")
    keeper.execute("DROP VIEW old")
    port.execute("DROP DATABASE archive")
    assert port.database.catalog == before
    clerk.execute("DROP VIEW fleet")
    port.execute("DROP TABLE ships CASCADE")


def test_a_database_is_dropped_with_all_that_is_in_it(port: Port, clerk: Session) -> None:
    clerk.execute(
        "CREATE SCHEMA archive; CREATE TABLE archive.fees (id int); CREATE VIEW v AS SELECT * FROM archive.fees"
    )
    clerk.execute("CREATE TEMPORARY TABLE notes (id int)")
    with pytest.raises(DependentObjects, match="cannot drop the currently open database"):
        clerk.execute("DROP DATABASE office")
    with pytest.raises(FeatureNotSupported, match='database "dev" cannot be dropped'):
        clerk.execute("DROP DATABASE dev")
    port.execute("DROP DATABASE office")
    assert [item.name for item in port.database.catalog.objects()] == ["ships"]
    assert [schema.name for schema in port.database.catalog.schemas] == ["public"]
    for text in ("DESCRIBE ships", "CREATE TABLE ships (id int)", "CREATE SCHEMA archive"):
        with pytest.raises(SeicheError):
            clerk.execute(text)
    clerk.execute("SET database TO dev; DESCRIBE ships")
    clerk.close()
    with pytest.raises(UndefinedDatabase):
        port.execute("DROP DATABASE office")
    (again,) = port.execute("DROP DATABASE IF EXISTS office")
    assert again.notices == ('database "office" does not exist, skipping',)


def test_temporary_tables_are_of_one_database_and_go_with_the_session(port: Port) -> None:
    session = Session(port.database)
    session.execute("CREATE TEMPORARY TABLE notes (id int); SET database TO office")
    with pytest.raises(UndefinedTable):
        session.execute("DESCRIBE notes")
    session.execute("CREATE TEMPORARY TABLE notes (id bigint)")
    session.close()
    assert [item.name for item in port.database.catalog.objects()] == ["ships"]
    assert [schema.name for schema in port.database.catalog.schemas] == ["public", "public"]


def test_definitions_follow_the_new_name_of_a_database(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE DATABASE office")
        clerk = Session(port.database, home="office")
        clerk.execute(
            """
            CREATE TABLE office.public.fees (ship int PRIMARY KEY, paid int);
            CREATE INDEX by_paid ON fees (paid);
            CREATE VIEW dear AS SELECT f.ship FROM office.public.fees AS f WHERE paid > 10;
            CREATE VIEW office.public.told AS SELECT * FROM dear;
            CREATE SUBSCRIPTION office.public.fee_log FROM office.public.fees WITH (retention = '1 day');
            """
        )
        port.execute("CREATE VIEW paid AS SELECT ship FROM office.public.dear")
        with pytest.raises(ObjectNotReady, match="is being accessed by other users"):
            port.execute("ALTER DATABASE office RENAME TO bureau")
        with pytest.raises(FeatureNotSupported, match="current database cannot be renamed"):
            clerk.execute("ALTER DATABASE office RENAME TO bureau")
        clerk.execute("SET database TO dev")
        port.execute("ALTER DATABASE office RENAME TO bureau")
        assert port.rows("SHOW CREATE VIEW paid")[0][1].endswith("FROM bureau.public.dear")
        clerk.execute("SET database TO bureau")
        assert all("office" not in item.definition for item in port.database.catalog.objects())
    with open_port(tmp_path) as port:
        clerk = Session(port.database, home="bureau")
        clerk.execute("CREATE VIEW again AS SELECT * FROM told; ALTER TABLE fees RENAME TO dues")
        assert "FROM bureau.public.dues AS f" in str(rows(clerk, "SHOW CREATE VIEW dear")[0][1])
        port.execute("CREATE VIEW again AS SELECT * FROM paid")


def test_the_name_of_a_database_that_a_materialized_view_tells_cannot_change(port: Port, clerk: Session) -> None:
    clerk.execute("CREATE VIEW anywhere AS SELECT current_database() FROM fees")
    clerk.execute("CREATE MATERIALIZED VIEW here AS SELECT current_database() AS place, ship FROM fees")
    clerk.execute("SET database TO dev")
    with pytest.raises(FeatureNotSupported, match='cannot be renamed because of materialized view "here"'):
        port.execute("ALTER DATABASE office RENAME TO bureau")


def test_rights_in_a_database_are_given_there(port: Port, clerk: Session) -> None:
    port.execute("CREATE USER pilot; CREATE USER registrar")
    clerk.execute("GRANT SELECT ON ALL TABLES IN SCHEMA public TO pilot")
    pilot = Session(port.database, "pilot", home="office")
    assert rows(pilot, "SELECT has_table_privilege('fees', 'SELECT')") == [(True,)]
    assert rows(Session(port.database, "pilot"), "SELECT has_table_privilege('ships', 'SELECT')") == [(False,)]
    with pytest.raises(SeicheError, match='permission denied for database "office"'):
        pilot.execute("CREATE SCHEMA archive")
    port.execute("GRANT CREATE ON DATABASE office TO pilot")
    pilot.execute("CREATE SCHEMA archive")
    with pytest.raises(SeicheError, match='permission denied for database "dev"'):
        Session(port.database, "pilot").execute("CREATE SCHEMA archive")
