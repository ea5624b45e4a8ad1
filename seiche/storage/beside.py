"""Things that nobody waits for, done one after the other on a thread of their own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

# So many things may wait for their turn; those beyond are left out, and asked for again by whoever needs them.
WAITING_MAX = 64


class Beside:
    """Safe to use from several threads. The thread ends when there is nothing left to do."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None

    def soon(self, task: Callable[[], None]) -> None:
        with self._lock:
            if len(self._waiting) < WAITING_MAX:
                self._waiting.append(task)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()

    def settle(self) -> None:
        """Waits until nothing is left to do."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                task = self._waiting.popleft()
            try:
                task()
            except BaseException:
                with self._lock:  # the next thing that comes gets another thread
                    self._thread = None
                raise


__all__ = ["WAITING_MAX", "Beside"]
