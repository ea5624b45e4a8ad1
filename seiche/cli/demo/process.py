"""The engine's process as its client sees it: started, asked, and killed without warning."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seiche.errors import EngineStopped, SeicheError

START_SECONDS = 120


@dataclass(frozen=True, slots=True)
class JobTurn:
    """What one job did in an epoch."""

    name: str
    rows_in: int
    rows_out: int
    seconds: float


@dataclass(frozen=True, slots=True)
class EpochNews:
    number: int
    seconds: float
    jobs: tuple[JobTurn, ...]
    error: str | None


class RequestFailed(SeicheError):
    """The engine refused a request of the demonstration, which gives only right ones."""

    code = "demo_request_failed"


class EngineProcess:
    """A running engine. Requests of one lane are answered in order; `on_epoch` is called on a thread of its own."""

    def __init__(self, folder: Path, scratch: Path, log: Path, on_epoch: Callable[[EpochNews], None]) -> None:
        self._log = log
        self._on_epoch = on_epoch
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._ended = False
        self._ready: Future[int] = Future()
        scratch.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "seiche.cli.demo.child", str(folder), str(scratch)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                bufsize=1,
                env=_environment(scratch),
                start_new_session=True,  # Ctrl-C reaches the demonstration alone, and one kill reaches Java too
            )
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> None:
        self._ready.result(timeout=START_SECONDS)

    def ask(self, lane: str, **request: Any) -> Future[Any]:
        """The answer to come; EngineStopped when the process ends before it."""
        number = next(self._numbers)
        future: Future[Any] = Future()
        with self._lock:
            if self._ended:
                future.set_exception(self._stopped())
                return future
            self._waiting[number] = future
        line = json.dumps({"id": number, "lane": lane, **request})
        assert self._process.stdin is not None
        try:
            with self._lock:
                self._process.stdin.write(line + "\n")
        except (BrokenPipeError, ValueError):
            pass  # the listener notices the end too, and tells everybody who waits
        return future

    def query(self, sql: str, lane: str = "check") -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.ask(lane, do="query", sql=sql).result()]

    def kill(self) -> None:
        """kill -9, Python and Java at once. Harmless when it has ended already."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def close(self) -> None:
        """Lets it end by itself, after a last checkpoint."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        finally:
            self.kill()

    # ------------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):  # a kill may cut the last one
                self._take(json.loads(line))
        with self._lock:
            self._ended = True
            waiting, self._waiting = self._waiting, {}
        for future in (*waiting.values(), self._ready):
            if not future.done():
                future.set_exception(self._stopped())

    def _take(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self._ready.set_result(message["ready"])
        elif "epoch" in message:
            told = message["epoch"]
            jobs = tuple(JobTurn(*job) for job in told["jobs"])
            self._on_epoch(EpochNews(told["number"], told["seconds"], jobs, told["error"]))
        else:
            with self._lock:
                future = self._waiting.pop(message["id"])
            if "error" in message:
                future.set_exception(RequestFailed(message["error"]))
            else:
                future.set_result(message["value"])

    def _stopped(self) -> EngineStopped:
        tail = self._log.read_text(errors="replace").splitlines()[-15:] if self._log.exists() else []
        return EngineStopped(
            "the engine's process ended", detail="Its last words: " + "\n".join(tail) if tail else None
        )


def _environment(scratch: Path) -> dict[str, str]:
    """Temporary files go to `scratch`: Java has no chance to remove its own when it is killed."""
    java_options = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} -Djava.io.tmpdir={scratch}".strip()
    places = {"TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch), "JDK_JAVA_OPTIONS": java_options}
    return {**os.environ, **places}
