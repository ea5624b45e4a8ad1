"""Iceberg bases: the schema of a relation, and commits that replace all files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from seiche.storage.base import IcebergBases, iceberg_schema
from seiche.storage.files import DataFolder
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    array_of,
    numeric,
    struct_of,
)
from tests.unit.storage.harbour import SHIP, SHIPS, changes, schema


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        (BOOLEAN, BooleanType()),
        (SMALLINT, IntegerType()),
        (INTEGER, IntegerType()),
        (BIGINT, LongType()),
        (TIME, LongType()),
        (NUMERIC, DecimalType(38, 18)),
        (numeric(10, 2), DecimalType(10, 2)),
        (REAL, FloatType()),
        (DOUBLE, DoubleType()),
        (VARCHAR, StringType()),
        (JSONB, StringType()),
        (BYTEA, BinaryType()),
        (DATE, DateType()),
        (TIMESTAMP, TimestampType()),
        (TIMESTAMPTZ, TimestamptzType()),
    ],
)
def test_every_plain_type_has_an_iceberg_type(type_: SqlType, expected: IcebergType) -> None:
    made = iceberg_schema(schema(("x",), x=type_))
    assert made.find_type("x") == expected
    assert not made.find_field("x").required


def test_nested_types_are_nested_and_every_field_has_a_number_of_its_own() -> None:
    made = iceberg_schema(
        schema(
            ("id",),
            id=INTEGER,
            crew=array_of(struct_of(("name", VARCHAR), ("ages", array_of(SMALLINT)))),
            stay=INTERVAL,
            last=BIGINT,
        )
    )
    crew = made.find_type("crew")
    assert isinstance(crew, ListType) and isinstance(crew.element_type, StructType)
    assert isinstance(made.find_type("crew.element.ages.element"), IntegerType)
    assert [field.name for field in made.find_type("stay").fields] == ["months", "days", "micros"]
    assert sorted(made.field_ids) == list(range(1, 13))


def test_the_vnode_is_stored_behind_the_columns() -> None:
    assert iceberg_schema(SHIP).column_names == ["id", "name", "_vnode"]


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(str(tmp_path / "data"))


@pytest.fixture
def bases(tmp_path: Path, folder: DataFolder) -> Iterator[IcebergBases]:
    bases = IcebergBases(f"sqlite:///{tmp_path}/meta.db", folder)
    yield bases
    bases.close()


def write(folder: DataFolder, path: str, *rows: tuple[int, str, int]) -> str:
    folder.write_table(path, changes(SHIP, *rows).drop_columns(["_op", "_epoch"]))
    return path


def test_a_commit_replaces_all_files_and_leaves_one_snapshot(bases: IcebergBases, folder: DataFolder) -> None:
    old = write(folder, "r7/base/1/a.parquet", (1, "Ada", 1))
    new = [write(folder, f"r7/base/2/{name}.parquet", (2, "Eve", 1)) for name in "bc"]
    first = bases.replace_files(SHIPS, SHIP, [old])
    second = bases.replace_files(SHIPS, SHIP, new)
    assert first != second
    referenced = bases.referenced(SHIPS)
    assert set(new) <= referenced
    assert old not in referenced
    assert bases.relations() == {SHIPS}


def test_metadata_does_not_grow_with_the_number_of_commits(bases: IcebergBases, folder: DataFolder) -> None:
    def commit(number: int) -> int:
        bases.replace_files(SHIPS, SHIP, [write(folder, f"r7/base/{number}/a.parquet", (1, "Ada", 1))])
        for path in bases.stale_metadata(SHIPS):
            folder.delete(path)
        assert bases.stale_metadata(SHIPS) == []
        return len(folder.walk("r7/metadata"))

    sizes = [commit(number) for number in range(4)]
    assert sizes[-1] == sizes[-2] <= 6


def test_a_relation_can_become_empty(bases: IcebergBases, folder: DataFolder) -> None:
    bases.replace_files(SHIPS, SHIP, [write(folder, "r7/base/1/a.parquet", (1, "Ada", 1))])
    bases.replace_files(SHIPS, SHIP, [])
    assert not any(path.endswith(".parquet") for path in bases.referenced(SHIPS))


def test_a_dropped_table_is_forgotten_and_dropping_it_again_is_fine(bases: IcebergBases, folder: DataFolder) -> None:
    bases.replace_files(SHIPS, SHIP, [write(folder, "r7/base/1/a.parquet", (1, "Ada", 1))])
    assert bases.metadata_location(SHIPS) is not None
    bases.drop(SHIPS)
    bases.drop(SHIPS)
    assert bases.metadata_location(SHIPS) is None
    assert bases.referenced(SHIPS) == set()
    assert bases.relations() == set()
