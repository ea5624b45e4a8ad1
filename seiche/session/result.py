"""What a statement gives back."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from seiche.errors import DataException
from seiche.far_days import python_values
from seiche.model import Epoch
from seiche.query import to_arrow_within_limits
from seiche.session.streaming import PIECE_ROWS
from seiche.sql.bind import OutputColumn
from seiche.sql.failures import translate_spark_error

Piece = tuple[list[list[Any]], int]  # some rows: a list of values for each column, and how many rows they are


@dataclass(slots=True, weakref_slot=True)
class Result:
    """A statement's outcome: a tag as PostgreSQL's, and rows where there are any.

    Rows of a query are fetched when first asked for; `to_spark` hands out the query as a Spark frame instead.
    Files that the query reads are kept while the result, or that frame, is alive.
    """

    tag: str
    columns: tuple[OutputColumn, ...] | None = None
    notices: tuple[str, ...] = ()
    seconds: float = 0.0
    epoch: Epoch | None = None
    _rows: list[tuple[Any, ...]] | None = None
    _pieces: Callable[[], Iterator[Piece]] | None = None  # rows that are not on the driver yet
    _frame: DataFrame | None = None
    _fetch: Callable[[DataFrame], list[tuple[Any, ...]]] | None = None
    _hold: Callable[[], ExitStack] = ExitStack
    _as_frame: Callable[[], DataFrame] | None = None  # for rows that did not come from Spark

    @property
    def rows(self) -> list[tuple[Any, ...]] | None:
        """The rows, or None for a statement that gives none."""
        if self._rows is None and self._frame is not None:
            assert self._fetch is not None
            self._rows = self._fetch(self._frame)
        elif self._rows is None and self._pieces is not None:
            self._rows = [row for columns, count in self._pieces() for row in rows_of(columns, count)]
        else:
            return self._rows
        self.tag = self.tag_for(len(self._rows))
        return self._rows

    def tag_for(self, count: int) -> str:
        """The tag once it is known how many rows there were."""
        return f"{self.tag} {count}" if self.tag in ("SELECT", "FETCH", "COPY") else self.tag

    def pieces(self) -> Iterator[Piece]:
        """The rows a piece at a time, without holding all of them. Use either this or `rows`."""
        if self._rows is None and self._pieces is not None:
            yield from self._pieces()
            return
        rows = self.rows or []
        for start in range(0, len(rows), PIECE_ROWS):
            part = rows[start : start + PIECE_ROWS]
            yield [list(column) for column in zip(*part, strict=True)], len(part)

    def to_spark(self) -> DataFrame:
        """The query as a Spark frame at the epoch of the statement, its columns named as the query's."""
        if self._as_frame is not None and self.columns is not None:
            return _named(self._as_frame(), self.columns)
        if self._frame is None or self.columns is None:
            raise DataException("the statement gives no rows", hint="Ask with a SELECT.")
        frame = _named(self._frame, self.columns)
        weakref.finalize(frame, self._hold().close)
        return frame

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows or [])

    def __len__(self) -> int:
        return len(self.rows or [])


class RowReader:
    """The rows of a result, taken as many at a time as somebody asks for. Holds at most one piece."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.taken = 0
        self._pieces = result.pieces()
        self._piece: Piece = ([], 0)
        self._at = 0
        self._ended = False

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        return self.result.columns or ()

    def take(self, limit: int | None = None) -> Piece | None:
        """The next rows, at most `limit`, perhaps fewer; None at the end."""
        while self._at >= self._piece[1]:
            found = None if self._ended else next(self._pieces, None)
            if found is None:
                self._ended = True
                return None
            self._piece, self._at = found, 0
        columns, count = self._piece
        until = count if limit is None else min(count, self._at + limit)
        part = ([column[self._at : until] for column in columns], until - self._at)
        self._at = until
        self.taken += part[1]
        return part

    def close(self) -> None:
        """Lets go of files and memory."""
        self._ended = True
        self._piece = ([], 0)
        if isinstance(self._pieces, Generator):
            self._pieces.close()


def _named(frame: DataFrame, columns: Sequence[OutputColumn]) -> DataFrame:
    return frame.toDF(*(column.name for column in columns)) if columns else frame.select()


def fetch_rows(frame: DataFrame, width: int) -> list[tuple[Any, ...]]:
    """All rows of a frame on the driver, as Python values: its first `width` columns, which all are but for a query
    without columns."""
    try:
        table = to_arrow_within_limits(frame)
    except Exception as error:  # a Spark job's failure arrives as one of many classes
        raise translate_spark_error(error) from error
    if table is None:
        raise DataException(
            "result is too large for the client",
            detail="More than spark.driver.maxResultSize would have to pass through the driver.",
            hint="Add a LIMIT, or take the rows as a Spark frame with to_spark().",
        )
    return rows_of(map(python_values, table.columns[:width]), table.num_rows)


def rows_of(columns: Sequence[Any] | Any, count: int) -> list[tuple[Any, ...]]:
    listed = list(columns)
    return list(zip(*listed, strict=True)) if listed else [()] * count
