"""Expressions over few rows on the driver, by Arrow instead of Spark.

Handing rows to Spark, having it plan and fetching them back takes tens of milliseconds, whatever it does with them; a
product of a thousand numbers takes microseconds. But a view must hold what its query says by Spark's evaluation. So
this knows nothing but what has one meaning:

    values       columns, constants; sums, differences and products of integers and of decimals, as long as they keep
                 all their digits; quotients of decimals and of doubles, roundings of decimals; casts between numbers;
                 CASE, COALESCE, NULLIF; the year of a date; the beginning of a text
    conditions   = <> < <= > >= IN within one family of types, LIKE without `_`, IS NULL, a bare
                 boolean column, and AND, OR, NOT over them, three-valued

Whatever else turns up, a NaN or a number that outgrows its type included, is `Beyond`, and Spark's to evaluate.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from seiche.plan.algebra import Item
from seiche.sql.attempts import ATTEMPT
from seiche.stream.near_decimals import (
    ARITHMETIC,
    DIGITS_MAX,
    INTEGERS,
    Beyond,
    Values,
    arithmetic,
    as_decimal,
    quotient,
    rounded,
)
from seiche.types import Kind, SqlType

_INTEGER_TYPES = {
    exp.DataType.Type.SMALLINT: pa.int16(),
    exp.DataType.Type.INT: pa.int32(),
    exp.DataType.Type.BIGINT: pa.int64(),
}
_TIMESTAMP = pa.timestamp("us")

# Kinds whose values Arrow tells apart and sorts as Spark does.
ALIKE = (
    Kind.SMALLINT,
    Kind.INTEGER,
    Kind.BIGINT,
    Kind.NUMERIC,
    Kind.BOOLEAN,
    Kind.VARCHAR,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,
)

_KINDS = frozenset(
    (
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.NUMERIC,
        Kind.DOUBLE,
        Kind.BOOLEAN,
        Kind.VARCHAR,
        Kind.DATE,
        Kind.TIMESTAMP,
    )
)

_COMPARISONS: Mapping[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}
_SIGNS: Mapping[type[exp.Expr], str] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}


class Row:
    """The rows that an expression is evaluated over: `find` gives a column's name in the table and its type."""

    def __init__(
        self,
        rows: pa.Table,
        find: Callable[[exp.Column], tuple[str, SqlType]],
        known: Mapping[str, Values] | None = None,
    ) -> None:
        self._rows = rows
        self._find = find
        self._known = known or {}

    def knowing(self, name: str, values: Values) -> Row:
        """The same rows, and a name for values that were evaluated over them."""
        return Row(self._rows, self._find, {**self._known, name: values})

    def plain(self, node: exp.Column, type_: SqlType) -> pa.ChunkedArray:
        """A column as it is, when it is stored as values of the type are."""
        name, own = self._find(node)
        if (own.spark, own.arrow) != (type_.spark, type_.arrow):
            raise Beyond
        return self._rows[name]

    def column(self, node: exp.Column) -> Values:
        if not node.table and node.name in self._known:
            return self._known[node.name]
        name, type_ = self._find(node)
        if type_.kind not in _KINDS or type_.padded:
            raise Beyond
        values = self._rows[name]
        return values if values.type == type_.arrow else values.cast(type_.arrow)

    def is_null(self, node: exp.Column) -> Values:
        if not node.table and node.name in self._known:
            return pc.is_null(self._known[node.name])
        return pc.is_null(self._rows[self._find(node)[0]])


def shown(item: Item, row: Row, rows: int) -> pa.ChunkedArray | pa.Array:
    """The value of an item for each row, in the form in which its field is stored; raises `Beyond`."""
    if isinstance(item.expr, exp.Column):
        return row.plain(item.expr, item.field.type)
    try:
        found = _value(item.expr, row)
    except pa.ArrowException:  # it does not fit
        raise Beyond from None
    if found.type != item.field.type.arrow or item.field.type.padded or item.field.type.has_length:
        raise Beyond
    return pa.repeat(found, rows) if isinstance(found, pa.Scalar) else found


def fulfilled(node: exp.Expr, row: Row, rows: int) -> pa.ChunkedArray | pa.Array:
    """For each row whether it fulfils a condition: true, false or NULL; raises `Beyond`."""
    try:
        found = _condition(node, row)
    except pa.ArrowException:
        raise Beyond from None
    return pa.repeat(found, rows) if isinstance(found, pa.Scalar) else found


