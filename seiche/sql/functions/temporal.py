"""Dates, times, timestamps and intervals."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Sequence
from functools import cache

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql import intervals
from seiche.sql.casts import convert, instant, local_time, micros_of
from seiche.sql.functions.registry import Any_, Maker, function, undefined
from seiche.sql.literals import MICROS_PER_DAY, interval_constant
from seiche.sql.nodes import (
    Settings,
    bigint,
    binary,
    boolean,
    call,
    case,
    checked_cast,
    guarded,
    integer,
    negation,
    not_null,
    spark_cast,
    text,
    type_of,
    typed,
)
from seiche.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    numeric,
)

Nodes = list[exp.Expr]

WHOLE = numeric(20, 0, declared=True)
_UNITS = {
    "us": "microseconds", "usec": "microseconds", "microsecond": "microseconds", "ms": "milliseconds",
    "msec": "milliseconds", "millisecond": "milliseconds", "sec": "second", "seconds": "second", "min": "minute",
    "minutes": "minute", "mins": "minute", "hours": "hour", "hr": "hour", "days": "day", "weeks": "week",
    "months": "month", "mon": "month", "mons": "month", "qtr": "quarter", "quarters": "quarter", "years": "year",
    "yr": "year", "decades": "decade", "centuries": "century", "millenniums": "millennium",
    "millennia": "millennium",
}  # fmt: skip


def unit_of(word: str) -> str:
    lowered = word.lower()
    return _UNITS.get(lowered, lowered)


def _unit(node: exp.Expr, name: str) -> str:
    if not isinstance(node, exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant unit")
    return unit_of(node.this)


def _bad_unit(unit: str, type_: SqlType) -> InvalidParameter:
    return InvalidParameter(f'unit "{unit}" not recognized for type {type_}')


# --- extract -----------------------------------------------------------------------------------------


def extract(unit: str, node: exp.Expr, settings: Settings) -> exp.Expr:
    """EXTRACT: numeric, as since PostgreSQL 14."""
    type_ = type_of(node)
    match type_.kind:
        case Kind.INTERVAL:
            return _from_interval(unit, node)
        case Kind.TIME:
            return _from_clock(unit, node, type_)
        case Kind.DATE:
            if unit in ("hour", "minute", "second", "milliseconds", "microseconds", "timezone"):
                raise InvalidParameter(f'unit "{unit}" not supported for type date')
            # Days go on after the last timestamp.
            return _day_seconds(node) if unit == "epoch" else _from_moment(unit, node, type_)
        case Kind.TIMESTAMP:
            return _from_moment(unit, node, type_)
        case Kind.TIMESTAMPTZ:
            if unit == "epoch":
                return intervals.epoch_seconds(micros_of(node))
            if unit in _ZONE_PARTS:
                return _number(_ZONE_PARTS[unit](zone_shift(node, settings)))
            return _from_moment(unit, local_time(node, text(settings.timezone)), type_)
        case Kind.NULL:
            return extract(unit, convert(node, TIMESTAMPTZ, settings), settings)
    raise undefined("extract", [text(unit), node])


def zone_shift(node: exp.Expr, settings: Settings) -> exp.Expr:
    """Seconds by which the session's clocks are ahead of UTC at a moment."""
    local = local_time(node, text(settings.timezone))
    ahead = binary(exp.Sub, BIGINT, micros_of(local), call(BIGINT, "unix_micros", node.copy()))
    return binary(exp.IntDiv, BIGINT, ahead, bigint(1_000_000))


_ZONE_PARTS: dict[str, Callable[[exp.Expr], exp.Expr]] = {
    "timezone": lambda seconds: seconds,
    "timezone_hour": lambda seconds: binary(exp.IntDiv, BIGINT, seconds, integer(3600)),
    "timezone_minute": lambda seconds: binary(
        exp.IntDiv, BIGINT, binary(exp.Mod, BIGINT, seconds, integer(3600)), integer(60)
    ),
}


def _julian(node: exp.Expr, type_: SqlType) -> exp.Expr:
    """Days since 4714 BC, and the part of the day that has passed."""
    day = binary(exp.Add, BIGINT, call(BIGINT, "unix_date", spark_cast(node, DATE)), integer(2_440_588))
    if type_.kind is Kind.DATE:
        return _number(day)
    passed = call(BIGINT, "pmod", micros_of(node.copy()), bigint(MICROS_PER_DAY))
    share = binary(
        exp.Div, numeric(38, 18), spark_cast(passed, numeric(11, 0)), spark_cast(bigint(MICROS_PER_DAY), numeric(11, 0))
    )
    return spark_cast(
        binary(exp.Add, NUMERIC, spark_cast(day, numeric(10, 0)), spark_cast(share, numeric(20, 18))), NUMERIC
    )


