"""Intervals and the arithmetic of dates and times.

An interval is stored as struct<months, days, micros>; its three parts never mix, except that comparing takes a
month for 30 days and a day for 24 hours, as PostgreSQL does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from seiche.sql.attempts import attempted
from seiche.sql.casts import convert, instant, local_time, micros_of
from seiche.sql.literals import MICROS_PER_DAY, constant_integer, interval_constant, interval_literal
from seiche.sql.moments import moved
from seiche.sql.nodes import (
    Settings,
    attempt,
    bigint,
    binary,
    call,
    case,
    checked_cast,
    comparison,
    conjunction,
    field,
    guarded,
    integer,
    negation,
    not_null,
    once,
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
    Kind,
    SqlType,
    numeric,
)

_APART = "apart"  # the mark of a difference of moments
_MOMENTS = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)

# PostgreSQL's calendar, in days since 1970: from 4714-11-24 BC to 5874897-12-31.
_FIRST_DAY, _LAST_DAY = -2_440_588, 2_145_042_905
_FACTOR_MAX = 2**31 - 1  # of an integer that is written down
_FEW_DAYS = 1_000_000  # no date of the calendar comes near the end of 32 bits by them


def build(months: exp.Expr, days: exp.Expr, micros: exp.Expr) -> exp.Expr:
    return call(INTERVAL, "named_struct", text("months"), months, text("days"), days, text("micros"), micros)


def nullable(made: exp.Expr) -> exp.Expr:
    """The same in the stored type, whose fields may be NULL: without that Arrow cannot hold a NULL of the whole."""
    return spark_cast(made, INTERVAL)


def unless_null(made: exp.Expr, *operands: exp.Expr) -> exp.Expr:
    """A struct of NULLs is not NULL: the interval exists where all that it was made from does."""
    unknown = [
        not_null(part.copy()) for part in operands if interval_constant(part) is None and constant_integer(part) is None
    ]
    return nullable(case(INTERVAL, [(conjunction(unknown), made)])) if unknown else made


def months_of(node: exp.Expr) -> exp.Expr:
    return _part(node, "months", INTEGER, 0)


def days_of(node: exp.Expr) -> exp.Expr:
    return _part(node, "days", INTEGER, 1)


def micros_in(node: exp.Expr) -> exp.Expr:
    return _part(node, "micros", BIGINT, 2)


def _part(node: exp.Expr, name: str, type_: SqlType, index: int) -> exp.Expr:
    if constant := interval_constant(node):
        return integer(constant[index], type_)
    return field(node.copy(), name, type_)


_LENGTH = numeric(25, 0)


def length(node: exp.Expr) -> exp.Expr:
    """Microseconds, for comparing. Those of the longest interval have 22 digits, more than a bigint."""
    days = binary(
        exp.Add, BIGINT, binary(exp.Mul, BIGINT, spark_cast(months_of(node), BIGINT), bigint(30)), days_of(node)
    )
    day = spark_cast(exp.Literal.number(MICROS_PER_DAY), numeric(11, 0))
    whole = binary(exp.Mul, numeric(24, 0), spark_cast(days, numeric(12, 0)), day)
    return binary(exp.Add, _LENGTH, whole, spark_cast(micros_in(node), numeric(19, 0)))


@dataclass(frozen=True, slots=True)
class _Apart:
    """What a bound difference of two moments was made of."""

    left: exp.Expr
    right: exp.Expr
    type: SqlType  # in which both are compared

    def __deepcopy__(self, _: object) -> _Apart:
        return self  # it is only read


def lengths(left: exp.Expr, right: exp.Expr, settings: Settings) -> tuple[exp.Expr, exp.Expr]:
    """Those of two intervals. How far moments are apart, compared with a constant or with such another, is a bigint."""
    short = _micros_alone(left, settings), _micros_alone(right, settings)
    if short[0] is not None and short[1] is not None:
        return short[0], short[1]
    return length(left), length(right)


def _micros_alone(node: exp.Expr, settings: Settings) -> exp.Expr | None:
    if (constant := interval_constant(node)) is not None:
        months, days, micros = constant
        total = (months * 30 + days) * MICROS_PER_DAY + micros
        return bigint(total) if abs(total) < 2**63 else None
    apart = node.unnest().meta.get(_APART)
    if not isinstance(apart, _Apart):
        return None
    operands = apart.left.copy(), apart.right.copy()
    made = _micros_between(*(convert(each, apart.type, settings) for each in operands))
    return made if settings.strict else attempted(made, operands)


def arithmetic(symbol: str, left: exp.Expr, right: exp.Expr, settings: Settings) -> exp.Expr | None:
    """The result, or None where no such operator exists."""
    a, b = type_of(left).kind, type_of(right).kind
    match symbol, a, b:
        case "+", Kind.INTERVAL, Kind.INTERVAL:
            return _sum(exp.Add, left, right)
        case "-", Kind.INTERVAL, Kind.INTERVAL:
            return _sum(exp.Sub, left, right)
        case "+" | "-", Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME, Kind.INTERVAL:
            return shift(left, right if symbol == "+" else scaled(right, integer(-1), settings), settings)
        case "+", Kind.INTERVAL, Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ | Kind.TIME:
            return shift(right, left, settings)
        case "+", Kind.DATE, Kind.SMALLINT | Kind.INTEGER:
            return _days_later(exp.Add, left, right, settings)
        case "+", Kind.SMALLINT | Kind.INTEGER, Kind.DATE:
            return _days_later(exp.Add, right, left, settings)
        case "-", Kind.DATE, Kind.SMALLINT | Kind.INTEGER:
            return _days_later(exp.Sub, left, right, settings)
        case "-", Kind.DATE, Kind.DATE:
            return call(INTEGER, "date_diff", left, right)
        case "-", _, _ if a in _MOMENTS and b in _MOMENTS:
            zoned = Kind.TIMESTAMPTZ in (a, b)
            type_ = TIMESTAMPTZ if zoned else TIMESTAMP
            apart = _Apart(left.copy(), right.copy(), type_)
            made = difference(convert(left, type_, settings), convert(right, type_, settings))
            made.meta[_APART] = apart
            return made
        case "-", Kind.TIME, Kind.TIME:
            made = build(integer(0), integer(0), binary(exp.Sub, BIGINT, left, right))
            return unless_null(made, left, right)
        case "+", Kind.DATE, Kind.TIME:
            return _at_time(left, right)
        case "+", Kind.TIME, Kind.DATE:
            return _at_time(right, left)
        case "*" | "/", Kind.TIME, _ if type_of(right).is_number:
            return arithmetic(symbol, convert(left, INTERVAL, settings), right, settings)
        case "*", _, Kind.TIME if type_of(left).is_number:
            return arithmetic(symbol, left, convert(right, INTERVAL, settings), settings)
        case "*", Kind.INTERVAL, _ if type_of(right).is_number:
            return scaled(left, right, settings)
        case "*", _, Kind.INTERVAL if type_of(left).is_number:
            return scaled(right, left, settings)
        case "/", Kind.INTERVAL, _ if type_of(right).is_number:
            return _divided(left, right, settings)
    return None


def _days_later(kind: type[exp.Binary], day: exp.Expr, count: exp.Expr, settings: Settings) -> exp.Expr:
    """A date some days later, or earlier. Spark counts days in 32 bits, and goes round without an error."""
    made = call(DATE, "date_add" if kind is exp.Add else "date_sub", day, count)
    constant = constant_integer(count)
    if constant is not None and abs(constant) < _FEW_DAYS:
        return made
    known = spark_cast(call(INTEGER, "unix_date", day.copy()), BIGINT)
    reached = binary(kind, BIGINT, known, spark_cast(count.copy(), BIGINT))
    inside = typed(exp.Between(this=reached, low=bigint(_FIRST_DAY), high=bigint(_LAST_DAY)), BOOLEAN)
    return guarded(made, negation(inside), "date out of range", settings)


def _sum(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    first, second = interval_constant(left), interval_constant(right)
    if first is not None and second is not None:
        sign = 1 if kind is exp.Add else -1
        months, days, micros = (a + sign * b for a, b in zip(first, second, strict=True))
        return interval_literal(months, days, micros)
    made = build(
        binary(kind, INTEGER, months_of(left), months_of(right)),
        binary(kind, INTEGER, days_of(left), days_of(right)),
        binary(kind, BIGINT, micros_in(left), micros_in(right)),
    )
    return unless_null(made, left, right)


def scaled(node: exp.Expr, factor: exp.Expr, settings: Settings) -> exp.Expr:
    """An interval times a number; a fraction of a month falls to days, of a day to time."""
    constant, times = interval_constant(node), constant_integer(factor)
    if constant is not None and times is not None:
        return interval_literal(constant[0] * times, constant[1] * times, constant[2] * times)
    if times is not None and abs(times) <= _FACTOR_MAX:
        made = build(
            binary(exp.Mul, INTEGER, months_of(node), integer(times)),
            binary(exp.Mul, INTEGER, days_of(node), integer(times)),
            binary(exp.Mul, BIGINT, micros_in(node), bigint(times)),
        )
        return unless_null(made, node)
    if type_of(factor).is_integer:
        made = build(
            checked_cast(binary(exp.Mul, BIGINT, months_of(node), spark_cast(factor, BIGINT)), INTEGER, settings),
            checked_cast(binary(exp.Mul, BIGINT, days_of(node), spark_cast(factor.copy(), BIGINT)), INTEGER, settings),
            binary(exp.Mul, BIGINT, micros_in(node), spark_cast(factor.copy(), BIGINT)),
        )
        return unless_null(made, node, factor)
    number = convert(factor, DOUBLE, settings)
    return _fractional(node, number, lambda part: binary(exp.Mul, DOUBLE, part, number.copy()))


def _divided(node: exp.Expr, divisor: exp.Expr, settings: Settings) -> exp.Expr:
    number = convert(divisor, DOUBLE, settings)
    if settings.strict:
        return _fractional(node, number, lambda part: binary(exp.Div, DOUBLE, part, number.copy()))
    return _fractional(node, number, lambda part: attempt(DOUBLE, "try_divide", part, number.copy()))


def _whole_if_near(days: exp.Expr) -> exp.Expr:
    """0.4 of a month is 12 days, and not a little less. PostgreSQL rounds to six digits, and loses milliseconds."""
    whole = call(DOUBLE, "rint", days.copy())
    apart = call(DOUBLE, "abs", binary(exp.Sub, DOUBLE, days.copy(), whole))
    near = comparison(exp.LT, apart, spark_cast(exp.Literal.string("1e-10"), DOUBLE))
    return case(DOUBLE, [(near, whole.copy())], days)


def _fractional(node: exp.Expr, number: exp.Expr, scale: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Each part of an interval, scaled by the number as `scale` does it."""
    months = scale(spark_cast(months_of(node), DOUBLE))
    whole_months = spark_cast(months, INTEGER)
    spare = binary(exp.Mul, DOUBLE, binary(exp.Sub, DOUBLE, months.copy(), whole_months.copy()), integer(30))
    spare = once(spare, DOUBLE, _whole_if_near, number)
    days = scale(spark_cast(days_of(node), DOUBLE))
    whole_days = binary(exp.Add, INTEGER, spark_cast(days, INTEGER), spark_cast(spare, INTEGER))
    rest = binary(
        exp.Add,
        DOUBLE,
        binary(exp.Sub, DOUBLE, days.copy(), spark_cast(days.copy(), INTEGER)),
        binary(exp.Sub, DOUBLE, spare.copy(), spark_cast(spare.copy(), INTEGER)),
    )
    # Six digits, so that 0.1 of a month is three days and no stray microseconds.
    seconds = call(DOUBLE, "bround", binary(exp.Mul, DOUBLE, rest, integer(86_400)), integer(6))
    micros = scale(spark_cast(micros_in(node), DOUBLE))
    total = binary(exp.Add, DOUBLE, micros, binary(exp.Mul, DOUBLE, seconds, integer(1_000_000)))
    made = build(whole_months, whole_days, spark_cast(call(DOUBLE, "rint", total), BIGINT))
    return unless_null(made, node, number)


