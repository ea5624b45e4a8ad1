"""pg_sleep waits for the time that is written, within the statement's own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche.errors import QueryCanceled
from tests.unit.session.port import Port, open_port


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        yield opened


def test_a_statement_sleeps_and_gives_nothing(port: Port) -> None:
    began = time.monotonic()
    assert port.rows("SELECT pg_sleep(0.2)") == [("",)]
    assert time.monotonic() - began >= 0.2


def test_sleep_ends_with_the_statements_time(port: Port) -> None:
    port.execute("SET statement_timeout = 100")
    with pytest.raises(QueryCanceled, match="statement timeout"):
        port.rows("SELECT pg_sleep(60)")
