"""The registry of metrics, and what Prometheus is shown."""

from __future__ import annotations

import threading

import pytest

from seiche.errors import InvariantError
from seiche.metrics import EngineMetrics, Registry


def test_counters_are_shown_with_their_labels_in_order() -> None:
    registry = Registry()
    ships = registry.counter("ships_total", "ships that called", "berth", "flag")
    ships.add(flag="NO", berth="north")
    ships.add(2, berth="north", flag="NO")
    ships.add(berth="east", flag="SE")
    assert registry.text() == (
        "# HELP ships_total ships that called\n"
        "# TYPE ships_total counter\n"
        'ships_total{berth="east",flag="SE"} 1\n'
        'ships_total{berth="north",flag="NO"} 3\n'
    )


def test_a_histogram_counts_up_to_each_bound_and_tells_the_sum() -> None:
    registry = Registry()
    waits = registry.histogram("wait_seconds", "time at anchor")
    for seconds in (0.01, 0.02, 100.0):
        waits.observe(seconds)
    lines = registry.text().splitlines()
    assert 'wait_seconds_bucket{le="0.01"} 1' in lines
    assert 'wait_seconds_bucket{le="0.025"} 2' in lines
    assert 'wait_seconds_bucket{le="60"} 2' in lines
    assert 'wait_seconds_bucket{le="+Inf"} 3' in lines
    assert "wait_seconds_sum 100.03" in lines
    assert "wait_seconds_count 3" in lines


def test_label_values_of_any_text_stay_on_one_line() -> None:
    registry = Registry()
    registry.gauge("depth", "of a berth", "name").set(1.5, name='the "deep"\none\\')
    assert registry.text().splitlines()[-1] == 'depth{name="the \\"deep\\"\\none\\\\"} 1.5'


def test_a_metric_without_labels_is_shown_before_anything_was_counted() -> None:
    registry = Registry()
    registry.gauge("sessions", "open")
    assert registry.text().splitlines()[-1] == "sessions 0"


def test_collectors_run_before_the_text_is_made() -> None:
    registry = Registry()
    gauge = registry.gauge("tide", "height")
    registry.before_export(lambda: gauge.set(4))
    assert registry.text().splitlines()[-1] == "tide 4"


def test_series_of_dropped_relations_are_forgotten() -> None:
    metrics = EngineMetrics()
    for name in ("arrivals", "berths"):
        metrics.view_rows.add(5, relation=name)
        metrics.backfill_step_seconds.observe(0.1, relation=name)
        metrics.refresh_runs.add(relation=name, outcome="finished")
    metrics.only({"berths"})
    text = metrics.registry.text()
    assert "arrivals" not in text
    assert metrics.refresh_runs.value(relation="berths", outcome="finished") == 1
    assert metrics.backfill_step_seconds.value(relation="berths") == 1


@pytest.mark.parametrize("wrong", [{}, {"berth": "north"}, {"relation": "a", "berth": "north"}])
def test_wrong_labels_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InvariantError, match="has the labels"):
        EngineMetrics().view_rows.add(1, **wrong)


def test_a_counter_never_goes_down_and_is_never_set() -> None:
    epochs = EngineMetrics().epochs
    with pytest.raises(InvariantError):
        epochs.add(-1, outcome="committed")
    with pytest.raises(InvariantError):
        epochs.set(1, outcome="committed")
    with pytest.raises(InvariantError):
        epochs.observe(1, outcome="committed")


def test_counting_from_several_threads_loses_nothing() -> None:
    statements = EngineMetrics().statements

    def count() -> None:
        for _ in range(2000):
            statements.add(outcome="done")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statements.value(outcome="done") == 8000
