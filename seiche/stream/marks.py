"""The relation that holds a table's watermark: one row, a part of storage like any other.

So a watermark is durable with its epoch, can be read at any epoch that is kept, and what reads it is told when it
moves.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from seiche.model import OP
from seiche.plan.marks import ID, VALUE
from seiche.storage.relation import RelationReader
from seiche.storage.versions import RelationVersion
from seiche.stream.temporal import Moments, micros


def read_watermark(reader: RelationReader, version: RelationVersion) -> int | None:
    """The greatest value that there ever was: a watermark does not go back. Reads on the driver."""
    wanted = pa.table({ID: pa.array([0], pa.int64())})
    rows = reader.lookup(version, wanted, f"`{ID}` = 0", exact=True)
    values = numbers(rows.filter(pc.greater(rows[OP], 0))[VALUE])
    return int(values.max()) if len(values) else None


def numbers(values: pa.ChunkedArray) -> Moments:
    """Values of a watermark's type as numbers, without NULLs."""
    listed = values.drop_null()
    flat = pa.concat_arrays(listed.chunks) if listed.num_chunks else pa.array([], listed.type)
    if not pa.types.is_integer(flat.type):
        return micros(flat)
    found: Moments = flat.to_numpy(zero_copy_only=False).astype("int64")
    return found


__all__ = ["numbers", "read_watermark"]
