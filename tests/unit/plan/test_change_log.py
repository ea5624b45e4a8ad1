"""`WITH … AS CHANGELOG FROM …`: what it shows, which operator it becomes, and where it cannot stand."""

from __future__ import annotations

import pytest

from seiche.errors import FeatureNotSupported
from seiche.model import CHANGELOG_ROW_ID, RelationId
from seiche.plan.algebra import Aggregate, ChangeLog, Scan, Select, is_append_only
from seiche.plan.choice import Technique, techniques
from seiche.plan.fragments import cut
from seiche.sql.change_log import refuse_change_log
from tests.unit.plan.harbour import BERTHS, NEW, SHIPS, Harbour


@pytest.fixture
def harbour() -> Harbour:
    return Harbour()


def test_a_change_log_shows_the_columns_and_what_happened_and_hides_its_number(harbour: Harbour) -> None:
    plan = harbour.plan("WITH log AS CHANGELOG FROM berths SELECT * FROM log")
    assert isinstance(plan, Select)
    (source,) = plan.inputs
    assert isinstance(source, ChangeLog) and source.input.relation == BERTHS
    shown = [field.name for field in plan.fields if not field.hidden]
    assert shown == ["id", "quay", "depth", "free", "changelog_op"]
    assert plan.key == (CHANGELOG_ROW_ID,)  # so that whoever reads the view can ask for it


def test_a_change_log_is_stored_once_and_only_grows(harbour: Harbour) -> None:
    numbers = iter(range(100, 200))
    plan = harbour.plan(
        "WITH log AS CHANGELOG FROM berths"
        " SELECT a.id, b.quay FROM log a JOIN log b ON a.id = b.id AND a.changelog_op = 1"
    )
    fragments = cut(plan, NEW, lambda: RelationId(next(numbers)))
    assert [type(each.plan) for each in fragments] == [ChangeLog, Select]
    assert fragments[0].schema.append_only and fragments[0].schema.key == (CHANGELOG_ROW_ID,)
    assert techniques(fragments[0].plan) == (Technique.CHANGE_RULE,)
    assert is_append_only(plan)


def test_changes_can_be_counted(harbour: Harbour) -> None:
    plan = harbour.plan(
        "WITH log (id, name) AS CHANGELOG FROM ships SELECT changelog_op, count(*) FROM log GROUP BY changelog_op"
    )
    assert isinstance(plan, Aggregate)


def test_a_change_log_does_not_hide_the_relation(harbour: Harbour) -> None:
    plan = harbour.plan("WITH log AS CHANGELOG FROM ships SELECT s.id, log.tons FROM ships s JOIN log ON log.id = s.id")
    assert isinstance(plan, Select)
    assert [type(each) for each in plan.inputs] == [Scan, ChangeLog]
    assert all(isinstance(each, ChangeLog) or each.relation == SHIPS for each in plan.inputs)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "query",
    [
        "WITH l AS CHANGELOG FROM ships SELECT id FROM l WHERE (SELECT 1) IN (SELECT ship FROM arrivals)",
        "WITH log AS CHANGELOG FROM heavy SELECT * FROM log",
    ],
)
def test_what_cannot_be_a_history_is_refused(harbour: Harbour, query: str) -> None:
    harbour.add_view("heavy", "SELECT id FROM ships WHERE tons > 1000")
    with pytest.raises(FeatureNotSupported):
        harbour.plan(query)


def test_a_change_log_is_followed_and_not_queried(harbour: Harbour) -> None:
    bound = harbour.bound("WITH log AS CHANGELOG FROM ships SELECT id FROM log WHERE id = 1")
    with pytest.raises(FeatureNotSupported, match="cannot be queried"):
        refuse_change_log(bound.ast)
    refuse_change_log(harbour.bound("SELECT id FROM ships WHERE id = 1").ast)
