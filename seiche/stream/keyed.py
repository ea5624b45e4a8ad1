"""Keyed: what changed for some values of a key is evaluated anew for those values.

    1. keys       the values of the key that the inputs' changes mention; few of them come to the driver, or are there
    2. new rows   the node's query over the inputs at the new epoch, restricted to those values; or over what is stored
                  and what came, where that tells enough, see `seiche.plan.first_rows`
    3. old rows   those that the node's own relation stores for those values

The difference of 2 and 3 is what changed, in one Spark action; or in none, where few rows can be looked up and joined
by the driver. Old rows are not computed again: what is stored is what
leaves, even where a query leaves something open, like the order of equal rows.

Without a key every row is affected, and nothing is restricted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from sqlglot import exp

from seiche.model import OP, VNODE
from seiche.plan import first_rows
from seiche.plan.algebra import (
    Item,
    Keyed,
    Plan,
    Scan,
    Select,
    UnionAll,
    field_of,
    input_column,
    input_index,
    make_select,
)
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes, consolidate, local_frame, spark_ddl
from seiche.storage.vnodes import vnodes_of
from seiche.stream import near, near_join, near_keyed
from seiche.stream.joined_row import needed
from seiche.stream.linear import changes_sql, exact_sql, index_scan, restricted_rows_sql, restricted_sql, with_vnode
from seiche.stream.matching import PLAIN, codes
from seiche.stream.predicates import Lookup, key_predicate
from seiche.stream.recompute import tolerant
from seiche.stream.runtime import EpochReads, Runtime
from seiche.stream.temporal import at
from seiche.types import Kind, SqlType

# Types whose values are told apart by the driver.
_TOLD_APART = (*PLAIN, Kind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The values of the key that are evaluated: a view with columns k0, k1 …, made when somebody asks, and the rows of
    it if they are few."""

    view: Callable[[], str]
    table: pa.Table | None
    near: near_join.Wanted | None = None  # the same for lookups by the driver, where those are possible

    def values(self, number: int) -> pa.ChunkedArray | None:
        """The values of one column of the key, if they can be asked for by a condition."""
        if self.table is None:
            return None
        column = self.table[f"k{number}"]
        return column if column.null_count == 0 else None


def step(fragment: Fragment, runtime: Runtime, reads: EpochReads, *, small: bool) -> Changes | None:
    """Brings the rows from `reads.before` to `reads.after`; returns what changed."""
    plan = fragment.plan
    assert isinstance(plan, Keyed)
    if not plan.partition:
        changed = any(changes_sql(each, reads, broadcast=small) is not None for each in plan.inputs)
        return _emit(fragment, runtime, reads, None, small=small) if changed else None
    table = _few(plan, runtime, reads) if small else None
    if table is None:
        query = _affected(plan, reads, broadcast=small)
        if query is None:
            return None
        frame = reads.scope.sql(query)
        table = runtime.collect(frame) if small else None
    if table is not None:
        if table.num_rows == 0:
            return None
        known = not any(column.null_count for column in table.columns)
        asked = near_join.Wanted(table, _total(plan, reads)) if known else None
        few = table
        view = cache(lambda: reads.scope.view(local_frame(runtime.spark, few)))
        return _emit(fragment, runtime, reads, _Wanted(view, few, asked), small=True)
    frame = frame.persist()
    try:
        name = reads.scope.view(frame)
        return _emit(fragment, runtime, reads, _Wanted(lambda: name, None), small=False)
    finally:
        frame.unpersist()


def build(fragment: Fragment, reads: EpochReads) -> DataFrame:
    """The rows of the query at `reads.after`: stored columns, `_vnode` and `_op`."""
    plan = fragment.plan
    assert isinstance(plan, Keyed)
    inputs = [exact_sql(each, reads, reads.after) for each in plan.inputs]
    return reads.scope.sql(with_vnode(evaluated(plan, inputs, reads), fragment.schema))


