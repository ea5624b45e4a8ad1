"""A harbour small enough to see through: jobs that run a function, and a store that keeps a log of what it did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Changes, Failed, Graph, Outcome, Reply, Request, Succeeded
from seiche.errors import InvalidText
from seiche.model import EPOCH_ZERO, Epoch, JobId, RelationId


@dataclass(frozen=True, slots=True)
class Rows:
    values: tuple[Any, ...]

    @property
    def rows(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class HarbourJob:
    """A table accepts any payload but "bad"; a view passes on what its inputs changed."""

    id: JobId
    name: str
    inputs: frozenset[RelationId] = frozenset()
    before: Callable[[Barrier], None] | None = None
    wanting: Callable[[Barrier], bool] | None = None

    @property
    def outputs(self) -> frozenset[RelationId]:
        return frozenset({RelationId(self.id)})

    def wants(self, barrier: Barrier) -> bool:
        return self.wanting is not None and self.wanting(barrier)

    def run(self, barrier: Barrier, inputs: Mapping[RelationId, Changes], requests: Sequence[Request]) -> Outcome:
        if self.before is not None:
            self.before(barrier)
        arrived: list[Any] = [value for changes in inputs.values() for value in changes.values]  # type: ignore[attr-defined]
        replies: dict[int, Reply] = {}
        for request in requests:
            if request.payload == "bad":
                replies[request.ticket] = Failed(InvalidText('invalid input for type integer: "bad"'))
            else:
                arrived.append(request.payload)
                replies[request.ticket] = Succeeded(f"accepted {request.payload}")
        changes = {RelationId(self.id): Rows(tuple(arrived))} if arrived else {}
        return Outcome(changes, part=(self.name, tuple(arrived)) if arrived else None, replies=replies)


def table(job: int, name: str, **behaviour: Any) -> HarbourJob:
    return HarbourJob(JobId(job), name, **behaviour)


def view(job: int, name: str, *inputs: int, **behaviour: Any) -> HarbourJob:
    return HarbourJob(JobId(job), name, frozenset(RelationId(relation) for relation in inputs), **behaviour)


@dataclass
class Logbook:
    """A checkpoint store in memory. `raising` is consulted before each operation and may fail it."""

    raising: dict[str, list[BaseException]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    begun: list[Barrier] = field(default_factory=list)
    checkpoints: list[tuple[Barrier, tuple[Any, ...]]] = field(default_factory=list)
    durable: Epoch = EPOCH_ZERO

    def begin(self, barrier: Barrier) -> None:
        self._enter("begin")
        self.begun.append(barrier)

    def commit(self, barrier: Barrier, parts: Sequence[object]) -> None:
        self._enter("commit")
        self.checkpoints.append((barrier, tuple(parts)))
        self.durable = barrier.epoch
        self._enter("committed")

    def discard(self) -> None:
        self._enter("discard")

    def committed_epoch(self) -> Epoch:
        self._enter("committed_epoch")
        return self.durable

    def _enter(self, operation: str) -> None:
        self.log.append(operation)
        if self.raising.get(operation):
            raise self.raising[operation].pop(0)

    def rows(self, relation: str) -> list[Any]:
        return [row for _, parts in self.checkpoints for name, rows in parts if name == relation for row in rows]


@dataclass(frozen=True)
class Build:
    """A command that adds a job."""

    job: HarbourJob
    on_publish: Callable[[], None] | None = None

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        return Effect(graph.with_job(self.job), ("build", (self.job.name,)), self.job.name, self.on_publish)


@dataclass(frozen=True)
class Refuse:
    """A command that finds its statement wrong."""

    error: Exception

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        raise self.error
