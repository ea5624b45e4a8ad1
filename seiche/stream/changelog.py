"""ChangeLog: every change of the input becomes a row, which stays.

A change's number is the number of changes before it. The relation only grows, so that is how many rows it has, and its
files tell that; the changes of one step are numbered one after the other.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from seiche.far_days import python_rows
from seiche.model import CHANGELOG_ROW_ID, OP, VNODE, Epoch, RelationId
from seiche.plan.algebra import ChangeLog
from seiche.plan.fragments import Fragment
from seiche.sql.change_log import DELETED, INSERTED, OPERATION, UPDATED_FROM, UPDATED_TO
from seiche.storage.changes import Changes, vnode_sql
from seiche.stream.rowids import vnodes_of
from seiche.stream.runtime import EpochReads, Runtime


def step(fragment: Fragment, runtime: Runtime, reads: EpochReads) -> Changes | None:
    """Adds the changes of the input from `reads.before` to `reads.after`."""
    plan = _plan(fragment)
    changed = reads.changed(plan.input.relation)
    if changed is None:
        return None
    first = _count(runtime, fragment.relation, reads.before)
    if changed.table is not None and runtime.is_small(changed):
        return runtime.emit_table(fragment.relation, fragment.schema, logged(plan, changed.table, first), reads.after)
    frame = _numbered(fragment, reads, _told(plan, reads.delta(plan.input.relation)), first)
    return runtime.emit(fragment.relation, fragment.schema, frame, reads.after, small=False)


def build(fragment: Fragment, reads: EpochReads) -> DataFrame:
    """The log as it begins: every row that is there at `reads.after` came."""
    plan = _plan(fragment)
    names = _columns(plan)
    rows = reads.exact(plan.input.relation, reads.after)
    return _numbered(fragment, reads, f"SELECT {names}, cast({INSERTED} as smallint) AS `{OPERATION}` FROM {rows}", 0)


def _plan(fragment: Fragment) -> ChangeLog:
    assert isinstance(fragment.plan, ChangeLog)
    return fragment.plan


def _columns(plan: ChangeLog) -> str:
    return ", ".join(f"`{column.name}`" for column in plan.input.schema.visible)


def _count(runtime: Runtime, relation: RelationId, epoch: Epoch) -> int:
    """How many changes were written down until an epoch."""
    return runtime.versions.at(relation, epoch).rows_estimate  # exact where rows never leave


def logged(plan: ChangeLog, changes: pa.Table, first: int) -> pa.Table:
    """Changes on the driver as rows of the log. What a row was comes before what it is."""
    changes = changes.take(pa.array(np.argsort(changes[OP].to_numpy(), kind="stable")))
    keys = [tuple(map(_hashable, row.values())) for row in python_rows(changes.select(list(plan.input.schema.key)))]
    images = Counter(keys)
    came = (changes[OP].to_numpy() > 0).tolist()
    words = [
        (UPDATED_TO if new else UPDATED_FROM) if images[key] > 1 else (INSERTED if new else DELETED)
        for key, new in zip(keys, came, strict=True)
    ]
    ids = np.arange(first, first + changes.num_rows, dtype=np.int64)
    rows = changes.select([column.name for column in plan.input.schema.visible])
    rows = rows.append_column(OPERATION, pa.array(words, pa.int16())).append_column(CHANGELOG_ROW_ID, pa.array(ids))
    return rows.append_column(VNODE, pa.array(vnodes_of(ids))).append_column(OP, pa.array(np.ones(len(ids), np.int8)))


def _hashable(value: object) -> object:
    return repr(value) if isinstance(value, list | dict) else value


def _told(plan: ChangeLog, changes: str) -> str:
    """As `logged`, for changes that stay with the executors."""
    key = ", ".join(f"`{name}`" for name in plan.input.schema.key)
    updated = f"count(*) OVER (PARTITION BY {key}) > 1"
    word = (
        f"CASE WHEN {updated} THEN if(`{OP}` > 0, {UPDATED_TO}, {UPDATED_FROM})"
        f" ELSE if(`{OP}` > 0, {INSERTED}, {DELETED}) END"
    )
    if plan.input.schema.append_only:
        word = str(INSERTED)
    return f"SELECT {_columns(plan)}, cast({word} as smallint) AS `{OPERATION}` FROM {changes}"


def _numbered(fragment: Fragment, reads: EpochReads, query: str, first: int) -> DataFrame:
    """The rows of a query as rows of the log. One task numbers them: there must be no gap."""
    names = ", ".join(f"`{name}`" for name in fragment.schema.names)
    number = f"cast({first} + row_number() OVER (ORDER BY `{OPERATION}` DESC) - 1 as bigint)"
    numbered = f"SELECT *, {number} AS `{CHANGELOG_ROW_ID}` FROM ({query})"
    vnode = vnode_sql(fragment.schema)
    return reads.scope.sql(f"SELECT {names}, {vnode} AS `{VNODE}`, cast(1 as tinyint) AS `{OP}` FROM ({numbered})")


__all__ = ["build", "logged", "step"]
