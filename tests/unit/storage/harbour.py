"""Relations, segments and folders for the tests of storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from seiche.model import EPOCH, OP, VNODE, Base, Column, DataFile, Epoch, RelationId, RelationSchema, Segment
from seiche.storage.changes import arrow_schema
from seiche.types import BIGINT, INTEGER, VARCHAR, SqlType

SHIPS, ARRIVALS, TIDES = RelationId(7), RelationId(8), RelationId(9)


def schema(key: Sequence[str] = ("id",), /, *, append_only: bool = False, **columns: SqlType) -> RelationSchema:
    return RelationSchema(tuple(Column(name, type_) for name, type_ in columns.items()), tuple(key), append_only)


SHIP = schema(("id",), id=INTEGER, name=VARCHAR)
TIDE = schema(("id",), id=BIGINT, name=VARCHAR, append_only=True)


def changes(shape: RelationSchema, *rows: tuple[Any, ...], epoch: int = 1) -> pa.Table:
    """Rows of changes: the stored columns, then the sign, and maybe the epoch."""
    width = len(shape.columns)
    values: dict[str, list[Any]] = {name: [row[index] for row in rows] for index, name in enumerate(shape.names)}
    values[VNODE] = [0 for _ in rows]
    values[OP] = [row[width] for row in rows]
    values[EPOCH] = [row[width + 1] if len(row) > width + 1 else epoch for row in rows]
    return pa.table(values, schema=arrow_schema(shape))


def segment(relation: int, lo: int, hi: int | None = None, *, rows: int = 1, path: str | None = None) -> Segment:
    until = lo if hi is None else hi
    return Segment(RelationId(relation), path or f"r{relation}/seg/{lo}-{until}", Epoch(lo), Epoch(until), rows, 100)


def base(relation: int, epoch: int, *paths: str, rows: int = 10) -> Base:
    files = tuple(DataFile(path, rows, 1000, 0, 255) for path in paths)
    return Base(RelationId(relation), 1, Epoch(epoch), files)
