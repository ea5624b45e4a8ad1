"""Spans of time: age, justified intervals, moments moved by an interval, spans that overlap."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from seiche.sql import intervals
from seiche.sql.casts import common_type, convert, local_time, micros_of
from seiche.sql.functions.registry import function
from seiche.sql.functions.temporal import zone_name
from seiche.sql.literals import MICROS_PER_DAY
from seiche.sql.nodes import (
    Settings,
    bigint,
    binary,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    equal,
    integer,
    is_null,
    let,
    null,
    spark_cast,
    text,
    type_of,
    variable,
)
from seiche.sql.operators import arithmetic, compare
from seiche.types import BIGINT, BOOLEAN, DATE, INTEGER, INTERVAL, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Kind

Nodes = list[exp.Expr]


@function("age", takes=[TIMESTAMP, TIMESTAMP])
def _age_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _age(arguments[0], arguments[1])


@function("age", takes=[TIMESTAMPTZ, TIMESTAMPTZ])
def _age_timestamptz(arguments: Nodes, settings: Settings) -> exp.Expr:
    zone = text(settings.timezone)
    return _age(local_time(arguments[0], zone), local_time(arguments[1], zone))


def _age(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Field by field, borrowing days from the month of the earlier moment; all parts of one sign."""
    later = call(TIMESTAMP, "greatest", left, right)
    earlier = call(TIMESTAMP, "least", left.copy(), right.copy())

    def clock(node: exp.Expr) -> exp.Expr:
        return call(BIGINT, "pmod", micros_of(node.copy()), bigint(MICROS_PER_DAY))

    def months_since(node: exp.Expr) -> exp.Expr:
        years = binary(exp.Mul, INTEGER, call(INTEGER, "year", node.copy()), integer(12))
        return binary(exp.Add, INTEGER, years, call(INTEGER, "month", node.copy()))

    time = binary(exp.Sub, BIGINT, clock(later), clock(earlier))
    short_time = comparison(exp.LT, time, integer(0))
    spare_day = case(INTEGER, [(short_time, integer(1))], integer(0))
    apart = binary(exp.Sub, INTEGER, call(INTEGER, "day", later.copy()), call(INTEGER, "day", earlier.copy()))
    days = binary(exp.Sub, INTEGER, apart, spare_day)
    short_days = comparison(exp.LT, days, integer(0))
    month_length = call(INTEGER, "day", call(DATE, "last_day", earlier.copy()))
    months = binary(exp.Sub, INTEGER, months_since(later), months_since(earlier))
    parts = [
        case(INTEGER, [(short_days, binary(exp.Sub, INTEGER, months, integer(1)))], months.copy()),
        case(INTEGER, [(short_days.copy(), binary(exp.Add, INTEGER, days.copy(), month_length))], days.copy()),
        case(BIGINT, [(short_time.copy(), binary(exp.Add, BIGINT, time.copy(), bigint(MICROS_PER_DAY)))], time.copy()),
    ]
    sign = case(INTEGER, [(comparison(exp.LT, left.copy(), right.copy()), integer(-1))], integer(1))
    signed = [binary(exp.Mul, type_of(part), part, sign.copy()) for part in parts]
    return intervals.unless_null(intervals.build(*signed), left, right)


