"""When a batch refresh view is due: every so many seconds, or at the times that a cron line names (in UTC)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from seiche.errors import InvalidParameter

INTERVAL = "refresh.interval.sec"
CRON = "refresh.cron"
SEARCH_DAYS = 366 * 8  # a 29th of February comes at least every eight years
LONGEST_SECONDS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Every:
    ms: int


@dataclass(frozen=True, slots=True)
class Cron:
    """Minutes, hours, days of the month, months, days of the week (0 is Sunday)."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool

    def next_after(self, ms: int) -> int:
        """The first of its times after a moment, in milliseconds since 1970."""
        moment = datetime.fromtimestamp(ms / 1000, UTC).replace(second=0, microsecond=0) + timedelta(minutes=1)
        day = moment.replace(hour=0, minute=0)
        for offset in range(SEARCH_DAYS):
            today = day + timedelta(days=offset)
            if not self._has_day(today):
                continue
            for hour in sorted(self.hours):
                for minute in sorted(self.minutes):
                    found = today.replace(hour=hour, minute=minute)
                    if found >= moment:
                        return int(found.timestamp() * 1000)
        raise InvalidParameter(f'cron line "{self.text}" names a day that never comes')

    def _has_day(self, day: datetime) -> bool:
        if day.month not in self.months:
            return False
        in_month, in_week = day.day in self.days, (day.weekday() + 1) % 7 in self.weekdays
        # As cron has it: where both are restricted, either will do.
        return (in_month or in_week) if not self.any_day and not self.any_weekday else (in_month and in_week)


Schedule: TypeAlias = Every | Cron


def read_schedule(options: dict[str, str]) -> Schedule | None:
    """The schedule that a view's options ask for; None for a view that follows every barrier."""
    if INTERVAL in options and CRON in options:
        raise InvalidParameter(f"{INTERVAL} and {CRON} cannot be given together", hint="Choose one of them.")
    if INTERVAL in options:
        return Every(_seconds(options[INTERVAL]) * 1000)
    return read_cron(options[CRON]) if CRON in options else None


def _seconds(text: str) -> int:
    digits = text.lstrip("0")
    if not digits.isdecimal():
        raise InvalidParameter(
            f'{INTERVAL} must be a positive number of seconds, not "{text}"',
            hint=f"WITH ({INTERVAL} = 60) refreshes every minute. Leave it out to follow every change at once.",
        )
    if len(digits) > len(str(LONGEST_SECONDS)) or int(digits) > LONGEST_SECONDS:
        raise InvalidParameter(
            f"{INTERVAL} is {LONGEST_SECONDS} seconds at most",
            hint="REFRESH MATERIALIZED VIEW runs it before its time.",
        )
    return int(digits)


_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 7))


def read_cron(text: str) -> Cron:
    """A line of five fields: lists, ranges, steps and `*`."""
    parts = text.split()
    if len(parts) != len(_FIELDS):
        raise InvalidParameter(
            f'cron line "{text}" has {len(parts)} fields instead of 5',
            hint="They are minute, hour, day of month, month, day of week: '0 6 * * *' is every day at six, UTC.",
        )
    read = [_field(part, *field) for part, field in zip(parts, _FIELDS, strict=True)]
    weekdays = frozenset(day % 7 for day in read[4])
    cron = Cron(text, read[0], read[1], read[2], read[3], weekdays, parts[2] == "*", parts[4] == "*")
    cron.next_after(0)
    return cron


def _field(text: str, name: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        if span == "*":
            first, last = str(low), str(high)
        elif step and not last:
            last = str(high)
        numbers = (first, last or first, step or "1")
        if not all(number.isdecimal() for number in numbers):
            raise _bad(text, name, low, high)
        start, end, width = map(int, numbers)
        if not low <= start <= end <= high or width < 1:
            raise _bad(text, name, low, high)
        found.update(range(start, end + 1, width))
    return frozenset(found)


def _bad(text: str, name: str, low: int, high: int) -> InvalidParameter:
    return InvalidParameter(
        f'"{text}" is no {name} of a cron line', hint=f"Allowed are {low} to {high}, lists and ranges."
    )
