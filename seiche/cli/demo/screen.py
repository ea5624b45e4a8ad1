"""What a person sees of the demonstration: a live table on a terminal, plain lines elsewhere.

A screen is told what happens, how it ended, every epoch, and at last the verdicts. It decides how that looks, and
never what is true.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from seiche.cli.demo.process import EpochNews
from seiche.model import Epoch, physical_ms

BARS = "▁▂▃▄▅▆▇█"
CURVE = 20  # epochs in the little curve of a relation
LINE_SECONDS = 1.0  # between two lines about epochs where there is no terminal
WIDTH_MAX = 100


@dataclass(frozen=True, slots=True)
class ViewVerdict:
    """One view at the end: its rows, how it differs from its query, what maintaining and recomputing it took."""

    name: str
    rows: int
    missing: int
    extra: int
    incremental_s: float
    recomputed_s: float

    @property
    def equal(self) -> bool:
        return not self.missing and not self.extra

    @property
    def ratio(self) -> float:
        return self.recomputed_s / self.incremental_s if self.incremental_s > 0 else 0.0


@dataclass(slots=True)
class _Relation:
    """What is shown of a table or view while changes stream."""

    rows: int = 0
    seconds: float = 0.0
    total: int = 0
    epoch: int = 0
    curve: deque[float] = field(default_factory=lambda: deque(maxlen=CURVE))


class Screen:
    """Safe to tell from several threads."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._doing_since = self._started
        self._doing = ""
        self._relations: dict[str, _Relation] = {}
        self._views: tuple[str, ...] = ()
        self._last: EpochNews | None = None
        self._epochs = 0
        self._statements = self._rows = 0
        self._remaining: float | None = None
        self._line_at = 0.0

    # --- the story -----------------------------------------------------------------------------------

    def title(self, text: str) -> None:
        self._console.print(Text(text, style="bold"))

    def doing(self, what: str) -> None:
        """What happens from now on, until `done`."""
        self._doing, self._doing_since = what, time.monotonic()
        if self._console.is_terminal:
            self._console.print(Text(f"  … {what}", style="dim"), end="\r")

    def done(self, what: str, *, good: bool = True) -> None:
        """How that ended, with the time it took."""
        mark, style = ("✓", "green") if good else ("✗", "bold red")
        took = f"{time.monotonic() - self._doing_since:6.1f} s"
        line = Table.grid(expand=True, padding=(0, 1))
        line.add_column(width=1)
        line.add_column(ratio=1)
        line.add_column(justify="right", no_wrap=True)
        line.add_row(Text(mark, style=style), Text(what), Text(took, style="dim"))
        self._console.print(line, width=self._width)

    def streaming(self, relations: Sequence[str], views: Sequence[str]) -> None:
        """Names what `epoch` will tell about, tables first."""
        self._relations = {name: _Relation() for name in (*relations, *views)}
        self._views = tuple(views)

    @contextmanager
    def live(self, what: str) -> Iterator[None]:
        """While this is open, epochs are shown as they come."""
        self._doing, self._doing_since = what, time.monotonic()
        if not self._console.is_terminal:
            self._console.print(f"  {what}")
            self._line_at = time.monotonic()
            yield
            return
        with Live(self, console=self._console, refresh_per_second=8):
            yield

    def remaining(self, seconds: float | None) -> None:
        self._remaining = seconds

    def acknowledged(self, statements: int, rows: int) -> None:
        self._statements, self._rows = statements, rows

    def epoch(self, news: EpochNews) -> None:
        with self._lock:
            self._epochs += 1
            self._last = news
            for job in news.jobs:
                if job.name in self._relations:
                    relation = self._relations[job.name]
                    relation.rows, relation.seconds, relation.epoch = job.rows_out, job.seconds, self._epochs
                    relation.total += job.rows_out
                    relation.curve.append(job.seconds)
            due = not self._console.is_terminal and time.monotonic() - self._line_at >= LINE_SECONDS
            if due and self._relations and self._statements:
                self._line_at = time.monotonic()
                self._console.print(self._line(news), soft_wrap=True)

    def _line(self, news: EpochNews) -> str:
        told = [
            f"{job.name} {job.rows_out:,} in {job.seconds * 1000:,.0f} ms"
            for job in news.jobs
            if job.name in self._views and job.rows_out
        ]
        return f"    epoch {_clock(news.number)}, {news.seconds * 1000:,.0f} ms: {', '.join(told) or 'no view changed'}"

    # --- the live table ------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return min(self._console.width, WIDTH_MAX)

    def __rich__(self) -> RenderableType:
        with self._lock:
            return Group(self._header(), self._table())

    def _header(self) -> Text:
        parts = Text("  ", no_wrap=True, overflow="ellipsis")
        parts.append(self._doing, style="bold")
        if self._remaining is not None and self._remaining > 0:
            parts.append(f"  {self._remaining:.0f} s to go", style="dim")
        parts.append("\n  ")
        if self._last is not None:
            parts.append(f"epoch {_clock(self._last.number)}", style="cyan")
            parts.append(f"  {self._last.seconds * 1000:,.0f} ms", style="cyan")
        parts.append(f"  acknowledged: {self._statements:,} statements, {self._rows:,} rows", style="dim")
        return parts

    def _table(self) -> Table:
        table = Table(width=self._width, box=None, padding=(0, 1), header_style="dim", pad_edge=True)
        table.add_column("", no_wrap=True, ratio=3)
        table.add_column("rows changed", justify="right", no_wrap=True, ratio=2)
        table.add_column("ms", justify="right", no_wrap=True, ratio=1, min_width=6)
        table.add_column("in all", justify="right", no_wrap=True, ratio=2)
        table.add_column("ms, epoch by epoch", no_wrap=True, min_width=CURVE)
        highest = max((max(each.curve, default=0.0) for each in self._relations.values()), default=0.0)
        for name, relation in self._relations.items():
            is_view = name in self._views
            fresh = relation.epoch == self._epochs and relation.rows > 0
            style = "" if fresh else "dim"
            table.add_row(
                Text(f"{'view' if is_view else 'table'} {name}", style="bold" if is_view else ""),
                Text(f"{relation.rows:,}" if fresh else "–", style=style),
                Text(f"{relation.seconds * 1000:,.0f}" if fresh else "–", style=style),
                Text(f"{relation.total:,}", style="dim"),
                Text(_curve(relation.curve, highest), style="green" if is_view else "blue"),
            )
        return table

    # --- the end -------------------------------------------------------------------------------------

    def verdicts(self, verdicts: Sequence[ViewVerdict], changes: int) -> None:
        self._console.print()
        table = Table(
            width=self._width,
            box=None,
            padding=(0, 1),
            header_style="dim",
            title=f"Maintained (an epoch of {changes:,} changes) against recomputed and written by Spark",
            title_justify="left",
            title_style="bold",
        )
        table.add_column("view", no_wrap=True, ratio=2)
        for heading in ("rows", "equal", "maintained", "recomputed", "ratio"):
            table.add_column(heading, justify="right", no_wrap=True)
        for verdict in verdicts:
            equal = Text("✓ yes", style="green") if verdict.equal else Text("✗ no", style="bold red")
            table.add_row(
                Text(verdict.name, style="bold"),
                f"{verdict.rows:,}",
                equal,
                _milliseconds(verdict.incremental_s),
                _milliseconds(verdict.recomputed_s),
                f"{verdict.ratio:,.1f} x" if verdict.incremental_s else "–",
            )
        self._console.print(table)
        self._console.print()

    def note(self, text: str, *, good: bool | None = None) -> None:
        style = {None: "", True: "bold green", False: "bold red"}[good]
        self._console.print(Text(text, style=style), soft_wrap=True)

    @property
    def seconds(self) -> float:
        """Since the demonstration began."""
        return time.monotonic() - self._started


def screen_for(out: TextIO) -> Screen:
    return Screen(Console(file=out, highlight=False, emoji=False))


def _clock(epoch: int) -> str:
    """An epoch as the time of day that its number holds, readable where 18 digits are not."""
    ms = physical_ms(Epoch(epoch))
    return time.strftime("%H:%M:%S", time.localtime(ms / 1000)) + f".{ms % 1000:03d}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds else "–"


def _curve(values: Sequence[float] | deque[float], highest: float) -> str:
    if not highest:
        return ""
    return "".join(BARS[min(int(value / highest * len(BARS)), len(BARS) - 1)] for value in values)
