"""Subscriptions and prepared statements on one database: what is retained, and what cursors give."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from seiche.clock import SystemClock
from seiche.config import Config
from seiche.engine import Engine
from seiche.errors import (
    CursorBehind,
    DatatypeMismatch,
    DependentObjects,
    DuplicateCursor,
    DuplicateObject,
    InvalidDefinition,
    InvalidParameter,
    InvalidText,
    ObjectNotReady,
    QueryCanceled,
    SyntaxError_,
    UndefinedObject,
    UndefinedStatement,
    WrongObjectType,
)
from seiche.model import RelationId
from seiche.session.run import Session

pytestmark = pytest.mark.spark
HOUR_MS = 3_600_000


class TideClock(SystemClock):
    """The time of the machine, moved on at will."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@pytest.fixture(scope="module")
def clock() -> TideClock:
    return TideClock()


@pytest.fixture(scope="module")
def harbour(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, clock: TideClock) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("subscribed") / "harbour"
    engine = Engine(Config(data_dir=folder), spark, clock)
    yield engine
    engine.close()


@pytest.fixture
def session(harbour: Engine) -> Iterator[Session]:
    session = harbour.session()
    yield session
    session.close()


def rows(session: Session, text: str) -> list[tuple[Any, ...]]:
    return session.execute(text)[-1].rows or []


def fetch(session: Session, text: str) -> list[tuple[Any, ...]]:
    """The rows of a FETCH without their times."""
    return [row[:-1] for row in rows(session, text)]


def relation_of(engine: Engine, name: str) -> RelationId:
    return RelationId(engine.database.catalog.find((name,)).id)


def test_a_full_cursor_gives_all_rows_and_then_each_change_once(harbour: Engine, session: Session) -> None:
    session.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar)")
    session.execute("INSERT INTO ships VALUES (2, 'Bea'), (1, 'Ada')")
    session.execute("CREATE SUBSCRIPTION all_ships FROM ships WITH (retention = '1 day')")
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR all_ships FULL")
    assert rows(session, "FETCH NEXT FROM c") == [(1, "Ada", "Insert", None)]
    session.execute("INSERT INTO ships VALUES (4, 'Dot'), (3, 'Cyd')")
    session.execute("UPDATE ships SET name = 'Ann' WHERE id = 1")
    session.execute("DELETE FROM ships WHERE id = 3")
    assert fetch(session, "FETCH 2 FROM c") == [(2, "Bea", "Insert"), (3, "Cyd", "Insert")]
    found = rows(session, "FETCH 10 FROM c")
    assert [row[:-1] for row in found] == [
        (4, "Dot", "Insert"),
        (1, "Ada", "UpdateDelete"),
        (1, "Ann", "UpdateInsert"),
        (3, "Cyd", "Delete"),
    ]
    assert all(abs(row[-1] - time.time() * 1000) < 600_000 for row in found)
    assert rows(session, "FETCH NEXT FROM c") == []
    columns = session.execute("FETCH NEXT FROM c")[0].columns or ()
    assert [(each.name, str(each.type)) for each in columns[2:]] == [
        ("op", "character varying"),
        ("rw_timestamp", "bigint"),
    ]


def test_a_cursor_begins_where_it_is_told(harbour: Engine, session: Session) -> None:
    session.execute("CREATE TABLE tides (id int PRIMARY KEY)")
    session.execute("INSERT INTO tides VALUES (1)")
    session.execute("CREATE SUBSCRIPTION tide_log FROM tides WITH (retention = '1D')")
    session.execute("INSERT INTO tides VALUES (2)")
    session.execute("INSERT INTO tides VALUES (3)")
    session.execute("DECLARE a SUBSCRIPTION CURSOR FOR tide_log SINCE begin()")
    session.execute("DECLARE b SUBSCRIPTION CURSOR FOR tide_log")
    first, second = rows(session, "FETCH 5 FROM a")
    assert (first[0], second[0]) == (2, 3)
    assert rows(session, "FETCH 5 FROM b") == []
    session.execute(f"DECLARE d SUBSCRIPTION CURSOR FOR tide_log SINCE {second[2]}")
    assert fetch(session, "FETCH 5 FROM d") == [(3, "Insert")]
    for since in ("1", "18446744073709551615"):
        with pytest.raises(InvalidParameter):
            session.execute(f"DECLARE e SUBSCRIPTION CURSOR FOR tide_log SINCE {since}")
    with pytest.raises(DuplicateCursor):
        session.execute("DECLARE a SUBSCRIPTION CURSOR FOR tide_log")
    early = session.execute(f"DECLARE e SUBSCRIPTION CURSOR FOR tide_log SINCE {first[2] - 60_000}")
    assert "retained" in early[0].notices[0]
    assert fetch(session, "FETCH 5 FROM e") == [(2, "Insert"), (3, "Insert")]


