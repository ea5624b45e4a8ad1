"""Groups that are asked for twice, with other columns each time, are stored once."""

from __future__ import annotations

import pytest

from seiche.plan.algebra import Aggregate, Plan, scans
from tests.unit.plan.harbour import ARRIVALS, SHIPS, Harbour

CALLS = "SELECT ship, berth, count(*) AS n, max(tons) AS most FROM arrivals GROUP BY ship, berth"


@pytest.fixture(scope="module")
def harbour() -> Harbour:
    return Harbour()


def groups_over(harbour: Harbour, query: str, relation: int) -> list[Aggregate]:
    """The Aggregates that are stored over a table."""
    plans: list[Plan] = [fragment.plan for fragment in harbour.fragments(query)]
    return [each for each in plans if isinstance(each, Aggregate) and relation in {s.relation for s in scans(each)}]


@pytest.mark.parametrize(
    "query",
    [
        f"WITH calls AS ({CALLS}) SELECT a.ship, b.most FROM calls a JOIN calls b ON a.n = b.n",
        f"WITH calls AS ({CALLS}) SELECT ship, n FROM calls WHERE n = (SELECT max(n) FROM calls)",
        f"SELECT x.n, y.ship FROM ({CALLS}) x LEFT JOIN ({CALLS}) y ON x.berth = y.berth AND y.n > 2",
        f"SELECT DISTINCT n FROM ({CALLS}) x UNION SELECT most FROM ({CALLS}) y",
        f"SELECT max(n) AS n FROM ({CALLS}) x UNION ALL SELECT min(n + 1) FROM ({CALLS}) y WHERE y.ship > 1",
    ],
)
def test_groups_of_which_other_columns_are_shown_are_one(harbour: Harbour, query: str) -> None:
    assert len(groups_over(harbour, query, ARRIVALS)) == 1


def test_groups_over_shared_groups_are_shared_too(harbour: Harbour) -> None:
    ranks = f"SELECT berth, max(n) AS n, count(*) AS ships FROM ({CALLS}) x GROUP BY berth"
    query = f"SELECT a.berth, b.n FROM ({ranks}) a JOIN ({ranks}) b ON a.ships < b.ships JOIN ({CALLS}) c ON c.n = b.n"
    assert len([each for each in harbour.fragments(query) if isinstance(each.plan, Aggregate)]) == 2


@pytest.mark.parametrize(
    "query",
    [
        (
            "SELECT a.n FROM (SELECT flag, count(*) AS n FROM ships GROUP BY flag) a"
            " JOIN (SELECT name, count(*) AS n FROM ships GROUP BY name) b ON a.n = b.n"
        ),
        (
            "SELECT a.n FROM (SELECT flag, count(*) AS n FROM ships GROUP BY flag) a"
            " JOIN (SELECT flag, count(*) AS n FROM ships WHERE tons > 5 GROUP BY flag) b ON a.n = b.n"
        ),
        (
            "SELECT a.n FROM (SELECT flag, sum(tons) AS n FROM ships GROUP BY flag) a"
            " JOIN (SELECT flag, max(tons) AS n FROM ships GROUP BY flag) b ON a.n = b.n"
        ),
    ],
)
def test_other_groups_stay_apart(harbour: Harbour, query: str) -> None:
    assert len(groups_over(harbour, query, SHIPS)) == 2
