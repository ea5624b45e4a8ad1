"""Rows of a relation by their keys, on the driver.

The base is asked with a filter that skips all but a page or two of each file; the log of recent changes is in memory
and is laid over the answer. What a base says about a key stays true as long as it is the base, so it is remembered:
asking again runs no Spark job.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seiche.model import EPOCH, OP, Base, RelationId, RelationSchema
from seiche.storage.changes import latest
from seiche.storage.relation import RelationReader
from seiche.storage.versions import RelationVersion

# What is remembered at most: answers, and bytes of one answer.
ANSWERS_MAX = 4_096
ANSWER_BYTES_MAX = 64 * 1024

_Asked = tuple[RelationId, str]


class Lookups:
    """Safe to use from several threads."""

    def __init__(self, reader: RelationReader) -> None:
        self._reader = reader
        self._lock = threading.Lock()
        self._known: OrderedDict[_Asked, tuple[Base, RelationSchema, pa.Table]] = OrderedDict()

    def rows(self, version: RelationVersion, values: Mapping[str, tuple[Any, ...]], condition: str) -> pa.Table | None:
        """The rows alive whose key columns have these values, shaped like a segment; None where a value cannot be one
        of its column. `condition` is the same for Spark."""
        schema = version.schema
        try:
            wanted = pa.table({name: pa.array(each, schema.column(name).type.arrow) for name, each in values.items()})
        except (pa.ArrowInvalid, OverflowError):
            return None
        found = [self._in_base(version, wanted, condition)]
        if version.segments:
            log = replace(version, base=replace(version.base, files=()))
            found.append(self._reader.lookup(log, wanted, condition, exact=True))
        table = pa.concat_tables(found)
        table = table.take(pc.sort_indices(table, sort_keys=[(EPOCH, "ascending"), (OP, "ascending")]))
        last = latest(table, schema)
        return last.filter(pc.equal(last[OP], 1))

    def _in_base(self, version: RelationVersion, wanted: pa.Table, condition: str) -> pa.Table:
        asked = (version.relation, condition)
        with self._lock:
            known = self._known.get(asked)
            if known is not None and known[:2] == (version.base, version.schema):
                self._known.move_to_end(asked)
                return known[2]
        found = self._reader.lookup(replace(version, segments=()), wanted, condition, exact=True)
        if found.nbytes <= ANSWER_BYTES_MAX:
            with self._lock:
                self._known[asked] = (version.base, version.schema, found)
                self._known.move_to_end(asked)
                while len(self._known) > ANSWERS_MAX:
                    self._known.popitem(last=False)
        return found
