"""Waiting for what others bring about, without Spark."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, cast

import pytest
from pyspark import SparkContext

from seiche.errors import QueryCanceled
from seiche.session import work as module
from seiche.session.work import Work


def none() -> None:
    pass


@pytest.fixture
def work() -> Work:
    return Work(cast(SparkContext, None), "statement", none, none)  # nothing here asks Spark


def ways_to_wait(work: Work) -> list[Callable[[Future[Any]], Any]]:
    return [work.wait, lambda future: work.wait_telling(future, none)]


@pytest.mark.parametrize("way", [0, 1], ids=["wait", "wait_telling"])
def test_a_time_out_of_what_is_waited_for_is_told_and_not_taken_for_one_of_the_wait(work: Work, way: int) -> None:
    failed: Future[int] = Future()
    failed.set_exception(TimeoutError("the store did not answer"))
    with pytest.raises(TimeoutError, match="the store did not answer"):
        ways_to_wait(work)[way](failed)


@pytest.mark.parametrize("way", [0, 1], ids=["wait", "wait_telling"])
def test_what_ends_as_a_look_at_it_ends_is_neither_lost_nor_an_error(
    work: Work, way: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_POLL_SECONDS", 0.001)
    for number in range(300):
        future: Future[int] = Future()
        timer = threading.Timer(0.001, future.set_result, (number,))
        timer.start()
        assert ways_to_wait(work)[way](future) in (number, None)
        assert future.result(timeout=0) == number
        timer.join()


def test_a_future_that_another_thread_cancels_ends_the_wait_for_it(work: Work) -> None:
    future: Future[int] = Future()
    threading.Timer(0.01, future.cancel).start()
    work.wait_at_most(future, 60)
    assert future.cancelled()


def test_a_cancelled_statement_takes_back_what_has_not_begun(work: Work) -> None:
    future: Future[int] = Future()
    with work.running():
        work._cancelled.set()
        with pytest.raises(QueryCanceled, match="user request"):
            work.wait(future)
    assert future.cancelled()
