"""The metadata database: what is durable, and the only way to make something durable.

    store = MetadataStore.open("sqlite:////data/metadata.db", clock=SystemClock())
    store.acquire_lease(LeaseHolder.this_process(...), ttl_ms=10_000)
    state = store.load()                    what the last checkpoint left
    store.commit(checkpoint)                all of it or nothing, in one transaction

No other layer sees SQL or SQLAlchemy. A store may be used by several threads; commits of one process follow each
other, and only the holder of the lease can commit at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from seiche.catalog import lease, tables
from seiche.catalog.catalog import FIRST_FREE_ID, Catalog
from seiche.catalog.checkpoint import Checkpoint, Event
from seiche.catalog.database import MetadataDatabase
from seiche.catalog.lease import LeaseHolder
from seiche.catalog.rows import (
    COMMITTED_EPOCH,
    NEXT_ID,
    CheckpointWriter,
    StoredState,
    read_committed_epoch,
    read_counter,
    read_events,
    read_refresh_history,
    read_state,
)
from seiche.clock import Clock
from seiche.errors import InvariantError
from seiche.model import EPOCH_ZERO, Epoch

__all__ = ["LeaseHolder", "MetadataStore", "StoredState"]


class MetadataStore:
    """One metadata database, open. Made by `open`."""

    def __init__(self, database: MetadataDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._writer = CheckpointWriter(is_sqlite=database.is_sqlite)
        self._token: str | None = None
        self._ttl_ms = 0

    @staticmethod
    def open(address: str, *, clock: Clock) -> MetadataStore:
        """Opens the database at the address, and creates or migrates its tables.

        Raises FolderNotUsable, MetadataUnavailable, MetadataVersionError or ConfigError. Takes no lease.
        """
        database = MetadataDatabase.connect(address)
        store = MetadataStore(database, clock)
        try:
            database.migrate(clock.now_ms(), store._fill)
        except BaseException:
            database.close()
            raise
        return store

    def _fill(self, connection: sa.Connection) -> None:
        """Writes what a new database begins with."""
        beginning = {COMMITTED_EPOCH: EPOCH_ZERO, NEXT_ID: FIRST_FREE_ID}
        rows = [{"name": name, "value": value} for name, value in beginning.items()]
        connection.execute(sa.insert(tables.counters), rows)
        lease.create(connection)
        self._writer.write(connection, Checkpoint.between(Catalog(), Catalog.default()))

    def close(self) -> None:
        """Lets go of the connections. The lease stays until it is released or runs out."""
        self._database.close()

    @property
    def iceberg_uri(self) -> str:
        """The address under which PyIceberg's SQL catalog finds the same database. May hold a password."""
        return self._database.uri

    # The state

    def load(self) -> StoredState:
        with self._database.read() as connection:
            return read_state(connection)

    def committed_epoch(self) -> Epoch:
        """The last epoch that is durable.

        Waits for a commit that is under way, so that it tells the truth after CommitOutcomeUnknown: the server
        may still be busy with a COMMIT whose sender has lost the connection.
        """
        with self._database.read_latest() as connection:
            lease.wait_for_writers(connection)
            return read_committed_epoch(connection)

    def events(self, limit: int) -> tuple[Event, ...]:
        """The newest first."""
        with self._database.read() as connection:
            return read_events(connection, limit)

    def refresh_history(self, limit: int) -> tuple[Mapping[str, Any], ...]:
        """The newest first."""
        with self._database.read() as connection:
            return read_refresh_history(connection, limit)

    def commit(self, checkpoint: Checkpoint) -> None:
        """Makes a checkpoint durable, in one transaction; after any error but one nothing of it exists.

        The one is CommitOutcomeUnknown: ask `committed_epoch`. Raises LeaseLost when another process took over,
        MetadataUnavailable or DiskFull when trying again may help, and InvariantError when the checkpoint
        contradicts what is stored.
        """
        token = self._token
        if token is None:
            raise InvariantError("checkpoint committed without holding the lease")
        with self._database.write() as connection:
            lease.check(connection, self._database.name, token)
            if checkpoint.epoch is not None:
                stored = read_committed_epoch(connection)
                if checkpoint.epoch <= stored:
                    raise InvariantError(
                        f"checkpoint's epoch {checkpoint.epoch} is not after the committed epoch {stored}"
                    )
            self._writer.write(connection, checkpoint)

    def allocate_ids(self, count: int) -> range:
        """Ids that nobody was or will be given, also across restarts; some stay unused after a crash."""
        if count < 1:
            raise InvariantError(f"{count} ids were asked for")
        row = tables.counters.c.name == NEXT_ID
        with self._database.write() as connection:
            # The update comes first: it locks the row, so that two processes cannot read the same number.
            connection.execute(sa.update(tables.counters).where(row).values(value=tables.counters.c.value + count))
            end = read_counter(connection, NEXT_ID)
        return range(end - count, end)

    # The lease

    def acquire_lease(self, holder: LeaseHolder, ttl_ms: int) -> None:
        """Takes the right to commit for `ttl_ms`, or raises LeaseHeld with the name of who has it."""
        with self._database.write() as connection:
            token = lease.acquire(connection, self._database.name, holder, ttl_ms, self._clock.now_ms())
        self._token, self._ttl_ms = token, ttl_ms

    def renew_lease(self) -> None:
        """Keeps the lease for another `ttl_ms`. Raises LeaseLost when another process took over."""
        if self._token is None:
            raise InvariantError("lease renewed without holding it")
        with self._database.write() as connection:
            lease.renew(connection, self._database.name, self._token, self._ttl_ms, self._clock.now_ms())

    def release_lease(self) -> None:
        """Gives the lease back at once, for the next process. Does nothing when none is held."""
        token, self._token = self._token, None
        if token is not None:
            with self._database.write() as connection:
                lease.release(connection, token)
