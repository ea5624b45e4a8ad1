"""Dates and timestamps that are written down, reckoned with when a statement is bound.

`DATE '1998-12-01' - INTERVAL '90 days'` is a timestamp to PostgreSQL. Left to Spark, a column of dates is cast for the
comparison with it, row by row, and no file can be skipped by what it holds. Known as a value it becomes the day that
decides: a date is before 10 o'clock on the first exactly if it is before the second.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, timedelta

from sqlglot import exp

from seiche.sql.literals import date_literal, interval_constant, timestamp_literal
from seiche.sql.nodes import kind_of
from seiche.types import Kind

_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


def moment_constant(node: exp.Expr) -> datetime | None:
    """The value of a date or a timestamp without a zone that was written down, of the years 1 to 9999."""
    if not isinstance(node, exp.Cast) or kind_of(node) not in (Kind.DATE, Kind.TIMESTAMP):
        return None
    inner = node.this
    if isinstance(inner, exp.Literal) and inner.is_string:
        try:
            return datetime.fromisoformat(inner.name)
        except ValueError:  # far from our time
            return None
    return moment_constant(inner) if kind_of(inner) is Kind.DATE else None


def moved(node: exp.Expr, by: exp.Expr) -> exp.Expr | None:
    """A moment that was written down, moved by an interval that was: months, then days, then time. None for others."""
    moment, parts = moment_constant(node), interval_constant(by)
    if moment is None or parts is None:
        return None
    months, days, micros = parts
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    try:
        last = monthrange(year, month + 1)[1]
        reached = moment.replace(year=year, month=month + 1, day=min(moment.day, last))
        return timestamp_literal(reached + timedelta(days=days) + timedelta(microseconds=micros))
    except (ValueError, OverflowError):  # beyond Python's calendar
        return None


def by_days(kind: type[exp.Binary], left: exp.Expr, right: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """A date and a timestamp that was written down as two dates that compare the same. None for other operands."""
    if kind not in _MIRRORED or {kind_of(left), kind_of(right)} != {Kind.DATE, Kind.TIMESTAMP}:
        return None
    if kind_of(left) is Kind.TIMESTAMP:
        mirrored = by_days(_MIRRORED[kind], right, left)
        return mirrored and (mirrored[1], mirrored[0])
    moment = moment_constant(right)
    day = None if moment is None else _deciding_day(kind, moment)
    return None if day is None else (left, date_literal(day))


def _deciding_day(kind: type[exp.Binary], moment: datetime) -> date | None:
    day = moment.date()
    if moment == datetime.combine(day, datetime.min.time()) or kind in (exp.LTE, exp.GT):
        return day
    if kind in (exp.EQ, exp.NEQ) or day == date.max:
        return None
    return day + timedelta(days=1)
