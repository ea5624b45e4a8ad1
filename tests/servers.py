"""A server in a process of its own, with clients in this one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

from seiche.cli.slt.servers import ServerProcess

Connection = psycopg.Connection[tuple[object, ...]]


class HarbourServer(ServerProcess):
    def connect(self, **more: object) -> Connection:
        given = {"host": "127.0.0.1", "port": self.port, "dbname": "dev", "user": "root", "autocommit": True, **more}
        return psycopg.connect(**given)  # type: ignore[arg-type]


def below(pid: int) -> list[int]:
    """The processes that a process started, and those that they did. Threads that end meanwhile have none."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with suppress(FileNotFoundError):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                found += [int(child), *below(int(child))]
    return found


def java_below(pid: int) -> int:
    """The process of Java that a process started, by its name: one that has just ended has no file any more."""
    named = []
    for each in below(pid):
        with suppress(FileNotFoundError, ProcessLookupError):
            named.append((Path(f"/proc/{each}/comm").read_text().strip(), each))
    (java,) = (each for name, each in named if name == "java")
    return java


@contextmanager
def running_server(folder: Path, *settings: str, driver_memory: str = "1g") -> Iterator[HarbourServer]:
    """A server below this folder, with `NAME=VALUE` settings. What Java leaves when it is killed stays in it too."""
    given = [f"driver_memory={driver_memory}", *settings]
    options = ["--master", "local[2]", *(word for each in given for word in ("--set", each))]
    environment = {"TMPDIR": str(folder), "SPARK_LOCAL_DIRS": str(folder)}
    with HarbourServer(folder / "harbour", options, environment) as server:
        yield server
