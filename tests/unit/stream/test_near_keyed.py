"""Semi, anti and outer joins of few rows by the driver, against SQLite's answers to the same queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seiche.model import OP
from seiche.plan.algebra import Aggregate, Function, Keyed, Plan, Scan, Select
from seiche.stream import near_join, near_keyed
from seiche.stream.joined_row import flat_name
from seiche.stream.near_values import fulfilled
from tests.workloads.techniques import Planner

HARBOUR = Planner(
    {
        "ships": "(id int PRIMARY KEY, name varchar, flag varchar)",
        "arrivals": "(id int PRIMARY KEY, ship int, berth varchar, tons int)",
    }
)

Rows = list[tuple[Any, ...]]

# A view over ships (id, name, flag) and arrivals (id, ship, berth, tons).
VIEWS = {
    "semi": "SELECT s.id, s.name FROM ships s WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id)",
    "semi, also by another condition": (
        "SELECT s.id FROM ships s WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id AND a.berth <> s.name)"
    ),
    "anti": "SELECT s.id, s.name FROM ships s WHERE NOT EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id)",
    "both": (
        "SELECT s.id FROM ships s WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id)"
        " AND NOT EXISTS (SELECT 1 FROM arrivals b WHERE b.ship = s.id AND b.berth = 'B1')"
    ),
    "left": "SELECT s.id, s.name, a.id AS call, a.berth FROM ships s LEFT JOIN arrivals a ON a.ship = s.id",
    "left, also by another condition": (
        "SELECT s.id, a.id AS call, a.berth FROM ships s LEFT JOIN arrivals a ON a.ship = s.id AND a.berth > s.name"
    ),
    "left, what has no partner": (
        "SELECT s.id, s.name FROM ships s LEFT JOIN arrivals a ON a.ship = s.id WHERE a.id IS NULL"
    ),
    "right": "SELECT s.id, s.name, a.id AS call FROM ships s RIGHT JOIN arrivals a ON a.ship = s.id",
    "groups of a left join": (
        "SELECT s.id, count(*) AS n, count(a.berth) AS b, sum(a.tons) AS tons, max(a.tons * 2) AS most, s.name"
        " FROM ships s LEFT JOIN arrivals a ON a.ship = s.id GROUP BY s.id, s.name"
    ),
    "full": "SELECT s.id, s.name, a.id AS call, a.berth FROM ships s FULL JOIN arrivals a ON a.ship = s.id",
}

NAMES = st.sampled_from(["B1", "B2", "Æ", None])
SHIPS = st.lists(st.tuples(NAMES, NAMES), max_size=5).map(
    lambda rows: [(number, *row) for number, row in enumerate(rows)]
)
ARRIVALS = st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 9, None]), NAMES), max_size=7).map(
    lambda rows: [(number, *row, number) for number, row in enumerate(rows)]
)


@cache
def planned(view: str) -> Plan:
    return HARBOUR.plan(view)


def keyed_of(plan: Plan) -> Keyed:
    if isinstance(plan, Keyed):
        return plan
    assert isinstance(plan, Select)
    return next(each for each in plan.inputs if isinstance(each, Keyed))


def by_driver(view: str, ships: Rows, arrivals: Rows, limit: int = 1_000) -> pa.Table | None:
    plan = keyed_of(planned(view))
    tables = {"ships": ships, "arrivals": arrivals}
    return near_keyed.evaluated(plan, [_input(each, tables) for each in plan.inputs], limit)


def _input(source: Plan, tables: dict[str, Rows]) -> pa.Table:
    """The rows of an input, which is a choice of rows and columns of a table, or of groups of one."""
    if isinstance(source, Scan):
        return _scanned(source, tables)
    assert isinstance(source, Select)
    (below,) = source.inputs
    rows = _groups(below, tables) if isinstance(below, Aggregate) else _input(below, tables)
    table = rows.rename_columns([name if name == OP else flat_name(0, name) for name in rows.column_names])
    for condition in source.conjuncts:
        table = table.filter(fulfilled(condition, near_join.joined_row(source, table), table.num_rows))
    found = near_join.fields_of(source, near_join.Joined(table, told=True))
    assert found is not None
    return found


def _scanned(scan: Scan, tables: dict[str, Rows]) -> pa.Table:
    rows = tables["arrivals" if "berth" in scan.schema.names else "ships"]
    columns = {}
    for place, column in enumerate(scan.schema.columns):
        columns[column.name] = pa.array([row[place] for row in rows], column.type.arrow)
    return pa.table({**columns, OP: pa.array([1] * len(rows), pa.int8())})


def _groups(aggregate: Aggregate, tables: dict[str, Rows]) -> pa.Table:
    rows = _input(aggregate.input, tables)
    names = [field.name for field in aggregate.keys]
    asked: list[tuple[Any, str]] = []
    for call in aggregate.calls:
        if call.function is Function.COUNT_ROWS:
            asked.append(([], "count_all"))
        else:
            assert call.argument is not None
            asked.append((call.argument.name, call.function.value))
    found = rows.group_by(names, use_threads=False).aggregate(asked)
    found = found.rename_columns([*names, *(call.field.name for call in aggregate.calls)])
    columns = {field.name: found[field.name].cast(field.type.arrow) for field in aggregate.keys}
    columns |= {call.field.name: found[call.field.name].cast(call.field.type.arrow) for call in aggregate.calls}
    items = {item.field.name: columns[item.expr.name] for item in aggregate.items}
    return pa.table({**items, OP: pa.array([1] * found.num_rows, pa.int8())})


def by_sqlite(view: str, ships: Rows, arrivals: Rows) -> list[tuple[Any, ...]]:
    with sqlite3.connect(":memory:") as db:
        db.execute("CREATE TABLE ships (id int, name text, flag text)")
        db.execute("CREATE TABLE arrivals (id int, ship int, berth text, tons int)")
        db.executemany("INSERT INTO ships VALUES (?, ?, ?)", ships)
        db.executemany("INSERT INTO arrivals VALUES (?, ?, ?, ?)", arrivals)
        return list(db.execute(view))


def multiset(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("kind", VIEWS)
@settings(max_examples=60, deadline=None)
@given(SHIPS, ARRIVALS)
@example([], [(0, 1, "B1", 0)])
@example([(0, "B1", None)], [])
@example([(0, None, None), (1, "B1", None)], [(0, 0, "B1", 0), (1, 0, None, 1), (2, None, "B2", 2), (3, 1, "B2", 3)])
def test_the_driver_answers_as_sqlite_does(kind: str, ships: Rows, arrivals: Rows) -> None:
    view = VIEWS[kind]
    found = by_driver(view, ships, arrivals)
    assert found is not None
    expected = by_sqlite(view, ships, arrivals)
    shown = [field.name for field in planned(view).fields if not field.hidden]
    assert multiset([tuple(row[name] for name in shown) for row in found.to_pylist()]) == multiset(expected)


def test_many_pairs_are_left_to_spark() -> None:
    ships, arrivals = [(0, "B1", None)], [(number, 0, "B1", number) for number in range(10)]
    assert by_driver(VIEWS["left"], ships, arrivals, limit=10) is not None
    assert by_driver(VIEWS["left"], ships, arrivals, limit=9) is None


def test_windows_are_left_to_spark() -> None:
    view = "SELECT id, ship, row_number() OVER (PARTITION BY ship ORDER BY id) AS n FROM arrivals"
    assert by_driver(view, [], [(0, 1, "B1", 0)]) is None


@pytest.mark.parametrize(
    ("kind", "inputs"), [("semi", [1]), ("anti", []), ("both", [1]), ("left", []), ("full", []), ("right", [])]
)
def test_what_a_semi_join_looks_in_is_told(kind: str, inputs: list[int]) -> None:
    assert near_keyed.looked_in(keyed_of(planned(VIEWS[kind]))) == inputs


def test_a_window_looks_in_nothing() -> None:
    view = "SELECT id, ship, row_number() OVER (PARTITION BY ship ORDER BY id) AS n FROM arrivals"
    assert near_keyed.looked_in(keyed_of(planned(view))) == []
