"""The change log as subscribers read it: in parts, in order, each change with what it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.model import EPOCH_SHIFT, Epoch, RelationSchema, Segment
from seiche.storage.change_log import first_part, in_order, operations, read_small, tell
from seiche.storage.files import DataFolder
from seiche.storage.segments import SegmentCache, SegmentWriter
from seiche.storage.versions import Versions
from seiche.types import DOUBLE, INTEGER, INTERVAL, VARCHAR
from tests.unit.storage.harbour import SHIP, SHIPS, base, changes, schema, segment

ROWS_MAX = 100


def test_a_short_log_is_one_part() -> None:
    part = first_part([segment(7, 3), segment(7, 5)], Epoch(2), Epoch(9), ROWS_MAX)
    assert (part.small, part.after, part.until, len(part.segments)) == (True, 2, 9, 2)


def test_a_long_log_is_cut_before_the_epoch_that_would_be_too_much() -> None:
    log = [segment(7, 3, rows=60), segment(7, 5, rows=40), segment(7, 6, rows=1)]
    part = first_part(log, Epoch(2), Epoch(9), ROWS_MAX)
    assert (part.small, part.until, [each.epoch_lo for each in part.segments]) == (True, 5, [3, 5])


def test_an_epoch_that_is_too_much_by_itself_is_left_to_spark_whole() -> None:
    log = [segment(7, 3, rows=1, path="a"), segment(7, 3, rows=500, path="b"), segment(7, 4, rows=1, path="c")]
    part = first_part(log, Epoch(2), Epoch(9), ROWS_MAX)
    assert (part.small, part.until, len(part.segments)) == (False, 3, 2)


def test_a_joined_segment_that_overlaps_a_large_one_goes_with_it() -> None:
    log = [segment(7, 3, 6, rows=101, path="a"), segment(7, 5, rows=1, path="b"), segment(7, 8, rows=1, path="c")]
    part = first_part(log, Epoch(2), Epoch(9), ROWS_MAX)
    assert (part.small, part.until, len(part.segments)) == (False, 6, 2)


def test_a_segment_without_signs_is_left_to_spark() -> None:
    part = first_part([segment(7, 3, path="r7/seg/3-bare/part")], Epoch(2), Epoch(9), ROWS_MAX)
    assert not part.small


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 4), st.integers(1, 150)), max_size=12))
def test_parts_cover_every_epoch_once_and_never_cut_one(spans: list[tuple[int, int, int]]) -> None:
    log = [segment(7, lo, lo + more, rows=rows, path=f"s{n}") for n, (lo, more, rows) in enumerate(spans)]
    position, committed = Epoch(0), Epoch(40)
    covered: list[tuple[int, int]] = []
    while position < committed:
        left = [each for each in log if each.epoch_hi > position and each.epoch_lo <= committed]
        part = first_part(left, position, committed, ROWS_MAX)
        assert part.until > position
        inside = {each.path for each in left if each.epoch_lo <= part.until}
        assert {each.path for each in part.segments} >= inside
        covered.append((part.after, part.until))
        position = part.until
    assert [lo for lo, _ in covered[1:]] == [hi for _, hi in covered[:-1]]


def told(shape: RelationSchema, table: pa.Table, rows: int = 1000) -> list[tuple[object, ...]]:
    pieces = list(tell(table.to_batches(max_chunksize=rows), shape))
    return [row for columns, _ in pieces for row in zip(*columns, strict=True)]


def test_changes_come_by_epoch_and_key_with_what_they_were() -> None:
    second = 2 << EPOCH_SHIFT
    table = changes(
        SHIP,
        (2, "Bea", 1, second),
        (1, "Ada", 1, 1 << EPOCH_SHIFT),
        (1, "Ann", 1, second),
        (1, "Ada", -1, second),
        (3, "Cyd", -1, second),
    )
    assert told(SHIP, in_order(table, SHIP)) == [
        (1, "Ada", "Insert", 1),
        (1, "Ada", "UpdateDelete", 2),
        (1, "Ann", "UpdateInsert", 2),
        (2, "Bea", "Insert", 2),
        (3, "Cyd", "Delete", 2),
    ]


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_an_update_stays_a_pair_wherever_a_batch_ends(rows: int) -> None:
    table = changes(SHIP, (0, "Abe", 1), (1, "Ada", -1), (1, "Ann", 1), (2, "Bea", -1), (3, "Cyd", -1), (3, "Col", 1))
    words = [row[2] for row in told(SHIP, table, rows)]
    assert words == ["Insert", "UpdateDelete", "UpdateInsert", "Delete", "UpdateDelete", "UpdateInsert"]


def test_a_key_that_leaves_in_one_epoch_and_returns_in_the_next_is_no_update() -> None:
    table = changes(SHIP, (1, "Ada", -1, 3), (1, "Ada", 1, 4))
    assert operations(table, SHIP.key) == ["Delete", "Insert"]


def test_keys_that_arrow_cannot_sort_or_compare_are_paired_all_the_same() -> None:
    shape = schema(("depth", "stay"), depth=DOUBLE, stay=INTERVAL, name=VARCHAR)
    day = {"months": 0, "days": 1, "micros": 0}
    nan = float("nan")
    table = changes(shape, (nan, day, "b", 1), (nan, None, "c", 1), (nan, day, "a", -1))
    assert [row[3] for row in told(shape, in_order(table, shape))] == ["UpdateDelete", "UpdateInsert", "Insert"]


def test_hidden_columns_are_not_told() -> None:
    plain = schema(("_row_id",), name=VARCHAR, _row_id=INTEGER)
    shape = replace(plain, columns=(plain.columns[0], replace(plain.columns[1], hidden=True)))
    assert told(shape, changes(shape, ("Ada", 5, 1))) == [("Ada", "Insert", 0)]


def test_a_small_part_is_read_from_its_files_and_clipped_to_its_epochs(tmp_path: Path) -> None:
    writer = SegmentWriter(DataFolder(str(tmp_path / "data")), SegmentCache(0))
    rows = changes(SHIP, (1, "Ada", 1, 3), (2, "Bea", 1, 4), (3, "Cyd", 1, 5))
    joined: Segment = writer.write_stamped(SHIPS, SHIP, rows, Epoch(3), Epoch(5))
    part = first_part([joined], Epoch(3), Epoch(4))
    assert read_small(part, SHIP, writer)["id"].to_pylist() == [2]


# --- what is gone ------------------------------------------------------------------------------------


def test_a_log_is_whole_until_segments_of_it_were_let_go() -> None:
    versions = Versions()
    versions.load(
        Epoch(10), {SHIPS: SHIP}, [base(SHIPS, 8, "r7/base/a")], [segment(7, 4), segment(7, 6), segment(7, 9)]
    )
    found = versions.log_since(SHIPS, Epoch(3))
    assert found is not None
    assert [each.epoch_lo for each in found[0]] == [4, 6, 9] and found[1] == 10
    versions.forget_segments([segment(7, 4).path])
    assert versions.log_since(SHIPS, Epoch(3)) is None
    kept = versions.log_since(SHIPS, Epoch(4))
    assert kept is not None and [each.epoch_lo for each in kept[0]] == [6, 9]


def test_what_was_never_told_of_a_key_of_integers_is_compared_by_value() -> None:
    shape = schema(("a", "b"), a=INTEGER, b=INTEGER)
    table = in_order(changes(shape, (1, 2, 1), (1, 1, -1), (1, 1, 1)), shape)
    assert operations(table, shape.key) == ["UpdateDelete", "UpdateInsert", "Insert"]
