"""What is stored of a snapshot backfill, the pins it holds, and what it works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seiche.catalog.store import MetadataStore
from seiche.clock import Clock
from seiche.model import Epoch, JobId, Pin, RelationId
from seiche.storage.retention import Pins, Trash
from seiche.stream.load import StreamLoad
from seiche.stream.runtime import Runtime
from seiche.stream.view import ViewJob


@dataclass(frozen=True, slots=True)
class BackfillState:
    """What is stored of a backfill, the progress by vnode aside.

    `as_of` is the epoch that the view's stored rows stand for, once built; `stage` and `step` count what is done, and
    `begun` says whether the stage has a step already. `counts` has the rows of each vnode of the inputs read
    step by step.
    """

    pinned: Epoch
    as_of: Epoch | None = None
    stage: int = 0
    step: int = 0
    begun: bool = False
    counts: Mapping[RelationId, tuple[int, ...]] = field(default_factory=dict)
    rate: int | None = None
    order: tuple[tuple[RelationId, RelationId], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "version": 2,
            "kind": "snapshot",
            "pinned": self.pinned,
            "as_of": self.as_of,
            "stage": self.stage,
            "step": self.step,
            "begun": self.begun,
            "counts": {str(relation): list(counts) for relation, counts in self.counts.items()},
            "rate": self.rate,
            "order": [list(pair) for pair in self.order],
        }

    @staticmethod
    def from_json(data: Any) -> BackfillState:
        return BackfillState(
            Epoch(data["pinned"]),
            None if data["as_of"] is None else Epoch(data["as_of"]),
            data["stage"],
            data["step"],
            data["begun"],
            {RelationId(int(relation)): tuple(counts) for relation, counts in data["counts"].items()},
            data["rate"],
            tuple((RelationId(before), RelationId(after)) for before, after in data["order"]),
        )


def pin_holder(job: JobId) -> str:
    return f"backfill:{job}"


def pins_at(job: ViewJob, epoch: Epoch) -> tuple[Pin, ...]:
    """The pins that a backfill needs while it stands at `epoch`."""
    return tuple(Pin(pin_holder(job.id), relation, epoch) for relation in sorted(job.inputs))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a backfill works with."""

    runtime: Runtime
    store: MetadataStore
    pins: Pins
    trash: Trash
    clock: Clock
    load: StreamLoad
