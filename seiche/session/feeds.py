"""Connectors at work: tables and sources that fill themselves.

Each has a thread that hands over rows as they become due, for the table's job to take at the next barrier. How far the
connector was read is durable in the checkpoint that holds the rows: nothing is lost and nothing comes twice, whenever
the process is killed. Time in which the database stands still is not made up for.

A table fills itself from its creation on. A source does while something follows it, and keeps what came: a view that is
created later reads it from the start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import CONNECTOR, FOLLOWING_KINDS, CatalogObject, ObjectKind
from seiche.catalog.store import MetadataStore
from seiche.clock import Clock
from seiche.config import Config
from seiche.connectors.generators import generator_of
from seiche.connectors.splits import rows_before
from seiche.epoch.coordinator import Coordinator
from seiche.errors import InvalidDefinition, SeicheError
from seiche.model import ROW_ID, Column, JobId, ObjectId, RelationId
from seiche.session.fitted import bound_rows, collected, fitted
from seiche.session.handover import Gate, Unwanted, awaited, longer
from seiche.sql import statements as ast
from seiche.sql.failures import translate_spark_error
from seiche.storage.changes import local_frame
from seiche.stream.runtime import Runtime
from seiche.stream.table import TakeChanges, inserted_schema

log = logging.getLogger(__name__)

FED_KINDS = (ObjectKind.TABLE, ObjectKind.SOURCE)
_ENCODINGS = (("PLAIN", "JSON"), ("NATIVE", "NATIVE"), ("NONE", "NONE"))  # none of which makes a difference
_TURN_S = 0.5  # between two looks at what is due, or a barrier's time where that is less
_HEAD_START_S = 1.0  # what is due at once
_FIRST_ROWS = 5_000  # that are handed over at most before it is known how long rows take
_BRISK_S, _SLOW_S = 2.0, 4.0  # for what is handed over at once: below the one it grows, above the other it shrinks


class Around(Protocol):
    """What feeds need of the database."""

    config: Config
    catalog: Catalog
    clock: Clock
    runtime: Runtime
    coordinator: Coordinator
    store: MetadataStore

    def gate(self, relation: RelationId) -> Gate: ...


def is_fed(item: CatalogObject) -> bool:
    return item.kind in FED_KINDS and CONNECTOR in item.properties.get("options", {})


def plain_columns(item: CatalogObject) -> tuple[Column, ...]:
    """The columns that a connector gives values to: all that are not computed from others."""
    return tuple(column for column in item.columns if column.generated is None)


def check_connector(statement: ast.CreateTable, columns: Sequence[Column]) -> None:
    """Raises what is wrong with the connector of a table or a source. A table need not have one."""
    options, written = dict(statement.options), statement.encoding
    if CONNECTOR not in options:
        if written is not None:
            raise InvalidDefinition(f'relation "{statement.name}" has a format but no connector')
        return
    generator_of([column for column in columns if column.generated is None], options)
    if written is not None and (written.format, written.encode) not in _ENCODINGS:
        raise InvalidDefinition(
            f"the connector {options[CONNECTOR].lower()} has no FORMAT {written.format} ENCODE {written.encode}",
            hint="Write FORMAT PLAIN ENCODE JSON, or leave it out.",
        )


def is_wanted(item: CatalogObject, catalog: Catalog) -> bool:
    """Whether rows are to come: always to a table, to a source while something follows it."""
    if item.kind is ObjectKind.TABLE:
        return True
    return any(each.kind in FOLLOWING_KINDS for each in catalog.dependants(item.id))


@dataclass(slots=True)
class Pace:
    """How many rows are due. What could not be made in time is not made up for beyond `most` rows."""

    rows_per_second: int
    since: float  # rows were asked for up to this moment

    def due(self, now: float, most: int) -> int:
        count = int((now - self.since) * self.rows_per_second)
        self.since = now if count > most else self.since + count / self.rows_per_second
        return min(count, most)


def most_after(most: int, count: int, seconds: float, limit: int) -> int:
    """How many rows to hand over at once after `count` of at most `most` took so long.

    A connector may be faster than the views behind it: what is fresh in them then hangs on how much they get at once.
    """
    if seconds > _SLOW_S:
        return max(count // 2, 1)
    return min(most * 2, limit) if seconds < _BRISK_S and count == most else most


class Feeds:
    """The tables and sources of one database that have connectors. Safe to use from several threads."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._lock = threading.Lock()
        self._feeds: dict[ObjectId, _Feed] = {}
        self._seen: Catalog | None = None
        self._stopped = True

    def start(self, offsets: Mapping[ObjectId, Mapping[str, str]]) -> None:
        """Goes on from what is stored."""
        self._stopped = False
        self._look(offsets)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            feeds = list(self._feeds.values())
            self._feeds.clear()
        for feed in feeds:
            feed.stop()

    def nudge(self) -> None:
        """The catalog may be another one. Never waits: the coordinator calls it."""
        self._look({})

    def wake(self) -> None:
        """The database moves again after it stood still."""
        with self._lock:
            for feed in self._feeds.values():
                feed.tick.set()

    def _look(self, offsets: Mapping[ObjectId, Mapping[str, str]]) -> None:
        with self._lock:
            catalog = self._around.catalog
            if self._stopped or catalog is self._seen:
                return
            self._seen = catalog
            fed = {item.id for item in catalog.objects(*FED_KINDS) if is_fed(item)}
            for gone in self._feeds.keys() - fed:
                self._feeds.pop(gone).end()
            for new in fed - self._feeds.keys():
                self._feeds[new] = _Feed(self._around, new, rows_before(offsets.get(new, {})))
            for feed in self._feeds.values():
                feed.tick.set()


