"""What follows the changes of a relation: its change log adds up to it, and a table that a sink fills equals it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.differential.scenario import Harbour, Port

pytestmark = [pytest.mark.spark]


def _statement(rng: random.Random) -> str:
    ids = ", ".join(str(each) for each in rng.sample(range(12), 3))
    match rng.randrange(4):
        case 0:
            return f"DELETE FROM ships WHERE id IN ({ids})"
        case 1:
            return f"UPDATE ships SET tons = tons + {rng.randrange(2)} WHERE id IN ({ids})"
        case _:
            rows = ", ".join(f"({rng.randrange(12)}, 'flag{rng.randrange(3)}', {rng.randrange(5)})" for _ in range(4))
            return f"INSERT INTO ships VALUES {rows}"


def _added_up(log: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """The rows that are left when each entry of a log comes or leaves, in the order of their numbers."""
    held: Counter[tuple[Any, ...]] = Counter()
    for *row, operation, _number in sorted(log, key=lambda entry: entry[-1]):
        held[tuple(row)] += 1 if operation in (1, 3) else -1
        assert held[tuple(row)] >= 0
    return +held


@pytest.mark.parametrize(("seed", "rows_max", "steps"), [(1, 10_000, 4), pytest.param(2, 1, 3, marks=pytest.mark.long)])
def test_a_log_and_a_sink_follow_every_change(port: Port, seed: int, rows_max: int, steps: int) -> None:
    rng = random.Random(seed)
    harbour = port(inline_rows_max=rows_max)
    run = harbour.run
    run("SET rw_implicit_flush TO true")
    run("CREATE TABLE ships (id int PRIMARY KEY, flag varchar, tons int)")
    run(_statement(random.Random(0)))
    run("CREATE MATERIALIZED VIEW fleets AS SELECT flag, count(*) AS n, sum(tons) AS tons FROM ships GROUP BY flag")
    for name in ("ships", "fleets"):
        query = f"WITH c AS CHANGELOG FROM {name} SELECT *, _changelog_row_id AS number FROM c"
        run(f"CREATE MATERIALIZED VIEW log_{name} AS {query}")
    run("CREATE TABLE board (flag varchar PRIMARY KEY, n bigint, tons bigint)")
    run("CREATE SINK to_board INTO board FROM fleets")
    for step in range(steps):
        if step == steps // 2:
            harbour.fold(rng)
            harbour.restart()
            run("SET rw_implicit_flush TO true")
        statement = _statement(rng)
        run(statement)
        for name in ("ships", "fleets"):
            rows = Counter(_rows(harbour, f"SELECT * FROM {name}"))
            log = _rows(harbour, f"SELECT * FROM log_{name}")
            assert _added_up(log) == rows, statement
            assert sorted(entry[-1] for entry in log) == list(range(len(log)))
        assert Counter(_rows(harbour, "SELECT * FROM board")) == Counter(_rows(harbour, "SELECT * FROM fleets"))
    run("DELETE FROM ships")
    assert _rows(harbour, "SELECT * FROM board") == []


def _rows(harbour: Harbour, query: str) -> list[tuple[Any, ...]]:
    (result,) = harbour.db.execute(query)
    return [tuple(row) for row in result.rows]
