"""The queue of views in creation, with backfills that a test moves by hand."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from seiche.errors import DiskFull, ObjectNotReady, QueryCanceled
from seiche.model import JobId
from seiche.session.jobs import Jobs
from seiche.stream.backfill.progress import Phase, Progress
from seiche.stream.view import ViewJob


class ByHand:
    """A backfill that does nothing by itself."""

    def __init__(self, number: int) -> None:
        runtime: Any = None
        self.job = ViewJob(JobId(number), f"view {number}", (), runtime)
        self.done: Future[None] = Future()
        self.progress = Progress(Phase.SNAPSHOT, 1, 4)
        self.started = self.paused = False
        self.rate: int | None = None

    def start(self) -> None:
        assert not self.started
        self.started = True

    def set_rate_limit(self, rate: int | None) -> None:
        self.rate = rate

    def set_paused(self, paused: bool) -> None:
        self.paused = paused

    def cancel(self, timeout: float | None = None) -> None:
        if not self.done.done():
            self.done.set_exception(QueryCanceled("cancelled"))


def queue(limit: int, count: int) -> tuple[Jobs, list[ByHand]]:
    jobs, backfills = Jobs(lambda: limit), [ByHand(number) for number in range(1, count + 1)]
    for each in backfills:
        jobs.add(each)
    return jobs, backfills


def test_as_many_run_as_may_and_the_others_wait_in_order() -> None:
    jobs, (first, second, third) = queue(1, 3)
    assert [each.started for each in (first, second, third)] == [True, False, False]
    assert jobs.progress(1) == "Snapshot [25.00% (1/4)]"
    assert jobs.progress(3) == "Waiting [1 before it; max_concurrent_creating_streaming_jobs is 1]"
    first.done.set_result(None)
    assert second.started and not third.started
    assert jobs.progress(1) is None and [each.job.id for each in jobs.listed()] == [2, 3]


def test_without_a_limit_all_run() -> None:
    _, backfills = queue(0, 5)
    assert all(each.started for each in backfills)


def test_a_job_that_failed_stays_listed_with_its_reason_and_leaves_its_place() -> None:
    jobs, (first, second) = queue(1, 2)
    first.done.set_exception(DiskFull("no room"))
    assert jobs.progress(1) == "Failed [no room]"
    assert second.started


def test_one_that_is_forgotten_is_stopped_and_the_next_one_starts() -> None:
    jobs, (first, second) = queue(1, 2)
    assert jobs.forget(1) is first
    assert first.done.done() and second.started and jobs.progress(1) is None
    assert jobs.forget(1) is None


def test_a_pause_holds_for_those_that_come_later_too() -> None:
    jobs, (first,) = queue(0, 1)
    jobs.set_paused(True)
    late = ByHand(9)
    jobs.add(late)
    assert first.paused and late.paused
    jobs.set_paused(False)
    assert not first.paused and not late.paused


def test_a_rate_is_for_a_job_in_creation_only() -> None:
    jobs, (first,) = queue(0, 1)
    jobs.set_rate_limit(1, 50)
    assert first.rate == 50
    with pytest.raises(ObjectNotReady, match="no backfill"):
        jobs.set_rate_limit(2, 50)


def test_stopping_ends_all_and_starts_none() -> None:
    jobs, backfills = queue(1, 3)
    jobs.stop()
    assert all(each.done.done() for each in backfills)
    assert [each.started for each in backfills] == [True, False, False]
    assert jobs.listed() == []
