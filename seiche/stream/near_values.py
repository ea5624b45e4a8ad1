"""Expressions over few rows on the driver, by Arrow instead of Spark.

Handing rows to Spark, having it plan and fetching them back takes tens of milliseconds, whatever it does with them; a
product of a thousand numbers takes microseconds. But a view must hold what its query says by Spark's evaluation. So
this knows nothing but what has one meaning:

    values       columns, constants; sums, differences and products of integers and of decimals, as long as they keep
                 all their digits; casts that lose nothing; CASE; the year of a date; the beginning of a text
    conditions   = <> < <= > >= IN within one family of types, LIKE with a text at one end or inside, IS NULL, a bare
                 boolean column, and AND, OR, NOT over them, three-valued

Whatever else turns up, a NaN or a number that outgrows its type included, is `Beyond`, and Spark's to evaluate.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from seiche.plan.algebra import Item
from seiche.types import Kind, SqlType

DIGITS_MAX = 38
_DIGITS_KEPT = 6  # of the scale, when Spark shortens the type of a product
_DOUBLES_EXACT = 1 << 53
_INTEGERS = {pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}  # and the digits of each
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
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "add": pc.add_checked,
    "subtract": pc.subtract_checked,
    "multiply": pc.multiply_checked,
}
_SIGNS: Mapping[type[exp.Expr], str] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}

Values: TypeAlias = Any  # an array with a value for each row, or a scalar for all of them


class Beyond(Exception):
    """Something that is Spark's to evaluate."""


class Row:
    """The rows that an expression is evaluated over: `find` gives a column's name in the table and its type."""

    def __init__(self, rows: pa.Table, find: Callable[[exp.Column], tuple[str, SqlType]]) -> None:
        self._rows = rows
        self._find = find

    def plain(self, node: exp.Column, type_: SqlType) -> pa.ChunkedArray:
        """A column as it is, when it is stored as values of the type are."""
        name, own = self._find(node)
        if (own.spark, own.arrow) != (type_.spark, type_.arrow):
            raise Beyond
        return self._rows[name]

    def column(self, node: exp.Column) -> pa.ChunkedArray:
        name, type_ = self._find(node)
        if type_.kind not in _KINDS or type_.padded:
            raise Beyond
        values = self._rows[name]
        return values if values.type == type_.arrow else values.cast(type_.arrow)

    def is_null(self, node: exp.Column) -> pa.ChunkedArray:
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
    types = [each.type for each in sides]
    if all(each in _INTEGERS for each in types):
        sides = _cast_both(sides, pa.int64())
    elif all(map(pa.types.is_decimal, types)):
        scale = max(each.scale for each in types)
        digits = max(each.precision - each.scale for each in types) + scale
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
    """A pattern that is a text with % before it, behind it or both."""
    if not pa.types.is_string(values.type) or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise Beyond
    text = str(pattern.this)
    body = text.strip("%")
    if not body or any(each in body for each in "%_\\"):
        raise Beyond
    if text == body:
        return pc.equal(values, text)
    if text.startswith("%") and text.endswith("%"):
        return pc.match_substring(values, body)
    return (pc.starts_with if text.endswith("%") else pc.ends_with)(values, body)


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
    if name == "timestampadd" and len(arguments) == 3:
        unit, count, start = arguments
        return _later(unit.name.upper(), _integer(count), _value(start, row))
    if name == "year" and len(arguments) == 1:
        return pc.cast(pc.year(_value(arguments[0], row)), pa.int32())
    if name == "substr" and len(arguments) == 3:
        return _beginning(_value(arguments[0], row), *map(_integer, arguments[1:]))
    operation = name.removeprefix("try_")
    if operation != name and operation in _ARITHMETIC and len(arguments) == 2:
        return _arithmetic(operation, *(_value(each, row) for each in arguments))
    raise Beyond


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
    if left.type in _INTEGERS and left.type == right.type:
        return _ARITHMETIC[operation](left, right)
    if not (pa.types.is_decimal128(left.type) and pa.types.is_decimal128(right.type)):
        raise Beyond
    digits, scale = _of_product(left.type, right.type) if operation == "multiply" else _of_sum(left.type, right.type)
    if digits <= DIGITS_MAX:
        return _ARITHMETIC[operation](left, right).cast(pa.decimal128(digits, scale))
    if operation != "multiply" or max(DIGITS_MAX - (digits - scale), min(scale, _DIGITS_KEPT)) != scale:
        raise Beyond  # Spark would round
    wide = _ARITHMETIC[operation](_wide(left), _wide(right))
    return wide.cast(pa.decimal128(DIGITS_MAX, scale))


def _wide(values: Values) -> Values:
    return values.cast(pa.decimal256(values.type.precision, values.type.scale))


def _of_product(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    return left.precision + right.precision + 1, left.scale + right.scale


def _of_sum(left: pa.DataType, right: pa.DataType) -> tuple[int, int]:
    scale = max(left.scale, right.scale)
    return max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale


def _cast(node: exp.Cast, row: Row) -> Values:
    """A cast of a value that the other type can tell as well."""
    if not isinstance(node.to, exp.DataType):
        raise Beyond
    values, target = _value(node.this, row), node.to
    known = values.type
    match target.this:
        case exp.DataType.Type.DECIMAL if len(target.expressions) == 2:
            precision, scale = (int(each.name) for each in target.expressions)
            return _as_decimal(values, precision, scale)
        case kind if kind in _INTEGER_TYPES and known in _INTEGERS:
            return values.cast(_INTEGER_TYPES[kind])
        case exp.DataType.Type.DATE if isinstance(values, pa.StringScalar):
            return pa.scalar(_day(values.as_py()), pa.date32())
        case exp.DataType.Type.TIMESTAMPNTZ if known == pa.date32():
            return values.cast(_TIMESTAMP)
        case exp.DataType.Type.DOUBLE if isinstance(values, pa.Scalar) and known in _INTEGERS:
            if abs(values.as_py()) > _DOUBLES_EXACT:
                raise Beyond
            return pa.scalar(float(values.as_py()))
        case _:
            raise Beyond


def _as_decimal(values: Values, precision: int, scale: int) -> Values:
    target = pa.decimal128(precision, scale)
    if isinstance(values, pa.StringScalar):
        try:
            return pa.scalar(Decimal(values.as_py()), target)
        except InvalidOperation:
            raise Beyond from None
    if values.type in _INTEGERS:
        values = values.cast(pa.decimal128(_INTEGERS[values.type], 0))
    if not pa.types.is_decimal128(values.type) or values.type.scale > scale:
        raise Beyond
    return values.cast(target)


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


def _beginning(values: Values, start: int | None, length: int | None) -> Values:
    if not pa.types.is_string(values.type) or start != 1 or length is None or length < 0:
        raise Beyond
    return pc.utf8_slice_codeunits(values, 0, length)


__all__ = ["ALIKE", "Beyond", "Row", "fulfilled", "shown"]
