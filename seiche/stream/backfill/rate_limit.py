"""How fast history may be read: one limiter for every kind of backfill.

Permits grow with time and are spent by rows that were read. A step may overdraw, since rows come in slices that are
not cut to the row; what it overdrew is waited for afterwards, so the average keeps to the rate. A step is told when it
ends, so it may read what will be permitted by then: else progress would always be a step behind the clock. Permits that
nobody used pile up for half a minute, and are used a few seconds' worth at a time: a cold start and a step that took
long are caught up with. A pause and a wait for a place are not (`begin`).

    rate None   no limit        rate 0   paused        rate n   n rows a second, of each task where their number is set
"""

from __future__ import annotations

import threading

from seiche.clock import Clock
from seiche.errors import InvalidParameter

BURST_SECONDS = 5.0  # whose permits one step may use
ARREARS_SECONDS = 30.0  # whose permits are kept for later
RATE_MAX = 2**31 - 1


class RateLimiter:
    """Safe to use from several threads: one reads, another changes the rate."""

    def __init__(self, clock: Clock, rate: int | None) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._rate = rate
        self._tasks = 1
        self._permits = 0.0
        self._seen = clock.monotonic()

    @property
    def rate(self) -> int | None:
        return self._rate

    def set(self, rate: int | None) -> None:
        """Another rate from now on. What was overdrawn at the old one is forgotten: the user wants the new pace."""
        with self._lock:
            self._settle()
            self._rate = rate
            self._permits = 0.0

    def set_tasks(self, tasks: int) -> None:
        """So many tasks may read, each at the rate."""
        with self._lock:
            self._settle()
            self._tasks = tasks

    @property
    def _pace(self) -> int | None:
        return None if self._rate is None else self._rate * self._tasks

    def begin(self) -> None:
        """The time until now permits nothing."""
        with self._lock:
            self._settle()
            self._permits = 0.0

    def available(self, ahead_seconds: float = 0.0) -> int | None:
        """Rows that a step may read which ends so many seconds from now; None when there is no limit."""
        with self._lock:
            self._settle()
            if self._pace is None:
                return None
            permits = min(self._permits + self._pace * ahead_seconds, self._most(BURST_SECONDS))
            return max(int(permits), 0)

    def spend(self, rows: int) -> None:
        with self._lock:
            self._settle()
            if self._rate is not None:
                self._permits -= rows

    def delay(self) -> float | None:
        """Seconds until a row may be read; None while paused, which only another rate ends."""
        with self._lock:
            self._settle()
            if self._pace is None or self._permits >= 1:
                return 0.0
            return None if self._pace == 0 else (1 - self._permits) / self._pace

    def _settle(self) -> None:
        now = self._clock.monotonic()
        passed, self._seen = now - self._seen, now
        if self._pace:
            self._permits = min(self._permits + passed * self._pace, self._most(ARREARS_SECONDS))

    def _most(self, seconds: float) -> float:
        return max((self._pace or 0) * seconds, 1.0)


def rate_of(text: str | None, *, where: str) -> int | None:
    """The rate that a setting stands for: rows a second, 0 pauses, -1 and DEFAULT do not limit."""
    if text is None or text.lower() == "default":
        return None
    digits = text.removeprefix("-")
    if not digits.isdecimal() or (text.startswith("-") and text != "-1"):
        raise InvalidParameter(
            f'{where} must be a number of rows a second, not "{text}"', hint="0 pauses, -1 or DEFAULT does not limit."
        )
    if text == "-1":
        return None
    if len(text) > len(str(RATE_MAX)) or int(text) > RATE_MAX:
        raise InvalidParameter(f"{where} is {RATE_MAX} rows a second at most", hint="-1 or DEFAULT does not limit.")
    return int(text)
