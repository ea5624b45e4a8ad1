"""The states of a batch refresh job, and what leads from one to another. No Spark, no clock, no storage.

    created ─▶ ConsumingSnapshot ─▶ FinishingSnapshot ─▶ Idle ◀──────────────────────┐
                                                          │ due, and there is a log  │ the stop barrier is committed
                                                          ▼                          │
                                          InitializingBatchRefresh ─▶ ConsumingLogStore

    dropped, from any of them ─▶ Resetting

The job's committed epoch is the epoch of its inputs that its rows stand for. While it is idle it holds nothing but a
pin on its inputs' change log at that epoch. A run replays the log after it, barrier by barrier; the last barrier stops
the run. What is durable is the committed epoch and the epoch of the snapshot, so a run that was cut short is an idle
job again whose next run goes on where the last committed barrier was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from seiche.epoch.barrier import BarrierKind
from seiche.errors import InvariantError
from seiche.model import Epoch, JobId, physical_ms

ROWS_PER_CHECKPOINT = 1_000_000


@dataclass(frozen=True, slots=True)
class LogEpoch:
    """An epoch in which an input changed, and how many changes its log holds for it."""

    epoch: Epoch
    rows: int


@dataclass(frozen=True, slots=True)
class RunBarrier:
    """A barrier of a run: the job's own, at an epoch that its inputs passed long ago."""

    epoch: Epoch
    previous: Epoch
    kind: BarrierKind
    stop: bool = False


@dataclass(frozen=True, slots=True)
class ConsumingSnapshot:
    """The inputs are read as of the snapshot epoch."""


@dataclass(frozen=True, slots=True)
class FinishingSnapshot:
    """All rows are there; the checkpoint that says so is not durable yet."""


@dataclass(frozen=True, slots=True)
class Idle:
    committed: Epoch


@dataclass(frozen=True, slots=True)
class InitializingBatchRefresh:
    """A run was decided; its plan is being made."""

    start: Epoch
    barriers: tuple[RunBarrier, ...]


@dataclass(frozen=True, slots=True)
class ConsumingLogStore:
    start: Epoch
    barriers: tuple[RunBarrier, ...]  # that are not committed yet

    @property
    def target(self) -> Epoch:
        return self.barriers[-1].epoch


@dataclass(frozen=True, slots=True)
class Resetting:
    """The job is being dropped."""


State: TypeAlias = (
    ConsumingSnapshot | FinishingSnapshot | Idle | InitializingBatchRefresh | ConsumingLogStore | Resetting
)


