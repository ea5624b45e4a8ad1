from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from seiche.clock import SimulatedClock
from seiche.epoch.barrier import Barrier, BarrierKind
from seiche.epoch.coordinator import Coordinator, Ended, Idle, Ran
from seiche.epoch.graph import Graph
from seiche.epoch.report import CoordinatorState, EpochReport
from seiche.errors import (
    CommitOutcomeUnknown,
    DiskFull,
    EngineStopped,
    InvalidParameter,
    InvalidText,
    InvariantError,
    JobFailed,
    MetadataUnavailable,
    StorageUnavailable,
    UndefinedTable,
)
from seiche.model import EPOCH_ZERO, Epoch, JobId
from tests.unit.epoch.harbour import Build, HarbourJob, Logbook, Refuse, table, view

SHIPS = JobId(1)


class Harbour:
    """A coordinator that a test steps by hand, over one table "ships" unless told."""

    def __init__(self, *jobs: HarbourJob, frequency: int = 1) -> None:
        self.store = Logbook()
        self.clock = SimulatedClock()
        self.coordinator = Coordinator(
            self.store, clock=self.clock, barrier_interval_ms=1000, checkpoint_frequency=frequency
        )
        self.coordinator.open(Graph(jobs or (table(1, "ships"),)), EPOCH_ZERO)

    def arrive(self, ship: object, job: JobId = SHIPS) -> Future[Any]:
        return self.coordinator.submit(job, ship)

    def settle(self) -> list[EpochReport]:
        """Step until there is nothing to do at this moment."""
        reports: list[EpochReport] = []
        for _ in range(100):
            match self.coordinator.step():
                case Ran(report):
                    reports.append(report)
                case Idle(0.0):
                    pass
                case Idle() | Ended():
                    return reports
        raise AssertionError("the coordinator does not come to rest")

    def after(self, ms: int) -> list[EpochReport]:
        self.clock.advance(ms)
        return self.settle()


@pytest.fixture
def harbour() -> Harbour:
    return Harbour()


def kinds(reports: list[EpochReport]) -> list[BarrierKind]:
    return [report.barrier.kind for report in reports]


def raising(*errors: Exception) -> Callable[[Barrier], None]:
    left = list(errors)

    def before(_: Barrier) -> None:
        if left:
            raise left.pop(0)

    return before


# An idle database, and what ends its rest


def test_an_idle_database_does_nothing_at_all(harbour: Harbour) -> None:
    for _ in range(20):
        assert harbour.after(1000) == []
    assert harbour.store.log == []
    assert harbour.coordinator.committed_epoch == EPOCH_ZERO


def test_a_database_without_jobs_sleeps_until_it_is_called() -> None:
    coordinator = Coordinator(Logbook(), clock=SimulatedClock())
    coordinator.open(Graph(), EPOCH_ZERO)
    assert coordinator.step() == Idle(None)


def test_a_waiting_request_brings_the_barrier_forward(harbour: Harbour) -> None:
    assert harbour.settle() == []
    ship = harbour.arrive("Albatros")
    (report,) = harbour.settle()
    assert ship.result(0) == "accepted Albatros"
    assert (report.requests, report.error, [job.name for job in report.jobs]) == (1, None, ["ships"])
    assert harbour.coordinator.committed_epoch == report.barrier.epoch == harbour.store.durable


def test_an_epoch_takes_whatever_arrived_before_it(harbour: Harbour) -> None:
    ships = [harbour.arrive(name) for name in ("Albatros", "Bremen", "Cutty Sark")]
    (report,) = harbour.settle()
    assert report.requests == 3
    assert all(ship.done() for ship in ships)
    assert harbour.store.rows("ships") == ["Albatros", "Bremen", "Cutty Sark"]


def slow_harbour(*epochs_ms: int) -> Harbour:
    """One whose epochs take so long, the last number for all that follow."""
    left = list(epochs_ms)
    harbour = Harbour(table(1, "ships", before=lambda _: harbour.clock.advance(left.pop(0) if left[1:] else left[0])))
    return harbour


