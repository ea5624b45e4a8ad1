"""Functions in SQL: read by the grammar, inlined where they are called."""

from __future__ import annotations

import pytest
import sqlglot

from seiche.errors import (
    AmbiguousFunction,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidDefinition,
    SeicheError,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedTable,
)
from seiche.model import Column
from seiche.sql.bind import BoundRelation, Settings, bind_query, check_function
from seiche.sql.dialect import Seiche
from seiche.sql.parse import parse
from seiche.sql.statements import CreateFunction, Drop
from seiche.sql.user_functions import UserFunction
from seiche.types import BIGINT, INTEGER, NUMERIC, VARCHAR, array_of, struct_of

SHIPS = BoundRelation(1, "ships", (Column("id", INTEGER), Column("name", VARCHAR), Column("load", NUMERIC)), None, "r1")
TOLERANT = Settings(now_ms=0, strict=False)


class Harbour:
    """Names of one table, and functions."""

    def __init__(self, *definitions: str) -> None:
        self._functions = [written(each) for each in definitions]
        self.called: list[UserFunction] = []

    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        if parts[-1] == "ships":
            return SHIPS
        raise UndefinedTable(f'relation "{parts[-1]}" does not exist')

    def functions(self, name: str) -> list[UserFunction]:
        return [each for each in self._functions if each.name == name]

    def call(self, function: UserFunction) -> None:
        self.called.append(function)


def written(text: str) -> UserFunction:
    (parsed,) = parse(text)
    statement = parsed.statement
    assert isinstance(statement, CreateFunction)
    parameters = tuple((each.name, each.type) for each in statement.parameters)
    return UserFunction(
        statement.name.name,
        parameters,
        statement.returns,
        statement.body,
        statement.strict,
        statement.language,
        aggregate=statement.aggregate,
        columns=statement.columns,
    )


def bound(query: str, *definitions: str) -> str:
    return bind_query(sqlglot.parse_one(query, dialect=Seiche), Harbour(*definitions), TOLERANT).sql


NEXT = "CREATE FUNCTION next_berth(b int) RETURNS int LANGUAGE sql AS $$ SELECT b + 1 $$"


def test_a_call_is_replaced_by_the_body() -> None:
    assert bound("SELECT next_berth(id) FROM ships", NEXT) == (
        "SELECT (TRY_ADD(`ships`.`id`, 1)) AS `next_berth` FROM `r1` AS `ships`"
    )


def test_parameters_go_by_number_too() -> None:
    by_number = "CREATE FUNCTION next_berth(int) RETURNS int AS 'SELECT $1 + 1' LANGUAGE sql"
    assert bound("SELECT next_berth(id) FROM ships", by_number) == bound("SELECT next_berth(id) FROM ships", NEXT)


def test_a_body_may_call_another_function() -> None:
    twice = "CREATE FUNCTION twice(b int) RETURNS bigint RETURN next_berth(next_berth(b))"
    assert "TRY_ADD((TRY_ADD(`ships`.`id`, 1)), 1)" in bound("SELECT twice(id) FROM ships", NEXT, twice)


def test_a_body_over_a_table_becomes_a_subquery_of_the_row() -> None:
    heavier = "CREATE FUNCTION heavier(l numeric) RETURNS bigint AS $$ SELECT count(*) FROM ships WHERE load > l $$"
    made = bound("SELECT heavier(load) FROM ships s", heavier)
    assert "(SELECT COUNT(*) AS `count` FROM `r1` AS `ships` WHERE (`ships`.`load` > `s`.`load`))" in made


def test_a_strict_function_gives_null_for_null() -> None:
    strict = NEXT.replace("LANGUAGE sql", "LANGUAGE sql STRICT IMMUTABLE")
    assert "CASE WHEN NOT `ships`.`id` IS NULL THEN" in bound("SELECT next_berth(id) FROM ships", strict)


