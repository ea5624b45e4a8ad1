"""One fragment, one step: by the technique that was chosen, or else the one that its plan asks for."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from seiche.model import VNODE, Epoch, RelationId, RelationSchema
from seiche.plan.algebra import Aggregate, ChangeLog, Keyed, Plan, Recompute, Recursion, Select, TopN
from seiche.plan.choice import Technique, techniques
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes
from seiche.storage.vnodes import vnodes_of
from seiche.stream import aggregate, changelog, keyed, near, near_join, recompute, recursion, temporal_join, topn, whole
from seiche.stream.linear import can_fail, changes_sql, exact_sql, joined_sql, with_vnode
from seiche.stream.runtime import Doubts, EpochReads, Failures, Runtime


def step(
    fragment: Fragment,
    runtime: Runtime,
    before: Epoch,
    after: Epoch,
    changes: Mapping[RelationId, Changes],
    failures: Failures,
    technique: Technique | None = None,
) -> Changes | None:
    """Brings the fragment's relation from one epoch to the next; None when it stays as it is.

    The inputs can be read at both epochs; `changes` holds those that differ. What is returned is staged. Rows on
    which an expression failed are added to `failures`.
    """
    if technique is techniques(fragment.plan)[0]:
        technique = None
    if technique is None and runtime.is_small(*changes.values()):
        rows = near.mapped(fragment.plan, fragment.schema, changes)
        if rows is not None:
            return runtime.emit_table(fragment.relation, fragment.schema, rows, after)
    with runtime.scope() as scope:
        reads = EpochReads(runtime, scope, before, after, dict(changes))
        if technique is None:
            return step_in(fragment, runtime, reads, failures)
        return _step_anew(fragment, runtime, reads, failures, technique)


def counts_failures(plan: Plan) -> bool:
    """Whether rows on which an expression fails are to be counted among the changes."""
    match plan:
        case Aggregate():
            return can_fail(plan.input)
        case Keyed() | TopN() | ChangeLog() | Recursion() | Recompute():
            return False
        case _:
            return can_fail(plan)


def step_in(fragment: Fragment, runtime: Runtime, reads: EpochReads, failures: Failures) -> Changes | None:
    """As `step`, for reads of the caller's: a backfill shows the inputs as a growing part of a snapshot."""
    match fragment.plan:
        case Recompute() as plan:
            return recompute.step(fragment, runtime, reads, recompute.evaluate(plan, reads))
        case Recursion() as plan:
            return recompute.step(fragment, runtime, reads, recursion.evaluate(plan, reads, build))
        case Aggregate():
            small = reads.is_small(fragment.plan)
            return aggregate.step(fragment, runtime, reads, failures, small=small)
        case Keyed(looked_up=looked_up) if looked_up is not None:
            return temporal_join.step(fragment, runtime, reads, small=reads.is_small(fragment.plan))
        case Keyed():
            return keyed.step(fragment, runtime, reads, small=reads.is_small(fragment.plan))
        case TopN():
            return topn.step(fragment, runtime, reads, small=reads.is_small(fragment.plan))
        case ChangeLog():
            return changelog.step(fragment, runtime, reads)
        case plan:
            small = reads.is_small(fragment.plan)
            counting = can_fail(plan)
            joined = near_join.joined(plan, reads) if small and isinstance(plan, Select) else None
            if joined is None:
                query = changes_sql(plan, reads, broadcast=small, counting=counting, near=False)
            else:
                assert isinstance(plan, Select)
                rows = _near_rows(plan, fragment.schema, joined)
                if rows is not None:
                    return runtime.emit_table(fragment.relation, fragment.schema, rows, reads.after)
                query = joined_sql(plan, joined, reads, counting=counting)
            if query is None:
                return None
            frame = reads.scope.sql(with_vnode(query, fragment.schema, counting=counting))
            if fragment.schema.append_only and not small:
                return _appended(fragment, runtime, reads, frame, failures if counting else None)
            return runtime.emit(fragment.relation, fragment.schema, frame, reads.after, small=small, failures=failures)


def _appended(
    fragment: Fragment, runtime: Runtime, reads: EpochReads, frame: DataFrame, failures: Failures | None
) -> Changes | None:
    """Many changes of what only grows: every row is a new one, so there is nothing to be looked for among them."""
    rows = frame if failures is None else failures.watch(frame)
    changes = runtime.emit_rows(fragment.relation, fragment.schema, rows, reads.after)
    if failures is not None:
        failures.settle()
    return changes


def _near_rows(plan: Select, schema: RelationSchema, joined: near_join.Joined) -> pa.Table | None:
    """Joined rows as rows of the schema with `_vnode` and `_op`; None where Spark has something to do for them."""
    rows = near_join.fields_of(plan, joined)
    if rows is None:
        return None
    numbers = vnodes_of(rows, schema)
    return rows.append_column(VNODE, numbers) if numbers is not None else None


def _step_anew(
    fragment: Fragment, runtime: Runtime, reads: EpochReads, failures: Failures, technique: Technique
) -> Changes | None:
    """By another technique than the fragment's usual one; rows that fail are counted all the same."""
    plan = fragment.plan
    small = runtime.is_small(*reads.changes.values())
    if counts_failures(plan):
        mapped = plan.input if isinstance(plan, Aggregate) else plan
        whole.count_failures(changes_sql(mapped, reads, broadcast=small, counting=True), reads, failures)
    if technique is Technique.AFFECTED_KEYS:
        return aggregate.step_by_keys(fragment, runtime, reads, small=small)
    return whole.step(fragment, runtime, reads, build(fragment, reads))


def build(
    fragment: Fragment, reads: EpochReads, failures: Failures | None = None, doubts: Doubts | None = None
) -> DataFrame:
    """The fragment's whole value at `reads.after`: stored columns, `_vnode` and `_op` = 1.

    `failures` can tell, once the frame is computed, on how many rows an expression failed, and `doubts` whether it has
    to be made again without them.
    """
    if failures is not None and not counts_failures(fragment.plan):
        failures = None
    match fragment.plan:
        case Recompute() as plan:
            return recompute.build(fragment, reads, recompute.evaluate(plan, reads))
        case Recursion() as plan:
            return recompute.build(fragment, reads, recursion.evaluate(plan, reads, build))
        case Aggregate():
            return aggregate.build(fragment, reads, failures, doubts)
        case Keyed():
            return keyed.build(fragment, reads)
        case TopN():
            return topn.build(fragment, reads)
        case ChangeLog():
            return changelog.build(fragment, reads)
        case plan:
            counting = failures is not None
            query = exact_sql(plan, reads, reads.after, counting=counting)
            frame = reads.scope.sql(with_vnode(query, fragment.schema, counting=counting))
            return frame if failures is None else failures.watch(frame)