def test_after_a_long_epoch_the_next_one_gathers_for_a_moment() -> None:
    harbour = slow_harbour(2000)
    harbour.arrive("Albatros")
    assert len(harbour.settle()) == 1
    harbour.arrive("Bremen")
    assert harbour.coordinator.step() == Idle(pytest.approx(0.04))
    harbour.clock.advance(10)
    ship = harbour.arrive("Cutty Sark")
    assert harbour.settle() == []
    (report,) = harbour.after(30)
    assert report.requests == 2
    assert ship.done()


def test_gathering_is_bounded_and_short_epochs_do_not_gather() -> None:
    harbour = slow_harbour(60_000, 200)
    harbour.arrive("Albatros")
    harbour.settle()
    harbour.arrive("Bremen")
    assert harbour.coordinator.step() == Idle(pytest.approx(0.05))
    assert len(harbour.after(50)) == 1
    harbour.arrive("Cutty Sark")
    assert len(harbour.settle()) == 1


def test_commands_flushes_and_a_stop_end_the_gathering() -> None:
    harbour = slow_harbour(2000)
    harbour.arrive("Albatros")
    harbour.settle()
    ship, flushed = harbour.arrive("Bremen"), harbour.coordinator.flush()
    assert [report.requests for report in harbour.settle()] == [1]
    assert ship.done() and flushed.done()
    ship, built = harbour.arrive("Cutty Sark"), harbour.coordinator.command(Build(view(2, "fleet", SHIPS)))
    assert [report.requests for report in harbour.settle()] == [1]
    assert ship.done() and built.done()
    ship = harbour.arrive("Dar Pomorza")
    harbour.coordinator.begin_stop()
    assert [report.requests for report in harbour.settle()] == [1]
    assert ship.done()


def test_the_first_barrier_after_a_start_is_initial(harbour: Harbour) -> None:
    harbour.arrive("Albatros")
    harbour.arrive("Bremen")
    assert kinds(harbour.settle()) == [BarrierKind.INITIAL]
    harbour.arrive("Cutty Sark")
    assert kinds(harbour.settle()) == [BarrierKind.CHECKPOINT]


def test_the_barrier_stays_initial_until_one_is_durable(harbour: Harbour) -> None:
    harbour.store.raising["commit"] = [MetadataUnavailable("metadata database is away")]
    harbour.arrive("Albatros")
    harbour.arrive("Bremen")
    harbour.settle()
    harbour.arrive("Cutty Sark")
    assert kinds(harbour.settle()) == [BarrierKind.INITIAL]


def test_a_job_that_wants_to_runs_at_the_interval_and_not_before() -> None:
    harbour = Harbour(table(1, "tides", wanting=lambda _: True))
    assert len(harbour.settle()) == 1
    assert harbour.after(999) == []
    assert len(harbour.after(1)) == 1
    assert harbour.coordinator.step() == Idle(1.0)


def test_the_interval_changes_while_running() -> None:
    harbour = Harbour(table(1, "tides", wanting=lambda _: True))
    harbour.settle()
    harbour.coordinator.set_barrier_interval_ms(200)
    assert len(harbour.after(200)) == 1
    harbour.coordinator.set_barrier_interval_ms(5000)
    assert harbour.after(4999) == []
    assert len(harbour.after(1)) == 1


@pytest.mark.parametrize("setting", ["set_barrier_interval_ms", "set_checkpoint_frequency"])
def test_settings_below_one_are_refused(harbour: Harbour, setting: str) -> None:
    with pytest.raises(InvalidParameter):
        getattr(harbour.coordinator, setting)(0)


def test_epochs_only_grow_even_if_the_wall_clock_steps_back(harbour: Harbour) -> None:
    harbour.arrive("Albatros")
    (first,) = harbour.settle()
    harbour.clock.advance(-60_000)
    harbour.arrive("Bremen")
    (second,) = harbour.settle()
    assert second.barrier.previous == first.barrier.epoch < second.barrier.epoch


# Checkpoints