def _day_seconds(node: exp.Expr) -> exp.Expr:
    days = spark_cast(call(INTEGER, "unix_date", node), BIGINT)
    return spark_cast(binary(exp.Mul, BIGINT, days, bigint(86_400)), numeric(22, 6, declared=True))


def _number(node: exp.Expr, type_: SqlType = WHOLE) -> exp.Expr:
    return spark_cast(node, type_)


def _from_moment(unit: str, node: exp.Expr, type_: SqlType) -> exp.Expr:
    year = call(INTEGER, "year", node)
    match unit:
        case "year" | "isoyear":
            field = (
                call(INTEGER, "year", node) if unit == "year" else call(INTEGER, "date_part", text("YEAROFWEEK"), node)
            )
            return _number(field)
        case "month" | "quarter" | "day" | "hour" | "minute":
            return _number(call(INTEGER, unit, node))
        case "week":
            return _number(call(INTEGER, "weekofyear", node))
        case "doy":
            return _number(call(INTEGER, "dayofyear", node))
        case "dow":
            return _number(binary(exp.Sub, INTEGER, call(INTEGER, "dayofweek", node), integer(1)))
        case "isodow":
            return _number(binary(exp.Add, INTEGER, call(INTEGER, "weekday", node), integer(1)))
        case "decade":
            return _number(call(BIGINT, "floor", binary(exp.Div, DOUBLE, spark_cast(year, DOUBLE), integer(10))))
        case "century":
            return _number(call(BIGINT, "ceil", binary(exp.Div, DOUBLE, spark_cast(year, DOUBLE), integer(100))))
        case "millennium":
            return _number(call(BIGINT, "ceil", binary(exp.Div, DOUBLE, spark_cast(year, DOUBLE), integer(1000))))
        case "epoch":
            return intervals.epoch_seconds(micros_of(node))
        case "second" | "milliseconds" | "microseconds":
            return _seconds(unit, micros_of(node))
        case "julian":
            return _julian(node, type_)
    raise _bad_unit(unit, type_)


def _seconds(unit: str, micros: exp.Expr) -> exp.Expr:
    within = call(BIGINT, "pmod", micros, bigint(60_000_000))
    match unit:
        case "second":
            return spark_cast(intervals.epoch_seconds(within), numeric(8, 6, declared=True))
        case "milliseconds":
            exact = binary(
                exp.Div, numeric(38, 6), spark_cast(within, numeric(20, 0)), spark_cast(integer(1000), numeric(4, 0))
            )
            return spark_cast(exact, numeric(8, 3, declared=True))
        case _:
            return _number(within)


def _from_clock(unit: str, node: exp.Expr, type_: SqlType) -> exp.Expr:
    micros = typed(node, BIGINT)
    match unit:
        case "hour":
            return _number(binary(exp.IntDiv, BIGINT, micros, bigint(3_600_000_000)))
        case "minute":
            return _number(binary(exp.Mod, BIGINT, binary(exp.IntDiv, BIGINT, micros, bigint(60_000_000)), integer(60)))
        case "second" | "milliseconds" | "microseconds":
            return _seconds(unit, micros)
        case "epoch":
            return intervals.epoch_seconds(micros)
    raise _bad_unit(unit, type_)


