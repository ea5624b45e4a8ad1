"""Frames that are used again, and when they are not."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pyspark.sql import DataFrame
from sqlglot import parse_one

from seiche.catalog.catalog import Catalog
from seiche.model import EPOCH_ZERO, Base, Column, DataFile, Epoch, RelationId, RelationSchema, Segment
from seiche.session.plan_cache import LOG_ROW, ROWS_MAX, PlanCache
from seiche.sql.bind import BoundQuery, OutputColumn
from seiche.storage.versions import RelationVersion
from seiche.types import BIGINT, INTEGER, SqlType

SHIPS = RelationId(7)
SHAPE = RelationSchema((Column("id", INTEGER),), ("id",))


def bound(text: str, type_: SqlType = INTEGER) -> BoundQuery:
    return BoundQuery(cast(Any, parse_one(text)), (OutputColumn("id", "id", type_),), frozenset({7}), False, ())


def version(*paths: str, epoch: int = 9, folded: int = EPOCH_ZERO, rows: int = 0, log: int = 1) -> RelationVersion:
    """With so many rows in the base and in each segment."""
    segments = tuple(Segment(SHIPS, path, Epoch(8), Epoch(8), log, 1) for path in paths)
    files = (DataFile("base", rows, 1, 0, 255),) if rows else ()
    return RelationVersion(SHIPS, SHAPE, Epoch(epoch), Base(SHIPS, None, Epoch(folded), files), segments)


class Plans:
    """A cache over frames that are only told apart, never run."""

    def __init__(self, plans_max: int = 8) -> None:
        self.cache = PlanCache(plans_max)
        self.catalog = Catalog.default()

    def ask(self, query: BoundQuery, at: RelationVersion) -> DataFrame:
        return self.cache.frame(query, self.catalog, [at], lambda: cast(DataFrame, object()))


def test_the_same_question_over_the_same_files_gets_the_same_frame() -> None:
    plans = Plans()
    first = plans.ask(bound("SELECT id FROM r7"), version("a"))
    assert plans.ask(bound("SELECT id FROM r7"), version("a", epoch=10)) is first
    assert plans.cache.hits == 1


def test_frames_over_many_rows_are_not_kept_since_they_hold_memory() -> None:
    plans = Plans()
    long_log = version("a", log=ROWS_MAX // LOG_ROW + 1)
    large = version("a", rows=ROWS_MAX)
    for at in (long_log, large):
        assert plans.ask(bound("SELECT id FROM r7"), at) is not plans.ask(bound("SELECT id FROM r7"), at)
    assert len(plans.cache) == 0


def test_the_oldest_frames_make_room_for_one_over_many_rows() -> None:
    plans = Plans()
    queries = [bound(f"SELECT id FROM r7 WHERE id = {number}") for number in range(4)]
    at = version("a", rows=ROWS_MAX // 2 - LOG_ROW)
    for query in queries:
        plans.ask(query, at)
    assert len(plans.cache) == 2
    hits = plans.cache.hits
    plans.ask(queries[3], at)
    assert plans.cache.hits == hits + 1


@pytest.mark.parametrize(
    ("query", "at"),
    [
        (bound("SELECT id FROM r7 WHERE id = 1"), version("a")),
        (bound("SELECT id FROM r7", BIGINT), version("a")),
        (bound("SELECT id FROM r7"), version("a", "b")),
        (bound("SELECT id FROM r7"), version("a", folded=3)),
    ],
)
def test_another_question_or_other_files_get_another_frame(query: BoundQuery, at: RelationVersion) -> None:
    plans = Plans()
    first = plans.ask(bound("SELECT id FROM r7"), version("a"))
    assert plans.ask(query, at) is not first


def test_any_definition_starts_afresh() -> None:
    plans = Plans()
    first = plans.ask(bound("SELECT id FROM r7"), version("a"))
    plans.catalog = Catalog.default()
    assert plans.ask(bound("SELECT id FROM r7"), version("a")) is not first
    assert len(plans.cache) == 1


def test_a_frame_that_failed_is_not_used_again() -> None:
    plans = Plans()
    first = plans.ask(bound("SELECT id FROM r7"), version("a"))
    with pytest.raises(ValueError, match="no tide"), plans.cache.using(first):
        raise ValueError("no tide")
    assert plans.ask(bound("SELECT id FROM r7"), version("a")) is not first


def test_the_oldest_question_is_forgotten_first() -> None:
    plans = Plans(plans_max=2)
    first = plans.ask(bound("SELECT 1 FROM r7"), version("a"))
    plans.ask(bound("SELECT 2 FROM r7"), version("a"))
    assert plans.ask(bound("SELECT 1 FROM r7"), version("a")) is first
    plans.ask(bound("SELECT 3 FROM r7"), version("a"))
    assert plans.ask(bound("SELECT 1 FROM r7"), version("a")) is first
    assert len(plans.cache) == 2
