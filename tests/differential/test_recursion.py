"""Recursive views over edges that come and go, checked after every statement against a few lines of Python."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.differential.scenario import Harbour, Port

pytestmark = [pytest.mark.spark, pytest.mark.long]

NODES, LEVELS, STEPS = 6, 3, 10

REACHED = """WITH RECURSIVE r(a, b) AS (
    SELECT a, b FROM ways UNION SELECT r.a, w.b FROM r JOIN ways w ON w.a = r.b)"""
VIEWS = {
    "reached": f"{REACHED} SELECT a, b FROM r",
    "paths": f"""WITH RECURSIVE p(a, b, n) AS (SELECT a, b, 1 FROM ways UNION ALL
        SELECT p.a, w.b, n + 1 FROM p JOIN ways w ON w.a = p.b WHERE n < {LEVELS}) SELECT a, b, n FROM p""",
    "counted": f"{REACHED} SELECT x.a, count(*) FROM r x JOIN r y ON y.a = x.b GROUP BY x.a",
}

Edge = tuple[int | None, int | None]


def paths(edges: list[Edge]) -> Counter[tuple[int | None, int | None, int]]:
    found = Counter((a, b, 1) for a, b in edges)
    last = found
    for level in range(2, LEVELS + 1):
        last = Counter(
            {
                (a, end, level): sum(
                    many
                    for (first, middle, _), many in last.items()
                    for c, d in edges
                    if first == a and d == end and middle is not None and middle == c
                )
                for a, _, _ in last
                for _, end in edges
            }
        )
        last = +last
        found = found + last
    return found


def closure(edges: list[Edge]) -> set[Edge]:
    found = set(edges)
    while True:
        more = {(a, d) for a, b in found for c, d in edges if b is not None and b == c} - found
        if not more:
            return found
        found |= more


def check(harbour: Harbour, edges: list[Edge], told: str) -> None:
    def stored(name: str) -> Counter[tuple[object, ...]]:
        return Counter(tuple(row) for row in harbour.db.execute(f"SELECT * FROM {name}")[-1].rows or [])

    reached = closure(edges)
    both = Counter(a for a, b in reached for c, _ in reached if b is not None and b == c)
    assert stored("reached") == Counter(reached), told
    assert stored("paths") == paths(edges), told
    assert stored("counted") == Counter(dict.fromkeys(both.items(), 1)), told


@pytest.mark.parametrize("seed", range(2))
def test_a_recursive_view_holds_what_its_edges_lead_to(port: Port, seed: int) -> None:
    rng, harbour = random.Random(seed), port()
    harbour.db.execute("CREATE TABLE ways (id int PRIMARY KEY, a int, b int)")
    for name, query in VIEWS.items():
        harbour.db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    held: dict[int, Edge] = {}
    story = []

    def node() -> int | None:
        return None if rng.random() < 0.1 else rng.randrange(NODES)

    def text(value: int | None) -> str:
        return "NULL" if value is None else str(value)

    for step in range(STEPS):
        what = rng.choice(["insert", "insert", "delete", "update"]) if held else "insert"
        if what == "insert":
            new = {step * 10 + each: (node(), node()) for each in range(rng.randint(1, 3))}
            held |= new
            values = ", ".join(f"({each}, {text(a)}, {text(b)})" for each, (a, b) in new.items())
            statement = f"INSERT INTO ways VALUES {values}"
        else:
            one = rng.choice(sorted(held))
            if what == "delete":
                del held[one]
                statement = f"DELETE FROM ways WHERE id = {one}"
            else:
                held[one] = (held[one][0], node())
                statement = f"UPDATE ways SET b = {text(held[one][1])} WHERE id = {one}"
        story.append(statement)
        harbour.db.execute(statement)
        check(harbour, list(held.values()), f"seed {seed}: {'; '.join(story)}")
        if step == STEPS // 2:
            harbour.restart()
