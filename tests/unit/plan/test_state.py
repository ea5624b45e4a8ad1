"""The hidden columns from which a group's aggregates are kept up to date."""

from __future__ import annotations

import pytest

from seiche.plan.algebra import Aggregate
from seiche.plan.state import COUNT, GroupState, group_state
from tests.unit.plan.harbour import Harbour


@pytest.fixture(scope="module")
def harbour() -> Harbour:
    return Harbour()


def state(harbour: Harbour, *calls: str) -> GroupState:
    shown = ", ".join(f"{call} AS x{number}" for number, call in enumerate(calls))
    plan = harbour.plan(f"SELECT flag, {shown} FROM ships GROUP BY flag")
    assert isinstance(plan, Aggregate)
    return group_state(plan)


def columns(state: GroupState) -> list[str]:
    return [f"{column.name} {column.type}" for column in state.columns]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("count(*)", []),
        ("count(name)", ["_n_a0 bigint"]),
        ("sum(tons)", ["_n_a0 bigint", "_s_a0 bigint"]),
        ("sum(tons::bigint)", ["_n_a0 bigint", "_s_a0 numeric"]),
        ("sum(draught::double precision)", ["_n_a0 bigint", "_d_a0 numeric", "_u_a0 bigint"]),
        ("min(name)", ["_min_a0 character varying"]),
        ("max(fee)", ["_max_a0 numeric(10,2)"]),
        ("bool_and(tons > 1)", ["_n_a0 bigint", "_f_a0 bigint"]),
        ("bool_or(tons > 1)", ["_n_a0 bigint", "_t_a0 bigint"]),
    ],
)
def test_each_call_keeps_what_it_needs_beside_the_count(harbour: Harbour, call: str, expected: list[str]) -> None:
    found = state(harbour, call)
    assert columns(found) == [f"{COUNT} bigint", *expected]
    assert all(column.hidden for column in found.columns)


def test_calls_over_one_argument_share_their_state(harbour: Harbour) -> None:
    found = state(harbour, "sum(tons)", "count(tons)", "max(tons)", "min(tons)", "avg(tons)")
    assert [column.name for column in found.columns] == [COUNT, "_n_a0", "_s_a0", "_max_a0", "_min_a0"]


def test_a_sum_of_no_values_is_null(harbour: Harbour) -> None:
    (result,) = state(harbour, "sum(tons)").results.values()
    assert result == "cast(if(`_n_a0` = 0, null, `_s_a0`) as bigint)"


def test_a_count_of_rows_is_the_groups_own_count(harbour: Harbour) -> None:
    found = state(harbour, "count(*)")
    assert list(found.results.values()) == [f"`{COUNT}`"]


def test_a_leaving_row_is_subtracted(harbour: Harbour) -> None:
    present, total = state(harbour, "sum(tons)").sums
    assert present.partial == "coalesce(sum(if(`a0` is null, 0, `_op`)), 0)"
    assert "sum(if(`_op` > 0, cast(`a0` as bigint), -cast(`a0` as bigint)))" in total.partial


def test_an_extreme_knows_its_side(harbour: Harbour) -> None:
    least, greatest = state(harbour, "min(tons)", "max(tons)").extremes
    assert (least.function, least.choose, least.gained, least.lost) == (
        "min",
        "least",
        "_min_a0_gained",
        "_min_a0_lost",
    )
    assert (greatest.function, greatest.choose) == ("max", "greatest")


def test_only_sums_of_floats_can_be_inexact(harbour: Harbour) -> None:
    assert state(harbour, "sum(tons)", "sum(fee)", "max(draught)").inexact == ()
    assert state(harbour, "sum(draught)").inexact == ("_u_a0",)


def test_only_what_the_state_may_not_tell_is_evaluated_by_spark_as_well(harbour: Harbour) -> None:
    calls = "count(*)", "count(tons)", "sum(tons)", "sum(tons::bigint)", "sum(fee)", "min(name)", "bool_or(tons > 1)"
    assert not any("_native_" in name for name in state(harbour, *calls).evaluation.grouped)
    found = state(harbour, "count(*)", "sum(fee)", "sum(draught::double precision)")
    assert found.evaluation.grouped["_native_a1"] == "try_sum(`a1`)"
    *_, told = found.evaluation.results.values()
    assert "if(`_u_a1` <> 0 OR `_d_a1` IS NULL, `_native_a1`, " in told


def test_a_sum_of_bigints_is_wide_and_its_argument_is_not(harbour: Harbour) -> None:
    found = state(harbour, "sum(tons::bigint)", "max(tons::bigint)")
    assert columns(found) == [f"{COUNT} bigint", "_n_a0 bigint", "_s_a0 numeric", "_max_a0 bigint"]
    assert "decimal" not in found.sums[1].partial.partition("coalesce")[2].partition(")")[0]


def test_a_float_is_taken_apart_before_it_is_summed(harbour: Harbour) -> None:
    found = state(harbour, "sum(draught::double precision)", "avg(draught::double precision)", "sum(draught * 2)")
    assert [sorted(step) for step in found.prepared] == [["_q_a0", "_q_a1"], ["_e_a0", "_e_a1"]]
    assert [sorted(step) for step in found.combined] == [["_k_a0", "_k_a1"], ["_d_a0", "_d_a1"]]
    assert len(found.words) == 8
    other = state(harbour, "sum(tons)", "max(draught)")
    assert (other.prepared, other.words, other.combined) == ((), {}, ())


def test_groups_with_sums_of_floats_can_be_evaluated_in_haste(harbour: Harbour) -> None:
    assert state(harbour, "sum(tons)", "max(draught)").hasty is None
    found = state(harbour, "sum(draught::double precision)", "count(draught::double precision)", "max(tons)")
    assert found.hasty is not None
    assert sorted(found.hasty.grouped) == ["_h_a0", "_l_a0", "_max_a1", "_p_a0"]
    told = {*found.hasty.grouped, *(name for step in found.hasty.combined for name in step)}
    assert {column.name for column in found.columns} - {COUNT} <= told
    assert found.hasty.results.keys() == found.evaluation.results.keys() == found.results.keys()
