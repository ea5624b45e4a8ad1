"""Lets another process of this machine step back for this one, where both want the same cores.

Most epochs of few changes are computed in this process; a view that is being filled keeps every core busy in Spark's.
"""

from __future__ import annotations

import os
from pathlib import Path

LARGEST = 19


def step_back(process: int, by: int) -> None:
    """Gives all threads of a process, and those they will start, a niceness of `by` more than this thread's."""
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + by, LARGEST)
    seen: set[int] = set()
    while found := _threads(process) - seen:  # again, until no thread was started by one that was not seen yet
        seen |= found
        for thread in found:
            try:
                os.setpriority(os.PRIO_PROCESS, thread, niceness)
            except ProcessLookupError:
                continue  # it has ended


def _threads(process: int) -> set[int]:
    """The ids of a process's threads on Linux, which has a niceness for each; elsewhere there is one for all."""
    tasks = Path(f"/proc/{process}/task")
    return {int(each) for each in os.listdir(tasks)} if tasks.is_dir() else {process}
