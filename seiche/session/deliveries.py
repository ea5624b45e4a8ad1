"""Sinks into tables: what changes in a sink's rows is applied to its table.

    epoch e    the sink's rows change with whatever it follows, in the same epoch
    later      the changes (d, e] of the sink's rows are taken to its table: rows that came are inserted, as the table's
               rule for conflicts has it, and rows that left are deleted by their primary key

How far a sink is, d, is durable in the checkpoint that holds what was applied: nothing is applied twice, and nothing is
missed. A sink that has delivered nothing yet takes all its rows at once. One that cannot be delivered is tried again
ever more rarely, and holds up nobody.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import DataFrame

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import INTO, CatalogObject, ObjectKind, ObjectStatus
from seiche.clock import Clock
from seiche.epoch.coordinator import Coordinator
from seiche.errors import InvariantError, SeicheError, SerializationFailure
from seiche.model import OP, ROW_ID, Epoch, JobId, ObjectId, RelationId
from seiche.session.commits import Commits
from seiche.session.fitted import bound_rows, collected, fitted
from seiche.session.handover import Gate, Unwanted, awaited, longer
from seiche.session.sink_options import read_sink_options
from seiche.sql.bind import BoundQuery
from seiche.sql.failures import translate_spark_error
from seiche.storage.retention import Trash
from seiche.stream.runtime import Runtime
from seiche.stream.table import TakeChanges, inserted_schema

log = logging.getLogger(__name__)

INTO_COLUMNS = "into_columns"


class Around(Protocol):
    """What deliveries need of the database."""

    catalog: Catalog
    clock: Clock
    runtime: Runtime
    coordinator: Coordinator
    trash: Trash
    commits: Commits

    def gate(self, relation: RelationId) -> Gate: ...


@dataclass(slots=True)
class _Trouble:
    """A sink that could not be delivered, and when it is tried again."""

    wait_s: float
    until: float


def is_into_table(sink: CatalogObject) -> bool:
    return sink.kind is ObjectKind.SINK and INTO in sink.properties


def bound_sink(sink: CatalogObject, target: CatalogObject, now_ms: int) -> BoundQuery:
    """The query for rows of the table over those of a sink. Raises where they do not fit."""
    assert sink.relation is not None
    names = tuple(sink.properties.get(INTO_COLUMNS, ())) or None
    return bound_rows(sink.relation.visible, names, target, now_ms)


class Deliveries:
    """The sinks of one database that fill tables, on a thread of their own. Safe to use from several threads."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._done: dict[ObjectId, Epoch] = {}  # the sinks' changes up to here are in their tables
        self._held: dict[ObjectId, Epoch] = {}  # changes after this are needed by a delivery that is the sink's first
        self._trouble: dict[ObjectId, _Trouble] = {}
        self._unwanted: set[ObjectId] = set()
        self._busy = threading.Lock()  # while something is delivered
        self._tick = threading.Event()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sinks", daemon=True)

    def start(self, progress: Mapping[JobId, Mapping[str, Any]]) -> None:
        """Goes on from what is stored."""
        for sink in self._sinks():
            known = progress.get(JobId(sink.id))
            if known is not None and known.get("kind") == "delivery":
                self._done[sink.id] = Epoch(known["delivered"])
        self._thread.start()
        self._tick.set()

    def stop(self) -> None:
        self._stopped.set()
        self._tick.set()
        if self._thread.is_alive():
            self._thread.join()

    def nudge(self) -> None:
        """An epoch was committed. Never waits: the coordinator calls it."""
        self._tick.set()

    def remove(self, sink: ObjectId) -> None:
        """The sink is about to be dropped: returns when nothing of it is delivered any more."""
        self._unwanted.add(sink)
        with self._busy:
            self._held.pop(sink, None)
            self._trouble.pop(sink, None)

    def resume(self, sinks: Iterable[ObjectId]) -> None:
        """They were not dropped after all."""
        self._unwanted.difference_update(sinks)
        self._tick.set()

    def settled(self) -> bool:
        """Whether every table has all that its sinks have committed.

        Those in trouble are not waited for, and none is while the database stands still.
        """
        return self._around.coordinator.paused or all(
            sink.id in self._trouble or not self._is_due(sink) for sink in self._sinks()
        )

    def log_since(self, relation: RelationId) -> Epoch | None:
        """The changes of a sink's rows after this epoch are still wanted; None where it is no such sink."""
        sink = ObjectId(relation)
        return self._done.get(sink, self._held.get(sink))

    # ------------------------------------------------------------------------------------------------

    def _sinks(self) -> list[CatalogObject]:
        found = self._around.catalog.objects(ObjectKind.SINK)
        return [each for each in found if is_into_table(each) and each.status is ObjectStatus.CREATED]

    def _is_due(self, sink: CatalogObject) -> bool:
        since = self._done.get(sink.id)
        versions = self._around.runtime.versions
        if since is None or RelationId(sink.id) not in versions:
            return since is None
        return bool(versions.between(RelationId(sink.id), since, versions.committed_epoch))

    def _watch(self) -> None:
        self._around.runtime.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "default")
        while not self._stopped.is_set():
            clock = self._around.clock
            later = [each.until - clock.monotonic() for each in self._trouble.values()]
            self._tick.wait(max(min(later), 0.0) if later else None)
            self._tick.clear()
            for sink in self._sinks():
                trouble = self._trouble.get(sink.id)
                waits = trouble is not None and clock.monotonic() < trouble.until
                if not waits and not self._stopped.is_set() and self._is_due(sink):
                    self._try(sink)

    def _try(self, sink: CatalogObject) -> None:
        with self._busy:
            try:
                until = self._deliver(sink)
            except Unwanted:
                return
            except Exception as error:  # the edge of this thread; Spark's failures arrive as one of many classes
                cause = error if isinstance(error, SeicheError) else translate_spark_error(error)
                before = self._trouble.get(sink.id)
                wait = longer(before.wait_s if before is not None else 0.0)
                self._trouble[sink.id] = _Trouble(wait, self._around.clock.monotonic() + wait)
                log.warning("sink %s is tried again: %s", sink.name, cause.message, exc_info=True)
            else:
                self._done[sink.id] = until
                self._held.pop(sink.id, None)
                self._trouble.pop(sink.id, None)
        self._around.commits.ring()  # whoever waits for it may look again

    def _check(self, sink: CatalogObject) -> None:
        if self._stopped.is_set() or sink.id in self._unwanted:
            raise Unwanted

    def _deliver(self, sink: CatalogObject) -> Epoch:
        """Takes what is committed of a sink to its table; returns the epoch up to which that is."""
        around = self._around
        self._check(sink)
        target = around.catalog.get(sink.properties[INTO])
        until = self._held[sink.id] = around.runtime.versions.committed_epoch
        stored = Checkpoint(put_progress={JobId(sink.id): {"kind": "delivery", "delivered": until}})
        with around.trash.reading():
            taken = self._taken(sink, target, until, stored)
            with around.gate(RelationId(target.id)).alone(lambda: self._check(sink)):
                if around.catalog.by_id.get(target.id) != target:
                    raise SerializationFailure(f"{target} was altered meanwhile")
                given = around.coordinator.submit(JobId(target.id), taken)
                awaited(given, lambda: self._check(sink), around.coordinator.flush)
        return until

    def _taken(self, sink: CatalogObject, target: CatalogObject, until: Epoch, part: Checkpoint) -> TakeChanges:
        """What the table is handed: rows that come, and rows whose keys leave."""
        assert target.relation is not None
        options = read_sink_options(tuple(sink.properties["options"].items()), into_table=True)
        shape = target.relation
        bound, runtime = bound_sink(sink, target, self._around.clock.now_ms()), self._around.runtime
        changes, only_came, count = self._changes(sink, until, snapshot=options.snapshot)
        if changes is None:
            return TakeChanges(inserted_schema(shape).empty_table(), None, part)
        came = fitted(runtime, bound, shape, changes.filter(f"`{OP}` > 0"))
        few = collected(runtime, shape, came)
        if only_came or options.drops_deletes or shape.key == (ROW_ID,):
            return TakeChanges(came if few is None else few, None, part)
        left = fitted(runtime, bound, shape, changes.filter(f"`{OP}` < 0"))
        if few is None:
            return TakeChanges(came, left, part)
        is_large = count - few.num_rows > runtime.limits.inline_rows_max
        few_left = None if is_large else collected(runtime, shape, left)
        if few_left is None and few.num_rows:
            return TakeChanges(came, left, part)
        return TakeChanges(few, left if few_left is None else few_left, part)

    def _changes(self, sink: CatalogObject, until: Epoch, *, snapshot: bool) -> tuple[DataFrame | None, bool, int]:
        """What is to be delivered as signed rows, whether rows only come, and how many there are if they also go."""
        runtime, relation = self._around.runtime, RelationId(sink.id)
        since = self._done.get(sink.id)
        if since is None:
            if not snapshot:
                return None, True, 0
            rows = runtime.reader.exact(runtime.versions.at(relation, until))
            return rows.selectExpr("*", f"cast(1 as tinyint) AS `{OP}`"), True, 0
        changes = runtime.changes_between(relation, since, until)
        if changes is None:
            return None, True, 0
        assert sink.relation is not None
        return runtime.reader.changes(changes), sink.relation.append_only, changes.rows


def upstream_of(catalog: Catalog, ids: Iterable[int]) -> frozenset[ObjectId]:
    """Everything whose changes reach one of these, sinks into tables among the ways."""
    into: dict[ObjectId, list[ObjectId]] = {}
    for sink in catalog.objects(ObjectKind.SINK):
        if is_into_table(sink):
            into.setdefault(ObjectId(sink.properties[INTO]), []).append(sink.id)
    found: set[ObjectId] = set()
    waiting = [ObjectId(each) for each in ids]
    while waiting:
        each = waiting.pop()
        if each in found:
            continue
        found.add(each)
        item = catalog.by_id.get(each)
        if item is None:
            raise InvariantError(f"object {each} is not in the catalog")
        waiting += [*(other for other in item.dependencies if other != item.properties.get(INTO)), *into.get(each, ())]
    return frozenset(found)
