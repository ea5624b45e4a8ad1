"""Nexmark's queries as views over tables with keys and over append-only tables, right after every kind of change.

SEICHE_TEST_NEXMARK_SCALE multiplies the number of events; SEICHE_TEST_WORKLOADS=all makes every view both ways.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from benchmarks.nexmark_data import SCHEMA, SIDE_INPUT, TURN, Generator, Stream
from benchmarks.nexmark_queries import QUERIES
from tests.workloads.workload import Delete, Insert, Update, Workload

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]

_SCALE = float(os.environ.get("SEICHE_TEST_NEXMARK_SCALE", "1"))
TURNS = int(40 * _SCALE)
STREAM = Stream(micros_per_event=20_000, lively_auctions=40, lively_persons=20)

# The windows of q12 are those in which the engine met the bids, so that its counts are checked over all windows.
VIEWS = QUERIES | {
    "q12": f"SELECT bidder, sum(bid_count)::bigint AS bid_count FROM ({QUERIES['q12']}) q GROUP BY bidder"
}

# Spark has no regexp_match, and windows of its own kind.
_HOPS = "window(date_time, '10 seconds', '2 seconds')"
_TUMBLES = "window(date_time, '10 seconds')"
_COUNTED = f"(SELECT auction, count(*) AS num, window.start AS starttime FROM bid GROUP BY auction, {_HOPS})"
_CHANNEL = "nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')"
IN_SPARK = {
    "q5": f"""
SELECT b.auction, b.num FROM {_COUNTED} b
JOIN (SELECT max(num) AS maxn, starttime FROM {_COUNTED} GROUP BY starttime) m
ON b.starttime = m.starttime AND b.num >= m.maxn""",
    "q7": f"""
SELECT b.auction, b.price, b.bidder, b.date_time FROM bid b
JOIN (SELECT max(price) AS maxprice, window.end AS date_time FROM bid GROUP BY {_TUMBLES}) m ON b.price = m.maxprice
WHERE b.date_time BETWEEN m.date_time - INTERVAL '10' SECOND AND m.date_time""",
    "q8": f"""
SELECT p.id, p.name, p.starttime
FROM (SELECT id, name, window.start AS starttime FROM person GROUP BY id, name, {_TUMBLES}) p
JOIN (SELECT seller, window.start AS starttime FROM auction GROUP BY seller, {_TUMBLES}) a
ON p.id = a.seller AND p.starttime = a.starttime""",
    "q11": """
SELECT bidder, count(*) AS bid_count, min(date_time) AS starttime, max(date_time) AS endtime FROM (
  SELECT bidder, date_time, sum(starts) OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM (
    SELECT bidder, date_time,
           CASE WHEN date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) <= INTERVAL '10' SECOND
                THEN 0 ELSE 1 END AS starts
    FROM bid) AS marked) AS numbered
GROUP BY bidder, session""",
    "q12": "SELECT bidder, count(*) AS bid_count FROM bid GROUP BY bidder",
    "q13": """
SELECT b.auction, b.bidder, b.price, b.date_time, s.value FROM bid b JOIN side_input s ON b.auction % 1000 = s.key""",
    "q21": f"""
SELECT auction, bidder, price, channel,
       CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
            ELSE {_CHANNEL} END AS channel_id
FROM bid WHERE {_CHANNEL} IS NOT NULL OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
}


def late_views(append_only: bool) -> dict[str, str]:
    """Those made after the data: all, or half of them over each kind of tables, to be done sooner."""
    if os.environ.get("SEICHE_TEST_WORKLOADS") == "all":
        return VIEWS
    return dict(list(VIEWS.items())[int(append_only) :: 2])


@pytest.fixture(scope="module", params=["keyed", "append only"])
def nexmark(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workload]:
    keyed = request.param == "keyed"
    schema = {
        name: f"({columns}, PRIMARY KEY (id))" if keyed and "id bigint" in columns else f"({columns})"
        for name, columns in SCHEMA.items()
    }
    if not keyed:
        schema = {name: f"{columns} APPEND ONLY" for name, columns in schema.items()}
    schema["side_input"] = f"({SIDE_INPUT})"
    workload = Workload(spark, tmp_path_factory.mktemp("nexmark") / "db", schema, append_only=not keyed)
    yield workload
    workload.close()


def test_generated_events_have_the_shares_of_the_benchmark_and_do_not_depend_on_batches(spark: SparkSession) -> None:
    events = Generator(spark.newSession(), STREAM)
    counts = {name: events.table(name, 0, 10 * TURN).toArrow().num_rows for name in SCHEMA}
    assert counts == {"person": 10, "auction": 30, "bid": 460}
    whole = events.table("bid", 0, 4 * TURN).toArrow()
    assert whole.slice(46).equals(events.table("bid", TURN, 4 * TURN).toArrow())
    times = whole["date_time"].to_pylist()
    assert times == sorted(set(times))


def test_views_made_before_and_after_the_events_equal_sparks_answer_through_changes(nexmark: Workload) -> None:
    events = Generator(nexmark.mirror.spark, STREAM)

    def frames(first: int, last: int) -> dict[str, object]:
        return {name: events.table(name, first * TURN, last * TURN).toArrow() for name in SCHEMA}

    nexmark.create_views("before", VIEWS, IN_SPARK)
    # Before the bids: those of q13 meet the side input as it is when they come.
    nexmark.load({"side_input": events.side_input(1000).toArrow()})
    nexmark.load(frames(0, TURNS))
    nexmark.create_views("after", late_views(nexmark.append_only), IN_SPARK)
    more = [Insert(name, rows) for name, rows in frames(TURNS, TURNS + TURNS // 4).items()]
    if nexmark.append_only:
        nexmark.change(more)
    else:
        nexmark.change(
            [
                *more,
                Update("bid", {"price": "price * 3", "bidder": "bidder + 1"}, "auction % 5 = 2"),
                Delete("bid", "bidder % 7 = 3"),
                Update("auction", {"category": "10", "seller": "seller + 1"}, "id % 3 = 0"),
                Delete("auction", "id % 11 = 5"),
                Update("person", {"state": "'OR'"}, "id % 4 = 1"),
                Delete("person", "id % 9 = 8"),
            ]
        )
    wrong, filled = nexmark.wrong_views()
    assert not wrong
    late = late_views(nexmark.append_only)
    assert filled == {f"before_{name}" for name in VIEWS} | {f"after_{name}" for name in late}
