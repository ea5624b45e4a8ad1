"""Columns of a query's sources that conditions compare with constants."""

from __future__ import annotations

import pytest

from seiche.query import relation_of
from seiche.sql.limited import limited_sources
from tests.unit.plan.harbour import ARRIVALS, SHIPS, Harbour


def found(query: str) -> dict[int, tuple[set[str], set[str]]]:
    return {
        relation_of(each.table.name): (set(each.limited), set(each.needed))
        for each in limited_sources(Harbour().bound(query).ast)
    }


@pytest.mark.parametrize(
    "condition",
    [
        "flag = 'NO'",
        "'NO' = flag",
        "flag IN ('NO', 'SE')",
        "flag >= 'A' AND name <> 'x'",
        "(flag = 'NO') AND tons > id",
    ],
)
def test_a_comparison_with_a_constant_limits_its_column(condition: str) -> None:
    limited, _ = found(f"SELECT name FROM ships WHERE {condition}")[SHIPS]
    assert limited == {"flag"}


def test_columns_of_one_side_of_a_join_are_told_apart() -> None:
    query = "SELECT a.day FROM ships s JOIN arrivals a ON a.ship = s.id WHERE s.flag = 'NO' AND a.tons BETWEEN 1 AND 5"
    assert found(query) == {
        SHIPS: ({"flag"}, {"flag", "id"}),
        ARRIVALS: ({"tons"}, {"day", "ship", "tons"}),
    }


@pytest.mark.parametrize(
    "condition", ["flag = name", "flag = 'NO' OR tons = 1", "flag = (SELECT min(quay) FROM berths)"]
)
def test_other_conditions_limit_nothing(condition: str) -> None:
    assert found(f"SELECT id FROM ships WHERE {condition}") == {}


def test_a_subquery_has_conditions_of_its_own() -> None:
    query = "SELECT count(*) FROM arrivals WHERE ship IN (SELECT id FROM ships WHERE tons < 100)"
    assert found(query) == {SHIPS: ({"tons"}, {"id", "tons"})}
