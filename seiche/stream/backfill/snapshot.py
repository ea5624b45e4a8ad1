"""Snapshot backfill: a view is built from a pinned epoch beside the stream, then catches up and joins it.

    pinned epoch p                committed epoch c            barrier
        │ build: the view at p         │ hand-over: what is         │
        │ ───────────────────────▶     │ left is replayed, and the  │ from here on a job of the main graph
        │ log: replay (p, c] ... ──────▶ job enters the graph ──────▶

The pin keeps the inputs readable at p and their change log from p on. Every step is committed in a transaction
of its own together with how far it came, so that a kill costs at most the step that ran. The main graph waits
for nothing but the hand-over, which replays the last few changes only.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import Any

from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.store import MetadataStore
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Graph
from seiche.errors import QueryCanceled, SeicheError
from seiche.model import Epoch, JobId, Pin, physical_ms
from seiche.sql.failures import translate_spark_error
from seiche.storage.retention import Pins, Trash
from seiche.stream import fragment as fragments
from seiche.stream.runtime import EpochReads, Failures, Runtime, shape
from seiche.stream.view import ViewJob

log = logging.getLogger(__name__)

RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CATCH_UP_ROUNDS_MAX = 20
CANCEL_AGAIN_SECONDS = 0.2


class Phase(Enum):
    SNAPSHOT = "Snapshot"
    LOG = "LogStore"
    FINISHING = "Finishing"
    DONE = "Done"


@dataclass(frozen=True, slots=True)
class BackfillState:
    """What is stored of a backfill. `as_of` is the epoch that the view's stored rows stand for, once built."""

    pinned: Epoch
    as_of: Epoch | None = None

    def to_json(self) -> dict[str, Any]:
        return {"version": 1, "kind": "snapshot", "pinned": self.pinned, "as_of": self.as_of}

    @staticmethod
    def from_json(data: Any) -> BackfillState:
        return BackfillState(Epoch(data["pinned"]), None if data["as_of"] is None else Epoch(data["as_of"]))


def pin_holder(job: JobId) -> str:
    return f"backfill:{job}"


def pins_at(job: ViewJob, epoch: Epoch) -> tuple[Pin, ...]:
    """The pins that a backfill needs while it stands at `epoch`."""
    return tuple(Pin(pin_holder(job.id), relation, epoch) for relation in sorted(job.inputs))


