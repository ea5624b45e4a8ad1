"""(f) the 22 TPC-H views under the benchmark's refresh functions, against plain Spark that computes and writes them."""

from __future__ import annotations

import math
import re
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from pyspark.sql import SparkSession

import seiche
from benchmarks.measure import Finding, median_seconds, milliseconds
from benchmarks.tpch_data import SCHEMA, Generator, Sizes, order_key
from benchmarks.tpch_queries import QUERIES
from seiche.epoch.report import EpochReport

SHARE = 0.001  # of orders, inserted and deleted by one refresh
_RECOMPUTED = re.compile(r"recompute \((\w+)\)")


@dataclass(frozen=True, slots=True)
class Refresh:
    """New orders with their lines, and the keys below which old ones go."""

    orders: pa.Table
    lines: pa.Table
    low: int
    high: int


class Refreshes:
    """One refresh after another: each adds orders at the end and takes as many from the start."""

    def __init__(self, rows: Generator) -> None:
        self._rows = rows
        self._count = max(1, round(rows.sizes.orders * SHARE))
        self._next = rows.sizes.orders
        self._oldest = 0

    def next(self) -> Refresh:
        first, oldest = self._next, self._oldest
        self._next += self._count
        self._oldest += self._count
        return Refresh(
            self._rows.orders(first, self._next).toArrow(),
            self._rows.lineitem(first, self._next).toArrow(),
            order_key(oldest),
            order_key(self._oldest),
        )


def tpch(times: int, scale: float, names: Sequence[str] = ()) -> Iterator[Finding]:
    """Each query as a view of its own: the epochs of one refresh against recompute-and-write of the same query."""
    found = []
    with _database() as db:
        rows = Generator(db.spark, Sizes.of_scale(scale))
        for name, columns in SCHEMA.items():
            db.execute(f"CREATE TABLE {name} ({columns})")
            db.insert(name, rows.table(name))
        db.database.maintenance.settle()
        refreshes = Refreshes(rows)
        reports: list[EpochReport] = []
        db.on_epoch(reports.append)
        for name in names or QUERIES:
            found.append(_one(db, name, refreshes, reports, times, scale))
            yield found[-1]
    mean = math.exp(statistics.fmean(math.log(finding.ratio) for finding in found))
    least = min(found, key=lambda finding: finding.ratio)
    recomputed = [finding.what.split()[0] for finding in found if "recomputed" in finding.parts]
    parts = {"slowest": f"{least.what}: {least.ratio:.2f}x", "recomputed in full": ", ".join(recomputed) or "none"}
    yield Finding("f", f"geometric mean of {len(found)} views", mean, "x faster", ">= 10", mean >= 10, parts)


def _one(
    db: seiche.Engine, name: str, refreshes: Refreshes, reports: list[EpochReport], times: int, scale: float
) -> Finding:
    query = QUERIES[name]
    plan = "\n".join(str(row[0]) for row in db.sql(f"EXPLAIN CREATE MATERIALIZED VIEW measured AS {query}"))
    reasons = sorted(set(_RECOMPUTED.findall(plan)))
    db.execute(f"CREATE MATERIALIZED VIEW measured AS {query}")
    db.database.maintenance.settle()
    taken = []
    for number in range(times + 2):
        refresh = refreshes.next()
        del reports[:]
        _apply(db, refresh)
        if number >= 2:  # the first two let Spark compile
            taken.append(sum(report.total_s for report in reports))
    epoch = statistics.median(taken)
    plain = _recompute_seconds(db, query)
    db.execute("DROP MATERIALIZED VIEW measured")
    parts = {"epochs of a refresh": milliseconds(epoch), "recompute and write": milliseconds(plain)}
    if reasons:
        parts["recomputed"] = ", ".join(reasons)
    what = f"{name} at scale {scale:g}, {SHARE:.1%} of orders in and out"
    return Finding("f", what, plain / epoch, "x faster", ">= 1", plain / epoch >= 1 and not reasons, parts)


def _apply(db: seiche.Engine, refresh: Refresh) -> None:
    """The four statements of a refresh at once, so that the coordinator may put them into one epoch."""
    span = f">= {refresh.low} AND {{0}} < {refresh.high}"
    work = [
        lambda: db.session().insert("orders", refresh.orders),
        lambda: db.session().insert("lineitem", refresh.lines),
        lambda: db.session().execute("DELETE FROM orders WHERE o_orderkey " + span.format("o_orderkey")),
        lambda: db.session().execute("DELETE FROM lineitem WHERE l_orderkey " + span.format("l_orderkey")),
    ]
    with ThreadPoolExecutor(len(work)) as pool:
        for done in [pool.submit(each) for each in work]:
            done.result()


def _recompute_seconds(db: seiche.Engine, query: str) -> float:
    """Plain Spark over plain Parquet of the same rows: the query, computed and written."""
    (sql,) = sqlglot.transpile(query, read="postgres", write="spark")
    with _plain_spark(db, re.findall(r"\w+", query)) as (spark, folder):
        return median_seconds(lambda: spark.sql(sql).write.mode("overwrite").parquet(f"{folder}/out"), warm=1, times=3)


@contextmanager
def _plain_spark(db: seiche.Engine, words: Sequence[str]) -> Iterator[tuple[SparkSession, str]]:
    folder = tempfile.mkdtemp(prefix="seiche-bench-")
    spark = db.spark.newSession()
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    spark.conf.unset("spark.sql.optimizer.excludedRules")
    try:
        for name in SCHEMA:
            if name in words:
                db.table(name).write.parquet(f"{folder}/{name}")
                spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
        yield spark, folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def _database() -> Iterator[seiche.Engine]:
    folder = tempfile.mkdtemp(prefix="seiche-bench-")
    try:
        with seiche.connect(folder) as engine:
            yield engine
    finally:
        shutil.rmtree(folder, ignore_errors=True)
