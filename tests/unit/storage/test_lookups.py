"""Rows by their keys: the base's, with the log laid over them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from seiche.model import VNODE, Base, DataFile, Epoch, Segment
from seiche.storage.bounds import KeyBounds
from seiche.storage.column_memory import ColumnMemory
from seiche.storage.files import DataFolder
from seiche.storage.lookups import Lookups
from seiche.storage.relation import RelationReader
from seiche.storage.row_groups import RowGroups
from seiche.storage.segments import SegmentCache, SegmentWriter
from seiche.storage.versions import RelationVersion
from tests.unit.storage.harbour import SHIP, SHIPS, changes

NO_SPARK = cast(SparkSession, None)  # a small base is read on the driver


class Harbour:
    def __init__(self, folder: Path) -> None:
        self.folder = DataFolder(str(folder))
        cache = SegmentCache(1 << 20)
        self.writer = SegmentWriter(self.folder, cache)
        bounds, groups = KeyBounds(self.folder, self.writer), RowGroups(self.folder, ColumnMemory(0), 0)
        self.lookups = Lookups(RelationReader(NO_SPARK, self.folder, self.writer, bounds, groups, 200_000))
        self.base = self.based(5, (1, "Ada", 1), (2, "Bea", 1), (3, "Cyd", 1))

    def based(self, epoch: int, *rows: tuple[Any, ...]) -> Base:
        path = f"r7/base/{epoch}.parquet"
        size = self.folder.write_table(path, changes(SHIP, *rows).select([*SHIP.names, VNODE]))
        return Base(SHIPS, 1, Epoch(epoch), (DataFile(path, len(rows), size, 0, 255),))

    def segment(self, epoch: int, *rows: tuple[Any, ...]) -> Segment:
        return self.writer.write_stamped(SHIPS, SHIP, changes(SHIP, *rows, epoch=epoch), Epoch(epoch), Epoch(epoch))

    def names(self, *ids: int, log: tuple[Segment, ...] = (), base: Base | None = None) -> list[str] | None:
        version = RelationVersion(SHIPS, SHIP, Epoch(9), base or self.base, log)
        found = self.lookups.rows(version, {"id": ids}, f"id IN {ids}")
        return None if found is None else sorted(found["name"].to_pylist())


@pytest.fixture
def harbour(tmp_path: Path) -> Harbour:
    return Harbour(tmp_path / "data")


def test_rows_of_the_base_are_found_by_their_keys(harbour: Harbour) -> None:
    assert harbour.names(2) == ["Bea"]
    assert harbour.names(1, 3, 8) == ["Ada", "Cyd"]


def test_the_log_is_laid_over_the_base(harbour: Harbour) -> None:
    log = (
        harbour.segment(6, (2, "Bea", -1), (2, "Bee", 1), (4, "Dot", 1)),
        harbour.segment(7, (2, "Bee", -1), (2, "Bel", 1), (3, "Cyd", -1)),
    )
    assert harbour.names(2, log=log) == ["Bel"]
    assert harbour.names(3, log=log) == []
    assert harbour.names(4, log=log) == ["Dot"]
    assert harbour.names(2, log=log[:1]) == ["Bee"]


def test_a_key_that_left_and_returned_is_there_once(harbour: Harbour) -> None:
    log = (harbour.segment(6, (1, "Ada", -1)), harbour.segment(7, (1, "Ann", 1)))
    assert harbour.names(1, log=log) == ["Ann"]


def test_what_a_base_said_is_asked_once_and_not_of_another_base(harbour: Harbour) -> None:
    assert harbour.names(1) == ["Ada"]
    gone = replace(harbour.base, files=tuple(replace(file, path="r7/base/gone") for file in harbour.base.files))
    harbour.folder.delete(harbour.base.files[0].path)
    assert harbour.names(1) == ["Ada"], "it is remembered"
    newer = harbour.based(8, (1, "Ann", 1))
    assert harbour.names(1, base=newer) == ["Ann"]
    with pytest.raises(Exception, match="cannot be read"):
        harbour.names(1, base=gone)


def test_a_value_that_no_row_can_have_is_left_to_others(harbour: Harbour) -> None:
    assert harbour.names(1 << 40) is None
