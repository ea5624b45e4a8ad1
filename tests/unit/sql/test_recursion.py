"""What a recursive query may look like, in PostgreSQL's words where it may not, and what it is bound to."""

from __future__ import annotations

import pytest

from seiche.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidRecursion,
    SeicheError,
    SyntaxError_,
    UndefinedColumn,
)
from seiche.query import is_stored, render
from seiche.sql.recursion import holds_recursion, only_stored, recursion_of
from tests.unit.plan.harbour import Harbour

TAKEN = [
    "SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 10",
    "VALUES (1) UNION SELECT n + 1 FROM t WHERE n < 10",
    "(SELECT 1) UNION ALL (SELECT n FROM t ORDER BY n LIMIT 3)",
    "SELECT 1 UNION ALL SELECT s.id FROM t JOIN ships s ON s.id = t.n",
    "SELECT 1 UNION ALL SELECT s.id FROM t LEFT JOIN ships s ON s.id = t.n",
    "SELECT 1 UNION ALL SELECT s.id FROM ships s RIGHT JOIN t ON s.id = t.n",
    "SELECT 1 UNION ALL SELECT s.id FROM t, ships a LEFT JOIN ships s ON s.id = a.id",
    "SELECT 1 UNION ALL SELECT x.n FROM (SELECT n FROM t) x",
    "SELECT 1 UNION ALL (SELECT n FROM t UNION ALL SELECT id FROM ships)",
    "SELECT 1 UNION ALL (SELECT n FROM t INTERSECT SELECT id FROM ships)",
    "SELECT 1 UNION ALL (SELECT n FROM t EXCEPT SELECT id FROM ships)",
    "SELECT 1 UNION ALL SELECT n FROM t WHERE n IN (SELECT id FROM ships)",
    "SELECT 1 UNION ALL SELECT DISTINCT n FROM t",
    "SELECT 1 UNION ALL (WITH u AS (SELECT n FROM t) SELECT n FROM u)",
    "SELECT 1 UNION ALL SELECT n FROM t WHERE n = (WITH t AS (SELECT 1 AS one) SELECT one FROM t)",
    "SELECT NULL::int UNION ALL SELECT NULL FROM t WHERE n < 3",
]


@pytest.mark.parametrize("query", TAKEN)
def test_forms_that_postgres_takes_are_taken(query: str) -> None:
    found = Harbour().bound(f"WITH RECURSIVE t(n) AS ({query}) SELECT n FROM t")
    assert holds_recursion(found.ast)
    assert [column.name for column in found.columns] == ["n"]


REFUSED: list[tuple[str, type[SeicheError], str]] = [
    ("SELECT n FROM t", InvalidRecursion, "does not have the form non-recursive-term UNION [ALL] recursive-term"),
    ("SELECT 1 INTERSECT SELECT n FROM t", InvalidRecursion, "does not have the form"),
    ("SELECT n FROM t UNION ALL SELECT 1", InvalidRecursion, "must not appear within its non-recursive term"),
    ("SELECT 1 UNION ALL SELECT n FROM t UNION ALL SELECT n FROM t", InvalidRecursion, "its non-recursive term"),
    ("SELECT 1 UNION ALL SELECT t.n FROM t, t AS b", InvalidRecursion, "must not appear more than once"),
    ("SELECT 1 UNION ALL SELECT id FROM ships LEFT JOIN t ON n = id", InvalidRecursion, "within an outer join"),
    ("SELECT 1 UNION ALL SELECT id FROM t RIGHT JOIN ships ON n = id", InvalidRecursion, "within an outer join"),
    ("SELECT 1 UNION ALL SELECT id FROM t FULL JOIN ships ON n = id", InvalidRecursion, "within an outer join"),
    ("SELECT 1 UNION ALL SELECT id FROM ships WHERE id IN (SELECT n FROM t)", InvalidRecursion, "within a subquery"),
    ("SELECT 1 UNION ALL SELECT (SELECT n FROM t)", InvalidRecursion, "within a subquery"),
    ("SELECT 1 UNION ALL (SELECT id FROM ships EXCEPT SELECT n FROM t)", InvalidRecursion, "within EXCEPT"),
    ("SELECT 1 UNION ALL (SELECT n FROM t EXCEPT ALL SELECT id FROM ships)", InvalidRecursion, "within EXCEPT"),
    ("SELECT 1 UNION ALL (SELECT n FROM t INTERSECT ALL SELECT 1)", InvalidRecursion, "within INTERSECT"),
    (
        "SELECT 1 UNION ALL SELECT max(n) FROM t",
        InvalidRecursion,
        "aggregate functions are not allowed in a recursive query's recursive term",
    ),
    ("SELECT 1 UNION ALL SELECT n FROM t ORDER BY 1", FeatureNotSupported, "ORDER BY in a recursive query"),
    ("SELECT 1 UNION ALL SELECT n FROM t LIMIT 9", FeatureNotSupported, "LIMIT in a recursive query"),
    ("SELECT 1 UNION ALL SELECT n, 2 FROM t", SyntaxError_, "each UNION query must have the same number of columns"),
    ("SELECT 1 UNION ALL SELECT x FROM t", UndefinedColumn, 'column "x" does not exist'),
    (
        "SELECT 1 UNION ALL SELECT n * 1.5 FROM t",
        DatatypeMismatch,
        'recursive query "t" column 1 has type integer in non-recursive term but type numeric overall',
    ),
    (
        "SELECT 1 UNION ALL SELECT n::bigint FROM t",
        DatatypeMismatch,
        'recursive query "t" column 1 has type integer in non-recursive term but type bigint overall',
    ),
]


