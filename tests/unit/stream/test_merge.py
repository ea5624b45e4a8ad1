"""Merging the changes of few groups into their stored state, without Spark."""

from __future__ import annotations

import random
from collections import defaultdict
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from seiche.model import EPOCH, OP, VNODE
from seiche.plan.algebra import Aggregate
from seiche.plan.state import group_state
from seiche.storage.changes import arrow_schema
from seiche.stream.merge import REDO, Parts, SparkPart, can_merge, merge
from tests.unit.plan.harbour import Harbour
from tests.unit.stream.groups import Groups, Row

FLEETS = "SELECT flag, count(*) AS ships, count(tons) AS weighed, sum(tons) AS tons FROM ships GROUP BY flag"
LARGEST = "SELECT flag, min(tons) AS least, max(tons) AS most FROM ships GROUP BY flag"
DEPTHS = "SELECT quay, sum(depth) AS depth FROM berths GROUP BY quay"


def ship(flag: str | None, tons: int | None = None, **more: Any) -> Row:
    return {"flag": flag, "tons": tons, "fee": None, **more}


def berth(quay: str | None, depth: float | None, free: bool | None = None) -> Row:
    return {"quay": quay, "depth": depth, "free": free}


def signed(changes: pa.Table | None) -> list[tuple[Any, ...]]:
    """The rows that leave and appear: sign, then the visible columns."""
    assert changes is not None
    names = [name for name in changes.column_names if not name.startswith("_")]
    return sorted(((row[OP], *(row[name] for name in names)) for row in changes.to_pylist()), key=repr)


def doubtful(changes: pa.Table | None) -> list[Any]:
    """The first visible column of new rows that have to be evaluated anew."""
    assert changes is not None
    return [row[changes.column_names[0]] for row in changes.to_pylist() if row[REDO]]


# --- counts and sums ---------------------------------------------------------------------------------


def test_first_rows_of_a_group_make_it_appear() -> None:
    groups = Groups(FLEETS)
    assert signed(groups.step((1, ship("NO", 5)), (1, ship("NO", 7)), (1, ship("DK", 1)))) == [
        (1, "DK", 1, 1, 1),
        (1, "NO", 2, 2, 12),
    ]


def test_changed_group_leaves_with_its_old_row_and_appears_with_its_new_one() -> None:
    groups = Groups(FLEETS)
    groups.step((1, ship("NO", 5)), (1, ship("DK", 1)))
    assert signed(groups.step((1, ship("NO", 7)), (-1, ship("NO", 5)))) == [(-1, "NO", 1, 1, 5), (1, "NO", 1, 1, 7)]


def test_group_vanishes_with_its_last_row_and_comes_back() -> None:
    groups = Groups(FLEETS)
    groups.step((1, ship("NO", 5)))
    assert signed(groups.step((-1, ship("NO", 5)))) == [(-1, "NO", 1, 1, 5)]
    assert groups.alive() == []
    assert signed(groups.step((1, ship("NO", 3)))) == [(1, "NO", 1, 1, 3)]


def test_group_that_comes_and_goes_in_one_epoch_never_was() -> None:
    groups = Groups(FLEETS)
    assert signed(groups.step((1, ship("NO", 5)), (-1, ship("NO", 5)))) == []


def test_null_is_a_key_like_others() -> None:
    groups = Groups(FLEETS)
    groups.step((1, ship(None, 5)), (1, ship("", 1)))
    groups.step((1, ship(None, 6)))
    assert groups.alive() == [
        {"flag": "", "ships": 1, "weighed": 1, "tons": 1},
        {"flag": None, "ships": 2, "weighed": 2, "tons": 11},
    ]


def test_null_values_are_rows_without_a_part_of_the_sum() -> None:
    groups = Groups(FLEETS)
    groups.step((1, ship("NO", None)))
    assert groups.alive() == [{"flag": "NO", "ships": 1, "weighed": 0, "tons": None}]
    groups.step((1, ship("NO", 4)))
    groups.step((-1, ship("NO", 4)))
    assert groups.alive() == [{"flag": "NO", "ships": 1, "weighed": 0, "tons": None}]


