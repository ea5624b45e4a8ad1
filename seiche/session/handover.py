"""How rows from elsewhere, of a sink or a connector, get into a table: in their turn, and once more after a failure."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import Any, Protocol

from seiche.session.apart import ends_within

_FIRST_RETRY_S, _LAST_RETRY_S = 1.0, 60.0
_LOOK_S = 0.1  # between two looks whether rows that wait are still wanted


class Gate(Protocol):
    """The turn of those who write to a table."""

    def alone(self, check: Callable[[], None]) -> AbstractContextManager[None]: ...


class Unwanted(Exception):
    """Nobody wants the rows any more: what they come from, or the table, is being dropped, or the engine ends."""


def awaited(future: Future[Any], check: Callable[[], None], flush: Callable[[], object]) -> None:
    """Returns when the rows are durable. `check` raises `Unwanted`; rows that a barrier has taken are waited for.

    The checkpoint that makes these durable may be many barriers away, so it is asked for by `flush`.
    """
    flushed = False
    while not ends_within(future, _LOOK_S):
        try:
            check()
        except Unwanted:
            if future.cancel():
                raise
            if not flushed:
                flush()
                flushed = True
    future.result()


def longer(seconds: float) -> float:
    """How long to wait after one more failure, when it was so long after the last one, or 0."""
    return min(seconds * 2, _LAST_RETRY_S) or _FIRST_RETRY_S


__all__ = ["Gate", "Unwanted", "awaited", "longer"]
