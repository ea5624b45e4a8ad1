"""Row groups of a base that executors look through.

The driver knows from the statistics of files which row groups may hold a wanted value. Where these are more than it
should read itself, tasks of Spark read them, and no others, and send the wanted rows back. Spark's own reader would
look through the whole base: it compares a set of values with a row group by the least and the greatest of them alone.

Executors read by Arrow. Where one cannot, Spark's reader is asked for some minutes, and then executors once more: one
may lack Arrow, or a store was out of reach for a moment.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping, Sequence

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext, cloudpickle

from seiche.clock import Clock, SystemClock
from seiche.storage import group_task
from seiche.storage.files import DataFolder
from seiche.storage.group_task import Answer, Piece, Task, wanted_rows
from seiche.storage.python_workers import use_this_python

log = logging.getLogger(__name__)

# A task is worth its start with this many bytes to read, as they are before compression.
BYTES_PER_TASK = 4 * 1024 * 1024

# A task finds at most so many bytes of rows: more are not for the driver.
FOUND_BYTES_MAX = 64 * 1024 * 1024

# How long executors are not asked after one could not read.
REST_SECONDS = 300.0

# A file's path, and by the number of a row group what has to be read of it.
FileGroups = tuple[str, Mapping[int, int]]

cloudpickle.register_pickle_by_value(group_task)


class FarGroups:
    """Safe to use from several threads."""

    def __init__(self, context: SparkContext, folder: DataFolder, clock: Clock | None = None) -> None:
        self._context = context
        self._folder = folder
        self._clock = clock or SystemClock()
        self._resting_until = float("-inf")
        use_this_python(context)

    def rows(
        self, asked: Sequence[FileGroups], names: Sequence[str], wanted: Mapping[str, pa.Array]
    ) -> dict[int, pa.Table] | None:
        """By the number of a file: those of the columns that it has, in the rows with a wanted value in each wanted
        column, all under the names in the file. None where executors cannot read, or have found too much."""
        if self._clock.monotonic() < self._resting_until:
            return None
        filesystem, values = pickle.dumps(self._folder.filesystem), pickle.dumps(dict(wanted))
        absolute = [(self._folder.absolute(path), groups) for path, groups in asked]
        parts = _parts(absolute, self._tasks(asked))
        tasks: list[Task] = [(filesystem, values, list(names), FOUND_BYTES_MAX, part) for part in parts]
        if not tasks:
            return {}
        try:
            answers: list[Answer] = self._context.parallelize(tasks, len(tasks)).map(wanted_rows).collect()
        except Py4JJavaError as cause:
            if "PythonException" not in str(cause) and "Cannot run program" not in str(cause):
                raise  # it was cancelled, or Spark itself is gone
            answers = [str(cause)]
        found: dict[int, list[pa.Table]] = {}
        for answer in answers:
            if isinstance(answer, str):
                log.warning("executors cannot read files by Arrow, for now Spark reads them instead: %s", answer)
                self._resting_until = self._clock.monotonic() + REST_SECONDS
                return None
            if answer is None:
                return None
            for number, stream in answer:
                found.setdefault(number, []).append(pa.ipc.open_stream(stream).read_all())
        return {number: pa.concat_tables(tables) for number, tables in found.items()}

    def _tasks(self, asked: Sequence[FileGroups]) -> int:
        size = sum(sum(groups.values()) for _, groups in asked)
        return max(1, min(self._context.defaultParallelism, size // BYTES_PER_TASK))


def _parts(asked: Sequence[FileGroups], count: int) -> list[list[Piece]]:
    """The row groups in so many parts of about as many bytes; what is in one file stays together where it can."""
    share = sum(sum(groups.values()) for _, groups in asked) / count
    parts: list[list[Piece]] = [[]]
    held = 0
    for number, (path, groups) in enumerate(asked):
        here: list[int] = []
        for group, size in groups.items():
            if held >= share * len(parts) and len(parts) < count:
                if here:
                    parts[-1].append((number, path, here))
                parts.append([])
                here = []
            here.append(group)
            held += size
        if here:
            parts[-1].append((number, path, here))
    return [part for part in parts if part]


__all__ = ["FarGroups", "FileGroups"]
