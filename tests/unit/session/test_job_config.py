"""ALTER … SET CONFIG: settings that are remembered with a job, and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from seiche import errors
from tests.unit.session.port import Port, open_port


def _config(port: Port) -> Any:
    return port.rows("SELECT name, key, value FROM rw_catalog.rw_streaming_job_config ORDER BY key")


def test_settings_of_a_job_are_given_changed_and_taken_back(tmp_path: Path) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE ships (id int)")
        port.execute("ALTER TABLE ships SET CONFIG (streaming.b = 2, streaming.a = 'one')")
        assert _config(port) == [("ships", "streaming.a", '"one"'), ("ships", "streaming.b", "2")]
        port.execute("ALTER TABLE ships SET CONFIG (streaming.b = 3, streaming.a = NULL)")
        assert _config(port) == [("ships", "streaming.b", "3")]
        port.execute("ALTER TABLE ships RESET CONFIG (streaming.b)")
        assert _config(port) == []


@pytest.mark.parametrize("values", ["batch.a = 1", "streaming.a = 1, streaming.a = 2"])
def test_what_is_no_setting_of_a_job_or_given_twice_is_refused(tmp_path: Path, values: str) -> None:
    with open_port(tmp_path) as port:
        port.execute("CREATE TABLE ships (id int)")
        with pytest.raises(errors.InvalidParameter):
            port.execute(f"ALTER TABLE ships SET CONFIG ({values})")
