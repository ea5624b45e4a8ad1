"""The harbour of the demonstration: its tables and views, the traffic, and what the traffic must have led to.

The traffic runs in lanes. A lane waits for the acknowledgement of each statement, and no two lanes write the same
rows. So the ledger knows every row for certain, but for the statements that a kill interrupted: each of those
happened wholly or not at all, and one question to the database tells which.

    lane        writes                                      touches
    arriving    INSERT of 800 arrivals                      ids above the first load
    moving      UPDATE of 100 arrivals                      the upper half of the first load
    leaving     DELETE of 100 arrivals, oldest first        the lower half of the first load
    reflagging  UPDATE of one ship                          ships
    gauging     INSERT of 20 tide readings                  tides
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Row: TypeAlias = tuple[int | str, ...]

SHIPS = 4_000
BERTHS = 300
QUAYS = 12
FLAGS = ("Panama", "Liberia", "Malta", "Greece", "Norway", "Japan", "Chile")
STATIONS = ("Breakwater", "Inner basin", "North lock", "South lock")

# The first load stays below this number of containers; a moved arrival gets its statement's own number above it.
MOVED = 1_000

ARRIVING_ROWS = 800
MOVING_ROWS = 100
LEAVING_ROWS = 100
GAUGING_ROWS = 20

TABLES = {
    "ships": "CREATE TABLE ships (id int PRIMARY KEY, name varchar, flag varchar, length_m int)",
    "berths": "CREATE TABLE berths (id int PRIMARY KEY, quay varchar, depth_m int)",
    "arrivals": "CREATE TABLE arrivals (id bigint PRIMARY KEY, ship int, berth int, containers int)",
    "tides": "CREATE TABLE tides (reading bigint, station varchar, level_cm int)",
}

CHANGING_TABLES = ("arrivals", "ships", "tides")

# Plain SQL that Seiche and Spark read alike, so that the very text of a view can be given to Spark.
VIEWS = {
    "quay_traffic": """
        SELECT b.quay, s.name, count(*) AS arrivals, sum(a.containers) AS containers, max(a.containers) AS most
        FROM arrivals a JOIN ships s ON a.ship = s.id JOIN berths b ON a.berth = b.id
        GROUP BY b.quay, s.name""",
    "busy_quays": """
        SELECT quay, count(*) AS ships, sum(arrivals) AS arrivals, max(most) AS most
        FROM quay_traffic GROUP BY quay""",
    "long_ships": """
        SELECT a.id, s.name, s.flag, b.quay, a.containers
        FROM arrivals a JOIN ships s ON a.ship = s.id JOIN berths b ON a.berth = b.id
        WHERE s.length_m >= 390""",
    "high_water": """
        SELECT station, count(*) AS readings, min(level_cm) AS lowest, max(level_cm) AS highest
        FROM tides GROUP BY station""",
}

# The view whose recomputation is set against its maintenance first of all.
MAIN_VIEW = "quay_traffic"


def first_load(rows: int) -> tuple[str, ...]:
    """The statements that fill the harbour. Multiplying by primes spreads the rows without chance."""
    flags = " ".join(f"WHEN {number} THEN '{flag}'" for number, flag in enumerate(FLAGS))
    ships = f"i, 'Ship ' || i, CASE i % {len(FLAGS)} {flags} END, 80 + (i * 37) % 320"
    berths = f"i, 'Quay ' || (i % {QUAYS}), 6 + (i * 7) % 14"
    arrivals = f"i, (i * 7919) % {SHIPS}, (i * 104729) % {BERTHS}, (i * 31) % {MOVED}"
    return (
        f"INSERT INTO ships SELECT {ships} FROM generate_series(0, {SHIPS - 1}) AS g(i)",
        f"INSERT INTO berths SELECT {berths} FROM generate_series(0, {BERTHS - 1}) AS g(i)",
        f"INSERT INTO arrivals SELECT {arrivals} FROM generate_series(1::bigint, {rows}::bigint) AS g(i)",
    )


def first_flag(ship: int) -> str:
    return FLAGS[ship % len(FLAGS)]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a lane: SQL, or rows to insert into a table."""

    lane: str
    number: int
    sql: str = ""
    table: str = ""
    rows: tuple[Row, ...] = ()
    changes: int = 0  # rows that it writes


class Ask(Protocol):
    """Runs a query and returns its rows."""

    def __call__(self, sql: str) -> Sequence[Row]: ...


