from __future__ import annotations

import io
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from seiche.cli.prompt import SqlCompleter, history_path, interact, is_complete, open_history
from seiche.cli.session import Session
from tests.unit.cli.harbour import Harbour


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True),
        ("\\d", True),
        ("SELECT 1;", True),
        ("SELECT 1; -- done", True),
        ("SELECT 1", False),
        ("SELECT ';", False),
        ("SELECT $$;$$", False),
        ("SELECT 1; SELECT", False),
    ],
)
def test_enter_sends_only_complete_statements(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def completions(text: str) -> list[str]:
    completer = SqlCompleter(Harbour().names)
    return [c.text for c in completer.get_completions(Document(text), CompleteEvent(completion_requested=True))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("SELECT * FROM sh", ["ships", "show"]),
        ("SELECT * FROM pier", ['"Pier 9"']),
        ('SELECT * FROM "Pie', ['"Pier 9"']),
        ("SELECT * FROM ", []),
        ("\\ti", ["\\timing"]),
    ],
)
def test_words_are_completed_to_names_and_keywords(text: str, expected: list[str]) -> None:
    assert completions(text) == expected


def typed(keys: str) -> tuple[Harbour, str, list[str]]:
    """What the engine was asked, what was printed and what the history kept after these keys."""
    harbour, out, history = Harbour(), io.StringIO(), InMemoryHistory()
    with create_pipe_input() as keyboard:
        keyboard.send_text(keys)
        session = Session(harbour, out, io.StringIO())
        interact(session, harbour.names, history=history, input=keyboard, output=DummyOutput())
    return harbour, out.getvalue(), history.get_strings()


def test_a_statement_over_several_lines_is_run_once_it_ends() -> None:
    harbour, _, history = typed("SELECT *\rFROM ships\r;\r\\q\r")
    assert [" ".join(text.split()) for text in harbour.executed] == ["SELECT * FROM ships"]
    assert history == ["SELECT *\nFROM ships\n;", "\\q"]


def test_ctrl_c_clears_what_was_typed() -> None:
    harbour, _, _ = typed("DROP everything\x03SHOW TABLES;\r\\q\r")
    assert harbour.executed == ["SHOW TABLES"]


def test_ctrl_d_leaves() -> None:
    harbour, _, _ = typed("SHOW TABLES;\r\x04")
    assert harbour.executed == ["SHOW TABLES"]


def test_the_shell_lives_on_after_an_error() -> None:
    harbour, _, _ = typed("SELECT * FROM shps;\rSHOW TABLES;\r\x04")
    assert harbour.executed == ["SELECT * FROM shps", "SHOW TABLES"]


def test_history_follows_the_environment(tmp_path: Path) -> None:
    assert history_path({"SEICHE_HISTORY": "/h"}) == Path("/h")
    assert history_path({"XDG_STATE_HOME": "/state"}) == Path("/state/seiche/history")
    assert history_path({}) == Path.home() / ".seiche_history"


def test_history_is_kept_private_and_given_up_where_it_cannot_be_written(tmp_path: Path) -> None:
    assert isinstance(open_history(tmp_path / "deep" / "history"), FileHistory)
    assert (tmp_path / "deep" / "history").stat().st_mode & 0o077 == 0
    (tmp_path / "file").touch()
    assert isinstance(open_history(tmp_path / "file" / "history"), InMemoryHistory)
