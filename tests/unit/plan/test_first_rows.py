"""Of which views the stored rows and new ones tell the first rows of each partition."""

from __future__ import annotations

import pytest

from seiche.plan.algebra import Keyed
from seiche.plan.first_rows import stored_columns
from tests.workloads.techniques import Planner

TABLES = {
    "calls": "(ship bigint, berth bigint, tons bigint) APPEND ONLY",
    "berths": "(id bigint, pier varchar) APPEND ONLY",
    "changing": "(ship bigint, berth bigint, tons bigint)",
}


def told(
    *,
    shown: str = "ship, tons",
    rank: str = "row_number()",
    where: str = "n <= 3",
    source: str = "calls",
    order: str = "ORDER BY tons DESC",
) -> dict[str, str] | None:
    ranked = f"SELECT *, {rank} OVER (PARTITION BY ship {order}) AS n FROM {source}"
    plan = Planner(TABLES).plan(f"SELECT {shown} FROM ({ranked}) AS x WHERE {where}")
    assert isinstance(plan, Keyed)
    found = stored_columns(plan)
    return {name: stored for name, stored in found.items() if not name.startswith("_")} if found is not None else None


@pytest.mark.parametrize("rank", ["row_number()", "rank()", "dense_rank()"])
@pytest.mark.parametrize("where", ["n <= 3", "n < 3", "n = 1", "n <= 3 AND n < 2"])
def test_the_first_rows_of_rows_that_only_come_are_told_by_stored_and_new_ones(rank: str, where: str) -> None:
    assert told(rank=rank, where=where) == {"ship": "ship", "tons": "tons"}


def test_a_stored_column_may_have_another_name_than_the_field_that_it_holds() -> None:
    assert told(shown="ship AS s, tons AS heavy, tons * 2 AS twice") == {"ship": "s", "tons": "heavy"}


def test_rows_of_a_join_that_only_come_are_told_too() -> None:
    source = "calls JOIN berths ON calls.berth = berths.id"
    assert told(source=source, shown="ship, tons, pier") == {"pier": "pier", "ship": "ship", "tons": "tons"}


@pytest.mark.parametrize(
    "where", ["n = 2", "n > 1", "n <= 3 AND berth > 1", "n <= 3 OR tons = 4", "n <= tons", "n <> 1"]
)
def test_rows_that_are_not_the_first_of_a_partition_are_not(where: str) -> None:
    assert told(shown="ship, berth, tons", where=where) is None


def test_rows_that_do_not_show_what_they_are_ordered_by_are_not() -> None:
    assert told(shown="ship, berth") is None


def test_rows_that_may_leave_are_not() -> None:
    assert told(source="changing") is None


@pytest.mark.parametrize("rank", ["count(*)", "sum(tons)", "ntile(4)"])
def test_other_windows_than_ranks_are_not(rank: str) -> None:
    assert told(rank=rank) is None
