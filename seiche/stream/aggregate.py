"""Aggregate: groups kept up to date from their stored state.

    1. changes    the changes of the input; few come to the driver, many are summed by group where they are
    2. merge      the stored state of just those groups is fetched by key, and the changes are added to it
    3. redo       groups whose state does not tell (an extreme value left, a float without an exact decimal):
                  evaluated anew from the rows of those groups; only when there are any

The first two are a Spark action each, at most: few groups are merged on the driver, see `seiche.stream.merge`, and
where nothing is to be evaluated Spark is not asked for the changes either, see `seiche.stream.near_parts`.

Where the executors merge, they unite the signed state rows with the changes and group once more: sums add up by
themselves, whatever lies in the base and whatever in the log, and the last state row that appeared is the old row.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from seiche.model import EPOCH, OP, VNODE, RelationSchema
from seiche.plan.algebra import (
    Aggregate,
    Closing,
    Field,
    Item,
    Plan,
    Scan,
    Select,
    TemporalFilter,
    UnionAll,
    input_column,
    is_append_only,
    make_select,
)
from seiche.plan.fragments import Fragment
from seiche.plan.state import COUNT, Evaluation, GroupState, group_state
from seiche.plan.words import with_columns
from seiche.query import to_arrow
from seiche.storage.changes import Changes, consolidate, local_frame, vnode_sql
from seiche.storage.vnodes import vnodes
from seiche.stream import near_join
from seiche.stream.linear import can_fail, changes_sql, exact_sql, joined_sql, restricted_sql
from seiche.stream.merge import REDO, Parts, SparkPart, can_merge, merge, parts_sql
from seiche.stream.near_parts import parts
from seiche.stream.predicates import lookup_condition
from seiche.stream.runtime import DOUBT, FAILED, Doubts, EpochReads, Failures, Runtime, shape


def step(fragment: Fragment, runtime: Runtime, reads: EpochReads, failures: Failures, *, small: bool) -> Changes | None:
    """Brings the groups from `reads.before` to `reads.after`; returns what changed."""
    aggregate = fragment.plan
    assert isinstance(aggregate, Aggregate)
    operator = _Groups(aggregate, fragment.schema)
    source, here = _input(aggregate), small and can_merge(aggregate, operator.state)
    counting = can_fail(source)
    joined = near_join.joined(source, reads) if small and isinstance(source, Select) else None
    if joined is None:
        query = changes_sql(source, reads, broadcast=small, counting=counting, near=False)
    else:
        assert isinstance(source, Select)
        rows = parts(aggregate, source, joined.rows) if here and joined.told else None
        changed = _merge_parts(operator, fragment, runtime, reads, rows) if rows is not None else _NotHere()
        if not isinstance(changed, _NotHere):
            return changed
        query = joined_sql(source, joined, reads, counting=counting)
    if query is None:
        return None
    if here:
        changed = _small_step(operator, fragment, runtime, reads, failures, query, counting=counting)
        if not isinstance(changed, _NotHere):
            return changed
    net = _needs_net(operator.state, aggregate)
    summed = reads.scope.sql(operator.partial_sql(query, net=net, counting=counting))
    return _large_step(operator, fragment, runtime, reads, summed, failures if counting else None)


def step_by_keys(fragment: Fragment, runtime: Runtime, reads: EpochReads, *, small: bool) -> Changes | None:
    """As `step`, for groups of which most would have to be evaluated anew anyway: all that a change mentions are."""
    aggregate = fragment.plan
    assert isinstance(aggregate, Aggregate)
    operator = _Groups(aggregate, fragment.schema)
    changes = changes_sql(_input(aggregate), reads, broadcast=small)
    if changes is None:
        return None
    keys = reads.scope.sql(f"SELECT DISTINCT {_list(operator.key_names)} FROM ({changes})")
    table = runtime.collect(keys) if small else None
    if table is not None:
        wanted = local_frame(runtime.spark, table)
        return _evaluate_keys(operator, fragment, runtime, reads, wanted, few=True) if table.num_rows else None
    keys = keys.persist()
    try:
        return _evaluate_keys(operator, fragment, runtime, reads, keys, few=False)
    finally:
        keys.unpersist()


def _evaluate_keys(
    operator: _Groups, fragment: Fragment, runtime: Runtime, reads: EpochReads, wanted: DataFrame, *, few: bool
) -> Changes | None:
    """The groups whose keys are wanted from the rows of the input, minus what is stored of them."""
    view, schema = reads.scope.view(wanted), fragment.schema
    rows = restricted_sql(_input(operator.aggregate), reads, reads.after, operator.key_names, view, broadcast=few)
    names = ", ".join(f"`{name}`" for name in (*schema.names, VNODE))
    same = " AND ".join(f"s.`{key}` <=> w.`{name}`" for key, name in zip(schema.key, operator.key_names, strict=True))
    hint = "/*+ BROADCAST(w) */ " if few else ""
    stored = reads.weighted(fragment.relation, reads.before)
    old = f"SELECT {hint}{names}, cast(-`{OP}` as tinyint) AS `{OP}` FROM {stored} s LEFT SEMI JOIN {view} w ON {same}"
    frame = reads.scope.sql(f"({operator.evaluate_sql(rows)}) UNION ALL ({old})")
    return runtime.emit(fragment.relation, schema, frame, reads.after, small=few)


class _NotHere:
    """The executors have to do it: more rows than the driver may hold, or values that it cannot compare."""


def _small_step(
    operator: _Groups,
    fragment: Fragment,
    runtime: Runtime,
    reads: EpochReads,
    failures: Failures,
    query: str,
    *,
    counting: bool,
) -> Changes | _NotHere | None:
    """What the changed rows bring comes to the driver, and so do the stored rows of their groups."""
    aggregate = operator.aggregate
    vnode = vnode_sql(operator.schema, key=operator.key_names)
    found = runtime.collect(
        reads.scope.sql(parts_sql(aggregate, operator.state, vnode, query, FAILED if counting else None))
    )
    if found is None:
        return _NotHere()
    seen = Failures()
    changed = _merge_parts(operator, fragment, runtime, reads, runtime.count_failures(found, seen))
    if not isinstance(changed, _NotHere):
        failures.add(seen.rows)
    return changed


def _merge_parts(
    operator: _Groups, fragment: Fragment, runtime: Runtime, reads: EpochReads, rows: pa.Table
) -> Changes | _NotHere | None:
    """Adds what changed rows bring to the stored rows of their groups, all on the driver."""
    if rows.num_rows == 0:
        return None
    aggregate, schema = operator.aggregate, fragment.schema
    brought = Parts.of(aggregate, rows)
    wanted = brought.keys.rename_columns(list(schema.key))
    condition, exact = lookup_condition(schema, wanted)
    before = runtime.versions.at(fragment.relation, reads.before)
    stored = runtime.reader.lookup(before, wanted, condition, exact=exact)
    spark = SparkPart(partial(operator.evaluate_items, runtime), partial(operator.vnodes, runtime))
    merged = merge(aggregate, operator.state, schema, brought, stored, spark)
    if merged is None:
        return _NotHere()
    merged = _redo(operator, runtime, reads, merged)
    return runtime.emit_table(fragment.relation, schema, merged, reads.after)


def build(
    fragment: Fragment, reads: EpochReads, failures: Failures | None = None, doubts: Doubts | None = None
) -> DataFrame:
    """The groups of the input as it is at `reads.after`: stored columns, `_vnode` and `_op`.

    Rows that fail are told to `failures`, where they are to be counted. Whoever has `doubts` gets the groups sooner,
    and has to ask for them again without, where there turn out to be any.
    """
    aggregate = fragment.plan
    assert isinstance(aggregate, Aggregate)
    operator = _Groups(aggregate, fragment.schema)
    rows = exact_sql(_input(aggregate), reads, reads.after, counting=failures is not None)
    way = operator.state.hasty if doubts is not None else None
    if failures is None:
        groups = reads.scope.sql(operator.evaluate_sql(rows, way))
    else:
        watched = reads.scope.view(failures.watch(reads.scope.sql(rows)))
        # Spark looks for what is watched in plans, not behind names of views.
        groups = reads.scope.sql(operator.evaluate_sql(f"SELECT * FROM {watched}", way)).select("*")
    return groups if way is None or doubts is None else doubts.watch(groups)


def _input(aggregate: Aggregate) -> Plan:
    """The input as a Select or UnionAll, for the linear rules to work on."""
    source = aggregate.input
    if isinstance(source, Scan):
        return make_select([source], [], [Item(f, input_column(0, f.name)) for f in source.fields])
    return source


def _needs_net(state: GroupState, aggregate: Aggregate) -> bool:
    """Whether rows that cancel among the changes must be removed before summing.

    Sums do not mind them; an extreme value would take a row that never lived for one that appeared.
    """
    return bool(state.extremes) and _may_cancel(aggregate.input)


def _may_cancel(plan: Plan) -> bool:
    """Whether the changes of a node may mention a row that neither left nor appeared: those of a join may."""
    match plan:
        case Select():
            return len(plan.inputs) > 1 or _may_cancel(plan.inputs[0])
        case UnionAll():
            return any(_may_cancel(child) for child in plan.inputs)
        case TemporalFilter():  # a row that comes with time and leaves its table in the same epoch
            return True
        case Closing():
            return not is_append_only(plan.input)
        case _:
            return False


def _large_step(
    operator: _Groups,
    fragment: Fragment,
    runtime: Runtime,
    reads: EpochReads,
    partial: DataFrame,
    failures: Failures | None,
) -> Changes | None:
    """The same three steps with the executors holding everything."""
    partial = partial.persist()
    if failures is not None:
        failures.add(int(partial.selectExpr(f"sum(`{FAILED}`) AS n").first()["n"] or 0))
    beside = reads.scope.view(operator.merge(reads, partial, fragment))
    merged = reads.scope.sql(operator.exploded_sql(beside)).persist()
    try:
        doubtful = merged.filter(f"`{REDO}`")
        kept = merged.filter(f"NOT `{REDO}`").drop(REDO)
        if operator.may_redo and doubtful.limit(1).count():
            wanted = reads.scope.view(operator.group_keys(doubtful))
            query = restricted_sql(
                _input(operator.aggregate), reads, reads.after, operator.key_names, wanted, broadcast=False
            )
            kept = kept.unionByName(reads.scope.sql(operator.evaluate_sql(query)))
        return runtime.emit(fragment.relation, fragment.schema, kept, reads.after, small=False)
    finally:
        merged.unpersist()
        partial.unpersist()


def _redo(operator: _Groups, runtime: Runtime, reads: EpochReads, rows: pa.Table) -> pa.Table:
    """Replaces the new rows that the state could not tell by ones evaluated from the input."""
    doubtful = rows.filter(rows[REDO])
    if doubtful.num_rows == 0:
        return rows
    kept = shape(rows.filter(pc.invert(rows[REDO])), operator.schema)
    keys = doubtful.select(list(operator.schema.key)).rename_columns(operator.key_names)
    wanted = reads.scope.view(local_frame(runtime.spark, keys))
    query = restricted_sql(_input(operator.aggregate), reads, reads.after, operator.key_names, wanted, broadcast=True)
    evaluated = reads.scope.sql(operator.evaluate_sql(query)).toArrow()
    return consolidate(pa.concat_tables([kept, shape(evaluated, operator.schema)]), operator.schema.columns)


class _Groups:
    """The SQL of one Aggregate."""

    def __init__(self, aggregate: Aggregate, schema: RelationSchema) -> None:
        self.aggregate = aggregate
        self.schema = schema
        self.state = group_state(aggregate)
        self.key_names = [field.name for field in aggregate.keys]

    @property
    def may_redo(self) -> bool:
        overflow = any(each.may_overflow for each in self.state.sums)
        return bool(self.state.extremes or self.state.inexact or overflow)

    def partial_sql(self, changes: str, *, net: bool, counting: bool) -> str:
        """Sums of the changes by group: keys, `_count`, sums, and the extremes gained and lost."""
        if net:
            names = _list(field.name for field in _input(self.aggregate).fields)
            failed = f", sum(if(`{OP}` >= 0, `{FAILED}`, 0)) AS `{FAILED}`" if counting else ""
            kept = f"sum(`{OP}`) <> 0" + (f" OR sum(`{FAILED}`) > 0" if counting else "")
            changes = (
                f"SELECT {names}, cast(sum(`{OP}`) as tinyint) AS `{OP}`{failed} FROM ({changes})"
                f" GROUP BY {names} HAVING {kept}"
            )
        columns = [f"`{name}`" for name in self.key_names]
        columns.append(f"sum(`{OP}`) AS `{COUNT}`")
        columns += self._summed()
        for each in self.state.extremes:
            columns.append(f"{each.function}(if(`{OP}` > 0, `{each.argument}`, null)) AS `{each.gained}`")
            columns.append(f"{each.function}(if(`{OP}` < 0, `{each.argument}`, null)) AS `{each.lost}`")
        if counting:
            columns.append(f"sum(if(`{OP}` >= 0, `{FAILED}`, 0)) AS `{FAILED}`")
        rows = with_columns(changes, self.state.prepared)
        grouped = f"SELECT {', '.join(columns)} FROM ({rows}) GROUP BY {_list(self.key_names)}"
        if not self.state.words:
            return grouped
        return f"SELECT * EXCEPT ({_list(self.state.words)}) FROM ({with_columns(grouped, self.state.combined)})"

    def _summed(self) -> list[str]:
        """The sums of a group's changes, and the words of those that are put together afterwards."""
        columns = {each.name: each.partial for each in self.state.sums if not each.combined}
        return [f"{value} AS `{name}`" for name, value in {**columns, **self.state.words}.items()]

    def evaluate_items(self, runtime: Runtime, states: pa.Table) -> pa.Table:
        """The items of groups whose keys and state are given, in the same order."""
        numbered = states.append_column("_at", pa.array(np.arange(states.num_rows)))
        with runtime.scope() as scope:
            fields = [*self.aggregate.keys, *(Field(each.name, each.type) for each in self.state.columns)]
            types = ", ".join([*(f"`{each.name}` {each.type.spark}" for each in fields), "`_at` bigint"])
            rows = scope.view(local_frame(runtime.spark, numbered, types))
            query = f"SELECT `_at`, {', '.join(self._items())} FROM ({_with(rows, self.state.results)})"
            found = to_arrow(scope.sql(query))
        return found.sort_by("_at").drop_columns(["_at"])

    def vnodes(self, runtime: Runtime, keys: pa.Table) -> pa.ChunkedArray:
        """The vnodes of groups whose keys are given, in the same order."""
        found = vnodes(keys.columns, [field.type for field in self.aggregate.keys], self.schema.spread)
        if found is not None:
            return pa.chunked_array([found])
        numbered = keys.append_column("_at", pa.array(np.arange(keys.num_rows)))
        with runtime.scope() as scope:
            types = ", ".join([*(f"`{each.name}` {each.type.spark}" for each in self.aggregate.keys), "`_at` bigint"])
            rows = scope.view(local_frame(runtime.spark, numbered, types))
            vnode = vnode_sql(self.schema, key=self.key_names)
            table = to_arrow(scope.sql(f"SELECT `_at`, {vnode} AS `{VNODE}` FROM {rows}"))
        return table.sort_by("_at")[VNODE]

    def evaluate_sql(self, rows: str, way: Evaluation | None = None) -> str:
        """Whole groups from plain rows: stored columns, `_vnode`, `_op`, and `_doubt` where the way has any."""
        way = way or self.state.evaluation
        columns = [f"count(1) AS `{COUNT}`", *(f"{value} AS `{name}`" for name, value in way.grouped.items())]
        rows = with_columns(rows, way.prepared)
        if self.aggregate.total:
            constant = f"cast(0 as smallint) AS `{self.key_names[0]}`"
            grouped = f"SELECT {', '.join([constant, *columns])} FROM ({rows})"
        else:
            keys = [f"`{name}`" for name in self.key_names]
            grouped = f"SELECT {', '.join([*keys, *columns])} FROM ({rows}) GROUP BY {', '.join(keys)}"
        groups = f"({with_columns(grouped, way.combined)})"
        doubt, doubted = (f", {way.doubt} AS `{DOUBT}`", f", `{DOUBT}`") if way.doubt else ("", "")
        shown = f"SELECT {self._stored()}{doubt} FROM ({_with(groups, way.results)})"
        return (
            f"SELECT {_list(self.schema.names)}, {vnode_sql(self.schema)} AS `{VNODE}`,"
            f" cast(1 as tinyint) AS `{OP}`{doubted} FROM ({shown})"
        )

    def merge(
        self,
        reads: EpochReads,
        partial: DataFrame,
        fragment: Fragment,
    ) -> DataFrame:
        """Old and new row of each group that `partial` mentions, side by side, and whether the new one needs a redo."""
        scope = reads.scope
        state = reads.weighted(fragment.relation, reads.before)
        return scope.sql(self.merge_sql(scope.view(partial), state))

    def merge_sql(self, partial: str, state: str) -> str:
        keys, stored_keys = self.key_names, self.schema.key
        sums = [(COUNT, "bigint"), *((each.name, each.type.spark) for each in self.state.sums)]
        old_row = ", ".join(f"'{name}', s.`{name}`" for name in self.schema.names)
        old = [f"s.`{stored}` AS `{key}`" for stored, key in zip(stored_keys, keys, strict=True)]
        new = [f"`{key}`" for key in keys]
        old += [f"cast(s.`{OP}` as int) AS `_w`", f"s.`{EPOCH}` AS `_e`", f"named_struct({old_row}) AS `_o`"]
        new += ["0 AS `_w`", "cast(0 as bigint) AS `_e`", "null AS `_o`"]
        for name, type_ in sums:
            old.append(f"if(s.`{OP}` > 0, s.`{name}`, cast(-s.`{name}` as {type_})) AS `{name}`")
            new.append(f"cast(`{name}` as {type_}) AS `{name}`")
        for each in self.state.extremes:
            old += [f"cast(null as {each.type.spark}) AS `{name}`" for name in (each.gained, each.lost)]
            new += [f"`{each.gained}`", f"`{each.lost}`"]
        same = " AND ".join(f"s.`{stored}` <=> p.`{key}`" for stored, key in zip(stored_keys, keys, strict=True))
        united = (
            f"SELECT {', '.join(old)} FROM {state} s LEFT SEMI JOIN {partial} p ON {same}"
            f" UNION ALL SELECT {', '.join(new)} FROM {partial}"
        )
        grouped = [f"`{key}`" for key in keys]
        grouped += ["sum(`_w`) > 0 AS `_had`", "max_by(`_o`, `_e`) FILTER (WHERE `_w` > 0) AS `_o`"]
        overflowing = [each.name for each in self.state.sums if each.may_overflow]
        for name, type_ in sums:
            total = f"cast(sum(`{name}`) as {type_})"
            if name in overflowing:  # one part that outgrew its type spoils the whole
                total = f"if(count_if(`{name}` IS NULL) > 0, null, cast(try_sum(`{name}`) as {type_}))"
            grouped.append(f"{total} AS `{name}`")
        for each in self.state.extremes:
            grouped += [f"{each.function}(`{name}`) AS `{name}`" for name in (each.gained, each.lost)]
        merged = f"SELECT {', '.join(grouped)} FROM ({united}) GROUP BY {_list(keys)}"
        return self._side_by_side(merged)

    def _side_by_side(self, merged: str) -> str:
        """The merged groups with their new rows: `_had`, `_has`, the old row `_o`, stored columns, `_vnode`."""
        alive = "true" if self.aggregate.total else f"`{COUNT}` > 0"
        columns = ["*", f"{alive} AS `_has`"]
        redo = [f"`{name}` <> 0" for name in self.state.inexact]
        redo += [f"`{each.name}` IS NULL" for each in self.state.sums if each.may_overflow]
        for each in self.state.extremes:
            before = f"if(`_had`, `_o`.`{each.name}`, null)"
            compare = ">=" if each.greatest else "<="
            left = f"(`{each.lost}` {compare} {before})"  # the extreme itself is among what left
            outdone = f"coalesce(`{each.gained}` {compare} {before}, false)"
            redo.append(f"(coalesce({left}, false) AND NOT {outdone})")
            columns.append(f"{each.choose}({before}, `{each.gained}`) AS `{each.name}`")
        columns.append(f"({' OR '.join(redo) if redo else 'false'}) AS `{REDO}`")
        with_state = f"SELECT {', '.join(columns)} FROM ({merged})"
        flags = f"`_had`, `_has`, `_o`, `_has` AND `{REDO}` AS `{REDO}`"
        shown = f"SELECT {flags}, {self._stored()} FROM ({_with(f'({with_state})', self.state.results)})"
        return f"SELECT *, {vnode_sql(self.schema)} AS `{VNODE}` FROM ({shown})"

    def exploded_sql(self, rows: str) -> str:
        """Rows side by side as one row that leaves and one that appears."""
        names = ", ".join(f"'{name}', `{name}`" for name in self.schema.names)
        shown = f"SELECT `_had`, `_has`, `_o`, `{REDO}`, named_struct({names}) AS `_new` FROM {rows}"
        both = (
            "filter(array("
            "if(`_had`, named_struct('op', -1, 'redo', false, 'row', `_o`), null), "
            f"if(`_has`, named_struct('op', 1, 'redo', `{REDO}`, 'row', `_new`), null)), each -> each is not null)"
        )
        changed = f"`{REDO}` OR NOT (`_had` AND `_has` AND `_o` <=> `_new`)"
        rows = f"SELECT explode({both}) AS `_r` FROM ({shown}) WHERE {changed}"
        fields = ", ".join(f"`_r`.`row`.`{name}` AS `{name}`" for name in self.schema.names)
        vnode = vnode_sql(self.schema, prefix="`_r`.`row`.")
        return (
            f"SELECT {fields}, {vnode} AS `{VNODE}`, cast(`_r`.`op` as tinyint) AS `{OP}`,"
            f" `_r`.`redo` AS `{REDO}` FROM ({rows})"
        )

    def group_keys(self, rows: DataFrame) -> DataFrame:
        pairs = zip(self.schema.key, self.key_names, strict=True)
        return rows.selectExpr(*(f"`{stored}` AS `{key}`" for stored, key in pairs))

    def _stored(self) -> str:
        """The stored columns: the items, then the state."""
        return ", ".join([*self._items(), *(f"`{column.name}`" for column in self.state.columns)])

    def _items(self) -> list[str]:
        return [
            f"cast({item.expr.sql('spark')} as {item.field.type.spark}) AS `{item.field.name}`"
            for item in self.aggregate.items
        ]


def _with(rows: str, results: Mapping[str, str]) -> str:
    """Rows of group states with the results of the calls beside them."""
    return f"SELECT {', '.join(['*', *(f'{value} AS `{name}`' for name, value in results.items())])} FROM {rows}"


def _list(names: object) -> str:
    return ", ".join(f"`{name}`" for name in names)  # type: ignore[attr-defined]


__all__ = ["build", "step", "step_by_keys"]
