"""The names of columns that have none, as PostgreSQL gives them."""

from __future__ import annotations

import pytest

from seiche.sql.output_names import output_name
from seiche.sql.parse import parse_query


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("'1'::int", "int4"),
        ("'1'::real", "float4"),
        (r"'\x00'::bytea", "bytea"),
        (r"bytea '\x00'", "bytea"),
        ("'1'::jsonb", "jsonb"),
        ("1 + 1", "?column?"),
    ],
)
def test_a_cast_names_its_column_by_its_type(written: str, name: str) -> None:
    (column,) = parse_query(f"SELECT {written}").tree.expressions
    assert output_name(column) == name
