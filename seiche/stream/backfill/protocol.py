"""What every kind of backfill offers to the rest: how far it is, how fast it may be, and how it ends.

A kind is one module. It reads history under the rate limiter (`rate_limit`), tells how far it is in the words of the
one progress model (`progress`), and stores its progress in the same transaction as the rows it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from enum import Enum
from typing import Protocol

from seiche.model import RelationId
from seiche.stream.backfill.progress import Progress
from seiche.stream.view import ViewJob


class BackfillKind(Enum):
    """How a view's history is read. The value is what EXPLAIN says."""

    SNAPSHOT = "snapshot"
    ARRANGEMENT = "arrangement"
    NO_SHUFFLE = "no-shuffle"


class Backfill(Protocol):
    """A job's creation under way. Every method may be called from any thread."""

    @property
    def kind(self) -> BackfillKind: ...

    @property
    def job(self) -> ViewJob: ...

    @property
    def done(self) -> Future[None]:
        """Resolved when the job is part of the stream, or with the reason why it never will be."""
        ...

    @property
    def progress(self) -> Progress: ...

    @property
    def inputs_read(self) -> Mapping[RelationId, tuple[int, int]]:
        """Of each relation that it reads: how many rows it has read, and of how many."""
        ...

    def start(self) -> None: ...

    def set_rate_limit(self, rate: int | None) -> None:
        """Rows a second; 0 pauses, None does not limit."""
        ...

    @property
    def rate_limit(self) -> int | None: ...

    def set_tasks(self, tasks: int | None, fixed: int | None) -> None:
        """At most so many tasks read and write from the next step on; None for as many as there are. Where their number
        is fixed, the rate is that of each."""
        ...

    def set_name(self, name: str) -> None:
        """The view is called otherwise from now on."""
        ...

    def set_paused(self, paused: bool) -> None:
        """Whether the whole database is paused."""
        ...

    def cancel(self, timeout: float | None = None) -> None:
        """Stops, and returns when nothing is touched any more. What was committed stays."""
        ...
