"""Limits on plans built in one step, tasks of jobs, replays of large logs, and what is counted of all of it."""

from __future__ import annotations

import time

import pytest

import seiche
from seiche import errors
from seiche.catalog.parallelism import parallelism_of
from seiche.stream.load import StreamLoad
from tests.integration.test_jobs import SHAPES, Open, harbour, percent, progress, rows, same, until

pytestmark = pytest.mark.spark


def metric(db: seiche.Engine, line: str) -> float:
    """The value of one series; 0 when there is none."""
    for each in db.observer.metrics_text().splitlines():
        if each.startswith(line + " "):
            return float(each.rpartition(" ")[2])
    return 0.0


def test_a_plan_built_in_one_step_waits_for_its_rows_to_be_permitted(open_database: Open) -> None:
    db = open_database()
    harbour(db, 1000)
    db.execute("SET background_ddl = true")
    db.execute(f"CREATE MATERIALIZED VIEW anew WITH (backfill_rate_limit = 100) AS {SHAPES['anew']}")
    until(lambda: percent(progress(db, "anew")) > 0)
    first, began = percent(progress(db, "anew")), time.monotonic()
    seen = [first]
    while time.monotonic() < began + 3:
        seen.append(percent(progress(db, "anew")))
        time.sleep(0.05)
    assert seen == sorted(seen), "progress went backwards"
    expected = first + 10 * (time.monotonic() - began)
    assert seen[-1] <= expected + 1.5, f"{seen[-1]} % is ahead of {expected:.1f} %"
    assert seen[-1] > first, "it stands still"
    with pytest.raises(errors.ObjectNotReady):
        db.sql("SELECT * FROM anew")
    db.execute("ALTER MATERIALIZED VIEW anew SET BACKFILL_RATE_LIMIT = 0")
    stopped = percent(progress(db, "anew"))
    db.close()

    db = open_database()
    assert percent(progress(db, "anew")) >= stopped - 0.01, "what was permitted is waited for again"
    assert "paused by" in (progress(db, "anew") or "")
    db.execute("ALTER MATERIALIZED VIEW anew SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
    same(db, "anew", SHAPES["anew"])


def files_of(db: seiche.Engine, name: str) -> list[int]:
    """Rows of each file of a view's log."""
    found = db.database.catalog.find((name,)).id
    return [segment.rows for segment in db.database.runtime.versions.segments(found)]  # type: ignore[arg-type]


def test_tasks_of_jobs_are_set_shown_kept_and_used(open_database: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamLoad, "busy", False)  # else the views make room for the epochs just before
    db = open_database(inline_rows_max=3, fold_min_rows=10_000_000)
    db.execute("SET streaming_parallelism = 2; SET streaming_parallelism_for_table = 'bounded(16)'")
    harbour(db, 300)
    # A union has a partition for each of its three scans.
    db.execute(f"CREATE MATERIALIZED VIEW wide AS {SHAPES['united']}")
    db.execute(f"SET streaming_parallelism = 1; CREATE MATERIALIZED VIEW narrow AS {SHAPES['united']}")
    for name in ("wide", "narrow"):
        same(db, name, SHAPES["united"])
    assert (len(files_of(db, "narrow")), len(files_of(db, "wide"))) == (1, 2)
    shown = "SELECT parallelism FROM rw_streaming_parallelism WHERE name = "
    assert rows(db, f"{shown}'wide'") == [("2",)]
    assert rows(db, f"{shown}'arrivals'") == [("bounded(16)",)]
    db.execute("SET streaming_parallelism_for_index = 2; CREATE INDEX by_berth ON arrivals (berth)")
    assert rows(db, f"{shown}'by_berth'") == [("2",)]
    db.execute("SET streaming_parallelism = DEFAULT; SET streaming_parallelism_for_table = DEFAULT")
    db.execute("SET background_ddl = true; SET backfill_rate_limit = 50")
    db.execute(f"CREATE MATERIALIZED VIEW v AS {SHAPES['joined']}")
    assert rows(db, f"{shown}'v'") == [("bounded(64)",)]
    db.execute("ALTER MATERIALIZED VIEW v SET PARALLELISM = 3; ALTER MATERIALIZED VIEW v SET BACKFILL_PARALLELISM TO 1")
    assert rows(db, f"{shown}'v'") == [("3",)]
    assert rows(
        db,
        "SELECT f.parallelism, t.max_parallelism FROM rw_fragment_parallelism f JOIN rw_table_fragments t"
        " ON f.id = t.table_id WHERE name = 'v'",
    ) == [(3, 256)]
    db.close()

    db = open_database(inline_rows_max=3)
    assert parallelism_of(db.database.catalog.find(("v",))).text == "3"
    db.execute("ALTER MATERIALIZED VIEW v SET PARALLELISM TO ADAPTIVE")
    db.execute("ALTER MATERIALIZED VIEW v SET BACKFILL_RATE_LIMIT = DEFAULT; WAIT")
    same(db, "v", SHAPES["joined"])
    with pytest.raises(errors.InvalidParameter, match="should not exceed max parallelism 256"):
        db.execute("ALTER TABLE arrivals SET PARALLELISM = 300")
    with pytest.raises(errors.InvalidParameter, match='parallelism cannot be "many"'):
        db.execute("ALTER MATERIALIZED VIEW v SET PARALLELISM = many")


def test_a_run_over_a_large_log_nets_what_happened_to_each_key(open_database: Open) -> None:
    db = open_database(inline_rows_max=5, fold_min_rows=10_000_000)
    harbour(db, 60)
    query = "SELECT id, berth, containers FROM arrivals"
    grouped = "SELECT berth, count(*) AS n, sum(containers) AS c, max(containers) AS most FROM arrivals GROUP BY berth"
    for name, each in (("m", query), ("g", grouped)):
        db.execute(f"CREATE MATERIALIZED VIEW {name} WITH (refresh.interval.sec = 3600) AS {each}")
    for containers in (1, 2, 3):  # the same keys again and again, there and back
        db.execute(f"UPDATE arrivals SET containers = {containers}, berth = {containers} WHERE id <= 30")
    db.execute("DELETE FROM arrivals WHERE id BETWEEN 10 AND 20")
    db.execute("INSERT INTO arrivals SELECT i, 6, 9 FROM generate_series(15, 18) AS g(i)")
    db.execute("INSERT INTO arrivals SELECT i, 1, 5 FROM generate_series(100, 130) AS g(i)")
    db.execute("DELETE FROM arrivals WHERE id >= 100")  # these never were, to the run
    db.execute("REFRESH MATERIALIZED VIEW m; REFRESH MATERIALIZED VIEW g")
    same(db, "m", query)
    same(db, "g", grouped)
    assert metric(db, 'seiche_batch_refresh_runs_total{relation="m",outcome="finished"}') == 1
    assert metric(db, 'seiche_batch_refresh_rows_total{relation="m"}') > 0
    assert metric(db, 'seiche_batch_refresh_barrier_seconds_count{relation="m"}') >= 1
    assert metric(db, 'seiche_batch_refresh_inflight_barriers{relation="m"}') == 0


def test_what_happens_is_counted_and_what_is_dropped_is_forgotten(db: seiche.Engine) -> None:
    harbour(db, 100)
    db.execute(f"CREATE MATERIALIZED VIEW v AS {SHAPES['filtered']}")
    assert metric(db, 'seiche_backfill_rows_total{relation="v"}') == 100  # though it was built at once
    assert metric(db, 'seiche_backfill_step_seconds_count{relation="v"}') == 1
    before = metric(db, 'seiche_epochs_total{outcome="committed"}')
    db.execute("INSERT INTO arrivals VALUES (1001, 1, 3)")
    assert metric(db, 'seiche_epochs_total{outcome="committed"}') > before
    assert metric(db, 'seiche_changed_rows_total{relation="v"}') == 1
    assert metric(db, 'seiche_epoch_seconds_count{part="commit"}') > 0
    assert metric(db, "seiche_sessions") >= 1
    failed = metric(db, 'seiche_statements_total{outcome="failed"}')
    with pytest.raises(errors.SeicheError):
        db.execute("SELECT * FROM nowhere")
    assert metric(db, 'seiche_statements_total{outcome="failed"}') == failed + 1
    db.execute("SET background_ddl = true; SET backfill_rate_limit = 20")
    db.execute(f"CREATE MATERIALIZED VIEW slow AS {SHAPES['grouped']}")
    until(lambda: metric(db, 'seiche_backfill_rows_total{relation="slow"}') > 0)
    assert 0 <= metric(db, 'seiche_backfill_progress_percent{relation="slow"}') < 100
    assert [(job.name, job.what) for job in db.observer.overview().jobs] == [("slow", "creation")]
    assert {line.name for line in db.observer.overview().relations} == {"arrivals", "berths", "v"}
    db.execute("DROP MATERIALIZED VIEW slow; DROP MATERIALIZED VIEW v")
    assert 'relation="slow"' not in db.observer.metrics_text()
    assert 'relation="v"' not in db.observer.metrics_text()
