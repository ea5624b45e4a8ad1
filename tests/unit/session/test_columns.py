"""ALTER TABLE of a column, as far as no row is read: shapes, names in files, readers, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche import errors
from seiche.model import RelationId, RelationSchema
from seiche.session.shapes import shapes_of
from tests.unit.session.port import Port, open_port


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        opened.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar, tons int)")
        yield opened


def shape(port: Port, name: str = "ships") -> RelationSchema:
    found = port.database.catalog.find((name,))
    stored = port.database.runtime.versions.schema(RelationId(found.id))
    assert found.relation == stored
    return stored


def test_an_added_column_stands_behind_the_others_everywhere(port: Port) -> None:
    port.execute("ALTER TABLE ships ADD COLUMN flag varchar")
    assert shape(port).names == ("id", "name", "tons", "flag")
    assert [row[0] for row in port.rows("DESCRIBE ships")][:4] == ["id", "name", "tons", "flag"]
    text = "CREATE TABLE ships (id INT PRIMARY KEY, name CHARACTER VARYING, tons INT, flag CHARACTER VARYING)"
    assert port.rows("SHOW CREATE TABLE ships") == [("public.ships", text)]
    asked = "SELECT attname FROM pg_attribute WHERE attrelid = 'ships'::regclass AND attnum > 0 ORDER BY attnum"
    assert port.rows(asked) == [("id",), ("name",), ("tons",), ("flag",)]


def test_a_table_without_a_key_keeps_its_hidden_one_last(port: Port) -> None:
    port.execute("CREATE TABLE calls (ship int); ALTER TABLE calls ADD COLUMN at timestamp")
    assert shape(port, "calls").names == ("ship", "at", "_row_id")


def test_a_column_that_comes_again_has_another_name_in_files(port: Port) -> None:
    port.execute("ALTER TABLE ships DROP COLUMN tons; ALTER TABLE ships ADD COLUMN tons bigint")
    assert shape(port).column("tons").file_name == "tons_2"
    port.execute("ALTER TABLE ships DROP COLUMN tons; ALTER TABLE ships ADD COLUMN tons bigint")
    assert shape(port).column("tons").file_name == "tons_3"
    port.execute("ALTER TABLE ships ADD COLUMN tons_2 int")
    assert shape(port).column("tons_2").file_name == "tons_2_2"


def test_a_renamed_column_keeps_its_name_in_files_and_its_place_in_the_key(port: Port) -> None:
    port.execute("ALTER TABLE ships RENAME COLUMN id TO imo; ALTER TABLE ships RENAME name TO id")
    found = shape(port)
    assert [(column.name, column.file_name) for column in found.columns] == [
        ("imo", "id"),
        ("id", "name"),
        ("tons", "tons"),
    ]
    assert found.key == ("imo",)
    text = "CREATE TABLE ships (imo INT PRIMARY KEY, id CHARACTER VARYING, tons INT)"
    assert port.rows("SHOW CREATE TABLE ships") == [("public.ships", text)]
    port.execute("ALTER TABLE ships RENAME id TO name")
    assert shape(port).column("name").stored is None


def test_the_shape_survives_a_restart(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE ships (id int, name varchar); CREATE VIEW names AS SELECT * FROM ships")
        port.execute("ALTER TABLE ships ADD COLUMN tons int; ALTER TABLE ships RENAME TO boats")
        before = shape(port, "boats")
    with open_port(tmp_path) as port:
        assert shape(port, "boats") == before
        view = port.database.catalog.find(("names",))
        assert list(shapes_of(view).values()) == [["id", "name"]]
        assert [column.name for column in view.columns] == ["id", "name"]


def test_a_view_that_says_star_sees_what_it_saw_and_a_later_one_sees_more(port: Port) -> None:
    port.execute("CREATE VIEW before AS SELECT * FROM ships; ALTER TABLE ships ADD COLUMN flag varchar")
    port.execute("CREATE VIEW after AS SELECT * FROM ships; CREATE VIEW twice AS SELECT * FROM before")
    port.execute("ALTER TABLE ships ADD COLUMN port varchar")
    columns = {
        name: [c.name for c in port.database.catalog.find((name,)).columns] for name in ("before", "after", "twice")
    }
    assert columns == {
        "before": ["id", "name", "tons"],
        "after": ["id", "name", "tons", "flag"],
        "twice": ["id", "name", "tons"],
    }
    port.execute("ALTER TABLE ships DROP COLUMN port")
    with pytest.raises(errors.DependentObjects, match="is being referenced"):
        port.execute("ALTER TABLE ships DROP COLUMN flag")
    port.execute("DROP VIEW after; ALTER TABLE ships DROP COLUMN flag")


def test_a_column_that_no_view_mentions_can_go(port: Port) -> None:
    port.execute("CREATE VIEW names AS SELECT id, upper(name) AS name FROM ships WHERE id > 1")
    port.execute("ALTER TABLE ships DROP COLUMN tons")
    with pytest.raises(errors.DependentObjects, match="is being referenced") as caught:
        port.execute("ALTER TABLE ships DROP COLUMN name")
    assert caught.value.detail == 'view "names" references it.'
    with pytest.raises(errors.DependentObjects, match="other objects read the table"):
        port.execute("ALTER TABLE ships RENAME COLUMN name TO title")


def test_nothing_to_do_is_a_notice(port: Port) -> None:
    (result,) = port.execute("ALTER TABLE ships ADD COLUMN IF NOT EXISTS tons varchar")
    assert result.notices == ('column "tons" of relation "ships" already exists, skipping',)
    (result,) = port.execute("ALTER TABLE ships DROP COLUMN IF EXISTS flag")
    assert result.notices == ('column "flag" of relation "ships" does not exist, skipping',)
    assert shape(port).names == ("id", "name", "tons")


@pytest.mark.parametrize(
    ("text", "sqlstate", "message"),
    [
        ("ALTER TABLE ships ADD COLUMN tons int", "42701", 'column "tons" of relation "ships" already exists'),
        ("ALTER TABLE ships RENAME COLUMN tons TO name", "42701", 'column "name" of relation "ships" already exists'),
        ("ALTER TABLE ships DROP COLUMN tens", "42703", 'column "tens" of relation "ships" does not exist'),
        ("ALTER TABLE ships RENAME COLUMN tens TO t", "42703", 'column "tens" of relation "ships" does not exist'),
        ("ALTER TABLE ships DROP COLUMN tons CASCADE", "0A000", "not yet implemented"),
        ("ALTER TABLE ships DROP COLUMN id", "0A000", 'cannot drop column "id"'),
        ("ALTER TABLE ships ADD COLUMN _row_id int", "42P17", "is reserved"),
        ("ALTER TABLE ships ADD COLUMN twice int AS tons * 2", "0A000", "generated column cannot be added"),
        ("ALTER TABLE names ADD COLUMN tons int", "42809", '"names" is not a table or cannot be altered'),
        ("ALTER TABLE shops ADD COLUMN tons int", "42P01", "shops"),
    ],
)
def test_what_cannot_be_is_told_as_postgresql_tells_it(port: Port, text: str, sqlstate: str, message: str) -> None:
    port.execute("CREATE VIEW names AS SELECT 1 AS one")
    with pytest.raises(errors.SeicheError, match=message) as caught:
        port.execute(text)
    assert caught.value.sqlstate == sqlstate


def test_what_a_generated_column_reads_stays_until_that_column_goes(port: Port) -> None:
    port.execute("CREATE TABLE berths (length int, half int AS length / 2, name varchar)")
    with pytest.raises(errors.DependentObjects, match='referenced by a generated column "half"'):
        port.execute("ALTER TABLE berths DROP COLUMN length")
    with pytest.raises(errors.FeatureNotSupported, match="cannot be renamed"):
        port.execute("ALTER TABLE berths RENAME COLUMN length TO metres")
    port.execute("ALTER TABLE berths DROP COLUMN half; ALTER TABLE berths DROP COLUMN length")
    port.execute("ALTER TABLE berths DROP COLUMN name")
    assert [row[0] for row in port.rows("SHOW COLUMNS FROM berths")] == ["_row_id", "_rw_timestamp"]
    port.execute("ALTER TABLE berths ADD COLUMN depth int")


def test_a_table_of_another_user_is_left_alone(port: Port) -> None:
    port.execute("CREATE USER pilot")
    with pytest.raises(errors.InsufficientPrivilege, match="must be owner"):
        port.session("pilot").execute("ALTER TABLE ships ADD COLUMN flag varchar")


def test_information_schema_writes_out_types_with_fields(port: Port) -> None:
    port.execute("CREATE TABLE berths (at struct<quay varchar, number int>, fees map(varchar, int), tides int[])")
    asked = "SELECT data_type FROM information_schema.columns WHERE table_name = 'berths' ORDER BY ordinal_position"
    assert port.rows(asked) == [
        ("struct<quay character varying, number integer>",),
        ("map(character varying,integer)",),
        ("ARRAY",),
    ]
