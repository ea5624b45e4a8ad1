"""Creating views over existing rows: against plain Spark, and beside a stream that goes on."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time

import numpy as np
import pyarrow as pa

import seiche
from benchmarks.measure import Finding, median_seconds, milliseconds

MANY_GROUPS = "SELECT id % 1000000 AS k, count(*) AS n, sum(tons) AS tons FROM arrivals GROUP BY id % 1000000"

GOAL = 0.8
WARM = 2
VIEWS = {
    "filter and project": "SELECT id, berth, tons * 2 AS doubled FROM arrivals WHERE berth < 900",
    "group by": "SELECT berth, count(*) AS n, sum(berth) AS s, max(tons) AS most FROM arrivals GROUP BY berth",
    "group by, sum of floats": "SELECT berth, count(*) AS n, sum(tons) AS tons FROM arrivals GROUP BY berth",
    "group by, a million groups": MANY_GROUPS,
    "join and group by": (
        "SELECT s.flag, count(*) AS n, max(a.tons) AS most FROM arrivals a JOIN ships s ON a.id % 500000 = s.id"
        " GROUP BY s.flag"
    ),
}

# Seiche's sums of floats are exact. Spark's own depend on the order of the rows; these of its are the same result.
EXACT_SUM = "cast(sum(cast(tons AS decimal(38, 20))) AS double)"


def creation(scale: float) -> list[Finding]:
    """(i) CREATE MATERIALIZED VIEW over 10 M rows against plain Spark computing and writing the same result."""
    rows = int(10_000_000 * scale)
    folder = tempfile.mkdtemp(prefix="seiche-bench-")
    findings = []
    try:
        with seiche.connect(f"{folder}/data") as db:
            _fill(db, rows)
            db.execute("CREATE TABLE ships (id bigint PRIMARY KEY, flag int)")
            db.execute("INSERT INTO ships SELECT i, (i % 10000)::int FROM generate_series(0, 499999) AS g(i)")
            db.database.maintenance.settle()
            spark = db.spark
            for table in ("arrivals", "ships"):
                db.table(table).createOrReplaceTempView(table)

            def plain_spark(query: str) -> float:
                def write() -> None:
                    frame = spark.sql(query)
                    frame.write.mode("overwrite").option("compression", "zstd").parquet(f"{folder}/plain")

                # Java takes a few runs to compile what Spark generates, on both sides.
                return median_seconds(write, warm=WARM, times=3)

            for name, query in VIEWS.items():
                same = query.replace("sum(tons)", EXACT_SUM)
                plain = plain_spark(same)
                taken = []
                for _ in range(WARM + 3):
                    started = time.perf_counter()
                    db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
                    taken.append(time.perf_counter() - started)
                    db.execute("DROP MATERIALIZED VIEW v")
                    db.database.maintenance.settle()  # its fold would take the cores from the next round
                built = statistics.median(taken[WARM:])
                parts = {
                    "CREATE": f"{built:.1f} s ({rows / built / 1e6:.2f} M rows/s)",
                    "plain Spark": f"{plain:.1f} s ({rows / plain / 1e6:.2f} M rows/s)",
                }
                if same != query:
                    inexact = plain_spark(query)
                    parts["plain Spark, sum not exact"] = f"{inexact:.1f} s ({inexact / built:.2f} of its speed)"
                ratio = plain / built
                what = f"creation over {rows:,} rows, {name}"
                if name == "filter and project":
                    speed, least = rows / built / 1e6, 1.0
                    told = f"{what}: rows/s"
                    findings.append(Finding("i", told, speed, " M rows/s", f">= {least}", speed >= least, parts))
                findings.append(Finding("i", what, ratio, " of its speed", f">= {GOAL}", ratio >= GOAL, parts))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return findings


def beside(times: int, scale: float) -> list[Finding]:
    """(j) epochs of the main graph while a large view is created, against epochs without one."""
    rows = int(10_000_000 * scale)
    folder = tempfile.mkdtemp(prefix="seiche-bench-")
    try:
        with seiche.connect(f"{folder}/data") as db:
            _fill(db, rows)
            db.execute("CREATE TABLE calls (id bigint, berth int)")
            db.execute("CREATE MATERIALIZED VIEW busy AS SELECT berth, count(*) AS n FROM calls GROUP BY berth")

            def insert() -> None:
                db.insert("calls", pa.table({"id": np.arange(100), "berth": np.arange(100, dtype=np.int32)}))

            alone = median_seconds(insert, warm=15, times=times)
            db.execute("SET background_ddl = true")
            db.execute(f"CREATE MATERIALIZED VIEW v AS {MANY_GROUPS}")
            taken = []
            while rows_of(db, "SHOW JOBS"):
                started = time.perf_counter()
                insert()
                taken.append(time.perf_counter() - started)
            together = statistics.median(taken) if taken else float("nan")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    parts = {"alone": milliseconds(alone), "beside a backfill": milliseconds(together), "epochs": str(len(taken))}
    ratio = together / alone
    return [Finding("j", "epoch beside a backfill", ratio, "x", "<= 1.5", ratio <= 1.5, parts)]


def rows_of(db: seiche.Engine, text: str) -> list[tuple[object, ...]]:
    return list(db.sql(text).rows or [])


def _fill(db: seiche.Engine, rows: int) -> None:
    db.execute("CREATE TABLE arrivals (id bigint PRIMARY KEY, berth int, tons double precision)")
    db.execute(
        f"INSERT INTO arrivals SELECT i, (i % 1000)::int, i * 0.5::float8 FROM generate_series(1, {rows}) AS g(i)"
    )
    db.database.maintenance.settle()
