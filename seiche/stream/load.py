"""How busy the main graph has been of late, for work beside it to make room.

Spark's scheduler gives free cores to the main graph first, but takes none away from a task that runs. So while epochs
follow each other, history is read by one task less than there are cores.
"""

from __future__ import annotations

import threading
from collections import deque

from seiche.clock import Clock

WINDOW_SECONDS = 10.0
BUSY_SHARE = 0.1


class StreamLoad:
    """Safe to use from several threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._worked: deque[tuple[float, float]] = deque()  # when an epoch ended, and its seconds

    def epoch_took(self, seconds: float) -> None:
        with self._lock:
            self._worked.append((self._clock.monotonic(), seconds))
            self._forget()

    @property
    def busy(self) -> bool:
        """Whether epochs took a tenth of the last seconds or more."""
        with self._lock:
            self._forget()
            return sum(seconds for _, seconds in self._worked) >= BUSY_SHARE * WINDOW_SECONDS

    def tasks(self, cores: int, wanted: int | None) -> int | None:
        """How many tasks work beside the main graph may use now; None for as many as there are."""
        if not self.busy:
            return wanted
        spare = max(cores - 1, 1)
        return spare if wanted is None else min(wanted, spare)

    def _forget(self) -> None:
        oldest = self._clock.monotonic() - WINDOW_SECONDS
        while self._worked and self._worked[0][0] < oldest:
            self._worked.popleft()