@function("justify_hours", takes=[INTERVAL])
def _justify_hours(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _justified(arguments[0], ["hours", "signed_hours"])


@function("justify_days", takes=[INTERVAL])
def _justify_days(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _justified(arguments[0], ["days", "signed_days"])


@function("justify_interval", takes=[INTERVAL])
def _justify_interval(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _justified(arguments[0], ["hours", "days", "signed_months", "signed_hours"])


def _justified(node: exp.Expr, steps: list[str]) -> exp.Expr:
    """One step after the other over the interval of the step before."""
    made = node
    for step in steps:
        here = variable("v", INTERVAL)
        months, days, micros = intervals.months_of(here), intervals.days_of(here), intervals.micros_in(here)
        made = let("v", made, INTERVAL, _JUSTIFY[step](months, days, micros))
    return intervals.unless_null(made, node)


def _carry_hours(months: exp.Expr, days: exp.Expr, micros: exp.Expr) -> exp.Expr:
    more = spark_cast(binary(exp.IntDiv, BIGINT, micros, bigint(MICROS_PER_DAY)), INTEGER)
    rest = binary(exp.Mod, BIGINT, micros.copy(), bigint(MICROS_PER_DAY))
    return intervals.build(months, binary(exp.Add, INTEGER, days, more), rest)


def _carry_days(months: exp.Expr, days: exp.Expr, micros: exp.Expr) -> exp.Expr:
    more = spark_cast(binary(exp.IntDiv, BIGINT, days, integer(30)), INTEGER)
    rest = spark_cast(binary(exp.Mod, INTEGER, days.copy(), integer(30)), INTEGER)
    return intervals.build(binary(exp.Add, INTEGER, months, more), rest, micros)


def _opposed(high: exp.Expr, low: exp.Expr, lowest: exp.Expr | None = None) -> tuple[exp.Expr, exp.Expr]:
    """Whether the lower part has the other sign than the higher one: conditions for plus and minus."""

    def one(above: type[exp.Binary], below: type[exp.Binary]) -> exp.Expr:
        against = comparison(below, low.copy(), integer(0))
        if lowest is not None:
            behind = conjunction([equal(low.copy(), integer(0)), comparison(below, lowest.copy(), integer(0))])
            against = disjunction([against, behind])
        return conjunction([comparison(above, high.copy(), integer(0)), against])

    return one(exp.GT, exp.LT), one(exp.LT, exp.GT)


def _turned(
    plus: exp.Expr, minus: exp.Expr, high: exp.Expr, low: exp.Expr, span: exp.Expr
) -> tuple[exp.Expr, exp.Expr]:
    """One unit of the higher part given to the lower one where their signs differ."""

    def moved(node: exp.Expr, by: exp.Expr, up: type[exp.Binary], down: type[exp.Binary]) -> exp.Expr:
        type_ = type_of(node)
        added, taken = binary(up, type_, node.copy(), by.copy()), binary(down, type_, node.copy(), by.copy())
        return case(type_, [(plus.copy(), added), (minus.copy(), taken)], node.copy())

    return moved(high, integer(1), exp.Sub, exp.Add), moved(low, span, exp.Add, exp.Sub)


def _sign_hours(months: exp.Expr, days: exp.Expr, micros: exp.Expr) -> exp.Expr:
    high, low = _turned(*_opposed(days, micros), days, micros, bigint(MICROS_PER_DAY))
    return intervals.build(months, high, low)


def _sign_days(months: exp.Expr, days: exp.Expr, micros: exp.Expr) -> exp.Expr:
    high, low = _turned(*_opposed(months, days), months, days, integer(30))
    return intervals.build(high, low, micros)


def _sign_months(months: exp.Expr, days: exp.Expr, micros: exp.Expr) -> exp.Expr:
    high, low = _turned(*_opposed(months, days, micros), months, days, integer(30))
    return intervals.build(high, low, micros)


_JUSTIFY = {
    "hours": _carry_hours, "days": _carry_days, "signed_hours": _sign_hours, "signed_days": _sign_days,
    "signed_months": _sign_months,
}  # fmt: skip


def _moved_in(arguments: Nodes, settings: Settings, sign: int) -> exp.Expr:
    node, by = arguments[0], intervals.scaled(arguments[1], integer(sign), settings)
    zone = zone_name(arguments[2]).name if len(arguments) > 2 else settings.timezone
    return intervals.shift(node, by, replace(settings, timezone=zone))


@function("date_add", takes=[TIMESTAMPTZ, INTERVAL, VARCHAR], optional=1)
def _date_add(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Days are those of the given zone's clocks."""
    return _moved_in(arguments, settings, 1)


@function("date_subtract", takes=[TIMESTAMPTZ, INTERVAL, VARCHAR], optional=1)
def _date_subtract(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _moved_in(arguments, settings, -1)


def overlaps(left: Nodes, right: Nodes, settings: Settings) -> exp.Expr:
    """`(start, end) OVERLAPS (start, end)`, half open, an end being a moment or a length; in any order."""
    spans: list[tuple[exp.Expr, exp.Expr]] = []
    for start, end in (left, right):
        if type_of(end).kind is Kind.INTERVAL:
            end = arithmetic("+", start.copy(), end, settings)
        spans.append(_same_type(start, end, settings))
    (a, b), (c, d) = (
        tuple(call(type_of(start), how, start.copy(), end.copy()) for how in ("least", "greatest"))
        for start, end in spans
    )
    less = [compare(exp.LT, a, d, settings), compare(exp.LT, c, b, settings)]
    same_start = compare(exp.EQ, a.copy(), c.copy(), settings)
    missing = [is_null(node.copy()) for span in spans for node in span]
    made = disjunction([conjunction(less), same_start])
    return case(BOOLEAN, [(disjunction(missing), null(BOOLEAN))], made)


def _same_type(start: exp.Expr, end: exp.Expr, settings: Settings) -> tuple[exp.Expr, exp.Expr]:
    type_ = common_type([type_of(start), type_of(end)], "OVERLAPS")
    return convert(start, type_, settings), convert(end, type_, settings)
