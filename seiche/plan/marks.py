"""Watermarks in expressions: what they are called, how values follow from them, and what they come to.

A watermark says that rows with a smaller value of a column come no more. So does a function of it that never decreases
about the same function of the column: the start of the window that the watermark lies in, about the starts of windows.

Numbers stand for moments: microseconds since 1970 for times, the number itself for numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from seiche.model import Column, RelationId, RelationSchema
from seiche.plan.algebra import rewrite_columns
from seiche.plan.temporal import MICROS
from seiche.sql.attempts import ATTEMPT
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import kind_of
from seiche.sql.written import in_place_of, unnamed
from seiche.types import BIGINT, Kind, SqlType

# A call of this name stands for the watermark that a relation holds.
MARK = "seiche_watermark"

MARKED_KINDS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
_TIMES = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

_SECOND = 1_000_000
_DAY = MICROS["DAY"]

# The longest time that date_trunc takes from a moment, and whether it always cuts at multiples of that.
_TRUNCATED = {
    "microsecond": (1, True),
    "millisecond": (1_000, True),
    "second": (_SECOND, True),
    "minute": (60 * _SECOND, True),
    "hour": (3600 * _SECOND, True),
    "day": (_DAY, True),
    "week": (7 * _DAY, False),
    "month": (31 * _DAY, False),
    "quarter": (92 * _DAY, False),
    "year": (366 * _DAY, False),
}


ID, VALUE = "id", "watermark"


def watermark_schema(type_: SqlType) -> RelationSchema:
    """The relation that holds the watermark of a table: one row."""
    return RelationSchema((Column(ID, BIGINT, nullable=False), Column(VALUE, type_)), (ID,))


def mark(relation: RelationId, type_: SqlType) -> exp.Expr:
    """The watermark that a relation holds."""
    node = exp.Anonymous(this=MARK, expressions=[exp.Literal.number(relation)])
    node.meta["sql_type"] = type_
    return node


def marks_in(expr: exp.Expr) -> dict[RelationId, SqlType]:
    """The relations whose watermarks an expression is over, with the types of these."""
    return {RelationId(int(node.expressions[0].name)): node.meta["sql_type"] for node in _calls(expr)}


def _calls(expr: exp.Expr) -> list[exp.Anonymous]:
    return [node for node in expr.find_all(exp.Anonymous) if str(node.this) == MARK]


def lowest(bounds: Sequence[exp.Expr]) -> exp.Expr:
    """The least of several bounds; NULL while one of them is."""
    different = list(dict.fromkeys(bounds))
    if len(different) == 1:
        return different[0]
    # least() passes over NULLs, and a watermark that nobody has set yet holds all others back.
    missing = exp.or_(*(exp.Is(this=each.copy(), expression=exp.Null()) for each in different))
    least = exp.Anonymous(this="least", expressions=[each.copy() for each in different])
    made = exp.Anonymous(this="if", expressions=[missing, exp.Null(), least])
    made.meta["sql_type"] = different[0].meta["sql_type"]
    return made


def carried(expr: exp.Expr, bound: exp.Expr, type_: SqlType) -> exp.Expr:
    """The bound of an expression over one column, from the bound of that column."""
    made = unnamed(rewrite_columns(expr, lambda _: bound.copy()))
    made.meta["sql_type"] = type_
    return made


def shifted(bound: exp.Expr, amount: int) -> exp.Expr | None:
    """The bound, so much later; None for a type that is not moved."""
    type_ = bound.meta["sql_type"]
    if not amount:
        return bound
    if type_.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return None
    literal: exp.Expr = exp.Literal.number(abs(amount))
    number = exp.cast(exp.Neg(this=literal) if amount < 0 else literal, "bigint")
    made = exp.Anonymous(this="timestampadd", expressions=[exp.var("MICROSECOND"), number, bound.copy()])
    made.meta["sql_type"] = type_
    return made


# --- functions that never decrease -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reach:
    """An expression that never decreases with a column: column - expression lies in [low, high]."""

    column: exp.Column
    low: int = 0
    high: int = 0

    @property
    def exact(self) -> bool:
        return self.low == self.high


def reach(expr: exp.Expr) -> Reach | None:
    """How an expression follows a column; None unless it never decreases with one."""
    node = expr.unnest()
    match node:
        case exp.Column():
            return Reach(node)
        case exp.Cast():
            return _cast_reach(node)
        case exp.Add() | exp.Sub():
            return _moved(node.left, node.right, minus=isinstance(node, exp.Sub))
        case exp.Anonymous():
            name, arguments = str(node.this).lower(), node.expressions
            if name == ATTEMPT:  # NULL at the ends of the calendar, and no window closes by a NULL
                return reach(arguments[0])
            if name in ("try_add", "try_subtract"):
                return _moved(arguments[0], arguments[1], minus=name == "try_subtract")
            if name == "timestampadd":
                return _added(arguments)
            if name == "unix_micros":
                return reach(arguments[0])
            if name == "timestamp_micros":
                return _window_start(arguments[0].unnest())
            if name == "date_trunc" and arguments[0].name.lower() in _TRUNCATED:
                return _floor(reach(arguments[1]), _TRUNCATED[arguments[0].name.lower()][0])
    return None


_ZONES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)
_INTEGERS = (exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_DATES = (exp.DType.DATE, exp.DType.DATE32)


def _cast_reach(cast: exp.Cast) -> Reach | None:
    """A cast between times, or between integers. Views live in UTC, so a zone changes no moment."""
    target, below = cast.to.this, reach(cast.this)
    is_number = target in _INTEGERS and kind_of(cast.this) in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
    if target in _ZONES or is_number:  # a moment as a number counts seconds
        return below
    return _floor(below, _DAY) if target in _DATES else None


def _floor(below: Reach | None, width: int) -> Reach | None:
    return None if below is None else Reach(below.column, below.low, below.high + width)


def _added(arguments: Sequence[exp.Expr]) -> Reach | None:
    unit, amount, moment = arguments
    number, below = constant_integer(amount), reach(moment)
    if number is None or below is None or unit.name not in MICROS:
        return None
    micros = number * MICROS[unit.name]
    return Reach(below.column, below.low - micros, below.high - micros)


def _moved(left: exp.Expr, right: exp.Expr, *, minus: bool) -> Reach | None:
    below, number = reach(left), constant_integer(right)
    if below is None or number is None or kind_of(left) in _TIMES:
        return None
    amount = -number if minus else number
    return Reach(below.column, below.low - amount, below.high - amount)


def _window_start(node: exp.Expr) -> Reach | None:
    """x - pmod(x - origin, size)"""
    rest = node.right.unnest() if isinstance(node, exp.Sub) else None
    if not isinstance(node, exp.Sub) or not isinstance(rest, exp.Anonymous) or str(rest.this).lower() != "pmod":
        return None
    since, size = rest.expressions[0].unnest(), constant_integer(rest.expressions[1])
    plain = isinstance(since, exp.Sub) and since.left.unnest() == node.left.unnest()
    return _floor(reach(node.left), size) if plain and size is not None else None


# --- what a bound comes to ---------------------------------------------------------------------------

Watermarks = Callable[[RelationId], int | None]


class Beyond(Exception):
    """A bound that only Spark can compute."""


def number_of(bound: exp.Expr, known: Watermarks) -> int | None:
    """What a bound comes to; None while a watermark in it has no value. Raises Beyond where Spark has to tell."""
    values = {each: known(each) for each in marks_in(bound)}
    if None in values.values():
        return None
    return int(_number(bound, lambda node: values[RelationId(int(node.expressions[0].name))]))


def numbers_of(expr: exp.Expr, column: Any) -> Any:
    """What an expression over one column comes to for an array of its values. Raises Beyond where Spark has to tell."""
    return _number(expr, lambda _: column)


Leaf = Callable[[exp.Expr], Any]


def _number(expr: exp.Expr, leaf: Leaf) -> Any:
    """A number, or an array of them; `leaf` tells what a watermark or a column is."""
    node = expr.unnest()
    match node:
        case exp.Column():
            return leaf(node)
        case exp.Literal() if node.is_int:
            return int(node.name)
        case exp.Neg():
            return -_number(node.this, leaf)
        case exp.Sub():
            return _number(node.left, leaf) - _number(node.right, leaf)
        case exp.Add():
            return _number(node.left, leaf) + _number(node.right, leaf)
        case exp.Cast():
            found = _number(node.this, leaf)
            return found - found % _DAY if node.to.this in _DATES else found
        case exp.Anonymous():
            return _called(node, leaf)
    raise Beyond


def _called(node: exp.Anonymous, leaf: Leaf) -> Any:
    name, arguments = str(node.this).lower(), node.expressions
    match name:
        case "seiche_watermark":
            return leaf(node)
        case _ if name == ATTEMPT:
            return _number(arguments[0], leaf)
        case "least":
            return min(_number(each, leaf) for each in arguments)
        case "if":  # the one that `lowest` writes, with all watermarks known
            return _number(arguments[2], leaf)
        case "timestampadd" if arguments[0].name in MICROS:
            return _number(arguments[2], leaf) + MICROS[arguments[0].name] * _number(arguments[1], leaf)
        case "unix_micros" | "timestamp_micros":
            return _number(arguments[0], leaf)
        case "pmod":
            return _number(arguments[0], leaf) % _number(arguments[1], leaf)
        case "try_add":
            return _number(arguments[0], leaf) + _number(arguments[1], leaf)
        case "try_subtract":
            return _number(arguments[0], leaf) - _number(arguments[1], leaf)
        case "date_trunc" if _TRUNCATED.get(arguments[0].name.lower(), (0, False))[1]:
            found = _number(arguments[1], leaf)
            return found - found % _TRUNCATED[arguments[0].name.lower()][0]
    raise Beyond


def literal(number: int, type_: SqlType) -> str:
    """A number as Spark's constant of a type."""
    if type_.kind in _TIMES:
        return f"cast(timestamp_micros({number}) as {type_.spark})"
    return f"cast({number} as {type_.spark})"


