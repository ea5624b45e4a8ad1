"""Which rows of two tables on the driver agree, column by column. NULL agrees with NULL here."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seiche.types import Kind

# Types whose equal values have equal bits.
PLAIN = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.VARCHAR)

Places = npt.NDArray[np.int64]


def pairs(left: pa.Table, right: pa.Table, limit: int) -> tuple[Places, Places] | None:
    """The places of rows that agree in all columns; None when there are more of them than `limit`."""
    mine, theirs = codes(left, right)
    order = np.argsort(theirs, kind="stable")
    theirs = theirs[order]
    first, last = np.searchsorted(theirs, mine, "left"), np.searchsorted(theirs, mine, "right")
    count = last - first
    total = int(count.sum())
    if total > limit:
        return None
    starts = np.repeat(first - (np.cumsum(count) - count), count)
    return np.repeat(np.arange(len(mine)), count), order[starts + np.arange(total)]


def all_pairs(left: pa.Table, right: pa.Table, limit: int) -> tuple[Places, Places] | None:
    """The places of every row with every other; None when there are more of them than `limit`."""
    if left.num_rows * right.num_rows > limit:
        return None
    return np.repeat(np.arange(left.num_rows), right.num_rows), np.tile(np.arange(right.num_rows), left.num_rows)


def codes(left: pa.Table, right: pa.Table) -> tuple[Places, Places]:
    """A number for each row, equal where all columns are, and only there."""
    found: Places = np.zeros(left.num_rows + right.num_rows, np.int64)
    for mine, theirs in zip(left.columns, right.columns, strict=True):
        both = pa.chunked_array([*mine.chunks, *theirs.chunks], mine.type).combine_chunks()
        own = np.asarray(pc.dictionary_encode(both, null_encoding="encode").indices).astype(np.int64)
        _, found = np.unique(found * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
    return found[: left.num_rows], found[left.num_rows :]


__all__ = ["PLAIN", "Places", "all_pairs", "codes", "pairs"]
