"""EXPLAIN of the harbour's views in every format, word for word."""

from __future__ import annotations

import json

import pytest

from seiche.plan import explain
from tests.golden.recorded import check, recorded
from tests.unit.plan.harbour import Harbour

VIEWS = {
    "heavy_ships": "SELECT id, name FROM ships WHERE tons > 1000 AND (flag = 'NO' OR draught < 5.5)",
    "priced_ships": "SELECT name AS ship, tons * 2 AS twice, tons / 3 AS third, flag || '!' AS shout FROM ships",
    "berthed": """SELECT s.name, b.quay, a.at FROM arrivals a
        JOIN ships s ON a.ship = s.id JOIN berths b ON a.berth = b.id WHERE b.free""",
    "fleets": """SELECT flag, count(*) AS ships, sum(tons) AS tons, avg(tons) AS mean, max(tons) AS most
        FROM ships GROUP BY flag""",
    "large_fleets": """SELECT upper(flag) AS flag, count(*) FROM ships GROUP BY upper(flag)
        HAVING count(*) > 3 AND avg(tons) > 500""",
    "harbour_total": """SELECT count(*), sum(draught) AS draught, stddev(tons) AS spread, bool_and(tons > 5) AS laden,
        count(name) FILTER (WHERE flag = 'NO') AS norwegian FROM ships""",
    "flags": "SELECT DISTINCT flag FROM ships",
    "names": "SELECT name FROM ships UNION ALL SELECT quay FROM berths",
    "words": "SELECT flag FROM ships UNION SELECT quay FROM berths UNION SELECT name FROM ships WHERE tons > 9",
    "tons_by_ship": "SELECT name, sum(tons) AS tons FROM calls GROUP BY name",
    "visits_of_heavy": """SELECT h.name, count(*) AS visits FROM heavy h
        JOIN arrivals a ON a.ship = h.id GROUP BY h.name""",
    "sister_ships": "SELECT a.name, b.name AS sister FROM ships a JOIN ships b ON a.flag = b.flag AND a.id < b.id",
    "flagships": """SELECT most.flag, s.name FROM (SELECT flag, max(tons) AS tons FROM ships GROUP BY flag) most
        JOIN ships s ON s.flag = most.flag AND s.tons = most.tons""",
    "crowded": """SELECT c1 AS mean FROM (SELECT flag AS c0, avg(tons) AS c1, count(*) AS c2 FROM ships GROUP BY flag) x
        WHERE c2 > 2.5""",
    "all_ships": "SELECT s.name, a.at FROM ships s LEFT JOIN arrivals a ON a.ship = s.id",
    "either_way": "SELECT s.name, a.at FROM ships s FULL JOIN arrivals a ON a.ship < s.id",
    "with_tides": "SELECT s.name, t.height FROM ships s LEFT JOIN tides t ON t.high AND s.tons > 500",
    "largest_of_flag": """SELECT flag, name FROM (SELECT flag, name, row_number() OVER (PARTITION BY flag ORDER BY tons
        DESC) AS place FROM ships) x WHERE place <= 3""",
    "highest_tides": """SELECT high, at, height FROM (SELECT *, row_number() OVER (PARTITION BY high ORDER BY height
        DESC, at) AS place FROM tides) x WHERE place <= 3""",
    "absent_ships": "SELECT name FROM ships s WHERE NOT EXISTS (SELECT 1 FROM arrivals a WHERE a.ship = s.id)",
    "above_mean": "SELECT name FROM ships WHERE tons > (SELECT avg(tons) FROM ships)",
    "crews": "SELECT flag, string_agg(name, ', ' ORDER BY name) AS names FROM ships GROUP BY flag",
    "largest": "SELECT name, tons FROM ships ORDER BY tons DESC LIMIT 3",
    "ranking": "SELECT name, rank() OVER (ORDER BY tons DESC) AS place FROM ships",
    "idle_names": "SELECT name FROM ships EXCEPT SELECT quay FROM berths",
    "todays_calls": "SELECT name, at FROM calls WHERE at > now() - INTERVAL '1 day'",
    "met_ships": "SELECT at, s.name FROM arrivals LEFT JOIN ships FOR SYSTEM_TIME AS OF PROCTIME() s ON s.id = ship",
    "seen_ships": "SELECT name, proctime() AS seen FROM ships",
    "closed_hours": """SELECT window_start, count(*) AS n, max(height) AS highest
        FROM tumble(tides, at, INTERVAL '1 hour') GROUP BY window_start EMIT ON WINDOW CLOSE""",
    "closed_days": """SELECT date_trunc('day', at) AS day, count(*) AS n FROM tides GROUP BY date_trunc('day', at)
        EMIT ON WINDOW CLOSE""",
    "long_stays": """SELECT b.name, to_char(a.at, 'YYYY-MM') AS month, a.ship * (b.id + 2) AS code,
        CASE WHEN a.at - b.at <= INTERVAL '2 days' THEN 'short' ELSE lower(b.name) || '!' END AS stay
        FROM arrivals a JOIN (SELECT c.id, c.at, upper(c.name) AS name FROM (SELECT s.id, x.at, s.name
        FROM ships s JOIN arrivals x ON x.ship = s.id) c) b ON b.id = a.ship
        WHERE extract(year FROM a.at) > 2020 AND b.name <> ALL (ARRAY['AURORA', 'BOREALIS'])""",
    "moving_mean": """SELECT at, avg(height) OVER (PARTITION BY high ORDER BY at ROWS 3 PRECEDING) AS mean,
        round(coalesce(height, 0)::numeric, 1) AS about FROM tides""",
    "ends": """SELECT window_end, sum(ship) FILTER (WHERE ship % 2 = 0) AS even
        FROM hop(arrivals, at, INTERVAL '1 hour', INTERVAL '2 hours') GROUP BY window_end""",
    "closed_rows": "SELECT at, height FROM tides WHERE high EMIT ON WINDOW CLOSE",
    "at_tide": """SELECT a.ship, t.height, a.at FROM arrivals a LEFT JOIN tides t ON t.at = a.at
        EMIT ON WINDOW CLOSE""",
    "reached": """WITH RECURSIVE reached(flag, ship, calls) AS (
        SELECT flag, id, 0 FROM ships WHERE tons > 1000 UNION
        SELECT r.flag, a.ship, calls + 1 FROM reached r JOIN arrivals a ON a.berth = r.ship
        JOIN (SELECT ship, count(*) AS n FROM arrivals GROUP BY ship) b ON b.ship = a.ship AND b.n > calls)
        SELECT flag, count(*) FROM reached GROUP BY flag""",
    "countdown": "WITH RECURSIVE t(n) AS (VALUES (3) UNION ALL SELECT n - 1 FROM t WHERE n > 0) SELECT n FROM t",
    "before_it": "SELECT a.ship, b.ship AS b FROM arrivals a ASOF JOIN arrivals b ON a.berth = b.berth AND a.at > b.at",
}


