"""What a running database tells about itself: its metrics filled in, and an overview for people.

Epochs are counted as they are reported. What is known elsewhere (jobs, sessions, lags) is looked up when somebody asks.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from seiche.catalog.objects import DEFAULT_DATABASE, DEFAULT_SCHEMA, ObjectKind, ObjectStatus
from seiche.epoch.report import CoordinatorState, EpochReport
from seiche.model import JobId, RelationId, physical_ms
from seiche.session.database import Database

RECENT_EPOCHS = 120

_SHOWN = (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW)


@dataclass(frozen=True, slots=True)
class RelationLine:
    name: str
    kind: str
    rows: int
    segments: int


@dataclass(frozen=True, slots=True)
class JobLine:
    id: int
    name: str
    what: str
    progress: str


@dataclass(frozen=True, slots=True)
class Overview:
    """The database at a glance. `epoch_seconds` are the last epochs' times, oldest first."""

    healthy: bool
    state: str
    paused: bool
    committed_epoch: int
    committed_ms: int
    last_error: str | None
    sessions: int
    relations: tuple[RelationLine, ...]
    jobs: tuple[JobLine, ...]
    epoch_seconds: tuple[float, ...]


@dataclass(slots=True)
class Observer:
    """Watches one database. Made once, before its coordinator starts; safe to use from several threads."""

    database: Database
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_EPOCHS))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.database.coordinator.add_listener(self.on_epoch)
        self.database.runtime.metrics.registry.before_export(self.collect)

    def on_epoch(self, report: EpochReport) -> None:
        metrics = self.database.runtime.metrics
        metrics.epochs.add(outcome="committed" if report.error is None else "failed")
        if report.error is not None:
            return
        for part, seconds in (("run", report.run_s), ("commit", report.commit_s), ("total", report.total_s)):
            metrics.epoch_seconds.observe(seconds, part=part)
        for job in report.jobs:
            if job.rows_out:
                metrics.view_rows.add(job.rows_out, relation=job.name)
        with self._lock:
            self._recent.append(report.total_s)

    def collect(self) -> None:
        """Sets the gauges that stand for something known elsewhere, and forgets what was dropped."""
        database = self.database
        metrics, catalog = database.runtime.metrics, database.catalog
        committed_ms = physical_ms(database.runtime.versions.committed_epoch)
        metrics.only({each.name for each in catalog.objects(*_SHOWN)})
        metrics.committed_epoch.set(committed_ms / 1000)
        metrics.sessions.set(len(database.sessions))
        for gauge in (metrics.backfill_progress, metrics.backfill_lag, metrics.refresh_lag):
            gauge.clear()
        for backfill in database.jobs.listed():
            told = backfill.progress
            metrics.backfill_progress.set(told.percent, relation=backfill.job.name)
            metrics.backfill_lag.set(told.lag_ms / 1000, relation=backfill.job.name)
        for fact in database.refreshes.facts():
            if fact.id in catalog.by_id:
                metrics.refresh_lag.set(fact.lag_ms / 1000, relation=catalog.get(fact.id).name)

    def metrics_text(self) -> str:
        return self.database.runtime.metrics.registry.text()

    def overview(self) -> Overview:
        database = self.database
        health = database.coordinator.health()
        with self._lock:
            recent = tuple(self._recent)
        return Overview(
            healthy=health.state is CoordinatorState.RUNNING,
            state=health.state.value,
            paused=health.paused,
            committed_epoch=health.committed_epoch,
            committed_ms=physical_ms(health.committed_epoch),
            last_error=str(health.last_error) if health.last_error is not None else None,
            sessions=len(database.sessions),
            relations=self._relations(),
            jobs=self._jobs(),
            epoch_seconds=recent,
        )

    def _relations(self) -> tuple[RelationLine, ...]:
        versions = self.database.runtime.versions
        lines = []
        for item in self.database.catalog.objects(*_SHOWN):
            if RelationId(item.id) not in versions or item.status is ObjectStatus.CREATING:
                continue
            version = versions.committed(RelationId(item.id))
            name = item.name if item.schema == DEFAULT_SCHEMA else f"{item.schema}.{item.name}"
            if item.database != DEFAULT_DATABASE:
                name = f"{item.database}.{item.schema}.{item.name}"
            lines.append(RelationLine(name, item.kind.value, version.rows_estimate, len(version.segments)))
        return tuple(sorted(lines, key=lambda line: (line.kind, line.name)))

    def _jobs(self) -> tuple[JobLine, ...]:
        database = self.database
        lines = [
            JobLine(each.job.id, each.job.name, "creation", database.jobs.progress(each.job.id) or "")
            for each in database.jobs.listed()
        ]
        for fact in database.refreshes.facts():
            if fact.id in database.catalog.by_id:
                name = database.catalog.get(fact.id).name
                lines.append(JobLine(JobId(fact.id), name, "batch refresh", f"{fact.state}, lag {fact.lag_ms} ms"))
        return tuple(lines)
