from __future__ import annotations

import pytest

from seiche.cli.display import error_text, timing_text
from seiche.errors import SyntaxError_


def test_an_error_carries_detail_and_hint() -> None:
    error = SyntaxError_("tide is wrong", detail="It is low.", hint="Wait.")
    assert error_text(error).splitlines() == ["ERROR:  tide is wrong", "DETAIL:  It is low.", "HINT:  Wait."]


def test_the_caret_stands_under_the_position_on_its_line() -> None:
    statement = "SELECT id,\n\tnmae\nFROM ships"
    lines = error_text(SyntaxError_("no", position=statement.index("nmae") + 1), statement).splitlines()
    assert lines[1:] == ["LINE 2: \tnmae", "        \t^"]


def test_a_position_at_the_end_of_the_statement_is_marked() -> None:
    lines = error_text(SyntaxError_("no", position=8), "SELECT ").splitlines()
    assert lines[1:] == ["LINE 1: SELECT", "               ^"]


def test_a_long_line_is_cut_around_the_position() -> None:
    statement = "SELECT " + "x, " * 100 + "oops, " + "y, " * 100
    marked, caret = error_text(SyntaxError_("no", position=statement.index("oops") + 1), statement).splitlines()[1:]
    assert marked.startswith("LINE 1: ...")
    assert marked.endswith("...")
    assert marked[caret.index("^") :].startswith("oops")


def test_a_position_outside_of_the_statement_is_not_marked() -> None:
    assert error_text(SyntaxError_("no", position=99), "SELECT") == "ERROR:  no"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123456, "Time: 12.346 ms"),
        (2.5, "Time: 2500.000 ms (2.5 s)"),
        (65.25, "Time: 65250.000 ms (01:05.250)"),
    ],
)
def test_times_read_well_at_every_length(seconds: float, text: str) -> None:
    assert timing_text(seconds) == text
