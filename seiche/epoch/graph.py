"""The jobs that share barriers, and how one epoch runs through them.

A graph is an immutable value: a change of the set of jobs makes a new graph, which takes effect when the
coordinator's checkpoint is durable and is simply dropped when it is not. An epoch walks it in dependency order:

        arrivals (table) ──┐
                           ├──▶ berth_load (view) ──▶ busy_berths (view)
        berths (table) ────┘
        tides (table) ────────▶ high_tides (view)            side by side with the rest

A job runs only if it has requests, an input changed, or it says that it wants to; where nothing changed
nothing runs. One failing request fails alone; a failing job stops the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Protocol, TypeAlias

from seiche.clock import Clock, SystemClock
from seiche.epoch.barrier import Barrier
from seiche.errors import InvariantError, JobFailed, UndefinedObject
from seiche.model import JobId, RelationId


class Changes(Protocol):
    """The changes of one relation in one epoch. Only jobs and storage know what is inside."""

    @property
    def rows(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Request:
    """One statement for one job. Tickets are unique and grow in the order of submission."""

    ticket: int
    job: JobId
    payload: object


@dataclass(frozen=True, slots=True)
class Succeeded:
    value: object


@dataclass(frozen=True, slots=True)
class Failed:
    """The request left no trace; the rest of its epoch is not touched."""

    error: Exception


Reply: TypeAlias = Succeeded | Failed


@dataclass(frozen=True, slots=True)
class JobReport:
    """What a job did in one epoch, for metrics and the live display. `notes` are a job's own figures."""

    job: JobId
    name: str
    rows_in: int
    rows_out: int
    seconds: float
    requests: int = 0
    notes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job hands over at a barrier: only the relations that changed, its piece of the checkpoint, and one
    reply for each request. Without a `report`, the graph's own measurements stand for it, with the job's `notes`."""

    changes: Mapping[RelationId, Changes] = field(default_factory=dict)
    part: object | None = None
    report: JobReport | None = None
    replies: Mapping[int, Reply] = field(default_factory=dict)
    notes: Mapping[str, float] = field(default_factory=dict)


class Job(Protocol):
    """Something that keeps relations up to date, one epoch at a time.

    A job keeps no state from one barrier to the next except through storage: an epoch may be undone after
    the job ran, and the job is not told. It finds in storage exactly what is true at `barrier.previous`.
    """

    @property
    def id(self) -> JobId: ...

    @property
    def name(self) -> str: ...

    @property
    def inputs(self) -> frozenset[RelationId]: ...

    @property
    def outputs(self) -> frozenset[RelationId]: ...

    def wants(self, barrier: Barrier) -> bool:
        """Whether to run at this barrier though no input changed. Cheap and without effect: it is asked often."""
        ...

    def run(self, barrier: Barrier, inputs: Mapping[RelationId, Changes], requests: Sequence[Request]) -> Outcome:
        """Called by a pool thread, beside jobs that do not depend on this one. What it raises stops the epoch."""
        ...


class Graph:
    """An immutable set of jobs. An input that no job here produces never changes."""

    __slots__ = ("_jobs", "_order", "_upstream")

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self._jobs: dict[JobId, Job] = {}
        producers: dict[RelationId, Job] = {}
        for job in jobs:
            if job.id in self._jobs:
                raise InvariantError(f"graph has two jobs with id {job.id}: {self._jobs[job.id].name!r}, {job.name!r}")
            self._jobs[job.id] = job
            for relation in job.outputs:
                if relation in producers:
                    rivals = f"{producers[relation].name!r} and {job.name!r}"
                    raise InvariantError(f"relation {relation} has two producers: {rivals}")
                producers[relation] = job
        self._upstream: dict[JobId, frozenset[JobId]] = {
            job.id: frozenset(producers[relation].id for relation in job.inputs if relation in producers)
            for job in self._jobs.values()
        }
        self._order = self._ordered()

    def _ordered(self) -> tuple[Job, ...]:
        sorter = TopologicalSorter(self._upstream)
        try:
            sorter.prepare()
        except CycleError as error:
            names = [self._jobs[job].name for job in error.args[1]]
            raise InvariantError(f"jobs depend on each other in a circle: {' > '.join(names)}") from error
        order: list[Job] = []
        while ready := sorter.get_ready():
            order.extend(self._jobs[job] for job in sorted(ready))
            sorter.done(*ready)
        return tuple(order)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Producers before their consumers; the same set of jobs always in the same order."""
        return self._order

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._order)

    def __contains__(self, job: object) -> bool:
        return job in self._jobs

    def job(self, job: JobId) -> Job:
        try:
            return self._jobs[job]
        except KeyError:
            raise InvariantError(f"graph has no job {job}") from None

    def upstream(self, job: JobId) -> frozenset[JobId]:
        """The jobs whose outputs this one reads."""
        return self._upstream[self.job(job).id]

    def with_job(self, job: Job) -> Graph:
        return Graph((*self._jobs.values(), job))

    def without_job(self, job: JobId) -> Graph:
        gone = self.job(job)
        return Graph(other for other in self._jobs.values() if other is not gone)

    def replace(self, job: Job) -> Graph:
        """The same graph with `job` in the place of the one that has its id."""
        return self.without_job(job.id).with_job(job)

    def anyone_wants(self, barrier: Barrier) -> bool:
        return any(_wants(job, barrier) for job in self._order)

    def walk(self) -> TopologicalSorter[JobId]:
        """A fresh traversal, prepared."""
        sorter = TopologicalSorter(self._upstream)
        sorter.prepare()
        return sorter


