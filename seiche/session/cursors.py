"""Cursors by name: DECLARE, FETCH, CLOSE. A cursor reads the epoch at which it was declared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from seiche.errors import DuplicateCursor, UndefinedCursor
from seiche.session.result import Piece, Result, RowReader

CURSORS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class _Cursor:
    reader: RowReader
    hold: bool


class Cursors:
    """The open cursors of one session."""

    def __init__(self) -> None:
        self._open: dict[str, _Cursor] = {}

    def declare(self, name: str, result: Result, *, hold: bool) -> None:
        if name in self._open:
            raise DuplicateCursor(f'cursor "{name}" already exists')
        if len(self._open) >= CURSORS_MAX:
            raise DuplicateCursor("too many cursors are open", hint="Close those that are not needed.")
        self._open[name] = _Cursor(RowReader(result), hold)

    def reader(self, name: str) -> RowReader:
        if name not in self._open:
            raise UndefinedCursor(f'cursor "{name}" does not exist')
        return self._open[name].reader

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
