"""One day in the harbour, with a fault at every occurrence of every step of a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import pytest

from seiche.clock import SimulatedClock
from seiche.epoch.report import CoordinatorState
from seiche.model import JobId
from tests.simulation import checkers
from tests.simulation.world import (
    ARRIVALS,
    DEPARTURES,
    STEPS,
    AtOnce,
    Build,
    Delete,
    Disk,
    Drop,
    Dropped,
    Fault,
    Faults,
    Insert,
    Ledger,
    Process,
    River,
    ViewSpec,
)

BY_BERTH = ViewSpec(10, (ARRIVALS, DEPARTURES), by_berth=True)
GRAND_TOTAL = ViewSpec(11, (10,), by_berth=False)
SHORT_LIVED = ViewSpec(12, (ARRIVALS,), by_berth=True)


class Day:
    """Plays a script over as many lives of the process as the faults demand, and checks after each death."""

    def __init__(self, plan: Mapping[int, Fault]) -> None:
        self.faults = Faults(plan)
        self.disk, self.river, self.ledger = Disk(), River(), Ledger(self.faults)
        self.clock = SimulatedClock()
        self.lives = 0
        self.awaken()

    def awaken(self) -> None:
        self.process = Process(self.disk, self.river, self.faults, self.clock, AtOnce())
        checkers.check_no_orphan_survives_the_sweep(self.disk)
        self.process.coordinator.open(self.process.graph, self.process.epoch)
        self.lives += 1

    def settle(self) -> None:
        while not self.process.settle():
            checkers.check_no_one_hangs(self.ledger)
            checkers.check_all(self.disk, self.river, self.ledger)
            self.awaken()

    def insert(self, uid: int, table: int, berth: str, amount: int | None) -> None:
        what = Insert(uid, berth, amount)
        self.ledger.note(what, table, self.process.coordinator.submit(JobId(table), what))

    def delete(self, uid: int, table: int) -> None:
        self.ledger.note(Delete(uid), table, self.process.coordinator.submit(JobId(table), Delete(uid)))

    def build(self, spec: ViewSpec) -> None:
        self.ledger.note(spec, spec.id, self.process.coordinator.command(Build(spec, self.process)))

    def drop(self, view: int) -> None:
        self.ledger.note(Dropped(view), view, self.process.coordinator.command(Drop(view, self.process)))

    def flush(self) -> None:
        self.process.coordinator.flush()

    def wait(self, ms: int) -> None:
        self.clock.advance(ms)

    def frequency(self, barriers: int) -> None:
        self.process.coordinator.set_checkpoint_frequency(barriers)

    def rain(self, *readings: int) -> None:
        self.river.readings.extend(readings)


def moments() -> list[list[Callable[[Day], None]]]:
    """The script: what is called at one moment, before the coordinator is stepped again."""
    return [
        [lambda day: day.insert(1, ARRIVALS, "north", 5), lambda day: day.insert(2, ARRIVALS, "south", 7)],
        [lambda day: day.build(BY_BERTH), lambda day: day.insert(3, DEPARTURES, "north", 1)],
        [lambda day: day.frequency(3), lambda day: day.insert(4, ARRIVALS, "north", 9)],
        [lambda day: day.insert(5, ARRIVALS, "west", None), lambda day: day.delete(1, ARRIVALS)],
        [lambda day: day.wait(10), lambda day: day.rain(31, 32, 33, 34)],
        [lambda day: day.build(GRAND_TOTAL), lambda day: day.build(SHORT_LIVED)],
        [lambda day: day.insert(6, DEPARTURES, "east", 2)],
        [lambda day: day.drop(12), lambda day: day.insert(7, ARRIVALS, "east", 4), lambda day: day.delete(2, ARRIVALS)],
        [lambda day: day.insert(8, ARRIVALS, "south", 3), lambda day: day.rain(35)],
        [lambda day: day.flush(), lambda day: day.wait(10_000)],
        [lambda day: day.frequency(1), lambda day: day.insert(9, DEPARTURES, "south", 6)],
    ]


def play(plan: Mapping[int, Fault]) -> Day:
    day = Day(plan)
    for moment in moments():
        for call in moment:
            call(day)
        day.settle()
    while True:
        # A doubt is settled only when time passes, and the river is read to its end.
        for _ in range(4):
            day.wait(20_000)
            day.settle()
        day.process.coordinator.begin_stop()
        lives = day.lives
        day.settle()
        if day.lives == lives:
            break
    assert day.process.coordinator.health().state is CoordinatorState.STOPPED
    checkers.check_no_one_hangs(day.ledger)
    checkers.check_all(day.disk, day.river, day.ledger)
    checkers.check_no_orphan_survives_the_sweep(day.disk)
    assert day.process.views == day.disk.registry.views, "what is published differs from what is durable"
    assert day.disk.rows(3).total() == len(day.river.readings), "the gauge has not read the river to its end"
    return day


@cache
def quiet_trace() -> tuple[str, ...]:
    return tuple(play({}).faults.trace)


def test_a_day_without_faults_does_all_that_was_asked() -> None:
    day = play({})
    failed = [entry.what for entry in day.ledger.entries if entry.future.exception() is not None]
    assert failed == [Insert(5, "west", None)]
    assert set(day.disk.registry.views) == {10, 11}
    assert day.lives == 1


def test_the_day_takes_every_step_that_can_fail() -> None:
    only_after_a_fault = {"ask", "discard", "discarded one"}
    assert set(quiet_trace()) == STEPS.keys() - only_after_a_fault


@pytest.mark.parametrize(
    ("step", "fault"),
    [pytest.param(step, fault, id=f"{step}: {fault.value}") for step, faults in STEPS.items() for fault in faults],
)
def test_a_fault_at_every_occurrence_of_a_step_leaves_whole_epochs(step: str, fault: Fault) -> None:
    played = 0
    for before in preludes(step):
        trace = play(before).faults.trace if before else quiet_trace()
        for place, name in enumerate(trace):
            if name == step and place not in before:
                play({**before, place: fault})
                played += 1
    assert played, f"the day never comes to the step {step!r}"


def preludes(step: str) -> list[dict[int, Fault]]:
    """The faults that have to happen first for the step to be taken at all."""
    trace = quiet_trace()
    places: dict[str, list[int]] = {}
    for place, name in enumerate(trace):
        places.setdefault(name, []).append(place)
    match step:
        case "ask":
            unknown = [*places["commit"], *places["committed"]]
            return [{place: Fault.UNKNOWN} for place in unknown]
        case "discard" | "discarded one":
            return [{place: Fault.AWAY} for place in places["job done"]]
        case _:
            return [{}]
