"""The life of a statement: it runs alone in its session, within its time, and can be stopped from another thread.

Spark's jobs are grouped by statement, so that stopping one hits no later one; Spark's errors become ours here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from pyspark import SparkContext

from seiche.errors import QueryCanceled, SeicheError
from seiche.session.apart import ends_within, wait_or_leave
from seiche.sql.failures import translate_spark_error

_POLL_SECONDS = 0.05
_CANCEL_AGAIN_SECONDS = 0.2
_PATIENCE_SECONDS = 1.0  # before a client is told why a statement waits
T = TypeVar("T")


class Work:
    """What a session does now, one statement after another.

    `interrupt` stops what is no Spark job. `say_why` is called when a statement has waited for a while.
    """

    def __init__(
        self, context: SparkContext, name: str, interrupt: Callable[[], None], say_why: Callable[[], None]
    ) -> None:
        self._context = context
        self._name = name
        self._interrupt = interrupt
        self._say_why = say_why
        self._works = 0
        self._depth = 0
        self._cancelled = threading.Event()
        self._timed_out = threading.Event()
        self._running = threading.RLock()
        self._deadline: float | None = None

    @property
    def is_active(self) -> bool:
        return self._depth > 0

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Waits until nothing runs, and lets nothing else begin."""
        with self._running:
            yield

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around everything that `cancel` stops, one after another; each has its own jobs, so that none is hit late."""
        with self._running:
            if not self._depth:
                self._cancelled.clear()
                self._works += 1
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    def begin(self, limit_ms: int) -> None:
        """The time that the statement may take begins; 0 is no limit."""
        self._deadline = time.monotonic() + limit_ms / 1000 if limit_ms else None
        self._timed_out.clear()
        try:
            self._group(self._works)
        except Exception as error:  # Spark is gone
            raise translate_spark_error(error) from error

    def _group(self, work: int) -> None:
        """Spark's jobs of this thread are those of the statement from now on."""
        self._context.setJobGroup(f"{self._name}-{work}", "a session's statement", True)
        self._context.setLocalProperty("spark.scheduler.pool", "queries")

    def cancel(self) -> None:
        """Stops the statement that runs now, if any. May be called from any thread, and returns at once."""
        if self._depth:
            self._cancelled.set()
            self._interrupt()
            threading.Thread(target=self._cancel_jobs, args=(self._works,), name="cancel", daemon=True).start()

    def _cancel_jobs(self, work: int) -> None:
        """Again and again until the statement has ended: a job that is only being planned cannot be cancelled yet."""
        while self._depth and self._works == work:
            self._context.cancelJobGroup(f"{self._name}-{work}")
            time.sleep(_CANCEL_AGAIN_SECONDS)

    def _time_out(self) -> None:
        self._timed_out.set()
        self._interrupt()
        self._cancel_jobs(self._works)

    def translated(self, work: Callable[[], T]) -> T:
        """Runs the work, within its time; Spark's errors become ours."""
        timer: threading.Timer | None = None
        if self._deadline is not None:
            timer = threading.Timer(max(self._deadline - time.monotonic(), 0), self._time_out)
            timer.daemon = True
            timer.start()
        try:
            return work()
        except QueryCanceled:
            raise
        except Exception as error:  # the edge of a session
            if self._cancelled.is_set():
                raise QueryCanceled("canceling statement due to user request") from error
            if self._timed_out.is_set():
                raise QueryCanceled("canceling statement due to statement timeout") from error
            if isinstance(error, SeicheError):
                raise
            raise translate_spark_error(error) from error
        finally:
            if timer is not None:
                timer.cancel()

    def apart(self, call: Callable[[], T]) -> T:
        """The answer of a call of Spark that changes nothing. A statement that is told to stop does not wait it out."""
        work = self._works

        def grouped() -> T:
            self._group(work)
            return call()

        cancel = partial(self._context.cancelJobGroup, f"{self._name}-{work}")
        return wait_or_leave(grouped, self.stop_if_told, cancel)

    def wait(self, future: Future[Any], *, owned: bool = True, through: bool = False) -> Any:
        """The future's value. A cancelled statement stops waiting, and takes back what is its own (`owned`).

        With `through` it waits on for what cannot be taken back any more, and is told of its end afterwards.
        """
        patient_until: float | None = time.monotonic() + _PATIENCE_SECONDS
        while True:
            if patient_until is not None and time.monotonic() > patient_until:
                patient_until = None
                self._say_why()
            if ends_within(future, _POLL_SECONDS):
                return future.result()
            try:
                self.stop_if_told()
            except QueryCanceled as told:
                if not owned or future.cancel():
                    raise
                if through:
                    continue
                detail = "An epoch had taken it up already: what it asked for may still happen."
                raise QueryCanceled(told.message, detail=detail) from None

    def wait_telling(self, future: Future[Any], tell: Callable[[], None]) -> None:
        """Waits for what others own too; `tell` is called again and again meanwhile."""
        while not ends_within(future, _POLL_SECONDS):
            self.stop_if_told()
            tell()
        future.result()

    def wait_at_most(self, future: Future[Any], seconds: float) -> None:
        """Waits for what may not come, and stops wanting it then."""
        until = time.monotonic() + seconds
        try:
            while not future.done() and (left := until - time.monotonic()) > 0:
                self.stop_if_told()
                ends_within(future, min(_POLL_SECONDS, left))
        finally:
            future.cancel()

    def stop_if_told(self) -> None:
        if self._cancelled.is_set():
            raise QueryCanceled("canceling statement due to user request")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise QueryCanceled("canceling statement due to statement timeout")

    def stop_if_over(self) -> Callable[[], None]:
        """As `stop_if_told`, for the statement that runs now: raises also when another one has begun meanwhile."""
        work = self._works

        def stop() -> None:
            if self._works != work:
                raise QueryCanceled("canceling statement due to user request")
            self.stop_if_told()

        return stop

    def forget_limits(self) -> None:
        """Goes on without a limit of time, and as if nothing had been cancelled."""
        self._deadline = None
        self.forget_cancel()

    def forget_cancel(self) -> None:
        """Goes on after a cancel, to clean up behind the statement."""
        self._cancelled.clear()
