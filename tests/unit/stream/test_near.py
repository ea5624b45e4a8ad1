"""Filters and projections by Arrow, without Spark: what they give, and what they leave to Spark."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from seiche.model import EPOCH, OP, VNODE, RelationId
from seiche.storage.changes import Changes, arrow_schema
from seiche.stream.near import mapped
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SCHEMAS, SHIPS, Harbour

FEES = [None, Decimal("0.10"), Decimal("10.00"), Decimal("10.01")]
BERTH_ROWS = [
    {"id": 1, "quay": "north", "depth": 10.0, "free": True},
    {"id": 2, "quay": "north", "depth": 10.5, "free": False},
    {"id": 3, "quay": None, "depth": None, "free": None},
    {"id": 4, "quay": "süd", "depth": -0.0, "free": True},
    {"id": -5, "quay": "", "depth": 1e300, "free": None},
]


def changes_of(relation: RelationId, rows: list[dict[str, Any]]) -> dict[RelationId, Changes]:
    schema = SCHEMAS[relation]
    whole = [{VNODE: number, OP: 1 - 2 * (number % 2), EPOCH: 1, **row} for number, row in enumerate(rows)]
    return {
        relation: Changes(relation, schema, len(rows), (), pa.Table.from_pylist(whole, schema=arrow_schema(schema)))
    }


def answer(query: str, relation: RelationId, rows: list[dict[str, Any]]) -> pa.Table | None:
    (fragment,) = Harbour().fragments(query)
    return mapped(fragment.plan, fragment.schema, changes_of(relation, rows))


def ids(condition: str) -> list[int]:
    found = answer(f"SELECT id FROM berths WHERE {condition}", BERTHS, BERTH_ROWS)
    assert found is not None, "left to Spark"
    return [int(each) for each in found["id"].to_pylist()]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("id > 2", [3, 4]),
        ("id <= -5", [-5]),
        ("id = 2", [2]),
        ("id <> 2", [1, 3, 4, -5]),
        ("2 < id", [3, 4]),
        ("id IN (1, 4, 9)", [1, 4]),
        ("id BETWEEN 1 AND 2", [1, 2]),
        ("depth > 10", [2, -5]),
        ("depth = 0", [4]),
        ("depth >= 0", [1, 2, 4, -5]),
        ("NOT depth > 10", [1, 4]),
        ("quay = 'north'", [1, 2]),
        ("quay < 'north'", [-5]),
        ("quay > 'o'", [4]),
        ("quay IS NULL", [3]),
        ("quay LIKE 'no%'", [1, 2]),
        ("quay LIKE '%th'", [1, 2]),
        ("quay LIKE '%ü%'", [4]),
        ("id + 1 > 3", [3, 4]),
        ("id * 2 - 1 = 5", [3]),
        ("quay IS NOT NULL", [1, 2, 4, -5]),
        ("free", [1, 4]),
        ("NOT free", [2]),
        ("free OR id = 2", [1, 2, 4]),
        ("quay = 'north' AND NOT free", [2]),
        ("NOT (quay = 'north' OR free)", []),
        ("id = 3 OR depth > 10", [2, 3, -5]),
        ("id = id AND quay = quay", [1, 2, 4, -5]),
    ],
)
def test_conditions_keep_the_rows_for_which_they_are_true(condition: str, expected: list[int]) -> None:
    assert ids(condition) == expected


def test_rows_keep_their_sign_and_vnode() -> None:
    found = answer("SELECT quay, id FROM berths WHERE id > 1", BERTHS, BERTH_ROWS)
    assert found is not None
    assert found.to_pylist() == [
        {"quay": "north", "id": 2, VNODE: 1, OP: -1},
        {"quay": None, "id": 3, VNODE: 2, OP: 1},
        {"quay": "süd", "id": 4, VNODE: 3, OP: -1},
    ]


def test_hidden_key_is_carried_along() -> None:
    row = {"ship": 1, "berth": 2, "day": date(2024, 2, 29), "at": None, "tons": 4, "crew": ["Ada"], "_row_id": 77}
    found = answer("SELECT crew, ship FROM arrivals WHERE day >= DATE '2024-02-29'", ARRIVALS, [row])
    assert found is not None
    assert found.to_pylist() == [{"crew": ["Ada"], "ship": 1, "_k0_row_id": 77, VNODE: 0, OP: 1}]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id / 2 AS id, depth FROM berths",
        "SELECT id, depth::real AS depth FROM berths",  # another type
        "SELECT id FROM berths WHERE depth + 1 > 2",
        "SELECT id FROM berths WHERE quay LIKE 'n_rth'",
        "SELECT id FROM berths WHERE quay IN ('a', NULL)",
        "SELECT id FROM berths WHERE depth > 10.5",
        "SELECT id FROM berths WHERE length(quay) = 5",
        "SELECT id FROM berths WHERE 1 = 1 AND coalesce(free, true)",
        "SELECT a.id FROM berths a JOIN berths b ON a.id = b.id",
        "SELECT quay, count(*) AS n FROM berths GROUP BY quay",
        "SELECT id FROM berths UNION ALL SELECT id FROM berths",
    ],
)
def test_everything_else_is_left_to_spark(query: str) -> None:
    fragment = Harbour().fragments(query)[-1]
    assert mapped(fragment.plan, fragment.schema, changes_of(BERTHS, BERTH_ROWS)) is None


def test_numbers_with_digits_behind_the_point_are_compared_and_computed_exactly() -> None:
    rows = [
        {"id": n, "name": "Aurora", "flag": "NO", "tons": n, "draught": 1.5, "fee": fee} for n, fee in enumerate(FEES)
    ]
    found = answer("SELECT id, fee * tons AS all_fees FROM ships WHERE fee > 0.1 AND fee <= 10", SHIPS, rows)
    assert found is not None
    assert list(zip(*(found[name].to_pylist() for name in ("id", "all_fees")), strict=True)) == [(2, Decimal("20.00"))]


def test_floats_of_single_precision_are_left_to_spark() -> None:
    row = {"id": 1, "name": "Aurora", "flag": "NO", "tons": 5, "draught": 1.5, "fee": None}
    assert answer("SELECT id FROM ships WHERE draught < 2", SHIPS, [row]) is None


def test_nan_is_left_to_spark() -> None:
    row = {"id": 1, "quay": None, "depth": float("nan"), "free": None}
    assert answer("SELECT id FROM berths WHERE depth > 10", BERTHS, [row]) is None
    assert answer("SELECT id, depth FROM berths WHERE id = 1", BERTHS, [row]) is not None


def test_rows_that_are_not_on_the_driver_are_left_to_spark() -> None:
    (fragment,) = Harbour().fragments("SELECT id FROM berths")
    far = {BERTHS: Changes(BERTHS, SCHEMAS[BERTHS], 5, ())}
    assert mapped(fragment.plan, fragment.schema, far) is None
