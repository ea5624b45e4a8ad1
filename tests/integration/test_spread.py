"""Relations of before there was another way to spread keys over vnodes: they go on as they were."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seiche
from seiche.model import VNODE, RelationId, Spread
from seiche.storage.changes import vnode_sql

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]

LOADS = "SELECT ship, berth, count(*) AS n, sum(tons) AS tons FROM calls GROUP BY ship, berth"
BUSY = f"SELECT berth, max(tons) AS most FROM ({LOADS}) AS loads GROUP BY berth"
PAIRS = (
    "SELECT a.ship, a.number, b.number AS other FROM calls a JOIN calls b ON a.ship = b.ship AND a.number < b.number"
)
VIEWS = {"loads": LOADS, "busy": BUSY, "pairs": PAIRS}


def rows(db: seiche.Engine, query: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(query).rows or [], key=repr)


def are_in_place(db: seiche.Engine, relation: RelationId) -> bool:
    """Whether each stored row is in the vnode that its relation's way gives it."""
    version = db.database.runtime.versions.committed(relation)
    stored = db.database.runtime.reader.exact(version)
    return not stored.filter(f"`{VNODE}` <> {vnode_sql(version.schema)}").take(1)


def check(db: seiche.Engine, spread: Spread) -> None:
    """Views equal their queries, and every stored row is in the vnode that its relation's way gives it."""
    for name, query in VIEWS.items():
        assert rows(db, f"SELECT * FROM {name}") == rows(db, query), name
    database = db.database
    for item in database.catalog.objects():
        if item.relation is None:
            continue
        assert item.relation.spread is spread, item
        assert are_in_place(db, RelationId(item.id)), item


def change(db: seiche.Engine, first: int) -> None:
    db.execute(f"INSERT INTO calls SELECT i % 7, i, i % 3, i FROM generate_series({first}, {first + 40}) AS g(i)")
    db.execute(
        "UPDATE calls SET tons = tons + 1, berth = 4 WHERE number % 5 = 0; DELETE FROM calls WHERE number % 11 = 0"
    )


def fold_all(db: seiche.Engine) -> None:
    for item in list(db.database.catalog.objects()):
        if item.relation is not None:
            db.database.maintenance.fold_now(RelationId(item.id))


def as_before(folder: Path) -> None:
    """Takes the metadata back to the format that did not tell how keys are spread."""
    with sqlite3.connect(folder / "meta.db") as metadata:
        metadata.execute("UPDATE seiche_objects SET relation = json_remove(relation, '$.spread')")
        metadata.execute("UPDATE seiche_format SET version_num = '0001'")
        metadata.execute("DELETE FROM seiche_history WHERE format = 2")


def create(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE calls (ship int, number int, berth int, tons int, PRIMARY KEY (ship, number))")
    for name, query in VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.execute("CREATE INDEX by_berth ON calls (berth)")


@pytest.mark.parametrize("spread", Spread)
def test_stored_rows_are_in_the_vnodes_that_their_relation_says(
    open_database: Open, tmp_path: Path, spread: Spread
) -> None:
    db = open_database()
    create(db)
    db.close()
    if spread is Spread.BY_WHOLE_KEY:
        as_before(tmp_path / "harbour")
    db = open_database()
    change(db, 1)
    check(db, spread)
    fold_all(db)
    change(db, 100)
    db.execute("ALTER TABLE calls ADD COLUMN note varchar")
    db.execute("INSERT INTO calls SELECT i % 7, i, i % 3, i, 'new' FROM generate_series(300, 320) AS g(i)")
    check(db, spread)
    db.close()
    db = open_database()
    db.execute("DELETE FROM calls WHERE number % 2 = 0")
    check(db, spread)


def test_a_view_without_shuffles_is_not_made_of_a_relation_that_is_spread_otherwise(
    open_database: Open, tmp_path: Path
) -> None:
    db = open_database()
    create(db)
    db.close()
    as_before(tmp_path / "harbour")
    db = open_database()
    change(db, 1)
    db.execute("SET streaming_use_snapshot_backfill = false; SET streaming_use_arrangement_backfill = false")
    query = "SELECT ship, number, tons FROM calls WHERE tons > 20"
    told = "\n".join(str(row[0]) for row in db.sql(f"EXPLAIN CREATE MATERIALIZED VIEW heavy AS {query}").rows or [])
    assert "no-shuffle" not in told.lower()
    db.execute(f"CREATE MATERIALIZED VIEW heavy AS {query}")
    assert rows(db, "SELECT * FROM heavy") == rows(db, query)
    heavy = db.database.catalog.find(("heavy",))
    assert heavy.relation is not None and heavy.relation.spread is Spread.NEIGHBOURS
    db.execute("INSERT INTO calls VALUES (1, 1000, 2, 30), (2, 1001, 2, 40)")
    db.execute("UPDATE calls SET tons = 99 WHERE number = 1000")
    assert rows(db, "SELECT * FROM heavy") == rows(db, query)
    assert are_in_place(db, RelationId(heavy.id))
