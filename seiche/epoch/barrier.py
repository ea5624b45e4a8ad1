"""The end of an epoch, as a value that the coordinator hands to storage and to every job."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from seiche.errors import InvariantError
from seiche.model import Epoch


class BarrierKind(Enum):
    INITIAL = "initial"  # the first after a start; durable
    BARRIER = "barrier"  # ends an epoch that waits for the next checkpoint to become durable
    CHECKPOINT = "checkpoint"  # makes its epoch durable, and all since the last checkpoint


@dataclass(frozen=True, slots=True)
class Barrier:
    """Ends `epoch`. `previous` is the epoch that jobs find in storage, durable or still staged.

    Durable epochs only grow. A process never uses a number for a second attempt; the process after a crash may
    use one that was never durable, and recovery has swept its files by then.
    """

    epoch: Epoch
    previous: Epoch
    kind: BarrierKind

    def __post_init__(self) -> None:
        if self.epoch <= self.previous:
            raise InvariantError(f"barrier of epoch {self.epoch} does not follow epoch {self.previous}")

    @property
    def is_checkpoint(self) -> bool:
        return self.kind is not BarrierKind.BARRIER
