"""The running database that all sessions share: what exists, where rows are, and the coordinator that moves time.

It owns the current catalog. A catalog changes only at a barrier: a command makes the next one, the checkpoint
makes it durable, and then every new statement sees it.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.facts import SessionFact
from seiche.catalog.objects import CatalogObject, ObjectStatus
from seiche.catalog.store import MetadataStore
from seiche.clock import Clock
from seiche.config import Config
from seiche.epoch.barrier import Barrier
from seiche.epoch.coordinator import Coordinator
from seiche.epoch.report import EpochReport
from seiche.errors import InvariantError
from seiche.model import JobId, RelationId, RelationSchema
from seiche.plan.algebra import Plan, with_names
from seiche.plan.fragments import Fragment, cut
from seiche.plan.lower import lower
from seiche.session.names import CatalogNames
from seiche.session.system.evaluate import SystemQueries
from seiche.sql.bind import Settings, bind_query
from seiche.sql.parse import parse
from seiche.sql.statements import CreateMaterializedView
from seiche.storage.bounds import KeyBounds
from seiche.storage.fold import FoldPolicy
from seiche.storage.retention import Pins, Trash
from seiche.stream.backfill.snapshot import BackfillState, HandOver, SnapshotBackfill, pin_holder
from seiche.stream.maintenance import Maintenance, MaintenancePolicy
from seiche.stream.rowids import RowIds
from seiche.stream.runtime import Runtime
from seiche.stream.table import Conflict, TableJob
from seiche.stream.view import ViewJob

# Counts up when a change of planning gives stored views another shape than before.
PLAN_VERSION = 1

GATE_CHECK_SECONDS = 0.2


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


class KnownSession(Protocol):
    """A session as others see it."""

    def fact(self) -> SessionFact: ...


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
    backfills: dict[JobId, SnapshotBackfill] = field(default_factory=dict)
    system: SystemQueries = field(default_factory=SystemQueries)
    sessions: MutableMapping[int, KnownSession] = field(default_factory=weakref.WeakValueDictionary)
    _gates: dict[RelationId, TableGate] = field(default_factory=dict)
    _pending: tuple[Barrier, Catalog] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    # --- the catalog at a barrier --------------------------------------------------------------------

    def catalog_at(self, barrier: Barrier) -> Catalog:
        """The catalog as the commands before in the same barrier leave it."""
        if self._pending is not None and self._pending[0] == barrier:
            return self._pending[1]
        return self.catalog

    def change_catalog(self, barrier: Barrier, new: Catalog) -> tuple[Checkpoint, Callable[[], None]]:
        """The piece of the checkpoint that leads to the new catalog, and what makes it current once durable."""
        old = self.catalog_at(barrier)
        self._pending = (barrier, new)

        def publish() -> None:
            self.catalog = new

        return Checkpoint.between(old, new), publish

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
            self.runtime,
            self.row_ids,
            self.bounds,
        )

    def view_plan(self, statement: CreateMaterializedView, catalog: Catalog, search_path: tuple[str, ...]) -> Plan:
        """The plan of a materialized view. Expressions in it never fail: they give NULL where they cannot answer."""
        names = CatalogNames(catalog, search_path)
        settings = Settings(timezone="UTC", now_ms=None, strict=False)
        bound = bind_query(statement.query.tree, names, settings)
        plan = lower(bound, relation_schemas(catalog))
        wanted = statement.columns or tuple(column.name for column in bound.columns)
        return with_names(plan, wanted)

    def fragments_of(self, view: CatalogObject, catalog: Catalog) -> tuple[Fragment, ...]:
        """The fragments of a stored view, planned again from its definition."""
        (parsed,) = parse(view.definition)
        if not isinstance(parsed.statement, CreateMaterializedView):
            raise InvariantError(f"{view} is not defined by CREATE MATERIALIZED VIEW")
        search_path = tuple(view.properties.get("search_path", ["public"]))
        plan = self.view_plan(parsed.statement, catalog, search_path)
        internal = iter(catalog.children(view.id))
        fragments = cut(plan, RelationId(view.id), lambda: RelationId(next(internal).id))
        stored = {RelationId(child.id): child.relation for child in catalog.children(view.id)}
        stored[RelationId(view.id)] = view.relation
        for fragment in fragments:
            if fragment.schema != stored[fragment.relation]:
                raise InvariantError(
                    f"{view} is planned otherwise than when it was created",
                    detail=f"It was stored by plan version {view.properties.get('plan_version')}.",
                    hint="Drop the view and create it again, or start the version of Seiche that created it.",
                )
        return fragments

    def view_job(self, view: CatalogObject, catalog: Catalog) -> ViewJob:
        return ViewJob(JobId(view.id), view.name, self.fragments_of(view, catalog), self.runtime)

    def start_backfill(self, view: CatalogObject, job: ViewJob, state: BackfillState) -> SnapshotBackfill:
        backfill = SnapshotBackfill(job, state, self.runtime, self.store, self.pins, self.trash, self._hand_over)
        with self._lock:
            self.backfills[job.id] = backfill
        backfill.done.add_done_callback(lambda _: self._backfill_ended(job.id))
        backfill.start()
        return backfill

    def _backfill_ended(self, job: JobId) -> None:
        with self._lock:
            backfill = self.backfills.get(job)
            if backfill is not None and backfill.done.exception() is None:
                del self.backfills[job]

    def forget_backfill(self, job: JobId) -> SnapshotBackfill | None:
        with self._lock:
            return self.backfills.pop(job, None)

    def _hand_over(self, backfill: SnapshotBackfill) -> Future[Any]:
        def publish(barrier: Barrier) -> tuple[Checkpoint, Callable[[], None]]:
            catalog = self.catalog_at(barrier)
            view = catalog.get(backfill.job.id)
            part, make_current = self.change_catalog(
                barrier, catalog.with_objects(replace(view, status=ObjectStatus.CREATED))
            )

            def published() -> None:
                make_current()
                self.pins.drop([pin_holder(backfill.job.id)])
                self.maintenance.note(backfill.job.outputs)

            return part, published

        return self.coordinator.command(HandOver(backfill, self.runtime, publish))

    # --- the rest ------------------------------------------------------------------------------------

    def gate(self, relation: RelationId) -> TableGate:
        with self._lock:
            return self._gates.setdefault(relation, TableGate())

    def apply_parameters(self) -> None:
        """Lets the system parameters of the config take effect."""
        config = self.config
        self.coordinator.set_barrier_interval_ms(config.barrier_interval_ms)
        self.coordinator.set_checkpoint_frequency(config.checkpoint_frequency)
        self.runtime.limits.set(config.inline_rows_max, config.inline_bytes_max)
        self.maintenance.policy = maintenance_policy(config)
        logging.getLogger("seiche").setLevel(config.log_level.upper())

    def on_epoch(self, report: EpochReport) -> None:
        """Tells housekeeping what changed."""
        if report.error is None:
            changed = [
                RelationId(relation)
                for job in report.jobs
                if job.rows_out
                for relation in (job.job, *(child.id for child in self.catalog.children(job.job)))
            ]
            self.maintenance.note(changed)


def relation_schemas(catalog: Catalog) -> Mapping[RelationId, RelationSchema]:
    return {RelationId(item.id): item.relation for item in catalog.objects() if item.relation is not None}


def maintenance_policy(config: Config) -> MaintenancePolicy:
    return MaintenancePolicy(
        FoldPolicy(config.fold_ratio, config.fold_min_rows), config.segments_max_per_relation, config.retention_ms
    )
