"""Arrangement backfill: a view grows inside the main graph, a slice of its inputs' history at every barrier.

    barrier p                                  barrier e
       │ input as of p, up to the position        │ input as of e, up to the next position
       │ ──── its changes up to the position ────▶│
       │ ──── the next rows as of e ─────────────▶│

At each barrier the next rows of the input are read as they are at that epoch, up to the budget. A change of the input
goes on only where its key has been read already: any other will be read later, as it then is. So nothing is pinned, no
log is replayed, and the view stands at the epoch of every other view as soon as the last row is read. The price is
that every barrier waits for its slice; a snapshot backfill leaves the main graph alone.

Positions are kept by vnode, so the number of tasks may change at any time. They are stored by the checkpoint that
stores the rows. What was told by an epoch that failed is forgotten with it.

No-shuffle backfill is this with a view that keeps its input's key: its rows stay in the vnode of the row they came
from, and no step exchanges any.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from seiche.catalog.checkpoint import Checkpoint, VnodeProgress
from seiche.clock import Clock
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Changes as AnyChanges
from seiche.epoch.graph import Outcome, Request
from seiche.errors import InvariantError, QueryCanceled, SeicheError
from seiche.model import VNODE, VNODES, Epoch, RelationId
from seiche.plan.algebra import Scan, Select
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes
from seiche.stream import fragment as fragments
from seiche.stream.backfill.ledger import Ledger, Reached
from seiche.stream.backfill.progress import PAUSED, InputProgress, Phase, Progress, StepSizer
from seiche.stream.backfill.protocol import BackfillKind
from seiche.stream.backfill.rate_limit import RateLimiter
from seiche.stream.backfill.slices import (
    GrowingReads,
    Seen,
    SliceRows,
    as_changes,
    read_next,
    read_until,
    stamped,
)
from seiche.stream.backfill.stages import Method, stages
from seiche.stream.runtime import Failures, Runtime
from seiche.stream.view import ViewJob

ROWS_PER_BARRIER = 10_000
BARRIER_SECONDS = 0.5


def kinds_for(job: ViewJob) -> tuple[BackfillKind, ...]:
    """The kinds that a view allows, best first. One that is evaluated anew has no rows to be read one after another."""
    if job.follows_clock or job.closes:  # what was read and what was not would be filtered at different times
        return (BackfillKind.SNAPSHOT,)
    found = stages(job.fragments, lambda _: 0)
    own = job.outputs
    for stage in found:
        if stage.method is Method.WHOLE and not stage.fragment.inputs <= own:
            return (BackfillKind.SNAPSHOT,)
    both = (BackfillKind.SNAPSHOT, BackfillKind.ARRANGEMENT)
    return (*both, BackfillKind.NO_SHUFFLE) if all(_keeps_vnode(stage.fragment) for stage in found) else both


def choose(job: ViewJob, *, snapshot: bool, arrangement: bool) -> BackfillKind:
    """The kind for a view, as the session's variables allow it; snapshot where nothing else can do it."""
    allowed = kinds_for(job)
    if snapshot:
        return BackfillKind.SNAPSHOT
    wanted = BackfillKind.ARRANGEMENT if arrangement else BackfillKind.NO_SHUFFLE
    return wanted if wanted in allowed else BackfillKind.SNAPSHOT


def _keeps_vnode(fragment: Fragment) -> bool:
    """Whether a row stays in its input's vnode: one input, whose key the view shows under any name, in order."""
    plan = fragment.plan
    source = plan.inputs[0] if isinstance(plan, Select) and len(plan.inputs) == 1 else plan
    if not isinstance(source, Scan) or not source.schema.shares_vnodes_with(fragment.schema):
        return False
    if not isinstance(plan, Select):
        return True
    shown = {item.field.name: item.expr.name for item in plan.items if item.expr.key == "column"}
    return tuple(shown.get(name) for name in plan.key) == source.key


