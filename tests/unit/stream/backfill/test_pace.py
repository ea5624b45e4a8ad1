"""What time permits a backfill to read, and what time does not."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from seiche.clock import SimulatedClock
from seiche.model import EPOCH_ZERO, Epoch, JobId
from seiche.storage.versions import Versions
from seiche.stream.backfill.arrangement import ArrangementBackfill, ArrangementState
from seiche.stream.backfill.protocol import BackfillKind
from seiche.stream.backfill.snapshot import SnapshotBackfill
from seiche.stream.backfill.state import BackfillState, Surroundings
from seiche.stream.view import ViewJob

RATE = 10


def growing(clock: SimulatedClock) -> ArrangementBackfill:
    runtime: Any = SimpleNamespace(versions=Versions(), tasks=None)
    state = ArrangementState(BackfillKind.ARRANGEMENT, rate=RATE)
    view = ViewJob(JobId(7), "loads", (), runtime)
    return ArrangementBackfill(view, state, runtime, clock, lambda _: Future(), since=EPOCH_ZERO)


def beside_the_stream(clock: SimulatedClock) -> SnapshotBackfill:
    runtime: Any = SimpleNamespace(versions=Versions(), tasks=None, cores=2, spark=None)
    nobody: Any = None
    around = Surroundings(runtime, nobody, nobody, nobody, clock, nobody)
    view = ViewJob(JobId(7), "loads", (), runtime)
    return SnapshotBackfill(view, BackfillState(Epoch(5), rate=RATE), around, lambda _: Future())


def test_the_wait_for_a_place_permits_a_growing_view_nothing() -> None:
    clock = SimulatedClock()
    view = growing(clock)
    clock.advance(60_000)
    view.start()
    assert view._limiter.available() == 0
    clock.advance(1000)
    assert view._limiter.available() == RATE


def test_a_pause_permits_a_growing_view_nothing() -> None:
    clock = SimulatedClock()
    view = growing(clock)
    view.start()
    view.set_paused(True)
    clock.advance(60_000)
    view.set_paused(False)
    clock.advance(1000)
    assert view._limiter.available() == RATE


def test_a_pause_permits_a_view_that_is_built_beside_the_stream_nothing() -> None:
    clock = SimulatedClock()
    view = beside_the_stream(clock)
    view.set_paused(True)

    class Passing(threading.Event):
        """A minute goes by, then everything is resumed."""

        def wait(self, timeout: float | None = None) -> bool:
            clock.advance(60_000)
            view.set_paused(False)
            return True

    view._nudge = Passing()
    view._wait_while_paused()
    assert view._limiter.available() == 0
    clock.advance(1000)
    assert view._permit() == RATE
