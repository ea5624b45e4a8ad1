"""Vnodes by the driver against vnodes by Spark: the same random keys to both."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seiche.model import Column, RelationSchema, Spread
from seiche.query import open_scope
from seiche.storage.changes import vnode_sql
from seiche.storage.vnodes import TEXTS_MAX, vnodes
from seiche.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NUMERIC,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    character,
)

VALUES: dict[SqlType, list[Any]] = {
    SMALLINT: [None, 0, -1, -(2**15), 2**15 - 1, 77],
    INTEGER: [None, 0, -1, -(2**31), 2**31 - 1, 4711],
    BIGINT: [None, 0, -1, -(2**63), 2**63 - 1, 10**12],
    BOOLEAN: [None, True, False],
    DATE: [None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29)],
    TIMESTAMP: [None, datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(2024, 2, 29, 1, 2, 3, 4)],
    TIMESTAMPTZ: [None, datetime(1900, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 1, 2, 3, 4, tzinfo=UTC)],
    VARCHAR: [None, "", "a", "ab", "abc", "abcd", "harbour", "a harbour", "é𝄞" * 7, "x" * 31, "y" * 32, "z" * 101],
}


@pytest.mark.spark
@pytest.mark.parametrize(
    "types",
    [
        *((each,) for each in VALUES),
        (BIGINT, DATE, INTEGER),
        (VARCHAR, VARCHAR),
        (INTEGER, VARCHAR, BOOLEAN, TIMESTAMP),
    ],
    ids=str,
)
@pytest.mark.parametrize("spread", Spread)
def test_the_driver_and_spark_find_the_same_vnodes(
    spark: SparkSession, types: tuple[SqlType, ...], spread: Spread
) -> None:
    chance = random.Random(len(types))
    columns = [pa.array([chance.choice(VALUES[each]) for _ in range(200)], each.arrow) for each in types]
    names = tuple(f"k{number}" for number in range(len(types)))
    ddl = ", ".join(f"`{name}` {each.spark}" for name, each in zip(names, types, strict=True))
    shape = [Column(name, each) for name, each in zip(names, types, strict=True)]
    schema = RelationSchema(tuple(shape), names, spread=spread)
    with open_scope(spark) as scope:
        view = scope.view(spark.createDataFrame(pa.table(columns, names=names), schema=ddl))
        expected = [row[0] for row in scope.sql(f"SELECT {vnode_sql(schema)} FROM {view}").collect()]
    found = vnodes(columns, types, spread)
    assert found is not None
    assert found.to_pylist() == expected


@pytest.mark.parametrize("type_", [DOUBLE, NUMERIC, character(3)])
def test_types_with_rules_of_their_own_are_left_to_spark(type_: SqlType) -> None:
    assert vnodes([pa.nulls(1, type_.arrow)], [type_], Spread.NEIGHBOURS) is None


def test_many_texts_are_left_to_spark() -> None:
    assert vnodes([pa.array(["a"] * (TEXTS_MAX + 1))], [VARCHAR], Spread.NEIGHBOURS) is None
