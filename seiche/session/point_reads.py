"""Queries for single rows by their key: the rows come from lookups instead of a scan."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from seiche.model import Epoch, RelationSchema
from seiche.query import relation_of
from seiche.sql.bind import BoundQuery
from seiche.sql.point import point_read
from seiche.storage.lookups import Lookups
from seiche.storage.versions import Versions


@dataclass(frozen=True, slots=True)
class Found:
    """The rows of one source that a query needs, shaped like a segment. `answer` is the query's own answer, where it
    only shows columns of these rows."""

    source: str
    rows: pa.Table
    answer: pa.Table | None


class PointReads:
    def __init__(self, versions: Versions, lookups: Lookups) -> None:
        self._versions = versions
        self._lookups = lookups

    def find(self, bound: BoundQuery, epoch: Epoch) -> Found | None:
        """The rows that the query needs, at the epoch; None when it needs more than a few rows by their keys."""
        read = point_read(bound.ast, self._schema)
        if read is None:
            return None
        version = self._versions.at(relation_of(read.source), epoch)
        rows = self._lookups.rows(version, read.values, read.condition)
        if rows is None:
            return None
        if read.shown is None:
            return Found(read.source, rows, None)
        aliases = [column.alias for column in bound.columns]
        answer = pa.table(dict(zip(aliases, (rows[name] for name in read.shown), strict=True)))
        return Found(read.source, rows, answer)

    def _schema(self, source: str) -> RelationSchema | None:
        """The shape of a source, if its rows are stored: other sources have names that are not those of relations."""
        if not (source.startswith("r") and source[1:].isdecimal()) or relation_of(source) not in self._versions:
            return None
        return self._versions.schema(relation_of(source))