def test_keys_of_several_columns_are_told_apart() -> None:
    groups = Groups("SELECT flag, tons, count(*) AS n FROM ships GROUP BY flag, tons")
    groups.step((1, ship("a", 1)), (1, ship("a", None)), (1, ship(None, 1)), (1, ship(None, None)))
    groups.step((1, ship(None, 1)), (-1, ship("a", None)))
    found = {(row["flag"], row["tons"]): row["n"] for row in groups.alive()}
    assert found == {("a", 1): 1, (None, 1): 2, (None, None): 1}


def test_zero_with_a_sign_is_the_same_key() -> None:
    groups = Groups("SELECT depth, count(*) AS n FROM berths GROUP BY depth")
    groups.step((1, berth("a", 0.0)))
    groups.step((1, berth("b", -0.0)))
    assert [row["n"] for row in groups.alive()] == [2]


def test_the_last_row_of_the_log_is_the_old_one_wherever_it_lies() -> None:
    groups = Groups(FLEETS)
    for tons in (1, 2, 3):
        groups.step((1, ship("NO", tons)))
    groups.fold()
    groups.step((1, ship("NO", 4)))
    groups.stored = groups.stored.take(pa.array(range(len(groups.stored) - 1, -1, -1)))  # in any order
    assert signed(groups.step((-1, ship("NO", 1)))) == [(-1, "NO", 4, 4, 10), (1, "NO", 3, 3, 9)]


def test_flags_are_counted() -> None:
    groups = Groups("SELECT quay, bool_and(free) AS empty, bool_or(free) AS room FROM berths GROUP BY quay")
    groups.step((1, berth("a", None, True)), (1, berth("a", None, False)), (1, berth("b", None)))
    assert groups.alive() == [
        {"quay": "a", "empty": False, "room": True},
        {"quay": "b", "empty": None, "room": None},
    ]
    groups.step((-1, berth("a", None, False)))
    assert groups.alive()[0] == {"quay": "a", "empty": True, "room": True}


# --- one group for all rows ---------------------------------------------------------------------------


def test_total_is_there_without_rows() -> None:
    groups = Groups("SELECT count(*) AS n, sum(tons) AS tons FROM ships")
    groups.step((1, ship("NO", 5)))
    assert groups.alive() == [{"n": 1, "tons": 5}]
    assert signed(groups.step((-1, ship("NO", 5)))) == [(-1, 1, 5), (1, 0, None)]
    assert groups.alive() == [{"n": 0, "tons": None}]


# --- extremes -----------------------------------------------------------------------------------------


def test_better_value_becomes_the_extreme() -> None:
    groups = Groups(LARGEST)
    groups.step((1, ship("NO", 5)))
    changed = groups.step((1, ship("NO", 9)), (1, ship("NO", 7)))
    assert signed(changed) == [(-1, "NO", 5, 5), (1, "NO", 5, 9)]
    assert doubtful(changed) == []


def test_value_between_the_extremes_may_leave() -> None:
    groups = Groups(LARGEST)
    groups.step((1, ship("NO", 1)), (1, ship("NO", 5)), (1, ship("NO", 9)))
    assert doubtful(groups.step((-1, ship("NO", 5)))) == []
    assert groups.alive() == [{"flag": "NO", "least": 1, "most": 9}]


@pytest.mark.parametrize("tons", [1, 9])
def test_group_whose_extreme_left_is_evaluated_anew(tons: int) -> None:
    groups = Groups(LARGEST)
    groups.step((1, ship("NO", 1)), (1, ship("NO", 9)), (1, ship("DK", 1)))
    assert doubtful(groups.step((-1, ship("NO", tons)), (1, ship("DK", 4)))) == ["NO"]


def test_extreme_that_left_and_was_outdone_is_known() -> None:
    groups = Groups(LARGEST)
    groups.step((1, ship("NO", 1)), (1, ship("NO", 9)))
    changed = groups.step((-1, ship("NO", 9)), (1, ship("NO", 10)))
    assert doubtful(changed) == []
    assert groups.alive() == [{"flag": "NO", "least": 1, "most": 10}]


def test_extreme_that_left_as_often_as_it_came_stays() -> None:
    groups = Groups(LARGEST)
    groups.step((1, ship("NO", 1)), (1, ship("NO", 9)))
    changed = groups.step((-1, ship("NO", 9)), (1, ship("NO", 9)), (1, ship("NO", 99)), (-1, ship("NO", 99)))
    assert doubtful(changed) == []
    assert groups.alive() == [{"flag": "NO", "least": 1, "most": 9}]


