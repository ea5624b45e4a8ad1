"""The change log of one relation as a subscriber reads it: each change once, in order of epoch and of key.

Folding goes on while a log is retained: segments that the base holds already stay registered for their changes alone.
A log is read in parts. A part ends at the end of an epoch and is small enough for the driver wherever the epochs are;
only an epoch that is larger by itself is left to Spark.

    changes of a key in one epoch     told as
    one row that leaves               Delete
    one row that appears              Insert
    both                              UpdateDelete, then UpdateInsert
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from seiche.far_days import python_values
from seiche.model import EPOCH, OP, Epoch, RelationSchema, Segment, physical_ms
from seiche.storage.segments import SegmentWriter

# How many changes of a part may be on the driver.
PART_ROWS_MAX = 50_000

# Some rows: a list of values for each visible column, the operations and their times, and how many rows they are.
Told = tuple[list[list[Any]], int]


@dataclass(frozen=True, slots=True)
class LogPart:
    """The changes of the epochs (after, until], all of them in `segments`; `small` ones fit the driver."""

    segments: tuple[Segment, ...]
    after: Epoch
    until: Epoch
    small: bool


def first_part(segments: Sequence[Segment], after: Epoch, until: Epoch, rows_max: int = PART_ROWS_MAX) -> LogPart:
    """The part to read first of a log of the epochs (after, until]."""
    ordered = sorted(segments, key=lambda segment: segment.epoch_lo)
    rows, count = 0, 0
    while count < len(ordered) and not ordered[count].bare and rows + ordered[count].rows <= rows_max:
        rows += ordered[count].rows
        count += 1
    if count == len(ordered):
        return LogPart(tuple(ordered), after, until, small=True)
    before_rest = Epoch(ordered[count].epoch_lo - 1)
    if before_rest > after and count:
        return LogPart(tuple(ordered[:count]), after, before_rest, small=True)
    # What overlaps the large segment goes with it: an epoch is never cut in two.
    end = ordered[count].epoch_hi
    for segment in ordered[count + 1 :]:
        if segment.epoch_lo > end:
            break
        end = max(end, segment.epoch_hi)
    whole = tuple(segment for segment in ordered if segment.epoch_lo <= end)
    return LogPart(whole, after, min(end, until), small=False)


def read_small(part: LogPart, schema: RelationSchema, writer: SegmentWriter) -> pa.Table:
    """The changes of a small part, in order. No Spark action runs."""
    tables = [writer.load(segment, schema) for segment in part.segments]
    whole = pa.concat_tables(tables)
    inside = pc.and_(pc.greater(whole[EPOCH], part.after), pc.less_equal(whole[EPOCH], part.until))
    return in_order(whole.filter(inside), schema)


def in_order(table: pa.Table, schema: RelationSchema) -> pa.Table:
    """Changes by epoch and key, a row that leaves before the one that takes its place."""
    sorted_by: dict[str, pa.ChunkedArray | pa.Array] = {"epoch": table[EPOCH]}
    for position, name in enumerate(schema.key):
        for part, values in enumerate(_sortable(table[name])):
            sorted_by[f"{position}.{part}"] = values
    sorted_by["op"] = table[OP]
    keys = pa.table(sorted_by)
    return table.take(pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names]))


def frame_in_order(frame: DataFrame, schema: RelationSchema) -> DataFrame:
    """The same order by Spark."""
    return frame.orderBy(F.col(EPOCH), *by_key(schema), F.col(OP))


def by_key(schema: RelationSchema) -> list[Column]:
    return [F.col(f"`{name}`").asc_nulls_last() for name in schema.key]


def tell(batches: Iterable[pa.Table | pa.RecordBatch], schema: RelationSchema) -> Iterator[Told]:
    """The rows of batches in order, as a subscriber is told: the visible columns, the operation, and when it was."""
    held: pa.Table | None = None
    for batch in batches:
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if held is not None:
            table = pa.concat_tables([held, table.cast(held.schema)])
        held = None
        if table.num_rows and table[OP][-1].as_py() < 0:  # the row that takes its place may come with the next batch
            held = table.slice(table.num_rows - 1)
            table = table.slice(0, table.num_rows - 1)
        if table.num_rows:
            yield _told(table, schema)
    if held is not None:
        yield _told(held, schema)


def _told(table: pa.Table, schema: RelationSchema) -> Told:
    columns = [python_values(table[column.name]) for column in schema.visible]
    times = [physical_ms(Epoch(epoch)) for epoch in table[EPOCH].to_pylist()]
    return [*columns, operations(table, schema.key), times], table.num_rows


def operations(table: pa.Table, key: Sequence[str]) -> list[str]:
    """What happened, for each row of changes that are in order."""
    signs = table[OP].to_pylist()
    keys = list(zip(table[EPOCH].to_pylist(), *(python_values(table[name]) for name in key), strict=True))
    words: list[str] = []
    for index, sign in enumerate(signs):
        other = index + 1 if sign < 0 else index - 1
        paired = 0 <= other < len(signs) and signs[other] == -sign and _same(keys[index], keys[other])
        words.append(("Update" if paired else "") + ("Delete" if sign < 0 else "Insert"))
    return words


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Equality of keys, in which NaN equals NaN."""
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))


def _sortable(values: pa.ChunkedArray) -> list[pa.ChunkedArray | pa.Array]:
    """Arrays that Arrow can sort by, in place of one that it may not be able to."""
    if pa.types.is_struct(values.type):
        return [part for inner in values.flatten() for part in _sortable(inner)]
    if pa.types.is_nested(values.type):
        # Any order will do that puts equal values side by side.
        return [pa.array([repr(value) for value in values.to_pylist()], pa.string())]
    return [values]