def test_changes_of_a_view_stay_readable_while_folds_go_on(harbour: Engine, session: Session) -> None:
    session.execute("CREATE TABLE arrivals (berth varchar, tons int)")
    session.execute("CREATE MATERIALIZED VIEW load AS SELECT berth, sum(tons) AS tons FROM arrivals GROUP BY berth")
    session.execute("CREATE SUBSCRIPTION load_log FROM load WITH (retention = '1 day')")
    view, maintenance = relation_of(harbour, "load"), harbour.database.maintenance
    session.execute("INSERT INTO arrivals VALUES ('south', 5), ('north', 7)")
    session.execute("FLUSH")
    assert maintenance.fold_now(view)
    session.execute("INSERT INTO arrivals VALUES ('south', 1)")
    session.execute("FLUSH")
    assert maintenance.fold_now(view)
    version = harbour.database.runtime.versions.committed(view)
    assert version.log_rows == 0 and version.base_rows == 2
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR load_log SINCE begin()")
    assert fetch(session, "FETCH ALL FROM c") == [
        ("north", 7, "Insert"),
        ("south", 5, "Insert"),
        ("south", 5, "UpdateDelete"),
        ("south", 6, "UpdateInsert"),
    ]
    assert sorted(rows(session, "SELECT * FROM load")) == [("north", 7), ("south", 6)]


def test_what_is_older_than_the_retention_goes_and_a_late_cursor_is_told(
    harbour: Engine, session: Session, clock: TideClock
) -> None:
    session.execute("CREATE TABLE pilots (id int PRIMARY KEY)")
    session.execute("CREATE SUBSCRIPTION pilot_log FROM pilots WITH (retention = '1 hour')")
    table, maintenance = relation_of(harbour, "pilots"), harbour.database.maintenance
    versions = harbour.database.runtime.versions
    session.execute("DECLARE late SUBSCRIPTION CURSOR FOR pilot_log; DECLARE idle SUBSCRIPTION CURSOR FOR pilot_log")
    session.execute("INSERT INTO pilots VALUES (1)")
    assert fetch(session, "FETCH ALL FROM idle") == [(1, "Insert")]
    maintenance.fold_now(table)
    assert versions.segments(table), "the log is kept for the subscription"
    clock.ahead_ms += 2 * HOUR_MS
    maintenance.note([table])
    maintenance.settle()
    assert not versions.segments(table)
    with pytest.raises(CursorBehind):
        session.execute("FETCH NEXT FROM late")
    session.execute("INSERT INTO pilots VALUES (2)")
    assert fetch(session, "FETCH ALL FROM idle") == [(2, "Insert")]
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR pilot_log SINCE begin()")
    assert fetch(session, "FETCH ALL FROM c") == [(2, "Insert")]
    session.execute("ALTER SUBSCRIPTION pilot_log SET RETENTION TO '2 days'")
    session.execute("DECLARE d SUBSCRIPTION CURSOR FOR pilot_log SINCE begin()")
    assert fetch(session, "FETCH ALL FROM d") == [(2, "Insert")]
    maintenance.fold_now(table)
    session.execute("DROP SUBSCRIPTION pilot_log")
    maintenance.settle()
    assert not versions.segments(table)
    with pytest.raises(UndefinedObject):
        session.execute("FETCH NEXT FROM c")