def test_every_kth_barrier_is_a_checkpoint() -> None:
    harbour = Harbour(table(1, "tides", wanting=lambda _: True), frequency=3)
    reports = harbour.settle()
    for _ in range(6):
        reports += harbour.after(1000)
    initial, barrier, checkpoint = BarrierKind.INITIAL, BarrierKind.BARRIER, BarrierKind.CHECKPOINT
    assert kinds(reports) == [initial, barrier, barrier, checkpoint, barrier, barrier, checkpoint]
    harbour.coordinator.set_checkpoint_frequency(1)
    assert kinds(harbour.after(1000)) == [checkpoint]


def test_a_request_is_acknowledged_at_the_checkpoint_and_barriers_go_on_until_it_comes() -> None:
    harbour = Harbour(frequency=3)
    harbour.arrive("Albatros")
    harbour.settle()
    ship = harbour.arrive("Bremen")
    assert kinds(harbour.settle()) == [BarrierKind.BARRIER]
    assert not ship.done()
    assert harbour.coordinator.committed_epoch < harbour.store.begun[-1].epoch
    assert kinds(harbour.after(1000)) == [BarrierKind.BARRIER]
    assert not ship.done()
    assert kinds(harbour.after(1000)) == [BarrierKind.CHECKPOINT]
    assert ship.result(0) == "accepted Bremen"
    assert harbour.after(1000) == []


def test_a_commit_carries_the_parts_of_all_barriers_since_the_last_checkpoint() -> None:
    harbour = Harbour(frequency=2)
    harbour.arrive("Albatros")
    harbour.settle()
    harbour.arrive("Bremen")
    harbour.settle()
    harbour.arrive("Cutty Sark")
    harbour.settle()
    assert [parts for _, parts in harbour.store.checkpoints] == [
        (("ships", ("Albatros",)),),
        (("ships", ("Bremen",)), ("ships", ("Cutty Sark",))),
    ]


def test_flush_forces_the_checkpoint() -> None:
    harbour = Harbour(frequency=100)
    harbour.arrive("Albatros")
    harbour.settle()
    ship = harbour.arrive("Bremen")
    harbour.settle()
    flush = harbour.coordinator.flush()
    (report,) = harbour.settle()
    assert flush.result(0) == report.barrier.epoch == harbour.coordinator.committed_epoch
    assert ship.result(0) == "accepted Bremen"


def test_flush_of_nothing_runs_nothing(harbour: Harbour) -> None:
    flush = harbour.coordinator.flush()
    assert harbour.settle() == []
    assert flush.result(0) == EPOCH_ZERO
    assert harbour.store.log == []


def test_flush_covers_what_a_job_wants() -> None:
    harbour = Harbour(table(1, "tides", wanting=lambda _: True))
    harbour.settle()
    flush = harbour.coordinator.flush()
    (report,) = harbour.settle()
    assert flush.result(0) == report.barrier.epoch


def test_a_future_cancelled_before_its_epoch_leaves_nothing(harbour: Harbour) -> None:
    ship = harbour.arrive("Albatros")
    assert ship.cancel()
    assert harbour.settle() == []
    assert harbour.store.log == []


# Requests and commands that fail alone


def test_a_failing_request_gets_its_own_error_and_the_epoch_goes_on(harbour: Harbour) -> None:
    good, bad = harbour.arrive("Albatros"), harbour.arrive("bad")
    (report,) = harbour.settle()
    assert report.error is None
    assert good.result(0) == "accepted Albatros"
    assert isinstance(bad.exception(0), InvalidText)
    assert harbour.store.rows("ships") == ["Albatros"]


def test_a_failed_request_does_not_wait_for_the_checkpoint() -> None:
    harbour = Harbour(frequency=100)
    harbour.arrive("Albatros")
    harbour.settle()
    bad = harbour.arrive("bad")
    harbour.settle()
    assert isinstance(bad.exception(0), InvalidText)


