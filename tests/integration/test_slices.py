"""The conditions on slices of a snapshot, evaluated by Spark: every row is in exactly one."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seiche.model import VNODE, VNODES, Column, RelationId, RelationSchema
from seiche.stream.backfill.progress import InputProgress, next_slice
from seiche.stream.backfill.slices import can_cut, position_of, read_until, within
from seiche.types import BIGINT, BYTEA, DATE, DOUBLE, TIMESTAMP, VARCHAR, SqlType, numeric

pytestmark = pytest.mark.spark

KEYS: dict[str, tuple[SqlType, list[object]]] = {
    "number": (BIGINT, [None, -5, 0, 3, 2**62]),
    "name": (VARCHAR, [None, "", "Ær'ø", "back\\slash", "z"]),
    "day": (DATE, [None, dt.date(1999, 12, 31), dt.date(2024, 2, 29)]),
    "moment": (TIMESTAMP, [dt.datetime(2024, 1, 1, 1, 2, 3, 456789), dt.datetime(1970, 1, 1)]),
    "fee": (numeric(10, 2), [None, Decimal("-1.50"), Decimal("1.50")]),
    "mark": (BYTEA, [None, b"", b"\x00\xff"]),
}


@pytest.mark.parametrize("names", [("number", "name"), ("day", "moment", "mark"), ("fee", "number")])
def test_slices_cut_by_keys_of_any_type_read_every_row_once(spark: SparkSession, names: tuple[str, ...]) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    schema = RelationSchema(tuple(Column(name, KEYS[name][0]) for name in names), names)
    assert can_cut(schema)
    chance = random.Random(7)
    every: list[tuple[object, ...]] = [()]
    for name in names:
        every = [(*head, value) for head in every for value in KEYS[name][1]]
    columns = {name: pa.array([row[i] for row in every], KEYS[name][0].arrow) for i, name in enumerate(names)}
    columns[VNODE] = pa.array([chance.choice((0, 3, 255)) for _ in every], pa.int16())
    view = "slices_" + "_".join(names)
    session.createDataFrame(pa.table(columns)).cache().createOrReplaceTempView(view)
    counts = dict(session.sql(f"SELECT `{VNODE}`, count(*) FROM {view} GROUP BY 1").collect())
    progress = InputProgress(RelationId(1), tuple(counts.get(vnode, 0) for vnode in range(VNODES)))
    key = ", ".join(f"`{name}`" for name in names)
    seen = 0
    while (piece := next_slice(progress, 9)) is not None:
        where = within(piece, schema) or "true"
        limit = f"ORDER BY {key} LIMIT {piece.limit}" if piece.limit is not None else ""
        found = session.sql(f"SELECT {key} FROM {view} WHERE {where} {limit}").toArrow()
        last = position_of(found, schema) if piece.limit is not None else None
        progress = progress.passed(piece, last, found.num_rows)
        seen += found.num_rows
        condition = read_until(progress, schema) or "true"
        (read,) = session.sql(f"SELECT count(*) FROM {view} WHERE {condition}").collect()
        assert read[0] == seen == progress.done, (piece, condition)
    assert seen == len(every)


def test_a_key_that_text_cannot_tell_is_not_cut() -> None:
    assert not can_cut(RelationSchema((Column("height", DOUBLE),), ("height",)))
