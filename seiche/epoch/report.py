"""What the coordinator tells onlookers: one report an epoch, and its health. Plain values, safe to keep."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import JobReport
from seiche.model import Epoch


@dataclass(frozen=True, slots=True)
class EpochReport:
    """One epoch, for metrics and the live display. `error` says why it was undone, with all since the last
    checkpoint."""

    barrier: Barrier
    run_s: float
    commit_s: float
    total_s: float
    requests: int
    commands: int
    jobs: tuple[JobReport, ...]
    error: Exception | None = None


class CoordinatorState(Enum):
    NEW = "new"
    RUNNING = "running"
    IN_DOUBT = "in doubt"  # a commit's outcome is unknown and storage does not answer yet
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Health:
    state: CoordinatorState
    paused: bool
    committed_epoch: Epoch
    waiting: int  # calls that no epoch has taken yet
    failures_in_a_row: int
    last_error: BaseException | None
