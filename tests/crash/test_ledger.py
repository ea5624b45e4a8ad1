"""The ledger of the crash tests: it must notice what it exists to notice."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.ledger import ROWS_PER_LANE, Journal, Ledger, ViewChange, Write

FIRST = ROWS_PER_LANE
INSERT = Write(1, "arrivals", "insert", FIRST, FIRST + 3, 7)
UPDATE = Write(1, "arrivals", "update", FIRST + 2, FIRST + 9, 8)
CREATE = ViewChange(9, "create", "load", "SELECT 1")

Stored = Counter[tuple[int, int]]


def stored(*values: int) -> dict[str, Stored]:
    return {"arrivals": Counter({(FIRST + place, value): 1 for place, value in enumerate(values)}), "tides": Counter()}


def ledger_of(*intents: Write | ViewChange, interrupted: Write | ViewChange | None = None) -> Ledger:
    ledger = Ledger()
    for intent in intents:
        ledger.intend(intent)
        ledger.acknowledge(intent.lane)
    if interrupted is not None:
        ledger.intend(interrupted)
    return ledger


def test_what_was_acknowledged_is_expected_and_nothing_else() -> None:
    assert ledger_of(INSERT, UPDATE).outcomes(stored(7, 7, 8, 8), set()) == {}


@pytest.mark.parametrize("values", [(7, 7, 8), (7, 7, 7, 7), (7, 7, 8, 8, 9)])
def test_a_lost_row_a_lost_update_and_a_row_too_many_are_noticed(values: tuple[int, ...]) -> None:
    with pytest.raises(AssertionError, match="arrivals, lane 1"):
        ledger_of(INSERT, UPDATE).outcomes(stored(*values), set())


def test_a_row_that_is_there_twice_is_noticed() -> None:
    found = stored(7, 7, 7, 7)
    found["arrivals"][FIRST, 7] = 2
    with pytest.raises(AssertionError, match="1 are too many"):
        ledger_of(INSERT).outcomes(found, set())


def test_a_row_that_no_lane_wrote_is_noticed() -> None:
    with pytest.raises(AssertionError, match="nobody wrote"):
        ledger_of(INSERT).outcomes({"tides": Counter({(5 * ROWS_PER_LANE, 1): 1})}, set())


@pytest.mark.parametrize(("values", "happened"), [((7, 7, 7, 7), False), ((7, 7, 8, 8), True)])
def test_an_interrupted_statement_may_have_happened_or_not(values: tuple[int, ...], happened: bool) -> None:
    assert ledger_of(INSERT, interrupted=UPDATE).outcomes(stored(*values), set()) == {1: happened}


def test_an_interrupted_statement_that_happened_in_part_is_noticed() -> None:
    with pytest.raises(AssertionError, match="in part"):
        ledger_of(INSERT, interrupted=UPDATE).outcomes(stored(7, 7, 8, 7), set())


def test_views_are_those_that_were_acknowledged() -> None:
    assert ledger_of(CREATE).outcomes({}, {"load"}) == {}
    with pytest.raises(AssertionError):
        ledger_of(CREATE).outcomes({}, set())
    assert ledger_of(interrupted=CREATE).outcomes({}, {"load"}) == {9: True}
    assert ledger_of(interrupted=CREATE).outcomes({}, set()) == {9: False}


def test_the_journal_is_read_back_without_its_cut_last_line(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    for intent in (INSERT, CREATE, UPDATE):
        journal.write(what="intent", **dataclasses.asdict(intent))
        if intent is not UPDATE:
            journal.write(what="ack", lane=intent.lane, epoch=5)
    with path.open("ab") as file:
        file.write(b'{"what": "ack", "la')
    ledger = Ledger.read(path)
    assert ledger.rows(1, "arrivals") == INSERT.applied({})
    assert ledger.views == {"load": "SELECT 1"}
    assert ledger.open == {1: UPDATE}
    assert ledger.epoch == 5
    Journal(path).write(what="settled", lane=1, happened=True)
    assert Ledger.read(path).rows(1, "arrivals") == UPDATE.applied(INSERT.applied({}))
