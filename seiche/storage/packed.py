"""Columns in fewer bytes than Arrow gives them, of which single rows can be had.

Whole numbers, dates and decimals of a row group lie close together more often than not: what is kept of each is how far
it is from the least of them, in as many bytes as the greatest distance takes. Of texts that are few and repeat, each
row has a number. A fifth of the bytes of TPC-H's lines is left by this, and rows are found and taken as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seiche.storage.membership import is_whole, numbers_of

_Rows = npt.NDArray[Any]

# Texts are looked at more closely when so many of them have at most so many kinds.
_TEXTS_SEEN, _KINDS_SEEN = 1_000, 100
_KINDS_MAX = 1 << 16

# Distances beyond this might not fit.
_FAR = 1 << 62


class Packed(Protocol):
    @property
    def nbytes(self) -> int: ...

    def taken(self, rows: _Rows | None = None) -> pa.Array:
        """The values of some rows; without them, all values."""


@dataclass(frozen=True, slots=True)
class AsTheyAre:
    values: pa.Array

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes)

    def taken(self, rows: _Rows | None = None) -> pa.Array:
        return self.values if rows is None else self.values.take(pa.array(rows))


@dataclass(frozen=True, slots=True)
class Distances:
    """Numbers as what each is more than the least."""

    type: pa.DataType
    least: int
    numbers: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        return int(self.numbers.nbytes)

    def taken(self, rows: _Rows | None = None) -> pa.Array:
        chosen = self.numbers if rows is None else self.numbers[rows]
        return _values(chosen.astype(np.int64) + self.least, self.type)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Texts by their numbers."""

    texts: pa.Array
    numbers: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        return int(self.texts.nbytes + self.numbers.nbytes)

    def taken(self, rows: _Rows | None = None) -> pa.Array:
        return self.texts.take(pa.array(self.numbers if rows is None else self.numbers[rows]))


def packed(values: pa.Array) -> Packed:
    """A column in the fewest bytes that are known for it."""
    if not len(values) or values.null_count:
        return AsTheyAre(values)
    if pa.types.is_string(values.type):
        return _kinds(values) or AsTheyAre(values)
    numbers = _numbers(values)
    if numbers is None:
        return AsTheyAre(values)
    least, greatest = int(numbers.min()), int(numbers.max())
    width = width_of(least, greatest)
    if width * len(values) >= values.nbytes or not -_FAR < least <= greatest < _FAR:
        return AsTheyAre(values)
    return Distances(values.type, least, (numbers.astype(np.int64, copy=False) - least).astype(f"u{width}"))


def is_packable(type_: pa.DataType) -> bool:
    """Whether values of a type are kept as distances, where these are short."""
    return is_whole(type_) or pa.types.is_decimal128(type_)


def width_of(least: int, greatest: int) -> int:
    """The bytes that each of some numbers takes, of which these are the ends."""
    distance = greatest - least
    return next((width for width in (1, 2, 4) if distance < 1 << (8 * width)), 8)


def _kinds(values: pa.Array) -> Kinds | None:
    if len(values[:_TEXTS_SEEN].unique()) > _KINDS_SEEN:
        return None
    encoded = values.dictionary_encode()
    if len(encoded.dictionary) > _KINDS_MAX:
        return None
    width = width_of(0, len(encoded.dictionary) - 1)
    return Kinds(encoded.dictionary, encoded.indices.to_numpy().astype(f"u{width}"))


def _numbers(values: pa.Array) -> npt.NDArray[Any] | None:
    """The whole numbers that stand for values without nulls, if some do."""
    if is_whole(values.type):
        return numbers_of(values)
    if not pa.types.is_decimal128(values.type):
        return None
    halves = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    low, high = halves[:, 0], halves[:, 1]
    return low if bool((high == low >> 63).all()) else None


def _values(numbers: npt.NDArray[np.int64], type_: pa.DataType) -> pa.Array:
    if pa.types.is_decimal128(type_):
        halves = np.stack([numbers, numbers >> 63], axis=1)
        return pa.Array.from_buffers(type_, len(numbers), [None, pa.py_buffer(halves)])
    if pa.types.is_date(type_):
        return pa.array(numbers.astype(np.int32)).cast(type_)
    return pa.array(numbers, pa.int64()).cast(type_)


__all__ = ["AsTheyAre", "Distances", "Kinds", "Packed", "is_packable", "packed", "width_of"]