def _from_interval(unit: str, node: exp.Expr) -> exp.Expr:
    months, days, micros = intervals.months_of(node), intervals.days_of(node), intervals.micros_in(node)
    years = binary(exp.IntDiv, BIGINT, months, integer(12))
    match unit:
        case "year":
            return _number(years)
        case "month":
            return _number(binary(exp.Mod, INTEGER, months, integer(12)))
        case "quarter":
            within = binary(exp.Mod, INTEGER, months, integer(12))
            return _number(binary(exp.Add, BIGINT, binary(exp.IntDiv, BIGINT, within, integer(3)), integer(1)))
        case "decade" | "century" | "millennium":
            return _number(
                binary(exp.IntDiv, BIGINT, years, integer({"decade": 10, "century": 100, "millennium": 1000}[unit]))
            )
        case "day":
            return _number(days)
        case "hour":
            return _number(binary(exp.IntDiv, BIGINT, micros, bigint(3_600_000_000)))
        case "minute":
            return _number(binary(exp.Mod, BIGINT, binary(exp.IntDiv, BIGINT, micros, bigint(60_000_000)), integer(60)))
        case "second" | "milliseconds" | "microseconds":
            rest = binary(exp.Mod, BIGINT, micros, bigint(60_000_000))
            if unit == "microseconds":
                return _number(rest)
            divisor, digits = (1_000_000, 6) if unit == "second" else (1000, 3)
            exact = binary(
                exp.Div, numeric(38, 6), spark_cast(rest, numeric(20, 0)), spark_cast(integer(divisor), numeric(7, 0))
            )
            return spark_cast(exact, numeric(8, digits, declared=True))
        case "epoch":
            # A year counts 365.25 days here, a month 30.
            whole_days = binary(
                exp.Add,
                BIGINT,
                binary(exp.Mul, BIGINT, binary(exp.Mod, BIGINT, months.copy(), integer(12)), bigint(30)),
                days,
            )
            from_years = binary(exp.Mul, BIGINT, years, bigint(31_557_600_000_000))
            total = binary(
                exp.Add,
                BIGINT,
                from_years,
                binary(exp.Add, BIGINT, binary(exp.Mul, BIGINT, whole_days, bigint(MICROS_PER_DAY)), micros),
            )
            return intervals.epoch_seconds(total)
    raise _bad_unit(unit, INTERVAL)


@function("date_part", takes=[VARCHAR, Any_.VALUE])
def _date_part(arguments: Nodes, settings: Settings) -> exp.Expr:
    return spark_cast(extract(_unit(arguments[0], "date_part"), _moment(arguments[1], settings), settings), DOUBLE)


def _moment(node: exp.Expr, settings: Settings) -> exp.Expr:
    """A literal without a type is taken for a timestamp."""
    if type_of(node).kind is Kind.VARCHAR and isinstance(node, exp.Literal):
        return convert(typed(node, SqlType(Kind.NULL)), TIMESTAMPTZ, settings)
    return node


# --- truncation --------------------------------------------------------------------------------------

_SPARK_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")


_SPANS = ("year", "quarter", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds",
          "decade", "century", "millennium")  # fmt: skip


def _by_unit(units: Sequence[str], gives: SqlType) -> Callable[[Maker], Maker]:
    """For a unit that is no constant: each that there is becomes an arm of a CASE."""

    def of(make: Maker) -> Maker:
        def made(arguments: Nodes, settings: Settings) -> exp.Expr:
            unit, *rest = arguments
            if isinstance(unit, exp.Literal):
                return make(arguments, settings)
            given = call(VARCHAR, "lower", unit)
            arms = [
                (_among(given, _spellings(each)), make([text(each), *(part.copy() for part in rest)], settings))
                for each in units
            ]
            known = _among(given, [word for each in units for word in _spellings(each)])
            told = call(VARCHAR, "concat", text('unit "'), given.copy(), text(f'" not recognized for type {gives}'))
            return guarded(case(gives, arms), negation(known), told, settings)

        return made

    return of


def _spellings(unit: str) -> list[str]:
    return [unit, *(word for word, meant in _UNITS.items() if meant == unit and word != unit)]


def _among(node: exp.Expr, words: Sequence[str]) -> exp.Expr:
    return typed(exp.In(this=node.copy(), expressions=[text(word) for word in words]), BOOLEAN)


@function("date_trunc", takes=[VARCHAR, INTERVAL])
@_by_unit(_SPANS, INTERVAL)
def _trunc_interval(arguments: Nodes, settings: Settings) -> exp.Expr:
    unit, node = _unit(arguments[0], "date_trunc"), arguments[1]
    months, days, micros = intervals.months_of(node), intervals.days_of(node), intervals.micros_in(node)
    zero = integer(0)
    sizes = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000, "milliseconds": 1000, "microseconds": 1}
    spans = {"year": 12, "quarter": 3, "month": 1, "decade": 120, "century": 1200, "millennium": 12000}
    if unit in sizes:
        whole = binary(exp.Sub, BIGINT, micros, binary(exp.Mod, BIGINT, micros.copy(), bigint(sizes[unit])))
        return intervals.unless_null(intervals.build(months, days, whole), node)
    if unit == "day":
        return intervals.unless_null(intervals.build(months, days, bigint(0)), node)
    if unit in spans:
        whole = binary(exp.Sub, INTEGER, months, binary(exp.Mod, INTEGER, months.copy(), integer(spans[unit])))
        return intervals.unless_null(intervals.build(whole, zero, bigint(0)), node)
    raise _bad_unit(unit, INTERVAL)


