"""Parts that are asked for twice, with other columns each time, are stored once."""

from __future__ import annotations

import pytest

from seiche.plan.algebra import Aggregate, Keyed, Plan, scans
from tests.unit.plan.harbour import ARRIVALS, SHIPS, Harbour

CALLS = "SELECT ship, berth, count(*) AS n, max(tons) AS most FROM arrivals GROUP BY ship, berth"


@pytest.fixture(scope="module")
def harbour() -> Harbour:
    return Harbour()


def groups_over(harbour: Harbour, query: str, relation: int) -> list[Aggregate]:
    """The Aggregates that are stored over a table."""
    plans: list[Plan] = [fragment.plan for fragment in harbour.fragments(query)]
    return [each for each in plans if isinstance(each, Aggregate) and relation in {s.relation for s in scans(each)}]


@pytest.mark.parametrize(
    "query",
    [
        f"WITH calls AS ({CALLS}) SELECT a.ship, b.most FROM calls a JOIN calls b ON a.n = b.n",
        f"WITH calls AS ({CALLS}) SELECT ship, n FROM calls WHERE n = (SELECT max(n) FROM calls)",
        f"SELECT x.n, y.ship FROM ({CALLS}) x LEFT JOIN ({CALLS}) y ON x.berth = y.berth AND y.n > 2",
        f"SELECT DISTINCT n FROM ({CALLS}) x UNION SELECT most FROM ({CALLS}) y",
        f"SELECT max(n) AS n FROM ({CALLS}) x UNION ALL SELECT min(n + 1) FROM ({CALLS}) y WHERE y.ship > 1",
    ],
)
def test_groups_of_which_other_columns_are_shown_are_one(harbour: Harbour, query: str) -> None:
    assert len(groups_over(harbour, query, ARRIVALS)) == 1


def test_groups_over_shared_groups_are_shared_too(harbour: Harbour) -> None:
    ranks = f"SELECT berth, max(n) AS n, count(*) AS ships FROM ({CALLS}) x GROUP BY berth"
    query = f"SELECT a.berth, b.n FROM ({ranks}) a JOIN ({ranks}) b ON a.ships < b.ships JOIN ({CALLS}) c ON c.n = b.n"
    assert len([each for each in harbour.fragments(query) if isinstance(each.plan, Aggregate)]) == 2


@pytest.mark.parametrize(
    "query",
    [
        (
            "SELECT a.n FROM (SELECT flag, count(*) AS n FROM ships GROUP BY flag) a"
            " JOIN (SELECT name, count(*) AS n FROM ships GROUP BY name) b ON a.n = b.n"
        ),
        (
            "SELECT a.n FROM (SELECT flag, count(*) AS n FROM ships GROUP BY flag) a"
            " JOIN (SELECT flag, count(*) AS n FROM ships WHERE tons > 5 GROUP BY flag) b ON a.n = b.n"
        ),
        (
            "SELECT a.n FROM (SELECT flag, sum(tons) AS n FROM ships GROUP BY flag) a"
            " JOIN (SELECT flag, max(tons) AS n FROM ships GROUP BY flag) b ON a.n = b.n"
        ),
    ],
)
def test_other_groups_stay_apart(harbour: Harbour, query: str) -> None:
    assert len(groups_over(harbour, query, SHIPS)) == 2


def queries_by_key(harbour: Harbour, query: str) -> list[Keyed]:
    return [fragment.plan for fragment in harbour.fragments(query) if isinstance(fragment.plan, Keyed)]


STAYS = "SELECT s.id, s.flag, s.name, a.berth, a.tons FROM ships s LEFT JOIN arrivals a ON a.ship = s.id"
RANKS = (
    "SELECT id, flag, name, rank() OVER w AS place, sum(tons) OVER w AS tons"
    " FROM ships WINDOW w AS (PARTITION BY flag ORDER BY tons)"
)
NAMES = "SELECT flag, string_agg(name, ',' ORDER BY name) AS names, max(id) AS newest FROM ships GROUP BY flag"


@pytest.mark.parametrize(
    "query",
    [
        f"WITH stays AS ({STAYS}) SELECT x.name FROM stays x JOIN stays y ON x.flag = y.flag AND x.tons < y.id",
        f"WITH stays AS ({STAYS}) SELECT id FROM stays WHERE tons > (SELECT avg(berth) FROM stays)",
        (
            "SELECT s.flag, count(DISTINCT a.berth) AS berths, max(a.tons) AS most"
            " FROM ships s LEFT JOIN arrivals a ON a.ship = s.id GROUP BY s.flag"
        ),
        f"WITH r AS ({RANKS}) SELECT x.name, y.tons FROM r x JOIN r y ON y.flag = x.flag AND y.place = x.place + 1",
        f"WITH r AS ({RANKS}) SELECT name FROM r UNION ALL SELECT upper(name) FROM r",
        f"WITH names AS ({NAMES}) SELECT x.names, y.newest FROM names x JOIN names y ON x.newest > y.newest",
    ],
)
def test_joins_windows_and_lists_of_which_other_columns_are_shown_are_one(harbour: Harbour, query: str) -> None:
    assert len(queries_by_key(harbour, query)) == 1


def test_what_is_shown_under_several_names_is_stored_once(harbour: Harbour) -> None:
    query = (
        f"WITH r AS ({RANKS}) SELECT x.a, y.b FROM (SELECT id, name AS a FROM r) x"
        " JOIN (SELECT id, name AS b, place FROM r) y ON x.id = y.id AND y.place < x.id"
    )
    (stored,) = queries_by_key(harbour, query)
    assert sorted(field.name for field in stored.fields) == ["flag", "id", "name", "place"]


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT x.name FROM ({STAYS}) x JOIN ({STAYS.replace('a.ship', 'a.berth')}) y ON x.id = y.id",
        f"WITH r AS ({RANKS}) SELECT x.name, y.flag FROM r x JOIN (SELECT * FROM r WHERE id > 5) y ON x.id = y.id",
        f"SELECT x.name FROM ({RANKS}) x JOIN ({RANKS.replace('ORDER BY tons', 'ORDER BY fee')}) y ON x.tons = y.tons",
    ],
)
def test_other_joins_and_windows_stay_apart(harbour: Harbour, query: str) -> None:
    assert len(queries_by_key(harbour, query)) == 2
