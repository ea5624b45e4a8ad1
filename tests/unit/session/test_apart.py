"""Calls that a statement does not wait out, without Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from seiche.errors import QueryCanceled
from seiche.session import apart
from seiche.session.apart import LEFT_MAX, Threads, wait_or_leave


def nobody_told() -> None:
    pass


def told() -> None:
    raise QueryCanceled("canceling statement due to user request")


def none() -> None:
    pass


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_PATIENCE_SECONDS", 0.1)


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_an_answer_and_an_error_come_back() -> None:
    assert wait_or_leave(lambda: 7, nobody_told, none) == 7
    with pytest.raises(ZeroDivisionError):
        wait_or_leave(lambda: 1 // 0, nobody_told, none)


def test_an_answer_that_comes_between_two_looks_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(Future[int]):
        """Comes right after every look that does not find it."""

        def done(self) -> bool:
            was_there = super().done()
            if not was_there:
                self.set_result(7)
            return was_there

    monkeypatch.setattr(apart._threads, "submit", lambda _call: Late())
    assert wait_or_leave(lambda: 7, nobody_told, none) == 7


def test_a_call_that_goes_on_is_left_and_its_jobs_are_cancelled_until_it_ends() -> None:
    end, ended, cancelled = threading.Event(), threading.Event(), threading.Semaphore(0)

    def plan() -> None:
        end.wait()
        ended.set()

    begun = time.monotonic()
    with pytest.raises(QueryCanceled, match="user request"):
        wait_or_leave(plan, told, cancelled.release)
    assert time.monotonic() - begun < 10
    assert cancelled.acquire(timeout=20)
    assert cancelled.acquire(timeout=20)  # again: a job may begin later
    assert not ended.is_set()
    end.set()
    assert ended.wait(20)


def test_a_call_that_ends_soon_after_the_cancel_answers_itself() -> None:
    def fails_with_its_job() -> None:
        time.sleep(0.06)
        raise RuntimeError("job was cancelled")

    with pytest.raises(RuntimeError, match="job was cancelled"):
        wait_or_leave(fails_with_its_job, told, none)


def test_no_more_than_a_few_calls_are_left_at_a_time() -> None:
    end = threading.Event()
    try:
        for _ in range(LEFT_MAX):
            with pytest.raises(QueryCanceled):
                wait_or_leave(end.wait, told, none)
        one_more = threading.Thread(target=lambda: wait_or_leave(end.wait, told, none))
        one_more.start()
        one_more.join(1)
        assert one_more.is_alive()
    finally:
        end.set()
    one_more.join(20)
    assert not one_more.is_alive()
    until(lambda: apart._left._value == LEFT_MAX)  # type: ignore[attr-defined]


def test_threads_are_used_again() -> None:
    threads = Threads()
    names = {threads.submit(threading.get_ident).result(20)}
    for _ in range(20):
        until(lambda: threads._idle == 1)
        names.add(threads.submit(threading.get_ident).result(20))
    assert len(names) == 1
