"""How far a backfill inside the main graph is, barrier by barrier, until a checkpoint makes it durable.

    committed c      barrier 1        barrier 2        checkpoint
       │ known ──────▶ entered ──────▶ entered ──────▶ entered: older ones are forgotten
       ◀──────────────── a failed epoch: everything after c is forgotten ─┘

A barrier reads what is known at the one before it, so an epoch that is run again reads the same rows again.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from seiche.errors import InvariantError
from seiche.model import Epoch, RelationId
from seiche.stream.backfill.progress import InputProgress


@dataclass(frozen=True, slots=True)
class Reached:
    """How far it is as of one barrier."""

    begun: bool
    inputs: Mapping[RelationId, InputProgress]

    @property
    def finished(self) -> bool:
        return self.begun and all(each.finished for each in self.inputs.values())


class Ledger:
    """Safe to use from several threads."""

    def __init__(self, since: Epoch, reached: Reached) -> None:
        self._lock = threading.Lock()
        self._entries: dict[Epoch, Reached] = {since: reached}

    @property
    def newest(self) -> Reached:
        with self._lock:
            return self._entries[max(self._entries)]

    @property
    def durable(self) -> Reached:
        """What a kill would leave."""
        with self._lock:
            return self._entries[min(self._entries)]

    def at(self, epoch: Epoch) -> Reached:
        """What was reached by the end of an epoch."""
        with self._lock:
            known = [each for each in self._entries if each <= epoch]
            if not known:
                raise InvariantError(f"a backfill does not know how far it was at epoch {epoch}")
            return self._entries[max(known)]

    def enter(self, previous: Epoch, epoch: Epoch, reached: Reached) -> None:
        """A barrier that follows `previous` was run. Whatever was entered after that is of an epoch that failed."""
        with self._lock:
            self._entries = {at: known for at, known in self._entries.items() if at <= previous}
            self._entries[epoch] = reached

    def ended(self, committed: Epoch, *, failed: bool) -> Reached | None:
        """An epoch ended. Returns what is durable; None after one that failed, which took with it all since then."""
        with self._lock:
            if failed:
                self._entries = {at: known for at, known in self._entries.items() if at <= committed}
            durable = max((at for at in self._entries if at <= committed), default=None)
            if durable is None:
                return None
            self._entries = {at: known for at, known in self._entries.items() if at >= durable}
            return None if failed else self._entries[durable]