def shift(node: exp.Expr, by: exp.Expr, settings: Settings) -> exp.Expr:
    """A moment moved by an interval: first months, then days, then time."""
    if known := moved(node, by):
        return known
    type_ = type_of(node)
    if type_.kind is Kind.TIME:
        later = binary(exp.Add, BIGINT, typed(node, BIGINT), micros_in(by))
        return call(TIME, "pmod", later, bigint(MICROS_PER_DAY))
    if type_.kind is Kind.DATE:
        node, type_ = spark_cast(node, TIMESTAMP), TIMESTAMP
    zoned = type_.kind is Kind.TIMESTAMPTZ and settings.timezone != "UTC"
    months, days, micros = months_of(by), days_of(by), micros_in(by)
    calendar = [(unit, amount) for unit, amount in (("MONTH", months), ("DAY", days)) if constant_integer(amount) != 0]
    if zoned and calendar:  # a day is a day of the wall clock
        node = local_time(node, text(settings.timezone))
    for unit, amount in calendar:
        node = _add(unit, amount, node)
    if zoned and calendar:
        node = instant(node, text(settings.timezone))
    return _add("MICROSECOND", micros, node) if constant_integer(micros) != 0 else typed(node, type_)


def _add(unit: str, amount: exp.Expr, node: exp.Expr) -> exp.Expr:
    return call(type_of(node), "timestampadd", exp.var(unit), amount, node)


def difference(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Days and time between two timestamps."""
    micros = _micros_between(left, right)
    days = spark_cast(binary(exp.IntDiv, BIGINT, micros, bigint(MICROS_PER_DAY)), INTEGER)
    made = build(integer(0), days, binary(exp.Mod, BIGINT, micros.copy(), bigint(MICROS_PER_DAY)))
    return unless_null(made, left, right)


def _micros_between(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return binary(exp.Sub, BIGINT, micros_of(left), micros_of(right))


def _at_time(day: exp.Expr, time: exp.Expr) -> exp.Expr:
    return _add("MICROSECOND", typed(time, BIGINT), spark_cast(day, TIMESTAMP))


def epoch_seconds(micros: exp.Expr) -> exp.Expr:
    """Microseconds as seconds with six digits."""
    type_ = numeric(20, 6, declared=True)
    exact = binary(
        exp.Div, numeric(38, 12), spark_cast(micros, numeric(20, 0)), spark_cast(integer(1_000_000), numeric(7, 0))
    )
    return spark_cast(exact, type_)
