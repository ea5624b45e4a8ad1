"""Rows of the generator: what follows from a row's number, and what the options may say."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa
import pytest

from seiche.connectors.datagen import Generator, generator
from seiche.connectors.splits import rows_before
from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.model import Column
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DOUBLE,
    INTEGER,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    array_of,
    numeric,
    struct_of,
    varchar,
)

CREATED_MS = 1_700_000_000_000


def made(types: dict[str, SqlType], given: dict[str, str]) -> Generator:
    return generator([Column(name, type_) for name, type_ in types.items()], {"connector": "datagen", **given})


def rows(of: Generator, first: int, count: int, now_ms: int = CREATED_MS) -> pa.Table:
    return of.table(first, count, created_ms=CREATED_MS, now_ms=now_ms)


EVERYTHING: dict[str, SqlType] = {
    "berth": SMALLINT,
    "ship": INTEGER,
    "cargo": BIGINT,
    "depth": REAL,
    "tide": DOUBLE,
    "fee": numeric(10, 2),
    "towed": BOOLEAN,
    "name": VARCHAR,
    "flag": varchar(4),
    "arrived": TIMESTAMP,
    "left": TIMESTAMPTZ,
    "crew": array_of(INTEGER),
    "place": struct_of(("x", INTEGER), ("notes", array_of(struct_of(("word", VARCHAR))))),
}


def test_a_row_follows_from_its_number_alone() -> None:
    of = made(EVERYTHING, {"datagen.split.num": "3"})
    whole = rows(of, 0, 40)
    pieces = pa.concat_tables([rows(of, 0, 7), rows(of, 7, 1), rows(of, 8, 32)])
    assert pieces.combine_chunks() == whole.combine_chunks()
    assert whole.schema.types == [type_.arrow for type_ in EVERYTHING.values()]


def test_sequences_count_on_and_the_first_one_to_end_ends_the_source() -> None:
    of = made(
        {"id": INTEGER, "tide": DOUBLE},
        {
            "fields.id.kind": "sequence",
            "fields.id.start": "1",
            "fields.id.end": "10",
            "fields.tide.kind": "sequence",
            "fields.tide.start": "11",
            "datagen.split.num": "4",
        },
    )
    assert of.rows == 10
    assert rows(of, 7, 100).to_pylist() == [{"id": 8, "tide": 18.0}, {"id": 9, "tide": 19.0}, {"id": 10, "tide": 20.0}]
    assert rows(of, 10, 100).num_rows == 0


def test_what_only_the_other_kind_of_numbers_has_is_read_over() -> None:
    random = made({"ship": INTEGER}, {"fields.ship.start": "1", "fields.ship.end": "5"})
    assert random.rows is None and rows(random, 0, 20) == rows(made({"ship": INTEGER}, {}), 0, 20)
    counted = made({"ship": INTEGER}, {"fields.ship.kind": "sequence", "fields.ship.min": "3", "fields.ship.max": "4"})
    assert rows(counted, 0, 3)["ship"].to_pylist() == [0, 1, 2]


def test_random_values_lie_between_their_limits_and_differ() -> None:
    of = made(
        {"ship": INTEGER, "tide": DOUBLE, "name": VARCHAR, "towed": BOOLEAN},
        {"fields.ship.min": "-2", "fields.ship.max": "3", "fields.tide.max": "0.5", "fields.name.length": "5"},
    )
    table = rows(of, 0, 500)
    assert set(table["ship"].to_pylist()) == {-2, -1, 0, 1, 2, 3}
    assert all(0 <= tide < 0.5 for tide in table["tide"].to_pylist())
    assert {len(name) for name in table["name"].to_pylist()} == {5}
    assert len(set(table["name"].to_pylist())) == 500
    assert set(table["towed"].to_pylist()) == {True, False}


def test_another_seed_gives_other_values_and_another_column_too() -> None:
    types: dict[str, SqlType] = {"a": BIGINT, "b": BIGINT, "c": BIGINT}
    table = rows(made(types, {"fields.c.seed": "7", "fields.a.max": "1000000", "fields.b.max": "1000000"}), 0, 20)
    again = rows(made(types, {"fields.c.seed": "8", "fields.a.max": "1000000", "fields.b.max": "1000000"}), 0, 20)
    assert table["a"] != table["b"]
    assert table["a"] == again["a"]
    assert table["c"] != again["c"]


def test_timestamps_lie_before_the_moment_that_they_are_told() -> None:
    given = {
        "fields.a.max_past": "2h 30min",
        "fields.b.max_past_mode": "relative",
        "fields.b.max_past": "1s",
        "fields.c.basetime": "2024-01-01T00:00:00Z",
    }
    table = rows(made({"a": TIMESTAMP, "b": TIMESTAMP, "c": TIMESTAMPTZ}, given), 0, 100, CREATED_MS + 60_000)

    def ago(column: str, base: float) -> list[float]:
        return [base - each / 1e6 for each in table[column].cast(pa.int64()).to_pylist()]

    assert all(0 <= each <= 9000 for each in ago("a", CREATED_MS / 1000))
    assert all(0 <= each <= 1 for each in ago("b", CREATED_MS / 1000 + 60))
    assert all(0 <= each <= 86_400 for each in ago("c", datetime.fromisoformat("2024-01-01T00:00:00Z").timestamp()))


def test_nested_options_reach_fields_of_structs_and_elements_of_arrays() -> None:
    given = {
        "fields.place.x.kind": "sequence",
        "fields.place.x.end": "3",
        "fields.crew.length": "2",
        "fields.crew._.min": "5",
        "fields.crew._.max": "6",
    }
    of = made({"place": struct_of(("x", INTEGER)), "crew": array_of(INTEGER)}, given)
    table = rows(of, 0, 10)
    assert table["place"].to_pylist() == [{"x": 0}, {"x": 1}, {"x": 2}, {"x": 3}]
    assert {len(crew) for crew in table["crew"].to_pylist()} == {2}
    assert {each for crew in table["crew"].to_pylist() for each in crew} <= {5, 6}


def test_offsets_of_splits_tell_how_many_rows_were_made() -> None:
    of = made({"ship": INTEGER}, {"datagen.split.num": "3"})
    assert of.offsets(0) == {"0": "0", "1": "0", "2": "0"}
    assert of.offsets(7) == {"0": "3", "1": "2", "2": "2"}
    assert [rows_before(of.offsets(count)) for count in range(20)] == list(range(20))


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("fields.ship.kind", "sometimes", "cannot be sometimes"),
        ("fields.name.kind", "sequence", "cannot be sequence"),
        ("fields.ship.min", "many", "not a whole number"),
        ("fields.ship.max", "-1", "leave no value"),
        ("fields.ship.length", "3", "is not known"),
        ("fields.at.max_past", "2 moons", "is not a duration"),
        ("fields.at.basetime", "noon", "is not a moment"),
        ("datagen.rows.per.second", "0", "out of range"),
        ("datagen.split.num", "a few", "not a whole number"),
        ("topic", "ships", "is not known"),
    ],
)
def test_options_that_make_no_sense_are_refused(option: str, value: str, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        made({"ship": INTEGER, "name": VARCHAR, "at": TIMESTAMP}, {option: value})


def test_options_of_a_field_that_is_no_column_are_read_over() -> None:
    plain = made({"ship": INTEGER}, {})
    assert made({"ship": INTEGER}, {"fields.mast.kind": "sequence", "fields.mast.end": "1"}).rows == plain.rows


def test_types_without_a_generator_are_refused() -> None:
    with pytest.raises(FeatureNotSupported, match="no values of type bytea"):
        made({"photo": BYTEA}, {})
