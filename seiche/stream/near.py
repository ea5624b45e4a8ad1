"""Filters and projections of few rows that are on the driver already, by Arrow instead of Spark.

A row must stay in its vnode: the key is that of the input. What can be evaluated, `seiche.stream.near_values` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from sqlglot import exp

from seiche.model import OP, VNODE, RelationId, RelationSchema
from seiche.plan.algebra import Plan, Scan, Select
from seiche.storage.changes import Changes
from seiche.stream.near_values import Beyond, Row, fulfilled, shown


def mapped(plan: Plan, schema: RelationSchema, changes: Mapping[RelationId, Changes]) -> pa.Table | None:
    """The changes of a Select with `_vnode` and `_op`, as rows of `schema`; None when Spark has to tell."""
    if not isinstance(plan, Select) or len(plan.inputs) != 1 or not isinstance(plan.inputs[0], Scan):
        return None
    scan = plan.inputs[0]
    changed = changes.get(scan.relation)
    if changed is None or changed.table is None:
        return None
    names = {item.field.name: item.expr.name for item in plan.items if isinstance(item.expr, exp.Column)}
    keeps_key = [names.get(each) for each in schema.key] == list(scan.schema.key)
    if not keeps_key or not schema.shares_vnodes_with(scan.schema):
        return None
    rows = _fulfilling(plan, scan, changed.table)
    found = _items(plan, scan, rows) if rows is not None else None
    if rows is None or found is None:
        return None
    return pa.table([*(found[each] for each in schema.names), rows[VNODE], rows[OP]], names=[*schema.names, VNODE, OP])


def selected(plan: Select, scan: Scan, rows: pa.Table) -> pa.Table | None:
    """The fields and `_op` of a Select over rows of its only input; None when Spark has to tell."""
    kept = _fulfilling(plan, scan, rows)
    found = _items(plan, scan, kept) if kept is not None else None
    return pa.table({**found, OP: kept[OP]}) if kept is not None and found is not None else None


def _fulfilling(plan: Select, scan: Scan, rows: pa.Table) -> pa.Table | None:
    kept: pa.Table | None = rows
    for condition in plan.conjuncts:
        kept = filtered(condition, kept, scan.schema) if kept is not None else None
    return kept


def _items(plan: Select, scan: Scan, rows: pa.Table) -> dict[str, Any] | None:
    row = _row(rows, scan.schema)
    try:
        return {item.field.name: shown(item, row, rows.num_rows) for item in plan.items}
    except Beyond:
        return None


def filtered(condition: exp.Expr, rows: pa.Table, schema: RelationSchema) -> pa.Table | None:
    """The rows of an input that fulfil a condition on its own columns; None when Spark has to tell."""
    try:
        return rows.filter(fulfilled(condition, _row(rows, schema), rows.num_rows))
    except Beyond:
        return None


def _row(rows: pa.Table, schema: RelationSchema) -> Row:
    return Row(rows, lambda node: (node.name, schema.column(node.name).type))


__all__ = ["filtered", "mapped", "selected"]
