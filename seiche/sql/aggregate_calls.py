"""Aggregate calls: what stands in one (DISTINCT, ORDER BY, FILTER, WITHIN GROUP) is bound for `sql/aggregates.py`."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import GroupingError, InvalidColumnReference, WrongObjectType
from seiche.sql.aggregates import AggregateCall, aggregate, is_aggregate
from seiche.sql.binder import Binder, Clause
from seiche.sql.calls import call_of
from seiche.sql.casts import settle
from seiche.sql.collecting import HYPOTHETICAL, ORDERED, ORDERED_SETS
from seiche.sql.functions import undefined
from seiche.sql.order_keys import order_key
from seiche.sql.places import begin_of


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
    if name == "count" and not items:
        raise WrongObjectType("count(*) must be used to call a parameterless aggregate function")
    bound = [] if star else [inside.bind(item) for item in items if not isinstance(item, exp.Star)]
    if distinct:
        items_bound = [settle(item, binder.settings) for item in bound]
        bound = items_bound
    sorted_by = [inside.ordered(item) for item in ordered]
    for key, item in zip(sorted_by, ordered, strict=True):
        if distinct and name not in ORDERED and all(order_key(each) != key.this for each in bound):
            raise InvalidColumnReference(
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                position=begin_of(item),
            )
    made = AggregateCall(
        name,
        bound,
        star=star,
        distinct=distinct,
        order=sorted_by,
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
    name, arguments = found
    if name not in ORDERED_SETS and name not in HYPOTHETICAL:
        ordered = [each.this for each in node.expression.expressions]
        raise undefined(name, [binder.bind(each) for each in (*arguments, *ordered)])
    return aggregate_of(binder, name, arguments, condition, node.expression.expressions)
