"""Queries for single rows by their key: the rows come from lookups instead of a scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from seiche.model import RelationId, RelationSchema
from seiche.query import is_stored, relation_of
from seiche.sql.bind import BoundQuery
from seiche.sql.point import point_read
from seiche.storage.lookups import Lookups
from seiche.storage.versions import RelationVersion


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one source that a query needs, shaped like a segment. `answer` is the query's own answer, where it
    only shows columns of these rows."""

    source: str
    rows: pa.Table
    answer: pa.Table | None


class PointReads:
    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    def find(self, bound: BoundQuery, versions: Mapping[RelationId, RelationVersion]) -> Found | None:
        """The rows that the query needs of these versions; None when it needs more than a few rows by their keys."""

        def schema(source: str) -> RelationSchema | None:
            """The shape of a source that is one of the versions."""
            version = versions.get(relation_of(source)) if is_stored(source) else None
            return version.schema if version is not None else None

        read = point_read(bound.ast, schema)
        if read is None:
            return None
        rows = self._lookups.rows(versions[relation_of(read.source)], read.values, read.condition)
        if rows is None:
            return None
        if read.shown is None:
            return Found(read.source, rows, None)
        aliases = [column.alias for column in bound.columns]
        answer = pa.table(dict(zip(aliases, (rows[name] for name in read.shown), strict=True)))
        return Found(read.source, rows, answer)
