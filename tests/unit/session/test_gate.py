"""The gate of a table: many small inserts together, anything else alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from seiche.session.database import TableGate

SECONDS = 5.0  # more than any of this takes; a test that waits so long has failed


class Visitor:
    """A thread that goes through the gate and stays inside until it is told to leave."""

    def __init__(self, enter: Callable[[], AbstractContextManager[None]]) -> None:
        self.inside = threading.Event()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._visit, args=(enter,), daemon=True)
        self._thread.start()

    def _visit(self, enter: Callable[[], AbstractContextManager[None]]) -> None:
        with enter():
            self.inside.set()
            self._leave.wait(SECONDS)

    def entered(self) -> bool:
        return self.inside.wait(SECONDS)

    def is_waiting(self) -> bool:
        return not self.inside.wait(0.05)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def test_small_inserts_go_together() -> None:
    gate = TableGate()
    visitors = [Visitor(gate.shared) for _ in range(3)]
    assert all(visitor.entered() for visitor in visitors)
    for visitor in visitors:
        visitor.leave()


def test_a_statement_that_wants_the_table_alone_waits_for_all_inserts() -> None:
    gate = TableGate()
    inserts = [Visitor(gate.shared) for _ in range(2)]
    assert all(insert.entered() for insert in inserts)
    update = Visitor(gate.alone)
    assert update.is_waiting()
    inserts[0].leave()
    assert update.is_waiting()
    inserts[1].leave()
    assert update.entered()
    update.leave()


def test_while_one_has_the_table_alone_everybody_waits() -> None:
    gate = TableGate()
    update = Visitor(gate.alone)
    assert update.entered()
    insert, delete = Visitor(gate.shared), Visitor(gate.alone)
    assert insert.is_waiting() and delete.is_waiting()
    update.leave()
    assert insert.entered()
    assert delete.is_waiting()
    insert.leave()
    assert delete.entered()
    delete.leave()


def test_statements_that_want_to_be_alone_do_not_starve_inserts() -> None:
    gate = TableGate()
    first = Visitor(gate.alone)
    assert first.entered()
    insert = Visitor(gate.shared)
    assert insert.is_waiting()
    second = Visitor(gate.alone)
    assert second.is_waiting()
    first.leave()
    assert insert.entered()
    insert.leave()
    assert second.entered()
    second.leave()


def test_inserts_that_come_later_do_not_starve_who_waits_to_be_alone() -> None:
    gate = TableGate()
    first = Visitor(gate.shared)
    assert first.entered()
    update = Visitor(gate.alone)
    assert update.is_waiting()
    late = Visitor(gate.shared)
    assert late.is_waiting()
    first.leave()
    assert update.entered()
    assert late.is_waiting()
    update.leave()
    assert late.entered()
    late.leave()


def test_a_statement_that_fails_opens_the_gate_again() -> None:
    gate = TableGate()
    for enter in (gate.alone, gate.shared):
        try:
            with enter():
                raise RuntimeError
        except RuntimeError:
            pass
    visitor = Visitor(gate.alone)
    assert visitor.entered()
    visitor.leave()
