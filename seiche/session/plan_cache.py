"""Frames of queries that were asked before, for when they are asked again and nothing has changed.

Planning is most of what a small query costs. A frame keeps its plans once it has run, so the same frame is used again
as long as it would be made the same way: the same bound query, over the same files of every relation, in the same
catalog. Any definition starts afresh, and so does any change of a relation that the query reads.

A frame that has run holds on to memory of Java: the rows of the logs that it was made of, and what it has sent to the
executors. So only as many are kept as are over few enough rows; and where a query reads many, planning it is not most
of what it costs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from seiche.catalog.catalog import Catalog
from seiche.sql.bind import BoundQuery
from seiche.storage.versions import RelationVersion

PLANS_MAX = 16

# The rows that all frames together may be over. A row of a log, which the frame holds itself, counts as so many.
ROWS_MAX = 4_000_000
LOG_ROW = 20

_Key = tuple[object, ...]


class PlanCache:
    """The frames of all sessions. Safe to use from several threads."""

    def __init__(self, plans_max: int = PLANS_MAX) -> None:
        self._plans_max = plans_max
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None
        self._frames: OrderedDict[_Key, tuple[DataFrame, int]] = OrderedDict()  # with their weights
        self.hits = 0

    def frame(
        self, bound: BoundQuery, catalog: Catalog, versions: list[RelationVersion], make: Callable[[], DataFrame]
    ) -> DataFrame:
        """The frame of a bound query, whose functions give the same answer whenever they are called."""
        key = _key(bound, versions)
        with self._lock:
            if self._catalog is not catalog:
                self._frames.clear()
                self._catalog = catalog
            known = self._frames.get(key)
            if known is not None:
                self._frames.move_to_end(key)
                self.hits += 1
                return known[0]
        frame, weight = make(), sum(each.base_rows + LOG_ROW * each.log_rows for each in versions)
        with self._lock:
            if self._catalog is catalog and weight <= ROWS_MAX:
                self._frames[key] = (frame, weight)
                while len(self._frames) > self._plans_max or sum(held for _, held in self._frames.values()) > ROWS_MAX:
                    self._frames.popitem(last=False)
        return frame

    @contextmanager
    def using(self, frame: DataFrame) -> Iterator[None]:
        """Around the running of a frame. One that fails is not used again: its plan would remember the failure."""
        try:
            yield
        except Exception:
            with self._lock:
                for key in [key for key, (known, _) in self._frames.items() if known is frame]:
                    del self._frames[key]
            raise

    def clear(self) -> None:
        """Lets go of what the frames hold."""
        with self._lock:
            self._frames.clear()

    def __len__(self) -> int:
        with self._lock:
            return len(self._frames)


def _key(bound: BoundQuery, versions: list[RelationVersion]) -> _Key:
    files = tuple(
        (each.relation, each.base.fold_epoch, each.base.snapshot_id, tuple(segment.path for segment in each.segments))
        for each in versions
    )
    return bound.sql, tuple((column.alias, column.type) for column in bound.columns), files
