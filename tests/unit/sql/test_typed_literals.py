"""Literals with a type before them, and moments with a zone in them."""

from __future__ import annotations

import pytest

from seiche.sql.bind import BoundRelation, Settings, bind_query
from seiche.sql.parse import parse_query
from seiche.types import DATE, TIMESTAMP, TIMESTAMPTZ, VARCHAR, SqlType


class Nothing:
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        raise AssertionError(f"no relation is asked for: {parts}")


def bound(query: str, timezone: str = "UTC") -> tuple[SqlType, str]:
    result = bind_query(parse_query(query).tree, Nothing(), Settings(timezone=timezone, now_ms=0, strict=True))
    return result.columns[0].type, result.ast.sql("spark")


@pytest.mark.parametrize(
    ("query", "type_"),
    [
        ("SELECT DATE '2024-01-31'::timestamp", TIMESTAMP),
        ("SELECT TIMESTAMP '2024-01-31 10:00'::date", DATE),
        ("SELECT TIMESTAMP '2024-01-31 10:00'::date::text", VARCHAR),
        ("SELECT '2024-01-31'::timestamp::date", DATE),
        ("SELECT CAST('2024-01-31'::timestamp AS date)", DATE),
        ("SELECT (DATE '2024-01-31')::timestamp", TIMESTAMP),
        ("SELECT DATE '2024-01-31'", DATE),
    ],
)
def test_a_literal_has_the_type_before_it_until_it_is_cast(query: str, type_: SqlType) -> None:
    assert bound(query)[0] == type_


def test_the_time_of_a_date_literal_is_gone_before_it_is_cast() -> None:
    assert "10:00" not in bound("SELECT DATE '2024-01-31 10:00'::timestamp")[1]


@pytest.mark.parametrize("written", ["2024-01-01 00:00:00+00", "2024-01-01 00:00:00Z", "2024-01-01 02:00:00+02"])
def test_a_zone_in_the_text_wins_over_the_sessions(written: str) -> None:
    type_, sql = bound(f"SELECT TIMESTAMPTZ '{written}'", "Asia/Tokyo")
    assert type_ == TIMESTAMPTZ
    assert "2024-01-01 00:00:00Z" in sql


def test_without_a_zone_in_the_text_the_sessions_counts() -> None:
    assert "2023-12-31 15:00:00Z" in bound("SELECT TIMESTAMPTZ '2024-01-01 00:00:00'", "Asia/Tokyo")[1]
