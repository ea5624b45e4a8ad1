"""Which rows cross a bound as the clock moves, told from memory where memory tells."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from sqlglot import exp

from seiche.model import Base, DataFile, Epoch, Segment
from seiche.plan.algebra import TemporalFilter, temporal_filters
from seiche.storage.changes import arrow_schema
from seiche.storage.versions import RelationVersion
from seiche.stream.temporal import MOMENTS_MAX, Asked, Crossing, Horizons, Moments, crossed, crossing_rows, micros
from tests.unit.plan.harbour import SCHEMAS, TIDES, Harbour

START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)
MINUTE_MS = 60_000


def filter_of(condition: str) -> TemporalFilter:
    (found,) = temporal_filters(Harbour().plan(f"SELECT height FROM tides WHERE {condition}"))
    return found


class Store:
    """A relation whose rows are at given minutes, each segment an epoch, and what was asked of it."""

    def __init__(self) -> None:
        self.base: list[int] = []
        self.fold_epoch = Epoch(0)
        self.tables: dict[str, pa.Table] = {}
        self.segments: list[Segment] = []
        self.asked = 0

    def add(self, *minutes: int) -> None:
        epoch = Epoch(len(self.segments) + 1)
        times = [START + timedelta(minutes=each) for each in minutes]
        rows = [
            {"at": at, "height": 1.0, "high": True, "_row_id": 1, "_vnode": 0, "_op": 1, "_epoch": epoch}
            for at in times
        ]
        path = f"segment-{epoch}"
        self.tables[path] = pa.Table.from_pylist(rows, arrow_schema(SCHEMAS[TIDES]))
        self.segments.append(Segment(TIDES, path, epoch, epoch, len(rows), 100))

    def fold(self) -> None:
        self.base += [
            int((at - START).total_seconds() // 60) for table in self.tables.values() for at in table["at"].to_pylist()
        ]
        self.fold_epoch = Epoch(len(self.segments))
        self.tables.clear()

    def version(self) -> RelationVersion:
        files = (DataFile("base", 1, 100, 0, 255),) if self.base else ()
        kept = tuple(each for each in self.segments if each.epoch_hi > self.fold_epoch)
        base = Base(TIDES, None, self.fold_epoch, files)
        return RelationVersion(TIDES, SCHEMAS[TIDES], Epoch(len(self.segments)), base, kept)

    def values(self, value: exp.Expr, low: int) -> Moments:
        self.asked += 1
        all_of = [START_MS * 1000 + minute * MINUTE_MS * 1000 for minute in self.base]
        for table in self.tables.values():
            all_of += micros(table["at"].combine_chunks()).tolist()
        return np.array(sorted(each for each in all_of if each >= low)[: MOMENTS_MAX + 1], np.int64)

    def sources(self) -> Asked:
        def moment(constant: str) -> int | None:
            raise AssertionError(f"{constant} has a fixed distance from the clock")

        return Asked(lambda segment: self.tables.get(segment.path), moment, lambda *_: None, self.values)


@pytest.fixture
def store() -> Store:
    return Store()


def crossing(store: Store, horizons: Horizons, plan: TemporalFilter, old: int, new: int) -> Crossing:
    times = START_MS + old * MINUTE_MS, START_MS + new * MINUTE_MS
    return horizons.crossing(plan, store.version(), *times, store.sources())


def test_rows_in_the_log_tell_by_themselves_when_they_cross(store: Store) -> None:
    horizons, plan = Horizons(), filter_of("at > now() - INTERVAL '1 hour'")
    store.add(0, 90)
    assert crossing(store, horizons, plan, 10, 59) is Crossing.NONE
    assert crossing(store, horizons, plan, 59, 60) is Crossing.FEW
    assert crossing(store, horizons, plan, 61, 149) is Crossing.NONE
    store.add(80)
    assert crossing(store, horizons, plan, 139, 141) is Crossing.FEW
    assert store.asked == 0


def test_a_base_is_asked_once_and_again_only_after_a_fold_of_rows_not_seen(store: Store) -> None:
    horizons, plan = Horizons(), filter_of("at <= now()")
    store.add(5, 50)
    store.fold()
    assert crossing(store, horizons, plan, 0, 4) is Crossing.NONE
    assert crossing(store, horizons, plan, 4, 5) is Crossing.FEW
    store.add(20)
    assert crossing(store, horizons, plan, 6, 19) is Crossing.NONE
    assert crossing(store, horizons, plan, 19, 21) is Crossing.FEW
    assert store.asked == 1
    store.fold()
    assert crossing(store, horizons, plan, 21, 22) is Crossing.NONE
    assert store.asked == 1
    store.add(30)
    store.fold()
    assert crossing(store, horizons, plan, 22, 29) is Crossing.NONE
    assert store.asked == 2


def test_what_memory_does_not_tell_counts_as_many_where_nothing_may_be_opened(store: Store) -> None:
    plan = filter_of("at <= now()")
    store.add(5)
    store.fold()
    asked = replace(store.sources(), values=None, greatest=None)
    times = START_MS, START_MS + MINUTE_MS
    assert Horizons().crossing(plan, store.version(), *times, asked) is Crossing.MANY


def test_more_rows_than_are_remembered_are_many(store: Store) -> None:
    horizons, plan = Horizons(), filter_of("at <= now()")
    store.base = [*range(MOMENTS_MAX), *([MOMENTS_MAX + 7] * 10)]
    assert crossing(store, horizons, plan, 0, MOMENTS_MAX + 50) is Crossing.MANY
    assert crossing(store, horizons, plan, 10, 20) is Crossing.FEW
    assert crossing(store, horizons, plan, MOMENTS_MAX, MOMENTS_MAX + 6) is Crossing.NONE


def test_a_clock_that_stands_still_moves_nothing(store: Store) -> None:
    store.add(1)
    assert crossing(store, Horizons(), filter_of("at <= now()"), 1, 1) is Crossing.NONE


def test_rows_are_looked_up_between_the_bounds_and_get_the_sign_of_their_way() -> None:
    plan = filter_of("at > now() - INTERVAL '1 second'")
    assert crossed(plan, 1000, 3000) == (
        "((`at`) >= least(TIMESTAMPADD(MICROSECOND, CAST(-1000000 AS BIGINT), TIMESTAMP_MILLIS(1000)),"
        " TIMESTAMPADD(MICROSECOND, CAST(-1000000 AS BIGINT), TIMESTAMP_MILLIS(3000))) AND (`at`) <= greatest("
        "TIMESTAMPADD(MICROSECOND, CAST(-1000000 AS BIGINT), TIMESTAMP_MILLIS(1000)),"
        " TIMESTAMPADD(MICROSECOND, CAST(-1000000 AS BIGINT), TIMESTAMP_MILLIS(3000))))"
    )
    assert "if(coalesce" in crossing_rows(plan, "rows", 1000, 3000)
