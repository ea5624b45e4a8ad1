"""kill -9 while views are created in steps, and between and amid the runs of a batch refresh."""

from __future__ import annotations

import itertools
import operator
import time
from pathlib import Path

import pytest

from tests.crash.job_scenes import ROWS, ROWS_PER_SECOND
from tests.crash.processes import Worker

pytestmark = [pytest.mark.spark, pytest.mark.slow]

FIRST_STEP_SECONDS = 60

Sample = tuple[float, list[float]]


def watch(worker: Worker, seconds: float) -> list[Sample]:
    """What the process told of its progress: from its first word until `seconds` after every view told a step."""
    assert worker.wait_for_line("at ") is not None, worker.tail()
    deadline = time.monotonic() + FIRST_STEP_SECONDS
    while not all(map(operator.lt, (samples := told_by(worker))[0][1], samples[-1][1])):
        assert time.monotonic() < deadline, f"not every view moved: {samples[0]} to {samples[-1]}"
        time.sleep(0.05)
    time.sleep(seconds)
    return told_by(worker)


def told_by(worker: Worker) -> list[Sample]:
    lines = [line.split() for line in list(worker._lines) if line.startswith("at ")]
    return [(float(at), [float(each) for each in percents]) for _, at, *percents in lines]


def check_pace(samples: list[Sample]) -> None:
    """Never backwards, never ahead of the limit, and from its first step on as fast as the limit says.

    That is within 1.5 points; where a step takes longer than that, within what one step takes, since it is
    told when it is durable. The first step of a process is not measured: it takes as long as a cold JVM does.
    """
    points_per_second = 100 * ROWS_PER_SECOND / ROWS
    for view in range(len(samples[0][1])):
        told = [(at, percents[view]) for at, percents in samples]
        assert told == sorted(told), "progress went backwards"
        steps = [b for a, b in itertools.pairwise(told) if a[1] < b[1]]
        assert len(steps) >= 3, f"it stands still: {steps}"
        (began, first), (ended, last) = steps[0], told[-1]
        assert first - told[0][1] <= points_per_second * (began - told[0][0]) + 1.5, "a start overshoots"
        longest = max(b[0] - a[0] for a, b in itertools.pairwise(steps))
        expected = first + points_per_second * (ended - began)
        assert abs(last - expected) <= max(1.5, longest * points_per_second), (first, last, expected)


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


@pytest.mark.long
@pytest.mark.timeout(900)
def test_views_created_together_are_cancelled_scaled_and_finished_over_kills(tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "worker.log"
    for scene in ("begin", "scale"):
        with Worker("tests.crash.crowd_scenes", scene, folder, log=log) as worker:
            assert worker.wait_for_line("under way", 240) is not None, worker.tail()
            worker.kill()
    with Worker("tests.crash.crowd_scenes", "finish", folder, log=log) as worker:
        assert worker.wait_for_line("done", 240) is not None, worker.tail()
