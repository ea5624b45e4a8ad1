"""A database without Spark: definitions, users and questions about the system work, rows do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seiche.catalog.lease import LeaseHolder
from seiche.catalog.store import MetadataStore
from seiche.clock import SystemClock
from seiche.config import Config
from seiche.epoch.coordinator import Coordinator
from seiche.epoch.graph import Graph
from seiche.session.database import Database, relation_schemas
from seiche.session.run import Session
from seiche.session.system_settings import session_defaults
from seiche.storage.bounds import KeyBounds
from seiche.storage.files import DataFolder
from seiche.storage.retention import Pins, Trash
from seiche.storage.segments import SegmentCache, SegmentWriter
from seiche.storage.versions import Versions
from seiche.stream.checkpoint import Checkpoints
from seiche.stream.rowids import RowIds
from seiche.stream.runtime import Limits, Runtime
from tests.sparks import NoSpark


class _Forgetful:
    """Housekeeping and readers that have nothing to forget."""

    def forget(self, *_: object) -> None:
        pass

    def note(self, *_: object) -> None:
        pass


class Port:
    """Stands for an engine: makes sessions, and runs a text as root."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._root = Session(database)

    def session(self, user: str) -> Session:
        return Session(self.database, user)

    def execute(self, text: str) -> list[Any]:
        return self._root.execute(text)

    def rows(self, text: str) -> Any:
        return self._root.execute(text)[-1].rows


@contextmanager
def open_port(path: Path) -> Iterator[Port]:
    """The database in a folder, new or as it was left."""
    clock, idle = SystemClock(), _Forgetful()
    store = MetadataStore.open(f"sqlite:///{path}/metadata.db", clock=clock)
    store.acquire_lease(LeaseHolder.this_process(clock.now_ms(), "test"), 60_000)
    state = store.load()
    folder, versions = DataFolder(str(path)), Versions()
    versions.load(state.committed_epoch, relation_schemas(state.catalog), state.bases.values(), state.segments)
    writer, trash, rows = SegmentWriter(folder, SegmentCache(1_000_000)), Trash(folder), RowIds(state.row_counters)
    absent: Any = idle
    runtime = Runtime(NoSpark(), versions, absent, writer, Limits(1000, 1_000_000, 100, 10_000))
    coordinator = Coordinator(
        Checkpoints(store, versions, writer, folder, trash, rows),
        clock=clock,
        barrier_interval_ms=1,
        checkpoint_frequency=1,
    )
    database = Database(
        config=Config(),
        clock=clock,
        store=store,
        runtime=runtime,
        row_ids=rows,
        bounds=KeyBounds(folder, writer),
        pins=Pins(state.pins),
        trash=trash,
        maintenance=absent,
        coordinator=coordinator,
        catalog=state.catalog,
        session_defaults=session_defaults(state.settings),
    )
    coordinator.start(Graph([]), state.committed_epoch)
    try:
        yield Port(database)
    finally:
        coordinator.stop(checkpoint=True)
        database.system.close()
        store.release_lease()
        store.close()
