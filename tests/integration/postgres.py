"""A real PostgreSQL server for tests: started in a temporary folder on a free port, stopped by its process id.

with temporary_server() as server:
    address = server.create_database()
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest

SUPERUSER = "harbour"
START_TIMEOUT_S = 30


class PostgresServer:
    """One server on 127.0.0.1 and on a socket in its folder. It trusts everybody and does not sync its files."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries = binaries
        self._folder = folder
        self._data = folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)
        self.port = _free_port()
        # The server refuses to run as root; an ordinary user runs it as oneself.
        self._user = _unprivileged_user() if os.geteuid() == 0 else None
        if self._user is not None:
            shutil.chown(folder, self._user)
        folder.chmod(0o755)

    def create(self) -> None:
        command = [self._binaries / "initdb", "-D", self._data, "-U", SUPERUSER, "-E", "UTF8", "--locale=C"]
        done = self._popen([*command, "--auth=trust", "--no-sync"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output, _ = done.communicate(timeout=120)
        assert done.returncode == 0, output.decode()

    def start(self) -> None:
        options = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": self._folder}
        options |= {"fsync": "off", "full_page_writes": "off", "max_connections": 50, "timezone": "UTC"}
        flags = [flag for name, value in options.items() for flag in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            command = [self._binaries / "postgres", "-D", self._data, *flags]
            self._process = self._popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                psycopg.connect(self.address("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                ended = self._process.poll() is not None
                if ended or time.monotonic() > deadline:
                    self.stop()
                    raise AssertionError((self._folder / "log").read_text()) from None
                time.sleep(0.05)

    def stop(self) -> None:
        """Ends every connection and then the server."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def address(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def create_database(self) -> str:
        """The address of a new, empty database."""
        name = f"berth_{next(self._numbers)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.address(name)

    def _popen(self, command: list[object], *, stdout: object, stderr: object) -> subprocess.Popen[bytes]:
        identity = {}
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        words = [str(word) for word in command]
        return subprocess.Popen(words, cwd=self._folder, stdout=stdout, stderr=stderr, **identity)  # type: ignore[call-overload, no-any-return]


@contextmanager
def temporary_server() -> Iterator[PostgresServer]:
    """A running server; skips the test, and says so, where none is installed."""
    binaries = find_binaries()
    if binaries is None:
        pytest.skip("NO POSTGRESQL SERVER IS INSTALLED: install the package postgresql to run these tests")
    # Not pytest's folder: the path of a socket has at most 107 characters, and only its user may enter that one.
    folder = Path(tempfile.mkdtemp(prefix="seiche-pg-"))
    server = PostgresServer(binaries, folder)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def find_binaries() -> Path | None:
    """The folder of initdb and postgres: the newest of the system's packages, or wherever PATH finds them."""
    packaged = Path("/usr/lib/postgresql").glob("*/bin")
    folders = sorted(packaged, key=lambda folder: float(folder.parent.name), reverse=True)
    if (found := shutil.which("initdb")) is not None:
        folders.append(Path(found).resolve().parent)
    return next((it for it in folders if (it / "initdb").exists() and (it / "postgres").exists()), None)


def _unprivileged_user() -> str:
    known = {account.pw_name for account in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
