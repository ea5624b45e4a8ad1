"""The data folder on a real disk, segments in it, and the bounds of their keys."""

from __future__ import annotations

import errno
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seiche.errors import DiskFull, FolderNotUsable, StorageUnavailable
from seiche.model import Base, DataFile, Epoch, RelationId, Segment
from seiche.storage.bounds import KeyBounds
from seiche.storage.changes import arrow_schema
from seiche.storage.files import DataFolder, new_base_folder, new_segment_path
from seiche.storage.segments import SegmentCache, SegmentWriter, stored_columns
from seiche.storage.versions import RelationVersion
from seiche.types import DATE, INTEGER, VARCHAR
from tests.unit.storage.harbour import SHIP, SHIPS, changes, schema


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(str(tmp_path / "data"))


@pytest.fixture
def writer(folder: DataFolder) -> SegmentWriter:
    return SegmentWriter(folder, SegmentCache(1_000_000))


# --- files -------------------------------------------------------------------------------------------


def test_a_table_comes_back_as_it_was_written(folder: DataFolder) -> None:
    table = changes(SHIP, (1, "Ada", 1), (2, None, -1))
    size = folder.write_table("r7/seg/a.parquet", table)
    assert folder.read_table("r7/seg/a.parquet").cast(table.schema) == table
    assert folder.footer("r7/seg/a.parquet") == (2, size)


def test_a_location_leads_back_to_its_path(folder: DataFolder) -> None:
    path = "r7/seg/a.parquet"
    assert folder.relative(folder.location(path)) == path
    assert folder.relative("file://" + folder.location(path)) == path
    assert folder.relative("file:" + folder.location(path)) == path


def test_new_paths_differ_and_sort_by_epoch() -> None:
    paths = [new_segment_path(SHIPS, Epoch(epoch)) for epoch in (9, 10, 1 << 60)]
    assert paths == sorted(paths)
    assert new_segment_path(SHIPS, Epoch(9)) != new_segment_path(SHIPS, Epoch(9))
    assert all(path.startswith("r7/seg/") and path.endswith(".parquet") for path in paths)
    assert new_base_folder(SHIPS, Epoch(9)).startswith("r7/base/")


def test_what_executors_left_is_listed_and_what_hadoop_left_is_removed(folder: DataFolder, tmp_path: Path) -> None:
    for name in ("part-00001.parquet", "part-00000.parquet"):
        folder.write_table(f"r7/base/x/{name}", changes(SHIP, (1, "Ada", 1)))
    (tmp_path / "data/r7/base/x/_SUCCESS").touch()
    assert folder.parts("r7/base/x") == ["r7/base/x/part-00000.parquet", "r7/base/x/part-00001.parquet"]
    assert not (tmp_path / "data/r7/base/x/_SUCCESS").exists()


def test_a_folder_that_is_not_there_has_no_files(folder: DataFolder) -> None:
    assert folder.walk("r12") == []


def test_deleting_what_is_gone_is_fine(folder: DataFolder) -> None:
    folder.delete("r7/seg/gone.parquet")
    folder.delete_folder("r7")


def test_a_folder_goes_with_all_that_is_in_it(folder: DataFolder) -> None:
    folder.write_table("r7/seg/a.parquet", changes(SHIP, (1, "Ada", 1)))
    folder.delete_folder("r7")
    assert folder.walk() == []


def test_empty_folders_are_removed_and_the_root_stays(folder: DataFolder, tmp_path: Path) -> None:
    folder.write_table("r7/seg/deep/a.parquet", changes(SHIP, (1, "Ada", 1)))
    folder.write_table("r8/seg/b.parquet", changes(SHIP, (1, "Ada", 1)))
    folder.delete("r7/seg/deep/a.parquet")
    assert sorted(folder.folders()) == ["r7", "r8"]
    for name in folder.folders():
        folder.remove_empty_folders(name)
    assert folder.folders() == ["r8"]


def test_a_missing_file_is_told_as_such(folder: DataFolder) -> None:
    with pytest.raises(StorageUnavailable, match='file "r7/seg/gone.parquet" cannot be read') as caught:
        folder.read_table("r7/seg/gone.parquet")
    assert caught.value.retryable


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(FolderNotUsable, match="cannot be written"):
        DataFolder(str(tmp_path / "data"))


# --- segments ----------------------------------------------------------------------------------------


