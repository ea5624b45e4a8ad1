"""A table's watermark: late rows are dropped, and rows that come raise it.

The watermark is the greatest value of an expression over all rows that came. A row is late when its column is below the
watermark as it stood before the row's epoch; rows of one epoch do not make each other late. A row without a value in
the column is never late.

Late rows are counted, and an event tells of them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from seiche.catalog.checkpoint import Checkpoint, Event
from seiche.epoch.barrier import Barrier
from seiche.model import OP, VNODE, Epoch, RelationId, RelationSchema, physical_ms
from seiche.plan.marks import ID, VALUE, literal, reach
from seiche.query import to_arrow
from seiche.sql.bind import BoundExpression
from seiche.sql.literals import MICROS_PER_DAY
from seiche.storage.changes import Changes, local_frame
from seiche.stream.marks import numbers
from seiche.stream.rowids import vnodes_of
from seiche.stream.runtime import Runtime
from seiche.types import Kind, SqlType

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Watermark:
    """What a table says about its watermark, and the relation that holds it."""

    relation: RelationId
    schema: RelationSchema
    column: str
    expression: BoundExpression

    @property
    def type(self) -> SqlType:
        return self.expression.type

    def on_time(self, rows: pa.Table, bound: int | None) -> pa.Table:
        """The rows that are not late."""
        if bound is None or rows.num_rows == 0:
            return rows
        late = pc.less(rows[self.column], _scalar(bound, self.type))
        return rows.filter(pc.invert(pc.fill_null(late, False)))

    def on_time_frame(self, frame: DataFrame, bound: int) -> DataFrame:
        return frame.filter(f"`{self.column}` IS NULL OR `{self.column}` >= {literal(bound, self.type)}")

    def late_frame(self, frame: DataFrame, bound: int) -> DataFrame:
        """The rows that are late."""
        return frame.filter(f"`{self.column}` < {literal(bound, self.type)}")

    def greatest(self, rows: pa.Table, runtime: Runtime) -> int | None:
        """The greatest value of the expression over rows on the driver."""
        if rows.num_rows == 0:
            return None
        followed = reach(self.expression.ast)
        if followed is not None and followed.exact and self.type.kind is not Kind.DATE:
            values = numbers(rows[followed.column.name]) - followed.low
        else:
            with runtime.scope() as scope:
                view = scope.view(local_frame(runtime.spark, rows))
                values = numbers(to_arrow(scope.sql(f"SELECT {self._sql} AS w FROM {view}"))["w"])
        return int(values.max()) if len(values) else None

    def greatest_written(self, changes: Changes | None, runtime: Runtime) -> int | None:
        """As `greatest`, for changes that executors wrote: read back from their files."""
        if changes is None:
            return None
        with runtime.scope() as scope:
            view = scope.view(runtime.reader.changes(changes))
            found = to_arrow(scope.sql(f"SELECT max({self._sql}) AS w FROM {view} WHERE `{OP}` > 0"))
        values = numbers(found["w"])
        return int(values.max()) if len(values) else None

    @property
    def _sql(self) -> str:
        return f"cast({self.expression.ast.sql('spark')} as {self.type.spark})"

    def moved(self, old: int | None, new: int, runtime: Runtime, epoch: Epoch) -> Changes | None:
        """Stages a new value in the place of the old one."""
        kept = [(-1, old), (1, new)] if old is not None else [(1, new)]
        ids = np.zeros(len(kept), np.int64)
        table = pa.table(
            {
                ID: pa.array(ids),
                VALUE: pa.array([_scalar(value, self.type).as_py() for _, value in kept], self.type.arrow),
                VNODE: pa.array(vnodes_of(ids)),
                OP: pa.array([sign for sign, _ in kept], pa.int8()),
            }
        )
        return runtime.emit_table(self.relation, self.schema, table, epoch)


class Arrivals:
    """The rows that reach a table in one epoch: late ones are dropped, the others seen. Without a watermark all do."""

    def __init__(self, watermark: Watermark | None, table: str, runtime: Runtime, barrier: Barrier) -> None:
        self.barrier = barrier
        self._watermark = watermark
        self._table = table
        self._runtime = runtime
        self._late = 0
        self._seen: int | None = None
        self._bound = runtime.watermark(watermark.relation, barrier.previous) if watermark is not None else None

    def rows(self, rows: pa.Table) -> pa.Table:
        """The rows that are on time; with `_op` among the columns they are changes."""
        if self._watermark is None:
            return rows
        kept = self._watermark.on_time(rows, self._bound)
        self._late += rows.num_rows - kept.num_rows
        self._see(self._watermark.greatest(kept, self._runtime))
        return kept

    def frame(self, frame: DataFrame) -> DataFrame:
        if self._watermark is None or self._bound is None:
            return frame
        self._late += self._watermark.late_frame(frame, self._bound).count()
        return self._watermark.on_time_frame(frame, self._bound)

    def written(self, changes: Changes | None) -> None:
        """Sees rows that executors wrote."""
        if self._watermark is not None:
            self._see(self._watermark.greatest_written(changes, self._runtime))

    def _see(self, value: int | None) -> None:
        if value is not None and (self._seen is None or value > self._seen):
            self._seen = value

    def raised(self) -> dict[RelationId, Changes]:
        """Stages the watermark's new value, if what was seen raises it."""
        if self._watermark is None or self._seen is None or (self._bound is not None and self._seen <= self._bound):
            return {}
        changes = self._watermark.moved(self._bound, self._seen, self._runtime, self.barrier.epoch)
        return {self._watermark.relation: changes} if changes is not None else {}

    @property
    def part(self) -> Checkpoint | None:
        """What the checkpoint tells of rows that were dropped, for whoever looks at rw_event_logs."""
        if not self._late:
            return None
        self._runtime.metrics.late_rows.add(self._late, relation=self._table)
        log.warning("table %s: %d rows below the watermark were dropped", self._table, self._late)
        info = {"table": self._table, "rows": self._late, "epoch": self.barrier.epoch}
        return Checkpoint(events=(Event(physical_ms(self.barrier.epoch), "LATE_ROWS_DROPPED", info),))


def _scalar(number: int, type_: SqlType) -> pa.Scalar:
    if type_.kind is Kind.DATE:
        return pa.scalar(number // MICROS_PER_DAY, pa.int32()).cast(pa.date32())
    if type_.is_integer:
        return pa.scalar(number, type_.arrow)
    return pa.scalar(number, pa.int64()).cast(pa.timestamp("us")).cast(type_.arrow)


__all__ = ["Arrivals", "Watermark"]