@dataclass(frozen=True, slots=True)
class BatchRefresh:
    """One job's state. Every method that leads on returns the next value and leaves this one as it is."""

    job: JobId
    snapshot_epoch: Epoch
    state: State

    @staticmethod
    def created(job: JobId, snapshot_epoch: Epoch) -> BatchRefresh:
        """`snapshot_epoch` is the epoch of the checkpoint that holds the creation, so the inputs have it too."""
        return BatchRefresh(job, snapshot_epoch, ConsumingSnapshot())

    @staticmethod
    def recovered(job: JobId, snapshot_epoch: Epoch, committed: Epoch | None) -> BatchRefresh:
        """From what is durable. Before the snapshot is finished there is no committed epoch that reaches it."""
        if committed is None or committed < snapshot_epoch:
            return BatchRefresh(job, snapshot_epoch, ConsumingSnapshot())
        return BatchRefresh(job, snapshot_epoch, Idle(committed))

    # --- what happens to it --------------------------------------------------------------------------

    def snapshot_read(self) -> BatchRefresh:
        """All slices of the snapshot are durable."""
        match self.state:
            case ConsumingSnapshot():
                return replace(self, state=FinishingSnapshot())
            case Resetting():
                return self
            case _:
                raise self._unexpected("the snapshot was read")

    def committed(self, epoch: Epoch) -> BatchRefresh:
        """The checkpoint of a barrier became durable."""
        match self.state:
            case FinishingSnapshot():
                if epoch != self.snapshot_epoch:
                    raise self._unexpected(f"epoch {epoch} was committed")
                return replace(self, state=Idle(epoch))
            case ConsumingLogStore(start, barriers):
                if epoch not in {barrier.epoch for barrier in barriers if barrier.kind is BarrierKind.CHECKPOINT}:
                    raise self._unexpected(f"epoch {epoch} was committed")
                left = tuple(barrier for barrier in barriers if barrier.epoch > epoch)
                return replace(self, state=ConsumingLogStore(start, left) if left else Idle(epoch))
            case Resetting():
                return self  # it was dropped while the transaction ran
            case _:
                raise self._unexpected(f"epoch {epoch} was committed")

    def caught_up(self, epoch: Epoch) -> BatchRefresh:
        """Nothing of its inputs changed up to `epoch`: an idle job stands for that epoch too."""
        match self.state:
            case Idle(committed):
                return replace(self, state=Idle(max(committed, epoch)))
            case _:
                return self

    def due(self, upstream_ms: int, interval_ms: int) -> bool:
        """Whether an idle job should run: its inputs are ahead by the interval."""
        match self.state:
            case Idle(committed):
                return upstream_ms - physical_ms(committed) >= interval_ms
            case _:
                return False

    def started(
        self, log: Sequence[LogEpoch], target: Epoch, rows_per_checkpoint: int = ROWS_PER_CHECKPOINT
    ) -> BatchRefresh | None:
        """A run up to `target`, the inputs' committed epoch; None to stay idle when there is nothing to replay."""
        match self.state:
            case Idle(committed):
                barriers = resolve(log, committed, target, rows_per_checkpoint)
                return replace(self, state=InitializingBatchRefresh(committed, barriers)) if barriers else None
            case _:
                raise self._unexpected("a run was started")

    def initialized(self) -> BatchRefresh:
        """The run's plan is there."""
        match self.state:
            case InitializingBatchRefresh(start, barriers):
                return replace(self, state=ConsumingLogStore(start, barriers))
            case Resetting():
                return self
            case _:
                raise self._unexpected("a run was initialized")

    def failed(self) -> BatchRefresh:
        """A run was cut short: it is idle again at what was committed of it."""
        match self.state:
            case InitializingBatchRefresh(start, _):
                return replace(self, state=Idle(start))
            case ConsumingLogStore(start, barriers):
                return replace(self, state=Idle(max(start, barriers[0].previous)))
            case _:
                return self

    def dropped(self) -> BatchRefresh:
        return replace(self, state=Resetting())

    # --- what it tells -------------------------------------------------------------------------------

    @property
    def pinned(self) -> Epoch | None:
        """The epoch from which on its inputs' change log is needed; None once it is dropped."""
        match self.state:
            case ConsumingSnapshot() | FinishingSnapshot():
                return self.snapshot_epoch
            case Idle(committed):
                return committed
            case InitializingBatchRefresh(start, _):
                return start
            case ConsumingLogStore(start, barriers):
                return max(start, barriers[0].previous)
            case Resetting():
                return None

    @property
    def readable(self) -> Epoch | None:
        """The epoch that its rows stand for; None before the first snapshot is finished."""
        match self.state:
            case ConsumingSnapshot() | FinishingSnapshot() | Resetting():
                return None
            case _:
                return self.pinned

    def progress(self, snapshot: str = "") -> str:
        """The words that users see; `snapshot` is how far the snapshot is."""
        match self.state:
            case ConsumingSnapshot():
                return f"BatchRefresh {snapshot}" if snapshot else "BatchRefresh Snapshot"
            case FinishingSnapshot():
                return "BatchRefresh Stopping"
            case Idle():
                return "BatchRefresh Idle"
            case InitializingBatchRefresh():
                return "BatchRefresh Initializing"
            case ConsumingLogStore(barriers=barriers):
                return f"BatchRefresh LogStore [{len(barriers)} barrier{'s' if len(barriers) > 1 else ''} left]"
            case Resetting():
                return "BatchRefresh Resetting"

    def _unexpected(self, what: str) -> InvariantError:
        return InvariantError(f"batch refresh job {self.job}: {what} while it is {type(self.state).__name__}")


def resolve(
    log: Sequence[LogEpoch], committed: Epoch, target: Epoch, rows_per_checkpoint: int = ROWS_PER_CHECKPOINT
) -> tuple[RunBarrier, ...]:
    """The barriers of a run: one for each epoch after `committed` in which an input changed, the last one stops.

    Every so many rows one of them is a checkpoint, so that a kill costs a part of the run only. Epochs beyond
    `target` are not the inputs' committed past yet and wait for the next run; none left gives no barriers.
    """
    rows: dict[Epoch, int] = {}
    for each in log:
        if committed < each.epoch <= target:
            rows[each.epoch] = rows.get(each.epoch, 0) + each.rows
    barriers: list[RunBarrier] = []
    previous, gathered = committed, 0
    for epoch in sorted(rows):
        gathered += rows[epoch]
        full = gathered >= rows_per_checkpoint
        barriers.append(RunBarrier(epoch, previous, BarrierKind.CHECKPOINT if full else BarrierKind.BARRIER))
        previous, gathered = epoch, 0 if full else gathered
    if barriers:
        # The stop barrier stands for the target: nothing changed between the last change and it.
        last = barriers.pop()
        barriers.append(RunBarrier(target, last.previous, BarrierKind.CHECKPOINT, stop=True))
    return tuple(barriers)