def _few(plan: Keyed, runtime: Runtime, reads: EpochReads) -> pa.Table | None:
    """The values of the key that the changes mention, told apart on the driver; None when Spark has to.

    The changes of one input after the other: where those are on the driver no job has to run.
    """
    if not all(field_of(source, key).type.kind in _TOLD_APART for source, keys in _driving(plan) for key in keys):
        return None
    parts: list[pa.Table] = []
    for source, keys in sorted(_driving(plan), key=lambda each: _scanned(*each) is None):
        names = [f"k{number}" for number in range(len(keys))]
        if _is_foreseen(source, keys, parts, reads):
            continue
        part = _mentioned(source, keys, reads)
        if part is None:
            changes = changes_sql(source, reads, broadcast=True)
            if changes is None:
                continue
            shown = ", ".join(f"`{key}` AS `{name}`" for key, name in zip(keys, names, strict=True))
            part = runtime.collect(reads.scope.sql(f"SELECT {shown} FROM ({changes})"))
            if part is None:
                return None
        nullable = [each.with_nullable(True) for each in part.schema]
        parts.append(part.cast(pa.schema(nullable)).rename_columns(names))
    return _told_apart(parts)


def _is_foreseen(source: Plan, keys: Sequence[str], known: Sequence[pa.Table], reads: EpochReads) -> bool:
    """Whether no change of a join can have other values in the key than those that are known.

    What changed in its inputs tells, where they hold the key themselves; it need not be joined then.
    """
    if not known or not isinstance(source, Select) or len(source.inputs) < 2:
        return False
    exprs = {item.field.name: item.expr.unnest() for item in source.items}
    equal = [_equal_columns(source, exprs[key]) for key in keys]
    whole = pa.concat_tables(known) if all(each.schema == known[0].schema for each in known) else None
    for index, scan in enumerate(source.inputs):
        changes = reads.changed(scan.relation) if isinstance(scan, Scan) else None
        if isinstance(scan, Scan) and changes is None:
            continue
        own = [next((each.name for each in columns if input_index(each) == index), None) for columns in equal]
        names = [each for each in own if each is not None]
        if whole is None or changes is None or changes.table is None or len(names) < len(own):
            return False
        rows = changes.table.select(names)
        if rows.schema.types != whole.schema.types:
            return False
        mine, theirs = codes(rows, whole)
        if not np.isin(mine, theirs).all():
            return False
    return True


def _mentioned(source: Plan, keys: Sequence[str], reads: EpochReads) -> pa.Table | None:
    """The values that changes of an input have in the fields of the key, by the driver; None when Spark has to tell."""
    columns = _scanned(source, keys)
    if columns is None:
        rows = near_join.changes(source, reads)
        return rows.select(list(keys)) if rows is not None else None
    scan, names, conditions = columns
    changes = reads.changed(scan.relation)
    rows = changes.table if changes is not None else None
    for condition in conditions:
        rows = near.filtered(condition, rows, scan.schema) if rows is not None else None
    used = needed(source)[0] if isinstance(source, Select) else scan.schema.names
    return _netted(rows, used, scan).select(names) if rows is not None else None


def _netted(rows: pa.Table, used: Sequence[str], scan: Scan) -> pa.Table:
    """The changes of some columns of a relation: a row that changed in others only leaves and comes as it was."""
    held = [scan.schema.column(name) for name in used]
    if len(used) == len(scan.schema.columns) or not all(column.type.is_hashable for column in held):
        return rows
    return consolidate(rows, held, ())


def _told_apart(parts: Sequence[pa.Table]) -> pa.Table | None:
    """The different rows of all parts; None where these are not alike, or none is there."""
    if not parts or any(each.schema != parts[0].schema for each in parts):
        return None
    return pa.concat_tables(parts).group_by(parts[0].column_names, use_threads=False).aggregate([])


