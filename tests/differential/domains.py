"""Small domains of values, one for each SQL type: few enough values that groups, partners and duplicates abound.

A value is kept twice: as the text of a literal, and as what a query gives back in Python (the physical form of
`seiche.types`: a time is its microseconds, an interval a dictionary, jsonb its canonical text).

The floats of most columns are sums of few powers of two, so that adding them in any order gives the same float and
a view may compare, group or round what it added up. Zero with a sign, NaN and the infinities are among them. The
fractions are the other floats, 0.1 and the like and ones drawn afresh: their sums are compared to a tolerance.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from seiche import types
from seiche.types import SqlType

# What an expression of the grammar may be: SQL types whose differences do not matter to it share a family.
INT, NUM, FLOAT, TEXT, BOOL = "int", "num", "float", "text", "bool"
DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL = "date", "time", "timestamp", "timestamptz", "interval"
BYTES, JSON, ARRAY, STRUCT = "bytes", "json", "array", "struct"
# A float that depends on the row alone, but whose sum depends on the order of adding; and such a sum.
RATIO, ROUGH = "ratio", "rough"


@dataclass(frozen=True, slots=True)
class Value:
    python: Any
    sql: str


@dataclass(frozen=True, slots=True)
class Domain:
    """The values that columns of one type take."""

    ddl: str
    type: SqlType
    family: str
    values: tuple[Value, ...]
    ordered: bool = True  # whether the Python forms compare as the SQL values do
    draw: Callable[[random.Random], Value] | None = None  # a value that is not among `values`

    def pick(self, rng: random.Random) -> Value:
        if self.draw is not None and rng.random() < 0.5:
            return self.draw(rng)
        return rng.choice(self.values)


def _plain(values: list[Any], ddl: str = "") -> tuple[Value, ...]:
    """Numbers and booleans, which are their own literals."""
    suffix = f"::{ddl}" if ddl else ""
    return tuple(Value(each, f"({str(each).lower()}){suffix}") for each in values)


def _quoted(pairs: list[tuple[Any, str]], ddl: str) -> tuple[Value, ...]:
    return tuple(Value(python, "'" + text.replace("'", "''") + f"'::{ddl}") for python, text in pairs)


def _interval(months: int, days: int, micros: int) -> dict[str, int]:
    return {"months": months, "days": days, "micros": micros}


_HOUR = 3_600_000_000
_FLOATS = [(float(t), t) for t in ("0", "-0.0", "0.5", "1.25", "-2.75", "NaN")]

SMALLINT = Domain("smallint", types.SMALLINT, INT, _plain([-2, 0, 1, 3, 32767], "smallint"))
INTEGER = Domain("integer", types.INTEGER, INT, _plain([-1, 0, 1, 2, 3, 2147483647]))
BIGINT = Domain("bigint", types.BIGINT, INT, _plain([0, 1, 2, 5, -7, 9_000_000_000_000_000_000], "bigint"))
NUMERIC_8_2 = Domain(
    "numeric(8,2)",
    types.numeric(8, 2, declared=True),
    NUM,
    _quoted([(Decimal(t), t) for t in ("0", "1.5", "-1.5", "2.25", "999999.99")], "numeric(8,2)"),
)
NUMERIC = Domain(
    "numeric",
    types.NUMERIC,
    NUM,
    _quoted([(Decimal(t), t) for t in ("0", "0.1", "-3.7", "1.000000000000000001", "12")], "numeric"),
)
REAL = Domain("real", types.REAL, FLOAT, _quoted(_FLOATS, "real"))
DOUBLE = Domain(
    "double precision",
    types.DOUBLE,
    FLOAT,
    _quoted([*_FLOATS, (float("inf"), "Infinity"), (float("-inf"), "-Infinity")], "double precision"),
)


def _fraction(value: float) -> Value:
    return Value(value, f"'{value!r}'::double precision")


def _short_fraction(value: float) -> Value:
    (short,) = struct.unpack("f", struct.pack("f", value))
    return Value(short, f"'{short!r}'::real")


_FRACTIONS = (0.1, 0.2, 0.3, -0.7, 1 / 3, 1e-7)
FRACTION = Domain(
    "double precision",
    types.DOUBLE,
    RATIO,
    tuple(map(_fraction, _FRACTIONS)),
    draw=lambda rng: _fraction(rng.random() - 0.5),
)
SHORT_FRACTION = Domain(
    "real",
    types.REAL,
    RATIO,
    tuple(map(_short_fraction, _FRACTIONS)),
    draw=lambda rng: _short_fraction(rng.random() - 0.5),
)
BOOLEAN = Domain("boolean", types.BOOLEAN, BOOL, _plain([True, False]))
VARCHAR = Domain(
    "varchar",
    types.VARCHAR,
    TEXT,
    _quoted([(t, t) for t in ("", "a", "b", "A ", "quay", "it's", "ÄÖ", "12")], "varchar"),
)
BYTEA = Domain(
    "bytea", types.BYTEA, BYTES, _quoted([(b"", "\\x"), (b"\x00\x01", "\\x0001"), (b"ab", "\\x6162")], "bytea")
)
DAY = Domain(
    "date",
    types.DATE,
    DATE,
    _quoted([(date.fromisoformat(t), t) for t in ("2024-02-29", "2024-03-01", "1969-12-31", "2030-01-01")], "date"),
)
CLOCK = Domain(
    "time",
    types.TIME,
    TIME,
    _quoted([(0, "00:00:00"), (6 * _HOUR + 500_000, "06:00:00.5"), (24 * _HOUR - 1, "23:59:59.999999")], "time"),
)
MOMENT = Domain(
    "timestamp",
    types.TIMESTAMP,
    TIMESTAMP,
    _quoted(
        [
            (datetime.fromisoformat(t), t)
            for t in ("2024-02-29 12:30:00", "2024-02-29 23:59:59.999999", "1969-12-31 00:00:00", "2024-03-01 00:00:00")
        ],
        "timestamp",
    ),
)
INSTANT = Domain(
    "timestamptz",
    types.TIMESTAMPTZ,
    TIMESTAMPTZ,
    _quoted(
        [
            (datetime(2024, 2, 29, 10, 30, tzinfo=UTC), "2024-02-29 12:30:00+02:00"),
            (datetime(2024, 2, 29, 12, 30, tzinfo=UTC), "2024-02-29 12:30:00+00:00"),
            (datetime(1969, 12, 31, 23, 0, tzinfo=UTC), "1969-12-31 23:00:00Z"),
        ],
        "timestamptz",
    ),
)
# No two of these are equal to PostgreSQL (as a month and 30 days are): which of two equal keys names a group is free.
SPAN = Domain(
    "interval",
    types.INTERVAL,
    INTERVAL,
    _quoted(
        [
            (_interval(0, 1, 0), "1 day"),
            (_interval(2, 0, 0), "2 months"),
            (_interval(0, 0, 36 * _HOUR), "36 hours"),
            (_interval(-1, -2, -_HOUR), "-1 month -2 days -01:00:00"),
        ],
        "interval",
    ),
    ordered=False,
)
JSONB = Domain(
    "jsonb",
    types.JSONB,
    JSON,
    _quoted(
        [
            ('{"a":1,"k":"quay"}', '{"k": "quay", "a": 1}'),
            ('{"k":null}', '{"k": null}'),
            ("[1,2]", "[1, 2]"),
            ("null", "null"),
            ('"x"', '"x"'),
        ],
        "jsonb",
    ),
    ordered=False,
)
INTEGERS = Domain(
    "integer[]",
    types.array_of(types.INTEGER),
    ARRAY,
    (
        Value([], "ARRAY[]::integer[]"),
        Value([1], "ARRAY[1]"),
        Value([1, None, 3], "ARRAY[1, NULL, 3]"),
        Value([2, 2], "ARRAY[2, 2]"),
    ),
    ordered=False,
)
PAIR = Domain(
    "struct<a integer, b varchar>",
    types.struct_of(("a", types.INTEGER), ("b", types.VARCHAR)),
    STRUCT,
    (
        Value({"a": 1, "b": "x"}, "ROW(1, 'x')::struct<a integer, b varchar>"),
        Value({"a": 2, "b": None}, "ROW(2, NULL)::struct<a integer, b varchar>"),
        Value({"a": None, "b": "x"}, "ROW(NULL, 'x')::struct<a integer, b varchar>"),
    ),
    ordered=False,
)

ALL = (
    SMALLINT, INTEGER, BIGINT, NUMERIC_8_2, NUMERIC, REAL, DOUBLE, FRACTION, SHORT_FRACTION, BOOLEAN, VARCHAR, BYTEA,
    DAY, CLOCK, MOMENT, INSTANT, SPAN, JSONB, INTEGERS, PAIR,
)  # fmt: skip

# Keys have more values than other columns: a table should hold a few dozen rows.
KEY_INTEGER = Domain("integer", types.INTEGER, INT, _plain(list(range(14))))
KEY_BIGINT = Domain("bigint", types.BIGINT, INT, _plain([each * 3_000_000_000 for each in range(14)], "bigint"))
KEY_TEXT = Domain("varchar", types.VARCHAR, TEXT, _quoted([(t, t) for t in "abcdefghijk"], "varchar"))
KEY_DAY = Domain(
    "date",
    types.DATE,
    DATE,
    _quoted([(date(2024, 2, day), f"2024-02-{day:02}") for day in range(20, 30)], "date"),
)
SINGLE_KEYS = (KEY_INTEGER, KEY_BIGINT, KEY_TEXT, KEY_DAY)
PAIRED_KEYS = (KEY_INTEGER, KEY_TEXT, KEY_DAY, INSTANT, NUMERIC_8_2, BOOLEAN, SMALLINT)
