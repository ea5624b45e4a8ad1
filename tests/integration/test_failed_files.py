"""A statement that fails leaves no file behind: not until the next start, but at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seiche
from seiche import errors
from seiche.catalog.checkpoint import Checkpoint
from seiche.session.definitions import CatalogCommand
from tests.folders import relation_files

pytestmark = pytest.mark.spark

Open = Callable[..., seiche.Engine]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO ships SELECT g, 10 / (g - 20000) FROM generate_series(1000, 60000) g",
        "INSERT INTO calls SELECT 10 / (g - 20000) FROM generate_series(1000, 60000) g",
        "UPDATE ships SET tons = 10 / (id - 40)",
        "DELETE FROM ships WHERE 10 / (id - 40) > 1",
    ],
)
def test_a_statement_that_fails_among_the_executors_leaves_no_file(
    open_database: Open, tmp_path: Path, statement: str
) -> None:
    db = open_database(inline_rows_max=0, inline_bytes_max=1)
    db.execute("CREATE TABLE ships (id int PRIMARY KEY, tons int); CREATE TABLE calls (ship int)")
    db.execute("INSERT INTO ships SELECT g, g FROM generate_series(1, 90) g")
    db.database.maintenance.settle()
    before = relation_files(tmp_path / "harbour")
    assert before
    with pytest.raises(errors.DivisionByZero):
        db.execute(statement)
    assert relation_files(tmp_path / "harbour") == before
    assert db.sql("SELECT count(*) FROM ships").rows == [(90,)]


def test_a_view_that_is_given_up_leaves_no_file(open_database: Open, tmp_path: Path) -> None:
    db = open_database(inline_rows_max=0)
    db.execute("CREATE TABLE calls (ship int, berth int)")
    db.execute("INSERT INTO calls SELECT g % 1000, g FROM generate_series(1, 200000) g")
    db.database.maintenance.settle()
    before = relation_files(tmp_path / "harbour")
    db.execute("SET statement_timeout = 1")
    with pytest.raises(errors.QueryCanceled):
        db.execute("CREATE MATERIALIZED VIEW v AS SELECT a.ship, b.berth FROM calls a JOIN calls b ON a.ship = b.ship")
    db.execute("SET statement_timeout = 0")
    assert not db.database.jobs.listed()
    deadline = time.monotonic() + 20
    while relation_files(tmp_path / "harbour") != before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert relation_files(tmp_path / "harbour") == before
    assert db.sql("SHOW JOBS").rows == []


def test_a_view_that_an_epoch_has_taken_up_when_its_time_is_over_leaves_nothing(open_database: Open) -> None:
    db = open_database()
    db.execute("CREATE TABLE calls (ship int, berth int); INSERT INTO calls VALUES (1, 1)")
    coordinator = db.database.coordinator

    def held_until(event: threading.Event) -> CatalogCommand:
        def work(catalog: Any, graph: Any, barrier: Any) -> Any:
            assert event.wait(60)
            return catalog, graph, Checkpoint(), None, None

        return CatalogCommand(db.database, "dev", work)

    def wait_until(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    first, second = threading.Event(), threading.Event()
    running = coordinator.command(held_until(first))
    wait_until(running.running)
    together = coordinator.command(held_until(second))
    session, found = db.session(), []

    def create() -> None:
        session.execute("SET statement_timeout = 3000")
        with pytest.raises(errors.QueryCanceled) as raised:
            session.execute("CREATE MATERIALIZED VIEW v AS SELECT ship FROM calls")
        found.append(raised.value)

    client = threading.Thread(target=create)
    client.start()
    wait_until(lambda: len(coordinator._waiting.futures()) == 2)
    first.set()  # the next epoch takes up both
    wait_until(together.running)
    time.sleep(3.5)  # longer than the statement may take
    second.set()
    together.result(60)
    client.join(60)
    assert "timeout" in found[0].message
    assert not db.database.jobs.listed()
    assert db.sql("SHOW MATERIALIZED VIEWS").rows == []