class SnapshotBackfill:
    """One view's creation, on a thread of its own."""

    def __init__(
        self,
        job: ViewJob,
        state: BackfillState,
        runtime: Runtime,
        store: MetadataStore,
        pins: Pins,
        trash: Trash,
        hand_over: Callable[[SnapshotBackfill], Future[Any]],
    ) -> None:
        self.job = job
        self.state = state
        self.phase = Phase.SNAPSHOT if state.as_of is None else Phase.LOG
        self.done: Future[None] = Future()
        self.done.set_running_or_notify_cancel()  # who stops waiting does not stop it: that is what `cancel` does
        self._runtime = runtime
        self._store = store
        self._pins = pins
        self._trash = trash
        self._hand_over = hand_over
        self._cancelled = threading.Event()
        self._built = 0
        self._thread = threading.Thread(target=self._run, name=f"backfill-{job.name}", daemon=True)
        runtime.versions.set_independent(job.outputs, True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self, timeout: float | None = None) -> None:
        """Asks the backfill to stop, and waits until it no longer touches anything."""
        self._cancelled.set()
        limit = time.monotonic() + timeout if timeout is not None else math.inf
        while True:
            # Again and again, since a job that is only being planned cannot be cancelled yet.
            self._runtime.spark.sparkContext.cancelJobGroup(self._group)
            if self._thread is threading.current_thread() or not self._thread.is_alive() or time.monotonic() > limit:
                return
            self._thread.join(CANCEL_AGAIN_SECONDS)

    @property
    def progress(self) -> str:
        """What a user is told."""
        total = len(self.job.fragments)
        match self.phase:
            case Phase.SNAPSHOT:
                return f"Snapshot [{100 * self._built / total:.2f}% ({self._built}/{total} fragments)]"
            case Phase.LOG:
                lag_ms = physical_ms(self._runtime.versions.committed_epoch) - physical_ms(self._as_of())
                return f"LogStore [epoch lag {max(lag_ms, 0)} ms]"
            case Phase.FINISHING:
                return "Finishing [waiting for a barrier]"
            case Phase.DONE:
                return "Done"

    # ------------------------------------------------------------------------------------------------

    @property
    def _group(self) -> str:
        return f"backfill-{self.job.id}"

    def _run(self) -> None:
        failures = 0
        self._runtime.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "backfill")
        while True:
            try:
                self._runtime.spark.sparkContext.setJobGroup(self._group, f"creating {self.job.name}", True)
                self._advance()
                self.phase = Phase.DONE
                self.done.set_result(None)
                return
            except Exception as error:  # the edge of this thread: whoever waits for the view is told
                self._undo_step()
                cause = error if isinstance(error, SeicheError) else translate_spark_error(error)
                if self._cancelled.is_set():
                    self.done.set_exception(QueryCanceled(f'creation of "{self.job.name}" was cancelled'))
                    return
                if not cause.retryable or failures >= len(RETRY_SECONDS):
                    log.exception("creation of %s failed", self.job.name)
                    self.done.set_exception(cause)
                    return
                log.warning("creation of %s is tried again: %s", self.job.name, cause.message)
                self._cancelled.wait(RETRY_SECONDS[failures])
                failures += 1

    def _advance(self) -> None:
        if self.state.as_of is None:
            self._build()
        self.phase = Phase.LOG
        for _ in range(CATCH_UP_ROUNDS_MAX):
            self._stop_if_cancelled()
            if not self._catch_up():
                break
        self.phase = Phase.FINISHING
        self._stop_if_cancelled()
        self._hand_over(self).result()

    def _build(self) -> None:
        pinned = self.state.pinned
        versions, runtime = self._runtime.versions, self._runtime
        self._built = 0
        with self._trash.reading():
            for each in self.job.fragments:
                self._stop_if_cancelled()
                few = sum(versions.at(relation, pinned).rows_estimate for relation in each.inputs)
                with runtime.scope() as scope:
                    frame = fragments.build(each, EpochReads(runtime, scope, pinned, pinned, {}))
                    table = runtime.collect(frame) if few <= runtime.limits.inline_rows_max else None
                    if table is not None:
                        shaped = shape(table, each.schema)
                        if shaped.num_rows:
                            versions.stage(
                                [runtime.writer.write_table(each.relation, each.schema, shaped, pinned, fresh=True)]
                            )
                    else:
                        written = runtime.writer.write_frame(each.relation, each.schema, frame, pinned, fresh=True)
                        versions.stage(written)
                self._built += 1
        self._commit(pinned)

    def _catch_up(self) -> bool:
        """Replays the log up to the committed epoch; whether there was anything to replay."""
        target = self._runtime.versions.committed_epoch
        with self._trash.reading():
            replayed = self.replay(target)
        if replayed:
            self._commit(target)
        return replayed

    def replay(self, target: Epoch) -> bool:
        """Stages the view's changes from where it stands up to `target`."""
        start = self._as_of()
        found = {
            relation: changes
            for relation in self.job.inputs
            if (changes := self._runtime.changes_between(relation, start, target)) is not None
        }
        if found:
            self.job.advance(start, target, found, Failures())
        return bool(found)

    def _commit(self, epoch: Epoch) -> None:
        """Makes what is staged durable, with the fact that the view stands at `epoch` now."""
        state = BackfillState(self.state.pinned, epoch)
        pins = pins_at(self.job, epoch)
        staged = self._runtime.versions.staged(self.job.outputs)
        self._store.commit(Checkpoint(add_segments=staged, put_progress={self.job.id: state.to_json()}, put_pins=pins))
        self._runtime.versions.publish_relations(self.job.outputs)
        self._pins.put(pins)
        self.state = state

    def _undo_step(self) -> None:
        self._runtime.versions.set_independent(self.job.outputs, True)
        self._runtime.writer.remove(self._runtime.versions.discard(self.job.outputs))

    def _as_of(self) -> Epoch:
        return self.state.as_of if self.state.as_of is not None else self.state.pinned

    def _stop_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise QueryCanceled(f'creation of "{self.job.name}" was cancelled')


@dataclass(frozen=True, slots=True)
class HandOver:
    """The command with which a caught-up view enters the main graph."""

    backfill: SnapshotBackfill
    runtime: Runtime
    publish: Callable[[Barrier], tuple[Checkpoint, Callable[[], None]]]

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        job = self.backfill.job
        try:
            self.backfill.replay(barrier.previous)
            part, on_publish = self.publish(barrier)
        except BaseException:
            self.runtime.writer.remove(self.runtime.versions.discard(job.outputs))
            raise
        # From here on what it staged belongs to the main graph's epoch, and so does undoing it.
        self.runtime.versions.set_independent(job.outputs, False)
        part = part.merge(Checkpoint(drop_pins=frozenset([pin_holder(job.id)]), put_progress={job.id: None}))
        return Effect(graph.with_job(job), part, None, on_publish)
