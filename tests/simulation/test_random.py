"""Random days in the harbour. A failing seed is printed; add it to KEPT_SEEDS and it stays a test."""

from __future__ import annotations

import random
import threading
from concurrent.futures import wait

import pytest

from seiche.clock import SimulatedClock
from seiche.epoch.report import CoordinatorState
from seiche.errors import EngineStopped
from seiche.model import JobId
from tests.simulation import checkers
from tests.simulation.world import (
    TABLES,
    AtOnce,
    Build,
    Delete,
    Disk,
    Drop,
    Dropped,
    Faults,
    Insert,
    Ledger,
    Process,
    River,
    ViewSpec,
)

SEEDS = range(150)
THREADED_SEEDS = range(8)
KEPT_SEEDS: tuple[int, ...] = ()
BERTHS = ("north", "south", "east", "west")


class RandomHarbour:
    """Callers that do anything at any time, over as many lives of the process as it takes."""

    def __init__(self, rng: random.Random, odds: float) -> None:
        self.rng = rng
        self.faults = Faults(rng=random.Random(rng.random()), odds=odds)
        self.disk, self.river, self.ledger = Disk(), River(), Ledger(self.faults)
        self._lock = threading.Lock()
        self._uid = 0
        self._view = 9

    def next_uid(self) -> int:
        with self._lock:
            self._uid += 1
            return self._uid

    def insert(self, process: Process, rng: random.Random) -> None:
        table = rng.choice(TABLES)
        amount = None if rng.random() < 0.1 else rng.randrange(100)
        what = Insert(self.next_uid(), rng.choice(BERTHS), amount)
        self.ledger.note(what, table, process.coordinator.submit(JobId(table), what))

    def delete(self, process: Process, rng: random.Random) -> None:
        inserts = [entry for entry in list(self.ledger.entries) if isinstance(entry.what, Insert)]
        if inserts:
            victim = rng.choice(inserts)
            assert isinstance(victim.what, Insert)
            what = Delete(victim.what.uid)
            self.ledger.note(what, victim.job, process.coordinator.submit(JobId(victim.job), what))

    def build(self, process: Process, rng: random.Random) -> None:
        below = [*TABLES, *process.views]
        with self._lock:
            self._view += 1
            view = self._view
        first = rng.choice(below)
        on_tables = first in TABLES
        inputs = tuple(TABLES) if on_tables and rng.random() < 0.5 else (first,)
        # A grand total and a view by berth have the same columns; only a table has berths.
        spec = ViewSpec(view, inputs, by_berth=on_tables)
        self.ledger.note(spec, view, process.coordinator.command(Build(spec, process)))

    def drop(self, process: Process, rng: random.Random) -> None:
        if process.views:
            view = rng.choice(list(process.views))
            self.ledger.note(Dropped(view), view, process.coordinator.command(Drop(view, process)))

    def meddle(self, process: Process, rng: random.Random) -> None:
        coordinator = process.coordinator
        match rng.randrange(6):
            case 0:
                coordinator.pause()
            case 1 | 2:
                coordinator.resume()
            case 3:
                coordinator.set_checkpoint_frequency(rng.choice((1, 2, 3, 7)))
            case 4:
                coordinator.set_barrier_interval_ms(rng.choice((1, 10, 100)))
            case _:
                coordinator.flush()

    def act(self, process: Process, rng: random.Random) -> None:
        actions = (self.insert, self.delete, self.build, self.drop, self.meddle)
        rng.choices(actions, weights=(10, 3, 1, 1, 2))[0](process, rng)
        if rng.random() < 0.2:
            self.river.readings.append(rng.randrange(1000))
        if rng.random() < 0.02 and self.ledger.entries:
            rng.choice(self.ledger.entries).future.cancel()

    def check_the_end(self, process: Process) -> None:
        assert process.coordinator.health().state is CoordinatorState.STOPPED
        checkers.check_no_one_hangs(self.ledger)
        checkers.check_all(self.disk, self.river, self.ledger)
        checkers.check_no_orphan_survives_the_sweep(self.disk)
        assert process.views == self.disk.registry.views
        assert self.disk.rows(3).total() == len(self.river.readings)


@pytest.mark.parametrize("seed", [*KEPT_SEEDS, *SEEDS])
def test_any_sequence_of_calls_faults_and_crashes_keeps_every_promise(seed: int) -> None:
    rng = random.Random(seed)
    harbour = RandomHarbour(rng, odds=rng.choice((0.0, 0.01, 0.03, 0.1)))
    clock = SimulatedClock()

    def awaken() -> Process:
        process = Process(harbour.disk, harbour.river, harbour.faults, clock, AtOnce())
        process.coordinator.open(process.graph, process.epoch)
        return process

    process = awaken()
    for _ in range(60):
        for _ in range(rng.randrange(4)):
            harbour.act(process, rng)
        clock.advance(rng.choice((0, 0, 5, 10, 200, 20_000)))
        if not process.settle():
            checkers.check_no_one_hangs(harbour.ledger)
            checkers.check_all(harbour.disk, harbour.river, harbour.ledger)
            process = awaken()
        elif rng.random() < 0.2:
            checkers.check_all(harbour.disk, harbour.river, harbour.ledger)

    harbour.faults.calm()
    process.coordinator.resume()
    for _ in range(len(harbour.river.readings) + 10):
        clock.advance(20_000)
        assert process.settle()
    process.coordinator.begin_stop()
    assert process.settle()
    harbour.check_the_end(process)


@pytest.mark.parametrize("seed", THREADED_SEEDS)
def test_concurrent_callers_of_a_real_thread_keep_every_promise(seed: int) -> None:
    harbour = RandomHarbour(random.Random(seed), odds=0.004)

    def call(process: Process, rng: random.Random) -> None:
        for _ in range(15):
            try:
                harbour.act(process, rng)
            except EngineStopped:
                return
            if rng.random() < 0.3:
                wait([entry.future for entry in harbour.ledger.entries[-3:]], timeout=0.02)

    for life in range(5):
        process = Process(harbour.disk, harbour.river, harbour.faults)
        checkers.check_all(harbour.disk, harbour.river, harbour.ledger)
        process.coordinator.start(process.graph, process.epoch)
        callers = [
            threading.Thread(target=call, args=(process, random.Random(f"{seed} {life} {caller}")))
            for caller in range(4)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(30)
        assert process.coordinator.stop(checkpoint=harbour.rng.random() < 0.5, timeout=30)
        checkers.check_no_one_hangs(harbour.ledger)
        checkers.check_all(harbour.disk, harbour.river, harbour.ledger)

    # A new process for the end: the last one may have met its fault while the faults were being calmed.
    harbour.faults.calm()
    process = Process(harbour.disk, harbour.river, harbour.faults)
    process.coordinator.start(process.graph, process.epoch)
    process.coordinator.set_barrier_interval_ms(1)
    while harbour.disk.rows(3).total() < len(harbour.river.readings):
        process.coordinator.flush().result(30)
    assert process.coordinator.stop(timeout=30)
    harbour.check_the_end(process)