def _total(plan: Keyed, reads: EpochReads) -> int | None:
    """How many values the key has, about: as many as a relation has rows whose own key it is."""
    found = []
    for source, keys in _driving(plan):
        if isinstance(source, Scan):
            found += [reads.rows_of(source.relation)] if set(source.key) <= set(keys) else []
        elif isinstance(source, Select):
            exprs = {item.field.name: item.expr.unnest() for item in source.items}
            equal = [column for key in keys for column in _equal_columns(source, exprs[key])]
            for index, scan in enumerate(source.inputs):
                names = {column.name for column in equal if input_index(column) == index}
                if isinstance(scan, Scan) and set(scan.key) <= names:
                    found.append(reads.rows_of(scan.relation))
    return max(found, default=None)


def _scanned(source: Plan, keys: Sequence[str]) -> tuple[Scan, list[str], tuple[exp.Expr, ...]] | None:
    """The columns of a stored relation that the keys are, and what its rows have to fulfil; None for a join."""
    conditions: tuple[exp.Expr, ...] = ()
    if isinstance(source, Scan):
        scan, names = source, list(keys)
    elif isinstance(source, Select) and len(source.inputs) == 1:
        exprs = {item.field.name: item.expr for item in source.items}
        columns = [exprs[key] for key in keys]
        if not isinstance(source.inputs[0], Scan) or not all(isinstance(each, exp.Column) for each in columns):
            return None
        scan, names, conditions = source.inputs[0], [each.name for each in columns], source.conjuncts
    else:
        return None
    plain = all(scan.schema.column(name).type.kind in _TOLD_APART for name in names)
    return (scan, names, conditions) if plain else None


def _affected(plan: Keyed, reads: EpochReads, *, broadcast: bool) -> str | None:
    """The query for the values of the key that the changes mention."""
    parts = []
    for source, keys in _driving(plan):
        changes = changes_sql(source, reads, broadcast=broadcast)
        if changes is not None:
            shown = ", ".join(f"`{key}` AS `k{number}`" for number, key in enumerate(keys))
            parts.append(f"(SELECT {shown} FROM ({changes}))")
    return f"SELECT DISTINCT * FROM ({' UNION ALL '.join(parts)})" if parts else None


def _emit(
    fragment: Fragment, runtime: Runtime, reads: EpochReads, wanted: _Wanted | None, *, small: bool
) -> Changes | None:
    plan = fragment.plan
    assert isinstance(plan, Keyed)
    columns = first_rows.stored_columns(plan) if wanted is not None else None
    looks_up = small and columns is None
    near = _all_put_together(plan, wanted, reads) if looks_up else [None] * len(_driving(plan))
    held = _held(fragment, plan, wanted, reads) if small else None
    changed = _near_changes(fragment, plan, near, held, runtime)
    if changed is not None:
        return runtime.emit_table(fragment.relation, fragment.schema, changed, reads.after)
    inputs = []
    for (source, keys), looked_up in zip(_driving(plan), near, strict=True):
        if looked_up is not None:
            inputs.append(restricted_rows_sql(_select(source), looked_up, reads))
        elif wanted is not None and columns is not None:
            stored = _alive(fragment, plan, wanted, held, reads, broadcast=small)
            inputs.append(_stored_and_new(source, columns, stored, reads, broadcast=small))
        elif wanted is not None:
            inputs.append(_restricted(source, keys, wanted, reads, broadcast=small))
        else:
            inputs.append(exact_sql(source, reads, reads.after))
    if len(plan.inputs) > len(inputs):
        inputs.append(partners(plan, reads, broadcast=small))
    old = _stored(fragment, plan, wanted, held, reads, broadcast=small)
    frame = reads.scope.sql(with_vnode(f"({evaluated(plan, inputs, reads)}) UNION ALL ({old})", fragment.schema))
    return runtime.emit(fragment.relation, fragment.schema, frame, reads.after, small=small)


