"""What a step tells before it is durable, with jobs that a test moves by hand."""

from __future__ import annotations

from collections.abc import Iterable

from seiche.stream.backfill.under_way import UnderWay


class Jobs:
    """Rows read so far, by job."""

    def __init__(self) -> None:
        self.read: dict[int, int] = {}

    def jobs(self) -> frozenset[int]:
        return frozenset(self.read)

    def rows(self, jobs: Iterable[int]) -> int:
        return sum(self.read[job] for job in jobs)


def test_a_step_tells_the_share_that_its_own_jobs_have_read() -> None:
    jobs = Jobs()
    jobs.read[1] = 5_000  # of the step before
    step = UnderWay(jobs)
    assert step.rows == 0
    step.begin(counts=1000, expected=2000)  # a join: the input that counts, and one beside it
    assert step.rows == 0
    jobs.read |= {2: 300, 3: 200}
    assert step.rows == 250
    jobs.read[3] = 1700
    assert step.rows == 1000
    step.end()
    assert step.rows == 0


def test_a_step_never_counts_as_more_than_it_has() -> None:
    step = UnderWay(jobs := Jobs())
    step.begin(counts=10, expected=10)
    jobs.read[1] = 40  # a file is read in whole groups of rows, and perhaps twice
    assert step.rows == 10


def test_a_step_that_runs_again_counts_its_own_jobs_only() -> None:
    step = UnderWay(jobs := Jobs())
    step.begin(counts=100, expected=100)
    jobs.read[1] = 60
    step.begin(counts=100, expected=100)
    jobs.read[2] = 10
    assert step.rows == 10


def test_a_step_over_nothing_has_nothing_to_tell() -> None:
    step = UnderWay(jobs := Jobs())
    step.begin(counts=0, expected=0)
    jobs.read[1] = 7
    assert step.rows == 0
