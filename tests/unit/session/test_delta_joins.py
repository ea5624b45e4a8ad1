"""Views hold on to the indexes that serve their joins, if the session says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from seiche.errors import DependentObjects
from tests.unit.session.port import Port, open_port

VIEW = "CREATE MATERIALIZED VIEW calls AS SELECT s.name FROM ships s JOIN arrivals a ON a.ship = s.id WHERE a.tons > 1"


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    with open_port(tmp_path) as opened:
        opened.execute("CREATE TABLE ships (id int, name varchar)")
        opened.execute("CREATE TABLE arrivals (ship int, tons int)")
        opened.execute("CREATE INDEX by_id ON ships (id)")
        yield opened


def test_an_index_on_each_side_cannot_be_dropped_without_the_view(port: Port) -> None:
    port.execute("CREATE INDEX by_ship ON arrivals (ship)")
    port.execute("CREATE INDEX by_tons ON arrivals (tons)")
    port.execute("SET rw_streaming_enable_delta_join = true")
    port.execute(VIEW)
    for held in ("by_id", "by_ship"):
        with pytest.raises(DependentObjects):
            port.execute(f"DROP INDEX {held}")
    port.execute("DROP INDEX by_tons")
    port.execute("ALTER INDEX by_id RENAME TO ids")
    port.execute("DROP INDEX ids CASCADE")
    assert port.rows("SHOW MATERIALIZED VIEWS") == []


@pytest.mark.parametrize("wanted", [True, False])
def test_an_index_on_one_side_or_without_the_setting_is_nobodys(port: Port, wanted: bool) -> None:
    if not wanted:
        port.execute("CREATE INDEX by_ship ON arrivals (ship)")
    port.execute(f"SET rw_streaming_enable_delta_join = {wanted}")
    port.execute(VIEW)
    port.execute("DROP INDEX by_id")
