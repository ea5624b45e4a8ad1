"""(f) the 22 TPC-H views under the benchmark's refresh functions, against plain Spark that computes and writes them.

The tables are made once for a scale and may be kept in a folder, so that a few queries at a time can be measured:

    python -m benchmarks f --scale 1 --folder /data/tpch --queries q1 q3

A refresh is one transaction, and so one epoch: as many orders with their lines come at the end as leave at the start.
"""

from __future__ import annotations

import math
import re
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from pyspark.sql import SparkSession

import seiche
from benchmarks.measure import Finding, median_seconds, milliseconds
from benchmarks.tpch_data import SCHEMA, Generator, Sizes, order_key, order_number
from benchmarks.tpch_queries import QUERIES
from seiche.epoch.report import EpochReport

KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
SHARE = 0.001  # of orders, inserted and deleted by one refresh
MEMORY = "8g"  # of the driver: plain Spark needs more than 4 GiB to build what it broadcasts for some of the queries
AHEAD = 20  # refreshes whose rows are made at a time
_RECOMPUTED = re.compile(r"recompute \((\w+)\)")


@dataclass(frozen=True, slots=True)
class Refresh:
    """New orders with their lines, and the condition on the keys of those that go, which are called `key` there."""

    orders: pa.Table
    lines: pa.Table
    gone: str


class Refreshes(Protocol):
    """One refresh after another."""

    def next(self) -> Refresh: ...


class Recent:
    """Each adds orders at the end and takes as many from the start."""

    def __init__(self, rows: Generator, oldest: int, newest: int, share: float) -> None:
        """`oldest` and `newest` are the numbers of the first and the last order that there is."""
        self._rows = rows
        self._count = max(1, round(rows.sizes.orders * share))
        self._next = newest + 1
        self._oldest = oldest
        self._made = self._next
        self._orders = self._lines = pa.table({})

    @staticmethod
    def of(db: seiche.Engine, rows: Generator, share: float = SHARE) -> Recent:
        """Refreshes of a share of the orders, which go on where those of a run before have ended."""
        ((oldest, newest),) = db.sql("SELECT min(o_orderkey), max(o_orderkey) FROM orders")
        return Recent(rows, order_number(oldest), order_number(newest), share)

    def next(self) -> Refresh:
        first, oldest = self._next, self._oldest
        self._next += self._count
        self._oldest += self._count
        if self._next > self._made:
            self._made = first + AHEAD * self._count
            self._orders = self._rows.orders(first, self._made).toArrow()
            self._lines = self._rows.lineitem(first, self._made).toArrow()
        ends = order_key(first), order_key(self._next)
        return Refresh(
            _between(self._orders, "o_orderkey", *ends),
            _between(self._lines, "l_orderkey", *ends),
            f"key >= {order_key(oldest)} AND key < {order_key(self._oldest)}",
        )


def _between(rows: pa.Table, key: str, low: int, high: int) -> pa.Table:
    return rows.filter(pc.and_(pc.greater_equal(rows[key], low), pc.less(rows[key], high)))


@dataclass(frozen=True, slots=True)
class Epoch:
    """Seconds of one refresh: the whole epoch, the step of the view, and the commit."""

    total: float
    view: float
    commit: float


def tpch(times: int, scale: float, names: Sequence[str] = (), folder: str | None = None) -> Iterator[Finding]:
    """Each query as a view of its own: the epoch of one refresh against recompute-and-write of the same query."""
    found = []
    with kept_folder(folder) as kept, seiche.connect(kept / "db", driver_memory=MEMORY) as db:
        rows = Generator(db.spark, Sizes.of_scale(scale))
        fill(db, rows, kept / "plain")
        refreshes = Recent.of(db, rows)
        reports: list[EpochReport] = []
        db.on_epoch(reports.append)
        for name in names or QUERIES:
            found.append(_one(db, name, refreshes, reports, times, kept / "plain"))
            yield found[-1]
    mean = math.exp(statistics.fmean(math.log(finding.ratio) for finding in found))
    least = min(found, key=lambda finding: finding.ratio)
    recomputed = [finding.what.split()[0] for finding in found if "recomputed" in finding.parts]
    parts = {"slowest": f"{least.what}: {least.ratio:.2f}x", "recomputed in full": ", ".join(recomputed) or "none"}
    yield Finding("f", f"geometric mean of {len(found)} views", mean, "x faster", ">= 10", mean >= 10, parts)


def fill(db: seiche.Engine, rows: Generator, plain: Path) -> None:
    """The tables in the database, and the same as plain Parquet files; nothing where a run before has made them."""
    if (plain / "lineitem" / "_SUCCESS").exists():
        return
    for name, columns in SCHEMA.items():
        db.execute(f"CREATE TABLE {name} ({columns})")
        db.insert(name, rows.table(name))
        db.table(name).write.parquet(str(plain / name))
    settled(db)


