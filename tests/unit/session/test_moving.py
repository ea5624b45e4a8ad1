"""Objects go to other schemas, schemas and databases get other names, and what reads them follows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche.errors import DuplicateObject, FeatureNotSupported, InvalidDefinition, SeicheError, UndefinedSchema
from tests.unit.session.port import Port, open_port


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        opened.execute(
            """
            CREATE SCHEMA quay;
            CREATE TABLE ships (id int PRIMARY KEY, tons int);
            CREATE INDEX by_tons ON ships (tons);
            CREATE VIEW heavy AS SELECT ships.id FROM ships WHERE tons > 10;
            CREATE VIEW heaviest AS SELECT h.id FROM heavy AS h JOIN public.ships s ON s.id = h.id;
            CREATE SUBSCRIPTION ship_log FROM ships WITH (retention = '1 day');
            """
        )
        yield opened


def shown(port: Port, what: str) -> str:
    [(_, text)] = port.rows(f"SHOW CREATE {what}")
    return str(text)


def places(port: Port) -> dict[str, str]:
    catalog = port.database.catalog
    return {item.name: item.schema for item in catalog.objects()}


def test_a_table_moves_with_its_indexes_and_is_read_where_it_went(port: Port, tmp_path: Path) -> None:
    port.execute("ALTER TABLE ships SET SCHEMA quay")
    assert places(port) == {
        "ships": "quay", "by_tons": "quay", "heavy": "public", "heaviest": "public", "ship_log": "public"
    }  # fmt: skip
    assert shown(port, "TABLE quay.ships").startswith("CREATE TABLE quay.ships (")
    assert shown(port, "VIEW heavy") == "CREATE VIEW heavy AS SELECT ships.id FROM quay.ships WHERE tons > 10"
    assert "JOIN quay.ships AS s" in shown(port, "VIEW heaviest")
    assert "FROM quay.ships" in shown(port, "SUBSCRIPTION ship_log")
    assert "ON quay.ships" in shown(port, "INDEX quay.by_tons")
    port.execute("ALTER TABLE quay.ships SET SCHEMA public; ALTER VIEW heavy SET SCHEMA quay")
    assert (
        shown(port, "VIEW quay.heavy") == "CREATE VIEW quay.heavy AS SELECT ships.id FROM public.ships WHERE tons > 10"
    )
    assert "FROM quay.heavy AS h" in shown(port, "VIEW heaviest")


def test_where_something_is_already_it_may_be_moved_to(port: Port) -> None:
    port.execute("ALTER TABLE ships SET SCHEMA public")
    assert places(port)["ships"] == "public"


@pytest.mark.parametrize(
    ("statement", "error", "text"),
    [
        ("ALTER TABLE ships SET SCHEMA sea", UndefinedSchema, "sea"),
        ("ALTER TABLE ships SET SCHEMA quay", DuplicateObject, 'table "quay.ships" already exists'),
        ("ALTER SCHEMA quay RENAME TO pg_quay", InvalidDefinition, "pg_"),
        ("ALTER SCHEMA quay RENAME TO public", DuplicateObject, "public"),
        ("ALTER SCHEMA public RENAME TO port", FeatureNotSupported, "public"),
        ("ALTER SCHEMA pg_catalog RENAME TO port", UndefinedSchema, "pg_catalog"),
        ("ALTER DATABASE dev RENAME TO port", FeatureNotSupported, "current database"),
    ],
)
def test_what_cannot_be_moved_or_renamed_stays(port: Port, statement: str, error: type[SeicheError], text: str) -> None:
    port.execute("CREATE TABLE quay.ships (id int)")
    before = port.database.catalog
    with pytest.raises(error, match=text):
        port.execute(statement)
    assert port.database.catalog == before


def test_temporary_tables_stay_where_they_are(port: Port) -> None:
    port.execute("CREATE TEMPORARY TABLE tides (high numeric)")
    (schema,) = {item.schema for item in port.database.catalog.objects() if item.name == "tides"}
    for statement in (
        "ALTER TABLE tides SET SCHEMA quay",
        f"ALTER TABLE ships SET SCHEMA {schema}",
        f"ALTER SCHEMA {schema} RENAME TO port",
    ):
        with pytest.raises(InvalidDefinition):
            port.execute(statement)


def test_a_definition_that_would_mean_something_else_keeps_what_it_reads(port: Port) -> None:
    port.execute("CREATE VIEW named AS SELECT public.ships.id FROM ships")
    with pytest.raises(FeatureNotSupported, match='what view "named" reads cannot be moved'):
        port.execute("ALTER TABLE ships SET SCHEMA quay")


def test_a_schema_gets_another_name_and_everything_goes_on_after_a_restart(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute(
            """
            CREATE SCHEMA quay;
            CREATE TABLE quay.ships (id int PRIMARY KEY, tons int);
            CREATE INDEX by_tons ON quay.ships (tons);
            CREATE FUNCTION quay.doubled(int) RETURNS int LANGUAGE sql AS 'SELECT $1 * 2';
            SET search_path TO quay;
            CREATE VIEW heavy AS SELECT id FROM ships WHERE tons > 10;
            CREATE MATERIALIZED VIEW per_ton AS SELECT tons, count(*) AS n FROM ships GROUP BY tons;
            CREATE VIEW public.all_heavy AS SELECT * FROM heavy;
            GRANT USAGE ON SCHEMA quay TO postgres;
            ALTER SCHEMA quay RENAME TO pier;
            """
        )
        assert {item.schema for item in port.database.catalog.objects()} == {"pier", "public"}
    with open_port(tmp_path) as port:
        assert shown(port, "VIEW pier.heavy") == "CREATE VIEW pier.heavy AS SELECT id FROM pier.ships WHERE tons > 10"
        assert shown(port, "VIEW all_heavy") == "CREATE VIEW public.all_heavy AS SELECT * FROM pier.heavy"
        assert "FROM pier.ships" in shown(port, "MATERIALIZED VIEW pier.per_ton")
        assert port.rows("SHOW SCHEMAS LIKE 'p%r'") == [("pier",)]
        assert port.rows("SELECT has_schema_privilege('postgres', 'pier', 'USAGE')") == [(True,)]
        port.execute("DROP SCHEMA pier CASCADE")
        assert port.database.catalog.objects() == ()


def test_a_database_gets_another_name(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE DATABASE tides; ALTER DATABASE tides RENAME TO currents")
        assert port.rows("SHOW DATABASES") == [("currents",), ("dev",)]
    with open_port(tmp_path) as port:
        port.execute("DROP DATABASE currents")
        assert port.rows("SHOW DATABASES") == [("dev",)]
