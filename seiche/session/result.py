"""What a statement gives back."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from seiche.errors import DataException
from seiche.model import Epoch
from seiche.query import to_arrow
from seiche.sql.bind import OutputColumn
from seiche.sql.failures import translate_spark_error


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
            if self.tag.startswith("SELECT"):
                self.tag = f"SELECT {len(self._rows)}"
        return self._rows

    def to_spark(self) -> DataFrame:
        """The query as a Spark frame at the epoch of the statement, its columns named as the query's."""
        if self._as_frame is not None and self.columns is not None:
            return self._as_frame().toDF(*(column.name for column in self.columns))
        if self._frame is None or self.columns is None:
            raise DataException("the statement gives no rows", hint="Ask with a SELECT.")
        frame = self._frame.toDF(*(column.name for column in self.columns))
        weakref.finalize(frame, self._hold().close)
        return frame

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.rows or [])

    def __len__(self) -> int:
        return len(self.rows or [])


def fetch_rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    """All rows of a frame on the driver, as Python values."""
    try:
        table = to_arrow(frame)
    except Exception as error:  # a Spark job's failure arrives as one of many classes
        if "spark.driver.maxResultSize" in str(error):
            raise DataException(
                "result is too large for the client",
                detail="More than spark.driver.maxResultSize would have to pass through the driver.",
                hint="Add a LIMIT, or take the rows as a Spark frame with to_spark().",
            ) from error
        raise translate_spark_error(error) from error
    return rows_of(table.to_pydict().values(), table.num_rows)


def rows_of(columns: Sequence[Any] | Any, count: int) -> list[tuple[Any, ...]]:
    listed = list(columns)
    return list(zip(*listed, strict=True)) if listed else [()] * count