def _one(
    db: seiche.Engine, name: str, refreshes: Refreshes, reports: list[EpochReport], times: int, plain: Path
) -> Finding:
    query = QUERIES[name]
    told = "\n".join(str(row[0]) for row in db.sql(f"EXPLAIN CREATE MATERIALIZED VIEW measured AS {query}"))
    reasons = sorted(set(_RECOMPUTED.findall(told)))
    create(db, query)
    epoch = usual_epoch(db, refreshes, reports, times)
    right = is_right(db, query)
    recompute = _recompute_seconds(db, query, plain)
    chosen = db.sql("SELECT DISTINCT choice FROM rw_catalog.rw_refresh_history WHERE job_name = 'measured'").rows or []
    db.execute("DROP MATERIALIZED VIEW measured")
    parts = {
        "epoch of a refresh": milliseconds(epoch.total),
        "of which the view": milliseconds(epoch.view),
        "commit": milliseconds(epoch.commit),
        "recompute and write": milliseconds(recompute),
        "by": ", ".join(sorted(str(choice) for (choice,) in chosen)) or "nothing: its tables stay as they are",
    }
    if not right:
        parts["answer"] = "WRONG: the view differs from its query"
    if reasons:
        parts["recomputed"] = ", ".join(reasons)
    what = f"{name} with {SHARE:.1%} of orders in and out"
    ratio = recompute / epoch.total
    return Finding("f", what, ratio, "x faster", ">= 1", right and ratio >= 1 and not reasons, parts)


def create(db: seiche.Engine, query: str) -> None:
    """The query as the view `measured`."""
    db.execute("DROP MATERIALIZED VIEW IF EXISTS measured")  # of a run that was stopped
    db.execute(f"CREATE MATERIALIZED VIEW measured AS {query}")


def usual_epoch(db: seiche.Engine, refreshes: Refreshes, reports: list[EpochReport], times: int) -> Epoch:
    """The median of the epochs of some refreshes."""
    counted = sorted(refreshed(db, refreshes, reports, times), key=lambda each: each.total_s)
    usual = counted[len(counted) // 2]
    view = sum(job.seconds for job in usual.jobs if job.name == "measured")
    return Epoch(usual.total_s, view, usual.commit_s)


def refreshed(db: seiche.Engine, refreshes: Refreshes, reports: list[EpochReport], times: int) -> list[EpochReport]:
    """The epochs of some refreshes, after two that let Spark compile."""
    return [_applied(db, refreshes.next(), reports) for _ in range(times + 2)][2:]


def is_right(db: seiche.Engine, query: str, view: str = "measured") -> bool:
    return _rows(db, f"SELECT * FROM {view}") == _rows(db, query)


def _rows(db: seiche.Engine, query: str) -> list[str]:
    return sorted(str(tuple(row)) for row in db.sql(query))


def settled(db: seiche.Engine) -> None:
    """Waits for what is done beside the epochs: folds, and columns that are read for later lookups."""
    db.database.maintenance.settle()
    db.database.runtime.reader.settle()


def _applied(db: seiche.Engine, refresh: Refresh, reports: list[EpochReport]) -> EpochReport:
    """Runs a refresh as one transaction; its epoch."""
    session = db.session()
    session.execute("BEGIN")
    session.insert("orders", refresh.orders)
    session.insert("lineitem", refresh.lines)
    for table, key in KEYS.items():
        session.execute(f"DELETE FROM {table} WHERE {refresh.gone.replace('key', key)}")
    settled(db)
    del reports[:]
    session.execute("COMMIT")
    changed = [report for report in reports if report.requests]
    assert len(changed) == 1, "a transaction is one epoch"
    return changed[0]


def _recompute_seconds(db: seiche.Engine, query: str, plain: Path) -> float:
    """Plain Spark over plain Parquet of the tables as they were before any refresh: the query, computed and written."""
    (sql,) = sqlglot.transpile(query, read="postgres", write="spark")
    spark = _plain_spark(db)
    for name in SCHEMA:
        spark.read.parquet(str(plain / name)).createOrReplaceTempView(name)
    out = str(plain.parent / "out")
    return median_seconds(lambda: spark.sql(sql).write.mode("overwrite").parquet(out), warm=1, times=3)


def _plain_spark(db: seiche.Engine) -> SparkSession:
    spark = db.spark.newSession()
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    spark.conf.unset("spark.sql.optimizer.excludedRules")
    return spark


@contextmanager
def kept_folder(kept: str | None) -> Iterator[Path]:
    if kept is not None:
        Path(kept).mkdir(parents=True, exist_ok=True)
        yield Path(kept)
        return
    with tempfile.TemporaryDirectory(prefix="seiche-bench-") as folder:
        yield Path(folder)