def test_a_command_takes_effect_before_the_jobs_of_its_epoch() -> None:
    harbour = Harbour(frequency=100)
    harbour.arrive("Albatros")
    harbour.settle()
    published: list[Epoch] = []
    build = harbour.coordinator.command(
        Build(view(3, "tall_ships", 1), on_publish=lambda: published.append(harbour.store.durable))
    )
    harbour.arrive("Bremen")
    (report,) = harbour.settle()
    assert report.barrier.is_checkpoint
    assert report.commands == 1
    assert build.result(0) == "tall_ships"
    assert published == [report.barrier.epoch]
    assert harbour.store.rows("tall_ships") == ["Bremen"]
    assert JobId(3) in harbour.coordinator.graph


def test_commands_run_in_order_and_see_each_other(harbour: Harbour) -> None:
    first = harbour.coordinator.command(Build(view(3, "tall_ships", 1)))
    second = harbour.coordinator.command(Build(view(4, "tall_names", 3)))
    (report,) = harbour.settle()
    assert report.commands == 2
    assert (first.result(0), second.result(0)) == ("tall_ships", "tall_names")
    assert [job.name for job in harbour.coordinator.graph] == ["ships", "tall_ships", "tall_names"]


def test_a_refused_command_fails_alone(harbour: Harbour) -> None:
    refused = harbour.coordinator.command(Refuse(UndefinedTable('table "shps" does not exist')))
    built = harbour.coordinator.command(Build(view(3, "tall_ships", 1)))
    (report,) = harbour.settle()
    assert report.error is None
    assert isinstance(refused.exception(0), UndefinedTable)
    assert built.result(0) == "tall_ships"


# Epochs that fail


def test_a_failing_job_undoes_the_epoch_and_the_next_one_succeeds() -> None:
    harbour = Harbour(table(1, "ships"), view(2, "tall_ships", 1, before=raising(DiskFull("disk is full"))))
    ship = harbour.arrive("Albatros")
    (report,) = harbour.settle()
    error = ship.exception(0)
    assert isinstance(error, JobFailed)
    assert error.name == "tall_ships"
    assert report.error is error
    assert harbour.store.log == ["begin", "discard"]
    assert harbour.coordinator.last_error is error
    assert harbour.coordinator.health().failures_in_a_row == 1
    again = harbour.arrive("Albatros")
    harbour.settle()
    assert again.result(0) == "accepted Albatros"
    assert harbour.coordinator.health().failures_in_a_row == 0
    assert harbour.store.begun[1].epoch > harbour.store.begun[0].epoch
    assert harbour.store.begun[1].previous == EPOCH_ZERO


def test_a_failure_undoes_everything_since_the_last_checkpoint() -> None:
    harbour = Harbour(frequency=3)
    harbour.arrive("Albatros")
    harbour.settle()
    committed = harbour.coordinator.committed_epoch
    early = harbour.arrive("Bremen")
    harbour.settle()
    harbour.store.raising["begin"] = [StorageUnavailable("folder is away")]
    late = harbour.arrive("Cutty Sark")
    own = harbour.arrive("bad")
    harbour.settle()
    assert isinstance(early.exception(0), StorageUnavailable)
    assert isinstance(late.exception(0), StorageUnavailable)
    assert isinstance(own.exception(0), StorageUnavailable)  # it never ran
    assert harbour.coordinator.committed_epoch == committed
    harbour.coordinator.flush()
    assert harbour.settle() == []  # nothing is staged any more


def test_a_failed_commit_tells_everyone_and_returns_to_the_old_graph(harbour: Harbour) -> None:
    harbour.store.raising["commit"] = [MetadataUnavailable("metadata database is away")]
    published: list[None] = []
    build = harbour.coordinator.command(Build(view(3, "tall_ships", 1), on_publish=lambda: published.append(None)))
    ship, flush, own = harbour.arrive("Albatros"), harbour.coordinator.flush(), harbour.arrive("bad")
    harbour.settle()
    assert isinstance(build.exception(0), MetadataUnavailable)
    assert isinstance(ship.exception(0), MetadataUnavailable)
    assert isinstance(flush.exception(0), MetadataUnavailable)
    assert isinstance(own.exception(0), InvalidText)
    assert published == []
    assert [job.name for job in harbour.coordinator.graph] == ["ships"]


