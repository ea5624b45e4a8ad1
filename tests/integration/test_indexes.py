"""Indexes: copies in another order that queries and joins of changes read instead of the relation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame

import seiche
from seiche import errors
from seiche.session.plan_cache import PlanCache
from seiche.storage.relation import RelationReader
from seiche.storage.versions import RelationVersion
from seiche.stream import linear

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]


def rows(db: seiche.Engine, query: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in db.sql(query).rows or []), key=repr)


def sources(db: seiche.Engine, query: str) -> list[str]:
    """The names of the relations whose rows a query reads."""
    db.database.plans = PlanCache()  # a query that was asked before would be read as it was then
    reader, read = db.database.runtime.reader, []
    plain = reader.exact

    def watched(version: RelationVersion, predicate: str | None = None, *, epochs: bool = False) -> DataFrame:
        read.append(db.database.catalog.get(version.relation).name)
        return plain(version, predicate, epochs=epochs)

    reader.exact = watched  # type: ignore[method-assign]
    try:
        assert db.sql(query).rows is not None
    finally:
        del reader.exact
    return sorted(read)


def test_an_index_follows_its_table_through_changes_folds_and_restarts(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, flag varchar, tons int)")
    db.execute("INSERT INTO ships SELECT g, 'F' || (g % 7), g FROM generate_series(1, 500) g")
    db.execute("CREATE INDEX by_flag ON ships (flag) INCLUDE (tons)")
    db.execute("CREATE MATERIALIZED VIEW load AS SELECT flag, sum(tons) AS tons FROM ships GROUP BY flag")
    db.execute("CREATE INDEX ON load (tons)")
    assert [row[0] for row in db.sql("SHOW INDEXES FROM ships").rows] == ["by_flag"]

    def check() -> None:
        query = "SELECT flag, tons FROM ships WHERE flag = 'F3'"
        assert sources(db, query) == ["by_flag"]
        assert sources(db, "SELECT id FROM ships WHERE flag = 'F3' AND id > 5") == ["ships"]
        assert rows(db, query) == rows(db, "SELECT flag, tons FROM ships WHERE flag || '' = 'F3'")
        assert rows(db, "SELECT * FROM by_flag") == rows(db, "SELECT flag, tons FROM ships")
        heavy = "SELECT flag FROM load WHERE tons > 100"
        assert sources(db, heavy) == ["load_tons_idx"]
        assert rows(db, heavy) == rows(db, "SELECT flag FROM load WHERE tons + 0 > 100")

    check()
    db.execute("UPDATE ships SET flag = 'F3' WHERE id % 50 = 0; DELETE FROM ships WHERE id % 9 = 0")
    db.execute("INSERT INTO ships VALUES (1000, NULL, 1), (1001, 'F3', NULL), (3, 'F4', 3)")
    check()
    db.database.maintenance.settle()
    check()
    db.execute("ALTER TABLE ships RENAME TO vessels; ALTER INDEX by_flag RENAME TO vessels_by_flag")
    db.close()
    db = open_database()
    assert sources(db, "SELECT tons FROM vessels WHERE flag = 'F3'") == ["vessels_by_flag"]
    db.execute("INSERT INTO vessels VALUES (2000, 'F3', 9)")
    assert rows(db, "SELECT tons FROM vessels WHERE flag = 'F3'") == rows(
        db, "SELECT tons FROM vessels WHERE flag || '' = 'F3'"
    )
    with pytest.raises(errors.WrongObjectType):
        db.execute("DROP MATERIALIZED VIEW vessels_by_flag")
    db.execute("DROP INDEX vessels_by_flag")
    assert sources(db, "SELECT tons FROM vessels WHERE flag = 'F3'") == ["vessels"]
    db.execute("DROP TABLE vessels CASCADE")
    assert db.sql("SHOW INDEXES").rows == []


def test_joins_of_changes_look_their_partners_up_in_an_index(
    open_database: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = open_database()
    db.execute("CREATE TABLE berths (quay varchar, no int, depth int)")
    db.execute("CREATE TABLE arrivals (id int PRIMARY KEY, quay varchar)")
    db.execute("INSERT INTO berths SELECT 'Q' || (g % 20), g, g % 13 FROM generate_series(1, 400) g")
    inner = "SELECT a.id, b.no, b.depth FROM arrivals a JOIN berths b ON b.quay = a.quay"
    outer = "SELECT a.id, b.no FROM arrivals a LEFT JOIN berths b ON b.quay = a.quay"
    db.execute(f"CREATE MATERIALIZED VIEW inside AS {inner}; CREATE MATERIALIZED VIEW maybe AS {outer}")
    db.execute("CREATE INDEX by_quay ON berths (quay)")
    used = []
    plain = linear.index_scan

    def watched(*arguments: object) -> object:
        found = plain(*arguments)  # type: ignore[arg-type]
        used.append(db.database.catalog.get(found.relation).name if found is not None else None)
        return found

    monkeypatch.setattr(linear, "index_scan", watched)
    # Partners in a table as small as this one are looked up in memory; it stands for a large one.
    monkeypatch.setattr(RelationReader, "is_near", lambda *_: False)

    def check() -> None:
        assert rows(db, "SELECT * FROM inside") == rows(db, inner)
        assert rows(db, "SELECT * FROM maybe") == rows(db, outer)

    db.execute("INSERT INTO arrivals VALUES (1, 'Q3'), (2, 'Q99'), (3, NULL)")
    check()
    assert used and set(used) == {"by_quay"}, "the unchanged side was not read through its index"
    db.execute("UPDATE arrivals SET quay = 'Q7' WHERE id = 1; UPDATE berths SET quay = 'Q99' WHERE no = 5")
    check()
    db.execute("BEGIN; INSERT INTO arrivals VALUES (4, 'Q5'); DELETE FROM berths WHERE quay = 'Q5'; COMMIT")
    check()
    db.database.maintenance.settle()
    db.execute("INSERT INTO arrivals VALUES (5, 'Q11')")
    check()


def test_an_index_that_cannot_be_is_refused_and_leaves_nothing(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, flag varchar); CREATE VIEW plain AS SELECT id FROM ships")
    db.execute("CREATE INDEX i ON ships (flag)")
    with pytest.raises(errors.DuplicateObject):
        db.execute("CREATE INDEX i ON ships (flag)")
    db.execute("CREATE INDEX IF NOT EXISTS i ON ships (flag)")
    with pytest.raises(errors.WrongObjectType):
        db.execute("CREATE INDEX j ON plain (id)")
    with pytest.raises(errors.UndefinedColumn):
        db.execute("CREATE INDEX j ON ships (flat)")
    assert [row[0] for row in db.sql("SHOW INDEXES").rows] == ["public.i"]
