"""kill -9 at random moments, while rows are written, folded and views come and go: nothing acknowledged is lost.

A moment is counted in lines of the journal, or as a share of what a start takes, so that a slow machine is killed
amid the same things as a fast one. SEICHE_TEST_KILLS sets the number of kills, SEICHE_TEST_SEED the seed. A seed
gives similar runs rather than equal ones; the folder of a failing run stays where the message says.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.crash.ledger import Ledger
from tests.crash.processes import Worker
from tests.crash.worker import CONTRADICTION

KILLS = int(os.environ.get("SEICHE_TEST_KILLS", "20"))
SEED = os.environ.get("SEICHE_TEST_SEED") or str(random.SystemRandom().getrandbits(32))

LINES_MAX = 24  # an intent and its acknowledgement are two
LINES_SECONDS = 120

# Runs that once found a defect. SEICHE_TEST_KEPT=1 repeats each of them before the run with the seed of today.
KEPT_SEEDS: tuple[str, ...] = ()

SEEDS = (*(KEPT_SEEDS if os.environ.get("SEICHE_TEST_KEPT") else ()), SEED)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(300 + 60 * KILLS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_database_killed_at_any_moment_keeps_every_acknowledged_statement_and_no_half_of_any_other(
    seed: str, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    folder, journal = tmp_path / "data", tmp_path / "journal"
    log = tmp_path / "worker.log"
    story: list[str] = []

    def fail(worker: Worker, what: str) -> None:
        told = "\n  ".join(story)
        pytest.fail(
            f"{what}\nseed {seed} (SEICHE_TEST_SEED={seed} repeats it), folder {tmp_path}\n  {told}\n{worker.tail()}"
        )

    start_seconds = 0.0  # how long the last start took
    for kill in range(KILLS):
        with Worker("tests.crash.worker", folder, journal, seed, log=log) as worker:
            with_java = chance.random() < 0.7
            whom = "Python and Java" if with_java else "Python alone"
            jitter = chance.uniform(0, 0.5)
            if start_seconds and chance.random() < 0.3:
                seconds = start_seconds * chance.random()
                story.append(f"kill {kill}: {whom}, {seconds:.1f} s after the start of {start_seconds:.1f} s")
                alive = not worker.ends_within(seconds)
            else:
                started = time.monotonic()
                alive = worker.wait_for_line("ready") is not None
                start_seconds = time.monotonic() - started
                lines = chance.randrange(LINES_MAX)
                story.append(f"kill {kill}: {whom}, {lines} lines and {jitter:.2f} s after it was ready")
                alive = alive and wait_for_lines(journal, lines, worker) and not worker.ends_within(jitter)
            if not alive:
                code = worker.wait(5)
                fail(worker, "a promise was broken" if code == CONTRADICTION else f"the process ended with {code}")
            worker.kill(with_java=with_java)

    with Worker("tests.crash.worker", folder, journal, seed, "--check-only", log=log) as worker:
        if worker.wait_for_line("ready") is None or worker.wait(60) != 0:
            fail(worker, "the last start found a broken promise")
    assert Ledger.read(journal).acknowledged > KILLS, "hardly anything was written between the kills"


def wait_for_lines(journal: Path, lines: int, worker: Worker) -> bool:
    """Waits until the journal has that many more lines; whether the process still lives."""

    def count() -> int:
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    goal, deadline = count() + lines, time.monotonic() + LINES_SECONDS
    while count() < goal:
        if worker.ends_within(0.02):
            return False
        assert time.monotonic() < deadline, f"no {lines} lines in {LINES_SECONDS} s: {worker.tail()}"
    return True
