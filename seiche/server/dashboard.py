"""The dashboard's port: metrics for Prometheus, health for whoever starts servers, and a small page for people.

    GET /metrics    Prometheus' text form
    GET /healthz    200 and `ok`, or 503 and why not
    GET /           relations, jobs and the time of epochs; needs nothing from elsewhere

It only tells, never changes, and asks for no password. So it listens where the SQL port may be reached without one:
on this machine, and beyond it only with `trust_network`.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from contextlib import suppress
from typing import Protocol

from seiche.errors import ServerNotUsable
from seiche.metrics import CONTENT_TYPE
from seiche.server.page import render
from seiche.server.server import ServerOptions, is_loopback
from seiche.session.observed import Overview

log = logging.getLogger(__name__)

REQUEST_SECONDS = 10.0
REQUEST_BYTES_MAX = 16 * 1024
CLIENTS_MAX = 32

_REASONS = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed"}
_REASONS |= {500: "Internal Server Error", 503: "Service Unavailable"}

Answer = tuple[int, str, str]  # status, content type, body


class Observed(Protocol):
    """What the dashboard shows. Both may take a while: they are called on a thread."""

    def metrics_text(self) -> str: ...

    def overview(self) -> Overview: ...


def dashboard_host(options: ServerOptions) -> str:
    """Where it may listen: the SQL port's address, or only this machine where that asks for passwords."""
    if is_loopback(options.host) or options.trust_network:
        return options.host
    return "127.0.0.1"


class Dashboard:
    """`start`, then `stop`, on one event loop."""

    def __init__(self, observed: Observed, host: str, port: int) -> None:
        self._observed = observed
        self.host = host
        self._wanted = port
        self._clients = 0
        self._listener: asyncio.Server | None = None

    async def start(self) -> None:
        try:
            self._listener = await asyncio.start_server(
                self._connected, self.host, self._wanted, limit=REQUEST_BYTES_MAX
            )
        except OSError as error:
            reason = "it is in use" if error.errno == errno.EADDRINUSE else error.strerror or str(error)
            raise ServerNotUsable(
                f"dashboard cannot listen on {self.host}:{self._wanted}: {reason}",
                hint="Choose another port with --dashboard-port, or 0 for none.",
            ) from error

    @property
    def port(self) -> int:
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        if self._listener is not None:
            self._listener.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients += 1
        try:
            if self._clients <= CLIENTS_MAX:
                async with asyncio.timeout(REQUEST_SECONDS):
                    await self._serve(reader, writer)
        except (TimeoutError, ConnectionError):
            log.debug("a client of the dashboard went away")
        except Exception:  # the edge of a connection: the others go on
            log.exception("a request to the dashboard failed")
        finally:
            self._clients -= 1
            with suppress(ConnectionError):
                writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, then the connection is closed."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await _send(writer, (400, "text/plain", "a request was expected\n"), body=True)
            return
        request, *headers = head.split("\r\n")
        method, _, rest = request.partition(" ")
        target = rest.partition(" ")[0].partition("?")[0]
        await _send(writer, await self._answer(method, target, headers), body=method != "HEAD")

    async def _answer(self, method: str, target: str, headers: list[str]) -> Answer:
        if method not in ("GET", "HEAD"):
            return 405, "text/plain", "only GET and HEAD are answered\n"
        if is_loopback(self.host) and not _names_this_machine(headers):
            # A page from elsewhere may have made a name of its own point here.
            return 403, "text/plain", "the dashboard is for this machine only\n"
        match target:
            case "/metrics":
                return 200, CONTENT_TYPE, await asyncio.to_thread(self._observed.metrics_text)
            case "/healthz":
                overview = await asyncio.to_thread(self._observed.overview)
                if overview.healthy:
                    return 200, "text/plain", "ok\n"
                return 503, "text/plain", f"{overview.state}: {overview.last_error or 'no error is known'}\n"
            case "/":
                overview = await asyncio.to_thread(self._observed.overview)
                return 200, "text/html; charset=utf-8", render(overview)
            case _:
                return 404, "text/plain", "there are /, /metrics and /healthz\n"


def _names_this_machine(headers: list[str]) -> bool:
    """Whether the Host header, if there is one, is a name of this machine."""
    for line in headers:
        name, _, value = line.partition(":")
        if name.strip().lower() == "host":
            host = value.strip()
            host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            return is_loopback(host)
    return True


async def _send(writer: asyncio.StreamWriter, answer: Answer, *, body: bool) -> None:
    status, kind, text = answer
    content = text.encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n"
        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + (content if body else b""))
    await writer.drain()
