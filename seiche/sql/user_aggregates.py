"""Aggregates that users wrote in Python.

A call collects the rows of its arguments, and the function that Spark knows walks over them: `create_state`,
`accumulate` for each row, `finish`. So it is maintained as `array_agg` is, by the groups that a change affects, and
`retract` is never needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from seiche.sql import aggregate_calls
from seiche.sql.aggregates import is_aggregate
from seiche.sql.binder import Binder, Clause
from seiche.sql.calls import call_of
from seiche.sql.dialect import Seiche
from seiche.sql.functions import undefined
from seiche.sql.nodes import call
from seiche.sql.places import unplaced
from seiche.sql.user_functions import UserFunction

_COLLECT = "array_agg"


def user_aggregate(binder: Binder, name: str, arguments: Sequence[exp.Expr]) -> UserFunction | None:
    """The user's aggregate of a name, if it is one. No two have the same number of parameters."""
    named = binder.functions.functions(name) if binder.functions is not None else ()
    found = [each for each in named if each.aggregate]
    return next((each for each in found if len(each.parameters) == len(arguments)), found[0] if found else None)


def aggregated(
    binder: Binder,
    function: UserFunction,
    arguments: Sequence[exp.Expr],
    condition: exp.Expr | None = None,
    arguments_in: Clause = Clause.AGGREGATE,
) -> exp.Expr:
    """The call over the rows that `array_agg` collects."""
    order: list[exp.Expr] = []
    given = list(arguments)
    for index, item in enumerate(given):
        if isinstance(item, exp.Order):
            order += item.expressions
            given[index] = item.this
    if len(given) != len(function.parameters):
        raise undefined(function.name, [binder.within(arguments_in).bind(each) for each in given], [function.name])
    typed = [_as_type(each, str(type_)) for each, (_, type_) in zip(given, function.parameters, strict=True)]
    assert binder.functions is not None
    binder.functions.call(function)
    row = exp.Anonymous(this="row", expressions=typed)
    rows = aggregate_calls.aggregate_of(binder, _COLLECT, [row], condition, order, arguments_in)
    if function.volatile and function.name not in binder.usage.volatile:
        binder.usage.volatile.append(function.name)
    return call(function.returns, function.spark_name(raises=binder.settings.strict), rows)


def filtered(binder: Binder, node: exp.Filter) -> exp.Expr:
    """An aggregate with FILTER, be it the user's own or not."""
    found = call_of(node.this)
    own = user_aggregate(binder, *found[:2]) if found is not None and not is_aggregate(found[0]) else None
    if found is None or own is None:
        return aggregate_calls.filtered(binder, node)
    return aggregated(binder, own, found[1], node.expression.this)


def _as_type(node: exp.Expr, type_: str) -> exp.Expr:
    cast = unplaced(sqlglot.parse_one(f"CAST(value AS {type_})", dialect=Seiche))
    cast.set("this", node.copy())
    return cast
