"""What the server needs of a database, as two small protocols, and the engine as one that satisfies them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol

from seiche.engine import Engine
from seiche.errors import InvalidLoginName, InvalidParameter, SeicheError, UndefinedDatabase
from seiche.session.copying import CopiedRows
from seiche.session.describe import Description
from seiche.session.result import Piece, Result, RowReader
from seiche.session.run import Session
from seiche.session.variables import Variables
from seiche.sql.bind import OutputColumn
from seiche.sql.statements import CopyFrom, FetchCursor, ParsedStatement
from seiche.types import SqlType


class Conversation(Protocol):
    """One client's session. Its methods block and are called one at a time, from any thread; `cancel` comes beside."""

    variables: Variables
    on_notice: Callable[[str], None]
    on_hangup: Callable[[], None]

    @property
    def is_superuser(self) -> bool: ...

    @property
    def transaction_status(self) -> str: ...

    def describe(self, parsed: ParsedStatement, types: Sequence[SqlType | None]) -> Description: ...

    def start(self, parsed: ParsedStatement, types: Sequence[SqlType], values: Sequence[str | None]) -> Result: ...

    def write(self, stretch: Sequence[ParsedStatement]) -> tuple[list[Result], SeicheError | None]: ...

    def take(self, reader: RowReader, limit: int | None, *, first: bool) -> Piece | None: ...

    def cursor_columns(self, name: str) -> Sequence[OutputColumn] | None: ...

    def rows_coming(self, statement: FetchCursor) -> tuple[Future[None], float] | None: ...

    def begin_copy(self, statement: CopyFrom) -> CopiedRows: ...

    def finish_copy(self, statement: CopyFrom, rows: CopiedRows) -> Result: ...

    def fail_transaction(self) -> None: ...

    def cancel(self) -> None: ...

    def close(self) -> None: ...


class Backend(Protocol):
    def verifier(self, user: str) -> str | None:
        """What the user's password is checked against, None without one. InvalidLoginName for who may not log in."""
        ...

    def has_user(self, user: str) -> bool: ...

    def open(self, user: str, database: str, settings: Mapping[str, str]) -> Conversation: ...


class EngineBackend:
    """The engine's users and sessions."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def has_user(self, user: str) -> bool:
        return any(each.name == user for each in self._engine.database.catalog.users)

    def verifier(self, user: str) -> str | None:
        found = next((each for each in self._engine.database.catalog.users if each.name == user), None)
        if found is None:
            raise InvalidLoginName(f'role "{user}" does not exist')
        if not found.can_login:
            raise InvalidLoginName(f'role "{user}" is not permitted to log in')
        return found.verifier

    def open(self, user: str, database: str, settings: Mapping[str, str]) -> Session:
        known = [each.name for each in self._engine.database.catalog.databases]
        if database not in known:
            raise UndefinedDatabase(f'database "{database}" does not exist', hint=f"There is {', '.join(known)}.")
        session = self._engine.session(user, database)
        session.variables = with_settings(session.variables, settings)
        return session


def with_settings(variables: Variables, settings: Mapping[str, str]) -> Variables:
    """The variables as a client's startup message wants them; `options` are those of a server's command line."""
    for name, value in settings.items():
        if name == "options":
            for option, given in _options(value):
                variables = variables.with_value(option, given)
        elif name == "client_encoding":
            with suppress(InvalidParameter):  # a client takes the one that it is told then
                variables = variables.with_value(name, value)
        else:
            variables = variables.with_value(name, value)
    return variables


def _options(text: str) -> list[tuple[str, str]]:
    """`-c name=value`, `-cname=value` and `--name=value`; a backslash keeps a blank from ending a word."""
    words = [word.replace("\0", " ") for word in text.replace("\\ ", "\0").split()]
    found = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "-c" and at < len(words):
            word = words[at]
            at += 1
        elif word.startswith("-c"):
            word = word[2:]
        elif word.startswith("--"):
            word = word[2:].replace("-", "_")
        else:
            raise InvalidParameter(f'invalid command-line argument for server process: "{word}"')
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidParameter(f"-c {name} requires a value")
        found.append((name, value))
    return found
