"""Dates, times, timestamps and intervals."""

from __future__ import annotations

import re

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql import intervals
from seiche.sql.casts import convert, instant, local_time, micros_of
from seiche.sql.functions.registry import Any_, function, undefined
from seiche.sql.literals import MICROS_PER_DAY, interval_constant
from seiche.sql.nodes import (
    Settings,
    attempt,
    bigint,
    binary,
    boolean,
    call,
    case,
    checked_cast,
    comparison,
    conjunction,
    equal,
    integer,
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
    TIME,
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
            return _from_moment(unit, spark_cast(node, TIMESTAMP), type_)
        case Kind.TIMESTAMP:
            return _from_moment(unit, node, type_)
        case Kind.TIMESTAMPTZ:
            if unit == "epoch":
                return intervals.epoch_seconds(micros_of(node))
            return _from_moment(unit, local_time(node, text(settings.timezone)), type_)
        case Kind.NULL:
            return extract(unit, convert(node, TIMESTAMPTZ, settings), settings)
    raise undefined("extract", [text(unit), node])


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
        case "timezone" | "timezone_hour" | "timezone_minute" if type_.kind is Kind.TIMESTAMPTZ:
            return _number(integer(0))
        case "julian":
            return _number(
                binary(exp.Add, BIGINT, call(BIGINT, "unix_date", spark_cast(node, DATE)), integer(2_440_588))
            )
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


@function("date_trunc", takes=[VARCHAR, INTERVAL])
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
def _trunc_timestamptz(arguments: Nodes, settings: Settings) -> exp.Expr:
    zone = arguments[2] if len(arguments) > 2 else text(settings.timezone)
    local = _truncated(_unit(arguments[0], "date_trunc"), local_time(arguments[1], zone), TIMESTAMPTZ)
    return instant(local, zone.copy())


@function("date_trunc", takes=[VARCHAR, TIMESTAMP])
def _trunc_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _truncated(_unit(arguments[0], "date_trunc"), arguments[1], TIMESTAMP)


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


def _made(strict_name: str, type_: SqlType, arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(type_, strict_name, *arguments)


@function("make_date", takes=[INTEGER, INTEGER, INTEGER])
def _make_date(arguments: Nodes, settings: Settings) -> exp.Expr:
    if settings.strict:
        return call(DATE, "make_date", *arguments)
    return checked_cast(_padded_date(arguments), DATE, settings)


def _padded_date(arguments: Nodes) -> exp.Expr:
    """The date as text: Spark reads months and days of one digit, but years of four at least."""
    digits, month, day = (spark_cast(argument, VARCHAR) for argument in arguments)
    width = call(INTEGER, "greatest", call(INTEGER, "length", digits.copy()), integer(4))
    year = call(VARCHAR, "lpad", digits, width, text("0"))
    return call(VARCHAR, "concat", year, text("-"), month, text("-"), day)


@function("make_timestamp", takes=[INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE])
def _make_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    parts = [*arguments[:5], spark_cast(arguments[5], numeric(16, 6))]
    if settings.strict:
        return call(TIMESTAMP, "make_timestamp_ntz", *parts)
    return attempt(TIMESTAMP, "try_make_timestamp_ntz", *parts)


@function("make_timestamptz", takes=[INTEGER, INTEGER, INTEGER, INTEGER, INTEGER, DOUBLE])
def _make_timestamptz(arguments: Nodes, settings: Settings) -> exp.Expr:
    return instant(_make_timestamp(arguments, settings), text(settings.timezone))


@function("make_time", takes=[INTEGER, INTEGER, DOUBLE])
def _make_time(arguments: Nodes, settings: Settings) -> exp.Expr:
    hours, minutes, seconds = arguments
    whole = binary(exp.Add, BIGINT, binary(exp.Mul, BIGINT, spark_cast(hours, BIGINT), bigint(60)), minutes)
    micros = call(DOUBLE, "rint", binary(exp.Mul, DOUBLE, seconds, integer(1_000_000)))
    return binary(exp.Add, TIME, binary(exp.Mul, BIGINT, whole, bigint(60_000_000)), spark_cast(micros, BIGINT))


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


@function("age", takes=[TIMESTAMP, TIMESTAMP])
def _age_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _age(arguments[0], arguments[1])


@function("age", takes=[TIMESTAMPTZ, TIMESTAMPTZ])
def _age_timestamptz(arguments: Nodes, settings: Settings) -> exp.Expr:
    zone = text(settings.timezone)
    return _age(local_time(arguments[0], zone), local_time(arguments[1], zone))


def _age(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Years and months, days and time between, all of one sign."""
    later = call(TIMESTAMP, "greatest", left, right)
    earlier = call(TIMESTAMP, "least", left.copy(), right.copy())
    months = spark_cast(call(BIGINT, "timestampdiff", exp.var("MONTH"), earlier, later), INTEGER)
    # PostgreSQL counts the days left over in the month of the earlier moment.
    reached = call(TIMESTAMP, "timestampadd", exp.var("MONTH"), months, earlier.copy())
    rest = binary(exp.Sub, BIGINT, micros_of(later.copy()), micros_of(reached))
    days = spark_cast(binary(exp.IntDiv, BIGINT, rest, bigint(MICROS_PER_DAY)), INTEGER)
    time = binary(exp.Mod, BIGINT, rest.copy(), bigint(MICROS_PER_DAY))
    forward = intervals.build(months, days, time)
    minus = intervals.build(
        typed(exp.Neg(this=months.copy()), INTEGER),
        typed(exp.Neg(this=days.copy()), INTEGER),
        typed(exp.Neg(this=time.copy()), BIGINT),
    )
    made = case(
        INTERVAL,
        [
            (comparison(exp.GTE, left.copy(), right.copy()), forward),
            (comparison(exp.LT, left.copy(), right.copy()), minus),
        ],
    )
    return intervals.nullable(made)


@function("justify_hours", takes=[INTERVAL])
def _justify_hours(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    micros = intervals.micros_in(node)
    more = spark_cast(binary(exp.IntDiv, BIGINT, micros, bigint(MICROS_PER_DAY)), INTEGER)
    days = binary(exp.Add, INTEGER, intervals.days_of(node), more)
    return intervals.unless_null(
        intervals.build(
            intervals.months_of(node), days, binary(exp.Mod, BIGINT, micros.copy(), bigint(MICROS_PER_DAY))
        ),
        node,
    )


@function("justify_days", takes=[INTERVAL])
def _justify_days(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    days = intervals.days_of(node)
    more = spark_cast(binary(exp.IntDiv, BIGINT, days, integer(30)), INTEGER)
    months = binary(exp.Add, INTEGER, intervals.months_of(node), more)
    return intervals.unless_null(
        intervals.build(months, binary(exp.Mod, INTEGER, days.copy(), integer(30)), intervals.micros_in(node)), node
    )


@function("isfinite", takes=[TIMESTAMPTZ])
def _isfinite(arguments: Nodes, settings: Settings) -> exp.Expr:
    return case(BOOLEAN, [(not_null(arguments[0]), boolean(True))])


# --- formats -----------------------------------------------------------------------------------------

# PostgreSQL's template patterns as Spark's, longest first.
_PATTERNS = {
    "YYYY": "yyyy", "YYY": "yyy", "YY": "yy", "IYYY": "YYYY", "MONTH": None, "Month": "MMMM", "Mon": "MMM", "MON": None,
    "mon": None, "month": None, "MM": "MM", "DDD": "DDD", "DD": "dd", "Day": "EEEE", "DAY": None, "day": None,
    "Dy": "EEE", "DY": None, "dy": None, "HH24": "HH", "HH12": "hh", "HH": "hh", "MI": "mm", "SS": "ss",
    "MS": "SSS", "US": "SSSSSS", "AM": "a", "PM": "a", "am": None, "pm": None, "Q": "q", "TZH:TZM": "xxx", "OF": "x",
}  # fmt: skip
_CASED = {"MONTH": ("upper", "MMMM"), "month": ("lower", "MMMM"), "MON": ("upper", "MMM"), "mon": ("lower", "MMM"),
          "DAY": ("upper", "EEEE"), "day": ("lower", "EEEE"), "DY": ("upper", "EEE"), "dy": ("lower", "EEE"),
          "am": ("lower", "a"), "pm": ("lower", "a")}  # fmt: skip
_TOKEN = re.compile(r'(FM|"[^"]*"|' + "|".join(sorted(map(re.escape, _PATTERNS), key=len, reverse=True)) + r"|.)", re.S)


def _pieces(template: str) -> list[tuple[str, str, str]]:
    """(case, Spark pattern, literal text) of each piece of a template."""
    pieces: list[tuple[str, str, str]] = []
    for word in _TOKEN.findall(template):
        if word == "FM":
            continue
        if word.startswith('"'):
            pieces.append(("", "", word.strip('"')))
        elif word in _CASED:
            pieces.append((*_CASED[word], ""))
        elif word in _PATTERNS:
            pieces.append(("", _PATTERNS[word] or "", ""))
        else:
            pieces.append(("", "", word))
    return pieces


def _template(node: exp.Expr, name: str) -> str:
    if not isinstance(node, exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant format")
    return str(node.this)


@function("to_char", takes=[TIMESTAMP, VARCHAR])
def _to_char(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = spark_cast(arguments[0], TIMESTAMPTZ)
    template = _template(arguments[1], "to_char")
    fill = "FM" not in template
    parts: Nodes = []
    for how, pattern, literal in _pieces(template):
        if not pattern:
            parts.append(text(literal))
            continue
        part = call(VARCHAR, "date_format", node.copy(), text(pattern))
        if pattern in ("MMMM", "EEEE") and fill:
            part = call(VARCHAR, "rpad", part, integer(9), text(" "))
        parts.append(call(VARCHAR, how, part) if how else part)
    return call(VARCHAR, "concat", *parts) if parts else text("")


@function("to_char", takes=[TIMESTAMPTZ, VARCHAR])
def _to_char_zoned(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _to_char([local_time(arguments[0], text(settings.timezone)), arguments[1]], settings)


@function("to_char", takes=[Any_.NUMBER, VARCHAR])
def _to_char_number(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Digits `9` and `0`, `.` or `D`, `,` or `G`, `FM` and `S`."""
    template = _template(arguments[1], "to_char")
    trimmed = template.startswith("FM")
    body = template.removeprefix("FM")
    signed = body.startswith(("S", "MI"))
    body = body.removeprefix("S").removeprefix("MI")
    if not re.fullmatch(r"[90,.DG]+", body):
        raise FeatureNotSupported(f'number format "{template}" is not supported')
    whole, _, digits = body.replace("D", ".").replace("G", ",").partition(".")
    scale = len(digits)
    node = convert(arguments[0], numeric(38, scale, declared=True), settings)
    size = spark_cast(call(type_of(node), "abs", node.copy()), VARCHAR)
    integral = call(VARCHAR, "substring_index", size, text("."), integer(1))
    needed = len(whole.replace(",", "")) - (
        whole.replace(",", "").index("0") if "0" in whole else len(whole.replace(",", ""))
    )
    shown = integral
    if needed == 0 and scale:  # no zero before the point, unless nothing would be left of the number
        bare = [equal(integral.copy(), text("0")), *([comparison(exp.NEQ, node.copy(), integer(0))] if trimmed else [])]
        shown = case(VARCHAR, [(conjunction(bare), text(""))], integral)
    shown = case(
        VARCHAR,
        [
            (
                comparison(exp.LT, call(INTEGER, "length", shown.copy()), integer(needed)),
                call(VARCHAR, "lpad", shown.copy(), integer(needed), text("0")),
            )
        ],
        shown,
    )
    if "," in whole:
        shown = call(VARCHAR, "regexp_replace", shown, text(r"(?<=\d)(?=(\d{3})+$)"), text(","))
    if scale:
        fraction = call(VARCHAR, "substring_index", size.copy(), text("."), integer(-1))
        if trimmed and "0" not in digits:
            fraction = call(VARCHAR, "rtrim", text("0"), fraction)
        shown = call(VARCHAR, "concat", shown, text("."), fraction)
    negative = comparison(exp.LT, node, integer(0))
    plus = "+" if signed else ("" if trimmed else " ")
    sign = case(VARCHAR, [(negative, text("-"))], text(plus))
    made = call(VARCHAR, "concat", sign, shown)
    return made if trimmed else call(VARCHAR, "lpad", made, integer(len(body) + 1), text(" "))


def _parsed(arguments: Nodes, name: str, settings: Settings) -> exp.Expr:
    pieces = _pieces(_template(arguments[1], name))
    pattern = "".join(
        part or ("'" + literal.replace("'", "''") + "'" if literal.isalpha() else literal)
        for _, part, literal in pieces
    )
    if settings.strict:
        return call(TIMESTAMPTZ, "to_timestamp", arguments[0], text(pattern))
    return attempt(TIMESTAMPTZ, "try_to_timestamp", arguments[0], text(pattern))


@function("to_timestamp", takes=[VARCHAR, VARCHAR])
def _to_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    return instant(spark_cast(_parsed(arguments, "to_timestamp", settings), TIMESTAMP), text(settings.timezone))


@function("to_date", takes=[VARCHAR, VARCHAR])
def _to_date(arguments: Nodes, settings: Settings) -> exp.Expr:
    return spark_cast(_parsed(arguments, "to_date", settings), DATE)


@function("timezone", takes=[VARCHAR, TIMESTAMP])
def _timezone(arguments: Nodes, settings: Settings) -> exp.Expr:
    return instant(arguments[1], arguments[0])


@function("timezone", takes=[VARCHAR, TIMESTAMPTZ])
def _timezone_back(arguments: Nodes, settings: Settings) -> exp.Expr:
    return local_time(arguments[1], arguments[0])


@function("date", takes=[TIMESTAMPTZ])
def _date(arguments: Nodes, settings: Settings) -> exp.Expr:
    return convert(arguments[0], DATE, settings)