def test_a_waiting_fetch_is_woken_by_a_commit_and_costs_spark_nothing(harbour: Engine, session: Session) -> None:
    session.execute("CREATE TABLE berths (id int PRIMARY KEY)")
    session.execute("CREATE SUBSCRIPTION berth_log FROM berths WITH (retention = '1h')")
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR berth_log")
    scheduler = harbour.database.runtime.spark.sparkContext._jsc.sc().dagScheduler()
    before = scheduler.numTotalJobs()
    assert rows(session, "FETCH 5 FROM c WITH (timeout = '300ms')") == []
    assert scheduler.numTotalJobs() == before
    answers: list[Any] = []
    waiting = threading.Thread(
        target=lambda: answers.append(fetch(session, "FETCH 5 FROM c WITH (timeout = '120s')")), daemon=True
    )
    waiting.start()
    harbour.execute("INSERT INTO berths VALUES (1)")
    waiting.join(60)
    assert answers == [[(1, "Insert")]]

    def cancelled() -> None:
        with pytest.raises(QueryCanceled):
            session.execute("FETCH 5 FROM c WITH (timeout = '120s')")
        answers.append("cancelled")

    waiting = threading.Thread(target=cancelled, daemon=True)
    waiting.start()
    while waiting.is_alive():
        session.cancel()
        waiting.join(0.05)
    assert answers[1:] == ["cancelled"]


@pytest.mark.parametrize("begins", ["SINCE begin()", "FULL"])
def test_a_fetch_after_the_last_row_waits_too(session: Session, begins: str) -> None:
    table = f"lasts_{begins[0]}"
    session.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    session.execute(f"CREATE SUBSCRIPTION {table}_s FROM {table} WITH (retention = '1 day')")
    session.execute(f"INSERT INTO {table} VALUES (1); FLUSH; DECLARE last SUBSCRIPTION CURSOR FOR {table}_s {begins}")
    assert fetch(session, "FETCH 1 FROM last") == [(1, "Insert")]
    started = time.monotonic()
    assert rows(session, "FETCH 1 FROM last WITH (timeout = '400ms')") == []
    assert time.monotonic() - started >= 0.4
    session.execute(f"INSERT INTO {table} VALUES (2); FLUSH")
    assert fetch(session, "FETCH 1 FROM last WITH (timeout = '60s')") == [(2, "Insert")]


def test_an_epoch_too_large_for_the_driver_comes_in_the_same_order(harbour: Engine, session: Session) -> None:
    session.execute("CREATE TABLE crates (id bigint PRIMARY KEY, tons int)")
    session.execute("CREATE SUBSCRIPTION crate_log FROM crates WITH (retention = '1h')")
    spark = harbour.database.runtime.spark
    harbour.insert("crates", spark.range(60_000).selectExpr("id", "1 AS tons"))
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR crate_log SINCE begin()")
    some = rows(session, "FETCH 20000 FROM c")
    others = rows(session, "FETCH ALL FROM c")
    assert [row[0] for row in [*some, *others]] == list(range(60_000))
    assert {row[2] for row in [*some, *others]} == {"Insert"}


def test_subscriptions_are_objects_like_others(harbour: Engine, session: Session) -> None:
    session.execute("CREATE SCHEMA quay; CREATE TABLE cranes (id int); CREATE VIEW all_cranes AS SELECT * FROM cranes")
    session.execute("CREATE SUBSCRIPTION crane_log FROM cranes WITH (retention = '1D')")
    assert session.execute("CREATE SUBSCRIPTION IF NOT EXISTS crane_log FROM cranes WITH (retention = '1D')")[0].notices
    for wrong, error in {
        "CREATE SUBSCRIPTION crane_log FROM cranes WITH (retention = '1D')": DuplicateObject,
        "CREATE SUBSCRIPTION x FROM cranes": InvalidDefinition,
        "CREATE SUBSCRIPTION x FROM cranes WITH (retention = 'long')": InvalidText,
        "CREATE SUBSCRIPTION x FROM cranes WITH (retention = '1D', speed = 'high')": InvalidParameter,
        "CREATE SUBSCRIPTION x FROM all_cranes WITH (retention = '1D')": WrongObjectType,
        "DECLARE c SUBSCRIPTION CURSOR FOR cranes": WrongObjectType,
        "DROP TABLE cranes": DependentObjects,
    }.items():
        with pytest.raises(error):
            session.execute(wrong)
    session.execute("ALTER TABLE cranes RENAME TO lifts; ALTER SUBSCRIPTION crane_log RENAME TO lift_log")
    session.execute("ALTER SUBSCRIPTION lift_log SET SCHEMA quay; ALTER SUBSCRIPTION quay.lift_log OWNER TO postgres")
    text = "CREATE SUBSCRIPTION quay.lift_log FROM lifts WITH (retention = '1D')"
    assert rows(session, "SHOW CREATE SUBSCRIPTION quay.lift_log") == [("quay.lift_log", text)]
    assert ("quay.lift_log",) in rows(session, "SHOW SUBSCRIPTIONS FROM quay")
    shown = "SELECT schema_name, definition, retention_seconds FROM rw_subscriptions WHERE name = 'lift_log'"
    assert rows(session, shown) == [("quay", text, 86_400)]
    session.execute("DECLARE c SUBSCRIPTION CURSOR FOR quay.lift_log; DECLARE d CURSOR WITH HOLD FOR SELECT 1")
    assert [row[4:6] for row in rows(session, "SHOW SUBSCRIPTION CURSORS") if row[0] == str(session.pid)] == [
        ("c", "quay.lift_log")
    ]
    assert [row[4] for row in rows(session, "SHOW CURSORS") if row[0] == str(session.pid)] == ["d"]
    session.execute("BEGIN; FETCH NEXT FROM c; COMMIT; FETCH NEXT FROM c")
    session.execute("DROP TABLE lifts CASCADE")
    assert rows(session, "SELECT * FROM rw_subscriptions WHERE name = 'lift_log'") == []


