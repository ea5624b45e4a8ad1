"""The process that is killed: opens the database, checks it against the journal, then writes until it dies.

    python -m tests.crash.worker FOLDER JOURNAL SEED [--check-only]

Prints `ready` when the check has passed. A contradiction ends it with exit code 3 and a trace on standard error.
"""

from __future__ import annotations

import dataclasses
import os
import random
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import seiche
from seiche.errors import SeicheError
from seiche.model import RelationId
from tests.crash.ledger import BERTHS, ROWS_PER_LANE, Intent, Journal, Ledger, ViewChange, Write
from tests.folders import relation_files
from tests.sparks import INTERPRETED

CONTRADICTION = 3

TABLES = {"arrivals": "id", "tides": "seq"}

# Small enough that every route is taken often: folds, joined segments, writing by executors.
SETTINGS = {
    "master": "local[2]",
    "driver_memory": "1g",
    "shuffle_partitions": 2,
    "barrier_interval_ms": 50,
    "fold_min_rows": 60,
    "fold_ratio": 0.1,
    "segments_max_per_relation": 3,
    "inline_rows_max": 200,
    "spark_conf": INTERPRETED,  # half of a life between two kills would go into compiling plans that run once
}

STANDING_VIEWS = {
    "berth_load": "SELECT b.name, count(*) AS ships, sum(a.containers) AS containers "
    "FROM arrivals a JOIN berths b ON a.berth = b.id GROUP BY b.name",
    "busy_berths": "SELECT name, ships FROM berth_load WHERE ships > 20",
    "high_tides": "SELECT seq, containers * 2 AS doubled FROM tides WHERE containers % 2 = 0",
}

PASSING_VIEWS = (
    "SELECT berth, min(containers) AS least, max(containers) AS most, count(*) AS n FROM arrivals GROUP BY berth",
    "SELECT a.id, t.seq FROM arrivals a JOIN tides t ON a.containers = t.containers WHERE a.id % 5 = 0",
    "SELECT DISTINCT containers FROM tides UNION ALL SELECT DISTINCT containers FROM arrivals",
    "SELECT berth, rank() OVER (ORDER BY count(*) DESC, berth) AS place FROM arrivals GROUP BY berth",
)

WRITERS = (1, 2, 3)
VIEW_LANE = 9


def main(arguments: list[str]) -> int:
    folder, journal_path, seed = Path(arguments[0]), Path(arguments[1]), arguments[2]
    ledger = Ledger.read(journal_path)
    with seiche.connect(folder, **SETTINGS) as database:
        journal = Journal(journal_path)
        try:
            build(database)
            check(database, ledger, journal)
        except AssertionError:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(CONTRADICTION)  # leave everything as it was found
        print(f"ready after {ledger.acknowledged} acknowledged statements", flush=True)
        if "--check-only" not in arguments:
            work(database, ledger, journal, seed)
    return 0


def build(database: seiche.Engine) -> None:
    database.execute("CREATE TABLE IF NOT EXISTS arrivals (id bigint PRIMARY KEY, berth int, containers int)")
    database.execute("CREATE TABLE IF NOT EXISTS tides (seq bigint, berth int, containers int)")
    database.execute("CREATE TABLE IF NOT EXISTS berths (id int PRIMARY KEY, name varchar)")
    if rows(database, "SELECT count(*) FROM berths") == [(0,)]:
        names = ", ".join(f"({number}, 'pier {number % 3}')" for number in range(BERTHS))
        database.execute(f"INSERT INTO berths VALUES {names}")
    for name, query in STANDING_VIEWS.items():
        database.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name} AS {query}")


# --- what must hold after every start --------------------------------------------------------------------


def check(database: seiche.Engine, ledger: Ledger, journal: Journal) -> None:
    assert database.committed_epoch >= ledger.epoch, "an acknowledged epoch is gone"
    database.execute("WAIT")  # views in creation come to their end
    listed = rows(database, "SHOW MATERIALIZED VIEWS")
    views = {row[0].removeprefix("public.") for row in listed} - STANDING_VIEWS.keys()
    found = {
        table: Counter((row[0], row[1]) for row in rows(database, f"SELECT {key}, containers FROM {table}"))
        for table, key in TABLES.items()
    }
    wrong = rows(database, f"SELECT id FROM arrivals WHERE berth <> id % {BERTHS}")
    assert not wrong, f"rows changed a column that no statement changes: {wrong[:3]}"
    for lane, happened in ledger.outcomes(found, views).items():
        journal.write(what="settled", lane=lane, happened=happened)
        ledger.settle(lane, happened=happened)
    for name, query in (STANDING_VIEWS | ledger.views).items():
        stored, recomputed = Counter(rows(database, f"SELECT * FROM {name}")), Counter(rows(database, query))
        assert stored == recomputed, (
            f"view {name} is not its query ({query}): missing {list((recomputed - stored).elements())[:3]}, "
            f"too many {list((stored - recomputed).elements())[:3]}"
        )
    check_files(database)


