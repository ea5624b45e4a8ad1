"""Groups kept by `seiche.stream.merge` over epochs, without Spark: rows come and go, and stored rows are remembered.

Stands in for what the executors do: the parts of each changed row, and groups evaluated anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seiche.model import EPOCH, OP, VNODE
from seiche.plan.algebra import Aggregate, Select
from seiche.plan.state import SumColumn, group_state
from seiche.storage.changes import arrow_schema
from seiche.stream.merge import REDO, Parts, SparkPart, can_merge, merge
from tests.unit.plan.harbour import Harbour

Row = dict[str, Any]


class Groups:
    """The stored groups of one query over one table."""

    def __init__(self, query: str) -> None:
        (fragment,) = Harbour().fragments(query)
        assert isinstance(fragment.plan, Aggregate)
        self.aggregate, self.schema = fragment.plan, fragment.schema
        self.state = group_state(self.aggregate)
        assert can_merge(self.aggregate, self.state)
        self.stored = arrow_schema(self.schema).empty_table()
        self.epoch = 0
        source = self.aggregate.input
        assert isinstance(source, Select)
        self._columns = {item.field.name: item.expr for item in source.items}

    def step(self, *changes: tuple[int, Row]) -> pa.Table | None:
        """Merges signed rows of the table; what leaves and appears, also kept as stored. None when Arrow cannot."""
        self.epoch += 1
        parts = Parts.of(self.aggregate, self._parts(changes))
        merged = merge(
            self.aggregate, self.state, self.schema, parts, self.stored, SparkPart(self._evaluate, _no_vnodes)
        )
        if merged is not None:
            stamped = merged.drop_columns([REDO]).append_column(EPOCH, pa.array([self.epoch] * len(merged), pa.int64()))
            self.stored = pa.concat_tables([self.stored, stamped.select(self.stored.column_names)])
        return merged

    def alive(self) -> list[Row]:
        """The rows that the signs of all that was stored add up to; visible columns only."""
        names = [column.name for column in self.schema.visible]
        found: list[Row] = []
        for row in self.stored.to_pylist():
            shown = {name: row[name] for name in names}
            if row[OP] > 0:
                found.append(shown)
            else:
                found.remove(shown)
        return sorted(found, key=repr)

    def fold(self) -> None:
        """Keeps the rows alive alone, as a base would: their epoch is 0."""
        last: dict[str, Row] = {}
        for row in self.stored.to_pylist():
            last[repr([row[name] for name in self.schema.key])] = row
        alive = [row | {EPOCH: 0} for row in last.values() if row[OP] > 0]
        self.stored = pa.Table.from_pylist(alive, schema=arrow_schema(self.schema))

    def _parts(self, changes: Sequence[tuple[int, Row]]) -> pa.Table:
        """What `parts_sql` asks Spark for."""
        columns: dict[str, pa.Array] = {}
        for field in self.aggregate.keys:
            columns[field.name] = pa.array([self._value(field.name, row) for _, row in changes], field.type.arrow)
        columns[VNODE] = pa.array([7] * len(changes), pa.int16())
        columns[OP] = pa.array([op for op, _ in changes], pa.int8())
        for each in self.state.sums:
            columns[each.name] = pa.array([self._part(each, op, row) for op, row in changes], each.type.arrow)
        for extreme in self.state.extremes:
            values = [self._value(extreme.argument, row) for _, row in changes]
            columns[extreme.name] = pa.array(values, extreme.type.arrow)
        return pa.table(columns)

    def _value(self, field: str, row: Row) -> Any:
        column = self._columns[field].find(exp.Column)
        return row[column.name] if column is not None else 0  # the constant key of a query without GROUP BY

    def _part(self, each: SumColumn, op: int, row: Row) -> Any:
        kind, name = each.name[1], each.name[3:]
        value = self._value(name, row)
        exact = _as_decimal(value) if isinstance(value, float) else None
        match kind:
            case "n":
                return op if value is not None else 0
            case "s":
                return op * value if value is not None else 0
            case "d":
                return op * exact if exact is not None else Decimal(0)
            case "u":
                return 0 if value is None or (exact is not None and float(exact) == value) else op
            case "f":
                return op if value is False else 0
            case "t":
                return op if value is True else 0
        raise AssertionError(each)

    def _evaluate(self, states: pa.Table) -> pa.Table:
        raise AssertionError("the items are plain results of calls")


def _as_decimal(value: float) -> Decimal | None:
    """The value as decimal(38, 20), rounded; None where it does not fit."""
    if not abs(value) < 1e18:
        return None
    return Decimal(repr(value)).quantize(Decimal("1e-20"), context=Context(prec=60))


def _no_vnodes(keys: pa.Table) -> pa.ChunkedArray:
    raise AssertionError("every part has its vnode")
