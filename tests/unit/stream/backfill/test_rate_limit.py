"""The limiter of every backfill, under a clock that stands still."""

from __future__ import annotations

import pytest

from seiche.clock import SimulatedClock
from seiche.errors import InvalidParameter
from seiche.stream.backfill.rate_limit import ARREARS_SECONDS, BURST_SECONDS, RateLimiter, rate_of


def test_permits_grow_with_time_and_are_spent_by_rows() -> None:
    clock = SimulatedClock()
    limiter = RateLimiter(clock, 10)
    assert limiter.available() == 0 and limiter.delay() == pytest.approx(0.1)
    clock.advance(1000)
    assert limiter.available() == 10
    limiter.spend(4)
    assert limiter.available() == 6


def test_what_a_step_overdraws_is_waited_for() -> None:
    clock = SimulatedClock()
    limiter = RateLimiter(clock, 10)
    clock.advance(500)
    limiter.spend(15)
    assert limiter.available() == 0
    assert limiter.delay() == pytest.approx(1.1)
    clock.advance(1101)
    assert limiter.delay() == 0


def test_each_of_several_tasks_may_read_at_the_rate() -> None:
    clock = SimulatedClock()
    limiter = RateLimiter(clock, 10)
    limiter.set_tasks(4)
    assert limiter.delay() == pytest.approx(0.025)
    clock.advance(1000)
    assert limiter.available() == 40 and limiter.available(ahead_seconds=1) == 80
    assert limiter.rate == 10
    limiter.set(0)
    assert limiter.delay() is None


def test_permits_pile_up_for_half_a_minute_and_are_used_a_few_seconds_worth_at_a_time() -> None:
    clock = SimulatedClock()
    limiter = RateLimiter(clock, 10)
    clock.advance(3_600_000)
    taken = []
    while rows := limiter.available():
        taken.append(rows)
        limiter.spend(rows)
    assert set(taken) == {10 * BURST_SECONDS}
    assert sum(taken) == 10 * ARREARS_SECONDS


def test_a_step_that_took_long_is_caught_up_with() -> None:
    clock = SimulatedClock()
    limiter = RateLimiter(clock, 10)
    clock.advance(100)
    limiter.spend(1)
    clock.advance(19_900)  # of a cold process, say
    read = 1
    for _ in range(5):
        rows = limiter.available()
        assert rows is not None
        limiter.spend(rows)
        read += rows
        clock.advance(200)
    assert read == pytest.approx(208, abs=1)  # 10 a second of the time until the last step began


@pytest.mark.parametrize("step_ms", [100, 700, 3000])
def test_the_average_keeps_to_the_rate_however_long_a_step_takes(step_ms: int) -> None:
    clock = SimulatedClock()
    limiter = RateLimiter(clock, 20)
    read = 0
    while clock.monotonic() < 1_700_000_000 + 100:
        delay = limiter.delay()
        assert delay is not None
        clock.advance(round(delay * 1000) + 1 if delay else 0)
        rows = limiter.available()
        assert rows is not None
        limiter.spend(rows)
        read += rows
        clock.advance(step_ms)
    assert read == pytest.approx(2000, rel=0.05)


def test_no_rate_does_not_limit_and_zero_pauses_until_it_changes() -> None:
    clock = SimulatedClock()
    limiter = RateLimiter(clock, None)
    assert limiter.available() is None and limiter.delay() == 0
    limiter.set(0)
    clock.advance(60_000)
    assert limiter.available() == 0 and limiter.delay() is None
    limiter.set(5)
    clock.advance(1000)
    assert limiter.available() == 5


def test_a_new_rate_forgets_what_was_overdrawn_at_the_old_one() -> None:
    clock = SimulatedClock()
    limiter = RateLimiter(clock, 1)
    limiter.spend(1_000_000)
    limiter.set(100)
    clock.advance(1000)
    assert limiter.available() == 100


@pytest.mark.parametrize(("text", "rate"), [("10", 10), ("0", 0), ("-1", None), ("default", None), (None, None)])
def test_a_rate_is_read_as_users_write_it(text: str | None, rate: int | None) -> None:
    assert rate_of(text, where="backfill_rate_limit") == rate


@pytest.mark.parametrize("text", ["-2", "fast", "1.5", "", "2147483648", "9" * 5000])
def test_anything_else_is_no_rate(text: str) -> None:
    with pytest.raises(InvalidParameter, match="backfill_rate_limit"):
        rate_of(text, where="backfill_rate_limit")
