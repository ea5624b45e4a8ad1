"""A server under mixed work for a long time: statements of all kinds from many clients, and kills in between.

    python -m tests.crash.soak --minutes 30          (make soak)

Writers insert, update and delete rows of one table, each its own, and remember what was acknowledged. A definer creates
and drops views. Readers ask several views in one transaction and compare them. A visitor comes, asks for more than it
reads and hangs up. In the first half of the time the server is killed with -9 now and then; the second half is one
life, in which memory, threads and open files have to stay as they are. At the end every view equals its query, and the
table has exactly the rows that were acknowledged.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.servers import Connection, HarbourServer, below, running_server

WRITERS, READERS, DEFINERS, VISITORS = 3, 2, 1, 1
BERTHS = 20
VIEWS = {
    "by_berth": "SELECT berth, count(*) AS n, sum(tons) AS tons FROM moves GROUP BY berth",
    "heavy": "SELECT id, tons, name FROM moves JOIN berths USING (berth) WHERE tons > 50",
    "total": "SELECT count(*) AS n, sum(tons) AS tons FROM moves",
    "heaviest": "SELECT id, tons FROM moves ORDER BY tons DESC, id LIMIT 5",
}
STUCK_SECONDS = 300.0
# What may be after the warm-up, beyond what was then. A short run has no warm-up worth the name.
FILES_MORE, THREADS_MORE, RSS_MORE = 40, 25, 150 * 1024 * 1024
WATCHED_SECONDS = 120.0
# Pools of Spark that grow with the work at hand, up to a size, and shrink after it: their threads are not counted.
ELASTIC = ("broadcast-excha", "block-manager-")


class Wrong(AssertionError):
    """The server gave a wrong answer, or does not stay as it is."""


@dataclass(slots=True)
class Ledger:
    """What one writer knows of its rows. `unsure` was sent when the connection broke."""

    rows: dict[int, tuple[int, int]] = field(default_factory=dict)
    unsure: dict[int, tuple[int, int] | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    files: int
    threads: int
    rss: int

    @staticmethod
    def of(pid: int) -> Sample:
        """The server's process and the Java below it."""
        pids = [pid, *below(pid)]
        files = sum(len(os.listdir(f"/proc/{each}/fd")) for each in pids)
        threads = sum(not name.startswith(ELASTIC) for each in pids for name in _threads(each))
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])  # Java's heap has a limit of its own
        return Sample(files, threads, pages * os.sysconf("SC_PAGE_SIZE"))


def _threads(pid: int) -> Iterator[str]:
    """The names of a process's threads. One that ends meanwhile has none."""
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError):
            yield Path(f"/proc/{pid}/task/{task}/comm").read_text()


