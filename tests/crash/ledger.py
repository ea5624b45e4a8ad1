"""What a client knows: which statements it gave, which were acknowledged, and so what rows there must be.

A lane is a client that waits for each of its statements, and owns the rows that it writes. So its rows are known
for certain but for the one statement that a kill interrupted: that one happened wholly or not at all.

    intent ──▶ the statement ──▶ ack        a kill anywhere leaves at most one intent open in each lane
                                            the next start finds out which way it went, and writes it down: settled

The journal outlives the engine's process. A line counts when it ends with a newline, as the last one may be cut.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

Rows: TypeAlias = dict[int, int]  # a row's key and value

ROWS_PER_LANE = 10_000_000


@dataclass(frozen=True, slots=True)
class Write:
    """A statement on the rows `first` to `last` of a lane's table."""

    lane: int
    table: str
    verb: Literal["insert", "bulk", "update", "delete"]
    first: int
    last: int
    value: int

    @property
    def sql(self) -> str:
        between = f"{'id' if self.table == 'arrivals' else 'seq'} BETWEEN {self.first} AND {self.last}"
        match self.verb:
            case "insert":
                rows = ", ".join(f"({id}, {berth(id)}, {self.value})" for id in range(self.first, self.last + 1))
                return f"INSERT INTO {self.table} VALUES {rows}"
            case "bulk":
                return (
                    f"INSERT INTO {self.table} SELECT i, i % {BERTHS}, {self.value} "
                    f"FROM generate_series({self.first}, {self.last}) AS s(i)"
                )
            case "update":
                return f"UPDATE {self.table} SET containers = {self.value} WHERE {between}"
            case "delete":
                return f"DELETE FROM {self.table} WHERE {between}"

    def applied(self, rows: Rows) -> Rows:
        touched = range(self.first, self.last + 1)
        match self.verb:
            case "insert" | "bulk":
                return rows | dict.fromkeys(touched, self.value)
            case "update":
                return {id: self.value if id in touched else value for id, value in rows.items()}
            case "delete":
                return {id: value for id, value in rows.items() if id not in touched}


@dataclass(frozen=True, slots=True)
class ViewChange:
    """A CREATE or DROP MATERIALIZED VIEW. One lane gives them all."""

    lane: int
    verb: Literal["create", "drop"]
    name: str
    query: str
    background: bool = False

    def applied(self, views: dict[str, str]) -> dict[str, str]:
        match self.verb:
            case "create":
                return views | {self.name: self.query}
            case "drop":
                return {name: query for name, query in views.items() if name != self.name}


Intent: TypeAlias = Write | ViewChange

BERTHS = 7


def berth(id: int) -> int:
    return id % BERTHS


class Journal:
    """A file of lines, each on disk before `write` returns."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        if path.exists():  # a kill may have cut the last line
            whole = path.read_bytes()
            os.truncate(path, whole.rfind(b"\n") + 1)
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def write(self, **line: Any) -> None:
        with self._lock:
            os.write(self._handle, (json.dumps(line) + "\n").encode())
            os.fsync(self._handle)


@dataclass(slots=True)
class Ledger:
    """The state that the acknowledged statements lead to, and the statements whose outcome is not known."""

    tables: dict[tuple[int, str], Rows] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    open: dict[int, Intent] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)  # the last row number that a lane ever used
    epoch: int = 0  # the newest that an acknowledgement told
    acknowledged: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def read(path: Path) -> Ledger:
        ledger = Ledger()
        if not path.exists():
            return ledger
        for raw in path.read_bytes().split(b"\n")[:-1]:
            line = json.loads(raw)
            match line["what"]:
                case "intent":
                    ledger.intend(_intent(line))
                case "ack":
                    ledger.acknowledge(line["lane"])
                    ledger.epoch = max(ledger.epoch, line["epoch"])
                case "settled":
                    ledger.settle(line["lane"], happened=line["happened"])
                case _:
                    pass
        return ledger

    def intend(self, intent: Intent) -> None:
        assert intent.lane not in self.open, f"lane {intent.lane} does not wait for its statements"
        self.open[intent.lane] = intent
        if isinstance(intent, Write):
            self.highest[intent.lane] = max(self.highest.get(intent.lane, 0), intent.last)

    def acknowledge(self, lane: int) -> None:
        with self._lock:
            self.acknowledged += 1
        self.settle(lane, happened=True)

    def settle(self, lane: int, *, happened: bool) -> None:
        intent = self.open.pop(lane)
        if not happened:
            return
        match intent:
            case Write():
                self.tables[lane, intent.table] = intent.applied(self.rows(lane, intent.table))
            case ViewChange():
                self.views = intent.applied(self.views)

    def rows(self, lane: int, table: str) -> Rows:
        return self.tables.get((lane, table), {})

    def outcomes(self, found: Mapping[str, Counter[tuple[int, int]]], views: set[str]) -> dict[int, bool]:
        """Compares with what is stored; how each open statement ended. Raises AssertionError at any contradiction."""
        ended: dict[int, bool] = {}
        lanes = {lane for lane, _ in self.tables} | {lane for lane, intent in self.open.items()}
        for table, stored in found.items():
            strangers = [id for id, _ in stored if id // ROWS_PER_LANE not in lanes]
            assert not strangers, f"{table} holds rows that nobody wrote: {strangers[:5]}"
            for lane in sorted(lanes):
                mine = Counter({row: n for row, n in stored.items() if row[0] // ROWS_PER_LANE == lane})
                known = self.rows(lane, table)
                intent = self.open.get(lane)
                if isinstance(intent, Write) and intent.table == table:
                    ended[lane] = _which(mine, known, intent)
                else:
                    assert mine == Counter(known.items()), f"{table}, lane {lane}: {_difference(mine, known)}"
        for lane, intent in self.open.items():
            if isinstance(intent, ViewChange):
                after = set(intent.applied(self.views))
                assert views in (set(self.views), after), f"views are {views}, neither {set(self.views)} nor {after}"
                ended[lane] = views == after
                break
        else:
            assert views == set(self.views), f"views are {views} instead of {set(self.views)}"
        return ended


def _which(mine: Counter[tuple[int, int]], before: Rows, intent: Write) -> bool:
    after = intent.applied(before)
    if mine == Counter(after.items()):
        return True
    assert mine == Counter(before.items()), (
        f"{intent.verb} of rows {intent.first} to {intent.last} of {intent.table} happened in part: "
        f"without it {_difference(mine, before)}; with it {_difference(mine, after)}"
    )
    return False


def _difference(found: Counter[tuple[int, int]], expected: Rows) -> str:
    wanted = Counter(expected.items())
    missing, extra = list((wanted - found).elements()), list((found - wanted).elements())
    return f"{len(missing)} rows are missing {missing[:3]}, {len(extra)} are too many {extra[:3]}"


def _intent(line: Mapping[str, Any]) -> Intent:
    given = {name: value for name, value in line.items() if name != "what"}
    return Write(**given) if "table" in given else ViewChange(**given)
