"""What may be deleted, and when: pins, readers and the sweep at start."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche.model import Base, DataFile, Epoch, Pin, RelationId
from seiche.storage.base import IcebergBases
from seiche.storage.files import DataFolder
from seiche.storage.fold import FoldPolicy
from seiche.storage.retention import Pins, Trash, sweep, sweep_late, unneeded_segments
from seiche.storage.segments import SegmentCache, SegmentWriter
from seiche.storage.versions import RelationVersion, Versions
from tests.unit.storage.harbour import ARRIVALS, SHIP, SHIPS, base, changes, segment


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return DataFolder(str(tmp_path / "data"))


def put(folder: DataFolder, *paths: str) -> None:
    for path in paths:
        folder.write_table(path, changes(SHIP, (1, "Ada", 1)))


# --- pins --------------------------------------------------------------------------------------------


def test_the_oldest_pin_of_a_relation_counts_and_so_does_one_of_all_relations() -> None:
    pins = Pins([Pin("backfill:1", SHIPS, Epoch(7)), Pin("archive:1", None, Epoch(9))])
    assert pins.oldest(SHIPS) == 7
    assert pins.oldest(ARRIVALS) == 9
    pins.put([Pin("query:1", ARRIVALS, Epoch(3))])
    assert pins.oldest(ARRIVALS) == 3


def test_without_pins_nothing_is_needed() -> None:
    assert Pins().oldest(SHIPS) is None


def test_a_holder_moves_its_pin_on() -> None:
    pins = Pins([Pin("backfill:1", SHIPS, Epoch(7))])
    pins.put([Pin("backfill:1", SHIPS, Epoch(8))])
    assert pins.oldest(SHIPS) == 8


def test_dropping_a_holder_drops_all_its_pins_and_no_other() -> None:
    pins = Pins([Pin("a", SHIPS, Epoch(1)), Pin("a", ARRIVALS, Epoch(1)), Pin("b", SHIPS, Epoch(5))])
    pins.drop(["a", "unknown"])
    assert pins.oldest(SHIPS) == 5
    assert pins.oldest(ARRIVALS) is None


def test_a_segment_goes_when_the_base_holds_it_and_no_pin_wants_to_replay_it() -> None:
    log = [segment(SHIPS, 1), segment(SHIPS, 2, 4), segment(SHIPS, 5), segment(SHIPS, 6)]
    assert unneeded_segments(log, Epoch(5), None) == log[:3]
    assert unneeded_segments(log, Epoch(5), Epoch(3)) == log[:1]
    assert unneeded_segments(log, Epoch(5), Epoch(9)) == log[:3]
    assert unneeded_segments(log, Epoch(0), None) == []


# --- trash -------------------------------------------------------------------------------------------


def test_what_nobody_reads_is_deleted_at_once(folder: DataFolder) -> None:
    put(folder, "r7/seg/a.parquet")
    trash = Trash(folder)
    trash.add(["r7/seg/a.parquet"])
    assert len(trash) == 1
    assert trash.empty() == 1
    assert folder.walk() == []
    assert len(trash) == 0


def test_nothing_is_deleted_under_a_reader_that_started_before(folder: DataFolder) -> None:
    put(folder, "r7/seg/a.parquet", "r7/seg/b.parquet")
    trash = Trash(folder)
    with trash.reading():
        trash.add(["r7/seg/a.parquet"])
        assert trash.empty() == 0
        assert len(folder.walk()) == 2
    assert trash.empty() == 1
    assert folder.walk() == ["r7/seg/b.parquet"]


def test_a_reader_that_came_later_does_not_hold_up_what_it_cannot_see(folder: DataFolder) -> None:
    put(folder, "r7/seg/a.parquet", "r7/seg/b.parquet")
    trash = Trash(folder)
    trash.add(["r7/seg/a.parquet"])
    with trash.reading():
        trash.add(["r7/seg/b.parquet"])
        assert trash.empty() == 1
        assert folder.walk() == ["r7/seg/b.parquet"]


def test_the_oldest_of_several_readers_decides(folder: DataFolder) -> None:
    put(folder, "r7/seg/a.parquet")
    trash = Trash(folder)
    with trash.reading():
        with trash.reading():
            trash.add(["r7/seg/a.parquet"])
        assert trash.empty() == 0
    assert trash.empty() == 1


def test_a_reader_that_fails_lets_go(folder: DataFolder) -> None:
    trash = Trash(folder)

    def read() -> None:
        with trash.reading():
            trash.add(["r7/seg/gone.parquet"])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        read()
    assert trash.empty() == 1


# --- the sweep at start ------------------------------------------------------------------------------


def test_the_sweep_deletes_what_nobody_knows_and_nothing_else(tmp_path: Path) -> None:
    folder = DataFolder(str(tmp_path / "data"))
    bases = IcebergBases(f"sqlite:///{tmp_path}/meta.db", folder)
    writer = SegmentWriter(folder, SegmentCache(1_000_000))
    versions = Versions()
    versions.add_relation(SHIPS, SHIP)
    kept = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (1, "Ada", 1)), Epoch(3), Epoch(3))
    versions.stage([kept])
    put(folder, "r7/base/a.parquet")
    rows, size = folder.footer("r7/base/a.parquet")
    versions.set_base(Base(SHIPS, None, Epoch(2), (DataFile("r7/base/a.parquet", rows, size, 0, 255),)))
    writer.write_stamped(SHIPS, SHIP, changes(SHIP, (2, "Eve", 1)), Epoch(4), Epoch(4))
    put(folder, "r99/seg/of-a-dropped-relation.parquet", "notes/of-the-user.parquet")
    (tmp_path / "data" / "meta.db").write_text("not ours to sweep")
    versions.publish(Epoch(3))
    orphans = sweep(folder, versions, bases)
    bases.close()
    assert len(orphans) == 2
    assert sorted(folder.walk()) == sorted([kept.path, "meta.db", "notes/of-the-user.parquet", "r7/base/a.parquet"])
    assert not (tmp_path / "data" / "r99").exists()


def test_a_file_that_a_killed_process_finished_after_the_start_is_found_later(folder: DataFolder) -> None:
    writer = SegmentWriter(folder, SegmentCache(1_000_000))
    versions = Versions()
    versions.add_relation(SHIPS, SHIP)
    registered, waiting, late, dropped = (
        f"r{relation}/{kind}/00000000000000000003-0dead000-{number}/part-0.parquet"
        for number, (relation, kind) in enumerate([(7, "base"), (7, "seg"), (7, "base"), (8, "base")])
    )
    put(folder, registered, waiting, late, dropped, "r7/metadata/v1.metadata.json")
    rows, size = folder.footer(registered)
    versions.set_base(Base(SHIPS, None, Epoch(2), (DataFile(registered, rows, size, 0, 255),)))
    versions.publish(Epoch(3))
    trash = Trash(folder)
    trash.add([waiting])
    unregistered_yet = writer.write_stamped(SHIPS, SHIP, changes(SHIP, (2, "Eve", 1)), Epoch(4), Epoch(4))
    before = set(folder.walk())
    assert sweep_late(folder, versions, trash) == [late]
    assert before - set(folder.walk()) == {late}
    assert unregistered_yet.path in folder.walk()


# --- when a fold pays --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base_rows", "log_rows", "wanted"),
    [(0, 99, False), (0, 100, True), (1000, 499, False), (1000, 500, True), (100, 100, True), (100, 99, False)],
)
def test_a_fold_pays_when_the_log_is_large_enough_in_itself_and_beside_the_base(
    base_rows: int, log_rows: int, wanted: bool
) -> None:
    version = RelationVersion(
        RelationId(SHIPS), SHIP, Epoch(9), base(SHIPS, 1, "a", rows=base_rows), (segment(SHIPS, 2, rows=log_rows),)
    )
    assert FoldPolicy(ratio=0.5, rows_min=100).wants(version) is wanted
