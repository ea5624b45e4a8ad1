"""Groups of a left join whose inner side is grouped first, and when it is not."""

from __future__ import annotations

import pytest

from seiche.plan.algebra import Aggregate, Function, Keyed, Plan, Select, scans
from tests.unit.plan.harbour import ARRIVALS, SHIPS, Harbour

JOIN = "FROM ships s LEFT JOIN arrivals a ON a.ship = s.id"


@pytest.fixture
def harbour() -> Harbour:
    return Harbour()


def is_grouped_first(plan: Plan) -> bool:
    if not isinstance(plan, Keyed) or not isinstance(plan.inputs[1], Select):
        return False
    return isinstance(plan.inputs[1].inputs[0], Aggregate)


def relations(plan: Plan) -> list[int]:
    return [scan.relation for scan in scans(plan)]


def body(plan: Plan) -> str:
    assert isinstance(plan, Keyed)
    return plan.body.sql("spark").replace("`", "")


def test_each_row_of_the_outer_side_meets_one_group(harbour: Harbour) -> None:
    plan = harbour.plan(f"SELECT s.id, s.flag, count(*) AS n, sum(a.tons) AS t {JOIN} GROUP BY s.id, s.flag")
    assert isinstance(plan, Keyed)
    groups = plan.inputs[1]
    assert isinstance(groups, Select) and isinstance(groups.inputs[0], Aggregate)
    aggregate = groups.inputs[0]
    assert [call.function for call in aggregate.calls] == [Function.COUNT_ROWS, Function.SUM]
    assert relations(aggregate.input) == [ARRIVALS] and relations(plan.inputs[0]) == [SHIPS]
    assert plan.key == ("id",)


def test_a_row_without_partners_counts_itself_and_none_of_their_values(harbour: Harbour) -> None:
    text = body(harbour.plan(f"SELECT s.id, count(*) AS n, count(a.tons) AS t {JOIN} GROUP BY s.id"))
    assert "COALESCE(l1.c0, CAST(1 AS BIGINT))" in text
    assert "COALESCE(l1.c1, CAST(0 AS BIGINT))" in text


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT s.id, max(a.at) AS last {JOIN} GROUP BY s.id, s.name",
        f"SELECT s.id, sum(a.tons * 2) AS t {JOIN} AND a.tons > 3 GROUP BY s.id HAVING count(a.tons) > 1",
        f"SELECT s.id, bool_or(a.tons > 3) AS heavy {JOIN} GROUP BY s.id",
        f"SELECT s.id, avg(a.tons) AS mean, s.tons + count(*) AS n {JOIN} GROUP BY s.id, s.tons",
        f"SELECT n, count(*) AS m FROM (SELECT s.id, count(a.at) AS n {JOIN} GROUP BY s.id) x GROUP BY n",
    ],
)
def test_groups_of_these_are_made_first(harbour: Harbour, query: str) -> None:
    plan = harbour.plan(query)
    assert is_grouped_first(plan.input if isinstance(plan, Aggregate) else plan)


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT s.flag, count(a.at) AS n {JOIN} GROUP BY s.flag",  # several ships
        f"SELECT s.id, a.day, count(*) AS n {JOIN} GROUP BY s.id, a.day",  # several groups of a ship
        f"SELECT s.id, sum(s.tons) AS t {JOIN} GROUP BY s.id",  # about the outer side
        f"SELECT s.id, sum(a.tons - s.tons) AS t {JOIN} GROUP BY s.id",
        f"SELECT s.id, count(coalesce(a.tons, 0)) AS n {JOIN} GROUP BY s.id",  # not NULL without a partner
        f"SELECT s.id, count(*) FILTER (WHERE a.ship IS NULL) AS n {JOIN} GROUP BY s.id",
        f"SELECT s.id, count(a.at) AS n {JOIN} AND a.tons < s.tons GROUP BY s.id",  # more than an equality
        f"SELECT s.id, count(a.at) AS n {JOIN} WHERE a.tons IS NULL GROUP BY s.id",  # after the join
        f"SELECT s.id, count(a.at) AS n {JOIN} WHERE s.flag = 'NO' GROUP BY s.id",  # few ships, perhaps
        "SELECT s.id, count(a.at) AS n FROM ships s FULL JOIN arrivals a ON a.ship = s.id GROUP BY s.id",
    ],
)
def test_groups_of_these_are_made_after_the_join(harbour: Harbour, query: str) -> None:
    plan = harbour.plan(query)
    assert isinstance(plan, Aggregate) and isinstance(plan.input, Keyed)


def test_values_to_look_in_are_told_apart_unless_they_are_found_by_key(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT name FROM ships s WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id)")
    assert is_grouped_first(plan)
    by_key = harbour.plan("SELECT at FROM arrivals WHERE ship NOT IN (SELECT id FROM ships)")
    assert isinstance(by_key, Keyed) and relations(by_key.inputs[1]) == [SHIPS]
    more = harbour.plan(
        "SELECT 1 AS x FROM ships s WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id AND a.tons < s.tons)"
    )
    assert isinstance(more, Keyed) and relations(more.inputs[1]) == [ARRIVALS]
