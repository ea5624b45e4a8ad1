"""Structs whose fields change, while views go on reading those that are gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche import errors
from seiche.model import Column
from seiche.session.retype import retyped
from seiche.session.shapes import seen, shapes_of
from seiche.types import DOUBLE, INTEGER, VARCHAR, SqlType, array_of, map_of, struct_of
from tests.unit.session.port import Port, open_port

HULL = struct_of(("length", INTEGER), ("beam", DOUBLE))


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        opened.execute("CREATE TABLE ships (id int PRIMARY KEY, hull struct<length int, beam double>)")
        yield opened


def hull(port: Port) -> Column:
    relation = port.database.catalog.find(("ships",)).relation
    assert relation is not None
    return relation.column("hull")


def test_storage_keeps_every_field_and_statements_see_those_of_today() -> None:
    wanted = struct_of(("mast", VARCHAR), ("beam", DOUBLE))
    altered = retyped(Column("hull", HULL), wanted)
    assert altered.type == struct_of(("length", INTEGER), ("beam", DOUBLE), ("mast", VARCHAR))
    assert altered.shown == wanted
    assert altered.as_shown == Column("hull", wanted)
    assert Column.from_json(altered.to_json()) == altered


def test_a_field_behind_the_others_leaves_nothing_to_convert() -> None:
    altered = retyped(Column("hull", HULL), struct_of(*HULL.fields, ("mast", VARCHAR)))
    assert altered.shown is None


@pytest.mark.parametrize("around", [array_of, lambda inner: map_of(VARCHAR, inner), lambda i: struct_of(("of", i))])
def test_structs_inside_other_types_change_too(around: object) -> None:
    assert callable(around)
    wider = struct_of(*HULL.fields, ("mast", VARCHAR))
    assert retyped(Column("hull", around(HULL)), around(wider)).type == around(wider)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (INTEGER, DOUBLE, "only types containing struct can be altered"),
        (array_of(INTEGER), array_of(DOUBLE), "only types containing struct can be altered"),
        (HULL, struct_of(("length", VARCHAR)), "change from Int32 to Varchar"),
        (array_of(HULL), HULL, "change from List to Struct"),
        (map_of(VARCHAR, HULL), map_of(INTEGER, HULL), "change from Varchar to Int32"),
        (HULL, struct_of(("a", INTEGER), ("a", INTEGER)), "two fields of one name"),
    ],
)
def test_only_fields_of_structs_change(old: SqlType, new: SqlType, message: str) -> None:
    with pytest.raises(errors.SeicheError, match=message):
        retyped(Column("hull", old), new)


def test_a_field_that_was_dropped_does_not_come_back() -> None:
    without = retyped(Column("hull", HULL), struct_of(("beam", DOUBLE)))
    with pytest.raises(errors.FeatureNotSupported, match='"length" was dropped'):
        retyped(without, HULL)


def test_readers_see_what_they_saw_and_everybody_else_the_new_type(port: Port) -> None:
    port.execute("CREATE VIEW lengths AS SELECT (hull).length, hull FROM ships")
    port.execute("ALTER TABLE ships ALTER COLUMN hull TYPE struct<beam double, mast varchar>")
    described = [row[:2] for row in port.rows("DESCRIBE ships")]
    assert described[1:4] == [
        ("hull", "struct"),
        ("hull.beam", "double precision"),
        ("hull.mast", "character varying"),
    ]
    assert "hull STRUCT<beam DOUBLE, mast CHARACTER VARYING>" in str(port.rows("SHOW CREATE TABLE ships"))
    catalog = port.database.catalog
    before = seen(catalog.find(("ships",)), shapes_of(catalog.find(("lengths",))))
    assert before.columns[1].type == HULL
    port.execute("CREATE VIEW beams AS SELECT (hull).beam FROM ships; CREATE VIEW later AS SELECT * FROM lengths")
    with pytest.raises(errors.UndefinedColumn):
        port.execute("CREATE VIEW gone AS SELECT (hull).length FROM ships")


def test_the_type_survives_a_restart(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE ships (id int PRIMARY KEY, hull struct<length int, beam double>)")
        port.execute("ALTER TABLE ships ALTER hull SET DATA TYPE struct<beam double>")
        before = hull(port)
    with open_port(tmp_path) as port:
        assert hull(port) == before
        assert before.shown == struct_of(("beam", DOUBLE))


@pytest.mark.parametrize(
    ("prepared", "column", "error"),
    [
        ("CREATE INDEX by_id ON ships (id)", "hull", errors.DependentObjects),
        ("CREATE SUBSCRIPTION s FROM ships WITH (retention = '1 day')", "hull", errors.DependentObjects),
        ("SELECT 1", "draft", errors.UndefinedColumn),
        ("SELECT 1", "id", errors.FeatureNotSupported),
        ("ALTER TABLE ships ADD COLUMN given struct<a int>", "given SET NOT NULL --", errors.FeatureNotSupported),
    ],
)
def test_what_cannot_follow_refuses(port: Port, prepared: str, column: str, error: type[errors.SeicheError]) -> None:
    if not prepared.startswith("SELECT"):
        port.execute(prepared)
    with pytest.raises(error):
        port.execute(f"ALTER TABLE ships ALTER COLUMN {column} TYPE struct<beam double, mast varchar>")


def test_a_column_that_was_stored_before_structs_could_change_is_read() -> None:
    stored = {key: value for key, value in Column("at", INTEGER).to_json().items() if key != "shown"}
    assert Column.from_json(stored) == Column("at", INTEGER)
