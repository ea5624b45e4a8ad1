"""`seiche jobs`, `pause` and `resume`: views in creation with their bars, and the whole database held still.

All of it is SQL to the server of the data folder, or to an engine of our own where none runs.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

WATCH_SECONDS = 1.0
BAR_CELLS = 24
NONE = "no job is running\n"
_PERCENT = re.compile(r"\[(\d+(?:\.\d+)?)%")
_WITHOUT_PERCENT = {"Waiting": 0.0, "LogStore": 99.99, "Finishing": 99.99, "Stopping": 99.99}
_UP = "\x1b[{}A"
_CLEAR_TO_END = "\x1b[J"


class Database(Protocol):
    """What these commands ask of an engine or a server."""

    def execute(self, text: str) -> Sequence[Any]: ...


@dataclass(frozen=True, slots=True)
class Job:
    id: int
    statement: str
    progress: str

    @property
    def percent(self) -> float | None:
        """None for one that failed."""
        found = _PERCENT.search(self.progress)
        if found:
            return float(found[1])
        phase = self.progress.removeprefix("BatchRefresh ").partition(" ")[0]
        return _WITHOUT_PERCENT.get(phase)


def running(database: Database) -> list[Job]:
    (result,) = database.execute("SHOW JOBS")
    return [Job(int(row[0]), " ".join(str(row[1]).split()), str(row[2])) for row in result.rows or ()]


def line(job: Job, width: int) -> str:
    """One job on one line: its bar, what is told of it, and as much of its statement as fits."""
    percent = job.percent
    done = 0 if percent is None else int(BAR_CELLS * percent / 100)
    bar = "!" * BAR_CELLS if percent is None else "#" * done + "." * (BAR_CELLS - done)
    text = f"{job.id:>6}  [{bar}]  {job.progress}  {job.statement}"
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def show(database: Database, out: TextIO) -> int:
    """The jobs as they are now."""
    if not _draw(running(database), out):
        out.write(NONE)
    return 0


def watch(database: Database, out: TextIO, *, sleep: Callable[[float], None] = time.sleep) -> int:
    """The jobs as they go on, until there is none. A terminal is redrawn; elsewhere what is new is a line."""
    live = out.isatty()
    drawn = 0
    told: dict[int, str] = {}
    while jobs := running(database):
        if live:
            out.write((_UP.format(drawn) if drawn else "") + "\r" + _CLEAR_TO_END)
            drawn = _draw(jobs, out)
        else:
            _draw([job for job in jobs if told.get(job.id) != job.progress], out)
            told = {job.id: job.progress for job in jobs}
        out.flush()
        sleep(WATCH_SECONDS)
    if live and drawn:
        out.write(_UP.format(drawn) + "\r" + _CLEAR_TO_END)
    out.write(NONE)
    return 0


def pause(database: Database, out: TextIO) -> int:
    database.execute("PAUSE")
    out.write("paused: nothing moves until `seiche resume`; queries go on\n")
    return 0


def resume(database: Database, out: TextIO) -> int:
    database.execute("RESUME")
    out.write("resumed\n")
    return 0


def _draw(jobs: Sequence[Job], out: TextIO) -> int:
    """Writes a line for each job; how many."""
    width = shutil.get_terminal_size((120, 24)).columns if out.isatty() else 10_000
    for job in jobs:
        out.write(line(job, width) + "\n")
    return len(jobs)
