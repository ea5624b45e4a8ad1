"""The engine from outside: statements go in, rows come back."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from decimal import Decimal
from json import loads
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import seiche
from seiche import errors
from seiche.model import RelationId
from seiche.query import to_arrow

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]


def rows(db: seiche.Engine, query: str) -> list[tuple[object, ...]]:
    """The rows of a query in a fixed order."""
    return sorted(db.sql(query).rows or [], key=repr)


def relation_id(db: seiche.Engine, name: str) -> RelationId:
    return RelationId(db.database.catalog.find((name,)).id)


# --- tables --------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_row_written_is_a_row_read(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar, tons double precision)")
    (result,) = db.execute("INSERT INTO ships VALUES (1, 'Aurora', 10.5), (2, 'Borealis', NULL)")
    assert result.tag == "INSERT 0 2"
    assert rows(db, "SELECT * FROM ships") == [(1, "Aurora", 10.5), (2, "Borealis", None)]


def test_every_type_comes_back_as_it_went_in(db: seiche.Engine) -> None:
    db.execute(
        "CREATE TABLE kinds (k int PRIMARY KEY, a smallint, b bigint, c numeric(10,2), d numeric, e real, f boolean,"
        " g bytea, h date, i time, j timestamp, l timestamptz, m interval, n jsonb, o int[],"
        " p struct<x int, y varchar>)"
    )
    db.execute(
        "INSERT INTO kinds VALUES (1, 2, 3, 4.5, 6.75, 1.5, true, '\\xdeadbeef', '2024-02-29', '12:34:56.789',"
        " '2024-01-01 01:02:03', '2024-01-01 01:02:03+02',"
        " '1 mon 2 days 03:00:00', '{\"b\": 1, \"a\": [1, 2]}',"
        " ARRAY[1, NULL, 3], ROW(7, 'x'))"
    )
    db.execute("CREATE MATERIALIZED VIEW copied AS SELECT * FROM kinds")
    (row,) = db.sql("SELECT * FROM copied").rows or []
    assert row[:8] == (1, 2, 3, Decimal("4.50"), Decimal("6.75"), 1.5, True, b"\xde\xad\xbe\xef")
    assert row[8] == dt.date(2024, 2, 29)
    assert row[9] == ((12 * 60 + 34) * 60 + 56) * 1_000_000 + 789_000
    assert row[10] == dt.datetime(2024, 1, 1, 1, 2, 3)
    assert row[11] == dt.datetime(2023, 12, 31, 23, 2, 3, tzinfo=dt.UTC)
    assert row[12] == {"months": 1, "days": 2, "micros": 3 * 3_600_000_000}
    assert row[13:] == ('{"a":[1,2],"b":1}', [1, None, 3], {"x": 7, "y": "x"})


def test_a_repeated_key_overwrites(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE berths (id int PRIMARY KEY, depth int)")
    db.execute("CREATE MATERIALIZED VIEW deep AS SELECT count(*) AS n, sum(depth) AS d FROM berths")
    db.execute("INSERT INTO berths VALUES (1, 5), (1, 6), (2, 7)")
    assert rows(db, "SELECT * FROM deep") == [(2, 13)]
    db.execute("INSERT INTO berths VALUES (2, 8), (3, 1)")
    assert rows(db, "SELECT * FROM berths") == [(1, 6), (2, 8), (3, 1)]
    assert rows(db, "SELECT * FROM deep") == [(3, 15)]


def test_on_conflict_ignore_keeps_the_first_row(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE berths (id int PRIMARY KEY, depth int) ON CONFLICT IGNORE")
    db.execute("INSERT INTO berths VALUES (1, 5), (1, 6)")
    db.execute("INSERT INTO berths VALUES (1, 7), (2, 8)")
    assert rows(db, "SELECT * FROM berths") == [(1, 5), (2, 8)]


def test_on_conflict_do_update_if_not_null_fills_columns(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE berths (id int PRIMARY KEY, depth int, name varchar) ON CONFLICT DO UPDATE IF NOT NULL")
    db.execute("INSERT INTO berths VALUES (1, 5, NULL)")
    db.execute("INSERT INTO berths VALUES (1, NULL, 'north'), (1, 6, NULL)")
    assert rows(db, "SELECT * FROM berths") == [(1, 6, "north")]


@pytest.mark.parametrize("inline_rows_max", [0, 50_000], ids=["on executors", "on the driver"])
@pytest.mark.parametrize("rule", ["OVERWRITE", "IGNORE", "DO UPDATE IF NOT NULL"])
def test_on_conflict_in_an_insert_goes_before_the_rule_of_the_table(
    open_database: Open, inline_rows_max: int, rule: str
) -> None:
    db = open_database(inline_rows_max=inline_rows_max)
    db.execute(f"CREATE TABLE berths (id int PRIMARY KEY, depth int) ON CONFLICT {rule}")
    db.execute("CREATE MATERIALIZED VIEW deep AS SELECT count(*) AS n, sum(depth) AS d FROM berths")
    db.execute("INSERT INTO berths VALUES (1, 1), (2, 2), (NULL, 3)")
    (left,) = db.execute("INSERT INTO berths VALUES (1, 9), (4, 4), (4, 5), (NULL, 9) ON CONFLICT DO NOTHING")
    assert left.tag == "INSERT 0 1"
    assert rows(db, "SELECT * FROM deep") == [(4, 10)]
    (met,) = db.execute(
        "INSERT INTO berths AS b VALUES (1, 10), (2, 20), (NULL, 30), (5, 50) ON CONFLICT (id)"
        " DO UPDATE SET depth = b.depth + excluded.depth WHERE excluded.depth <> 20"
    )
    assert met.tag == "INSERT 0 3"
    assert rows(db, "SELECT id, depth FROM berths WHERE id IS NOT NULL") == [(1, 11), (2, 2), (4, 4), (5, 50)]
    assert rows(db, "SELECT depth FROM berths WHERE id IS NULL") == [(33,)]
    assert rows(db, "SELECT * FROM deep") == [(5, 100)]
    twice = "INSERT INTO berths VALUES (6, 1), (6, 2) ON CONFLICT (id) DO UPDATE SET depth = 0"
    with pytest.raises(errors.CardinalityViolation, match="a second time"):
        db.execute(twice)
    assert rows(db, "SELECT * FROM deep") == [(5, 100)]


def test_on_conflict_in_an_insert_leaves_rows_of_append_only_tables_alone(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE calls (id int PRIMARY KEY, ship varchar) APPEND ONLY")
    db.execute("INSERT INTO calls VALUES (1, 'Aurora'), (1, 'Borealis') ON CONFLICT (id) DO NOTHING")
    assert rows(db, "SELECT * FROM calls") == [(1, "Aurora")]
    with pytest.raises(errors.FeatureNotSupported, match="append-only"):
        db.execute("INSERT INTO calls VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET ship = 'x'")


@pytest.mark.parametrize("inline_rows_max", [0, 50_000], ids=["on executors", "on the driver"])
def test_large_and_small_inserts_follow_the_same_rules(open_database: Open, inline_rows_max: int) -> None:
    db = open_database(inline_rows_max=inline_rows_max)
    for rule, expected in (
        ("OVERWRITE", [(1, 20), (2, 2), (3, 30)]),
        ("IGNORE", [(1, 1), (2, 2), (3, 30)]),
        ("DO UPDATE IF NOT NULL", [(1, 20), (2, 2), (3, 30)]),
    ):
        db.execute(f"CREATE TABLE t (k int PRIMARY KEY, v int) ON CONFLICT {rule}")
        db.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
        db.execute("INSERT INTO t VALUES (1, 20), (3, 30)")
        assert rows(db, "SELECT * FROM t") == expected, rule
        db.execute("UPDATE t SET v = v + 1 WHERE k > 1; DELETE FROM t WHERE k = 3")
        assert rows(db, "SELECT k FROM t") == [(1,), (2,)]
        db.execute("DROP TABLE t")


def test_defaults_and_generated_columns_are_filled(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int, b int DEFAULT 2 + 3, c int AS a * b, d varchar NOT NULL DEFAULT 'x')")
    assert db.sql("INSERT INTO t (a) VALUES (4) RETURNING *").rows == [(4, 5, 20, "x")]
    assert db.sql("UPDATE t SET a = 1 RETURNING c").rows == [(5,)]
    with pytest.raises(errors.SeicheError, match="generated"):
        db.execute("INSERT INTO t (a, c) VALUES (1, 1)")


def test_not_null_fails_the_whole_statement(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int NOT NULL)")
    with pytest.raises(errors.NotNullViolation):
        db.execute("INSERT INTO t VALUES (1), (NULL)")
    assert rows(db, "SELECT * FROM t") == []


def test_a_failing_cast_in_one_row_fails_the_statement_and_nothing_else(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int); CREATE TABLE texts (s varchar); INSERT INTO texts VALUES ('1'), ('x')")
    with pytest.raises(errors.InvalidText):
        db.execute("INSERT INTO t SELECT s::int FROM texts")
    db.execute("INSERT INTO t VALUES (7)")
    assert rows(db, "SELECT * FROM t") == [(7,)]


def test_update_and_delete_return_what_they_changed(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int, b int); INSERT INTO t VALUES (1, 1), (2, 2), (2, 2)")
    updated = db.sql("UPDATE t SET b = b + 10 WHERE a = 2 RETURNING a, b")
    assert (updated.tag, updated.rows) == ("UPDATE 2", [(2, 12), (2, 12)])
    deleted = db.sql("DELETE FROM t WHERE a = 1 RETURNING b")
    assert (deleted.tag, deleted.rows) == ("DELETE 1", [(1,)])
    assert db.sql("DELETE FROM t WHERE a = 99 RETURNING *").rows == []


def test_an_update_cannot_move_a_row_onto_another(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2)")
    with pytest.raises(errors.UniqueViolation):
        db.execute("UPDATE t SET k = 2 WHERE k = 1")
    db.execute("UPDATE t SET k = k + 1")
    assert rows(db, "SELECT * FROM t") == [(2, 1), (3, 2)]


def test_an_append_only_table_never_loses_a_row(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE tides (at timestamp, metres real) APPEND ONLY")
    db.execute("INSERT INTO tides VALUES ('2024-01-01', 1.5)")
    with pytest.raises(errors.FeatureNotSupported):
        db.execute("DELETE FROM tides")


def test_create_table_as_keeps_types_and_rows(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE numbers AS SELECT i AS n, i * 0.5 AS half FROM generate_series(1, 3) AS g(i)")
    assert rows(db, "SELECT n, half FROM numbers") == [(1, Decimal("0.5")), (2, Decimal("1.0")), (3, Decimal("1.5"))]


# --- Python --------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_insert_takes_rows_dictionaries_arrow_and_frames(db: seiche.Engine, spark: SparkSession) -> None:
    db.execute("CREATE TABLE t (a int, b varchar DEFAULT 'none')")
    assert db.insert("t", [(1, "x"), (2, None)]) == 2
    assert db.insert("t", [{"a": 3}]) == 1
    assert db.insert("t", pa.table({"b": ["y"], "a": pa.array([4], pa.int64())})) == 1
    assert db.insert("t", spark.createDataFrame([(5, "z")], "a int, b string")) == 1
    assert rows(db, "SELECT * FROM t") == [(1, "x"), (2, None), (3, "none"), (4, "y"), (5, "z")]
    with pytest.raises(errors.UndefinedColumn, match='"c"'):
        db.insert("t", [{"c": 1}])
    with pytest.raises(errors.DatatypeMismatch):
        db.insert("t", [("not a number", "x")])


def test_table_and_to_spark_give_frames_at_one_epoch(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2)")
    frame = db.table("t")
    asked = db.sql("SELECT a + 1 AS b FROM t").to_spark()
    db.execute("INSERT INTO t VALUES (3)")
    db.database.maintenance.fold_now(relation_id(db, "t"))
    assert (frame.columns, frame.count()) == (["a"], 2)
    assert sorted(row.b for row in asked.collect()) == [2, 3]
    assert db.table("t").count() == 3


# --- views ---------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_views_follow_their_tables(db: seiche.Engine) -> None:
    db.execute(
        "CREATE TABLE ships (id int PRIMARY KEY, tons double precision);"
        "CREATE TABLE arrivals (ship int, berth int);"
        "CREATE MATERIALIZED VIEW load AS SELECT a.berth, count(*) AS n, sum(s.tons) AS tons, max(s.id) AS last"
        " FROM arrivals a JOIN ships s ON a.ship = s.id GROUP BY a.berth;"
        "CREATE MATERIALIZED VIEW busy AS SELECT berth FROM load WHERE n > 1"
    )
    db.execute("INSERT INTO ships VALUES (1, 10), (2, 0.1); INSERT INTO arrivals VALUES (1, 7), (2, 7), (1, 8)")
    assert rows(db, "SELECT * FROM load") == [(7, 2, 10.1, 2), (8, 1, 10.0, 1)]
    assert rows(db, "SELECT * FROM busy") == [(7,)]
    db.execute("DELETE FROM ships WHERE id = 2; UPDATE arrivals SET berth = 8 WHERE berth = 7 AND ship = 1")
    assert rows(db, "SELECT * FROM load") == [(8, 2, 20.0, 1)]
    assert rows(db, "SELECT * FROM busy") == [(8,)]


def test_a_view_over_existing_rows_is_built_and_then_kept(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int); INSERT INTO t SELECT i % 10 FROM generate_series(1, 100) AS g(i)")
    db.execute("CREATE MATERIALIZED VIEW v (digit, n) AS SELECT a, count(*) FROM t GROUP BY a")
    db.execute("INSERT INTO t VALUES (3), (11)")
    assert dict(rows(db, "SELECT digit, n FROM v")) == {**dict.fromkeys(range(10), 10), 3: 11, 11: 1}  # type: ignore[arg-type]


def test_writers_go_on_while_a_view_is_created(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int, b int)")
    db.execute("INSERT INTO t SELECT i % 50, i FROM generate_series(1, 200000) AS g(i)")
    stop = threading.Event()
    written = []

    def write() -> None:
        session = db.session()
        while not stop.is_set():
            session.insert("t", [(1, 1)])
            written.append(1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n, sum(b) AS s FROM t GROUP BY a")
    finally:
        stop.set()
        writer.join()
    assert written
    assert rows(db, "SELECT a, n, s FROM v") == rows(db, "SELECT a, count(*), sum(b) FROM t GROUP BY a")


def test_a_row_that_makes_an_expression_fail_gives_null_and_is_reported(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int, b int, s varchar)")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT a, a / b AS q, s::int AS i FROM t")
    db.execute("INSERT INTO t VALUES (1, 0, '5'), (2, 1, 'x')")
    assert rows(db, "SELECT * FROM v") == [(1, None, 5), (2, 2, None)]
    events = db.sql("SELECT event_type FROM rw_catalog.rw_event_logs").rows or []
    assert ("EXPRESSION_FAILED",) in events
    with pytest.raises(errors.DivisionByZero):
        db.execute("SELECT a / b FROM t")


def test_rows_that_a_new_view_is_filled_with_are_counted_where_they_fail(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int, b int, s varchar)")
    db.execute("INSERT INTO t VALUES (1, 0, '5'), (2, 1, 'x'), (3, 0, 'y'), (4, 2, '8')")
    db.execute("CREATE MATERIALIZED VIEW mapped AS SELECT a, a / b AS q FROM t")
    db.execute("CREATE MATERIALIZED VIEW chosen AS SELECT a FROM t WHERE s::int > 6")
    db.execute("CREATE MATERIALIZED VIEW summed AS SELECT sum(a / b) AS q FROM t")
    db.execute("CREATE MATERIALIZED VIEW fine AS SELECT a + b AS c FROM t")
    db.execute("SET streaming_use_snapshot_backfill = false")
    db.execute("CREATE MATERIALIZED VIEW grown AS SELECT a, a / b AS q FROM t")
    assert rows(db, "SELECT * FROM mapped ORDER BY a") == [(1, None), (2, 2), (3, None), (4, 2)]
    assert rows(db, "SELECT * FROM grown ORDER BY a") == [(1, None), (2, 2), (3, None), (4, 2)]
    assert rows(db, "SELECT * FROM chosen") == [(4,)]
    assert rows(db, "SELECT * FROM summed") == [(4,)]
    told = db.sql("SELECT info FROM rw_catalog.rw_event_logs WHERE event_type = 'EXPRESSION_FAILED'").rows or []
    found = {
        each["view"]: each["rows"] for (info,) in told for each in [info if isinstance(info, dict) else loads(info)]
    }
    assert found == {"mapped": 2, "chosen": 2, "summed": 2, "grown": 2}


def test_a_query_without_a_change_rule_is_kept_right_all_the_same(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE ships (id int, name varchar); CREATE TABLE arrivals (ship int, berth int)")
    db.execute(
        "CREATE MATERIALIZED VIEW last AS SELECT s.name, a.berth, row_number() OVER (ORDER BY s.id, a.berth) AS n"
        " FROM ships s LEFT JOIN arrivals a ON a.ship = s.id"
    )
    db.execute("INSERT INTO ships VALUES (1, 'Aurora'), (2, 'Borealis'), (2, 'Borealis')")
    db.execute("INSERT INTO arrivals VALUES (2, 5)")
    assert rows(db, "SELECT * FROM last") == [("Aurora", None, 1), ("Borealis", 5, 2), ("Borealis", 5, 3)]
    plan = "\n".join(
        row[0] for row in db.sql("EXPLAIN CREATE MATERIALIZED VIEW x AS SELECT rank() OVER (ORDER BY id) FROM ships")
    )
    assert "recompute" in plan
    with pytest.raises(errors.FeatureNotSupported, match="recomputed in full"):
        db.execute(
            "CREATE MATERIALIZED VIEW strict WITH (incremental = 'strict') AS"
            " SELECT id, rank() OVER (ORDER BY id) FROM ships"
        )


def test_a_view_that_cannot_be_created_leaves_nothing(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int)")
    for text, error in (
        ("SELECT * FROM v", errors.UndefinedTable),
        ("SELECT a, a FROM t", errors.DuplicateColumn),
        ("SELECT random() AS r FROM t", errors.FeatureNotSupported),
        ("SELECT b FROM t", errors.UndefinedColumn),
    ):
        with pytest.raises(error):
            db.execute(f"CREATE MATERIALIZED VIEW v AS {text}")
    assert db.sql("SHOW MATERIALIZED VIEWS").rows == []


def test_drop_checks_dependants_and_cascades(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int); CREATE VIEW plain AS SELECT a FROM t")
    db.execute("CREATE MATERIALIZED VIEW v AS SELECT a, count(*) AS n FROM plain GROUP BY a HAVING count(*) > 1")
    with pytest.raises(errors.DependentObjects) as caught:
        db.execute("DROP TABLE t")
    assert "plain" in (caught.value.detail or "")
    (dropped,) = db.execute("DROP TABLE t CASCADE")
    assert len(dropped.notices) == 2
    assert db.sql("SHOW TABLES").rows == db.sql("SHOW VIEWS").rows == db.sql("SHOW MATERIALIZED VIEWS").rows == []
    db.database.maintenance.settle()
    assert list((Path(db.config.data_dir)).glob("r*/**/*.parquet")) == []


# --- time ----------------------------------------------------------------------------------------------


def test_an_idle_database_runs_no_epoch_and_no_spark_job(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE t (a int); CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
    db.execute("ALTER SYSTEM SET barrier_interval_ms = 20")
    epochs: list[object] = []
    db.on_epoch(epochs.append)
    tracker = db.spark.sparkContext.statusTracker()
    before = len(tracker.getJobIdsForGroup(None))
    threading.Event().wait(0.5)
    assert (epochs, len(tracker.getJobIdsForGroup(None)) - before) == ([], 0)


def test_a_view_whose_inputs_did_not_change_does_not_run(db: seiche.Engine) -> None:
    db.execute("CREATE TABLE a (x int); CREATE TABLE b (x int)")
    db.execute("CREATE MATERIALIZED VIEW va AS SELECT x FROM a; CREATE MATERIALIZED VIEW vb AS SELECT x FROM b")
    reports = []
    db.on_epoch(reports.append)
    db.execute("INSERT INTO a VALUES (1)")
    assert [job.name for report in reports for job in report.jobs] == ["a", "va"]


def test_flush_returns_when_everything_is_visible(open_database: Open) -> None:
    db = open_database(checkpoint_frequency=5, barrier_interval_ms=10_000)
    db.execute("CREATE TABLE t (a int); CREATE MATERIALIZED VIEW v AS SELECT sum(a) AS s FROM t")
    writer = threading.Thread(target=lambda: db.session().insert("t", [(1,), (2,)]))
    writer.start()
    while writer.is_alive():
        db.session().execute("FLUSH")
    writer.join()
    assert rows(db, "SELECT s FROM v") == [(3,)]


def test_a_past_epoch_can_be_read_within_the_retention(open_database: Open) -> None:
    db = open_database(retention_ms=60_000)
    db.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    then = db.committed_epoch
    db.execute("UPDATE t SET a = 2; INSERT INTO t VALUES (3)")
    db.database.maintenance.fold_now(relation_id(db, "t"))
    db.execute(f"SET query_epoch = {then}")
    assert rows(db, "SELECT * FROM t") == [(1,)]
    db.execute("SET query_epoch = 0")
    assert rows(db, "SELECT * FROM t") == [(2,), (3,)]
    db.execute("SET query_epoch = 1")
    with pytest.raises(errors.InvalidParameter, match="not retained"):
        db.execute("SELECT * FROM t")


def test_system_parameters_are_kept_across_restarts(open_database: Open) -> None:
    db = open_database()
    db.execute("ALTER SYSTEM SET barrier_interval_ms TO 250")
    db.close()
    shown = dict(row[:2] for row in open_database().sql("SHOW PARAMETERS"))
    assert shown["barrier_interval_ms"] == "250"


def test_temporary_tables_end_with_their_session_or_with_the_database(open_database: Open) -> None:
    db = open_database()
    session = db.session()
    session.execute("CREATE TEMP TABLE late (id int PRIMARY KEY); INSERT INTO late VALUES (1), (2)")
    with pytest.raises(errors.FeatureNotSupported, match="temporary tables of other sessions"):
        db.sql(f"SELECT * FROM pg_temp_{session.pid}.late")
    session.close()
    assert [schema.name for schema in db.database.catalog.schemas] == ["public"]
    db.execute("CREATE TEMP TABLE late AS SELECT 3 AS id; CREATE INDEX by_id ON late (id)")
    number = db.database.catalog.find((f"pg_temp_{db._default.pid}", "late")).id
    db.close()
    db = open_database()
    assert [schema.name for schema in db.database.catalog.schemas] == ["public"]
    assert db.database.catalog.objects() == ()
    assert not list(Path(db.config.data_dir).glob(f"r{number}/**/*.parquet"))


# --- storage -------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_folds_and_restarts_change_nothing_that_a_reader_sees(open_database: Open) -> None:
    db = open_database(segments_max_per_relation=2)
    db.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    db.execute("CREATE MATERIALIZED VIEW odd AS SELECT v, count(*) AS n, min(k) AS first FROM t GROUP BY v")
    for step in range(6):
        db.execute(f"INSERT INTO t SELECT i, i % 3 + {step} FROM generate_series({step * 5}, {step * 5 + 9}) AS g(i)")
        db.execute(f"DELETE FROM t WHERE k % 7 = {step}")
        if step % 2:
            for name in ("t", "odd"):
                assert db.database.maintenance.fold_now(relation_id(db, name))
        if step == 3:
            db.close()
            db = open_database(segments_max_per_relation=2)
        assert rows(db, "SELECT * FROM odd") == rows(db, "SELECT v, count(*), min(k) FROM t GROUP BY v")


def test_a_base_is_an_iceberg_table_that_others_read_and_its_metadata_does_not_grow(db: seiche.Engine) -> None:
    from pyiceberg.table import StaticTable

    db.execute("CREATE TABLE t (k int PRIMARY KEY, v varchar)")
    number = relation_id(db, "t")
    sizes = []
    for step in range(4):
        db.execute(f"INSERT INTO t VALUES ({step}, 'x'), (100, 'y')")
        db.database.maintenance.fold_now(number)
        db.database.maintenance.note([number])
        db.database.maintenance.settle()
        sizes.append(len(list(Path(db.config.data_dir).glob(f"r{number}/metadata/*"))))
    bases = db.database.maintenance._bases
    table = StaticTable.from_metadata(bases.metadata_location(number))
    assert sorted(table.scan().to_arrow()["k"].to_pylist()) == [0, 1, 2, 3, 100]
    assert len(table.snapshots()) == 1
    assert sizes[-1] == sizes[1]


def test_files_that_no_checkpoint_registered_are_swept_at_start(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
    number = relation_id(db, "t")
    orphan = Path(db.config.data_dir) / f"r{number}" / "seg" / "00000000000000000001-dead.parquet"
    db.close()
    orphan.write_bytes(b"half a file")
    db = open_database()
    assert not orphan.exists()
    assert rows(db, "SELECT * FROM t") == [(1,)]


# --- sessions ------------------------------------------------------------------------------------------


def test_a_long_statement_can_be_cancelled_and_the_session_lives(db: seiche.Engine) -> None:
    session = db.session()
    started = threading.Event()

    def cancel() -> None:
        started.wait()
        for _ in range(100):
            threading.Event().wait(0.1)
            session.cancel()
            if done.is_set():
                return

    done = threading.Event()
    canceller = threading.Thread(target=cancel)
    canceller.start()
    started.set()
    try:
        with pytest.raises(errors.QueryCanceled):
            session.execute("SELECT count(*) FROM generate_series(1, 100000) a(i), generate_series(1, 100000) b(j)")
    finally:
        done.set()
        canceller.join()
    assert session.execute("SELECT 1")[0].rows == [(1,)]


def test_variables_belong_to_their_session(db: seiche.Engine) -> None:
    one, two = db.session(), db.session()
    one.execute("SET application_name = 'harbour'")
    assert one.execute("SHOW application_name")[0].rows == [("harbour",)]
    assert two.execute("SHOW application_name")[0].rows == [("",)]
    with pytest.raises(errors.UndefinedObject):
        one.execute("SET no_such_thing = 1")


def test_names_are_folded_and_quoted_as_in_postgresql(db: seiche.Engine) -> None:
    db.execute('CREATE SCHEMA "Port"; CREATE TABLE "Port"."Ships" ("Id" int, NAME varchar)')
    db.execute('INSERT INTO "Port"."Ships" VALUES (1, \'Aurora\')')
    assert rows(db, 'SELECT "Id", name FROM "Port"."Ships"') == [(1, "Aurora")]
    with pytest.raises(errors.UndefinedTable):
        db.execute("SELECT * FROM Port.Ships")
    with pytest.raises(errors.DependentObjects):
        db.execute('DROP SCHEMA "Port"')
    db.execute('DROP SCHEMA "Port" CASCADE')


def test_describe_and_show_create_tell_what_was_written(db: seiche.Engine) -> None:
    db.execute("create table t (k int PRIMARY KEY, v varchar DEFAULT 'x')")
    described = db.sql("DESCRIBE t").rows or []
    assert described[:2] == [
        ("k", "integer", "false", "primary key"),
        ("v", "character varying", "false", "default 'x'"),
    ]
    text = "CREATE TABLE t (k INT PRIMARY KEY, v CHARACTER VARYING DEFAULT 'x')"
    assert db.sql("SHOW CREATE TABLE t").rows == [("public.t", text)]
    with pytest.raises(errors.WrongObjectType):
        db.execute("SHOW CREATE MATERIALIZED VIEW t")


def test_few_rows_are_put_in_order_without_a_spark_job(db: seiche.Engine) -> None:
    spark = db.spark
    berths = pa.table({"berth": [3, 1, None, 2], "quay": ["north", "south", "east", None]})
    spark.createDataFrame(berths).createOrReplaceTempView("few_berths")
    spark.sparkContext.setJobGroup("in order", "a test")
    for query, expected in {
        "SELECT berth, quay FROM few_berths ORDER BY berth DESC NULLS LAST": [3, 2, 1, None],
        "SELECT cast(berth AS bigint) AS berth FROM few_berths WHERE quay <> 'north' ORDER BY quay LIMIT 1": [None],
        "SELECT berth FROM few_berths ORDER BY quay, berth LIMIT 3": [2, None, 3],
    }.items():
        assert to_arrow(spark.sql(query))["berth"].to_pylist() == expected, query
    assert list(spark.sparkContext.statusTracker().getJobIdsForGroup("in order")) == []
    computed = "SELECT berth FROM few_berths ORDER BY berth % 2, berth"  # no column: Spark's own sort
    assert to_arrow(spark.sql(computed))["berth"].to_pylist() == [None, 2, 1, 3]
    spark.catalog.dropTempView("few_berths")
