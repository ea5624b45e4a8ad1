"""Which inputs are stepped through, decided from plans."""

from __future__ import annotations

import itertools

import pytest

from seiche.errors import InvalidDefinition, InvalidParameter
from seiche.model import RelationId
from seiche.stream.backfill.stages import Method, Stage, read_order, sorted_by, stages
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SHIPS, TIDES, Harbour

SIZES = {ARRIVALS: 1_000_000, SHIPS: 5_000, BERTHS: 50}


def planned(query: str, order: tuple[tuple[RelationId, RelationId], ...] = ()) -> list[tuple[Method, tuple[int, ...]]]:
    found: tuple[Stage, ...] = stages(Harbour().fragments(query), lambda relation: SIZES.get(relation, 1), order)
    return [(stage.method, stage.driven) for stage in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM ships WHERE tons > 5", [(Method.APPEND, (SHIPS,))]),
        # Of a join only the largest input is stepped through.
        ("SELECT s.id FROM ships s JOIN arrivals a ON a.ship = s.id", [(Method.APPEND, (ARRIVALS,))]),
        ("SELECT id FROM ships UNION ALL SELECT id FROM berths", [(Method.APPEND, (SHIPS, BERTHS))]),
        # A relation that is mentioned twice cannot simply be appended slice by slice.
        ("SELECT a.id FROM ships a JOIN ships b ON a.tons = b.id", [(Method.MAINTAIN, (SHIPS,))]),
        ("SELECT id FROM ships UNION ALL SELECT tons FROM ships", [(Method.MAINTAIN, (SHIPS,))]),
        ("SELECT berth, count(*) FROM arrivals GROUP BY berth", [(Method.MAINTAIN, (ARRIVALS,))]),
        ("SELECT count(*) FROM arrivals", [(Method.MAINTAIN, (ARRIVALS,))]),
        # What reads only the job's own relation is built in one step.
        (
            "SELECT n, count(*) FROM (SELECT berth, count(*) AS n FROM arrivals GROUP BY berth) t GROUP BY n",
            [(Method.MAINTAIN, (ARRIVALS,)), (Method.WHOLE, ())],
        ),
        ("SELECT berth, string_agg(day::varchar, ',' ORDER BY day) FROM arrivals GROUP BY berth", [(Method.WHOLE, ())]),
    ],
)
def test_the_plan_tells_what_is_stepped_through(query: str, expected: list[tuple[Method, tuple[int, ...]]]) -> None:
    assert planned(query) == expected


def test_what_is_read_whole_counts_as_progress_but_for_relations_of_the_job_itself() -> None:
    query = "SELECT berth, string_agg(day::varchar, ',' ORDER BY day) FROM arrivals GROUP BY berth"
    (stage,) = stages(Harbour().fragments(query), lambda _: 1)
    assert (stage.driven, stage.at_once, stage.read) == ((), (ARRIVALS,), (ARRIVALS,))
    query = "SELECT n, count(*) FROM (SELECT berth, count(*) AS n FROM arrivals GROUP BY berth) t GROUP BY n"
    first, second = stages(Harbour().fragments(query), lambda _: 1)
    assert (first.read, second.read) == ((ARRIVALS,), ())


def test_a_fixed_order_decides_which_input_is_read_first() -> None:
    query = "SELECT id FROM ships UNION ALL SELECT id FROM berths"
    assert planned(query, ((BERTHS, SHIPS),)) == [(Method.APPEND, (BERTHS, SHIPS))]


def test_a_cycle_has_no_order() -> None:
    named = {SHIPS: "ships", BERTHS: "berths", ARRIVALS: "arrivals", TIDES: "tides"}
    order = ((TIDES, SHIPS), (SHIPS, BERTHS), (BERTHS, ARRIVALS), (ARRIVALS, SHIPS))
    with pytest.raises(InvalidDefinition) as refused:
        sorted_by(order, {}, named.__getitem__)
    shown = refused.value.message.removeprefix("backfill_order has a cycle: ").split(" -> ")
    assert shown[0] == shown[-1] and set(shown) == {"ships", "berths", "arrivals"}
    pairs = {(named[before], named[after]) for before, after in order}
    assert set(itertools.pairwise(shown)) <= pairs, "each arrow of it is one that was written"
    with pytest.raises(InvalidDefinition, match="cycle: ships -> ships\n"):
        sorted_by(((SHIPS, SHIPS),), {}, named.__getitem__)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("FIXED(t1 -> t2, t2 -> t3)", [("t1", "t2"), ("t2", "t3")]),
        ("fixed(s.a->b)", [("s.a", "b")]),
        ('FIXED("a, b" -> "c->d", x -> """y")', [('"a, b"', '"c->d"'), ("x", '"""y"')]),
        ("FIXED()", []),
        ("AUTO", []),
        ("none", []),
    ],
)
def test_an_order_is_read_as_users_write_it(text: str, pairs: list[tuple[str, str]]) -> None:
    assert read_order(text) == pairs


@pytest.mark.parametrize("text", ["RANDOM", "FIXED(a)", "FIXED(a -> b -> c)", "FIXED(a -> )"])
def test_anything_else_is_no_order(text: str) -> None:
    with pytest.raises(InvalidParameter, match="backfill_order"):
        read_order(text)