def _all_put_together(plan: Keyed, wanted: _Wanted | None, reads: EpochReads) -> list[near_join.Joined | None]:
    """The rows of each input that have wanted values, where the driver can look them up.

    Of a semi join what is looked in comes first: rows for which there is nothing need not be looked up.
    """
    found: dict[int, near_join.Joined | None] = {}
    inputs = _driving(plan)
    for number in near_keyed.looked_in(plan):
        source, keys = inputs[number]
        found[number] = _put_together(source, keys, wanted, reads)
        if found[number] is not None and wanted is not None and wanted.near is not None:
            wanted = replace(wanted, near=_present(wanted.near, _select(source), keys, found[number]))
    rest = {number: _put_together(*each, wanted, reads) for number, each in enumerate(inputs) if number not in found}
    return [(found | rest)[number] for number in range(len(inputs))]


def _present(
    wanted: near_join.Wanted, source: Select, keys: Sequence[str], found: near_join.Joined | None
) -> near_join.Wanted:
    """The wanted values that rows of an input have, as far as the driver can tell."""
    table = near_join.fields_of(source, found) if found is not None else None
    held = table.select(list(keys)) if table is not None else None
    if held is None or held.schema.types != wanted.rows.schema.types:
        return wanted
    mine, theirs = codes(wanted.rows, held)
    return near_join.Wanted(wanted.rows.filter(pa.array(np.isin(mine, theirs))), wanted.total)


def _put_together(
    source: Plan, keys: Sequence[str], wanted: _Wanted | None, reads: EpochReads
) -> near_join.Joined | None:
    """The rows of an input that have wanted values, where the driver can look them up."""
    if wanted is None or wanted.near is None or not isinstance(source, Scan | Select):
        return None
    return near_join.restricted(_select(source), keys, wanted.near, reads)


def _select(source: Plan) -> Select:
    if isinstance(source, Scan):
        return make_select([source], [], [Item(each, input_column(0, each.name)) for each in source.fields])
    assert isinstance(source, Select)
    return source


def _held(fragment: Fragment, plan: Keyed, wanted: _Wanted | None, reads: EpochReads) -> pa.Table | None:
    """What the relation holds for the wanted values, where the driver can look it up."""
    if wanted is None or wanted.near is None:
        return None
    return near_join.stored(Scan(fragment.relation, fragment.schema), plan.partition, wanted.near, reads)


def _near_changes(
    fragment: Fragment,
    plan: Keyed,
    inputs: Sequence[near_join.Joined | None],
    held: pa.Table | None,
    runtime: Runtime,
) -> pa.Table | None:
    """The rows that come and those that leave, all of it by the driver; None where Spark has to evaluate something."""
    if held is None or len(inputs) < len(plan.inputs):
        return None
    tables = []
    for source, rows in zip(plan.inputs, inputs, strict=True):
        table = near_join.fields_of(_select(source), rows) if rows is not None else None
        if table is None:
            return None
        tables.append(table)
    coming = near_keyed.evaluated(plan, tables, runtime.limits.inline_rows_max)
    if coming is None:
        return None
    names = list(fragment.schema.names)
    target = pa.schema([pa.field(column.name, column.type.arrow) for column in fragment.schema.columns])
    rows = pa.concat_tables([coming.select(names).cast(target), held.select(names).cast(target)])
    numbers = vnodes_of(rows, fragment.schema)
    if numbers is None:
        return None
    signs = np.repeat(np.array([1, -1], np.int8), [coming.num_rows, held.num_rows])
    return rows.append_column(VNODE, numbers).append_column(OP, pa.array(signs))


def _driving(plan: Keyed) -> list[tuple[Plan, tuple[str, ...]]]:
    """The inputs whose changes count, with the fields that hold the key."""
    both = list(zip(plan.inputs, plan.keys, strict=True))
    return both[:1] if plan.looked_up is not None else both