def test_a_written_segment_knows_its_epochs_and_rows(writer: SegmentWriter, folder: DataFolder) -> None:
    table = changes(SHIP, (1, "Ada", 1), (2, "Eve", 1)).drop_columns(["_epoch"])
    made = writer.write_table(SHIPS, SHIP, table, Epoch(9), fresh=True)
    assert (made.relation, made.epoch_lo, made.epoch_hi, made.rows, made.fresh) == (SHIPS, 9, 9, 2, True)
    assert writer.load(made, SHIP)["_epoch"].to_pylist() == [9, 9]
    assert folder.walk() == [made.path]


def test_a_segment_is_remembered_until_it_is_forgotten_and_read_again_then(writer: SegmentWriter) -> None:
    made = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (1, "Ada", 1)), Epoch(9), Epoch(9))
    assert writer.remembered(made, SHIP) is not None
    writer.forget(made)
    assert writer.remembered(made, SHIP) is None
    assert writer.load(made, SHIP).num_rows == 1
    assert writer.remembered(made, SHIP) is not None


def test_removed_segments_leave_neither_file_nor_folder_nor_memory(writer: SegmentWriter, folder: DataFolder) -> None:
    made = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (1, "Ada", 1)), Epoch(9), Epoch(9))
    kept = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (2, "Eve", 1)), Epoch(9), Epoch(9))
    of_executors = replace(made, path="r7/seg/9-of-executors/part-0.parquet")
    folder.write_table(of_executors.path, changes(SHIP, (3, "Ida", 1)))
    writer.remove([made, of_executors, replace(made, path="r7/seg/gone-already.parquet")])
    assert folder.walk() == [kept.path]
    assert writer.remembered(made, SHIP) is None
    assert not Path(folder.location("r7/seg/9-of-executors")).exists()


class BrokenFrame:
    """A frame of Spark whose job fails after its first task: what that one wrote is there already."""

    def selectExpr(self, *_: str) -> BrokenFrame:  # noqa: N802  Spark's name
        return self

    @property
    def write(self) -> BrokenFrame:
        return self

    def options(self, **_: str) -> BrokenFrame:
        return self

    def mode(self, _: str) -> BrokenFrame:
        return self

    def parquet(self, location: str) -> None:
        Path(location).mkdir(parents=True)
        (Path(location) / "part-00000.parquet").write_bytes(b"rows")
        raise RuntimeError("[DIVIDE_BY_ZERO] Division by zero.")


def test_a_write_by_executors_that_fails_leaves_no_files(writer: SegmentWriter, folder: DataFolder) -> None:
    broken: Any = BrokenFrame()
    with pytest.raises(RuntimeError, match="DIVIDE_BY_ZERO"):
        writer.write_frame_stamped(SHIPS, SHIP, broken, Epoch(9), Epoch(9))
    assert folder.walk() == []


def test_a_file_that_cannot_be_finished_is_not_left_half(folder: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_table: pa.Table, sink: Any, **_: Any) -> None:
        sink.write(b"PAR1")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(DiskFull):
        folder.write_table("r7/seg/a.parquet", changes(SHIP, (1, "Ada", 1)))
    assert folder.walk() == []


def test_joined_segments_hold_the_same_changes_epoch_by_epoch(writer: SegmentWriter) -> None:
    one = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (1, "Ada", 1, 3)), Epoch(3), Epoch(3), fresh=True)
    two = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (1, "Ada", -1, 5)), Epoch(5), Epoch(5))
    whole = writer.join(SHIP, [one, two])
    assert (whole.epoch_lo, whole.epoch_hi, whole.rows, whole.fresh) == (3, 5, 2, False)
    assert writer.load(whole, SHIP)["_epoch"].to_pylist() == [3, 5]


def test_the_cache_drops_what_was_not_used_for_longest() -> None:
    table = pa.table({"x": pa.array(range(1000), pa.int64())})
    cache = SegmentCache(2 * table.nbytes)
    cache.put("a", table)
    cache.put("b", table)
    assert cache.get("a") is not None
    cache.put("c", table)
    assert cache.get("b") is None
    assert cache.get("a") is not None and cache.get("c") is not None
    cache.drop("a")
    cache.drop("never there")
    cache.put("d", table)
    assert cache.get("c") is not None and cache.get("d") is not None


def test_one_segment_is_remembered_however_large() -> None:
    cache = SegmentCache(1)
    cache.put("a", pa.table({"x": [1, 2, 3]}))
    assert cache.get("a") is not None


def test_a_frame_is_cast_to_exactly_the_stored_columns() -> None:
    assert stored_columns(SHIP) == [
        "cast(`id` as int) as `id`",
        "cast(`name` as string) as `name`",
        "cast(`_vnode` as smallint) as `_vnode`",
        "cast(`_op` as tinyint) as `_op`",
        "cast(`_epoch` as bigint) as `_epoch`",
    ]


