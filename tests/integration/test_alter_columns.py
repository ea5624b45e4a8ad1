"""Columns that come, go and get other names, over rows that were stored before: in the log, folded, after a restart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import seiche
from seiche import errors

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]


def rows(db: seiche.Engine, query: str) -> list[tuple[Any, ...]]:
    return sorted(db.sql(query).rows or [], key=repr)


def fold(db: seiche.Engine, name: str) -> None:
    assert db.database.maintenance.fold_now(db.database.catalog.find((name,)).id)  # type: ignore[arg-type]


def test_columns_come_go_and_get_other_names_over_stored_rows(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar, note varchar)")
    db.execute("INSERT INTO ships VALUES (1, 'Ada', 'old')")
    db.execute("CREATE MATERIALIZED VIEW everything AS SELECT * FROM ships; CREATE VIEW shown AS SELECT * FROM ships")
    db.execute("CREATE MATERIALIZED VIEW counted AS SELECT name, count(*) AS n FROM ships GROUP BY name")
    db.execute("CREATE INDEX by_name ON ships (name)")
    fold(db, "ships")
    db.execute("INSERT INTO ships VALUES (2, 'Eve', 'older')")

    db.execute("ALTER TABLE ships ADD COLUMN tons int DEFAULT 7")
    db.execute("ALTER TABLE ships ADD COLUMN seen timestamptz DEFAULT '2024-05-06 07:08:09.25+00'")
    db.execute("ALTER TABLE ships ADD COLUMN flag varchar")
    db.execute("INSERT INTO ships VALUES (3, 'Ida', 'new', NULL, NULL, 'NO'); INSERT INTO ships (id) VALUES (4)")
    wanted = [(1, 7, None), (2, 7, None), (3, None, "NO"), (4, 7, None)]
    assert rows(db, "SELECT id, tons, flag FROM ships") == wanted
    assert rows(db, "SELECT id FROM ships WHERE seen = '2024-05-06 07:08:09.25+00'") == [(1,), (2,), (4,)]
    assert rows(db, "SELECT * FROM everything") == rows(db, "SELECT id, name, note FROM ships")
    assert rows(db, "SELECT * FROM shown") == rows(db, "SELECT id, name, note FROM ships")
    db.execute("CREATE MATERIALIZED VIEW heavy AS SELECT tons, count(*) AS n FROM ships GROUP BY tons")
    assert rows(db, "SELECT * FROM heavy") == [(7, 3), (None, 1)]
    db.execute("UPDATE ships SET tons = 9, flag = 'SE' WHERE id = 1; DELETE FROM ships WHERE id = 4")
    assert rows(db, "SELECT * FROM heavy") == [(7, 1), (9, 1), (None, 1)]
    assert rows(db, "SELECT * FROM counted") == [("Ada", 1), ("Eve", 1), ("Ida", 1)]

    with pytest.raises(errors.DependentObjects, match="is being referenced"):
        db.execute("ALTER TABLE ships DROP COLUMN note")
    with pytest.raises(errors.DependentObjects, match="is being referenced"):
        db.execute("ALTER TABLE ships DROP COLUMN tons")
    db.execute("DROP MATERIALIZED VIEW everything; DROP VIEW shown; DROP INDEX by_name")
    db.execute("ALTER TABLE ships DROP COLUMN note; ALTER TABLE ships ADD COLUMN note varchar")
    assert rows(db, "SELECT id, note FROM ships") == [(1, None), (2, None), (3, None)]
    db.execute("UPDATE ships SET note = 'again' WHERE id = 2")

    db.close()
    db = open_database()
    state = [(1, "Ada", 9, "SE", None), (2, "Eve", 7, None, "again"), (3, "Ida", None, "NO", None)]
    assert rows(db, "SELECT id, name, tons, flag, note FROM ships") == state
    fold(db, "ships")
    assert rows(db, "SELECT id, name, tons, flag, note FROM ships") == state
    assert rows(db, "SELECT * FROM heavy") == [(7, 1), (9, 1), (None, 1)]
    db.execute("INSERT INTO ships (id, name) VALUES (5, 'Ada')")
    assert rows(db, "SELECT * FROM counted") == [("Ada", 2), ("Eve", 1), ("Ida", 1)]
    assert rows(db, "SELECT * FROM heavy") == [(7, 2), (9, 1), (None, 1)]
    text = (
        "CREATE TABLE ships (id INT PRIMARY KEY, name CHARACTER VARYING, tons INT DEFAULT 7, "
        "seen timestamptz DEFAULT '2024-05-06 07:08:09.25+00', flag CHARACTER VARYING, "
        "note CHARACTER VARYING)"
    )
    assert rows(db, "SHOW CREATE TABLE ships") == [("public.ships", text)]

    with pytest.raises(errors.DependentObjects, match="other objects read the table"):
        db.execute("ALTER TABLE ships RENAME COLUMN name TO title")
    db.execute("DROP MATERIALIZED VIEW counted; DROP MATERIALIZED VIEW heavy")
    db.execute("ALTER TABLE ships RENAME COLUMN id TO number; ALTER TABLE ships RENAME COLUMN name TO id")
    db.execute("INSERT INTO ships (number, id) VALUES (1, 'Ann'), (6, 'Una')")
    named = [(1, "Ann", 7), (2, "Eve", 7), (3, "Ida", None), (5, "Ada", 7), (6, "Una", 7)]
    assert rows(db, "SELECT number, id, tons FROM ships") == named
    fold(db, "ships")
    assert rows(db, "SELECT number, id, tons FROM ships") == named
    db.close()
    db = open_database()
    assert rows(db, "SELECT number, id, tons FROM ships") == named
    assert rows(db, "SELECT id FROM ships WHERE number = 2") == [("Eve",)]


@pytest.mark.long
def test_structs_get_and_lose_fields_over_stored_rows(open_database: Open) -> None:
    db = open_database(inline_rows_max=0)  # so that Spark reads the files, and not the driver
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, hull struct<length int, beam int>, n int)")
    db.execute("INSERT INTO ships VALUES (1, row(90, 12), 1), (2, NULL, 1)")
    db.execute("CREATE MATERIALIZED VIEW lengths AS SELECT n, sum((hull).length) AS metres FROM ships GROUP BY n")
    fold(db, "ships")
    db.execute("INSERT INTO ships VALUES (3, row(40, NULL), 1)")
    db.execute("ALTER TABLE ships ALTER COLUMN hull TYPE struct<mast varchar, beam int>")
    wanted = [(1, False, None, 12), (2, True, None, None), (3, False, None, None)]
    query = "SELECT id, hull IS NULL, (hull).mast, (hull).beam FROM ships"
    assert rows(db, query) == wanted
    assert rows(db, "SELECT id FROM ships WHERE (hull).mast IS NULL AND hull IS NOT NULL") == [(1,), (3,)]
    db.execute("INSERT INTO ships VALUES (4, row('fore', 5), 1); UPDATE ships SET n = 2 WHERE id = 1")
    assert rows(db, "SELECT * FROM lengths") == [(1, 40), (2, 90)]

    db.close()
    db = open_database(inline_rows_max=0)
    fold(db, "ships")
    wanted += [(4, False, "fore", 5)]
    assert rows(db, query) == wanted
    db.execute("DELETE FROM ships WHERE id = 3")
    assert rows(db, "SELECT * FROM lengths") == [(1, None), (2, 90)]
    db.execute("ALTER TABLE ships ALTER COLUMN hull TYPE struct<mast varchar, beam int, decks int[]>")
    db.execute("UPDATE ships SET hull = row('main', 6, array[1, 2]) WHERE id = 1")
    fold(db, "ships")
    assert rows(db, "SELECT id, (hull).decks FROM ships") == [(1, [1, 2]), (2, None), (4, None)]
    assert rows(db, "SELECT * FROM lengths") == [(1, None), (2, None)]
