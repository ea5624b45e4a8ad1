"""How far an input is read: slices cover it once, and what is stored leads back to the same place."""

from __future__ import annotations

import random

import pytest

from seiche.errors import InvariantError
from seiche.model import VNODES, JobId, RelationId
from seiche.stream.backfill.progress import InputProgress, Phase, Progress, Slice, StepSizer, even, next_slice

ARRIVALS, JOB = RelationId(101), JobId(200)


def snapshot(chance: random.Random) -> list[list[int]]:
    """The keys of each vnode."""
    sizes = chance.choices((0, 1, 4, 40), k=VNODES)
    keys = iter(range(10**6))
    return [[next(keys) for _ in range(size)] for size in sizes]


def counts(rows: list[list[int]]) -> tuple[int, ...]:
    return tuple(len(vnode) for vnode in rows)


def read(rows: list[list[int]], piece: Slice) -> list[int]:
    """What a slice reads, as storage would answer."""
    after = int(piece.after[0] or 0) if piece.after is not None else -1
    found = [key for key in rows[piece.first] if key > after]
    found += [key for vnode in rows[piece.first + 1 : piece.end] for key in vnode]
    return found[: piece.limit]


@pytest.mark.parametrize("seed", range(8))
def test_slices_of_any_size_read_every_row_once_over_restarts_at_any_step(seed: int) -> None:
    chance = random.Random(seed)
    rows = snapshot(chance)
    progress = InputProgress(ARRIVALS, counts(rows))
    stored: dict[int, object] = {}
    seen: list[int] = []
    while (piece := next_slice(progress, chance.choice((1, 3, 50, 5000)))) is not None:
        found = read(rows, piece)
        last = (str(found[-1]),) if found else None
        following = progress.passed(piece, last, len(found))
        assert following.done >= progress.done
        seen += found
        stored |= {each.vnode: each for each in following.stored(JOB, since=progress)}
        progress = InputProgress.restored(ARRIVALS, progress.counts, stored.values())  # type: ignore[arg-type]
        assert progress == following
    assert sorted(seen) == [key for vnode in rows for key in vnode]
    assert progress.finished and progress.done == progress.total


def test_a_slice_takes_whole_vnodes_as_long_as_they_fit() -> None:
    progress = InputProgress(ARRIVALS, (3, 3, 0, 3) + (0,) * (VNODES - 4))
    assert next_slice(progress, 6) == Slice(0, 3, None, None, 6)
    assert next_slice(progress, 2) == Slice(0, 1, None, 2, 2)
    assert next_slice(progress, 2, cut_vnodes=False) == Slice(0, 1, None, None, 3)
    assert next_slice(progress, 100) == Slice(0, VNODES, None, None, 9)


def test_a_finished_flag_is_honoured_whatever_the_position_says() -> None:
    whole = InputProgress(ARRIVALS, (2,) * VNODES, vnode=VNODES)
    assert InputProgress.restored(ARRIVALS, whole.counts, whole.stored(JOB)).finished


def test_a_slice_that_does_not_follow_is_refused() -> None:
    progress = InputProgress(ARRIVALS, (2,) * VNODES, vnode=4)
    with pytest.raises(InvariantError, match="does not follow"):
        progress.passed(Slice(3, 4, None, None, 2), None, 2)


def test_steps_grow_until_they_take_a_few_seconds_and_shrink_when_they_take_longer() -> None:
    sizer = StepSizer()
    sizer.took(sizer.rows, 0.5)
    assert sizer.rows == 4 * StepSizer.FIRST_ROWS
    sizer.took(sizer.rows, StepSizer.TARGET_SECONDS)
    assert sizer.rows == 4 * StepSizer.FIRST_ROWS
    sizer.took(sizer.rows, 2 * StepSizer.TARGET_SECONDS)
    assert sizer.rows == 2 * StepSizer.FIRST_ROWS
    sizer.took(10, 0.01)
    assert sizer.rows == 2 * StepSizer.FIRST_ROWS, "a step cut short by a limit tells nothing"


def test_steps_do_not_shrink_for_what_their_rows_do_not_cost() -> None:
    sizer, seen = StepSizer(1_000_000), []
    for _ in range(12):
        sizer.took(sizer.rows, 5.0 + sizer.rows / 1_000_000)  # five seconds, whatever the rows
        seen.append(sizer.rows)
    assert min(seen) >= 250_000
    slow = StepSizer(1_000_000)
    for _ in range(12):
        slow.took(slow.rows, slow.rows / 1_000)
    assert slow.rows == pytest.approx(1_000 * StepSizer.TARGET_SECONDS, rel=0.1)


def test_steps_that_merge_into_what_is_stored_become_few() -> None:
    sizer, left, stored, steps, seconds = StepSizer(1_000_000), 100_000_000, 0, 0, 0.0
    while left > 0:
        rows = min(sizer.budget(left), left)
        step = (rows + stored) / 500_000  # what is stored is read again in each
        sizer.took(rows, step, merges=True)
        left, stored, steps, seconds = left - rows, stored + rows // 4, steps + 1, seconds + step
    assert steps < 20
    assert seconds < 3 * 100_000_000 / 500_000, "not many times as long as all rows at once"


def test_the_last_step_takes_what_little_another_one_would_have() -> None:
    sizer = StepSizer(1000)
    assert sizer.budget(10_000) == 1000
    assert sizer.budget(1500) == 1500
    assert sizer.budget(1501) == 1000
    assert sizer.budget(0) == 1


def test_rows_that_are_not_counted_are_spread_evenly() -> None:
    assert sum(even(1000)) == 1000 and {3, 4} == set(even(1000))
    assert sum(even(5)) == 5 and sum(even(0)) == 0


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(Phase.SNAPSHOT, 412, 1000), "Snapshot [41.20% (412/1000)]"),
        (Progress(Phase.SNAPSHOT, 1000, 1000), "Snapshot [99.99% (1000/1000)]"),
        (Progress(Phase.SNAPSHOT), "Snapshot [0.00% (0/0)]"),
        (Progress(Phase.SNAPSHOT, 1, 4, waits_for="paused"), "Snapshot [25.00% (1/4)], paused"),
        (Progress(Phase.LOG, lag_ms=1200), "LogStore [epoch lag 1200 ms]"),
        (Progress(Phase.FINISHING), "Finishing [waiting for a barrier]"),
        (Progress(Phase.DONE), "Done"),
    ],
)
def test_progress_is_told_in_the_words_of_its_phase(progress: Progress, text: str) -> None:
    assert str(progress) == text
    assert progress.percent < 100 or progress.phase is Phase.DONE


def test_what_was_told_is_not_taken_back() -> None:
    told = Progress(Phase.SNAPSHOT, 60, 100)
    assert Progress(Phase.SNAPSHOT, 10, 100).after(told).done == 60
    assert Progress(Phase.SNAPSHOT, 70, 100).after(told).done == 70
    assert Progress(Phase.SNAPSHOT, 10, 500).after(told).done == 10, "other rows: they are counted now"
    assert Progress(Phase.LOG, lag_ms=5).after(told) == Progress(Phase.LOG, lag_ms=5)
    assert Progress(Phase.SNAPSHOT, 10, 100).after(None).done == 10
