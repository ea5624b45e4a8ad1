"""Packed columns are the same as before, and smaller."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seiche.storage.packed import AsTheyAre, Kinds, joined, packed

WIDE = pa.decimal128(38, 2)
COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int16(): st.integers(-(2**15), 2**15 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.integers(-100, 100),
    pa.date32(): st.dates(),
    pa.decimal128(15, 2): st.decimals(-(10**6), 10**6, places=2),
    WIDE: st.decimals(-100, 100, places=2) | st.decimals(-(10**6), 10**6, places=2),
    pa.decimal128(38, 0): st.integers(-(10**37), 10**37).map(Decimal) | st.integers(-3, 3).map(Decimal),
    pa.string(): st.text() | st.sampled_from(["AIR", "RAIL"]),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.list_(pa.int32()): st.lists(st.integers(0, 9)),
}


@given(st.data(), st.sampled_from(list(COLUMNS)), st.booleans())
def test_packed_values_are_what_they_were(data: st.DataObject, type_: pa.DataType, nulls: bool) -> None:
    strategy = COLUMNS[type_] | st.none() if nulls else COLUMNS[type_]
    whole = pa.array(data.draw(st.lists(strategy, max_size=12)), type_)
    values = whole[data.draw(st.integers(0, 2)) :]
    column = packed(values)
    assert column.taken() == values
    rows = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=5)) if len(values) else []
    some = column.taken(np.array(rows, np.int64))
    assert some.type == type_
    assert some.to_pylist() == [values[row].as_py() for row in rows]


@given(st.data(), st.sampled_from(list(COLUMNS)))
def test_joined_columns_are_their_values_one_after_the_other(data: st.DataObject, type_: pa.DataType) -> None:
    lists = data.draw(st.lists(st.lists(COLUMNS[type_], max_size=8), min_size=1, max_size=4))
    parts = [pa.array(each, type_) for each in lists]
    column = joined([packed(each) for each in parts])
    assert column.taken() == pa.concat_arrays(parts)


@pytest.mark.parametrize(
    ("values", "bytes_each"),
    [
        (pa.array([10**12 + each for each in range(256)], pa.int64()), 1),
        (pa.array([10**12 + each for each in range(257)], pa.int64()), 2),
        (pa.array([each * 1_000 for each in range(1_000)], pa.int64()), 4),
        (pa.array([date(1992, 1, 1), date(1998, 12, 31)] * 50), 2),
        (pa.array([Decimal("901.00"), Decimal("104949.50")] * 50, pa.decimal128(15, 2)), 4),
        (pa.array([Decimal("-0.10"), Decimal("0.10")] * 50, WIDE), 1),
    ],
)
def test_numbers_take_the_bytes_of_their_distances(values: pa.Array, bytes_each: int) -> None:
    assert packed(values).nbytes == bytes_each * len(values)


def test_texts_of_few_kinds_take_a_byte_each() -> None:
    values = pa.array(["AIR", "RAIL", "SHIP"] * 1_000)
    assert packed(values).nbytes < len(values) + 100
    named = pa.array([f"part {number}" for number in range(3_000)])
    assert packed(named).nbytes == named.nbytes


def test_kinds_that_come_late_are_counted_too() -> None:
    values = pa.array(["AIR"] * 1_000 + [f"part {number}" for number in range(70_000)])
    assert packed(values).taken() == values


def test_kinds_of_joined_columns_are_few_together() -> None:
    far, near = pa.array(["AIR", "SHIP"] * 1_000), pa.array(["RAIL", "AIR"] * 1_000)
    column = joined([packed(far), packed(near)])
    assert isinstance(column, Kinds)
    assert sorted(column.texts.to_pylist()) == ["AIR", "RAIL", "SHIP"]
    assert column.taken() == pa.concat_arrays([far, near])


def test_too_many_kinds_together_are_kept_as_they_are() -> None:
    parts = [pa.array([f"{part}"] * 1_000 + [f"{part} {n}" for n in range(40_000)]) for part in range(2)]
    assert all(isinstance(packed(part), Kinds) for part in parts)
    column = joined([packed(part) for part in parts])
    assert isinstance(column, AsTheyAre)
    assert column.taken() == pa.concat_arrays(parts)
