"""Whether stored and changed rows tell the first rows, and which changes follow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from seiche.model import OP
from seiche.plan.algebra import TopN
from seiche.storage.changes import arrow_schema
from seiche.stream.topn import _all_candidates, _decided
from tests.unit.plan.harbour import Harbour


def candidates(*rows: tuple[str, bool, bool]) -> pa.Table:
    """Rows in order: a ship, whether it is stored, whether it is alive."""
    names, was, alive = zip(*rows, strict=True)
    return pa.table({"ship": list(names), "_was": list(was), "_is": list(alive)})


def changes(table: pa.Table | None) -> dict[str, int]:
    assert table is not None
    return dict(zip(table["ship"].to_pylist(), table[OP].to_pylist(), strict=True))


def test_a_row_that_comes_first_pushes_the_last_one_out() -> None:
    found = _decided(candidates(("Aurora", False, True), ("Borealis", True, True), ("Castor", True, True)), 2)
    assert changes(found) == {"Aurora": 1, "Castor": -1}


def test_a_row_behind_the_last_one_changes_nothing() -> None:
    found = _decided(candidates(("Aurora", True, True), ("Borealis", True, True), ("Castor", False, True)), 2)
    assert changes(found) == {}


def test_a_row_that_leaves_is_not_replaced_by_a_guess() -> None:
    table = candidates(("Aurora", True, False), ("Borealis", True, True), ("Castor", False, True))
    assert _decided(table, 2) is None


def test_a_row_that_leaves_is_replaced_by_the_next_where_all_are_known() -> None:
    table = candidates(("Aurora", True, False), ("Borealis", True, True), ("Castor", False, True))
    assert changes(_decided(table, 2, whole=True)) == {"Aurora": -1, "Castor": 1}


def test_a_row_that_leaves_may_be_replaced_by_one_before_the_last() -> None:
    table = candidates(("Aurora", True, False), ("Borealis", False, True), ("Castor", True, True))
    assert changes(_decided(table, 2)) == {"Aurora": -1, "Borealis": 1}


def test_fewer_rows_than_wanted_are_all_there_are() -> None:
    table = candidates(("Aurora", True, False), ("Borealis", False, True))
    assert changes(_decided(table, 3)) == {"Aurora": -1, "Borealis": 1}


@pytest.mark.parametrize("alive", [True, False])
def test_no_rows_are_wanted_and_none_come(alive: bool) -> None:
    assert changes(_decided(candidates(("Aurora", False, alive)), 0)) == {}


def tied(*rows: tuple[str, bool, bool, int]) -> pa.Table:
    """As `candidates`, with the number of the group of equals that each row is in."""
    return candidates(*(row[:3] for row in rows)).append_column("_tie", pa.array([row[3] for row in rows], pa.int32()))


def test_rows_equal_to_the_last_one_stay_and_leave_together() -> None:
    table = tied(("Aurora", True, True, 1), ("Borealis", True, True, 2), ("Castor", False, True, 2))
    assert changes(_decided(table, 2)) == {"Castor": 1}
    table = tied(
        ("Aurora", False, True, 1), ("Borealis", True, True, 2), ("Castor", True, True, 3), ("Dione", True, True, 3)
    )
    assert changes(_decided(table, 2)) == {"Aurora": 1, "Castor": -1, "Dione": -1}


def test_what_comes_after_the_equals_of_the_last_one_is_not_known() -> None:
    table = tied(("Aurora", True, False, 1), ("Borealis", True, False, 2), ("Castor", True, True, 2))
    assert _decided(table, 2) is None


def test_a_small_input_is_sorted_anew_on_the_driver() -> None:
    counts, top = Harbour().fragments(
        "SELECT flag, count(*) AS n FROM ships GROUP BY flag HAVING count(*) > 1 ORDER BY n DESC LIMIT 1"
    )
    assert isinstance(top.plan, TopN)
    alive = [{"flag": "NO", "n": 1}, {"flag": "SE", "n": 3}, {"flag": "FI", "n": 4}, {"flag": None, "n": 2}]
    held = _rows(counts.schema, [row | {"g0": row["flag"], "c0": row["n"]} for row in alive])
    stored = _rows(top.schema, [{"flag": "NO", "n": 5}])
    reads: Any = SimpleNamespace(looks_up=True, before=1, after=2, alive=lambda relation, epoch: held)
    runtime: Any = SimpleNamespace(
        versions=SimpleNamespace(at=lambda relation, epoch: relation),
        reader=SimpleNamespace(rows=lambda version: stored),
    )
    found = _all_candidates(top, top.plan, runtime, reads)
    assert found is not None
    assert found["flag"].to_pylist() == ["NO", "FI", "SE", None]
    changed = _decided(found, 1, whole=True)
    assert changed is not None
    assert dict(zip(changed["flag"].to_pylist(), changed[OP].to_pylist(), strict=True)) == {"NO": -1, "FI": 1}
    reads.looks_up = False
    assert _all_candidates(top, top.plan, runtime, reads) is None


def _rows(schema: Any, rows: list[dict[str, Any]]) -> pa.Table:
    fields = list(arrow_schema(schema))
    return pa.table(
        {f.name: pa.array([1 if f.name == OP else row.get(f.name) for row in rows], f.type) for f in fields}
    )
