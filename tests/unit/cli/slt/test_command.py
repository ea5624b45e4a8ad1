"""What `seiche slt` refuses before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from seiche.cli.main import main


@pytest.mark.parametrize("option", ["--kills", "--server"])
def test_a_server_of_somebody_else_is_neither_started_nor_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    file = tmp_path / "harbour.slt"
    file.write_text("statement ok\nSELECT 1\n")
    assert main(["slt", str(file), "--port", "1", option]) == 1
    assert "neither started nor killed" in capsys.readouterr().err
