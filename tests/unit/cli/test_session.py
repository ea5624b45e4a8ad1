from __future__ import annotations

import io
import os
import signal
import threading
from pathlib import Path

import pytest

from seiche.cli.session import Outcome, Session
from tests.unit.cli.harbour import Harbour


class Terminal:
    def __init__(self) -> None:
        self.harbour = Harbour()
        self.out = io.StringIO()
        self.err = io.StringIO()
        self.session = Session(self.harbour, self.out, self.err)


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_a_result_is_printed_as_an_aligned_table(terminal: Terminal) -> None:
    assert terminal.session.run_text("SELECT * FROM ships;") is Outcome.OK
    assert [line.rstrip() for line in terminal.out.getvalue().splitlines()] == [
        " id |  name",
        "----+--------",
        "  1 | Aurora",
        "  2 |",
        "(2 rows)",
    ]


def test_expanded_display_prints_one_line_a_value(terminal: Terminal) -> None:
    terminal.session.run_text("\\x\nSELECT * FROM ships;")
    assert terminal.out.getvalue().splitlines() == [
        "Expanded display is on.",
        "-[ RECORD 1 ]",
        "id   | 1",
        "name | Aurora",
        "-[ RECORD 2 ]",
        "id   | 2",
        "name |",
    ]


def test_a_statement_without_rows_prints_its_tag(terminal: Terminal) -> None:
    terminal.session.run_text("INSERT INTO ships VALUES (3, 'Kestrel');")
    assert terminal.out.getvalue() == "INSERT 0 1\n"


def test_returning_prints_rows_and_the_tag(terminal: Terminal) -> None:
    terminal.session.run_text("INSERT INTO ships VALUES (4, 'Tern') RETURNING id")
    assert terminal.out.getvalue().splitlines()[-2:] == ["(1 row)", "INSERT 0 1"]


def test_notices_go_to_the_error_stream(terminal: Terminal) -> None:
    terminal.session.run_text("CREATE TABLE IF NOT EXISTS ships (id INT);")
    assert terminal.err.getvalue() == 'NOTICE:  relation "ships" already exists, skipping\n'
    assert terminal.out.getvalue() == "CREATE_TABLE\n"


def test_several_statements_on_a_line_run_in_order(terminal: Terminal) -> None:
    terminal.session.run_text("SHOW TABLES; SELECT * FROM ships; SHOW VIEWS")
    assert terminal.harbour.executed == ["SHOW TABLES", "SELECT * FROM ships", "SHOW VIEWS"]


def test_a_semicolon_in_quotes_does_not_end_the_statement(terminal: Terminal) -> None:
    assert terminal.session.run_text("INSERT INTO ships VALUES (3, 'a;b');\n") is Outcome.OK
    assert terminal.harbour.executed == ["INSERT INTO ships VALUES (3, 'a;b')"]


def test_a_statement_may_begin_on_the_line_on_which_another_ends(terminal: Terminal) -> None:
    terminal.session.run_text("SHOW TABLES; SELECT * -- all of them; really\nFROM ships\n;\n")
    assert terminal.harbour.executed[0] == "SHOW TABLES"
    assert terminal.harbour.executed[1].splitlines() == ["SELECT * -- all of them; really", "FROM ships"]


def test_a_text_of_comments_runs_nothing(terminal: Terminal) -> None:
    assert terminal.session.run_text("-- nothing; here\n/* nor; here */\n") is Outcome.OK
    assert terminal.harbour.executed == []


def test_an_error_stops_the_text_and_marks_the_place(terminal: Terminal) -> None:
    assert terminal.session.run_text("SELECT * FROM shps; SHOW TABLES;") is Outcome.FAILED
    assert terminal.err.getvalue().splitlines() == [
        'ERROR:  relation "shps" does not exist',
        "LINE 1: SELECT * FROM shps",
        "                      ^",
        'HINT:  Perhaps you meant "ships".',
    ]
    assert terminal.harbour.executed == ["SELECT * FROM shps"]


def test_an_error_in_a_file_names_the_file_and_the_line(terminal: Terminal, tmp_path: Path) -> None:
    script = tmp_path / "harbour.sql"
    script.write_text("SHOW TABLES; -- first\n\nSHOW VIEWS;\n  SELECT * FROM shps;\n")
    assert terminal.session.run_text(f"\\i {script}") is Outcome.FAILED
    assert terminal.err.getvalue().startswith(f"{script}:4: ERROR:  relation")


def test_a_missing_file_is_an_error(terminal: Terminal, tmp_path: Path) -> None:
    assert terminal.session.run_command(f"\\i {tmp_path}/none.sql") is Outcome.FAILED
    assert "cannot be read" in terminal.err.getvalue()


def test_a_file_that_includes_itself_ends_with_an_error(terminal: Terminal, tmp_path: Path) -> None:
    script = tmp_path / "loop.sql"
    script.write_text(f"\\i {script}\n")
    assert terminal.session.run_command(f"\\i {script}") is Outcome.FAILED
    assert "included too deeply" in terminal.err.getvalue()


def test_timing_is_shown_when_switched_on(terminal: Terminal) -> None:
    terminal.session.run_text("\\timing on\nSHOW VIEWS;")
    assert terminal.out.getvalue().startswith("Timing is on.\n")
    assert terminal.out.getvalue().splitlines()[-1].startswith("Time: ")


def test_d_lists_all_relations_with_their_kinds(terminal: Terminal) -> None:
    terminal.session.run_command("\\d")
    lines = [[cell.strip() for cell in line.split("|")] for line in terminal.out.getvalue().splitlines()]
    assert lines[2:5] == [
        ["arrivals_by_berth", "materialized view"],
        ["berths", "table"],
        ["ships", "table"],
    ]


def test_list_commands_stand_for_statements(terminal: Terminal) -> None:
    terminal.session.run_text("\\dt\n\\dt sh*;\n\\dm\n\\d ships\n")
    assert terminal.harbour.executed == [
        "SHOW TABLES",
        "SHOW TABLES LIKE 'sh%'",
        "SHOW MATERIALIZED VIEWS",
        "DESCRIBE ships",
    ]


def test_q_leaves_without_running_what_follows(terminal: Terminal) -> None:
    assert terminal.session.run_text("\\q\nSHOW TABLES;") is Outcome.QUIT
    assert terminal.harbour.executed == []


def test_an_unknown_command_is_refused_with_a_way_out(terminal: Terminal) -> None:
    assert terminal.session.run_command("\\timming") is Outcome.FAILED
    assert terminal.err.getvalue().splitlines() == [
        "ERROR:  invalid command \\timming",
        'HINT:  Perhaps you meant "timing".',
    ]


def test_ctrl_c_cancels_the_statement_and_the_session_goes_on(terminal: Terminal) -> None:
    def press() -> None:
        assert terminal.harbour.waiting.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    finger = threading.Thread(target=press)
    finger.start()
    assert terminal.session.run_text("SELECT wait;") is Outcome.FAILED
    finger.join()
    assert terminal.err.getvalue().splitlines() == [
        "cancelling ...",
        "ERROR:  canceling statement due to user request",
    ]
    assert signal.getsignal(signal.SIGINT) is before
    assert terminal.session.run_text("SHOW TABLES;") is Outcome.OK


def test_a_defect_of_the_engine_is_not_hidden(terminal: Terminal) -> None:
    with pytest.raises(ZeroDivisionError):
        terminal.session.run_text("SELECT broken;")
