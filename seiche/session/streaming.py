"""The rows of a query, a piece at a time, so that a large result never stands on the driver as a whole.

A result that Spark expects to be small comes in one job and one piece of memory. Any other one, and one that turned out
larger than expected, is written by the executors to scratch files first and read from there row group by row group:
that costs a fraction of the query, and needs memory for one piece only, however large a partition is.
"""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from seiche.query import estimated_bytes, to_arrow_within_limits

PIECE_ROWS = 10_000
T = TypeVar("T")


class Apart(Protocol):
    """Runs what may be left alone when nobody waits for its answer any more."""

    def __call__(self, call: Callable[[], T]) -> T: ...


def pieces(frame: DataFrame, *, inline_bytes: int, scratch: Path, apart: Apart) -> Iterator[pa.RecordBatch]:
    """The frame's rows in its order. Scratch files go when the iterator is closed or used up."""
    small = apart(lambda: _collected(frame, inline_bytes))
    if small is not None:
        yield from small.to_batches(max_chunksize=PIECE_ROWS)
        return
    folder = scratch / f"result-{uuid.uuid4().hex}"
    done = threading.Event()

    def write() -> None:
        try:
            frame.write.parquet(folder.as_uri())
        finally:
            if done.is_set():  # nobody waited
                shutil.rmtree(folder, ignore_errors=True)

    try:
        apart(write)
        for file in sorted(folder.glob("*.parquet")):
            with pq.ParquetFile(file) as reader:
                yield from reader.iter_batches(batch_size=PIECE_ROWS)
    finally:
        done.set()
        shutil.rmtree(folder, ignore_errors=True)


def _collected(frame: DataFrame, inline_bytes: int) -> pa.Table | None:
    return to_arrow_within_limits(frame) if estimated_bytes(frame) <= inline_bytes else None
