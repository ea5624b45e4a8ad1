"""Temporal joins, arrival times, ASOF joins and sessions: which operators they become."""

from __future__ import annotations

import pytest

from seiche.errors import FeatureNotSupported, InvalidDefinition, SyntaxError_
from seiche.plan.algebra import Aggregate, Keyed, Plan, Select, recomputed
from tests.unit.plan.harbour import Harbour

AS_OF = "FOR SYSTEM_TIME AS OF PROCTIME()"


@pytest.fixture
def harbour() -> Harbour:
    return Harbour()


def history(plan: Plan) -> Keyed:
    assert isinstance(plan, Keyed) and plan.looked_up is not None
    return plan


def test_a_temporal_join_is_keyed_by_its_left_side_and_looks_the_right_one_up(harbour: Harbour) -> None:
    plan = history(harbour.plan(f"SELECT a.day, s.name FROM arrivals a LEFT JOIN ships {AS_OF} s ON a.ship = s.id"))
    assert plan.title == "Temporal left join"
    assert plan.keys == (("_k0_row_id",), ())
    assert plan.looked_up == (("ship", "id"),)
    assert len(plan.key) == 2


def test_a_temporal_join_without_an_equality_looks_at_the_whole_right_side(harbour: Harbour) -> None:
    assert history(harbour.plan(f"SELECT s.id FROM tides t CROSS JOIN ships {AS_OF} s")).looked_up == ()
    compared = harbour.plan(f"SELECT s.id FROM arrivals a JOIN ships {AS_OF} s ON a.tons > s.tons")
    assert history(compared).looked_up == ()


def test_conditions_after_a_temporal_join_are_checked_as_it_emits(harbour: Harbour) -> None:
    plan = history(
        harbour.plan(f"SELECT s.name FROM arrivals a JOIN ships {AS_OF} s ON a.ship = s.id WHERE s.tons > a.tons")
    )
    assert [word for word, _ in plan.shown] == ["on", "where"]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (f"SELECT now(), s.id FROM tides t CROSS JOIN ships {AS_OF} s", FeatureNotSupported),
        (f"SELECT s.id FROM arrivals a FULL JOIN ships {AS_OF} s ON a.ship = s.id", FeatureNotSupported),
        (f"SELECT s.id FROM ships {AS_OF} s", SyntaxError_),
        ("SELECT s.id FROM tides t CROSS JOIN ships FOR SYSTEM_TIME AS OF now() s", FeatureNotSupported),
        (f"WITH s AS (SELECT 1 AS id) SELECT s.id FROM tides CROSS JOIN s {AS_OF}", FeatureNotSupported),
        ("SELECT proctime(), rank() OVER (ORDER BY at) FROM tides WHERE now() - at > '1 hour'", FeatureNotSupported),
    ],
)
def test_what_cannot_be_a_history_is_refused(harbour: Harbour, query: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        harbour.plan(query)


def test_the_time_of_arrival_is_stored_by_the_key_of_the_row(harbour: Harbour) -> None:
    plan = history(harbour.plan("SELECT id, proctime() AS seen FROM ships WHERE tons > 3"))
    assert plan.title == "Arrival time"
    assert plan.keys == (("id",),)
    grouped = harbour.plan(
        "SELECT window_start, count(*) FROM TUMBLE((SELECT *, proctime() AS p FROM arrivals), p, INTERVAL '1 minute')"
        " GROUP BY window_start"
    )
    assert isinstance(grouped, Aggregate)
    assert recomputed(grouped) == ()


@pytest.mark.parametrize(("kind", "operator"), [("", Select), ("LEFT", Keyed)])
def test_an_asof_join_is_a_join_with_the_neighbours_of_the_right_side(
    harbour: Harbour, kind: str, operator: type[Plan]
) -> None:
    plan = harbour.plan(
        f"SELECT a.ship, b.tons FROM arrivals a ASOF {kind} JOIN arrivals b ON a.berth = b.berth AND a.at >= b.at"
    )
    assert isinstance(plan, operator)
    assert recomputed(plan) == ()


@pytest.mark.parametrize(
    "condition", ["a.berth = b.berth", "a.at >= b.at", "a.berth = b.berth AND a.at >= b.at AND a.day >= b.day"]
)
def test_an_asof_join_has_an_equality_and_one_inequality(harbour: Harbour, condition: str) -> None:
    with pytest.raises(InvalidDefinition, match="exactly one inequality"):
        harbour.plan(f"SELECT a.ship FROM arrivals a ASOF JOIN arrivals b ON {condition}")


def test_a_session_is_evaluated_by_its_partition(harbour: Harbour) -> None:
    over = "OVER (PARTITION BY berth ORDER BY at SESSION WITH GAP '10 minutes')"
    plan = harbour.plan(f"SELECT ship, first_value(at) {over} AS began, count(*) {over} AS n FROM arrivals")
    assert isinstance(plan, Keyed) and plan.title == "Window"
    assert recomputed(plan) == ()


def test_a_session_has_one_order(harbour: Harbour) -> None:
    with pytest.raises(SyntaxError_, match="exactly one ORDER BY"):
        harbour.plan("SELECT count(*) OVER (PARTITION BY berth ORDER BY tons, ship SESSION WITH GAP 3) FROM arrivals")
