"""Intervals that are equal but not alike: '24:00:00' is '1 day', so both are one group and one distinct value.

Spark compares the stored parts, so groups are made by the length instead. What is shown for a group is that of its
members with the most months, then the most days: a choice that does not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from seiche.sql.aggregates import is_aggregate_node, marked
from seiche.sql.bound import Bound, aliased, derived_table
from seiche.sql.intervals import length
from seiche.sql.nodes import type_of, typed
from seiche.types import INTERVAL, Kind


def group_by_length(select: exp.Select, keys: Sequence[exp.Expr]) -> None:
    """GROUP BY of plain keys; in grouping sets the parts of an interval are compared."""
    clause = select.args.get("group")
    if clause is None or any(isinstance(key, exp.GroupingSets | exp.Rollup | exp.Cube) for key in clause.expressions):
        return
    spans = [key for key in clause.expressions if _is_interval(key)]
    if not spans:
        return
    clause.set("expressions", [length(key) if _is_interval(key) else key for key in clause.expressions])
    having = select.args.get("having")
    for root in (*select.expressions, *keys, *((having,) if having is not None else ())):
        _show_member(root, spans)


def distinct_by_length(bound: Bound, ref_of: Callable[[str], str]) -> Bound:
    """The distinct rows of a query that has no DISTINCT yet, where one of its columns is an interval."""
    inner, outer = ref_of("all"), ref_of("distinct")
    columns = [typed(exp.column(c.alias, table=inner, quoted=True), c.type) for c in bound.columns]
    groups = exp.Select(
        expressions=[
            aliased(_member(column) if _is_interval(column) else column, c.alias)
            for column, c in zip(columns, bound.columns, strict=True)
        ],
        group=exp.Group(expressions=[length(column) if _is_interval(column) else column.copy() for column in columns]),
    ).from_(derived_table(bound.ast, inner), copy=False)
    shown = [aliased(typed(exp.column(c.alias, table=outer, quoted=True), c.type), c.alias) for c in bound.columns]
    return Bound(exp.Select(expressions=shown).from_(derived_table(groups, outer), copy=False), bound.columns)


def has_interval(bound: Bound) -> bool:
    return any(column.type.kind is Kind.INTERVAL for column in bound.columns)


def _is_interval(node: exp.Expr) -> bool:
    inner = node.unnest()  # parentheses have no type of their own
    return type_of(inner).kind is Kind.INTERVAL


def _member(span: exp.Expr) -> exp.Expr:
    return marked(exp.Max(this=span.copy()), INTERVAL)


def _show_member(root: exp.Expr, spans: Sequence[exp.Expr]) -> None:
    for child in list(root.iter_expressions()):
        if any(child == span for span in spans):
            child.replace(_member(child))
        elif not is_aggregate_node(child):
            _show_member(child, spans)


__all__ = ["distinct_by_length", "group_by_length", "has_interval"]
