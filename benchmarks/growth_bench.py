"""(g) how an epoch grows with the tables: TPC-H's views over tables of one scale, and over ones five times as large.

As many orders come and leave in a refresh at both scales, 0.1 % of the smaller one: what is asked is whether an epoch
follows the change or the tables. Where keys are recent, orders come at the end and leave at the start; where they are
random, orders leave all over the table, and those of the refresh before come back. A few random ones are twenty orders.
All queries are views at the same time, which are brought up to date one after the other: the epoch of one of them is
the whole epoch without the time of the others. Folds, and what is read ahead for later lookups, have ended before an
epoch begins.

    python -m benchmarks g --scale 1 --folder /data/growth --queries q3 q5
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

import seiche
from benchmarks.measure import Finding, milliseconds
from benchmarks.tpch_bench import KEYS, SHARE, Recent, Refresh, fill, is_right, kept_folder, refreshed
from benchmarks.tpch_data import Generator, Sizes
from benchmarks.tpch_queries import QUERIES
from seiche.epoch.report import EpochReport

LARGER = 5
FEW = 20  # orders
GOALS = {"recent": 1.5, "random": 3.0, "few random": 3.0}
DRIVER_MEMORY = "4g"

Epochs = dict[tuple[str, str], float]  # seconds by query and kind of keys


class Scattered:
    """Each takes orders from all over the table, and brings those of the one before back."""

    def __init__(self, db: seiche.Engine, every: int) -> None:
        """One order of about `every` goes at a time."""
        self._db = db
        self._every = every
        self._turn = 0
        self._orders, self._lines = (self._taken(table, "false") for table in KEYS)

    def next(self) -> Refresh:
        back = self._orders, self._lines
        while True:
            gone = f"key % {self._every} = {self._turn}"
            self._orders, self._lines = (self._taken(table, gone) for table in KEYS)
            self._turn += 1
            if self._orders.num_rows:  # a run that was broken off has not brought its last ones back
                return Refresh(*back, gone)

    def _taken(self, table: str, gone: str) -> pa.Table:
        return self._db.table(table).filter(gone.replace("key", KEYS[table])).toArrow()


def growth(times: int, scale: float, names: Sequence[str] = (), folder: str | None = None) -> Iterator[Finding]:
    """Each query's epoch at the larger scale against the one at the smaller."""
    with kept_folder(folder) as kept:
        small = _epochs(kept / "small", scale, 1, names, times)
        large = _epochs(kept / "large", scale * LARGER, LARGER, names, times)
    for (name, kind), seconds in small.items():
        ratio, goal = large[name, kind] / seconds, GOALS[kind]
        parts = {"smaller": milliseconds(seconds), "larger": milliseconds(large[name, kind])}
        what = f"{name} with {kind} keys over tables {LARGER} times as large"
        yield Finding("g", what, ratio, "x slower", f"<= {goal}", ratio <= goal, parts)


def _epochs(folder: Path, scale: float, parts: int, names: Sequence[str], times: int) -> Epochs:
    """The usual epochs at a scale, of which a refresh changes one part in `parts` of the usual share."""
    found: Epochs = {}
    with seiche.connect(folder / "db", driver_memory=DRIVER_MEMORY, parallel_jobs=1) as db:
        rows = Generator(db.spark, Sizes.of_scale(scale))
        fill(db, rows, folder / "plain")
        reports: list[EpochReport] = []
        db.on_epoch(reports.append)
        kinds = {
            "recent": Recent.of(db, rows, SHARE / parts),
            "random": Scattered(db, round(parts / SHARE) + 9),
            "few random": Scattered(db, rows.sizes.orders // FEW + 1),
        }
        views = list(names or QUERIES)
        for name in views:  # a run before may have made some of them
            db.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name} AS {QUERIES[name]}")
        db.execute("WAIT")
        for kind, refreshes in kinds.items():
            epochs = refreshed(db, refreshes, reports, times)
            for name in views:
                found[name, kind] = statistics.median(_alone(each, name) for each in epochs)
        for name in views:
            if not is_right(db, QUERIES[name], name):
                raise AssertionError(f"{name}: the view differs from its query")
    return found


def _alone(epoch: EpochReport, view: str) -> float:
    """The seconds that an epoch would have taken with one view, as far as the others' own time tells, also of those
    that a run before has left."""
    return epoch.total_s - sum(job.seconds for job in epoch.jobs if job.name in QUERIES and job.name != view)


__all__ = ["growth"]
