"""(h) Nexmark: how many events a second each query keeps up with, for each core, in epochs of one to five seconds."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import seiche
from benchmarks.measure import Finding
from benchmarks.nexmark_data import SCHEMA, SIDE_INPUT, TURN, Generator, Stream
from benchmarks.nexmark_queries import QUERIES
from seiche.errors import FeatureNotSupported, SeicheError

# Published by others for one core, in thousands of events a second: RisingWave, Flink.
ANCHORS = {"q1": (119.0, 158.0), "q4": (13.9, 34.0), "q7": (20.0, 12.0), "q9": (8.2, 14.0)}
EVENTS_PER_EPOCH = 500_000
_EPOCH_SECONDS = (1.0, 5.0)


def nexmark(times: int, scale: float, names: Sequence[str] = ()) -> Iterator[Finding]:
    """Each query as a view of its own over append-only tables that start empty."""
    for name in names or QUERIES:
        try:
            yield _one(name, QUERIES[name], times, scale)
        except SeicheError as error:
            parts = {"not run": error.message}
            goal = "to run" if isinstance(error, FeatureNotSupported) else "to run without an error"
            yield Finding("h", name, 0.0, " k events/s/core", goal, False, parts)


def _one(name: str, query: str, times: int, scale: float) -> Finding:
    folder = tempfile.mkdtemp(prefix="seiche-bench-")
    cores = os.cpu_count() or 1
    try:
        with seiche.connect(folder) as db:
            rows = Generator(db.spark, Stream())
            for table, columns in SCHEMA.items():
                db.execute(f"CREATE TABLE {table} ({columns}) APPEND ONLY")
            db.execute(f"CREATE TABLE side_input ({SIDE_INPUT})")
            db.insert("side_input", rows.side_input(1000))
            db.execute(f"CREATE MATERIALIZED VIEW measured AS {query}")
            count = max(TURN, int(EVENTS_PER_EPOCH * scale) // TURN * TURN)
            taken = []
            for number in range(times + 1):
                started = time.perf_counter()
                _feed(db, rows, number * count, (number + 1) * count)
                if number:  # the first lets Spark compile
                    taken.append(time.perf_counter() - started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    epoch = statistics.median(taken)
    rate = count * len(taken) / sum(taken) / cores / 1000
    low, high = _EPOCH_SECONDS
    length = "" if low <= epoch <= high else " (not of 1 to 5 s: choose another --scale)"
    parts = {"epoch": f"{epoch:.1f} s{length}", "events in it": f"{count:,}", "cores": str(cores)}
    if name in ANCHORS:
        risingwave, flink = ANCHORS[name]
        parts |= {"RisingWave": f"{risingwave:g} k", "Flink": f"{flink:g} k"}
        goal, held = f">= {min(risingwave, flink):g}", rate >= min(risingwave, flink)
    else:
        goal, held = "none published", True
    return Finding("h", name, rate, " k events/s/core", goal, held, parts)


def _feed(db: seiche.Engine, rows: Generator, first: int, last: int) -> None:
    """The next events, made on the executors, each kind into its table and all of them at once."""
    with ThreadPoolExecutor(len(SCHEMA)) as pool:
        done = [pool.submit(db.session().insert, name, rows.table(name, first, last)) for name in SCHEMA]
        for each in done:
            each.result()