def test_an_unknown_outcome_that_was_durable_is_a_success(harbour: Harbour) -> None:
    harbour.store.raising["committed"] = [CommitOutcomeUnknown("connection lost")]
    ship = harbour.arrive("Albatros")
    (report,) = harbour.settle()
    assert report.error is None
    assert ship.result(0) == "accepted Albatros"
    assert "discard" not in harbour.store.log


def test_an_unknown_outcome_that_was_not_durable_is_a_failure(harbour: Harbour) -> None:
    harbour.store.raising["commit"] = [CommitOutcomeUnknown("connection lost")]
    ship = harbour.arrive("Albatros")
    (report,) = harbour.settle()
    error = ship.exception(0)
    assert isinstance(error, MetadataUnavailable)  # known by now, and worth another try
    assert isinstance(error.__cause__, CommitOutcomeUnknown)
    assert report.error is error
    assert harbour.store.log[-1] == "discard"


def test_an_error_that_storage_does_not_know_is_an_unknown_outcome(harbour: Harbour) -> None:
    harbour.store.raising["committed"] = [OSError("socket closed")]
    ship = harbour.arrive("Albatros")
    harbour.settle()
    assert ship.result(0) == "accepted Albatros"


def test_the_truth_is_asked_for_until_storage_answers(harbour: Harbour) -> None:
    away = MetadataUnavailable("metadata database is away")
    harbour.store.raising = {"committed": [CommitOutcomeUnknown("connection lost")], "committed_epoch": [away] * 9}
    ship = harbour.arrive("Albatros")
    pauses = []
    for _ in range(9):
        step = harbour.coordinator.step()
        assert isinstance(step, Idle)
        pauses.append(step.seconds)
        assert harbour.coordinator.health().state is CoordinatorState.IN_DOUBT
        assert not ship.done()
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert isinstance(harbour.coordinator.step(), Ran)
    assert ship.result(0) == "accepted Albatros"
    assert harbour.coordinator.health().state is CoordinatorState.RUNNING


def test_storage_at_an_epoch_of_someone_else_breaks_the_coordinator(harbour: Harbour) -> None:
    harbour.store.raising["commit"] = [CommitOutcomeUnknown("connection lost")]
    harbour.store.durable = Epoch(77)
    ship = harbour.arrive("Albatros")
    with pytest.raises(InvariantError, match="epoch 77"):
        harbour.settle()
    assert isinstance(ship.exception(0), CommitOutcomeUnknown)


def test_failures_without_anyone_waiting_back_off() -> None:
    harbour = Harbour(table(1, "tides", wanting=lambda _: True, before=raising(*[DiskFull("disk is full")] * 9)))
    harbour.coordinator.set_barrier_interval_ms(1)
    pauses = []
    for _ in range(9):
        assert len(harbour.settle()) == 1
        idle = harbour.coordinator.step()
        assert isinstance(idle, Idle)
        assert idle.seconds is not None
        pauses.append(round(idle.seconds, 3))
        harbour.clock.advance(round(idle.seconds * 1000))
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    assert harbour.settle()[0].error is None
    assert harbour.coordinator.step() == Idle(pytest.approx(0.001, abs=1e-5))


def test_someone_who_waits_does_not_wait_for_the_backoff() -> None:
    harbour = Harbour(table(1, "ships"), table(2, "tides", wanting=lambda _: True, before=raising(DiskFull("full"))))
    (report,) = harbour.settle()
    assert report.error is not None
    ship = harbour.arrive("Albatros")
    harbour.settle()
    assert ship.result(0) == "accepted Albatros"


def test_a_job_that_cannot_say_what_it_wants_fails_the_epoch() -> None:
    def unsure(_: Barrier) -> bool:
        raise DiskFull("disk is full")

    harbour = Harbour(table(1, "tides", wanting=unsure))
    flush = harbour.coordinator.flush()
    reports = harbour.settle()
    assert isinstance(reports[0].error, JobFailed)
    assert isinstance(flush.exception(0), JobFailed)


