"""Series in FROM: `generate_series`, and `range`, which leaves the stop out; of numbers and of moments."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.errors import InvalidParameter
from seiche.sql import intervals
from seiche.sql.casts import common_type, convert, micros_of
from seiche.sql.functions.registry import undefined
from seiche.sql.literals import MICROS_PER_DAY, constant_integer, interval_constant, interval_literal, zone_of
from seiche.sql.nodes import (
    Settings,
    bigint,
    binary,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    guarded,
    integer,
    is_unknown,
    lambda_,
    spark_cast,
    transform,
    type_of,
    variable,
)
from seiche.sql.operators import arithmetic
from seiche.types import BIGINT, DOUBLE, INTEGER, INTERVAL, TIMESTAMP, TIMESTAMPTZ, Kind, SqlType, array_of, numeric

SERIES = frozenset({"generate_series", "range"})
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

# An array holds all of a series that a row asks for: of plain numbers, of values that are made of them one by one, and
# of such as are made each from the one before, which takes the square of their number.
_MOST, _MOST_MADE, _MOST_MONTHS = 1 << 24, 1 << 22, 1 << 14
_TOO_LONG = "requested series too long"
_ENDLESS = re.compile(r"\s*[+-]?(?:(nan)|inf(?:inity)?)\s*", re.IGNORECASE)


def refuse_endless(name: str, arguments: Sequence[exp.Expr]) -> None:
    """Arguments, not bound yet, that are written as an infinite numeric: told by what they mean for a series."""
    for part, argument in zip(("start", "stop", "step"), arguments if name in SERIES else (), strict=False):
        if isinstance(argument, exp.Cast) and argument.to.this == exp.DataType.Type.DECIMAL:
            found = _ENDLESS.fullmatch(argument.this.name) if argument.this.is_string else None
            if found is not None:
                raise InvalidParameter(f"{part} value cannot be {'NaN' if found.group(1) else 'infinity'}")


def constant_series(name: str, arguments: list[exp.Expr]) -> tuple[int, int, int] | None:
    """The bounds of a series of integers that are written down."""
    if not all(type_of(argument).is_integer for argument in arguments):
        return None
    values = [constant_integer(argument) for argument in arguments]
    if len(values) == 2:
        values.append(1)
    if len(values) != 3 or None in values or values[2] == 0:
        return None
    start, stop, step = (int(value) for value in values if value is not None)
    short = (1 if step > 0 else -1) if name == "range" else 0
    return start, stop - short, step


def series(name: str, arguments: list[exp.Expr], settings: Settings) -> exp.Expr:
    """The array of all values."""
    if len(arguments) not in (2, 3, 4):
        raise undefined(name, arguments)
    kinds = [type_of(argument).kind for argument in arguments]
    stepped = Kind.INTERVAL in kinds[2:3]
    if kinds[0] in _MOMENTS or kinds[1] in _MOMENTS or (stepped and all(is_unknown(it) for it in arguments[:2])):
        return _time_series(name, arguments, settings)
    if len(arguments) == 4:
        raise undefined(name, arguments)
    type_ = common_type([INTEGER, *(type_of(a) for a in arguments)], name)
    if not type_.is_integer and type_.kind is not Kind.NUMERIC:
        raise undefined(name, arguments)
    start, stop, *rest = (convert(a, type_, settings) for a in arguments)
    if rest and constant_integer(rest[0]) == 0:
        raise InvalidParameter("step size cannot equal zero")
    step = rest[0] if rest else convert(integer(1), type_, settings)
    if type_.kind is Kind.NUMERIC:
        made = _unless_long(
            start, stop, step, _MOST_MADE, lambda end: _numeric_series(start, end, step, type_, settings), settings
        )
    elif constant_series(name, arguments) is not None:
        made = call(array_of(type_), "sequence", start.copy(), stop.copy(), step.copy())
    else:
        made = _unless_long(
            start, stop, step, _MOST, lambda end: call(array_of(type_), "sequence", start.copy(), end, step), settings
        )
    return _ended(name, _leading(start, stop, step, made, type_), stop)


def _unless_long(
    start: exp.Expr,
    stop: exp.Expr,
    step: exp.Expr,
    most: int,
    make: Callable[[exp.Expr], exp.Expr],
    settings: Settings,
) -> exp.Expr:
    """Spark may make the series before it looks at the condition, so that it is never asked for a longer one."""

    def double(node: exp.Expr) -> exp.Expr:
        return spark_cast(node.copy(), DOUBLE)

    apart = call(DOUBLE, "abs", binary(exp.Sub, DOUBLE, double(stop), double(start)))
    reached = binary(exp.Mul, DOUBLE, double(bigint(most)), call(DOUBLE, "abs", double(step)))
    made = make(case(type_of(stop), [(comparison(exp.LTE, apart, reached), stop.copy())]))
    return guarded(made, comparison(exp.GT, apart.copy(), reached.copy()), _TOO_LONG, settings)


def _ended(name: str, made: exp.Expr, stop: exp.Expr) -> exp.Expr:
    """A range does not reach its stop."""
    if name != "range":
        return made
    before = comparison(exp.NEQ, variable("value", type_of(stop)), stop.copy())
    return call(type_of(made), "filter", made, lambda_(before, "value"))


def _numeric_series(start: exp.Expr, stop: exp.Expr, step: exp.Expr, type_: SqlType, settings: Settings) -> exp.Expr:
    """Counted in whole steps, each number made from its count."""
    span = arithmetic("/", binary(exp.Sub, type_, stop.copy(), start.copy()), step.copy(), settings)
    steps = spark_cast(call(BIGINT, "floor", span), BIGINT)
    numbers = call(array_of(BIGINT), "sequence", bigint(0), steps)
    times = arithmetic("*", spark_cast(variable("n", BIGINT), numeric(19, 0)), step.copy(), settings)
    value = spark_cast(binary(exp.Add, type_, start.copy(), times), type_)
    return transform(numbers, "n", value, array_of(type_))


def _leading(start: exp.Expr, stop: exp.Expr, step: exp.Expr, made: exp.Expr, type_: SqlType) -> exp.Expr:
    """Empty where the step leads away from the end; Spark raises there."""
    up = conjunction([comparison(exp.GT, step, integer(0)), comparison(exp.LTE, start, stop)])
    down = conjunction([comparison(exp.LT, step.copy(), integer(0)), comparison(exp.GTE, start.copy(), stop.copy())])
    return case(array_of(type_), [(disjunction([up, down]), made)])


def _time_series(name: str, arguments: list[exp.Expr], settings: Settings) -> exp.Expr:
    """Of timestamps by an interval; the fourth argument is the time zone whose days and months are counted."""
    zoned = any(type_of(a).kind is not Kind.TIMESTAMP for a in arguments[:2] if not is_unknown(a))
    type_ = TIMESTAMPTZ if zoned or all(is_unknown(a) for a in arguments[:2]) else TIMESTAMP
    if len(arguments) == 2 or (len(arguments) == 4 and type_ is TIMESTAMP):
        raise undefined(name, arguments)
    start, stop = (convert(a, type_, settings) for a in arguments[:2])
    if len(arguments) == 4:
        settings = replace(settings, timezone=_zone(arguments[3]))
    step = convert(arguments[2], INTERVAL, settings)
    width = interval_constant(step)
    if width is not None and not any(width):
        raise InvalidParameter("step size cannot equal zero")
    if width is not None and width[0]:
        return _ended(name, _calendar_series(start, stop, width, type_, settings), stop)
    if width is not None:
        stride: exp.Expr = bigint(width[1] * MICROS_PER_DAY + width[2])
    else:
        months = comparison(exp.NEQ, intervals.months_of(step), integer(0))
        days = binary(exp.Mul, BIGINT, spark_cast(intervals.days_of(step), BIGINT), bigint(MICROS_PER_DAY))
        total = binary(exp.Add, BIGINT, days, intervals.micros_in(step))
        stride = guarded(total, months, "a step in months must be a constant", settings)
    first, last = micros_of(start), micros_of(stop)
    instant = call(TIMESTAMPTZ, "timestamp_micros", variable("n", BIGINT))
    moment = instant if type_ == TIMESTAMPTZ else spark_cast(instant, TIMESTAMP)

    def listing(end: exp.Expr) -> exp.Expr:
        moments = call(array_of(BIGINT), "sequence", first.copy(), end, stride.copy())
        return transform(moments, "n", moment, array_of(type_))

    listed = _unless_long(first, last, stride, _MOST_MADE, listing, settings)
    return _ended(name, _leading(first.copy(), last.copy(), stride.copy(), listed, type_), stop)


def _zone(node: exp.Expr) -> str:
    if not isinstance(node, exp.Literal):
        raise InvalidParameter("the time zone of a series must be a constant")
    zone_of(node.name)  # raises where there is no such zone
    return str(node.name)


def _calendar_series(
    start: exp.Expr, stop: exp.Expr, width: tuple[int, int, int], type_: SqlType, settings: Settings
) -> exp.Expr:
    """Steps of months: each moment is made from the one before, so that the end of a month stays where it fell."""
    months, days, micros = width
    span = months * 30 * MICROS_PER_DAY + days * MICROS_PER_DAY + micros
    ahead = span > 0
    # No step is shorter than 28 days a month, so this many are enough.
    least = max(1, abs(span) - abs(months) * 2 * MICROS_PER_DAY)
    apart = call(BIGINT, "abs", binary(exp.Sub, BIGINT, micros_of(stop), micros_of(start)))
    count = binary(exp.Add, BIGINT, binary(exp.IntDiv, BIGINT, apart, bigint(least)), bigint(1))
    few = case(BIGINT, [(comparison(exp.LTE, count, bigint(_MOST_MONTHS)), count.copy())])
    counted = call(array_of(BIGINT), "sequence", bigint(1), few)
    before = call(type_, "element_at", variable("done", array_of(type_)), integer(-1))
    following = intervals.shift(before, interval_literal(months, days, micros), settings)
    grown = call(
        array_of(type_), "concat", variable("done", array_of(type_)), call(array_of(type_), "array", following)
    )
    first = call(array_of(type_), "array", start.copy())
    moments = call(array_of(type_), "aggregate", counted, first, lambda_(grown, "done", "n"))
    inside = comparison(exp.LTE if ahead else exp.GTE, variable("m", type_), stop.copy())
    kept = call(array_of(type_), "filter", moments, lambda_(inside, "m"))
    kept = guarded(kept, comparison(exp.GT, count.copy(), bigint(_MOST_MONTHS)), _TOO_LONG, settings)
    leads = comparison(exp.LTE if ahead else exp.GTE, start.copy(), stop.copy())
    return case(array_of(type_), [(leads, kept)])