def partners(plan: Keyed, reads: EpochReads, *, broadcast: bool) -> str:
    """The rows of the second input at the new epoch that rows of the first one, which is `l0` there, may join with.

    Where those are many it is all rows: to look for partners twice would gain nothing.
    """
    source = plan.inputs[1]
    rows = exact_sql(source, reads, reads.after)
    if not plan.looked_up or not broadcast:
        return rows
    names = ", ".join(f"s.`{field.name}`" for field in source.fields)
    same = " AND ".join(f"s.`{theirs}` <=> w.`{mine}`" for mine, theirs in plan.looked_up)
    return f"SELECT /*+ BROADCAST(w) */ {names}, s.`{OP}` FROM ({rows}) s LEFT SEMI JOIN l0 w ON {same}"


def evaluated(plan: Keyed, inputs: Sequence[str], reads: EpochReads) -> str:
    """The node's query over queries for its inputs, at the time of the new epoch; `_op` is 1."""
    tables = ", ".join(f"l{number} AS ({query})" for number, query in enumerate(inputs))
    columns = [f"cast(`{field.name}` as {field.type.spark}) AS `{field.name}`" for field in plan.columns]
    arrival = plan.looked_up is not None and len(plan.inputs) == 1
    body = at(plan.body.transform(tolerant), reads.now_ms(reads.after), stored=arrival)
    return f"SELECT {', '.join(columns)}, cast(1 as tinyint) AS `{OP}` FROM (WITH {tables} {body})"


def _stored(
    fragment: Fragment,
    plan: Keyed,
    wanted: _Wanted | None,
    held: pa.Table | None,
    reads: EpochReads,
    *,
    broadcast: bool,
) -> str:
    """What the relation holds for the wanted values, as rows that leave. Signs of the log add up at the end."""
    names = ", ".join(f"s.`{name}`" for name in fragment.schema.names)
    leaving = f"SELECT {names}, cast(-s.`{OP}` as tinyint) AS `{OP}`"
    if wanted is None:
        return f"{leaving} FROM {reads.weighted(fragment.relation, reads.before)} s"
    if held is not None:
        frame = local_frame(reads.runtime.spark, held.drop_columns([OP]), spark_ddl(fragment.schema, ()))
        return f"SELECT {names}, cast(-1 as tinyint) AS `{OP}` FROM {reads.scope.view(frame)} s"
    lookup = _conditions(wanted, [(name, field_of(plan, name).type) for name in plan.partition])
    stored = reads.weighted(fragment.relation, reads.before, lookup.sql if lookup else None)
    hint = "/*+ BROADCAST(w) */ " if broadcast else ""
    same = _same("s", plan.partition)
    return (
        f"{leaving.replace('SELECT ', f'SELECT {hint}', 1)} FROM {stored} s LEFT SEMI JOIN {wanted.view()} w ON {same}"
    )


def _stored_and_new(
    source: Plan, columns: Mapping[str, str], stored: str, reads: EpochReads, *, broadcast: bool
) -> str:
    """The rows of an input among which the first of each partition are: those that are stored, and those that came.

    `columns` names the stored column that holds a field of the input. The query asks nothing of the other fields.
    """
    held = []
    for each in source.fields:
        value = f"`{columns[each.name]}`" if each.name in columns else f"cast(null as {each.type.spark})"
        held.append(f"{value} AS `{each.name}`")
    shown = ", ".join(f"`{each.name}`" for each in source.fields)
    new = changes_sql(source, reads, broadcast=broadcast)
    assert new is not None  # they mention the values that are wanted
    before = f"SELECT {', '.join(held)}, cast(1 as tinyint) AS `{OP}` FROM ({stored})"
    return f"{before} UNION ALL SELECT {shown}, `{OP}` FROM ({new})"


def _alive(
    fragment: Fragment, plan: Keyed, wanted: _Wanted, held: pa.Table | None, reads: EpochReads, *, broadcast: bool
) -> str:
    """The query for what the relation holds for the wanted values."""
    names = ", ".join(f"`{name}`" for name in fragment.schema.names)
    leaving = _stored(fragment, plan, wanted, held, reads, broadcast=broadcast)
    if held is not None:
        return f"SELECT {names} FROM ({leaving})"
    return f"SELECT {names} FROM ({leaving}) GROUP BY {names} HAVING sum(`{OP}`) < 0"


