from __future__ import annotations

import io
import sqlite3
from pathlib import Path

import pytest

from seiche.catalog.lease import LeaseHolder
from seiche.catalog.store import MetadataStore
from seiche.catalog.tables import VERSION_TABLE
from seiche.cli import doctor
from seiche.cli.doctor import State
from seiche.clock import SystemClock
from seiche.config import Config


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25.0.1" 2025-10-21', 25),
        ("command not found", None),
    ],
)
def test_the_java_version_is_read_from_what_java_prints(text: str, version: int | None) -> None:
    assert doctor.java_version(text) == version


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return folder


def test_an_old_java_fails_and_says_what_to_install(tmp_path: Path) -> None:
    finding = doctor.java_finding({"JAVA_HOME": str(fake_java(tmp_path, "11.0.2"))})
    assert finding.state is State.FAIL
    assert "Java 11" in finding.fact
    assert "Install Java 17" in finding.advice


def test_a_new_java_on_the_path_is_fine(tmp_path: Path) -> None:
    fake_java(tmp_path, "17.0.1")
    assert doctor.java_finding({"PATH": f"{tmp_path}/bin:/bin:/usr/bin"}).state is State.OK


def test_a_java_home_without_java_fails(tmp_path: Path) -> None:
    assert doctor.java_finding({"JAVA_HOME": str(tmp_path)}).state is State.FAIL


def test_no_java_at_all_fails(tmp_path: Path) -> None:
    assert doctor.java_finding({"PATH": str(tmp_path)}).state is State.FAIL


@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("4.0.1", State.FAIL),
        ("4.1.0", State.OK),
        ("4.3.0", State.OK),
        ("4.10.0", State.FAIL),
        ("3.5.1", State.FAIL),
    ],
)
def test_only_supported_versions_of_spark_pass(version: str, state: State) -> None:
    assert doctor.spark_finding(version).state is state


def test_a_folder_that_does_not_exist_yet_can_be_created(tmp_path: Path) -> None:
    finding = doctor.check_folder(Config(data_dir=tmp_path / "a" / "b"))
    assert finding.state is State.OK
    assert "can be created" in finding.fact
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_place_of_the_folder_fails(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    assert doctor.check_folder(Config(data_dir=tmp_path / "data")).state is State.FAIL


def test_metadata_that_does_not_exist_yet_is_fine_and_stays_away(tmp_path: Path) -> None:
    assert doctor.check_metadata(Config(data_dir=tmp_path)).state is State.OK
    assert list(tmp_path.iterdir()) == []


def test_a_database_in_use_is_reported_with_its_holder(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path)
    clock = SystemClock()
    store = MetadataStore.open(config.metadata_address, clock=clock)
    assert doctor.check_metadata(config).state is State.OK
    store.acquire_lease(LeaseHolder.this_process(clock.now_ms(), "seiche sql"), 10_000)
    finding = doctor.check_metadata(config)
    assert finding.state is State.WARN
    assert "seiche sql" in finding.fact
    store.release_lease()
    store.close()


def test_looking_at_the_metadata_changes_nothing(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path)
    (tmp_path / "meta.db").touch()
    finding = doctor.check_metadata(config)
    assert finding.state is State.OK
    assert "will get its tables at the next start" in finding.fact
    assert (tmp_path / "meta.db").read_bytes() == b""
    MetadataStore.open(config.metadata_address, clock=SystemClock()).close()
    before = (tmp_path / "meta.db").read_bytes()
    assert doctor.check_metadata(config).state is State.OK
    assert (tmp_path / "meta.db").read_bytes() == before


def test_metadata_of_a_newer_version_fails(tmp_path: Path) -> None:
    config = Config(data_dir=tmp_path)
    MetadataStore.open(config.metadata_address, clock=SystemClock()).close()
    with sqlite3.connect(tmp_path / "meta.db") as connection:
        connection.execute(f"UPDATE {VERSION_TABLE} SET version_num = '99'")
    connection.close()
    finding = doctor.check_metadata(config)
    assert finding.state is State.FAIL
    assert "format 99" in finding.fact


def test_a_file_that_is_no_database_fails(tmp_path: Path) -> None:
    (tmp_path / "meta.db").write_text("the tide is high, and this is no database at all" * 100)
    assert doctor.check_metadata(Config(data_dir=tmp_path)).state is State.FAIL


def test_one_failed_check_decides_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "java", "8.0.1")))
    out = io.StringIO()
    assert doctor.run(Config(data_dir=tmp_path), quiet=False, out=out) == 1
    assert [line.split()[0] for line in out.getvalue().splitlines()][:3] == ["ok", "FAIL", "->"]


def test_quiet_prints_only_what_is_not_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "java", "17.0.1")))
    out = io.StringIO()
    assert doctor.run(Config(data_dir=tmp_path, driver_memory="1m"), quiet=True, out=out) == 0
    assert out.getvalue() == ""
