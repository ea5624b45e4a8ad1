"""How far a job in creation is: one model for every kind of backfill, and the words that users see.

    Snapshot [41.20% (412/1000)]     history is read; rows read of rows to read
    LogStore [epoch lag 1200 ms]     what changed meanwhile is replayed
    Finishing [waiting for a barrier]

An input is read vnode by vnode in order, and within a vnode by the stream key. So how far it is read is one place: the
vnode, the last key read in it, and how many rows that was. It is stored as a row for each vnode that was touched.

Progress never goes backwards, and never says 100 % before the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from seiche.catalog.checkpoint import VnodeProgress
from seiche.errors import InvariantError
from seiche.model import VNODES, JobId, RelationId

NEARLY = 99.99  # percent shown until the very end
PAUSED = "paused: RESUME continues"

Position = tuple[str | None, ...]  # the values of a key as text, None for NULL


class Phase(Enum):
    SNAPSHOT = "Snapshot"
    LOG = "LogStore"
    FINISHING = "Finishing"
    DONE = "Done"


@dataclass(frozen=True, slots=True)
class InputProgress:
    """How far one input is read: all vnodes before `vnode`, and `rows` of that one, up to and including `position`."""

    relation: RelationId
    counts: tuple[int, ...]  # rows of each vnode in the snapshot
    vnode: int = 0
    position: Position | None = None
    rows: int = 0

    def __post_init__(self) -> None:
        if len(self.counts) != VNODES or not 0 <= self.vnode <= VNODES:
            raise InvariantError(f"progress of relation {self.relation} does not fit {VNODES} vnodes")

    @property
    def total(self) -> int:
        return sum(self.counts)

    @property
    def done(self) -> int:
        return sum(self.counts[: self.vnode]) + self.rows

    @property
    def finished(self) -> bool:
        return self.vnode == VNODES

    def passed(self, piece: Slice, last: Position | None, rows: int) -> InputProgress:
        """After a slice of `rows` rows was read. `last` is the last key of one that ends inside a vnode."""
        if piece.first != self.vnode or piece.after != self.position:
            raise InvariantError(f"relation {self.relation}: slice {piece} does not follow vnode {self.vnode}")
        if piece.limit is None or rows < piece.limit:
            return replace(self, vnode=piece.end, position=None, rows=0)
        return replace(self, position=last, rows=self.rows + rows)

    def stored(self, job: JobId, since: InputProgress | None = None) -> tuple[VnodeProgress, ...]:
        """The rows that a checkpoint stores; with `since` only those of vnodes touched since then."""
        first = since.vnode if since is not None else 0
        finished = [
            VnodeProgress(job, self.relation, vnode, None, self.counts[vnode], True)
            for vnode in range(first, self.vnode)
        ]
        if self.position is None:
            return tuple(finished)
        here = json.dumps(list(self.position)).encode()
        return (*finished, VnodeProgress(job, self.relation, self.vnode, here, self.rows, False))

    @staticmethod
    def restored(relation: RelationId, counts: Sequence[int], stored: Iterable[VnodeProgress]) -> InputProgress:
        """What `stored` gave. A vnode whose finished flag is set is not read again, whatever its position says."""
        mine = {each.vnode: each for each in stored if each.relation == relation}
        vnode = 0
        while vnode < VNODES and vnode in mine and mine[vnode].finished:
            vnode += 1
        progress = InputProgress(relation, tuple(counts), vnode)
        here = mine.get(vnode)
        if here is None or here.position is None:
            return progress
        return replace(progress, position=tuple(json.loads(here.position)), rows=here.rows)


@dataclass(frozen=True, slots=True)
class Slice:
    """What one step reads of an input: the vnodes [first, end), of the first one only keys behind `after`.

    With a `limit` it is one vnode, and at most so many of its rows in the order of the key.
    """

    first: int
    end: int
    after: Position | None
    limit: int | None
    rows: int  # that it is expected to have


def next_slice(progress: InputProgress, budget: int, *, cut_vnodes: bool = True) -> Slice | None:
    """The next slice of about `budget` rows, at least one vnode or row; None when nothing is left.

    Whole vnodes as long as they fit. Where not even one does it is cut by the key, if the key can be told as text.
    """
    if progress.finished:
        return None
    first, left = progress.vnode, progress.counts[progress.vnode] - progress.rows
    if left > max(budget, 1) and cut_vnodes:
        return Slice(first, first + 1, progress.position, max(budget, 1), max(budget, 1))
    end, rows = first + 1, left
    while end < VNODES and rows + progress.counts[end] <= budget:
        rows += progress.counts[end]
        end += 1
    while end < VNODES and progress.counts[end] == 0:
        end += 1
    return Slice(first, end, progress.position, None, rows)


def even(rows: int) -> tuple[int, ...]:
    """Rows by vnode where only their number is known."""
    return tuple(rows * (vnode + 1) // VNODES - rows * vnode // VNODES for vnode in range(VNODES))


class StepSizer:
    """How many rows a step should have for it to take a few seconds.

    A step that merges its rows into what is stored reads all of that, whatever its rows. Such steps may take half as
    long as all before them took together: then there are few of them, and a kill costs a third of the work at most.
    """

    FIRST_ROWS = 1_000_000  # for each core
    AT_ONCE_ROWS = 6_000_000  # for each core; most plans take a few seconds for so many
    LEAST_ROWS = 1_000
    TARGET_SECONDS = 3.0
    GROWTH_MAX = 4.0
    WORTH = 0.5  # of the best speed is what a step has to reach for its size to be worth it
    LAST_MAX = 1.5
    MERGING_SHARE = 0.5  # of the time of all merging steps is what the next one may take

    def __init__(self, rows: int | None = None, seconds: float | None = None, *, cores: int = 1) -> None:
        self.rows = self.FIRST_ROWS * cores if rows is None else rows
        self.at_once_rows = self.AT_ONCE_ROWS * cores
        self._seconds = self.TARGET_SECONDS if seconds is None else seconds
        self._best = (0.0, 0)  # rows a second of the step that had most, and its rows
        self._merging_seconds = 0.0

    def budget(self, left: int) -> int:
        """Rows of the next step: rather one that is a little longer than another short one."""
        return max(left, 1) if left <= self.rows * self.LAST_MAX else self.rows

    def took(self, rows: int, seconds: float, *, merges: bool = False) -> None:
        """Learns from a step. One that was cut short by a limit tells nothing about longer ones.

        Where smaller steps take nearly as long as larger ones, what they take has another cause than their rows; they
        grow again, rather than becoming ever more.
        """
        target = self._seconds
        if merges:
            self._merging_seconds += seconds
            target = max(target, self._merging_seconds * self.MERGING_SHARE)
        if rows < self.rows // 2:
            return
        seconds = max(seconds, 0.001)
        self._best = max(self._best, (rows / seconds, rows))
        rate, most = self._best
        if seconds > target and rows < most and rows / seconds < rate * self.WORTH:
            self.rows = most
            return
        factor = min(max(target / seconds, 1 / self.GROWTH_MAX), self.GROWTH_MAX)
        self.rows = max(int(self.rows * factor), self.LEAST_ROWS)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a user is told of a job in creation."""

    phase: Phase
    done: int = 0
    total: int = 0
    lag_ms: int = 0
    waits_for: str | None = None  # why it does not move: a limit of 0, a pause, a place in the queue

    def after(self, told: Progress | None) -> Progress:
        """What is told after `told`: of the same rows never fewer, also where a step failed and is run again."""
        if told is None or told.phase is not self.phase or told.total != self.total:
            return self
        return replace(self, done=max(self.done, told.done))

    @property
    def percent(self) -> float:
        match self.phase:
            case Phase.SNAPSHOT:
                return min(100 * self.done / self.total, NEARLY) if self.total else 0.0
            case Phase.LOG | Phase.FINISHING:
                return NEARLY
            case Phase.DONE:
                return 100.0

    def __str__(self) -> str:
        match self.phase:
            case Phase.SNAPSHOT:
                text = f"Snapshot [{self.percent:.2f}% ({self.done}/{self.total})]"
            case Phase.LOG:
                text = f"LogStore [epoch lag {self.lag_ms} ms]"
            case Phase.FINISHING:
                text = "Finishing [waiting for a barrier]"
            case Phase.DONE:
                text = "Done"
        return f"{text}, {self.waits_for}" if self.waits_for else text
