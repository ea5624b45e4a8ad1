"""Processes that are killed while several views are created on a table that is written all the time.

python -m tests.crash.crowd_scenes SCENE FOLDER
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from pathlib import Path

import seiche
from seiche.catalog.parallelism import parallelism_of
from tests.crash.job_scenes import percent_of
from tests.crash.worker import SETTINGS, check_files, rows

CANCELS = 5
VIEWS = {
    "kept": "SELECT id, containers FROM arrivals WHERE containers % 2 = 0",
    "loads": "SELECT berth, count(*) AS n, sum(containers) AS c FROM arrivals GROUP BY berth",
    "named": "SELECT a.id, b.name FROM arrivals a JOIN berths b ON a.berth = b.id",
    "listed": "SELECT berth, string_agg(id::varchar, ',' ORDER BY id) AS ids FROM arrivals GROUP BY berth",
}
GROWING = {"inside": "SELECT id, berth FROM arrivals WHERE berth < 4"}
ALL = VIEWS | GROWING
SCALED = "kept"


def begin(folder: Path) -> None:
    """Creates and cancels, then creates several views while 101-200 are written, and tells until it is killed."""
    with seiche.connect(folder, **SETTINGS) as database:
        database.execute("CREATE TABLE arrivals (id bigint PRIMARY KEY, berth int, containers int)")
        database.execute("CREATE TABLE berths (id int PRIMARY KEY, name varchar)")
        database.execute("INSERT INTO berths SELECT i, 'pier ' || i FROM generate_series(0, 4) AS g(i)")
        for first, last in ((1, 100), (201, 300), (401, 800)):
            insert(database, first, last)
        database.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 0")
        database.execute("SET background_ddl = true; SET backfill_rate_limit = 1")
        create_and_cancel(database)
        database.execute("SET streaming_parallelism = 3")
        for name, query in VIEWS.items():
            database.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        database.execute("SET streaming_use_snapshot_backfill = false")
        for name, query in GROWING.items():
            database.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        for first in range(101, 200, 10):
            insert(database, first, first + 9)
        tell(database)


def scale(folder: Path) -> None:
    """Opens it again, lets one view go on with one task instead of three, and tells until it is killed."""
    with seiche.connect(folder, **SETTINGS) as database:
        assert parallelism_of(database.database.catalog.find((SCALED,))).text == "3"
        database.execute(f"ALTER MATERIALIZED VIEW {SCALED} SET PARALLELISM = 1")
        tell(database)


def finish(folder: Path) -> None:
    """Opens it again, and lets all views come to their end while rows are written all the time."""
    with seiche.connect(folder, **SETTINGS) as database:
        assert parallelism_of(database.database.catalog.find((SCALED,))).text == "1"
        ended = threading.Event()
        writer = threading.Thread(target=write, args=(database, ended))
        writer.start()
        try:
            for name in ALL:
                database.execute(f"ALTER MATERIALIZED VIEW {name} SET BACKFILL_RATE_LIMIT = DEFAULT")
            database.execute("WAIT")
        finally:
            ended.set()
            writer.join()
        assert rows(database, "SELECT count(*) FROM arrivals WHERE id <= 300") == [(300,)]
        for name, query in ALL.items():
            assert Counter(rows(database, f"SELECT * FROM {name}")) == Counter(rows(database, query)), name
        check_files(database)


def create_and_cancel(database: seiche.Engine) -> None:
    """Metadata and folder are as before, five times in a row."""
    before = remains(database)
    for _ in range(CANCELS):
        database.execute(f"CREATE MATERIALIZED VIEW passing AS {VIEWS['loads']}")
        (job,) = rows(database, "SHOW JOBS")
        database.execute(f"CANCEL JOB {job[0]}")
        assert rows(database, "SHOW JOBS") == []
        assert remains(database) == before, "something is left of a cancelled view"
    check_files(database)


def remains(database: seiche.Engine) -> tuple[object, ...]:
    """What the metadata database holds of views and their backfills."""
    stored = database.database.store.load()
    return (sorted(stored.catalog.by_id), stored.pins, stored.backfill, dict(stored.progress))


def insert(database: seiche.Engine, first: int, last: int) -> None:
    database.execute(f"INSERT INTO arrivals SELECT i, i % 5, i FROM generate_series({first}, {last}) AS g(i)")


def write(database: seiche.Engine, ended: threading.Event) -> None:
    """Rows come, change and go; those of the beginning stay."""
    session = database.session()
    number = 1000
    while not ended.wait(0.05):
        session.execute(f"INSERT INTO arrivals VALUES ({number}, {number % 5}, {number})")
        session.execute(f"UPDATE arrivals SET containers = containers + 2 WHERE id = {number - 3}")
        session.execute(f"DELETE FROM arrivals WHERE id = {number - 7} AND id >= 1000")
        number += 1


def tell(database: seiche.Engine) -> None:
    """Prints `under way` once every view has read something; then waits to be killed.

    None may be done by then: at one row a second there is history for ten minutes, and a start takes one at worst.
    """
    while True:
        told = [percent_of(str(row[2])) for row in rows(database, "SHOW JOBS")]
        assert len(told) == len(ALL) and None not in told, rows(database, "SHOW JOBS")
        if all(each is not None and each > 0 for each in told):
            print("under way", *told, flush=True)
            threading.Event().wait()
        time.sleep(0.1)


if __name__ == "__main__":
    {"begin": begin, "scale": scale, "finish": finish}[sys.argv[1]](Path(sys.argv[2]))
    print("done", flush=True)