def test_group_that_vanishes_needs_no_evaluation() -> None:
    groups = Groups(LARGEST)
    groups.step((1, ship("NO", 1)))
    assert doubtful(groups.step((-1, ship("NO", 1)))) == []
    assert groups.alive() == []


def test_extreme_of_nothing_but_null_is_null() -> None:
    groups = Groups(LARGEST)
    groups.step((1, ship("NO", None)))
    assert groups.alive() == [{"flag": "NO", "least": None, "most": None}]
    groups.step((1, ship("NO", 3)), (-1, ship("NO", None)))
    assert groups.alive() == [{"flag": "NO", "least": 3, "most": 3}]


def test_nan_is_left_to_spark() -> None:
    groups = Groups("SELECT quay, max(depth) AS depth FROM berths GROUP BY quay")
    assert groups.step((1, berth("a", float("nan")))) is None


# --- numbers that do not fit --------------------------------------------------------------------------


def test_decimal_sum_that_outgrows_its_type_is_evaluated_anew() -> None:
    groups = Groups("SELECT flag, sum(fee) AS fees FROM ships GROUP BY flag")
    (total,) = (each for each in groups.state.sums if each.may_overflow)
    assert total.type.precision is not None and total.type.scale is not None
    half = 6 * Decimal(10) ** (total.type.precision - total.type.scale - 1)
    assert doubtful(groups.step((1, ship("NO", fee=half)), (1, ship("DK", fee=Decimal(1))))) == []
    assert doubtful(groups.step((1, ship("NO", fee=half)), (1, ship("DK", fee=Decimal(2))))) == ["NO"]
    assert doubtful(groups.step((-1, ship("NO", fee=half)))) == ["NO"]  # the state says nothing any more


def test_float_without_an_exact_decimal_is_evaluated_anew_while_it_is_there() -> None:
    groups = Groups(DEPTHS)
    assert doubtful(groups.step((1, berth("a", 1e30)), (1, berth("b", 2.5)))) == ["a"]
    assert doubtful(groups.step((1, berth("a", 1.5)))) == ["a"]
    assert doubtful(groups.step((-1, berth("a", 1e30)))) == []
    assert groups.alive()[0] == {"quay": "a", "depth": 1.5}


# --- sums of floats -----------------------------------------------------------------------------------


def test_small_floats_outlive_a_large_one() -> None:
    groups = Groups(DEPTHS)
    groups.step((1, berth("a", 0.1)), (1, berth("a", 0.2)))
    groups.step((1, berth("a", 1e16)))
    groups.step((-1, berth("a", 1e16)))
    assert groups.alive() == [{"quay": "a", "depth": 0.3}]


@pytest.mark.parametrize("epochs", [300, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(600)])])
def test_sums_of_floats_do_not_drift(epochs: int) -> None:
    """Rows come and go, large ones among small ones; what is left must add up to 1e-12 of its exact sum."""
    rng = random.Random(4)
    groups = Groups(DEPTHS)
    present: dict[str, list[float]] = defaultdict(list)
    drifting: dict[str, float] = defaultdict(float)  # what adding and subtracting floats would have given
    for epoch in range(epochs):
        changes = []
        for _ in range(2):
            quay = rng.choice("ab")
            if present[quay] and rng.random() < len(present[quay]) / 40:
                depth = present[quay].pop(rng.randrange(len(present[quay])))
                changes.append((-1, berth(quay, depth)))
                drifting[quay] -= depth
            else:
                depth = rng.uniform(-1, 1) * 10 ** rng.randint(-3, 12)
                present[quay].append(depth)
                changes.append((1, berth(quay, depth)))
                drifting[quay] += depth
        groups.step(*changes)
        if epoch % 50 == 0:
            groups.fold()
    for quay in "ab":  # the large ones leave, and what they would have swallowed is left
        large = [depth for depth in present[quay] if abs(depth) > 10]
        present[quay] = [0.001, *(depth for depth in present[quay] if abs(depth) <= 10)]
        groups.step((1, berth(quay, 0.001)), *((-1, berth(quay, depth)) for depth in large))
        drifting[quay] += 0.001 - sum(large)
    found = {row["quay"]: row["depth"] for row in groups.alive()}
    exact = {quay: float(sum(Decimal(repr(depth)) for depth in depths)) for quay, depths in present.items()}
    assert found == pytest.approx(exact, rel=1e-12)
    assert drifting != pytest.approx(exact, rel=1e-12)  # else these values prove nothing


