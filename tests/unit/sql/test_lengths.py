"""Text of limited length and numbers of limited precision: what a column takes, and what a cast leaves."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from seiche import types
from seiche.errors import InvalidParameter, NumericOutOfRange, StringTooLong
from seiche.model import Column
from seiche.sql.bind import BoundQuery, BoundRelation, Settings, bind_expression, bind_insert, bind_query, bind_update
from seiche.sql.dialect import Seiche
from seiche.sql.failures import translate_spark_error
from seiche.sql.lengths import too_long
from seiche.types import INTEGER, VARCHAR, SqlType

SHIPS = BoundRelation(
    7,
    "ships",
    (
        Column("id", INTEGER),
        Column("flag", types.character(2)),
        Column("name", types.varchar(5)),
        Column("fee", types.numeric(5, 2, declared=True)),
        Column("tags", types.array_of(types.varchar(3))),
    ),
    None,
    "r7",
)


class Harbour:
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        return SHIPS


def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, dialect=Seiche)


def inserted(column: str, value: str) -> str:
    return bind_insert(SHIPS, [column], parsed(f"VALUES ({value})"), Harbour(), Settings(now_ms=0)).sql


@pytest.mark.parametrize(
    ("type_", "shown"),
    [
        (types.varchar(5), "character varying(5)"),
        (types.character(2), "character(2)"),
        (types.array_of(types.varchar(5)), "character varying(5)[]"),
        (VARCHAR, "character varying"),
    ],
)
def test_a_length_is_shown_and_kept_by_the_catalog(type_: SqlType, shown: str) -> None:
    assert str(type_) == shown
    assert SqlType.from_json(type_.to_json()) == type_


def test_a_bare_type_has_no_length_inside_either() -> None:
    nested = types.struct_of(("a", types.array_of(types.varchar(5))), ("b", INTEGER))
    assert nested.has_length
    assert nested.bare == types.struct_of(("a", types.array_of(VARCHAR)), ("b", INTEGER))
    assert INTEGER.bare is INTEGER


@pytest.mark.parametrize(
    ("column", "value", "stored"),
    [
        ("name", "'Ada'", "'Ada'"),
        ("name", "'Ada    '", "'Ada  '"),  # only spaces are lost
        ("flag", "'N  '", "'N'"),
        ("flag", "'NO   '", "'NO'"),
    ],
)
def test_a_constant_that_fits_is_stored_as_it_is(column: str, value: str, stored: str) -> None:
    sql = inserted(column, value)
    assert stored in sql
    assert "raise_error" not in sql.lower()


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("name", "'Aurora'", "value too long for type character varying(5)"),
        ("name", "'Auro  a'", "value too long for type character varying(5)"),
        ("flag", "'NOR'", "value too long for type character(2)"),
    ],
)
def test_a_constant_that_does_not_fit_is_refused_before_anything_runs(column: str, value: str, message: str) -> None:
    with pytest.raises(StringTooLong, match=message.replace("(", r"\(").replace(")", r"\)")) as caught:
        inserted(column, value)
    assert caught.value.sqlstate == "22001"


@pytest.mark.parametrize(
    "sql",
    [
        inserted("name", "upper('aurora')"),
        inserted("tags", "ARRAY[upper('north')]"),
        bind_update(SHIPS, None, [("name", parsed("name || flag"))], None, Harbour(), Settings(now_ms=0)).sql,
    ],
    ids=["insert", "array", "update"],
)
def test_what_is_known_at_run_time_only_is_checked_there(sql: str) -> None:
    assert "value too long for type character varying(" in sql


def query(text: str) -> BoundQuery:
    return bind_query(parsed(text), Harbour(), Settings(now_ms=0))


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("'Aurora'::varchar(3)", "'Aur'"),
        ("'Aurora'::char(3)", "'Aur'"),
        ("'A  rora'::char(3)", "'A'"),
        ("'Aurora'::char", "'A'"),
        ("CAST('Aurora' AS character varying(3))", "'Aur'"),
        ("'Aurora'::varchar", "'Aurora'"),
        ("'Aurora'::bpchar", "'Aurora'"),
    ],
)
def test_an_explicit_cast_cuts(text: str, answer: str) -> None:
    bound = bind_expression(parsed(text), (), Settings(now_ms=0))
    assert bound.ast.sql("spark") == answer
    assert bound.type == VARCHAR


def test_an_explicit_cast_of_a_column_cuts_at_run_time() -> None:
    assert "LEFT(`ships`.`name`, 2)" in query("SELECT name::varchar(2) FROM ships").sql


def test_expressions_over_columns_with_a_length_have_none() -> None:
    assert [column.type for column in query("SELECT name, flag, name || flag FROM ships").columns] == [VARCHAR] * 3
    assert query("SELECT name FROM ships UNION SELECT 'x'").columns[0].type == VARCHAR


def test_a_cast_to_no_characters_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="length for type varchar must be at least 1"):
        query("SELECT 'a'::varchar(0)")


@pytest.mark.parametrize("value", ["'1000'", "'-1000.5'", "'999.999'"])
def test_a_number_that_would_round_beyond_its_precision_is_refused(value: str) -> None:
    with pytest.raises(NumericOutOfRange, match="numeric field overflow") as caught:
        inserted("fee", value)
    assert caught.value.sqlstate == "22003"
    assert caught.value.detail == "A field with precision 5, scale 2 must round to an absolute value less than 10^3."


def test_a_number_that_rounds_into_its_precision_is_taken() -> None:
    assert "999.994" in inserted("fee", "'999.994'")


def test_what_spark_says_at_run_time_becomes_the_error_of_postgres() -> None:
    raised = translate_spark_error(
        RuntimeError(f"[USER_RAISED_EXCEPTION] {too_long(types.varchar(5))} SQLSTATE: P0001")
    )
    assert isinstance(raised, StringTooLong)
    assert raised.message == "value too long for type character varying(5)"
    overflow = translate_spark_error(
        RuntimeError(
            "[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] 1000.00 cannot be represented as Decimal(5, 2). If necessary"
        )
    )
    assert isinstance(overflow, NumericOutOfRange)
    assert overflow.detail == "A field with precision 5, scale 2 must round to an absolute value less than 10^3."
