"""kill -9 while views are created in steps, and between and amid the runs of a batch refresh."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from seiche.stream.backfill.rate_limit import BURST_SECONDS
from tests.crash.job_scenes import ROWS, ROWS_PER_SECOND
from tests.crash.processes import Worker

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS = 6
PATIENCE_SECONDS = 200  # for these steps, on a machine that has other things to do

Sample = tuple[float, list[float]]


def watch(worker: Worker) -> list[Sample]:
    """What the process told of its progress, from its first word until every view told some steps."""
    assert worker.wait_for_line("at ") is not None, worker.tail()
    deadline = time.monotonic() + PATIENCE_SECONDS
    samples = told_by(worker)
    while any(len(steps_of(samples, view)) < STEPS for view in range(len(samples[0][1]))):
        assert time.monotonic() < deadline, f"it stands still: {samples[0]} to {samples[-1]}"
        time.sleep(0.05)
        samples = told_by(worker)
    return samples


def told_by(worker: Worker) -> list[Sample]:
    lines = [line.split() for line in list(worker._lines) if line.startswith("at ")]
    return [(float(at), [float(each) for each in percents]) for _, at, *percents in lines]


def steps_of(samples: list[Sample], view: int) -> list[tuple[float, float]]:
    """When a view told of a step, and what."""
    told = [(at, percents[view]) for at, percents in samples]
    return [b for a, b in itertools.pairwise(told) if a[1] < b[1]]


def check_pace(samples: list[Sample]) -> None:
    """Never backwards, never ahead of the limit, and from its first step on as fast as the limit says.

    That is within 1.5 points; where a step takes longer than that, within what one step takes, since it is
    told when it is durable. The first step of a process is not measured: it takes as long as a cold JVM does. What a
    step takes beyond the limiter's burst is not caught up with.
    """
    points_per_second = 100 * ROWS_PER_SECOND / ROWS
    for view in range(len(samples[0][1])):
        told = [(at, percents[view]) for at, percents in samples]
        assert told == sorted(told), "progress went backwards"
        steps = steps_of(samples, view)
        (began, first), (ended, last) = steps[0], steps[-1]
        assert first - told[0][1] <= points_per_second * (began - told[0][0]) + 1.5, "a start overshoots"
        took = [b[0] - a[0] for a, b in itertools.pairwise(steps)]
        tolerance = max(1.5, max(took) * points_per_second)
        most = first + points_per_second * (ended - began)
        least = first + points_per_second * sum(min(each, BURST_SECONDS) for each in took)
        assert least - tolerance <= last <= most + tolerance, (first, last, least, most, took)


@pytest.mark.timeout(600)
def test_a_backfill_keeps_its_pace_and_its_place_over_kills(tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "worker.log"
    with Worker("tests.crash.job_scenes", "begin", folder, log=log) as worker:
        before = watch(worker)
        worker.kill()
    check_pace(before)
    with Worker("tests.crash.job_scenes", "go_on", folder, log=log) as worker:
        after = watch(worker)
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
@pytest.mark.kills
@pytest.mark.timeout(900)
def test_views_created_together_are_cancelled_scaled_and_finished_over_kills(tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "worker.log"
    for scene in ("begin", "scale"):
        with Worker("tests.crash.crowd_scenes", scene, folder, log=log) as worker:
            assert worker.wait_for_line("under way", 240) is not None, worker.tail()
            worker.kill()
    with Worker("tests.crash.crowd_scenes", "finish", folder, log=log) as worker:
        assert worker.wait_for_line("done", 240) is not None, worker.tail()
