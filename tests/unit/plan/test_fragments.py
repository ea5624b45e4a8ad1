"""Cutting plans into fragments: what is stored, in which order, and that it is the same every time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seiche.model import RelationId
from seiche.plan.algebra import Aggregate, Plan, Scan, Select
from seiche.plan.fragments import Fragment, count_internal, cut
from tests.unit.plan.harbour import ARRIVALS, NEW, SHIPS, TIDES, Harbour

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
