"""`seiche jobs`, `pause` and `resume` against a database that answers as told."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from seiche.cli import jobs
from seiche.cli.main import main


@dataclass
class Answer:
    rows: list[tuple[object, ...]]


@dataclass
class Harbour:
    """Answers SHOW JOBS with one list after the other, then with none."""

    lists: list[list[tuple[object, ...]]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def execute(self, text: str) -> Sequence[Answer]:
        self.asked.append(text)
        return [Answer(self.lists.pop(0) if self.lists else [])]

    def __enter__(self) -> Harbour:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


HALF = (7, "CREATE MATERIALIZED VIEW\n  loads", "Snapshot [50.00% (500/1000)]")
NEXT = (7, "CREATE MATERIALIZED VIEW\n  loads", "LogStore [epoch lag 5 ms]")


def test_a_job_is_a_bar_and_words_on_one_line() -> None:
    out = io.StringIO()
    assert jobs.show(Harbour([[HALF, NEXT]]), out) == 0
    first, second = out.getvalue().splitlines()
    assert first == f"     7  [{'#' * 12}{'.' * 12}]  Snapshot [50.00% (500/1000)]  CREATE MATERIALIZED VIEW loads"
    assert f"[{'#' * 23}.]  LogStore" in second


@pytest.mark.parametrize(
    ("progress", "bar"),
    [
        ("Waiting [0 before it; max_concurrent_creating_streaming_jobs is 4]", "." * 24),
        ("BatchRefresh Snapshot [50.00% (1/2)], paused: RESUME continues", "#" * 12 + "." * 12),
        ("Finishing [waiting for a barrier]", "#" * 23 + "."),
        ("BatchRefresh Stopping", "#" * 23 + "."),
        ("Failed [the disk is full]", "!" * 24),
    ],
)
def test_the_bar_of_every_phase_tells_how_much_is_done(progress: str, bar: str) -> None:
    assert f"[{bar}]  {progress}" in jobs.line(jobs.Job(7, "CREATE", progress), 200)


def test_that_there_is_no_job_is_said() -> None:
    out = io.StringIO()
    assert jobs.show(Harbour(), out) == 0
    assert out.getvalue() == "no job is running\n"


def test_a_line_is_cut_to_the_terminal() -> None:
    job = jobs.Job(7, "CREATE MATERIALIZED VIEW " + "x" * 500, "Snapshot [1.00% (1/100)]")
    assert len(jobs.line(job, 80)) == 80


def test_watching_tells_what_is_new_until_no_job_is_left() -> None:
    out, slept = io.StringIO(), []
    assert jobs.watch(Harbour([[HALF], [HALF], [NEXT]]), out, sleep=slept.append) == 0
    lines = out.getvalue().splitlines()
    assert ["50.00%" in lines[0], "LogStore" in lines[1], lines[2]] == [True, True, "no job is running"]
    assert len(slept) == 3


def test_a_terminal_is_redrawn_in_place() -> None:
    out = Terminal()
    jobs.watch(Harbour([[HALF], [NEXT]]), out, sleep=lambda _: None)
    assert out.getvalue().count("\x1b[1A") == 2
    assert out.getvalue().endswith("no job is running\n")


@pytest.mark.parametrize(("command", "statement"), [("pause", "PAUSE"), ("resume", "RESUME"), ("jobs", "SHOW JOBS")])
def test_each_command_is_one_statement(command: str, statement: str, tmp_path: object) -> None:
    harbour = Harbour()
    assert main([command, "--data-dir", f"{tmp_path}/data"], connect=lambda *_, **__: harbour) == 0
    assert harbour.asked == [statement]
