"""A server of the runner's own: `seiche start` in a process group that can be killed and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from seiche.errors import ServerNotUsable

_STOP_SECONDS = 60.0
_READY = re.compile(r"-h (\S+) -p (\d+)")
_LOG_LINES = 20


class ServerProcess:
    """The server of one data folder. `options` are those of `seiche start`; its log is a file beside the folder."""

    def __init__(self, folder: Path, options: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.log = folder.with_name(f"{folder.name}.log")
        self.starts = 0
        self._options = tuple(options)
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[str] | None = None
        self._address = ("127.0.0.1", 0)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def port(self) -> int:
        """Another one after each start, unless the options name it."""
        return self._address[1]

    @property
    def address(self) -> str:
        """Where it listens, in libpq's form."""
        host, port = self._address
        return f"host={host} port={port} user=root dbname=dev"

    def start(self) -> None:
        """Returns when it answers, which is when it has recovered."""
        command = [sys.executable, "-m", "seiche.cli.main", "start", "--data-dir", str(self.folder)]
        if "--port" not in self._options:
            command += ["--port", "0"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self._options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )
        assert self._process.stdout is not None
        found = _READY.search(self._process.stdout.readline())
        if found is None:
            self.kill()
            said = "\n".join(self.log.read_text(errors="replace").splitlines()[-_LOG_LINES:])
            raise ServerNotUsable("the server did not start", detail=said)
        self._address = (found[1], int(found[2]))
        self.starts += 1

    def kill(self) -> None:
        """kill -9, with the Java that it started."""
        self._signal_all()
        self._end()

    def stop(self) -> int:
        """Ends it after a checkpoint; its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_STOP_SECONDS)
        finally:
            self._signal_all()
            self._end()
        return code

    def wait(self) -> int:
        """Waits until it has ended by itself; its exit code."""
        assert self._process is not None
        code = self._process.wait(_STOP_SECONDS)
        self._end()
        return code

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.stop()

    def _signal_all(self) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all of it has ended

    def _end(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        self._process.wait()
        self._process.stdout.close()
