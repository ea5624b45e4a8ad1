"""kill -9 while views are created in steps, and between and amid the runs of a batch refresh."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from seiche.stream.backfill.rate_limit import ARREARS_SECONDS, BURST_SECONDS
from tests.crash.job_scenes import ALL, ROWS, ROWS_PER_SECOND
from tests.crash.processes import Worker

pytestmark = [pytest.mark.spark, pytest.mark.slow]

STEPS = 6
VNODE_ROWS_MAX = 10  # of a thousand rows in 256 vnodes
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


def began(worker: Worker) -> tuple[float, float]:
    """Between which moments the views began to read."""
    _, earliest, latest = next(line for line in list(worker._lines) if line.startswith("since ")).split()
    return float(earliest), float(latest)


def told_by(worker: Worker) -> list[Sample]:
    lines = [line.split() for line in list(worker._lines) if line.startswith("at ")]
    return [(float(asked), float(there), [float(each) for each in told]) for _, asked, there, *told in lines]


def steps_of(samples: list[Sample], view: int) -> list[Step]:
    """The steps that a view told of: each came after the sample before was asked for, and before its own was there."""
    told = [(asked, there, percents[view]) for asked, there, percents in samples]
    return [(before[0], now[1], now[2]) for before, now in pairwise(told) if before[2] < now[2]]


def check_pace(worker: Worker, samples: list[Sample], begun: list[float]) -> None:
    """Never backwards, and within 1.5 points of what the limit permits since the views began at these percentages.

    A step is told when it is durable, and reads what was permitted when it began: that is when the one before was told.
    """
    points_per_second = 100 * ROWS_PER_SECOND / ROWS
    earliest, latest = began(worker)
    for view, first in enumerate(begun):
        told = [percents[view] for _, _, percents in samples]
        assert told == sorted(told), "progress went backwards"
        for _, there, percents in samples:
            assert percents[view] <= told[0] + points_per_second * (there - earliest) + 1.5, "it is ahead of the limit"
        steps = steps_of(samples, view)
        ends = [(latest, latest), *((early, late) for early, late, _ in steps[:-1])]
        least = first + points_per_second * permitted([after[0] - before[1] for before, after in pairwise(ends)])
        assert told[-1] >= least - 1.5, (first, told[-1], least, latest, steps)


def permitted(gaps: list[float]) -> float:
    """The seconds whose rows steps read at least that begin so many seconds after each other.

    One that catches up may read a burst, and reads the whole vnodes in it: what is cut off has to wait for the next.
    """
    used = unused = 0.0
    for gap in gaps:
        unused = min(unused + max(gap, 0.0), ARREARS_SECONDS)
        step = unused if unused < BURST_SECONDS else BURST_SECONDS - VNODE_ROWS_MAX / ROWS_PER_SECOND
        used += step
        unused -= step
    return used


@pytest.mark.timeout(600)
def test_a_backfill_keeps_its_pace_and_its_place_over_kills(tmp_path: Path) -> None:
    folder, log = tmp_path / "data", tmp_path / "worker.log"
    with Worker("tests.crash.job_scenes", "begin", folder, log=log) as worker:
        before = watch(worker)
        worker.kill()
    check_pace(worker, before, [0.0] * len(ALL))
    with Worker("tests.crash.job_scenes", "go_on", folder, log=log) as worker:
        after = watch(worker)
        worker.kill()
    check_pace(worker, after, before[-1][2])
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