def test_a_subscription_and_its_log_survive_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path / "harbour")
    with Engine(config, spark) as engine:
        engine.execute("CREATE TABLE ships (id int PRIMARY KEY)")
        engine.execute("CREATE SUBSCRIPTION ship_log FROM ships WITH (retention = '1D')")
        engine.execute("INSERT INTO ships VALUES (1)")
        engine.database.maintenance.fold_now(relation_of(engine, "ships"))
    with Engine(config, spark) as engine:
        session = engine.session()
        engine.database.maintenance.settle()
        session.execute("INSERT INTO ships VALUES (2)")
        session.execute("DECLARE c SUBSCRIPTION CURSOR FOR ship_log SINCE begin()")
        assert fetch(session, "FETCH ALL FROM c") == [(1, "Insert"), (2, "Insert")]
        session.close()


def test_a_view_that_is_being_created_or_refreshed_on_a_schedule_has_no_log_yet(session: Session) -> None:
    session.execute("CREATE TABLE buoys (id int)")
    session.execute("SET background_ddl = true; SET backfill_rate_limit = 0")
    session.execute("CREATE MATERIALIZED VIEW slow AS SELECT id FROM buoys")
    with pytest.raises(ObjectNotReady):
        session.execute("CREATE SUBSCRIPTION slow_log FROM slow WITH (retention = '1D')")
    session.execute("DROP MATERIALIZED VIEW slow")


# --- PREPARE -----------------------------------------------------------------------------------------


def test_a_prepared_statement_runs_with_its_values(session: Session) -> None:
    session.execute("CREATE TABLE crew (id int PRIMARY KEY, name varchar, born date)")
    session.execute("PREPARE hire (int) AS INSERT INTO crew VALUES ($1, $2, $3)")
    assert session.execute("EXECUTE hire(1, 'Ada', '1815-12-10')")[0].tag == "INSERT 0 1"
    session.execute("EXECUTE hire(1 + 1, upper('bea'), date '1900-01-01' + 1)")
    session.execute("EXECUTE hire(-3, NULL, NULL)")
    session.execute("PREPARE who AS SELECT name, born FROM crew WHERE id = $1")
    assert [str(each) for row in rows(session, "EXECUTE who(2)") for each in row] == ["BEA", "1900-01-02"]
    assert rows(session, "EXECUTE who('-3')") == [(None, None)]
    with pytest.raises(SyntaxError_, match="wrong number of parameters"):
        session.execute("EXECUTE who")
    with pytest.raises((InvalidText, DatatypeMismatch)):
        session.execute("EXECUTE who('x')")
    with pytest.raises(DuplicateObject):
        session.execute("PREPARE who AS SELECT 1")
    session.execute("DEALLOCATE who")
    with pytest.raises(UndefinedStatement):
        session.execute("EXECUTE who(1)")
    session.execute("PREPARE who AS SELECT 1; DISCARD ALL")
    with pytest.raises(UndefinedStatement):
        session.execute("EXECUTE who")