class Traffic:
    """Gives each lane its next statement, and keeps the ledger."""

    def __init__(self, rows: int, seed: int = 1) -> None:
        self._first_rows = rows
        self._chance = random.Random(seed)
        self._number = 0
        self._open: dict[str, Statement] = {}
        self._arrived: dict[int, Row] = {}
        self._moved: dict[int, int] = {}
        self._left = 0
        self._flags = {ship: first_flag(ship) for ship in range(SHIPS)}
        self._gauged: list[Row] = []
        self._next_arrival = rows + 1
        self._next_reading = 1
        self.acknowledged_statements = 0
        self.acknowledged_rows = 0

    LANES = ("arriving", "moving", "leaving", "reflagging", "gauging")

    # --- statements ----------------------------------------------------------------------------------

    def next(self, lane: str) -> Statement:
        self._number += 1
        statement = self._statement(lane, self._number)
        self._open[lane] = statement
        return statement

    def arrivals(self, many: int) -> Statement:
        """An insert of its own size, in the lane of arrivals."""
        self._number += 1
        statement = self._arriving(self._number, many)
        self._open[statement.lane] = statement
        return statement

    def _statement(self, lane: str, number: int) -> Statement:
        chance, half = self._chance, self._first_rows // 2
        match lane:
            case "arriving":
                return self._arriving(number, ARRIVING_ROWS)
            case "moving":
                first = chance.randrange(half + 1, self._first_rows - MOVING_ROWS)
                last = first + MOVING_ROWS - 1
                sql = f"UPDATE arrivals SET containers = {MOVED + number} WHERE id BETWEEN {first} AND {last}"
                return Statement(lane, number, sql, rows=((first, last),), changes=MOVING_ROWS)
            case "leaving":
                first, last = self._left + 1, min(self._left + LEAVING_ROWS, half)
                sql = f"DELETE FROM arrivals WHERE id BETWEEN {first} AND {last}"
                return Statement(lane, number, sql, rows=((first, last),), changes=last - first + 1)
            case "reflagging":
                ship = chance.randrange(SHIPS)
                flag = f"{chance.choice(FLAGS)} {number}"
                sql = f"UPDATE ships SET flag = '{flag}' WHERE id = {ship}"
                return Statement(lane, number, sql, rows=((ship, flag),), changes=1)
            case "gauging":
                first = self._next_reading
                self._next_reading += GAUGING_ROWS
                readings = tuple(
                    (reading, chance.choice(STATIONS), chance.randrange(-300, 900))
                    for reading in range(first, first + GAUGING_ROWS)
                )
                return Statement(lane, number, table="tides", rows=readings, changes=GAUGING_ROWS)
            case _:
                raise ValueError(f"there is no lane {lane}")

    def _arriving(self, number: int, many: int) -> Statement:
        first = self._next_arrival
        self._next_arrival += many
        rows = tuple(
            (id, self._chance.randrange(SHIPS), self._chance.randrange(BERTHS), self._chance.randrange(MOVED))
            for id in range(first, first + many)
        )
        return Statement("arriving", number, table="arrivals", rows=rows, changes=many)

    @property
    def interrupted(self) -> tuple[Statement, ...]:
        """Statements that were given and not acknowledged."""
        return tuple(self._open.values())

    # --- the ledger ----------------------------------------------------------------------------------

    def acknowledged(self, statement: Statement) -> None:
        self.acknowledged_statements += 1
        self.acknowledged_rows += statement.changes
        self._happened(statement)

    def _happened(self, statement: Statement) -> None:
        assert self._open.pop(statement.lane) == statement
        match statement.lane:
            case "arriving":
                self._arrived.update((int(row[0]), row) for row in statement.rows)
            case "moving":
                ((first, last),) = statement.rows
                self._moved.update(dict.fromkeys(range(int(first), int(last) + 1), MOVED + statement.number))
            case "leaving":
                ((_, last),) = statement.rows
                self._left = int(last)
            case "reflagging":
                ((ship, flag),) = statement.rows
                self._flags[int(ship)] = str(flag)
            case "gauging":
                self._gauged.extend(statement.rows)

    def settle(self, ask: Ask) -> tuple[int, int]:
        """Finds out how interrupted statements ended: how many did happen, and how many did not.

        Raises AssertionError when one happened in part.
        """
        happened = 0
        interrupted = list(self._open.values())
        for statement in interrupted:
            found, whole = self._trace(statement, ask)
            if found not in (0, whole):
                raise AssertionError(f"a statement happened in part: {found} of {whole} rows of lane {statement.lane}")
            if found:
                self._happened(statement)
                happened += 1
            else:
                del self._open[statement.lane]
        return happened, len(interrupted) - happened

    def _trace(self, statement: Statement, ask: Ask) -> tuple[int, int]:
        """How many rows show that the statement happened, and how many would if it did wholly."""
        first, last = statement.rows[0][0], statement.rows[-1][0]
        match statement.lane:
            case "arriving":
                query = f"SELECT count(*) FROM arrivals WHERE id BETWEEN {first} AND {last}"
            case "moving":
                query = f"SELECT count(*) FROM arrivals WHERE containers = {MOVED + statement.number}"
            case "leaving":
                ((first, last),) = statement.rows
                query = f"SELECT {statement.changes} - count(*) FROM arrivals WHERE id BETWEEN {first} AND {last}"
            case "reflagging":
                query = f"SELECT count(*) FROM ships WHERE flag = '{statement.rows[0][1]}'"
            case _:
                query = f"SELECT count(*) FROM tides WHERE reading BETWEEN {first} AND {last}"
        ((found,),) = ask(query)
        return int(found), statement.changes

    def differences(self, ask: Ask) -> list[str]:
        """Compares every row that the traffic touched with the ledger; empty when all is as acknowledged."""
        found: list[str] = []

        def compare(what: str, stored: Counter[Row], expected: Counter[Row]) -> None:
            missing, extra = (expected - stored).total(), (stored - expected).total()
            if missing or extra:
                found.append(f"{what}: {missing:,} rows are missing and {extra:,} are too many")

        start = self._first_rows
        arrived = ask(f"SELECT id, ship, berth, containers FROM arrivals WHERE id > {start}")
        compare("new arrivals", Counter(map(tuple, arrived)), Counter(self._arrived.values()))
        moved = ask(f"SELECT id, containers FROM arrivals WHERE id <= {start} AND containers >= {MOVED}")
        compare("moved arrivals", Counter(map(tuple, moved)), Counter(self._moved.items()))
        ((count, oldest),) = ask("SELECT count(*), min(id) FROM arrivals")
        expected = start - self._left + len(self._arrived)
        if (count, oldest) != (expected, self._left + 1):
            found.append(f"arrivals: {count:,} rows from {oldest} on instead of {expected:,} from {self._left + 1} on")
        compare("ships", Counter(map(tuple, ask("SELECT id, flag FROM ships"))), Counter(self._flags.items()))
        readings = ask("SELECT reading, station, level_cm FROM tides")
        compare("tide readings", Counter(map(tuple, readings)), Counter(self._gauged))
        return found
