"""Typed Spark expressions: sqlglot nodes that carry their SqlType, and the few ways to build them.

Every bound node has its type in `meta["sql_type"]`. A node that can fail at run time is built here in one of two
forms: strict, where Spark raises, or tolerant, where it yields NULL and is marked `meta["fallible"]`. The mark
promises that the node is NULL, with all its operands not NULL, exactly where the strict form raises;
`sql/failures.py` relies on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as _field
from functools import cache
from typing import TypeVar

from sqlglot import exp

from seiche.sql.parameters import Parameters
from seiche.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, Kind, SqlType

N = TypeVar("N", bound=exp.Expr)

TYPE = "sql_type"
FALLIBLE = "fallible"
ONCE = "once"  # the mark of what `once` made
BY_ITSELF = "by itself"  # the mark of what `each_by_itself` made
_LARGE = 30
_ONCE = re.compile(r"once(\d+)").fullmatch


@dataclass(frozen=True, slots=True)
class Settings:
    """What an expression's meaning depends on besides its text.

    `now_ms` is the statement's time; None keeps `seiche_now()` in the query, for a view that is evaluated later.
    `strict` raises at run time where PostgreSQL raises; otherwise such an expression is NULL. `parameters` are those
    of the statement, None where it may have none. `user` asks in `database`, and `schema` is the first one of the
    search path that exists. `past` lets relations be read as of an earlier time.
    """

    timezone: str = "UTC"
    now_ms: int | None = None
    strict: bool = True
    parameters: Parameters | None = _field(default=None, compare=False)
    user: str = "root"
    database: str = "dev"
    schema: str | None = "public"
    past: bool = False


def typed(node: N, type_: SqlType) -> N:
    """The node with its type. An expression has no length: that belongs to columns and casts."""
    node.meta[TYPE] = type_.bare
    return node


def type_of(node: exp.Expr) -> SqlType:
    type_ = node.meta.get(TYPE)
    assert isinstance(type_, SqlType), f"untyped node {node!r}"
    return type_


def kind_of(node: exp.Expr) -> Kind | None:
    """The kind of a node's type, which parentheses may carry or not; None for a node without a type."""
    for each in (node, node.unnest()):
        found = each.meta.get(TYPE)
        if isinstance(found, SqlType):
            return found.kind
    return None


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND joins, without the parentheses around each."""
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        return conjuncts(inner.left) + conjuncts(inner.right)
    return [inner]


def factored(condition: exp.Expr) -> list[exp.Expr]:
    """As `conjuncts`, with what every side of an OR demands as conditions of their own: a join is found by them."""
    return [each for part in conjuncts(condition) for each in _factored(part)]


def _factored(condition: exp.Expr) -> list[exp.Expr]:
    sides = [conjuncts(each) for each in disjuncts(condition)]
    common = [each for each in sides[0] if all(each in side for side in sides[1:])]
    if len(sides) == 1 or not common:
        return [condition]
    others = [[_wrapped(each) for each in side if each not in common] for side in sides]
    rest = [disjunction([conjunction(side) for side in others])] if all(others) else []
    return [*(each.copy() for each in common), *rest]


def disjuncts(condition: exp.Expr) -> list[exp.Expr]:
    inner = condition.unnest()
    return disjuncts(inner.left) + disjuncts(inner.right) if isinstance(inner, exp.Or) else [inner]


def _wrapped(condition: exp.Expr) -> exp.Expr:
    return typed(exp.Paren(this=condition.copy()), BOOLEAN)


def fallible(node: N) -> N:
    node.meta[FALLIBLE] = True
    return node


def is_unknown(node: exp.Expr) -> bool:
    """Whether it is a bare NULL or a quoted literal that no context has given a type yet."""
    return type_of(node).kind is Kind.NULL


def call(type_: SqlType, name: str, *args: exp.Expr) -> exp.Expr:
    """A Spark function by its own name, out of reach of sqlglot's rewriting."""
    return typed(exp.Anonymous(this=name, expressions=list(args)), type_)


