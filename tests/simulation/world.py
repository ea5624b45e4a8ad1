"""A harbour in memory whose process can die at any step.

The disk outlives the process: files, which appear one by one, and a registry, which one transaction replaces.
Everything else is lost in a crash. Tables take arrivals, a gauge reads the river (a source whose log lies
outside), views keep sums by berth and a grand total of another view.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from seiche.clock import Clock
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.coordinator import Coordinator, Ended, Idle
from seiche.epoch.graph import Changes, Failed, Graph, Job, Outcome, Reply, Request, Succeeded
from seiche.errors import (
    CommitOutcomeUnknown,
    DependentObjects,
    DiskFull,
    DuplicateObject,
    InvalidText,
    MetadataUnavailable,
    StorageUnavailable,
    UndefinedObject,
)
from seiche.model import EPOCH_ZERO, Epoch, JobId, RelationId

ARRIVALS, DEPARTURES, GAUGE = 1, 2, 3
TABLES = (ARRIVALS, DEPARTURES)
ALWAYS = (ARRIVALS, DEPARTURES, GAUGE)

Row = tuple[Any, ...]
Signed = tuple[int, Row]


class Crash(BaseException):
    """The process is gone. Not an Exception: no one may handle it and go on."""


class Fault(Enum):
    CRASH = "crash"
    AWAY = "storage away"
    FULL = "disk full"
    REFUSED = "metadata away"
    UNKNOWN = "outcome unknown"
    STRANGE = "error of an unknown type"

    def error(self) -> BaseException:
        match self:
            case Fault.CRASH:
                return Crash()
            case Fault.AWAY:
                return StorageUnavailable("folder is away")
            case Fault.FULL:
                return DiskFull("disk is full")
            case Fault.REFUSED:
                return MetadataUnavailable("metadata database is away")
            case Fault.UNKNOWN:
                return CommitOutcomeUnknown("connection lost")
            case Fault.STRANGE:
                return OSError("socket closed")


# Every step that can go wrong, and how.
STEPS: Mapping[str, tuple[Fault, ...]] = {
    "begin": (Fault.CRASH, Fault.AWAY),
    "begun": (Fault.CRASH,),
    "job started": (Fault.CRASH, Fault.AWAY),
    "write": (Fault.CRASH, Fault.FULL),
    "written": (Fault.CRASH, Fault.AWAY),
    "job done": (Fault.CRASH, Fault.AWAY),
    "command done": (Fault.CRASH,),
    "commit": (Fault.CRASH, Fault.REFUSED, Fault.UNKNOWN, Fault.STRANGE),
    "committed": (Fault.CRASH, Fault.UNKNOWN, Fault.STRANGE),
    "publish": (Fault.CRASH,),
    "published": (Fault.CRASH,),
    "acknowledged": (Fault.CRASH,),
    "ask": (Fault.CRASH, Fault.REFUSED),
    "discard": (Fault.CRASH, Fault.AWAY),
    "discarded one": (Fault.CRASH, Fault.AWAY),
}


class Faults:
    """Decides at each step whether something goes wrong, and remembers the steps taken."""

    def __init__(self, plan: Mapping[int, Fault] | None = None, rng: random.Random | None = None, odds: float = 0.0):
        self._plan = dict(plan or {})
        self._rng = rng
        self._odds = odds
        self._lock = threading.Lock()
        self._dead = False
        self.trace: list[str] = []

    def at(self, step: str) -> None:
        with self._lock:
            if self._dead:
                raise Crash()
            fault = self._plan.get(len(self.trace))
            if fault is None and self._rng is not None and self._rng.random() < self._odds:
                fault = self._rng.choice(STEPS[step])
            self.trace.append(step)
            if fault is Fault.CRASH:
                self._dead = True
        if fault is not None:
            raise fault.error()

    def revive(self) -> None:
        with self._lock:
            self._dead = False

    def calm(self) -> None:
        with self._lock:
            self._plan, self._odds = {}, 0.0


# What outlives the process


@dataclass(frozen=True)
class Segment:
    relation: int
    epoch: Epoch
    path: str
    life: int


@dataclass(frozen=True)
class ViewSpec:
    """A sum of the inputs' amounts by berth, or of everything."""

    id: int
    inputs: tuple[int, ...]
    by_berth: bool


