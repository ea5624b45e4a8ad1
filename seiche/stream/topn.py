"""TopN: the first rows of the input are stored, and changes are sorted in.

Every row that is not stored comes after the last stored one. So among the stored and the changed rows, those that come
no later than the old last one are the first of all; when there are enough of them the input need not be read. That
fails only when more stored rows leave than others take their places, and the input is sorted anew then, on the driver
if it is small. WITH TIES rows that are equal to the last stored one are stored too, so all others come after it for
sure.

An offset counts from the first row, which is not stored here: the input of such a node is a TopN itself, and is read.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from seiche.model import OP, VNODE, RelationSchema
from seiche.plan.algebra import Plan, Scan, Select, TopN
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes, local_frame, normalised, spark_ddl, vnode_sql
from seiche.storage.vnodes import vnodes_of
from seiche.stream import near, near_join
from seiche.stream.linear import changes_sql, exact_sql, with_vnode
from seiche.stream.near_values import ALIKE
from seiche.stream.runtime import EpochReads, Runtime
from seiche.types import SqlType


def step(fragment: Fragment, runtime: Runtime, reads: EpochReads, *, small: bool) -> Changes | None:
    """Brings the first rows from `reads.before` to `reads.after`; returns what changed."""
    plan = fragment.plan
    assert isinstance(plan, TopN)
    here = small and not plan.offset and _adds_up(plan, fragment.schema)
    rows = near_join.changes(plan.input, reads) if here else None
    changes = changes_sql(plan.input, reads, broadcast=small) if rows is None else None
    if rows is None and changes is None:
        return None
    if small and not plan.offset:
        candidates = _near_candidates(fragment, plan, runtime, reads, rows, changes) if here else None
        if candidates is None:
            changes = changes or changes_sql(plan.input, reads, broadcast=small)
            assert changes is not None
            candidates = runtime.collect(reads.scope.sql(_candidates(fragment, plan, reads, changes)))
        changed = _decided(candidates, plan.limit) if candidates is not None else None
        if changed is None and here:
            candidates = _all_candidates(fragment, plan, runtime, reads)
            changed = _decided(candidates, plan.limit, whole=True) if candidates is not None else None
        if changed is not None:
            return runtime.emit_table(fragment.relation, fragment.schema, changed, reads.after)
    names = _list(fragment.schema.names)
    stored = reads.weighted(fragment.relation, reads.before)
    query = f"({_first(plan, reads)}) UNION ALL (SELECT {names}, cast(-`{OP}` as tinyint) AS `{OP}` FROM {stored})"
    frame = reads.scope.sql(with_vnode(query, fragment.schema))
    return runtime.emit(fragment.relation, fragment.schema, frame, reads.after, small=True)


def build(fragment: Fragment, reads: EpochReads) -> DataFrame:
    """The first rows at `reads.after`: stored columns, `_vnode` and `_op`."""
    plan = fragment.plan
    assert isinstance(plan, TopN)
    return reads.scope.sql(with_vnode(_first(plan, reads), fragment.schema))


def _first(plan: TopN, reads: EpochReads) -> str:
    names = _list(field.name for field in plan.fields)
    rows = f"SELECT {names}, `{OP}` FROM ({exact_sql(plan.input, reads, reads.after)})"
    if plan.ties and plan.offset:  # the input ends with the rows that are equal to its last
        return f"{rows} ORDER BY {_order(plan)} OFFSET {plan.offset}"
    if plan.ties:
        ranked = f"SELECT *, rank() OVER (ORDER BY {_order(plan, by_key=False)}) AS `_tie` FROM ({rows})"
        return f"SELECT {names}, `{OP}` FROM ({ranked}) WHERE `_tie` <= {plan.limit}"
    offset = f" OFFSET {plan.offset}" if plan.offset else ""
    return f"{rows} ORDER BY {_order(plan)} LIMIT {plan.limit}{offset}"


def _candidates(fragment: Fragment, plan: TopN, reads: EpochReads, changes: str) -> str:
    """Stored and changed rows in order: `_was` tells those that are stored, `_is` those that are alive now."""
    names = _list(fragment.schema.names)
    stored = reads.weighted(fragment.relation, reads.before)
    both = (
        f"SELECT {names}, cast(`{OP}` as int) AS `_was`, cast(`{OP}` as int) AS `_is` FROM {stored}"
        f" UNION ALL SELECT {names}, 0, cast(`{OP}` as int) FROM ({changes})"
    )
    net = (
        f"SELECT {names}, sum(`_was`) > 0 AS `_was`, sum(`_is`) > 0 AS `_is` FROM ({both}) GROUP BY {names}"
        " HAVING sum(`_was`) > 0 OR sum(`_is`) > 0"
    )
    vnode = f"{vnode_sql(fragment.schema)} AS `{VNODE}`"
    tie = f", dense_rank() OVER (ORDER BY {_order(plan, by_key=False)}) AS `_tie`" if plan.ties else ""
    return f"SELECT {names}, {vnode}, `_was`, `_is`{tie} FROM ({net}) ORDER BY {_order(plan)}"


def _adds_up(plan: TopN, schema: RelationSchema) -> bool:
    """Whether stored and changed rows can be told apart on the driver, one by one."""
    return not plan.ties and all(column.type.is_hashable for column in schema.columns)


def _near_candidates(
    fragment: Fragment, plan: TopN, runtime: Runtime, reads: EpochReads, changed: pa.Table | None, changes: str | None
) -> pa.Table | None:
    """As `_candidates`, added up on the driver; None where Spark has to. `changed` is what `changes` would give."""
    schema = fragment.schema
    stored = runtime.reader.rows(runtime.versions.at(fragment.relation, reads.before))
    if changed is None and changes is not None and stored is not None:
        changed = runtime.collect(reads.scope.sql(changes))
    if stored is None or changed is None:
        return None
    sides = [_counted(stored, schema, was=True, now=True), _counted(changed, schema, now=True)]
    return _netted(sides, plan, schema, runtime, reads)


def _all_candidates(fragment: Fragment, plan: TopN, runtime: Runtime, reads: EpochReads) -> pa.Table | None:
    """Stored rows and all rows of a small input, in order, with `_was` and `_is`; None where Spark has to sort."""
    schema = fragment.schema
    stored = runtime.reader.rows(runtime.versions.at(fragment.relation, reads.before))
    rows = _alive(plan.input, reads)
    if stored is None or rows is None:
        return None
    sides = [_counted(stored, schema, was=True), _counted(rows, schema, now=True)]
    return _netted(sides, plan, schema, runtime, reads)


def _alive(source: Plan, reads: EpochReads) -> pa.Table | None:
    """All rows of an input at the new epoch with `_op`, if it is one small relation, filtered and projected at most."""
    if not reads.looks_up:
        return None
    if isinstance(source, Scan):
        return reads.alive(source.relation, reads.after)
    if not isinstance(source, Select) or len(source.inputs) != 1 or not isinstance(source.inputs[0], Scan):
        return None
    scan = source.inputs[0]
    rows = reads.alive(scan.relation, reads.after)
    return near.selected(source, scan, rows) if rows is not None else None


def _netted(
    sides: list[pa.Table], plan: TopN, schema: RelationSchema, runtime: Runtime, reads: EpochReads
) -> pa.Table | None:
    """Counted rows, equal ones as one, in order."""
    both = normalised(pa.concat_tables(sides), schema.columns)
    net = both.group_by(list(schema.names), use_threads=False).aggregate([("_was", "sum"), ("_is", "sum")])
    counts = [pc.greater(net[name], 0) for name in ("_was_sum", "_is_sum")]
    rows = pa.table([*(net[name] for name in schema.names), *counts], names=[*schema.names, "_was", "_is"])
    return _ordered(rows.filter(pc.or_(*counts)), plan, schema, runtime, reads)


def _ordered(
    rows: pa.Table, plan: TopN, schema: RelationSchema, runtime: Runtime, reads: EpochReads
) -> pa.Table | None:
    """Candidates in order, with their vnodes; None where they are more than the driver may hold."""
    order = [(each.name, each.descending, each.nulls_first) for each in plan.order]
    order += [(name, False, True) for name in plan.key]
    numbers = vnodes_of(rows, schema)
    if numbers is not None and all(_sorts_alike(schema.column(name).type) for name, _, _ in order):
        return _sorted(rows.append_column(VNODE, numbers), order)
    types = f"{spark_ddl(schema, ())}, `_was` boolean, `_is` boolean"
    view = reads.scope.view(local_frame(runtime.spark, rows, types))
    names, vnode = _list(schema.names), f"{vnode_sql(schema)} AS `{VNODE}`"
    return runtime.collect(
        reads.scope.sql(f"SELECT {names}, {vnode}, `_was`, `_is` FROM {view} ORDER BY {_order(plan)}")
    )


def _sorts_alike(type_: SqlType) -> bool:
    """Whether Arrow sorts values as Spark does."""
    return type_.kind in ALIKE and not type_.padded


def _sorted(rows: pa.Table, order: list[tuple[str, bool, bool]]) -> pa.Table:
    """The rows by columns, each descending or not, and with its NULLs first or not."""
    keys: dict[str, pa.Array] = {}
    ways = []
    for number, (name, descending, nulls_first) in enumerate(order):
        keys[f"n{number}"] = pc.is_null(rows[name])
        keys[f"v{number}"] = rows[name]
        ways.append((f"n{number}", "descending" if nulls_first else "ascending"))
        ways.append((f"v{number}", "descending" if descending else "ascending"))
    return rows.take(pc.sort_indices(pa.table(keys), sort_keys=ways))


def _counted(rows: pa.Table, schema: RelationSchema, *, was: bool = False, now: bool = False) -> pa.Table:
    """Rows with their signs as how often they are stored, and how often they are alive."""
    signs, none = pc.cast(rows[OP], pa.int64()), pa.array(np.zeros(rows.num_rows, np.int64))
    columns = [rows[column.name].cast(column.type.arrow) for column in schema.columns]
    counts = [signs if was else none, signs if now else none]
    return pa.table([*columns, *counts], names=[*schema.names, "_was", "_is"])


def _decided(candidates: pa.Table, limit: int, *, whole: bool = False) -> pa.Table | None:
    """The changes of the first rows; None when the candidates do not tell, which `whole` ones always do."""
    was = candidates["_was"].to_numpy(zero_copy_only=False).astype(bool)
    alive = candidates["_is"].to_numpy(zero_copy_only=False).astype(bool)
    tied = "_tie" in candidates.column_names
    place = candidates["_tie"].to_numpy() if tied else np.arange(len(was))  # the same for rows that stay together
    stored = int(was.sum())
    if stored and stored >= limit and not whole:  # there may be rows that are neither stored nor changed
        last = place[was].max()
        if int(alive[place <= last].sum()) < limit:
            return None
    now = alive.copy()
    if limit == 0:
        now[:] = False
    elif int(alive.sum()) > limit:
        now &= place <= place[np.flatnonzero(alive)[limit - 1]]
    changed = was != now
    signs = np.where(now, 1, -1).astype(np.int8)
    rows = candidates.drop_columns(["_was", "_is", *(["_tie"] if tied else [])]).append_column(OP, pa.array(signs))
    return rows.filter(pa.array(changed))


def _order(plan: TopN, *, by_key: bool = True) -> str:
    parts = [
        f"`{each.name}` {'DESC' if each.descending else 'ASC'} NULLS {'FIRST' if each.nulls_first else 'LAST'}"
        for each in plan.order
    ]
    return ", ".join([*parts, *(f"`{name}` ASC NULLS FIRST" for name in plan.key if by_key)])


def _list(names: object) -> str:
    return ", ".join(f"`{name}`" for name in names)  # type: ignore[attr-defined]


__all__ = ["build", "step"]
