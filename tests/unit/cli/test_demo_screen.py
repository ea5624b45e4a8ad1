from __future__ import annotations

import io

import pytest
from rich.console import Console

from seiche.cli.demo import parser
from seiche.cli.demo.process import EpochNews, JobTurn
from seiche.cli.demo.screen import Screen, ViewVerdict

NEWS = EpochNews(
    117_622_303_831_490_560,
    0.412,
    (JobTurn("arrivals", 0, 800, 0.05), JobTurn("quay_traffic", 800, 1_204, 0.21), JobTurn("tide", 3, 0, 0.01)),
    None,
)
VERDICTS = (
    ViewVerdict("quay_traffic", 47_990, 0, 0, 0.25, 3.75),
    ViewVerdict("long_ships", 12, 1, 0, 0.1, 0.3),
    ViewVerdict("high_water", 4, 0, 0, 0.0, 0.5),
)


def screen(width: int, *, terminal: bool) -> tuple[Screen, io.StringIO, Console]:
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=terminal, highlight=False, emoji=False, color_system=None)
    shown = Screen(console)
    shown.streaming(["arrivals", "tides"], ["quay_traffic", "busy_quays"])
    shown.acknowledged(12, 9_120)
    return shown, out, console


@pytest.mark.parametrize("width", [80, 160])
def test_the_live_table_shows_each_relation_on_one_line_within_the_terminal(width: int) -> None:
    shown, out, console = screen(width, terminal=True)
    with shown.live("changes stream in"):
        shown.remaining(7.2)
    for _ in range(30):
        shown.epoch(NEWS)
    out.truncate(0)
    out.seek(0)
    console.print(shown)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= min(width, 100)
    (view,) = [line for line in lines if "quay_traffic" in line]
    assert "1,204" in view and "210" in view and "36,120" in view and "█" in view
    (idle,) = [line for line in lines if "busy_quays" in line]
    assert "–" in idle
    assert "7 s to go" in lines[0]
    assert "412 ms" in lines[1] and "9,120 rows" in lines[1]


def test_without_a_terminal_an_epoch_is_one_plain_line() -> None:
    shown, out, _ = screen(80, terminal=False)
    shown.epoch(NEWS)
    (line,) = out.getvalue().splitlines()
    assert line.endswith("412 ms: quay_traffic 1,204 in 210 ms")
    assert "\x1b" not in line


def test_without_a_terminal_epochs_in_quick_succession_are_one_line() -> None:
    shown, out, _ = screen(80, terminal=False)
    for _ in range(50):
        shown.epoch(NEWS)
    assert len(out.getvalue().splitlines()) == 1


@pytest.mark.parametrize("width", [80, 160])
def test_verdicts_name_what_differs_and_fit_the_terminal(width: int) -> None:
    shown, out, _ = screen(width, terminal=False)
    shown.verdicts(VERDICTS, 1_000)
    lines = out.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 100
    found = {line.split()[0]: line for line in lines if line.strip()}
    assert (
        "✓ yes" in found["quay_traffic"] and "15.0 x" in found["quay_traffic"] and "3,750 ms" in found["quay_traffic"]
    )
    assert "✗ no" in found["long_ships"]
    assert "–" in found["high_water"]


def test_how_a_step_ended_is_one_line_with_its_time() -> None:
    shown, out, _ = screen(80, terminal=False)
    shown.doing("loading")
    shown.done("4 tables filled")
    shown.done("1 row is missing", good=False)
    first, second = out.getvalue().splitlines()
    assert first.startswith("✓ 4 tables filled") and first.endswith(" s")
    assert second.startswith("✗ 1 row is missing")


@pytest.mark.parametrize("arguments", [["--rows", "9"], ["--seconds", "0"], ["--seconds", "soon"], ["--hurry"]])
def test_wrong_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        parser().parse_args(arguments)
    assert refused.value.code == 2


def test_rows_may_be_written_with_separators() -> None:
    assert parser().parse_args(["--rows", "1_500_000"]).rows == 1_500_000
