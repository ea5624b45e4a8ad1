"""Rows that meet rows with their key, one after another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from seiche.stream.conflict import Conflict, in_turn

_SCHEMA = pa.schema([("berth", pa.int32()), ("ship", pa.string()), ("tide", pa.int32()), ("report", pa.string())])


def _rows(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(_SCHEMA.names, row, strict=True)) for row in rows], schema=_SCHEMA)


def _after(stored: pa.Table, rows: pa.Table, *versions: str, conflict: Conflict = Conflict.OVERWRITE) -> list[Any]:
    return [tuple(row.values()) for row in in_turn(rows, stored, ["berth"], versions, conflict).to_pylist()]


def test_an_older_version_leaves_the_stored_row_alone() -> None:
    stored = _rows((1, "Aurora", 5, "a"))
    assert _after(stored, _rows((1, "Boreas", 4, "z")), "tide") == [(1, "Aurora", 5, "a")]


def test_an_equal_version_replaces_the_row() -> None:
    stored = _rows((1, "Aurora", 5, "a"))
    assert _after(stored, _rows((1, "Boreas", 5, "b")), "tide") == [(1, "Boreas", 5, "b")]


def test_versions_are_compared_column_by_column() -> None:
    stored = _rows((1, "Aurora", 5, "m"))
    rows = _rows((1, "Boreas", 4, "z"), (1, "Corona", 5, "n"), (1, "Dione", 5, "b"))
    assert _after(stored, rows, "tide", "report") == [(1, "Corona", 5, "n")]


def test_no_version_is_older_than_any() -> None:
    rows = _rows((1, "Aurora", None, "a"), (1, "Boreas", 1, "b"), (1, "Corona", None, "c"))
    assert _after(_rows(), rows, "tide") == [(1, "Boreas", 1, "b")]


def test_rows_fill_what_they_have_a_value_for_unless_they_are_older() -> None:
    rows = _rows((1, None, 6, None), (1, "Boreas", 5, "late"), (1, None, 6, "b"))
    after = _after(_rows((1, "Aurora", 5, "a")), rows, "tide", conflict=Conflict.UPDATE_IF_NOT_NULL)
    assert after == [(1, "Aurora", 6, "b")]


def test_without_versions_the_last_row_counts() -> None:
    assert _after(_rows((1, "Aurora", 9, "a")), _rows((1, "Boreas", 1, "b"), (2, "Corona", 1, "c"))) == [
        (1, "Boreas", 1, "b"),
        (2, "Corona", 1, "c"),
    ]