@dataclass(frozen=True)
class Registry:
    epoch: Epoch = EPOCH_ZERO
    segments: tuple[Segment, ...] = ()
    views: Mapping[int, ViewSpec] = field(default_factory=dict)


@dataclass
class Disk:
    files: dict[str, tuple[Signed, ...]] = field(default_factory=dict)
    registry: Registry = field(default_factory=Registry)
    epochs: list[Epoch] = field(default_factory=list)  # the onlooker's: each transaction
    lives: int = 0
    attempts: list[Segment] = field(default_factory=list)  # the onlooker's: each segment ever staged

    def transact(self, registry: Registry) -> None:
        self.registry = registry
        self.epochs.append(registry.epoch)

    def sweep(self) -> None:
        registered = {segment.path for segment in self.registry.segments}
        for path in self.files.keys() - registered:
            del self.files[path]

    def rows(self, relation: int, staged: Sequence[Segment] = ()) -> Counter[Row]:
        rows: Counter[Row] = Counter()
        for segment in (*self.registry.segments, *staged):
            if segment.relation == relation:
                for sign, row in self.files[segment.path]:
                    rows[row] += sign
        return Counter({row: weight for row, weight in rows.items() if weight})


# What dies with the process


@dataclass(frozen=True)
class Written:
    segment: Segment
    changes: tuple[Signed, ...]

    @property
    def rows(self) -> int:
        return len(self.changes)


@dataclass(frozen=True)
class Built:
    spec: ViewSpec
    segment: Segment | None


@dataclass(frozen=True)
class Dropped:
    view: int


class Store:
    """Stages segments, and makes them durable in one transaction."""

    def __init__(self, disk: Disk, faults: Faults) -> None:
        self.disk = disk
        self.faults = faults
        self._lock = threading.Lock()
        self._staged: list[Segment] = []
        self._attempted = EPOCH_ZERO
        self._newest = disk.registry.epoch  # durable or staged
        self._number = 0

    def begin(self, barrier: Barrier) -> None:
        self.faults.at("begin")
        assert barrier.epoch > barrier.previous == self._newest, "the epoch does not follow what storage holds"
        self._newest = barrier.epoch
        self.faults.at("begun")

    def commit(self, barrier: Barrier, parts: Sequence[object]) -> None:
        self._attempted = barrier.epoch
        self.faults.at("commit")
        registry = replace(self.disk.registry, epoch=barrier.epoch)
        carried: list[Segment] = []
        for part in parts:
            match part:
                case Written(segment):
                    carried.append(segment)
                    registry = replace(registry, segments=(*registry.segments, segment))
                case Built(spec, segment):
                    registry = replace(registry, views={**registry.views, spec.id: spec})
                    if segment is not None:
                        carried.append(segment)
                        registry = replace(registry, segments=(*registry.segments, segment))
                case Dropped(view):
                    registry = replace(
                        registry,
                        segments=tuple(segment for segment in registry.segments if segment.relation != view),
                        views={id: spec for id, spec in registry.views.items() if id != view},
                    )
                case _:
                    raise AssertionError(f"unknown part: {part}")
        assert sorted(map(str, carried)) == sorted(map(str, self._staged)), "a checkpoint carries all that is staged"
        self.disk.transact(registry)
        self.faults.at("committed")
        self._staged.clear()

    def discard(self) -> None:
        self.faults.at("discard")
        registered = {segment.path for segment in self.disk.registry.segments}
        while self._staged:
            path = self._staged[-1].path
            assert path not in registered, "a durable file is discarded"
            self.disk.files.pop(path, None)
            self.faults.at("discarded one")
            self._staged.pop()
        self._newest = self.disk.registry.epoch

    def committed_epoch(self) -> Epoch:
        self.faults.at("ask")
        if self.disk.registry.epoch == self._attempted:
            self._staged.clear()
        return self.disk.registry.epoch

    def read(self, relation: int) -> Counter[Row]:
        with self._lock:
            return self.disk.rows(relation, self._staged)

    def write(self, relation: int, epoch: Epoch, changes: Sequence[Signed]) -> Written:
        self.faults.at("write")
        with self._lock:
            self._number += 1
            path = f"{relation}/{epoch}-{self.disk.lives}-{self._number}.parquet"
            segment = Segment(relation, epoch, path, self.disk.lives)
            assert path not in self.disk.files, "a file is written twice"
            self.disk.files[path] = tuple(changes)
        self.faults.at("written")
        with self._lock:
            self._staged.append(segment)
            self.disk.attempts.append(segment)
        return Written(segment, tuple(changes))


