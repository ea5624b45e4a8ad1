"""Views over tables that only grow, in epochs too large for the driver: rows are written as they come."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest

import seiche
from seiche.model import RelationId
from seiche.storage import fold
from seiche.storage.parquet import ROW_GROUP_ROWS
from seiche.storage.versions import RelationVersion
from tests.integration.conftest import Open

pytestmark = [pytest.mark.spark]

VIEWS = {
    "mapped": "SELECT ship, berth + 1 AS next, tons * 2 AS doubled FROM arrivals",
    "chosen": "SELECT ship FROM arrivals WHERE berth > 2",
    "failing": "SELECT ship, 100 / berth AS q FROM arrivals",
    "named": "SELECT a.ship, s.name FROM arrivals a JOIN ships s ON a.ship = s.id",
    "all_ids": "SELECT ship AS id FROM arrivals UNION ALL SELECT id FROM ships",
    "pairs": "SELECT a.ship, b.berth FROM arrivals a JOIN arrivals b ON a.ship = b.ship",
    "on_top": "SELECT doubled FROM mapped WHERE next < 4",
    "summed": "SELECT ship, count(*) AS n, sum(doubled) AS t FROM mapped GROUP BY ship",
    "heaviest": (
        "SELECT ship, tons, n FROM (SELECT ship, tons, row_number() OVER (PARTITION BY ship ORDER BY tons DESC) AS n"
        " FROM arrivals) AS x WHERE n <= 2"
    ),
    "lightest": (
        "SELECT ship, berth, tons * 2 AS twice, tons FROM (SELECT *,"
        " rank() OVER (PARTITION BY ship ORDER BY tons, berth) AS n FROM arrivals) AS x WHERE n = 1"
    ),
    "of_name": (
        "SELECT name, tons FROM (SELECT s.name, a.tons,"
        " dense_rank() OVER (PARTITION BY s.name ORDER BY a.tons DESC) AS n"
        " FROM arrivals a JOIN ships s ON a.ship = s.id) AS x WHERE n < 3"
    ),
}


def same(db: seiche.Engine) -> None:
    for name, query in VIEWS.items():
        expected = query.replace("100 / berth", "100 / nullif(berth, 0)")
        assert _rows(db, f"SELECT * FROM {name}") == _rows(db, expected), name


def _rows(db: seiche.Engine, query: str) -> list[str]:
    return sorted(map(repr, db.sql(query).rows or []))


def test_views_over_tables_that_grow_by_many_rows_at_a_time_equal_their_queries(open_database: Open) -> None:
    settings = {"inline_rows_max": 3, "fold_min_rows": 40}
    db = open_database(**settings)
    db.execute("CREATE TABLE arrivals (ship int, berth int, tons bigint) APPEND ONLY")
    db.execute("CREATE TABLE ships (id int, name varchar) APPEND ONLY")
    for name, query in VIEWS.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.execute("INSERT INTO arrivals SELECT i % 7, i % 5, i FROM generate_series(1, 30) AS g(i)")
    same(db)
    at_once = [
        "INSERT INTO ships SELECT i, 'ship ' || i FROM generate_series(1, 9) AS g(i)",
        "INSERT INTO arrivals SELECT i % 7, i % 5, i FROM generate_series(20, 50) AS g(i)",
    ]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda statement: db.session().execute(statement), at_once))
    same(db)
    db.execute("INSERT INTO arrivals VALUES (1, 0, 5)")
    same(db)
    db.close()
    db = open_database(**settings)
    db.execute("INSERT INTO ships SELECT i, 'again ' || i FROM generate_series(5, 9) AS g(i)")
    same(db)
    db.execute("INSERT INTO arrivals SELECT nullif(i % 7, 0), i % 5, 60 - i FROM generate_series(1, 30) AS g(i)")
    same(db)
    db.database.maintenance.settle()
    same(db)
    told = db.sql("SELECT info FROM rw_catalog.rw_event_logs WHERE event_type = 'EXPRESSION_FAILED'").rows or []
    failed = [json.loads(info)["rows"] for (info,) in told if json.loads(info)["view"] == "failing"]
    assert sorted(failed) == [1, 6, 6, 7]


def test_many_rows_of_a_view_that_only_grows_are_written_bare(open_database: Open) -> None:
    db = open_database(inline_rows_max=3, fold_min_rows=10_000)
    db.execute("CREATE TABLE arrivals (ship int, berth int) APPEND ONLY")
    db.execute("CREATE TABLE tides (id int PRIMARY KEY, level int)")
    db.execute("CREATE MATERIALIZED VIEW grows AS SELECT ship FROM arrivals")
    db.execute("CREATE MATERIALIZED VIEW changes AS SELECT level FROM tides")
    db.execute("INSERT INTO arrivals SELECT i, i FROM generate_series(1, 30) AS g(i)")
    db.execute("INSERT INTO tides SELECT i, i FROM generate_series(1, 30) AS g(i)")
    assert [_bare(db, name) for name in ("grows", "changes")] == [{True}, {False}]


def _bare(db: seiche.Engine, name: str) -> set[bool]:
    found = db.database.catalog.find((name,)).id
    return {segment.bare for segment in db.database.runtime.versions.segments(found)}  # type: ignore[arg-type]


def test_epochs_of_many_rows_run_code_that_was_compiled_for_the_ones_before(open_database: Open) -> None:
    db = open_database(inline_rows_max=10, fold_min_rows=1_000_000)
    db.execute("CREATE TABLE calls (ship bigint) APPEND ONLY")
    db.execute("CREATE MATERIALIZED VIEW twice AS SELECT ship, ship * 2 AS double FROM calls")
    db.execute("CREATE MATERIALIZED VIEW counted AS SELECT ship, count(*) AS n FROM calls GROUP BY ship")
    rows = db.spark.range(100).selectExpr("id % 20 AS ship")
    java = db.spark._jvm
    assert java is not None
    compiled = []
    for _ in range(6):
        db.insert("calls", rows)
        compiled.append(java.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME().getCount())
    assert compiled[-1] == compiled[-2]
    assert db.sql("SELECT sum(n), count(DISTINCT n) FROM counted").rows == [(600, 1)]


def test_many_rows_of_a_frame_are_computed_once(open_database: Open) -> None:
    db = open_database(inline_rows_max=100)
    db.execute("CREATE TABLE calls (ship bigint) APPEND ONLY")
    db.spark.range(1000).selectExpr("id AS ship").write.parquet(f"{db.config.data_dir}/given")
    store = db.spark.sparkContext._jsc.sc().statusStore()
    for frame in (db.spark.range(1000).selectExpr("id AS ship"), db.spark.read.parquet(f"{db.config.data_dir}/given")):
        before = store.jobsList(None).size()
        assert db.insert("calls", frame) == 1000
        assert store.jobsList(None).size() == before + 1
    assert db.sql("SELECT count(*) FROM calls").rows == [(2000,)]


def test_a_fold_begins_no_dictionary_for_values_that_hardly_repeat(open_database: Open) -> None:
    db = open_database(inline_rows_max=1000, fold_min_rows=10_000_000)
    db.execute("CREATE TABLE calls (ship varchar, note varchar, pilot bigint) APPEND ONLY")
    relation = RelationId(db.database.catalog.find(("calls",)).id)

    def insert(first: int) -> None:
        pilot = "xxhash64(id % 8000) AS pilot"  # twice in a row group: a dictionary takes half of the room
        made = ("concat('ship ', id % 5) AS ship", "md5(string(id)) AS note", pilot)
        db.insert("calls", db.spark.range(first, first + 100_000).selectExpr(*made))

    def with_dictionary(path: str) -> set[str]:
        group = pq.ParquetFile(f"{db.config.data_dir}/{path}").metadata.row_group(0)
        columns = (group.column(number) for number in range(group.num_columns))
        return {each.path_in_schema for each in columns if each.has_dictionary_page} & {"ship", "note", "pilot"}

    insert(0)
    insert(100_000)
    first, *_, last = db.database.runtime.versions.committed(relation).segments
    assert {"ship", "pilot"} <= with_dictionary(first.path), "the first files tell for which columns dictionaries pay"
    assert with_dictionary(last.path) == {"ship"}, "those after them begin no others"
    for rows in (200_000, 300_000):
        assert db.database.maintenance.fold_now(relation)
        files = db.database.runtime.versions.committed(relation).base.files
        assert [with_dictionary(file.path) for file in files] == [{"ship"}] * len(files)
        assert db.sql("SELECT count(*), count(DISTINCT note), count(DISTINCT ship) FROM calls").rows == [
            (rows, rows, 5)
        ]
        insert(rows)


def test_row_groups_of_a_base_have_few_rows_however_small_these_are(open_database: Open) -> None:
    db = open_database(inline_rows_max=1000, fold_min_rows=10_000_000)
    db.execute("CREATE TABLE calls (ship bigint PRIMARY KEY, berth int)")
    db.insert("calls", db.spark.range(200_000).selectExpr("id AS ship", "1 AS berth"))
    assert _fold(db, "calls")
    footers = [pq.ParquetFile(f"{db.config.data_dir}/{path}").metadata for path in _base(db, "calls")]
    groups = [footer.row_group(number) for footer in footers for number in range(footer.num_row_groups)]
    assert sum(group.num_rows for group in groups) == 200_000
    assert max(group.num_rows for group in groups) <= ROW_GROUP_ROWS


def test_a_fold_takes_large_files_over_as_they_are(open_database: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "ROWS_TAKEN_OVER", 10_000)
    settings = {"inline_rows_max": 1000, "fold_min_rows": 10_000_000}
    db = open_database(**settings)
    db.execute("CREATE TABLE calls (ship bigint, tons bigint) APPEND ONLY")
    db.execute("CREATE MATERIALIZED VIEW twice AS SELECT ship, tons * 2 AS double FROM calls")
    for first in (0, 30_000):
        rows = db.spark.range(first, first + 30_000, 1, 2)
        db.insert("calls", rows.selectExpr("id AS ship", "(id * 7) % 1000 AS tons"))
    paths = {name: [each.path for each in _version(db, name).segments] for name in ("calls", "twice")}
    assert [_fold(db, name) for name in paths] == [True, True]
    assert _base(db, "calls") == paths["calls"]
    assert _base(db, "twice") == paths["twice"]
    expected = [
        ("SELECT count(*), sum(tons) FROM calls", [(60_000, 29_970_000)]),
        ("SELECT count(*), sum(double) FROM twice", [(60_000, 59_940_000)]),
        ("SELECT ship, tons FROM calls WHERE ship IN (3, 59999)", [(3, 21), (59_999, 993)]),
    ]

    def check() -> None:
        for query, rows in expected:
            assert sorted(db.sql(query).rows or []) == rows, query

    check()
    db.close()
    db = open_database(**settings)  # sweeps what nobody knows
    check()
    assert _rows_by_vnode(db, "calls") == _rows_by_vnode(db, "twice")
    monkeypatch.setattr(fold, "FILES_SPARE", 0)
    db.execute("INSERT INTO calls VALUES (-1, 0)")
    assert _fold(db, "calls")
    assert not set(_base(db, "calls")) & set(paths["calls"]), "too many files are written anew"
    db.execute("INSERT INTO calls VALUES (-2, 0)")  # the housekeeping after it deletes them
    db.database.maintenance.settle()
    assert not any((db.config.data_dir / path).exists() for path in paths["calls"])
    assert db.sql("SELECT count(*), sum(tons) FROM calls").rows == [(60_002, 29_970_000)]


def test_a_file_that_is_taken_over_outlives_the_subscription_that_retained_it(
    open_database: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "ROWS_TAKEN_OVER", 10_000)
    db = open_database(inline_rows_max=1000, fold_min_rows=10_000_000)
    db.execute("CREATE TABLE calls (ship bigint) APPEND ONLY")
    db.execute("CREATE SUBSCRIPTION told FROM calls WITH (retention = '1 day')")
    db.insert("calls", db.spark.range(0, 40_000, 1, 1).selectExpr("id AS ship"))
    (segment,) = _version(db, "calls").segments
    assert _fold(db, "calls")
    relation = RelationId(db.database.catalog.find(("calls",)).id)
    assert _base(db, "calls") == [segment.path]
    assert db.database.runtime.versions.segments(relation) == (segment,)
    db.execute("DROP SUBSCRIPTION told")
    db.execute("INSERT INTO calls VALUES (-1)")
    db.database.maintenance.settle()
    assert segment not in db.database.runtime.versions.segments(relation)
    assert db.sql("SELECT count(*), min(ship), max(ship) FROM calls").rows == [(40_001, -1, 39_999)]


def test_rows_of_one_epoch_that_make_many_slices_are_written_in_slices(
    open_database: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "ROWS_TAKEN_OVER", 1000)
    monkeypatch.setattr(fold, "ROWS_PER_SLICE", 10_000)
    db = open_database(inline_rows_max=100, fold_min_rows=10_000_000)
    db.execute("CREATE TABLE calls (ship bigint) APPEND ONLY")
    db.insert("calls", db.spark.range(0, 40_000, 1, 2).selectExpr("id AS ship"))
    assert _fold(db, "calls")
    files = _version(db, "calls").base.files
    assert len(files) == 4
    assert [file.vnode_lo for file in files] == [0, 64, 128, 192]


def _version(db: seiche.Engine, name: str) -> RelationVersion:
    return db.database.runtime.versions.committed(RelationId(db.database.catalog.find((name,)).id))


def _fold(db: seiche.Engine, name: str) -> bool:
    return db.database.maintenance.fold_now(RelationId(db.database.catalog.find((name,)).id))


def _base(db: seiche.Engine, name: str) -> list[str]:
    return [file.path for file in _version(db, name).base.files]


def _rows_by_vnode(db: seiche.Engine, name: str) -> dict[int, int]:
    rows = db.database.runtime.reader.exact(_version(db, name)).groupBy("_vnode").count().collect()
    return dict(rows)


def test_many_rows_at_a_time_keep_what_they_met_when_they_came(open_database: Open) -> None:
    settings = {"inline_rows_max": 3, "fold_min_rows": 40}
    db = open_database(**settings)
    db.execute("CREATE TABLE arrivals (ship int, tons bigint) APPEND ONLY")
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, name varchar)")
    db.execute("INSERT INTO ships VALUES (1, 'Aurora'), (2, 'Borealis')")
    join = "JOIN ships FOR SYSTEM_TIME AS OF PROCTIME() AS s ON s.id = a.ship % 4"
    views = {
        "met": f"SELECT a.tons, s.name FROM arrivals a {join}",
        "all_": f"SELECT a.tons, s.name FROM arrivals a LEFT {join}",
        "counted": f"SELECT s.name, count(*) AS n, max(a.tons) AS most FROM arrivals a {join} GROUP BY s.name",
        "heaviest": "SELECT name, tons FROM (SELECT *, row_number() OVER (PARTITION BY name ORDER BY tons DESC) AS n"
        f" FROM (SELECT a.tons, s.name FROM arrivals a {join}) x) y WHERE n <= 2",
        "seen": "SELECT tons, proctime() AS at FROM arrivals",
        "moments": "SELECT count(*) AS n FROM (SELECT proctime() AS at FROM arrivals) x GROUP BY at",
    }
    for name, query in views.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    met: list[tuple[int, str | None]] = []

    def arrive(first: int, last: int, names: dict[int, str]) -> None:
        db.execute(f"INSERT INTO arrivals SELECT i, i FROM generate_series({first}, {last}) AS g(i)")
        met.extend((i, names.get(i % 4)) for i in range(first, last + 1))
        found = [each for each in met if each[1] is not None]
        groups = {name: sorted((tons for tons, its in found if its == name), reverse=True) for _, name in found}
        assert _rows(db, "SELECT * FROM met") == sorted(map(repr, found))
        assert _rows(db, "SELECT * FROM all_") == sorted(map(repr, met))
        assert _rows(db, "SELECT * FROM counted") == sorted(repr((n, len(t), t[0])) for n, t in groups.items())
        assert _rows(db, "SELECT * FROM heaviest") == sorted(repr((n, t)) for n, ts in groups.items() for t in ts[:2])
        assert _rows(db, "SELECT tons FROM seen") == sorted(repr((tons,)) for tons, _ in met)

    arrive(1, 30, {1: "Aurora", 2: "Borealis"})
    db.execute("UPDATE ships SET name = 'Cirrus' WHERE id = 1")
    db.execute("INSERT INTO ships VALUES (3, 'Dione')")
    arrive(31, 70, {1: "Cirrus", 2: "Borealis", 3: "Dione"})
    db.database.maintenance.settle()
    db.close()
    db = open_database(**settings)
    db.execute("DELETE FROM ships WHERE id = 2")
    arrive(71, 72, {1: "Cirrus", 3: "Dione"})
    arrive(73, 110, {1: "Cirrus", 3: "Dione"})
    assert _rows(db, "SELECT * FROM moments") == sorted(repr((n,)) for n in (30, 40, 2, 38))
    assert _rows(db, "SELECT count(DISTINCT at) AS n FROM seen") == ["(4,)"]
