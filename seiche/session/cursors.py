"""Cursors by name: DECLARE, FETCH, CLOSE. A cursor over a query reads the epoch at which it was declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seiche.errors import DuplicateCursor, UndefinedCursor
from seiche.session.database import CursorFact
from seiche.session.result import Piece, Result, RowReader
from seiche.session.subscription_cursor import SubscriptionCursor
from seiche.sql.bind import OutputColumn

CURSORS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Cursor:
    reader: RowReader | SubscriptionCursor
    hold: bool


class Cursors:
    """The open cursors of one session."""

    def __init__(self) -> None:
        self._open: dict[str, _Cursor] = {}

    def declare(self, name: str, result: Result, *, hold: bool) -> None:
        self.refuse_taken(name)
        self._open[name] = _Cursor(RowReader(result), hold)

    def declare_subscribed(self, cursor: SubscriptionCursor) -> None:
        """One over a subscription, which no transaction ends."""
        self.refuse_taken(cursor.name)
        self._open[cursor.name] = _Cursor(cursor, hold=True)

    def refuse_taken(self, name: str) -> None:
        """Raises DuplicateCursor unless there can be a new cursor of this name."""
        if name in self._open:
            raise DuplicateCursor(f'cursor "{name}" already exists')
        if len(self._open) >= CURSORS_MAX:
            raise DuplicateCursor("too many cursors are open", hint="Close those that are not needed.")

    def facts(self) -> list[CursorFact]:
        found = []
        for name, cursor in sorted(self._open.items()):
            match cursor.reader:
                case SubscriptionCursor() as subscribed:
                    item = subscribed.subscription
                    found.append(CursorFact(name, str(item.qualified), subscribed.state, subscribed.idle_ms))
                case _:
                    found.append(CursorFact(name))
        return found

    def subscribed(self, name: str) -> SubscriptionCursor | None:
        """The cursor if it is one over a subscription."""
        reader = self.reader(name)
        return reader if isinstance(reader, SubscriptionCursor) else None

    def reader(self, name: str) -> RowReader | SubscriptionCursor:
        if name not in self._open:
            raise UndefinedCursor(f'cursor "{name}" does not exist')
        return self._open[name].reader

    def columns(self, name: str) -> Sequence[OutputColumn] | None:
        return self._open[name].reader.columns if name in self._open else None

    def fetch(self, name: str, count: int | None) -> Result:
        """The next rows, taken from the cursor as the result is read."""
        reader = self.reader(name)

        def pieces() -> Iterator[Piece]:
            left = count
            while left is None or left > 0:
                piece = reader.take(left)
                if piece is None:
                    return
                if left is not None:
                    left -= piece[1]
                yield piece

        return Result("FETCH", reader.columns, _pieces=pieces)

    def move(self, name: str, count: int | None) -> Result:
        """Passes over the next rows."""
        passed = sum(number for _, number in self.fetch(name, count).pieces())
        return Result(f"MOVE {passed}")

    def close(self, name: str | None) -> None:
        if name is not None:
            self.reader(name).close()
            del self._open[name]
            return
        for each in list(self._open):
            self.close(each)

    def end_transaction(self) -> None:
        """Cursors without HOLD end with their transaction."""
        for name, cursor in list(self._open.items()):
            if not cursor.hold:
                self.close(name)
