r"""Text that is only known at run time, read as PostgreSQL reads it: `'{1,2}'` as an array, `'1 day'` as an interval.

Constants are `sql/literals.py`'s business. An interval has units written out and whole numbers of years, months, weeks
and days here.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.nodes import (
    Settings,
    bigint,
    binary,
    call,
    case,
    conjunction,
    equal,
    guarded,
    integer,
    lambda_,
    negation,
    not_null,
    spark_cast,
    text,
    typed,
    variable,
)
from seiche.types import BIGINT, BOOLEAN, INTEGER, INTERVAL, VARCHAR, array_of, numeric

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_BARE = r'(?:[^,"{}\\]|\\.)+'
_ARRAY = rf"(?s)^\s*\{{\s*(?:(?:{_QUOTED}|{_BARE})\s*(?:,\s*(?:{_QUOTED}|{_BARE})\s*)*)?\}}\s*$"


def array_items(node: exp.Expr, settings: Settings) -> exp.Expr:
    """The texts of the elements of an array's text; NULL for an element that is the bare word."""
    items = call(array_of(VARCHAR), "regexp_extract_all", node.copy(), text(f"(?s){_QUOTED}|{_BARE}"), integer(0))
    raw = variable("x", VARCHAR)
    inner = call(VARCHAR, "substr", raw.copy(), integer(2), _length_less(raw, 2))
    unquoted = _without_escapes(inner)
    bare = call(VARCHAR, "trim", raw.copy())
    missing = equal(call(VARCHAR, "lower", bare.copy()), text("null"))
    item = case(
        VARCHAR,
        [
            (call(BOOLEAN, "startswith", raw.copy(), text('"')), unquoted),
            (negation(missing), _without_escapes(bare)),
        ],
    )
    blank = exp.RegexpLike(this=exp.column("x"), expression=text(r"^\s*$"))
    present = call(array_of(VARCHAR), "filter", items, lambda_(exp.Not(this=exp.Paren(this=blank)), "x"))
    listed = call(array_of(VARCHAR), "transform", present, lambda_(item, "x"))
    malformed = negation(call(BOOLEAN, "rlike", node, text(_ARRAY)))
    return guarded(listed, malformed, "malformed array literal", settings)


def nested_items(node: exp.Expr, levels: int, settings: Settings) -> exp.Expr:
    """The texts of the arrays that an array's text holds, `levels` being how many there are inside each other."""
    inside = call(VARCHAR, "trim", node.copy())
    inside = call(VARCHAR, "substr", inside, integer(2), _length_less(inside, 2))
    items = call(array_of(VARCHAR), "regexp_extract_all", inside, text(f"(?is){_nested(levels - 1)}|null"), integer(0))
    known = exp.NEQ(this=call(VARCHAR, "lower", variable("x", VARCHAR)), expression=text("null"))
    item = case(VARCHAR, [(known, variable("x", VARCHAR))])
    listed = call(array_of(VARCHAR), "transform", items, lambda_(item, "x"))
    malformed = negation(call(BOOLEAN, "rlike", node, text(rf"(?is)^\s*{_nested(levels)}\s*$")))
    return guarded(listed, malformed, "malformed array literal", settings)


def _nested(levels: int) -> str:
    """The pattern of an array's text; commas are not counted. No text fits it in two ways, so that it is quick."""
    if levels == 1:
        return rf"\{{(?:{_QUOTED}|{_BARE}+|,)*\}}"
    return rf"\{{(?:{_nested(levels - 1)}|null|[,\s])*\}}"


def _without_escapes(node: exp.Expr) -> exp.Expr:
    return call(VARCHAR, "regexp_replace", node, text(r"(?s)\\(.)"), text("$1"))


def _length_less(node: exp.Expr, count: int) -> exp.Expr:
    return binary(exp.Sub, INTEGER, call(INTEGER, "length", node.copy()), integer(count))