def test_no_epoch_begins_before_the_failed_one_was_discarded(harbour: Harbour) -> None:
    away = StorageUnavailable("folder is away")
    harbour.store.raising = {"begin": [away], "discard": [away, away, away]}
    for _ in range(2):
        ship = harbour.arrive("Albatros")
        harbour.settle()
        assert ship.exception(0) is away
    ship = harbour.arrive("Albatros")
    harbour.settle()
    assert ship.result(0) == "accepted Albatros"
    assert harbour.store.log == ["begin", "discard", "discard", "discard", "discard", "begin", "commit", "committed"]


def test_jobs_are_asked_what_they_want_only_over_discarded_storage() -> None:
    away = StorageUnavailable("folder is away")
    asked: list[str] = []

    def wanting(_: Barrier) -> bool:
        asked.append(harbour.store.log[-1])
        return False

    harbour = Harbour(table(1, "ships", wanting=wanting))
    harbour.store.raising = {"begin": [away], "discard": [away, away, away]}
    harbour.arrive("Albatros")
    harbour.settle()
    (report,) = harbour.after(1000)
    assert report.error is away
    assert asked == []
    assert harbour.after(20_000) == []
    assert asked == ["discard"]
    assert harbour.store.log == ["begin", *["discard"] * 4]


# Pause and resume


def test_while_paused_requests_wait_and_commands_run(harbour: Harbour) -> None:
    harbour.coordinator.pause()
    ship = harbour.arrive("Albatros")
    assert harbour.after(5000) == []
    assert not ship.done()
    build = harbour.coordinator.command(Build(view(3, "tall_ships", 1)))
    (report,) = harbour.settle()
    assert build.result(0) == "tall_ships"
    assert report.jobs == ()
    assert not ship.done()
    harbour.coordinator.resume()
    (report,) = harbour.settle()
    assert ship.result(0) == "accepted Albatros"
    assert report.barrier.kind is BarrierKind.INITIAL  # the first that jobs see
    assert harbour.store.rows("tall_ships") == ["Albatros"]


def test_while_paused_jobs_that_want_to_run_do_not() -> None:
    harbour = Harbour(table(1, "tides", wanting=lambda _: True))
    harbour.coordinator.pause()
    assert harbour.after(5000) == []
    assert harbour.coordinator.step() == Idle(None)


def test_what_ran_before_a_pause_still_becomes_durable() -> None:
    harbour = Harbour(frequency=3)
    harbour.arrive("Albatros")
    harbour.settle()
    ship = harbour.arrive("Bremen")
    harbour.settle()
    harbour.coordinator.pause()
    harbour.after(1000)
    harbour.after(1000)
    assert ship.result(0) == "accepted Bremen"


def test_flush_while_paused_covers_what_ran_and_does_not_hang(harbour: Harbour) -> None:
    harbour.coordinator.pause()
    ship, flush = harbour.arrive("Albatros"), harbour.coordinator.flush()
    harbour.settle()
    assert flush.result(0) == EPOCH_ZERO
    assert not ship.done()


# The end, good or bad


def test_stop_with_checkpoint_makes_everything_durable_first() -> None:
    harbour = Harbour(frequency=100)
    harbour.arrive("Albatros")
    harbour.settle()
    staged = harbour.arrive("Bremen")
    harbour.settle()
    waiting = harbour.arrive("Cutty Sark")
    harbour.coordinator.begin_stop()
    with pytest.raises(EngineStopped):
        harbour.arrive("Flying Dutchman")
    harbour.settle()
    assert (staged.result(0), waiting.result(0)) == ("accepted Bremen", "accepted Cutty Sark")
    assert harbour.coordinator.health().state is CoordinatorState.STOPPED
    assert harbour.coordinator.step() == Ended()


def test_stop_of_an_idle_database_commits_nothing(harbour: Harbour) -> None:
    harbour.coordinator.begin_stop()
    harbour.settle()
    assert harbour.store.log == []
    with pytest.raises(EngineStopped):
        harbour.coordinator.flush()


