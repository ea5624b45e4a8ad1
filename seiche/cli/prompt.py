"""The shell's keyboard: history, completion, colours and statements over several lines.

Enter sends what was typed once it is a backslash command or ends with a semicolon (outside of quotes and
comments), and starts another line until then. Ctrl-C clears what was typed, Ctrl-D on an empty line leaves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import completion_is_selected
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from pygments.lexers.sql import PostgresLexer

from seiche.cli import commands
from seiche.cli.session import Outcome, Session
from seiche.sql.parse import split

PROMPT = "seiche=> "
CONTINUED = "seiche-> "

_KEYWORDS = """
    ALL ALTER AND APPEND ARRAY AS ASC BETWEEN BIGINT BOOLEAN BY BYTEA CANCEL CASCADE CASE CAST CONFLICT COUNT
    CREATE CROSS DATE DEFAULT DELETE DESC DESCRIBE DISTINCT DOUBLE PRECISION DROP ELSE END EXCEPT EXISTS EXPLAIN
    EXTRACT FALSE FILTER FIRST FLUSH FROM FULL GROUP HAVING IF IGNORE IN INDEX INNER INSERT INTEGER INTERSECT
    INTERVAL INTO IS JOBS JOIN JSONB KEY LAST LEFT LIKE LIMIT MATERIALIZED NOT NULL NULLS NUMERIC OFFSET ON ONLY OR
    ORDER OUTER OVER OVERWRITE PARAMETERS PARTITION PRIMARY REAL RESET RETURNING RIGHT SCHEMA SELECT SET SHOW
    SMALLINT SYSTEM TABLE TABLES THEN TIME TIMESTAMP TIMESTAMPTZ TO TRUE UNION UPDATE USER USING VALUES VARCHAR
    VIEW VIEWS WAIT WHEN WHERE WITH ZONE
"""
KEYWORDS = tuple(_KEYWORDS.split())

_WORD = re.compile(r"[\w$]+$|\"[^\"]*$|^\\\S*$")
_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


def is_complete(text: str) -> bool:
    """Whether Enter sends the text instead of opening another line."""
    if not text.strip() or text.lstrip().startswith("\\"):
        return True
    found = split(text)
    return bool(found.statements) and not found.rest


class SqlCompleter(Completer):
    """Completes the word before the cursor to keywords, to names of the database and to backslash commands."""

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        found = _WORD.search(document.text_before_cursor)
        if found is None:
            return
        word = found.group()
        if word.startswith("\\"):
            candidates = ["\\" + name for name in commands.NAMES]
        else:
            prefix = word.removeprefix('"')
            candidates = [quoted(n, word) for n in sorted(set(self._names())) if n.lower().startswith(prefix.lower())]
            if not word.startswith('"'):
                candidates += [k.lower() if word.islower() else k for k in KEYWORDS if k.startswith(word.upper())]
        for candidate in dict.fromkeys(candidates):
            if candidate.lower().lstrip('"').startswith(word.lower().lstrip('"')):
                yield Completion(candidate, start_position=-len(word))


def quoted(name: str, typed: str = "") -> str:
    """A name as it has to be typed: in quotes where it would be folded otherwise, or where they were opened."""
    if _PLAIN.fullmatch(name) and not typed.startswith('"'):
        return name
    return '"' + name.replace('"', '""') + '"'


def history_path(environ: os._Environ[str] | dict[str, str]) -> Path:
    """Where what was typed is kept: SEICHE_HISTORY, else below XDG_STATE_HOME, else ~/.seiche_history."""
    if given := environ.get("SEICHE_HISTORY"):
        return Path(given).expanduser()
    if state := environ.get("XDG_STATE_HOME"):
        return Path(state) / "seiche" / "history"
    return Path.home() / ".seiche_history"


def open_history(path: Path) -> History:
    """The history file, or one that is forgotten where the file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)  # statements may hold passwords
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def interact(
    session: Session,
    names: Callable[[], Sequence[str]],
    *,
    history: History,
    input: Input | None = None,
    output: Output | None = None,
) -> None:
    """Reads and runs until Ctrl-D or \\q. `input` and `output` are the terminal unless given."""
    prompts: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=CONTINUED,
        history=history,
        completer=SqlCompleter(names),
        complete_while_typing=False,
        lexer=PygmentsLexer(PostgresLexer),
        key_bindings=_bindings(),
        editing_mode=EditingMode.EMACS,
        enable_open_in_editor=True,
        input=input,
        output=output,
    )
    while True:
        try:
            text = prompts.prompt()
            outcome = session.run_text(text)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if outcome is Outcome.QUIT:
            return


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=~completion_is_selected)
    def send_or_continue(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @bindings.add("enter", filter=completion_is_selected)
    def take_completion(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    return bindings
