"""`FROM t FOR SYSTEM_TIME AS OF <moment>`: which moment is meant, and the source that stands for the relation then.

A moment is a number of seconds since 1970, a text with a timestamp, or `now()`, from which an interval may be taken.
It is known when the query is bound, so a source with a moment is a name like any other: `r12@1700000000000`.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import UTC, datetime, timedelta

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter, SyntaxError_
from seiche.sql.calls import call_of
from seiche.sql.literals import parse_interval, parse_timestamp, zone_of
from seiche.sql.nodes import Settings
from seiche.types import TIMESTAMPTZ

_SEPARATOR = "@"
_CLOCKS = ("now", "current_timestamp")
_ZERO = datetime(1970, 1, 1)


def past_source(source: str, version: exp.Version, settings: Settings) -> str:
    """The name of a source as of a moment. Raises where the past cannot be read or the moment is none."""
    if not settings.past or settings.now_ms is None:
        raise FeatureNotSupported(
            "only a query can read a relation as of an earlier time",
            hint="Leave out FOR SYSTEM_TIME AS OF, or read the past with SELECT.",
        )
    if version.args.get("kind") != "AS OF" or not isinstance(version.expression, exp.Expr):
        raise SyntaxError_("FOR SYSTEM_TIME is followed by AS OF and a moment")
    return f"{source}{_SEPARATOR}{_moment_ms(version.expression, settings, settings.now_ms)}"


def past_of(source: str) -> tuple[str, int] | None:
    """The source and the milliseconds that a name was made of; None for a source of now."""
    now, separator, moment = source.partition(_SEPARATOR)
    return (now, int(moment)) if separator and moment.lstrip("-").isdecimal() else None


def reads_past(query: exp.Expr) -> bool:
    return any(past_of(table.name) is not None for table in query.find_all(exp.Table))


def _moment_ms(node: exp.Expr, settings: Settings, now_ms: int) -> int:
    match node:
        case exp.Paren():
            return _moment_ms(node.this, settings, now_ms)
        case exp.Literal(is_string=True):
            return _written_ms(node.name, settings)
        case exp.Literal() if node.name.isdecimal():
            return int(node.name) * 1000
        case exp.Add() | exp.Sub() if isinstance(node.expression, exp.Interval):
            moment = _moment_ms(node.this, settings, now_ms)
            return _shifted(moment, node.expression, 1 if isinstance(node, exp.Add) else -1)
        case _:
            found = call_of(node)
            if found is not None and found[0] in _CLOCKS:
                return now_ms
    raise SyntaxError_(
        f"{node.sql('seiche')} is not a moment to read as of",
        hint="Write seconds since 1970, a timestamp in quotes, or now() - INTERVAL '5 minutes'.",
    )


def _written_ms(text: str, settings: Settings) -> int:
    value, zone = parse_timestamp(text, TIMESTAMPTZ, settings)
    if zone is None:
        zone = zone_of(settings.timezone)
    instant = value - zone if isinstance(zone, timedelta) else value.replace(tzinfo=zone).astimezone(UTC)
    return round((instant.replace(tzinfo=None) - _ZERO) / timedelta(milliseconds=1))


def _shifted(moment_ms: int, interval: exp.Interval, sign: int) -> int:
    unit = interval.args.get("unit")
    months, days, micros = parse_interval(interval.this.name, unit.name if unit is not None else None)
    try:
        moment = _ZERO + timedelta(milliseconds=moment_ms)
        total = moment.year * 12 + moment.month - 1 + sign * months
        year, month = total // 12, total % 12 + 1
        day = min(moment.day, monthrange(year, month)[1])
        shifted = moment.replace(year=year, month=month, day=day) + sign * timedelta(days=days, microseconds=micros)
    except (ValueError, OverflowError):
        raise InvalidParameter("the moment to read as of is out of range") from None
    return round((shifted - _ZERO) / timedelta(milliseconds=1))