def bound_sql(bound: exp.Expr, known: Watermarks) -> str:
    """A bound with its watermarks put in, as text for Spark."""

    def place(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous) or str(node.this) != MARK:
            return node
        value = known(RelationId(int(node.expressions[0].name)))
        type_ = node.meta["sql_type"]
        number = exp.Literal.number(value) if value is not None and value >= 0 else None
        inner: exp.Expr = exp.Null() if value is None else number or exp.Neg(this=exp.Literal.number(-value))
        if value is not None and type_.kind in _TIMES:
            inner = exp.Anonymous(this="timestamp_micros", expressions=[inner])
        return exp.cast(inner, type_.spark, dialect="spark")

    return bound.transform(place).sql("spark")


def told(bound: exp.Expr, name_of: Callable[[RelationId], str]) -> exp.Expr:
    """A bound as EXPLAIN shows it."""

    def place(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous):
            return node
        if str(node.this) == MARK:
            name = name_of(RelationId(int(node.expressions[0].name)))
            return in_place_of(exp.Anonymous(this="watermark", expressions=[exp.column(name)]), node)
        whole = str(node.this) == "if"  # the one that `lowest` writes
        return node.expressions[2].transform(place) if whole else node

    return bound.transform(place)


__all__ = [
    "ID",
    "MARK",
    "MARKED_KINDS",
    "VALUE",
    "Beyond",
    "Reach",
    "Watermarks",
    "bound_sql",
    "carried",
    "literal",
    "lowest",
    "mark",
    "marks_in",
    "number_of",
    "numbers_of",
    "reach",
    "shifted",
    "told",
    "watermark_schema",
]
