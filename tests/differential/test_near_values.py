"""Expressions by Arrow against expressions by Spark: the same random rows to both."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.model import ROW_ID, ObjectId
from seiche.plan.algebra import Select
from seiche.query import open_scope
from seiche.stream import attempts
from seiche.stream.near_values import Beyond, Row, fulfilled, shown
from seiche.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, NUMERIC, SMALLINT, TIMESTAMP, VARCHAR, numeric
from tests.unit.plan.harbour import Harbour, schema_of

pytestmark = [pytest.mark.spark]

CARGO = schema_of(
    {
        "port": VARCHAR,
        "day": DATE,
        "at": TIMESTAMP,
        "s": SMALLINT,
        "i": INTEGER,
        "b": BIGINT,
        "price": numeric(15, 2, declared=True),
        "rate": numeric(5, 4, declared=True),
        "wide": NUMERIC,
        "d": DOUBLE,
        "flag": BOOLEAN,
    }
)
USUAL: dict[str, list[Any]] = {
    "port": [None, "", "a", "A", "ab", "aé", "é𝄞", "a ", "ba", "PROMO x", "x%", "a_"],
    "day": [None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(1998, 9, 2), date(9999, 12, 31)],
    "at": [None, datetime(1998, 9, 2), datetime(1998, 9, 2, 0, 0, 0, 1), datetime(1970, 1, 1), datetime(2024, 2, 29)],
    "s": [None, 0, -7, 30],
    "i": [None, 0, -7, 400],
    "b": [None, 0, -7, 5_000_000_000],
    "price": [None, Decimal("0.00"), Decimal("-99999.99"), Decimal("12.50"), Decimal("0.01")],
    "rate": [None, Decimal("0.0000"), Decimal("-0.0001"), Decimal("0.0600"), Decimal("9.9999")],
    "wide": [None, Decimal("0"), Decimal("1.5"), Decimal("-99999.123456")],
    "d": [None, 0.0, -0.0, 1.5],
    "flag": [None, True, False],
}
EXTREME: dict[str, list[Any]] = USUAL | {
    "s": [-(2**15), 2**15 - 1],
    "i": [-(2**31), 2**31 - 1],
    "b": [-(2**63), 2**63 - 1],
    "price": [Decimal("9999999999999.99"), Decimal("-9999999999999.99")],
    "rate": [Decimal("-9.9999")],
    "wide": [Decimal("99999999999999999999.999999999999999999")],
    "d": [float("nan"), float("inf"), 1e300],
}
ROWS = 60


def _number(chance: random.Random, depth: int = 0) -> str:
    kind = chance.randrange(13) if depth < 3 else chance.randrange(3)
    match kind:
        case 0 | 1:
            return chance.choice(["price", "price", "rate", "rate", "i", "b", "s", "wide"])
        case 2:
            return chance.choice(["1", "-3", "0.5", "100.00", "12345678901", "extract(year from day)"])
        case 3 | 4 | 5:
            return f"({_number(chance, depth + 1)} * {_number(chance, depth + 1)})"
        case 6 | 7:
            return f"({_number(chance, depth + 1)} {chance.choice('+-')} {_number(chance, depth + 1)})"
        case 9 | 10:
            return f"({_number(chance, depth + 1)} / {_number(chance, depth + 1)})"
        case 11:
            return f"round({_number(chance, depth + 1)}, {chance.choice([0, 2, 5, 20])})"
        case 12:
            return f"nullif({_number(chance, depth + 1)}, {_number(chance, depth + 1)})"
        case 8:
            return f"coalesce({_number(chance, depth + 1)}, {_number(chance, depth + 1)})"
        case _:
            inner = [_number(chance, depth + 1) for _ in range(2)]
            return f"CASE WHEN {_condition(chance, depth + 1)} THEN {inner[0]} ELSE {inner[1]} END"


def _condition(chance: random.Random, depth: int = 0) -> str:
    sign = chance.choice(["=", "<>", "<", "<=", ">", ">="])
    match chance.randrange(9) if depth < 3 else chance.randrange(6):
        case 0 | 1:
            return f"{_number(chance, depth + 1)} {sign} {_number(chance, depth + 1)}"
        case 2:
            pattern = chance.choice(
                ["a%", "%a", "%é%", "a", "PROMO%", "a_", "%", "a%é", "%P%O%x%", "%.%", "P%x", "%é%\U0001d11e"]
            )
            return f"port {chance.choice(['', 'NOT '])}LIKE '{pattern}'"
        case 3:
            moved = chance.choice(["+ INTERVAL '1 month'", "- INTERVAL '90 days'", "+ INTERVAL '1 year'", ""])
            return f"{chance.choice(['day', 'at'])} {sign} DATE '1998-12-01' {moved}"
        case 4:
            return f"substr(port, 1, {chance.choice([0, 1, 2])}) IN ('a', 'é', 'PR', '')"
        case 5:
            return chance.choice(["flag", "d > 1", "d = 0", "port IS NULL", "at IS NOT NULL"])
        case 6:
            return f"NOT ({_condition(chance, depth + 1)})"
        case _:
            inner = [_condition(chance, depth + 1) for _ in range(2)]
            return f"({inner[0]} {chance.choice(['AND', 'OR'])} {inner[1]})"


@pytest.mark.parametrize("values", [USUAL, EXTREME], ids=["usual values", "extreme values"])
def test_arrow_and_spark_evaluate_alike(spark: SparkSession, values: dict[str, list[Any]]) -> None:
    chance = random.Random(len(values["i"]))
    rows = _rows(chance, values)
    row = Row(rows, lambda node: (node.name, CARGO.column(node.name).type))
    told = {"values": 0, "conditions": 0}
    attempts.register(spark)
    with open_scope(spark) as scope:
        types = ", ".join(f"`{column.name}` {column.type.spark}" for column in CARGO.columns)
        view = scope.view(spark.createDataFrame(rows, schema=types))
        for _ in range(150):
            number, condition = _number(chance), _condition(chance)
            plan = _planned(f"SELECT {number} AS x FROM cargo WHERE {condition}")
            try:
                found = shown(plan.items[0], row, ROWS).to_pylist()
                told["values"] += 1
                assert found == _by_spark(scope, view, plan.items[0].expr.sql("spark")), number
            except Beyond:
                pass
            for each in plan.conjuncts:
                try:
                    found = fulfilled(each, row, ROWS).to_pylist()
                except Beyond:
                    continue
                told["conditions"] += 1
                assert found == _by_spark(scope, view, each.sql("spark")), condition
    least = 40 if values is USUAL else 15
    assert min(told.values()) > least, told


@pytest.mark.parametrize(
    "text",
    [
        "price * (1 - rate)",
        "price * (1 - price) * (1 + price)",
        "CASE WHEN port LIKE 'PROMO%' THEN price * (1 - rate) ELSE 0 END",
        "extract(year from day)",
        "price * i",
        "i + 1",
        "substr(port, 1, 2)",
        "price / 3",
        "round(price / 7, 2)",
        "i / 2.0",
        "100.0 * price * (1 - rate) / 8",
    ],
)
def test_what_reports_compute_is_told_here(text: str) -> None:
    _told(text, USUAL)


@pytest.mark.parametrize(
    "text",
    [
        "price / rate",
        "wide * wide * wide",
        "upper(port)",
        "d + 1",
        "round(price, -1)",
        "substr(port, 2, 2)",
        "day::varchar",
    ],
)
def test_what_may_be_rounded_or_has_rules_of_its_own_is_left_to_spark(text: str) -> None:
    with pytest.raises(Beyond):
        _told(text, USUAL)


@pytest.mark.parametrize("text", ["i + 1", "b * 2", "s * s * s", "price * price * price", "wide + wide + wide * 10"])
def test_a_number_that_outgrows_its_type_is_left_to_spark(text: str) -> None:
    with pytest.raises(Beyond):
        _told(text, EXTREME)


def _told(text: str, values: dict[str, list[Any]]) -> None:
    """Evaluates an expression without Spark; raises `Beyond`."""
    rows = _rows(random.Random(1), values)
    item = _planned(f"SELECT {text} AS x FROM cargo").items[0]
    shown(item, Row(rows, lambda node: (node.name, CARGO.column(node.name).type)), rows.num_rows)


def _by_spark(scope: Any, view: str, text: str) -> list[Any]:
    found = scope.sql(f"SELECT {text} AS x, l0.`{ROW_ID}` AS n FROM {view} AS l0").toArrow()
    return list(found.sort_by("n")["x"].to_pylist())


def _planned(query: str) -> Select:
    harbour = Harbour()
    cargo = CatalogObject(ObjectId(9), ObjectKind.TABLE, "cargo", "", columns=CARGO.visible, relation=CARGO)
    harbour.catalog = harbour.catalog.with_objects(cargo)
    (fragment,) = harbour.fragments(query)
    assert isinstance(fragment.plan, Select)
    return fragment.plan


def _rows(chance: random.Random, values: dict[str, list[Any]]) -> pa.Table:
    found = {}
    for column in CARGO.columns:
        one = range(ROWS) if column.name == ROW_ID else [chance.choice(values[column.name]) for _ in range(ROWS)]
        found[column.name] = pa.array(one, column.type.arrow)
    return pa.table(found)