@function("date_trunc", takes=[VARCHAR, TIMESTAMPTZ, VARCHAR], optional=1)
@_by_unit((*_SPANS, "week"), TIMESTAMPTZ)
def _trunc_timestamptz(arguments: Nodes, settings: Settings) -> exp.Expr:
    zone = zone_name(arguments[2]) if len(arguments) > 2 else text(settings.timezone)
    node, unit = arguments[1], _unit(arguments[0], "date_trunc")
    local = local_time(node.copy(), zone)
    cut = _truncated(unit, local, TIMESTAMPTZ)
    if unit not in _WITHIN_A_DAY or zone == text("UTC"):
        return instant(cut, zone.copy())
    # Where clocks show an hour twice, the moment stays in its own one: what is cut off is taken from it.
    rest = binary(exp.Sub, BIGINT, micros_of(cut), micros_of(local.copy()))
    return call(TIMESTAMPTZ, "timestampadd", exp.var("MICROSECOND"), rest, node)


@function("date_trunc", takes=[VARCHAR, TIMESTAMP])
@_by_unit((*_SPANS, "week"), TIMESTAMP)
def _trunc_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _truncated(_unit(arguments[0], "date_trunc"), arguments[1], TIMESTAMP)


_WITHIN_A_DAY = frozenset(("hour", "minute", "second", "milliseconds", "microseconds"))


def _truncated(unit: str, node: exp.Expr, type_: SqlType) -> exp.Expr:
    if unit in _SPARK_UNITS or unit in ("milliseconds", "microseconds"):
        word = unit.removesuffix("s") if unit.endswith("seconds") else unit
        return spark_cast(call(TIMESTAMPTZ, "date_trunc", text(word), spark_cast(node, TIMESTAMPTZ)), TIMESTAMP)
    years = {"decade": (10, 0), "century": (100, 1), "millennium": (1000, 1)}
    if unit in years:
        span, first = years[unit]
        year = binary(exp.Sub, INTEGER, call(INTEGER, "year", node), integer(first))
        start = binary(
            exp.Add,
            INTEGER,
            binary(exp.Sub, INTEGER, year, call(INTEGER, "pmod", year.copy(), integer(span))),
            integer(first),
        )
        return spark_cast(call(DATE, "make_date", start, integer(1), integer(1)), TIMESTAMP)
    raise _bad_unit(unit, type_)


@function("date_bin", takes=[INTERVAL, TIMESTAMP, TIMESTAMP])
def _bin_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _binned(arguments, TIMESTAMP)


