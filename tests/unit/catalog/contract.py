"""What every metadata database has to do, whichever it is. Each one's tests inherit these.

A class that inherits gives two fixtures: `address`, of a new and empty database, and `clock`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from pyiceberg.catalog.sql import SqlCatalog

from seiche import types
from seiche.catalog import rows, tables
from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint, Event, VnodeProgress
from seiche.catalog.database import MetadataDatabase
from seiche.catalog.look import Sight, look
from seiche.catalog.objects import CatalogObject, Database, ObjectKind, ObjectStatus, Schema, User
from seiche.catalog.store import LeaseHolder, MetadataStore
from seiche.clock import SimulatedClock
from seiche.errors import InvariantError, LeaseHeld, LeaseLost, MetadataVersionError
from seiche.model import (
    EPOCH_ZERO,
    Base,
    Column,
    DataFile,
    Epoch,
    JobId,
    ObjectId,
    Pin,
    RelationId,
    RelationSchema,
    Segment,
)

TTL_MS = 10_000
HOLDER = LeaseHolder(socket.gethostname(), os.getpid(), 1_700_000_000_000, "harbour office")
ROOT = Path(__file__).parents[3]

SHIPS, ARRIVALS, BUSY, STATE = ObjectId(101), ObjectId(102), ObjectId(103), ObjectId(104)
SHIP_COLUMNS = (Column("imo", types.BIGINT, nullable=False), Column("name", types.VARCHAR, default="'unnamed'"))
SHIP_SHAPE = RelationSchema(SHIP_COLUMNS, ("imo",))


def table(id: ObjectId, name: str) -> CatalogObject:
    return CatalogObject(id, ObjectKind.TABLE, name, f"CREATE TABLE {name} (...)", SHIP_COLUMNS, SHIP_SHAPE)


def harbour() -> Catalog:
    """Two tables, a view over them and the state that the view's job keeps for itself."""
    busy = CatalogObject(
        BUSY,
        ObjectKind.MATERIALIZED_VIEW,
        "busy_berths",
        "CREATE MATERIALIZED VIEW busy_berths AS SELECT ...",
        (Column("berth", types.array_of(types.INTEGER)), Column("tonnage", types.numeric(12, 2, declared=True))),
        RelationSchema((Column("_key", types.BIGINT, hidden=True),), ("_key",), append_only=True),
        status=ObjectStatus.CREATING,
        properties={"plan": {"version": 1, "fragments": [1, 2]}, "note": "Hafen – 港"},
        dependencies=frozenset({SHIPS, ARRIVALS}),
        created_ms=1_700_000_000_123,
    )
    state = CatalogObject(STATE, ObjectKind.INTERNAL, "__busy_berths_1", "", parent=BUSY, relation=SHIP_SHAPE)
    return Catalog.default().with_objects(table(SHIPS, "ships"), table(ARRIVALS, "arrivals"), busy, state)


def segment(relation: int, epoch: int, *, fresh: bool = False) -> Segment:
    return Segment(RelationId(relation), f"r{relation}/{epoch}.parquet", Epoch(epoch), Epoch(epoch), 7, 700, fresh)


def full_checkpoint(epoch: int) -> Checkpoint:
    """Something of everything, on top of the default catalog."""
    catalog = (
        harbour()
        .with_user(User(ObjectId(110), "pilot", can_login=False, verifier="SCRAM-SHA-256$4096:..."))
        .with_database(Database(ObjectId(111), "dock", owner="pilot"))
        .with_schema(Schema(ObjectId(112), "dock", "north", owner="pilot"))
    )
    files = (DataFile("r101/b.parquet", 10, 1000, 128, 255), DataFile("r101/a.parquet", 9, 900, 0, 127))
    return replace(
        Checkpoint.between(Catalog.default(), catalog),
        epoch=Epoch(epoch),
        add_segments=(segment(SHIPS, epoch), segment(BUSY, epoch, fresh=True)),
        put_bases=(Base(RelationId(SHIPS), 8_000_000_000_000_000_001, Epoch(epoch - 1), files),),
        put_pins=(Pin("archive 1", None, Epoch(3)), Pin("backfill", RelationId(SHIPS), Epoch(4))),
        put_progress={JobId(BUSY): {"phase": "snapshot", "rows": 5}},
        put_backfill=(VnodeProgress(JobId(BUSY), RelationId(SHIPS), 255, b"\x00\xff", 12, False),),
        source_offsets={ARRIVALS: {"0": "42", "1": "7"}},
        row_counters={RelationId(ARRIVALS): 2**40},
        settings={"barrier_interval_ms": "250"},
        events=(Event(1_700_000_000_000, "recovery", {"epoch": 5}),),
        refresh_history=({"job_id": BUSY, "choice": "full", "rows": 3},),
    )


