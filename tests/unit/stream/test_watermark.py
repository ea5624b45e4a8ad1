"""Which rows are late, and what a watermark's values are as numbers. Nothing here needs Spark."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa
import pytest

from seiche.model import Column, RelationId
from seiche.plan.algebra import Aggregate, Closing, Select
from seiche.plan.marks import literal, reach, watermark_schema
from seiche.sql.bind import Settings, bind_expression
from seiche.stream.closing import narrowed
from seiche.stream.marks import numbers
from seiche.stream.watermark import Watermark
from seiche.types import BIGINT, DATE, INTEGER, TIMESTAMP, TIMESTAMPTZ, SqlType
from tests.unit.plan.harbour import Harbour

EPOCH = datetime(1970, 1, 1)
NOON = datetime(2024, 5, 6, 12)


def watermark(type_: SqlType, expression: str = "at") -> Watermark:
    bound = bind_expression(expression, [Column("at", type_)], Settings(timezone="UTC", now_ms=0, strict=False))
    return Watermark(RelationId(9), watermark_schema(type_), "at", bound)


@pytest.mark.parametrize(
    ("type_", "values", "bound", "kept"),
    [
        (INTEGER, [3, 5, None, 7], 5, [5, None, 7]),
        (BIGINT, [-3, -5], -4, [-3]),
        (DATE, [date(1970, 1, 2), date(1970, 1, 3)], 2 * 86_400_000_000, [date(1970, 1, 3)]),
        (TIMESTAMP, [NOON - timedelta(microseconds=1), NOON], (NOON - EPOCH) // timedelta(microseconds=1), [NOON]),
    ],
)
def test_a_row_below_the_watermark_is_late_and_one_without_a_value_never(
    type_: SqlType, values: list[object], bound: int, kept: list[object]
) -> None:
    rows = pa.table({"at": pa.array(values, type_.arrow)})
    assert watermark(type_).on_time(rows, bound)["at"].to_pylist() == kept
    assert watermark(type_).on_time(rows, None).num_rows == len(values)


@pytest.mark.parametrize("type_", [INTEGER, DATE, TIMESTAMP, TIMESTAMPTZ])
def test_values_are_numbers_of_their_own_or_microseconds(type_: SqlType) -> None:
    plain = pa.array([0, 2], pa.int32()) if type_ in (INTEGER, DATE) else pa.array([0, 2], pa.int64())
    listed = pa.chunked_array([plain.cast(type_.arrow), pa.array([None], type_.arrow)])
    assert numbers(listed).tolist() == [0, 2 * 86_400_000_000 if type_ == DATE else 2]
    assert numbers(pa.chunked_array([], type_.arrow)).tolist() == []


@pytest.mark.parametrize(
    ("type_", "expression", "low", "high"),
    [
        (TIMESTAMP, "at - INTERVAL '5 minutes'", 300_000_000, 300_000_000),
        (INTEGER, "at - 10", 10, 10),
        (TIMESTAMPTZ, "at", 0, 0),
        (TIMESTAMP, "date_trunc('hour', at)", 0, 3_600_000_000),
        (TIMESTAMP, "at::date", 0, 86_400_000_000),
    ],
)
def test_an_expression_that_never_decreases_tells_how_far_it_is_from_its_column(
    type_: SqlType, expression: str, low: int, high: int
) -> None:
    found = reach(watermark(type_, expression).expression.ast)
    assert found is not None
    assert (found.column.name, found.low, found.high) == ("at", low, high)


@pytest.mark.parametrize(
    ("type_", "expression"),
    [
        (INTEGER, "10 - at"),
        (INTEGER, "at * 2"),
        (INTEGER, "coalesce(at, 0)"),
        (TIMESTAMP, "at - INTERVAL '1 month'"),
        (TIMESTAMP, "date_trunc('century', at)"),
        (TIMESTAMP, "extract(epoch FROM at)"),
        (DATE, "at + 1"),
    ],
)
def test_what_is_not_known_to_follow_a_column_does_not(type_: SqlType, expression: str) -> None:
    assert reach(watermark(type_, expression).expression.ast) is None


@pytest.mark.parametrize(
    ("source", "branches"),
    [
        ("tumble(tides, at, INTERVAL '1 hour')", 1),
        ("hop(tides, at, INTERVAL '20 minutes', INTERVAL '1 hour')", 3),
    ],
)
def test_rows_that_close_are_looked_up_by_the_stored_column(source: str, branches: int) -> None:
    plan = Harbour().plan(f"SELECT window_end, count(*) AS n FROM {source} GROUP BY 1 EMIT ON WINDOW CLOSE")
    assert isinstance(plan, Aggregate) and isinstance(plan.input, Select)
    (closing,) = plan.input.inputs
    assert isinstance(closing, Closing)
    narrow, _ = narrowed(closing, 0, 3_600_000_000)
    assert str(narrow).count("LTE(") == branches and str(narrow).count("GTE(") == branches


def test_constants_are_of_the_columns_type() -> None:
    assert literal(5, BIGINT) == "cast(5 as bigint)"
    assert literal(-1, TIMESTAMP) == "cast(timestamp_micros(-1) as timestamp_ntz)"
