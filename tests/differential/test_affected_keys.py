"""Operators that are maintained by affected keys, and what is built from them: checked after every statement.

Each harbour has several views of one kind over the same tables, so that one story of changes tries all of them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from tests.differential import domains
from tests.differential.harbour_tables import Write
from tests.differential.scenario import Port
from tests.differential.test_operators import ARRIVALS, BERTHS, LOGBOOK, TIDES, Quay, table

pytestmark = [pytest.mark.spark, pytest.mark.long]


def plan_of(quay: Quay, query: str) -> str:
    result = quay.harbour.db.execute(f"EXPLAIN CREATE MATERIALIZED VIEW planned AS {query}")[-1]
    return "\n".join(str(row[0]) for row in result.rows or [])


def play(quay: Quay, views: Sequence[str], *, incremental: bool = True) -> None:
    """Creates the views, half of them over rows that are there already, and changes everything in many ways."""
    for query in views if incremental else ():
        assert "recompute" not in plan_of(quay, query), query
    for number, query in enumerate(views[::2]):
        quay.view(f"early{number}", query)
    quay.insert("berths", (1, "north"), (2, "south"), (3, None), (5, "north"))
    quay.insert(
        "arrivals",
        (1, "Aurora", 1, 5),
        (2, "Borealis", 1, 50),
        (3, None, None, None),
        (4, "Aurora", 2, 5),
        (5, "Castor", 4, 7),
        (6, None, 2, 9),
    )
    quay.insert("logbook", ("Aurora", 5), ("Aurora", 5), (None, 3), ("Deneb", None), ("Castor", 8))
    for number, query in enumerate(views[1::2]):
        quay.view(f"late{number}", query)
    quay.harbour.write(quay._update("arrivals", "id", 1, "berth", 2))  # the key moves
    quay.update("arrivals", "id", 4, "berth", None)
    quay.write(quay._insert("berths", (4, "east")), quay._delete("arrivals", "id", 2))
    quay.harbour.fold(random.Random(1))
    quay.write(
        quay._insert("arrivals", (7, "Deneb", 4, 1), (8, "Aurora", 1, 5)),
        quay._update("berths", "berth", 2, "pier", "west"),
        quay._delete("logbook", "ship", "Aurora"),
    )
    quay.harbour.restart()
    quay.write(
        quay._update("arrivals", "berth", None, "berth", 3),
        quay._update("logbook", "ship", None, "ship", "Castor"),
        quay._delete("berths", "berth", 1),
    )
    quay.write(quay._delete("arrivals", "id", 7), quay._insert("logbook", (None, None), ("Aurora", 1)))
    quay.write(Write("arrivals", "DELETE FROM arrivals", []), quay._delete("berths", "berth", 4))


WINDOWS = [
    "SELECT id, berth, row_number() OVER (PARTITION BY berth ORDER BY tons, id) AS n FROM arrivals",
    (
        "SELECT * FROM (SELECT id, berth, tons, row_number() OVER (PARTITION BY berth ORDER BY tons DESC, id) AS n"
        " FROM arrivals) x WHERE n <= 2"
    ),
    (
        "SELECT id, sum(tons) OVER (PARTITION BY berth ORDER BY id) + 1 AS running,"
        " count(*) OVER (PARTITION BY ship) AS calls, lag(tons) OVER (PARTITION BY berth ORDER BY id) AS before"
        " FROM arrivals"
    ),
    (
        "SELECT berth, ship, sum(tons) AS tons, rank() OVER (PARTITION BY berth ORDER BY sum(tons) DESC) AS place"
        " FROM arrivals GROUP BY berth, ship"
    ),
    (
        "SELECT a.id, b.pier, max(a.tons) OVER (PARTITION BY b.pier) AS most FROM arrivals a JOIN berths b"
        " ON a.berth = b.berth"
    ),
    "SELECT DISTINCT ON (berth) berth, id, tons FROM arrivals ORDER BY berth, tons DESC, id",
    (
        "SELECT n, count(*) AS m FROM (SELECT dense_rank() OVER (PARTITION BY ship ORDER BY tons) AS n FROM logbook) x"
        " GROUP BY n"
    ),
    (
        "SELECT ship, tons, first_value(tons) OVER (PARTITION BY ship ORDER BY tons) AS low,"
        " avg(tons) OVER (PARTITION BY ship, tons) AS mean FROM logbook"
    ),
]


@pytest.mark.timeout(600)
def test_window_functions_follow_their_partitions(port: Port) -> None:
    play(Quay(port(), ARRIVALS, BERTHS, LOGBOOK), WINDOWS)


_STAYS = "SELECT a.id, a.ship, a.tons, b.berth, b.pier FROM arrivals a LEFT JOIN berths b ON a.berth = b.berth"
_PLACES = (
    "SELECT id, ship, berth, tons, rank() OVER (PARTITION BY berth ORDER BY tons DESC) AS place,"
    " count(*) OVER (PARTITION BY berth) AS calls FROM arrivals"
)
_CREWS = (
    "SELECT berth, string_agg(ship, ',' ORDER BY id) AS ships, max(tons) AS most, count(*) AS n"
    " FROM arrivals GROUP BY berth"
)
READ_TWICE = [
    f"WITH s AS ({_STAYS}) SELECT x.ship, y.tons FROM s x JOIN s y ON x.pier = y.pier AND x.id < y.id",
    f"WITH s AS ({_STAYS}) SELECT id, pier FROM s WHERE tons >= (SELECT avg(tons) FROM s) OR ship IS NULL",
    (
        "SELECT b.pier, count(*) AS n, count(DISTINCT a.ship) AS ships, max(a.tons) AS most"
        " FROM berths b LEFT JOIN arrivals a ON a.berth = b.berth GROUP BY b.pier"
    ),
    f"WITH p AS ({_PLACES}) SELECT x.id, y.tons FROM p x JOIN p y ON x.berth = y.berth AND y.place = x.place + 1",
    (
        f"WITH p AS ({_PLACES}) SELECT x.a, y.calls FROM (SELECT id, ship AS a, berth FROM p) x"
        " LEFT JOIN (SELECT id AS b, calls, berth FROM p) y ON x.berth = y.berth AND x.id > y.b"
    ),
    f"WITH p AS ({_PLACES}) SELECT ship FROM p UNION ALL SELECT ship || '!' FROM p",
    f"WITH c AS ({_CREWS}) SELECT x.ships, y.most, y.n FROM c x LEFT JOIN c y ON x.most = y.most AND x.n <= y.n",
    f"WITH c AS ({_CREWS}) SELECT ships FROM c WHERE n = (SELECT max(n) FROM c) ORDER BY ships LIMIT 2",
]


@pytest.mark.timeout(600)
def test_joins_windows_and_lists_that_are_read_twice_follow_their_rows(port: Port) -> None:
    play(Quay(port(), ARRIVALS, BERTHS, LOGBOOK), READ_TWICE)


AGGREGATES = [
    "SELECT berth, string_agg(ship, ',' ORDER BY id) AS ships FROM arrivals GROUP BY berth",
    "SELECT berth, array_agg(id ORDER BY id DESC) AS ids FROM arrivals GROUP BY berth HAVING count(*) > 1",
    "SELECT ship, percentile_cont(0.5) WITHIN GROUP (ORDER BY tons) AS middle FROM arrivals GROUP BY ship",
    "SELECT ship, count(DISTINCT berth) AS b, count(*) AS n, sum(DISTINCT tons) AS tons FROM arrivals GROUP BY ship",
    "SELECT count(DISTINCT ship) AS ships FROM logbook",
    "SELECT berth, count(DISTINCT ship) FILTER (WHERE tons > 5) AS n FROM arrivals GROUP BY berth",
    (
        "SELECT berth, count(DISTINCT ship) AS n, count(DISTINCT ship) FILTER (WHERE tons > 5) AS heavy,"
        " count(DISTINCT ship) FILTER (WHERE tons <= 5) AS light, sum(DISTINCT tons) AS tons,"
        " sum(DISTINCT tons) FILTER (WHERE ship IS NOT NULL) AS known FROM arrivals GROUP BY berth"
    ),
    "SELECT count(DISTINCT ship) AS n, count(DISTINCT ship) FILTER (WHERE tons > 5) AS heavy FROM arrivals",
    "SELECT ship, stddev(tons::double precision) AS spread FROM arrivals GROUP BY ship",
    "SELECT b.pier, bit_or(a.tons) AS bits FROM arrivals a JOIN berths b ON a.berth = b.berth GROUP BY b.pier",
    (
        "SELECT berth, ship, count(*) AS n, sum(tons) AS tons, grouping(ship) AS g FROM arrivals"
        " GROUP BY ROLLUP (berth, ship)"
    ),
    "SELECT berth, ship, count(*) AS n FROM arrivals GROUP BY CUBE (berth, ship) HAVING count(*) > 1",
    "SELECT ship, max(tons) AS most FROM logbook GROUP BY GROUPING SETS ((ship), ())",
    (
        "WITH calls AS (SELECT ship, berth, count(*) AS n, sum(tons) AS tons FROM arrivals GROUP BY ship, berth)"
        " SELECT a.ship, a.n, b.berth, b.tons FROM calls a JOIN calls b ON a.n = b.n"
        " WHERE a.n = (SELECT max(n) FROM calls)"
    ),
]


@pytest.mark.timeout(600)
def test_any_aggregate_follows_its_groups(port: Port) -> None:
    play(Quay(port(), ARRIVALS, BERTHS, LOGBOOK), AGGREGATES)


JOINS = [
    "SELECT a.id, b.pier FROM arrivals a LEFT JOIN berths b ON a.berth = b.berth",
    "SELECT a.id, b.berth, b.pier FROM arrivals a RIGHT JOIN berths b ON a.berth = b.berth AND a.tons > 5",
    "SELECT a.id, b.berth FROM arrivals a FULL JOIN berths b ON a.berth = b.berth",
    "SELECT a.ship, l.ship AS logged, l.tons FROM arrivals a FULL JOIN logbook l ON a.ship = l.ship",
    (
        "SELECT b.pier, count(a.id) AS n, sum(a.tons) AS tons FROM berths b LEFT JOIN arrivals a ON a.berth = b.berth"
        " GROUP BY b.pier"
    ),
    (
        "SELECT a.id, b.pier, l.tons FROM arrivals a LEFT JOIN berths b ON a.berth = b.berth"
        " LEFT JOIN logbook l ON l.ship = a.ship AND l.tons > 3 WHERE a.tons > 1"
    ),
    "SELECT a.id FROM arrivals a LEFT JOIN berths b ON a.berth = b.berth WHERE b.berth IS NULL",
    "SELECT a.id, l.tons FROM arrivals a LEFT JOIN logbook l ON l.ship IS NOT DISTINCT FROM a.ship",
    (
        "SELECT x.pier, y.n FROM berths x LEFT JOIN (SELECT berth, count(*) AS n FROM arrivals GROUP BY berth) y"
        " ON y.berth = x.berth"
    ),
    (
        "SELECT b.berth, b.pier, count(*) AS n, count(a.ship) AS ships, sum(a.tons) AS tons, max(a.tons * 2) AS most,"
        " bool_or(a.tons > 6) AS heavy FROM berths b LEFT JOIN arrivals a ON a.berth = b.berth GROUP BY b.berth, b.pier"
    ),
    (
        "SELECT n, count(*) AS berths FROM (SELECT b.berth, count(a.id) AS n FROM berths b LEFT JOIN arrivals a"
        " ON b.berth = a.berth AND a.tons > 5 GROUP BY b.berth) x GROUP BY n"
    ),
    "SELECT a.id, b.berth FROM arrivals a LEFT JOIN berths b ON a.tons < b.berth",
    "SELECT a.id, b.berth, b.pier FROM arrivals a FULL JOIN berths b ON a.tons < b.berth AND a.ship IS NOT NULL",
    "SELECT a.id, b.berth FROM arrivals a LEFT JOIN berths b ON a.tons > 5",
    "SELECT a.id, b.berth FROM arrivals a FULL JOIN berths b ON b.pier = 'north'",
    "SELECT a.id, x.n FROM arrivals a LEFT JOIN (SELECT ship, count(*) AS n FROM logbook GROUP BY ship) x ON true",
]


@pytest.mark.timeout(600)
def test_outer_joins_follow_both_sides(port: Port) -> None:
    play(Quay(port(), ARRIVALS, BERTHS, LOGBOOK), JOINS)


SUBQUERIES = [
    "SELECT id FROM arrivals WHERE berth IN (SELECT berth FROM berths WHERE pier = 'north')",
    "SELECT id FROM arrivals WHERE berth NOT IN (SELECT berth FROM berths)",
    "SELECT id FROM arrivals WHERE ship NOT IN (SELECT ship FROM logbook)",
    "SELECT id FROM arrivals WHERE ship NOT IN (SELECT ship FROM logbook WHERE ship IS NOT NULL)",
    (
        "SELECT berth FROM berths b WHERE EXISTS (SELECT 1 FROM arrivals a WHERE a.berth = b.berth AND a.tons > 5)"
        " AND NOT EXISTS (SELECT 1 FROM arrivals a WHERE a.berth = b.berth AND a.ship IS NULL)"
    ),
    "SELECT a.id FROM arrivals a WHERE EXISTS (SELECT 1 FROM arrivals o WHERE o.berth = a.berth AND o.id <> a.id)",
    "SELECT a.id FROM arrivals a WHERE a.tons NOT IN (SELECT l.tons FROM logbook l WHERE l.ship = a.ship)",
    (
        "SELECT a.id FROM arrivals a JOIN berths b ON a.berth = b.berth WHERE a.ship IN (SELECT ship FROM logbook"
        " GROUP BY ship HAVING count(*) > 1)"
    ),
    "SELECT count(*) AS n FROM arrivals a WHERE (a.berth, a.ship) IN (SELECT b.berth, 'Aurora'::varchar FROM berths b)",
    "SELECT id FROM arrivals WHERE EXISTS (SELECT 1 FROM logbook WHERE tons > 7)",
    "SELECT id FROM arrivals a WHERE tons > 40 OR EXISTS (SELECT 1 FROM logbook l WHERE l.ship = a.ship)",
    "SELECT id FROM arrivals WHERE tons > 40 OR berth IN (SELECT berth FROM berths WHERE pier = 'north')",
    "SELECT id, ship IN (SELECT ship FROM logbook) AS logged FROM arrivals",
    "SELECT a.id FROM arrivals a WHERE EXISTS (SELECT 1 FROM berths b WHERE b.berth > a.tons)",
]


@pytest.mark.timeout(600)
def test_conditions_with_subqueries_follow_what_they_look_in(port: Port) -> None:
    play(Quay(port(), ARRIVALS, BERTHS, LOGBOOK), SUBQUERIES)


VALUES = [
    "SELECT id, (SELECT max(tons) FROM logbook) AS most FROM arrivals",
    "SELECT id FROM arrivals WHERE tons > (SELECT avg(tons) FROM arrivals)",
    (
        "SELECT b.berth, (SELECT count(*) FROM arrivals a WHERE a.berth = b.berth) AS n,"
        " (SELECT sum(tons) FROM arrivals a WHERE a.berth = b.berth) AS tons FROM berths b"
    ),
    "SELECT a.id FROM arrivals a WHERE a.tons >= (SELECT max(o.tons) FROM arrivals o WHERE o.berth = a.berth)",
    "SELECT berth, sum(tons) AS tons FROM arrivals GROUP BY berth HAVING sum(tons) > (SELECT sum(tons) FROM logbook)",
    "SELECT a.id, (SELECT pier FROM berths b WHERE b.berth = a.berth) = 'north' AS north FROM arrivals a",
    (
        "SELECT b.berth, m.most, m.n FROM berths b, LATERAL (SELECT max(a.tons) AS most, count(*) AS n FROM arrivals a"
        " WHERE a.berth = b.berth) m"
    ),
    "SELECT b.pier, x.id FROM berths b, LATERAL (SELECT a.id FROM arrivals a WHERE a.berth = b.berth AND a.tons > 4) x",
    (
        "WITH busy AS (SELECT berth, count(*) AS n FROM arrivals GROUP BY berth)"
        " SELECT berth FROM busy WHERE n = (SELECT max(n) FROM busy)"
    ),
    (
        "SELECT a.id FROM arrivals a WHERE a.tons > 2 * (SELECT coalesce(sum(l.tons), 0) FROM logbook l"
        " WHERE l.ship = a.ship)"
    ),
]


@pytest.mark.timeout(600)
def test_subqueries_in_place_of_a_value_follow_it(port: Port) -> None:
    play(Quay(port(), ARRIVALS, BERTHS, LOGBOOK), VALUES)


SETS = [
    "SELECT ship FROM arrivals EXCEPT SELECT ship FROM logbook",
    "SELECT ship FROM arrivals INTERSECT SELECT ship FROM logbook",
    "SELECT ship, tons FROM arrivals EXCEPT ALL SELECT ship, tons FROM logbook",
    "SELECT ship FROM arrivals INTERSECT ALL SELECT ship FROM logbook",
    "SELECT ship FROM arrivals UNION SELECT ship FROM logbook ORDER BY ship LIMIT 2",
    "SELECT a.id, v.name FROM arrivals a JOIN (VALUES (1, 'one'), (2, 'two')) v(berth, name) ON v.berth = a.berth",
    "SELECT id, tons FROM arrivals ORDER BY tons DESC, id LIMIT 2",
    "SELECT id, ship FROM arrivals ORDER BY tons, id LIMIT 2 OFFSET 1",
    "SELECT berth, count(*) AS n FROM arrivals GROUP BY berth ORDER BY n DESC, berth LIMIT 1",
    "SELECT DISTINCT ship FROM logbook ORDER BY ship DESC LIMIT 2",
    "SELECT count(*) AS n FROM (SELECT berth FROM arrivals ORDER BY id LIMIT 3) x JOIN berths b ON b.berth = x.berth",
]


@pytest.mark.timeout(600)
def test_set_operations_and_first_rows_follow_their_inputs(port: Port) -> None:
    play(Quay(port(), ARRIVALS, BERTHS, LOGBOOK), SETS)


CALLS = table("calls", "id", id=domains.INTEGER, at=domains.MOMENT, crew=domains.INTEGERS)


@pytest.mark.timeout(600)
def test_elements_of_arrays_and_overlapping_windows_follow_their_rows(port: Port) -> None:
    quay = Quay(port(), CALLS)
    hop = "hop(calls, at, INTERVAL '1 hour', INTERVAL '2 hours')"
    quay.view("windows", f"SELECT id, window_start, window_end FROM {hop}")
    quay.view("calls_in", f"SELECT window_start, count(*) AS n FROM {hop} GROUP BY window_start")
    quay.view("crews", "SELECT c.id, x FROM calls c, unnest(c.crew) x")
    quay.view("places", "SELECT c.id, u.x, u.n FROM calls c, unnest(c.crew) WITH ORDINALITY AS u(x, n) WHERE u.n < 3")
    quay.view("numbers", "SELECT c.id, n FROM calls c, generate_series(1, c.id) n")
    noon = datetime(2024, 2, 29, 12, 30)
    quay.insert("calls", (1, noon, [1, 1, None]), (2, noon + timedelta(hours=1), []), (3, None, None))
    quay.update("calls", "id", 1, "at", noon + timedelta(minutes=45))
    quay.write(quay._delete("calls", "id", 2))
    quay.insert("calls", (1, noon, [7]), (4, noon, [4, 4]))


PARTS = [
    "SELECT id, rank() OVER (ORDER BY tons) AS place FROM arrivals WHERE tons > 4",
    "SELECT string_agg(ship, ',' ORDER BY id) AS ships FROM arrivals",
    "SELECT ship FROM arrivals OFFSET 100",
    (
        "SELECT b.pier, x.place FROM berths b JOIN (SELECT berth, rank() OVER (ORDER BY tons) AS place FROM arrivals) x"
        " ON x.berth = b.berth"
    ),
]


@pytest.mark.timeout(600)
def test_parts_without_a_key_are_recomputed_and_the_rest_is_not(port: Port) -> None:
    quay = Quay(port(), ARRIVALS, BERTHS, LOGBOOK)
    for query in PARTS:
        assert "recompute (" in plan_of(quay, query), query
    assert "change rule" in plan_of(quay, PARTS[3])
    play(quay, PARTS, incremental=False)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("rows_max", [0, 2])
def test_results_too_large_for_the_driver_take_the_same_rules(port: Port, rows_max: int) -> None:
    views = [
        WINDOWS[1],
        AGGREGATES[1],
        AGGREGATES[3],
        JOINS[2],
        JOINS[5],
        JOINS[9],
        SUBQUERIES[2],
        VALUES[2],
        SETS[2],
        SETS[6],
    ]
    play(Quay(port(inline_rows_max=rows_max, fold_min_rows=0, fold_ratio=0.1), ARRIVALS, BERTHS, LOGBOOK), views)


def test_extremes_over_a_window_are_floats_without_surprise(port: Port) -> None:
    quay = Quay(port(), TIDES)
    quay.view("highs", "SELECT id, max(level) OVER (PARTITION BY gauge) AS high FROM tides")
    quay.view("first", "SELECT gauge, level FROM tides ORDER BY level DESC, id LIMIT 2")
    nan, inf = float("nan"), float("inf")
    quay.insert("tides", (1, "a", nan), (2, "a", inf), (3, "b", -0.0), (4, "b", None))
    quay.update("tides", "id", 1, "level", 0.5)
    quay.delete("tides", "id", 2)
    quay.update("tides", "id", 3, "gauge", "a")
