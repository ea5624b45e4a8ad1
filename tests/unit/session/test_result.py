"""What a statement gives back, and LIKE in SHOW."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from typing import Any

import pytest

from seiche.errors import DataException
from seiche.session.result import Result, rows_of
from seiche.session.show import _like, rows
from seiche.types import INTEGER, VARCHAR


def test_a_statement_without_rows_has_none() -> None:
    result = Result("CREATE_TABLE")
    assert result.rows is None
    assert list(result) == []
    assert len(result) == 0


def test_a_result_made_of_values_has_named_and_typed_columns() -> None:
    result = rows("SHOW_COMMAND", [("Name", VARCHAR), ("Tons", INTEGER)], [("Ada", 3)])
    assert result.columns is not None
    assert [(column.name, str(column.type)) for column in result.columns] == [
        ("Name", "character varying"),
        ("Tons", "integer"),
    ]
    assert list(result) == [("Ada", 3)]


def test_rows_of_a_query_are_fetched_once_and_counted_in_the_tag() -> None:
    fetched: list[object] = []

    def fetch(frame: Any) -> list[tuple[Any, ...]]:
        fetched.append(frame)
        return [(1,), (2,)]

    frame: Any = object()
    result = Result("SELECT", (), _frame=frame, _fetch=fetch)
    assert fetched == []
    assert result.rows == [(1,), (2,)]
    assert len(result) == 2
    assert result.tag == "SELECT 2"
    assert fetched == [frame]


def test_a_statement_without_rows_cannot_become_a_frame() -> None:
    with pytest.raises(DataException, match="gives no rows"):
        Result("FLUSH").to_spark()


class Frame:
    """As much of a Spark frame as naming its columns takes."""

    def toDF(self, *names: str) -> Frame:  # noqa: N802  Spark's name
        return Frame()

    def select(self) -> Frame:
        return Frame()


def test_a_frame_holds_its_files_for_as_long_as_it_is_used() -> None:
    events: list[str] = []

    def hold() -> ExitStack:
        held = ExitStack()
        events.append("held")
        held.callback(events.append, "let go")
        return held

    source: Any = Frame()
    result = Result("SELECT", (), _frame=source, _hold=hold)
    frame = result.to_spark()
    del result
    gc.collect()
    assert events == ["held"]
    del frame
    gc.collect()
    assert events == ["held", "let go"]


def test_columns_become_rows_even_when_there_are_no_columns() -> None:
    assert rows_of([[1, 2], ["a", "b"]], 2) == [(1, "a"), (2, "b")]
    assert rows_of([], 3) == [(), (), ()]
    assert rows_of([[], []], 0) == []


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("ships", None, True),
        ("ships", "ships", True),
        ("ships", "sh%", True),
        ("ships", "%ip%", True),
        ("ships", "sh", False),
        ("ships", "s_ips", True),
        ("ships", "s_ps", False),
        ("ships", "SHIPS", False),
        ("ships", "%", True),
        ("ships", "", False),
        ("", "%", True),
        ("a%b", r"a\%b", True),
        ("axb", r"a\%b", False),
        ("a_b", r"a\_b", True),
        ("axb", r"a\_b", False),
        (r"a\b", r"a\\b", True),
        ("a.b", "a.b", True),
        ("axb", "a.b", False),
        ("a[b]", "a[b]", True),
        ("two\nlines", "two%", True),
    ],
)
def test_like_is_sqls(name: str, pattern: str | None, expected: bool) -> None:
    assert _like(name, pattern) is expected
