"""The metadata database on SQLite: the contract, and what only a file can do."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.config import Config
from alembic.script import ScriptDirectory

from seiche.catalog import migrations
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.database import FORMAT
from seiche.catalog.store import MetadataStore
from seiche.clock import SimulatedClock, SystemClock
from seiche.errors import ConfigError, DiskFull, FolderNotUsable
from seiche.model import Epoch
from tests.unit.catalog.contract import HOLDER, ROOT, SHIPS, TTL_MS, MetadataStoreContract, full_checkpoint, segment


class TestSqlite(MetadataStoreContract):
    @pytest.fixture
    def address(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/folder made on the way/metadata.db"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MetadataStore]:
    store = MetadataStore.open(f"sqlite:///{tmp_path}/metadata.db", clock=SimulatedClock())
    store.acquire_lease(HOLDER, TTL_MS)
    yield store
    store.close()


def test_the_code_knows_the_number_of_the_last_migration() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(str(migrations.__file__)).parent))
    assert int(str(ScriptDirectory.from_config(config).get_current_head())) == FORMAT


def test_commits_are_synced_and_readers_do_not_block(store: MetadataStore) -> None:
    with store._database.read() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


def test_a_full_disk_fails_the_checkpoint_and_the_next_one_goes_on(store: MetadataStore) -> None:
    store.commit(full_checkpoint(5))
    before = store.load()
    pages: list[int] = []

    def limit(connection: sqlite3.Connection, _record: object) -> None:
        # The same error as that of a full disk, from the same place in SQLite.
        pages.append(connection.execute("PRAGMA page_count").fetchone()[0])
        connection.execute(f"PRAGMA max_page_count = {pages[0] + 1}")

    engine = store._database._engine
    sa.event.listen(engine, "connect", limit)
    engine.dispose()
    many = tuple(segment(SHIPS, epoch) for epoch in range(6, 2000))
    with pytest.raises(DiskFull, match="is full") as caught:
        store.commit(Checkpoint(epoch=Epoch(2000), add_segments=many))
    assert caught.value.retryable
    assert store.load() == before
    sa.event.remove(engine, "connect", limit)
    engine.dispose()
    store.commit(Checkpoint(epoch=Epoch(2000), add_segments=many))
    assert len(store.load().segments) == len(before.segments) + len(many)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "quay").write_text("a file where a folder should be")
    with pytest.raises(FolderNotUsable, match="cannot be created") as caught:
        MetadataStore.open(f"sqlite:///{tmp_path}/quay/data/metadata.db", clock=SystemClock())
    assert "another data folder" in str(caught.value.hint)


def test_a_path_that_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FolderNotUsable, match="cannot be opened for writing"):
        MetadataStore.open(f"sqlite:///{tmp_path}", clock=SystemClock())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(FolderNotUsable):
        MetadataStore.open(f"sqlite:///{tmp_path}/metadata.db", clock=SystemClock())
    tmp_path.chmod(0o700)


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "metadata.db"
    log.write_text("the harbour master's log\n" * 100)
    with pytest.raises(FolderNotUsable, match="is not a metadata database"):
        MetadataStore.open(f"sqlite:///{log}", clock=SystemClock())
    assert log.read_text().startswith("the harbour master's log")


@pytest.mark.parametrize("address", ["sqlite://", "sqlite:///:memory:", "mysql://pilot:secret@host/db", "harbour"])
def test_other_addresses_are_refused_without_showing_a_password(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        MetadataStore.open(address, clock=SystemClock())
    assert "secret" not in str(caught.value)
    assert "sqlite:///path" in str(caught.value.hint)


COMMIT_FOR_EVER = """
import sys
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.store import LeaseHolder, MetadataStore
from seiche.clock import SystemClock
from seiche.model import Epoch, Segment

store = MetadataStore.open(sys.argv[1], clock=SystemClock())
store.acquire_lease(LeaseHolder.this_process(0, "loader"), 60_000)
epoch = store.committed_epoch()
while True:
    epoch += 1
    both = tuple(Segment(id, f"r{id}/{epoch}", epoch, epoch, 1, 1) for id in (101, 102))
    store.commit(Checkpoint(epoch=Epoch(epoch), add_segments=both, row_counters={101: epoch}))
    print(epoch, flush=True)
"""


def test_a_process_killed_at_any_moment_loses_no_checkpoint_and_leaves_no_half_of_one(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/metadata.db"
    store = MetadataStore.open(address, clock=SystemClock())
    store.acquire_lease(HOLDER, TTL_MS)
    checkpoint = full_checkpoint(1)
    store.commit(Checkpoint(epoch=Epoch(1), put_objects=checkpoint.put_objects))
    store.release_lease()
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    for _ in range(3):
        command = [sys.executable, "-c", COMMIT_FOR_EVER, address]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline(), "the child took over the lease of the one killed before it and went on"
            time.sleep(moments.uniform(0.01, 0.2))
            child.send_signal(signal.SIGKILL)
            reported = child.stdout.read().split()
        state = store.load()
        assert not reported or state.committed_epoch >= int(reported[-1])
        assert len(state.segments) == 2 * (state.committed_epoch - 1)
        assert state.row_counters == {SHIPS: state.committed_epoch}
    store.close()
