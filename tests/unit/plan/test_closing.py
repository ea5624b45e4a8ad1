"""Where EMIT ON WINDOW CLOSE puts its watermark in a plan, and what bounds come to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from seiche.errors import FeatureNotSupported
from seiche.model import RelationId
from seiche.plan.algebra import (
    Aggregate,
    Closing,
    Keyed,
    Plan,
    Scan,
    Select,
    UnionAll,
    closes,
    is_append_only,
    scans,
)
from seiche.plan.closing import watermarks
from seiche.plan.fragments import cut
from seiche.plan.marks import Beyond, bound_sql, number_of
from tests.unit.plan.harbour import ARRIVALS, TIDES, WATERMARKS, Harbour, bounds_of

TIDES_MARK, ARRIVALS_MARK = WATERMARKS[TIDES], WATERMARKS[ARRIVALS]
MINUTE = 60_000_000
HOUR = 60 * MINUTE
NOON = 1_700_000_000_000_000 // (24 * HOUR) * 24 * HOUR + 12 * HOUR


def closings(plan: Plan) -> Iterator[Closing]:
    match plan:
        case Closing():
            yield plan
            yield from closings(plan.input)
        case Select() | UnionAll() | Keyed():
            for child in plan.inputs:
                yield from closings(child)
        case Aggregate():
            yield from closings(plan.input)


def closed(query: str) -> Plan:
    return Harbour().plan(f"{query} EMIT ON WINDOW CLOSE")


def value_of(closing: Closing, tides: int | None = None, arrivals: int | None = None) -> int | None:
    return number_of(closing.bound, {TIDES_MARK: tides, ARRIVALS_MARK: arrivals}.get)


def test_rows_pass_through_a_filter_on_the_relation_itself() -> None:
    plan = closed("SELECT height FROM tides WHERE high")
    (found,) = closings(plan)
    assert isinstance(found.input, Scan) and found.field == "at"
    assert value_of(found, NOON) == NOON
    assert value_of(found) is None
    assert is_append_only(plan) and closes(plan)
    assert TIDES_MARK in {scan.relation for scan in scans(plan)}


@pytest.mark.parametrize(
    ("source", "column", "now", "bound"),
    [
        ("tumble(tides, at, INTERVAL '1 hour')", "window_start", NOON + 59 * MINUTE, NOON),
        ("tumble(tides, at, INTERVAL '1 hour')", "window_end", NOON + 59 * MINUTE, NOON + HOUR),
        ("hop(tides, at, INTERVAL '30 minutes', INTERVAL '1 hour')", "window_start", NOON, NOON - HOUR // 2),
        ("hop(tides, at, INTERVAL '1 minute', INTERVAL '1 hour')", "window_end", NOON, NOON + MINUTE),
        ("tides", "at", NOON + 1, NOON + 1),
        ("tides", "date_trunc('hour', at)", NOON + MINUTE, NOON),
        ("tides", "at - INTERVAL '1 hour'", NOON, NOON - HOUR),
    ],
)
def test_groups_are_closed_where_the_watermark_has_left_their_window(
    source: str, column: str, now: int, bound: int
) -> None:
    plan = closed(f"SELECT {column} AS w, count(*) AS n FROM {source} GROUP BY {column}")
    assert isinstance(plan, Aggregate)
    (found,) = closings(plan.input)
    assert value_of(found, now) == bound


def test_a_bound_that_needs_a_calendar_is_left_to_spark() -> None:
    (found,) = closings(closed("SELECT date_trunc('month', at) AS m, count(*) FROM tides GROUP BY 1"))
    with pytest.raises(Beyond):
        value_of(found, NOON)
    assert f"TIMESTAMP_MICROS({NOON})" in bound_sql(found.bound, lambda _: NOON)


def test_groups_of_groups_are_closed_at_the_bottom() -> None:
    inner = "SELECT window_start, high, count(*) AS n FROM tumble(tides, at, INTERVAL '1 hour') GROUP BY 1, 2"
    plan = closed(f"SELECT window_start, max(n) AS most FROM ({inner}) x GROUP BY window_start")
    assert isinstance(plan, Aggregate)
    (found,) = closings(plan)
    assert all(not isinstance(each, Aggregate) for each in _below(found))


def test_a_join_is_as_late_as_its_later_side() -> None:
    plan = closed("SELECT a.ship, t.height, t.at FROM tides t JOIN arrivals a ON a.at = t.at")
    (found,) = closings(plan)
    assert found.field == "at"
    assert value_of(found, NOON, NOON - HOUR) == NOON - HOUR
    assert value_of(found, NOON) is None


def test_a_join_by_a_distance_in_time_waits_for_partners() -> None:
    plan = closed(
        "SELECT t.at, a.ship FROM tides t JOIN arrivals a ON a.at BETWEEN t.at AND t.at + INTERVAL '10 minutes'"
    )
    (found,) = closings(plan)
    assert value_of(found, NOON, NOON) == NOON - 10 * MINUTE


def test_a_left_join_by_the_watermarked_columns_is_closed_on_both_sides() -> None:
    plan = closed("SELECT a.ship, t.height, a.at FROM arrivals a LEFT JOIN tides t ON a.at = t.at")
    assert isinstance(plan, Keyed)
    sides = list(closings(plan))
    assert len(sides) == 2
    assert {value_of(each, NOON, NOON - HOUR) for each in sides} == {NOON - HOUR}


@pytest.mark.parametrize(
    ("query", "bound"),
    [
        ("FROM arrivals a LEFT JOIN tides t ON t.height = a.ship AND a.at >= t.at", NOON - HOUR),
        ("FROM tides t RIGHT JOIN arrivals a ON t.height = a.ship AND a.at >= t.at", NOON - HOUR),
        (
            (
                "FROM arrivals a WHERE NOT EXISTS (SELECT FROM tides t"
                " WHERE t.height = a.ship AND t.at BETWEEN a.at AND a.at + INTERVAL '1 minute')"
            ),
            NOON - HOUR - MINUTE,
        ),
    ],
)
def test_a_join_that_keeps_rows_alone_waits_for_the_partners_that_may_come(query: str, bound: int) -> None:
    plan = closed(f"SELECT a.ship, a.at {query}")
    (found,) = closings(plan)
    assert isinstance(found.input, Keyed) and found.field == "at"
    assert value_of(found, NOON - HOUR, NOON) == bound
    assert value_of(found, NOON + HOUR, NOON) == min(NOON, bound + 2 * HOUR)


def test_a_union_waits_for_all_of_its_branches() -> None:
    plan = closed("SELECT at FROM tides UNION ALL SELECT at::timestamptz FROM arrivals")
    (found,) = closings(plan)
    assert value_of(found, NOON, NOON + HOUR) == NOON


def test_partitions_by_a_window_are_evaluated_over_closed_rows() -> None:
    plan = closed(
        "SELECT window_start, height FROM (SELECT *, row_number() OVER (PARTITION BY window_start ORDER BY height) AS n"
        " FROM tumble(tides, at, INTERVAL '1 hour')) x WHERE n = 1"
    )
    assert isinstance(plan, Keyed)
    (found,) = closings(plan)
    assert found.field == "window_start"


def test_a_window_function_over_earlier_rows_is_final_at_once() -> None:
    plan = closed("SELECT at, rank() OVER (PARTITION BY high ORDER BY at) AS r FROM tides")
    assert isinstance(plan, Keyed)
    assert "_ahead" not in plan.body.sql("spark") and "_widest" not in plan.body.sql("spark")


def test_rows_whose_frame_is_not_complete_are_kept_back() -> None:
    plan = closed(
        "SELECT at, lead(height, 2) OVER (PARTITION BY high ORDER BY at) AS later,"
        " max(height) OVER (PARTITION BY high ORDER BY at ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS m FROM tides"
    )
    assert isinstance(plan, Keyed)
    assert "LEAD(TRUE, 2)" in plan.body.sql("spark")


def test_sessions_of_different_gaps_are_all_waited_for() -> None:
    plan = closed(
        "SELECT at, first_value(at) OVER (PARTITION BY high ORDER BY at SESSION WITH GAP INTERVAL '5 minutes') AS a,"
        " first_value(at) OVER (PARTITION BY high ORDER BY at SESSION WITH GAP INTERVAL '9 minutes') AS b FROM tides"
    )
    assert isinstance(plan, Keyed)
    text = plan.body.sql("spark")
    assert f"_widest > CAST({5 * MINUTE} AS BIGINT)" in text and f"_widest > CAST({9 * MINUTE} AS BIGINT)" in text


def test_gaps_are_filled_between_closed_rows() -> None:
    plan = closed("SELECT at, height FROM gap_fill(tides, at, INTERVAL '1 minute', PARTITION_BY(high))")
    (found,) = closings(plan)
    assert isinstance(found.input, Select | Scan) and found.field == "at"
    assert "_ahead" not in str(plan)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name FROM ships",
        "SELECT count(*) AS n FROM tides",
        "SELECT high, count(*) AS n FROM tides GROUP BY high",
        "SELECT at, height FROM tides ORDER BY at LIMIT 3",
        "SELECT at FROM tides WHERE at > now()",
        "SELECT t.at, s.name FROM tides t JOIN ships s ON s.draught < t.height",
        "SELECT t.at, s.name FROM tides t LEFT JOIN ships s ON s.draught = t.height",
        "SELECT t.at FROM tides t FULL JOIN arrivals a ON a.ship = t.height AND a.at < t.at",
        "SELECT t.at FROM arrivals a LEFT JOIN tides t ON a.ship = t.height AND a.at > t.at",
        "SELECT at, row_number() OVER (PARTITION BY high ORDER BY at DESC) AS n FROM tides",
        "SELECT at, row_number() OVER (PARTITION BY high ORDER BY height) AS n FROM tides",
        "SELECT at, ntile(2) OVER (PARTITION BY high ORDER BY at) AS n FROM tides",
        "SELECT at, sum(height) OVER (PARTITION BY high) AS n FROM tides",
        "SELECT 1 AS one",
    ],
)
def test_what_may_always_change_is_refused(query: str) -> None:
    with pytest.raises(FeatureNotSupported, match="cannot be emitted on window close") as refused:
        closed(query)
    assert refused.value.hint is not None


def test_every_closing_is_over_what_storage_holds() -> None:
    plan = closed("SELECT t.at, a.ship FROM tides t LEFT JOIN arrivals a ON a.at = t.at")
    numbers = iter(range(-2, -10, -1))
    fragments = cut(plan, RelationId(-1), lambda: RelationId(next(numbers)))
    assert {TIDES_MARK, ARRIVALS_MARK} <= fragments[-1].inputs


def test_a_temporal_join_keeps_what_it_saw_until_its_row_is_closed() -> None:
    plan = closed("SELECT at, s.name FROM arrivals LEFT JOIN ships FOR SYSTEM_TIME AS OF PROCTIME() s ON s.id = ship")
    assert isinstance(plan, Closing)
    assert watermarks(plan, bounds_of).keys() >= {"at"}


def _below(plan: Plan) -> list[Plan]:
    match plan:
        case Closing() | Aggregate():
            return [plan.input, *_below(plan.input)]
        case Select() | UnionAll() | Keyed():
            return [each for child in plan.inputs for each in (child, *_below(child))]
        case _:
            return []