# --- conditions ----------------------------------------------------------------------------------------


def _condition(node: exp.Expr, row: Row) -> Values:
    node = node.unnest()
    match node:
        case exp.And():
            return pc.and_kleene(_condition(node.left, row), _condition(node.right, row))
        case exp.Or():
            return pc.or_kleene(_condition(node.left, row), _condition(node.right, row))
        case exp.Not():
            return pc.invert(_condition(node.this, row))
        case exp.Is() if isinstance(node.expression, exp.Null) and isinstance(node.this, exp.Column):
            return row.is_null(node.this)
        case exp.In() if node.expressions and set(node.args) - {"this", "expressions"} <= _empty(node):
            found = _compared(exp.EQ, node.this, node.expressions[0], row)
            for each in node.expressions[1:]:
                found = pc.or_kleene(found, _compared(exp.EQ, node.this, each, row))
            return found
        case exp.Like():
            return _like(_value(node.this, row), node.expression)
        case exp.Column():
            values = row.column(node)
            if not pa.types.is_boolean(values.type):
                raise Beyond
            return values
        case _ if type(node) in _COMPARISONS:
            assert isinstance(node, exp.Binary)
            return _compared(type(node), node.left, node.right, row)
        case _:
            raise Beyond


def _empty(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if not value}


def _compared(how: type[exp.Expr], left: exp.Expr, right: exp.Expr, row: Row) -> Values:
    sides = _value(left, row), _value(right, row)
    types = given = [each.type for each in sides]
    if all(each in INTEGERS for each in types):
        sides = _cast_both(sides, pa.int64())
    elif all(pa.types.is_decimal(each) or each in INTEGERS for each in types):
        sides = tuple(
            each if pa.types.is_decimal(each.type) else as_decimal(each, INTEGERS[each.type], 0) for each in sides
        )
        types = [each.type for each in sides]
        scale = max(each.scale for each in types)
        digits = max(each.precision - each.scale for each in types) + scale
        if digits > DIGITS_MAX and any(each in INTEGERS for each in given):
            raise Beyond  # Spark would round
        sides = _cast_both(
            sides, pa.decimal128(digits, scale) if digits <= DIGITS_MAX else pa.decimal256(digits, scale)
        )
    elif types[0] != types[1] or pa.types.is_boolean(types[0]) or any(map(_has_nan, sides)):
        raise Beyond
    return _COMPARISONS[how](*sides)


def _cast_both(sides: tuple[Values, Values], type_: pa.DataType) -> tuple[Values, Values]:
    return sides[0].cast(type_), sides[1].cast(type_)


def _has_nan(values: Values) -> bool:
    """Whether there is one, which compares otherwise in Spark than in Arrow."""
    return pa.types.is_floating(values.type) and not isinstance(values, pa.Scalar) and pc.any(pc.is_nan(values)).as_py()


def _like(values: Values, pattern: exp.Expr) -> Values:
    """A pattern of texts and % between, before or behind them."""
    if not pa.types.is_string(values.type) or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise Beyond
    text = str(pattern.this)
    body = text.strip("%")
    if not body or any(each in body for each in "_\\"):
        raise Beyond
    if "%" in body:
        ends = "^" if not text.startswith("%") else "", "$" if not text.endswith("%") else ""
        return pc.match_substring_regex(values, f"(?s){ends[0]}{'.*'.join(map(_quoted, body.split('%')))}{ends[1]}")
    if text == body:
        return pc.equal(values, text)
    if text.startswith("%") and text.endswith("%"):
        return pc.match_substring(values, body)
    return (pc.starts_with if text.endswith("%") else pc.ends_with)(values, body)


def _quoted(text: str) -> str:
    """The text as a regular expression that matches nothing else."""
    return "".join(each if each.isalnum() or ord(each) > 127 else f"\\{each}" for each in text)


# --- values --------------------------------------------------------------------------------------------


