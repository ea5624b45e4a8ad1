"""`seiche start`, `status` and `stop`: a server in the foreground, and the file by which others find it.

The file `server.json` in the data folder names the process and its address while the server listens. A server that was
killed leaves it behind; whoever reads it makes sure that the process is alive.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

import seiche
from seiche.config import Config
from seiche.engine import Engine
from seiche.errors import LeaseHeld, ServerNotUsable
from seiche.server.backend import EngineBackend
from seiche.server.dashboard import Dashboard, dashboard_host
from seiche.server.server import Server, ServerOptions

log = logging.getLogger("seiche.server")

FILE_NAME = "server.json"
STOP_SECONDS = 120.0
HEALTH_SECONDS = 1.0
DASHBOARD_PORT = 5691


@dataclass(frozen=True, slots=True)
class Address:
    pid: int
    host: str
    port: int

    @property
    def client_host(self) -> str:
        """Where a client on this machine finds a server that listens everywhere."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104  (compared, not bound)


def running(config: Config) -> Address | None:
    """The server of this data folder, if one is alive."""
    path = Path(config.data_dir) / FILE_NAME
    try:
        found = Address(**json.loads(path.read_text()))
        os.kill(found.pid, 0)
        with socket.create_connection((found.client_host, found.port), timeout=2):
            return found
    except PermissionError:
        return found
    except (OSError, ValueError, TypeError):
        return None


def start(
    config: Config,
    options: ServerOptions,
    *,
    dashboard_port: int | None = 0,
    connect: Callable[..., Engine] = seiche.connect,
) -> int:
    """Runs until SIGTERM or SIGINT; returns the exit code. Ends after a checkpoint."""
    options.check()
    other = running(config)
    if other is not None:
        raise LeaseHeld(
            f'a server for "{config.data_dir}" is running already',
            detail=f"Process {other.pid} listens on {other.host}:{other.port}.",
            hint=f"Stop it with: seiche stop --data-dir {config.data_dir}",
        )
    _log_lines(sys.stderr)
    log.info("starting Spark and recovering %s", config.data_dir)
    with connect(config=config) as engine:
        log.setLevel(logging.INFO)
        return asyncio.run(_serve(engine, config, options, dashboard_port))


async def _serve(engine: Engine, config: Config, options: ServerOptions, dashboard_port: int | None) -> int:
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    # Not signal.signal: Spark installs a handler of its own, which would cancel jobs and not stop.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    server = Server(EngineBackend(engine), options)
    await server.start()
    dashboard = await _show(engine, options, dashboard_port)
    path = Path(config.data_dir) / FILE_NAME
    address = Address(os.getpid(), options.host, server.port)
    _write(path, address)
    log.info("ready on %s:%d", options.host, server.port)
    print(f"Ready. Connect with: psql -h {address.client_host} -p {server.port} -d dev -U root", flush=True)
    broken = None
    try:
        while not told.is_set() and broken is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(HEALTH_SECONDS):
                    await told.wait()
            broken = engine.broken()
        log.info("stopping: %d sessions are open", server.sessions)
        await server.stop()
        if dashboard is not None:
            await dashboard.stop()
    finally:
        path.unlink(missing_ok=True)
    if broken is not None:
        log.error("the engine broke down, a restart recovers it: %s", broken)
        return 1
    return 0


async def _show(engine: Engine, options: ServerOptions, port: int | None) -> Dashboard | None:
    """The dashboard. Where nobody asked for a port, the usual one being taken does not stop the server."""
    if port == 0:
        return None
    dashboard = Dashboard(engine.observer, dashboard_host(options), DASHBOARD_PORT if port is None else port)
    try:
        await dashboard.start()
    except ServerNotUsable as error:
        if port is not None:
            raise
        log.warning("%s; there is none. %s", error.message, error.hint)
        return None
    log.info("dashboard on http://%s:%d/", dashboard.host, dashboard.port)
    return dashboard


def status(config: Config, out: TextIO) -> int:
    """Says whether a server runs; exit code 0 if so."""
    found = running(config)
    if found is None:
        out.write(f"no server runs for {config.data_dir}\n")
        return 1
    out.write(f"process {found.pid} listens on {found.host}:{found.port} for {config.data_dir}\n")
    return 0


def stop(config: Config, out: TextIO) -> int:
    """Ends the server after a checkpoint, and waits for it."""
    found = running(config)
    if found is None:
        out.write(f"no server runs for {config.data_dir}\n")
        return 0
    os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while _alive(found.pid):
        if time.monotonic() > deadline:
            raise ServerNotUsable(
                f"process {found.pid} has not stopped after {STOP_SECONDS:g} s",
                hint="Look at its log. Nothing acknowledged is lost if you kill it.",
            )
        time.sleep(0.1)
    out.write("stopped\n")
    return 0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        # A child that has ended stays until its parent asks; it is not alive.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return sys.platform != "linux"
    except ProcessLookupError:
        return False


def _write(path: Path, address: Address) -> None:
    """Whole or not at all."""
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(asdict(address)) + "\n")
    draft.replace(path)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "time": f"{moment}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def _log_lines(out: TextIO) -> None:
    """Every message of ours as one line of JSON."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(_JsonLines())
    root = logging.getLogger("seiche")
    root.handlers = [handler]
    root.propagate = False
    log.setLevel(logging.INFO)
