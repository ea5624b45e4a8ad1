"""Ctrl-C in a real terminal: the statement is cancelled, the shell and the engine live."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CTRL_C, CTRL_D = b"\x03", b"\x04"
PROMPT_SECONDS = 120  # Spark starts on a machine that others use too
ANSWER_SECONDS = 60
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_=>])")


class Terminal:
    """`seiche sql` at the other end of a pseudo-terminal; what it shows is read without colours and cursor moves."""

    def __init__(self, data_dir: Path) -> None:
        self._keys, screen = pty.openpty()
        self._shown = ""
        environment = os.environ | {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", "HOME": str(data_dir.parent)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "seiche.cli.main", "sql", "--data-dir", str(data_dir), "--master", "local[2]"],
            stdin=screen,
            stdout=screen,
            stderr=screen,
            env=environment,
            start_new_session=True,
            # The terminal of the new session, so that Ctrl-C there is a signal to its foreground processes.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(screen)

    def type(self, keys: bytes) -> None:
        os.write(self._keys, keys)

    def wait_for(self, text: str, seconds: float) -> None:
        """Reads until the text is shown after what was waited for last."""
        limit = time.monotonic() + seconds
        while text not in self._shown:
            assert time.monotonic() < limit, f"{text!r} did not come; shown since: {self._shown!r}"
            assert self.process.poll() is None, f"the shell ended; shown since: {self._shown!r}"
            self._read(0.2)
        self._shown = self._shown.partition(text)[2]

    def wait_for_answer(self, text: str) -> None:
        """As `wait_for`, and until the prompt is there again: a key before that may be lost."""
        self.wait_for(text, ANSWER_SECONDS)
        self.wait_for("seiche=>", ANSWER_SECONDS)

    def wait_for_end(self, seconds: float) -> int:
        """The exit code, once the process has ended; reads on, since nobody else takes what it prints."""
        limit = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < limit, f"the shell did not end; shown since: {self._shown!r}"
            self._read(0.2)
        return int(self.process.returncode)

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._keys], [], [], seconds)
        if ready:
            with contextlib.suppress(OSError):  # the other end is closed
                self._shown += _ESCAPES.sub("", os.read(self._keys, 65_536).decode(errors="replace"))

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._keys)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path / "harbour")
    yield opened
    opened.close()


@pytest.mark.timeout(600)
def test_ctrl_c_cancels_the_statement_and_the_shell_goes_on(terminal: Terminal) -> None:
    terminal.wait_for("to leave.", PROMPT_SECONDS)
    terminal.type(b"CREATE TABLE ships (id int);\r")
    terminal.wait_for_answer("CREATE_TABLE")
    terminal.type(b"SELECT count(*) AS long FROM generate_series(1, 2000000000) a, generate_series(1, 1000) b;\r")
    time.sleep(3)  # long enough for Spark to be at it
    terminal.type(CTRL_C)
    terminal.wait_for("cancelling ...", ANSWER_SECONDS)
    terminal.wait_for_answer("canceling statement due to user request")
    terminal.type(b"INSERT INTO ships VALUES (41);\r")
    terminal.wait_for_answer("INSERT 0 1")
    terminal.type(b"SELECT id + 1 AS answer FROM ships;\r")
    terminal.wait_for_answer("(1 row)")
    terminal.type(b"SELECT 'half a statement'")
    terminal.type(CTRL_C)  # at the prompt it clears the line
    terminal.type(b"SELECT 'whole' AS word;\r")
    terminal.wait_for_answer("(1 row)")
    terminal.type(CTRL_D)
    assert terminal.wait_for_end(ANSWER_SECONDS) == 0
