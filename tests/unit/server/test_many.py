"""Many clients at once, and TLS."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from pathlib import Path

import psycopg
import pytest

from tests.unit.server.harbour import FakeBackend, running_server
from tests.unit.server.record import converse, enter, query


def test_two_hundred_idle_clients_take_no_threads_while_others_work(tmp_path: Path) -> None:
    with running_server(FakeBackend(tmp_path), threads=8) as running:
        before = threading.active_count()
        links = [enter(running.port, "root", "dev") for _ in range(200)]
        assert running.server.sessions == 200
        assert threading.active_count() <= before
        for link in links[:20]:
            assert [kind for kind, _ in converse(link, [query("SELECT 1::int AS a")])] == ["T", "D", "C", "Z"]
        for link in links:
            link.close()
        running.until(lambda: running.server.sessions == 0)


def test_a_thousand_clients_at_once_are_served_or_refused_and_leave_nothing(tmp_path: Path) -> None:
    with running_server(FakeBackend(tmp_path), connections_max=50) as running:
        links = [socket.create_connection(("127.0.0.1", running.port), timeout=20) for _ in range(1000)]
        refused = 0
        for link in links[200:]:
            link.settimeout(20)
            answer = link.recv(200)
            refused += b"53300" in answer
        assert refused == 800  # nobody has said a name yet, and no more than 200 are waited for
        for link in links:
            link.close()
        running.until(lambda: not running.server._unknown)
        enter(running.port, "root", "dev").close()


def test_tls_is_offered_where_there_is_a_certificate(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("OPENSSL IS NOT INSTALLED: install it to run this test")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    address = "host=127.0.0.1 dbname=dev user=root"
    with (
        running_server(FakeBackend(tmp_path), certificate=certificate, key=key) as running,
        psycopg.connect(f"{address} port={running.port} sslmode=require", autocommit=True) as connection,
    ):
        assert connection.pgconn.ssl_in_use
        assert connection.execute("SELECT 7::int").fetchone() == (7,)
    with running_server(FakeBackend(tmp_path)) as running, pytest.raises(psycopg.OperationalError, match="SSL"):
        psycopg.connect(f"{address} port={running.port} sslmode=require")
