"""Views in creation as users meet them: they step, wait, are throttled, cancelled, and resumed."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import seiche
from seiche import errors
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Graph
from seiche.model import JobId, RelationId
from seiche.stream import fragment as fragments
from seiche.stream.backfill import arrangement
from seiche.stream.backfill.progress import Slice, StepSizer
from seiche.stream.backfill.slices import GrowingReads, Seen, SliceRows, within
from seiche.stream.backfill.snapshot import SnapshotBackfill
from tests.folders import relation_files

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]

# One of every way in which a view is built in steps.
SHAPES = {
    "filtered": "SELECT id, containers * 2 AS doubled FROM arrivals WHERE containers % 3 = 0",
    "joined": "SELECT a.id, b.name FROM arrivals a JOIN berths b ON a.berth = b.id",
    "grouped": "SELECT berth, count(*) AS n, sum(containers) AS c, min(id) AS first, max(id) AS last"
    " FROM arrivals GROUP BY berth",
    "total": "SELECT count(*) AS n, sum(containers) AS c FROM arrivals WHERE containers > 50",
    "united": "SELECT id FROM arrivals UNION ALL SELECT id FROM berths UNION ALL SELECT containers FROM arrivals",
    "paired": "SELECT a.id AS x, b.id AS y FROM arrivals a JOIN arrivals b ON a.containers = b.id AND b.id < 40",
    "nested": "SELECT n, count(*) AS berths FROM"
    " (SELECT berth, count(*) AS n FROM arrivals GROUP BY berth) t GROUP BY n",
    "anew": "SELECT berth, string_agg(id::varchar, ',' ORDER BY id) AS ids FROM arrivals GROUP BY berth",
}


def rows(db: seiche.Engine, query: str) -> list[tuple[Any, ...]]:
    return list(db.sql(query).rows or [])


def harbour(db: seiche.Engine, arrivals: int = 600) -> None:
    db.execute("CREATE TABLE arrivals (id int PRIMARY KEY, berth int, containers int)")
    db.execute("CREATE TABLE berths (id int PRIMARY KEY, name varchar)")
    db.execute("INSERT INTO berths SELECT i, 'pier ' || i FROM generate_series(0, 9) AS g(i)")
    if arrivals:
        db.execute(f"INSERT INTO arrivals SELECT i, i % 7, (i * 13) % 100 FROM generate_series(1, {arrivals}) AS g(i)")


def same(db: seiche.Engine, name: str, query: str) -> None:
    assert Counter(rows(db, f"SELECT * FROM {name}")) == Counter(rows(db, query)), name


def job_of(db: seiche.Engine, name: str) -> JobId:
    return JobId(db.database.catalog.find((name,)).id)


def progress(db: seiche.Engine, name: str) -> str | None:
    return db.database.jobs.progress(job_of(db, name))


def percent(text: str | None) -> float:
    found = re.match(r"Snapshot \[(\d+\.\d+)%", text or "")
    assert found is not None, text
    return float(found[1])


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


# --- building in steps ---------------------------------------------------------------------------------


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of less than a hundred rows, whatever time they take."""
    for name, value in (("FIRST_ROWS", 20), ("AT_ONCE_ROWS", 20), ("LEAST_ROWS", 60), ("TARGET_SECONDS", 0.0)):
        monkeypatch.setattr(StepSizer, name, value)


def test_a_view_of_any_shape_that_is_built_in_steps_equals_its_query(db: seiche.Engine, small_steps: None) -> None:
    harbour(db, 250)
    db.execute("SET background_ddl = true")
    for name, query in SHAPES.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    db.execute("DELETE FROM arrivals WHERE id % 10 = 0")
    db.execute("UPDATE arrivals SET berth = 1 WHERE id BETWEEN 50 AND 70")
    backfill = db.database.jobs.get(job_of(db, "grouped"))
    db.execute("INSERT INTO arrivals SELECT i, i % 7, 7 FROM generate_series(1001, 1050) AS g(i)")
    db.execute("WAIT")
    assert rows(db, "SHOW JOBS") == []
    for name, query in SHAPES.items():
        same(db, name, query)
    assert isinstance(backfill, SnapshotBackfill) and backfill.steps >= 3, "it was not built in steps"
    db.execute("DELETE FROM arrivals WHERE id % 3 = 0")
    for name, query in SHAPES.items():
        same(db, name, query)


