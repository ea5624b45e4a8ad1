"""Waiting for commits."""

from __future__ import annotations

from seiche.session.commits import Commits


def test_what_holds_already_needs_no_wait() -> None:
    commits = Commits()
    assert commits.until(lambda: True).done()
    assert len(commits) == 0


def test_a_waiter_is_told_by_the_commit_that_brings_what_it_waits_for() -> None:
    commits, rows = Commits(), list[int]()
    waiting = commits.until(lambda: bool(rows))
    commits.ring()
    assert not waiting.done()
    rows.append(1)
    assert not waiting.done()
    commits.ring()
    assert waiting.done()
    assert len(commits) == 0


def test_who_stops_waiting_is_not_asked_again() -> None:
    commits, asked = Commits(), list[int]()
    waiting = commits.until(lambda: bool(asked.append(1)))
    waiting.cancel()
    commits.ring()
    commits.ring()
    assert asked == [1]
