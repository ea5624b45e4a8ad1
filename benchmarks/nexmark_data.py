"""Nexmark's persons, auctions and bids, made by Spark from event numbers: the same seed gives the same events.

Of 50 events in a row the first is a person, the next three are auctions, the other 46 are bids. Most bids go to one
of the latest auctions and come from one of the latest persons, as in the original generator. Nothing passes the driver.
"""

# ruff: noqa: E501 -- an expression of SQL stands on one line

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

PERSONS, AUCTIONS, BIDS = 1, 3, 46
TURN = PERSONS + AUCTIONS + BIDS

SCHEMA: dict[str, str] = {
    "person": "id bigint, name varchar, email_address varchar, credit_card varchar, city varchar, state varchar,"
    " date_time timestamp, extra varchar",
    "auction": "id bigint, item_name varchar, description varchar, initial_bid bigint, reserve bigint,"
    " date_time timestamp, expires timestamp, seller bigint, category bigint, extra varchar",
    "bid": "auction bigint, bidder bigint, price bigint, channel varchar, url varchar, date_time timestamp, extra varchar",
}
SIDE_INPUT = "key bigint PRIMARY KEY, value varchar"

_FIRST_ID = 1000
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
_FIRST_NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
_LAST_NAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_START = "TIMESTAMP_NTZ '2024-01-01 00:00:00'"


@dataclass(frozen=True, slots=True)
class Stream:
    """How fast events follow each other, how many auctions and persons are lively, and the seed."""

    micros_per_event: int = 100
    lively_auctions: int = 100
    lively_persons: int = 1000
    auction_micros: int = 20_000_000
    seed: int = 1


class Generator:
    """Frames of the events with numbers from `first` up to `last`, both multiples of 50."""

    def __init__(self, spark: SparkSession, stream: Stream) -> None:
        self._spark = spark
        self._stream = stream

    def table(self, name: str, first: int, last: int) -> DataFrame:
        match name:
            case "person":
                return self._persons(first, last)
            case "auction":
                return self._auctions(first, last)
            case "bid":
                return self._bids(first, last)
            case _:
                raise ValueError(name)

    def side_input(self, count: int) -> DataFrame:
        return self._spark.sql(f"SELECT id AS key, concat('value ', id) AS value FROM range({count})")

    def _persons(self, first: int, last: int) -> DataFrame:
        n = "id"
        name = f"concat({self._one_of(_FIRST_NAMES, 'first', n)}, ' ', {self._one_of(_LAST_NAMES, 'last', n)})"
        card = "concat_ws(' ', " + ", ".join(f"lpad({self._number(f'card{i}', 0, 9999, n)}, 4, '0')" for i in range(4))
        return self._spark.sql(
            f"SELECT {_FIRST_ID} + {n} AS id, {name} AS name,"
            f" concat('p', {self._number('mail', 0, 99999, n)}, '@', {self._number('host', 0, 999, n)}, '.com')"
            f" AS email_address, {card}) AS credit_card, {self._one_of(_CITIES, 'city', n)} AS city,"
            f" {self._one_of(_STATES, 'state', n)} AS state, {self._time(f'{n} * {TURN}')} AS date_time,"
            f" {self._extra(n)} AS extra FROM range({first // TURN}, {last // TURN})"
        )

    def _auctions(self, first: int, last: int) -> DataFrame:
        n = "id"  # the auction's number; its event comes after that of the person of its turn
        event = f"({n} DIV {AUCTIONS} * {TURN} + {PERSONS} + {n} % {AUCTIONS})"
        lively = self._stream.lively_persons
        seller = f"{_FIRST_ID} + greatest(0, {n} DIV {AUCTIONS} - {self._number('seller', 0, lively - 1, n)})"
        lasts = self._number("lasts", 1, self._stream.auction_micros, n)
        return self._spark.sql(
            f"SELECT {_FIRST_ID} + {n} AS id, concat('item ', {self._number('item', 0, 999, n)}) AS item_name,"
            f" concat('description ', {self._number('text', 0, 99999, n)}) AS description, price AS initial_bid,"
            f" price + {self._price('reserve', n)} AS reserve, moment AS date_time,"
            f" moment + make_dt_interval(0, 0, 0, {lasts} / 1000000) AS expires,"
            f" {seller} AS seller, cast({self._number('category', 10, 14, n)} AS bigint) AS category, {self._extra(n)} AS extra"
            f" FROM (SELECT *, {self._price('initial', n)} AS price, {self._time(event)} AS moment"
            f" FROM range({first // TURN * AUCTIONS}, {last // TURN * AUCTIONS}))"
        )

    def _bids(self, first: int, last: int) -> DataFrame:
        n = "id"
        turn = f"({n} DIV {BIDS})"
        event = f"({turn} * {TURN} + {PERSONS + AUCTIONS} + {n} % {BIDS})"
        newest = f"({turn} * {AUCTIONS} + {AUCTIONS - 1})"
        # Half of the bids go to the auction that is the hot one just now.
        any_auction = f"greatest(0, {newest} - {self._number('auction', 0, self._stream.lively_auctions - 1, n)})"
        auction = f"if({self._number('hot', 0, 1, n)} = 0, {newest} DIV 100 * 100, {any_auction})"
        bidder = f"greatest(0, {turn} - {self._number('bidder', 0, self._stream.lively_persons - 1, n)})"
        number = self._number("channel", 0, 9999, n)
        known = self._one_of(_CHANNELS, "known", n)
        return self._spark.sql(
            f"SELECT {_FIRST_ID} + {auction} AS auction, {_FIRST_ID} + {bidder} AS bidder, {self._price('bid', n)} AS price,"
            f" if({self._number('famous', 0, 1, n)} = 0, {known}, concat('channel-', {number})) AS channel,"
            f" concat('https://www.nexmark.com/', {self._number('a', 0, 99, n)}, '/', {self._number('b', 0, 99, n)}, '/item.htm?',"
            f" 'query=1&channel_id=', {number}) AS url, {self._time(event)} AS date_time, {self._extra(n)} AS extra"
            f" FROM range({first // TURN * BIDS}, {last // TURN * BIDS})"
        )

    # --- columns -------------------------------------------------------------------------------------

    def _hash(self, column: str, key: str) -> str:
        return f"xxhash64({key}, '{column}', {self._stream.seed})"

    def _number(self, column: str, low: int, high: int, key: str) -> str:
        return f"cast({low} + pmod({self._hash(column, key)}, {high - low + 1}) AS int)"

    def _one_of(self, values: tuple[str, ...], column: str, key: str) -> str:
        listed = ", ".join(f"'{value}'" for value in values)
        return f"array({listed})[cast(pmod({self._hash(column, key)}, {len(values)}) AS int)]"

    def _price(self, column: str, key: str) -> str:
        """From 100 to 100 million, each power of ten as likely as another."""
        return f"cast(100 * power(10, {self._number(column, 0, 5999, key)} / 1000D) AS bigint)"

    def _extra(self, key: str) -> str:
        return f"hex({self._hash('extra', key)})"

    def _time(self, event: str) -> str:
        return f"{_START} + make_dt_interval(0, 0, 0, {event} * {self._stream.micros_per_event} / 1000000)"