class _Feed:
    """One table or source, on a thread of its own."""

    def __init__(self, around: Around, number: ObjectId, made: int) -> None:
        self.tick = threading.Event()
        self._around = around
        self._id = number
        self._made = made  # so many rows are durable
        self._pace: Pace | None = None  # None while nothing is to come
        self._most = _FIRST_ROWS
        self._retry_s = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"feed-{number}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._stopped.set()
        self.tick.set()

    def stop(self) -> None:
        self.end()
        self._thread.join()

    def _run(self) -> None:
        self._around.runtime.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "default")
        while not self._stopped.is_set():
            self.tick.clear()
            try:
                wait = self._turn()
                self._retry_s = 0.0
            except Unwanted:
                return
            except Exception as error:  # noqa: BLE001 - the edge of this thread, which goes on
                if self._stopped.is_set() or self._id not in self._around.catalog.by_id:
                    return
                wait = self._failed(error)
            self.tick.wait(wait)

    def _failed(self, error: Exception) -> float:
        """Tells of it; the seconds until the next attempt."""
        cause = error if isinstance(error, SeicheError) else translate_spark_error(error)
        self._retry_s = longer(self._retry_s)
        log.warning("rows for %s are made again: %s", self._around.catalog.get(self._id), cause.message, exc_info=True)
        # The commit may have been durable after all.
        self._made = rows_before(self._around.store.load().offsets.get(self._id, {}))
        return self._retry_s

    def _turn(self) -> float | None:
        """Hands over what is due; the seconds until more is, None for until something changes."""
        around = self._around
        item = around.catalog.by_id.get(self._id)
        if item is None:
            raise Unwanted
        of = generator_of(plain_columns(item), item.properties["options"])
        if around.coordinator.paused or not is_wanted(item, around.catalog) or self._made == of.rows:
            self._pace = None
            return None
        now = around.clock.monotonic()
        if self._pace is None:
            self._pace = Pace(of.rows_per_second, now - _HEAD_START_S)
        limit = around.runtime.limits.inline_rows_max
        due = self._pace.due(now, min(self._most, limit))
        if due:
            with around.gate(RelationId(self._id)).alone(self._check):
                self._hand_over(due)
            self._most = most_after(self._most, due, around.clock.monotonic() - now, limit)
        later = min(around.config.barrier_interval_ms / 1000, _TURN_S)
        return max(now + max(later, 1 / of.rows_per_second) - around.clock.monotonic(), 0.0)

    def _hand_over(self, count: int) -> None:
        """The caller has the table for itself, so that it keeps its shape meanwhile."""
        around = self._around
        item = around.catalog.by_id.get(self._id)
        if item is None:
            raise Unwanted
        of = generator_of(plain_columns(item), item.properties["options"])
        rows = of.table(self._made, count, created_ms=item.created_ms, now_ms=around.clock.now_ms())
        made = self._made + rows.num_rows
        part = Checkpoint(source_offsets={self._id: of.offsets(made)})
        taken = around.coordinator.submit(JobId(self._id), self._taken(item, rows, part))
        awaited(taken, self._check, around.coordinator.flush)
        self._made = made

    def _taken(self, item: CatalogObject, rows: pa.Table, part: Checkpoint) -> TakeChanges:
        shape = item.relation
        assert shape is not None
        columns = plain_columns(item)
        if shape.key == (ROW_ID,) and columns == shape.visible:
            return TakeChanges(rows.cast(inserted_schema(shape)), None, part)
        runtime = self._around.runtime
        bound = bound_rows(columns, tuple(each.name for each in columns), item, self._around.clock.now_ms())
        frame = fitted(runtime, bound, shape, local_frame(runtime.spark, rows))
        few = collected(runtime, shape, frame)
        return TakeChanges(frame if few is None else few, None, part)

    def _check(self) -> None:
        if self._stopped.is_set():
            raise Unwanted


__all__ = ["FED_KINDS", "Feeds", "Pace", "check_connector", "is_fed", "is_wanted", "most_after", "plain_columns"]
