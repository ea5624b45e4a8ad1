"""Time, behind a protocol: the wall clock, and one that a simulation moves by hand."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock milliseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds that never go backwards."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class SimulatedClock:
    """Stands still until `advance` is called."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._ms = start_ms

    def now_ms(self) -> int:
        return self._ms

    def monotonic(self) -> float:
        return self._ms / 1000

    def advance(self, ms: int) -> None:
        self._ms += ms
