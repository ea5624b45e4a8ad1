"""Another process on the same folder, a machine that sleeps, a full disk, a folder that cannot be written."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path

import pytest

import seiche
from seiche.errors import FolderNotUsable, LeaseHeld
from tests.crash.processes import Worker, can_mount, small_disk

SCENES = "tests.crash.scenarios"


@pytest.fixture
def mounts(tmp_path: Path) -> None:
    """Skips, and says so, where this user may not mount a file system."""
    if not can_mount(tmp_path):
        warnings.warn("tests of a full or read-only disk were skipped: they need the right to mount", stacklevel=1)
        pytest.skip("mounting a small file system is not allowed here; run as root to test a full disk")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_second_process_is_refused_by_name_and_takes_over_at_once_when_the_first_is_killed(tmp_path: Path) -> None:
    data, log = tmp_path / "data", tmp_path / "log"
    with Worker(SCENES, "hold", data, log=log) as first:
        assert first.wait_for_line("holding"), first.tail()
        with pytest.raises(LeaseHeld) as refused:
            seiche.connect(data)
        assert f"process {first.pid} " in refused.value.message
        assert refused.value.hint
        first.kill()
    with Worker(SCENES, "take_over", data, log=log) as second:
        assert second.wait_for_line("held"), second.tail()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_machine_that_slept_goes_on_when_it_wakes_up(tmp_path: Path) -> None:
    with Worker(SCENES, "sleep", tmp_path / "data", log=tmp_path / "log") as process:
        assert process.wait_for_line("held", 180), process.tail()


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.usefixtures("mounts")
def test_a_full_disk_fails_the_epoch_and_the_database_goes_on_once_there_is_room(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 24) as disk,
        Worker(SCENES, "full_disk", disk, log=tmp_path / "log") as process,
    ):
        assert process.wait_for_line("held", 180), process.tail()


@pytest.mark.usefixtures("mounts")
def test_a_read_only_folder_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        for folder in (disk, disk / "data"):
            with pytest.raises(FolderNotUsable) as refused:
                seiche.connect(folder)
            assert str(folder) in refused.value.message
            assert refused.value.hint


def test_a_folder_that_is_a_file_is_refused_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "quay").write_text("not a folder")
    for folder in (tmp_path / "quay", tmp_path / "quay" / "data"):
        with pytest.raises(FolderNotUsable):
            seiche.connect(folder)
