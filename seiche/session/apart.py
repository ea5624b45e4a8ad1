"""Calls of Spark that a statement waits for, but does not have to wait out.

Spark's jobs can be cancelled; its planner cannot, and takes minutes for a query of hundreds of joins. So what plans
runs on a thread of its own. A statement that is told to stop gives it some time to end with its jobs, and leaves it to
itself then: whoever asked is answered, the thread comes back when the planner is done, and its jobs are cancelled
before they begin. Only what changes nothing may be left so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for
from queue import SimpleQueue
from typing import Any, TypeVar

from seiche.errors import QueryCanceled

LEFT_MAX = 8  # calls that nobody waits for any more; the next one that should be left is waited out
_PATIENCE_SECONDS = 1.0  # for a call to end once its jobs are cancelled
_POLL_SECONDS = 0.05
T = TypeVar("T")


class Threads:
    """As many threads as there are calls at a time. They stay: Java has a thread and a socket for each of them."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def submit(self, call: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                threading.Thread(target=self._serve, name="apart", daemon=True).start()
        self._calls.put((future, call))
        return future

    def _serve(self) -> None:
        while True:
            self._answer(*self._calls.get())
            with self._lock:
                self._idle += 1

    def _answer(self, future: Future[Any], call: Callable[[], Any]) -> None:
        try:
            answer = call()
        except BaseException as error:  # noqa: BLE001 - whoever waits for the call is told
            future.set_exception(error)
        else:
            future.set_result(answer)


_threads = Threads()
_left = threading.BoundedSemaphore(LEFT_MAX)


def wait_or_leave(call: Callable[[], T], stop_if_told: Callable[[], None], cancel_jobs: Callable[[], None]) -> T:
    """The answer of the call. Raises QueryCanceled soon after `stop_if_told` does, also when the call goes on.

    `cancel_jobs` is called again and again while a call goes on that was left.
    """
    future = _threads.submit(call)
    told_at: float | None = None
    while not ends_within(future, _POLL_SECONDS):
        try:
            stop_if_told()
        except QueryCanceled:
            now = time.monotonic()
            told_at = now if told_at is None else told_at
            if now - told_at >= _PATIENCE_SECONDS and _left.acquire(blocking=False):
                _leave(future, cancel_jobs)
                raise
    return future.result()


def ends_within(future: Future[Any], seconds: float) -> bool:
    """Waits without asking for the value: an error of the work that is a time-out is not taken for one of the wait."""
    return future.done() or bool(wait_for([future], timeout=seconds).done)


def _leave(future: Future[Any], cancel_jobs: Callable[[], None]) -> None:
    def follow() -> None:
        try:
            while not future.done():
                cancel_jobs()
                time.sleep(_POLL_SECONDS * 4)
        finally:
            _left.release()

    threading.Thread(target=follow, name="cancel", daemon=True).start()