def test_stop_without_checkpoint_undoes_and_tells() -> None:
    harbour = Harbour(frequency=100)
    harbour.arrive("Albatros")
    harbour.settle()
    staged = harbour.arrive("Bremen")
    harbour.settle()
    waiting = harbour.arrive("Cutty Sark")
    harbour.coordinator.begin_stop(checkpoint=False)
    harbour.settle()
    assert isinstance(staged.exception(0), EngineStopped)
    assert isinstance(waiting.exception(0), EngineStopped)
    assert harbour.store.log[-1] == "discard"
    assert harbour.store.rows("ships") == ["Albatros"]


def test_stop_while_in_doubt_waits_for_the_truth(harbour: Harbour) -> None:
    away = MetadataUnavailable("metadata database is away")
    harbour.store.raising = {"committed": [CommitOutcomeUnknown("connection lost")], "committed_epoch": [away] * 2}
    ship = harbour.arrive("Albatros")
    harbour.coordinator.step()
    harbour.coordinator.begin_stop(checkpoint=False)
    harbour.settle()
    assert not ship.done()
    harbour.settle()
    assert ship.result(0) == "accepted Albatros"
    assert harbour.coordinator.health().state is CoordinatorState.STOPPED


@pytest.mark.parametrize(
    ("operation", "error"),
    [("begin", EngineStopped), ("commit", CommitOutcomeUnknown), ("committed", CommitOutcomeUnknown)],
)
def test_a_broken_loop_leaves_no_one_hanging(harbour: Harbour, operation: str, error: type[Exception]) -> None:
    harbour.store.raising[operation] = [SystemExit(1)]
    ship = harbour.arrive("Albatros")
    build = harbour.coordinator.command(Build(view(3, "tall_ships", 1)))
    with pytest.raises(SystemExit):
        harbour.settle()
    assert isinstance(ship.exception(0), error)
    assert isinstance(build.exception(0), error)
    assert harbour.coordinator.health().state is CoordinatorState.FAILED
    with pytest.raises(EngineStopped, match="broke down"):
        harbour.arrive("Bremen")
    assert harbour.coordinator.step() == Ended()
    assert harbour.coordinator.stop()


def test_a_call_that_no_epoch_took_hears_of_the_breakdown_too() -> None:
    waiting: list[Future[Any]] = []
    harbour = Harbour(table(1, "ships", before=lambda _: waiting.append(harbour.arrive("Bremen"))))
    harbour.store.raising["commit"] = [SystemExit(1)]
    harbour.arrive("Albatros")
    with pytest.raises(SystemExit):
        harbour.settle()
    assert isinstance(waiting[0].exception(0), EngineStopped)


def test_a_publication_that_fails_breaks_the_coordinator_and_denies_nothing(harbour: Harbour) -> None:
    def fail() -> None:
        raise ValueError("no such berth")

    build = harbour.coordinator.command(Build(view(3, "tall_ships", 1), on_publish=fail))
    with pytest.raises(ValueError, match="no such berth"):
        harbour.settle()
    assert isinstance(build.exception(0), CommitOutcomeUnknown)


def test_a_coordinator_is_started_once(harbour: Harbour) -> None:
    with pytest.raises(InvariantError):
        harbour.coordinator.open(Graph(), EPOCH_ZERO)
    with pytest.raises(InvariantError):
        Coordinator(Logbook()).submit(SHIPS, "Albatros")


# Listeners


def test_listeners_hear_of_good_and_bad_epochs_until_removed(harbour: Harbour) -> None:
    heard: list[EpochReport] = []
    harbour.coordinator.add_listener(heard.append)
    harbour.store.raising["begin"] = [StorageUnavailable("folder is away")]
    harbour.arrive("Albatros")
    harbour.settle()
    harbour.arrive("Albatros")
    harbour.settle()
    harbour.coordinator.remove_listener(heard.append)
    harbour.arrive("Bremen")
    harbour.settle()
    assert [report.error is None for report in heard] == [False, True]
    assert heard[1].jobs[0].rows_out == 1


