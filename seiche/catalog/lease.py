"""The lease: at most one process at a time writes to a metadata database.

    acquire ──▶ token in the database ──▶ every commit checks the token in its own transaction (fencing)
                     │
                     └─ replaced by another process when its holder is dead, or did not renew it in time

A holder on this machine is dead when its process is gone, or when its number belongs to another process by now;
it is replaced at once. A holder elsewhere is replaced when its time has run out. A holder that was replaced and
does not know it yet cannot do harm: its token no longer stands in the database.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from seiche.catalog import tables
from seiche.errors import LeaseHeld, LeaseLost

_TABLE = tables.lease
_ROW = 1
FREE = ""  # the token when nobody holds the lease


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A process that wants to write. `started_ms` is when it started, `label` what it is ("seiche sql")."""

    host: str
    pid: int
    started_ms: int
    label: str

    @staticmethod
    def this_process(started_ms: int, label: str) -> LeaseHolder:
        return LeaseHolder(socket.gethostname(), os.getpid(), started_ms, label)


def acquire(connection: Connection, name: str, holder: LeaseHolder, ttl_ms: int, now_ms: int) -> str:
    """Takes the lease and returns its token, or raises LeaseHeld. `name` is the database, for the message."""
    _refuse(_held(connection), name, now_ms)
    token = uuid4().hex
    _write(
        connection,
        token=token,
        host=holder.host,
        pid=holder.pid,
        label=holder.label,
        started_ms=holder.started_ms,
        machine=_machine(),
        process_start=_process_start(holder.pid),
        expires_ms=now_ms + ttl_ms,
    )
    return token


def refuse_if_held(connection: Connection, name: str, now_ms: int) -> None:
    """Raises LeaseHeld while a process has the lease; only looks, and locks nothing."""
    _refuse(connection.execute(sa.select(_TABLE).where(_TABLE.c.id == _ROW)).one(), name, now_ms)


def _refuse(held: Row[Any], name: str, now_ms: int) -> None:
    if held.token != FREE and held.expires_ms > now_ms and _may_be_alive(held):
        raise LeaseHeld(
            f'metadata database "{name}" is in use by process {held.pid} on host "{held.host}"',
            detail=f"{held.label} has been running there since {_moment(held.started_ms)}. "
            f"Its lease lasts until {_moment(held.expires_ms)} unless it is renewed.",
            hint="Stop that process or connect to it, or use another data folder.",
        )


def renew(connection: Connection, name: str, token: str, ttl_ms: int, now_ms: int) -> None:
    check(connection, name, token)
    _write(connection, expires_ms=now_ms + ttl_ms)


def check(connection: Connection, name: str, token: str) -> None:
    """Raises LeaseLost unless the token stands; nobody can replace it before this transaction ends."""
    held = _held(connection)
    if held.token != token:
        by = f'process {held.pid} on host "{held.host}" ({held.label})' if held.token != FREE else "another process"
        raise LeaseLost(
            f'metadata database "{name}" was taken over by {by}',
            detail="This process did not renew its lease in time. Nothing of its last change was kept.",
            hint="Stop this process; the other one goes on from the last checkpoint.",
        )


def wait_for_writers(connection: Connection) -> None:
    """Returns when no transaction that checked the lease is under way: each keeps its row locked to the end."""
    _held(connection)


def release(connection: Connection, token: str) -> None:
    """Gives the lease back, if it is still ours."""
    if _held(connection).token == token:
        _write(connection, token=FREE, expires_ms=0)


def create(connection: Connection) -> None:
    """Writes the one row, free, into a new database: a row that always exists can always be locked."""
    free = {"host": "", "pid": 0, "label": "", "started_ms": 0, "machine": "", "expires_ms": 0}
    connection.execute(sa.insert(_TABLE).values(id=_ROW, token=FREE, **free))


def _held(connection: Connection) -> Row[Any]:
    return connection.execute(sa.select(_TABLE).where(_TABLE.c.id == _ROW).with_for_update()).one()


def _write(connection: Connection, **values: object) -> None:
    connection.execute(sa.update(_TABLE).where(_TABLE.c.id == _ROW).values(**values))


def _may_be_alive(held: Row[Any]) -> bool:
    if held.machine != _machine():
        return True  # there is no way to look
    if not _process_exists(held.pid):
        return False
    start = _process_start(held.pid)
    return start is None or held.process_start is None or start == held.process_start


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # it exists and belongs to somebody else
    stat = _stat(pid)
    return stat is None or stat[0] not in ("Z", "X")  # killed, but its parent has not taken notice yet


def _process_start(pid: int) -> str | None:
    """When the process started, in ticks since the machine did; None where the system does not tell."""
    stat = _stat(pid)
    return stat[19] if stat is not None else None


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/<pid>/stat from the third (the state) on: the second, a name, may hold spaces."""
    text = _read(f"/proc/{pid}/stat")
    return text.rpartition(")")[2].split() if text else None


def _machine() -> str:
    """Names the machine, this boot of it and this process's view of process numbers.

    A host name is not enough: containers and cloned machines share names, and a number means another process in
    another container or after a restart.
    """
    try:
        numbers = os.readlink("/proc/self/ns/pid")
    except OSError:
        numbers = ""
    return " ".join((socket.gethostname(), _read("/proc/sys/kernel/random/boot_id") or "", numbers)).strip()


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:  # no such system, no such process: both mean that there is nothing to know
        return None


def _moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
