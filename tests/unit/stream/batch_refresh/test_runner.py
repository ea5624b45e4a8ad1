"""Who asks for a refresh, who stops waiting for it, and what a long interval or a job's trouble mean for the others."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from seiche.clock import SimulatedClock
from seiche.errors import ObjectNotReady, QueryCanceled, StorageUnavailable
from seiche.metrics import EngineMetrics
from seiche.model import EPOCH_SHIFT, Epoch, JobId, RelationId
from seiche.stream.backfill.state import Surroundings
from seiche.stream.batch_refresh.runner import Known, RefreshRunner
from seiche.stream.batch_refresh.schedule import Every

DAILY, HOURLY = JobId(7), JobId(8)
ARRIVALS = RelationId(1)
DAY_MS = 86_400_000


class Log:
    """Stands for the storage: a committed epoch, and an input whose log is told, or cannot be read."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.committed_epoch = Epoch(clock.now_ms() << EPOCH_SHIFT)
        self.broken: set[Epoch] = set()  # for whoever asks for the changes since then
        self.changed: dict[Epoch, dict[Epoch, int]] = {}  # rows by epoch, since an epoch

    def __contains__(self, _: object) -> bool:
        return True

    def log_rows(self, _: object, start: Epoch, target: Epoch) -> dict[Epoch, int]:
        if start in self.broken:
            raise StorageUnavailable("the tide is out")
        return self.changed.get(start, {})

    def stands_at(self, *_: object) -> None: ...


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def log(clock: SimulatedClock) -> Log:
    return Log(clock)


@pytest.fixture
def runner(clock: SimulatedClock, log: Log) -> Iterator[RefreshRunner]:
    runtime: Any = SimpleNamespace(versions=log, metrics=EngineMetrics())
    nobody: Any = None
    runner = RefreshRunner(Surroundings(runtime, nobody, nobody, nobody, clock, nobody), lambda _: None)
    runner.start()
    yield runner
    runner.stop()


def add(runner: RefreshRunner, job: JobId, committed: Epoch, ms: int = DAY_MS) -> None:
    view: Any = SimpleNamespace(id=job, name=f"view {job}", inputs=frozenset([ARRIVALS]), outputs=frozenset([job]))
    runner.add(view, lambda: view, Known(committed, committed, 0), Every(ms))


def test_who_asks_for_what_is_there_is_answered(runner: RefreshRunner, log: Log) -> None:
    add(runner, DAILY, log.committed_epoch)
    assert runner.refresh(DAILY).result(30) == log.committed_epoch


def test_who_stops_waiting_does_not_keep_others_from_an_answer(runner: RefreshRunner, log: Log) -> None:
    add(runner, DAILY, log.committed_epoch)
    runner.set_paused(True)
    impatient = runner.refresh(DAILY)
    assert impatient.cancel()
    patient = runner.refresh(DAILY)
    runner.set_paused(False)
    assert patient.result(30) == log.committed_epoch
    assert runner.refresh(DAILY).result(30) == log.committed_epoch


def test_one_job_that_cannot_be_decided_on_tells_why_and_leaves_the_others_alone(
    runner: RefreshRunner, log: Log
) -> None:
    before = Epoch(log.committed_epoch - 1)
    log.broken.add(before)
    add(runner, DAILY, before)
    add(runner, HOURLY, log.committed_epoch)
    assert runner.refresh(HOURLY).result(30) == log.committed_epoch
    with pytest.raises(StorageUnavailable, match="the tide is out"):
        runner.refresh(DAILY).result(30)
    assert [(each.id, each.last_error) for each in runner.facts()] == [(DAILY, "the tide is out"), (HOURLY, None)]
    log.broken.clear()
    assert runner.refresh(DAILY).result(30) == log.committed_epoch
    assert [each.last_error for each in runner.facts()] == [None, None]


def test_a_recovery_keeps_those_who_asked_and_a_drop_tells_them(runner: RefreshRunner, log: Log) -> None:
    add(runner, DAILY, log.committed_epoch)
    runner.set_paused(True)
    asked = runner.refresh(DAILY)
    runner.reset()
    with pytest.raises(ObjectNotReady, match="cannot be refreshed now"):
        runner.refresh(DAILY)
    add(runner, DAILY, log.committed_epoch)
    assert not asked.done()
    runner.set_paused(False)
    assert asked.result(30) == log.committed_epoch
    runner.set_paused(True)
    asked = runner.refresh(DAILY)
    runner.remove(DAILY)
    with pytest.raises(QueryCanceled, match="the view is dropped"):
        asked.result(30)


def test_however_far_off_a_run_is_the_others_are_looked_at(runner: RefreshRunner, log: Log) -> None:
    before = Epoch(log.committed_epoch - 1)
    log.changed[before] = {log.committed_epoch: 3}
    add(runner, DAILY, before, ms=10**26)
    add(runner, HOURLY, log.committed_epoch)
    for _ in range(3):
        assert runner.refresh(HOURLY).result(30) == log.committed_epoch
