"""Views over hostile rows: no value of a row makes an epoch fail, whatever operator or cast a view applies to it.

A table holds the extremes of every type, in pairs. Operators and casts between all types stand in few wide views over
it. The hostile rows are inserted, then an ordinary one: both inserts have to succeed, and each view has to equal its
query. Of the operators a part is tried, the same in every run; SEICHE_TEST_HOSTILE=all tries all, which takes minutes.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import product

import pytest
from sqlglot import exp

import seiche
from seiche.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    UndefinedFunction,
    UndefinedTable,
    WrongObjectType,
)
from seiche.model import Column
from seiche.sql.bind import BoundRelation, Settings, bind_query
from seiche.sql.parse import parse_query
from seiche.sql.written_types import sql_type
from seiche.types import SqlType

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]

DEEP = "[" * 100 + "]" * 100
LONG = "1" + "0" * 1100  # more digits than Spark reads in a json
VALUES = {
    "smallint": ["32767", "-32768", "0", "-1"],
    "integer": ["2147483647", "-2147483648", "0", "1", "-1"],
    "bigint": ["9223372036854775807", "-9223372036854775808", "0", "-1", "2147483648"],
    "numeric": [f"'{'9' * 20}.{'9' * 18}'", f"'-{'9' * 20}.{'9' * 18}'", "0", "1e-18"],
    "numeric(38,0)": [f"'{'9' * 38}'", f"'-{'9' * 38}'", "0", "1"],
    "numeric(10,2)": ["99999999.99", "-99999999.99", "0", "0.01"],
    "real": ["'NaN'", "'Infinity'", "'-Infinity'", "'3.4e38'", "'1e-45'", "'-0'"],
    "double precision": ["'NaN'", "'Infinity'", "'-Infinity'", "'1.7976931348623157e308'", "'5e-324'", "'-0'", "0"],
    "boolean": ["true", "false"],
    "varchar": [
        "''", "'('", r"'%\'", r"'\'", "'NaN'", "'9223372036854775808'", "'1e400'", "'{'", "'[1'", "'{a,b'", r"'\xzz'",
        "'294277-01-01'", "'2024-02-30 25:00'", "'infinity'", "repeat('a', 3000)", "'a{99999999999}'", "'(?<a'", "'$1'",
        "'178956970 years 8 months'", "'1 year -1'", "'+99:00'", "'😀'",
    ],
    "bytea": [r"'\x'", r"'\xff'", r"'\x00'", r"'\xc328'"],
    "date": ["'2024-01-01'::date + 2145000000", "'294247-01-11'", "'4713-01-01 BC'", "'0001-01-01'"],
    "time": ["'00:00'", "'23:59:59.999999'"],
    "timestamp": ["'294247-01-10 04:00:54.775807'", "'290300-01-01 BC'", "'4713-01-01 BC'", "'0001-01-01'"],
    "timestamptz": ["'294247-01-10 04:00:54.775807+00'", "'290300-01-01 00:00+00 BC'", "'0001-01-01 00:00+00'"],
    "interval": [
        "'178956970 years 7 months'", "'-178956970 years -8 months'", "'2147483647 days'", "'-2147483648 days'",
        "'2562047788:00:54.775807'", "make_interval(0, 0, 0, 0, 0, 0, -9223372036854.775808)", "'0'",
    ],
    "jsonb": [
        "'null'", "'[]'", "'{}'", "'1e300'", "'\"\"'", "'[1, \"a\", null]'", "'{\"a\": {\"b\": [1]}}'", "'true'",
        f"'{DEEP}'", f"'{LONG}'",
        f"'[{LONG}]'", f"'{{\"a\": {LONG}}}'",
    ],
    "integer[]": ["'{}'", "'{NULL}'", "'{2147483647,-2147483648}'"],
    "varchar[]": ["'{}'", "'{NULL}'", "'{\"\",a,(}'", "'{9223372036854775808}'"],
    "double precision[]": ["'{NaN,Infinity,-Infinity}'", "'{}'"],
    "timestamp[]": ["'{294247-01-10 04:00:54.775807}'", "'{}'"],
    "interval[]": ["'{2147483647 days}'", "'{}'"],
    "struct<a integer, b varchar>": ["ROW(1, '')", "ROW(NULL, NULL)"],
    "map(varchar, integer)": ["MAP {'a': 1}"],
}  # fmt: skip
TYPES = list(VALUES)
BINARY = [
    "+", "-", "*", "/", "%", "^", "&", "|", "#", "<<", ">>", "=", "<", "<>", ">=", "IS DISTINCT FROM", "||", "LIKE",
    "!~~*", "SIMILAR TO", "~", "!~*", "^@", "@>", "<@", "&&", "->", "->>", "#>", "?", "?|", "?&", "#-", "AT TIME ZONE",
]  # fmt: skip
# With the place of the left operand, and mostly of the right one.
OTHERS = [
    "-{0}", "~{0}", "|/{0}", "||/{0}", "NOT {0}", "{0} IS JSON", "{0}[{1}]", "{0}[{1}:{1}]", "{0} = ANY ({1})",
    "{0} < ALL ({1})", "({0}, {0}) OVERLAPS ({1}, {1})", "GREATEST({0}, {1})", "{0} BETWEEN SYMMETRIC {1} AND {1}",
]  # fmt: skip
UNITS = ["epoch", "millennium", "century", "decade", "year", "quarter", "month", "week", "day", "hour", "second"]
CONSTANTS = [
    "1", "-1", "9223372036854775807", "0.0", "interval '1 day'", "interval '-1 month'", "interval '1 second'",
    "date '2024-01-01'", "timestamp '2024-01-01'", "time '12:00'", "'['::varchar", "ARRAY['a']",
]  # fmt: skip
# What made an epoch fail before, and is tried in every run.
KEPT = [
    "date_trunc('year', {timestamp})", "{date} < {timestamp}", "{date} = {timestamptz}", "{interval}::varchar",
    "'' || {interval}", "{jsonb} -> {bigint}", "{jsonb} ->> {bigint}", "{jsonb} -> 99999999999", "{jsonb} ? {varchar}",
    "{smallint} << {integer}", "{integer[]}[{integer}]", "-{numeric}", "abs({numeric(38,0)})", "{jsonb} || {jsonb}",
    "lcm({numeric}, {numeric})", "gcd({numeric(38,0)}, {numeric})", "to_jsonb({interval})",
    "{double precision} * {interval}", "{timestamp} + interval '1 day'", "{timestamptz} - interval '1 month'",
    "{numeric(38,0)} * interval '1 day'", "{varchar} SIMILAR TO '['::varchar", "{varchar} ~ '*'",
]  # fmt: skip
SHARE, WIDTH, ROWS = 10, 60, 150


def place(side: str, type_: str) -> str:
    return f"{side}{TYPES.index(type_)}"


def candidates() -> Iterator[str]:
    """Expressions over columns, most of which have no operator for their types."""
    chosen = random.Random(1)
    everything = os.environ.get("SEICHE_TEST_HOSTILE") == "all"
    for each in KEPT:
        yield re.sub(r"\{([^}]+)\}", lambda found: place("l", found[1]), each)
    for source, target in product(TYPES, TYPES):
        yield f"{place('l', source)}::{target}"
    tried: list[str] = []
    for left, right in product(TYPES, TYPES):
        sides = place("l", left), place("r", right)
        tried += [f"{sides[0]} {symbol} {sides[1]}" for symbol in BINARY]
        tried += [each.format(*sides) for each in OTHERS]
    for type_ in TYPES:
        column = place("l", type_)
        tried += [f"{first}('{unit}', {column})" for unit in UNITS for first in ("date_trunc", "date_part")]
        tried += [f"{column} {symbol} {each}" for symbol in BINARY for each in CONSTANTS]
        tried += [f"{each} {symbol} {column}" for symbol in BINARY for each in CONSTANTS]
    yield from (each for each in dict.fromkeys(tried) if everything or not chosen.randrange(SHARE))


class Table:
    def __init__(self) -> None:
        columns = [Column("id", _type("integer"))]
        columns += [Column(place(side, type_), _type(type_)) for side in "lr" for type_ in TYPES]
        self.bound = BoundRelation(1, "hostile", tuple(columns), None, "hostile")

    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        if parts[-1] != "hostile":
            raise UndefinedTable(f'relation "{parts[-1]}" does not exist')
        return self.bound

    def takes(self, expression: str) -> bool:
        """Whether a view may say so; if not, that is told in words of ours when it is created."""
        query = parse_query(f"SELECT id, {expression} AS x FROM hostile")
        try:
            bind_query(query.tree, self, Settings(strict=False))
        except (UndefinedFunction, DatatypeMismatch, FeatureNotSupported, InvalidParameter, WrongObjectType):
            return False
        return True


def _type(name: str) -> SqlType:
    cast = parse_query(f"SELECT NULL::{name}").tree.find(exp.Cast)
    assert cast is not None
    return sql_type(cast.args["to"])


def rows(first: int, count: int) -> str:
    """Rows of the table: the left value changes with each, the right one when all left ones have had their turn."""

    def cell(number: int, side: str, type_: str) -> str:
        values = [*VALUES[type_], "NULL"]
        index = number if side == "l" else number // len(values)
        return f"({values[index % len(values)]})::{type_}"

    def row(number: int) -> str:
        return f"({', '.join([str(number), *(cell(number, side, type_) for side in 'lr' for type_ in TYPES)])})"

    return ", ".join(row(number) for number in range(first, first + count))


def selected(expressions: Sequence[str], source: str) -> str:
    return f"SELECT id, {', '.join(f'{each} AS x{n}' for n, each in enumerate(expressions))} FROM {source}"


def shown(db: seiche.Engine, query: str) -> list[str]:
    """The columns as text. Python has no far days inside of arrays, Arrow prints them."""
    table = db.sql(query).to_spark().orderBy("id").toArrow()
    return [column.combine_chunks().to_string(window=table.num_rows, container_window=100) for column in table.columns]


def all_columns() -> str:
    return ", ".join(f"{place(side, type_)} {type_}" for side in "lr" for type_ in TYPES)


@pytest.mark.timeout(900)
def test_no_row_makes_an_epoch_fail_whatever_a_view_does_with_it(open_database: Open) -> None:
    table = Table()
    found = [each for each in candidates() if table.takes(each)]
    assert len(found) > 300
    db = open_database()
    for name in ("prepared", "hostile"):
        db.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY, {all_columns()})")
    for start in range(0, ROWS, 25):
        db.execute(f"INSERT INTO prepared VALUES {rows(start, 25)}")
    views = [found[start : start + WIDTH] for start in range(0, len(found), WIDTH)]
    for number, expressions in enumerate(views):
        db.execute(f"CREATE MATERIALIZED VIEW v{number} AS {selected(expressions, 'hostile')}")
    db.execute("INSERT INTO hostile SELECT * FROM prepared")
    db.execute("INSERT INTO hostile (id) VALUES (-1)")
    db.execute("SET batch_expr_strict_mode = false")
    for number, expressions in enumerate(views):
        kept, asked = shown(db, f"SELECT * FROM v{number}"), shown(db, selected(expressions, "hostile"))
        wrong = [each for each, a, b in zip(["id", *expressions], kept, asked, strict=True) if a != b]
        assert not wrong