@dataclass(frozen=True, slots=True)
class ArrangementState:
    """What is stored, the progress by vnode aside.

    `estimates` are the rows of the inputs at the beginning, `counts` those of each vnode where they were counted.
    """

    kind: BackfillKind
    begun: bool = False
    estimates: Mapping[RelationId, int] = field(default_factory=dict)
    rate: int | None = None
    order: tuple[tuple[RelationId, RelationId], ...] = ()
    counts: Mapping[RelationId, tuple[int, ...]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": 3,
            "kind": self.kind.value,
            "begun": self.begun,
            "estimates": {str(relation): rows for relation, rows in self.estimates.items()},
            "rate": self.rate,
            "order": [list(pair) for pair in self.order],
            "counts": {str(relation): list(counts) for relation, counts in self.counts.items()},
        }

    @staticmethod
    def from_json(data: Any) -> ArrangementState:
        counted = VNODES if data["version"] == 1 else 1  # it had the rows of one vnode
        return ArrangementState(
            BackfillKind(data["kind"]),
            data["begun"],
            {RelationId(int(relation)): rows * counted for relation, rows in data["estimates"].items()},
            data["rate"],
            tuple((RelationId(before), RelationId(after)) for before, after in data["order"]),
            {RelationId(int(relation)): tuple(counts) for relation, counts in data.get("counts", {}).items()},
        )


