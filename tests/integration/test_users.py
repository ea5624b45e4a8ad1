"""Users and grants, where rows are read and written."""

from __future__ import annotations

import pytest

import seiche
from seiche.errors import InsufficientPrivilege

pytestmark = pytest.mark.spark


def test_a_user_reads_and_writes_what_was_granted(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE ships (imo bigint PRIMARY KEY, name varchar)")
    db.execute("CREATE USER pilot WITH PASSWORD 'tide'")
    pilot = db.session("pilot")
    with pytest.raises(InsufficientPrivilege, match='permission denied for table "ships"'):
        pilot.execute("SELECT * FROM ships")
    db.execute("GRANT SELECT, INSERT ON TABLE ships TO pilot")
    pilot.execute("INSERT INTO ships VALUES (1, 'Vega')")
    assert pilot.insert("ships", [(2, "Rigel")]) == 1
    assert pilot.execute("SELECT count(*) FROM ships")[0].rows == [(2,)]
    with pytest.raises(InsufficientPrivilege):
        pilot.execute("DELETE FROM ships")
    assert pilot.execute("SELECT has_table_privilege('ships', 'DELETE')")[0].rows == [(False,)]
    assert pilot.execute("SELECT current_user")[0].rows == [("pilot",)]
    db.execute("REVOKE ALL ON ships FROM pilot")
    with pytest.raises(InsufficientPrivilege):
        pilot.execute("SELECT * FROM ships")
    with pytest.raises(InsufficientPrivilege):
        pilot.insert("ships", [(3, "Deneb")])


def test_a_query_may_mix_system_views_with_the_users_relations(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE ships (imo bigint PRIMARY KEY, name varchar); INSERT INTO ships VALUES (1, 'Vega')")
    mixed = "SELECT s.name, c.relkind, current_user FROM ships s JOIN pg_class c ON c.relname = 'ships'"
    assert db.sql(mixed).rows == [("Vega", "r", "root")]
    assert db.table("rw_catalog.rw_tables").select("name").collect()[0].name == "ships"


def test_sizes_and_counts_are_those_of_the_stored_files(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE ships (imo bigint PRIMARY KEY); INSERT INTO ships VALUES (1), (2), (3)")
    asked = "SELECT pg_relation_size('ships') > 0, reltuples FROM pg_class WHERE oid = 'ships'::regclass"
    assert db.sql(asked).rows == [(True, 3.0)]
