"""Snapshot backfill: a view is built from a pinned epoch beside the stream, then catches up and joins it.

    pinned epoch p                      committed epoch c            barrier
        │ snapshot: slice by slice, at       │ hand-over: what is         │
        │ epochs of its own 1, 2, 3 … < p    │ left is replayed, and the  │ from here on a job of the main graph
        │ ─────────────────────────────▶     │                            │
        │ log: replay (p, c] ... ────────────▶ job enters the graph ──────▶

The pin keeps the inputs readable at p and their change log from p on. A step reads one slice of one input (`stages`,
`slices`), under the rate limiter, and is committed in a transaction of its own together with how far it came: a kill
costs at most the step that ran. The main graph waits for nothing but the hand-over, which replays the last few changes.

Snapshots that take a few seconds are built in one step unless there is a limit: each step costs as much as a query.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from seiche.catalog.checkpoint import Checkpoint, Event, VnodeProgress
from seiche.epoch.barrier import BarrierKind
from seiche.errors import CommitOutcomeUnknown, QueryCanceled, SeicheError
from seiche.model import Epoch, RelationId, physical_ms
from seiche.plan.algebra import is_empty_over_nothing
from seiche.plan.fragments import Fragment
from seiche.sql.failures import translate_spark_error
from seiche.stream import fragment as fragments
from seiche.stream.backfill.durable import LOOK_AGAIN_SECONDS, commit_step
from seiche.stream.backfill.progress import PAUSED, InputProgress, Phase, Progress, StepSizer, even, next_slice
from seiche.stream.backfill.protocol import BackfillKind
from seiche.stream.backfill.rate_limit import RateLimiter
from seiche.stream.backfill.slices import (
    NOTHING,
    GrowingReads,
    Seen,
    SliceRows,
    WholeReads,
    count_by_vnode,
    read_next,
    read_until,
)
from seiche.stream.backfill.stages import Method, Stage, stages
from seiche.stream.backfill.state import BackfillState, Surroundings, pins_at
from seiche.stream.backfill.under_way import SparkReads, UnderWay
from seiche.stream.batch_refresh.machine import ROWS_PER_CHECKPOINT, LogEpoch, resolve
from seiche.stream.runtime import Doubts, Failures, shape
from seiche.stream.view import ViewJob

log = logging.getLogger(__name__)

RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
CATCH_UP_ROUNDS_MAX = 20
LOG_ROWS_MAX = ROWS_PER_CHECKPOINT  # that are replayed at a time
CANCEL_AGAIN_SECONDS = 0.2
EVERYTHING = 1 << 62  # rows
TURN_SECONDS = 0.2  # between two looks at what a limit permits of a read that is not cut
AHEAD_SECONDS_MAX = 1.0  # that a limited step may take for granted of its own time


class SnapshotBackfill:
    """One view's creation, on a thread of its own. Satisfies `seiche.stream.backfill.protocol.Backfill`."""

    kind = BackfillKind.SNAPSHOT

    def __init__(
        self,
        job: ViewJob,
        state: BackfillState,
        around: Surroundings,
        hand_over: Callable[[SnapshotBackfill], Future[Any]],
        *,
        stored: Sequence[VnodeProgress] = (),
        catches_up: bool = True,
    ) -> None:
        self.job = job
        self.state = state
        self.done: Future[None] = Future()
        self.done.set_running_or_notify_cancel()  # who stops waiting does not stop it: that is what `cancel` does
        self.steps = 0  # of this process
        self._step_seconds = 0.0  # of the last one
        self._around = around
        self._runtime = around.runtime
        self._hand_over = hand_over
        self._catches_up = catches_up
        self._phase = Phase.SNAPSHOT if state.as_of is None else Phase.LOG
        self._limiter = RateLimiter(around.clock, state.rate)
        self._tasks = around.runtime.tasks
        self._sizer = StepSizer(cores=around.runtime.cores)
        self._inputs = {
            relation: InputProgress.restored(relation, counts, stored) for relation, counts in state.counts.items()
        }
        self._cancelled = threading.Event()
        self._paused = False
        self._nudge = threading.Event()
        self._committing = threading.Lock()
        self._telling = threading.Lock()
        self._told: Progress | None = None
        self._under_way = UnderWay(SparkReads(around.runtime.spark, self._group))
        self._building = 0  # the stage of the step under way
        self._trouble: str | None = None  # for which the last step is run again
        self._failures = Failures()  # of what is staged
        self._thread = threading.Thread(target=self._run, name=f"backfill-{job.name}", daemon=True)
        self._estimates: dict[RelationId, int] = {}
        self._stages: tuple[Stage, ...] = ()
        if state.as_of is None:
            self._stages = stages(job.fragments, self._estimate, state.order)
            for relation in {each for stage in self._stages for each in stage.at_once} - state.counts.keys():
                known = even(self._estimate(relation))
                self._inputs[relation] = InputProgress.restored(relation, known, stored)
        self._runtime.versions.set_independent(job.outputs, True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self, timeout: float | None = None) -> None:
        """Asks the backfill to stop, and waits until it no longer touches anything."""
        self._cancelled.set()
        self._nudge.set()
        if self._thread.ident is None:  # it waited for a place
            if not self.done.done():
                self.done.set_exception(QueryCanceled(f'creation of "{self.job.name}" was cancelled'))
            return
        limit = time.monotonic() + timeout if timeout is not None else math.inf
        while True:
            # Again and again, since a job that is only being planned cannot be cancelled yet.
            self._runtime.spark.sparkContext.cancelJobGroup(self._group)
            if self._thread is threading.current_thread() or not self._thread.is_alive() or time.monotonic() > limit:
                return
            self._thread.join(CANCEL_AGAIN_SECONDS)

    def set_rate_limit(self, rate: int | None) -> None:
        """Durable when it returns."""
        with self._committing:
            state = replace(self.state, rate=rate)
            self._around.store.commit(Checkpoint(put_progress={self.job.id: state.to_json()}))
            self.state = state
        self._limiter.set(rate)
        self._nudge.set()

    @property
    def rate_limit(self) -> int | None:
        return self._limiter.rate

    def set_tasks(self, tasks: int | None, fixed: int | None) -> None:
        self._tasks = tasks
        self._limiter.set_tasks(fixed or 1)
        self._nudge.set()

    def set_name(self, name: str) -> None:
        self.job = replace(self.job, name=name)

    def set_paused(self, paused: bool) -> None:
        self._paused = paused
        self._nudge.set()

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def progress(self) -> Progress:
        waits = f"tried again: {self._trouble}" if self._trouble is not None else None
        if self._paused:
            waits = PAUSED
        elif self._limiter.rate == 0:
            waits = "paused by a backfill_rate_limit of 0"
        lag_ms = physical_ms(self._runtime.versions.committed_epoch) - physical_ms(self._as_of())
        with self._telling:
            now = Progress(self._phase, self._done(), self._total(), max(lag_ms, 0), waits)
            self._told = now.after(self._told)
            return self._told

    def _done(self) -> int:
        """The rows that were read: of the steps that are durable, and of the one under way."""
        stage = max(self.state.stage, self._building)
        before = sum(self._stage_rows(index) for index in range(min(stage, len(self._stages))))
        if stage >= len(self._stages):
            return before
        read = sum(self._inputs[each].done for each in self._stages[stage].read if each in self._inputs)
        if stage == self._building:
            read += self._under_way.rows
        return before + min(read, self._stage_rows(stage))

    @property
    def inputs_read(self) -> Mapping[RelationId, tuple[int, int]]:
        return {relation: (each.done, each.total) for relation, each in dict(self._inputs).items()}

    # ------------------------------------------------------------------------------------------------

    @property
    def _group(self) -> str:
        return f"backfill-{self.job.id}"

    def _run(self) -> None:
        failures = 0
        self._limiter.begin()  # until now it waited for a place
        self._runtime.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "backfill")
        while True:
            before = self.state
            try:
                self._runtime.spark.sparkContext.setJobGroup(self._group, f"creating {self.job.name}", True)
                self._advance()
                self._phase = Phase.DONE
                self.done.set_result(None)
                return
            except Exception as error:  # the edge of this thread: whoever waits for the view is told
                self._undo_step(keep_files=isinstance(error, CommitOutcomeUnknown))
                cause = error if isinstance(error, SeicheError) else translate_spark_error(error)
                if self._cancelled.is_set():
                    self.done.set_exception(QueryCanceled(f'creation of "{self.job.name}" was cancelled'))
                    return
                failures = 0 if self.state != before else failures
                if not cause.retryable or failures >= len(RETRY_SECONDS):
                    log.exception("creation of %s failed", self.job.name)
                    self.done.set_exception(cause)
                    return
                log.warning("creation of %s is tried again: %s", self.job.name, cause.message)
                self._trouble = cause.message
                self._cancelled.wait(RETRY_SECONDS[failures])
                failures += 1

    def _advance(self) -> None:
        if self.state.as_of is None:
            self._build()
        if self._catches_up:
            self._phase = Phase.LOG
            rounds = 0
            while rounds < CATCH_UP_ROUNDS_MAX:
                self._wait_while_paused()
                goal = self._runtime.versions.committed_epoch
                if not self._catch_up(goal):
                    break
                rounds += self._as_of() == goal  # more than one piece the main graph is not to wait for
        self._wait_while_paused()
        self._phase = Phase.FINISHING
        self._hand_over(self).result()

    # --- the snapshot --------------------------------------------------------------------------------

    def _build(self) -> None:
        limited = self._limiter.rate is not None
        inputs = {relation for stage in self._stages for relation in stage.read}
        fresh = self.state.step == 0 and not self.state.counts
        if fresh and not limited and sum(map(self._estimate, inputs)) <= self._at_once_max():
            self._wait_while_paused()
            self._make_room()
            self._build_at_once()
            return
        if not self.state.counts:
            # Without a limit to keep, what files tell is near enough, and needs no reading.
            count = self._count if limited else self._count_roughly
            counts = {relation: count(relation) for relation in sorted(inputs)}
            self._inputs |= {relation: InputProgress(relation, each) for relation, each in counts.items()}
            self._commit(replace(self.state, counts=counts))
        while self.state.stage < len(self._stages):
            self._run_stage(self._stages[self.state.stage])
        self._commit(replace(self.state, as_of=self.state.pinned), drop_vnodes=True)

    def _at_once_max(self) -> int:
        """Up to how many rows one step builds the view.

        Beside a busy stream, steps tell progress and cost a kill less. But groups would be merged in each of them,
        by stages that take every core.
        """
        added = all(stage.method is Method.APPEND for stage in self._stages)
        return self._sizer.rows if added and self._around.load.busy else self._sizer.at_once_rows

    def _build_at_once(self) -> None:
        pinned, started, read = self.state.pinned, self._around.clock.monotonic(), 0
        with self._around.trash.reading():
            for index, each in enumerate(self.job.fragments):
                self._stop_if_cancelled()
                inputs = sum(map(self._estimate, each.inputs))
                self._begin(index, self._stage_rows(index), inputs)
                if not inputs and is_empty_over_nothing(each.plan):
                    continue  # as it is for most views right after their tables were created
                self._write_whole(each, pinned, few=inputs <= self._runtime.limits.inline_rows_max)
                read += sum(map(self._estimate, each.inputs & self.job.inputs))
        self._commit(replace(self.state, as_of=pinned, stage=len(self._stages)))
        self._under_way.end()
        self._took(read, self._around.clock.monotonic() - started)

    def _run_stage(self, stage: Stage) -> None:
        if stage.method is Method.WHOLE:
            self._await_turn(stage)
            self._make_room()
            self._run_whole(stage)
            return
        while True:
            self._make_room()
            relation = next((each for each in stage.driven if not self._inputs[each].finished), None)
            if relation is None and self.state.begun:
                break
            # A stage over nothing but empty inputs has one step all the same: count(*) of nothing is a row.
            self._step(stage, relation if relation is not None else stage.driven[0])
        self._end_stage()

    def _begin(self, stage: int, counts: int, expected: int) -> None:
        """A step begins that counts as so many rows when it is durable. Under a limit only these are told."""
        with self._telling:
            self._building = stage
            self._under_way.begin(counts if self._limiter.rate is None else 0, expected)

    def _run_whole(self, stage: Stage) -> None:
        started = self._around.clock.monotonic()
        self._begin(self.state.stage, self._stage_rows(self.state.stage), self._to_read(stage))
        with self._around.trash.reading():
            self._write_whole(stage.fragment, self._next_epoch(), few=False)
        self._stop_if_cancelled()
        self._end_stage()
        self._under_way.end()
        self._took(sum(map(self._estimate, stage.at_once)), self._around.clock.monotonic() - started)

    def _await_turn(self, stage: Stage) -> None:
        """Lets a stage that reads its inputs whole wait until the limit permits all their rows.

        They are permitted vnode by vnode, as if they were read that way, so progress tells how long it will take.
        """
        self._permit()  # it may be paused
        for relation in stage.at_once:
            while self._limiter.rate is not None and not (old := self._inputs[relation]).finished:
                self._cancelled.wait(TURN_SECONDS)
                piece = next_slice(old, self._permit(), cut_vnodes=False)
                if piece is None:
                    break
                new = old.passed(piece, None, piece.rows)
                self._limiter.spend(piece.rows)
                self._commit(replace(self.state, step=self.state.step + 1), vnodes=new.stored(self.job.id, since=old))
                self._inputs[relation] = new

    def _end_stage(self) -> None:
        later = {relation for stage in self._stages[self.state.stage + 1 :] for relation in stage.read}
        following = replace(self.state, stage=self.state.stage + 1, step=self.state.step + 1, begun=False)
        self._commit(following, drop_vnodes=True)
        self._inputs = {each: InputProgress(each, self._inputs[each].counts) for each in later}

    def _step(self, stage: Stage, relation: RelationId) -> None:
        """Reads one slice of an input, works it into the fragment, and commits both."""
        schema = self._runtime.versions.schema(relation)
        old = self._inputs[relation]
        budget = min(self._permit(), self._sizer.budget(old.total - old.done))
        started = self._around.clock.monotonic()
        with self._around.trash.reading():
            found = read_next(self._runtime, old, self.state.pinned, budget)
            if found is None:
                version = self._runtime.versions.at(relation, self.state.pinned)
                nothing = SliceRows(relation, schema, 0, None, self._runtime.reader.exact(version, NOTHING))
                found = nothing, old
            rows, new = found
            read = rows.rows
            self._limiter.spend(read)  # now, so that the time of the work counts for the next step
            self._begin(self.state.stage, read, self._to_read(stage) - self._estimate(relation) + read)
            if read or not self.state.begun:
                self._work_in(stage, rows, new)
        self._stop_if_cancelled()
        self._commit(
            replace(self.state, step=self.state.step + 1, begun=True), vnodes=new.stored(self.job.id, since=old)
        )
        with self._telling:
            self._inputs[relation] = new
            self._under_way.end()
        self._took(read, self._around.clock.monotonic() - started)
        self._sizer.took(read, self._step_seconds, merges=stage.method is Method.MAINTAIN)

    def _took(self, rows: int, seconds: float) -> None:
        self.steps += 1
        self._step_seconds = seconds
        metrics = self._runtime.metrics
        metrics.backfill_rows.add(rows, relation=self.job.name)
        metrics.backfill_step_seconds.observe(seconds, relation=self.job.name)

    def _work_in(self, stage: Stage, rows: SliceRows, new: InputProgress) -> None:
        """Brings the fragment to where the input's slice is part of it."""
        epoch = self._next_epoch()
        fragment, schemas = stage.fragment, self._runtime.versions.schema
        before = {each: read_until(self._inputs[each], schemas(each)) for each in stage.driven}
        after = before | {rows.relation: read_until(new, schemas(rows.relation))}
        add = stage.method is Method.APPEND
        if add:  # the other driven inputs have their own slices
            after = dict.fromkeys(stage.driven, NOTHING)
        with self._runtime.scope() as scope:
            reads = GrowingReads(
                self._runtime,
                scope,
                fragment.relation,
                self.state.pinned,
                Epoch(epoch - 1),
                epoch,
                Seen(before, after),
                rows,
                only_slice=add or not self.state.begun,
            )
            if add or not self.state.begun:
                frame = fragments.build(fragment, reads, self._failures)
                self._write(fragment, frame, epoch, few=rows.table is not None)
            else:
                fragments.step_in(fragment, self._runtime, reads, self._failures)

    def _write_whole(self, fragment: Fragment, epoch: Epoch, *, few: bool) -> None:
        """Writes the fragment's whole value at the pinned epoch: many rows in haste, and again where that was wrong."""
        pinned = self.state.pinned
        with self._runtime.scope() as scope:
            reads = WholeReads(self._runtime, scope, pinned, pinned, {})
            doubts = None if few else Doubts()
            frame = fragments.build(fragment, reads, self._failures, doubts)
            if not self._write(fragment, frame, epoch, few=few, doubts=doubts):
                self._stop_if_cancelled()
                self._write(fragment, fragments.build(fragment, reads, self._failures), epoch, few=few)

    def _write(
        self, fragment: Fragment, frame: DataFrame, epoch: Epoch, *, few: bool, doubts: Doubts | None = None
    ) -> bool:
        """Writes rows whose keys the fragment's relation never had before. Of doubtful ones nothing is left: False."""
        runtime = self._runtime
        table = runtime.collect(frame) if few else None
        if table is None:
            segments = runtime.write_rows(fragment.relation, fragment.schema, frame, epoch)
            if doubts is not None and doubts.settle():
                runtime.writer.remove(segments)
                self._failures.forget()
                return False
            runtime.keep_rows(fragment.relation, fragment.schema, segments, epoch)
        elif (shaped := shape(table, fragment.schema)).num_rows:
            segment = runtime.writer.write_table(fragment.relation, fragment.schema, shaped, epoch, fresh=True)
            runtime.versions.stage([segment])
        self._failures.settle()
        return True

    def _count_roughly(self, relation: RelationId) -> tuple[int, ...]:
        return self._runtime.versions.at(relation, self.state.pinned).rows_by_vnode

    def _count(self, relation: RelationId) -> tuple[int, ...]:
        """The rows of each vnode of the snapshot."""
        self._wait_while_paused()
        version = self._runtime.versions.at(relation, self.state.pinned)
        with self._around.trash.reading():
            return count_by_vnode(self._runtime.reader.exact(version))

    # --- the log -------------------------------------------------------------------------------------

    def _catch_up(self, goal: Epoch) -> bool:
        """Replays the next piece of the log up to a committed epoch; whether there was anything to replay."""
        target = self._piece_of_log(goal)
        with self._around.trash.reading():
            replayed = self.replay(target) or target < goal
        if replayed or self.job.follows_clock:
            self._commit(replace(self.state, as_of=target))
        return replayed

    def _piece_of_log(self, goal: Epoch) -> Epoch:
        """Up to where the log is replayed at a time: a view that was throttled for an hour has a long one."""
        start = self._as_of()
        rows = self._runtime.versions.log_rows(self.job.inputs, start, goal)
        barriers = resolve([LogEpoch(*each) for each in rows.items()], start, goal, LOG_ROWS_MAX)
        return next((each.epoch for each in barriers if each.kind is BarrierKind.CHECKPOINT), goal)

    def replay(self, target: Epoch) -> bool:
        """Stages the view's changes from where it stands up to `target`; whether an input had any."""
        start = self._as_of()
        found = {
            relation: changes
            for relation in self.job.inputs
            if (changes := self._runtime.changes_between(relation, start, target)) is not None
        }
        if found or (self.job.follows_clock and start < target):
            rows = sum(changes.rows for changes in found.values())
            self._runtime.metrics.backfill_upstream_rows.add(rows, relation=self.job.name, fate="passed")
            self.job.advance(start, target, found, self._failures)
        return bool(found)

    def told(self) -> tuple[Event, ...]:
        """The event that rows of what is staged made expressions fail."""
        return self.job.told(self._failures, self.state.pinned)

    # --- durability ----------------------------------------------------------------------------------

    def _commit(
        self, state: BackfillState, *, vnodes: tuple[VnodeProgress, ...] = (), drop_vnodes: bool = False
    ) -> None:
        """Makes what is staged durable, with how far that is."""
        with self._committing:
            state = replace(state, rate=self.state.rate)
            pins = pins_at(self.job, state.as_of if state.as_of is not None else state.pinned)
            checkpoint = Checkpoint(
                add_segments=self._runtime.versions.staged(self.job.outputs),
                put_progress={self.job.id: state.to_json()},
                put_backfill=vnodes,
                drop_backfill=frozenset([self.job.id]) if drop_vnodes else frozenset(),
                put_pins=pins,
                events=self.told(),
            )
            commit_step(self._around.store, checkpoint, self.job.id, state.to_json(), self._cancelled.wait)
            self._runtime.versions.publish_relations(self.job.outputs)
            self._around.pins.put(pins)
            self.state, self._trouble, self._failures = state, None, Failures()

    def _undo_step(self, *, keep_files: bool) -> None:
        """Forgets what is staged. Files that may be registered stay; if they are not, the next start sweeps them."""
        self._failures = Failures()
        self._runtime.versions.set_independent(self.job.outputs, True)
        lost = self._runtime.versions.discard(self.job.outputs)
        if keep_files:
            for segment in lost:
                self._runtime.writer.forget(segment)
        else:
            self._runtime.writer.remove(lost)

    # --- small things --------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Sets how many tasks the next step uses."""
        tasks = self._around.load.tasks(self._runtime.cores, self._tasks)
        self._runtime = replace(self._runtime, tasks=tasks)

    def _next_epoch(self) -> Epoch:
        return Epoch(self.state.step + 1)

    def _stage_rows(self, stage: int) -> int:
        """The rows that a stage reads, estimated where they are not counted."""
        counts = self.state.counts
        return sum(sum(counts[each]) if each in counts else self._estimate(each) for each in self._stages[stage].read)

    def _estimate(self, relation: RelationId) -> int:
        """The rows of a relation at the pinned epoch.

        Those of inputs are remembered: once the pin is gone a fold may take the epoch away, and whoever waits for the
        view may ask all the same how far it is.
        """
        known = self._estimates.get(relation)
        if known is None:
            known = self._runtime.versions.at(relation, self.state.pinned).rows_estimate
            if relation in self.job.inputs:
                self._estimates[relation] = known
        return known

    def _to_read(self, stage: Stage) -> int:
        """The rows that a step reads at most, of the inputs that it sees whole too."""
        return sum(map(self._estimate, stage.fragment.inputs))

    def _total(self) -> int:
        return sum(self._stage_rows(index) for index in range(len(self._stages)))

    def _as_of(self) -> Epoch:
        return self.state.as_of if self.state.as_of is not None else self.state.pinned

    def _permit(self) -> int:
        """Waits until a row may be read; how many may."""
        while True:
            self._nudge.clear()
            self._wait_while_paused()
            delay = self._limiter.delay()
            if delay == 0:
                allowed = self._limiter.available(min(self._step_seconds, AHEAD_SECONDS_MAX))
                return EVERYTHING if allowed is None else allowed
            self._nudge.wait(delay if delay is not None else LOOK_AGAIN_SECONDS)

    def _wait_while_paused(self) -> None:
        self._stop_if_cancelled()
        waited = False
        while self._paused:
            self._nudge.clear()
            self._nudge.wait(LOOK_AGAIN_SECONDS)
            self._stop_if_cancelled()
            waited = True
        if waited:
            self._limiter.begin()

    def _stop_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise QueryCanceled(f'creation of "{self.job.name}" was cancelled')