@dataclass(frozen=True)
class Insert:
    uid: int
    berth: str
    amount: int | None


@dataclass(frozen=True)
class Delete:
    uid: int


class TableJob:
    """Keeps rows (uid, berth, amount). An arrival without an amount and a departure of no one fail alone."""

    inputs: frozenset[RelationId] = frozenset()

    def __init__(self, relation: int, store: Store) -> None:
        self.id = JobId(relation)
        self.name = f"table {relation}"
        self.outputs = frozenset({RelationId(relation)})
        self._store = store

    def wants(self, barrier: Barrier) -> bool:
        return False

    def run(self, barrier: Barrier, inputs: Mapping[RelationId, Changes], requests: Sequence[Request]) -> Outcome:
        self._store.faults.at("job started")
        rows = {row[0]: row for row in self._store.read(self.id)}
        changes: list[Signed] = []
        replies: dict[int, Reply] = {}
        for request in requests:
            replies[request.ticket] = Succeeded(None)
            match request.payload:
                case Insert(_, _, None):
                    replies[request.ticket] = Failed(InvalidText("invalid amount"))
                case Insert(uid, berth, amount):
                    rows[uid] = (uid, berth, amount)
                    changes.append((1, rows[uid]))
                case Delete(uid) if uid in rows:
                    changes.append((-1, rows.pop(uid)))
                case Delete(uid):
                    replies[request.ticket] = Failed(UndefinedObject(f"arrival {uid} does not exist"))
        outcome = _outcome(self._store, self.id, barrier, changes, replies)
        self._store.faults.at("job done")
        return outcome


@dataclass
class River:
    """The outside world: readings that no crash takes back."""

    readings: list[int] = field(default_factory=list)


class GaugeJob:
    """Reads the river from where the last durable epoch ended, a few readings at a time."""

    id = JobId(GAUGE)
    name = "gauge"
    inputs: frozenset[RelationId] = frozenset()
    outputs = frozenset({RelationId(GAUGE)})

    def __init__(self, river: River, store: Store) -> None:
        self._river = river
        self._store = store

    def wants(self, barrier: Barrier) -> bool:
        return len(self._river.readings) > self._store.read(GAUGE).total()

    def run(self, barrier: Barrier, inputs: Mapping[RelationId, Changes], requests: Sequence[Request]) -> Outcome:
        self._store.faults.at("job started")
        offset = self._store.read(GAUGE).total()
        new = self._river.readings[offset : offset + 3]
        changes = [(1, (offset + place, "river", reading)) for place, reading in enumerate(new)]
        return _outcome(self._store, GAUGE, barrier, changes, {})


class ViewJob:
    """Keeps rows (group, number of rows, sum) from the changes of its inputs and its own old rows."""

    def __init__(self, spec: ViewSpec, store: Store) -> None:
        self.id = JobId(spec.id)
        self.name = f"view {spec.id}"
        self.inputs = frozenset(RelationId(relation) for relation in spec.inputs)
        self.outputs = frozenset({RelationId(spec.id)})
        self._spec = spec
        self._store = store

    def wants(self, barrier: Barrier) -> bool:
        return False

    def run(self, barrier: Barrier, inputs: Mapping[RelationId, Changes], requests: Sequence[Request]) -> Outcome:
        self._store.faults.at("job started")
        old = {row[0]: row for row in self._store.read(self.id)}
        sums: dict[str, list[int]] = {}
        for written in inputs.values():
            assert isinstance(written, Written)
            for sign, row in written.changes:
                group, amount = _contribution(self._spec, row)
                total = sums.setdefault(group, [0, 0])
                total[0] += sign
                total[1] += sign * amount
        changes: list[Signed] = []
        for group, (rows, amount) in sums.items():
            before = old.get(group)
            after = (group, rows + (before[1] if before else 0), amount + (before[2] if before else 0))
            if before != after:
                changes += [(-1, before)] if before else []
                changes += [(1, after)] if after[1] else []
        outcome = _outcome(self._store, self.id, barrier, changes, {})
        self._store.faults.at("job done")
        return outcome


def _outcome(
    store: Store, relation: int, barrier: Barrier, changes: Sequence[Signed], replies: Mapping[int, Reply]
) -> Outcome:
    if not changes:
        return Outcome(replies=replies)
    written = store.write(relation, barrier.epoch, changes)
    return Outcome({RelationId(relation): written}, part=written, replies=replies)


