"""Days and moments outside of Python's calendar: out of Arrow, into text, and back."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from seiche.far_days import (
    FarDate,
    FarTimestamp,
    arrow_table,
    far_text,
    near_text,
    python_rows,
    python_values,
)
from seiche.server.types import encode_column
from seiche.sql.text import format_value
from seiche.stream.predicates import key_predicate
from seiche.types import DATE, TIMESTAMP, TIMESTAMPTZ

_DAY = 86_400_000_000
LEAP_DAY_5_BC = -720_930  # -0004-02-29, as Spark counts years
NEW_YEAR_1_BC = -719_528
NEW_YEAR_10000 = 2_932_897


@pytest.mark.parametrize(
    ("days", "shown"),
    [
        (LEAP_DAY_5_BC, "0005-02-29 BC"),
        (NEW_YEAR_1_BC, "0001-01-01 BC"),
        (NEW_YEAR_1_BC - 1, "0002-12-31 BC"),
        (NEW_YEAR_10000, "10000-01-01"),
        (6_673_126, "20240-05-26"),
    ],
)
def test_far_days_print_as_postgresql_prints_them(days: int, shown: str) -> None:
    assert format_value(FarDate(days), DATE) == shown
    moment = FarTimestamp(days * _DAY + 3_723_500_000)
    date_, _, era = shown.partition(" ")
    assert format_value(moment, TIMESTAMP) == f"{date_} 01:02:03.500" + (f" {era}" if era else "")


def test_a_far_moment_is_shown_in_its_zone() -> None:
    moment = FarTimestamp(NEW_YEAR_10000 * _DAY)
    assert format_value(moment, TIMESTAMPTZ) == "10000-01-01 00:00:00+00:00"
    assert format_value(moment, TIMESTAMPTZ, "America/New_York") == "9999-12-31 19:00:00-05:00"
    assert format_value(FarTimestamp(NEW_YEAR_1_BC * _DAY), TIMESTAMPTZ) == "0001-01-01 00:00:00+00:00 BC"


def test_a_column_keeps_what_python_can_hold() -> None:
    days = pa.array([0, None, NEW_YEAR_1_BC], pa.int32()).cast(pa.date32())
    assert python_values(days) == [date(1970, 1, 1), None, FarDate(NEW_YEAR_1_BC)]
    micros = pa.array([0, NEW_YEAR_10000 * _DAY], pa.int64())
    far = FarTimestamp(NEW_YEAR_10000 * _DAY)
    assert python_values(micros.cast(pa.timestamp("us"))) == [datetime(1970, 1, 1), far]
    assert python_values(micros.cast(pa.timestamp("us", "UTC"))) == [datetime(1970, 1, 1, tzinfo=UTC), far]


def test_far_days_have_a_binary_form() -> None:
    (day,) = encode_column([FarDate(NEW_YEAR_1_BC)], DATE, 1)
    assert day is not None
    assert int.from_bytes(day, signed=True) == NEW_YEAR_1_BC - 10_957
    (moment,) = encode_column([FarTimestamp(NEW_YEAR_10000 * _DAY)], TIMESTAMP, 1)
    assert moment is not None
    assert int.from_bytes(moment, signed=True) == (NEW_YEAR_10000 - 10_957) * _DAY


@pytest.mark.parametrize(
    ("written", "spark"),
    [
        ("0005-02-29 BC", "-0004-02-29"),
        ("0001-12-25 BC", "+0000-12-25"),
        ("20240-01-26", "+20240-01-26"),
        ("2024-01-26", "2024-01-26"),
        ("0000-01-01", "0000-01-01"),  # there is no such year: it is refused where it is read
    ],
)
def test_a_far_year_is_written_as_spark_reads_it(written: str, spark: str) -> None:
    near, cycles = near_text(written)
    assert far_text(near, cycles) == spark


def test_far_days_stand_in_order_with_pythons_own() -> None:
    listed = [FarDate(NEW_YEAR_10000), date(2024, 1, 1), FarDate(NEW_YEAR_1_BC)]
    assert sorted(listed) == listed[::-1]
    moments = [
        FarTimestamp(NEW_YEAR_10000 * _DAY),
        datetime(2024, 1, 1, tzinfo=UTC),
        FarTimestamp(NEW_YEAR_1_BC * _DAY),
    ]
    assert sorted(moments) == moments[::-1]
    assert FarDate(NEW_YEAR_1_BC) != date(2024, 1, 1)


def test_rows_with_far_days_come_back_as_they_were() -> None:
    days = pa.array([0, None, NEW_YEAR_1_BC], pa.int32()).cast(pa.date32())
    moments = pa.array([NEW_YEAR_10000 * _DAY, 1, None], pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = pa.table({"day": days, "moment": moments, "ship": ["Mole", "Tern", None]})
    rows = python_rows(table)
    assert rows[2] == {"day": FarDate(NEW_YEAR_1_BC), "moment": None, "ship": None}
    assert arrow_table(rows, table.schema).equals(table)


def test_spark_is_given_far_days_as_it_reads_them() -> None:
    assert FarDate(LEAP_DAY_5_BC).spark == "-0004-02-29"
    assert FarTimestamp(NEW_YEAR_10000 * _DAY + 1_500_000).spark == "+10000-01-01 00:00:01.500000"
    unique = pa.chunked_array([pa.array([NEW_YEAR_1_BC], pa.int32()).cast(pa.date32())])
    assert key_predicate("day", DATE, unique) == "`day` IN (DATE'+0000-01-01', NULL)"
