"""The SQL front end on mutated statements: a statement, or an error of ours; never anything else."""

from __future__ import annotations

import random
import sys

import pytest

from seiche.engine import RECURSION_LIMIT
from seiche.errors import SeicheError, StatementTooComplex
from seiche.model import Column
from seiche.sql import statements as ast
from seiche.sql.bind import BoundRelation, Settings, bind_query
from seiche.sql.parameters import Parameters
from seiche.sql.parse import parse
from seiche.types import BIGINT, TIMESTAMPTZ, VARCHAR

STATEMENTS = [
    "SELECT id, upper(name) FROM ships WHERE id = $1 AND name LIKE 'A%' ORDER BY 1 LIMIT 3",
    "SELECT name, count(*) FILTER (WHERE id > 2) FROM ships GROUP BY name HAVING count(*) > 1",
    "WITH s AS (SELECT * FROM ships) SELECT a.id, b.name FROM s a LEFT JOIN ships b ON a.id = b.id",
    "SELECT CASE WHEN id IS NULL THEN 'x' ELSE name::varchar END, ARRAY[1, 2][1] FROM ships",
    "SELECT at + INTERVAL '1 day', row_number() OVER (PARTITION BY name ORDER BY date_trunc('hour', at)) FROM ships",
    "INSERT INTO ships (id, name) VALUES ($1, $2), (2, DEFAULT) RETURNING id",
    "UPDATE ships SET name = name || 'x' WHERE id IN (SELECT id FROM ships)",
    "CREATE TABLE tides (at timestamptz, height numeric(10, 2) DEFAULT 1.5, PRIMARY KEY (at)) WITH (appendonly = true)",
    "CREATE MATERIALIZED VIEW v AS SELECT sum(id) FROM ships",
    "COPY ships (id, name) FROM STDIN WITH (FORMAT csv, HEADER true, DELIMITER ';')",
    "DECLARE c CURSOR WITH HOLD FOR SELECT 1; FETCH FORWARD 10 FROM c; CLOSE ALL",
    "SET TIME ZONE 'UTC'; SHOW ALL; BEGIN READ ONLY; ROLLBACK TO a; EXPLAIN (FORMAT json) SELECT 1",
]
WORDS = "( ) , ; . * = $1 $2 'x' \" -- /* */ :: [ ] SELECT FROM NULL 1 e'\\' $$ @ ? \x00 é CASE END UNION".split(" ")
SHIPS = (Column("id", BIGINT), Column("name", VARCHAR), Column("at", TIMESTAMPTZ))


class Names:
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        return BoundRelation(1, parts[-1], SHIPS, None, "r1")


@pytest.fixture(autouse=True)
def _deep_stack() -> None:
    sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))


def mutated(random_: random.Random, text: str) -> str:
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(text) + 1)
        match random_.randrange(4):
            case 0:
                text = text[:at] + " " + random_.choice(WORDS) + " " + text[at:]
            case 1:
                text = text[:at] + text[at + random_.randint(1, 6) :]
            case 2:
                other = random_.choice(STATEMENTS)
                start = random_.randrange(len(other))
                text = text[:at] + other[start : start + 20] + text[at:]
            case _:
                text = text[:at] + chr(random_.choice([0, 9, 39, 92, 0x2028, 0xD7FF, 0x1F6A2])) + text[at:]
    return text


def bound(text: str) -> None:
    for parsed in parse(text):
        if isinstance(parsed.statement, ast.Select):
            bind_query(parsed.statement.query.tree, Names(), Settings(now_ms=0, parameters=Parameters()))


@pytest.mark.parametrize("seed", range(6))
def test_mutated_statements_are_read_or_refused(seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(150):
        text = mutated(random_, random_.choice(STATEMENTS))
        try:
            bound(text)
        except SeicheError:
            pass
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text!r}") from error


def test_ten_megabytes_of_text_are_a_statement_or_an_error() -> None:
    long = "SELECT '" + "x" * 10_000_000 + "'"
    assert len(parse(long)) == 1


@pytest.mark.parametrize("text", ["SELECT " + "(" * 5000 + "1" + ")" * 5000, "SELECT " + "NOT " * 20_000 + "true"])
def test_deep_nesting_is_refused(text: str) -> None:
    with pytest.raises(StatementTooComplex):
        bound(text)
