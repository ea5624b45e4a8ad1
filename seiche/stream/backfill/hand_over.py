"""The command with which a view that has caught up beside the stream becomes a part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from seiche.catalog.checkpoint import Checkpoint
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Graph
from seiche.stream.backfill.snapshot import SnapshotBackfill
from seiche.stream.backfill.state import pin_holder
from seiche.stream.runtime import Runtime
from seiche.stream.view import ViewJob


@dataclass(frozen=True, slots=True)
class HandOver:
    """The command with which a caught-up view enters the main graph."""

    backfill: SnapshotBackfill
    runtime: Runtime
    publish: Callable[[Barrier], tuple[ViewJob, Checkpoint, Callable[[], None]]]  # the job as it is called by then

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        job = self.backfill.job
        try:
            self.backfill.replay(barrier.previous)
            current, part, on_publish = self.publish(barrier)
        except BaseException:
            self.runtime.writer.remove(self.runtime.versions.discard(job.outputs))
            raise
        # From here on what it staged belongs to the main graph's epoch, and so does undoing it.
        self.runtime.versions.set_independent(job.outputs, False)
        gone = Checkpoint(
            drop_pins=frozenset([pin_holder(job.id)]),
            put_progress={job.id: None},
            drop_backfill=frozenset([job.id]),
            events=self.backfill.told(),
        )
        return Effect(graph.with_job(current), part.merge(gone), None, on_publish)
