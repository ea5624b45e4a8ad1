"""Runs batch refresh jobs: decides when one is due, replays its inputs' log, commits, and lets everything go again.

One thread watches all jobs. A run has a thread of its own and a plan of its own, both gone when it ends; an idle job is
an entry in a table and a pin. The main graph knows nothing of it: a run reads committed epochs only.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

from seiche.catalog.checkpoint import Checkpoint, Event
from seiche.catalog.facts import Refreshed
from seiche.epoch.barrier import BarrierKind
from seiche.errors import CommitOutcomeUnknown, ObjectNotReady, QueryCanceled, SeicheError
from seiche.model import Epoch, JobId, ObjectId, Pin, RelationId, physical_ms
from seiche.sql.failures import translate_spark_error
from seiche.stream.backfill.durable import commit_step
from seiche.stream.backfill.progress import PAUSED
from seiche.stream.backfill.state import Surroundings, pin_holder
from seiche.stream.batch_refresh.machine import BatchRefresh, FinishingSnapshot, Idle, LogEpoch
from seiche.stream.batch_refresh.schedule import Cron, Every, Schedule
from seiche.stream.history import History
from seiche.stream.runtime import Failures
from seiche.stream.view import ViewJob

log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
LOOK_AGAIN_SECONDS = 0.2  # while everything is paused
CANCEL_AGAIN_SECONDS = 0.2
LONGEST_WAIT_SECONDS = 3600.0  # until the jobs are looked at again, however far off the next run is

Asked = tuple[Epoch, Future[Epoch]]  # an epoch that somebody waits for a job to have


@dataclass(frozen=True, slots=True)
class Known:
    """What is durable of a job. Before its snapshot is finished it has committed nothing."""

    snapshot_epoch: Epoch
    committed: Epoch | None
    ran_ms: int

    def to_json(self) -> dict[str, Any]:
        return {
            "version": 1,
            "kind": "batch_refresh",
            "snapshot_epoch": self.snapshot_epoch,
            "committed": self.committed,
            "ran_ms": self.ran_ms,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Known:
        return Known(Epoch(data["snapshot_epoch"]), Epoch(data["committed"]), data["ran_ms"])


@dataclass(slots=True)
class Metrics:
    """Counted since the process started, for rw_catalog. All else is among the engine's metrics."""

    runs: int = 0
    rows: int = 0


@dataclass(slots=True)
class _Entry:
    name: str
    machine: BatchRefresh
    schedule: Schedule
    inputs: frozenset[RelationId]
    outputs: frozenset[RelationId]
    plan: Callable[[], ViewJob]
    ran_ms: int
    not_before: float = 0.0  # after a failure
    run: threading.Thread | None = None
    asked: list[Asked] = field(default_factory=list)
    metrics: Metrics = field(default_factory=Metrics)
    last_error: SeicheError | None = None


