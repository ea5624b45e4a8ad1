"""Which rows agree, and in which order the inputs of a join are looked up."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa
import pytest

from seiche.model import RelationId
from seiche.plan.algebra import Aggregate, Select
from seiche.stream.matching import pairs
from seiche.stream.near_join import _route
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SHIPS, Harbour


@pytest.mark.parametrize("seed", range(20))
def test_pairs_are_the_rows_that_agree_in_all_columns(seed: int) -> None:
    rng = random.Random(seed)
    sides = [[(rng.choice("abé"), rng.randrange(3)) for _ in range(rng.randrange(12))] for _ in range(2)]
    left, right = (
        pa.table({"x": pa.array([a for a, _ in side], pa.string()), "y": pa.array([b for _, b in side], pa.int32())})
        for side in sides
    )
    found = pairs(left, right, 1_000)
    assert found is not None
    expected = [(i, j) for i, mine in enumerate(sides[0]) for j, theirs in enumerate(sides[1]) if mine == theirs]
    assert sorted(zip(found[0].tolist(), found[1].tolist(), strict=True)) == expected


def test_more_pairs_than_the_driver_may_hold_are_not_made() -> None:
    same = pa.table({"x": [1] * 10})
    assert pairs(same, same, 99) is None
    assert pairs(same, same, 100) is not None


class Sizes:
    """What a route asks of `EpochReads`: how many rows a relation has, and whether they are in memory."""

    def __init__(self, rows: dict[RelationId, int], near: Sequence[RelationId]) -> None:
        self._rows, self._near = rows, near

    def rows_of(self, relation: RelationId) -> int:
        return self._rows[relation]

    def is_near(self, relation: RelationId) -> bool:
        return relation in self._near


SIZES = {SHIPS: 1_000, BERTHS: 100, ARRIVALS: 50_000}


def route(query: str, start: RelationId, near: Sequence[RelationId] = ()) -> list[tuple[RelationId, bool]] | None:
    plan = Harbour().plan(query)
    plan = plan.input if isinstance(plan, Aggregate) else plan
    assert isinstance(plan, Select)
    relations = [each.relation for each in plan.inputs]  # type: ignore[union-attr]
    found = _route(plan, relations.index(start), Sizes(SIZES, near))  # type: ignore[arg-type]
    return None if found is None else [(relations[step.input], step.unique) for step in found]


JOIN = "SELECT a.tons FROM arrivals a, ships s, berths b WHERE s.id = a.ship AND b.id = a.berth"


def test_what_is_in_memory_is_joined_first() -> None:
    assert route(JOIN, ARRIVALS, [BERTHS]) == [(BERTHS, True), (SHIPS, True)]
    assert route(JOIN, ARRIVALS, [SHIPS]) == [(SHIPS, True), (BERTHS, True)]


def test_rows_that_belong_to_one_of_another_input_are_looked_up_by_it() -> None:
    assert route(JOIN, SHIPS) == [(ARRIVALS, False), (BERTHS, True)]


def test_many_partners_in_memory_wait_until_a_key_is_known() -> None:
    query = JOIN + " AND b.quay = s.flag"
    assert route(query, SHIPS, [BERTHS]) == [(ARRIVALS, False), (BERTHS, True)]
    assert route(query, SHIPS, [BERTHS, ARRIVALS]) == [(ARRIVALS, False), (BERTHS, True)]


def test_a_join_by_values_that_nobody_counted_is_left_to_spark() -> None:
    query = "SELECT a.tons FROM arrivals a, ships s WHERE s.tons = a.tons"
    assert route(query, ARRIVALS) is None
    assert route(query, ARRIVALS, [SHIPS]) == [(SHIPS, False)]


def test_an_input_that_nothing_ties_is_joined_only_if_it_is_in_memory() -> None:
    query = "SELECT a.tons FROM arrivals a, ships s WHERE s.tons > a.tons"
    assert route(query, ARRIVALS) is None
    assert route(query, ARRIVALS, [SHIPS]) == [(SHIPS, False)]
