"""What the memory of columns keeps, and how wanted numbers are found in it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seiche.clock import SimulatedClock
from seiche.storage.column_memory import IDLE_SECONDS, ColumnMemory, Order, Place
from seiche.storage.packed import AsTheyAre, Packed, packed


def column(first: int) -> Packed:
    """Eight numbers: 64 bytes."""
    return AsTheyAre(pa.array(range(first, first + 8), pa.int64()))


def place(number: int) -> Place:
    return ("r7/base/0.parquet", number, "ship")


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@given(
    st.lists(st.integers(-20, 20)),
    st.sets(st.integers(-25, 25) | st.integers(-(2**31), 2**31 - 1)),
    st.booleans(),
    st.integers(0, 2**31 - 21),
    st.sampled_from([packed, AsTheyAre]),
)
def test_rows_are_found_by_their_numbers(
    values: list[int], wanted: set[int], ordered: bool, more: int, form: Callable[[pa.Array], Packed]
) -> None:
    values = [value + more for value in (sorted(values) if ordered else values)]
    wanted |= {value + more for value in wanted}
    order = Order.of(form(pa.array(values, pa.int32())))
    assert order is not None
    found = order.rows(np.array(sorted(wanted), np.int64))
    assert found.tolist() == [row for row, value in enumerate(values) if value in wanted]


def test_what_has_no_order_here_is_told() -> None:
    for values in (pa.array(["b", "a"]), pa.array([1, None], pa.int64()), pa.array([Decimal(1), Decimal(3)])):
        assert Order.of(packed(values)) is None
        assert Order.of(AsTheyAre(values)) is None


def test_an_order_that_is_the_columns_own_takes_no_room() -> None:
    ordered, other = Order.of(column(1)), Order.of(AsTheyAre(pa.array([2, 1], pa.int64())))
    assert ordered is not None
    assert other is not None
    assert ordered.nbytes == 0
    assert other.nbytes == 2 * 8 + 2 * 2


def test_what_is_in_use_stays(clock: SimulatedClock) -> None:
    memory = ColumnMemory(130, clock)
    for number in range(3):
        memory.put(place(number), column(number))
    assert memory.is_full
    assert memory.lacking(map(place, range(3))) == [place(2)]


def test_what_nobody_asks_for_makes_room(clock: SimulatedClock) -> None:
    memory = ColumnMemory(130, clock)
    memory.put(place(0), column(0))
    memory.put(place(1), column(1))
    clock.advance(int(IDLE_SECONDS * 1000))
    assert memory.column(place(0)) == column(0)
    memory.put(place(2), column(2))
    assert memory.lacking(map(place, range(3))) == [place(1)]
    assert not memory.is_full


def test_a_memory_that_was_full_is_tried_again(clock: SimulatedClock) -> None:
    memory = ColumnMemory(70, clock)
    memory.put(place(0), column(0))
    memory.put(place(1), column(1))
    assert memory.is_full
    clock.advance(int(IDLE_SECONDS * 1000))
    assert not memory.is_full


def test_what_is_larger_than_all_of_it_is_not_kept(clock: SimulatedClock) -> None:
    memory = ColumnMemory(10, clock)
    memory.put(place(0), column(0))
    assert memory.column(place(0)) is None


def test_an_order_is_made_once(clock: SimulatedClock) -> None:
    memory = ColumnMemory(1_000, clock)
    values = packed(pa.array([2, 1], pa.int64()))
    memory.put(place(0), values)
    assert memory.order(place(0), values) is memory.order(place(0), values)