@pytest.fixture(scope="module")
def plans() -> dict[str, explain.Node]:
    harbour = Harbour()
    harbour.add_materialized_view("heavy", "SELECT id, name, tons FROM ships WHERE tons > 1000")
    harbour.add_view("calls", "SELECT s.name, a.at, a.tons FROM ships s JOIN arrivals a ON a.ship = s.id")
    return {
        name: explain.describe(harbour.fragments(query), lambda relation, new=name: harbour.name_of(relation, new))
        for name, query in VIEWS.items()
    }


@pytest.mark.parametrize("name", VIEWS)
def test_explain_text_reads_as_recorded(plans: dict[str, explain.Node], name: str) -> None:
    query = " ".join(VIEWS[name].split())
    check(f"explain/{name}.txt", f"-- {query}\n{explain.text(plans[name])}")


@pytest.mark.parametrize("name", VIEWS)
def test_explain_json_is_as_recorded(plans: dict[str, explain.Node], name: str) -> None:
    shown = explain.as_json(plans[name])
    assert json.loads(shown)["operator"] == f"Materialize {name}"
    check(f"explain/{name}.json", shown)


@pytest.mark.parametrize("name", VIEWS)
def test_explain_dot_is_as_recorded(plans: dict[str, explain.Node], name: str) -> None:
    check(f"explain/{name}.dot", explain.dot(plans[name]))


def test_no_recorded_plan_is_left_over() -> None:
    assert recorded("explain") == set(VIEWS)


@pytest.mark.parametrize("name", VIEWS)
def test_explain_never_shows_the_names_that_planning_makes_up(plans: dict[str, explain.Node], name: str) -> None:
    def words(node: explain.Node) -> list[str]:
        own = [detail for detail in node.details if not detail.startswith(("state: ", "hidden columns: "))]
        return [*own, *node.key, *(word for child in node.children for word in words(child))]

    shown = " ".join(words(plans[name]))
    for made_up in ("l0", "l1", "g0", "a0", "c0", "`"):
        assert made_up not in shown or made_up in VIEWS[name]
