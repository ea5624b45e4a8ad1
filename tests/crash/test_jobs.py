"""kill -9 while views are created in steps, and between and amid the runs of a batch refresh."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from tests.crash.job_scenes import ROWS, ROWS_PER_SECOND
from tests.crash.processes import Worker

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Sample = tuple[float, list[float]]


def watch(worker: Worker, seconds: float) -> list[Sample]:
    """What the process told of its progress from its first word on."""
    assert worker.wait_for_line("at ") is not None, worker.tail()
    time.sleep(seconds)
    lines = [line.split() for line in list(worker._lines) if line.startswith("at ")]
    return [(float(at), [float(each) for each in percents]) for _, at, *percents in lines]


def check_pace(samples: list[Sample]) -> None:
    """Never backwards, and as fast as the limit says: within 1.5 points, or what two steps take on a slow machine."""
    points_per_second = 100 * ROWS_PER_SECOND / ROWS
    for view in range(len(samples[0][1])):
        told = [percents[view] for _, percents in samples]
        assert told == sorted(told), "progress went backwards"
        moved = [samples[0][0]] + [b[0] for a, b in itertools.pairwise(samples) if a[1][view] < b[1][view]]
        longest = max((b - a for a, b in itertools.pairwise(moved)), default=0.0)
        expected = told[0] + points_per_second * (samples[-1][0] - samples[0][0])
        assert abs(told[-1] - expected) <= max(1.5, 2 * longest * points_per_second), (told[0], told[-1], expected)


@pytest.mark.timeout(600)
def test_a_backfill_keeps_its_pace_and_its_place_over_kills(tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "worker.log"
    with Worker("tests.crash.job_scenes", "begin", folder, log=log) as worker:
        before = watch(worker, 8)
        worker.kill()
    check_pace(before)
    with Worker("tests.crash.job_scenes", "go_on", folder, log=log) as worker:
        after = watch(worker, 5)
        worker.kill()
    check_pace(after)
    for view, told in enumerate(before[-1][1]):
        assert after[0][1][view] >= told, "what was read before the kill is read again"
    with Worker("tests.crash.job_scenes", "finish", folder, log=log) as worker:
        assert worker.wait_for_line("done") is not None, worker.tail()


@pytest.mark.timeout(600)
def test_a_batch_refresh_follows_over_kills(tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "worker.log"
    for wanted in (2, 100, 200, 150):
        with Worker("tests.crash.job_scenes", "refresh", folder, wanted, log=log) as worker:
            assert worker.wait_for_line("followed", 120) is not None, worker.tail()
            worker.kill()
