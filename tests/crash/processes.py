"""Starting and killing the engine's process for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180


class Worker:
    """A process of its own process group: Python, and the Java that it starts. Its output is kept."""

    def __init__(self, module: str, *arguments: object, log: Path) -> None:
        self.log = log
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._errors = log.open("ab")
        temporary = log.parent / "tmp"  # Java cannot remove its own when it is killed
        temporary.mkdir(exist_ok=True)
        places = {
            "TMPDIR": str(temporary),
            "SPARK_LOCAL_DIRS": str(temporary),
            "JDK_JAVA_OPTIONS": f"-Djava.io.tmpdir={temporary}",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *map(str, arguments)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env={**os.environ, **places},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self._lines.append(line.rstrip("\n"))
                self._changed.notify_all()

    def wait_for_line(self, beginning: str, seconds: float = START_SECONDS) -> str | None:
        """The first line that begins so; None when the process ended before."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            ended = self.process.poll() is not None
            if ended:
                self._reader.join(5)
            with self._changed:
                for line in self._lines:
                    if line.startswith(beginning):
                        return line
                if ended:
                    return None
                self._changed.wait(0.05)
        raise AssertionError(f"the process did not get to {beginning!r} in {seconds} s: {self.tail()}")

    def kill(self, *, with_java: bool = True) -> None:
        """kill -9. Without Java that process finds out by itself, as when a user kills Python alone."""
        if with_java:
            self._kill_group()
        else:
            self.process.kill()
        self.process.wait()

    def ends_within(self, seconds: float) -> bool:
        """Whether the process ends by itself in that time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def wait(self, seconds: float) -> int:
        return self.process.wait(seconds)

    def tail(self, lines: int = 60) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def _kill_group(self) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill_group()
        self.process.wait()
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._errors.close()


@contextmanager
def small_disk(folder: Path, megabytes: int, *options: str) -> Iterator[Path]:
    """A file system of its own. Needs the right to mount: `can_mount` tells."""
    folder.mkdir()
    wanted = ",".join((f"size={megabytes}m", *options))
    subprocess.run(["mount", "-t", "tmpfs", "-o", wanted, "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def can_mount(folder: Path) -> bool:
    if os.geteuid() != 0:
        return False
    try:
        with small_disk(folder / "try", 1):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False