def rows(database: seiche.Engine, text: str) -> list[tuple[Any, ...]]:
    found = database.sql(text).rows
    assert found is not None
    return found


def check_files(database: seiche.Engine) -> None:
    """Every registered file is there, and no other.

    What readers still held is deleted within seconds, and Spark outlives a killed Python by as long: what it finished
    after this process's start is found by a later sweep.
    """
    deadline = time.monotonic() + 15
    while True:
        database.database.maintenance.settle()
        database.database.maintenance.sweep_late()
        needed, present = registered(database), stored_files(database)
        if needed == present or time.monotonic() > deadline:
            break
        time.sleep(0.3)
    assert not needed - present, f"registered files are missing: {sorted(needed - present)[:5]}"
    assert not present - needed, f"{len(present - needed)} orphan files: {sorted(present - needed)[:5]}"


def registered(database: seiche.Engine) -> set[str]:
    versions, bases = database.database.runtime.versions, database.database.maintenance._bases
    needed: set[str] = set()
    for each in versions.relations():
        relation = RelationId(each)
        needed.update(segment.path for segment in versions.segments(relation))
        needed.update(file.path for file in versions.committed(relation).base.files)
        needed.update(bases.referenced(relation))
    return needed


def stored_files(database: seiche.Engine) -> set[str]:
    return {name for name in relation_files(Path(database.config.data_dir)) if not name.endswith(".crc")}


# --- what goes on until the kill -------------------------------------------------------------------------


def work(database: seiche.Engine, ledger: Ledger, journal: Journal, seed: str) -> None:
    def lane(number: int, step: Callable[[seiche.Engine, Ledger, random.Random, int], Intent]) -> None:
        chance = random.Random(f"{seed}:{number}:{ledger.acknowledged}")
        session = database.session()
        try:
            while True:
                intent = step(database, ledger, chance, number)
                journal.write(what="intent", **dataclasses.asdict(intent))
                ledger.intend(intent)
                match intent:
                    case Write():
                        session.execute(intent.sql)
                    case ViewChange(verb="create"):
                        session.execute(f"SET background_ddl = {str(intent.background).lower()}")
                        session.execute(f"CREATE MATERIALIZED VIEW {intent.name} AS {intent.query}")
                    case ViewChange():
                        session.execute(f"DROP MATERIALIZED VIEW {intent.name}")
                journal.write(what="ack", lane=number, epoch=database.committed_epoch)
                ledger.acknowledge(number)
        except SeicheError:
            # No statement of a lane is wrong, so none may fail.
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(CONTRADICTION)

    threads = [threading.Thread(target=lane, args=(number, next_write), daemon=True) for number in WRITERS]
    threads.append(threading.Thread(target=lane, args=(VIEW_LANE, next_view_change), daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    raise AssertionError("a lane ended without an error")


def next_write(database: seiche.Engine, ledger: Ledger, chance: random.Random, lane: int) -> Write:
    table = "tides" if lane == WRITERS[-1] else "arrivals"
    mine = sorted(ledger.rows(lane, table))
    verb = chance.choices(("insert", "bulk", "update", "delete"), (5, 1, 2, 2))[0]
    value = chance.randrange(1000)
    if len(mine) > 1500:
        verb = "delete"
    if verb in ("insert", "bulk") or not mine:
        # A number is used once: ON CONFLICT would hide that a row was there twice.
        first = max(lane * ROWS_PER_LANE, ledger.highest.get(lane, 0) + 1)
        many = chance.randint(250, 400) if verb == "bulk" else chance.randint(1, 60)
        return Write(lane, table, "bulk" if verb == "bulk" else "insert", first, first + many - 1, value)
    first = chance.choice(mine)
    reach = 400 if verb == "delete" and len(mine) > 1000 else chance.randint(0, 40)
    return Write(lane, table, verb, first, first + reach, value)  # type: ignore[arg-type]


def next_view_change(database: seiche.Engine, ledger: Ledger, chance: random.Random, lane: int) -> ViewChange:
    existing = sorted(ledger.views)
    if existing and (len(existing) >= 2 or chance.random() < 0.4):
        name = chance.choice(existing)
        return ViewChange(lane, "drop", name, ledger.views[name])
    name = f"passing_{chance.getrandbits(32):08x}"
    return ViewChange(lane, "create", name, chance.choice(PASSING_VIEWS), background=chance.random() < 0.5)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
