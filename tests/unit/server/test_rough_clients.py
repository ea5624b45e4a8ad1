"""Clients that ask for too much, or go away when it suits nobody: the server and its other clients go on."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.unit.server.harbour import FakeBackend, RunningServer, running_server
from tests.unit.server.record import enter

COPIED = b"5\tEos\n" * 200_000


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path)


@pytest.fixture
def running(backend: FakeBackend) -> Iterator[RunningServer]:
    with running_server(backend, connections_max=300, threads=32) as server:
        yield server


def connect(running: RunningServer) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(host="127.0.0.1", port=running.port, dbname="dev", user="root", autocommit=True)


def test_short_statements_pass_twenty_that_run_among_two_hundred_idle_clients(
    running: RunningServer, backend: FakeBackend
) -> None:
    idle = [connect(running) for _ in range(200)]
    busy = [connect(running) for _ in range(20)]
    for connection in busy:
        connection.pgconn.send_query(b"SELECT 'sleep'")
        connection.pgconn.flush()
    started = time.monotonic()
    for connection in idle[:20]:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert time.monotonic() - started < 10  # those that run take twice as long
    for connection in (*busy, *idle):
        connection.close()
    running.until(lambda: running.server.sessions == 0)
    assert all(session.closed for session in backend.sessions)


@pytest.mark.parametrize("sent", [b"", b"5\tE", COPIED])
def test_a_client_that_vanishes_in_the_middle_of_a_copy_leaves_nothing(
    running: RunningServer, backend: FakeBackend, tmp_path: Path, sent: bytes
) -> None:
    before = list(backend.ships)
    link = enter(running.port, "root", "dev")
    text = b"COPY ships FROM STDIN\0"
    link.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
    assert link.recv(100)[:1] == b"G"
    if sent:
        link.sendall(b"d" + struct.pack("!i", len(sent) + 4) + sent)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset, not a farewell
    link.close()
    running.until(lambda: running.server.sessions == 0)
    assert backend.sessions[0].closed
    assert backend.ships == before
    assert not list(tmp_path.iterdir())
    with connect(running) as other:
        assert other.execute("SELECT 1").fetchone() == (1,)


def test_ten_megabytes_of_sql_are_answered(running: RunningServer) -> None:
    with connect(running) as connection:
        row = connection.execute(f"SELECT '{'x' * 10_000_000}'::varchar".encode()).fetchone()
        assert row is not None
        assert len(str(row[0])) == 10_000_000


def test_millions_of_values_in_a_list_are_refused_before_they_fill_the_memory(running: RunningServer) -> None:
    with connect(running) as connection:
        with pytest.raises(psycopg.errors.StatementTooComplex, match="statement is too long"):
            connection.execute(f"SELECT 1 WHERE 1 IN ({','.join(['1'] * 1_000_000)})".encode())
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_message_beyond_the_limit_ends_the_connection_with_an_error(running: RunningServer) -> None:
    with enter(running.port, "root", "dev") as link:
        link.sendall(b"Q" + struct.pack("!i", 100 * 1024 * 1024))
        link.settimeout(10)
        answer = b""
        while part := link.recv(10_000):
            answer += part
        assert b"FATAL" in answer
        assert b"08P01" in answer
    with connect(running) as other:
        assert other.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
        "SELECT " + "NOT " * 50_000 + "true",
        "SELECT " + " + ".join(["1"] * 20_000),
        "SELECT * FROM " + "(SELECT * FROM " * 3000 + "ships" + ") AS s" * 3000,
    ],
    ids=["parentheses", "negations", "a long sum", "subqueries"],
)
def test_deep_nesting_is_answered_or_refused_and_the_session_goes_on(running: RunningServer, sql: str) -> None:
    with connect(running) as connection:
        try:
            connection.execute(sql.encode())
        except psycopg.Error as error:
            assert error.sqlstate in ("54001", "42601")
            assert "Traceback" not in str(error)
        assert connection.execute("SELECT 1").fetchone() == (1,)
