"""The vnodes of few rows on the driver, as Spark computes them by `vnode_sql`.

Spark's xxhash64 chains the columns of a key: the hash of one is the seed of the next, and NULL leaves it as it is.
Numbers and dates are hashed for all rows at once. Texts are hashed one by one, which pays for some thousands of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seiche.model import NEIGHBOURS, VNODES, RelationSchema, Spread
from seiche.types import Kind, SqlType

TEXTS_MAX = 2_000

_SEED = 42
_MASK = (1 << 64) - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_INTS = (Kind.SMALLINT, Kind.INTEGER, Kind.DATE, Kind.BOOLEAN)
_LONGS = (Kind.BIGINT, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

_Words = npt.NDArray[np.uint64]


def vnodes_of(rows: pa.Table, schema: RelationSchema) -> pa.Array | None:
    """The vnode of each row of a relation, of which the key is enough; None where Spark has to tell."""
    return vnodes([rows[name] for name in schema.key], [schema.column(name).type for name in schema.key], schema.spread)


def vnodes(columns: Sequence[pa.ChunkedArray | pa.Array], types: Sequence[SqlType], spread: Spread) -> pa.Array | None:
    """The vnode of each row of a key; None where Spark has to tell."""
    texts = sum(len(each) for each, type_ in zip(columns, types, strict=True) if type_.kind is Kind.VARCHAR)
    if texts > TEXTS_MAX or not all(map(_is_known, types)):
        return None
    hashes = np.full(len(columns[0]), _SEED, np.uint64)
    found = []  # after each column
    with np.errstate(over="ignore"):
        for column, type_ in zip(columns, types, strict=True):
            whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            present = np.asarray(pc.is_valid(whole))
            hashes = np.where(present, _hashed(whole, type_, hashes), hashes)
            found.append((hashes % np.uint64(VNODES)).astype(np.int16))
    if spread is Spread.BY_WHOLE_KEY:
        return pa.array(found[-1])
    return pa.array(first_neighbour(found[0]) + found[-1] % NEIGHBOURS)


def first_neighbour(vnodes: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    """The first of the neighbours of each vnode."""
    return vnodes - vnodes % NEIGHBOURS


def _is_known(type_: SqlType) -> bool:
    return type_.kind in (*_INTS, *_LONGS) or (type_.kind is Kind.VARCHAR and not type_.padded)


def _hashed(values: pa.Array, type_: SqlType, seeds: _Words) -> _Words:
    """The hash of each value; anything for NULL."""
    if type_.kind is Kind.VARCHAR:
        found = [_of_text(text, int(seed)) for text, seed in zip(values.to_pylist(), seeds, strict=True)]
        return np.array(found, np.uint64)
    if type_.kind in _INTS:
        return _of_ints(np.asarray(_filled(values).cast(pa.int32())).astype(np.uint32).astype(np.uint64), seeds)
    return _of_longs(np.asarray(_filled(values).cast(pa.int64())).astype(np.uint64), seeds)


def _filled(values: pa.Array) -> pa.Array:
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return pc.fill_null(values, 0)


def _of_ints(values: _Words, seeds: _Words) -> _Words:
    hashes = (seeds + np.uint64(_P5) + np.uint64(4)) ^ (values * np.uint64(_P1))
    return _mixed(_rotated(hashes, 23) * np.uint64(_P2) + np.uint64(_P3))


def _of_longs(values: _Words, seeds: _Words) -> _Words:
    hashes = (seeds + np.uint64(_P5) + np.uint64(8)) ^ (_rotated(values * np.uint64(_P2), 31) * np.uint64(_P1))
    return _mixed(_rotated(hashes, 27) * np.uint64(_P1) + np.uint64(_P4))


def _rotated(words: _Words, bits: int) -> _Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))


def _mixed(words: _Words) -> _Words:
    words = (words ^ (words >> np.uint64(33))) * np.uint64(_P2)
    words = (words ^ (words >> np.uint64(29))) * np.uint64(_P3)
    return words ^ (words >> np.uint64(32))


def _of_text(text: str | None, seed: int) -> int:
    """The hash of a text's bytes; the seed for NULL."""
    if text is None:
        return seed
    data = text.encode()
    end, at = len(data), 0
    if end >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at <= end - 32:
            for number in range(4):
                word = int.from_bytes(data[at + 8 * number : at + 8 * number + 8], "little")
                lanes[number] = _round(lanes[number], word)
            at += 32
        found = sum(_turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            found = ((found ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        found = (seed + _P5) & _MASK
    found = (found + end) & _MASK
    while at + 8 <= end:
        found ^= _round(0, int.from_bytes(data[at : at + 8], "little"))
        found = (_turned(found, 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= end:
        found ^= (int.from_bytes(data[at : at + 4], "little") * _P1) & _MASK
        found = (_turned(found, 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        found ^= (byte * _P5) & _MASK
        found = (_turned(found, 11) * _P1) & _MASK
    found = ((found ^ (found >> 33)) * _P2) & _MASK
    found = ((found ^ (found >> 29)) * _P3) & _MASK
    return found ^ (found >> 32)


def _round(lane: int, word: int) -> int:
    return (_turned((lane + word * _P2) & _MASK, 31) * _P1) & _MASK


def _turned(word: int, bits: int) -> int:
    return ((word << bits) | (word >> (64 - bits))) & _MASK


__all__ = ["first_neighbour", "vnodes", "vnodes_of"]
