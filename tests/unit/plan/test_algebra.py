"""Plans as values: new names, stored shapes, and whether rows ever leave."""

from __future__ import annotations

import pytest

from seiche.errors import InvariantError
from seiche.plan.algebra import (
    Recompute,
    Scan,
    Select,
    UnionAll,
    is_append_only,
    is_empty_over_nothing,
    scans,
    stored_schema,
    with_names,
)
from tests.unit.plan.harbour import ARRIVALS, BERTHS, SHIPS, TIDES, Harbour


@pytest.fixture(scope="module")
def harbour() -> Harbour:
    return Harbour()


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT id, name FROM ships", ("nr",)),
        ("SELECT flag AS id, count(*) AS name FROM ships GROUP BY flag", ("nr",)),
        ("SELECT DISTINCT id, name FROM ships", ("nr", "called")),
        ("SELECT id, name FROM ships WHERE NOT now() < '2026-01-01'", ("nr", "called", "_n")),
        ("SELECT id, name FROM ships ORDER BY name LIMIT 1", ("nr",)),
        ("SELECT id, max(tons) OVER (PARTITION BY flag) AS most FROM ships", ("nr",)),
        ("SELECT id, name FROM ships UNION ALL SELECT id, quay FROM berths", ("_branch", "_u0_id", "_u1_id")),
    ],
)
def test_new_names_reach_the_fields_and_the_key(harbour: Harbour, query: str, key: tuple[str, ...]) -> None:
    plan = with_names(harbour.plan(query), ["nr", "called"])
    assert [field.name for field in plan.fields if not field.hidden] == ["nr", "called"]
    assert plan.key == key
    assert stored_schema(plan).key == key


def test_names_may_be_swapped(harbour: Harbour) -> None:
    plan = with_names(harbour.plan("SELECT id, name FROM ships"), ["name", "id"])
    assert isinstance(plan, Select)
    assert [(item.field.name, item.expr.name) for item in plan.items] == [("name", "id"), ("id", "name")]
    assert plan.key == ("name",)


def test_every_branch_of_a_union_gets_the_new_names(harbour: Harbour) -> None:
    plan = with_names(harbour.plan("SELECT name FROM ships UNION ALL SELECT quay FROM berths"), ["word"])
    assert isinstance(plan, UnionAll)
    assert {each.fields[0].name for each in plan.inputs} == {"word"}


def test_a_recomputed_query_gives_the_new_names_itself(harbour: Harbour) -> None:
    plan = with_names(harbour.plan("SELECT name FROM ships WHERE NOT now() < '2026-01-01'"), ["word"])
    assert isinstance(plan, Recompute)
    assert plan.query.named_selects == ["word"]


def test_a_bare_scan_gets_new_names_by_a_projection(harbour: Harbour) -> None:
    plan = with_names(Scan(TIDES, harbour.schemas[TIDES]), ["at", "metres", "is_high"])
    assert isinstance(plan, Select)
    assert plan.key == ("_k0_row_id",)


def test_too_few_names_are_refused(harbour: Harbour) -> None:
    with pytest.raises(ValueError, match="shorter"):
        with_names(harbour.plan("SELECT id, name FROM ships"), ["nr"])


def test_two_columns_of_one_name_cannot_be_stored(harbour: Harbour) -> None:
    plan = with_names(harbour.plan("SELECT id, name FROM ships"), ["x", "x"])
    with pytest.raises(InvariantError, match='repeats column "'):
        stored_schema(plan)


def test_hidden_fields_are_hidden_columns(harbour: Harbour) -> None:
    schema = stored_schema(harbour.plan("SELECT name FROM ships"))
    assert [column.name for column in schema.visible] == ["name"]
    assert schema.names == ("name", "_k0_id")


@pytest.mark.parametrize(
    ("query", "grows_only"),
    [
        ("SELECT height FROM tides WHERE high", True),
        ("SELECT a.height FROM tides a JOIN tides b ON a.at = b.at", True),
        ("SELECT height FROM tides UNION ALL SELECT height FROM tides", True),
        ("SELECT height FROM tides UNION ALL SELECT depth FROM berths", False),
        ("SELECT 2 AS height", True),
        ("SELECT * FROM (VALUES (1), (2)) AS levels (level)", True),
        ("SELECT height, s.name FROM tides JOIN ships FOR SYSTEM_TIME AS OF PROCTIME() s ON s.tons < height", True),
        ("SELECT height, proctime() AS seen FROM tides", True),
        ("SELECT a.at, s.name FROM arrivals a JOIN ships FOR SYSTEM_TIME AS OF PROCTIME() s ON s.id = a.ship", False),
        ("SELECT name, proctime() AS seen FROM ships", False),
        ("SELECT name FROM ships", False),
        ("SELECT t.height FROM tides t JOIN ships s ON s.draught < t.height", False),
        ("SELECT DISTINCT height FROM tides", False),
        ("SELECT count(*) FROM tides", False),
        ("SELECT height FROM tides LIMIT 1", False),
    ],
)
def test_rows_never_leave_where_inputs_only_grow(harbour: Harbour, query: str, grows_only: bool) -> None:
    assert is_append_only(harbour.plan(query)) is grows_only


def test_scans_are_met_from_left_to_right(harbour: Harbour) -> None:
    plan = harbour.plan(
        "SELECT s.name FROM ships s JOIN arrivals a ON a.ship = s.id"
        " UNION ALL SELECT quay FROM (SELECT DISTINCT quay FROM berths) b"
    )
    assert [scan.relation for scan in scans(plan)] == [SHIPS, ARRIVALS, BERTHS]


@pytest.mark.parametrize(
    ("query", "empty"),
    [
        ("SELECT id FROM ships WHERE tons > 1", True),
        ("SELECT s.id FROM ships s FULL JOIN arrivals a ON a.ship = s.id", True),
        ("SELECT flag, count(*) FROM ships GROUP BY flag", True),
        ("SELECT id, rank() OVER (PARTITION BY flag ORDER BY tons) FROM ships", True),
        ("SELECT id FROM ships ORDER BY id LIMIT 3", True),
        ("SELECT id FROM ships UNION ALL SELECT 7", False),
        ("SELECT count(*) FROM ships", False),
        ("SELECT string_agg(name, ',') FROM ships", False),
        ("SELECT 1 AS one", False),
    ],
)
def test_a_plan_knows_whether_it_is_empty_over_empty_inputs(query: str, empty: bool) -> None:
    plans = [each.plan for each in Harbour().fragments(query)]
    assert all(map(is_empty_over_nothing, plans)) is empty
