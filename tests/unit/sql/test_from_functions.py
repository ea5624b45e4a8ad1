"""Relations as of an earlier time, aggregates around functions, and filled gaps, bound without Spark."""

from __future__ import annotations

import pytest

from seiche.errors import DatatypeMismatch, FeatureNotSupported, SyntaxError_, UndefinedColumn
from seiche.model import Column
from seiche.sql.bind import BoundQuery, BoundRelation, Settings, bind_query
from seiche.sql.parse import parse_query
from seiche.sql.time_travel import past_of, reads_past
from seiche.types import BIGINT, DOUBLE, INTEGER, TIMESTAMP, VARCHAR

NOW_MS = 1_700_000_000_000
TIDES = BoundRelation(
    5,
    "tides",
    (
        Column("harbour", INTEGER),
        Column("at", TIMESTAMP),
        Column("level", DOUBLE),
        Column("note", VARCHAR),
        Column("_row_id", BIGINT, hidden=True),
    ),
    None,
    "r5",
)


class Names:
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        assert parts[-1] == "tides"
        return TIDES


def bound(query: str, *, past: bool = True, now_ms: int | None = NOW_MS) -> BoundQuery:
    return bind_query(parse_query(query).tree, Names(), Settings(now_ms=now_ms, past=past))


@pytest.mark.parametrize(
    ("moment", "meant_ms"),
    [
        ("now()", NOW_MS),
        ("now() - '5' second", NOW_MS - 5_000),
        ("now() - INTERVAL '1 hour'", NOW_MS - 3_600_000),
        ("now() - '1' month", NOW_MS - 31 * 86_400_000),  # from 14 November to 14 October
        ("1600000000", 1_600_000_000_000),
        ("'2020-09-13T12:26:40Z'", 1_600_000_000_000),
        ("'2020-09-13 12:26:40'", 1_600_000_000_000),
    ],
)
def test_a_relation_is_read_as_of_a_moment(moment: str, meant_ms: int) -> None:
    made = bound(f"SELECT * FROM tides FOR SYSTEM_TIME AS OF {moment} WHERE harbour = 1")
    assert past_of(next(iter(made.ast.find_all(type(made.ast.args["from_"].this)))).name) == ("r5", meant_ms)
    assert made.relations == {5}
    assert reads_past(made.ast)


def test_a_relation_is_read_as_of_two_moments_in_one_query() -> None:
    made = bound("SELECT count(*) FROM tides a JOIN tides FOR SYSTEM_TIME AS OF now() - '5' second b USING (harbour)")
    assert "`r5`" in made.sql
    assert f"`r5@{NOW_MS - 5000}`" in made.sql


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT * FROM tides FOR SYSTEM_TIME AS OF harbour", SyntaxError_),
        ("WITH t AS (SELECT 1) SELECT * FROM t FOR SYSTEM_TIME AS OF now()", FeatureNotSupported),
    ],
)
def test_what_is_no_moment_or_has_no_past_is_refused(query: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        bound(query)


def test_only_a_query_reads_the_past() -> None:
    with pytest.raises(FeatureNotSupported, match="only a query"):
        bound("SELECT * FROM tides FOR SYSTEM_TIME AS OF now()", past=False)


def test_a_function_of_an_array_is_called_as_an_aggregate() -> None:
    wrapped = bound("SELECT AGGREGATE:array_sum(harbour ORDER BY at) FILTER (WHERE level > 0) FROM tides")
    plain = bound("SELECT array_sum(array_agg(harbour ORDER BY at) FILTER (WHERE level > 0)) FROM tides")
    assert wrapped.sql == plain.sql


def test_the_word_aggregate_is_still_a_name() -> None:
    assert [column.name for column in bound("SELECT harbour AS aggregate FROM tides").columns] == ["aggregate"]


def test_gap_fill_shows_the_columns_of_its_table() -> None:
    made = bound("SELECT * FROM GAP_FILL(tides, at, INTERVAL '1' MINUTE, LOCF(note), PARTITION_BY(harbour)) AS g")
    assert [(column.name, column.type) for column in made.columns] == [
        ("harbour", INTEGER),
        ("at", TIMESTAMP),
        ("level", DOUBLE),
        ("note", VARCHAR),
    ]
    assert made.relations == {5}


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("tides, level, INTERVAL '1 minute'", DatatypeMismatch),
        ("tides, at, INTERVAL '1 month'", FeatureNotSupported),
        ("tides, at, INTERVAL '0 seconds'", SyntaxError_),
        ("tides, at, INTERVAL '1 minute', INTERPOLATE(note)", DatatypeMismatch),
        ("tides, at, INTERVAL '1 minute', LOCF(depth)", UndefinedColumn),
        ("tides, at, INTERVAL '1 minute', upper(note)", SyntaxError_),
        ("tides, at", SyntaxError_),
    ],
)
def test_gap_fill_tells_what_it_cannot_fill(arguments: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        bound(f"SELECT * FROM GAP_FILL({arguments})")


def test_a_row_with_a_star_is_the_row_as_an_argument() -> None:
    starred = bound("SELECT jsonb_agg((ROW(harbour, note)).* ORDER BY harbour) FROM tides")
    assert starred.sql == bound("SELECT jsonb_agg(ROW(harbour, note) ORDER BY harbour) FROM tides").sql
