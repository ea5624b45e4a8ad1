"""Cutting plans into fragments: what is stored, in which order, and that it is the same every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from seiche.errors import FeatureNotSupported
from seiche.model import RelationId, Spread
from seiche.plan.algebra import Aggregate, Keyed, Plan, Recursion, Scan, Select, follows_clock, recomputed
from seiche.plan.fragments import Fragment, count_internal, cut
from tests.unit.plan.harbour import ARRIVALS, BERTHS, NEW, SHIPS, TIDES, Harbour

VIEWS = [
    ("SELECT name FROM ships", 0),
    ("SELECT flag, count(*) FROM ships GROUP BY flag", 0),
    ("SELECT name FROM ships LIMIT 1", 0),
    ("SELECT flag FROM ships GROUP BY flag HAVING count(*) > 1", 1),
    ("SELECT DISTINCT count(*) AS n FROM ships GROUP BY flag", 1),
    ("SELECT name FROM ships UNION SELECT quay FROM berths", 0),
    ("SELECT flag FROM ships UNION SELECT quay FROM berths UNION SELECT name FROM ships", 1),
    (
        """SELECT a.flag FROM (SELECT flag, max(tons) AS t FROM ships GROUP BY flag) a
        JOIN (SELECT flag, min(tons) AS t FROM ships GROUP BY flag) b ON a.flag = b.flag""",
        2,
    ),
    (
        """SELECT n, count(*) AS flags FROM (SELECT count(*) AS n FROM ships GROUP BY flag HAVING max(tons) > 1) x
        GROUP BY n HAVING count(*) > 1""",
        2,
    ),
]


@pytest.fixture(scope="module")
def harbour() -> Harbour:
    return Harbour()


def numbers() -> Iterator[int]:
    yield from range(100, 200)


def fragments(plan: Plan) -> tuple[Fragment, ...]:
    ids = numbers()
    return cut(plan, NEW, lambda: RelationId(next(ids)))


@pytest.mark.parametrize(("query", "internal"), VIEWS)
def test_an_aggregate_below_another_operator_is_stored_by_itself(harbour: Harbour, query: str, internal: int) -> None:
    plan = harbour.plan(query)
    assert count_internal(plan) == internal
    cuts = fragments(plan)
    assert [each.relation for each in cuts] == [*range(100, 100 + internal), NEW]


@pytest.mark.parametrize(("query", "_"), VIEWS)
def test_the_same_query_is_cut_the_same_way_every_time(harbour: Harbour, query: str, _: int) -> None:
    assert fragments(harbour.plan(query)) == fragments(harbour.plan(query))


@pytest.mark.parametrize(("query", "_"), VIEWS)
def test_a_fragment_reads_only_tables_and_fragments_before_it(harbour: Harbour, query: str, _: int) -> None:
    stored = set(harbour.schemas)
    for fragment in fragments(harbour.plan(query)):
        assert fragment.inputs <= stored
        stored.add(fragment.relation)


@pytest.mark.parametrize(("query", "_"), VIEWS)
def test_no_fragment_has_an_aggregate_below_its_top(harbour: Harbour, query: str, _: int) -> None:
    def below(plan: Plan) -> list[Plan]:
        match plan:
            case Aggregate():
                return [plan.input, *below(plan.input)]
            case Select():
                return [*plan.inputs, *(each for child in plan.inputs for each in below(child))]
            case _:
                return []

    for fragment in fragments(harbour.plan(query)):
        assert not any(isinstance(each, Aggregate) for each in below(fragment.plan))


def test_what_reads_a_stored_aggregate_scans_it_with_its_stored_shape(harbour: Harbour) -> None:
    groups, top = fragments(harbour.plan("SELECT flag FROM ships GROUP BY flag HAVING count(*) > 1"))
    assert isinstance(top.plan, Select)
    assert top.plan.inputs == (Scan(groups.relation, groups.schema),)
    assert groups.inputs == {SHIPS}
    assert top.inputs == {groups.relation}


def test_a_stored_aggregate_has_its_state_behind_its_columns(harbour: Harbour) -> None:
    (fragment,) = fragments(harbour.plan("SELECT flag, sum(tons) AS tons FROM ships GROUP BY flag"))
    assert fragment.schema.names == ("flag", "tons", "_count", "_n_a0", "_s_a0")
    assert [column.name for column in fragment.schema.visible] == ["flag", "tons"]
    assert fragment.schema.key == ("flag",)


def test_a_recomputed_view_reads_all_its_relations(harbour: Harbour) -> None:
    (fragment,) = fragments(harbour.plan("SELECT s.name FROM ships s LEFT JOIN arrivals a ON a.ship = s.id"))
    assert fragment.inputs == {SHIPS, ARRIVALS}


def test_a_view_of_rows_that_never_leave_is_stored_append_only(harbour: Harbour) -> None:
    (fragment,) = fragments(harbour.plan("SELECT height FROM tides"))
    assert fragment.schema.append_only
    assert fragment.inputs == {TIDES}


def test_a_recursion_reads_what_its_base_and_its_step_read_and_stores_what_no_round_changes(harbour: Harbour) -> None:
    groups, top = fragments(
        harbour.plan(
            """WITH RECURSIVE t(id, n) AS (SELECT id, 0 FROM ships UNION ALL SELECT g.ship, n + 1 FROM t
            JOIN (SELECT ship, count(*) AS calls FROM arrivals GROUP BY ship) g ON g.calls = t.id
            LEFT JOIN berths b ON b.id = t.id) SELECT id, n FROM t"""
        )
    )
    assert isinstance(groups.plan, Aggregate)
    assert groups.inputs == {ARRIVALS}
    recursion = top.plan
    assert isinstance(recursion, Recursion)
    assert top.inputs == {SHIPS, BERTHS, groups.relation}
    assert top.schema.key == ("id", "n", "_n")
    assert isinstance(recursion.step, Keyed)  # an outer join of the rows of a round keeps its place in the step


def test_a_recursive_query_that_is_read_twice_is_stored_once(harbour: Harbour) -> None:
    query = (
        "WITH RECURSIVE t(n) AS (SELECT id FROM ships UNION SELECT n + 1 FROM t WHERE n < 9) SELECT a.n FROM t a, t b"
    )
    stored = [each for each in fragments(harbour.plan(query)) if isinstance(each.plan, Recursion)]
    assert len(stored) == 1
    assert stored[0].schema.key == ("n",)


def test_a_recursion_over_nothing_that_changes_is_no_reason_to_recompute(harbour: Harbour) -> None:
    plan = harbour.plan("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 9) SELECT n FROM t")
    assert recomputed(plan) == ()
    assert all(not each.inputs - {other.relation for other in fragments(plan)} for each in fragments(plan))


def test_a_recursion_that_reads_the_clock_is_due_with_it(harbour: Harbour) -> None:
    query = "WITH RECURSIVE t(at) AS (SELECT at FROM tides {} UNION SELECT at FROM t {}) SELECT at FROM t"
    assert not follows_clock(fragments(harbour.plan(query.format("", "")))[-1].plan)
    assert follows_clock(fragments(harbour.plan(query.format("", "WHERE at > now() - INTERVAL '1 hour'")))[-1].plan)
    assert follows_clock(fragments(harbour.plan(query.format("WHERE at > now() - INTERVAL '1 hour'", "")))[-1].plan)


def test_a_history_cannot_be_part_of_a_recursion(harbour: Harbour) -> None:
    with pytest.raises(FeatureNotSupported, match="a temporal join cannot stand in a query that is recomputed"):
        harbour.plan(
            """WITH RECURSIVE t(id) AS (SELECT id FROM ships UNION
            SELECT a.ship FROM t JOIN arrivals a ON a.berth = t.id
            JOIN ships FOR SYSTEM_TIME AS OF PROCTIME() s ON s.id = a.ship) SELECT id FROM t"""
        )


def test_what_is_stored_keeps_what_was_not_known_of_it_when_it_was_created(harbour: Harbour) -> None:
    plan = harbour.plan("SELECT seen, count(*) FROM (SELECT proctime() AS seen FROM tides) x GROUP BY seen")
    arrived, counted = fragments(plan)
    assert arrived.schema.append_only
    older = replace(arrived.schema, append_only=False, spread=Spread.BY_WHOLE_KEY)
    again, above = cut(plan, NEW, iter([arrived.relation]).__next__, {arrived.relation: older, NEW: counted.schema})
    assert again.schema == older
    assert isinstance(above.plan, Aggregate)
    assert above.plan.input == Scan(arrived.relation, older)
