"""Hidden row ids: numbers for the rows of tables without a primary key, and the vnodes that follow from them.

Ids grow and are never used twice. The counters are part of the checkpoint; numbers handed out in an epoch that
did not become durable are handed out again, which is right: nobody saw them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from seiche.model import VNODES, RelationId

# An executor's task numbers its rows by itself from a range of its own.
TASK_RANGE = 1 << 33

_P1, _P2, _P3 = np.uint64(0x9E3779B185EBCA87), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)
_P4, _P5 = np.uint64(0x85EBCA77C2B2AE63), np.uint64(0x27D4EB2F165667C5)


class RowIds:
    """The next free number of each table. Safe to use from several threads."""

    def __init__(self, counters: Mapping[RelationId, int]) -> None:
        self._lock = threading.Lock()
        self._next = dict(counters)
        self._moved: set[RelationId] = set()

    def take(self, relation: RelationId, count: int) -> int:
        """The first of `count` numbers that are the caller's now."""
        with self._lock:
            first = self._next.get(relation, 0)
            self._next[relation] = first + count
            self._moved.add(relation)
            return first

    def moved(self) -> dict[RelationId, int]:
        """The counters that changed since the last call of `settled`."""
        with self._lock:
            return {relation: self._next[relation] for relation in self._moved}

    def settled(self) -> None:
        with self._lock:
            self._moved.clear()


def vnodes_of(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
    """pmod(xxhash64(id), 256), exactly as Spark computes it for a bigint."""
    with np.errstate(over="ignore"):
        value = ids.astype(np.uint64)
        hashed = np.full(value.shape, np.uint64(42) + _P5 + np.uint64(8), np.uint64)
        hashed ^= _rotate(value * _P2, 31) * _P1
        hashed = _rotate(hashed, 27) * _P1 + _P4
        hashed ^= hashed >> np.uint64(33)
        hashed *= _P2
        hashed ^= hashed >> np.uint64(29)
        hashed *= _P3
        hashed ^= hashed >> np.uint64(32)
    return (hashed % np.uint64(VNODES)).astype(np.int16)


def _rotate(value: npt.NDArray[np.uint64], bits: int) -> npt.NDArray[np.uint64]:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))
