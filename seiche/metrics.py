"""What a running database counts, and Prometheus' text form of it. Nothing but the standard library.

A registry holds families; a family has a kind, a name, what it means, and the names of its labels; a series is a family
with values for its labels. All of it is safe to use from several threads, and counting takes about a microsecond.

    counter     only grows               seiche_epochs_total{outcome="committed"} 12
    gauge       goes up and down         seiche_sessions 3
    histogram   how many up to a bound   seiche_epoch_seconds_bucket{part="run",le="0.1"} 9

`EngineMetrics` is every metric of the engine, once. What others know already is not counted a second time: such gauges
are set by a collector, just before they are shown.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from seiche.errors import InvariantError

# Bounds of the histograms, in seconds: from an epoch that changes a row to a step of a heavy backfill.
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricKind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(slots=True)
class _Spread:
    """The state of one histogram: observations by the first bound that holds them, and their sum."""

    counts: list[int]
    total: float = 0.0


Labels = tuple[str, ...]


class Family:
    """One metric. Label values are given by name, all of them, in any order."""

    def __init__(
        self, kind: MetricKind, name: str, meaning: str, labels: Labels = (), bounds: tuple[float, ...] = SECONDS
    ) -> None:
        self.kind, self.name, self.meaning, self.labels = kind, name, meaning, labels
        self._bounds = bounds
        self._lock = threading.Lock()
        self._values: dict[Labels, float] = {}
        self._spreads: dict[Labels, _Spread] = {}

    def add(self, amount: float = 1, **labels: str) -> None:
        """Counts. A counter never goes down."""
        if self.kind is MetricKind.HISTOGRAM or (self.kind is MetricKind.COUNTER and amount < 0):
            raise InvariantError(f"metric {self.name} is a {self.kind.value} and cannot be given {amount}")
        series = self._series(labels)
        with self._lock:
            self._values[series] = self._values.get(series, 0) + amount

    def set(self, value: float, **labels: str) -> None:
        if self.kind is not MetricKind.GAUGE:
            raise InvariantError(f"metric {self.name} is a {self.kind.value} and cannot be set")
        series = self._series(labels)
        with self._lock:
            self._values[series] = value

    def observe(self, value: float, **labels: str) -> None:
        if self.kind is not MetricKind.HISTOGRAM:
            raise InvariantError(f"metric {self.name} is a {self.kind.value} and observes nothing")
        series = self._series(labels)
        with self._lock:
            spread = self._spreads.setdefault(series, _Spread([0] * (len(self._bounds) + 1)))
            spread.counts[bisect_left(self._bounds, value)] += 1
            spread.total += value

    def value(self, **labels: str) -> float:
        """Of a counter or gauge; of a histogram the number of observations."""
        series = self._series(labels)
        with self._lock:
            if self.kind is MetricKind.HISTOGRAM:
                return sum(self._spreads[series].counts) if series in self._spreads else 0
            return self._values.get(series, 0)

    def sum(self, **labels: str) -> float:
        """Of all observations of a histogram."""
        series = self._series(labels)
        with self._lock:
            return self._spreads[series].total if series in self._spreads else 0.0

    def clear(self) -> None:
        """Forgets every series: before a collector says what there is now."""
        with self._lock:
            self._values.clear()
            self._spreads.clear()

    def keep(self, label: str, values: Collection[str]) -> None:
        """Forgets the series of everything else, such as of views that were dropped."""
        if label not in self.labels:
            return
        at = self.labels.index(label)
        with self._lock:
            for known in (self._values, self._spreads):
                for series in [each for each in known if each[at] not in values]:
                    del known[series]

    def lines(self) -> Iterator[str]:
        """Prometheus' text form."""
        with self._lock:
            values = sorted(self._values.items())
            spreads = sorted((series, list(each.counts), each.total) for series, each in self._spreads.items())
        yield f"# HELP {self.name} {_escaped(self.meaning)}"
        yield f"# TYPE {self.name} {self.kind.value}"
        if self.kind is not MetricKind.HISTOGRAM and not self.labels:
            values = values or [((), 0)]
        for series, value in values:
            yield f"{self.name}{self._shown(series)} {_number(value)}"
        for series, counts, total in spreads:
            seen = 0
            for bound, count in zip([*map(_number, self._bounds), "+Inf"], counts, strict=True):
                seen += count
                yield f"{self.name}_bucket{self._shown(series, le=bound)} {seen}"
            yield f"{self.name}_sum{self._shown(series)} {_number(total)}"
            yield f"{self.name}_count{self._shown(series)} {seen}"

    def _series(self, labels: Mapping[str, str]) -> Labels:
        if len(labels) != len(self.labels):
            raise InvariantError(f"metric {self.name} has the labels {self.labels}, not {tuple(labels)}")
        try:
            return tuple(labels[name] for name in self.labels)
        except KeyError:
            raise InvariantError(f"metric {self.name} has the labels {self.labels}, not {tuple(labels)}") from None

    def _shown(self, series: Labels, **more: str) -> str:
        pairs = [*zip(self.labels, series, strict=True), *more.items()]
        inside = ",".join(f'{name}="{_escaped(value, quotes=True)}"' for name, value in pairs)
        return f"{{{inside}}}" if inside else ""


