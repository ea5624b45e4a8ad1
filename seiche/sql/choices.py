"""Choices: CASE and its relatives, whose branches come to one common type."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import DatetimeOutOfRange, InvalidText, NumericOutOfRange, SyntaxError_
from seiche.sql import operators
from seiche.sql.binder import Binder
from seiche.sql.casts import common_type, convert, settle
from seiche.sql.nodes import call, case, is_unknown, null, raising, type_of, typed
from seiche.sql.places import place_of, pointing_at
from seiche.types import NULL


def case_of(binder: Binder, node: exp.Case) -> exp.Expr:
    operand = node.this
    conditions: list[exp.Expr] = []
    values: list[exp.Expr] = []
    for branch in node.args["ifs"]:
        if operand is None:
            conditions.append(binder.condition(branch.this, "CASE/WHEN"))
        else:
            tested, wanted = binder.bind(operand), binder.bind(branch.this)
            with pointing_at(branch):
                conditions.append(operators.compare(exp.EQ, tested, wanted, binder.settings))
        values.append(_branch(binder, branch.args["true"]))
    default = node.args.get("default")
    last = _branch(binder, default) if default is not None else typed(exp.Null(), NULL)
    last, *converted = unified(binder, [last, *values], "CASE")  # in PostgreSQL's order
    branches = list(zip(conditions, converted, strict=True))
    return case(type_of(last), branches, last if default is not None else None)


def _branch(binder: Binder, node: exp.Expr) -> exp.Expr:
    """A branch that perhaps no row takes: in a query, a cast of a literal that is no value of the type fails only
    where it is taken."""
    try:
        return binder.bind(node)
    except (InvalidText, NumericOutOfRange, DatetimeOutOfRange) as error:
        cast = node.unnest()
        if not (binder.settings.strict and isinstance(cast, exp.Cast) and isinstance(cast.this, exp.Literal)):
            raise
        untold = cast.copy()
        untold.set("this", exp.Null())
        return raising(error.message, type_of(binder.bind(untold)))


def unified(binder: Binder, nodes: Sequence[exp.Expr], what: str) -> list[exp.Expr]:
    type_ = common_type([type_of(node) for node in nodes], what, [place_of(node) for node in nodes])
    return [convert(node, type_, binder.settings) for node in nodes]


def coalesce(binder: Binder, arguments: Sequence[exp.Expr]) -> exp.Expr:
    if not arguments:
        raise SyntaxError_('syntax error at or near ")"')
    first, *others = arguments
    nodes = unified(binder, [binder.bind(first), *(_branch(binder, each) for each in others)], "COALESCE")
    return typed(exp.Coalesce(this=nodes[0], expressions=nodes[1:]), type_of(nodes[0]))


def nullif(binder: Binder, arguments: Sequence[exp.Expr]) -> exp.Expr:
    if len(arguments) != 2:
        raise SyntaxError_("NULLIF takes two arguments")
    left, right = (binder.bind(a) for a in arguments)
    same = operators.compare(exp.EQ, left, right, binder.settings)
    kept = (
        convert(left, type_of(right), binder.settings)
        if is_unknown(left) and not is_unknown(right)
        else settle(left, binder.settings)
    )
    return case(type_of(kept), [(same, null(type_of(kept)))], kept.copy())


def extreme(binder: Binder, name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    nodes = unified(binder, [binder.bind(a) for a in arguments], name.upper())
    return nodes[0] if len(nodes) == 1 else call(type_of(nodes[0]), name, *nodes)
