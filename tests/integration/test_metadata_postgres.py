"""The metadata database on a real PostgreSQL: the contract, and what a network adds to it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest

from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.store import MetadataStore
from seiche.clock import SimulatedClock, SystemClock
from seiche.errors import CommitOutcomeUnknown, MetadataUnavailable
from seiche.model import Epoch
from tests.integration.postgres import PostgresServer, temporary_server
from tests.unit.catalog.contract import HOLDER, SHIPS, TTL_MS, MetadataStoreContract, full_checkpoint, segment


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with temporary_server() as server:
        yield server


@pytest.fixture
def address(server: PostgresServer) -> str:
    return server.create_database()


class TestPostgres(MetadataStoreContract):
    pass


class Wire:
    """A line to the server that can be cut at the moment a COMMIT passes."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut: str | None = None  # "before" or "after" the server has received the COMMIT
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server_port))
                threading.Thread(target=self._forward, args=(client, server), daemon=True).start()

    def _forward(self, client: socket.socket, server: socket.socket) -> None:
        back = threading.Thread(target=self._carry, args=(server, client), daemon=True)
        back.start()
        with suppress(OSError):
            while data := client.recv(65536):
                if self.cut is not None and b"COMMIT\0" in data:
                    after, self.cut = self.cut == "after", None
                    client.shutdown(socket.SHUT_RDWR)
                    if after:
                        server.sendall(data)
                    break
                server.sendall(data)
        # The server reads what it was sent before it notices the end.
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)
        back.join()
        client.close()
        server.close()

    @staticmethod
    def _carry(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                with suppress(OSError):
                    target.sendall(data)


@contextmanager
def store_over_wire(server: PostgresServer, address: str) -> Iterator[tuple[MetadataStore, Wire]]:
    wire = Wire(server.port)
    address = address.replace(f":{server.port}/", f":{wire.port}/") + "?sslmode=disable&gssencmode=disable"
    store = MetadataStore.open(address, clock=SimulatedClock())
    store.acquire_lease(HOLDER, TTL_MS)
    yield store, wire
    store.close()
    wire.close()


@pytest.mark.parametrize(("cut", "outcome"), [("before", 5), ("after", 6)])
def test_a_connection_lost_during_commit_leaves_the_outcome_to_be_asked_for(
    server: PostgresServer, address: str, cut: str, outcome: int
) -> None:
    with store_over_wire(server, address) as (store, wire):
        store.commit(full_checkpoint(5))
        wire.cut = cut
        with pytest.raises(CommitOutcomeUnknown) as caught:
            store.commit(Checkpoint(epoch=Epoch(6), add_segments=(segment(SHIPS, 6),)))
        assert not caught.value.retryable
        assert store.committed_epoch() == outcome
        assert (segment(SHIPS, 6) in store.load().segments) == (outcome == 6)
        store.commit(Checkpoint(epoch=Epoch(7)))


SLOW_COMMIT = """
CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER dawdle AFTER INSERT ON seiche_segments DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION dawdle();
"""


def test_the_committed_epoch_waits_for_a_commit_that_the_server_is_still_busy_with(
    server: PostgresServer, address: str
) -> None:
    with store_over_wire(server, address) as (store, wire):
        store.commit(full_checkpoint(5))
        with psycopg.connect(address) as connection:
            connection.execute(SLOW_COMMIT)
        wire.cut = "after"
        with pytest.raises(CommitOutcomeUnknown):
            store.commit(Checkpoint(epoch=Epoch(6), add_segments=(segment(SHIPS, 6),)))
        assert store.committed_epoch() == 6


def test_a_server_that_is_down_fails_the_checkpoint_and_the_next_one_goes_on(
    server: PostgresServer, address: str
) -> None:
    store = MetadataStore.open(address, clock=SimulatedClock())
    store.acquire_lease(HOLDER, TTL_MS)
    store.commit(full_checkpoint(5))
    server.stop()
    try:
        with pytest.raises(MetadataUnavailable) as caught:
            store.commit(Checkpoint(epoch=Epoch(6)))
        assert caught.value.retryable
        with pytest.raises(MetadataUnavailable):
            store.committed_epoch()
    finally:
        server.start()
    assert store.committed_epoch() == 5
    store.commit(Checkpoint(epoch=Epoch(6)))
    store.close()


def test_a_database_that_does_not_exist_is_reported_without_the_password(server: PostgresServer) -> None:
    address = server.address("atlantis").replace("harbour@", "harbour:secret@")
    with pytest.raises(MetadataUnavailable, match="cannot be opened") as caught:
        MetadataStore.open(address, clock=SystemClock())
    assert 'database "atlantis" does not exist' in str(caught.value.detail)
    assert "secret" not in str(caught.value)
