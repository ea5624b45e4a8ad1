"""Which VALUES are read as columns of text."""

from __future__ import annotations

import pytest

from seiche.sql.literal_rows import ROWS_MIN, literal_columns
from seiche.sql.parse import parse_query
from seiche.types import BIGINT, BOOLEAN, DATE, DOUBLE, INTEGER, JSONB, VARCHAR, SqlType, numeric


def columns(row: str, *types: SqlType, first: str | None = None, rows: int = ROWS_MIN) -> list[list[str | None]] | None:
    listed = [first or row, *([row] * (rows - 1))]
    return literal_columns(parse_query(f"VALUES {', '.join(listed)}"), types)


def test_constants_are_told_as_they_are_written() -> None:
    found = columns("('Ada''s', -7, 1.50, NULL, true)", VARCHAR, INTEGER, numeric(10, 2), DATE, BOOLEAN)
    assert found is not None
    assert [column[0] for column in found] == ["Ada's", "-7", "1.50", None, "true"]
    assert {len(column) for column in found} == {ROWS_MIN}


@pytest.mark.parametrize(
    ("row", "type_"),
    [
        ("('2024-01-31')", DATE),
        ("('7')", BIGINT),
        ("(7)", DOUBLE),
        ("(7.25)", DOUBLE),
        ("(NULL)", INTEGER),
    ],
)
def test_what_a_type_reads_the_same_from_text(row: str, type_: SqlType) -> None:
    assert columns(row, type_) is not None


@pytest.mark.parametrize(
    ("row", "type_"),
    [
        ("(7.5)", INTEGER),  # rounded on assignment, refused as text
        ("(1)", BOOLEAN),
        ("(1)", VARCHAR),  # a mistake to PostgreSQL only where it has no cast, and not ours to decide here
        ("(true)", VARCHAR),
        ("(1 + 1)", INTEGER),
        ("(DATE '2024-01-31')", DATE),
        ("(now())", DATE),
        ("('{}')", JSONB),
    ],
)
def test_everything_else_is_evaluated(row: str, type_: SqlType) -> None:
    assert columns(row, type_) is None


def test_a_column_of_texts_and_numbers_is_evaluated() -> None:
    assert columns("('1')", INTEGER, first="(1)") is None


def test_few_rows_and_rows_of_another_width_are_evaluated() -> None:
    assert columns("(1)", INTEGER, rows=ROWS_MIN - 1) is None
    assert columns("(1, 2)", INTEGER) is None