def test_a_function_that_calls_itself_is_refused() -> None:
    endless = "CREATE FUNCTION endless(b int) RETURNS int AS 'SELECT endless(b)'"
    with pytest.raises(FeatureNotSupported, match="calls itself"):
        bound("SELECT endless(1)", endless)


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT next_berth('a')", SeicheError),
        ("SELECT next_berth(true)", UndefinedFunction),
        ("SELECT next_berth(1, 2)", UndefinedFunction),
        ("SELECT next_birth(1)", UndefinedFunction),
    ],
)
def test_a_call_with_other_arguments_is_refused(query: str, error: type[SeicheError]) -> None:
    with pytest.raises(error):
        bound(query, NEXT)


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        ("CREATE FUNCTION f(a int) RETURNS int AS 'SELECT b'", UndefinedColumn),
        ("CREATE FUNCTION f(a int) RETURNS int AS 'SELECT $2'", InvalidDefinition),
        ("CREATE FUNCTION f(a int) RETURNS date AS 'SELECT a'", DatatypeMismatch),
        ("CREATE FUNCTION f(a int) RETURNS int AS 'DELETE FROM ships'", InvalidDefinition),
        ("CREATE FUNCTION f(a int) RETURNS int AS 'SELECT ('", InvalidDefinition),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_at_creation(definition: str, error: type[SeicheError]) -> None:
    with pytest.raises(error):
        check_function(written(definition), Harbour(), TOLERANT)


@pytest.mark.parametrize(
    ("definition", "error"),
    [
        ("CREATE FUNCTION f() AS 'SELECT 1'", InvalidDefinition),
        ("CREATE FUNCTION f() RETURNS int", InvalidDefinition),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE java AS 'x'", FeatureNotSupported),
        ("CREATE FUNCTION f() RETURNS TABLE (a int) AS 'SELECT 1'", FeatureNotSupported),
    ],
)
def test_a_definition_that_lacks_something_is_refused(definition: str, error: type[SeicheError]) -> None:
    with pytest.raises(error):
        parse(definition)


def test_the_grammar_reads_every_part() -> None:
    (parsed,) = parse(
        "CREATE OR REPLACE FUNCTION area(w double precision, numeric(5, 1), tags text[]) RETURNS bigint "
        "IMMUTABLE LANGUAGE SQL RETURNS NULL ON NULL INPUT AS 'SELECT 1'"
    )
    statement = parsed.statement
    assert isinstance(statement, CreateFunction)
    assert [(each.name, str(each.type)) for each in statement.parameters] == [
        ("w", "double precision"), (None, "numeric(5,1)"), ("tags", "character varying[]"),
    ]  # fmt: skip
    assert (statement.returns, statement.strict, statement.or_replace) == (BIGINT, True, True)


def test_a_function_is_dropped_with_or_without_its_types() -> None:
    (parsed,) = parse("DROP FUNCTION IF EXISTS area(int, text), next_berth CASCADE")
    statement = parsed.statement
    assert isinstance(statement, Drop)
    assert [str(name) for name in statement.names] == ["area", "next_berth"]


MEAN = """CREATE AGGREGATE mean_load(load float, weight int) RETURNS float LANGUAGE python AS $$
def create_state():
    return []
def accumulate(state, load, weight):
    return state + [load] * weight
def finish(state):
    return sum(state) / len(state)
$$"""


def test_an_aggregate_of_the_user_takes_the_rows_of_its_group() -> None:
    name = written(MEAN).spark_name(raises=False)
    made = bound("SELECT name, mean_load(load, 2) FROM ships GROUP BY name", MEAN)
    assert f"{name.upper()}(" in made
    assert "GROUP BY `ships`.`name`" in made


def test_an_aggregate_of_the_user_is_a_window_function_too() -> None:
    made = bound("SELECT mean_load(load, 1) OVER (PARTITION BY name ORDER BY id) FROM ships", MEAN)
    assert "OVER (PARTITION BY `ships`.`name`" in made


