"""When work beside the main graph makes room for it."""

from __future__ import annotations

from seiche.clock import SimulatedClock
from seiche.stream.load import WINDOW_SECONDS, StreamLoad


def test_an_idle_stream_leaves_all_cores_to_history() -> None:
    load = StreamLoad(SimulatedClock())
    assert not load.busy
    assert load.tasks(8, None) is None
    assert load.tasks(8, 3) == 3


def test_a_busy_stream_has_a_core_for_itself() -> None:
    clock = SimulatedClock()
    load = StreamLoad(clock)
    for _ in range(20):
        load.epoch_took(0.06)
        clock.advance(100)
    assert load.busy
    assert load.tasks(8, None) == 7
    assert load.tasks(8, 3) == 3
    assert load.tasks(1, None) == 1


def test_an_epoch_now_and_then_is_not_busy_and_the_past_is_forgotten() -> None:
    clock = SimulatedClock()
    load = StreamLoad(clock)
    load.epoch_took(0.5)
    assert not load.busy
    load.epoch_took(0.6)
    assert load.busy
    clock.advance(int(WINDOW_SECONDS * 1000) + 1)
    assert not load.busy
