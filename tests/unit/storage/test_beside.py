"""What is done beside."""

from __future__ import annotations

import threading

import pytest

from seiche.storage.beside import WAITING_MAX, Beside


def test_everything_is_done_in_its_turn() -> None:
    done: list[int] = []
    beside = Beside("test")
    for number in range(WAITING_MAX):
        beside.soon(lambda number=number: done.append(number))  # type: ignore[misc]
    beside.settle()
    assert done == list(range(WAITING_MAX))


def test_what_is_too_much_is_left_out() -> None:
    done: list[int] = []
    begun, free = threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        free.wait()

    beside = Beside("test")
    beside.soon(first)
    begun.wait()
    for number in range(WAITING_MAX + 3):
        beside.soon(lambda number=number: done.append(number))  # type: ignore[misc]
    free.set()
    beside.settle()
    assert done == list(range(WAITING_MAX))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_does_not_end_what_comes_later() -> None:
    done: list[int] = []

    def fail() -> None:
        raise ValueError

    beside = Beside("test")
    beside.soon(fail)
    beside.settle()
    beside.soon(lambda: done.append(1))
    beside.settle()
    assert done == [1]
