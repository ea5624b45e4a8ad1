"""The running database that all sessions share: what exists, where rows are, and the coordinator that moves time.

It owns the current catalog. A catalog changes only at a barrier: a command makes the next one, the checkpoint
makes it durable, and then every new statement sees it.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Protocol

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import RECOVERED, Checkpoint, Event, VnodeProgress
from seiche.catalog.facts import SessionFact
from seiche.catalog.objects import FOLLOWING_KINDS, TIMEZONE, CatalogObject, ObjectKind, ObjectStatus
from seiche.catalog.parallelism import PARALLELISM, Parallelism, backfill_parallelism_of, parallelism_of
from seiche.catalog.rows import StoredState
from seiche.catalog.store import MetadataStore
from seiche.clock import Clock
from seiche.config import Config
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.coordinator import Coordinator
from seiche.epoch.graph import Graph, Job
from seiche.epoch.report import EpochReport
from seiche.errors import InvariantError
from seiche.model import Epoch, JobId, ObjectId, RelationId, RelationSchema
from seiche.plan.algebra import Plan, with_names
from seiche.plan.closing import emit_on_close
from seiche.plan.fragments import Fragment, cut
from seiche.plan.lower import lower
from seiche.session import indexes
from seiche.session.commits import Commits
from seiche.session.deliveries import Deliveries
from seiche.session.feeds import FED_KINDS, Feeds
from seiche.session.jobs import Jobs
from seiche.session.names import CatalogNames
from seiche.session.plan_cache import PlanCache
from seiche.session.point_reads import PointReads
from seiche.session.shapes import Shapes, seen, shapes_of
from seiche.session.subscribed import log_since
from seiche.session.system.evaluate import SystemQueries
from seiche.session.watermarks import bounds_in, watermark_of
from seiche.sql.bind import Settings, bind_query
from seiche.sql.parse import parse
from seiche.sql.statements import CreateFollowing, CreateMaterializedView, CreateSink
from seiche.storage.bounds import KeyBounds
from seiche.storage.fold import FoldPolicy
from seiche.storage.lookups import Lookups
from seiche.storage.retention import Pins, Trash
from seiche.stream.backfill.arrangement import ArrangementBackfill, ArrangementState
from seiche.stream.backfill.hand_over import HandOver
from seiche.stream.backfill.protocol import Backfill, BackfillKind
from seiche.stream.backfill.snapshot import SnapshotBackfill
from seiche.stream.backfill.state import BackfillState, Surroundings, pin_holder
from seiche.stream.batch_refresh.runner import Known, RefreshRunner
from seiche.stream.batch_refresh.schedule import Schedule, read_schedule
from seiche.stream.conflict import Conflict
from seiche.stream.load import StreamLoad
from seiche.stream.maintenance import Maintenance, MaintenancePolicy
from seiche.stream.rowids import RowIds
from seiche.stream.runtime import Runtime
from seiche.stream.table import TableJob
from seiche.stream.view import ViewJob

# Counts up when a change of planning gives stored views another shape than before.
PLAN_VERSION = 1

GATE_CHECK_SECONDS = 0.2

log = logging.getLogger(__name__)


class TableGate:
    """Lets many small inserts of a table go together, and anything else have it for itself, first come first served.

    `check` is called while waiting and may raise, which leaves the queue.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._queue: list[tuple[object, bool]] = []  # who is inside or waits, and whether it wants to be alone

    @contextmanager
    def shared(self, check: Callable[[], None] = lambda: None) -> Iterator[None]:
        with self._inside(False, check):
            yield

    @contextmanager
    def alone(self, check: Callable[[], None] = lambda: None) -> Iterator[None]:
        with self._inside(True, check):
            yield

    @contextmanager
    def _inside(self, alone: bool, check: Callable[[], None]) -> Iterator[None]:
        me = (object(), alone)
        with self._condition:
            self._queue.append(me)
            try:
                while not self._may_enter(me):
                    self._condition.wait(GATE_CHECK_SECONDS)
                    check()
            except BaseException:
                self._leave(me)
                raise
        try:
            yield
        finally:
            with self._condition:
                self._leave(me)

    def _may_enter(self, me: tuple[object, bool]) -> bool:
        before = self._queue[: self._queue.index(me)]
        return not before if me[1] else not any(alone for _, alone in before)

    def _leave(self, me: tuple[object, bool]) -> None:
        self._queue.remove(me)
        self._condition.notify_all()


