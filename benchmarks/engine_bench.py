"""The engine against plain Spark: one epoch, a large view, a bulk load, a chain of views, memory."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import seiche
from benchmarks.measure import Finding, median_seconds, milliseconds, peak_mib
from seiche.epoch.report import EpochReport

CHANGES = 1000

ARRIVAL = "berth int, tons double precision, ship varchar"


class Epochs:
    """Remembers how long epochs took."""

    def __init__(self, db: seiche.Engine) -> None:
        self.reports: list[EpochReport] = []
        db.on_epoch(self.reports.append)

    def seconds_of(self, work: Callable[[], object], *, warm: int, times: int) -> float:
        """The median epoch while `work` runs, each run being one epoch."""
        for _ in range(warm):
            work()
        taken = []
        for _ in range(times):
            del self.reports[:]
            work()
            taken.append(sum(report.total_s for report in self.reports))
        return statistics.median(taken)


def one_filter_view(times: int) -> list[Finding]:
    """(a) an epoch of 1,000 changes in one table with one filter view, against an empty Spark action."""
    findings = []
    for keyed in (False, True):
        with _database() as db:
            key = "PRIMARY KEY" if keyed else ""
            db.execute(f"CREATE TABLE arrivals (id bigint {key}, {ARRIVAL})")
            db.execute("CREATE MATERIALIZED VIEW heavy AS SELECT id, berth, tons FROM arrivals WHERE tons > 500")
            epochs = Epochs(db)
            numbers = iter(range(10_000))

            def insert(numbers: Iterator[int] = numbers, db: seiche.Engine = db) -> None:
                first = next(numbers) * CHANGES
                db.insert("arrivals", _arrivals(first, CHANGES))

            epoch = epochs.seconds_of(insert, warm=15, times=times)
            empty = median_seconds(lambda: db.spark.range(1).toArrow(), warm=15, times=times)
            what = "epoch of 1,000 inserts, one filter view" + (", primary key" if keyed else "")
            parts = {"epoch": milliseconds(epoch), "empty Spark action": milliseconds(empty)}
            findings.append(Finding("a", what, epoch / empty, "x", "<= 3", epoch / empty <= 3, parts))
    return findings


def large_join(times: int, scale: float) -> list[Finding]:
    """(b) a view joining 1.5 M and 6 M rows into 0.6 M groups, 1,000 changes an epoch, against recomputing it."""
    orders, lines, customers = int(1_500_000 * scale), int(6_000_000 * scale), int(600_000 * scale)
    findings = []
    with _database() as db:
        db.execute(
            "CREATE TABLE orders (orderkey bigint PRIMARY KEY, custkey bigint, orderdate date, status varchar);"
            "CREATE TABLE lineitem (orderkey bigint, linenumber int, price numeric(12,2), discount numeric(4,2))"
        )
        db.execute(
            f"INSERT INTO orders SELECT i, (i::bigint * 7919) % {customers}, DATE '2020-01-01' + (i % 2000)::int,"
            f" CASE WHEN i % 3 = 0 THEN 'F' ELSE 'O' END FROM generate_series(1, {orders}) AS g(i)"
        )
        db.execute(
            f"INSERT INTO lineitem SELECT (i % {orders}) + 1, (i / {orders})::int, (i % 100000)::numeric(12,2) / 100,"
            f" (i % 10)::numeric(4,2) / 100 FROM generate_series(1, {lines}) AS g(i)"
        )
        db.database.maintenance.settle()
        query = (
            "SELECT o.custkey, count(*) AS lines, sum(l.price * (1 - l.discount)) AS revenue"
            " FROM lineitem l JOIN orders o ON l.orderkey = o.orderkey GROUP BY o.custkey"
        )
        db.execute(f"CREATE MATERIALIZED VIEW revenue AS {query}")
        db.database.maintenance.settle()
        folder = tempfile.mkdtemp(prefix="seiche-bench-")
        try:
            inputs = {name: f"{folder}/{name}" for name in ("orders", "lineitem")}
            for name, path in inputs.items():
                db.table(name).write.parquet(path)
            spark = db.spark.newSession()
            spark.conf.set("spark.sql.adaptive.enabled", "true")
            for name, path in inputs.items():
                spark.read.parquet(path).createOrReplaceTempView(name)

            def recompute() -> None:
                spark.sql(query).write.mode("overwrite").parquet(f"{folder}/out")

            plain = median_seconds(recompute, warm=1, times=3)
        finally:
            shutil.rmtree(folder)
        epochs = Epochs(db)
        random = np.random.default_rng(1)
        for how in ("recent", "random"):

            def change(how: str = how) -> None:
                low = orders - orders // 100 if how == "recent" else 1
                keys = random.integers(low, orders + 1, CHANGES)
                db.insert("lineitem", _lines(keys))

            epoch = epochs.seconds_of(change, warm=15, times=times)
            parts = {
                "epoch": milliseconds(epoch),
                "recompute and write": milliseconds(plain),
                "rows": f"{orders:,} x {lines:,} -> {customers:,} groups",
            }
            what = f"join and group, 1,000 changes of {how} orders"
            findings.append(Finding("b", what, plain / epoch, "x faster", ">= 12", plain / epoch >= 12, parts))
    return findings


def bulk_load(scale: float) -> list[Finding]:
    """(c) INSERT … SELECT of 10 M rows against plain Spark writing the same Parquet."""
    rows = int(10_000_000 * scale)
    source = (
        "SELECT i AS id, (i % 1000)::int AS berth, (i * 7919 % 1000)::float8 AS tons, 'ship ' || i % 500 AS ship"
        f" FROM generate_series(1::bigint, {rows}) AS g(i)"
    )
    plain_source = (
        "SELECT id, cast(id % 1000 as int) AS berth, cast(id * 7919 % 1000 as double) AS tons,"
        f" concat('ship ', id % 500) AS ship FROM range(1, {rows} + 1)"
    )
    findings = []
    for keyed in (False, True):
        with _database() as db, tempfile.TemporaryDirectory() as folder:
            key = "PRIMARY KEY" if keyed else ""
            spark = db.spark

            def write(spark: SparkSession = spark, target: str = f"{folder}/plain") -> None:
                frame = spark.sql(plain_source)
                frame.write.mode("overwrite").option("compression", "zstd").parquet(target)

            plain = median_seconds(write, warm=1, times=3)
            taken = []
            for number in range(3):
                db.execute(f"CREATE TABLE arrivals{number} (id bigint {key}, {ARRIVAL})")
                started = time.perf_counter()
                db.execute(f"INSERT INTO arrivals{number} {source}")
                taken.append(time.perf_counter() - started)
                db.database.maintenance.settle()  # its fold would take the cores from the next round
                db.execute(f"DROP TABLE arrivals{number}")
            loaded = statistics.median(taken)
            what = f"bulk load of {rows:,} rows" + (", primary key" if keyed else "")
            ratio = plain / loaded
            parts = {
                "INSERT … SELECT": f"{loaded:.1f} s ({rows / loaded / 1e6:.2f} M rows/s)",
                "plain Spark write": f"{plain:.1f} s ({rows / plain / 1e6:.2f} M rows/s)",
            }
            findings.append(Finding("c", what, ratio, " of its speed", ">= 0.7", ratio >= 0.7, parts))
    return findings


def chain_of_views(times: int) -> list[Finding]:
    """(d) four views, each on the one before, against one view."""
    seconds = {}
    for length in (1, 4):
        with _database() as db:
            db.execute(f"CREATE TABLE arrivals (id bigint, {ARRIVAL})")
            source = "arrivals"
            for number in range(1, length + 1):
                db.execute(f"CREATE MATERIALIZED VIEW v{number} AS SELECT * FROM {source} WHERE tons > {number * 10}")
                source = f"v{number}"
            epochs = Epochs(db)
            numbers = iter(range(10_000))

            def insert(numbers: Iterator[int] = numbers, db: seiche.Engine = db) -> None:
                db.insert("arrivals", _arrivals(next(numbers) * CHANGES, CHANGES))

            seconds[length] = epochs.seconds_of(insert, warm=15, times=times)
    ratio = seconds[4] / seconds[1]
    parts = {f"{n} views": milliseconds(s) for n, s in seconds.items()}
    return [Finding("d", "chain of 4 views against one", ratio, "x", "<= 2.5", ratio <= 2.5, parts)]


def memory(scale: float) -> list[Finding]:
    """(e) the driver's memory while many rows pass through in epochs: more rows must not need more."""
    few, many = int(2_000_000 * scale), int(10_000_000 * scale)
    peaks = {}
    for rows in (few, many):
        # A process of its own: peaks of the runs before must not count.
        code = f"from benchmarks.engine_bench import pass_through; print(pass_through({rows}))"
        done = subprocess.run(["python", "-c", code], capture_output=True, text=True, check=True, env=_environment())
        python, java = (float(part) for part in done.stdout.split()[-2:])
        peaks[rows] = (python, java)
    ratio = peaks[many][0] / peaks[few][0]
    parts = {
        f"{rows:,} rows": f"Python {python:.0f} MiB, JVM {java:.0f} MiB (its heap may grow to 4 GiB)"
        for rows, (python, java) in peaks.items()
    }
    return [Finding("e", "driver's peak memory, 5 times the rows", ratio, "x", "<= 1.5", ratio <= 1.5, parts)]


