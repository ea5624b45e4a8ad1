from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from sqlglot import exp

from seiche.sql.literals import date_literal, interval_literal, timestamp_literal
from seiche.sql.moments import by_days, moment_constant, moved
from seiche.sql.nodes import typed
from seiche.types import DATE, TIMESTAMP

COMPARED: dict[type[exp.Binary], Callable[[Any, Any], bool]] = {
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
}
MIDNIGHT = datetime(2024, 2, 29)
DAY = typed(exp.column("day"), DATE)


def _value(node: exp.Expr, day: date) -> date:
    found = moment_constant(node)
    return day if found is None else found.date()


@pytest.mark.parametrize("kind", COMPARED)
@pytest.mark.parametrize("moment", [MIDNIGHT, MIDNIGHT + timedelta(microseconds=1), datetime(2024, 2, 29, 23, 59)])
@pytest.mark.parametrize("mirrored", [False, True])
def test_days_compare_as_the_moments_do(kind: type[exp.Binary], moment: datetime, mirrored: bool) -> None:
    operands = (timestamp_literal(moment), DAY) if mirrored else (DAY, timestamp_literal(moment))
    days = by_days(kind, *operands)
    if days is None:  # no day equals it, which a comparison of days does not tell
        assert kind in (exp.EQ, exp.NEQ) and moment != MIDNIGHT
        return
    for day in (MIDNIGHT.date() + timedelta(days=number) for number in (-1, 0, 1, 2)):
        values = (moment, datetime(day.year, day.month, day.day))
        expected = COMPARED[kind](*(values if mirrored else reversed(values)))
        assert COMPARED[kind](_value(days[0], day), _value(days[1], day)) == expected


def test_only_a_timestamp_that_is_written_down_becomes_a_day() -> None:
    assert by_days(exp.LT, DAY, typed(exp.column("moment"), TIMESTAMP)) is None
    assert by_days(exp.LT, DAY, date_literal(date(2024, 1, 1))) is None
    assert by_days(exp.LT, DAY, timestamp_literal(datetime.max)) is None


@pytest.mark.parametrize(
    ("moment", "interval", "reached"),
    [
        (date_literal(date(1998, 12, 1)), (0, -90, 0), datetime(1998, 9, 2)),
        (date_literal(date(2024, 1, 31)), (1, 0, 0), datetime(2024, 2, 29)),
        (date_literal(date(2024, 1, 31)), (1, 1, 1), datetime(2024, 3, 1, 0, 0, 0, 1)),
        (timestamp_literal(datetime(2024, 3, 31, 12)), (-13, 0, 0), datetime(2023, 2, 28, 12)),
        (timestamp_literal(datetime(2023, 12, 31, 23, 59, 59)), (0, 0, 1_000_000), datetime(2024, 1, 1)),
    ],
)
def test_moves_months_then_days_then_time(moment: exp.Expr, interval: tuple[int, int, int], reached: datetime) -> None:
    made = moved(moment, interval_literal(*interval))
    assert made is not None and moment_constant(made) == reached


@pytest.mark.parametrize("interval", [(12 * 9000, 0, 0), (-12 * 3000, 0, 0), (0, 2**31 - 1, 0), (0, 0, 2**63 - 1)])
def test_what_is_beyond_the_calendar_of_python_is_left_to_spark(interval: tuple[int, int, int]) -> None:
    assert moved(date_literal(date(2024, 1, 1)), interval_literal(*interval)) is None


def test_a_year_far_away_is_no_constant() -> None:
    assert moment_constant(date_literal(date(2000, 1, 1), cycles=30)) is None
    assert moment_constant(date_literal(date(2000, 1, 1), cycles=-6)) is None