def test_a_view_that_is_done_may_be_asked_how_far_it_is(db: seiche.Engine) -> None:
    """Whoever waits for it asks now and then, and may do so when its pin is gone and its table has been folded."""
    harbour(db, 50)
    db.execute("SET background_ddl = true; PAUSE")
    db.execute("CREATE MATERIALIZED VIEW heavy AS SELECT id FROM arrivals WHERE containers > 5")
    backfill = db.database.jobs.get(job_of(db, "heavy"))
    db.execute("RESUME; WAIT")
    db.execute("DELETE FROM arrivals WHERE id < 20")
    db.database.maintenance.fold_now(RelationId(job_of(db, "arrivals")))
    assert isinstance(backfill, SnapshotBackfill) and "100" not in str(backfill.progress)


# --- throttled -----------------------------------------------------------------------------------------


def test_a_limited_backfill_keeps_its_pace_and_tells_the_truth_also_after_a_restart(open_database: Open) -> None:
    db = open_database()
    harbour(db, 1000)
    db.execute("SET background_ddl = true")
    db.execute(f"CREATE MATERIALIZED VIEW slow WITH (backfill_rate_limit = 50) AS {SHAPES['filtered']}")
    until(lambda: "/1000)" in (progress(db, "slow") or "") and percent(progress(db, "slow")) > 0)
    first, began = percent(progress(db, "slow")), time.monotonic()
    seen = [first]
    while time.monotonic() < began + 6:
        seen.append(percent(progress(db, "slow")))
        time.sleep(0.1)
    assert seen == sorted(seen), "progress went backwards"
    expected = first + 50 * (time.monotonic() - began) / 10
    assert abs(seen[-1] - expected) <= 6, f"{seen[-1]} % instead of about {expected:.1f} %"
    with pytest.raises(errors.ObjectNotReady) as refused:
        db.sql("SELECT * FROM slow")
    assert "Snapshot [" in (refused.value.detail or "")
    for statement in ("MATERIALIZED VIEW top AS SELECT * FROM slow", "INDEX i ON slow (id)"):
        with pytest.raises(errors.ObjectNotReady) as refused:
            db.execute(f"CREATE {statement}")
        assert "Snapshot [" in (refused.value.detail or "")
    db.close()

    again = open_database()
    assert percent(progress(again, "slow")) >= seen[-1] - 0.01, "what was read is read again"
    again.execute("ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = 0")
    until(lambda: "paused by" in (progress(again, "slow") or ""))
    stopped = percent(progress(again, "slow"))
    time.sleep(1)
    assert percent(progress(again, "slow")) - stopped <= 6, "a limit of 0 does not pause"
    assert percent(progress(again, "slow")) < 100
    again.execute("ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT TO DEFAULT; WAIT MATERIALIZED VIEW slow")
    same(again, "slow", SHAPES["filtered"])
    with pytest.raises(errors.ObjectNotReady, match="no backfill"):
        again.execute("ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = 10")


def test_create_and_cancel_leave_metadata_and_folder_as_before(db: seiche.Engine) -> None:
    harbour(db, 300)
    db.database.maintenance.settle()
    store, folder = db.database.store, Path(db.config.data_dir)

    def left() -> tuple[object, ...]:
        state = store.load()
        return state.catalog, state.segments, state.pins, dict(state.progress), state.backfill, relation_files(folder)

    before = left()
    db.execute("SET background_ddl = true; SET backfill_rate_limit = 40")
    for _ in range(5):
        db.execute(f"CREATE MATERIALIZED VIEW passing AS {SHAPES['grouped']}")
        job = job_of(db, "passing")
        assert [row[0] for row in rows(db, "SHOW JOBS")] == [job]
        db.execute(f"CANCEL JOBS {job}")
        assert rows(db, "SHOW JOBS") == []
        assert store.load().pins == ()
    with pytest.raises(errors.UndefinedObject, match="job 1 does not exist"):
        db.execute("CANCEL JOB 1")
    db.execute(f"CREATE MATERIALIZED VIEW passing AS {SHAPES['grouped']}")
    until(lambda: percent(progress(db, "passing")) >= 10)
    db.execute("DROP MATERIALIZED VIEW passing")
    db.database.maintenance.settle()
    until(lambda: left() == before)