# --- bounds ------------------------------------------------------------------------------------------


def version_of(*segments: Segment, files: tuple[DataFile, ...] = ()) -> RelationVersion:
    return RelationVersion(RelationId(SHIPS), SHIP, Epoch(9), Base(SHIPS, None, Epoch(0), files), segments)


def keys(*values: int | None) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int32())})


@pytest.mark.parametrize("remembered", [True, False])
def test_a_lookup_outside_the_bounds_of_every_file_finds_nothing(
    folder: DataFolder, writer: SegmentWriter, remembered: bool
) -> None:
    made = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (10, "Ada", 1), (20, "Eve", 1)), Epoch(3), Epoch(3))
    folder.write_table("r7/base/a.parquet", changes(SHIP, (1, "Ann", 1), (5, "Bo", 1)))
    if not remembered:
        writer.forget(made)
    bounds = KeyBounds(folder, writer)
    version = version_of(made, files=(DataFile("r7/base/a.parquet", 2, 100, 0, 255),))
    for present in ([10], [15], [20], [3], [6, 12], [0, 99]):
        assert bounds.may_hold(version, keys(*present)), present
    for absent in ([21, 30], [6, 9], [-5, 0]):
        assert not bounds.may_hold(version, keys(*absent)), absent


def test_bounds_of_the_files_used_last_are_remembered(
    folder: DataFolder, writer: SegmentWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seiche.storage.bounds.FILES_MAX", 2)
    paths = [f"r7/base/{name}.parquet" for name in "abc"]
    for number, path in enumerate(paths):
        folder.write_table(path, changes(SHIP, (number, "Ann", 1)))
    read: list[str] = []
    ends = folder.column_bounds
    monkeypatch.setattr(folder, "column_bounds", lambda path, column: read.append(path) or ends(path, column))
    bounds = KeyBounds(folder, writer)
    for path in (paths[0], paths[1], paths[0], paths[2], paths[0], paths[1]):
        bounds.may_hold(version_of(files=(DataFile(path, 1, 100, 0, 255),)), keys(9))
    assert read == [*paths, paths[1]]


def test_an_empty_relation_holds_no_key(folder: DataFolder, writer: SegmentWriter) -> None:
    assert not KeyBounds(folder, writer).may_hold(version_of(), keys(1))


def test_keys_without_an_order_may_be_anywhere_that_has_rows(folder: DataFolder, writer: SegmentWriter) -> None:
    shape = schema(("name",), name=VARCHAR, id=INTEGER)
    made = writer.write_stamped(SHIPS, shape, changes(shape, ("Ada", 1, 1)), Epoch(3), Epoch(3))
    rows = pa.table({"name": ["Zoe"]})
    version = RelationVersion(SHIPS, shape, Epoch(9), Base(SHIPS, None, Epoch(0), ()), (made,))
    assert KeyBounds(folder, writer).may_hold(version, rows)


def test_rows_with_a_null_for_a_key_may_be_anywhere_that_has_rows(folder: DataFolder, writer: SegmentWriter) -> None:
    made = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (10, "Ada", 1)), Epoch(3), Epoch(3))
    for wanted in (keys(None), keys(30, None)):
        assert KeyBounds(folder, writer).may_hold(version_of(made), wanted)
        assert not KeyBounds(folder, writer).may_hold(version_of(), wanted)


def test_dates_have_bounds_too(folder: DataFolder, writer: SegmentWriter) -> None:
    shape = schema(("day",), day=DATE, id=INTEGER)
    made = writer.write_stamped(SHIPS, shape, changes(shape, (date(2026, 5, 1), 1, 1)), Epoch(3), Epoch(3))
    writer.forget(made)
    version = RelationVersion(SHIPS, shape, Epoch(9), Base(SHIPS, None, Epoch(0), ()), (made,))
    bounds = KeyBounds(folder, writer)
    assert bounds.may_hold(version, pa.table({"day": [date(2026, 5, 1)]}))
    assert not bounds.may_hold(version, pa.table({"day": [date(2026, 5, 2)]}))


def test_bounds_come_from_every_row_group(folder: DataFolder) -> None:
    folder.write_table("r7/a.parquet", pa.table({"id": pa.array([3, 1, None, 2], pa.int32())}))
    assert folder.column_bounds("r7/a.parquet", "id") == (1, 3)
    folder.write_table("r7/b.parquet", pa.table({"id": pa.array([None], pa.int32())}))
    assert folder.column_bounds("r7/b.parquet", "id") is None
    folder.write_table("r7/c.parquet", arrow_schema(SHIP).empty_table())
    assert folder.column_bounds("r7/c.parquet", "id") is None
