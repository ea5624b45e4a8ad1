"""Through the wire: single rows by their key, repeated questions, and a result of 10 M rows."""

from __future__ import annotations

import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from benchmarks.measure import Finding, median_seconds, milliseconds, peak_mib

SHIPS = (
    "SELECT i AS id, 'ship ' || i % 500 AS name, (i * 7919 % 1000)::float8 AS tons"
    " FROM generate_series(1::bigint, {}) AS g(i)"
)


def lookups(times: int, scale: float) -> list[Finding]:
    """(p) one row of a view of 1 M rows by its key: another key each time, the same again, and after a change."""
    rows = int(1_000_000 * scale)
    with _server() as (port, _), psycopg.connect(_address(port), autocommit=True) as db:
        db.execute("CREATE TABLE ships (id bigint PRIMARY KEY, name varchar, tons double precision)")
        db.execute(f"INSERT INTO ships {SHIPS.format(rows)}".encode())
        db.execute("CREATE MATERIALIZED VIEW heavy AS SELECT id, name, tons FROM ships WHERE tons >= 0")
        _folded(db, rows)
        numbers = iter(range(1, rows, 97))
        findings = []

        def ask(what: str, key: int, limit: float, query: str = "SELECT * FROM heavy WHERE id = {}") -> None:
            def one() -> None:
                found = db.execute(query.format(key or next(numbers)).encode()).fetchall()
                assert len(found) == 1

            taken = median_seconds(one, warm=10, times=times)
            parts = {"median": milliseconds(taken), "rows": f"{rows:,}"}
            findings.append(Finding("p", what, taken, " s", f"<= {limit}", taken <= limit, parts))

        ask("a row by its key, another one each time", 0, 0.25)
        ask("the same row again", 7, 0.05)
        ask("the same, with an expression", 7, 0.25, "SELECT upper(name), tons / 2 FROM heavy WHERE id = {}")
        total = "SELECT count(*), sum(tons) FROM heavy WHERE id > {}"
        ask("a scan, another one each time", 0, 1.0, total)
        ask("the same scan again", 7, 0.6, total)
        return findings


def large_result(scale: float) -> list[Finding]:
    """(w) SELECT of 10 M rows through the wire, and the server's memory beside that of 1 M rows."""
    few, many = int(1_000_000 * scale), int(10_000_000 * scale)
    with _server() as (port, process), psycopg.connect(_address(port), autocommit=True) as db:
        db.execute("CREATE TABLE ships (id bigint, name varchar, tons double precision)")
        db.execute(f"INSERT INTO ships {SHIPS.format(many)}".encode())
        peaks, seconds = {}, 0.0
        for rows in (few, many):
            started = time.perf_counter()
            received = _rows_received(port, f"SELECT id, name, tons FROM ships WHERE id <= {rows}")
            seconds = time.perf_counter() - started
            assert received == rows, f"{received} rows of {rows} came"
            peaks[rows] = peak_mib(process)
    ratio = peaks[many] / peaks[few]
    parts = {f"server's Python after {rows:,} rows": f"{peak:.0f} MiB" for rows, peak in peaks.items()}
    parts["rows a second"] = f"{many / seconds:,.0f}"
    return [Finding("w", "server's peak memory, 10 times the rows", ratio, "x", "<= 1.5", ratio <= 1.5, parts)]


@contextmanager
def _server() -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and its process id."""
    folder = Path(tempfile.mkdtemp(prefix="seiche-bench-"))
    command = [sys.executable, "-m", "seiche.cli.main", "start", "--data-dir", str(folder / "data"), "--port", "0"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdout is not None
    try:
        found = re.search(r"-p (\d+)", process.stdout.readline())
        if found is None:
            raise RuntimeError((folder / "log").read_text())
        yield int(found[1]), process.pid
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
        shutil.rmtree(folder)


def _address(port: int) -> str:
    return f"host=127.0.0.1 port={port} dbname=dev user=root"


def _folded(db: psycopg.Connection[tuple[object, ...]], rows: int) -> None:
    """Waits until a query answers as fast as it will: housekeeping has caught up with the load."""
    for _ in range(120):
        started = time.perf_counter()
        assert db.execute("SELECT count(*) FROM heavy").fetchone() == (rows,)
        if time.perf_counter() - started < 1.0:
            return
        time.sleep(0.5)


def _rows_received(port: int, query: str) -> int:
    """How many rows a client that does nothing but read gets."""
    with socket.create_connection(("127.0.0.1", port)) as link:
        start = struct.pack("!i", 196608) + b"user\0root\0database\0dev\0\0"
        link.sendall(struct.pack("!i", len(start) + 4) + start)
        text = query.encode() + b"\0"
        count, ready, buffer = 0, 0, b""
        while True:
            data = link.recv(1 << 20)
            if not data:
                raise RuntimeError("the server hung up")
            buffer += data
            at = 0
            while len(buffer) - at >= 5:
                size = int.from_bytes(buffer[at + 1 : at + 5], "big")
                if len(buffer) - at < size + 1:
                    break
                kind = buffer[at]
                if kind == ord("D"):
                    count += 1
                elif kind == ord("E"):
                    raise RuntimeError(buffer[at + 5 : at + 1 + size].decode(errors="replace"))
                elif kind == ord("Z"):
                    ready += 1
                    if ready == 2:
                        return count
                    link.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
                at += size + 1
            buffer = buffer[at:]
