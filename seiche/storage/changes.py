"""The changes of one relation between two epochs, small on the driver or large on disk.

A row of changes has the relation's stored columns, `_vnode`, `_op` (+1 or -1) and `_epoch`. Changes of one
epoch are consolidated: a key has at most one row that leaves and one that appears, and the two differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from seiche.far_days import python_rows
from seiche.model import EPOCH, NEIGHBOURS, OP, VNODE, VNODES, Column, RelationId, RelationSchema, Segment, Spread
from seiche.types import SMALLINT, Kind, SqlType

EXTRA_TYPES = {VNODE: "smallint", OP: "tinyint", EPOCH: "bigint"}
STORED_EXTRA = tuple(EXTRA_TYPES)


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to a relation. `table` is there when the rows are few enough for the driver.

    `frame` is there when Spark has a better way to these rows than the segments, `_epoch` aside; it costs something
    only when somebody follows.
    """

    relation: RelationId
    schema: RelationSchema
    rows: int
    segments: tuple[Segment, ...]
    table: pa.Table | None = None
    frame: Callable[[], DataFrame] | None = None

    def part(self, table: pa.Table) -> Changes:
        """Some of the rows, and no way to the others."""
        return Changes(self.relation, self.schema, table.num_rows, (), table)


def arrow_schema(schema: RelationSchema) -> pa.Schema:
    """The Arrow schema of a segment."""
    return pa.schema(
        [pa.field(column.name, column.type.arrow) for column in schema.columns]
        + [pa.field(VNODE, pa.int16()), pa.field(OP, pa.int8()), pa.field(EPOCH, pa.int64())]
    )


def spark_ddl(schema: RelationSchema, extra: Sequence[str] = STORED_EXTRA) -> str:
    """The Spark schema of a relation's files as DDL; `extra` names the hidden columns of storage to include."""
    parts = [f"`{column.name}` {column.type.spark}" for column in schema.columns]
    parts += [f"`{name}` {EXTRA_TYPES[name]}" for name in extra]
    return ", ".join(parts)


def vnode_sql(schema: RelationSchema, *, key: Sequence[str] | None = None, prefix: str = "") -> str:
    """The expression of a row's vnode. `key` are the names that the key's columns have there, if they are others."""
    columns = [f"{prefix}`{name}`" for name in (schema.key if key is None else key)]
    whole = f"pmod(xxhash64({', '.join(columns)}), {VNODES})"
    if len(columns) < 2 or schema.spread is Spread.BY_WHOLE_KEY:
        return f"cast({whole} as smallint)"
    first = f"pmod(xxhash64({columns[0]}), {VNODES})"
    return f"cast({first} - {first} % {NEIGHBOURS} + {whole} % {NEIGHBOURS} as smallint)"


def number_sql(number: int) -> str:
    """A number that differs from epoch to epoch, as an expression that Spark holds as data.

    As a literal it would be part of the code that Spark generates, which would be compiled anew in every epoch, and run
    slowly until Java has compiled it, too. The expression is one that Spark's optimizer does not move a filter across.
    """
    return f"array({number}L)[spark_partition_id() * 0]"


def same_key_sql(schema: RelationSchema, left: str, right: str) -> str:
    """The condition that rows under two aliases have one key. NULL in a key is equal to NULL."""
    pairs = [(name, "<=>" if schema.column(name).nullable else "=") for name in schema.key]
    return " AND ".join(f"{left}.`{name}` {equal} {right}.`{name}`" for name, equal in pairs)


def vnode_column() -> Column:
    return Column(VNODE, SMALLINT, hidden=True)


def for_spark(table: pa.Table) -> pa.Table:
    """The table without parts that hold no row: at such a part Spark takes the whole table to end.

    One without any row keeps an empty part, which PySpark needs of columns of arrays and structs.
    """
    if not table.num_rows:
        return table.schema.empty_table()
    if all(len(chunk) for column in table.columns for chunk in column.chunks):
        return table
    return table.combine_chunks()


def local_frame(spark: SparkSession, table: pa.Table, types: str | None = None) -> DataFrame:
    """Rows on the driver as a frame, with its columns' names and types as Spark writes them if they are given."""
    return spark.createDataFrame(for_spark(table), schema=types)


def empty(schema: RelationSchema) -> pa.Table:
    return arrow_schema(schema).empty_table()


def appearing(changes: pa.Table) -> int:
    """How many rows appear."""
    return int(pc.sum(pc.equal(changes[OP], 1)).as_py() or 0)


