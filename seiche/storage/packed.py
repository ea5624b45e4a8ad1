"""Columns in fewer bytes than Arrow gives them, of which single rows can be had.

Whole numbers, dates and decimals of a row group lie close together more often than not: what is kept of each is how far
it is from the least of them, in as many bytes as the greatest distance takes. Of texts that are few and repeat, each
row has a number. Of TPC-H's lines a third of the bytes is left by this, and without their comments a quarter.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def joined(parts: Sequence[Packed]) -> Packed:
    """Columns of one type as one, one after the other."""
    if len(parts) == 1:
        return parts[0]
    distances = [part for part in parts if isinstance(part, Distances)]
    if len(distances) == len(parts):
        return _joined_distances(distances)
    kinds = [part for part in parts if isinstance(part, Kinds)]
    if len(kinds) == len(parts):
        return _joined_kinds(kinds)
    return AsTheyAre(pa.concat_arrays([part.taken() for part in parts]))


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
    return None if len(encoded.dictionary) > _KINDS_MAX else _by_number(encoded)


def _joined_distances(parts: Sequence[Distances]) -> Distances:
    least = min(part.least for part in parts)
    greatest = max(part.least + int(part.numbers.max()) for part in parts)
    narrow = np.dtype(f"u{width_of(least, greatest)}")
    shifted = [(part.numbers.astype(np.int64) + (part.least - least)).astype(narrow) for part in parts]
    return Distances(parts[0].type, least, np.concatenate(shifted))


def _joined_kinds(parts: Sequence[Kinds]) -> Kinds | AsTheyAre:
    encoded = [pa.DictionaryArray.from_arrays(part.numbers.astype(np.int32), part.texts) for part in parts]
    whole = pa.chunked_array(encoded).unify_dictionaries().combine_chunks()
    if len(whole.dictionary) > _KINDS_MAX:
        return AsTheyAre(whole.dictionary_decode())
    return _by_number(whole)


def _by_number(encoded: pa.DictionaryArray) -> Kinds:
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


__all__ = ["AsTheyAre", "Distances", "Kinds", "Packed", "is_packable", "joined", "packed", "width_of"]
