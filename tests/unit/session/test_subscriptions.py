"""Subscriptions as objects: who may make and read them, and where they are listed. No rows, so no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche.errors import DependentObjects, InsufficientPrivilege, UndefinedTable
from tests.unit.session.port import Port, open_port


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Port]:
    folder: Path = tmp_path_factory.mktemp("port")
    with open_port(folder) as port:
        port.execute("CREATE USER pilot; CREATE TABLE ships (id int PRIMARY KEY)")
        port.execute("CREATE SUBSCRIPTION ship_log FROM ships WITH (retention = '1 day')")
        yield port


def test_a_subscription_is_listed_where_clients_look(port: Port) -> None:
    assert port.rows("SHOW SUBSCRIPTIONS") == [("public.ship_log",)]
    assert port.rows("SELECT relkind FROM pg_class WHERE relname = 'ship_log'") == [(None,)]
    port.execute("ALTER SUBSCRIPTION ship_log OWNER TO pilot")
    query = "SELECT r.rolname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE relname = 'ship_log'"
    assert port.rows(query) == [("pilot",)]
    port.execute("ALTER SUBSCRIPTION ship_log OWNER TO root")


def test_reading_takes_a_privilege_on_the_subscription_and_making_one_on_the_relation(port: Port) -> None:
    pilot = port.session("pilot")
    with pytest.raises(InsufficientPrivilege):
        pilot.execute("DECLARE c SUBSCRIPTION CURSOR FOR ship_log")
    port.execute("GRANT SELECT ON SUBSCRIPTION ship_log TO pilot")
    pilot.execute("DECLARE c SUBSCRIPTION CURSOR FOR ship_log")
    assert [row[1:6] for row in port.rows("SHOW SUBSCRIPTION CURSORS")] == [("pilot", None, "dev", "c", "ship_log")]
    port.execute("GRANT CREATE ON SCHEMA public TO pilot")
    with pytest.raises(InsufficientPrivilege):
        pilot.execute("CREATE SUBSCRIPTION mine FROM ships WITH (retention = '1 day')")
    for statement in ("ALTER SUBSCRIPTION ship_log SET RETENTION = '1s'", "DROP SUBSCRIPTION ship_log"):
        with pytest.raises(InsufficientPrivilege):
            pilot.execute(statement)
    pilot.close()


def test_subscriptions_swap_names_and_go_with_their_relation(port: Port) -> None:
    port.execute("CREATE TABLE a (id int PRIMARY KEY); CREATE TABLE b (id int PRIMARY KEY)")
    port.execute("CREATE SUBSCRIPTION of_a FROM a WITH (retention = '1D')")
    port.execute("CREATE SUBSCRIPTION of_b FROM b WITH (retention = '2D')")
    port.execute("ALTER SUBSCRIPTION of_a SWAP WITH of_b")
    text = "CREATE SUBSCRIPTION of_a FROM b WITH (retention = '2D')"
    assert port.rows("SHOW CREATE SUBSCRIPTION of_a") == [("public.of_a", text)]
    with pytest.raises(DependentObjects):
        port.execute("DROP TABLE b")
    port.execute("DROP TABLE b CASCADE; DROP SUBSCRIPTION of_b; DROP TABLE a")
    with pytest.raises(UndefinedTable):
        port.execute("DROP SUBSCRIPTION of_a")


def test_statements_about_the_system_can_be_prepared_too(port: Port) -> None:
    port.execute("PREPARE who AS SELECT rolname FROM pg_roles WHERE rolname = $1")
    assert port.rows("EXECUTE who('pilot')") == [("pilot",)]
    assert port.rows("EXECUTE who('nobody')") == []
    port.execute("DEALLOCATE ALL")