def consolidate(
    table: pa.Table, columns: Sequence[Column], carried: tuple[str, ...] = (VNODE,), key: Sequence[str] = ()
) -> pa.Table:
    """Adds up the signs of equal rows and drops those that cancel; leaving rows come before appearing ones.

    `columns` are the stored columns of `table`; what follows from them, like `_vnode`, is `carried` along, `_epoch` is
    not. A net sign other than -1, 0 or +1 stands for that many equal rows, which a keyed relation cannot have. With a
    `key`, rows that differ in it are not compared any further.
    """
    names = [column.name for column in columns]
    body = table.select([*names, *carried, OP])
    if (
        body.num_rows > 1
        and pc.min(body[OP]).as_py() != pc.max(body[OP]).as_py()
        and not _all_differ(body, columns, key)
    ):
        if all(_groupable(column) for column in columns):
            body = _sum_signs(body, [*names, *carried])
        else:
            body = _sum_signs_by_value(body, names)
    return body.take(pc.sort_indices(body, sort_keys=[(OP, "ascending")]))


def _all_differ(rows: pa.Table, columns: Sequence[Column], key: Sequence[str]) -> bool:
    """Whether no value of the key is there twice. Only integers and text are looked at: equal ones have equal bits."""
    plain = {column.name for column in columns if column.type.is_integer or column.type.kind is Kind.VARCHAR}
    if not key or not plain.issuperset(key):
        return False
    return bool(rows.select(list(key)).group_by(list(key), use_threads=False).aggregate([]).num_rows == rows.num_rows)


def latest(table: pa.Table, schema: RelationSchema) -> pa.Table:
    """The last change of every key. `table` is in order of epoch, leaving rows first within an epoch."""
    if table.num_rows == 0:
        return table
    order = pa.array(range(table.num_rows), pa.int64())
    key_columns = [schema.column(name) for name in schema.key]
    if all(_groupable(column) for column in key_columns):
        keyed = normalised(table.select(list(schema.key)), key_columns).append_column("_seq", order)
        last = keyed.group_by(list(schema.key), use_threads=False).aggregate([("_seq", "max")])["_seq_max"]
    else:
        seen: dict[str, int] = {}
        for index, row in enumerate(python_rows(table.select(list(schema.key)))):
            seen[repr(row)] = index
        last = pa.array(list(seen.values()), pa.int64())
    return table.take(last)


def _groupable(column: Column) -> bool:
    return column.type.is_hashable


class Typed(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def type(self) -> SqlType: ...


def normalised(table: pa.Table, columns: Sequence[Typed]) -> pa.Table:
    """-0.0 and 0.0 are one value to SQL, as are all NaNs; Arrow groups by bits."""
    for index, column in enumerate(columns):
        if column.type.kind in (Kind.REAL, Kind.DOUBLE):
            values = table[column.name]
            plain = pc.if_else(pc.equal(values, 0), pa.scalar(0, values.type), values)
            plain = pc.if_else(pc.is_nan(plain), pa.scalar(float("nan"), values.type), plain)
            table = table.set_column(index, column.name, plain)
    return table


def _sum_signs(body: pa.Table, names: list[str]) -> pa.Table:
    columns = [pa.field(name, body.schema.field(name).type) for name in names]
    widened = body.set_column(body.schema.get_field_index(OP), OP, pc.cast(body[OP], pa.int64()))
    summed = widened.group_by(names, use_threads=False).aggregate([(OP, "sum")])
    summed = summed.filter(pc.not_equal(summed[f"{OP}_sum"], 0))
    arrays = [summed[field.name] for field in columns] + [pc.cast(summed[f"{OP}_sum"], pa.int8())]
    return pa.table(arrays, schema=pa.schema([*columns, pa.field(OP, pa.int8())]))


def _sum_signs_by_value(body: pa.Table, names: list[str]) -> pa.Table:
    """As `_sum_signs`, for rows with arrays or structs, which Arrow cannot group by."""
    net: dict[str, int] = {}
    first: dict[str, int] = {}
    signs = body[OP].to_pylist()
    for index, row in enumerate(python_rows(body.select(names))):
        name = repr(row)
        first.setdefault(name, index)
        net[name] = net.get(name, 0) + signs[index]
    kept = [name for name, sign in net.items() if sign != 0]
    out = body.take(pa.array([first[name] for name in kept], pa.int64()))
    return out.set_column(
        out.schema.get_field_index(OP), pa.field(OP, pa.int8()), pa.array([net[name] for name in kept], pa.int8())
    )