def test_a_failing_listener_does_not_stop_the_database(harbour: Harbour) -> None:
    def fail(_: EpochReport) -> None:
        raise ValueError("no such display")

    harbour.coordinator.add_listener(fail)
    ship = harbour.arrive("Albatros")
    harbour.settle()
    assert ship.result(0) == "accepted Albatros"


# With its own thread


def test_the_thread_serves_concurrent_callers_and_stops() -> None:
    store = Logbook()
    coordinator = Coordinator(store, barrier_interval_ms=5, checkpoint_frequency=2)
    coordinator.start(Graph([table(1, "ships"), view(2, "tall_ships", 1)]), EPOCH_ZERO)

    def captain(number: int) -> None:
        for voyage in range(20):
            assert coordinator.submit(SHIPS, (number, voyage)).result(20) == f"accepted {(number, voyage)}"

    captains = [threading.Thread(target=captain, args=(number,)) for number in range(4)]
    for thread in captains:
        thread.start()
    for thread in captains:
        thread.join(30)
    assert coordinator.stop(timeout=10)
    expected = sorted((number, voyage) for number in range(4) for voyage in range(20))
    assert sorted(store.rows("ships")) == sorted(store.rows("tall_ships")) == expected


def test_arrivals_during_an_epoch_share_the_next_one() -> None:
    running, go_on = threading.Event(), threading.Event()

    def hold(_: Barrier) -> None:
        running.set()
        assert go_on.wait(10)

    coordinator = Coordinator(Logbook())
    reports: list[EpochReport] = []
    coordinator.add_listener(reports.append)
    coordinator.start(Graph([table(1, "ships", before=hold)]), EPOCH_ZERO)
    first = coordinator.submit(SHIPS, "Albatros")
    assert running.wait(10)
    later = [coordinator.submit(SHIPS, number) for number in range(5)]
    flush = coordinator.flush()
    go_on.set()
    assert first.result(10)
    assert all(ship.result(10) for ship in later)
    assert flush.result(10) == coordinator.committed_epoch
    assert coordinator.stop(timeout=10)
    assert [report.requests for report in reports] == [1, 5]


def test_stop_says_when_the_loop_has_not_ended_in_time() -> None:
    running, go_on = threading.Event(), threading.Event()

    def hold(_: Barrier) -> None:
        running.set()
        assert go_on.wait(10)

    coordinator = Coordinator(Logbook())
    coordinator.start(Graph([table(1, "ships", before=hold)]), EPOCH_ZERO)
    ship = coordinator.submit(SHIPS, "Albatros")
    assert running.wait(10)
    assert not coordinator.stop(timeout=0.01)
    go_on.set()
    assert coordinator.stop(timeout=10)
    assert ship.result(0) == "accepted Albatros"


def test_a_broken_thread_tells_its_callers() -> None:
    store = Logbook({"begin": [SystemExit(1)]})
    coordinator = Coordinator(store)
    coordinator.start(Graph([table(1, "ships")]), EPOCH_ZERO)
    assert isinstance(coordinator.submit(SHIPS, "Albatros").exception(10), EngineStopped)
    assert coordinator.stop(timeout=10)
    assert isinstance(coordinator.last_error, SystemExit)


def test_statements_submitted_together_run_in_one_epoch() -> None:
    harbour = Harbour(table(1, "ships"), table(2, "berths"))
    futures = harbour.coordinator.submit_all([(JobId(1), "Aurora"), (JobId(2), "north")])
    (report,) = harbour.settle()
    assert [future.done() for future in futures] == [True, True]
    assert report.requests == 2


def test_statements_submitted_together_fail_together() -> None:
    harbour = Harbour(table(1, "ships"), table(2, "berths", before=raising(DiskFull("the quay is full"))))
    futures = harbour.coordinator.submit_all([(JobId(1), "Aurora"), (JobId(2), "north")])
    harbour.settle()
    for future in futures:
        with pytest.raises(JobFailed):
            future.result(0)
    assert harbour.store.rows("ships") == []
