"""(h) Nexmark: how many events a second each query keeps up with, for each core, in epochs of one to five seconds.

The events are there before the clock starts, as Parquet files: what others published was measured with events that wait
in Kafka, or that a process of its own makes. Each table has two writers, of which one waits with the next events while
those of the other are stored, so that there is always something to do. Reading the events, storing them in their
tables, bringing the view up to date, committing both and folding what has grown is all in the measured time. The first
epochs are not: Java compiles in them.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from pyspark.sql import SparkSession

import seiche
from benchmarks.measure import Finding
from benchmarks.nexmark_data import SCHEMA, SIDE_INPUT, TURN, Generator, Stream
from benchmarks.nexmark_queries import QUERIES
from seiche.errors import FeatureNotSupported, SeicheError

# Published by others for one core, in thousands of events a second: RisingWave, Flink.
ANCHORS = {"q1": (119.0, 158.0), "q4": (13.9, 34.0), "q7": (20.0, 12.0), "q9": (8.2, 14.0)}

# Events of one file for each table, and how many such files an epoch has: enough for epochs of one to five seconds.
EVENTS_PER_FILE = 100_000
FILES_PER_EPOCH = 5
_LIGHT = ("q0", "q1", "q2", "q3", "q13", "q14", "q22")
_HEAVY = {"q4": 2, "q5": 1, "q6": 2, "q9": 2, "q11": 1, "q15": 3, "q16": 1, "q17": 4, "q18": 2, "q19": 2}
OTHER_FILES = {**dict.fromkeys(_LIGHT, 10), **dict.fromkeys(("q8", "q10", "q21"), 7), **_HEAVY}
WRITERS = 2  # of each table
WARM = 6  # epochs in which Java compiles most of what it will
_EPOCH_SECONDS = (1.0, 5.0)


def nexmark(times: int, scale: float, names: Sequence[str] = ()) -> Iterator[Finding]:
    """Each query as a view of its own over append-only tables that start empty."""
    with tempfile.TemporaryDirectory(prefix="seiche-events-") as folder:
        events = _Events(Path(folder), max(TURN, int(EVENTS_PER_FILE * scale) // TURN * TURN))
        for name in names or QUERIES:
            try:
                yield _one(name, QUERIES[name], times, events)
            except SeicheError as error:
                parts = {"not run": error.message}
                goal = "to run" if isinstance(error, FeatureNotSupported) else "to run without an error"
                yield Finding("h", name, 0.0, " k events/s/core", goal, False, parts)


class _Events:
    """Files of events, made when a query first wants them and kept for the next one."""

    def __init__(self, folder: Path, per_file: int) -> None:
        self._folder = folder
        self.per_file = per_file

    def make(self, spark: SparkSession, files: int) -> None:
        """Sees to it that there are so many files of each table."""
        rows = Generator(spark, Stream())
        for number in range(files):
            for table in SCHEMA:
                path = self._folder / table / str(number)
                if not path.exists():
                    made = rows.table(table, number * self.per_file, (number + 1) * self.per_file)
                    made.coalesce(1).write.parquet(str(path))

    def feed(self, db: seiche.Engine, batches: range, files: int) -> list[float]:
        """Inserts batches of so many files, and waits until all are stored; when those of each batch's bids were."""

        def insert(table: str, batch: int) -> float:
            paths = [str(self._folder / table / str(number)) for number in range(batch * files, (batch + 1) * files)]
            rows = Generator(db.spark, Stream()).table(table, 0, TURN)  # for its columns: files are not looked into
            db.session().insert(table, db.spark.read.schema(rows.schema).parquet(*paths))
            return time.perf_counter()

        with ExitStack() as stack:
            writers = {table: stack.enter_context(ThreadPoolExecutor(WRITERS)) for table in SCHEMA}
            stored = {table: [pool.submit(insert, table, n) for n in batches] for table, pool in writers.items()}
            ended = {table: [each.result() for each in futures] for table, futures in stored.items()}
        return sorted(ended["bid"])


def _one(name: str, query: str, times: int, events: _Events) -> Finding:
    folder = tempfile.mkdtemp(prefix="seiche-bench-")
    cores = os.cpu_count() or 1
    files = OTHER_FILES.get(name, FILES_PER_EPOCH)
    try:
        with seiche.connect(folder) as db:
            events.make(db.spark, (WARM + times) * files)
            for table, columns in SCHEMA.items():
                db.execute(f"CREATE TABLE {table} ({columns}) APPEND ONLY")
            db.execute(f"CREATE TABLE side_input ({SIDE_INPUT})")
            db.insert("side_input", Generator(db.spark, Stream()).side_input(1000))
            db.execute(f"CREATE MATERIALIZED VIEW measured AS {query}")
            events.feed(db, range(WARM), files)
            started = time.perf_counter()
            stored = [started, *events.feed(db, range(WARM, WARM + times), files)]
            ended = time.perf_counter()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    taken = [after - before for before, after in pairwise(stored)]
    count = files * events.per_file
    epoch = statistics.median(taken)
    rate = count * times / (ended - started) / cores / 1000
    low, high = _EPOCH_SECONDS
    length = "" if low <= epoch <= high else " (not of 1 to 5 s: choose another --scale)"
    parts = {
        "epoch": f"{epoch:.1f} s{length}",
        "events in it": f"{count:,}",
        "cores": str(cores),
        "all epochs": " ".join(f"{each:.1f}" for each in taken) + " s",
    }
    if name in ANCHORS:
        risingwave, flink = ANCHORS[name]
        parts |= {"RisingWave": f"{risingwave:g} k", "Flink": f"{flink:g} k"}
        goal, held = f">= {min(risingwave, flink):g}", rate >= min(risingwave, flink)
    else:
        goal, held = "none published", True
    return Finding("h", name, rate, " k events/s/core", goal, held, parts)
