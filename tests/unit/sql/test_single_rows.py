"""Subqueries that are values of a view: which of them have one row for sure."""

from __future__ import annotations

import pytest

from seiche.errors import FeatureNotSupported
from seiche.query import relation_of
from seiche.sql.single_rows import refuse_many_rows
from tests.unit.plan.harbour import SHIPS, Harbour


def check(query: str) -> None:
    keys = {SHIPS: ("id",)}
    refuse_many_rows(Harbour().bound(query).ast, lambda source: keys.get(relation_of(source), ("_row_id",)))


@pytest.mark.parametrize(
    "value",
    [
        "SELECT max(tons) FROM ships",
        "SELECT tons FROM ships LIMIT 1",
        "SELECT tons FROM ships WHERE id = 3 AND tons > 0",
        "SELECT sum(t) FROM (SELECT tons AS t FROM ships) s",
        "SELECT n FROM (SELECT count(*) AS n FROM ships) s",
        "SELECT 7",
    ],
)
def test_one_row_for_sure_is_a_value(value: str) -> None:
    check(f"SELECT day, ({value}) FROM arrivals")


@pytest.mark.parametrize(
    "value",
    [
        "SELECT tons FROM ships",
        "SELECT tons FROM ships WHERE tons = 3",
        "SELECT max(tons) FROM ships GROUP BY flag",
        "SELECT tons FROM ships LIMIT 2",
        "SELECT generate_series(1, 2)",
        "SELECT s.tons FROM ships s JOIN ships t ON s.tons = t.tons WHERE s.id = 1",
        "SELECT tons FROM ships WHERE id = 1 UNION ALL SELECT tons FROM ships WHERE id = 1",
    ],
)
def test_what_may_have_a_second_row_is_refused(value: str) -> None:
    with pytest.raises(FeatureNotSupported, match="more than one row"):
        check(f"SELECT day, ({value}) FROM arrivals")


def test_a_subquery_that_reads_the_query_around_it_is_left_to_its_rule() -> None:
    check("SELECT day, (SELECT tons FROM ships WHERE ships.id = arrivals.ship) FROM arrivals")


def test_subqueries_that_are_no_values_may_have_any_number_of_rows() -> None:
    check("SELECT day FROM arrivals WHERE ship IN (SELECT id FROM ships) AND EXISTS (SELECT 1 FROM ships)")