@dataclass(frozen=True, slots=True)
class CursorFact:
    """An open cursor as SHOW CURSORS tells of it; the last three only of one over a subscription."""

    name: str
    subscription: str | None = None
    state: str | None = None
    idle_ms: int | None = None


class KnownSession(Protocol):
    """A session as others see it."""

    def fact(self) -> SessionFact: ...

    def open_cursors(self) -> list[CursorFact]: ...

    def cancel(self) -> None: ...

    def hang_up(self) -> None: ...


@dataclass(slots=True)
class Database:
    """Everything that statements work on. Built by the engine."""

    config: Config
    clock: Clock
    store: MetadataStore
    runtime: Runtime
    row_ids: RowIds
    bounds: KeyBounds
    pins: Pins
    trash: Trash
    maintenance: Maintenance
    coordinator: Coordinator
    catalog: Catalog
    session_defaults: Mapping[str, str] = field(default_factory=dict)  # of variables, by ALTER SYSTEM
    system: SystemQueries = field(default_factory=SystemQueries)
    sessions: MutableMapping[int, KnownSession] = field(default_factory=weakref.WeakValueDictionary)
    commits: Commits = field(default_factory=Commits)
    plans: PlanCache = field(default_factory=PlanCache)
    points: PointReads = field(init=False)
    jobs: Jobs = field(init=False)
    refreshes: RefreshRunner = field(init=False)
    started_ms: int = field(init=False)
    load: StreamLoad = field(init=False)
    deliveries: Deliveries = field(init=False)
    feeds: Feeds = field(init=False)
    recovering: bool = False
    _gates: dict[RelationId, TableGate] = field(default_factory=dict)
    _pending: tuple[Barrier, Catalog] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self.started_ms = self.clock.now_ms()
        self.points = PointReads(Lookups(self.runtime.reader))
        self.load = StreamLoad(self.clock)
        self.refreshes = RefreshRunner(self._surroundings(), lambda changed: self.maintenance.note(changed))
        self.jobs = Jobs(lambda: self.config.max_concurrent_creating_streaming_jobs, self.refreshes.words)
        self.deliveries = Deliveries(self)
        self.feeds = Feeds(self)
        self._offer_indexes()

    def log_since(self, relation: RelationId) -> Epoch | None:
        """The epoch from which on somebody may still ask for the changes of a relation."""
        wanted = [log_since(self.catalog, relation, self.clock.now_ms()), self.deliveries.log_since(relation)]
        return min((each for each in wanted if each is not None), default=None)

    def delivered(self) -> Future[None]:
        """Done as soon as the tables that sinks fill have all that is committed."""
        return self.commits.until(self.deliveries.settled)

    def _surroundings(self) -> Surroundings:
        return Surroundings(self.runtime, self.store, self.pins, self.trash, self.clock, self.load)

    # --- the catalog at a barrier --------------------------------------------------------------------

    def catalog_at(self, barrier: Barrier) -> Catalog:
        """The catalog as the commands before in the same barrier leave it."""
        if self._pending is not None and self._pending[0] == barrier:
            return self._pending[1]
        return self.catalog

    def change_catalog(self, barrier: Barrier, new: Catalog) -> tuple[Checkpoint, Callable[[], None]]:
        """The piece of the checkpoint that leads to the new catalog, and what makes it current once durable."""
        old = self.catalog_at(barrier)
        new = new.seen_from(old.home)  # whoever changed it
        self._pending = (barrier, new)

        def publish() -> None:
            self.catalog = new
            self._offer_indexes()
            self._tell_names()

        return Checkpoint.between(old, new), publish

    def _tell_names(self) -> None:
        """Lets what runs beside the main graph or grows in it know what its views are called."""
        for each in self.jobs.listed():
            view = self.catalog.by_id.get(ObjectId(each.job.id))
            if view is not None and view.name != each.job.name:
                each.set_name(view.name)
        self.refreshes.set_names({JobId(each.id): each.name for each in self.catalog.objects(*FOLLOWING_KINDS)})

    def _offer_indexes(self) -> None:
        """Lets lookups use the indexes that are complete at the committed epoch."""
        versions = self.runtime.versions
        versions.indexes.set(indexes.readable(self.catalog, versions.committed_epoch))

    # --- jobs ----------------------------------------------------------------------------------------

    def table_job(self, table: CatalogObject) -> TableJob:
        if table.relation is None:
            raise InvariantError(f"{table} has no rows")
        conflict = Conflict(table.properties.get("on_conflict", Conflict.OVERWRITE.value))
        return TableJob(
            JobId(table.id),
            table.name,
            RelationId(table.id),
            table.relation,
            conflict,
            # What nobody set does not hold back a load.
            self.runtime_of(parallelism_of(table)) if PARALLELISM in table.properties else self.runtime,
            self.row_ids,
            self.bounds,
            tuple(table.properties.get("version_columns", ())),
            watermark_of(table),
        )

    def view_plan(
        self,
        statement: CreateFollowing,
        catalog: Catalog,
        search_path: tuple[str, ...],
        timezone: str,
        shapes: Shapes = MappingProxyType({}),
    ) -> Plan:
        """The plan of a view or a sink. Expressions in it never fail: they give NULL where they cannot answer."""
        names = CatalogNames(catalog, search_path, shapes=shapes)
        settings = Settings(timezone=timezone, now_ms=None, strict=False, database=catalog.home)
        bound = bind_query(statement.query.tree, names, settings)
        plan = lower(bound, relation_schemas(catalog, shapes))
        wanted = statement.columns or tuple(column.name for column in bound.columns)
        named = with_names(plan, wanted)
        if not statement.emit_on_window_close:
            return named
        return emit_on_close(named, bounds_in(catalog, lambda view: self._stored_plan(view, catalog)))

    def fragments_of(self, view: CatalogObject, catalog: Catalog) -> tuple[Fragment, ...]:
        """The fragments of a stored view or an index, planned again from its definition."""
        plan = indexes.stored_plan(view, catalog) if view.kind is ObjectKind.INDEX else self._stored_plan(view, catalog)
        internal = iter(catalog.children(view.id))
        missing = RelationId(-1)  # asked for where the plan has more parts than were stored

        def next_internal() -> RelationId:
            child = next(internal, None)
            return RelationId(child.id) if child is not None else missing

        stored = {RelationId(child.id): child.relation for child in catalog.children(view.id)}
        stored[RelationId(view.id)] = view.relation
        existing = {relation: schema for relation, schema in stored.items() if schema is not None}
        fragments = cut(plan, RelationId(view.id), next_internal, existing)
        if any(fragment.schema != stored.get(fragment.relation) for fragment in fragments):
            raise InvariantError(
                f"{view} is planned otherwise than when it was created",
                detail=f"It was stored by plan version {view.properties.get('plan_version')}.",
                hint="Drop the view and create it again, or start the version of Seiche that created it.",
            )
        return fragments

    def _stored_plan(self, view: CatalogObject, catalog: Catalog) -> Plan:
        (parsed,) = parse(view.definition)
        if not isinstance(parsed.statement, CreateMaterializedView | CreateSink):
            raise InvariantError(f"{view} is not defined by a query that it follows")
        search_path = tuple(view.properties.get("search_path", ["public"]))
        timezone = str(view.properties.get(TIMEZONE, "UTC"))
        seen = catalog.seen_from(view.database)
        return self.view_plan(parsed.statement, seen, search_path, timezone, shapes_of(view))

    def view_job(self, view: CatalogObject, catalog: Catalog) -> ViewJob:
        runtime = self.runtime_of(parallelism_of(view))
        return ViewJob(JobId(view.id), view.name, self.fragments_of(view, catalog), runtime)

    def runtime_of(self, parallelism: Parallelism) -> Runtime:
        return replace(self.runtime, tasks=parallelism.tasks(self.runtime.cores))

    def start_backfill(
        self, view: CatalogObject, job: ViewJob, state: BackfillState, stored: Sequence[VnodeProgress] = ()
    ) -> SnapshotBackfill:
        """Goes on with a view's creation from its stored state, as soon as there is a place for it."""
        schedule = schedule_of(view)
        batch = schedule is not None
        finish = self._rest if batch else self._hand_over
        backfill = SnapshotBackfill(job, state, self._surroundings(), finish, stored=stored, catches_up=not batch)
        if schedule is not None:
            self.refreshes.add(job, self._planner(job.id), Known(state.pinned, None, self.clock.now_ms()), schedule)
        parallelism = backfill_parallelism_of(view)
        backfill.set_tasks(parallelism.tasks(self.runtime.cores), parallelism.fixed)
        self.jobs.add(backfill)
        return backfill

    def grows_in_graph(
        self,
        view: CatalogObject,
        job: ViewJob,
        state: ArrangementState,
        since: Epoch,
        stored: Sequence[VnodeProgress] = (),
    ) -> ArrangementBackfill:
        """A view's creation as a job of the main graph. The caller adds it to the graph, and to the list of jobs."""
        growing = ArrangementBackfill(job, state, job.runtime, self.clock, self._take_over, stored=stored, since=since)
        parallelism = backfill_parallelism_of(view)
        growing.set_tasks(parallelism.tasks(self.runtime.cores), parallelism.fixed)
        return growing

    def resume_in_graph(self, state: StoredState) -> None:
        """Goes on with views that grow inside the main graph, before it starts."""
        for view in self.catalog.objects(*FOLLOWING_KINDS):
            progress = state.progress.get(JobId(view.id))
            if view.status is ObjectStatus.CREATING and progress is not None and _grows_in_graph(progress):
                job = self.view_job(view, self.catalog)
                stored = [each for each in state.backfill if each.job == job.id]
                restored = ArrangementState.from_json(progress)
                self.jobs.add(self.grows_in_graph(view, job, restored, state.committed_epoch, stored))

    def resume_left(self, ids: Iterable[ObjectId]) -> None:
        """Goes on with jobs that were stopped for a drop that then failed."""
        left = [each for each in ids if each in self.catalog.by_id]
        self.deliveries.resume(self.catalog.plan_drop(left, cascade=True))
        if left:
            self.resume(self.store.load())

    def resume(self, state: StoredState) -> None:
        """Goes on with everything that runs beside the main graph and does not run yet, from what is stored."""
        for view in self.catalog.objects(*FOLLOWING_KINDS):
            if self.jobs.get(view.id) is not None or JobId(view.id) in self.refreshes:
                continue
            schedule = schedule_of(view)
            if view.status is ObjectStatus.CREATED and schedule is None:
                continue
            progress = state.progress[JobId(view.id)]
            if _grows_in_graph(progress):
                continue
            job = self.view_job(view, self.catalog)
            if view.status is ObjectStatus.CREATING:
                log.info("creation of %s goes on", view.name)
                stored = [each for each in state.backfill if each.job == job.id]
                self.start_backfill(view, job, BackfillState.from_json(progress), stored)
            elif schedule is not None:
                self.refreshes.add(job, self._planner(job.id), Known.from_json(progress), schedule)

    def main_graph(self, catalog: Catalog) -> Graph:
        """The jobs that follow every barrier."""
        jobs: list[Job] = [self.table_job(table) for table in catalog.objects(*FED_KINDS)]
        for view in catalog.objects(*FOLLOWING_KINDS):
            if view.status is ObjectStatus.CREATED and schedule_of(view) is None:
                jobs.append(self.view_job(view, catalog))
        for each in self.jobs.listed():
            if isinstance(each, ArrangementBackfill) and ObjectId(each.id) in catalog.by_id:
                jobs.append(each)
        return Graph(jobs)

    def recover(self) -> Future[Any]:
        """Starts everything again from the last checkpoint, as a start of the engine would."""

        def work(graph: Graph, barrier: Barrier) -> Effect:
            return Effect(self.main_graph(self.catalog_at(barrier)), on_publish=lambda: None)

        self.recovering = True
        try:
            self.jobs.stop(lambda each: not isinstance(each, ArrangementBackfill))
            self.refreshes.reset()
            done = self.coordinator.command(_Working(work))
            self.resume(self.store.load())
        finally:
            self.recovering = False
        self.tell_recovered("RECOVER")
        return done

    def tell_recovered(self, reason: str) -> None:
        """Leaves an event for whoever looks at rw_event_logs and rw_recovery_info later."""
        going_on = [each.job.name for each in self.jobs.listed()]
        epoch = self.runtime.versions.committed_epoch
        info = {"reason": reason, "committed_epoch": epoch, "views_in_creation": going_on}
        self.store.commit(Checkpoint(events=(Event(self.clock.now_ms(), RECOVERED, info),)))

    def _planner(self, job: JobId) -> Callable[[], ViewJob]:
        return lambda: self.view_job(self.catalog.get(job), self.catalog)

    def keep(self, growing: ArrangementBackfill) -> Future[Any]:
        """Makes durable what a view that grows inside the main graph was told, also while everything is paused."""

        def work(graph: Graph, barrier: Barrier) -> Effect:
            if growing.id not in graph or graph.job(growing.id) is not growing:  # it has read all history meanwhile
                return Effect(graph)
            return Effect(graph, Checkpoint(put_progress={growing.id: growing.stored_at(barrier.previous)}))

        return self.coordinator.command(_Working(work))

    def _take_over(self, backfill: ArrangementBackfill) -> Future[Any]:
        """A view that has read all history inside the main graph is a plain job of it from here on."""

        def work(graph: Graph, barrier: Barrier) -> Effect:
            job, part, make_current = self._created(backfill, barrier)
            gone = Checkpoint(put_progress={backfill.id: None}, drop_backfill=frozenset([backfill.id]))
            return Effect(graph.without_job(backfill.id).with_job(job), part.merge(gone), on_publish=make_current)

        return self.coordinator.command(_Working(work))

    def _created(self, backfill: Backfill, barrier: Barrier) -> tuple[ViewJob, Checkpoint, Callable[[], None]]:
        """The view's job from here on, with the name and the tasks that it was given meanwhile, and its new status."""
        catalog = self.catalog_at(barrier)
        view = catalog.get(backfill.job.id)
        job = replace(backfill.job, name=view.name, runtime=self.runtime_of(parallelism_of(view)))
        created = catalog.with_objects(replace(view, status=ObjectStatus.CREATED))
        return job, *self.change_catalog(barrier, created)

    def _hand_over(self, backfill: SnapshotBackfill) -> Future[Any]:
        """A view that has caught up enters the main graph."""

        def publish(barrier: Barrier) -> tuple[ViewJob, Checkpoint, Callable[[], None]]:
            job, part, make_current = self._created(backfill, barrier)

            def published() -> None:
                make_current()
                self.pins.drop([pin_holder(backfill.job.id)])
                self.maintenance.note(backfill.job.outputs)

            return job, part, published

        return self.coordinator.command(HandOver(backfill, self.runtime, publish))

    def _rest(self, backfill: SnapshotBackfill) -> Future[Any]:
        """A view with a schedule is idle from here on. Its pins stay."""
        job, epoch = backfill.job, backfill.state.pinned
        known = Known(epoch, epoch, self.clock.now_ms())
        self.refreshes.snapshot_read(job.id)

        def work(graph: Graph, barrier: Barrier) -> Effect:
            _, part, make_current = self._created(backfill, barrier)
            schedule = schedule_of(self.catalog_at(barrier).get(job.id))
            if schedule is None:
                raise InvariantError(f"view {job.name!r} lost its schedule")

            def published() -> None:
                make_current()
                self.refreshes.snapshot_committed(job.id, known, schedule)
                self.maintenance.note(job.outputs)

            gone = Checkpoint(put_progress={job.id: known.to_json()}, drop_backfill=frozenset([job.id]))
            return Effect(graph, part.merge(gone), None, published)

        return self.coordinator.command(_Working(work))

    # --- the rest ------------------------------------------------------------------------------------

    def gate(self, relation: RelationId) -> TableGate:
        with self._lock:
            return self._gates.setdefault(relation, TableGate())

    def set_paused(self, paused: bool) -> None:
        """Lets nothing move: no statement that writes, no view, no backfill, no refresh. Queries go on."""
        if paused:
            self.coordinator.pause()
        self.jobs.set_paused(paused)
        self.refreshes.set_paused(paused)
        if not paused:
            self.coordinator.resume()
            self.feeds.wake()

    def apply_parameters(self) -> None:
        """Lets the system parameters of the config take effect."""
        config = self.config
        self.coordinator.set_barrier_interval_ms(config.barrier_interval_ms)
        self.coordinator.set_checkpoint_frequency(config.checkpoint_frequency)
        self.runtime.limits.follow(config)
        self.maintenance.policy = maintenance_policy(config)
        self.jobs.limit_changed()
        logging.getLogger("seiche").setLevel(config.log_level.upper())

    def on_epoch(self, report: EpochReport) -> None:
        """Tells housekeeping what changed."""
        for each in self.jobs.listed():
            if isinstance(each, ArrangementBackfill):
                each.epoch_ended(self.coordinator.committed_epoch, failed=report.error is not None)
        if report.jobs:
            self.load.epoch_took(report.total_s)
        if report.error is None:
            self.commits.ring()
            self.refreshes.nudge()
            self.deliveries.nudge()
            self.feeds.nudge()
            changed = [
                RelationId(relation)
                for job in report.jobs
                if job.rows_out
                for relation in (job.job, *(child.id for child in self.catalog.children(job.job)))
            ]
            self.maintenance.note(changed)


@dataclass(frozen=True, slots=True)
class _Working:
    """A command that is a function."""

    work: Callable[[Graph, Barrier], Effect]

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        return self.work(graph, barrier)


def _grows_in_graph(progress: Mapping[str, Any]) -> bool:
    return progress["kind"] in (BackfillKind.ARRANGEMENT.value, BackfillKind.NO_SHUFFLE.value)


def schedule_of(view: CatalogObject) -> Schedule | None:
    """When a materialized view is refreshed; None for one that follows every barrier."""
    return read_schedule(view.properties.get("options", {}))


def relation_schemas(catalog: Catalog, shapes: Shapes = MappingProxyType({})) -> Mapping[RelationId, RelationSchema]:
    items = [seen(item, shapes) for item in catalog.objects()]
    return {RelationId(item.id): item.relation for item in items if item.relation is not None}


def maintenance_policy(config: Config) -> MaintenancePolicy:
    return MaintenancePolicy(
        FoldPolicy(config.fold_ratio, config.fold_min_rows), config.segments_max_per_relation, config.retention_ms
    )
