"""History as a table that grows: the reads of a step of a backfill.

An input that is stepped through is seen up to where it has been read, before and after the step, and its changes are
the slice between. All others are seen whole. So a fragment needs no rule of its own for being built.

In a snapshot backfill inputs are seen at the pinned epoch, and the job's own relation at the backfill's own epochs,
which number its steps. In the main graph everything is seen at the barrier's epochs, and an input's changes count for
the part that has been read already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
from pyspark.sql import DataFrame

from seiche.errors import DataException, InvariantError
from seiche.far_days import FarDate, FarTimestamp, python_values
from seiche.model import EPOCH, OP, VNODE, VNODES, Epoch, RelationId, RelationSchema
from seiche.query import Scope
from seiche.storage.changes import Changes, arrow_schema
from seiche.storage.versions import RelationVersion
from seiche.stream.backfill.progress import InputProgress, Position, Slice, next_slice
from seiche.stream.runtime import EpochReads, Runtime, shape
from seiche.types import Kind, SqlType

NOTHING = "false"

_TOLD_AS_TEXT = {
    Kind.BOOLEAN,
    Kind.SMALLINT,
    Kind.INTEGER,
    Kind.BIGINT,
    Kind.NUMERIC,
    Kind.VARCHAR,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,
    Kind.BYTEA,
}


def can_cut(schema: RelationSchema) -> bool:
    """Whether a place within a vnode can be stored: every column of the key has values that text can tell."""
    return all(schema.column(name).type.kind in _TOLD_AS_TEXT for name in schema.key)


def position_of(table: pa.Table, schema: RelationSchema) -> Position:
    """The key of the last row of a table, which is in the order of the key."""
    last = table.slice(table.num_rows - 1, 1)
    return tuple(_text(python_values(last[name])[0]) for name in schema.key)


def read_until(progress: InputProgress, schema: RelationSchema) -> str | None:
    """The condition on an input's rows that have been read; None when all have."""
    if progress.finished:
        return None
    whole = f"`{VNODE}` < {progress.vnode}" if progress.vnode else NOTHING
    if progress.position is None:
        return whole
    return f"({whole} OR (`{VNODE}` = {progress.vnode} AND NOT ({_behind(progress.position, schema)})))"


def within(piece: Slice, schema: RelationSchema) -> str | None:
    """The condition on the rows of a slice, its limit aside; None when it is the whole input."""
    if piece.first == 0 and piece.end == VNODES and piece.after is None:
        return None
    inside = f"`{VNODE}` >= {piece.first} AND `{VNODE}` < {piece.end}"
    if piece.after is None:
        return inside
    return f"{inside} AND (`{VNODE}` > {piece.first} OR ({_behind(piece.after, schema)}))"


def _behind(position: Position, schema: RelationSchema) -> str:
    """The condition that a key comes after a position, NULLs first."""
    found: list[str] = []
    equal: list[str] = []
    for name, text in zip(schema.key, position, strict=True):
        type_ = schema.column(name).type
        column = f"`{name}`"
        greater = f"{column} IS NOT NULL" if text is None else f"coalesce({column} > {_literal(text, type_)}, false)"
        found.append(" AND ".join([*equal, greater]))
        equal.append(f"{column} IS NULL" if text is None else f"{column} <=> {_literal(text, type_)}")
    return " OR ".join(f"({each})" for each in found)


def _text(value: object) -> str | None:
    match value:
        case None:
            return None
        case bytes():
            return value.hex()
        case bool():
            return str(value).lower()
        case datetime():
            return value.replace(tzinfo=None).isoformat(" ")
        case FarDate() | FarTimestamp():
            return value.spark
        case int() | str() | date() | Decimal():
            return str(value)
        case _:
            raise InvariantError(f"a key of type {type(value).__name__} cannot be told as text")


