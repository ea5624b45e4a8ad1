"""The server: listens, admits clients up to a limit, and gives their statements threads to run on.

One event loop moves all bytes; statements run on a bounded pool of threads. An idle client costs its socket and a few
kilobytes. A client beyond the limit is told so in PostgreSQL's form; connections that have not said who they are do not
count as sessions and are bounded by themselves.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import secrets
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from seiche.errors import ConfigError, EngineStopped, ServerNotUsable, TooManyConnections
from seiche.server.backend import Backend
from seiche.server.client import Client
from seiche.server.connection import Connection

log = logging.getLogger(__name__)

T = TypeVar("T")
# Statements nest deeper than a thread's usual stack allows for.
STACK_BYTES = 64 * 1024 * 1024
UNKNOWN_MAX = 200  # connections that have not said who they are
STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """`passwords` asks everybody for one; without, users who have none come in from where `trust_network` allows."""

    host: str = "127.0.0.1"
    port: int = 4566
    connections_max: int = 300
    threads: int = 32
    passwords: bool = False
    trust_network: bool = False
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Raises ConfigError where anybody on the network could come in without anyone having said so."""
        if not is_loopback(self.host) and not self.passwords and not self.trust_network:
            raise ConfigError(
                f'server would listen on "{self.host}" without authentication',
                detail="Beyond this machine everybody could read and change everything.",
                hint="Use --passwords after ALTER USER root PASSWORD '…', or say --trust-everyone-on-the-network.",
            )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Server:
    """Satisfies `seiche.server.client.House`. `start`, then `stop`, on one event loop."""

    def __init__(self, backend: Backend, options: ServerOptions) -> None:
        options.check()
        self.backend = backend
        self.options = options
        self.tls = _tls(options)
        self.pepper = secrets.token_bytes(32)
        self._clients: dict[int, tuple[int, Client]] = {}
        self._unknown: set[Client] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._next = secrets.randbelow(1_000_000)
        self._pool = _pool(options.threads)

    # --- life --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        try:
            self._listener = await asyncio.start_server(
                self._connected, self.options.host, self.options.port, backlog=1024
            )
        except OSError as error:
            reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
            raise ServerNotUsable(
                f"cannot listen on {self.options.host}:{self.options.port}: {reason}",
                hint="Choose another address with --host and --port.",
            ) from error

    @property
    def port(self) -> int:
        """The port listened on, also where the options left it to the system."""
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    @property
    def sessions(self) -> int:
        return len(self._clients)

    async def stop(self) -> None:
        """Refuses new clients, cancels what runs, and sends everybody away."""
        if self._listener is not None:
            self._listener.close()
        reason = EngineStopped("terminating connection due to administrator command")
        for client in [*(client for _, client in self._clients.values()), *self._unknown]:
            await client.stop(reason)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if len(self._unknown) >= UNKNOWN_MAX:
            refusal = Connection()
            refusal.end_with(_too_many())
            writer.write(refusal.take_output())
            writer.close()
            return
        client = Client(self, reader, writer)
        self._unknown.add(client)
        try:
            await client.serve()
        except asyncio.CancelledError:
            log.debug("a client was sent away")
        except Exception:  # the edge of a connection: the others go on
            log.exception("a connection broke")
            writer.close()

    # --- what clients ask --------------------------------------------------------------------------------

    def admit(self, client: Client) -> tuple[int, int]:
        if len(self._clients) >= self.options.connections_max:
            raise _too_many()
        self._unknown.discard(client)
        self._next = self._next % (2**31 - 1) + 1
        while self._next in self._clients:
            self._next = self._next % (2**31 - 1) + 1
        secret = secrets.randbits(32)
        self._clients[self._next] = (secret, client)
        return self._next, secret

    def leave(self, client: Client) -> None:
        self._unknown.discard(client)
        for process, (_, other) in list(self._clients.items()):
            if other is client:
                del self._clients[process]

    def cancel(self, process: int, secret: int) -> None:
        """Cancels what a session runs, if the secret is its own. Nobody is told whether it was."""
        known = self._clients.get(process)
        if known is None or known[0] != secret:
            return
        task = asyncio.ensure_future(known[1].cancel())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def trusts(self, peer: str) -> bool:
        if self.options.passwords:
            return is_loopback(peer)  # so that the first password can be set
        return self.options.trust_network or is_loopback(peer)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)


def _too_many() -> TooManyConnections:
    return TooManyConnections("sorry, too many clients already")


def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads are made as they are needed, so the size of their stack is set until all of them are there."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix="statement")
    before = threading.stack_size(STACK_BYTES)
    try:
        ready = threading.Barrier(threads + 1)
        for _ in range(threads):
            pool.submit(ready.wait)
        ready.wait()
    finally:
        threading.stack_size(before)
    return pool


def _tls(options: ServerOptions) -> ssl.SSLContext | None:
    if options.certificate is None:
        if options.key is not None:
            raise ConfigError("a TLS key was given without a certificate", hint="Give both.")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(options.certificate, options.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f'TLS certificate "{options.certificate}" cannot be used',
            detail=str(error),
            hint="Both files must be PEM and readable, and the key must belong to the certificate.",
        ) from error
    return context
