"""A snapshot backfill from its CREATE to the main graph, under crashes, limits, pauses and cancels.

What the model keeps beside the process is what survives: the inputs' log by epoch, the view's rows, and what a
checkpoint stores of a backfill. Each transaction is a step, and a crash may come before or after any of them. How far
the reading is, what comes next and what is stored of it is the engine's own: `BackfillState`, `InputProgress`,
`next_slice`, `RateLimiter`.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from seiche.catalog.checkpoint import VnodeProgress
from seiche.clock import SimulatedClock
from seiche.model import EPOCH_ZERO, VNODES, Epoch, JobId, RelationId
from seiche.stream.backfill.progress import InputProgress, Phase, Progress, next_slice
from seiche.stream.backfill.rate_limit import RateLimiter
from seiche.stream.backfill.state import BackfillState

ARRIVALS, JOB = RelationId(101), JobId(7)
KEYS = 150
SNAPSHOT_EPOCHS = 40  # in which the table is written, while the view is created and after

Row = tuple[int, int]  # key and value
Change = tuple[Epoch, Row, int]  # with its sign


def vnode_of(key: int) -> int:
    return key * 7919 % VNODES


class Crash(Exception):
    pass


@dataclass(slots=True)
class Disk:
    """What survives a crash."""

    epoch: Epoch = EPOCH_ZERO
    log: tuple[Change, ...] = ()
    folded: Epoch = EPOCH_ZERO  # the log is gone up to here
    exists: bool = False  # the view, in creation or not
    stored: str | None = None  # of its backfill; None once it is part of the main graph
    vnodes: dict[int, VnodeProgress] = field(default_factory=dict)
    view: Counter[Row] = field(default_factory=Counter)
    pin: Epoch | None = None

    def at(self, epoch: Epoch) -> Counter[Row]:
        """The table as of an epoch."""
        assert epoch >= self.folded, "a fold took away an epoch that somebody pinned"
        found: Counter[Row] = Counter()
        for when, row, sign in self.log:
            if when <= epoch:
                found[row] += sign
        return +found

    def between(self, start: Epoch, until: Epoch) -> list[Change]:
        assert start >= self.folded, "a fold took away a log that somebody pinned"
        return [each for each in self.log if start < each[0] <= until]

    @property
    def state(self) -> BackfillState | None:
        return None if self.stored is None else BackfillState.from_json(json.loads(self.stored))


@dataclass(slots=True)
class Fate:
    """Crashes at one transaction, before or after it; counted over all lives. -1 never does."""

    at: int
    after_commit: bool
    steps: int = 0

    def commit(self, disk: Disk, **changed: Any) -> None:
        number, self.steps = self.steps, self.steps + 1
        if number == self.at and not self.after_commit:
            raise Crash
        for name, value in changed.items():
            setattr(disk, name, value)
        check(disk)
        if number == self.at:
            raise Crash


def check(disk: Disk) -> None:
    """What a reader sees equals its query, and what is gone has left nothing."""
    if not disk.exists:
        assert (disk.stored, disk.vnodes, disk.pin) == (None, {}, None) and not disk.view
    elif disk.stored is None:
        assert disk.view == disk.at(disk.epoch), "a view that can be read is not its query at the committed epoch"
        assert disk.pin is None and not disk.vnodes


class Life:
    """One life of the process. It begins with what is on the disk, and ends by a crash or when all is done."""

    def __init__(self, disk: Disk, fate: Fate, chance: random.Random, clock: SimulatedClock) -> None:
        self.disk, self.fate, self.chance, self.clock = disk, fate, chance, clock
        self.limiter = RateLimiter(clock, chance.choice((None, 20, 200)))
        self.paused = False
        self.told = 0.0

    # --- the main graph -------------------------------------------------------------------------------

    def epoch(self, *, creates: bool = False, drops: bool = False, writes: bool = True) -> None:
        """A barrier of the main graph: the table changes, and a view that is part of it follows."""
        disk = self.disk
        epoch = Epoch(disk.epoch + self.chance.randint(1, 3))
        table = disk.at(disk.epoch)
        values = dict(table.keys())
        changes: list[Change] = []
        for key in self.chance.sample(range(KEYS), self.chance.choice((0, 1, 8)) if writes else 0):
            if key in values:
                changes.append((epoch, (key, values[key]), -1))
            if key not in values or self.chance.random() < 0.5:
                changes.append((epoch, (key, self.chance.randrange(100)), 1))
        changed: dict[str, Any] = {"epoch": epoch, "log": (*disk.log, *changes)}
        state = disk.state
        if drops:
            changed |= {"exists": False, "stored": None, "vnodes": {}, "view": Counter(), "pin": None}
        elif creates:
            stored = json.dumps(BackfillState(epoch).to_json())
            changed |= {"exists": True, "stored": stored, "pin": epoch}
        elif disk.exists and state is None:
            changed["view"] = replayed(disk.view, changes)
        elif state is not None and state.as_of is not None and not self.behind(state):
            # The hand-over: what this epoch changed is replayed in it, and from here on the view is part of it.
            view = replayed(disk.view, [*disk.between(state.as_of, disk.epoch), *changes])
            changed |= {"stored": None, "view": view, "pin": None}
        self.fate.commit(disk, **changed)
        if self.chance.random() < 0.3:
            disk.folded = disk.epoch if disk.pin is None else min(disk.epoch, disk.pin)

    # --- the backfill ---------------------------------------------------------------------------------

    def behind(self, state: BackfillState) -> bool:
        return state.as_of is not None and bool(self.disk.between(state.as_of, self.disk.epoch))

    def step(self) -> None:
        """The next transaction of the backfill, if it may go on."""
        state = self.disk.state
        if state is None or self.paused:
            return
        if state.as_of is not None:
            if self.behind(state):
                target = self.disk.epoch
                view = replayed(self.disk.view, self.disk.between(state.as_of, target))
                self.put(replace(state, as_of=target), view=view, pin=target)
            return
        if not state.counts:
            rows = Counter(vnode_of(key) for key, _ in self.disk.at(state.pinned))
            self.put(replace(state, counts={ARRIVALS: tuple(rows[vnode] for vnode in range(VNODES))}))
            return
        old = InputProgress.restored(ARRIVALS, state.counts[ARRIVALS], self.disk.vnodes.values())
        self.tell(old)
        if old.finished:
            self.put(replace(state, as_of=state.pinned), vnodes={})
            return
        if self.limiter.delay() != 0:
            return
        allowed = self.limiter.available()
        budget = self.chance.choice((1, 3, 15))  # it changes with the number of tasks and the load
        piece = next_slice(old, budget if allowed is None else min(budget, allowed))
        assert piece is not None
        after = int(piece.after[0] or 0) if piece.after is not None else -1
        found = sorted(
            (vnode_of(key), key, value)
            for key, value in self.disk.at(state.pinned)
            if piece.first <= vnode_of(key) < piece.end and (vnode_of(key) > piece.first or key > after)
        )[: piece.limit]
        new = old.passed(piece, (str(found[-1][1]),) if found else None, len(found))
        vnodes = self.disk.vnodes | {each.vnode: each for each in new.stored(JOB, since=old)}
        view = self.disk.view + Counter((key, value) for _, key, value in found)
        self.put(replace(state, step=state.step + 1, begun=True), vnodes=vnodes, view=view)
        self.limiter.spend(len(found))

    def put(self, state: BackfillState, **changed: Any) -> None:
        self.fate.commit(self.disk, stored=json.dumps(state.to_json()), **changed)

    def tell(self, progress: InputProgress) -> None:
        now = Progress(Phase.SNAPSHOT, progress.done, progress.total).percent
        assert self.told <= now < 100, "progress went backwards, or said 100 % too early"
        self.told = now

    # --- users ----------------------------------------------------------------------------------------

    def meddle(self) -> None:
        """Limits and the number of tasks change, everything is paused and goes on, and time passes."""
        self.clock.advance(self.chance.randint(1, 400))
        match self.chance.randrange(12):
            case 0:
                self.limiter.set(self.chance.choice((None, 0, 20, 200)))
            case 1:
                self.limiter.set_tasks(self.chance.choice((1, 3)))
            case 2:
                self.paused = True
            case 3 | 4 | 5:
                self.paused = False
            case 6 | 7 if self.limiter.rate == 0:
                self.limiter.set(200)


def replayed(view: Counter[Row], changes: list[Change]) -> Counter[Row]:
    after = view.copy()
    for _, row, sign in changes:
        after[row] += sign
        assert after[row] >= 0, "a row leaves that never came"
    return +after


def run(seed: int, crash_at: int, after_commit: bool, cancels: int = 0) -> int:
    chance, clock, disk = random.Random(seed), SimulatedClock(), Disk()
    fate = Fate(crash_at, after_commit)
    disk.log = tuple((EPOCH_ZERO, (key, key % 10), 1) for key in range(0, KEYS, 2))
    left = {"cancels": cancels, "epochs": SNAPSHOT_EPOCHS}
    for _ in range(2):
        try:
            live(Life(disk, fate, chance, clock), left)
            break
        except Crash:
            check(disk)
    assert disk.exists and disk.stored is None, f"seed {seed}, crash at {crash_at}: it never came to its end"
    assert disk.view == disk.at(disk.epoch), f"seed {seed}, crash at {crash_at}"
    return fate.steps


def live(life: Life, left: dict[str, int]) -> None:
    for _ in range(20_000):
        life.meddle()
        if life.paused:
            continue
        disk = life.disk
        if not disk.exists:
            life.epoch(creates=True)
            life.told = 0.0
        elif left["cancels"] and disk.stored is not None and life.chance.random() < 0.2:
            left["cancels"] -= 1
            life.epoch(drops=True)
            assert not disk.exists
        elif left["epochs"] and life.chance.random() < 0.4:
            left["epochs"] -= 1
            life.epoch()
        elif disk.stored is None:
            if not left["epochs"]:
                return
        else:
            life.step()
            state = disk.state
            if not left["epochs"] and state is not None and state.as_of is not None and not life.behind(state):
                life.epoch(writes=False)


@pytest.mark.parametrize("cancels", [0, 2])
@pytest.mark.parametrize("after_commit", [False, True])
def test_a_view_whose_creation_crashes_at_any_transaction_equals_its_query(after_commit: bool, cancels: int) -> None:
    steps = run(3, -1, after_commit, cancels)
    assert steps > SNAPSHOT_EPOCHS + 15, "it is done before much can happen"
    for step in range(steps):
        run(3, step, after_commit, cancels)


@pytest.mark.parametrize("seed", range(40))
def test_a_view_equals_its_query_whatever_happens_while_it_is_created(seed: int) -> None:
    run(seed, random.Random(seed).randrange(120), seed % 2 == 0, cancels=seed % 3)


BROKEN: list[tuple[str, Callable[[BackfillState], BackfillState]]] = [
    ("forgets that the snapshot is read", lambda state: replace(state, as_of=None)),
    ("takes a later epoch for the one it read", lambda state: replace(state, pinned=Epoch(state.pinned + 2))),
]


@pytest.mark.parametrize(("what", "spoil"), BROKEN, ids=[what for what, _ in BROKEN])
def test_the_model_notices_a_state_that_is_restored_wrongly(
    what: str, spoil: Callable[[BackfillState], BackfillState], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = BackfillState.from_json
    monkeypatch.setattr(BackfillState, "from_json", staticmethod(lambda data: spoil(read(data))))
    with pytest.raises(AssertionError):
        run(0, -1, False)
