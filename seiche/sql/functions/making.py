"""Dates and times made of their parts. A negative year is one before Christ; there is no year 0."""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.casts import instant
from seiche.sql.functions.registry import function
from seiche.sql.functions.temporal import zone_name
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
    guarded,
    integer,
    is_null,
    not_null,
    spark_cast,
    text,
)
from seiche.types import BIGINT, DATE, DOUBLE, INTEGER, TIME, TIMESTAMP, VARCHAR

Nodes = list[exp.Expr]


@function("make_date", takes=[INTEGER, INTEGER, INTEGER])
def _make_date(arguments: Nodes, settings: Settings) -> exp.Expr:
    return spark_cast(_midnight(arguments, settings), DATE)


@function("make_timestamp", takes=[INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE])
def _make_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    clock = _micros(arguments[3:], settings)
    return call(TIMESTAMP, "timestampadd", exp.var("MICROSECOND"), clock, _midnight(arguments[:3], settings))


@function("make_timestamptz", takes=[INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE, VARCHAR], optional=1)
def _make_timestamptz(arguments: Nodes, settings: Settings) -> exp.Expr:
    zone = zone_name(arguments[6]) if len(arguments) > 6 else text(settings.timezone)
    return instant(_make_timestamp(arguments[:6], settings), zone)


@function("make_time", takes=[INTEGER, INTEGER, DOUBLE])
def _make_time(arguments: Nodes, settings: Settings) -> exp.Expr:
    return spark_cast(_micros(arguments, settings), TIME)


def counted_from_zero(year: exp.Expr) -> exp.Expr:
    """The year as Spark counts them, for whom 1 BC is the year 0."""
    before = comparison(exp.LT, year, integer(0))
    return case(INTEGER, [(before, binary(exp.Add, INTEGER, year.copy(), integer(1)))], year.copy())


def _midnight(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The first moment of a day."""
    year, month, day = arguments
    counted = counted_from_zero(year)
    zeros = [integer(0), integer(0), integer(0)]
    made = call(TIMESTAMP, "try_make_timestamp_ntz", counted, month, day, *zeros)
    known = [not_null(each.copy()) for each in arguments]
    bad = conjunction([*known, disjunction([equal(year.copy(), integer(0)), is_null(made.copy())])])
    told = [_joined("-", arguments), _joined("-", [counted, month, day])]
    message = _told("date", told[0], "Invalid parameter year, month, day: invalid date: ", told[1])
    return guarded(made, bad, message, settings)


def _micros(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Microseconds since midnight."""
    hour, minute, second = arguments
    whole = binary(exp.Add, BIGINT, binary(exp.Mul, BIGINT, spark_cast(hour, BIGINT), bigint(60)), minute)
    rest = call(DOUBLE, "rint", binary(exp.Mul, DOUBLE, second, integer(1_000_000)))
    made = binary(exp.Add, BIGINT, binary(exp.Mul, BIGINT, whole, bigint(60_000_000)), spark_cast(rest, BIGINT))
    negative = comparison(exp.LT, second.copy(), integer(0))
    outside = disjunction(
        [
            negative,
            comparison(exp.GT, second.copy(), integer(60)),
            comparison(exp.LT, minute.copy(), integer(0)),
            comparison(exp.GT, minute.copy(), integer(59)),
            comparison(exp.LT, hour.copy(), integer(0)),
            comparison(exp.GT, made.copy(), bigint(86_400_000_000)),  # 24:00 is a time, too
        ]
    )
    bad = conjunction([*(not_null(each.copy()) for each in arguments), outside])
    clock = _joined(":", arguments)
    of_second = call(VARCHAR, "concat", text("sec: invalid sec: "), _plain(second.copy()))
    of_all = call(VARCHAR, "concat", text("hour, min, sec: invalid time: "), clock.copy())
    reason = case(VARCHAR, [(negative.copy(), of_second)], of_all)
    return guarded(made, bad, _told("time", clock, "Invalid parameter ", reason), settings)


def _joined(separator: str, parts: Nodes) -> exp.Expr:
    return call(VARCHAR, "concat_ws", text(separator), *(_plain(part.copy()) for part in parts))


def _plain(node: exp.Expr) -> exp.Expr:
    """A number without a fraction that says nothing."""
    return call(VARCHAR, "regexp_replace", spark_cast(node, VARCHAR), text(r"\.0$"), text(""))


def _told(what: str, value: exp.Expr, reason: str, detail: exp.Expr) -> exp.Expr:
    head = text(f"{what} field value out of range: ")
    return call(VARCHAR, "concat", head, value, text(f". {reason}"), detail, text("."))