def _literal(text: str, type_: SqlType) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    if type_.kind is Kind.BYTEA:
        return f"unhex('{escaped}')"
    return f"'{escaped}'" if type_.kind is Kind.VARCHAR else f"cast('{escaped}' as {type_.spark})"


def count_by_vnode(rows: DataFrame) -> tuple[int, ...]:
    """How many rows of a relation each vnode has."""
    found = {row[0]: row[1] for row in rows.groupBy(f"`{VNODE}`").count().collect()}
    return tuple(found.get(vnode, 0) for vnode in range(VNODES))


@dataclass(frozen=True, slots=True)
class SliceRows:
    """The rows of a slice: on the driver when they are few, else a frame. Stored columns and `_vnode`."""

    relation: RelationId
    schema: RelationSchema
    rows: int
    table: pa.Table | None
    frame: DataFrame | None = None


def read_next(
    runtime: Runtime, progress: InputProgress, epoch: Epoch, budget: int
) -> tuple[SliceRows, InputProgress] | None:
    """The next slice of about `budget` rows as of an epoch, and how far that is; None when all is read.

    A slice that ends inside a vnode comes to the driver, in the order of the key. One whose rows turn out to be more
    than the driver may hold is made smaller.
    """
    schema = runtime.versions.schema(progress.relation)
    cut = can_cut(schema)
    while True:
        piece = next_slice(progress, budget, cut_vnodes=cut)
        if piece is None:
            return None
        if piece.limit is not None and piece.limit > max(runtime.limits.inline_rows_max, 1):
            budget = max(runtime.limits.inline_rows_max, 1)
            continue
        rows = _read(runtime, progress.relation, epoch, piece)
        if rows is not None:
            cut_short = piece.limit is not None and rows.table is not None and rows.table.num_rows > 0
            last = position_of(rows.table, schema) if cut_short else None
            return rows, progress.passed(piece, last, rows.rows)
        budget = max(budget // 8, 1)


def _read(runtime: Runtime, relation: RelationId, epoch: Epoch, piece: Slice) -> SliceRows | None:
    """The rows of a slice; None when it has a limit and is too large for the driver all the same."""
    version = runtime.versions.at(relation, epoch)
    schema = version.schema
    frame = runtime.reader.exact(version, within(piece, schema), vnodes=(piece.first, piece.end))
    if piece.limit is not None:
        frame = frame.orderBy(*(f"`{name}`" for name in schema.key)).limit(piece.limit)
    elif piece.rows > runtime.limits.inline_rows_max:
        return SliceRows(relation, schema, piece.rows, None, runtime.spread(frame))
    table = runtime.collect(frame)
    if table is None and piece.limit is None:
        return SliceRows(relation, schema, piece.rows, None, runtime.spread(frame))
    if table is None:
        if piece.limit == 1:
            raise DataException(
                f"a row of relation {relation} is larger than the driver may hold",
                hint="ALTER SYSTEM SET inline_bytes_max allows larger ones.",
            )
        return None
    ones = pa.array([1] * table.num_rows, pa.int8())
    return SliceRows(relation, schema, table.num_rows, shape(table.append_column(OP, ones), schema))


class WholeReads(EpochReads):
    """Inputs that are read whole, by no more tasks than the job may have.

    Where that is one, a grouping needs no exchange: the whole step is one task, and leaves the other cores alone.
    """

    def _exact_rows(self, version: RelationVersion) -> DataFrame:
        return self.runtime.spread(super()._exact_rows(version))


@dataclass(frozen=True, slots=True)
class Seen:
    """What a step sees of its driven inputs: conditions before and after it (None: everything)."""

    before: Mapping[RelationId, str | None] = field(default_factory=dict)
    after: Mapping[RelationId, str | None] = field(default_factory=dict)


class GrowingReads(EpochReads):
    """Satisfies what operators ask of `EpochReads`, for a step of a backfill."""

    looks_up = False  # of an input that grows, a lookup would find rows that the step does not see yet

    def __init__(
        self,
        runtime: Runtime,
        scope: Scope,
        own: RelationId | None,
        pinned: Epoch | None,
        before: Epoch,
        after: Epoch,
        seen: Seen,
        piece: SliceRows | None = None,
        *,
        only_slice: bool = False,
        others: Mapping[RelationId, Changes] | None = None,
        frames: Mapping[RelationId, DataFrame] | None = None,
    ) -> None:
        changes = {**(others or {}), **({piece.relation: as_changes(piece, after)} if piece is not None else {})}
        super().__init__(runtime, scope, before, after, changes)
        self._own = own
        self._pinned = pinned
        self._seen = seen
        self._piece = piece
        self._only_slice = only_slice
        self._frames = dict(frames or {})  # of changes too many for the driver
        if piece is not None and piece.frame is not None:
            self._frames[piece.relation] = stamped(piece.frame, after)
        self._names: dict[tuple[object, ...], str] = {}

    def weighted(self, relation: RelationId, epoch: Epoch, predicate: str | None = None) -> str:
        if relation == self._own:
            return super().weighted(relation, epoch, predicate)
        condition = _both(predicate, self._condition(relation, epoch))
        name = (relation, self._epoch_of(epoch), condition)
        if name not in self._names:
            version = self.runtime.versions.at(relation, self._epoch_of(epoch))
            self._names[name] = f"({self.runtime.reader.weighted(version, self.scope.view, condition)})"
        return self._names[name]

    def index_for(self, *_: object) -> None:
        """An index would show the whole of an input of which a step sees a part."""

    def exact(self, relation: RelationId, epoch: Epoch) -> str:
        if relation == self._own:
            return super().exact(relation, epoch)
        if self._only_slice and self._piece is not None and relation == self._piece.relation:
            return self.delta(relation)
        condition = self._condition(relation, epoch)
        name = ("exact", relation, self._epoch_of(epoch), condition)
        if name not in self._names:
            version = self.runtime.versions.at(relation, self._epoch_of(epoch))
            if condition == NOTHING:
                none = arrow_schema(version.schema).empty_table()
                frame = self.runtime.reader.local(none, version.schema)
            else:
                frame = self.runtime.reader.exact(version, condition)
            self._names[name] = self.scope.view(frame)
        return self._names[name]

    def delta(self, relation: RelationId) -> str:
        if relation not in self._frames:
            return super().delta(relation)
        name = ("delta", relation)
        if name not in self._names:
            self._names[name] = self.scope.view(self._frames[relation])
        return self._names[name]

    def now_ms(self, epoch: Epoch) -> int:
        return super().now_ms(self._epoch_of(epoch))

    def watermark(self, relation: RelationId, epoch: Epoch) -> int | None:
        return super().watermark(relation, self._epoch_of(epoch))

    def _epoch_of(self, epoch: Epoch) -> Epoch:
        return epoch if self._pinned is None else self._pinned

    def _condition(self, relation: RelationId, epoch: Epoch) -> str | None:
        conditions = self._seen.before if epoch == self.before else self._seen.after
        return conditions.get(relation)


def stamped(frame: DataFrame, epoch: Epoch) -> DataFrame:
    """The rows of a slice as rows that appear at an epoch."""
    return frame.selectExpr("*", f"cast(1 as tinyint) AS `{OP}`", f"cast({epoch} as bigint) AS `{EPOCH}`")


def as_changes(piece: SliceRows, epoch: Epoch) -> Changes:
    """A slice as changes of its relation, in memory if it is."""
    table = piece.table
    if table is not None:
        stamp = pa.array([epoch], pa.int64()).take(pa.array([0] * table.num_rows, pa.int64()))
        table = table.append_column(EPOCH, stamp)
    return Changes(piece.relation, piece.schema, piece.rows, (), table)


def _both(first: str | None, second: str | None) -> str | None:
    given = [f"({each})" for each in (first, second) if each is not None]
    return " AND ".join(given) or None
