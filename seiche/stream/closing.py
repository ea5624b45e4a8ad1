"""Closing: rows that come once a watermark has passed them, and never change.

With b the old and b' the new value of the bound, the changes of what is closed of an input A are

    those of dA below b', and of the old A:  +1 for rows from b up to b'

Rows of the second kind are looked up by that range. Where the field is computed, as the start of a window is, the range
is carried over to the stored column that it is computed from, as far as the two may be apart. Where b' is b, and no row
of dA that is on the driver lies below it, there is nothing to do, and Spark is not asked.

Everything that is asked for is text in SQL.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from seiche.model import Epoch, RelationId
from seiche.plan.algebra import Closing, Plan, Scan, Select, UnionAll, field_of, input_index, rewrite_columns
from seiche.plan.marks import Beyond, bound_sql, literal, number_of, numbers_of, reach
from seiche.stream.marks import numbers
from seiche.stream.runtime import EpochReads


def bound_at(plan: Closing, reads: EpochReads, epoch: Epoch) -> int | None:
    """What the bound comes to at an epoch, as a number; None while nothing can be closed."""

    def known(relation: RelationId) -> int | None:
        return reads.watermark(relation, epoch)

    try:
        return number_of(plan.bound, known)
    except Beyond:
        return reads.runtime.moment(bound_sql(plan.bound, known))


def held(plan: Closing, query: str, bound: int | None) -> str:
    """The rows of a query that are closed."""
    return f"SELECT * FROM ({query}) AS x WHERE {_below(plan, bound)}"


def between(plan: Closing, rows: str, old: int | None, new: int | None) -> str:
    """Of the input's weighted rows those that close as the bound moves."""
    since = "" if old is None else f" AND `{plan.field}` >= {literal(old, field_of(plan, plan.field).type)}"
    return f"SELECT * FROM ({rows}) AS x WHERE {_below(plan, new)}{since}"


def _below(plan: Closing, bound: int | None) -> str:
    return "false" if bound is None else f"`{plan.field}` < {literal(bound, field_of(plan, plan.field).type)}"


def narrowed(plan: Closing, old: int | None, new: int) -> tuple[Plan, str | None]:
    """The input with conditions that all rows fulfil which close as the bound moves, and one for a Scan to skip by."""
    source = plan.input
    if isinstance(source, Scan):
        type_ = field_of(source, plan.field).type
        since = "" if old is None else f"`{plan.field}` >= {literal(old, type_)} AND "
        return source, f"{since}`{plan.field}` < {literal(new, type_)}"
    return _narrowed(source, plan.field, old, new), None


def _narrowed(plan: Plan, field: str, old: int | None, new: int) -> Plan:
    """The plan with a condition on the stored column that a field is computed from, for the field to be in a range."""
    match plan:
        case UnionAll():
            return replace(plan, inputs=tuple(_narrowed(child, field, old, new) for child in plan.inputs))
        case Select():
            found = reach(_shown(plan, field))
            if found is None:
                return plan
            low, high = None if old is None else old + found.low, new + found.high
            source = plan.inputs[input_index(found.column)]
            if isinstance(source, (UnionAll, Select)) and len(plan.inputs) == 1:
                return replace(plan, inputs=(_narrowed(source, found.column.name, low, high),))
            type_ = field_of(source, found.column.name).type

            def at(number: int) -> exp.Expr:
                return exp.maybe_parse(literal(number, type_), dialect="spark")

            conditions: list[exp.Expr] = [exp.LTE(this=found.column.copy(), expression=at(high))]
            if low is not None:
                conditions.append(exp.GTE(this=found.column.copy(), expression=at(low)))
            return replace(plan, conjuncts=(*plan.conjuncts, *conditions))
        case _:
            return plan


def _shown(plan: Select, field: str) -> exp.Expr:
    return next(item.expr for item in plan.items if item.field.name == field)


def may_concern(plan: Closing, reads: EpochReads, bound: int | None) -> bool:
    """Whether a change of the input may lie below the bound, by what is on the driver."""
    return bound is not None and _may_lie_below(plan.input, exp.column(plan.field), reads, bound)


def _may_lie_below(plan: Plan, value: exp.Expr, reads: EpochReads, bound: int) -> bool:
    """As `may_concern`, for an expression over one field of a plan."""
    found = reach(value)
    if found is None:
        return True
    match plan:
        case Scan():
            return _any_below(plan, found.column.name, reads, value, bound)
        case UnionAll():
            return any(_may_lie_below(child, value, reads, bound) for child in plan.inputs)
        case Select(inputs=(child,)):
            shown = _shown(plan, found.column.name)
            return _may_lie_below(child, rewrite_columns(value, lambda _: exp.paren(shown.copy())), reads, bound)
        case _:
            return True


def _any_below(scan: Scan, column: str, reads: EpochReads, shown: exp.Expr, bound: int) -> bool:
    changes = reads.changed(scan.relation)
    if changes is None or changes.table is None:
        return changes is not None
    try:
        return bool((numbers_of(shown, numbers(changes.table[column])) < bound).any())
    except Beyond:
        return True


__all__ = ["between", "bound_at", "held", "may_concern", "narrowed"]