# --- at random ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_groups_follow_rows_that_come_and_go(seed: int) -> None:
    rng = random.Random(seed)
    groups = Groups(FLEETS)
    present: list[Row] = []
    for _ in range(60):
        changes: list[tuple[int, Row]] = []
        for _ in range(rng.randint(1, 6)):
            if present and rng.random() < 0.45:
                changes.append((-1, present.pop(rng.randrange(len(present)))))
            else:
                row = ship(rng.choice(["NO", "DK", None]), rng.choice([None, -3, 0, 2**31 - 1]))
                present.append(row)
                changes.append((1, row))
        groups.step(*changes)
        if rng.random() < 0.2:
            groups.fold()
        expected = []
        for flag in {row["flag"] for row in present}:
            tons = [row["tons"] for row in present if row["flag"] == flag]
            known = [each for each in tons if each is not None]
            total = sum(known) if known else None
            expected.append({"flag": flag, "ships": len(tons), "weighed": len(known), "tons": total})
        assert groups.alive() == sorted(expected, key=repr)


# --- what is left to the executors --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "here"),
    [
        (FLEETS, True),
        (LARGEST, True),
        ("SELECT crew, count(*) AS n FROM arrivals GROUP BY crew", False),
    ],
)
def test_only_values_that_arrow_orders_are_merged_here(query: str, here: bool) -> None:
    aggregate = Harbour().fragments(query)[-1].plan
    assert isinstance(aggregate, Aggregate)
    assert can_merge(aggregate, group_state(aggregate)) is here


def test_expressions_over_results_are_evaluated_elsewhere() -> None:
    (fragment,) = Harbour().fragments("SELECT flag, length(sum(tons)::varchar) AS more FROM ships GROUP BY flag")
    assert isinstance(fragment.plan, Aggregate)
    asked: list[pa.Table] = []

    def evaluate(states: pa.Table) -> pa.Table:
        asked.append(states)
        more = pa.array([value + 1 for value in states["_s_a0"].to_pylist()], fragment.schema.column("more").type.arrow)
        return pa.table({"flag": states["g0"], "more": more})

    rows = pa.table(
        {
            "g0": ["NO", "NO"],
            VNODE: pa.array([7, 7], pa.int16()),
            OP: pa.array([1, 1], pa.int8()),
            "_n_a0": pa.array([1, 1], pa.int64()),
            "_s_a0": pa.array([5, 6], pa.int64()),
        }
    )
    parts = Parts.of(fragment.plan, rows)
    stored = arrow_schema(fragment.schema).empty_table()
    spark = SparkPart(evaluate, lambda keys: pa.chunked_array([[0] * keys.num_rows]))
    changed = merge(fragment.plan, group_state(fragment.plan), fragment.schema, parts, stored, spark)
    assert signed(changed) == [(1, "NO", 12)]
    assert asked[0].column_names == ["g0", "_count", "_n_a0", "_s_a0"]
    assert EPOCH not in (changed.column_names if changed is not None else ())


def test_vnodes_are_asked_for_of_groups_that_are_not_stored() -> None:
    (fragment,) = Harbour().fragments("SELECT flag, count(*) AS n FROM ships GROUP BY flag")
    assert isinstance(fragment.plan, Aggregate)
    stored = pa.Table.from_pylist(
        [{"flag": "NO", "n": 2, "_count": 2, VNODE: 41, OP: 1, EPOCH: 0}], schema=arrow_schema(fragment.schema)
    )
    asked: list[list[dict[str, object]]] = []

    def vnodes(keys: pa.Table) -> pa.ChunkedArray:
        asked.append(keys.to_pylist())
        return pa.chunked_array([pa.array([7], pa.int16())])

    def evaluate(states: pa.Table) -> pa.Table:
        raise AssertionError("a count is plain to see")

    rows = pa.table({"g0": ["NO", "SE"], OP: pa.array([1, 1], pa.int8())})
    state, parts = group_state(fragment.plan), Parts.of(fragment.plan, rows)
    changed = merge(fragment.plan, state, fragment.schema, parts, stored, SparkPart(evaluate, vnodes))
    assert changed is not None
    found = {(row["flag"], row[OP]): (row["n"], row[VNODE]) for row in changed.to_pylist()}
    assert found == {("NO", -1): (2, 41), ("NO", 1): (3, 41), ("SE", 1): (1, 7)}
    assert asked == [[{"g0": "SE"}]]