class ArrangementBackfill:
    """A view's creation as a job of the main graph.

    Satisfies `seiche.epoch.graph.Job` for the coordinator and `seiche.stream.backfill.protocol.Backfill` for users.
    """

    def __init__(
        self,
        view: ViewJob,
        state: ArrangementState,
        runtime: Runtime,
        clock: Clock,
        finish: Callable[[ArrangementBackfill], Future[Any]],
        *,
        stored: Sequence[VnodeProgress] = (),
        since: Epoch,
    ) -> None:
        self.job = view
        self.id, self.name = view.id, view.name
        self.done: Future[None] = Future()
        self.done.set_running_or_notify_cancel()  # who stops waiting does not stop it: that is what `cancel` does
        self._state = state
        self._runtime = runtime
        self._clock = clock
        self._finish = finish
        self._limiter = RateLimiter(clock, state.rate)
        self._sizer = StepSizer(ROWS_PER_BARRIER, BARRIER_SECONDS)
        self._lock = threading.Lock()
        self._paused = False
        self._started = False
        self._shown: Progress | None = None
        self._finishing = False
        if missing := view.inputs - state.estimates.keys():
            known = {each: runtime.versions.at(each, since).rows_estimate for each in missing}
            self._state = replace(state, estimates={**state.estimates, **known})
        self._driven = _driven(view, self._state)
        inputs = {each: InputProgress.restored(each, self._counts(each), stored) for each in self._driven}
        self._ledger = Ledger(since, Reached(state.begun, inputs))

    # --- for the coordinator -------------------------------------------------------------------------

    @property
    def inputs(self) -> frozenset[RelationId]:
        return self.job.inputs

    @property
    def outputs(self) -> frozenset[RelationId]:
        return self.job.outputs

    def wants(self, barrier: Barrier) -> bool:
        now = self._ledger.newest
        return not now.finished and (not now.begun or self._may_read())

    def run(self, barrier: Barrier, inputs: Mapping[RelationId, AnyChanges], requests: Sequence[Request]) -> Outcome:
        if requests:
            raise InvariantError(f"view {self.name!r} was handed a statement")
        old = self._ledger.at(barrier.previous)
        changes = {relation: each for relation, each in inputs.items() if isinstance(each, Changes)}
        started = self._clock.monotonic()
        new, rows = self._next_rows(old, barrier.epoch)
        failures = Failures()
        mine = self._maintain(old, new, rows, changes, barrier, failures)
        self._ledger.enter(barrier.previous, barrier.epoch, new)
        with self._lock:
            state = replace(self._state, begun=True)
        if rows is not None:
            self._limiter.spend(rows.rows)
            seconds = self._clock.monotonic() - started
            self._sizer.took(rows.rows, seconds)
            self._runtime.metrics.backfill_rows.add(rows.rows, relation=self.name)
            self._runtime.metrics.backfill_step_seconds.observe(seconds, relation=self.name)
        vnodes = tuple(
            row for relation, each in new.inputs.items() for row in each.stored(self.id, since=old.inputs[relation])
        )
        events = self.job.told(failures, barrier.epoch)
        part = Checkpoint(put_progress={self.id: state.to_json()}, put_backfill=vnodes, events=events)
        return Outcome(changes=mine, part=part)

    def epoch_ended(self, committed: Epoch, *, failed: bool) -> None:
        """After every epoch, on the coordinator's thread: a failed one took with it all since the last checkpoint."""
        durable = self._ledger.ended(committed, failed=failed)
        with self._lock:
            ready = durable is not None and durable.finished and not self._finishing
            self._finishing = self._finishing or ready
        if ready:
            self._finish(self).add_done_callback(self._finished)

    # --- for users -----------------------------------------------------------------------------------

    def start(self) -> None:
        """It has a place: from the next barrier on it reads."""
        self._limiter.begin()
        self._started = True

    def set_rate_limit(self, rate: int | None) -> None:
        """Durable with the next barrier at which it runs, or with a checkpoint that has `stored_at`."""
        with self._lock:
            self._state = replace(self._state, rate=rate)
        self._limiter.set(rate)

    def stored_at(self, previous: Epoch) -> dict[str, Any]:
        """What a checkpoint after an epoch stores of it, the progress by vnode aside."""
        begun = self._ledger.at(previous).begun
        with self._lock:
            return replace(self._state, begun=begun).to_json()

    @property
    def kind(self) -> BackfillKind:
        return self._state.kind

    @property
    def rate_limit(self) -> int | None:
        return self._limiter.rate

    def set_tasks(self, tasks: int | None, fixed: int | None) -> None:
        self._runtime = replace(self._runtime, tasks=tasks)
        self._limiter.set_tasks(fixed or 1)

    def set_name(self, name: str) -> None:
        self.job, self.name = replace(self.job, name=name), name

    def set_paused(self, paused: bool) -> None:
        if self._paused and not paused:
            self._limiter.begin()
        self._paused = paused

    @property
    def progress(self) -> Progress:
        now = self._ledger.durable
        waits = PAUSED if self._paused else None
        if waits is None and self._limiter.rate == 0:
            waits = "paused by a backfill_rate_limit of 0"
        read = self.inputs_read.values()
        done, total = sum(each for each, _ in read), sum(each for _, each in read)
        phase = Phase.FINISHING if now.finished else Phase.SNAPSHOT
        self._shown = Progress(phase, done, total, 0, waits).after(self._shown)
        return self._shown

    @property
    def inputs_read(self) -> Mapping[RelationId, tuple[int, int]]:
        return {relation: self._told_of(each) for relation, each in self._ledger.durable.inputs.items()}

    def _told_of(self, read: InputProgress) -> tuple[int, int]:
        """How many of an input's rows were read: as large a share of those it had at first as of its vnodes."""
        rows = self._state.estimates[read.relation]
        return min(read.done * rows // read.total, rows) if read.total else 0, rows

    def cancel(self, timeout: float | None = None) -> None:
        """The drop that follows takes it out of the graph."""
        if not self.done.done():
            self.done.set_exception(QueryCanceled(f'creation of "{self.name}" was cancelled'))

    # ------------------------------------------------------------------------------------------------

    def _next_rows(self, old: Reached, epoch: Epoch) -> tuple[Reached, SliceRows | None]:
        """Reads the next slice at `epoch`, and tells how far that is."""
        relation = next((each for each in self._driven if not old.inputs[each].finished), None)
        if relation is None or not self._may_read():
            return replace(old, begun=True), None
        allowed = self._limiter.available()
        most = min(self._sizer.rows, self._runtime.limits.inline_rows_max or self._sizer.rows)
        budget = most if allowed is None else min(most, allowed)
        found = read_next(self._runtime, old.inputs[relation], epoch, budget)
        if found is None:
            return replace(old, begun=True), None
        return Reached(True, {**old.inputs, relation: found[1]}), found[0]

    def _maintain(
        self,
        old: Reached,
        new: Reached,
        rows: SliceRows | None,
        changes: Mapping[RelationId, Changes],
        barrier: Barrier,
        failures: Failures,
    ) -> dict[RelationId, Changes]:
        """Brings all fragments from one barrier to the next: what was read before changes, and the slice appears."""
        schemas = self._runtime.versions.schema
        seen = Seen(
            {each: read_until(progress, schemas(each)) for each, progress in old.inputs.items()},
            {each: read_until(progress, schemas(each)) for each, progress in new.inputs.items()},
        )
        known = {relation: each for relation, each in changes.items() if relation not in self._driven}
        frames: dict[RelationId, DataFrame] = {}
        for relation in self._driven:
            passed = self._marked(changes[relation], old.inputs[relation]) if relation in changes else None
            if relation in changes:
                self._count_upstream(changes[relation], passed)
            appeared = rows if rows is not None and rows.relation == relation else None
            merged = self._merged(passed, appeared, barrier.epoch)
            if merged is not None:
                known[relation] = merged[0]
                if merged[1] is not None:
                    frames[relation] = merged[1]
        mine: dict[RelationId, Changes] = {}
        for fragment in self.job.fragments:
            relevant = {relation: known[relation] for relation in fragment.inputs if relation in known}
            if old.begun and not relevant:
                continue
            with self._runtime.scope() as scope:
                reads = GrowingReads(
                    self._runtime,
                    scope,
                    None,
                    None,
                    barrier.previous,
                    barrier.epoch,
                    seen,
                    others=relevant,
                    frames=frames,
                )
                if old.begun:
                    result = fragments.step_in(fragment, self._runtime, reads, failures)
                else:
                    small = rows is None or rows.table is not None
                    frame = fragments.build(fragment, reads, failures)
                    result = self._runtime.emit(fragment.relation, fragment.schema, frame, barrier.epoch, small=small)
                    failures.settle()
            if result is not None:
                known[fragment.relation] = mine[fragment.relation] = result
        return mine

    def _marked(self, changes: Changes, progress: InputProgress) -> tuple[Changes, DataFrame | None] | None:
        """The changes whose keys have been read already; the others will be read as they then are."""
        condition = read_until(progress, changes.schema)
        if condition is None:
            return changes, None
        table = changes.table
        if table is not None:
            vnodes = table[VNODE]
            here = pc.any(pc.equal(vnodes, pa.scalar(progress.vnode, pa.int16()))).as_py()
            if progress.position is None or not here:
                kept = table.filter(pc.less(vnodes, pa.scalar(progress.vnode, pa.int16())))
                return (changes.part(kept), None) if kept.num_rows else None
        frame = self._runtime.reader.changes(changes).filter(condition)
        kept = self._runtime.collect(frame) if self._runtime.is_small(changes) else None
        if kept is None:
            return Changes(changes.relation, changes.schema, changes.rows, ()), frame
        return (changes.part(kept), None) if kept.num_rows else None

    def _count_upstream(self, changes: Changes, passed: tuple[Changes, DataFrame | None] | None) -> None:
        """Counts what went on and what did not. Many changes are only marked by the executors, and count as passed."""
        kept = passed[0].rows if passed is not None else 0
        counter = self._runtime.metrics.backfill_upstream_rows
        counter.add(kept, relation=self.name, fate="passed")
        counter.add(changes.rows - kept, relation=self.name, fate="dropped")

    def _merged(
        self, passed: tuple[Changes, DataFrame | None] | None, rows: SliceRows | None, epoch: Epoch
    ) -> tuple[Changes, DataFrame | None] | None:
        """Changes that passed and the rows of a slice as one, in memory if both are."""
        if rows is None or not rows.rows:
            return passed
        appeared = as_changes(rows, epoch)
        if passed is None:
            return appeared, None if rows.frame is None else stamped(rows.frame, epoch)
        changes, total = passed[0], passed[0].rows + appeared.rows
        if changes.table is not None and appeared.table is not None:
            other = changes.table.select(appeared.table.column_names).cast(appeared.table.schema)
            return replace(appeared, rows=total, table=pa.concat_tables([other, appeared.table])), None
        frames = [
            passed[1] if passed[1] is not None else self._runtime.reader.changes(changes),
            stamped(rows.frame, epoch) if rows.frame is not None else self._runtime.reader.changes(appeared),
        ]
        return Changes(changes.relation, changes.schema, total, (), None), frames[0].unionByName(frames[1])

    def _may_read(self) -> bool:
        return self._started and not self._paused and self._limiter.delay() == 0

    def _counts(self, relation: RelationId) -> tuple[int, ...]:
        """Rows by vnode. Where they were not counted, rounded up: a table of few rows may grow before they are read."""
        known = self._state.counts.get(relation)
        return (-(-self._state.estimates[relation] // VNODES),) * VNODES if known is None else known

    def _finished(self, answer: Future[Any]) -> None:
        if self.done.done():
            return
        error = answer.exception()
        if error is None:
            self.done.set_result(None)
        elif isinstance(error, SeicheError) and error.retryable:
            self._finishing = False  # the next epoch that succeeds tries again
        else:
            self.done.set_exception(error)


def _driven(view: ViewJob, state: ArrangementState) -> tuple[RelationId, ...]:
    """All inputs that any fragment is driven by."""
    found = stages(view.fragments, lambda relation: state.estimates.get(relation, 0), state.order)
    return tuple(dict.fromkeys(relation for stage in found for relation in stage.driven))
