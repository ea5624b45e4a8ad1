"""`x IN (SELECT …)`: left alone as a condition, asked in three parts inside an expression."""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot import exp

from seiche.sql.membership import null_aware


def spelled(text: str) -> exp.Expr:
    return null_aware(sqlglot.parse_one(text, read="spark"))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM ships WHERE name IN (SELECT name FROM logbook)",
        "SELECT id FROM ships WHERE id > 1 AND NOT name IN (SELECT name FROM logbook)",
        "SELECT count(*) FROM ships GROUP BY name HAVING name IN (SELECT name FROM logbook)",
        "SELECT s.id FROM ships AS s JOIN berths AS b ON s.name IN (SELECT name FROM logbook)",
        "SELECT name IN ('Aurora', 'Borealis') FROM ships",
    ],
)
def test_a_condition_by_itself_and_a_list_stay_as_they_are(text: str) -> None:
    assert spelled(text) == sqlglot.parse_one(text, read="spark")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name IN (SELECT name FROM logbook) FROM ships",
        "SELECT id FROM ships WHERE NOT name IN (SELECT name FROM logbook) OR id = 1",
        "SELECT id FROM ships WHERE CASE WHEN name IN (SELECT name FROM logbook) THEN true END",
    ],
)
def test_inside_an_expression_it_is_true_unknown_or_false(text: str) -> None:
    query = spelled(text)
    assert not list(query.find_all(exp.In))
    asked = " ".join(each.sql("spark") for each in query.find_all(exp.Exists))
    assert "(name) = (name)" in asked  # among the rows
    assert "(name) IS NULL" in asked  # a row that is not known
    assert any(not each.find(exp.Where) for each in query.find_all(exp.Exists))  # rows at all, where x is not known


def test_rows_that_are_grouped_are_asked_as_a_whole() -> None:
    query = spelled("SELECT name IN (SELECT max(name) AS most FROM logbook GROUP BY voyage) FROM ships")
    assert all(isinstance(each.this.args["from_"].this, exp.Subquery) for each in query.find_all(exp.Exists))
    assert "members.`most`" in query.sql("spark")


def test_grouped_rows_that_look_outside_cannot_be_asked_otherwise() -> None:
    text = "SELECT s.name IN (SELECT max(l.name) FROM logbook AS l WHERE l.id = s.id GROUP BY l.voyage) FROM ships AS s"
    assert spelled(text) == sqlglot.parse_one(text, read="spark")
