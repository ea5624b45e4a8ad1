"""Rows by their keys, and questions that are asked again: the answers of a scan, for less work."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import seiche
from seiche.model import RelationId
from tests.integration.conftest import Open

pytestmark = pytest.mark.spark
ROWS = 250_000  # more than a lookup reads on the driver


@pytest.fixture(scope="module")
def harbour(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[seiche.Engine]:
    with seiche.connect(tmp_path_factory.mktemp("lookups") / "harbour", spark=spark) as engine:
        engine.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar, tons bigint)")
        rows = spark.range(ROWS).selectExpr("cast(id as int) AS id", "concat('ship ', id) AS name", "id % 7 AS tons")
        engine.insert("ships", rows)
        engine.execute("CREATE MATERIALIZED VIEW heavy AS SELECT id, name, tons FROM ships WHERE tons > 0")
        for name in ("ships", "heavy"):
            engine.database.maintenance.fold_now(RelationId(engine.database.catalog.find((name,)).id))
        yield engine


def jobs(engine: seiche.Engine) -> int:
    return int(engine.spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def rows(engine: seiche.Engine, text: str) -> list[tuple[object, ...]]:
    return engine.execute(text)[-1].rows or []


def test_a_row_is_found_by_its_key_and_once_found_costs_no_job(harbour: seiche.Engine) -> None:
    assert rows(harbour, "SELECT * FROM heavy WHERE id = 1234") == [(1234, "ship 1234", 1234 % 7)]
    before = jobs(harbour)
    assert rows(harbour, "SELECT name, id FROM heavy WHERE id = 1234") == [("ship 1234", 1234)]
    assert jobs(harbour) == before
    assert rows(harbour, "SELECT * FROM heavy WHERE id = 7") == [], "the view has no such row"
    assert rows(harbour, "SELECT * FROM heavy WHERE id = 100000000") == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT upper(name), tons * 2 FROM {} WHERE id = 4321",
        "SELECT * FROM {} WHERE id = 4321 AND tons > 100",
        "SELECT count(*), sum(tons) FROM {} WHERE id IN (1, 2, 3, 4321)",
        "SELECT id FROM {} WHERE id IN (3, 1, 2, 999999) ORDER BY id DESC LIMIT 2",
        "SELECT h.id, s.name FROM {} h LEFT JOIN ships s ON s.id = h.id + 1 WHERE h.id = 12",
    ],
)
def test_a_lookup_answers_what_a_scan_does(harbour: seiche.Engine, query: str) -> None:
    scanned = "(SELECT id + 0 AS id, name, tons FROM heavy)"
    expected = rows(harbour, query.format(f"{scanned} AS heavy" if " h " not in query else scanned))
    assert rows(harbour, query.format("heavy")) == expected


def test_a_lookup_sees_every_change(harbour: seiche.Engine) -> None:
    query = "SELECT * FROM heavy WHERE id = 50"
    first = rows(harbour, query)
    harbour.execute("UPDATE ships SET name = 'Ada' WHERE id = 50; FLUSH")
    assert rows(harbour, query) == [(50, "Ada", 1)] != first
    session = harbour.session()
    session.execute("BEGIN; UPDATE ships SET name = 'Bea' WHERE id = 50")
    assert session.execute("SELECT name FROM ships WHERE id = 50")[0].rows == [("Bea",)], "a block sees its own writes"
    session.execute("ROLLBACK")
    session.close()
    assert rows(harbour, "SELECT name FROM ships WHERE id = 50") == [("Ada",)]
    harbour.execute("DELETE FROM ships WHERE id = 50; FLUSH")
    assert rows(harbour, query) == []
    harbour.database.maintenance.fold_now(RelationId(harbour.database.catalog.find(("heavy",)).id))
    assert rows(harbour, query) == []
    harbour.execute("INSERT INTO ships VALUES (50, 'Cyd', 5); FLUSH")
    assert rows(harbour, query) == [(50, "Cyd", 5)]


def test_a_question_that_is_asked_again_uses_its_plan_until_something_changes(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE tides (day int PRIMARY KEY, metres int); CREATE TABLE other (id int)")
    db.execute("INSERT INTO tides VALUES (1, 3), (2, 5)")
    plans, query = db.database.plans, "SELECT sum(metres) FROM tides"

    def asked(expected: int) -> bool:
        """Whether the plan was there already."""
        before = plans.hits
        assert rows(db, query) == [(expected,)]
        return plans.hits > before

    assert not asked(8)
    assert asked(8)
    db.execute("INSERT INTO other VALUES (1)")
    assert asked(8), "another table changed"
    db.execute("INSERT INTO tides VALUES (3, 1)")
    assert not asked(9)
    assert asked(9)
    db.execute("CREATE VIEW high AS SELECT * FROM tides")
    assert not asked(9), "any definition starts afresh"
    before = plans.hits
    assert rows(db, "SELECT random() IS NULL FROM other") == rows(db, "SELECT random() IS NULL FROM other")
    assert plans.hits == before, "what changes from call to call is planned anew"


def test_rows_behind_a_part_without_any_are_inserted(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE tides (day int PRIMARY KEY, metres int)")
    some, others = pa.table({"day": [1, 2], "metres": [3, 4]}), pa.table({"day": [5], "metres": [6]})
    assert db.insert("tides", pa.concat_tables([some[:0], some, some[:0], others])) == 3
    assert rows(db, "SELECT * FROM tides ORDER BY day") == [(1, 3), (2, 4), (5, 6)]


def test_a_plan_that_failed_is_made_again(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, tons int); INSERT INTO ships VALUES (1, 0)")
    for _ in range(2):
        with pytest.raises(seiche.SeicheError, match="division by zero"):
            db.execute("SELECT sum(1 / tons) FROM ships")
    assert len(db.database.plans) == 0