class Soak:
    """`least` is how often each kind of client has to get its work done between kills."""

    def __init__(self, server: HarbourServer, seed: int, least: int = 5) -> None:
        self._server = server
        self._seed = seed
        self._least = least
        self._ending = threading.Event()
        self._up = threading.Event()
        self._up.set()
        self._problems: list[BaseException] = []
        self._ledgers = [Ledger() for _ in range(WRITERS)]
        self.done: Counter[str] = Counter()

    # --- the course of it --------------------------------------------------------------------------------

    def run(self, seconds: float, kills: int) -> None:
        """Raises Wrong, or whatever a client met that it should not have met. Takes longer where little gets done."""
        self._prepare()
        actors = [
            *((self._write, number) for number in range(WRITERS)),
            *((self._read, number) for number in range(READERS)),
            *((self._define, number) for number in range(DEFINERS)),
            *((self._visit, number) for number in range(VISITORS)),
        ]
        threads = [threading.Thread(target=self._act, args=(work, number), daemon=True) for work, number in actors]
        for thread in threads:
            thread.start()
        try:
            self._kill_for(seconds / 2, kills)
            if seconds / 2 >= WATCHED_SECONDS:
                self._watch_for(seconds / 2)
            else:
                self._pause(seconds / 2)
        finally:
            self._ending.set()
        deadline = time.monotonic() + STUCK_SECONDS
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        if self._problems:
            raise self._problems[0]
        stuck = [thread.name for thread in threads if thread.is_alive()]
        if stuck:
            raise Wrong(f"clients still wait: {stuck}")
        self._compare()

    def _prepare(self) -> None:
        with self._server.connect() as connection:
            connection.execute("CREATE TABLE berths (berth int PRIMARY KEY, name varchar)")
            connection.execute("CREATE TABLE moves (id bigint PRIMARY KEY, berth int, tons int)")
            connection.execute(f"INSERT INTO berths SELECT g, 'berth ' || g FROM generate_series(0, {BERTHS - 1}) g")
            for name, query in VIEWS.items():
                connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")

    def _kill_for(self, seconds: float, kills: int) -> None:
        chance = random.Random(self._seed)
        end = time.monotonic() + seconds
        for left in range(kills, 0, -1):
            share = max(end - time.monotonic(), 0.0) / left
            self._pause(share * chance.uniform(0.5, 1.0))
            self._up.clear()
            self._server.kill()
            self._server.start()
            self._up.set()
            self.done["kill"] += 1
            print(f"killed: {dict(self.done)}", flush=True)
        if time.monotonic() < end:
            self._pause(end - time.monotonic())

    def _watch_for(self, seconds: float) -> None:
        """One life: what a third of it has filled must be enough for the rest."""
        self._pause(seconds / 3)
        warm = self._highest(3)
        print(f"after the warm-up: {warm}", flush=True)
        end = time.monotonic() + seconds * 2 / 3
        while time.monotonic() < end and not self._problems:
            self._pause(min(30.0, max(end - time.monotonic(), 0.0)))
            print(f"{dict(self.done)} {Sample.of(self._server.pid)}", flush=True)
        last = self._highest(3)
        if last.files > warm.files + FILES_MORE or last.threads > warm.threads + THREADS_MORE:
            raise Wrong(f"open files or threads grow: {warm}, then {last}")
        if last.rss > warm.rss + RSS_MORE:
            raise Wrong(f"memory grows: {warm}, then {last}")

    def _highest(self, count: int) -> Sample:
        samples = []
        for _ in range(count):
            samples.append(Sample.of(self._server.pid))
            time.sleep(1.0)
        return Sample(
            max(each.files for each in samples),
            max(each.threads for each in samples),
            max(each.rss for each in samples),
        )

    def _pause(self, seconds: float) -> None:
        """That long, and until everybody has got something done."""
        started, before = time.monotonic(), Counter(self.done)
        while not self._problems:
            idle = [
                name for name in ("write", "read", "define", "visit") if self.done[name] < before[name] + self._least
            ]
            passed = time.monotonic() - started
            if passed >= seconds and not idle:
                return
            if passed >= seconds + STUCK_SECONDS:
                raise Wrong(f"for {passed:.0f} s too little was done by {idle}: {dict(self.done)}")
            time.sleep(0.1)

    # --- clients -----------------------------------------------------------------------------------------

    def _act(self, work: Callable[[Connection, int, random.Random], None], number: int) -> None:
        chance = random.Random(f"{self._seed} {work.__name__} {number}")
        while not self._ending.is_set():
            self._up.wait(60)
            try:
                with self._server.connect(connect_timeout=30) as connection:
                    while not self._ending.is_set():
                        work(connection, number, chance)
                        self.done[work.__name__.strip("_")] += 1
            except psycopg.OperationalError as error:
                if error.sqlstate is not None and error.sqlstate not in ("57P01", "57P03"):
                    self._problems.append(error)
                    return
                time.sleep(0.2)  # the server was killed
            except Exception as error:  # noqa: BLE001  whatever it is, the run has failed by it
                self._problems.append(error)
                return

    def _write(self, connection: Connection, number: int, chance: random.Random) -> None:
        ledger = self._ledgers[number]
        self._settle(connection, ledger)
        first = number * 10_000_000
        changes: dict[int, tuple[int, int] | None] = {}
        choice = chance.random()
        if choice < 0.5 or len(ledger.rows) < 20:
            for _ in range(chance.choice([1, 1, 5, 50])):
                changes[first + chance.randrange(1_000_000)] = (chance.randrange(BERTHS), chance.randrange(100))
            values = ", ".join(f"({id}, {row[0]}, {row[1]})" for id, row in changes.items() if row is not None)
            statement = f"INSERT INTO moves VALUES {values}"
        elif choice < 0.75:
            id = chance.choice(list(ledger.rows))
            tons = chance.randrange(100)
            changes[id] = (ledger.rows[id][0], tons)
            statement = f"UPDATE moves SET tons = {tons} WHERE id = {id}"
        else:
            gone = chance.sample(list(ledger.rows), chance.choice([1, 1, 10]))
            changes = dict.fromkeys(gone)
            statement = f"DELETE FROM moves WHERE id IN ({', '.join(map(str, gone))})"
        ledger.unsure = changes
        connection.execute(statement.encode())
        _apply(ledger, changes)

    def _settle(self, connection: Connection, ledger: Ledger) -> None:
        """Finds out whether the last statement, whose answer was lost, took effect: whole or not at all."""
        if not ledger.unsure:
            return
        ids = ", ".join(map(str, ledger.unsure))
        rows = connection.execute(f"SELECT id, berth, tons FROM moves WHERE id IN ({ids})".encode()).fetchall()
        found = {id: (berth, tons) for id, berth, tons in rows}
        before = {id: ledger.rows[id] for id in ledger.unsure if id in ledger.rows}
        after = {id: row for id, row in ledger.unsure.items() if row is not None}
        if found == after:
            _apply(ledger, ledger.unsure)
        elif found == before:
            ledger.unsure = {}
        else:
            raise Wrong(f"a statement took effect in part: {before} became {found}, not {after}")

    def _read(self, connection: Connection, number: int, chance: random.Random) -> None:
        with connection.transaction():
            total = connection.execute("SELECT n, tons FROM total").fetchone()
            grouped = connection.execute("SELECT sum(n), sum(tons) FROM by_berth").fetchone()
            counted = connection.execute("SELECT count(*), sum(tons) FROM moves").fetchone()
        if not total == counted or (grouped != counted and counted != (0, None)):
            raise Wrong(f"of one epoch: the total is {total}, by berth {grouped}, of the rows {counted}")

    def _define(self, connection: Connection, number: int, chance: random.Random) -> None:
        name = f"passing_{number}"
        connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {name}".encode())
        query = f"SELECT berth, max(tons) AS most FROM moves WHERE tons < {chance.randrange(100)} GROUP BY berth"
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())
        with connection.transaction():
            _same(connection, name, query)
        connection.execute(f"DROP MATERIALIZED VIEW {name}".encode())

    def _visit(self, connection: Connection, number: int, chance: random.Random) -> None:
        """Comes, asks for more than it reads, and leaves without a word, also in the middle of a COPY."""
        visitor = self._server.connect()
        if chance.random() < 0.5:
            visitor.pgconn.send_query(b"SELECT * FROM generate_series(1, 200000)")
        else:
            visitor.pgconn.send_query(b"COPY moves FROM STDIN")
            visitor.pgconn.flush()
        time.sleep(chance.random())
        visitor.pgconn.finish()
        try:
            connection.execute("SELECT * FROM no_such_relation")
        except psycopg.errors.UndefinedTable:
            return
        raise Wrong("a relation that does not exist was read")

    # --- the end -----------------------------------------------------------------------------------------

    def _compare(self) -> None:
        with self._server.connect() as connection:
            for ledger in self._ledgers:
                self._settle(connection, ledger)
            found = {id: (berth, tons) for id, berth, tons in connection.execute("SELECT id, berth, tons FROM moves")}
            kept = {id: row for ledger in self._ledgers for id, row in ledger.rows.items()}
            if found != kept:
                raise Wrong(f"{len(found.items() ^ kept.items())} rows differ from what was acknowledged")
            for name, query in VIEWS.items():
                _same(connection, name, query)


def _apply(ledger: Ledger, changes: dict[int, tuple[int, int] | None]) -> None:
    for id, row in changes.items():
        if row is None:
            ledger.rows.pop(id, None)
        else:
            ledger.rows[id] = row
    ledger.unsure = {}


def _same(connection: Connection, view: str, query: str) -> None:
    rows = connection.execute(f"SELECT * FROM {view}".encode()).fetchall()
    expected = connection.execute(query.encode()).fetchall()
    if Counter(rows) != Counter(expected):
        raise Wrong(f"{view} has {len(rows)} rows, its query {len(expected)}, and they are not the same")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--kills", type=int, help="default: one in two minutes")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    arguments = parser.parse_args()
    kills = arguments.kills if arguments.kills is not None else max(int(arguments.minutes / 2), 1)
    print(f"seed {arguments.seed}, {arguments.minutes:g} minutes, {kills} kills", flush=True)
    with tempfile.TemporaryDirectory(prefix="seiche-soak-") as folder, running_server(Path(folder)) as server:
        soak = Soak(server, arguments.seed)
        try:
            soak.run(arguments.minutes * 60, kills)
        except BaseException:
            print(server.log.read_text()[-5000:], file=sys.stderr)
            raise
        print(f"ok: {dict(soak.done)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
