"""Files that run at the same time on one server, each in a schema of its own, and share its kills.

    file a  ── rows, queries ── CREATE ┐                                       ┌ the answer, or again ──
    file b  ── rows ── DROP ───────────┼─ all send ─ a while ─ kill -9 ─ start ┼ the answer, or again ──
    file c  ── queries ── CREATE ──────┘                                       └ the answer, or again ──

A start takes ten seconds, and files have some hundred CREATEs and DROPs: one after the other they take most of an hour.
A file that comes to its next one waits until every other has come to one of its own, or to its end.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable

from seiche.cli.slt.answers import Answered
from seiche.cli.slt.kills import Answer, KilledConnection, KilledTarget, moment
from seiche.cli.slt.servers import ServerProcess
from seiche.cli.slt.targets import Thing


class Crowd:
    """Who shares a server. All members have come before the first one begins."""

    def __init__(self, server: ServerProcess, seed: int) -> None:
        self.server = server
        self._random = random.Random(seed)
        self._changed = threading.Condition()
        self._members = 0
        self._waiting = 0
        self._rounds = 0
        self._seconds = 0.0
        self._broken: BaseException | None = None

    def join(self) -> Member:
        self._members += 1
        return Member(self)

    def leave(self) -> None:
        with self._changed:
            self._members -= 1
            self._look(self._draw)  # nobody leaves between a statement and the kill around it

    def agree(self) -> float:
        """Waits for all; the seconds that each then gives its statement."""
        self._meet(self._draw)
        return self._seconds

    def kill(self) -> None:
        """Waits for all; one of them kills the server and starts it."""
        self._meet(self._restart)

    def _meet(self, then: Callable[[], None]) -> None:
        with self._changed:
            mine = self._rounds
            self._waiting += 1
            self._look(then)
            self._changed.wait_for(lambda: self._rounds > mine)
            if self._broken is not None:
                raise RuntimeError("the server did not come back") from self._broken

    def _look(self, then: Callable[[], None]) -> None:
        """Under the lock: whether all are there, and then what they have come for."""
        if not self._waiting or self._waiting < self._members:
            return
        try:
            then()
        except Exception as error:  # noqa: BLE001 - all who wait hear of it
            self._broken = error
        self._waiting = 0
        self._rounds += 1
        self._changed.notify_all()

    def _draw(self) -> None:
        self._seconds = moment(self._random)

    def _restart(self) -> None:
        self.server.kill()
        self.server.start()


class Member:
    """The server as one file sees it: a `Victim` whose death is everybody's."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd

    @property
    def address(self) -> str:
        return self._crowd.server.address

    @property
    def starts(self) -> int:
        return self._crowd.server.starts

    def struck(self, send: Callable[[float], Answer | None]) -> Answer | None:
        seconds = self._crowd.agree()
        try:
            return send(seconds)
        finally:
            self._crowd.kill()

    def leave(self) -> None:
        self._crowd.leave()


class CrowdTarget(KilledTarget):
    """A file's conversations, in its schema. Nothing is dropped after it: what it leaves is in nobody's way."""

    def __init__(self, member: Member, schema: str) -> None:
        super().__init__(member)
        self._schema = schema

    def connect(self) -> KilledConnection:
        connection = super().connect()
        outcome = connection.run(f"SET search_path TO {self._schema}")
        assert isinstance(outcome, Answered), outcome
        return connection

    def inventory(self) -> frozenset[Thing]:
        return frozenset()

    def drop(self, things: Iterable[Thing]) -> None:
        pass
