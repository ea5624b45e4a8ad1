"""Backfill by slices and batch refresh under crashes: at every persisted step, and at random moments.

The world is a model: what is durable survives a crash, everything else is forgotten. A step works on what it read, then
one transaction stores its rows together with how far it came.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from seiche.catalog.checkpoint import VnodeProgress
from seiche.clock import SimulatedClock
from seiche.epoch.barrier import BarrierKind
from seiche.model import EPOCH_SHIFT, EPOCH_ZERO, VNODES, Epoch, JobId, RelationId
from seiche.stream.backfill.progress import InputProgress, Phase, Progress, Slice, next_slice
from seiche.stream.backfill.rate_limit import RateLimiter
from seiche.stream.batch_refresh.machine import BatchRefresh, ConsumingLogStore, ConsumingSnapshot, Idle, LogEpoch

ARRIVALS, JOB = RelationId(101), JobId(7)


class Crash(Exception):
    pass


@dataclass(slots=True)
class Fate:
    """Crashes at the given persisted step, counted over all lives; before or after its transaction."""

    at: int
    after_commit: bool
    steps: int = 0

    def before(self) -> None:
        if self.steps == self.at and not self.after_commit:
            self.steps += 1
            raise Crash

    def after(self) -> None:
        self.steps += 1
        if self.steps == self.at + 1 and self.after_commit:
            raise Crash


# --- backfill ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class BuiltView:
    """The durable side of a view in creation: how often each row was written, and the progress by vnode."""

    rows: Counter[int] = field(default_factory=Counter)
    vnodes: dict[int, VnodeProgress] = field(default_factory=dict)


def read(snapshot: list[list[int]], piece: Slice) -> list[int]:
    after = int(piece.after[0] or 0) if piece.after is not None else -1
    found = [key for key in snapshot[piece.first] if key > after]
    found += [key for vnode in snapshot[piece.first + 1 : piece.end] for key in vnode]
    return found[: piece.limit]


def live(snapshot: list[list[int]], view: BuiltView, fate: Fate, chance: random.Random, clock: SimulatedClock) -> None:
    """One life of the process that builds the view; ends by a crash or with the view built."""
    counts = tuple(len(vnode) for vnode in snapshot)
    progress = InputProgress.restored(ARRIVALS, counts, view.vnodes.values())
    limiter = RateLimiter(clock, chance.choice((None, 5, 50)))
    told = Progress(Phase.SNAPSHOT, progress.done, progress.total).percent
    while not progress.finished:
        if chance.random() < 0.1:
            limiter.set(chance.choice((None, 0, 5, 50)))
        delay = limiter.delay()
        if delay is None:
            limiter.set(50)
            continue
        clock.advance(int(delay * 1000) + 1)
        allowed = limiter.available()
        # The number of rows a step may take changes with parallelism and load.
        piece = next_slice(progress, min(chance.choice((1, 7, 300)), 10_000 if allowed is None else allowed))
        assert piece is not None
        found = read(snapshot, piece)
        following = progress.passed(piece, (str(found[-1]),) if found else None, len(found))
        fate.before()
        view.rows.update(found)
        view.vnodes |= {each.vnode: each for each in following.stored(JOB, since=progress)}
        fate.after()
        limiter.spend(len(found))
        progress = following
        now = Progress(Phase.SNAPSHOT, progress.done, progress.total).percent
        assert told <= now < 100, "progress went backwards, or said 100 % too early"
        told = now


def build(seed: int, crash_at: int, after_commit: bool) -> int:
    chance = random.Random(seed)
    keys = iter(range(10**6))
    snapshot = [[next(keys) for _ in range(chance.choice((0, 1, 3, 20)))] for _ in range(VNODES)]
    view, fate, clock = BuiltView(), Fate(crash_at, after_commit), SimulatedClock()
    for _ in range(3):
        try:
            live(snapshot, view, fate, chance, clock)
            break
        except Crash:
            continue
    assert view.rows == Counter(key for vnode in snapshot for key in vnode), f"seed {seed}, crash at {crash_at}"
    return fate.steps


@pytest.mark.parametrize("after_commit", [False, True])
def test_a_backfill_that_crashes_at_any_step_reads_every_row_once(after_commit: bool) -> None:
    steps = build(1, -1, after_commit)
    for step in range(0, steps, max(steps // 60, 1)):
        build(1, step, after_commit)


@pytest.mark.parametrize("seed", range(20))
def test_a_backfill_that_crashes_at_random_reads_every_row_once(seed: int) -> None:
    build(seed, random.Random(seed).randrange(200), seed % 2 == 0)


# --- batch refresh -------------------------------------------------------------------------------------


@dataclass(slots=True)
class Harbour:
    """The inputs: rows and a log of changes by epoch, and what is durable of one batch refresh job over them."""

    chance: random.Random
    clock: SimulatedClock = field(default_factory=SimulatedClock)
    committed: Epoch = EPOCH_ZERO
    log: list[tuple[Epoch, int, int]] = field(default_factory=list)  # epoch, row, sign
    folded: Epoch = EPOCH_ZERO  # the log is gone up to here
    view: Counter[int] = field(default_factory=Counter)
    exists: bool = False
    snapshot_epoch: Epoch = EPOCH_ZERO
    job_committed: Epoch | None = None
    pin: Epoch | None = None
    interval_ms: int = 3000
    drops: int = 0  # that are still to come

    def upstream(self) -> None:
        """An epoch of the main graph, which may change rows and lets go of the log that nobody pins."""
        self.clock.advance(self.chance.randint(1, 2000))
        self.committed = Epoch(max(self.committed + 1, self.clock.now_ms() << EPOCH_SHIFT))
        for _ in range(self.chance.choice((0, 1, 5))):
            row = self.chance.randrange(30)
            sign = 1 if self.at(self.committed)[row] == 0 else -1
            self.log.append((self.committed, row, sign))
        limit = self.committed if self.pin is None else min(self.committed, self.pin)
        self.folded = max(self.folded, limit)

    def at(self, epoch: Epoch) -> Counter[int]:
        found: Counter[int] = Counter()
        for when, row, sign in self.log:
            if when <= epoch:
                found[row] += sign
        return found

    def between(self, start: Epoch, until: Epoch) -> list[tuple[Epoch, int, int]]:
        assert start >= self.folded, "the log that a run needs is gone: nothing pinned it"
        return [each for each in self.log if start < each[0] <= until]


class Dropped(Exception):
    """Somebody dropped the view, in whatever state its job was."""


def refresh(world: Harbour, fate: Fate, epochs: int) -> None:
    """One life: recover from what is durable, then follow the interval while the inputs change."""
    for _ in range(epochs):
        try:
            if not world.exists:
                create(world, fate)
            follow(world, fate, epochs)
            return
        except Dropped:
            check(world)


def create(world: Harbour, fate: Fate) -> None:
    """The epoch of the snapshot is that of the checkpoint which holds the creation."""
    world.upstream()
    fate.before()
    world.exists, world.snapshot_epoch, world.pin = True, world.committed, world.committed
    fate.after()


def drop_perhaps(world: Harbour, fate: Fate, machine: BatchRefresh) -> None:
    if not world.drops or world.chance.random() > 0.1:
        return
    world.drops -= 1
    assert machine.dropped().pinned is None
    fate.before()
    world.exists, world.job_committed, world.pin, world.view = False, None, None, Counter()
    fate.after()
    raise Dropped


def follow(world: Harbour, fate: Fate, epochs: int) -> None:
    machine = BatchRefresh.recovered(JOB, world.snapshot_epoch, world.job_committed)
    assert machine.pinned == world.pin, "what is pinned is not what the job needs"
    if isinstance(machine.state, ConsumingSnapshot):
        drop_perhaps(world, fate, machine)
        world.upstream()  # the inputs go on meanwhile, and let go of what nobody pins
        rows = world.at(world.snapshot_epoch)
        machine = machine.snapshot_read()
        drop_perhaps(world, fate, machine)
        fate.before()
        world.view, world.job_committed = +rows, world.snapshot_epoch
        fate.after()
        machine = machine.committed(world.snapshot_epoch)
    paused = False
    for _ in range(epochs):
        paused = world.chance.random() < (0.7 if paused else 0.1)
        if paused:
            world.clock.advance(500)  # nothing moves, neither inputs nor runs
            continue
        if world.chance.random() < 0.1:
            world.interval_ms = world.chance.choice((500, 3000, 20_000))  # ALTER … SET (refresh.interval.sec = n)
        world.upstream()
        check(world)
        assert isinstance(machine.state, Idle)
        drop_perhaps(world, fate, machine)
        if not machine.due(world.clock.now_ms(), world.interval_ms):
            continue
        target = world.committed
        log = [LogEpoch(epoch, 1) for epoch, _, _ in world.between(machine.state.committed, target)]
        started = machine.started(log, target, rows_per_checkpoint=3)
        if started is None:
            fate.before()
            world.job_committed = world.pin = target
            fate.after()
            machine = machine.caught_up(target)
            continue
        drop_perhaps(world, fate, started)
        machine = replay(world, fate, started.initialized())


def replay(world: Harbour, fate: Fate, machine: BatchRefresh) -> BatchRefresh:
    """A run, which may fail before any of its checkpoints: what was committed of it stays."""
    assert isinstance(machine.state, ConsumingLogStore)
    start = machine.state.start
    for barrier in machine.state.barriers:
        if world.chance.random() < 0.3:
            world.upstream()  # the main graph does not wait for a run
        if barrier.kind is not BarrierKind.CHECKPOINT:
            continue
        drop_perhaps(world, fate, machine)
        if world.chance.random() < 0.05:
            machine = machine.failed()
            assert machine.state == Idle(start)
            return machine
        changed = world.view.copy()
        for _, row, sign in world.between(start, barrier.epoch):
            changed[row] += sign
        fate.before()
        world.view, world.job_committed, world.pin = +changed, barrier.epoch, barrier.epoch
        fate.after()
        machine, start = machine.committed(barrier.epoch), barrier.epoch
        assert machine.pinned == world.pin
        check(world)
    return machine


def check(world: Harbour) -> None:
    """What a reader sees is the query at the one epoch that the view says it stands for."""
    if not world.exists:
        assert not world.view and world.pin is None, "something is left of a view that was dropped"
        return
    assert world.snapshot_epoch <= world.committed, "its snapshot is not the committed past of its inputs"
    if world.job_committed is not None:
        assert world.view == +world.at(world.job_committed)
        assert world.job_committed <= world.committed


def run(seed: int, crash_at: int, after_commit: bool, drops: int = 0) -> int:
    world = Harbour(random.Random(seed), drops=drops)
    world.upstream()
    world.upstream()
    fate = Fate(crash_at, after_commit)
    for epochs in (60, 60):
        try:
            refresh(world, fate, epochs)
        except Crash:
            refresh(world, fate, epochs)
        check(world)
    return fate.steps


@pytest.mark.parametrize("drops", [0, 3])
@pytest.mark.parametrize("after_commit", [False, True])
def test_a_batch_refresh_that_crashes_at_any_step_equals_its_query_at_one_epoch(after_commit: bool, drops: int) -> None:
    for step in range(run(3, -1, after_commit, drops)):
        run(3, step, after_commit, drops)


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_refresh_equals_its_query_at_one_epoch_whatever_happens(seed: int) -> None:
    run(seed, random.Random(seed).randrange(80), seed % 2 == 0, drops=seed % 4)
