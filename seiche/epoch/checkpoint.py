"""What the coordinator asks of the world: a store that makes epochs durable, and commands that change the graph.

The store owns the one transaction of a checkpoint; the coordinator owns when it happens and who hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.model import Epoch


class CheckpointStore(Protocol):
    """Where epochs become durable."""

    def begin(self, barrier: Barrier) -> None:
        """Open a staging area for this epoch."""

    def commit(self, barrier: Barrier, parts: Sequence[object]) -> None:
        """Make durable, in one transaction, the parts of all barriers since the last checkpoint.

        After it returns, new readers see the epoch. A SeicheError means that nothing became durable, except
        CommitOutcomeUnknown; an error of any other type is taken for an unknown outcome too.
        """

    def discard(self) -> None:
        """Forget everything staged since the last checkpoint. May be called again after it raised."""

    def committed_epoch(self) -> Epoch:
        """The epoch of the last durable checkpoint, read from the durable state.

        Asked after a commit of unknown outcome, again and again until it answers. If that commit turns out to
        be durable, the store takes it from here on for returned: new readers see it, nothing of it is staged.
        """


@dataclass(frozen=True, slots=True)
class Effect:
    """What a command does once its checkpoint is durable: the graph from then on, its piece of the checkpoint,
    the caller's answer, and what to do in memory when the epoch is published."""

    graph: Graph
    part: object | None = None
    value: object = None
    on_publish: Callable[[], None] | None = None


class Command(Protocol):
    """A change of what exists or how it runs. Takes effect at a barrier, before the jobs run."""

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        """Raise to refuse: the command fails alone, so it must not have left anything staged or changed in memory.

        Only an InvariantError stops the epoch. `on_publish` must not fail: by then the epoch is durable.
        """
        ...
