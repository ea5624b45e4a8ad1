"""Files that were written before a relation's columns changed, read as the relation is now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from seiche.model import Column, DataFile, Epoch, RelationSchema
from seiche.storage.base import IcebergBases
from seiche.storage.evolution import constant
from seiche.storage.files import DataFolder
from seiche.storage.segments import SegmentCache, SegmentWriter
from seiche.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    JSONB,
    NUMERIC,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    map_of,
    struct_of,
)
from tests.unit.storage.harbour import SHIP, SHIPS, changes

TONS = Column("tons", INTEGER, missing="7")
GROWN = RelationSchema((*SHIP.columns, TONS), SHIP.key)
NARROW = RelationSchema((SHIP.column("id"), TONS), SHIP.key)
AGAIN = RelationSchema((SHIP.column("id"), Column("name", VARCHAR, stored="name_2")), SHIP.key)
RENAMED = RelationSchema((replace(SHIP.column("id"), name="number", stored="id"), SHIP.column("name")), ("number",))
SWAPPED = RelationSchema(
    (Column("name", INTEGER, stored="id"), Column("id", VARCHAR, stored="name")),
    ("name",),
)


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(str(tmp_path / "data"))


@pytest.fixture
def writer(folder: DataFolder) -> SegmentWriter:
    return SegmentWriter(folder, SegmentCache(1_000_000))


@pytest.fixture
def bases(tmp_path: Path, folder: DataFolder) -> Iterator[IcebergBases]:
    bases = IcebergBases(f"sqlite:///{tmp_path}/meta.db", folder)
    yield bases
    bases.close()


def values(table: Any, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in table.to_pylist()]


@pytest.mark.parametrize("from_memory", [True, False])
@pytest.mark.parametrize(
    ("shape", "names", "expected"),
    [
        (GROWN, ("id", "name", "tons"), [(1, "Ada", 7)]),
        (NARROW, ("id", "tons"), [(1, 7)]),
        (AGAIN, ("id", "name"), [(1, None)]),
        (RENAMED, ("number", "name"), [(1, "Ada")]),
        (SWAPPED, ("name", "id"), [(1, "Ada")]),
    ],
)
def test_a_segment_is_read_in_the_shape_of_today(
    writer: SegmentWriter, shape: RelationSchema, names: tuple[str, ...], expected: object, from_memory: bool
) -> None:
    made = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (1, "Ada", 1)), Epoch(9), Epoch(9))
    if not from_memory:
        writer.forget(made)
        assert writer.remembered(made, shape) is None
    table = writer.load(made, shape)
    assert tuple(table.column_names) == (*shape.names, "_vnode", "_op", "_epoch")
    assert values(table, *names) == expected
    remembered = writer.remembered(made, shape)
    assert remembered is not None
    assert values(remembered, *names) == expected


def test_a_file_has_the_column_under_its_first_name_for_ever(writer: SegmentWriter, folder: DataFolder) -> None:
    made = writer.write_stamped(SHIPS, RENAMED, changes(RENAMED, (1, "Ada", 1)), Epoch(9), Epoch(9))
    assert folder.read_table(made.path).column_names[:2] == ["id", "name"]
    assert values(writer.load(made, RENAMED), "number", "name") == [(1, "Ada")]


def test_null_in_a_file_that_has_the_column_stays_null(writer: SegmentWriter) -> None:
    old = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (1, "Ada", 1)), Epoch(8), Epoch(8))
    new = writer.write_stamped(SHIPS, GROWN, changes(GROWN, (2, "Eve", None, 1)), Epoch(9), Epoch(9))
    joined = writer.join(GROWN, [old, new])
    assert values(writer.load(joined, GROWN), "id", "tons") == [(1, 7), (2, None)]
    later = replace(GROWN, columns=(*SHIP.columns, replace(TONS, missing="8")))
    assert values(writer.load(joined, later), "id", "tons") == [(1, 7), (2, None)]


HULL = struct_of(("length", INTEGER))
WIDER = struct_of(("length", INTEGER), ("masts", array_of(VARCHAR)))


@pytest.mark.parametrize("around", [struct_of, lambda field: array_of(field[1]), lambda f: map_of(VARCHAR, f[1])])
def test_a_field_that_a_file_lacks_is_null(writer: SegmentWriter, folder: DataFolder, around: Any) -> None:
    def held(hull: dict[str, Any]) -> Any:
        return (
            {"hull": hull} if around is struct_of else [hull] if type_.kind is Kind.ARRAY else [entry | {"value": hull}]
        )

    entry = {"key": "first"}
    type_ = around(("hull", HULL))
    old_shape, shape = (
        RelationSchema((SHIP.column("id"), Column("h", around(("hull", t)))), ("id",)) for t in (HULL, WIDER)
    )
    old = writer.write_stamped(SHIPS, old_shape, changes(old_shape, (1, held({"length": 9}), 1)), Epoch(8), Epoch(8))
    new = writer.write_stamped(
        SHIPS, shape, changes(shape, (2, held({"length": 8, "masts": ["fore"]}), 1)), Epoch(9), Epoch(9)
    )
    expected = [(1, held({"length": 9, "masts": None}))]
    assert values(writer.load(old, shape), "id", "h") == expected  # from memory, as it was written
    writer.forget(old)
    assert values(writer.load(old, shape), "id", "h") == expected
    joined = writer.join(shape, [old, new])
    assert values(writer.load(joined, shape), "id", "h") == [*expected, (2, held({"length": 8, "masts": ["fore"]}))]
    folder.write_table(
        "r7/base/1/a.parquet", changes(old_shape, (1, held({"length": 9}), 1)).drop_columns(["_op", "_epoch"])
    )
    file = DataFile("r7/base/1/a.parquet", 1, 100, 0, 255)
    assert values(writer.base_columns(file, old_shape, ["h"]), "h") == [(held({"length": 9}),)]
    assert values(writer.base_columns(file, shape, ["h"]), "h") == [expected[0][1:]]


def test_a_small_base_file_is_read_in_the_shape_of_today(writer: SegmentWriter, folder: DataFolder) -> None:
    folder.write_table("r7/base/1/a.parquet", changes(SHIP, (1, "Ada", 1)).drop_columns(["_op", "_epoch"]))
    file = DataFile("r7/base/1/a.parquet", 1, 100, 0, 255)
    assert values(writer.load_base(file, SHIP), "id", "name") == [(1, "Ada")]
    assert values(writer.load_base(file, GROWN), "id", "name", "tons", "_op", "_epoch") == [(1, "Ada", 7, 1, 0)]


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        (BIGINT, "-5", -5),
        (BOOLEAN, "true", True),
        (DOUBLE, "1.5E-7", 1.5e-7),
        (NUMERIC, "1.250000000000000000", Decimal("1.25")),
        (VARCHAR, "it's \\ so", "it's \\ so"),
        (JSONB, '{"a": 1}', '{"a": 1}'),
        (DATE, "2024-05-06", date(2024, 5, 6)),
        (TIMESTAMP, "2024-05-06 07:08:09.25", datetime(2024, 5, 6, 7, 8, 9, 250_000)),
        (TIMESTAMPTZ, "2024-05-06 07:08:09+00:00", datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)),
        (INTEGER, None, None),
    ],
)
def test_the_constant_of_a_missing_column_is_of_its_type(type_: SqlType, text: str | None, expected: object) -> None:
    made = constant(Column("c", type_, missing=text), 2)
    assert made.type == type_.arrow
    assert made.to_pylist() == [expected, expected]


def test_an_iceberg_table_follows_its_relation_by_field_ids(bases: IcebergBases, folder: DataFolder) -> None:
    def write(shape: RelationSchema, path: str, *rows: tuple[Any, ...]) -> str:
        table = changes(shape, *rows).drop_columns(["_op", "_epoch"])
        names = {column.name: column.file_name for column in shape.columns}
        folder.write_table(path, table.rename_columns([names.get(each, each) for each in table.column_names]))
        return path

    def read(*names: str) -> list[tuple[Any, ...]]:
        table = bases.table(SHIPS)
        assert table is not None
        return sorted(values(table.scan().to_arrow(), *names), key=repr)

    old = write(SHIP, "r7/base/1/a.parquet", (1, "Ada", 1))
    bases.replace_files(SHIPS, SHIP, [old])
    grown = RelationSchema((*SHIP.columns, Column("tons", INTEGER)), SHIP.key)
    more = write(grown, "r7/base/2/b.parquet", (2, "Eve", 9, 1))
    bases.replace_files(SHIPS, grown, [old, more])
    assert read("id", "name", "tons") == [(1, "Ada", None), (2, "Eve", 9)]
    again = RelationSchema((*grown.columns[::2], Column("name", VARCHAR, stored="name_2")), SHIP.key)
    third = write(again, "r7/base/3/c.parquet", (3, 5, "Ida", 1))
    bases.replace_files(SHIPS, again, [old, more, third])
    assert read("id", "tons", "name") == [(1, None, None), (2, 9, None), (3, 5, "Ida")]
    columns = (again.columns[0], Column("weight", INTEGER, stored="tons"), again.columns[2])
    bases.replace_files(SHIPS, RelationSchema(columns, SHIP.key), [old, more, third])
    assert read("id", "weight", "name") == [(1, None, None), (2, 9, None), (3, 5, "Ida")]


def test_an_iceberg_table_gets_the_fields_that_a_struct_got(bases: IcebergBases, folder: DataFolder) -> None:
    paths = []
    for number, (type_, hull) in enumerate([(HULL, {"length": 9}), (WIDER, {"length": 8, "masts": ["fore"]})]):
        shape = RelationSchema((SHIP.column("id"), Column("hulls", array_of(type_))), ("id",))
        paths.append(f"r7/base/{number}/a.parquet")
        folder.write_table(paths[-1], changes(shape, (number, [hull], 1)).drop_columns(["_op", "_epoch"]))
        bases.replace_files(SHIPS, shape, paths)
    table = bases.table(SHIPS)
    assert table is not None
    rows = sorted(values(table.scan().to_arrow(), "id", "hulls"))
    assert rows == [(0, [{"length": 9, "masts": None}]), (1, [{"length": 8, "masts": ["fore"]}])]
