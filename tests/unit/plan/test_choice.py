"""Which technique is chosen for which numbers of rows, without Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seiche.model import RelationId
from seiche.plan.choice import MEASURED, Choice, Counts, Technique, choose, techniques
from seiche.plan.fragments import Fragment
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SHIPS, Harbour

RULE, KEYS, FULL = Technique.CHANGE_RULE, Technique.AFFECTED_KEYS, Technique.FULL

FILTER = "SELECT id, name FROM ships WHERE tons > 10"
JOIN = "SELECT s.name, a.at FROM ships s JOIN arrivals a ON a.ship = s.id"
SUMS = "SELECT flag, count(*) AS n, sum(tons) AS tons FROM ships GROUP BY flag"
EXTREMES = "SELECT flag, min(tons) AS least, max(tons) AS most FROM ships GROUP BY flag"
TOTAL = "SELECT count(*) AS n FROM ships"
OUTER = "SELECT s.name, a.at FROM ships s LEFT JOIN arrivals a ON a.ship = s.id"
TOP = "SELECT name FROM ships ORDER BY tons LIMIT 3"
RANKS = "SELECT name, rank() OVER (ORDER BY tons) AS place FROM ships"


def last(query: str) -> Fragment:
    return Harbour().fragments(query)[-1]


def chosen(
    query: str, changed: dict[RelationId, int], held: dict[RelationId, int], stored: int, left: int | None = None
) -> Choice:
    many = sum(changed.values())
    counts = Counts(changed, held, stored, many // 2 if left is None else left, near=many <= 50_000)
    return choose(last(query).plan, counts, MEASURED)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (FILTER, (RULE, FULL)),
        (JOIN, (RULE, FULL)),
        (SUMS, (RULE, KEYS, FULL)),
        (TOTAL, (RULE, FULL)),
        (OUTER, (KEYS, FULL)),
        (TOP, (RULE, FULL)),
        (RANKS, (FULL,)),
    ],
)
def test_an_operator_has_its_own_technique_and_others(query: str, expected: tuple[Technique, ...]) -> None:
    assert techniques(last(query).plan) == expected


@pytest.mark.parametrize(
    "query",
    [
        "SELECT ship FROM arrivals WHERE at > now() - INTERVAL '1 day'",
        "SELECT ship, proctime() AS seen FROM arrivals",
        "SELECT a.ship, b.quay FROM arrivals a JOIN berths FOR SYSTEM_TIME AS OF PROCTIME() b ON a.berth = b.id",
    ],
)
def test_what_depends_on_when_rows_came_is_never_evaluated_anew(query: str) -> None:
    """Not even if all of it changed: another moment would give another answer."""
    clocked = [each.plan for each in Harbour().fragments(query) if len(techniques(each.plan)) == 1]
    assert clocked
    assert all(techniques(plan) == (RULE,) for plan in clocked)
    everything = Counts({ARRIVALS: 9_000_000}, {ARRIVALS: 9_000_000, BERTHS: 9}, 9_000_000, 4_000_000, near=False)
    assert all(choose(plan, everything, MEASURED).technique is RULE for plan in clocked)


@pytest.mark.parametrize("query", [FILTER, JOIN, SUMS, EXTREMES, TOTAL, TOP])
@pytest.mark.parametrize("rows", [10, 10_000, 10_000_000])
def test_one_changed_row_is_the_change_rules(query: str, rows: int) -> None:
    found = chosen(query, {SHIPS: 1}, {SHIPS: rows, ARRIVALS: rows}, rows // 2)
    assert found.technique is RULE


@pytest.mark.parametrize("rows", [10, 10_000, 10_000_000])
def test_one_changed_row_affects_one_key(rows: int) -> None:
    assert chosen(OUTER, {SHIPS: 1}, {SHIPS: rows, ARRIVALS: rows}, rows).technique is KEYS


def test_join_of_two_tables_that_changed_wholly_is_evaluated_in_full() -> None:
    held = {SHIPS: 2_000_000, ARRIVALS: 2_000_000}
    assert chosen(JOIN, {SHIPS: 1_000_000, ARRIVALS: 1_000_000}, held, 1_000_000).technique is FULL
    assert chosen(JOIN, {SHIPS: 1_000, ARRIVALS: 1_000}, held, 1_000_000).technique is RULE


def test_groups_that_lose_their_extremes_are_evaluated_by_key() -> None:
    """Two rows a group, and a part of the table leaves: adding the changes first would be for nothing."""
    held, stored = {SHIPS: 1_000_000}, 500_000
    assert chosen(EXTREMES, {SHIPS: 50_000}, held, stored, left=50_000).technique is KEYS
    assert chosen(SUMS, {SHIPS: 50_000}, held, stored, left=50_000).technique is RULE
    assert chosen(EXTREMES, {SHIPS: 600_000}, held, stored, left=600_000).technique is FULL


def test_extremes_stay_where_rows_only_come() -> None:
    assert chosen(EXTREMES, {SHIPS: 300_000}, {SHIPS: 1_000_000}, 500_000, left=0).technique is RULE


def test_outer_join_whose_keys_are_all_affected_is_evaluated_in_full() -> None:
    held = {SHIPS: 1_000_000, ARRIVALS: 1_000_000}
    assert chosen(OUTER, {SHIPS: 1_000_000}, held, 1_000_000).technique is FULL


def test_first_load_of_an_empty_view_is_the_change_rules() -> None:
    """It has to look at every row whichever way, and counts those that fail as it does."""
    assert chosen(FILTER, {SHIPS: 1_000_000}, {SHIPS: 1_000_000}, 0, left=0).technique is RULE


def test_rows_decide_and_not_what_else_the_inputs_are() -> None:
    few = chosen(JOIN, {SHIPS: 10}, {SHIPS: 1_000, ARRIVALS: 1_000}, 1_000)
    many = chosen(JOIN, {SHIPS: 10}, {SHIPS: 1_000_000, ARRIVALS: 1_000_000}, 1_000_000)
    assert many.estimates_ms[FULL] > 5 * few.estimates_ms[FULL]
    assert many.estimates_ms[RULE] < many.estimates_ms[FULL] / 5


def test_a_little_cheaper_is_not_enough_to_leave_the_usual_technique() -> None:
    counts = Counts({SHIPS: 1_000}, {SHIPS: 1_000}, 1_000, 0, near=True)
    plan = last(SUMS).plan
    found = choose(plan, counts, replace(MEASURED, margin=0.0))
    assert found.technique is RULE


def test_counting_failures_makes_the_other_techniques_dearer() -> None:
    plan = last(FILTER).plan
    counts = Counts({SHIPS: 100_000}, {SHIPS: 100_000}, 50_000, 0, near=False)
    plain, counted = (choose(plan, each, MEASURED) for each in (counts, replace(counts, fallible=True)))
    assert counted.estimates_ms[RULE] == plain.estimates_ms[RULE]
    assert counted.estimates_ms[FULL] > plain.estimates_ms[FULL]


def test_the_reason_tells_the_rows_and_all_estimates() -> None:
    found = chosen(SUMS, {SHIPS: 1}, {SHIPS: 20_000}, 10)
    assert found.reason.startswith("1 changed row against 20,000 of the inputs: about ")
    assert " ms by affected keys, " in found.reason and found.reason.endswith(" ms by full.")
    assert set(found.estimates_ms) == {RULE, KEYS, FULL}


def test_where_there_is_one_technique_the_reason_is_that_of_explain() -> None:
    found = chosen(RANKS, {SHIPS: 1}, {SHIPS: 20_000}, 20_000)
    assert found == Choice(FULL, "The only technique (window): A window without PARTITION BY covers all rows.", {})


def test_inputs_that_did_not_change_bring_no_changes() -> None:
    """Two joins with the same inputs: what changed is looked for in the others, whatever they are."""
    found = chosen(JOIN, {BERTHS: 5}, {SHIPS: 1_000, ARRIVALS: 1_000}, 1_000)
    assert found.technique is RULE
