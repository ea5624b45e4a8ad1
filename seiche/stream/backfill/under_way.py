"""How much of a step has been read before it is durable: what a long step tells of itself.

A step counts as a number of rows once it is committed. Until then Spark knows how many rows the tasks of its jobs have
read; the share of those that the step reads in all is the share of its rows that is told. A task tells with its
heartbeats, so also a step of one task moves. Reading is not all that a step does: it may be told as read while its
groups are put together and written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

_SCAN = "Scan "
_ROWS = "number of output rows"


class Reads(Protocol):
    """The jobs that Spark ran and runs for one view's creation."""

    def jobs(self) -> frozenset[int]: ...

    def rows(self, jobs: Iterable[int]) -> int:
        """The rows that these have read from files so far."""
        ...


class SparkReads:
    """What Spark's own book-keeping says of the jobs of a group.

    It is that of its SQL metrics, which tasks send with their heartbeats: the metrics of tasks themselves are not kept
    until a task has ended where driver and executors are one process.
    """

    def __init__(self, spark: SparkSession, group: str) -> None:
        self._spark = spark
        self._group = group
        self._scans: dict[int, tuple[int, ...]] = {}  # of each execution the metrics that count rows read

    def jobs(self) -> frozenset[int]:
        return frozenset(self._spark.sparkContext.statusTracker().getJobIdsForGroup(self._group))

    def rows(self, jobs: Iterable[int]) -> int:
        found = {self._execution_of(job) for job in jobs}
        return sum(self._rows_of(each) for each in found if each is not None)

    def _execution_of(self, job: int) -> int | None:
        try:
            found = self._spark.sparkContext._jsc.sc().statusStore().jobWithAssociatedSql(job)._2()
        except Py4JJavaError:  # Spark has forgotten it: there were many since
            return None
        return int(found.get()) if found.isDefined() else None

    def _rows_of(self, execution: int) -> int:
        try:
            store: Any = self._spark._jsparkSession.sharedState().statusStore()
            if execution not in self._scans:
                self._scans[execution] = _scans(store.planGraph(execution))
            told = store.executionMetrics(execution)
        except Py4JJavaError:
            return 0
        texts = (told.get(metric) for metric in self._scans[execution])
        return sum(int(text.get().replace(",", "")) for text in texts if text.isDefined())


def _scans(graph: Any) -> tuple[int, ...]:
    """The metrics of a plan that count rows read from files."""
    nodes = _items(graph.allNodes())
    metrics = [each for node in nodes if node.name().startswith(_SCAN) for each in _items(node.metrics())]
    return tuple(each.accumulatorId() for each in metrics if each.name() == _ROWS)


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(index) for index in range(sequence.size())]


class UnderWay:
    """The step that runs now. One thread begins and ends steps, another one may ask."""

    def __init__(self, reads: Reads) -> None:
        self._reads = reads
        self._earlier = frozenset[int]()
        self._expected = 0
        self._counts = 0

    def begin(self, counts: int, expected: int) -> None:
        """A step begins that will count as so many rows, and reads about as many as `expected`."""
        if counts:
            self._earlier = self._reads.jobs()
        self._expected = max(expected, 1)
        self._counts = counts

    def end(self) -> None:
        """It is durable, and counts."""
        self._counts = 0

    @property
    def rows(self) -> int:
        """As how many rows the part counts that was read."""
        if not self._counts:
            return 0
        read = self._reads.rows(self._reads.jobs() - self._earlier)
        return min(self._counts * read // self._expected, self._counts)
