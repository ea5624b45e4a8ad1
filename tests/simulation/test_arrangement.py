"""Arrangement backfill under crashes, failed epochs, limits, pauses, cancels: at every epoch the view equals its query.

No-shuffle backfill is the same, for views whose rows stay in the vnodes of the rows they came from.

The model keeps rows as counters and epochs as the coordinator does: what happened since the last checkpoint becomes
durable in one commit or is forgotten. What is read when, which changes pass, and how far that is, is the engine's own:
`Ledger`, `InputProgress`, `next_slice` and `RateLimiter`.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from seiche.catalog.checkpoint import VnodeProgress
from seiche.clock import SimulatedClock
from seiche.model import EPOCH_ZERO, VNODES, Epoch, JobId, RelationId
from seiche.stream.backfill.ledger import Ledger, Reached
from seiche.stream.backfill.progress import InputProgress, Phase, Progress, even, next_slice
from seiche.stream.backfill.rate_limit import RateLimiter

ARRIVALS, JOB = RelationId(101), JobId(7)
KEYS = 600

Row = tuple[int, int]  # key and value


def vnode_of(key: int) -> int:
    return key * 7919 % VNODES


class Crash(Exception):
    pass


@dataclass(slots=True)
class Durable:
    """What survives a crash."""

    epoch: Epoch = EPOCH_ZERO
    table: dict[int, int] = field(default_factory=dict)
    view: Counter[Row] = field(default_factory=Counter)
    begun: bool = False
    vnodes: dict[int, VnodeProgress] = field(default_factory=dict)
    created: bool = False  # the view has read all history


@dataclass(slots=True)
class Fate:
    """Crashes at one commit, before or after it; counted over all lives. -1 never does."""

    at: int
    after_commit: bool
    commits: int = 0

    def commit(self, durable: Durable, new: Durable) -> None:
        number, self.commits = self.commits, self.commits + 1
        if number == self.at and not self.after_commit:
            raise Crash
        for name in Durable.__slots__:
            setattr(durable, name, getattr(new, name))
        if number == self.at:
            raise Crash


def passed(progress: InputProgress, key: int) -> bool:
    """Whether a key has been read: the rule by which changes go on."""
    vnode = vnode_of(key)
    if vnode != progress.vnode or progress.finished:
        return vnode < progress.vnode
    return progress.position is not None and key <= int(progress.position[0] or 0)


def read(table: dict[int, int], progress: InputProgress, budget: int) -> tuple[list[Row], InputProgress]:
    piece = next_slice(progress, budget)
    if piece is None:
        return [], progress
    after = int(piece.after[0] or 0) if piece.after is not None else -1
    found = sorted(
        (vnode_of(key), key)
        for key in table
        if piece.first <= vnode_of(key) < piece.end and (vnode_of(key) > piece.first or key > after)
    )[: piece.limit]
    last = (str(found[-1][1]),) if found and piece.limit is not None else None
    return [(key, table[key]) for _, key in found], progress.passed(piece, last, len(found))


class Life:
    """One life of the process: it ends by a crash, by a cancel, or when the view is created."""

    def __init__(self, durable: Durable, fate: Fate, chance: random.Random, clock: SimulatedClock) -> None:
        self.durable, self.fate, self.chance, self.clock = durable, fate, chance, clock
        self.limiter = RateLimiter(clock, chance.choice((None, 20, 200)))
        stored = InputProgress.restored(ARRIVALS, even(KEYS), durable.vnodes.values())
        self.ledger = Ledger(durable.epoch, Reached(durable.begun, {ARRIVALS: stored}))
        self.previous = durable.epoch
        self.table, self.view = dict(durable.table), durable.view.copy()
        self.paused = False

    def epoch(self) -> None:
        """A barrier: the table changes, the view follows as far as it has read, and reads on. It may fail."""
        epoch = Epoch(self.previous + self.chance.randint(1, 3))
        old = self.ledger.at(self.previous).inputs[ARRIVALS]
        table, view = dict(self.table), self.view.copy()
        for _ in range(self.chance.choice((0, 1, 10))):
            key = self.chance.randrange(KEYS)
            if passed(old, key) and key in table:
                view[(key, table[key])] -= 1
            if key in table and self.chance.random() < 0.5:
                del table[key]
            else:
                table[key] = self.chance.randrange(1000)
                if passed(old, key):
                    view[(key, table[key])] += 1
        new, rows = self.next_rows(table, old)
        view.update(rows)
        self.ledger.enter(self.previous, epoch, Reached(True, {ARRIVALS: new}))
        if self.chance.random() < 0.1:  # another job of the epoch failed: all since the last checkpoint is undone
            assert self.ledger.ended(self.durable.epoch, failed=True) is None
            self.previous = self.durable.epoch
            self.table, self.view = dict(self.durable.table), self.durable.view.copy()
            return
        self.limiter.spend(len(rows))
        self.table, self.view, self.previous = table, +view, epoch
        self.check(new)
        if self.chance.random() < 0.5:
            self.checkpoint(new)

    def next_rows(self, table: dict[int, int], old: InputProgress) -> tuple[InputProgress, list[Row]]:
        if self.paused or self.limiter.delay() != 0:
            return old, []
        allowed = self.limiter.available()
        budget = self.chance.choice((1, 7, 30))  # it changes with the number of tasks and the load
        rows, new = read(table, old, budget if allowed is None else min(budget, allowed))
        return new, rows

    def checkpoint(self, reached: InputProgress) -> None:
        vnodes = {**self.durable.vnodes, **{each.vnode: each for each in reached.stored(JOB)}}
        new = Durable(self.previous, dict(self.table), self.view.copy(), True, vnodes, self.durable.created)
        self.fate.commit(self.durable, new)
        durable = self.ledger.ended(self.previous, failed=False)
        assert durable is not None
        self.durable.created = durable.finished

    def check(self, reached: InputProgress) -> None:
        read_of = {key: value for key, value in self.table.items() if passed(reached, key) or reached.finished}
        assert self.view == Counter(read_of.items()), "the view is not its query over what was read"
        done = min(reached.done, reached.total)
        now = Progress(Phase.SNAPSHOT, done, reached.total).percent
        assert now < 100

    def cancel(self) -> None:
        """A drop: with the next checkpoint nothing is left of the view, and whoever creates it again starts anew."""
        self.fate.commit(self.durable, Durable(self.durable.epoch, dict(self.durable.table)))

    def meddle(self) -> None:
        """Somebody changes the limit or the number of tasks, pauses and resumes, or time passes."""
        self.clock.advance(self.chance.randint(1, 300))
        self.paused = self.chance.random() < (0.8 if self.paused else 0.05)
        if self.chance.random() < 0.05:
            self.limiter.set_tasks(self.chance.choice((1, 3)))
        if self.chance.random() < 0.1:
            self.limiter.set(self.chance.choice((None, 0, 20, 200)))
        elif self.limiter.rate == 0 and self.chance.random() < 0.5:
            self.limiter.set(200)


def run(seed: int, crash_at: int, after_commit: bool, cancels: int = 0) -> int:
    chance, clock = random.Random(seed), SimulatedClock()
    durable, fate = Durable(), Fate(crash_at, after_commit)
    durable.table = {key: chance.randrange(1000) for key in range(0, KEYS, 2)}
    for _ in range(3 + cancels):
        life = Life(durable, fate, chance, clock)
        try:
            for _ in range(5000):
                if durable.created:
                    break
                if cancels and chance.random() < 0.05:
                    cancels -= 1
                    life.cancel()
                    assert not durable.begun and not durable.vnodes and not durable.view
                    life = Life(durable, fate, chance, clock)
                life.meddle()
                life.epoch()
            break
        except Crash:
            assert durable.view == +durable.view
            continue
    assert durable.created, f"seed {seed}: it never came to its end"
    assert durable.view == Counter(durable.table.items()), f"seed {seed}, crash at {crash_at}"
    return fate.commits


@pytest.mark.parametrize("cancels", [0, 2])
@pytest.mark.parametrize("after_commit", [False, True])
def test_an_arrangement_backfill_that_crashes_at_any_commit_equals_its_query(after_commit: bool, cancels: int) -> None:
    for seed in (1, 2):
        commits = run(seed, -1, after_commit, cancels)
        assert commits > 10, "it is done before much can happen"
        for commit in range(commits):
            run(seed, commit, after_commit, cancels)


@pytest.mark.parametrize("seed", range(12))
def test_an_arrangement_backfill_equals_its_query_whatever_happens(seed: int) -> None:
    run(seed, random.Random(seed).randrange(40), seed % 2 == 0, cancels=seed % 3)


def test_a_barrier_after_a_failed_epoch_reads_from_the_last_checkpoint_again() -> None:
    start = InputProgress(ARRIVALS, even(KEYS))
    further = InputProgress(ARRIVALS, even(KEYS), vnode=5)
    ledger = Ledger(Epoch(10), Reached(True, {ARRIVALS: start}))
    ledger.enter(Epoch(10), Epoch(11), Reached(True, {ARRIVALS: further}))
    assert ledger.newest.inputs[ARRIVALS] == further
    assert ledger.durable.inputs[ARRIVALS] == start, "a kill would forget the rest"
    assert ledger.ended(Epoch(10), failed=True) is None
    assert ledger.at(Epoch(12)).inputs[ARRIVALS] == start


def test_nothing_is_ready_before_the_barrier_that_finished_it_is_durable() -> None:
    whole = Reached(True, {ARRIVALS: InputProgress(ARRIVALS, even(KEYS), vnode=VNODES)})
    ledger = Ledger(Epoch(10), Reached(True, {ARRIVALS: InputProgress(ARRIVALS, even(KEYS))}))
    ledger.enter(Epoch(10), Epoch(11), whole)
    durable = ledger.ended(Epoch(10), failed=False)
    assert durable is not None and not durable.finished
    assert not ledger.durable.finished
    durable = ledger.ended(Epoch(11), failed=False)
    assert durable is not None and durable.finished
    assert ledger.durable == durable
