"""Waiting for commits: who wants something that an epoch may bring is told as soon as one did.

Nobody polls. A waiter says what it waits for as a question that costs nothing; it is asked once when the wait begins
and once after every commit, on the coordinator's thread, until the answer is yes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future


class Commits:
    """The waiters of one database. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[Callable[[], bool], Future[None]]] = []

    def until(self, ready: Callable[[], bool]) -> Future[None]:
        """Done as soon as `ready` holds. Cancel it to stop waiting."""
        future: Future[None] = Future()
        with self._lock:
            if ready():
                future.set_result(None)
            else:
                self._waiting.append((ready, future))
        return future

    def ring(self) -> None:
        """An epoch was committed, and readers see it."""
        with self._lock:
            left = []
            for ready, future in self._waiting:
                if future.cancelled():
                    continue
                if not ready():
                    left.append((ready, future))
                elif future.set_running_or_notify_cancel():
                    future.set_result(None)
            self._waiting = left

    def __len__(self) -> int:
        """How many wait."""
        with self._lock:
            return sum(not future.cancelled() for _, future in self._waiting)
