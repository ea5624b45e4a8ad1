"""The story of the demonstration, and its exit code.

start ─ fill ─ create views ─ stream ─ kill -9 ─ start again ─ stream ─ measure ─ compare ─ verdict
"""

from __future__ import annotations

import shutil
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from seiche.cli.demo.harbour import CHANGING_TABLES, MAIN_VIEW, TABLES, VIEWS, Statement, Traffic, first_load
from seiche.cli.demo.process import EngineProcess, EpochNews
from seiche.cli.demo.screen import Screen, ViewVerdict
from seiche.errors import EngineStopped

MEASURED_CHANGES = 1_000
MEASURED_EPOCHS = 5
PATIENCE_SECONDS = 60
EXIT_BROKEN = 1


class Demo:
    def __init__(self, screen: Screen, seconds: float, rows: int, *, keep: bool) -> None:
        self._screen = screen
        self._seconds = seconds
        self._rows = rows
        self._keep = keep
        self._traffic = Traffic(rows)
        self._failures: list[str] = []
        self._news: list[EpochNews] = []
        self._news_lock = threading.Lock()

    def run(self) -> int:
        """Returns the exit code. Folder and processes are gone afterwards, however it ends."""
        with _stopped_by_signals(), self._folder() as folder:
            self._home = folder
            self._engine = self._start()
            try:
                self._tell()
                self._engine.close()
            finally:
                self._engine.kill()
        return self._verdict()

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        folder = Path(tempfile.mkdtemp(prefix="seiche-demo-"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder / "scratch", ignore_errors=True)
            if self._keep:
                self._screen.note(f"The database stays in {folder / 'data'}. To look around:")
                self._screen.note(f"  seiche sql --data-dir {folder / 'data'}")
            else:
                shutil.rmtree(folder, ignore_errors=True)

    def _tell(self) -> None:
        screen = self._screen
        screen.title("Seiche: SQL views that stay up to date, on Apache Spark")
        screen.doing("starting the engine")
        self._engine.wait_until_ready()
        screen.done(f"engine started in process {self._engine.pid}, on an empty folder")
        self._fill()
        screen.streaming(CHANGING_TABLES, list(VIEWS))
        with screen.live("arrivals come, move and leave, ships change flag"):
            self._stream(self._seconds / 2, kill=True)
        self._start_again()
        with screen.live("the traffic goes on"):
            self._stream(self._seconds / 2, kill=False)
        self._check_rows()
        self._compare(self._measure())

    # --- steps ---------------------------------------------------------------------------------------

    def _start(self) -> EngineProcess:
        home = self._home
        return EngineProcess(home / "data", home / "scratch", home / "engine.log", self._on_epoch)

    def _on_epoch(self, news: EpochNews) -> None:
        with self._news_lock:
            self._news.append(news)
        self._screen.epoch(news)

    def _fill(self) -> None:
        screen, engine = self._screen, self._engine
        screen.doing(f"loading {self._rows:,} arrivals")
        for definition in TABLES.values():
            engine.query(definition)
        for statement in first_load(self._rows):
            engine.query(statement)
        screen.done(f"{len(TABLES)} tables filled, {self._rows:,} arrivals in one of them")
        screen.doing(f"creating {len(VIEWS)} materialized views")
        for name, query in VIEWS.items():
            engine.query(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        screen.done(f"{len(VIEWS)} materialized views created: {', '.join(VIEWS)}")

    def _stream(self, seconds: float, *, kill: bool) -> None:
        """Keeps one statement of each lane under way; at the end kills the engine, or waits for the answers.

        A kill waits until every lane has something to lose, as a slow machine needs longer for that. A lane that
        is not answered in all that time is a failed check.
        """
        started = time.monotonic()
        running: dict[Future[Any], Statement] = {}
        silent = set(Traffic.LANES)
        for lane in Traffic.LANES:
            self._send(running, self._traffic.next(lane))
        while running:
            left = seconds - (time.monotonic() - started)
            self._screen.remaining(left)
            if left <= 0 and kill and (not silent or left < -PATIENCE_SECONDS):
                break
            done, _ = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
            for future in done:
                statement = running.pop(future)
                self._acknowledge(future, statement)
                silent.discard(statement.lane)
                if left > 0 or kill:
                    self._send(running, self._traffic.next(statement.lane))
        self._screen.remaining(None)
        if silent:
            self._failures.append(f"no statement was acknowledged of: {', '.join(sorted(silent))}")
        if kill:
            self._kill(running)

    def _send(self, running: dict[Future[Any], Statement], statement: Statement) -> None:
        if statement.table:
            asked = self._engine.ask(statement.lane, do="insert", table=statement.table, rows=statement.rows)
        else:
            asked = self._engine.ask(statement.lane, do="query", sql=statement.sql)
        running[asked] = statement

    def _acknowledge(self, future: Future[Any], statement: Statement) -> None:
        future.result()
        self._traffic.acknowledged(statement)
        self._screen.acknowledged(self._traffic.acknowledged_statements, self._traffic.acknowledged_rows)

    def _kill(self, running: dict[Future[Any], Statement]) -> None:
        """Kills the engine with statements under way. What it had answered before it died counts."""
        self._engine.kill()
        wait(running)
        for future, statement in running.items():
            if not isinstance(future.exception(), EngineStopped):
                self._acknowledge(future, statement)

    def _start_again(self) -> None:
        screen, traffic = self._screen, self._traffic
        killed = self._engine.pid
        screen.doing("starting the engine again")
        self._engine = self._start()
        self._engine.wait_until_ready()
        screen.done(f"process {killed} killed with -9 among {len(traffic.interrupted)} statements, started again")
        screen.doing("looking for what was acknowledged")
        happened, undone = traffic.settle(self._engine.query)
        self._report(
            traffic.differences(self._engine.query),
            f"all {traffic.acknowledged_rows:,} acknowledged rows are there; of the interrupted statements "
            f"{happened} happened wholly and {undone} not at all",
        )

    def _check_rows(self) -> None:
        self._screen.doing("comparing the tables with what was acknowledged")
        self._report(
            self._traffic.differences(self._engine.query),
            f"all {self._traffic.acknowledged_rows:,} rows of {self._traffic.acknowledged_statements:,} acknowledged "
            "statements are there, and no other",
        )

    def _report(self, differences: list[str], fine: str) -> None:
        for difference in differences:
            self._failures.append(difference)
            self._screen.done(difference, good=False)
        if not differences:
            self._screen.done(fine)

    def _measure(self) -> dict[str, float]:
        """Seconds of each view in an epoch of its own, and of the whole epoch under the name of ''."""
        screen = self._screen
        screen.doing("measuring")
        taken: dict[str, list[float]] = {}
        for _ in range(MEASURED_EPOCHS):
            with self._news_lock:
                self._news.clear()
            statement = self._traffic.arrivals(MEASURED_CHANGES)
            running: dict[Future[Any], Statement] = {}
            self._send(running, statement)
            for future in wait(running).done:
                self._acknowledge(future, statement)
            with self._news_lock:
                epochs = [news for news in self._news if any(job.name == "arrivals" for job in news.jobs)]
            for news in epochs:
                taken.setdefault("", []).append(news.seconds)
                for job in news.jobs:
                    taken.setdefault(job.name, []).append(job.seconds)
        median = {name: statistics.median(seconds) for name, seconds in taken.items()}
        screen.done(
            f"epochs of {MEASURED_CHANGES:,} changes measured: {median.get('', 0.0) * 1000:,.0f} ms from the statement "
            "to durable, all views included"
        )
        return median

    def _compare(self, incremental: dict[str, float]) -> None:
        screen = self._screen
        screen.doing("recomputing every view with plain Spark")
        answers = self._engine.ask("check", do="recompute").result()
        verdicts = [
            ViewVerdict(name, told["rows"], told["missing"], told["extra"], incremental.get(name, 0.0), told["seconds"])
            for name, told in answers.items()
        ]
        wrong = [
            f"view {each.name} differs from its query: {each.missing:,} rows are missing, {each.extra:,} are too many"
            for each in verdicts
            if not each.equal
        ]
        self._report(wrong, f"each of the {len(verdicts)} views equals its query recomputed by Spark")
        screen.verdicts(verdicts, MEASURED_CHANGES)
        for each in verdicts:
            if each.name == MAIN_VIEW:
                kept, recomputed = f"{each.incremental_s:.2f} s", f"{each.recomputed_s:.2f} s"
                screen.note(f"Keeping {each.name} up to date took {kept}, recomputing it {recomputed}.")

    def _verdict(self) -> int:
        if self._failures:
            self._screen.note(f"{len(self._failures)} checks failed:", good=False)
            for failure in self._failures:
                self._screen.note(f"  {failure}")
            return EXIT_BROKEN
        self._screen.note(f"Everything held. {self._screen.seconds:.0f} s in all.", good=True)
        return 0


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Lets `kill` and a closed terminal end the demonstration as Ctrl-C does, so that it cleans up."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    old = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
