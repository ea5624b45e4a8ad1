"""What changed rows bring to their groups, by Arrow against Spark: the same random rows to both."""

from __future__ import annotations

import random
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.model import OP, Column, ObjectId
from seiche.plan.algebra import Aggregate, Select
from seiche.plan.state import group_state
from seiche.query import open_scope
from seiche.stream.joined_row import flat, flat_name, needed
from seiche.stream.merge import parts_sql
from seiche.stream.near_parts import parts
from seiche.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, NUMERIC, SMALLINT, VARCHAR, numeric
from tests.unit.plan.harbour import Harbour, schema_of

pytestmark = [pytest.mark.spark]

VALUES: dict[str, list[Any]] = {
    "port": [None, "", "a", "A", "é", "a "],
    "day": [None, date(1, 1, 1), date(2024, 2, 29)],
    "s": [None, 0, -(2**15), 2**15 - 1],
    "i": [None, 0, -(2**31), 2**31 - 1],
    "b": [None, 0, -(2**63), 2**63 - 1, 1],
    "n": [None, Decimal("0.00"), Decimal("-99999999.99"), Decimal("12.50")],
    "wide": [None, Decimal("0"), Decimal("1.5"), Decimal("-99999999999999999.123456")],
    "d": [None, 0.0, -0.0, 1.5],
    "flag": [None, True, False],
    "_row_id": [1, 2, 3],
}
CARGO = schema_of(
    {
        "port": VARCHAR,
        "day": DATE,
        "s": SMALLINT,
        "i": INTEGER,
        "b": BIGINT,
        "n": numeric(10, 2, declared=True),
        "wide": NUMERIC,
        "d": DOUBLE,
        "flag": BOOLEAN,
    }
)
CALLS = (
    *("count(*)", "count(d)", "count(port)", "sum(s)", "sum(i)", "sum(b)", "sum(n)", "sum(wide)"),
    *("sum(s * 2)", "sum(n * (1 - n))", "sum(CASE WHEN port LIKE 'a%' THEN n ELSE 0 END)"),
    *("min(i)", "max(day)", "min(d)", "max(port)", "bool_and(flag)", "bool_or(flag)"),
)


@pytest.mark.parametrize("keys", ["port", "day, flag", "n", "b, port", "extract(year from day), port", ""])
def test_arrow_and_spark_find_the_same_parts(spark: SparkSession, keys: str) -> None:
    calls = ", ".join(f"{call} AS c{number}" for number, call in enumerate(CALLS))
    shown, grouped = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
    aggregate, source = _planned(f"SELECT {shown}{calls} FROM cargo{grouped}")
    chance = random.Random(keys)
    (names,) = needed(source)
    columns = {flat_name(0, name): _values(chance, CARGO.column(name)) for name in names}
    rows = pa.table({**columns, OP: pa.array([chance.choice([1, -1]) for _ in range(200)], pa.int8())})
    state = group_state(aggregate)
    with open_scope(spark) as scope:
        types = [f"`{flat_name(0, name)}` {CARGO.column(name).type.spark}" for name in names]
        view = scope.view(spark.createDataFrame(rows, schema=", ".join([*types, f"`{OP}` tinyint"])))
        items = ", ".join(f"{flat(item.expr)} AS `{item.field.name}`" for item in source.items)
        query = parts_sql(aggregate, state, "0", f"SELECT {items}, `{OP}` FROM {view}", None)
        expected = scope.sql(query).toArrow().drop_columns(["_vnode"])
    found = parts(aggregate, source, rows)
    assert found is not None
    assert set(found.column_names) == set(expected.column_names)
    assert found.select(expected.column_names).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT port, sum(d) FROM cargo GROUP BY port",
        "SELECT port, sum(i / 2) FROM cargo GROUP BY port",
        "SELECT upper(port), count(*) FROM cargo GROUP BY upper(port)",
        "SELECT d, count(*) FROM cargo GROUP BY d",
        "SELECT count(upper(port)) FROM cargo",
    ],
)
def test_what_has_something_to_evaluate_is_left_to_spark(query: str) -> None:
    aggregate, source = _planned(query)
    (names,) = needed(source)
    columns = {flat_name(0, name): pa.nulls(1, CARGO.column(name).type.arrow) for name in names}
    assert parts(aggregate, source, pa.table({**columns, OP: pa.array([1], pa.int8())})) is None


def _planned(query: str) -> tuple[Aggregate, Select]:
    harbour = Harbour()
    cargo = CatalogObject(ObjectId(9), ObjectKind.TABLE, "cargo", "", columns=CARGO.visible, relation=CARGO)
    harbour.catalog = harbour.catalog.with_objects(cargo)
    (fragment,) = harbour.fragments(query)
    aggregate = fragment.plan
    assert isinstance(aggregate, Aggregate)
    source = aggregate.input
    assert isinstance(source, Select)
    return aggregate, source


def _values(chance: random.Random, column: Column) -> pa.Array:
    return pa.array([chance.choice(VALUES[column.name]) for _ in range(200)], column.type.arrow)
