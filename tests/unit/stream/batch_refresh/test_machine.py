"""The states of a batch refresh job, transition by transition."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seiche.epoch.barrier import BarrierKind
from seiche.errors import InvariantError
from seiche.model import EPOCH_SHIFT, Epoch, JobId
from seiche.stream.batch_refresh.machine import (
    BatchRefresh,
    ConsumingLogStore,
    ConsumingSnapshot,
    FinishingSnapshot,
    Idle,
    InitializingBatchRefresh,
    LogEpoch,
    Resetting,
    RunBarrier,
    resolve,
)

JOB = JobId(7)


def at(ms: int) -> Epoch:
    return Epoch(ms << EPOCH_SHIFT)


SNAPSHOT = at(1000)
LOG = (LogEpoch(at(2000), 5), LogEpoch(at(3000), 7), LogEpoch(at(9000), 1))


def created() -> BatchRefresh:
    return BatchRefresh.created(JOB, SNAPSHOT)


def idle() -> BatchRefresh:
    return created().snapshot_read().committed(SNAPSHOT)


def initializing() -> BatchRefresh:
    started = idle().started(LOG, at(4000))
    assert started is not None
    return started


def consuming(rows_per_checkpoint: int = 1_000) -> BatchRefresh:
    started = idle().started(LOG, at(4000), rows_per_checkpoint)
    assert started is not None
    return started.initialized()


def test_it_begins_with_the_snapshot_and_pins_its_epoch() -> None:
    assert created().state == ConsumingSnapshot()
    assert created().pinned == SNAPSHOT and created().readable is None


def test_a_snapshot_that_is_read_is_finished_by_its_checkpoint() -> None:
    finishing = created().snapshot_read()
    assert finishing.state == FinishingSnapshot()
    assert finishing.pinned == SNAPSHOT and finishing.readable is None
    assert finishing.committed(SNAPSHOT).state == Idle(SNAPSHOT)


def test_an_idle_job_holds_a_pin_at_what_it_committed() -> None:
    assert idle().pinned == SNAPSHOT and idle().readable == SNAPSHOT


@pytest.mark.parametrize(
    ("upstream_ms", "due"), [(1000, False), (3999, False), (4000, True), (90_000, True), (5, False)]
)
def test_it_is_due_when_its_inputs_are_ahead_by_the_interval(upstream_ms: int, due: bool) -> None:
    assert idle().due(upstream_ms, 3000) is due


def test_only_an_idle_job_is_ever_due() -> None:
    for machine in (created(), created().snapshot_read(), initializing(), consuming(), idle().dropped()):
        assert not machine.due(10**9, 1)


def test_a_run_replays_the_log_after_the_committed_epoch_up_to_the_target_and_stops() -> None:
    assert initializing().state == InitializingBatchRefresh(
        SNAPSHOT,
        (
            RunBarrier(at(2000), SNAPSHOT, BarrierKind.BARRIER),
            RunBarrier(at(4000), at(2000), BarrierKind.CHECKPOINT, stop=True),
        ),
    )
    assert initializing().pinned == SNAPSHOT


def test_without_a_log_it_stays_idle() -> None:
    assert idle().started((), at(4000)) is None
    assert idle().started((LogEpoch(at(500), 3),), at(4000)) is None, "it has that already"
    assert idle().started((LogEpoch(at(9000), 3),), at(4000)) is None, "that is not committed yet"


def test_the_stop_barrier_ends_the_run_at_the_target() -> None:
    running = consuming()
    assert isinstance(running.state, ConsumingLogStore) and running.state.target == at(4000)
    assert running.pinned == SNAPSHOT and running.readable == SNAPSHOT
    assert running.committed(at(4000)).state == Idle(at(4000))


def test_every_so_many_rows_a_barrier_is_a_checkpoint_and_the_pin_follows() -> None:
    halfway = consuming(rows_per_checkpoint=5).committed(at(2000))
    assert isinstance(halfway.state, ConsumingLogStore)
    assert halfway.pinned == at(2000) and halfway.readable == at(2000)
    assert halfway.failed().state == Idle(at(2000))
    assert halfway.committed(at(4000)).state == Idle(at(4000))


def test_a_run_that_is_cut_short_is_idle_at_what_it_committed() -> None:
    assert initializing().failed().state == Idle(SNAPSHOT)
    assert consuming().failed().state == Idle(SNAPSHOT)


def test_an_idle_job_whose_inputs_stood_still_stands_for_the_newer_epoch() -> None:
    assert idle().caught_up(at(8000)).state == Idle(at(8000))
    assert idle().caught_up(at(1)).state == Idle(SNAPSHOT)


EVERY_STATE = (created, lambda: created().snapshot_read(), idle, initializing, consuming)


@pytest.mark.parametrize("make", EVERY_STATE)
def test_a_drop_resets_it_from_any_state_and_lets_go_of_the_pin(make: Callable[[], BatchRefresh]) -> None:
    dropped = make().dropped()
    assert dropped.state == Resetting() and dropped.pinned is None and dropped.readable is None
    assert dropped.dropped() == dropped
    # What was under way when it was dropped may still report.
    assert (
        dropped.snapshot_read() == dropped.initialized() == dropped.committed(at(4000)) == dropped.failed() == dropped
    )


@pytest.mark.parametrize(
    ("committed", "state"),
    [
        (None, ConsumingSnapshot()),
        (Epoch(5), ConsumingSnapshot()),
        (SNAPSHOT, Idle(SNAPSHOT)),
        (at(2000), Idle(at(2000))),
    ],
)
def test_recovery_tells_from_two_epochs_where_it_was(committed: Epoch | None, state: object) -> None:
    assert BatchRefresh.recovered(JOB, SNAPSHOT, committed).state == state


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: idle().snapshot_read(),
        lambda: idle().committed(SNAPSHOT),
        lambda: idle().initialized(),
        lambda: created().committed(SNAPSHOT),
        lambda: created().started(LOG, at(4000)),
        lambda: created().snapshot_read().committed(at(2000)),
        lambda: consuming().committed(at(2000)),
        lambda: consuming().started(LOG, at(4000)),
        lambda: initializing().committed(at(4000)),
    ],
)
def test_what_cannot_happen_in_a_state_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(InvariantError, match="batch refresh job 7"):
        wrong()


def test_every_state_has_words_for_users() -> None:
    assert created().progress("Snapshot [1.00% (1/100)]") == "BatchRefresh Snapshot [1.00% (1/100)]"
    assert created().snapshot_read().progress() == "BatchRefresh Stopping"
    assert idle().progress() == "BatchRefresh Idle"
    assert initializing().progress() == "BatchRefresh Initializing"
    assert consuming().progress() == "BatchRefresh LogStore [2 barriers left]"
    assert consuming(5).committed(at(2000)).progress() == "BatchRefresh LogStore [1 barrier left]"
    assert idle().dropped().progress() == "BatchRefresh Resetting"


def test_barriers_of_a_run_follow_each_other() -> None:
    barriers = resolve([LogEpoch(at(n * 1000), 4) for n in (5, 2, 2, 3)], at(1000), at(6000), rows_per_checkpoint=10)
    assert [(each.epoch, each.previous) for each in barriers] == [
        (at(2000), at(1000)),
        (at(3000), at(2000)),
        (at(6000), at(3000)),
    ]
    assert [each.kind for each in barriers] == [BarrierKind.BARRIER, BarrierKind.CHECKPOINT, BarrierKind.CHECKPOINT]
    assert [each.stop for each in barriers] == [False, False, True]
