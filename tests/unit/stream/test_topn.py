"""Whether stored and changed rows tell the first rows, and which changes follow."""

from __future__ import annotations

import pyarrow as pa
import pytest

from seiche.model import OP
from seiche.stream.topn import _decided


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


def test_a_row_that_leaves_may_be_replaced_by_one_before_the_last() -> None:
    table = candidates(("Aurora", True, False), ("Borealis", False, True), ("Castor", True, True))
    assert changes(_decided(table, 2)) == {"Aurora": -1, "Borealis": 1}


def test_fewer_rows_than_wanted_are_all_there_are() -> None:
    table = candidates(("Aurora", True, False), ("Borealis", False, True))
    assert changes(_decided(table, 3)) == {"Aurora": -1, "Borealis": 1}


@pytest.mark.parametrize("alive", [True, False])
def test_no_rows_are_wanted_and_none_come(alive: bool) -> None:
    assert changes(_decided(candidates(("Aurora", False, alive)), 0)) == {}
