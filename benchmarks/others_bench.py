"""(o) one small job by others: DuckDB that recomputes it, Pathway that maintains it, and Seiche, side by side.

    python -m benchmarks o --pathway /path/to/an/environment/with/pathway/bin/python

Lines are joined with their orders and summed up for each customer; batches of 1,000 new lines come one after another.
What is timed is from the first row of a batch handed over until the answer has all of it. The three do not promise the
same: DuckDB's and Pathway's tables are in memory here and gone with the process, those of Seiche are on disk when the
time ends. Sums are of integers, so that the three answers can be compared exactly.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seiche
from benchmarks.measure import Finding, milliseconds

ORDERS, LINES_PER_ORDER, ORDERS_PER_CUSTOMER = 150_000, 4, 3
CHANGES, WARM = 1000, 5
PATHWAY_JOB = Path(__file__).with_name("pathway_job.py")

QUERY = (
    "SELECT o.custkey, sum(l.price) AS revenue FROM lines l JOIN orders o ON l.orderkey = o.orderkey GROUP BY o.custkey"
)

Answer = tuple[int, int]  # the number of groups, and the sum over all of them


def others(times: int, scale: float, pathway: str | None) -> Iterator[Finding]:
    """Seconds of a batch by each, the ratio being Seiche's against the other's."""
    orders = int(ORDERS * scale)
    with tempfile.TemporaryDirectory(prefix="seiche-bench-") as name:
        folder = Path(name)
        batches = _write_inputs(folder, orders, WARM + times)
        ours, answer = _by_seiche(folder, batches)
        size = f"{orders:,} orders, {orders * LINES_PER_ORDER:,} lines"
        recomputed, other = _by_duckdb(folder, batches)
        yield _finding("DuckDB recomputing", ours, recomputed, other == answer, size)
        if pathway is None:
            parts = {"not run": "--pathway names the Python of an environment that has Pathway"}
            yield Finding(
                "o", "a batch by Pathway maintaining", float("nan"), "x as fast", "to be measured", False, parts
            )
            return
        maintained, other = _by_pathway(folder, pathway)
        yield _finding("Pathway maintaining", ours, maintained, other == answer, size)


def _finding(who: str, ours: list[float], theirs: list[float], equal: bool, size: str) -> Finding:
    mine, other = statistics.median(ours[WARM:]), statistics.median(theirs[WARM:])
    parts = {"Seiche": milliseconds(mine), who: milliseconds(other), "over": size}
    if not equal:
        parts["answer"] = "WRONG: the two differ"
    what = f"a batch of {CHANGES:,} lines, against {who}"
    return Finding("o", what, other / mine, "x as fast", "the same answer", equal, parts)


def _write_inputs(folder: Path, orders: int, count: int) -> list[Path]:
    random = np.random.default_rng(1)

    def lines(rows: int) -> pa.Table:
        return pa.table({"orderkey": random.integers(0, orders, rows), "price": random.integers(1, 100_000, rows)})

    keys = np.arange(orders)
    customers = keys * 7919 % (orders // ORDERS_PER_CUSTOMER)
    pq.write_table(pa.table({"orderkey": keys, "custkey": customers}), folder / "orders.parquet")
    pq.write_table(lines(orders * LINES_PER_ORDER), folder / "lines.parquet")
    batches = [folder / f"change_{number:03}.parquet" for number in range(count)]
    for batch in batches:
        pq.write_table(lines(CHANGES), batch)
    return batches


def _by_seiche(folder: Path, batches: list[Path]) -> tuple[list[float], Answer]:
    seconds = []
    with seiche.connect(folder / "db") as db:
        db.execute("CREATE TABLE orders (orderkey bigint PRIMARY KEY, custkey bigint)")
        db.execute("CREATE TABLE lines (orderkey bigint, price bigint)")
        for name in ("orders", "lines"):
            db.insert(name, db.spark.read.parquet(str(folder / f"{name}.parquet")))
        db.execute(f"CREATE MATERIALIZED VIEW revenue AS {QUERY}")
        db.database.maintenance.settle()
        for batch in batches:
            rows = pq.read_table(batch)
            started = time.perf_counter()
            db.insert("lines", rows)
            seconds.append(time.perf_counter() - started)
        ((groups, total),) = db.sql("SELECT count(*), sum(revenue) FROM revenue")
    return seconds, (int(groups), int(total))


def _by_duckdb(folder: Path, batches: list[Path]) -> tuple[list[float], Answer]:
    seconds = []
    with duckdb.connect() as db:
        for name in ("orders", "lines"):
            db.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{folder / name}.parquet')")
        for batch in batches:
            rows = pq.read_table(batch)
            started = time.perf_counter()
            db.register("batch", rows)
            db.execute("INSERT INTO lines SELECT * FROM batch")
            db.execute(f"CREATE OR REPLACE TABLE revenue AS {QUERY}")
            seconds.append(time.perf_counter() - started)
        found = db.execute("SELECT count(*), sum(revenue) FROM revenue").fetchone()
    assert found is not None
    return seconds, (int(found[0]), int(found[1]))


def _by_pathway(folder: Path, python: str) -> tuple[list[float], Answer]:
    done = subprocess.run([python, str(PATHWAY_JOB), str(folder)], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    return told["seconds"], (told["groups"], told["sum"])
