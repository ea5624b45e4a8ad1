"""The demonstration's ledger: it must notice what it exists to notice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from seiche.cli.demo.harbour import FLAGS, MOVED, SHIPS, Row, Statement, Traffic, first_flag

ROWS = 10_000


class Harbour:
    """The few tables that traffic writes, and the few questions that it asks, in memory."""

    def __init__(self) -> None:
        self.arrivals: dict[int, Row] = {id: (id, 0, 0, id % MOVED) for id in range(1, ROWS + 1)}
        self.ships = {ship: first_flag(ship) for ship in range(SHIPS)}
        self.tides: list[Row] = []

    def run(self, statement: Statement, part: float = 1.0) -> None:
        touched: list[int] = []
        if statement.lane in ("moving", "leaving"):
            ((first, last),) = statement.rows
            touched = list(range(int(first), int(last) + 1))
            touched = touched[: int(len(touched) * part)]
        match statement.lane:
            case "arriving":
                self.arrivals.update((int(row[0]), row) for row in statement.rows[: int(len(statement.rows) * part)])
            case "moving":
                for id in touched:
                    self.arrivals[id] = (*self.arrivals[id][:3], MOVED + statement.number)
            case "leaving":
                for id in touched:
                    del self.arrivals[id]
            case "reflagging":
                self.ships[int(statement.rows[0][0])] = str(statement.rows[0][1])
            case "gauging":
                self.tides.extend(statement.rows[: int(len(statement.rows) * part)])

    def ask(self, sql: str) -> Sequence[Row]:
        words = sql.split()
        match words[1:]:
            case ["id,", "ship,", *_]:
                return [row for id, row in self.arrivals.items() if id > ROWS]
            case ["id,", "containers", *_]:
                return [(id, row[3]) for id, row in self.arrivals.items() if id <= ROWS and int(row[3]) >= MOVED]
            case ["count(*),", "min(id)", *_]:
                return [(len(self.arrivals), min(self.arrivals))]
            case ["id,", "flag", *_]:
                return list(self.ships.items())
            case ["reading,", *_]:
                return list(self.tides)
            case ["count(*)", "FROM", "arrivals", "WHERE", "containers", "=", number]:
                return [(sum(row[3] == int(number) for row in self.arrivals.values()),)]
            case ["count(*)", "FROM", table, "WHERE", _, "BETWEEN", first, "AND", last]:
                keys = self.arrivals if table == "arrivals" else [int(row[0]) for row in self.tides]
                return [(sum(int(first) <= key <= int(last) for key in keys),)]
            case [whole, "-", "count(*)", "FROM", "arrivals", "WHERE", "id", "BETWEEN", first, "AND", last]:
                return [(int(whole) - sum(int(first) <= id <= int(last) for id in self.arrivals),)]
            case ["count(*)", "FROM", "ships", *_]:
                flag = sql.partition("'")[2].rstrip("'")
                return [(sum(each == flag for each in self.ships.values()),)]
            case _:
                raise AssertionError(sql)


def acknowledge_some(traffic: Traffic, harbour: Harbour) -> None:
    for _ in range(3):
        for lane in Traffic.LANES:
            statement = traffic.next(lane)
            harbour.run(statement)
            traffic.acknowledged(statement)


def test_a_harbour_that_did_what_it_acknowledged_shows_no_difference() -> None:
    traffic, harbour = Traffic(ROWS), Harbour()
    assert traffic.differences(harbour.ask) == []
    acknowledge_some(traffic, harbour)
    assert traffic.differences(harbour.ask) == []
    assert traffic.acknowledged_statements == 15


@pytest.mark.parametrize("lane", Traffic.LANES)
def test_an_acknowledged_statement_that_did_not_happen_is_a_difference(lane: str) -> None:
    traffic, harbour = Traffic(ROWS), Harbour()
    acknowledge_some(traffic, harbour)
    traffic.acknowledged(traffic.next(lane))
    assert len(traffic.differences(harbour.ask)) >= 1


@pytest.mark.parametrize("lane", Traffic.LANES)
def test_rows_of_a_statement_never_acknowledged_are_a_difference(lane: str) -> None:
    traffic, harbour = Traffic(ROWS), Harbour()
    harbour.run(traffic.next(lane))
    assert len(traffic.differences(harbour.ask)) >= 1


def test_a_row_that_is_there_twice_is_a_difference() -> None:
    traffic, harbour = Traffic(ROWS), Harbour()
    acknowledge_some(traffic, harbour)
    harbour.tides.append(harbour.tides[0])
    assert traffic.differences(harbour.ask) == ["tide readings: 0 rows are missing and 1 are too many"]


@pytest.mark.parametrize("lane", Traffic.LANES)
@pytest.mark.parametrize("happened", [True, False])
def test_an_interrupted_statement_is_settled_either_way(lane: str, happened: bool) -> None:
    traffic, harbour = Traffic(ROWS), Harbour()
    acknowledge_some(traffic, harbour)
    statement = traffic.next(lane)
    assert traffic.interrupted == (statement,)
    if happened:
        harbour.run(statement)
    assert traffic.settle(harbour.ask) == ((1, 0) if happened else (0, 1))
    assert traffic.interrupted == ()
    assert traffic.differences(harbour.ask) == []


@pytest.mark.parametrize("lane", ["arriving", "moving", "leaving", "gauging"])
def test_a_statement_that_happened_in_part_is_an_error(lane: str) -> None:
    traffic, harbour = Traffic(ROWS), Harbour()
    harbour.run(traffic.next(lane), part=0.5)
    with pytest.raises(AssertionError, match="in part"):
        traffic.settle(harbour.ask)


def test_a_new_flag_is_never_one_that_a_ship_had() -> None:
    assert str(Traffic(ROWS).next("reflagging").rows[0][1]) not in FLAGS
