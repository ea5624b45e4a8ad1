from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import seiche
from seiche.cli.main import main
from seiche.config import Config
from seiche.errors import LeaseHeld
from tests.unit.cli.harbour import Harbour

ALLOCATOR = "ARROW_DEFAULT_MEMORY_POOL"

Captured = pytest.CaptureFixture[str]


def test_c_runs_statements_in_order_and_ends_well(capsys: Captured) -> None:
    assert main(["sql", "-c", "SHOW TABLES", "-c", "SELECT * FROM ships"], connect=Harbour) == 0
    assert capsys.readouterr().out.count("rows)") == 2


def test_c_and_f_run_in_the_order_given(tmp_path: Path) -> None:
    script = tmp_path / "a.sql"
    script.write_text("SHOW VIEWS;")
    harbour = Harbour()
    arguments = ["sql", "-c", "SHOW TABLES", "-f", str(script), "-c", "SHOW INDEXES"]
    assert main(arguments, connect=lambda data_dir=None, *, config: harbour) == 0
    assert harbour.executed == ["SHOW TABLES", "SHOW VIEWS", "SHOW INDEXES"]
    assert harbour.closed


def test_an_error_ends_with_code_1_and_leaves_stdout_clean(capsys: Captured) -> None:
    assert main(["sql", "-c", "SELECT * FROM shps", "-c", "SHOW TABLES"], connect=Harbour) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith('ERROR:  relation "shps" does not exist')


def test_a_missing_file_fails_before_the_engine_starts(tmp_path: Path, capsys: Captured) -> None:
    def refuse(data_dir: str | None = None, *, config: Config) -> Harbour:
        raise AssertionError("the engine was started")

    assert main(["sql", "-f", str(tmp_path / "none.sql")], connect=refuse) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_standard_input_is_read_where_it_is_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT * FROM ships;\n\\x\nSELECT * FROM ships;"))
    assert main(["sql"], connect=Harbour) == 0
    out = capsys.readouterr().out
    assert "(2 rows)" in out
    assert "-[ RECORD 2 ]" in out


def test_settings_of_the_command_line_reach_the_engine(tmp_path: Path) -> None:
    seen: list[Config] = []

    def connect(data_dir: str | None = None, *, config: Config) -> Harbour:
        seen.append(config)
        return Harbour()

    options = ["--data-dir", str(tmp_path), "--set", "barrier_interval_ms=50", "--master", "local[2]"]
    assert main(["sql", "-c", "SHOW TABLES", *options], connect=connect) == 0
    assert seen[0].data_dir == tmp_path
    assert (seen[0].barrier_interval_ms, seen[0].master) == (50, "local[2]")


def test_an_engine_that_does_not_start_is_one_clear_error(capsys: Captured) -> None:
    def connect(data_dir: str | None = None, *, config: Config) -> Harbour:
        raise LeaseHeld("database is in use by process 42", hint="Stop it.")

    assert main(["sql", "-c", "SHOW TABLES"], connect=connect) == 1
    assert capsys.readouterr().err == "ERROR:  database is in use by process 42\nHINT:  Stop it.\n"


def test_a_defect_shows_its_stack_only_when_asked_for(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["sql", "-c", "SELECT broken"], connect=Harbour) == 1
    err = capsys.readouterr().err
    assert err.startswith("ERROR:  ZeroDivisionError: the engine has a defect")
    assert "Traceback" not in err
    monkeypatch.setenv("SEICHE_DEBUG", "1")
    assert main(["sql", "-c", "SELECT broken"], connect=Harbour) == 1
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_while_the_engine_starts_ends_with_130() -> None:
    def connect(data_dir: str | None = None, *, config: Config) -> Harbour:
        raise KeyboardInterrupt

    assert main(["sql", "-c", "SHOW TABLES"], connect=connect) == 130


def test_a_wrong_setting_is_named(capsys: Captured) -> None:
    assert main(["config", "--set", "barrier_interval_ms=soon"]) == 1
    assert 'setting "barrier_interval_ms" cannot be "soon"' in capsys.readouterr().err
    assert main(["config", "--set", "barrier_interval_ms"]) == 1
    assert "--set NAME=VALUE" in capsys.readouterr().err


def test_config_lists_value_and_origin_of_each_setting(tmp_path: Path, capsys: Captured) -> None:
    assert main(["config", "--data-dir", str(tmp_path)]) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert lines["data_dir"][1:3] == [str(tmp_path), "--data-dir"]
    assert lines["barrier_interval_ms"][1:3] == ["1000", "default"]


def test_config_prints_json_without_the_password(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEICHE_METADATA", "postgresql://harbour:secret@localhost/seiche")
    monkeypatch.setenv("SEICHE_MASTRE", "local")
    assert main(["config", "--json"]) == 0
    captured = capsys.readouterr()
    entries = {entry["name"]: entry for entry in json.loads(captured.out)}
    assert entries["metadata"]["value"] == "postgresql://harbour:***@localhost/seiche"
    assert entries["metadata"]["origin"] == "SEICHE_METADATA"
    assert entries["barrier_interval_ms"]["mutable"] is True
    assert "SEICHE_MASTRE names no setting" in captured.err


@pytest.mark.parametrize("arguments", [[], ["sail"], ["sql", "--sail"]])
def test_wrong_usage_ends_with_code_2(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: seiche" in capsys.readouterr().err


def test_version_is_printed(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"seiche {seiche.__version__}\n"


@pytest.mark.parametrize(("named", "used"), [(None, "system"), ("mimalloc", "mimalloc")])
def test_arrow_uses_malloc_unless_told_otherwise(named: str | None, used: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != ALLOCATOR}
    if named is not None:
        environment[ALLOCATOR] = named
    script = "import seiche.cli.main, pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    told = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
    assert told.stdout.strip() == used
