"""One fragment, one step: the rule that its plan asks for."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from seiche.model import Epoch, RelationId
from seiche.plan.algebra import Aggregate, Keyed, Recompute, TopN
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes
from seiche.stream import aggregate, keyed, recompute, temporal_join, topn
from seiche.stream.linear import can_fail, changes_sql, exact_sql, with_vnode
from seiche.stream.runtime import EpochReads, Failures, Runtime


def step(
    fragment: Fragment,
    runtime: Runtime,
    before: Epoch,
    after: Epoch,
    changes: Mapping[RelationId, Changes],
    failures: Failures,
) -> Changes | None:
    """Brings the fragment's relation from one epoch to the next; None when it stays as it is.

    The inputs can be read at both epochs; `changes` holds those that differ. What is returned is staged. Rows on
    which an expression failed are added to `failures`.
    """
    with runtime.scope() as scope:
        return step_in(fragment, runtime, EpochReads(runtime, scope, before, after, dict(changes)), failures)


def step_in(fragment: Fragment, runtime: Runtime, reads: EpochReads, failures: Failures) -> Changes | None:
    """As `step`, for reads of the caller's: a backfill shows the inputs as a growing part of a snapshot."""
    match fragment.plan:
        case Recompute():
            return recompute.step(fragment, runtime, reads)
        case Aggregate():
            small = reads.is_small(fragment.plan)
            return aggregate.step(fragment, runtime, reads, failures, small=small)
        case Keyed(looked_up=looked_up) if looked_up is not None:
            return temporal_join.step(fragment, runtime, reads, small=reads.is_small(fragment.plan))
        case Keyed():
            return keyed.step(fragment, runtime, reads, small=reads.is_small(fragment.plan))
        case TopN():
            return topn.step(fragment, runtime, reads, small=reads.is_small(fragment.plan))
        case plan:
            small = reads.is_small(fragment.plan)
            counting = can_fail(plan)
            query = changes_sql(plan, reads, broadcast=small, counting=counting)
            if query is None:
                return None
            frame = reads.scope.sql(with_vnode(query, fragment.schema, counting=counting))
            return runtime.emit(fragment.relation, fragment.schema, frame, reads.after, small=small, failures=failures)


def build(fragment: Fragment, reads: EpochReads) -> DataFrame:
    """The fragment's whole value at `reads.after`: stored columns, `_vnode` and `_op` = 1."""
    match fragment.plan:
        case Recompute():
            return recompute.build(fragment, reads)
        case Aggregate():
            return aggregate.build(fragment, reads)
        case Keyed():
            return keyed.build(fragment, reads)
        case TopN():
            return topn.build(fragment, reads)
        case plan:
            return reads.scope.sql(with_vnode(exact_sql(plan, reads, reads.after), fragment.schema))
