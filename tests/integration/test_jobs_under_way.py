"""Views in creation that meet other statements half-way, and what they tell of the step that runs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import seiche
from seiche import errors
from seiche.catalog.checkpoint import VnodeProgress
from seiche.model import RelationId
from seiche.stream.backfill import snapshot
from seiche.stream.backfill.arrangement import ArrangementBackfill
from seiche.stream.backfill.snapshot import SnapshotBackfill
from seiche.stream.backfill.state import BackfillState
from seiche.stream.batch_refresh import machine
from seiche.stream.batch_refresh.runner import RefreshRunner
from tests.integration.test_job_tasks import metric
from tests.integration.test_jobs import SHAPES, Open, harbour, job_of, percent, progress, rows, same, until

pytestmark = pytest.mark.spark


def test_views_in_creation_are_renamed_swapped_and_given_tasks(db: seiche.Engine) -> None:
    harbour(db, 200)
    other = "CREATE MATERIALIZED VIEW other AS SELECT id FROM berths"
    db.execute(f"{other}; SET background_ddl = true; SET backfill_rate_limit = 1")
    query = SHAPES["grouped"]
    db.execute(f"CREATE MATERIALIZED VIEW a WITH (refresh.interval.sec = 3600) AS {query}")
    db.execute(f"CREATE MATERIALIZED VIEW b AS {query}")
    db.execute(f"SET streaming_use_snapshot_backfill = false; CREATE MATERIALIZED VIEW c AS {query}")
    for name in "abc":
        db.execute(f"ALTER MATERIALIZED VIEW {name} RENAME TO new_{name}")
        db.execute(
            f"ALTER MATERIALIZED VIEW new_{name} SWAP WITH other; ALTER MATERIALIZED VIEW new_{name} SWAP WITH other"
        )
        db.execute(f"ALTER MATERIALIZED VIEW new_{name} SET PARALLELISM = 1")
        assert 'relation="new_' + name in db.observer.metrics_text()
    assert [job.name for job in db.observer.overview().jobs] == ["new_a", "new_b", "new_c"]
    assert rows(db, "SELECT backfill_type FROM rw_ddl_progress ORDER BY ddl_id") == [
        ("SNAPSHOT_BACKFILL",),
        ("SNAPSHOT_BACKFILL",),
        ("ARRANGEMENT_BACKFILL",),
    ]
    db.execute("ALTER MATERIALIZED VIEW new_a SET (refresh.interval.sec = 1800)")
    for name in "abc":
        db.execute(f"ALTER MATERIALIZED VIEW new_{name} SET BACKFILL_RATE_LIMIT = DEFAULT")
    db.execute("WAIT; INSERT INTO arrivals VALUES (5000, 1, 1); REFRESH MATERIALIZED VIEW new_a")
    for name in "abc":
        same(db, f"new_{name}", query)
    for name in "bc":
        job: Any = db.database.coordinator.graph.job(job_of(db, f"new_{name}"))
        assert (job.name, job.runtime.tasks) == (f"new_{name}", 1), "it is what it was when it was created"
    assert rows(db, "SELECT name, interval_sec FROM rw_batch_refresh_jobs") == [("new_a", "1800")]
    assert "(refresh.interval.sec = 1800)" in rows(db, "SHOW CREATE MATERIALIZED VIEW new_a")[0][1]
    db.execute("ALTER MATERIALIZED VIEW new_a RENAME TO daily; INSERT INTO arrivals VALUES (5001, 1, 1)")
    db.execute("REFRESH MATERIALIZED VIEW daily")
    assert metric(db, 'seiche_batch_refresh_runs_total{relation="daily",outcome="finished"}') == 1


def test_a_step_tells_what_it_has_read_before_it_is_durable(
    open_database: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = open_database(inline_rows_max=3, nearby_rows_max=0)
    harbour(db, 300)
    read, go = threading.Event(), threading.Event()
    commit = SnapshotBackfill._commit

    def held(
        self: SnapshotBackfill,
        state: BackfillState,
        *,
        vnodes: tuple[VnodeProgress, ...] = (),
        drop_vnodes: bool = False,
    ) -> None:
        if state.as_of is not None and self.state.as_of is None:
            read.set()
            assert go.wait(60)
        commit(self, state, vnodes=vnodes, drop_vnodes=drop_vnodes)

    monkeypatch.setattr(SnapshotBackfill, "_commit", held)
    db.execute("SET background_ddl = true")
    db.execute(f"CREATE MATERIALIZED VIEW v AS {SHAPES['grouped']}")
    try:
        assert read.wait(60)
        until(lambda: percent(progress(db, "v")) > 99)  # Spark tells a moment later
        assert progress(db, "v") == "Snapshot [99.99% (300/300)]"
    finally:
        go.set()
    db.execute("WAIT")
    same(db, "v", SHAPES["grouped"])


def test_a_step_that_is_tried_again_says_why(db: seiche.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    harbour(db, 20)
    build = SnapshotBackfill._build_at_once
    high_tide = threading.Event()

    def fails(self: SnapshotBackfill) -> None:
        if not high_tide.is_set():
            raise errors.DiskFull("the tide is out")
        build(self)

    monkeypatch.setattr(SnapshotBackfill, "_build_at_once", fails)
    monkeypatch.setattr(snapshot, "RETRY_SECONDS", (0.5,) * 100)
    db.execute(f"SET background_ddl = true; CREATE MATERIALIZED VIEW v AS {SHAPES['filtered']}")
    until(lambda: (progress(db, "v") or "").endswith("tried again: the tide is out"))
    high_tide.set()
    db.execute("WAIT")
    same(db, "v", SHAPES["filtered"])


def test_who_waits_goes_on_waiting_over_a_recovery_and_a_cancelled_job(db: seiche.Engine) -> None:
    harbour(db, 100)
    waiting, creating = db.session(), db.session()
    db.execute("SET background_ddl = true; SET backfill_rate_limit = 0")
    creating.execute("SET backfill_rate_limit = 0")
    for name in ("one", "two", "three"):
        db.execute(f"CREATE MATERIALIZED VIEW {name} AS {SHAPES['filtered']}")
    one, two = job_of(db, "one"), job_of(db, "two")
    with pytest.raises(errors.UndefinedObject, match="job 7 does not exist"):
        db.execute(f"CANCEL JOBS {one}, 7")
    assert len(rows(db, "SHOW JOBS")) == 3, "all of them, or none"
    db.execute("CREATE INDEX by_berth ON arrivals (berth)")
    db.execute("ALTER INDEX by_berth SET BACKFILL_RATE_LIMIT = DEFAULT")
    until(lambda: len(rows(db, "SHOW JOBS")) == 3)
    with ThreadPoolExecutor(2) as pool:
        waited = pool.submit(waiting.execute, "WAIT")
        created = pool.submit(creating.execute, f"CREATE MATERIALIZED VIEW four AS {SHAPES['grouped']}")
        until(lambda: len(rows(db, "SHOW JOBS")) == 4)
        db.execute(f"CANCEL JOBS {one}, {two}")
        db.execute("RECOVER")
        assert len(rows(db, "SHOW JOBS")) == 2
        assert not waited.done() and not created.done()
        for name in ("three", "four"):
            db.execute(f"ALTER MATERIALIZED VIEW {name} SET BACKFILL_RATE_LIMIT = DEFAULT")
        waited.result(60)
        created.result(60)
    same(db, "three", SHAPES["filtered"])
    same(db, "four", SHAPES["grouped"])


def test_a_statement_that_waits_for_a_paused_database_says_so(db: seiche.Engine) -> None:
    harbour(db, 20)
    db.execute("CREATE MATERIALIZED VIEW daily WITH (refresh.cron = '0 6 * * *') AS SELECT id FROM arrivals")
    db.execute("INSERT INTO arrivals VALUES (100, 1, 1); PAUSE")
    told: list[str] = []
    sessions = [db.session(), db.session()]
    for each in sessions:
        each.on_notice = told.append
    statements = ("INSERT INTO arrivals VALUES (101, 1, 1)", "REFRESH MATERIALIZED VIEW daily")
    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(each.execute, text) for each, text in zip(sessions, statements, strict=True)]
        until(lambda: len(told) == 2)
        assert set(told) == {"the database is paused: the statement goes on after RESUME"}
        db.execute("RESUME")
        for wait in waits:
            wait.result(60)
    db.execute("REFRESH MATERIALIZED VIEW daily")
    same(db, "daily", "SELECT id FROM arrivals")


def test_a_refresh_that_runs_stops_at_its_next_checkpoint_while_the_database_is_paused(
    db: seiche.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    harbour(db, 10)
    db.execute("CREATE MATERIALIZED VIEW daily WITH (refresh.cron = '0 6 * * *') AS SELECT id FROM arrivals")
    for number in (100, 101, 102):
        db.execute(f"INSERT INTO arrivals VALUES ({number}, 1, 1)")
    resolve, step, steps = machine.resolve, RefreshRunner._step, []

    def counted(self: RefreshRunner, *arguments: Any) -> int:
        steps.append(len(steps))
        if len(steps) == 1:
            db.database.set_paused(True)
        return step(self, *arguments)

    monkeypatch.setattr(machine, "resolve", lambda log, committed, target, _: resolve(log, committed, target, 1))
    monkeypatch.setattr(RefreshRunner, "_step", counted)
    state = "SELECT state FROM rw_batch_refresh_jobs"
    with ThreadPoolExecutor(1) as pool:
        refreshed = pool.submit(db.session().execute, "REFRESH MATERIALIZED VIEW daily")
        until(lambda: rows(db, state) == [("BatchRefresh LogStore [2 barriers left], paused: RESUME continues",)])
        assert not refreshed.done() and len(steps) == 1
        db.execute("RESUME")
        refreshed.result(60)
    assert len(steps) == 3 and rows(db, state) == [("BatchRefresh Idle",)]
    same(db, "daily", "SELECT id FROM arrivals")


def test_a_refresh_that_nobody_waits_for_any_more_leaves_later_ones_alone(db: seiche.Engine) -> None:
    harbour(db, 10)
    db.execute("CREATE MATERIALIZED VIEW daily WITH (refresh.cron = '0 6 * * *') AS SELECT id FROM arrivals")
    db.execute("INSERT INTO arrivals VALUES (100, 1, 1); PAUSE")
    hasty = db.session()
    hasty.execute("SET statement_timeout = 300")
    with pytest.raises(errors.QueryCanceled):
        hasty.execute("REFRESH MATERIALIZED VIEW daily")
    db.execute("RESUME; REFRESH MATERIALIZED VIEW daily")
    same(db, "daily", "SELECT id FROM arrivals")
    db.execute("INSERT INTO arrivals VALUES (101, 1, 1); REFRESH MATERIALIZED VIEW daily")
    same(db, "daily", "SELECT id FROM arrivals")


def test_a_growing_view_counts_the_rows_that_are_there_and_keeps_the_limit_it_is_told(open_database: Open) -> None:
    db = open_database()
    harbour(db, 50)
    db.execute("INSERT INTO arrivals SELECT i, 1, 1 FROM generate_series(1000, 1999) AS g(i)")
    db.execute("DELETE FROM arrivals WHERE id >= 1000; UPDATE arrivals SET containers = 3")
    db.execute("SET background_ddl = true; SET backfill_rate_limit = 0; SET streaming_use_snapshot_backfill = false")
    db.execute(f"CREATE MATERIALIZED VIEW v AS {SHAPES['grouped']}")
    paused = "Snapshot [0.00% (0/50)], paused by a backfill_rate_limit of 0"
    assert progress(db, "v") == paused
    db.execute("PAUSE; ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT = 7")
    assert db.database.store.load().progress[job_of(db, "v")]["rate"] == 7, "a kill would forget it"
    db.execute("ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT = 0; RESUME")
    db.close()

    db = open_database()
    assert progress(db, "v") == paused
    db.execute("ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
    same(db, "v", SHAPES["grouped"])


def test_a_start_that_is_asked_to_pause_does_and_orders_of_backfill_survive_it(open_database: Open) -> None:
    db = open_database()
    harbour(db, 50)
    db.execute("SET background_ddl = true; SET backfill_rate_limit = 0")
    query = "SELECT id FROM arrivals UNION ALL SELECT id FROM berths"
    create = f"CREATE MATERIALIZED VIEW {{}} WITH (backfill_order = FIXED(berths -> arrivals)) AS {query}"
    db.execute(create.format("beside"))
    db.execute(f"SET streaming_use_snapshot_backfill = false; {create.format('inside')}")
    db.execute("ALTER SYSTEM SET pause_on_next_bootstrap = true")
    db.close()

    db = open_database()
    names = db.database.catalog
    wanted = [RelationId(names.find((name,)).id) for name in ("berths", "arrivals")]
    beside, inside = (db.database.jobs.get(job_of(db, name)) for name in ("beside", "inside"))
    assert isinstance(beside, SnapshotBackfill) and isinstance(inside, ArrangementBackfill)
    assert list(beside._stages[0].driven) == wanted and list(inside._driven) == wanted
    for name in ("beside", "inside"):
        db.execute(f"ALTER MATERIALIZED VIEW {name} SET BACKFILL_RATE_LIMIT = DEFAULT")
        assert (progress(db, name) or "").endswith("paused: RESUME continues")
    db.execute("RESUME; WAIT")
    for name in ("beside", "inside"):
        same(db, name, query)
    db.close()
    assert not open_database().database.coordinator.paused, "only the next start was asked"


def test_a_creation_in_the_foreground_tells_its_progress_and_goes_when_it_is_cancelled(db: seiche.Engine) -> None:
    harbour(db, 50)
    told: list[str] = []
    session = db.session()
    session.on_notice = told.append
    session.execute("SET backfill_rate_limit = 0")
    with ThreadPoolExecutor(1) as pool:
        created = pool.submit(session.execute, f"CREATE MATERIALIZED VIEW v AS {SHAPES['filtered']}")
        until(lambda: told)
        assert told[0].startswith('creation of "v": Snapshot [0.00% (0/50)], paused by')
        session.cancel()
        with pytest.raises(errors.QueryCanceled, match="user request"):
            created.result(60)
    assert rows(db, "SHOW JOBS") == [] and db.database.store.load().pins == ()
    session.execute(f"SET backfill_rate_limit = -1; CREATE MATERIALIZED VIEW v AS {SHAPES['filtered']}")
    same(db, "v", SHAPES["filtered"])
