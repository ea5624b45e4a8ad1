"""Merging the changes of few groups into their stored state, on the driver.

    changes of the groups ──┬── keys ──▶ stored rows of just these groups ──┐
                            └── parts of sums, values gained and lost ──────┴──▶ old row and new row of each

The stored rows come from the base by one lookup on the executors, and from the log as the driver remembers it. What
is left is a handful of columns with one row a group: adding them up here takes a millisecond, where a second
grouping on the executors would cost an exchange. Expressions beyond those of `seiche.stream.near_values` are Spark's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from seiche.model import EPOCH, OP, VNODE, RelationSchema
from seiche.plan.algebra import Aggregate, Call, Function
from seiche.plan.state import COUNT, ExtremeColumn, GroupState, SumColumn
from seiche.plan.words import with_columns
from seiche.storage.changes import arrow_schema, normalised
from seiche.stream.near_values import Beyond, Row, shown
from seiche.types import BIGINT, Kind, SqlType

REDO = "_redo"

_ORDERED = frozenset(
    (
        Kind.SMALLINT,
        Kind.INTEGER,
        Kind.BIGINT,
        Kind.NUMERIC,
        Kind.REAL,
        Kind.DOUBLE,
        Kind.VARCHAR,
        Kind.DATE,
        Kind.TIME,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
    )
)

_ANY_NULL_IS_NULL = pc.ScalarAggregateOptions(skip_nulls=False, min_count=0)

Ints = npt.NDArray[np.int64]


def can_merge(aggregate: Aggregate, state: GroupState) -> bool:
    """Whether Arrow can compare the groups' keys and extremes and add up their sums."""
    return (
        all(field.type.is_hashable for field in aggregate.keys)
        and all(each.type.kind in _ORDERED for each in state.extremes)
        and all(each.type.is_integer or each.type.kind is Kind.NUMERIC for each in state.sums)
    )


def parts_sql(aggregate: Aggregate, state: GroupState, vnode: str, changes: str, failed: str | None) -> str:
    """What each changed row brings: its group, its parts of the sums, and the values that extremes look at."""
    columns = [f"`{field.name}`" for field in aggregate.keys]
    columns += [f"{vnode} AS `{VNODE}`", f"`{OP}`"]
    columns += [f"cast(coalesce({each.of_row}, 0) as {each.type.spark}) AS `{each.name}`" for each in state.sums]
    columns += [f"`{each.argument}` AS `{each.name}`" for each in state.extremes]
    if failed is not None:
        columns.append(f"`{failed}`")
    return f"SELECT {', '.join(columns)} FROM ({with_columns(changes, state.prepared)})"


@dataclass(frozen=True, slots=True)
class Parts:
    """Changed rows sorted into groups: `keys` and `vnodes` have a row for each group, `of_row` numbers the rows.

    `vnodes` is None where nobody has computed them; of groups that are stored they are known all the same.
    """

    rows: pa.Table
    keys: pa.Table
    vnodes: pa.ChunkedArray | None
    of_row: Ints

    @staticmethod
    def of(aggregate: Aggregate, rows: pa.Table) -> Parts:
        # Spark tells which columns cannot be NULL, Arrow takes that for another type.
        rows = rows.cast(pa.schema([field.with_nullable(True) for field in rows.schema]))
        keys = normalised(rows.select([field.name for field in aggregate.keys]), aggregate.keys)
        (codes,) = _codes(aggregate, [keys])
        _, first, of_row = np.unique(codes, return_index=True, return_inverse=True)
        vnodes = rows[VNODE].take(first) if VNODE in rows.column_names else None
        return Parts(rows, keys.take(first), vnodes, of_row.astype(np.int64))

    @property
    def groups(self) -> int:
        return int(self.keys.num_rows)


@dataclass(frozen=True, slots=True)
class SparkPart:
    """What Spark has to tell of groups where it is not plain to see.

    `items` gives the items for rows with the keys and the state columns, `vnodes` the vnodes for rows with the keys.
    """

    items: Callable[[pa.Table], pa.Table]
    vnodes: Callable[[pa.Table], pa.ChunkedArray]


def merge(
    aggregate: Aggregate,
    state: GroupState,
    schema: RelationSchema,
    parts: Parts,
    stored: pa.Table,
    spark: SparkPart,
) -> pa.Table | None:
    """The rows that leave and appear: stored columns, `_vnode`, `_op` and whether the row needs a redo.

    `stored` holds the base's and the log's rows of these groups with `_op` and `_epoch`, in any order. None when there
    is a value that Arrow compares otherwise than Spark.
    """
    at, had = _old_rows(aggregate, schema, parts, stored)
    old = stored.take(at[had])
    groups = np.flatnonzero(had)
    columns = _sums(state, parts, old, groups)
    alive = np.ones(parts.groups, np.bool_) if aggregate.total else _true(pc.greater(columns[COUNT], 0))
    redo = np.zeros(parts.groups, np.bool_)
    for name in state.inexact:
        redo |= _true(pc.not_equal(columns[name], 0))
    for each in state.sums:
        if each.may_overflow:
            redo |= np.asarray(pc.is_null(columns[each.name]))
    for extreme in state.extremes:
        before = _spread(old[extreme.name], groups, parts.groups)
        found = _extreme(extreme, parts, before)
        if found is None:
            return None
        columns[extreme.name], doubtful = found
        redo |= doubtful
    with_keys = {field.name: parts.keys[field.name] for field in aggregate.keys}
    items = _items(aggregate, {**with_keys, **columns}) or spark.items(pa.table({**with_keys, **columns}))
    vnodes = parts.vnodes if parts.vnodes is not None else _vnodes(parts, stored, at, spark)
    return _apart(schema, vnodes, old, groups, {**columns, **_columns(items)}, alive, redo)


