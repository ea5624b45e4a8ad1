"""Timing, and the words in which results are told."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: a ratio with the parts that it was made of."""

    letter: str
    what: str
    ratio: float
    unit: str
    goal: str
    held: bool
    parts: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = "; ".join(f"{name} {value}" for name, value in self.parts.items())
        mark = "held" if self.held else "MISSED"
        return f"({self.letter}) {self.what}: {self.ratio:.2f}{self.unit}   goal {self.goal}: {mark}\n    {parts}"


def median_seconds(work: Callable[[], object], *, warm: int, times: int) -> float:
    """The median of several runs, after some that do not count."""
    for _ in range(warm):
        work()
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def peak_mib(pid: int | str = "self") -> float:
    """The most memory that a process has held so far (Linux only)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def machine() -> str:
    cores = os.cpu_count()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cores} cores, {memory:.0f} GiB"
