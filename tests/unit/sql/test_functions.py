"""Functions, casts and literals without Spark: types of results, constants read at bind time, marks of failure."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlglot

from seiche.errors import (
    CardinalityViolation,
    DatetimeOutOfRange,
    DivisionByZero,
    InvalidText,
    InvariantError,
    NumericOutOfRange,
    SeicheError,
    UndefinedFunction,
)
from seiche.model import Column
from seiche.sql.bind import Settings, bind_expression
from seiche.sql.casts import Context, castable, common_type
from seiche.sql.dialect import Seiche
from seiche.sql.failures import failure_of, translate_spark_error
from seiche.sql.literals import canonical_json, parse_interval, parse_time
from seiche.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    array_of,
    numeric,
)

TIDES = (
    Column("s", SMALLINT), Column("i", INTEGER), Column("b", BIGINT), Column("n", numeric(10, 2, declared=True)),
    Column("f", NUMERIC), Column("r", REAL), Column("d", DOUBLE), Column("t", VARCHAR), Column("day", DATE),
    Column("ts", TIMESTAMP), Column("tz", TIMESTAMPTZ), Column("iv", INTERVAL), Column("j", JSONB),
    Column("a", array_of(INTEGER)), Column("x", numeric(3, 3, declared=True)),
)  # fmt: skip


def typed(text: str, *, strict: bool = True) -> SqlType:
    return bind_expression(text, TIDES, Settings(now_ms=0, strict=strict)).type


def sql(text: str, *, strict: bool = True) -> str:
    return bind_expression(text, TIDES, Settings(now_ms=0, strict=strict)).ast.sql("spark")


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("s + s", SMALLINT),
        ("s + i", INTEGER),
        ("i + b", BIGINT),
        ("i / 2", INTEGER),
        ("i + n", numeric(13, 2, declared=True)),
        ("n * n", numeric(21, 4, declared=True)),
        ("n / 3", NUMERIC),
        ("f + f", NUMERIC),
        ("f * f", NUMERIC),
        ("i + d", DOUBLE),
        ("r + r", REAL),
        ("r + d", DOUBLE),
        ("i + 1.5", numeric(12, 1, declared=True)),
        ("day - day", INTEGER),
        ("day + 1", DATE),
        ("day + iv", TIMESTAMP),
        ("ts - ts", INTERVAL),
        ("tz + iv", TIMESTAMPTZ),
        ("iv * 2", INTERVAL),
        ("t || i", VARCHAR),
        ("a || 1", array_of(INTEGER)),
        ("a[1]", INTEGER),
        ("a[1:2]", array_of(INTEGER)),
        ("j -> 'a'", JSONB),
        ("j ->> 'a'", VARCHAR),
        ("abs(n)", numeric(10, 2, declared=True)),
        ("length(t)", INTEGER),
        ("coalesce(i, b)", BIGINT),
        ("i = b", BOOLEAN),
        ("to_timestamp(1)", TIMESTAMPTZ),
        ("date_part('year', ts)", DOUBLE),
        ("power(i, 2)", DOUBLE),
        ("NULL", VARCHAR),
        ("'x'", VARCHAR),
        ("array[1, 2.5]", array_of(numeric(11, 1))),
        ("case when i = 1 then 1 else b end", BIGINT),
        ("sqrt(i)", DOUBLE),
        ("sqrt(n)", NUMERIC),
    ],
)
def test_result_types_are_those_of_postgres(text: str, type_: SqlType) -> None:
    assert typed(text) == type_
    assert typed(text, strict=False) == type_


def test_decimals_that_fit_are_multiplied_plainly() -> None:
    assert sql("n * x") == "(`n` * `x`)"


def test_wide_decimals_keep_their_digits() -> None:
    assert sql("f * f").startswith(
        "COALESCE(CAST((TRY_CAST(`f` AS DECIMAL(28, 18)) * TRY_CAST(`f` AS DECIMAL(28, 18)))"
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1 day", (0, 1, 0)),
        ("1 year 2 mons", (14, 0, 0)),
        ("02:03:04.5", (0, 0, 7_384_500_000)),
        ("-1 day", (0, -1, 0)),
        ("1 day -02:00", (0, 1, -7_200_000_000)),
        ("1 day ago", (0, -1, 0)),
        ("1.5 days", (0, 1, 43_200_000_000)),
        ("2 weeks", (0, 14, 0)),
        ("P1Y2M3DT4H5M6S", (14, 3, 14_706_000_000)),
        ("1-2", (14, 0, 0)),
        ("90", (0, 0, 90_000_000)),
        ("1 h 5 min 3 us", (0, 0, 3_900_000_003)),
    ],
)
def test_interval_text_is_read_in_its_three_parts(text: str, parts: tuple[int, int, int]) -> None:
    assert parse_interval(text) == parts


@pytest.mark.parametrize("text", ["", "soon", "1 fortnight", "day"])
def test_wrong_interval_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidText, match="invalid input syntax for type interval"):
        parse_interval(text)


def test_time_text_is_microseconds_since_midnight() -> None:
    assert parse_time("13:45:06.5") == 49_506_500_000
    with pytest.raises(DatetimeOutOfRange):
        parse_time("25:00")


def test_json_becomes_canonical() -> None:
    assert canonical_json('{"b": [1, 2.50, null], "a": "é"}') == '{"a":"é","b":[1,2.50,null]}'
    with pytest.raises(InvalidText, match="invalid input syntax for type json"):
        canonical_json("{nope")


@pytest.mark.parametrize(
    ("source", "target", "context"),
    [
        (INTEGER, BIGINT, Context.IMPLICIT),
        (BIGINT, INTEGER, Context.ASSIGNMENT),
        (INTEGER, VARCHAR, Context.ASSIGNMENT),
        (VARCHAR, INTEGER, Context.EXPLICIT),
        (DATE, TIMESTAMP, Context.IMPLICIT),
        (TIMESTAMP, DATE, Context.ASSIGNMENT),
        (INTEGER, BOOLEAN, Context.EXPLICIT),
        (NUMERIC, DOUBLE, Context.IMPLICIT),
        (DOUBLE, NUMERIC, Context.ASSIGNMENT),
    ],
)
def test_casts_happen_from_their_context_on(source: SqlType, target: SqlType, context: Context) -> None:
    assert [castable(source, target, each) for each in Context] == [each >= context for each in Context]


def test_common_type_is_the_wider_one() -> None:
    assert common_type([SMALLINT, BIGINT], "CASE") == BIGINT
    assert common_type([numeric(5, 2), numeric(6, 1)], "CASE") == numeric(7, 2)
    assert common_type([INTEGER, NUMERIC], "CASE") == NUMERIC
    assert common_type([DATE, TIMESTAMPTZ], "CASE") == TIMESTAMPTZ


def test_unknown_call_names_its_types() -> None:
    with pytest.raises(UndefinedFunction, match=r"function substring\(integer, integer\) does not exist"):
        typed("substring(i, 2)")


# --- failures ----------------------------------------------------------------------------------------


def failure(text: str) -> str | None:
    made = failure_of(bind_expression(text, TIDES, Settings(now_ms=0, strict=False)).ast)
    return None if made is None else made.sql("spark")


@pytest.mark.parametrize(
    "text",
    [
        "i",
        "t || 'x'",
        "n + 1",
        "i > 5",
        "day + 1",
        "lower(t)",
        "d * 2",
        "n::text",
        "i::bigint",
        "i % 7",
        "b % -7",
        "n % 2",
    ],
)
def test_expression_that_cannot_fail_has_no_failure(text: str) -> None:
    assert failure(text) is None


@pytest.mark.parametrize("text", ["i % 0", "i % i", "b % (7 - 7)", "n % 0.0", "i % null"])
def test_a_remainder_may_fail_unless_it_is_by_a_number_that_is_not_zero(text: str) -> None:
    assert failure(text) is not None


def test_failure_is_null_where_the_operands_are_not() -> None:
    assert failure("t::int") == "TRY_CAST(`t` AS INT) IS NULL AND NOT `t` IS NULL"


def test_a_pattern_of_a_row_is_attempted_and_one_that_is_written_down_is_not() -> None:
    assert sql("t ~ 'a+'", strict=False) == sql("t ~ 'a+'")
    in_reach = "NOT ((LENGTH(`t`) > 10000) AND CONTAINS(`t`, ')'))"
    reached = f"CASE WHEN {in_reach} THEN `t` END"
    attempt = f"SEICHE_ATTEMPT(RLIKE({reached}, CONCAT('(?s)', `t`)))"
    assert sql("t ~ t", strict=False) == attempt
    failed = f"({attempt} IS NULL AND NOT {reached} IS NULL AND NOT CONCAT('(?s)', `t`) IS NULL)"
    assert failure("t ~ t") == f"COALESCE(NOT {in_reach}, FALSE) OR {failed}"


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("regexp_replace(t, t, 'x')", "RLIKE("),
        ("regexp_replace(t, t, 'x')", "REGEXP_INSTR("),
        ("split_part(t, t, i)", "SPLIT_PART("),
        ("repeat(t, i)", "REPEAT("),
    ],
)
def test_what_an_attempt_is_about_is_never_evaluated_outside_of_it(text: str, called: str) -> None:
    for made in (sql(text, strict=False), failure(text) or ""):
        assert made.count(f"SEICHE_ATTEMPT({called}") == made.count(called) > 0


@pytest.mark.parametrize(
    "text",
    [
        "day < ts", "day = tz", "day::timestamp", "date_trunc('year', ts)", "ts + interval '1 day'",
        "interval '1 day' * d", "j -> 'a'", "j ->> i", "j - 'a'", "j || j", "j ? t",
    ],
)  # fmt: skip
def test_what_a_row_can_make_fail_is_attempted_in_a_view_alone(text: str) -> None:
    assert "SEICHE_ATTEMPT(" in sql(text, strict=False)
    assert "SEICHE_ATTEMPT(" not in sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "n::numeric(12, 2)",
        "n < f",
        "i::bigint",
        "i + b",
        "-f",
        "ts::date",
        "iv::varchar",
        "tz::varchar",
        "a[i]",
        "s << i",
    ],
)
def test_what_cannot_fail_is_not_attempted(text: str) -> None:
    assert "SEICHE_ATTEMPT(" not in sql(text, strict=False)


@pytest.mark.parametrize("text", ["i && i", "t && a", "j ?| j", "j ?& i", "j ? iv", "j #> i", "i @> j"])
def test_an_operator_of_arrays_or_json_over_other_types_does_not_exist(text: str) -> None:
    with pytest.raises(UndefinedFunction, match="operator does not exist"):
        sql(text, strict=False)


def test_what_is_nested_does_not_grow_by_powers() -> None:
    sizes = [len(sql(f"{'trunc(1.5 * ' * depth}f / 3{') / f' * depth}", strict=False)) for depth in (2, 4, 6)]
    assert sizes[2] - sizes[1] < 2 * (sizes[1] - sizes[0])
    failed = failure(f"{'trunc(1.5 * ' * 6}f / 3{') / f' * 6}")
    assert failed is not None
    assert len(failed) < 20 * sizes[2]


def test_failure_looks_through_the_guard_of_a_divisor() -> None:
    made = failure("1 / i")
    assert made is not None
    assert "NOT `i` IS NULL" in made
    assert "NOT NULLIF" not in made


def test_branch_not_taken_does_not_fail() -> None:
    made = failure("case when i <> 0 then 1 / i end")
    assert made is not None
    assert made.startswith("CASE WHEN (`i` <> 0) THEN")


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        ("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012", DivisionByZero, "division by zero"),
        (
            '[CAST_INVALID_INPUT] The value \'abc\' of the type "STRING" cannot be cast to "INT" because it is bad.',
            InvalidText,
            'invalid input syntax for type integer: "abc"',
        ),
        (
            '[CAST_OVERFLOW] The value 5000000000L of the type "BIGINT" cannot be cast to "INT" due to an overflow.',
            NumericOutOfRange,
            "integer out of range",
        ),
        ("[ARITHMETIC_OVERFLOW] long overflow. Use 'try_add'", NumericOutOfRange, "bigint out of range"),
        (
            "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned",
            CardinalityViolation,
            "more than one row returned by a subquery",
        ),
        (
            "[USER_RAISED_EXCEPTION] value out of range: underflow SQLSTATE: P0001",
            NumericOutOfRange,
            "value out of range: underflow",
        ),
        (
            '[USER_RAISED_EXCEPTION] invalid input syntax for type integer: "quay" SQLSTATE: P0001',
            InvalidText,
            'invalid input syntax for type integer: "quay"',
        ),
        (
            "[USER_RAISED_EXCEPTION] date field value out of range: 0-1-1. It is no date. SQLSTATE: P0001",
            DatetimeOutOfRange,
            "date field value out of range: 0-1-1",
        ),
        ("something else", InvariantError, "unexpected RuntimeError"),
    ],
)
def test_errors_of_spark_become_those_of_postgres(message: str, kind: type[SeicheError], text: str) -> None:
    made = translate_spark_error(RuntimeError(message))
    assert isinstance(made, kind)
    assert text in made.message


def test_cause_of_a_wrapped_error_is_found() -> None:
    wrapped = RuntimeError("job aborted")
    wrapped.__cause__ = RuntimeError("[DIVIDE_BY_ZERO] Division by zero.")
    assert isinstance(translate_spark_error(wrapped), DivisionByZero)


# --- grammar -----------------------------------------------------------------------------------------


def test_interval_keeps_the_text_between_its_quotes() -> None:
    node = sqlglot.parse_one("interval '1 day 02:00'", dialect=Seiche)
    assert node.this.name == "1 day 02:00"


def test_calls_keep_their_names_and_arguments() -> None:
    node = sqlglot.parse_one("to_char(ts, 'FMDay')", dialect=Seiche)
    assert node.name == "to_char"
    assert node.expressions[1].name == "FMDay"


def test_numbers_are_kept_exactly() -> None:
    assert str(Decimal("0.1")) in sql("0.1")


def test_statements_that_are_too_complex_to_plan_are_told_so() -> None:
    for raised in (RecursionError("maximum recursion depth exceeded"), RuntimeError("[FAILED_TO_PARSE_TOO_COMPLEX] …")):
        made = translate_spark_error(raised)
        assert made.sqlstate == "54001"
        assert made.message == "statement is nested too deeply"