def _value(node: exp.Expr, row: Row) -> Values:
    node = node.unnest()
    match node:
        case exp.Column():
            return row.column(node)
        case exp.Literal() if node.is_string:
            return pa.scalar(str(node.this))
        case exp.Literal() | exp.Neg():
            return _integer_scalar(node)
        case exp.Boolean():
            return pa.scalar(bool(node.this))
        case exp.Coalesce():
            return _coalesced([node.this, *node.expressions], row)
        case exp.Nullif():
            values, same = _value(node.this, row), _compared(exp.EQ, node.this, node.expression, row)
            return pc.if_else(pc.fill_null(same, False), pa.scalar(None, values.type), values)
        case exp.Div():
            return _quotient(_value(node.left, row), _value(node.right, row))
        case exp.Cast():
            return _cast(node, row)
        case exp.Add() | exp.Sub() | exp.Mul():
            return _arithmetic(_SIGNS[type(node)], _value(node.left, row), _value(node.right, row))
        case exp.Anonymous():
            return _called(str(node.this).lower(), node.expressions, row)
        case exp.Case() if node.this is None:
            return _case(node, row)
        case exp.And() | exp.Or() | exp.Not() | exp.Is() | exp.In() | exp.Like():
            return _condition(node, row)
        case _ if type(node) in _COMPARISONS:
            return _condition(node, row)
        case _:
            raise Beyond


def _integer_scalar(node: exp.Expr) -> pa.Scalar:
    number = _integer(node)
    if number is None:
        raise Beyond
    return pa.scalar(number, pa.int32() if -(1 << 31) <= number < 1 << 31 else pa.int64())


def _integer(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Neg):
        number = _integer(node.this)
        return -number if number is not None else None
    plain = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isascii()
    return int(str(node.this)) if plain and str(node.this).isdecimal() else None


def _called(name: str, arguments: list[exp.Expr], row: Row) -> Values:
    if name == ATTEMPT:  # what fails here is asked of Spark
        return _value(arguments[0], row)
    if name == "timestampadd" and len(arguments) == 3:
        unit, count, start = arguments
        return _later(unit.name.upper(), _integer(count), _value(start, row))
    if name == "year" and len(arguments) == 1:
        return pc.cast(pc.year(_value(arguments[0], row)), pa.int32())
    if name == "substr" and len(arguments) == 3:
        return _beginning(_value(arguments[0], row), *map(_integer, arguments[1:]))
    if name == "get" and isinstance(node := arguments[0], exp.Anonymous) and str(node.this).lower() == "transform":
        array, body = node.expressions
        return _once(array, body, row)
    if name == "round" and len(arguments) == 2:
        return rounded(_value(arguments[0], row), _integer(arguments[1]))
    if name == "try_divide" and len(arguments) == 2:
        return _quotient(*(_value(each, row) for each in arguments))
    operation = name.removeprefix("try_")
    if operation != name and operation in ARITHMETIC and len(arguments) == 2:
        return _arithmetic(operation, *(_value(each, row) for each in arguments))
    raise Beyond


def _once(array: exp.Expr, body: exp.Expr, row: Row) -> Values:
    """A value that is evaluated once, and an expression that mentions it by a name (`seiche.sql.nodes.let`)."""
    if not isinstance(array, exp.Anonymous) or len(array.expressions) != 1 or not isinstance(body, exp.Lambda):
        raise Beyond
    (name,) = body.expressions
    return _value(body.this, row.knowing(name.name, _value(array.expressions[0], row)))


def _later(unit: str, count: int | None, start: Values) -> pa.Scalar:
    """A constant time moved by months or days."""
    if count is None or not isinstance(start, pa.Scalar) or start.type != _TIMESTAMP:
        raise Beyond
    time: datetime = start.as_py()
    if unit == "DAY" and abs(count) < 1_000_000:
        try:
            return pa.scalar(time + timedelta(days=count), _TIMESTAMP)
        except OverflowError:
            raise Beyond from None
    year, month = divmod(time.year * 12 + time.month - 1 + count, 12)
    if unit != "MONTH" or not 1 <= year <= 9999:
        raise Beyond
    day = min(time.day, monthrange(year, month + 1)[1])
    return pa.scalar(time.replace(year=year, month=month + 1, day=day), _TIMESTAMP)


def _arithmetic(operation: str, left: Values, right: Values) -> Values:
    if left.type in INTEGERS and left.type == right.type:
        return ARITHMETIC[operation](left, right)
    return arithmetic(operation, left, right)


