"""A clock that tests move by hand."""

from __future__ import annotations

import time

START_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC


class HandClock:
    """A wall clock that stands still until it is moved; waiting takes its real time."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return time.monotonic()