@pytest.mark.parametrize(("query", "kind", "message"), REFUSED)
def test_what_postgres_refuses_is_refused_in_its_words(query: str, kind: type[SeicheError], message: str) -> None:
    for reading in ("SELECT n FROM t", "SELECT 1"):  # also where nothing reads it
        with pytest.raises(kind) as caught:
            Harbour().bound(f"WITH RECURSIVE t(n) AS ({query}) {reading}")
        assert message in caught.value.message


def test_too_many_names_of_columns_are_refused() -> None:
    with pytest.raises(InvalidColumnReference, match="has 1 columns available but 2 columns specified"):
        Harbour().bound("WITH RECURSIVE t(n, m) AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT n FROM t")


def test_queries_that_read_each_other_in_a_circle_are_refused() -> None:
    with pytest.raises(FeatureNotSupported, match="mutual recursion between WITH items is not implemented"):
        Harbour().bound(
            "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n FROM b), b AS (SELECT n FROM a) SELECT n FROM a"
        )


def test_a_query_may_read_one_that_comes_later() -> None:
    found = Harbour().bound(
        "WITH RECURSIVE a AS (SELECT n FROM b), b(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM b WHERE n < 3),"
        " c AS (SELECT 2 AS n) SELECT a.n FROM a JOIN c ON a.n = c.n"
    )
    assert [column.name for column in found.columns] == ["n"]


def test_a_query_that_reads_itself_is_no_recursion_without_the_word() -> None:
    with pytest.raises(SeicheError) as caught:
        Harbour().bound("WITH t AS (SELECT 1 AS n UNION ALL SELECT n FROM t) SELECT n FROM t")
    assert caught.value.sqlstate == "42P01"


def test_the_types_are_those_of_the_base_and_a_numeric_has_all_its_digits() -> None:
    found = Harbour().bound(
        "WITH RECURSIVE t(a, b, c) AS (SELECT 'x', 1.5, 2::bigint UNION ALL"
        " SELECT a || 'y', b * 1.25, 3 FROM t WHERE b < 9) SELECT a, b, c FROM t"
    )
    assert [str(column.type) for column in found.columns] == ["character varying", "numeric", "bigint"]
    assert (found.columns[1].type.precision, found.columns[1].type.scale) == (38, 18)


def test_every_use_of_a_query_is_the_same_tree() -> None:
    found = Harbour().bound(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SELECT a.n FROM t a, t b"
    )
    trees = [each for each in found.ast.walk() if recursion_of(each) is not None]
    assert len(trees) == 2
    assert trees[0] == trees[1]


def test_two_queries_have_rounds_of_their_own() -> None:
    found = Harbour().bound(
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3),"
        " u(n) AS (SELECT n FROM t UNION SELECT n + 1 FROM u WHERE n < 3) SELECT t.n FROM t, u"
    )
    rounds = {made.rounds for each in found.ast.walk() if (made := recursion_of(each)) is not None}
    assert len(rounds) == 2


def test_spark_is_never_asked_for_a_recursion_as_it_is() -> None:
    found = Harbour().bound("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n FROM t WHERE n < 1) SELECT n FROM t")
    with pytest.raises(FeatureNotSupported, match="but not be part of another statement"):
        render(found.ast, str)


def test_what_is_not_stored_is_told_from_the_rows_of_a_round() -> None:
    harbour = Harbour()
    found = harbour.bound("WITH RECURSIVE t(n) AS (SELECT id FROM ships UNION SELECT n FROM t) SELECT n FROM t")
    assert only_stored(found.ast, is_stored)
    assert not only_stored(found.ast, lambda name: name != "r1")
