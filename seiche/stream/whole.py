"""A fragment evaluated in full: its whole value at the new epoch, minus what is stored.

Any fragment can be brought up to date like this. It pays when most of the input changed: one pass over the rows
instead of one for those that left and one for those that came, for each input that changed.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from seiche.model import OP, VNODE
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes
from seiche.stream.runtime import FAILED, EpochReads, Failures, Runtime


def step(fragment: Fragment, runtime: Runtime, reads: EpochReads, value: DataFrame) -> Changes | None:
    """Writes how `value`, the rows at `reads.after` with `_vnode` and `_op`, differs from what is stored.

    Stored rows are read weighted: what the log says of a row adds up with it in the end.
    """
    names = ", ".join(f"`{name}`" for name in (*fragment.schema.names, VNODE))
    before = runtime.versions.at(fragment.relation, reads.before)
    stored = reads.weighted(fragment.relation, reads.before)
    frame = reads.scope.sql(
        f"SELECT {names}, `{OP}` FROM {reads.scope.view(value)}"
        f" UNION ALL SELECT {names}, cast(-`{OP}` as tinyint) FROM {stored}"
    )
    held = sum(runtime.versions.at(each, reads.after).rows_estimate for each in fragment.inputs)
    few = held + before.rows_estimate <= runtime.limits.inline_rows_max
    return runtime.emit(fragment.relation, fragment.schema, frame, reads.after, small=few)


def count_failures(query: str | None, reads: EpochReads, failures: Failures) -> None:
    """Counts the changed rows on which an expression fails, of which the whole value tells nothing."""
    if query is not None:
        counted = reads.scope.sql(f"SELECT sum(`{FAILED}`) AS n FROM ({query}) WHERE `{OP}` >= 0").first()
        failures.add(int(counted["n"] or 0))


__all__ = ["count_failures", "step"]