def _wants(job: Job, barrier: Barrier) -> bool:
    try:
        return job.wants(barrier)
    except Exception as error:
        raise JobFailed(job.id, job.name, error) from error


@dataclass(frozen=True, slots=True)
class GraphResult:
    """What all jobs handed over; parts and reports in the graph's order, replies by ticket."""

    changes: Mapping[RelationId, Changes]
    parts: tuple[object, ...]
    reports: tuple[JobReport, ...]
    replies: Mapping[int, Reply]


@dataclass(frozen=True, slots=True)
class _Run:
    """One job's turn, ready for a pool thread."""

    job: Job
    inputs: Mapping[RelationId, Changes]
    requests: Sequence[Request]

    def execute(self, barrier: Barrier, clock: Clock) -> tuple[Outcome, JobReport]:
        started = clock.monotonic()
        outcome = self.job.run(barrier, self.inputs, self.requests)
        seconds = clock.monotonic() - started
        foreign = outcome.changes.keys() - self.job.outputs
        if foreign:
            raise InvariantError(f"job {self.job.name!r} changed relations that are not its own: {sorted(foreign)}")
        asked = {request.ticket for request in self.requests}
        if outcome.replies.keys() != asked:
            raise InvariantError(
                f"job {self.job.name!r} was asked {sorted(asked)} and answered {sorted(outcome.replies)}"
            )
        return outcome, outcome.report or JobReport(
            job=self.job.id,
            name=self.job.name,
            rows_in=sum(changes.rows for changes in self.inputs.values()),
            rows_out=sum(changes.rows for changes in outcome.changes.values()),
            seconds=seconds,
            requests=len(self.requests),
            notes=outcome.notes,
        )


def run_graph(
    graph: Graph,
    barrier: Barrier,
    requests: Sequence[Request],
    executor: Executor,
    clock: Clock | None = None,
) -> GraphResult:
    """Let every job that has something to do run once, producers before consumers, the others side by side.

    Raises JobFailed when a job fails; by then no job is running any more and none was started after the failure.
    A request for a job that is not in the graph gets a Failed reply.
    """
    clock = clock or SystemClock()
    asked: dict[JobId, list[Request]] = {}
    replies: dict[int, Reply] = {}
    for request in requests:
        if request.job in graph:
            asked.setdefault(request.job, []).append(request)
        else:
            replies[request.ticket] = Failed(_gone(request.job))

    changes: dict[RelationId, Changes] = {}
    finished: dict[JobId, tuple[Outcome, JobReport]] = {}
    failures: list[JobFailed] = []
    running: dict[Future[tuple[Outcome, JobReport]], Job] = {}
    walk = graph.walk()
    try:
        while True:
            while not failures and (ready := walk.get_ready()):
                for job in map(graph.job, sorted(ready)):
                    inputs = {relation: changes[relation] for relation in sorted(job.inputs) if relation in changes}
                    mine = asked.get(job.id, [])
                    if inputs or mine or _wants(job, barrier):
                        running[executor.submit(_Run(job, inputs, mine).execute, barrier, clock)] = job
                    else:
                        walk.done(job.id)
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda future: running[future].id):
                job = running.pop(future)
                match future.exception():
                    case None:
                        outcome, _ = finished[job.id] = future.result()
                        changes.update(outcome.changes)
                        replies.update(outcome.replies)
                        walk.done(job.id)
                    case Exception() as error:
                        failure = JobFailed(job.id, job.name, error)
                        failure.__cause__ = error
                        failures.append(failure)
                    case BaseException() as error:
                        raise error
    finally:
        wait(running)  # whoever undoes the epoch must not race with its jobs

    if failures:
        first, *others = failures
        for other in others:
            first.add_note(f"In the same epoch: {other.message}")
        raise first
    in_order = [finished[job.id] for job in graph if job.id in finished]
    return GraphResult(
        changes=changes,
        parts=tuple(outcome.part for outcome, _ in in_order if outcome.part is not None),
        reports=tuple(report for _, report in in_order),
        replies=replies,
    )


def _gone(job: JobId) -> UndefinedObject:
    return UndefinedObject(
        f"job {job} does not exist",
        detail="It was dropped before the statement could run.",
        hint="Look at SHOW TABLES for what exists now.",
    )