def test_a_call_of_an_aggregate_with_other_arguments_is_unknown() -> None:
    with pytest.raises(UndefinedFunction):
        bound("SELECT mean_load(load) FROM ships", MEAN)


def test_an_aggregate_is_written_in_python() -> None:
    with pytest.raises(FeatureNotSupported, match="aggregate in SQL"):
        parse("CREATE AGGREGATE f(a int) RETURNS int LANGUAGE sql AS 'SELECT 1'")


def test_an_aggregate_is_dropped_by_its_own_word() -> None:
    (parsed,) = parse("DROP AGGREGATE mean_load")
    assert isinstance(parsed.statement, Drop)
    assert parsed.statement.aggregate


DEPTHS = (
    "CREATE FUNCTION depth() RETURNS int LANGUAGE sql AS $$ SELECT 0 $$",
    "CREATE FUNCTION depth(b int) RETURNS int LANGUAGE sql AS $$ SELECT 1 $$",
    "CREATE FUNCTION depth(b varchar) RETURNS int LANGUAGE sql AS $$ SELECT 2 $$",
    "CREATE FUNCTION depth(b bigint, c int) RETURNS int LANGUAGE sql AS $$ SELECT 3 $$",
    "CREATE FUNCTION depth(b int, c bigint) RETURNS int LANGUAGE sql AS $$ SELECT 4 $$",
)


@pytest.mark.parametrize(
    ("call", "body"),
    [
        ("depth()", 0),
        ("depth(id)", 1),
        ("depth(id::smallint)", 1),
        ("depth(name)", 2),
        ("depth(id::bigint, id)", 3),
        ("depth(id, id::bigint)", 4),
    ],
)
def test_of_functions_of_one_name_the_one_is_called_whose_parameters_are_nearest(call: str, body: int) -> None:
    assert f"({body})" in bound(f"SELECT {call} AS n FROM ships", *DEPTHS)


def test_a_call_that_is_as_near_to_one_function_as_to_another_is_refused() -> None:
    with pytest.raises(AmbiguousFunction, match="depth.integer, integer. is not unique"):
        bound("SELECT depth(id, id) FROM ships", *DEPTHS)
    with pytest.raises(UndefinedFunction):
        bound("SELECT depth(id, id, id) FROM ships", *DEPTHS)


def test_only_the_function_that_is_called_is_used() -> None:
    harbour = Harbour(*DEPTHS)
    bind_query(sqlglot.parse_one("SELECT depth(name) FROM ships", dialect=Seiche), harbour, TOLERANT)
    assert [each.parameters for each in harbour.called] == [(("b", VARCHAR),)]


WORDS = """CREATE FUNCTION words(sentence varchar) RETURNS TABLE (word varchar, length int) LANGUAGE python AS $$
def words(sentence):
    return [(word, len(word)) for word in sentence.split()]
$$"""


def test_a_function_that_returns_rows_is_exploded_in_from_and_in_a_select_list() -> None:
    function = written(WORDS)
    assert function.columns == (("word", VARCHAR), ("length", INTEGER))
    assert function.returns == array_of(struct_of(*function.columns))
    exploded = f"EXPLODE({function.spark_name(raises=False).upper()}(`ships`.`name`))"
    assert exploded in bound("SELECT w.word FROM ships, words(name) AS w WHERE w.length > 3", WORDS)
    assert exploded in bound("SELECT words(name) FROM ships", WORDS)


def test_rows_of_one_column_are_bare_values() -> None:
    function = written("CREATE FUNCTION numbers() RETURNS SETOF int LANGUAGE python AS 'def numbers(): return [1]'")
    assert (function.columns, function.returns) == ((("", INTEGER),), array_of(INTEGER))


def test_rows_are_no_value() -> None:
    with pytest.raises(FeatureNotSupported, match="not allowed in WHERE"):
        bound("SELECT id FROM ships WHERE words(name) IS NULL", WORDS)