def _restricted(source: Plan, keys: Sequence[str], wanted: _Wanted, reads: EpochReads, *, broadcast: bool) -> str:
    """The rows of an input at the new epoch that have one of the wanted values."""
    match source:
        case Scan():
            lookup = _conditions(wanted, [(key, field_of(source, key).type) for key in keys])
            names = ", ".join(f"s.`{name}`" for name in source.schema.names)
            copy = index_scan(source, lookup, source.schema.names, reads) if lookup is not None else None
            at = (source, reads.after) if copy is None else (copy, reads.before)
            rows = exact_sql(at[0], reads, at[1], lookup.sql if lookup else None)
            hint = "/*+ BROADCAST(w) */ " if broadcast else ""
            return (
                f"SELECT {hint}{names}, s.`{OP}` FROM ({rows}) s LEFT SEMI JOIN {wanted.view()} w ON {_same('s', keys)}"
            )
        case UnionAll():
            parts = [_restricted(each, keys, wanted, reads, broadcast=broadcast) for each in source.inputs]
            return " UNION ALL ".join(f"({each})" for each in parts)
        case _:
            assert isinstance(source, Select)
            columns = ", ".join(f"`k{number}` AS `{key}`" for number, key in enumerate(keys))
            view = f"(SELECT {columns} FROM {wanted.view()})"
            lookups = _lookups(source, keys, wanted)
            return restricted_sql(source, reads, reads.after, keys, view, broadcast=broadcast, lookups=lookups)


def _same(alias: str, names: Sequence[str]) -> str:
    return " AND ".join(f"{alias}.`{name}` <=> w.`k{number}`" for number, name in enumerate(names))


def _conditions(wanted: _Wanted, columns: Sequence[tuple[str, SqlType]]) -> Lookup | None:
    """Conditions on columns that hold the key, for a scan to skip pages by."""
    found = []
    for number, (name, type_) in enumerate(columns):
        values = wanted.values(number)
        if values is not None:
            found.append((name, key_predicate(name, type_, values)))
    return Lookup.of(found)


def _lookups(source: Select, keys: Sequence[str], wanted: _Wanted) -> dict[int, Lookup]:
    """Conditions on the Scans under a join: on the key's own columns, and on those that must equal them."""
    expressions = {item.field.name: item.expr.unnest() for item in source.items}
    found: dict[int, list[tuple[str, str | None]]] = {}
    for number, key in enumerate(keys):
        values = wanted.values(number)
        if values is None:
            continue
        for column in _equal_columns(source, expressions[key]):
            index = input_index(column)
            scan = source.inputs[index]
            if isinstance(scan, Scan) and field_of(scan, column.name).type.bare == field_of(source, key).type.bare:
                predicate = key_predicate(column.name, field_of(scan, column.name).type, values)
                found.setdefault(index, []).append((column.name, predicate))
    lookups = {index: Lookup.of(each) for index, each in found.items()}
    return {index: each for index, each in lookups.items() if each is not None}


def _equal_columns(source: Select, start: exp.Expr) -> list[exp.Column]:
    """The columns that conditions of the join set equal to an expression, itself among them."""
    found = {start: None} if isinstance(start, exp.Column) else {}
    growing = True
    while growing:
        growing = False
        for condition in source.conjuncts:
            if isinstance(condition, exp.EQ):
                left, right = condition.left.unnest(), condition.right.unnest()
                for mine, other in ((left, right), (right, left)):
                    if mine in found and isinstance(other, exp.Column) and other not in found:
                        found[other] = None
                        growing = True
    return [each for each in found if isinstance(each, exp.Column)]


__all__ = ["build", "evaluated", "partners", "step"]