# unit -> pattern of its names
_YEAR, _MONTH, _WEEK, _DAY = "y(?:ea)?(?:r?s?)?", "mon(?:th)?s?", "w(?:eek)?s?", "d(?:ay)?s?"
_HOUR, _MINUTE, _SECOND = "h(?:(?:ou)?rs?)?", "m(?:in(?:ute)?s?)?", "s(?:ec(?:ond)?s?)?"
_WHOLE = r"([+-]?\d+)"
_EXACT = r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)"
_CLOCK = r"([+-]?)(\d+):(\d{1,2})(?::(\d{1,2}(?:\.\d*)?))?"
_INTERVAL = (
    rf"(?i)^\s*@?\s*(?:(?:{_WHOLE}\s*(?:{_YEAR}|{_MONTH}|{_WEEK}|{_DAY})"
    rf"|{_EXACT}\s*(?:{_HOUR}|{_MINUTE}|{_SECOND})|{_CLOCK})(?=\s|[+-]|$)\s*)+(?:ago)?\s*$"
)
_SECONDS = numeric(30, 6)


def interval(node: exp.Expr, settings: Settings) -> exp.Expr:
    """Text such as `1 year 2 mons -3 days 04:05:06.5`."""

    def whole(units: str) -> exp.Expr:
        return _amount(node, _WHOLE, units, "bigint")

    def exact(units: str) -> exp.Expr:
        return _amount(node, _EXACT, units, _SECONDS.spark)

    months = _sum(_times(whole(_YEAR), 12), whole(_MONTH))
    days = _sum(_times(whole(_WEEK), 7), whole(_DAY))
    seconds = _sum(_sum(_times(exact(_HOUR), 3600), _times(exact(_MINUTE), 60)), _sum(exact(_SECOND), _clock(node)))
    micros = call(BIGINT, "round", binary(exp.Mul, BIGINT, spark_cast(seconds, _SECONDS), bigint(1_000_000)))
    sign = case(INTEGER, [(call(BOOLEAN, "rlike", node.copy(), text(r"(?i)\bago\s*$")), integer(-1))], integer(1))
    made = call(
        INTERVAL,
        "named_struct",
        text("months"),
        spark_cast(binary(exp.Mul, BIGINT, months, sign), INTEGER),
        text("days"),
        spark_cast(binary(exp.Mul, BIGINT, days, sign.copy()), INTEGER),
        text("micros"),
        binary(exp.Mul, BIGINT, spark_cast(micros, BIGINT), sign.copy()),
    )
    fits = call(BOOLEAN, "rlike", node, text(_INTERVAL))
    made = case(INTERVAL, [(not_null(node.copy()), made)])
    return guarded(spark_cast(made, INTERVAL), negation(fits), "invalid input syntax for type interval", settings)


def _amount(node: exp.Expr, number: str, units: str, spark: str) -> exp.Expr:
    """The number in front of a unit; nothing where the unit is not named."""
    found = call(VARCHAR, "regexp_extract", node.copy(), text(rf"(?i){number}\s*(?:{units})(?=\s|[+-]|$)"), integer(1))
    return _read(found, spark)


def _read(found: exp.Expr, spark: str) -> exp.Expr:
    number = spark_cast(typed(exp.Nullif(this=found, expression=text("")), VARCHAR), BIGINT, spark)
    return typed(exp.Coalesce(this=number, expressions=[spark_cast(integer(0), BIGINT, spark)]), BIGINT)


def _clock(node: exp.Expr) -> exp.Expr:
    def part(group: int) -> exp.Expr:
        return _read(call(VARCHAR, "regexp_extract", node.copy(), text(_CLOCK), integer(group)), _SECONDS.spark)

    minus = equal(call(VARCHAR, "regexp_extract", node.copy(), text(_CLOCK), integer(1)), text("-"))
    total = _sum(_times(part(2), 3600), _sum(_times(part(3), 60), part(4)))
    there = call(BOOLEAN, "rlike", node.copy(), text(_CLOCK))
    sign = case(INTEGER, [(conjunction([there, minus]), integer(-1))], integer(1))
    return binary(exp.Mul, BIGINT, total, sign)


def _sum(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return binary(exp.Add, BIGINT, left, right)


def _times(node: exp.Expr, factor: int) -> exp.Expr:
    return binary(exp.Mul, BIGINT, node, integer(factor))