class MetadataStoreContract:
    """The tests. `address` and `clock` come from the class that inherits."""

    @pytest.fixture
    def clock(self) -> SimulatedClock:
        return SimulatedClock()

    @pytest.fixture
    def open_store(self, address: str, clock: SimulatedClock) -> Iterator[Callable[[], MetadataStore]]:
        with ExitStack() as stack:

            def opened() -> MetadataStore:
                store = MetadataStore.open(address, clock=clock)
                stack.callback(store.close)
                return store

            yield opened

    @pytest.fixture
    def store(self, open_store: Callable[[], MetadataStore]) -> MetadataStore:
        """A store that holds the lease."""
        store = open_store()
        store.acquire_lease(HOLDER, TTL_MS)
        return store

    @staticmethod
    @contextmanager
    def raw(store: MetadataStore) -> Iterator[sa.Connection]:
        """The database behind the store's back."""
        engine = sa.create_engine(store.iceberg_uri)
        with engine.begin() as connection:
            yield connection
        engine.dispose()

    # Tables

    def test_migrations_create_exactly_the_tables_of_the_model(self, store: MetadataStore) -> None:
        SqlCatalog("harbour", uri=store.iceberg_uri).close()  # its tables are none of our business
        with self.raw(store) as connection:
            options = {
                "compare_type": True,
                "version_table": tables.VERSION_TABLE,
                "include_name": lambda name, kind, _: kind != "table" or name.startswith(tables.PREFIX),
            }
            context = MigrationContext.configure(connection, opts=options)
            assert compare_metadata(context, tables.metadata) == []

    def test_a_new_database_holds_the_default_catalog_at_epoch_zero(self, store: MetadataStore) -> None:
        state = store.load()
        assert state.catalog == Catalog.default()
        assert state.committed_epoch == store.committed_epoch() == EPOCH_ZERO
        assert (state.segments, state.pins, state.bases, state.settings) == ((), (), {}, {})

    def test_processes_that_create_the_database_together_agree(self, address: str) -> None:
        script = (
            "import sys; from seiche.catalog.store import MetadataStore; from seiche.clock import SystemClock\n"
            "store = MetadataStore.open(sys.argv[1], clock=SystemClock())\n"
            "print(store.allocate_ids(1)[0], len(store.load().catalog.users))"
        )
        command = [sys.executable, "-c", script, address]
        started = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]
        answers = [process.communicate(timeout=60)[0].split() for process in started]
        assert sorted(answers) == [["100", "3"], ["101", "3"], ["102", "3"]]

    def test_a_database_of_a_newer_version_is_refused_and_left_alone(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore]
    ) -> None:
        with self.raw(store) as connection:
            connection.execute(sa.text(f"UPDATE {tables.VERSION_TABLE} SET version_num = '0042'"))
            newer = {"format": 42, "seiche_version": "9.1", "migrated_ms": 0}
            connection.execute(sa.insert(tables.history), newer)
        with pytest.raises(MetadataVersionError, match="has format 42, this version of Seiche knows") as caught:
            open_store()
        assert "Seiche 9.1" in str(caught.value.detail)
        assert "Install Seiche 9.1" in str(caught.value.hint)
        assert store.committed_epoch() == EPOCH_ZERO

    def test_icebergs_catalog_lives_in_the_same_database(self, store: MetadataStore) -> None:
        catalog = SqlCatalog("harbour", uri=store.iceberg_uri)
        catalog.create_namespace("relations")
        store.commit(Checkpoint(epoch=Epoch(1)))
        with self.raw(store) as connection:
            assert sa.inspect(connection).has_table("iceberg_tables")
            assert sa.inspect(connection).has_table(tables.objects.name)
        catalog.close()

    # Checkpoints

    def test_everything_in_a_checkpoint_is_there_after_a_restart(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore]
    ) -> None:
        checkpoint = full_checkpoint(5)
        store.commit(checkpoint)
        store.close()
        again = open_store()
        state = again.load()
        assert state.committed_epoch == 5
        assert Checkpoint.between(Catalog.default(), state.catalog).put_objects == checkpoint.put_objects
        assert state.catalog.user("pilot") == checkpoint.put_users[0]
        assert state.catalog.schema("north", database="dock") == checkpoint.put_schemas[0]
        assert state.catalog.database("dock") == checkpoint.put_databases[0]
        assert state.segments == checkpoint.add_segments
        assert state.bases == {SHIPS: checkpoint.put_bases[0]}
        assert state.pins == checkpoint.put_pins
        assert state.progress == checkpoint.put_progress
        assert state.backfill == checkpoint.put_backfill
        assert state.offsets == checkpoint.source_offsets
        assert state.row_counters == checkpoint.row_counters
        assert state.settings == checkpoint.settings
        assert again.events(10) == checkpoint.events
        assert again.refresh_history(10) == checkpoint.refresh_history

    def test_a_dropped_object_takes_everything_that_belongs_to_it(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        before = store.load().catalog
        doomed = before.plan_drop([SHIPS, ARRIVALS], cascade=True)
        store.commit(Checkpoint.between(before, before.without(doomed)))
        state = store.load()
        assert state.catalog.objects() == ()
        assert (state.segments, state.bases, state.progress, state.backfill) == ((), {}, {}, ())
        assert (state.offsets, state.row_counters) == ({}, {})
        assert state.pins == (Pin("archive 1", None, Epoch(3)),)

    def test_schemas_databases_and_users_can_be_dropped(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        before = store.load().catalog
        after = before.without_schema("north", database="dock").without_database("dock").without_user("pilot")
        store.commit(Checkpoint.between(before, after))
        assert store.load().catalog == after

    def test_a_failure_in_the_middle_of_a_commit_leaves_nothing(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        before = store.load()
        written_twice = Checkpoint(
            epoch=Epoch(6),
            put_objects=(table(ObjectId(120), "tides"),),
            add_segments=(segment(SHIPS, 6), segment(SHIPS, 5)),
            remove_segments=frozenset({segment(BUSY, 5).path}),
            settings={"barrier_interval_ms": None},
        )
        with pytest.raises(InvariantError):
            store.commit(written_twice)
        assert store.load() == before
        store.commit(Checkpoint(epoch=Epoch(6)))

    def test_a_failure_at_the_very_end_of_a_commit_leaves_nothing(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        before = store.load()
        # Foreign keys are checked by COMMIT itself.
        with pytest.raises(InvariantError):
            store.commit(Checkpoint(epoch=Epoch(6), add_segments=(segment(SHIPS, 6), segment(999, 6))))
        with pytest.raises(InvariantError):
            store.commit(Checkpoint(epoch=Epoch(6), drop_objects=frozenset({SHIPS})))
        assert store.load() == before

    def test_an_epoch_follows_the_committed_one(self, store: MetadataStore) -> None:
        store.commit(Checkpoint(epoch=Epoch(5)))
        for late in (5, 4):
            with pytest.raises(InvariantError, match="not after the committed epoch 5"):
                store.commit(Checkpoint(epoch=Epoch(late), settings={"a": "1"}))
        assert store.load().settings == {}

    def test_a_checkpoint_without_an_epoch_leaves_the_committed_one(self, store: MetadataStore) -> None:
        store.commit(Checkpoint(epoch=Epoch(5)))
        store.commit(Checkpoint(settings={"checkpoint_frequency": "2"}))
        assert store.committed_epoch() == 5
        assert store.load().settings == {"checkpoint_frequency": "2"}

    def test_an_epoch_of_our_century_fits(self, store: MetadataStore) -> None:
        epoch = Epoch(4_000_000_000_000 << 16)
        store.commit(Checkpoint(epoch=epoch))
        assert store.committed_epoch() == epoch

    def test_two_objects_can_swap_their_names(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        before = store.load().catalog
        swapped = before.with_objects(
            replace(before.get(SHIPS), name="arrivals"), replace(before.get(ARRIVALS), name="ships")
        )
        store.commit(Checkpoint.between(before, swapped))
        assert store.load().catalog == swapped
        assert store.load().segments  # nothing that belongs to them was lost on the way

    def test_the_name_of_a_dropped_object_is_free_in_the_same_checkpoint(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        before = store.load().catalog
        after = before.without(before.plan_drop([SHIPS], cascade=True)).with_objects(table(ObjectId(120), "ships"))
        store.commit(Checkpoint.between(before, after))
        assert store.load().catalog == after

    def test_a_new_base_replaces_the_files_of_the_old_one(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        folded = Base(RelationId(SHIPS), 77, Epoch(5), (DataFile("r101/c.parquet", 19, 1900, 0, 255),))
        store.commit(Checkpoint(put_bases=(folded,), remove_segments=frozenset({segment(SHIPS, 5).path})))
        state = store.load()
        assert state.bases == {SHIPS: folded}
        assert state.segments == (segment(BUSY, 5, fresh=True),)

    def test_a_pin_moves_and_goes_with_its_holder(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        store.commit(Checkpoint(put_pins=(Pin("backfill", RelationId(SHIPS), Epoch(9)),)))
        assert store.load().pins[1] == Pin("backfill", RelationId(SHIPS), Epoch(9))
        store.commit(Checkpoint(drop_pins=frozenset({"archive 1", "backfill"})))
        assert store.load().pins == ()

    def test_progress_and_settings_can_be_forgotten(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        forget = Checkpoint(
            put_progress={JobId(BUSY): None},
            drop_backfill=frozenset({JobId(BUSY)}),
            settings={"barrier_interval_ms": None},
        )
        store.commit(forget)
        state = store.load()
        assert (state.progress, state.backfill, state.settings) == ({}, (), {})

    def test_an_offset_moves_alone(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        store.commit(Checkpoint(source_offsets={ARRIVALS: {"1": "8"}}))
        assert store.load().offsets == {ARRIVALS: {"0": "42", "1": "8"}}

    def test_logs_show_the_newest_first_and_are_bounded(
        self, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rows, "EVENTS_KEPT", 5)
        for number in range(8):
            event = Event(number, "tide", {"level": number})
            store.commit(Checkpoint(events=(event,)))
        assert [event.time_ms for event in store.events(100)] == [7, 6, 5, 4, 3]
        assert [event.time_ms for event in store.events(2)] == [7, 6]

    def test_history_of_refreshes_is_bounded_for_each_job(
        self, store: MetadataStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rows, "HISTORY_KEPT", 3)
        store.commit(Checkpoint(refresh_history=({"job_id": SHIPS, "number": 0},)))
        for number in range(1, 6):
            store.commit(Checkpoint(refresh_history=({"job_id": BUSY, "number": number},)))
        assert store.refresh_history(1) == ({"job_id": BUSY, "number": 5},)
        assert [it["number"] for it in store.refresh_history(100)] == [5, 4, 3, 0]

    def test_history_of_a_dropped_view_goes_with_it(self, store: MetadataStore) -> None:
        store.commit(full_checkpoint(5))
        store.commit(Checkpoint(drop_objects=frozenset((BUSY,))))
        assert store.refresh_history(10) == ()

    def test_readers_beside_a_writer_see_whole_checkpoints_only(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore]
    ) -> None:
        store.commit(Checkpoint.between(Catalog.default(), harbour()))
        other, done = open_store(), threading.Event()

        def read(reader: MetadataStore) -> int:
            reads = 0
            while not done.is_set():
                state = reader.load()
                assert len(state.segments) == 2 * state.committed_epoch
                assert state.row_counters.get(RelationId(SHIPS), 0) == state.committed_epoch
                reads += 1
            return reads

        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read, reader) for reader in (store, store, other)]
            try:
                for epoch in range(1, 41):
                    both = (segment(SHIPS, epoch), segment(ARRIVALS, epoch))
                    counters = {RelationId(SHIPS): epoch}
                    store.commit(Checkpoint(epoch=Epoch(epoch), add_segments=both, row_counters=counters))
            finally:
                done.set()
            assert all(reader.result() > 0 for reader in readers)

    def test_commits_of_several_threads_follow_each_other(self, store: MetadataStore) -> None:
        def commit(number: int) -> None:
            for step in range(5):
                store.commit(Checkpoint(settings={f"thread {number}": str(step)}))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(commit, range(4)))
        assert store.load().settings == {f"thread {number}": "4" for number in range(4)}

    # Ids

    def test_ids_are_given_once_across_threads_stores_and_restarts(
        self, open_store: Callable[[], MetadataStore]
    ) -> None:
        stores = [open_store(), open_store()]
        with ThreadPoolExecutor(4) as pool:
            given = list(pool.map(lambda number: stores[number % 2].allocate_ids(3), range(20)))
        given.append(open_store().allocate_ids(1))
        every = [id for ids in given for id in ids]
        assert sorted(every) == list(range(100, 161))

    def test_no_ids_cannot_be_asked_for(self, store: MetadataStore) -> None:
        with pytest.raises(InvariantError):
            store.allocate_ids(0)

    # The lease

    def test_nobody_commits_without_the_lease(self, open_store: Callable[[], MetadataStore]) -> None:
        store = open_store()
        with pytest.raises(InvariantError, match="without holding the lease"):
            store.commit(Checkpoint(epoch=Epoch(1)))
        with pytest.raises(InvariantError, match="without holding it"):
            store.renew_lease()

    def test_a_second_process_is_told_who_holds_the_lease(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore]
    ) -> None:
        second = open_store()
        with pytest.raises(LeaseHeld) as caught:
            second.acquire_lease(HOLDER, TTL_MS)
        assert f'in use by process {os.getpid()} on host "{socket.gethostname()}"' in caught.value.message
        assert "harbour office has been running there since 2023-11-14 22:13:20 UTC." in str(caught.value.detail)
        assert "Stop that process" in str(caught.value.hint)
        store.commit(Checkpoint(epoch=Epoch(1)))

    def test_a_released_lease_is_free_at_once(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore]
    ) -> None:
        store.release_lease()
        store.release_lease()
        open_store().acquire_lease(HOLDER, TTL_MS)
        with pytest.raises(InvariantError):
            store.commit(Checkpoint(epoch=Epoch(1)))

    def test_a_process_that_died_on_this_machine_is_replaced_at_once(
        self, open_store: Callable[[], MetadataStore]
    ) -> None:
        died = subprocess.Popen([sys.executable, "-c", ""])
        died.wait()
        first, second = open_store(), open_store()
        first.acquire_lease(replace(HOLDER, pid=died.pid), TTL_MS)
        second.acquire_lease(HOLDER, TTL_MS)

    def test_a_killed_process_that_nobody_waited_for_is_replaced_at_once(
        self, open_store: Callable[[], MetadataStore]
    ) -> None:
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        first, second = open_store(), open_store()
        try:
            first.acquire_lease(replace(HOLDER, pid=child.pid), TTL_MS)
            with pytest.raises(LeaseHeld):
                second.acquire_lease(HOLDER, TTL_MS)
            child.kill()
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead now, and still in the table of processes
            second.acquire_lease(HOLDER, TTL_MS)
        finally:
            child.kill()
            child.communicate()

    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this system does not tell when a process began")
    def test_a_process_number_that_was_given_again_does_not_hold_the_lease(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore]
    ) -> None:
        with self.raw(store) as connection:
            connection.execute(sa.update(tables.lease).values(process_start="1"))
        open_store().acquire_lease(HOLDER, TTL_MS)

    def test_a_holder_elsewhere_is_replaced_when_its_time_has_run_out(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore], clock: SimulatedClock
    ) -> None:
        with self.raw(store) as connection:
            connection.execute(sa.update(tables.lease).values(machine="another one", pid=2**30))
        second = open_store()
        clock.advance(TTL_MS - 1)
        with pytest.raises(LeaseHeld):
            second.acquire_lease(HOLDER, TTL_MS)
        clock.advance(1)
        second.acquire_lease(HOLDER, TTL_MS)

    def test_looking_neither_makes_tables_nor_takes_the_lease(self, address: str, clock: SimulatedClock) -> None:
        MetadataDatabase.connect(address).close()
        assert look(address, clock=clock) == Sight(0)
        assert look(address, clock=clock) == Sight(0)
        store = MetadataStore.open(address, clock=clock)
        assert look(address, clock=clock).is_current
        store.acquire_lease(HOLDER, TTL_MS)
        with pytest.raises(LeaseHeld, match="is in use by process"):
            look(address, clock=clock)
        store.renew_lease()
        store.close()

    def test_a_renewed_lease_lasts_longer(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore], clock: SimulatedClock
    ) -> None:
        clock.advance(TTL_MS - 1)
        store.renew_lease()
        clock.advance(TTL_MS - 1)
        with pytest.raises(LeaseHeld):
            open_store().acquire_lease(HOLDER, TTL_MS)

    def test_a_lease_that_ran_out_serves_until_somebody_takes_it(
        self, store: MetadataStore, clock: SimulatedClock
    ) -> None:
        clock.advance(10 * TTL_MS)
        store.commit(Checkpoint(epoch=Epoch(1)))
        assert store.committed_epoch() == 1

    def test_a_process_that_was_replaced_cannot_commit(
        self, store: MetadataStore, open_store: Callable[[], MetadataStore], clock: SimulatedClock
    ) -> None:
        store.commit(full_checkpoint(5))
        clock.advance(TTL_MS)
        second = open_store()
        second.acquire_lease(replace(HOLDER, label="night shift"), TTL_MS)
        before = second.load()
        with pytest.raises(LeaseLost, match="was taken over by process .* \\(night shift\\)"):
            store.commit(Checkpoint(epoch=Epoch(6), add_segments=(segment(SHIPS, 6),)))
        with pytest.raises(LeaseLost):
            store.renew_lease()
        store.release_lease()  # gives nothing away that belongs to the other
        assert second.load() == before
        second.commit(Checkpoint(epoch=Epoch(6)))
