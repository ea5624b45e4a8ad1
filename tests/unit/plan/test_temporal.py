"""Where a condition on the clock ends up in a plan, and what it comes to."""

from __future__ import annotations

import pytest

from seiche.errors import FeatureNotSupported
from seiche.plan.algebra import (
    Aggregate,
    Keyed,
    Plan,
    Recompute,
    Scan,
    Select,
    TemporalFilter,
    UnionAll,
    follows_clock,
    recomputed,
    temporal_filters,
)
from seiche.plan.temporal import bound_text, shift_micros
from tests.unit.plan.harbour import Harbour

MINUTE = 60_000_000


@pytest.fixture
def harbour() -> Harbour:
    return Harbour()


def only_filter(plan: Plan) -> TemporalFilter:
    (found,) = temporal_filters(plan)
    return found


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("at > now() - INTERVAL '1 hour'", ["`at` > now() - '01:00:00'"]),
        ("now() < at + INTERVAL '1 hour'", ["`at` > now() - '01:00:00'"]),
        ("now() >= at - INTERVAL '90 seconds' - INTERVAL '2 days'", ["`at` <= now() + '2 days 00:01:30'"]),
        ("at BETWEEN now() AND now() + INTERVAL '1 day'", ["`at` >= now()", "`at` <= now() + '1 day'"]),
        ("at + INTERVAL '1 month' > now()", ["SEICHE_ATTEMPT(TIMESTAMPADD(MONTH, 1, `at`)) > now()"]),
        ("at > now() AND height > 2", ["`at` > now()"]),
    ],
)
def test_a_bound_has_the_row_on_one_side_and_the_clock_on_the_other(
    harbour: Harbour, condition: str, bounds: list[str]
) -> None:
    found = only_filter(harbour.plan(f"SELECT height FROM tides WHERE {condition}"))
    assert isinstance(found.input, Scan)
    assert [f"{each.value.sql('spark')} {each.comparison} {bound_text(each.bound)}" for each in found.bounds] == bounds


def test_a_timestamp_without_a_zone_is_compared_as_it_is_stored(harbour: Harbour) -> None:
    (bound,) = only_filter(harbour.plan("SELECT ship FROM arrivals WHERE at > now() - INTERVAL '5 minutes'")).bounds
    assert bound.value.sql("spark") == "`at`"
    assert shift_micros(bound.bound) == -5 * MINUTE


def test_a_bound_that_is_not_at_a_fixed_distance_from_the_clock_has_no_shift(harbour: Harbour) -> None:
    (bound,) = only_filter(harbour.plan("SELECT ship FROM arrivals WHERE day >= current_date")).bounds
    assert shift_micros(bound.bound) is None


def test_the_filter_of_a_join_stands_above_the_input_that_it_speaks_of(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT s.name FROM ships s JOIN arrivals a ON a.ship = s.id AND a.at > now()")
    assert isinstance(plan, Select) and len(plan.conjuncts) == 1
    assert [type(each) for each in plan.inputs] == [Scan, TemporalFilter]


def test_a_bound_over_two_inputs_filters_the_stored_join(harbour: Harbour) -> None:
    fragments = harbour.fragments(
        "SELECT t.height FROM tides t JOIN arrivals a ON a.day = t.at::date WHERE t.at + (t.at - a.at) > now()"
    )
    assert [type(each.plan) for each in fragments] == [Select, Select]
    assert only_filter(fragments[1].plan).input == Scan(fragments[0].relation, fragments[0].schema)


def test_a_filter_above_groups_and_windows_reads_what_they_store(harbour: Harbour) -> None:
    groups = harbour.plan("SELECT ship, max(at) FROM arrivals GROUP BY ship HAVING max(at) > now()")
    assert isinstance(only_filter(groups).input, Aggregate)
    ranks = harbour.plan(
        "SELECT ship FROM (SELECT ship, at, rank() OVER (PARTITION BY ship ORDER BY at) r FROM arrivals) q"
        " WHERE r = 1 AND at > now()"
    )
    assert isinstance(only_filter(ranks).input, Keyed)


def test_each_branch_of_a_union_gets_its_own_filter(harbour: Harbour) -> None:
    plan = harbour.plan(
        "SELECT x FROM (SELECT at AS x FROM tides UNION ALL SELECT at::timestamptz FROM arrivals) u WHERE x > now()"
    )
    assert isinstance(plan, Select) and isinstance(plan.inputs[0], UnionAll)
    assert all(isinstance(each.input, Scan) for each in temporal_filters(plan))
    assert len(list(temporal_filters(plan))) == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT now() AS n",
        "SELECT height FROM tides WHERE at > now() OR high",
        "SELECT height FROM tides WHERE at <> now()",
        "SELECT height FROM tides WHERE now() - at < INTERVAL '1 hour'",
        "SELECT s.name FROM ships s LEFT JOIN arrivals a ON a.ship = s.id AND a.at > now()",
        "SELECT name FROM ships s WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id AND a.at > now())",
    ],
)
def test_the_clock_elsewhere_is_recomputed_and_says_why(harbour: Harbour, query: str) -> None:
    plan = harbour.plan(query)
    assert isinstance(plan, Recompute) and plan.time_driven
    assert [each.code for each in recomputed(plan)] == ["time"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT now(), height FROM tides",
        "SELECT max(now() - at) AS oldest FROM tides",
        "SELECT at > now() AS coming, count(*) FROM tides GROUP BY at > now()",
        "SELECT name, n FROM ships JOIN (SELECT ship, now() AS n FROM arrivals) a ON a.ship = id",
        "SELECT name FROM ships ORDER BY now() LIMIT 1",
    ],
)
def test_the_clock_among_what_is_shown_is_refused(harbour: Harbour, query: str) -> None:
    with pytest.raises(FeatureNotSupported, match=r"now\(\) can be used") as refused:
        harbour.plan(query)
    assert refused.value.hint is not None and "proctime()" in refused.value.hint


def test_a_view_with_a_bound_follows_the_clock_and_others_do_not(harbour: Harbour) -> None:
    assert follows_clock(harbour.plan("SELECT height FROM tides WHERE at > now()"))
    assert not follows_clock(harbour.plan("SELECT height FROM tides WHERE at > '2026-01-01'"))