class RefreshRunner:
    """All batch refresh jobs, each with the machine that says what it does. Safe to use from several threads.

    A job is added when it is created, or found at a start. While the machine consumes the snapshot, a snapshot backfill
    does the reading and tells when it is done; from then on the runs are done here.
    """

    def __init__(self, around: Surroundings, changed: Callable[[frozenset[RelationId]], None]) -> None:
        self._around = around
        self._runtime = around.runtime
        self._metrics = around.runtime.metrics
        self._changed = changed
        self._lock = threading.RLock()
        self._tick = threading.Event()
        self._entries: dict[JobId, _Entry] = {}
        self._left: dict[JobId, list[Asked]] = {}  # of jobs that will be added again
        self._paused = False
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="batch-refresh", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends runs that are under way; the next start goes on where they were."""
        self._stopped.set()
        self._tick.set()
        if self._thread.is_alive():
            self._thread.join()
        for job in list(self._entries):
            self.remove(job, "everything stops, and goes on where it was")

    def reset(self) -> None:
        """Forgets all jobs, to be added again. What their runs committed stays; who asked for one goes on waiting."""
        for job in list(self._entries):
            self._left[job] = self._forget(job)

    def add(self, job: ViewJob, plan: Callable[[], ViewJob], known: Known, schedule: Schedule) -> None:
        """Takes a job from what is durable of it: still in its snapshot, or idle."""
        machine = BatchRefresh.recovered(job.id, known.snapshot_epoch, known.committed)
        if machine.readable is not None:
            self._runtime.versions.stands_at(job.outputs, machine.readable)
        entry = _Entry(job.name, machine, schedule, job.inputs, job.outputs, plan, known.ran_ms)
        with self._lock:
            entry.asked = self._left.pop(job.id, [])
            self._entries[job.id] = entry
        self._tick.set()

    def snapshot_read(self, job: JobId) -> None:
        """All rows of a job's snapshot are durable; the checkpoint that says so comes next, perhaps again."""
        with self._lock:
            entry = self._entries.get(job)
            if entry is not None and not isinstance(entry.machine.state, FinishingSnapshot):
                entry.machine = entry.machine.snapshot_read()

    def snapshot_committed(self, job: JobId, known: Known, schedule: Schedule) -> None:
        """The checkpoint that finishes a job's snapshot is durable: it is idle, and can be read."""
        with self._lock:
            entry = self._entries.get(job)
            if entry is None:  # dropped meanwhile
                return
            entry.machine = entry.machine.committed(known.snapshot_epoch)
            entry.schedule, entry.ran_ms = schedule, known.ran_ms
            if entry.machine.readable is not None:
                self._runtime.versions.stands_at(entry.outputs, entry.machine.readable)
        self._tick.set()

    def words(self, job: JobId, snapshot: str) -> str:
        """What users are told of a job in creation; `snapshot` is how far its backfill is."""
        with self._lock:
            entry = self._entries.get(job)
            return snapshot if entry is None else entry.machine.progress(snapshot)

    def remove(self, job: JobId, reason: str = "the view is dropped") -> None:
        """Forgets a job: returns when its run, if there is one, no longer touches anything."""
        with self._lock:
            name = self._entries[job].name if job in self._entries else ""
        for _, future in self._forget(job):
            _fail(future, QueryCanceled(f'refresh of "{name}" was cancelled: {reason}'))

    def _forget(self, job: JobId) -> list[Asked]:
        """Takes a job off the list and stops its run; those who asked for one, who have no answer yet."""
        with self._lock:
            entry = self._entries.pop(job, None)
            if entry is None:
                return []
            entry.machine = entry.machine.dropped()
            asked, entry.asked = entry.asked, []
            run = entry.run
        while run is not None and run.is_alive():
            # Again and again, since a job that is only being planned cannot be cancelled yet.
            self._runtime.spark.sparkContext.cancelJobGroup(_group(job))
            run.join(CANCEL_AGAIN_SECONDS)
        return asked

    def set_schedule(self, job: JobId, schedule: Schedule) -> None:
        with self._lock:
            if job in self._entries:  # else it is added again with the schedule that the catalog has
                self._entries[job].schedule = schedule
        self._tick.set()

    def set_names(self, names: Mapping[JobId, str]) -> None:
        """What the views are called from now on."""
        with self._lock:
            for job, entry in self._entries.items():
                entry.name = names.get(job, entry.name)

    def set_paused(self, paused: bool) -> None:
        with self._lock:
            self._paused = paused
        self._tick.set()

    def nudge(self) -> None:
        """An epoch was committed. Never waits: the coordinator calls it."""
        self._tick.set()

    def refresh(self, job: JobId) -> Future[Epoch]:
        """Runs it now. Resolved with its epoch once it has everything that is committed now."""
        future: Future[Epoch] = Future()
        with self._lock:
            entry = self._entries.get(job)
            if entry is None:
                raise ObjectNotReady(
                    f"job {job} cannot be refreshed now",
                    detail="It is being recovered, or dropped.",
                    hint="Run the statement again.",
                )
            entry.asked.append((self._runtime.versions.committed_epoch, future))
            entry.not_before = 0.0
        self._tick.set()
        return future

    def __contains__(self, job: JobId) -> bool:
        """Whether it is a job whose snapshot is finished."""
        with self._lock:
            return job in self._entries and self._entries[job].machine.readable is not None

    def facts(self) -> tuple[Refreshed, ...]:
        """What rw_catalog shows."""
        committed = self._runtime.versions.committed_epoch
        with self._lock:
            return tuple(
                Refreshed(
                    ObjectId(job),
                    entry.machine.progress() + (f", {PAUSED}" if self._paused else ""),
                    at,
                    max(physical_ms(committed) - physical_ms(at), 0),
                    entry.metrics.runs,
                    entry.metrics.rows,
                    entry.last_error.message if entry.last_error is not None else None,
                )
                for job, entry in sorted(self._entries.items())
                if (at := entry.machine.readable) is not None
            )

    # --- deciding ------------------------------------------------------------------------------------

    def _watch(self) -> None:
        while True:
            self._tick.clear()
            with self._lock:
                if self._stopped.is_set():
                    return
                wait = self._start_due()
            self._tick.wait(wait)

    def _start_due(self) -> float | None:
        """Starts every run that is due; seconds until another one will be, None when only an epoch can tell."""
        if self._paused:
            return None
        waits = []
        for job, entry in self._entries.items():
            try:
                wait = self._start_if_due(job, entry)
            except Exception as cause:  # one job's trouble must not stop the others: it is told, and tried again
                log.exception("whether %s is to be refreshed could not be told", entry.name)
                entry.last_error = cause if isinstance(cause, SeicheError) else translate_spark_error(cause)
                self._fail_asked(entry, entry.last_error)
                wait = RETRY_SECONDS
            if wait is not None:
                waits.append(min(wait, LONGEST_WAIT_SECONDS))
        return min(waits, default=None)

    def _start_if_due(self, job: JobId, entry: _Entry) -> float | None:
        """As `_start_due`, for one job."""
        if entry.run is not None or not isinstance(entry.machine.state, Idle):
            return None
        entry.asked = [each for each in entry.asked if not each[1].cancelled()]
        clock, target = self._around.clock, self._runtime.versions.committed_epoch
        found = self._log(entry, target)
        if not found:
            self._move_on(job, entry, target)
            self._answer(entry, target)
            entry.last_error = None
            return None
        wait = max(self._wait_ms(entry) / 1000, entry.not_before - clock.monotonic())
        if entry.asked and entry.not_before <= clock.monotonic():
            wait = 0
        if wait > 0:
            return wait
        following = entry.machine.started(found, target)
        if following is not None:
            entry.machine = following
            entry.run = threading.Thread(target=self._run, args=(job, entry), name=f"refresh-{entry.name}", daemon=True)
            entry.run.start()
        return None

    def _wait_ms(self, entry: _Entry) -> int:
        """How long until the job is due. An idle database has no epochs: its inputs are as of now."""
        now_ms = self._around.clock.now_ms()
        match entry.schedule:
            case Every(ms):
                if entry.machine.due(now_ms, ms):
                    return 0
                return physical_ms(entry.machine.pinned or Epoch(0)) + ms - now_ms
            case Cron() as cron:
                return max(cron.next_after(entry.ran_ms) - now_ms, 0)

    def _log(self, entry: _Entry, target: Epoch) -> list[LogEpoch]:
        """The epochs in which an input changed since the job's committed one."""
        start = entry.machine.pinned
        if start is None:
            return []
        versions = self._runtime.versions
        there = [relation for relation in entry.inputs if relation in versions]
        return [LogEpoch(*each) for each in versions.log_rows(there, start, target).items()]

    def _move_on(self, job: JobId, entry: _Entry, target: Epoch) -> None:
        """No input changed: once it is due the job stands for the newer epoch without a run, and its pin lets go."""
        start = entry.machine.pinned
        if start is None or target <= start or self._wait_ms(entry) > 0:
            return
        try:
            self._commit(job, entry, entry.inputs, entry.outputs, target)
        except SeicheError as error:  # nothing is lost: the pin stays where it is, and this is tried again
            log.warning("the pin of %s could not be moved: %s", entry.name, error.message)
            return
        entry.machine = entry.machine.caught_up(target)

    def _answer(self, entry: _Entry, epoch: Epoch) -> None:
        """Those who asked are told, as far as the job has what they asked for."""
        left = []
        for wanted, future in entry.asked:
            if wanted > epoch:
                left.append((wanted, future))
            elif future.set_running_or_notify_cancel():
                future.set_result(epoch)
        entry.asked = left

    def _fail_asked(self, entry: _Entry, error: Exception) -> None:
        for _, future in entry.asked:
            _fail(future, error)
        entry.asked = []

    # --- running -------------------------------------------------------------------------------------

    def _run(self, job: JobId, entry: _Entry) -> None:
        context = self._runtime.spark.sparkContext
        context.setLocalProperty("spark.scheduler.pool", "backfill")
        context.setJobGroup(_group(job), f"refreshing {entry.name}", True)
        error: SeicheError | None = None
        try:
            self._replay(job, entry)
        except Exception as cause:  # noqa: BLE001  the edge of this thread: the job is idle again and will be tried again
            error = cause if isinstance(cause, SeicheError) else translate_spark_error(cause)
            self._undo(entry, keep_files=isinstance(cause, CommitOutcomeUnknown))
        self._metrics.refresh_inflight.set(0, relation=entry.name)
        with self._lock:
            entry.run = None
            entry.last_error = error
            if error is None:
                entry.metrics.runs += 1
                self._metrics.refresh_runs.add(relation=entry.name, outcome="finished")
                self._answer(entry, entry.machine.pinned or Epoch(0))
            else:
                entry.machine = entry.machine.failed()
                self._metrics.refresh_runs.add(relation=entry.name, outcome="failed")
                entry.not_before = self._around.clock.monotonic() + RETRY_SECONDS
                if not self._stopped.is_set():
                    log.warning("refresh of %s failed and is tried again: %s", entry.name, error.message)
                self._fail_asked(entry, error)
        self._tick.set()

    def _replay(self, job: JobId, entry: _Entry) -> None:
        plan = entry.plan()
        with self._lock:
            entry.machine = entry.machine.initialized()
        start = entry.machine.pinned
        if start is None:
            return
        barriers = getattr(entry.machine.state, "barriers", ())
        self._metrics.refresh_inflight.set(len(barriers), relation=entry.name)
        began = self._around.clock.monotonic()
        for barrier in barriers:
            self._wait_while_paused(entry)
            if barrier.kind is not BarrierKind.CHECKPOINT:
                continue  # its changes are part of the next checkpoint's: one replay for both
            history = History(job, entry.name, barrier.epoch, "batch refresh")
            failures = Failures()
            changed = self._step(plan, start, barrier.epoch, history, failures)
            self._stop_if_told(entry)
            events = plan.told(failures, barrier.epoch)
            self._commit(job, entry, plan.inputs, plan.outputs, barrier.epoch, history, events)
            start = barrier.epoch
            with self._lock:
                entry.machine = entry.machine.committed(barrier.epoch)
            now = self._around.clock.monotonic()
            entry.metrics.rows += changed
            self._metrics.refresh_rows.add(changed, relation=entry.name)
            self._metrics.refresh_barrier_seconds.observe(now - began, relation=entry.name)
            left = sum(each.epoch > barrier.epoch for each in barriers)
            self._metrics.refresh_inflight.set(left, relation=entry.name)
            began = now

    def _step(self, plan: ViewJob, start: Epoch, target: Epoch, history: History, failures: Failures) -> int:
        with self._around.trash.reading():
            found = {
                relation: changes
                for relation in plan.inputs
                if (changes := self._runtime.changes_between(relation, start, target)) is not None
            }
            tasks = self._around.load.tasks(self._runtime.cores, plan.runtime.tasks)
            roomy = replace(plan, runtime=replace(plan.runtime, tasks=tasks))
            changed = roomy.advance(start, target, found, failures, history) if found else {}
        return sum(changes.rows for changes in changed.values())

    def _commit(
        self,
        job: JobId,
        entry: _Entry,
        inputs: frozenset[RelationId],
        outputs: frozenset[RelationId],
        epoch: Epoch,
        history: History | None = None,
        events: tuple[Event, ...] = (),
    ) -> None:
        """Makes a part of a run durable: rows, the committed epoch, the pin that moves with it, and what was chosen."""
        ran_ms = self._around.clock.now_ms()
        state = Known(entry.machine.snapshot_epoch, epoch, ran_ms).to_json()
        pins = pins_of(job, inputs, epoch)
        staged = self._runtime.versions.staged(outputs)
        told = history.entries if history is not None else ()
        checkpoint = Checkpoint(
            add_segments=staged, put_progress={job: state}, put_pins=pins, refresh_history=told, events=events
        )
        commit_step(self._around.store, checkpoint, job, state, self._gives_up)
        self._runtime.versions.publish_relations(outputs)
        self._runtime.versions.stands_at(outputs, epoch)
        self._around.pins.put(pins)
        entry.ran_ms = ran_ms
        self._changed(outputs)

    def _gives_up(self, seconds: float) -> bool:
        """Passes some time while the metadata database does not answer; whether the engine is closing meanwhile."""
        return self._stopped.wait(seconds)

    def _undo(self, entry: _Entry, *, keep_files: bool) -> None:
        """Forgets what is staged. Files that may be registered stay; if they are not, the next start sweeps them."""
        lost = self._runtime.versions.discard(entry.outputs)
        if keep_files:
            for segment in lost:
                self._runtime.writer.forget(segment)
        else:
            self._runtime.writer.remove(lost)

    def _wait_while_paused(self, entry: _Entry) -> None:
        self._stop_if_told(entry)
        while self._paused:
            self._stopped.wait(LOOK_AGAIN_SECONDS)
            self._stop_if_told(entry)

    def _stop_if_told(self, entry: _Entry) -> None:
        if self._stopped.is_set() or entry.machine.pinned is None:
            raise QueryCanceled(f'refresh of "{entry.name}" was cancelled')


def pins_of(job: JobId, inputs: frozenset[RelationId], epoch: Epoch) -> tuple[Pin, ...]:
    return tuple(Pin(pin_holder(job), relation, epoch) for relation in sorted(inputs))


def _group(job: JobId) -> str:
    return f"refresh-{job}"


def _fail(future: Future[Epoch], error: Exception) -> None:
    """Tells somebody who asked, unless they have stopped waiting."""
    if future.set_running_or_notify_cancel():
        future.set_exception(error)
