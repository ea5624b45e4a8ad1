"""A cursor over a subscription: what a relation holds, if asked for, and then each of its changes exactly once.

    declared at epoch e      FULL: the rows at e          the log of (e, …]
    SINCE …                                               the log from there on

Where it stands is an epoch, moved forward when everything up to it was given. Nothing is read ahead of what somebody
fetches, and where nothing changed nothing is read at all: looking for changes costs no Spark action.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from seiche.catalog.objects import CatalogObject
from seiche.errors import CursorBehind, UndefinedObject
from seiche.far_days import python_values
from seiche.model import Epoch, ObjectId, RelationId, RelationSchema
from seiche.session.database import Database
from seiche.session.result import Piece
from seiche.session.streaming import PIECE_ROWS
from seiche.sql.bind import OutputColumn
from seiche.storage.change_log import LogPart, by_key, first_part, frame_in_order, read_small, tell
from seiche.types import BIGINT, VARCHAR

Pieces = Callable[[DataFrame], Iterator[pa.RecordBatch]]


class SubscriptionCursor:
    """One cursor of one session. `pieces` brings the rows of a frame, in its order, a bounded part at a time."""

    def __init__(
        self, database: Database, name: str, subscription: CatalogObject, start: Epoch, *, full: bool, pieces: Pieces
    ) -> None:
        (source,) = subscription.dependencies
        self.name = name
        self.subscription = subscription
        self._database = database
        self._relation = RelationId(source)
        self._take_shape(database.runtime.versions.schema(self._relation))
        self._pieces = pieces
        self._position = start
        self._held = ExitStack()
        weakref.finalize(self, self._held.close)
        self._begin: Callable[[], Iterator[Piece]] | None = self._snapshot() if full else None
        self._rows: Iterator[Piece] | None = None  # of what `_begin` began, and how many of them were given
        self._given = 0
        self._reading_snapshot = full
        self._piece: Piece = ([], 0)
        self._at = 0
        self._closed = False
        self._used_ms = database.clock.now_ms()

    @property
    def state(self) -> str:
        """Where it stands, in words."""
        return "snapshot" if self._reading_snapshot else f"changes after epoch {self._position}"

    @property
    def idle_ms(self) -> int:
        return max(self._database.clock.now_ms() - self._used_ms, 0)

    def take(self, limit: int | None = None) -> Piece | None:
        """The next rows that are there already, at most `limit`; None when there are none now."""
        self._used_ms = self._database.clock.now_ms()
        if self._at >= self._piece[1] and not self._next_piece():
            return None
        columns, count = self._piece
        until = count if limit is None else min(count, self._at + limit)
        part = ([column[self._at : until] for column in columns], until - self._at)
        self._at = until
        if until == count:
            self._look_ahead()
        return part

    def coming(self) -> Future[None]:
        """Done when there is something to take, or a reason to fail."""
        return self._database.commits.until(self._ready)

    def close(self) -> None:
        self._closed = True
        self._begin, self._rows = None, None
        self._piece = ([], 0)
        self._held.close()

    # ------------------------------------------------------------------------------------------------

    def _take_shape(self, schema: RelationSchema) -> None:
        self._schema = schema
        shown = [(column.name, column.type) for column in schema.visible]
        named = [*shown, ("op", VARCHAR), ("rw_timestamp", BIGINT)]
        self.columns = tuple(OutputColumn(label, label, type_) for label, type_ in named)

    def _ready(self) -> bool:
        if self._closed or self._at < self._piece[1] or self._begin is not None or not self._exists():
            return True
        found = self._database.runtime.versions.log_since(self._relation, self._position)
        return found is None or bool(found[0])

    def _exists(self) -> bool:
        return ObjectId(self.subscription.id) in self._database.catalog.by_id

    def _next_piece(self) -> bool:
        while not self._closed:
            if self._begin is None:
                self._begin, self._given = self._next_part(), 0
            if self._begin is None:
                return False
            if self._rows is None:
                self._rows = _after(self._begin(), self._given)
            try:
                piece = next(self._rows, None)
            except BaseException:
                self._rows = None  # the next FETCH begins it again, after the rows that were given
                raise
            if piece is not None:
                self._piece, self._at = piece, 0
                self._given += piece[1]
                return True
            self._end_part()
        return False

    def _look_ahead(self) -> None:
        """Takes up the next piece of the part under way, or ends the part: a FETCH that waits has to know which."""
        if self._rows is None:
            return
        try:
            piece = next(self._rows, None)
        except Exception:  # noqa: BLE001 - the next FETCH reads it again and tells; this one has its rows
            self._rows = None
            return
        if piece is None:
            self._end_part()
        else:
            self._piece, self._at = piece, 0
            self._given += piece[1]

    def _end_part(self) -> None:
        self._begin, self._rows = None, None
        self._reading_snapshot = False
        self._held.close()

    def _snapshot(self) -> Callable[[], Iterator[Piece]]:
        """The rows as they are now, by key. Their files are kept from here on until all are given."""
        self._held.enter_context(self._database.trash.reading())
        version = self._database.runtime.versions.committed(self._relation)
        self._position = version.epoch

        def rows() -> Iterator[Piece]:
            frame = self._database.runtime.reader.exact(version)
            shown = [f"`{column.name}`" for column in version.schema.visible]
            for batch in self._pieces(frame.orderBy(*by_key(version.schema)).selectExpr(*shown)):
                values: list[list[Any]] = [python_values(column) for column in batch.columns]
                yield [*values, ["Insert"] * batch.num_rows, [None] * batch.num_rows], batch.num_rows

        return rows

    def _next_part(self) -> Callable[[], Iterator[Piece]] | None:
        """The next part of the log; None when nothing has changed."""
        if not self._exists():
            raise UndefinedObject(f"{self.subscription} of this cursor was dropped", hint=f"CLOSE {self.name}.")
        versions = self._database.runtime.versions
        shape = versions.schema(self._relation)
        if shape != self._schema:  # a FETCH has one set of columns: this one ends here, the next has the new ones
            self._take_shape(shape)
            return None
        self._held.enter_context(self._database.trash.reading())
        found = versions.log_since(self._relation, self._position)
        if found is None:
            self._held.close()
            raise CursorBehind(
                f'cursor "{self.name}" has fallen behind what {self.subscription} retains',
                detail="Changes that it has not given yet are older than the retention and gone.",
                hint="Declare it again, with FULL to begin with all rows, and fetch more often.",
            )
        segments, committed = found
        if not segments:
            self._position = committed
            self._held.close()
            return None
        part = first_part(segments, self._position, committed)
        return lambda: self._read(part)

    def _read(self, part: LogPart) -> Iterator[Piece]:
        runtime = self._database.runtime
        if part.small:
            table = read_small(part, self._schema, runtime.writer)
            self._held.close()
            yield from tell(table.to_batches(max_chunksize=PIECE_ROWS), self._schema)
        else:
            frame = runtime.reader.log(self._schema, part.segments, part.after, part.until)
            assert frame is not None
            yield from tell(self._pieces(frame_in_order(frame, self._schema)), self._schema)
        self._position = part.until


def _after(pieces: Iterator[Piece], given: int) -> Iterator[Piece]:
    """The pieces without the first rows."""
    for columns, count in pieces:
        if given < count:
            yield [column[given:] for column in columns], count - given
        given = max(given - count, 0)