def attempt(type_: SqlType, name: str, *args: exp.Expr) -> exp.Expr:
    """A Spark function that yields NULL where its strict sibling raises."""
    return fallible(call(type_, name, *args))


@cache
def _data_type(spark: str) -> exp.DataType:
    return exp.DataType.build(spark, dialect="spark")


def spark_cast(node: exp.Expr, type_: SqlType, spark: str | None = None) -> exp.Expr:
    """A plain Spark cast; it must not be able to fail unless the settings are strict."""
    return typed(exp.Cast(this=node, to=_data_type(spark or type_.spark).copy()), type_)


def spark_try_cast(node: exp.Expr, type_: SqlType, spark: str | None = None) -> exp.Expr:
    return fallible(typed(exp.TryCast(this=node, to=_data_type(spark or type_.spark).copy(), safe=True), type_))


def quiet_cast(node: exp.Expr, type_: SqlType) -> exp.Expr:
    """A cast whose NULL is not a failure: the caller goes another way then."""
    return typed(exp.TryCast(this=node, to=_data_type(type_.spark).copy(), safe=True), type_)


def checked_cast(node: exp.Expr, type_: SqlType, settings: Settings, spark: str | None = None) -> exp.Expr:
    """A Spark cast that can fail: raising or NULL, as the settings say."""
    return (spark_cast if settings.strict else spark_try_cast)(node, type_, spark)


