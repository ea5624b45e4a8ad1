"""Processes that are killed while views are created or refreshed.

python -m tests.crash.job_scenes SCENE FOLDER [NUMBER]
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import seiche
from tests.crash.worker import SETTINGS, check_files, rows

ROWS, ROWS_PER_SECOND = 1000, 10
VIEWS = {
    "loads": "SELECT berth, count(*) AS n, sum(containers) AS c, max(containers) AS most FROM arrivals GROUP BY berth",
    "named": "SELECT a.id, b.name FROM arrivals a JOIN berths b ON a.berth = b.id",
    "heavy": "SELECT id, containers FROM doubled WHERE containers > 100",
}
GROWING = {"inside": "SELECT id, berth FROM arrivals WHERE berth < 4"}
ALL = VIEWS | GROWING
REFRESHED = "SELECT id, berth FROM arrivals"


def begin(folder: Path) -> None:
    """Creates views at a limited rate, and tells how far they are until somebody kills it."""
    with seiche.connect(folder, **SETTINGS) as database:
        database.execute("CREATE TABLE arrivals (id bigint PRIMARY KEY, berth int, containers int)")
        database.execute("CREATE TABLE berths (id int PRIMARY KEY, name varchar)")
        database.execute("INSERT INTO berths SELECT i, 'pier ' || i FROM generate_series(0, 4) AS g(i)")
        database.execute(f"INSERT INTO arrivals SELECT i, i % 5, i FROM generate_series(1, {ROWS}) AS g(i)")
        database.execute("CREATE MATERIALIZED VIEW doubled AS SELECT id, containers * 2 AS containers FROM arrivals")
        database.execute(f"SET background_ddl = true; SET backfill_rate_limit = {ROWS_PER_SECOND}")
        started = time.monotonic()
        for name, query in VIEWS.items():
            database.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        database.execute("SET streaming_use_snapshot_backfill = false")
        for name, query in GROWING.items():
            database.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        tell(database, started)


def go_on(folder: Path) -> None:
    """Opens it again: the views go on where they were."""
    started = time.monotonic()
    with seiche.connect(folder, **SETTINGS) as database:
        tell(database, started)


def finish(folder: Path) -> None:
    """Opens it again and lets the views come to their end, while rows are written."""
    with seiche.connect(folder, **SETTINGS) as database:
        database.execute("INSERT INTO arrivals SELECT i, i % 5, i FROM generate_series(2001, 2100) AS g(i)")
        database.execute("DELETE FROM arrivals WHERE id % 9 = 0")
        for name in ALL:
            database.execute(f"ALTER MATERIALIZED VIEW {name} SET BACKFILL_RATE_LIMIT = DEFAULT")
        database.execute("WAIT")
        for name, query in ALL.items():
            assert Counter(rows(database, f"SELECT * FROM {name}")) == Counter(rows(database, query)), name
        check_files(database)
        check_pools(database)


def check_pools(database: seiche.Engine) -> None:
    """Epochs have a larger share of the cores than history that is read."""
    context = database.spark.sparkContext._jsc.sc()
    shares = {name: context.getPoolForName(name).get().weight() for name in ("default", "queries", "backfill")}
    assert shares["default"] > shares["queries"] > shares["backfill"], shares


def tell(database: seiche.Engine, started: float) -> None:
    """Prints `since <seconds> <seconds>`, then `at <seconds> <seconds> <percent> …`, a percentage for each view.

    The views began to read at moments between the first two, and what is told was so at a moment between the others:
    they are far apart where other processes have the processor. It ends by being killed.
    """
    print("since", started, time.monotonic(), flush=True)
    while True:
        asked = time.monotonic()
        found = [percent_of(str(row[2])) for row in rows(database, "SHOW JOBS")]
        if len(found) == len(ALL) and None not in found:
            print("at", asked, time.monotonic(), *found, flush=True)
        time.sleep(0.1)


def percent_of(progress: str) -> float | None:
    """What SHOW JOBS says of history that is read; None in any other phase."""
    found = re.match(r"Snapshot \[([0-9.]+)%", progress)
    return float(found[1]) if found else None


def refresh(folder: Path, wanted: int) -> None:
    """Brings the table to so many rows, and waits until the view has followed by itself; then until it is killed."""
    with seiche.connect(folder, **SETTINGS) as database:
        database.execute("CREATE TABLE IF NOT EXISTS arrivals (id bigint PRIMARY KEY, berth int, containers int)")
        database.execute(f"INSERT INTO arrivals SELECT i, i % 5, i FROM generate_series(1, {wanted}) AS g(i)")
        database.execute(f"DELETE FROM arrivals WHERE id > {wanted}")
        database.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS m WITH (refresh.interval.sec = 3) AS {REFRESHED}")
        deadline = time.monotonic() + 60
        while rows(database, "SELECT count(*) FROM m") != [(wanted,)]:
            assert time.monotonic() < deadline, "the view did not follow"
            time.sleep(0.2)
        assert Counter(rows(database, "SELECT * FROM m")) == Counter(rows(database, REFRESHED))
        check_files(database)
        print("followed", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    scene, folder = sys.argv[1], Path(sys.argv[2])
    if scene == "refresh":
        refresh(folder, int(sys.argv[3]))
    else:
        {"begin": begin, "go_on": go_on, "finish": finish}[scene](folder)
    print("done", flush=True)
