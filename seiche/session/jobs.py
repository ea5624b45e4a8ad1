"""Jobs in creation as users meet them: a queue, a limit on how many run at once, and what is told about each.

A job is listed from the moment its CREATE is durable until it is part of the stream. One that failed stays listed with
its reason until it is cancelled; a start of the engine tries it again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from seiche.errors import ObjectNotReady
from seiche.model import JobId
from seiche.stream.backfill.protocol import Backfill


class Jobs:
    """Safe to use from several threads. `limit` tells how many may run at once, 0 for any number.

    `words` puts a job's progress into the words of its kind.
    """

    def __init__(self, limit: Callable[[], int], words: Callable[[JobId, str], str] = lambda _, told: told) -> None:
        self._limit = limit
        self._words = words
        self._lock = threading.RLock()
        self._listed: dict[JobId, Backfill] = {}  # in the order in which they came
        self._started: set[JobId] = set()
        self._paused = False
        self._closed = False

    def add(self, backfill: Backfill) -> None:
        """Lists a job, and starts it as soon as there is a place."""
        job = backfill.job.id
        with self._lock:
            self._listed[job] = backfill
            backfill.set_paused(self._paused)
        backfill.done.add_done_callback(lambda _: self._ended(job, backfill))
        self._start_waiting()

    def get(self, job: int) -> Backfill | None:
        with self._lock:
            return self._listed.get(JobId(job))

    def listed(self) -> list[Backfill]:
        with self._lock:
            return list(self._listed.values())

    def progress(self, job: int) -> str | None:
        """What SHOW JOBS says; None when the job is not in creation."""
        with self._lock:
            backfill = self._listed.get(JobId(job))
            if backfill is None:
                return None
            waiting = [each for each in self._listed if each not in self._started]
        if JobId(job) in waiting:
            before = waiting.index(JobId(job))
            return f"Waiting [{before} before it; max_concurrent_creating_streaming_jobs is {self._limit()}]"
        error = backfill.done.exception() if backfill.done.done() else None
        if error is not None:
            return f"Failed [{getattr(error, 'message', error)}]"
        return self._words(JobId(job), str(backfill.progress))

    def forget(self, job: int) -> Backfill | None:
        """Takes a job off the list and stops it. When it returns the job touches nothing any more."""
        with self._lock:
            backfill = self._listed.pop(JobId(job), None)
            self._started.discard(JobId(job))
        if backfill is not None:
            backfill.cancel()
            self._start_waiting()
        return backfill

    def set_rate_limit(self, job: int, rate: int | None) -> None:
        backfill = self.get(job)
        if backfill is None:
            raise ObjectNotReady(
                f"job {job} has no backfill that runs",
                detail="A rate limit slows down the reading of history; the view has read it all.",
                hint="SHOW JOBS lists the views that are being created.",
            )
        backfill.set_rate_limit(rate)

    def set_paused(self, paused: bool) -> None:
        with self._lock:
            self._paused = paused
            for backfill in self._listed.values():
                backfill.set_paused(paused)

    def stop(self, which: Callable[[Backfill], bool] = lambda _: True) -> list[Backfill]:
        """Ends them, for the engine to close or to start them again. What they committed stays."""
        with self._lock:
            self._closed = True
            stopped = [each for each in self._listed.values() if which(each)]
            for each in stopped:
                del self._listed[each.job.id]
                self._started.discard(each.job.id)
        for backfill in stopped:
            backfill.cancel()
        with self._lock:
            self._closed = False
        return stopped

    def limit_changed(self) -> None:
        self._start_waiting()

    def _start_waiting(self) -> None:
        with self._lock:
            if self._closed:
                return
            for job, backfill in self._listed.items():
                running = sum(not self._listed[each].done.done() for each in self._started)
                if job in self._started or (self._limit() and running >= self._limit()):
                    continue
                self._started.add(job)
                backfill.start()

    def _ended(self, job: JobId, backfill: Any) -> None:
        with self._lock:
            if backfill.done.exception() is None and self._listed.get(job) is backfill:
                del self._listed[job]
                self._started.discard(job)
        self._start_waiting()
