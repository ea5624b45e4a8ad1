"""Renaming what others read, with rows in it, across a restart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import seiche
from seiche import errors

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]


def test_views_go_on_after_what_they_read_was_renamed_also_after_a_restart(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar NOT NULL); CREATE TABLE calls (ship int)")
    db.execute("CREATE VIEW visits AS SELECT ships.name FROM ships JOIN calls ON calls.ship = ships.id")
    db.execute(
        "CREATE MATERIALIZED VIEW busy AS SELECT name, count(*) AS n FROM visits GROUP BY name HAVING count(*) > 0"
    )
    db.execute("CREATE MATERIALIZED VIEW busiest AS SELECT busy.name FROM busy WHERE n > 1")
    db.execute("INSERT INTO ships VALUES (1, 'Ada'); INSERT INTO calls VALUES (1)")
    db.execute("ALTER TABLE ships RENAME TO boats; ALTER VIEW visits RENAME TO landings")
    db.execute("ALTER MATERIALIZED VIEW busy RENAME TO crowded")
    db.execute("INSERT INTO boats VALUES (2, 'Eve'); INSERT INTO calls VALUES (1), (2)")
    assert sorted(db.sql("SELECT * FROM crowded").rows or []) == [("Ada", 2), ("Eve", 1)]
    with pytest.raises(errors.NotNullViolation, match='column "name" of relation "boats"'):
        db.execute("UPDATE boats SET name = NULL")
    with pytest.raises(errors.UndefinedTable):
        db.sql("SELECT * FROM ships")
    db.close()
    db = open_database()
    db.execute("INSERT INTO calls VALUES (2)")
    assert sorted(db.sql("SELECT * FROM crowded").rows or []) == [("Ada", 2), ("Eve", 2)]
    assert sorted(db.sql("SELECT * FROM busiest").rows or []) == [("Ada",), ("Eve",)]
    assert (db.sql("SHOW CREATE TABLE boats").rows or [])[0][1].startswith("CREATE TABLE boats (id INT PRIMARY KEY")
    db.execute("DROP TABLE boats CASCADE")
    assert db.sql("SHOW MATERIALIZED VIEWS").rows == []
