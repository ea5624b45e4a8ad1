"""Parts that are a history: rows meet something as it is at the epoch in which they come, and keep it.

That is the right side of a temporal join, or the time of the epoch. What an append-only left side brings is joined and
added: neither the left side's storage nor the view's is read, and no row leaves. Any other left side goes by the
affected keys, which are its own; see `keyed`.
"""

from __future__ import annotations

from seiche.model import OP
from seiche.plan.algebra import Keyed, is_append_only
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes
from seiche.stream import keyed
from seiche.stream.linear import changes_sql, with_vnode
from seiche.stream.runtime import EpochReads, Runtime


def step(fragment: Fragment, runtime: Runtime, reads: EpochReads, *, small: bool) -> Changes | None:
    """Brings the rows from `reads.before` to `reads.after`; returns what changed."""
    plan = fragment.plan
    assert isinstance(plan, Keyed)
    if not is_append_only(plan.inputs[0]):
        return keyed.step(fragment, runtime, reads, small=small)
    changes = changes_sql(plan.inputs[0], reads, broadcast=small)
    if changes is None:
        return None
    names = ", ".join(f"`{field.name}`" for field in plan.inputs[0].fields)
    arrived = f"SELECT {names}, `{OP}` FROM ({changes})"
    inputs = [arrived, *([keyed.partners(plan, reads, broadcast=small)] if len(plan.inputs) > 1 else [])]
    query = keyed.evaluated(plan, inputs, reads)
    frame = reads.scope.sql(with_vnode(query, fragment.schema))
    if fragment.schema.append_only and not small:
        return runtime.emit_rows(fragment.relation, fragment.schema, frame, reads.after)
    return runtime.emit(fragment.relation, fragment.schema, frame, reads.after, small=small)


__all__ = ["step"]
