"""Scenes that need a process of their own, each a function that runs in it and raises when a promise is broken.

python -m tests.crash.scenarios SCENE FOLDER
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import seiche
from seiche.errors import DiskFull, JobFailed, SeicheError
from tests.crash.worker import SETTINGS, check_files, rows
from tests.sparks import INTERPRETED

LOAD = "SELECT berth, count(*) AS ships, sum(containers) AS containers FROM arrivals GROUP BY berth"
BALLAST = "ballast"


def hold(folder: Path) -> None:
    """Keeps the database open until somebody kills it."""
    with seiche.connect(folder, **SETTINGS) as database:
        database.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar)")
        database.execute("INSERT INTO ships VALUES (1, 'Aurora')")
        print("holding", flush=True)
        threading.Event().wait()


def take_over(folder: Path) -> None:
    """Opens a database whose last process was killed."""
    with seiche.connect(folder, **SETTINGS) as database:
        assert rows(database, "SELECT * FROM ships") == [(1, "Aurora")]
        database.execute("INSERT INTO ships VALUES (2, 'Borealis')")


def sleep(folder: Path) -> None:
    """Spark's process is stopped for longer than Spark waits for a sign of life, and goes on."""
    hasty = {
        "spark.executor.heartbeatInterval": "100ms",
        "spark.network.timeout": "3s",
        "spark.network.timeoutInterval": "100ms",
    }
    settings = SETTINGS | {"spark_conf": INTERPRETED | hasty}
    with seiche.connect(folder, **settings) as database:
        database.execute("CREATE TABLE arrivals (id bigint PRIMARY KEY, berth int, containers int)")
        database.execute("INSERT INTO arrivals SELECT i, i % 5, i FROM generate_series(1, 100) AS g(i)")
        java = int(database.spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
        for _ in range(4):  # it is a matter of chance whether Spark looks before or after the first new sign
            os.kill(java, signal.SIGSTOP)
            time.sleep(8)
            os.kill(java, signal.SIGCONT)
            time.sleep(1)
        database.execute(f"CREATE MATERIALIZED VIEW berth_load AS {LOAD}")
        compare(database)


def full_disk(folder: Path) -> None:
    """The disk is full during epochs, on each route that rows take, and has room again."""
    data = folder / "data"
    with seiche.connect(data, **SETTINGS) as database:
        database.execute("CREATE TABLE arrivals (id bigint PRIMARY KEY, berth int, containers int, cargo varchar)")
        database.execute(f"CREATE MATERIALIZED VIEW berth_load AS {LOAD}")
        database.execute("INSERT INTO arrivals SELECT i, i % 5, i, 'tea' FROM generate_series(1, 100) AS g(i)")
        database.database.maintenance.settle()

        # A hundred rows go through the driver, ten thousand are written by executors.
        few = f"INSERT INTO arrivals VALUES {', '.join(incompressible(id) for id in range(1000, 1100))}"
        cargo = "repeat(md5(i::varchar), 100)"
        many = f"INSERT INTO arrivals SELECT i, i % 5, i, {cargo} FROM generate_series(1000, 11000) AS g(i)"
        for text in (few, many):
            before = rows(database, "SELECT * FROM arrivals")
            fill(folder)
            refused(database, text)
            # What is durable can still be read, and no half of the statement is to be seen.
            assert Counter(rows(database, "SELECT * FROM arrivals")) == Counter(before)
            compare(database)
            (folder / BALLAST).unlink()
            database.execute("INSERT INTO arrivals VALUES (500, 1, 1, 'coal')")
            assert rows(database, "SELECT cargo FROM arrivals WHERE id = 500") == [("coal",)]
            database.execute("DELETE FROM arrivals WHERE id = 500")
            compare(database)
            assert Counter(rows(database, "SELECT * FROM arrivals")) == Counter(before)

        database.execute("INSERT INTO arrivals VALUES (501, 2, 1, 'salt')")
    with seiche.connect(data, **SETTINGS) as database:
        assert rows(database, "SELECT count(*) FROM arrivals") == [(101,)]
        compare(database)
        check_files(database)


def incompressible(id: int) -> str:
    return f"({id}, {id % 5}, {id}, '{os.urandom(20_000).hex()}')"


def fill(folder: Path) -> None:
    """Leaves no room but a few blocks that files already own."""
    with (folder / BALLAST).open("wb", buffering=0) as ballast:
        for size in (1 << 20, 1 << 16, 1 << 12):
            try:
                while True:
                    ballast.write(bytes(size))
            except OSError:
                continue


def refused(database: seiche.Engine, text: str) -> None:
    try:
        database.execute(text)
    except SeicheError as error:
        cause = error.cause if isinstance(error, JobFailed) else error
        assert isinstance(cause, DiskFull), f"{type(cause).__name__}: {cause}"
        assert cause.retryable and cause.hint, cause
    else:
        raise AssertionError("the statement was acknowledged though nothing could be written")


def compare(database: seiche.Engine) -> None:
    assert Counter(rows(database, "SELECT * FROM berth_load")) == Counter(rows(database, LOAD))


SCENES = {"hold": hold, "take_over": take_over, "sleep": sleep, "full_disk": full_disk}

if __name__ == "__main__":
    SCENES[sys.argv[1]](Path(sys.argv[2]))
    print("held", flush=True)
