"""The dashboard's port, asked as a browser or Prometheus would."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from seiche.errors import ServerNotUsable
from seiche.server.dashboard import Dashboard, dashboard_host
from seiche.server.page import render
from seiche.server.server import ServerOptions
from seiche.session.observed import JobLine, Overview, RelationLine

QUIET = Overview(True, "running", False, 65536, 1, None, 2, (), (), ())


@dataclass
class Harbour:
    """Something to show."""

    shown: Overview = QUIET

    def metrics_text(self) -> str:
        return "seiche_sessions 2\n"

    def overview(self) -> Overview:
        return self.shown


def ask(request: str, shown: Overview = QUIET) -> tuple[int, str, str]:
    """Status, head and body of the answer to a raw request."""

    async def conversation() -> bytes:
        dashboard = Dashboard(Harbour(shown), "127.0.0.1", 0)
        await dashboard.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", dashboard.port)
        writer.write(request.encode())
        writer.write_eof()
        found = await reader.read()
        writer.close()
        await dashboard.stop()
        return found

    head, _, body = asyncio.run(conversation()).decode().partition("\r\n\r\n")
    return int(head.split()[1]), head, body


def get(path: str, shown: Overview = QUIET, host: str = "localhost:5691") -> tuple[int, str, str]:
    return ask(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n", shown)


def test_metrics_are_shown_in_prometheus_form() -> None:
    status, head, body = get("/metrics?all")
    assert (status, body) == (200, "seiche_sessions 2\n")
    assert "Content-Type: text/plain; version=0.0.4" in head


def test_health_tells_whether_the_database_runs_and_why_not() -> None:
    assert get("/healthz")[::2] == (200, "ok\n")
    broken = replace(QUIET, healthy=False, state="failed", last_error="the disk is full")
    assert get("/healthz", broken)[::2] == (503, "failed: the disk is full\n")


def test_a_head_request_gets_no_body() -> None:
    status, head, body = ask("HEAD / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert (status, body) == (200, "")
    assert "Content-Length: " in head


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("GET /secrets HTTP/1.1\r\n\r\n", 404),
        ("POST / HTTP/1.1\r\n\r\n", 405),
        ("nonsense", 400),
        ("GET /" + "x" * 40_000 + " HTTP/1.1\r\n\r\n", 400),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
        ("GET /metrics HTTP/1.1\r\nHost: [::1]:5691\r\n\r\n", 200),
    ],
)
def test_what_is_not_to_be_had_is_refused(request_: str, status: int) -> None:
    assert ask(request_)[0] == status


def test_the_page_shows_relations_jobs_and_epochs_and_needs_nothing_from_elsewhere() -> None:
    shown = replace(
        QUIET,
        relations=(RelationLine("arrivals", "table", 1_234_567, 3),),
        jobs=(JobLine(7, "berth_load", "creation", "Snapshot [41.20% (412/1000)]"),),
        epoch_seconds=(0.05, 0.2),
    )
    page = get("/", shown)[2]
    for word in ("arrivals", "1,234,567", "berth_load", "Snapshot [41.20% (412/1000)]", "median 200 ms"):
        assert word in page
    assert "src=" not in page and "http://" not in page and "https://" not in page


def test_names_on_the_page_are_never_markup() -> None:
    page = render(replace(QUIET, relations=(RelationLine("<script>alert(1)</script>", "table", 1, 1),)))
    assert "<script>" not in page and "&lt;script&gt;" in page


def test_without_passwords_it_stays_on_this_machine() -> None:
    assert dashboard_host(ServerOptions(host="0.0.0.0", passwords=True)) == "127.0.0.1"
    assert dashboard_host(ServerOptions(host="0.0.0.0", trust_network=True)) == "0.0.0.0"
    assert dashboard_host(ServerOptions(host="::1")) == "::1"


def test_a_port_in_use_is_told_with_what_to_do() -> None:
    async def twice() -> None:
        first = Dashboard(Harbour(), "127.0.0.1", 0)
        await first.start()
        with pytest.raises(ServerNotUsable, match="in use"):
            await Dashboard(Harbour(), "127.0.0.1", first.port).start()
        await first.stop()

    asyncio.run(twice())
