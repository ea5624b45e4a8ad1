"""A session of the shell without its keyboard: runs statements and backslash commands, prints what comes back.

Results go to one stream, errors and notices to another. A statement runs on a thread of its own while this one
waits, so that Ctrl-C arrives here and cancels the statement instead of the shell:

    main thread       run ─┬─ wait ─ Ctrl-C: database.cancel() ─ wait ─┬─ print
    statement thread       └─ database.execute(text) ──────────────────┘

The session promises that after any outcome of a statement it can run the next one.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol, TextIO, assert_never

from seiche import types
from seiche.cli import commands, display
from seiche.errors import InvalidParameter, SeicheError, StatementTooComplex
from seiche.sql.parse import split


class Database(Protocol):
    """What the shell needs of the engine. `cancel` is called from another thread than `execute`."""

    def execute(self, text: str) -> Sequence[display.StatementResult]: ...

    def cancel(self) -> None: ...

    def names(self) -> Sequence[str]: ...


class Outcome(Enum):
    OK = "ok"
    FAILED = "failed"
    QUIT = "quit"


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    type: types.SqlType


# A file that includes itself ends here rather than in a stack overflow.
_INCLUDES_MAX = 16


class Session:
    def __init__(self, database: Database, out: TextIO, err: TextIO) -> None:
        self.timing = False
        self.expanded = False
        self._database = database
        self._out = out
        self._err = err
        self._includes = 0

    def run_text(self, text: str, name: str | None = None) -> Outcome:
        """Runs statements and backslash commands up to the first failure. The last may lack its semicolon."""
        return self.run_lines(text.splitlines(keepends=True), name)

    def run_lines(self, lines: Iterable[str], name: str | None = None) -> Outcome:
        """As `run_text`, reading as it goes. `name` is the file's, and goes before errors with a line number."""
        buffer, start = "", 1  # what is not run yet, and the line it starts on
        for number, line in enumerate(lines, start=1):
            if not buffer.strip():
                buffer, start = "", number
                if line.lstrip().startswith("\\"):
                    outcome = self.run_command(line, _place(name, number))
                    if outcome is not Outcome.OK:
                        return outcome
                    continue
            buffer += line
            if ";" not in line:
                continue  # nothing can have ended
            found = split(buffer)
            if self._run_all(found.statements, buffer, name, start) is Outcome.FAILED:
                return Outcome.FAILED
            if found.statements:
                # The cut takes the line's end away, which may be what ends a comment.
                buffer, start = found.rest + "\n" if found.rest else "", number
        found = split(buffer)
        return self._run_all([*found.statements, found.rest] if found.rest else found.statements, buffer, name, start)

    def _run_all(self, statements: Sequence[str], buffer: str, name: str | None, start: int) -> Outcome:
        at = 0
        for statement in statements:
            at = buffer.find(statement, at)
            if self.run_statement(statement, _place(name, start + buffer.count("\n", 0, at))) is Outcome.FAILED:
                return Outcome.FAILED
            at += len(statement)
        return Outcome.OK

    def run_command(self, line: str, place: str | None = None) -> Outcome:
        """Runs one backslash command."""
        try:
            command = commands.read(line)
            match command:
                case commands.RunSql(sql):
                    return self.run_statement(sql, place=place)
                case commands.ListRelations():
                    self._list_relations()
                case commands.Toggle(option, value):
                    self._toggle(option, value)
                case commands.Include(path):
                    return self._include(path)
                case commands.Print(text):
                    self._print(text)
                case commands.Quit():
                    return Outcome.QUIT
                case _:
                    assert_never(command)
        except SeicheError as error:
            self._complain(error, "", place)
            return Outcome.FAILED
        return Outcome.OK

    def run_statement(self, text: str, place: str | None = None) -> Outcome:
        """Runs one statement and prints its result or its error."""
        started = time.monotonic()
        try:
            for result in self._execute(text):
                for notice in result.notices:
                    self._err.write(f"NOTICE:  {notice}\n")
                self._err.flush()
                self._print(display.result_text(result, expanded=self.expanded))
        except SeicheError as error:
            self._complain(error, text, place)
            return Outcome.FAILED
        if self.timing:
            self._print(display.timing_text(time.monotonic() - started))
        return Outcome.OK

    def _execute(self, text: str) -> Sequence[display.StatementResult]:
        results: list[display.StatementResult] = []
        failures: list[BaseException] = []
        done = threading.Event()

        def work() -> None:
            try:
                results.extend(self._database.execute(text))
            except BaseException as failure:  # noqa: BLE001  (carried to the waiting thread, which raises it)
                failures.append(failure)

            finally:
                done.set()

        with _interrupts() as interrupted:
            threading.Thread(target=work, name="statement", daemon=True).start()
            # In short waits, because a signal is seen only between them.
            while not done.wait(0.1):
                if interrupted.is_set():
                    interrupted.clear()
                    self._err.write("cancelling ...\n")
                    self._err.flush()
                    self._database.cancel()
        if failures:
            raise failures[0]
        return results

    def _list_relations(self) -> None:
        rows = [
            (str(row[0]), kind)
            for kind, sql in commands.RELATION_LISTS
            for result in self._execute(sql)
            for row in result.rows or ()
        ]
        columns = (_Column("name", types.VARCHAR), _Column("kind", types.VARCHAR))
        self._print(display.table_text(columns, sorted(rows)))

    def _toggle(self, option: str, value: bool | None) -> None:
        match option:
            case "timing":
                self.timing = not self.timing if value is None else value
                self._print(f"Timing is {'on' if self.timing else 'off'}.")
            case "expanded":
                self.expanded = not self.expanded if value is None else value
                self._print(f"Expanded display is {'on' if self.expanded else 'off'}.")

    def _include(self, path: Path) -> Outcome:
        if self._includes >= _INCLUDES_MAX:
            raise StatementTooComplex(
                f'file "{path}" is included too deeply', hint="Look for a file that includes itself with \\i."
            )
        text = read_script(path)
        self._includes += 1
        try:
            return self.run_text(text, str(path))
        finally:
            self._includes -= 1

    def _print(self, text: str) -> None:
        self._out.write(text + "\n")
        self._out.flush()

    def _complain(self, error: SeicheError, statement: str, place: str | None) -> None:
        self._out.flush()
        prefix = f"{place}: " if place else ""
        self._err.write(prefix + display.error_text(error, statement) + "\n")
        self._err.flush()


def _place(name: str | None, line: int) -> str | None:
    return f"{name}:{line}" if name else None


def read_script(path: Path) -> str:
    """The statements in a file. Raises InvalidParameter where it cannot be read."""
    try:
        # utf-8-sig: editors on some systems put a byte order mark before the first statement.
        return path.read_text(encoding="utf-8-sig")
    except OSError as cause:
        raise InvalidParameter(f'file "{path}" cannot be read', detail=f"{cause.strerror}.") from cause
    except UnicodeDecodeError as cause:
        raise InvalidParameter(
            f'file "{path}" is not UTF-8 text',
            detail=f"The first byte that is not is at offset {cause.start}.",
            hint="Convert it, for instance with: iconv -t UTF-8",
        ) from cause


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """Within it Ctrl-C sets the event and raises nothing, whatever handler Spark may have installed."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted  # signals arrive in the main thread only
        return
    previous = signal.signal(signal.SIGINT, lambda _signal, _frame: interrupted.set())
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, previous)
