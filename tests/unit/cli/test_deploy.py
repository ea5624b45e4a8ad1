"""The files in `deploy` against the command that they run, and against systemd where it is installed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from seiche.cli.main import parser
from seiche.cli.serve import DASHBOARD_PORT

DEPLOY = Path(__file__).parents[3] / "deploy"
UNIT = DEPLOY / "seiche.service"


def _container_commands() -> list[list[str]]:
    text = (DEPLOY / "Containerfile").read_text()
    entry, more = (json.loads(found) for found in re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", text, re.MULTILINE))
    return [[*entry, *more], [*entry, "--passwords"]]


def _unit_command() -> list[str]:
    found = re.search(r"^ExecStart=(.*)$", UNIT.read_text(), re.MULTILINE)
    assert found is not None
    return shlex.split(found[1])


@pytest.mark.parametrize("command", [_unit_command(), *_container_commands()], ids=["unit", "container", "passwords"])
def test_the_command_has_the_options_that_it_is_started_with(command: list[str]) -> None:
    at = next(number for number, word in enumerate(command) if Path(word).name == "seiche")
    arguments = parser().parse_args(command[at + 1 :])
    assert arguments.command == "start"
    assert arguments.data_dir


def test_the_container_has_what_it_copies_and_exposes_the_default_ports() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    for line in re.findall(r"^COPY (.*) \./\S*$", text, re.MULTILINE):
        for name in line.split():
            assert (DEPLOY.parent / name).exists(), name
    assert f"EXPOSE {parser().parse_args(['start']).port} {DASHBOARD_PORT}\n" in text


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("SYSTEMD IS NOT INSTALLED: install it to run this test")
    unit = tmp_path / UNIT.name
    # The program and its user are not here; everything else has to be as systemd wants it.
    unit.write_text(UNIT.read_text().replace(_unit_command()[0], shutil.which("true") or "/bin/true"))
    done = subprocess.run(
        [analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False, timeout=60
    )
    complaints = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert not complaints