def test_views_wait_for_a_place_and_a_pause_stops_everything(db: seiche.Engine) -> None:
    harbour(db, 100)
    db.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 1; SET background_ddl = true")
    db.execute(f"CREATE MATERIALIZED VIEW one WITH (backfill_rate_limit = 0) AS {SHAPES['filtered']}")
    db.execute(f"CREATE MATERIALIZED VIEW two AS {SHAPES['grouped']}")
    assert progress(db, "two") == "Waiting [0 before it; max_concurrent_creating_streaming_jobs is 1]"
    db.execute(f"CANCEL JOB {job_of(db, 'one')}; WAIT")
    same(db, "two", SHAPES["grouped"])

    db.execute("PAUSE")
    db.execute(f"CREATE MATERIALIZED VIEW three AS {SHAPES['joined']}")
    until(lambda: (progress(db, "three") or "").endswith("paused: RESUME continues"))
    db.execute("RESUME; WAIT")
    same(db, "three", SHAPES["joined"])


def test_recover_starts_views_in_creation_again_where_they_were(db: seiche.Engine, small_steps: None) -> None:
    harbour(db, 300)
    db.execute("SET background_ddl = true")
    db.execute(f"CREATE MATERIALIZED VIEW slow WITH (backfill_rate_limit = 100) AS {SHAPES['grouped']}")
    until(lambda: (progress(db, "slow") or "").startswith("Snapshot [") and percent(progress(db, "slow")) > 5)
    before = percent(progress(db, "slow"))
    db.execute("RECOVER")
    assert percent(progress(db, "slow")) >= before
    told = "SELECT info ->> 'reason', info -> 'views_in_creation' FROM rw_event_logs WHERE event_type LIKE '%RECOVERY%'"
    assert rows(db, told) == [("RECOVER", '["slow"]'), ("start", "[]")]
    assert '"reason":"RECOVER"' in rows(db, "SELECT last_global_event FROM rw_recovery_info")[0][0].replace(" ", "")
    db.execute("INSERT INTO arrivals VALUES (5000, 1, 1)")
    db.execute("ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
    same(db, "slow", SHAPES["grouped"])


def test_an_order_of_backfill_is_checked_and_followed(db: seiche.Engine) -> None:
    harbour(db, 50)
    query = "SELECT id FROM arrivals UNION ALL SELECT id FROM berths"
    create = f"CREATE MATERIALIZED VIEW v WITH (backfill_order = {{}}) AS {query}"
    with pytest.raises(errors.InvalidDefinition, match="cycle"):
        db.execute(create.format("FIXED(arrivals -> berths, berths -> arrivals)"))
    db.execute("CREATE TABLE tides (id int PRIMARY KEY); CREATE VIEW quays AS SELECT id FROM berths")
    for unread in ("tides", "nowhere", "quays", "north.berths"):
        with pytest.raises(errors.UndefinedObject, match=f'"{unread}", which the view does not read'):
            db.execute(create.format(f"FIXED({unread} -> berths)"))
    assert rows(db, "SHOW JOBS") == []
    for order in ("FIXED(berths -> arrivals)", 'FIXED(public.berths -> public."arrivals")'):
        assert rows(db, f"EXPLAIN {create.format(order)}")[-1] == ("Backfill: snapshot, berths then arrivals in steps",)
    through = "CREATE MATERIALIZED VIEW v WITH (backfill_order = FIXED(berths -> arrivals)) AS"
    shown = rows(db, f"EXPLAIN {through} SELECT id FROM arrivals UNION ALL SELECT id FROM quays")[-1]
    assert shown == ("Backfill: snapshot, berths then arrivals in steps",), "a view is read through to its tables"
    db.execute("SET background_ddl = true; SET backfill_rate_limit = 0")
    db.execute(create.format("FIXED(berths -> arrivals)"))
    backfill = db.database.jobs.get(job_of(db, "v"))
    assert isinstance(backfill, SnapshotBackfill)
    names = {db.database.catalog.get(each).name: each for each in backfill.job.inputs}
    assert backfill._stages[0].driven == (names["berths"], names["arrivals"])
    db.execute("ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT = -1; WAIT")
    same(db, "v", query)


def test_views_are_moved_swapped_and_given_away(open_database: Open) -> None:
    db = open_database()
    harbour(db, 60)
    db.execute("CREATE MATERIALIZED VIEW a AS SELECT berth, count(*) AS n FROM arrivals GROUP BY berth")
    db.execute("CREATE MATERIALIZED VIEW b AS SELECT berth, 0::bigint AS n FROM arrivals WHERE id = 1")
    db.execute("CREATE SCHEMA north; CREATE USER pilot")
    db.execute("CREATE MATERIALIZED VIEW top AS SELECT berth FROM a WHERE n > 8")
    expected = sorted(rows(db, "SELECT * FROM top"))
    db.execute("ALTER MATERIALIZED VIEW a SWAP WITH b")
    assert rows(db, "SELECT n FROM a") == [(0,)]
    db.execute("INSERT INTO arrivals VALUES (800, 6, 1)")
    assert sorted(rows(db, "SELECT * FROM top")) == [*expected, (6,)], "it reads the view that it always read"
    db.execute("DROP MATERIALIZED VIEW top")
    db.execute("ALTER MATERIALIZED VIEW b SET SCHEMA north; ALTER MATERIALIZED VIEW north.b OWNER TO pilot")
    shown = rows(db, "SHOW CREATE MATERIALIZED VIEW north.b")[0][1]
    assert shown.startswith("CREATE MATERIALIZED VIEW north.b AS")
    db.execute("ALTER TABLE arrivals SET SCHEMA north")
    db.execute("INSERT INTO north.arrivals VALUES (850, 6, 1)")
    same(db, "north.b", "SELECT berth, count(*) FROM north.arrivals GROUP BY berth")
    db.execute("ALTER SCHEMA north RENAME TO upper; ALTER TABLE upper.arrivals SET SCHEMA public")
    db.close()
    again = open_database()
    again.execute("INSERT INTO arrivals SELECT i, 3, 1 FROM generate_series(900, 905) AS g(i)")
    same(again, "upper.b", "SELECT berth, count(*) FROM arrivals GROUP BY berth")


# --- inside the main graph -----------------------------------------------------------------------------


def test_views_that_grow_inside_the_main_graph_equal_their_queries(
    open_database: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrangement, "ROWS_PER_BARRIER", 40)
    monkeypatch.setattr(arrangement, "BARRIER_SECONDS", 0.0)
    monkeypatch.setattr(StepSizer, "LEAST_ROWS", 40)
    db = open_database(barrier_interval_ms=20)
    harbour(db, 1000)
    db.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 0")
    db.execute("SET background_ddl = true; SET streaming_use_snapshot_backfill = false; SET backfill_rate_limit = 0")
    shapes = {name: SHAPES[name] for name in ("filtered", "joined", "grouped", "total", "united", "nested")}
    for name, query in shapes.items():
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    assert progress(db, "filtered") == "Snapshot [0.00% (0/1000)], paused by a backfill_rate_limit of 0"
    assert progress(db, "united") == "Snapshot [0.00% (0/1010)], paused by a backfill_rate_limit of 0"

    def all_past(least: int) -> bool:
        return all(percent(progress(db, name)) > least for name in shapes)

    for name in shapes:  # 1000 rows take 100 s so: none is done before the restart
        db.execute(f"ALTER MATERIALIZED VIEW {name} SET BACKFILL_RATE_LIMIT = 10")
    for step in range(3):
        until(partial(all_past, 2 * step))
        db.execute(f"UPDATE arrivals SET berth = 6 - berth WHERE id % 5 = {step}")
        db.execute(f"DELETE FROM arrivals WHERE id BETWEEN {step * 20} AND {step * 20 + 5}")
    before = percent(progress(db, "grouped"))
    db.close()

    monkeypatch.setattr(arrangement, "ROWS_PER_BARRIER", 300)
    monkeypatch.setattr(StepSizer, "LEAST_ROWS", 300)
    db = open_database(barrier_interval_ms=20)
    assert before > 0 and percent(progress(db, "grouped")) >= before, "what was read is read again"
    db.execute("INSERT INTO arrivals SELECT i, i % 7, 7 FROM generate_series(2001, 2050) AS g(i)")
    for name in shapes:
        db.execute(f"ALTER MATERIALIZED VIEW {name} SET BACKFILL_RATE_LIMIT = DEFAULT")
    db.execute("WAIT")
    for name, query in shapes.items():
        same(db, name, query)
    db.execute("DELETE FROM arrivals WHERE id % 3 = 0")
    for name, query in shapes.items():
        same(db, name, query)
    assert db.database.store.load().backfill == ()


def test_a_growing_view_sees_no_delete_of_rows_that_it_has_not_read(db: seiche.Engine) -> None:
    """Changes of a small table come as a frame too, and of that only the rows that were read may pass."""
    harbour(db, 1000)
    db.execute("SET background_ddl = true; SET streaming_use_snapshot_backfill = false; SET backfill_rate_limit = 100")
    query = "SELECT berth, count(*) AS n FROM arrivals GROUP BY berth"
    db.execute(f"CREATE MATERIALIZED VIEW v AS {query}")
    for digit in range(3):
        until(lambda least=10 * digit: percent(progress(db, "v")) > least)
        db.execute("ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT = 0")  # no slice comes with the delete
        db.execute(f"DELETE FROM arrivals WHERE id % 10 = {digit}")
        db.execute("ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT = 100")
    assert progress(db, "v") is not None
    db.execute("ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
    same(db, "v", query)


def test_the_kind_of_backfill_is_chosen_and_shown(db: seiche.Engine) -> None:
    harbour(db, 20)

    def explained(query: str) -> str:
        return str(rows(db, f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query}")[-1][0])

    assert explained(SHAPES["joined"]) == "Backfill: snapshot, arrivals in steps"
    assert explained(SHAPES["united"]) == "Backfill: snapshot, arrivals then berths in steps"
    assert explained(SHAPES["anew"]) == "Backfill: snapshot, in one step"
    db.execute("SET streaming_use_snapshot_backfill = false")
    assert explained(SHAPES["grouped"]) == "Backfill: arrangement, arrivals in steps"
    assert explained(SHAPES["anew"]) == "Backfill: snapshot, in one step"
    db.execute("SET streaming_use_arrangement_backfill = false")
    assert explained(SHAPES["filtered"]) == "Backfill: no-shuffle, arrivals in steps"
    assert explained(SHAPES["joined"]) == "Backfill: snapshot, arrivals in steps"


def test_a_no_shuffle_backfill_exchanges_no_rows(db: seiche.Engine) -> None:
    harbour(db, 100)
    db.execute("SET streaming_use_snapshot_backfill = false; SET streaming_use_arrangement_backfill = false")
    db.execute(f"CREATE MATERIALIZED VIEW filtered AS {SHAPES['filtered']}")
    same(db, "filtered", SHAPES["filtered"])
    runtime, epoch = db.database.runtime, db.committed_epoch
    view = db.database.catalog.find(("filtered",))
    (fragment,) = db.database.fragments_of(view, db.database.catalog)
    (table,) = fragment.inputs
    piece = Slice(0, 128, None, None, 50)
    rows_ = SliceRows(
        table,
        runtime.versions.schema(table),
        50,
        None,
        runtime.reader.exact(runtime.versions.at(table, epoch), within(piece, runtime.versions.schema(table))),
    )
    with runtime.scope() as scope:
        reads = GrowingReads(runtime, scope, None, None, epoch, epoch, Seen(), rows_, only_slice=True)
        frame = fragments.build(fragment, reads)
        plan = frame._jdf.queryExecution().executedPlan().toString()
        assert "Scan" in plan and "Exchange" not in plan, plan
        # The view's rows stay in the vnodes of the rows they came from.
        assert {row[0] for row in frame.select("_vnode").distinct().collect()} <= set(range(128))


# --- views that are refreshed on a schedule ------------------------------------------------------------


def count(db: seiche.Engine, name: str = "m") -> int:
    return int(rows(db, f"SELECT count(*) FROM {name}")[0][0])


def test_a_batch_refresh_view_follows_its_interval_over_restarts(open_database: Open) -> None:
    db = open_database()
    harbour(db, 2)
    db.execute("CREATE MATERIALIZED VIEW m WITH (refresh.interval.sec = 3) AS SELECT id, berth FROM arrivals")
    assert count(db) == 2
    db.execute("INSERT INTO arrivals SELECT i, i % 7, 1 FROM generate_series(3, 100) AS g(i)")
    assert count(db) == 2, "it must not follow at once"
    until(lambda: count(db) == 100)
    db.close()

    db = open_database()
    db.execute("INSERT INTO arrivals SELECT i, i % 7, 1 FROM generate_series(101, 200) AS g(i)")
    until(lambda: count(db) == 200)
    same(db, "m", "SELECT id, berth FROM arrivals")
    db.close()

    db = open_database()
    db.execute("ALTER MATERIALIZED VIEW m SET (refresh.interval.sec = 3600)")
    db.execute("DELETE FROM arrivals WHERE id > 150")
    lag = "SELECT lag_ms, committed_epoch FROM rw_catalog.rw_batch_refresh_jobs"
    (before,) = rows(db, lag)
    assert count(db) == 200
    db.execute("REFRESH MATERIALIZED VIEW m")
    assert count(db) == 150
    (after,) = rows(db, lag)
    assert after[0] == 0 and after[1] > before[1] and before[0] >= 0
    pins = db.database.store.load().pins
    assert {pin.epoch for pin in pins} == {after[1]}, "it pins what it committed last"
    db.execute("DROP MATERIALIZED VIEW m")
    assert db.database.store.load().pins == ()


def test_what_a_batch_refresh_view_cannot_be_is_refused_clearly(db: seiche.Engine) -> None:
    harbour(db, 5)
    for interval in ("0", "-5", "'soon'"):
        with pytest.raises(errors.InvalidParameter, match="positive number of seconds"):
            db.execute(
                f"CREATE MATERIALIZED VIEW m WITH (refresh.interval.sec = {interval}) AS SELECT id FROM arrivals"
            )
    with pytest.raises(errors.InvalidParameter, match="cron"):
        db.execute("CREATE MATERIALIZED VIEW m WITH (refresh.cron = '61 * * * *') AS SELECT id FROM arrivals")
    query = "SELECT id FROM arrivals WHERE NOT now() < '2020-01-01'"
    with pytest.raises(errors.FeatureNotSupported, match="no change log"):
        db.execute(f"CREATE MATERIALIZED VIEW m WITH (refresh.interval.sec = 5) AS {query}")
    db.execute("CREATE MATERIALIZED VIEW m WITH (refresh.cron = '0 6 * * *') AS SELECT id FROM arrivals")
    with pytest.raises(errors.FeatureNotSupported) as refused:
        db.execute("CREATE MATERIALIZED VIEW top AS SELECT id FROM m")
    assert "keeps no change log" in (refused.value.detail or "")
    with pytest.raises(errors.FeatureNotSupported, match='sink "out" cannot read'):
        db.execute("CREATE SINK out FROM m WITH (connector = 'blackhole')")
    with pytest.raises(errors.InvalidParameter, match="positive"):
        db.execute("ALTER MATERIALIZED VIEW m SET (refresh.interval.sec = 0)")
    with pytest.raises(errors.InvalidDefinition, match="twice"):
        db.execute("ALTER MATERIALIZED VIEW m SET (refresh.interval.sec = 5, refresh.interval.sec = 6)")
    db.execute("CREATE MATERIALIZED VIEW plain AS SELECT id FROM arrivals")
    (note,) = db.sql("REFRESH MATERIALIZED VIEW plain").notices
    assert "follows every change at once" in note
    db.database.maintenance.settle()
    db.database.maintenance.fold_now(RelationId(job_of(db, "m")))
    db.execute("INSERT INTO arrivals VALUES (77, 1, 1); REFRESH MATERIALIZED VIEW m")
    same(db, "m", "SELECT id FROM arrivals")


def test_a_failed_foreground_creation_leaves_nothing(db: seiche.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    harbour(db, 50)

    def fails(*_: object) -> object:
        raise errors.InvariantError("the tide is out")

    monkeypatch.setattr(SnapshotBackfill, "_build_at_once", fails)
    with pytest.raises(errors.InvariantError, match="the tide is out"):
        db.execute(f"CREATE MATERIALIZED VIEW v AS {SHAPES['filtered']}")
    assert rows(db, "SHOW JOBS") == [] and rows(db, "SHOW MATERIALIZED VIEWS") == []
    assert db.database.store.load().pins == ()
    monkeypatch.undo()
    db.execute(f"CREATE MATERIALIZED VIEW v AS {SHAPES['filtered']}")
    same(db, "v", SHAPES["filtered"])


def test_a_view_that_is_created_while_its_table_is_dropped_goes_with_it(
    db: seiche.Engine, caplog: pytest.LogCaptureFixture
) -> None:
    harbour(db, arrivals=20)
    held, go = threading.Event(), threading.Event()

    class Hold:
        def apply(self, graph: Graph, barrier: Barrier) -> Effect:
            held.set()
            assert go.wait(60)
            return Effect(graph)

    coordinator = db.database.coordinator
    coordinator.command(Hold())
    assert held.wait(60)
    creating, dropping = db.session(), db.session()
    creating.execute("SET background_ddl = true")
    with ThreadPoolExecutor(2) as pool:
        # Both meet the same barrier: when the drop looks for what it takes along, the view is not there yet.
        created = pool.submit(creating.execute, "CREATE MATERIALIZED VIEW busy AS SELECT berth FROM arrivals")
        until(lambda: len(coordinator._waiting.commands) == 1)
        dropped = pool.submit(dropping.execute, "DROP TABLE arrivals CASCADE")
        until(lambda: len(coordinator._waiting.commands) == 2)
        go.set()
        created.result(60)
        dropped.result(60)
    assert rows(db, "SHOW JOBS") == []
    assert rows(db, "SHOW TABLES") == [("public.berths",)]
    assert rows(db, "SHOW MATERIALIZED VIEWS") == []
    assert [record.message for record in caplog.records if record.levelname in ("ERROR", "WARNING")] == []


def test_if_not_exists_waits_for_a_view_that_is_being_created(db: seiche.Engine) -> None:
    harbour(db, arrivals=20)
    other = db.session()
    other.execute("SET background_ddl = true")
    other.execute("SET backfill_rate_limit = 0")
    other.execute("CREATE MATERIALIZED VIEW slow AS SELECT id FROM arrivals")
    with pytest.raises(errors.DuplicateObject) as taken:
        db.execute("CREATE MATERIALIZED VIEW slow AS SELECT 1 AS one")
    assert "still being created" in str(taken.value.detail)
    with ThreadPoolExecutor(1) as pool:
        again = pool.submit(db.session().execute, "CREATE MATERIALIZED VIEW IF NOT EXISTS slow AS SELECT 1 AS one")
        time.sleep(0.3)
        assert not again.done()
        db.execute("ALTER MATERIALIZED VIEW slow SET BACKFILL_RATE_LIMIT = DEFAULT")
        again.result(60)
    assert len(rows(db, "SELECT * FROM slow")) == 20
