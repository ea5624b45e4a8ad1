"""A server that is killed around each CREATE and DROP of a file, and answers as if nothing had been.

    send ─ wait a random while, or for the answer ─ kill -9 ─ start ─ connect again ─ retry, if no answer had come

Whatever was answered has to hold. What was not may have happened or not: it is tried again, and an object that is there
already, or gone already, is the success that the client did not hear of. Nothing is killed while a conversation is in
a transaction, or has a cursor or a temporary table, which no server would bring back, nor around a statement that is
meant to fail.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from seiche.cli.slt.answers import Answered, Refused
from seiche.cli.slt.records import Expectation, Fails
from seiche.cli.slt.servers import ServerProcess
from seiche.cli.slt.targets import Connection, Thing
from seiche.cli.slt.wire import WireConnection, WireTarget
from seiche.errors import SeicheError
from seiche.sql.parse import parse

_SHORTEST_S, _LONGEST_S = 0.005, 2.0
_EXISTS = frozenset({"42P04", "42P06", "42P07", "42710", "42723"})
_MISSING = frozenset({"42P01", "3D000", "3F000", "42704", "42883"})
_TEMPORARY = re.compile(r"\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:LOCAL|GLOBAL)\s+)?TEMP(?:ORARY)?\b", re.IGNORECASE)


Answer: TypeAlias = Answered | Refused


class Victim(Protocol):
    """A server that can be killed and comes back."""

    @property
    def address(self) -> str: ...

    @property
    def starts(self) -> int: ...

    def struck(self, send: Callable[[float], Answer | None]) -> Answer | None:
        """Lets a statement be sent, with the seconds to wait for its answer; then kills the server, and starts it."""


class Alone:
    """The victim of one file. The seed decides the moments."""

    def __init__(self, server: ServerProcess, seed: int = 0) -> None:
        self._server = server
        self._random = random.Random(seed)

    @property
    def address(self) -> str:
        return self._server.address

    @property
    def starts(self) -> int:
        return self._server.starts

    def struck(self, send: Callable[[float], Answer | None]) -> Answer | None:
        answer = send(moment(self._random))
        self._server.kill()
        self._server.start()
        return answer


def moment(chance: random.Random) -> float:
    """Seconds after which a kill comes: as often within the first tenth of a second as within the last ones."""
    return _SHORTEST_S * math.pow(_LONGEST_S / _SHORTEST_S, chance.random())


class KilledTarget:
    """A running server, whose conversations outlive it. `kills` counts."""

    def __init__(self, server: Victim) -> None:
        self._server = server
        self._own = WireTarget(server.address)
        self._own_life = server.starts
        self._connections: list[KilledConnection] = []
        self.kills = 0
        self.retried = 0
        self.labels = self._own.labels

    @property
    def life(self) -> int:
        return self._server.starts

    def connect(self) -> KilledConnection:
        connection = KilledConnection(self)
        self._connections.append(connection)
        return connection

    def link(self) -> WireConnection:
        return self._wire().connect()

    def inventory(self) -> frozenset[Thing]:
        return self._wire().inventory()

    def drop(self, things: Iterable[Thing]) -> None:
        self._wire().drop(things)

    def close(self) -> None:
        self._own.close()

    def forget(self, connection: KilledConnection) -> None:
        self._connections.remove(connection)

    def execute(self, connection: Connection, sql: str, expect: Expectation) -> Answer:
        """Runs SQL of a file, with a kill around each statement of it that creates or drops."""
        assert isinstance(connection, KilledConnection)
        statements = _statements(sql)
        if isinstance(expect, Fails) or not any(map(_verb, statements)):
            return connection.run(sql)
        outcome: Answer = Answered()
        for statement in statements:
            held = _TEMPORARY.match(statement) or any(each.holds_state for each in self._connections)
            if _verb(statement) and not held:
                outcome = self._disturbed(connection, statement)
            else:
                outcome = connection.run(statement)
            if isinstance(outcome, Refused):
                break
        return outcome

    def _disturbed(self, connection: KilledConnection, sql: str) -> Answer:
        answer = self._server.struck(lambda seconds: connection.run_for(sql, seconds))
        self.kills += 1
        if answer is not None:
            return answer
        self.retried += 1
        outcome = connection.run(sql)
        if isinstance(outcome, Refused) and outcome.sqlstate in (_EXISTS if _verb(sql) == "CREATE" else _MISSING):
            connection.run("WAIT")  # a view that was being built goes on being built
            return Answered()
        return outcome

    def _wire(self) -> WireTarget:
        if self._own_life != self.life:
            self._own.close()
            self._own = WireTarget(self._server.address)
            self._own_life = self.life
        return self._own


class KilledConnection:
    """One conversation. After a kill it goes on with the settings that it had."""

    def __init__(self, target: KilledTarget) -> None:
        self._target = target
        self._link = target.link()
        self._life = target.life
        self._settings: list[str] = []
        self._cursors = False
        self._temporary = False

    @property
    def holds_state(self) -> bool:
        """Whether a kill would take something away that a client has to make again itself."""
        return self._cursors or self._temporary or self._link.in_transaction

    def run(self, sql: str) -> Answer:
        outcome = self._linked().run(sql)
        if isinstance(outcome, Answered):
            for statement in _statements(sql):
                word = statement.split(None, 1)[0].upper()
                if word in ("SET", "RESET"):
                    self._settings.append(statement)
                self._cursors = word == "DECLARE" or (self._cursors and word != "CLOSE")
                self._temporary = bool(_TEMPORARY.match(statement)) or (self._temporary and word != "DISCARD")
        return outcome

    def run_for(self, sql: str, seconds: float) -> Answer | None:
        """The answer if it comes in that time; else the statement is left to run."""
        return self._linked().run_for(sql, seconds)

    def close(self) -> None:
        self._target.forget(self)
        self._link.close()

    def _linked(self) -> WireConnection:
        if self._life != self._target.life:
            self._link.close()
            self._link = self._target.link()
            self._life = self._target.life
            for statement in self._settings:
                self._link.run(statement)
        return self._link


def _statements(sql: str) -> list[str]:
    """Each statement of a text; the text itself where it is not ours to read."""
    try:
        return [parsed.text for parsed in parse(sql)]
    except SeicheError:
        return [sql] if sql.strip() else []


def _verb(statement: str) -> str | None:
    found = re.match(r"\s*(CREATE|DROP)\b", statement, re.IGNORECASE)
    return found[1].upper() if found else None
