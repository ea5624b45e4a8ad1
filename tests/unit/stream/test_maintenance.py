"""Which small segments are joined."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.model import Epoch, RelationId, Segment
from seiche.stream.maintenance import _newest

ROWS_MAX = 1000


def log(*rows: int) -> list[Segment]:
    return [Segment(RelationId(7), f"s{n}", Epoch(n), Epoch(n), count, 100) for n, count in enumerate(rows)]


def joined(*rows: int) -> list[int]:
    return [segment.rows for segment in _newest(log(*rows), ROWS_MAX)]


def test_segments_of_equal_size_are_all_joined() -> None:
    assert joined(1, 1, 1, 1) == [1, 1, 1, 1]


def test_a_large_old_segment_is_left_alone() -> None:
    assert joined(500, 1, 1, 1) == [1, 1, 1]


def test_an_old_segment_is_taken_along_when_what_is_chosen_has_grown_to_its_size() -> None:
    assert joined(3, 1, 1, 1) == [3, 1, 1, 1]
    assert joined(4, 1, 1, 1) == [1, 1, 1]


def test_the_newer_half_is_joined_whatever_its_sizes() -> None:
    assert joined(1, 1, 300, 1) == [1, 1, 300, 1]
    assert joined(400, 400, 300, 1) == [300, 1]


def test_no_joined_segment_outgrows_the_limit() -> None:
    assert joined(1, 600, 600) == [600]
    assert joined(2000) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 1200), max_size=20))
def test_what_is_chosen_is_the_end_of_the_log_and_within_the_limit(rows: list[int]) -> None:
    segments = log(*rows)
    chosen = _newest(segments, ROWS_MAX)
    assert chosen == segments[len(segments) - len(chosen) :]
    assert sum(each.rows for each in chosen) <= ROWS_MAX
