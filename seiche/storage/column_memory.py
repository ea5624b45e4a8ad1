"""Columns of row groups that the driver has read, packed, up to a number of bytes.

Beside a column of whole numbers stands its order, once it was asked for: wanted values are found by halving it, so that
a lookup costs as much as it wants, and not as much as there is.

Room is made only by what nobody has asked for in a minute. Lookups of each epoch go through the same columns in the
same order: if the newest always took the room of the oldest, each would find that its own had just been thrown out.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from seiche.clock import Clock, SystemClock
from seiche.storage.membership import is_whole, numbers_of, positions
from seiche.storage.packed import AsTheyAre, Distances, Packed

# What was not asked for in so many seconds may go.
IDLE_SECONDS = 60.0

# The path of a file, the number of a row group, and what is held of it.
Place = tuple[str, int, str]

# In place of a row group's number: the columns of all of them, one after the other.
WHOLE = -1


@dataclass(frozen=True, slots=True)
class Order:
    """The numbers of a column from the least to the greatest, without what they were packed by, and the row of each;
    None where they stand so."""

    numbers: npt.NDArray[Any]
    packed_by: int
    places: npt.NDArray[Any] | None

    @staticmethod
    def of(column: Packed) -> Order | None:
        """None for values that are no whole numbers, or where some are missing."""
        if isinstance(column, Distances) and is_whole(column.type):
            numbers, packed_by = column.numbers, column.least
        elif isinstance(column, AsTheyAre) and is_whole(column.values.type) and not column.values.null_count:
            numbers, packed_by = numbers_of(column.values), 0
        else:
            return None
        if bool((numbers[1:] >= numbers[:-1]).all()):
            return Order(numbers, packed_by, None)
        places = np.argsort(numbers, kind="stable")
        narrow = np.uint16 if len(places) <= 1 << 16 else np.int32
        return Order(numbers[places], packed_by, places.astype(narrow))

    @property
    def nbytes(self) -> int:
        """Without numbers that are the column's own."""
        return 0 if self.places is None else int(self.numbers.nbytes + self.places.nbytes)

    def rows(self, wanted: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The rows that have one of the wanted numbers, which are in order and each there once."""
        ends = np.iinfo(self.numbers.dtype)
        first = np.searchsorted(wanted, self.packed_by + int(ends.min), "left")
        last = np.searchsorted(wanted, self.packed_by + int(ends.max), "right")
        near = (wanted[first:last].astype(np.int64) - self.packed_by).astype(self.numbers.dtype)
        found = positions(self.numbers, near)
        return found if self.places is None else np.sort(self.places[found])


@dataclass(frozen=True, slots=True)
class _NoOrder:
    """Stands where a column was found to have none."""

    nbytes: int = 0


@dataclass(slots=True)
class _Held:
    what: Packed | Order | _NoOrder
    used: float


class ColumnMemory:
    """Safe to use from several threads."""

    def __init__(self, bytes_max: int, clock: Clock | None = None) -> None:
        self.bytes_max = bytes_max
        self._clock = clock or SystemClock()
        self._bytes = 0
        self._full_until = float("-inf")
        self._lock = threading.Lock()
        self._held: OrderedDict[Place, _Held] = OrderedDict()  # those used last at the end

    @property
    def is_full(self) -> bool:
        """Whether there was no room for something a short while ago."""
        return self._clock.monotonic() < self._full_until

    def column(self, place: Place) -> Packed | None:
        found: Packed | None = self._get(place)
        return found

    def put(self, place: Place, column: Packed) -> None:
        self._put(place, column)

    def lacking(self, places: Iterable[Place]) -> list[Place]:
        """Those of some places that nothing is known of."""
        with self._lock:
            return [place for place in places if place not in self._held]

    def order(self, place: Place, column: Packed) -> Order | None:
        """The order of the column at a place, which is this one."""
        beside = place_of_order(place)
        order: Order | _NoOrder | None = self._get(beside)
        if order is None:
            order = Order.of(column) or _NoOrder()
            self._put(beside, order)
        return order if isinstance(order, Order) else None

    def _get(self, place: Place) -> Any:
        with self._lock:
            held = self._held.get(place)
            if held is None:
                return None
            held.used = self._clock.monotonic()
            self._held.move_to_end(place)
            return held.what

    def _put(self, place: Place, what: Packed | Order | _NoOrder) -> None:
        now = self._clock.monotonic()
        with self._lock:
            if place in self._held:
                return
            while self._bytes + what.nbytes > self.bytes_max:
                oldest = next(iter(self._held.values()), None)
                if oldest is None or now - oldest.used < IDLE_SECONDS:
                    self._full_until = now + IDLE_SECONDS
                    return
                self._held.popitem(last=False)
                self._bytes -= oldest.what.nbytes
            self._held[place] = _Held(what, now)
            self._bytes += what.nbytes


def place_of_order(place: Place) -> Place:
    """Where the order of a column is held, if it was asked for."""
    path, group, name = place
    return (path, group, f"{name} in order")


__all__ = ["IDLE_SECONDS", "WHOLE", "ColumnMemory", "Order", "Place", "place_of_order"]
