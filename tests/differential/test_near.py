"""Filters by Arrow against filters by Spark: the same random rows, conditions and columns to both."""

from __future__ import annotations

import random
from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from seiche.model import EPOCH, OP, VNODE, RelationId
from seiche.plan.algebra import Select
from seiche.query import open_scope
from seiche.storage.changes import Changes, arrow_schema, spark_ddl
from seiche.stream import attempts
from seiche.stream.near import mapped
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SCHEMAS, Harbour

pytestmark = [pytest.mark.spark]

VALUES: dict[str, list[Any]] = {
    "id": [-(2**31), -1, 0, 1, 2, 3, 2**31 - 1],
    "quay": [None, "", "a", "A", "ab", "é", "z", "ÿ", "𝄞", "a ", "\x00", "it's", "a\\b"],
    "depth": [None, 0.0, -0.0, 1.0, 1.5, -1e300, 5e-324, float("inf"), float("-inf"), 2.0**53],
    "free": [None, True, False],
    "ship": [None, -1, 0, 7],
    "berth": [None, 0, 7, 2**31 - 1],
    "day": [None, date(1, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(9999, 12, 31)],
    "tons": [None, 0, 7, -(2**31)],
}
CONSTANTS = {
    "id": ["0", "-1", "2147483647", "9223372036854775807", "3000000000"],
    "quay": ["''", "'a'", "'é'", "'ab'", "'it''s'", r"'a\b'"],
    "depth": ["0", "1", "-1", "9007199254740992", "9007199254740993"],
    "ship": ["0", "7"],
    "tons": ["0", "-7", "-2147483648"],
    "day": ["DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'", "DATE '2023-11-30' + INTERVAL '3 months'"],
}
TABLES = {BERTHS: ("berths", ["id", "quay", "depth"], "free"), ARRIVALS: ("arrivals", ["ship", "tons", "day"], None)}


def _rows(rng: random.Random, relation: RelationId) -> pa.Table:
    schema = SCHEMAS[relation]
    rows = []
    for number in range(80):
        row = {c.name: rng.choice(VALUES.get(c.name, [None])) for c in schema.columns}
        rows.append(row | {"_row_id": number, VNODE: number, OP: rng.choice([1, -1]), EPOCH: 5})
    return pa.Table.from_pylist(rows, schema=arrow_schema(schema))


def _condition(rng: random.Random, columns: list[str], flag: str | None, depth: int = 0) -> str:
    kind = rng.randrange(9) if depth < 3 else rng.randrange(4)
    name = rng.choice(columns)
    if kind == 0:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if kind == 1 and flag is not None:
        return flag
    if kind == 2:
        listed = ", ".join(rng.sample(CONSTANTS[name], 2))
        return f"{name} {rng.choice(['', 'NOT '])}IN ({listed})"
    if kind <= 5:
        sides = [name, rng.choice([*CONSTANTS[name], name])]
        rng.shuffle(sides)
        return rng.choice(["=", "<>", "<", "<=", ">", ">="]).join(f" {side} " for side in sides)
    if kind == 6:
        return f"NOT ({_condition(rng, columns, flag, depth + 1)})"
    inner = [_condition(rng, columns, flag, depth + 1) for _ in range(2)]
    return "(" + rng.choice([" AND ", " OR "]).join(inner) + ")"


@pytest.mark.parametrize("relation", TABLES)
def test_arrow_and_spark_keep_the_same_rows(spark: SparkSession, relation: RelationId) -> None:
    rng = random.Random(relation)
    table, columns, flag = TABLES[relation]
    rows = _rows(rng, relation)
    schema = SCHEMAS[relation]
    changes = {relation: Changes(relation, schema, rows.num_rows, (), rows)}
    here = 0
    attempts.register(spark)
    with open_scope(spark) as scope:
        view = scope.view(spark.createDataFrame(rows, schema=spark_ddl(schema)))
        for _ in range(60):
            condition = _condition(rng, columns, flag)
            (fragment,) = Harbour().fragments(f"SELECT * FROM {table} WHERE {condition}")
            plan = fragment.plan
            assert isinstance(plan, Select)
            found = mapped(plan, fragment.schema, changes)
            if found is None:
                continue
            here += 1
            where = " AND ".join(f"({each.sql('spark')})" for each in plan.conjuncts)
            expected = scope.sql(f"SELECT `{VNODE}` FROM {view} AS l0 WHERE {where}").toArrow()
            assert found[VNODE].to_pylist() == expected[VNODE].to_pylist(), condition
    assert here > 30
