"""`struct<...>[]` as a type in an expression, told apart from a comparison with a bare list."""

from __future__ import annotations

import pytest

from seiche.errors import SyntaxError_
from seiche.sql.bind import BoundRelation, Settings, bind_query
from seiche.sql.parse import parse, parse_query
from seiche.sql.statements import CreateTable
from seiche.types import INTEGER, SqlType, array_of, struct_of

DEPTH = struct_of(("depth", INTEGER))


class Nothing:
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        raise AssertionError(f"no relation is asked for: {parts}")


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("NULL::struct<depth int>[]", array_of(DEPTH)),
        ("CAST(NULL AS struct<depth int>[])", array_of(DEPTH)),
        ("ARRAY[]::struct<depth int>[]", array_of(DEPTH)),
        ("NULL::struct<berth struct<depth int>>[]", array_of(struct_of(("berth", DEPTH)))),
        ("NULL::struct<berths struct<depth int>[]>[]", array_of(struct_of(("berths", array_of(DEPTH))))),
    ],
)
def test_an_array_of_structs_is_a_type(text: str, type_: SqlType) -> None:
    bound = bind_query(parse_query(f"SELECT {text}").tree, Nothing(), Settings(now_ms=0))
    assert bound.columns[0].type == type_


@pytest.mark.parametrize("text", ["1 > []", "1 < 2 > []", "[1]", "depth > [1]"])
def test_a_list_without_array_is_refused(text: str) -> None:
    with pytest.raises(SyntaxError_, match="near"):
        parse_query(f"SELECT {text}")


def test_a_struct_is_told_with_the_names_of_its_fields_as_they_are_written() -> None:
    told = 'struct<"Quay" integer, "north ""side""" boolean, number integer[]>'
    (parsed,) = parse(f"CREATE TABLE t (v {told})")
    assert isinstance(parsed.statement, CreateTable)
    assert str(parsed.statement.columns[0].type) == told
