"""Rows that meet a row with their primary key: which of them count, and what they make of it.

A table with version columns takes a row only if its version is not older than that of the row that is there. Versions
are compared column by column; no version at all (NULL) is older than any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from seiche.far_days import arrow_table, python_rows
from seiche.model import RelationSchema
from seiche.storage.changes import same_key_sql
from seiche.stream.runtime import Runtime

_EARLIER, _STORED = "_earlier", "_stored"


class Conflict(Enum):
    """What an insert does to a row whose primary key is there already."""

    OVERWRITE = "overwrite"
    IGNORE = "ignore"
    UPDATE_IF_NOT_NULL = "do update if not null"


def in_turn(
    rows: pa.Table, existing: pa.Table, key: Sequence[str], versions: Sequence[str], conflict: Conflict
) -> pa.Table:
    """What stands in the place of `existing` after each of `rows` came in turn."""
    columns = existing.column_names
    now = {tuple(row[name] for name in key): row for row in python_rows(existing)}
    for row in python_rows(rows.select(columns)):
        place = tuple(row[name] for name in key)
        before = now.get(place)
        if before is None:
            now[place] = row
        elif _version(row, versions) >= _version(before, versions):
            fills = conflict is Conflict.UPDATE_IF_NOT_NULL
            now[place] = {c: before[c] if fills and row[c] is None else row[c] for c in columns}
    return arrow_table(list(now.values()), existing.schema)


def _version(row: Mapping[str, Any], versions: Sequence[str]) -> list[tuple[bool, Any]]:
    return [(row[name] is not None, row[name]) for name in versions]


def not_outdated(
    runtime: Runtime, rows: DataFrame, stored: DataFrame, schema: RelationSchema, versions: Sequence[str], order: str
) -> DataFrame:
    """`rows` without those that are older than the stored row of their key, or than one before them in `order`."""
    keys = ", ".join(f"`{name}`" for name in schema.key)
    same = same_key_sql(schema, "n", "o")
    with runtime.scope() as scope:
        new, old = scope.view(rows), scope.view(stored)
        # Spark compares structs field by field, NULL first.
        earlier = f"PARTITION BY {keys} ORDER BY `{order}` ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        windowed = f"SELECT *, max({_struct('', versions)}) OVER ({earlier}) AS `{_EARLIER}` FROM {new}"
        found = f"SELECT {keys}, {_struct('', versions)} AS `{_STORED}` FROM {old}"
        version = _struct("n.", versions)
        joined = (
            f"SELECT n.* FROM ({windowed}) n LEFT JOIN ({found}) o ON {same}"
            f" WHERE (n.`{_EARLIER}` IS NULL OR {version} >= n.`{_EARLIER}`)"
            f" AND (o.`{_STORED}` IS NULL OR {version} >= o.`{_STORED}`)"
        )
        return scope.sql(joined).drop(_EARLIER)


def _struct(prefix: str, versions: Sequence[str]) -> str:
    return "named_struct(" + ", ".join(f"'{name}', {prefix}`{name}`" for name in versions) + ")"
