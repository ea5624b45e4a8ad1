"""Files of a relation whose columns have changed since they were written.

A column keeps its name in files for ever, and no other column of the relation ever gets that name: a renamed column is
found under its old one, and one that was dropped and added again is not mistaken for the one before. A file that lacks
a column holds that column's constant in every row. A struct in a file lacks the fields that its column got later: they
are NULL.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from seiche.model import Column, RelationSchema
from seiche.storage.changes import EXTRA_TYPES, STORED_EXTRA, arrow_schema, spark_ddl


def as_first_written(schema: RelationSchema) -> bool:
    """Whether no column was renamed or added with a constant: names in files are those of the relation."""
    return all(column.stored is None and column.missing is None for column in schema.columns)


def to_files(table: pa.Table, schema: RelationSchema) -> pa.Table:
    """Rows of the relation under the names that files have for them."""
    if as_first_written(schema):
        return table
    names = {column.name: column.file_name for column in schema.columns}
    return table.rename_columns([names.get(name, name) for name in table.column_names])


def from_files(table: pa.Table, schema: RelationSchema) -> pa.Table:
    """Rows as a file has them, as rows of the relation: shaped like a segment."""
    target = arrow_schema(schema)
    if as_first_written(schema) and table.column_names == target.names and _has_all_fields(table, target, schema):
        return table
    columns = {column.name: column for column in schema.columns}
    held = set(table.column_names)
    arrays = []
    for field in target:
        column = columns.get(field.name)
        name = field.name if column is None else column.file_name
        array = table[name] if name in held or column is None else constant(column, table.num_rows)
        arrays.append(array.cast(field.type) if column is not None and column.type.is_nested else array)
    return pa.table(arrays, schema=target)


def _has_all_fields(table: pa.Table, target: pa.Schema, schema: RelationSchema) -> bool:
    nested = [column.name for column in schema.columns if column.type.is_nested]
    return all(table.schema.field(name).type == target.field(name).type for name in nested)


def in_files(table: pa.Table, schema: RelationSchema, extra: Sequence[str] = STORED_EXTRA) -> pa.Table:
    """What a file has of the relation's columns, each of its type."""
    held = set(table.column_names)
    names = [column.file_name for column in schema.columns if column.file_name in held]
    types = {column.file_name: column.type.arrow for column in schema.columns}
    types |= {field.name: field.type for field in arrow_schema(schema) if field.name in extra}
    chosen = [*names, *extra]
    return table.select(chosen).cast(pa.schema([pa.field(name, types[name]) for name in chosen]))


def constant(column: Column, rows: int) -> pa.Array:
    """The column in a file that was written before there was one."""
    if column.missing is None:
        return pa.nulls(rows, column.type.arrow)
    (value,) = pa.array([column.missing], pa.string()).cast(column.type.arrow)
    return pa.repeat(value, rows)


def read_files(
    spark: SparkSession, locations: list[str], schema: RelationSchema, extra: tuple[str, ...], path: str | None = None
) -> DataFrame:
    """Files of one relation as a frame, without looking into them for their schema.

    With `path` each row also tells its file, in a column of that name.
    """
    told = [f"`_metadata`.`file_path` AS `{path}`"] if path is not None else []
    if as_first_written(schema):
        frame = spark.read.schema(spark_ddl(schema, extra)).parquet(*locations)
        return frame.selectExpr("*", *told) if told else frame
    frame = spark.read.schema(_reading(schema, extra)).parquet(*locations)
    named = [f"`{column.file_name}` AS `{column.name}`" for column in schema.columns]
    return frame.selectExpr(*named, *(f"`{name}`" for name in extra), *told)


def named_as_in_files(frame: DataFrame, schema: RelationSchema, extra: Sequence[str]) -> DataFrame:
    """A frame of the relation's rows under the names that files have for them."""
    if as_first_written(schema):
        return frame
    named = [f"`{column.name}` AS `{column.file_name}`" for column in schema.columns]
    return frame.selectExpr(*named, *(f"`{name}`" for name in extra))


def _reading(schema: RelationSchema, extra: Sequence[str]) -> StructType:
    """What Spark is told about the files, with what a column is where a file lacks it."""
    parts = [f"`{column.file_name}` {column.type.spark}" for column in schema.columns]
    parts += [f"`{name}` {EXTRA_TYPES[name]}" for name in extra]
    made = StructType.fromDDL(", ".join(parts)).jsonValue()
    for field, column in zip(made["fields"], schema.columns, strict=False):
        if column.missing is not None:
            text = column.missing.replace("\\", "\\\\").replace("'", "\\'")
            value = f"CAST('{text}' AS {column.type.spark})"
            field["metadata"] = {"CURRENT_DEFAULT": value, "EXISTS_DEFAULT": value}
    return StructType.fromJson(json.loads(json.dumps(made)))