def _vnodes(parts: Parts, stored: pa.Table, at: Ints, spark: SparkPart) -> pa.ChunkedArray:
    """The groups' vnodes: as stored, of new groups as Spark computes them."""
    known = at >= 0
    if known.all():
        return stored[VNODE].take(pa.array(at))
    found = np.zeros(parts.groups, np.int16)
    found[known] = np.asarray(stored[VNODE].take(pa.array(at[known])))
    found[~known] = np.asarray(spark.vnodes(parts.keys.filter(pa.array(~known))))
    return pa.chunked_array([pa.array(found)])


def _old_rows(
    aggregate: Aggregate, schema: RelationSchema, parts: Parts, stored: pa.Table
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """For each group the position of its last row in `stored`, and whether that is an arrival."""
    last = np.full(parts.groups, -1, np.int64)
    if stored.num_rows:
        keys = stored.select(list(schema.key)).rename_columns(parts.keys.column_names)
        wanted, present = _codes(aggregate, [parts.keys, keys])
        group_of = np.full(int(max(wanted.max(), present.max())) + 1, -1, np.int64)
        group_of[wanted] = np.arange(parts.groups)
        order = np.lexsort((np.asarray(stored[OP]), np.asarray(stored[EPOCH])))
        order = order[group_of[present[order]] >= 0]
        last[group_of[present[order]]] = order  # the last of several wins
        had = (last >= 0) & (np.asarray(stored[OP])[last] > 0)
    else:
        had = last >= 0
    return last, had


def _codes(aggregate: Aggregate, tables: list[pa.Table]) -> list[Ints]:
    """A number for each row, equal for equal keys; NULL equals NULL."""
    whole = normalised(pa.concat_tables(tables), aggregate.keys)
    codes = np.zeros(whole.num_rows, np.int64)
    for column in whole.columns:
        found = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode").indices
        own = np.asarray(found).astype(np.int64)
        _, codes = np.unique(codes * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
    ends = np.cumsum([table.num_rows for table in tables])[:-1]
    return np.split(codes, ends)


def _sums(state: GroupState, parts: Parts, old: pa.Table, groups: Ints) -> dict[str, pa.Array]:
    """The counts and sums after the changes, a value a group; NULL where a sum has outgrown its type."""
    number = pa.array(np.concatenate([parts.of_row, groups]))
    values = {COUNT: _joined(parts.rows[OP], old[COUNT], BIGINT)}
    for each in state.sums:
        values[each.name] = _joined(parts.rows[each.name], old[each.name], each.type)
    rough = {f"~{each.name}": pc.cast(values[each.name], pa.float64()) for each in state.sums if each.may_overflow}
    table = pa.table({"g": number, **values, **rough})
    wanted = [(name, "sum", _ANY_NULL_IS_NULL) for name in table.column_names if name != "g"]
    summed = table.group_by("g", use_threads=False).aggregate(wanted).sort_by("g")
    found = {COUNT: summed[f"{COUNT}_sum"].combine_chunks()}
    for each in state.sums:
        found[each.name] = _fitting(each, summed)
    return found


def _fitting(each: SumColumn, summed: pa.Table) -> pa.Array:
    total = summed[f"{each.name}_sum"].combine_chunks()
    if each.may_overflow:
        assert each.type.precision is not None and each.type.scale is not None
        limit = 10.0 ** (each.type.precision - each.type.scale) * (1 - 1e-12)
        fits = pc.less(pc.abs(summed[f"~{each.name}_sum"].combine_chunks()), limit)
        total = pc.if_else(fits, total, pa.scalar(None, total.type))
    return total.cast(each.type.arrow)


def _joined(parts: pa.ChunkedArray, old: pa.ChunkedArray, type_: SqlType) -> pa.ChunkedArray:
    return pa.chunked_array([*parts.cast(type_.arrow).chunks, *old.cast(type_.arrow).chunks], type_.arrow)


def _extreme(each: ExtremeColumn, parts: Parts, before: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]] | None:
    """The extreme after the changes, and where it cannot be told: the old one left and nothing outdid it.

    None when a NaN is among the values.
    """
    values = parts.rows[each.name].combine_chunks()
    if each.type.is_float and any(pc.any(pc.is_nan(some)).as_py() for some in (values, before)):
        return None
    seen = pa.table({"g": pa.array(parts.of_row), "v": values, "op": pc.cast(parts.rows[OP], pa.int64())})
    seen = seen.filter(pc.is_valid(seen["v"]))
    # A value that left as often as it came was neither gained nor lost.
    net = seen.group_by(["g", "v"], use_threads=False).aggregate([("op", "sum")])
    gained = _best(each, net.filter(pc.greater(net["op_sum"], 0)), parts.groups)
    lost = _best(each, net.filter(pc.less(net["op_sum"], 0)), parts.groups)
    reaches = pc.greater_equal if each.greatest else pc.less_equal
    outdone = _true(reaches(gained, before))
    doubtful = _true(reaches(lost, before)) & ~outdone
    better = pc.or_(pc.is_null(before), pa.array(outdone))
    return pc.if_else(pc.and_(better, pc.is_valid(gained)), gained, before), doubtful


def _best(each: ExtremeColumn, net: pa.Table, groups: int) -> pa.Array:
    function = "max" if each.greatest else "min"
    found = net.group_by("g", use_threads=False).aggregate([("v", function)])
    return _spread(found[f"v_{function}"], np.asarray(found["g"]), groups).cast(each.type.arrow)


def _spread(values: pa.ChunkedArray, groups: npt.NDArray[Any], count: int) -> pa.Array:
    """The values at their groups' places; NULL elsewhere."""
    place = np.full(count, -1, np.int64)
    place[groups] = np.arange(len(groups))
    return values.combine_chunks().take(pa.array(place, mask=place < 0))


def _items(aggregate: Aggregate, columns: Mapping[str, Any]) -> pa.Table | None:
    """The items, from the groups' keys and state; None where Spark has something to evaluate."""
    types = {field.name: field.type for field in aggregate.keys}
    values = dict(columns)
    for call in aggregate.calls:
        result = _result(call, columns)
        if result is None:
            return None
        types[call.field.name], values[call.field.name] = call.field.type, result.cast(call.field.type.arrow)
    rows = pa.table({name: values[name] for name in types})
    row = Row(rows, lambda node: (node.name, types[node.name]))
    try:
        return pa.table({item.field.name: shown(item, row, rows.num_rows) for item in aggregate.items})
    except Beyond:
        return None


def _result(call: Call, columns: Mapping[str, Any]) -> pa.Array | None:
    """What `seiche.plan.state` says in SQL; None for a float other than double precision, which Spark rounds better."""
    if call.function is Function.COUNT_ROWS:
        return columns[COUNT]
    assert call.argument is not None
    name = call.argument.name
    if call.function is Function.MIN:
        return columns[f"_min_{name}"]
    if call.function is Function.MAX:
        return columns[f"_max_{name}"]
    empty = pc.equal(columns[f"_n_{name}"], 0)
    match call.function:
        case Function.COUNT:
            return columns[f"_n_{name}"]
        case Function.SUM if call.argument.type.is_float:
            if call.field.type.kind is not Kind.DOUBLE:
                return None
            exact = columns[f"_d_{name}"].to_pylist()
            rounded = pa.array([None if each is None else float(each) for each in exact], pa.float64())
            return pc.if_else(empty, pa.scalar(None, pa.float64()), rounded)
        case Function.SUM:
            total = columns[f"_s_{name}"]
            return pc.if_else(empty, pa.scalar(None, total.type), total)
        case Function.BOOL_AND:
            return pc.if_else(empty, pa.scalar(None, pa.bool_()), pc.equal(columns[f"_f_{name}"], 0))
        case Function.BOOL_OR:
            return pc.if_else(empty, pa.scalar(None, pa.bool_()), pc.greater(columns[f"_t_{name}"], 0))


def _apart(
    schema: RelationSchema,
    vnodes: pa.ChunkedArray,
    old: pa.Table,
    groups: Ints,
    columns: Mapping[str, Any],
    alive: npt.NDArray[np.bool_],
    redo: npt.NDArray[np.bool_],
) -> pa.Table:
    names = list(schema.names)
    stays = pa.array(np.flatnonzero(alive))
    target = pa.schema([field for field in arrow_schema(schema) if field.name not in (OP, EPOCH)])
    new = pa.table([*(columns[name] for name in names), vnodes], names=[*names, VNODE]).take(stays)
    whole = pa.concat_tables([old.select(target.names).cast(target), new.cast(target)])
    signs = np.concatenate([np.full(len(groups), -1, np.int8), np.full(len(stays), 1, np.int8)])
    doubts = np.concatenate([np.zeros(len(groups), np.bool_), redo[alive]])
    return whole.append_column(OP, pa.array(signs)).append_column(REDO, pa.array(doubts))


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return {name: table[name] for name in table.column_names}


def _true(condition: pa.Array) -> npt.NDArray[np.bool_]:
    """Where a condition holds; NULL is no."""
    return np.asarray(pc.fill_null(condition, False)).astype(np.bool_)