def _contribution(spec: ViewSpec, row: Row) -> tuple[str, int]:
    return (row[1] if spec.by_berth else "all"), row[2]


def recompute(spec: ViewSpec, rows: Callable[[int], Counter[Row]]) -> Counter[Row]:
    """The view's query over its inputs' rows: the oracle."""
    groups: dict[str, tuple[int, int]] = {}
    for relation in spec.inputs:
        for row in rows(relation).elements():
            group, amount = _contribution(spec, row)
            count, total = groups.get(group, (0, 0))
            groups[group] = (count + 1, total + amount)
    return Counter((group, count, total) for group, (count, total) in groups.items())


@dataclass(frozen=True)
class Build:
    """CREATE MATERIALIZED VIEW: filled from the rows as they are, then kept by its job."""

    spec: ViewSpec
    process: Process

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        if JobId(self.spec.id) in graph:
            raise DuplicateObject(f"view {self.spec.id} exists")
        for relation in self.spec.inputs:
            if JobId(relation) not in graph:
                raise UndefinedObject(f"relation {relation} does not exist")
        store = self.process.store
        rows = [(1, row) for row in recompute(self.spec, store.read).elements()]
        segment = store.write(self.spec.id, barrier.epoch, rows).segment if rows else None
        store.faults.at("command done")
        return Effect(
            graph.with_job(ViewJob(self.spec, store)),
            Built(self.spec, segment),
            self.spec.id,
            self.process.publish(lambda views: views.update({self.spec.id: self.spec})),
        )


@dataclass(frozen=True)
class Drop:
    view: int
    process: Process

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        if JobId(self.view) not in graph:
            raise UndefinedObject(f"view {self.view} does not exist")
        if any(RelationId(self.view) in job.inputs for job in graph):
            raise DependentObjects(f"view {self.view} has dependants")
        self.process.store.faults.at("command done")
        return Effect(
            graph.without_job(JobId(self.view)),
            Dropped(self.view),
            self.view,
            self.process.publish(lambda views: views.pop(self.view)),
        )


class AtOnce(Executor):
    """Runs a call where it is submitted, so that a seed decides everything."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - a pool's future holds whatever the call raised
            future.set_exception(error)
        return future


class Process:
    """One life of the engine: recovers from the disk when made."""

    def __init__(
        self, disk: Disk, river: River, faults: Faults, clock: Clock | None = None, executor: Executor | None = None
    ) -> None:
        faults.revive()
        disk.sweep()
        disk.lives += 1
        self.store = Store(disk, faults)
        self.views = dict(disk.registry.views)
        self._faults = faults
        jobs: list[Job] = [TableJob(table, self.store) for table in TABLES]
        jobs.append(GaugeJob(river, self.store))
        jobs += [ViewJob(spec, self.store) for spec in disk.registry.views.values()]
        self.graph = Graph(jobs)
        self.epoch = disk.registry.epoch
        self.coordinator = Coordinator(self.store, clock=clock, barrier_interval_ms=10, executor=executor)

    def publish(self, change: Callable[[dict[int, ViewSpec]], object]) -> Callable[[], None]:
        def on_publish() -> None:
            self._faults.at("publish")
            change(self.views)
            self._faults.at("published")

        return on_publish

    def settle(self, limit: int = 200) -> bool:
        """Step until there is nothing to do at this moment. False if the process died."""
        for _ in range(limit):
            try:
                step = self.coordinator.step()
            except Crash:
                return False
            if isinstance(step, Ended) or (isinstance(step, Idle) and step.seconds != 0.0):
                return True
        raise AssertionError("the coordinator does not come to rest")


# What the callers know


@dataclass(frozen=True)
class Entry:
    """A call, and the future that says how it went."""

    what: Insert | Delete | ViewSpec | Dropped
    job: int
    future: Future[Any]


@dataclass
class Ledger:
    faults: Faults
    entries: list[Entry] = field(default_factory=list)

    def note(self, what: Insert | Delete | ViewSpec | Dropped, job: int, future: Future[Any]) -> None:
        def acknowledged(future: Future[Any]) -> None:
            if not future.cancelled() and future.exception() is None:
                self.faults.at("acknowledged")

        self.entries.append(Entry(what, job, future))
        future.add_done_callback(acknowledged)