def _quotient(left: Values, right: Values) -> Values:
    """Of doubles as processors divide them, and of decimals; what is divided by zero is Spark's to tell."""
    zero = pc.equal(right, pa.scalar(0, right.type))
    if zero.as_py() if isinstance(zero, pa.Scalar) else pc.any(zero).as_py():
        raise Beyond
    if left.type == right.type == pa.float64():
        return pc.divide(left, right)
    return quotient(left, right)


def _cast(node: exp.Cast, row: Row) -> Values:
    """A cast of a value that the other type can tell as well."""
    if not isinstance(node.to, exp.DataType):
        raise Beyond
    values, target = _value(node.this, row), node.to
    known = values.type
    match target.this:
        case exp.DataType.Type.DECIMAL if len(target.expressions) == 2:
            precision, scale = (int(each.name) for each in target.expressions)
            return as_decimal(values, precision, scale)
        case kind if kind in _INTEGER_TYPES and known in INTEGERS:
            return values.cast(_INTEGER_TYPES[kind])
        case exp.DataType.Type.DATE if isinstance(values, pa.StringScalar):
            return pa.scalar(_day(values.as_py()), pa.date32())
        case exp.DataType.Type.TIMESTAMPNTZ if known == pa.date32():
            return values.cast(_TIMESTAMP)
        case exp.DataType.Type.DOUBLE if known in INTEGERS:
            return values.cast(pa.float64())  # what a double cannot tell exactly, Arrow refuses
        case _:
            raise Beyond


def _day(text: str) -> date:
    try:
        if len(text) == len("2020-01-01"):
            return date.fromisoformat(text)
    except ValueError:
        pass  # Spark says what is wrong with it
    raise Beyond


def _case(node: exp.Case, row: Row) -> Values:
    default = node.args.get("default")
    if default is None:
        raise Beyond
    found = _value(default, row)
    for each in reversed(node.args["ifs"]):
        chosen = _value(each.args["true"], row)
        if chosen.type != found.type:
            raise Beyond
        found = pc.if_else(pc.fill_null(_condition(each.this, row), False), chosen, found)
    return found


def _coalesced(nodes: list[exp.Expr], row: Row) -> Values:
    """The first value that there is. What nobody needs is not evaluated, as long as its type is known."""
    found = _value(nodes[0], row)
    for node in nodes[1:]:
        if _decimal_type(node.unnest()) == found.type and not _may_help(node, found, row):
            continue
        other = _value(node, row)
        if other.type != found.type:
            raise Beyond
        found = pc.coalesce(found, other)
    return found


def _may_help(node: exp.Expr, found: Values, row: Row) -> bool:
    """Whether an expression may have a value where there is none yet: not if a column that it needs has none either."""
    missing = pc.is_null(found)
    needed = [row.is_null(column) for column in node.find_all(exp.Column)] if _needs_all(node) else []
    for each in needed:
        missing = pc.and_not(missing, each)
    return bool(missing.as_py() if isinstance(missing, pa.Scalar) else pc.any(missing).as_py())


def _needs_all(node: exp.Expr) -> bool:
    """Whether the value is NULL as soon as one of its columns is."""
    known = (exp.Cast, exp.Div, exp.Mul, exp.Add, exp.Sub, exp.Paren, exp.Column, exp.Literal, exp.Nullif)
    parts = (exp.Identifier, exp.DataType, exp.DataTypeParam)
    calls = {"try_divide", "try_multiply", "try_add", "try_subtract"}
    return all(
        isinstance(each, known + parts) or (isinstance(each, exp.Anonymous) and str(each.this).lower() in calls)
        for each in node.walk()
    )


def _decimal_type(node: exp.Expr) -> pa.DataType | None:
    """The type of a cast to a decimal."""
    target = node.to if isinstance(node, exp.Cast) else None
    if not isinstance(target, exp.DataType) or target.this is not exp.DataType.Type.DECIMAL or not target.expressions:
        return None
    return pa.decimal128(*(int(each.name) for each in target.expressions))


def _beginning(values: Values, start: int | None, length: int | None) -> Values:
    if not pa.types.is_string(values.type) or start != 1 or length is None or length < 0:
        raise Beyond
    return pc.utf8_slice_codeunits(values, 0, length)


__all__ = ["ALIKE", "Beyond", "Row", "fulfilled", "shown"]