class Registry:
    """All families of one database, in the order in which they were made."""

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        self._collectors: list[Callable[[], None]] = []

    def counter(self, name: str, meaning: str, *labels: str) -> Family:
        return self._made(Family(MetricKind.COUNTER, name, meaning, labels))

    def gauge(self, name: str, meaning: str, *labels: str) -> Family:
        return self._made(Family(MetricKind.GAUGE, name, meaning, labels))

    def histogram(self, name: str, meaning: str, *labels: str) -> Family:
        return self._made(Family(MetricKind.HISTOGRAM, name, meaning, labels))

    def families(self) -> tuple[Family, ...]:
        return tuple(self._families.values())

    def before_export(self, collector: Callable[[], None]) -> None:
        """Calls it each time before the metrics are shown."""
        self._collectors.append(collector)

    def text(self) -> str:
        """Everything, as Prometheus reads it."""
        for collector in self._collectors:
            collector()
        return "".join(f"{line}\n" for family in self.families() for line in family.lines())

    def _made(self, family: Family) -> Family:
        if family.name in self._families:
            raise InvariantError(f"metric {family.name} exists already")
        self._families[family.name] = family
        return family


@dataclass(frozen=True, slots=True)
class EngineMetrics:
    """Every metric of a database. Rows and seconds are counted since the process started."""

    registry: Registry = field(default_factory=Registry)
    epochs: Family = field(init=False)
    epoch_seconds: Family = field(init=False)
    committed_epoch: Family = field(init=False)
    view_rows: Family = field(init=False)
    expression_failures: Family = field(init=False)
    late_rows: Family = field(init=False)
    steps: Family = field(init=False)
    estimates: Family = field(init=False)
    backfill_rows: Family = field(init=False)
    backfill_upstream_rows: Family = field(init=False)
    backfill_step_seconds: Family = field(init=False)
    backfill_progress: Family = field(init=False)
    backfill_lag: Family = field(init=False)
    refresh_barrier_seconds: Family = field(init=False)
    refresh_inflight: Family = field(init=False)
    refresh_runs: Family = field(init=False)
    refresh_rows: Family = field(init=False)
    refresh_lag: Family = field(init=False)
    sessions: Family = field(init=False)
    statements: Family = field(init=False)
    statement_seconds: Family = field(init=False)

    def __post_init__(self) -> None:
        new = self.registry
        made = {
            "epochs": new.counter("seiche_epochs_total", "epochs by outcome: committed or failed", "outcome"),
            "epoch_seconds": new.histogram(
                "seiche_epoch_seconds", "time of an epoch by part: run, commit and total", "part"
            ),
            "committed_epoch": new.gauge("seiche_committed_epoch_seconds", "wall-clock time of the committed epoch"),
            "view_rows": new.counter("seiche_changed_rows_total", "rows that appeared or left", "relation"),
            "expression_failures": new.counter(
                "seiche_expression_failures_total", "rows for which an expression gave NULL since it failed", "relation"
            ),
            "late_rows": new.counter(
                "seiche_late_rows_total", "rows that were dropped since they came below the watermark", "relation"
            ),
            "steps": new.counter(
                "seiche_view_steps_total",
                "parts of views brought up to date, by the technique chosen",
                "relation",
                "technique",
            ),
            "estimates": new.gauge(
                "seiche_view_step_estimate_seconds",
                "time that a part of a view was last expected to take, by technique",
                "relation",
                "part",
                "technique",
            ),
            "backfill_rows": new.counter(
                "seiche_backfill_rows_total", "rows of history that a view in creation read", "relation"
            ),
            "backfill_upstream_rows": new.counter(
                "seiche_backfill_upstream_rows_total",
                "changes that came while history was read, by fate: passed, or dropped since their key is read later",
                "relation",
                "fate",
            ),
            "backfill_step_seconds": new.histogram(
                "seiche_backfill_step_seconds", "time of a step of a backfill, its commit included", "relation"
            ),
            "backfill_progress": new.gauge(
                "seiche_backfill_progress_percent", "how far the views in creation are", "relation"
            ),
            "backfill_lag": new.gauge(
                "seiche_backfill_lag_seconds", "how far a view in creation is behind the stream", "relation"
            ),
            "refresh_barrier_seconds": new.histogram(
                "seiche_batch_refresh_barrier_seconds", "time from one barrier of a run to the next", "relation"
            ),
            "refresh_inflight": new.gauge(
                "seiche_batch_refresh_inflight_barriers", "barriers of the run under way not committed yet", "relation"
            ),
            "refresh_runs": new.counter(
                "seiche_batch_refresh_runs_total", "runs by outcome: finished or failed", "relation", "outcome"
            ),
            "refresh_rows": new.counter("seiche_batch_refresh_rows_total", "rows that runs changed", "relation"),
            "refresh_lag": new.gauge(
                "seiche_batch_refresh_lag_seconds", "how far a view on a schedule is behind the stream", "relation"
            ),
            "sessions": new.gauge("seiche_sessions", "conversations that are open"),
            "statements": new.counter("seiche_statements_total", "statements by outcome: done or failed", "outcome"),
            "statement_seconds": new.histogram("seiche_statement_seconds", "time of statements until their answer"),
        }
        for name, family in made.items():
            object.__setattr__(self, name, family)

    def only(self, relations: Collection[str]) -> None:
        """Forgets relations that are no more."""
        for family in self.registry.families():
            family.keep("relation", relations)


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str, *, quotes: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quotes else text
