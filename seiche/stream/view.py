"""A materialized view as a job: its fragments, run in order at each barrier where an input changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seiche.catalog.checkpoint import Checkpoint, Event
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Changes as AnyChanges
from seiche.epoch.graph import Outcome, Request
from seiche.errors import InvariantError
from seiche.model import Epoch, JobId, RelationId, physical_ms
from seiche.plan.algebra import Recompute, Recursion, closes, follows_clock, temporal_filters
from seiche.plan.choice import Choice, choose
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes
from seiche.stream import fragment as fragments_
from seiche.stream.history import History, counts_of
from seiche.stream.runtime import Failures, Runtime
from seiche.stream.temporal import Crossing

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ViewJob:
    """Satisfies `seiche.epoch.graph.Job`."""

    id: JobId
    name: str
    fragments: tuple[Fragment, ...]
    runtime: Runtime

    @property
    def inputs(self) -> frozenset[RelationId]:
        """The relations of others that it reads."""
        return frozenset().union(*(each.inputs for each in self.fragments)) - self.outputs

    @property
    def outputs(self) -> frozenset[RelationId]:
        return frozenset(each.relation for each in self.fragments)

    @property
    def follows_clock(self) -> bool:
        return any(follows_clock(each.plan) for each in self.fragments)

    @property
    def closes(self) -> bool:
        """Whether rows come as a watermark moves."""
        return any(closes(each.plan) for each in self.fragments)

    def wants(self, barrier: Barrier) -> bool:
        """Whether the clock alone may change the view. A filter by the clock is asked without opening a file."""
        return any(self._is_due(each, barrier.previous, barrier.epoch, ask=False) for each in self.fragments)

    def _is_due(self, fragment: Fragment, before: Epoch, after: Epoch, *, ask: bool) -> bool:
        if isinstance(fragment.plan, Recompute | Recursion):
            return follows_clock(fragment.plan)
        times = physical_ms(before), physical_ms(after)
        return any(
            self.runtime.crossing(each, before, *times, ask=ask) is not Crossing.NONE
            for each in temporal_filters(fragment.plan)
        )

    def run(self, barrier: Barrier, inputs: Mapping[RelationId, AnyChanges], requests: Sequence[Request]) -> Outcome:
        if requests:
            raise InvariantError(f"view {self.name!r} was handed a statement")
        changes = {relation: each for relation, each in inputs.items() if isinstance(each, Changes)}
        failures = Failures()
        history = History(self.id, self.name, barrier.epoch)
        changed = self.advance(barrier.previous, barrier.epoch, changes, failures, history)
        part = Checkpoint(events=self.told(failures, barrier.epoch), refresh_history=history.entries)
        return Outcome(changes=changed, part=part, notes=history.notes)

    def told(self, failures: Failures, epoch: Epoch) -> tuple[Event, ...]:
        """The event that rows made expressions of the view fail, for whoever looks at rw_event_logs."""
        if not failures.rows:
            return ()
        self.runtime.metrics.expression_failures.add(failures.rows, relation=self.name)
        log.warning("view %s: expressions gave NULL for %d rows that they failed on", self.name, failures.rows)
        info = {"view": self.name, "id": self.id, "rows": failures.rows, "epoch": epoch}
        return (Event(physical_ms(epoch), "EXPRESSION_FAILED", info),)

    def _count(self, part: int, choice: Choice) -> None:
        metrics = self.runtime.metrics
        metrics.steps.add(relation=self.name, technique=choice.technique.value)
        for technique, ms in choice.estimates_ms.items():
            metrics.estimates.set(ms / 1000, relation=self.name, part=str(part), technique=technique.value)

    def advance(
        self,
        before: Epoch,
        after: Epoch,
        inputs: Mapping[RelationId, Changes],
        failures: Failures,
        history: History | None = None,
    ) -> dict[RelationId, Changes]:
        """Brings all fragments from one epoch to a later one, each by the technique that is cheapest for it.

        What changed is staged and returned; what was chosen is added to `history`.
        """
        known = dict(inputs)
        mine: dict[RelationId, Changes] = {}
        for number, each in enumerate(self.fragments, 1):
            relevant = {relation: known[relation] for relation in each.inputs if relation in known}
            if not relevant and not self._is_due(each, before, after, ask=True):
                continue
            counts = counts_of(each, self.runtime, before, after, relevant)
            choice = choose(each.plan, counts, self.runtime.costs)
            started = time.perf_counter()
            result = fragments_.step(each, self.runtime, before, after, relevant, failures, choice.technique)
            self._count(number, choice)
            if history is not None and (relevant or result is not None):
                rows = result.rows if result is not None else 0
                history.add(number, choice, counts, rows, time.perf_counter() - started)
            if result is not None:
                known[each.relation] = result
                mine[each.relation] = result
        return mine