def pass_through(rows: int) -> str:
    """Lets rows pass through a table and a view in epochs of 20,000; the peaks of Python and of the JVM in MiB."""
    with _database() as db:
        db.execute(f"CREATE TABLE arrivals (id bigint, {ARRIVAL})")
        db.execute(
            "CREATE MATERIALIZED VIEW load AS SELECT berth, count(*) AS n, sum(tons) AS t FROM arrivals GROUP BY berth"
        )
        for first in range(0, rows, 20_000):
            db.insert("arrivals", _arrivals(first, 20_000))
        return f"{peak_mib()} {peak_mib(_java_child())}"


def _java_child() -> int:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            name, _, rest = stat.rpartition(")")
            if "java" in name and int(rest.split()[1]) == os.getpid():
                return int(entry.name)
    raise RuntimeError("no Java process was started by this one")


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


class _database:
    """A database in a temporary folder, gone afterwards."""

    def __enter__(self) -> seiche.Engine:
        self._folder = tempfile.mkdtemp(prefix="seiche-bench-")
        self._engine = seiche.connect(self._folder)
        return self._engine

    def __exit__(self, *_: object) -> None:
        self._engine.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _arrivals(first: int, count: int) -> pa.Table:
    ids = np.arange(first, first + count)
    return pa.table(
        {
            "id": ids,
            "berth": (ids % 1000).astype(np.int32),
            "tons": (ids * 7919 % 1000).astype(np.float64),
            "ship": [f"ship {number % 500}" for number in ids],
        }
    )


def _lines(keys: np.ndarray) -> pa.Table:  # type: ignore[type-arg]
    count = len(keys)
    price = (
        pa.array(keys % 100_000, pa.int64())
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(21, 2))
        .cast(pa.decimal128(12, 2))
    )
    discount = (
        pa.array([0] * count, pa.int64())
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(21, 2))
        .cast(pa.decimal128(4, 2))
    )
    return pa.table({"orderkey": keys, "linenumber": np.full(count, 9, np.int32), "price": price, "discount": discount})
