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

Sample = tuple[float, float, list[float]]  # when it was asked for and when it was there, and a percentage for each view
Step = tuple[float, float, float]  # between when and when it came, and the percentage since


def watch(worker: Worker) -> list[Sample]:
    """What the process told of its progress, from its first word until every view told some steps."""
    assert worker.wait_for_line("at ") is not None, worker.tail()
    deadline = time.monotonic() + PATIENCE_SECONDS
    samples = told_by(worker)
    while any(len(steps_of(samples, view)) < STEPS for view in range(len(samples[0][2]))):
        assert time.monotonic() < deadline, f"it stands still: {samples[0]} to {samples[-1]}"
        time.sleep(0.05)
        samples = told_by(worker)
    return samples


def told_by(worker: Worker) -> list[Sample]:
    lines = [line.split() for line in list(worker._lines) if line.startswith("at ")]
    return [(float(asked), float(there), [float(each) for each in told]) for _, asked, there, *told in lines]


def steps_of(samples: list[Sample], view: int) -> list[Step]:
    """The steps that a view told of: each came after the sample before was asked for, and before its own was there."""
    told = [(asked, there, percents[view]) for asked, there, percents in samples]
    return [(before[0], now[1], now[2]) for before, now in itertools.pairwise(told) if before[2] < now[2]]


def check_pace(samples: list[Sample]) -> None:
    """Never backwards, never ahead of the limit, and from its first step on as fast as the limit says.

    That is within 1.5 points; where a step takes longer than that, within what one step takes, since it is
    told when it is durable. The first step of a process is not measured: it takes as long as a cold JVM does. What a
    step takes beyond the limiter's burst is not caught up with.
    """
    points_per_second = 100 * ROWS_PER_SECOND / ROWS
    for view in range(len(samples[0][2])):
        told = [percents[view] for _, _, percents in samples]
        assert told == sorted(told), "progress went backwards"
        steps = steps_of(samples, view)
        (early, late, first), (_, ended, last) = steps[0], steps[-1]
        assert first - told[0] <= points_per_second * (late - samples[0][0]) + 1.5, "a start overshoots"
        took = [(max(b[0] - a[1], 0.0), b[1] - a[0]) for a, b in itertools.pairwise(steps)]  # at least, at most
        tolerance = max(1.5, max(most for _, most in took) * points_per_second)
        most = first + points_per_second * (ended - early)
        least = first + points_per_second * sum(min(each, BURST_SECONDS) for each, _ in took)
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
    for view, told in enumerate(before[-1][2]):
        assert after[0][2][view] >= told, "what was read before the kill is read again"
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
