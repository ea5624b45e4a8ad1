"""Which values of a column are among some wanted ones.

Arrow puts the wanted values into a hash table and looks each value of the column up there. For integers there are
faster ways: those of a column that is in order are found by halving it, as keys in a base are; others by a table with
a place for each number from the least to the greatest of the wanted ones, where that is not too long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

# The table has at most so many places, and at most so many for each value that is looked up.
PLACES_MAX = 8_000_000
PLACES_EACH_MAX = 16

# Of fewer values it is not worth the trouble.
VALUES_MIN = 20_000

# Further from zero than this, differences might not fit.
_FAR = 1 << 62

_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32())

_Numbers = npt.NDArray[Any]
_Marks = npt.NDArray[np.bool_]


def is_among(values: pa.ChunkedArray, wanted: pa.Array) -> pa.ChunkedArray | pa.Array:
    """For each value whether it is wanted."""
    plain = values.type == wanted.type and not values.null_count and not wanted.null_count
    if not plain or not is_whole(values.type) or len(values) < VALUES_MIN or not len(wanted):
        return pc.is_in(values, value_set=wanted)
    listed = np.unique(numbers_of(wanted))
    table = None
    found = []
    for chunk in values.chunks:
        numbers = numbers_of(chunk)
        if bool((numbers[1:] >= numbers[:-1]).all()):
            found.append(_halved(numbers, listed))
            continue
        table = table or _Table.of(listed, len(values))
        if table is None:
            return pc.is_in(values, value_set=wanted)
        found.append(table.looked_up(numbers))
    return pa.chunked_array([pa.array(each) for each in found], pa.bool_())


def _halved(ordered: _Numbers, wanted: _Numbers) -> _Marks:
    """Where wanted values stand in a column that is in order."""
    marks = np.zeros(len(ordered), np.bool_)
    marks[positions(ordered, wanted)] = True
    return marks


def positions(ordered: _Numbers, wanted: _Numbers) -> npt.NDArray[np.intp]:
    """Where in a column that is in order wanted numbers stand, which are in order too and each there once."""
    if len(ordered):  # most of them may be beyond its ends
        wanted = wanted[np.searchsorted(wanted, ordered[0], "left") : np.searchsorted(wanted, ordered[-1], "right")]
    first, last = np.searchsorted(ordered, wanted, "left"), np.searchsorted(ordered, wanted, "right")
    count = last - first
    if count.max(initial=0) <= 1:
        return first[count > 0]
    starts = np.repeat(first - (np.cumsum(count) - count), count)
    return starts + np.arange(int(count.sum()))


@dataclass(frozen=True, slots=True)
class _Table:
    """A place for each number after `before`, and one at either end for all numbers beyond."""

    places: _Marks
    before: int

    @staticmethod
    def of(wanted: _Numbers, values: int) -> _Table | None:
        low, high = int(wanted[0]), int(wanted[-1])
        if high - low >= min(PLACES_MAX, PLACES_EACH_MAX * values) or not -_FAR < low <= high < _FAR:
            return None
        places = np.zeros(high - low + 3, np.bool_)
        places[wanted.astype(np.int64) - (low - 1)] = True
        return _Table(places, low - 1)

    def looked_up(self, numbers: _Numbers) -> _Marks:
        return self.places.take(numbers.astype(np.int64, copy=False) - self.before, mode="clip")


def is_whole(type_: pa.DataType) -> bool:
    """Whether `numbers_of` has values of a type."""
    return type_ in _WHOLE


def numbers_of(values: pa.Array) -> _Numbers:
    """Whole numbers, and dates as such."""
    plain = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    return plain.to_numpy(zero_copy_only=False)


__all__ = ["is_among", "is_whole", "numbers_of", "positions"]
