"""Consolidation and overlay of changes on the driver, against an oracle of plain Python."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seiche.model import EPOCH, OP, VNODE, RelationSchema
from seiche.storage.changes import arrow_schema, consolidate, empty, for_spark, latest, spark_ddl
from seiche.types import BYTEA, DATE, DOUBLE, INTEGER, INTERVAL, REAL, VARCHAR, SqlType, array_of, numeric, struct_of
from tests.unit.storage.harbour import SHIP, changes, schema


def net(shape: RelationSchema, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """The consolidated rows with their signs."""
    table = consolidate(changes(shape, *rows), shape.columns)
    assert table.column_names == [*shape.names, VNODE, OP]
    return list(zip(*(table[name].to_pylist() for name in (*shape.names, OP)), strict=True))


# --- consolidate -------------------------------------------------------------------------------------


def test_a_row_that_appears_and_leaves_is_nothing() -> None:
    assert net(SHIP, (1, "Ada", 1), (1, "Ada", -1)) == []


def test_an_update_is_its_two_images_with_the_leaving_one_first() -> None:
    assert net(SHIP, (1, "Eve", 1), (1, "Ada", -1)) == [(1, "Ada", -1), (1, "Eve", 1)]


def test_an_update_back_and_forth_is_nothing() -> None:
    assert net(SHIP, (1, "Ada", -1), (1, "Eve", 1), (1, "Eve", -1), (1, "Ada", 1)) == []


def test_rows_that_differ_in_the_key_are_not_compared_any_further() -> None:
    coming = changes(SHIP, (1, "Aurora", 1), (2, "Borealis", -1))
    both = changes(SHIP, (1, "Aurora", 1), (1, "Aurora", -1), (2, "Borealis", 1), (2, "Castor", -1))
    for rows in (coming, both):
        assert consolidate(rows, SHIP.columns, key=SHIP.key).equals(consolidate(rows, SHIP.columns))


def test_parts_without_rows_are_not_handed_to_spark() -> None:
    some = changes(SHIP, (1, "Aurora", 1))
    found = for_spark(pa.concat_tables([some[:0], some, some[:0], some]))
    assert [len(chunk) for chunk in found["id"].chunks] == [2]
    assert for_spark(some) is some


def test_null_equals_null() -> None:
    assert net(SHIP, (None, None, 1), (None, None, -1), (1, None, 1)) == [(1, None, 1)]


def test_rows_of_one_sign_are_taken_as_they_are() -> None:
    assert net(SHIP, (1, "Ada", 1), (2, "Eve", 1)) == [(1, "Ada", 1), (2, "Eve", 1)]


def test_nothing_stays_nothing() -> None:
    assert net(SHIP) == []


def test_the_epoch_is_dropped_and_types_stay() -> None:
    table = consolidate(changes(SHIP, (1, "Ada", 1), (2, "Eve", -1)), SHIP.columns)
    assert table.schema == pa.schema([f for f in arrow_schema(SHIP) if f.name != EPOCH])


def test_many_equal_rows_add_up_beyond_a_byte() -> None:
    rows = [(1, "Ada", 1)] * 200 + [(1, "Ada", -1)] * 199
    assert net(SHIP, *rows) == [(1, "Ada", 1)]


@pytest.mark.parametrize(
    ("type_", "one", "other"),
    [
        (array_of(INTEGER), [1, None, 3], [1, 3]),
        (array_of(array_of(VARCHAR)), [["a"], None], [["a"], []]),
        (struct_of(("x", INTEGER), ("y", VARCHAR)), {"x": 1, "y": None}, {"x": None, "y": None}),
        (INTERVAL, {"months": 1, "days": 0, "micros": 0}, {"months": 0, "days": 30, "micros": 0}),
        (BYTEA, b"\x00\x01", b"\x00"),
        (DATE, date(2026, 5, 1), date(2026, 5, 2)),
        (numeric(10, 2), Decimal("1.50"), Decimal("1.51")),
    ],
)
def test_values_of_every_kind_cancel_only_with_their_equals(type_: SqlType, one: Any, other: Any) -> None:
    shape = schema(("id",), id=INTEGER, value=type_)
    assert net(shape, (1, one, 1), (1, one, -1), (2, None, 1), (2, None, -1)) == []
    assert net(shape, (1, one, -1), (1, other, 1)) == [(1, one, -1), (1, other, 1)]


@pytest.mark.parametrize("type_", [REAL, DOUBLE])
def test_nan_cancels_with_nan(type_: SqlType) -> None:
    shape = schema(("id",), id=INTEGER, value=type_)
    assert net(shape, (1, math.nan, 1), (1, math.nan, -1)) == []


@pytest.mark.parametrize("type_", [array_of(DOUBLE), struct_of(("x", DOUBLE))])
def test_nan_inside_a_nested_value_cancels_with_nan(type_: SqlType) -> None:
    shape = schema(("id",), id=INTEGER, value=type_)
    value = [math.nan] if type_.element else {"x": math.nan}
    assert net(shape, (1, value, 1), (1, value, -1)) == []


cells = st.tuples(
    st.one_of(st.none(), st.integers(0, 3)),
    st.one_of(st.none(), st.sampled_from(["", "a", "b"])),
    st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 1)), max_size=2)),
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(cells, st.sampled_from([-1, 1])), max_size=30), nested=st.booleans())
def test_consolidation_adds_up_signs_like_a_counter(rows: list[tuple[Any, int]], nested: bool) -> None:
    columns: dict[str, SqlType] = {"id": INTEGER, "name": VARCHAR}
    if nested:
        columns["crew"] = array_of(INTEGER)
    shape = schema(("id",), **columns)
    width = len(columns)
    oracle: Counter[str] = Counter()
    for row, sign in rows:
        oracle[repr(row[:width])] += sign
    found: Counter[str] = Counter()
    for row in net(shape, *((*row[:width], sign) for row, sign in rows)):
        found[repr(row[:width])] += row[width]
    assert all(found.values()), "a row that cancels is not there at all"
    assert found == {row: count for row, count in oracle.items() if count}


# --- latest ------------------------------------------------------------------------------------------


def last(shape: RelationSchema, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    table = latest(changes(shape, *rows), shape)
    found = list(zip(*(table[name].to_pylist() for name in (*shape.names, OP)), strict=True))
    return sorted(found, key=repr)


def test_the_last_change_of_a_key_wins() -> None:
    assert last(SHIP, (1, "Ada", 1), (2, "Eve", 1), (1, "Ada", -1), (1, "Ann", 1)) == [(1, "Ann", 1), (2, "Eve", 1)]


def test_a_key_that_left_is_told_as_leaving() -> None:
    assert last(SHIP, (1, "Ada", 1), (1, "Ada", -1)) == [(1, "Ada", -1)]


def test_keys_that_are_null_are_one_key() -> None:
    assert last(SHIP, (None, "Ada", 1), (None, "Eve", 1)) == [(None, "Eve", 1)]


def test_the_latest_of_nothing_is_nothing() -> None:
    assert latest(empty(SHIP), SHIP).num_rows == 0


@pytest.mark.parametrize("type_", [REAL, DOUBLE])
def test_both_zeros_are_one_key_and_so_are_all_nans(type_: SqlType) -> None:
    shape = schema(("level",), level=type_, name=VARCHAR)
    found = last(shape, (0.0, "a", 1), (-0.0, "b", 1), (math.nan, "c", 1), (-math.nan, "d", 1), (None, "e", 1))
    assert sorted(row[1] for row in found) == ["b", "d", "e"]


def test_the_row_itself_keeps_its_own_zero() -> None:
    shape = schema(("level",), level=DOUBLE, name=VARCHAR)
    ((level, _, _),) = last(shape, (0.0, "a", 1), (-0.0, "b", 1))
    assert math.copysign(1, level) == -1


def test_a_key_of_an_array_is_compared_by_value() -> None:
    shape = schema(("crew",), crew=array_of(INTEGER), name=VARCHAR)
    found = last(shape, ([1, None], "a", 1), ([1], "b", 1), ([1, None], "c", 1), (None, "d", 1))
    assert sorted(row[1] for row in found) == ["b", "c", "d"]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(0, 2)),
            st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, math.nan])),
            st.sampled_from([-1, 1]),
        ),
        max_size=20,
    )
)
def test_the_latest_change_is_what_a_dictionary_would_keep(rows: list[tuple[Any, Any, int]]) -> None:
    shape = schema(("id", "level"), id=INTEGER, level=DOUBLE, name=VARCHAR)
    oracle: dict[str, str] = {}
    numbered = [(id_, level, str(number), sign) for number, (id_, level, sign) in enumerate(rows)]
    for id_, level, name, _ in numbered:
        oracle[f"{id_}/{0.0 if level == 0 else level}"] = name
    assert sorted(row[2] for row in last(shape, *numbered)) == sorted(oracle.values())


# --- shapes ------------------------------------------------------------------------------------------


def test_the_stored_shape_is_spelled_for_spark() -> None:
    assert spark_ddl(SHIP) == "`id` int, `name` string, `_vnode` smallint, `_op` tinyint, `_epoch` bigint"
    assert spark_ddl(SHIP, (VNODE,)) == "`id` int, `name` string, `_vnode` smallint"
