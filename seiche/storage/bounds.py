"""Between which keys the rows of a file lie, so that a lookup can tell without Spark that nothing is there.

Bounds are of the first column of the stream key. Rows that come in the order of their keys, which is what logs and
sequences do, then never pay for a lookup of what they might replace.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seiche.model import RelationSchema, Segment
from seiche.storage.files import DataFolder
from seiche.storage.segments import SegmentWriter
from seiche.storage.versions import RelationVersion
from seiche.types import Kind

_ORDERED = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE)

Bounds = tuple[Any, Any]


# Files come with every epoch, and are folded away: a server that runs for months must forget those that are gone.
FILES_MAX = 50_000


class KeyBounds:
    """Remembers the bounds of files, which never change once written."""

    def __init__(self, folder: DataFolder, segments: SegmentWriter) -> None:
        self._folder = folder
        self._segments = segments
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Bounds | None] = OrderedDict()  # those used last at the end

    def may_hold(self, version: RelationVersion, rows: pa.Table) -> bool:
        """Whether the relation may have a row with one of the keys of `rows`."""
        name = version.schema.key[0]
        if rows.num_rows == 0 or version.schema.column(name).type.kind not in _ORDERED:
            return bool(version.base.files or version.segments)
        wanted = None if rows[name].null_count else _bounds_of(rows[name])
        if wanted is None:  # the bounds of files do not tell of NULL
            return bool(version.base.files or version.segments)
        paths = [file.path for file in version.base.files]
        for segment in version.segments:
            table = self._segments.remembered(segment, version.schema)
            if table is None:
                paths.append(segment.path)
            elif _overlap(_bounds_of(table[name]), wanted):
                return True
        return any(_overlap(self._stored(path, version.schema), wanted) for path in paths)

    def in_base(self, version: RelationVersion, values: pa.Array) -> pa.Array:
        """Those of the values of the first column of the key that rows of the base may have."""
        schema = version.schema
        if schema.column(schema.key[0]).type.kind not in _ORDERED:
            return values
        within = pa.array(np.zeros(len(values), np.bool_))
        for file in version.base.files:
            ends = self._stored(file.path, schema)
            if ends is None:
                return values
            low, high = (pa.scalar(end, values.type) for end in ends)
            within = pc.or_(within, pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high)))
        return values.filter(within)

    def of(self, schema: RelationSchema, segments: Sequence[Segment]) -> Bounds | None:
        """The bounds of segments that were written just now; None when a file does not tell."""
        found = [self._stored(segment.path, schema) for segment in segments]
        known = [each for each in found if each is not None]
        return (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(found) else None

    def _stored(self, path: str, schema: RelationSchema) -> Bounds | None:
        with self._lock:
            if path in self._known:
                self._known.move_to_end(path)
                return self._known[path]
        found = self._folder.column_bounds(path, schema.column(schema.key[0]).file_name)
        with self._lock:
            self._known[path] = found
            if len(self._known) > FILES_MAX:
                self._known.popitem(last=False)
        return found


def _bounds_of(values: pa.ChunkedArray) -> Bounds | None:
    """Unknown also where a date lies outside of Python's calendar."""
    ends = pc.min_max(values)
    try:
        return None if ends["min"].as_py() is None else (ends["min"].as_py(), ends["max"].as_py())
    except (OverflowError, ValueError):
        return None


def _overlap(bounds: Bounds | None, wanted: Bounds) -> bool:
    """Unknown bounds may hold anything."""
    return bounds is None or (bounds[0] <= wanted[1] and wanted[0] <= bounds[1])