@function("date_bin", takes=[INTERVAL, TIMESTAMPTZ, TIMESTAMPTZ])
def _bin_timestamptz(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _binned(arguments, TIMESTAMPTZ)


def _binned(arguments: Nodes, type_: SqlType) -> exp.Expr:
    width, node, origin = arguments
    return window_start(node, width, micros_of(origin), type_)


def window_start(node: exp.Expr, width: exp.Expr, origin: exp.Expr, type_: SqlType) -> exp.Expr:
    """The start of the window of a given width that a moment falls in; windows start at `origin` microseconds."""
    constant = interval_constant(width)
    if constant is None or constant[0]:
        raise InvalidParameter("a window must be a constant interval without months")
    size = constant[1] * MICROS_PER_DAY + constant[2]
    if size <= 0:
        raise InvalidParameter("stride must be greater than zero")
    since = binary(exp.Sub, BIGINT, micros_of(node.copy()), origin)
    start = call(
        TIMESTAMPTZ,
        "timestamp_micros",
        binary(exp.Sub, BIGINT, micros_of(node), call(BIGINT, "pmod", since, bigint(size))),
    )
    return start if type_ == TIMESTAMPTZ else spark_cast(start, TIMESTAMP)


# --- making ------------------------------------------------------------------------------------------


INTERVAL_PARTS = ("years", "months", "weeks", "days", "hours", "mins", "secs")


@function("make_interval", takes=[INTEGER] * 6 + [DOUBLE], optional=7)
def _make_interval(arguments: Nodes, settings: Settings) -> exp.Expr:
    given = arguments + [integer(0)] * (7 - len(arguments))
    years, months, weeks, days, hours, minutes, seconds = given
    total_months = binary(exp.Add, INTEGER, binary(exp.Mul, INTEGER, years, integer(12)), months)
    total_days = binary(exp.Add, INTEGER, binary(exp.Mul, INTEGER, weeks, integer(7)), days)
    whole = binary(exp.Add, BIGINT, binary(exp.Mul, BIGINT, spark_cast(hours, BIGINT), bigint(60)), minutes)
    micros = spark_cast(
        call(DOUBLE, "rint", binary(exp.Mul, DOUBLE, spark_cast(seconds, DOUBLE), integer(1_000_000))), BIGINT
    )
    made = intervals.build(
        total_months, total_days, binary(exp.Add, BIGINT, binary(exp.Mul, BIGINT, whole, bigint(60_000_000)), micros)
    )
    return intervals.unless_null(made, *given)


@function("to_timestamp", takes=[DOUBLE])
def _from_epoch(arguments: Nodes, settings: Settings) -> exp.Expr:
    micros = call(DOUBLE, "rint", binary(exp.Mul, DOUBLE, arguments[0], integer(1_000_000)))
    return call(TIMESTAMPTZ, "timestamp_micros", checked_cast(micros, BIGINT, settings))


@function("isfinite", takes=[INTERVAL])
@function("isfinite", takes=[TIMESTAMPTZ])
def _isfinite(arguments: Nodes, settings: Settings) -> exp.Expr:
    return case(BOOLEAN, [(not_null(arguments[0]), boolean(True))])


# --- zones -------------------------------------------------------------------------------------------


def zone_name(node: exp.Expr) -> exp.Expr:
    """A zone that is an offset counts west of Greenwich, as POSIX does; Spark counts east."""
    if isinstance(node, exp.Literal) and (found := re.fullmatch(r"([+-])(\d{1,2})(?::?(\d{2}))?", node.this.strip())):
        return text(f"{'-' if found[1] == '+' else '+'}{int(found[2]):02d}:{found[3] or '00'}")
    if isinstance(node, exp.Literal):  # names are known in any case of their letters
        name = node.this.strip()
        if "/" in name and name.lower() not in _zones():
            raise InvalidParameter(
                f'time zone "{name}" not recognized',
                detail=f"Invalid parameter time_zone: '{name}' is not a valid timezone.",
            )
        return text(_zones().get(name.lower(), node.this))
    return node


@cache
def _zones() -> dict[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones()}


def _offset_zone(node: exp.Expr) -> exp.Expr:
    constant = interval_constant(node)
    if constant is None or constant[0]:
        raise FeatureNotSupported("a time zone must be a name or a constant interval")
    minutes, rest = divmod(abs(constant[1] * MICROS_PER_DAY + constant[2]), 60_000_000)
    if rest:
        raise InvalidParameter("interval time zone must be whole minutes")
    sign = "-" if constant[1] * MICROS_PER_DAY + constant[2] < 0 else "+"
    return text(f"{sign}{minutes // 60:02d}:{minutes % 60:02d}")


@function("timezone", takes=[INTERVAL, TIMESTAMP])
def _timezone_offset(arguments: Nodes, settings: Settings) -> exp.Expr:
    return instant(arguments[1], _offset_zone(arguments[0]))


@function("timezone", takes=[INTERVAL, TIMESTAMPTZ])
def _timezone_offset_back(arguments: Nodes, settings: Settings) -> exp.Expr:
    return local_time(arguments[1], _offset_zone(arguments[0]))


@function("timezone", takes=[VARCHAR, TIMESTAMP])
def _timezone(arguments: Nodes, settings: Settings) -> exp.Expr:
    return instant(arguments[1], zone_name(arguments[0]))


@function("timezone", takes=[VARCHAR, TIMESTAMPTZ])
def _timezone_back(arguments: Nodes, settings: Settings) -> exp.Expr:
    return local_time(arguments[1], zone_name(arguments[0]))


@function("date", takes=[VARCHAR])
@function("date", takes=[TIMESTAMPTZ])
def _date(arguments: Nodes, settings: Settings) -> exp.Expr:
    return convert(arguments[0], DATE, settings)
