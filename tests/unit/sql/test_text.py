"""The text of values and tables. The expected texts are what PostgreSQL 15 and its psql print."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seiche.sql.text import format_jsonb, format_value, render_table
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    array_of,
    numeric,
    struct_of,
)


def single(value: float) -> float:
    """The nearest value of type real, as Arrow gives it."""
    nearest: float = struct.unpack("f", struct.pack("f", value))[0]
    return nearest


def interval(months: int = 0, days: int = 0, micros: int = 0) -> dict[str, int]:
    return {"months": months, "days": days, "micros": micros}


HOUR = 3_600_000_000


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (True, BOOLEAN, "t"),
        (False, BOOLEAN, "f"),
        (-7, SMALLINT, "-7"),
        (2**63 - 1, BIGINT, "9223372036854775807"),
        ("as it is ", VARCHAR, "as it is "),
        (b"\x00\xffA", BYTEA, "\\x00ff41"),
        (bytearray(), BYTEA, "\\x"),
    ],
)
def test_simple_values(value: Any, type_: SqlType, text: str) -> None:
    assert format_value(value, type_) == text


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (Decimal("1.500000000000000000"), NUMERIC, "1.5"),
        (Decimal("100.000000000000000000"), NUMERIC, "100"),
        (Decimal("0E-18"), NUMERIC, "0"),
        (Decimal("0.000000000000000001"), NUMERIC, "0.000000000000000001"),
        (Decimal("1E+3"), NUMERIC, "1000"),
        (Decimal("1.50"), numeric(10, 2, declared=True), "1.50"),
        (Decimal("0"), numeric(10, 2, declared=True), "0.00"),
        (Decimal("-12345678901234567890123456789012345678"), numeric(38, 0, declared=True), "-" + "1234567890" * 3
         + "12345678"),
        (Decimal("20.0"), numeric(12, 1), "20"),
    ],
)  # fmt: skip
def test_a_declared_numeric_keeps_its_scale_and_a_free_one_drops_its_zeros(
    value: Decimal, type_: SqlType, text: str
) -> None:
    assert format_value(value, type_) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e5, "100000"),
        (1e14, "100000000000000"),
        (1e15, "1000000000000000"),
        (999999999999999.9, "999999999999999.9"),
        (9999999999999999.0, "1e+16"),
        (123456789012345678.0, "1.2345678901234568e+17"),
        (1e20, "1e+20"),
        (0.0001, "0.0001"),
        (0.0001234, "0.0001234"),
        (0.00001, "0.00001"),
        (0.0000099, "9.9e-06"),
        (1.5e-300, "1.5e-300"),
        (-2.5, "-2.5"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (-6.940976662273546e16, "-6.9409766622735456e+16"),
        (-8.74435332424952e17, "-8.744353324249521e+17"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_a_double_has_the_fewest_digits_that_are_surely_it(value: float, text: str) -> None:
    assert format_value(value, DOUBLE) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1e5, "100000"),
        (123456.0, "123456"),
        (1e6, "1000000"),
        (1234567.0, "1234567"),
        (16777216.0, "16777216"),
        (86482704.0, "86482704"),
        (1e12, "1000000000000"),
        (1e13, "1e+13"),
        (1e-5, "0.00001"),
        (1e-7, "1e-07"),
        (3.4e38, "3.4e+38"),
        (1e-45, "1e-45"),
        (-0.0, "-0"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
    ],
)
def test_a_real_has_the_fewest_digits_that_are_surely_it(value: float, text: str) -> None:
    assert format_value(single(value), REAL) == text


@given(st.floats())
def test_a_double_reads_back_from_its_text(value: float) -> None:
    back = float(format_value(value, DOUBLE))
    assert back == value or (math.isnan(back) and math.isnan(value))


@given(st.floats(width=32))
def test_a_real_reads_back_from_its_text(value: float) -> None:
    back = single(float(format_value(value, REAL)))
    assert back == value or (math.isnan(back) and math.isnan(value))


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (date(2024, 2, 29), DATE, "2024-02-29"),
        (date(7, 1, 2), DATE, "0007-01-02"),
        (0, TIME, "00:00:00"),
        (4 * HOUR + 5 * 60_000_000 + 6_789_000, TIME, "04:05:06.789"),
        (24 * HOUR, TIME, "24:00:00"),
        (datetime(2024, 1, 2, 3, 4, 5), TIMESTAMP, "2024-01-02 03:04:05"),
        (datetime(2024, 1, 2, 3, 4, 5, 120_000), TIMESTAMP, "2024-01-02 03:04:05.120"),
        (datetime(2024, 1, 2, 3, 4, 5, 1), TIMESTAMP, "2024-01-02 03:04:05.000001"),
        (datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC), TIMESTAMPTZ, "2024-01-02 03:04:05+00:00"),
        (datetime(2024, 1, 2, 3, 4, 5, 500_000), TIMESTAMPTZ, "2024-01-02 03:04:05.500+00:00"),
    ],
)
def test_dates_and_times(value: Any, type_: SqlType, text: str) -> None:
    assert format_value(value, type_) == text


@pytest.mark.parametrize(
    ("timezone", "text"),
    [
        ("UTC", "2024-07-01 12:00:00+00:00"),
        ("Europe/Oslo", "2024-07-01 14:00:00+02:00"),
        ("America/St_Johns", "2024-07-01 09:30:00-02:30"),
    ],
)
def test_a_timestamp_with_time_zone_is_shown_in_the_sessions_zone(timezone: str, text: str) -> None:
    assert format_value(datetime(2024, 7, 1, 12, tzinfo=UTC), TIMESTAMPTZ, timezone) == text


def test_an_old_offset_shows_no_seconds_and_the_edge_of_the_calendar_is_shown() -> None:
    assert format_value(datetime(1850, 1, 1, tzinfo=UTC), TIMESTAMPTZ, "Asia/Kolkata").endswith("+05:53")
    assert format_value(datetime.max.replace(tzinfo=UTC), TIMESTAMPTZ, "Europe/Oslo").endswith("+00:00")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (interval(), "00:00:00"),
        (interval(14, 3, 4 * HOUR + 5 * 60_000_000 + 6_789_000), "1 year 2 mons 3 days 04:05:06.789"),
        (interval(1, 1), "1 mon 1 day"),
        (interval(-12), "-1 years"),
        (interval(-1, 2, -1_000_000), "-1 mons +2 days -00:00:01"),
        (interval(-14, 1, HOUR), "-1 years -2 mons +1 day 01:00:00"),
        (interval(-10, -3, 4 * HOUR), "-10 mons -3 days +04:00:00"),
        (interval(0, 1, -4 * HOUR), "1 day -04:00:00"),
        (interval(0, 0, 300 * HOUR + 1), "300:00:00.000001"),
        ((0, 0, -1), "-00:00:00.000001"),
    ],
)
def test_an_interval_is_in_postgres_style(value: Any, text: str) -> None:
    assert format_value(value, INTERVAL) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("{}", "{}"),
        ("[]", "[]"),
        ("null", "null"),
        ('{"bb":1,"a":[1,2],"c":{"x":null,"y":true}}', '{"a": [1, 2], "bb": 1, "c": {"x": null, "y": true}}'),
        ('{"é":1,"zz":2,"b":3}', '{"b": 3, "zz": 2, "é": 1}'),
        ("[1.50,1e5,1E-7,-0.0,12345678901234567890123]", "[1.50, 100000, 0.0000001, 0.0, 12345678901234567890123]"),
        (r'"\u0001\n\u00e9\/\""', r'"\u0001\né/\""'),
    ],
)
def test_jsonb_has_postgres_spacing_and_keys_by_their_letters(value: str, text: str) -> None:
    assert format_value(value, JSONB) == text


def test_a_json_number_beyond_any_numeric_is_not_written_out() -> None:
    assert len(format_jsonb("1e999999999")) < 20


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
))  # fmt: skip
def test_jsonb_text_keeps_its_meaning(value: Any) -> None:
    assert json.loads(format_jsonb(json.dumps(value))) == value


@pytest.mark.parametrize(
    ("value", "element", "text"),
    [
        ([], INTEGER, "{}"),
        ([1, None, 3], INTEGER, "{1,NULL,3}"),
        (["a b", "", "null", "NULL", None, 'a"\\', "{x", "x,y", "é", "nullx"], VARCHAR,
         r'{"a b","","null","NULL",NULL,"a\"\\","{x","x,y",é,nullx}'),
        ([True, False], BOOLEAN, "{t,f}"),
        ([[1, 2], [3, 4]], array_of(INTEGER), "{{1,2},{3,4}}"),
        ([datetime(2024, 1, 1)], TIMESTAMP, '{"2024-01-01 00:00:00"}'),
        ([b"\x01"], BYTEA, r'{"\\x01"}'),
        (['{"a":1}'], JSONB, r'{"{\"a\": 1}"}'),
        ([{"a": 1, "b": "x y"}], struct_of(("a", INTEGER), ("b", VARCHAR)), r'{"(1,\"x y\")"}'),
    ],
)  # fmt: skip
def test_an_array_quotes_what_would_be_read_otherwise(value: list[Any], element: SqlType, text: str) -> None:
    assert format_value(value, array_of(element)) == text


SHIP = struct_of(("id", INTEGER), ("name", VARCHAR), ("tags", array_of(INTEGER)))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"id": 1, "name": "Aurora", "tags": [7]}, "(1,Aurora,{7})"),
        ((1, "a b", [1, 2]), '(1,"a b","{1,2}")'),
        ((None, None, None), "(,,)"),
        ((1, "", None), '(1,"",)'),
        ((1, 'a"\\', None), r'(1,"a""\\",)'),
        ((1, "x(y", None), '(1,"x(y",)'),
        ((1, "it's", None), "(1,it's,)"),
    ],
)
def test_a_struct_quotes_what_would_be_read_otherwise(value: Any, text: str) -> None:
    assert format_value(value, SHIP) == text


# --- tables ------------------------------------------------------------------------------------------


def lines(*expected: str) -> str:
    return "\n".join(expected)


def test_numbers_are_set_right_and_text_left() -> None:
    rows = [("Aurora", 120, True), ("Bora", 7, None)]
    assert render_table([("ship", VARCHAR), ("length", INTEGER), ("here", BOOLEAN)], rows) == lines(
        "  ship  | length | here ",
        "--------+--------+------",
        " Aurora |    120 | t",
        " Bora   |      7 | ",
        "(2 rows)",
    )


def test_a_cell_of_several_lines_shows_where_it_goes_on() -> None:
    rows = [("x\nyy", None), ("z", 2)]
    assert render_table([("note", VARCHAR), ("n", INTEGER)], rows) == lines(
        " note | n ",
        "------+---",
        " x   +|  ",
        " yy   | ",
        " z    | 2",
        "(2 rows)",
    )
    assert render_table([("a", VARCHAR)], [("x\ny",), ("long one",)]) == lines(
        "    a     ",
        "----------",
        " x       +",
        " y",
        " long one",
        "(2 rows)",
    )


def test_a_name_of_several_lines_is_a_header_of_several_lines() -> None:
    assert render_table([("a", INTEGER), ("b\nc", numeric(3, 1, declared=True))], [(1, Decimal("2.5"))]) == lines(
        " a |  b +",
        "   |  c  ",
        "---+-----",
        " 1 | 2.5",
        "(1 row)",
    )


def test_wide_letters_count_for_two_columns_and_control_characters_are_spelled_out() -> None:
    rows = [("é漢字", "t\tb\r\x01"), ("e\u0301", "")]
    assert render_table([("a", VARCHAR), ("b", VARCHAR)], rows) == lines(
        "   a   |        b        ",
        "-------+-----------------",
        " é漢字 | t       b\\r\\x01",
        " e\u0301     | ",
        "(2 rows)",
    )


def test_a_table_without_rows_or_without_columns_is_still_a_table() -> None:
    assert render_table([("ship", VARCHAR)], []) == lines(" ship ", "------", "(0 rows)")
    assert render_table([], [()]) == lines("--", "(1 row)")


def test_null_and_the_footer_are_the_callers_choice() -> None:
    shown = render_table([("n", INTEGER)], [(None,), (1,)], null="∅", footer=False)
    assert shown == lines(" n ", "---", " ∅", " 1")


def test_a_table_shows_timestamps_in_the_sessions_zone() -> None:
    at = datetime(2024, 1, 1, tzinfo=UTC)
    assert "01:00:00+01:00" in render_table([("at", TIMESTAMPTZ)], [(at,)], timezone="Europe/Oslo")
