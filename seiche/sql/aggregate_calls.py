"""Aggregate calls: what stands in one (DISTINCT, ORDER BY, FILTER, WITHIN GROUP) is bound for `sql/aggregates.py`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import GroupingError, WrongObjectType
from seiche.sql.aggregates import AggregateCall, aggregate, is_aggregate
from seiche.sql.binder import Binder, Clause
from seiche.sql.calls import call_of
from seiche.sql.casts import settle
from seiche.sql.collecting import HYPOTHETICAL, ORDERED
from seiche.sql.functions import undefined


def aggregate_of(
    binder: Binder,
    name: str,
    arguments: Sequence[exp.Expr],
    condition: exp.Expr | None,
    order: Sequence[exp.Expr],
    arguments_in: Clause = Clause.AGGREGATE,
) -> exp.Expr:
    if not binder.clause.aggregates:
        if binder.clause is Clause.AGGREGATE:
            raise GroupingError("aggregate function calls cannot be nested")
        raise GroupingError(f"aggregate functions are not allowed in {binder.clause.value}")
    inside = binder.within(arguments_in)
    distinct = False
    items = list(arguments)
    ordered = list(order)
    # DISTINCT wraps the arguments and ORDER BY hangs on one of them.
    for index, item in enumerate(items):
        if isinstance(item, exp.Order):
            ordered += item.expressions
            items[index] = item = item.this
        if isinstance(item, exp.Distinct):
            distinct = True
            items[index : index + 1] = item.expressions
    star = len(items) == 1 and isinstance(items[0], exp.Star)
    bound = [] if star else [inside.bind(item) for item in items if not isinstance(item, exp.Star)]
    if distinct:
        items_bound = [settle(item, binder.settings) for item in bound]
        bound = items_bound
    made = AggregateCall(
        name,
        bound,
        star=star or (name == "count" and not items),
        distinct=distinct,
        order=[inside.ordered(item) for item in ordered],
        condition=None if condition is None else inside.condition(condition, "FILTER"),
    )
    special = HYPOTHETICAL.get(name) or ORDERED.get(name)
    return special(made, binder.settings) if special else aggregate(made, binder.settings)


def filtered(binder: Binder, node: exp.Filter) -> exp.Expr:
    condition = node.expression.this
    inner = node.this
    if isinstance(inner, exp.WithinGroup):
        return within_group(binder, inner, condition)
    found = call_of(inner)
    if found is None or not is_aggregate(found[0]):
        raise WrongObjectType("FILTER specified, but the function is not an aggregate function")
    return aggregate_of(binder, found[0], found[1], condition, ())


def within_group(binder: Binder, node: exp.WithinGroup, condition: exp.Expr | None = None) -> exp.Expr:
    found = call_of(node.this)
    if found is None or not (is_aggregate(found[0]) or found[0] in HYPOTHETICAL):
        raise undefined(node.this.name.lower(), [])
    return aggregate_of(binder, found[0], found[1], condition, node.expression.expressions)
