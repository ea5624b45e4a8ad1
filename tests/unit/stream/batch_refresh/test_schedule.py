"""Intervals and cron lines."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from seiche.errors import InvalidParameter
from seiche.stream.batch_refresh.schedule import Every, read_cron, read_schedule


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("line", "after", "following"),
    [
        ("0 6 * * *", "2026-11-15T05:59:59", "2026-11-15T06:00"),
        ("0 6 * * *", "2026-11-15T06:00", "2026-11-16T06:00"),
        ("*/15 * * * *", "2026-11-15T06:16", "2026-11-15T06:30"),
        ("30 8-10 * * 1-5", "2026-11-13T10:30", "2026-11-16T08:30"),  # from Friday to Monday
        ("0 0 29 2 *", "2026-01-01T00:00", "2028-02-29T00:00"),
        ("0 12 1 * 0", "2026-11-02T00:00", "2026-11-08T12:00"),  # the first of a month, or a Sunday
        ("0 0 * * 7", "2026-11-15T00:00", "2026-11-22T00:00"),  # 7 is Sunday too
    ],
)
def test_a_cron_line_names_the_next_time(line: str, after: str, following: str) -> None:
    assert read_cron(line).next_after(ms(after)) == ms(following)


@pytest.mark.parametrize("line", ["* * * *", "60 * * * *", "a * * * *", "5-1 * * * *", "*/0 * * * *", "0 0 31 2 *"])
def test_a_line_that_names_no_time_is_refused(line: str) -> None:
    with pytest.raises(InvalidParameter):
        read_cron(line)


def test_a_view_has_one_schedule_or_none() -> None:
    assert read_schedule({}) is None
    assert read_schedule({"refresh.interval.sec": "60"}) == Every(60_000)
    with pytest.raises(InvalidParameter, match="together"):
        read_schedule({"refresh.interval.sec": "60", "refresh.cron": "0 6 * * *"})
    for wrong in ("0", "-1", "soon", "1.5"):
        with pytest.raises(InvalidParameter, match="positive"):
            read_schedule({"refresh.interval.sec": wrong})
    assert read_schedule({"refresh.interval.sec": "2147483647"}) == Every(2147483647_000)
    for too_long in ("2147483648", "9" * 5000):
        with pytest.raises(InvalidParameter, match="at most"):
            read_schedule({"refresh.interval.sec": too_long})
