"""Wanted values are found as Arrow finds them, by whichever way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seiche.storage.membership import PLACES_MAX, VALUES_MIN, is_among

ROWS = 2 * VALUES_MIN
ENDS = {pa.int16(): (-(2**15), 2**15 - 1), pa.int32(): (-(2**31), 2**31 - 1), pa.int64(): (-(2**63), 2**63 - 1)}


def check(values: np.ndarray, wanted: list[int], type_: pa.DataType, chunks: int = 3) -> None:
    column = pa.chunked_array([pa.array(each, type_) for each in np.array_split(values, chunks)])
    listed = pa.array(wanted, type_)
    found = pc.is_in(column, value_set=listed)
    assert pc.any(found).as_py(), "the test is about values that are there"
    assert is_among(column, listed).to_pylist() == found.to_pylist()


@pytest.mark.parametrize("type_", [pa.int16(), pa.int32(), pa.int64(), pa.date32()])
@pytest.mark.parametrize("ordered", [True, False])
def test_numbers_that_lie_close_together(type_: pa.DataType, ordered: bool) -> None:
    random = np.random.default_rng(7)
    values = random.integers(-500, 500, ROWS).astype(np.int32)
    check(np.sort(values) if ordered else values, [3, 3, -499, 77, 5_000, -9_999], type_)


@pytest.mark.parametrize("type_", ENDS)
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("end", [0, 1])
def test_numbers_at_the_ends_of_their_type(type_: pa.DataType, ordered: bool, end: int) -> None:
    low, high = ENDS[type_]
    random = np.random.default_rng(11)
    values = np.concatenate([random.integers(low, low + 50, VALUES_MIN), random.integers(high - 50, high, VALUES_MIN)])
    near = [low, low + 1, low + 7] if end == 0 else [high, high - 1, high - 7]
    check(np.sort(values) if ordered else random.permutation(values), near, type_)
    check(np.sort(values) if ordered else random.permutation(values), [low + 3, high - 3], type_)


def test_numbers_too_far_apart_for_a_table() -> None:
    values = np.random.default_rng(3).permutation(np.arange(ROWS, dtype=np.int64) * 1_000)
    check(values, [0, 1_000, 2 * PLACES_MAX], pa.int64())


def test_a_null_is_found_where_it_is_wanted() -> None:
    column = pa.chunked_array([pa.array([None, 1, 2] * VALUES_MIN, pa.int32())])
    assert is_among(column, pa.array([1, None], pa.int32())).to_pylist()[:3] == [True, True, False]
    assert is_among(column, pa.array([1], pa.int32())).to_pylist()[:3] == [False, True, False]


def test_nothing_is_wanted_and_nothing_found() -> None:
    column = pa.chunked_array([pa.array(np.arange(ROWS), pa.int32())])
    assert not pc.any(is_among(column, pa.array([], pa.int32()))).as_py()