def binary(kind: type[exp.Binary], type_: SqlType, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return typed(exp.Paren(this=typed(kind(this=left, expression=right), type_)), type_)


def text(value: str) -> exp.Expr:
    return typed(exp.Literal.string(value), VARCHAR)


def integer(value: int, type_: SqlType = INTEGER) -> exp.Expr:
    literal: exp.Expr = exp.Literal.number(str(abs(value)))
    if value < 0:
        literal = exp.Neg(this=literal)
    if type_ is INTEGER and -(2**31) < value < 2**31:
        return typed(literal, INTEGER)
    return spark_cast(literal, type_)


def bigint(value: int) -> exp.Expr:
    return integer(value, BIGINT)


def boolean(value: bool) -> exp.Expr:
    return typed(exp.Boolean(this=value), BOOLEAN)


def null(type_: SqlType) -> exp.Expr:
    if type_.kind is Kind.NULL:
        return typed(exp.Null(), type_)
    return spark_cast(exp.Null(), type_)


def is_null(node: exp.Expr) -> exp.Expr:
    return typed(exp.Is(this=node, expression=exp.Null()), BOOLEAN)


def not_null(node: exp.Expr) -> exp.Expr:
    return typed(exp.Not(this=is_null(node)), BOOLEAN)


def negation(node: exp.Expr) -> exp.Expr:
    return typed(exp.Not(this=exp.Paren(this=node) if isinstance(node, exp.Connector) else node), BOOLEAN)


def conjunction(nodes: Sequence[exp.Expr]) -> exp.Expr:
    return _joined(exp.And, nodes, True)


def disjunction(nodes: Sequence[exp.Expr]) -> exp.Expr:
    return _joined(exp.Or, nodes, False)


def _joined(kind: type[exp.Binary], nodes: Sequence[exp.Expr], empty: bool) -> exp.Expr:
    """The operands in one chain: Spark's parser reads what stands in parentheses once more for each level of them."""
    operands = [operand for node in nodes for operand in _operands(kind, node)]
    if not operands:
        return boolean(empty)
    result = operands[0]
    for operand in operands[1:]:
        result = typed(kind(this=result, expression=operand), BOOLEAN)
    return result


def _operands(kind: type[exp.Binary], node: exp.Expr) -> list[exp.Expr]:
    """What a chain of this kind is made of, in order; one of the other kind stands in parentheses."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        bare = each.unnest()
        if isinstance(bare, kind):
            waiting += [bare.expression, bare.this]
        elif isinstance(each, exp.Connector):
            found.append(typed(exp.Paren(this=each), BOOLEAN))
        else:
            found.append(each)
    return found


def case(type_: SqlType, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None = None) -> exp.Expr:
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return typed(exp.Case(ifs=ifs, default=default), type_)


def each_by_itself(node: exp.Expr) -> exp.Expr:
    """An array under a condition, none of whose elements fails: whoever wants one need not have the others made."""
    node.meta[BY_ITSELF] = True
    return node


def element_by_itself(node: exp.Expr, place: int) -> exp.Expr | None:
    """An element of such an array, counted from 1; None for any other, and where there is none."""
    inner = node.unnest()
    if not inner.meta.get(BY_ITSELF):
        return None
    (only,) = inner.args["ifs"]
    items = only.args["true"].expressions
    if not 1 <= place <= len(items):
        return None
    item = items[place - 1].copy()
    return case(type_of(item), [(only.this.copy(), item)])


def guarded(value: exp.Expr, bad: exp.Expr, message: str | exp.Expr, settings: Settings) -> exp.Expr:
    """The value, except where `bad` holds: there the strict form raises `message`, the tolerant one is NULL."""
    type_ = type_of(value)
    if settings.strict:
        return case(type_, [(bad, raising(message, type_))], value)
    return fallible(case(type_, [(negation(bad), value)]))


def raising(message: str | exp.Expr, type_: SqlType) -> exp.Expr:
    """Of the given type, but an error wherever it is evaluated."""
    told = text(message) if isinstance(message, str) else message
    return spark_cast(typed(exp.Anonymous(this="raise_error", expressions=[told]), type_), type_)


def let(name: str, node: exp.Expr, type_: SqlType, body: exp.Expr) -> exp.Expr:
    """`body`, of the given type, with the lambda variable `name` standing for `node`, which is evaluated once."""
    made = call(type_, "transform", call(type_of(node), "array", node), lambda_(body, name))
    return call(type_, "get", made, integer(0))


def once(node: exp.Expr, type_: SqlType, make: Callable[[exp.Expr], exp.Expr], *beside: exp.Expr) -> exp.Expr:
    """`make(node)`, of the given type, which mentions its argument several times.

    A large one is evaluated once and mentioned by a name, so that what is nested does not grow by powers. `beside` are
    the other nodes that `make` uses.
    """
    if sum(1 for _ in node.walk()) <= _LARGE:
        return make(node)
    taken = [int(found[1]) for each in (node, *beside) for c in each.find_all(exp.Column) if (found := _ONCE(c.name))]
    name = f"once{max(taken, default=0) + 1}"
    made = let(name, node, type_, make(variable(name, type_of(node))))
    made.meta[ONCE] = True
    return made


def unnamed_subqueries(query: exp.Expr) -> exp.Expr:
    """The query, changed in place, with each node of `once` written out that a subquery is a part of.

    Spark takes none in a function with a lambda, and evaluates equal ones once anyway.
    """
    named = [node for node in query.find_all(exp.Anonymous) if node.meta.get(ONCE) and node.find(exp.Query)]
    for node in reversed(named):  # the inner ones first
        listed, function = node.expressions[0].expressions
        (meant,), name, body = listed.expressions, function.expressions[0].name, function.this
        for column in [c for c in body.find_all(exp.Column) if c.name == name and not c.table]:
            if column is body:
                body = meant.copy()
            else:
                column.replace(meant.copy())
        node.replace(body)
    return query


def lambda_(body: exp.Expr, *names: str) -> exp.Lambda:
    return exp.Lambda(this=body, expressions=[exp.to_identifier(name) for name in names])


def comparison(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return binary(kind, BOOLEAN, left, right)


def equal(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return comparison(exp.EQ, left, right)


def field(node: exp.Expr, name: str, type_: SqlType) -> exp.Expr:
    """A field of a struct."""
    return typed(exp.Dot(this=exp.Paren(this=node), expression=exp.to_identifier(name, quoted=True)), type_)


def transform(node: exp.Expr, variable: str, body: exp.Expr, type_: SqlType) -> exp.Expr:
    """Spark's `transform(array, variable -> body)`."""
    return call(type_, "transform", node, lambda_(body, variable))


def variable(name: str, type_: SqlType) -> exp.Expr:
    """A lambda's variable."""
    return typed(exp.Column(this=exp.to_identifier(name)), type_)
