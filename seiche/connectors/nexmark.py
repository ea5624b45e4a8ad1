"""Nexmark: the stream of an online auction house, which benchmarks of streaming systems share.

Events are numbered from 0 and come in turns of 50: one person, three auctions, 46 bids (the shares are options). An
event's number decides everything in it. People and auctions are numbered in their order; an auction's seller and a
bid's bidder are among the latest people, a bid's auction among the latest auctions, and a few of them are hot: most
auctions and bids are about those. Time in the stream runs at 10,000 events a second from a fixed moment on, unless
`nexmark.use.real.time` asks for that of the clock.

    nexmark.table.type             Person, Auction or Bid; all in one relation where it is left out
    nexmark.split.num              1
    nexmark.event.num              how many events there are in all (no end)
    nexmark.min.event.gap.in.ns    time between two events (100,000); 0: as fast as they are taken
    nexmark.use.real.time          whether events are dated by the clock (false)
    nexmark.person.proportion, nexmark.auction.proportion, nexmark.bid.proportion    1, 3, 46
    nexmark.active.people, nexmark.in.flight.auctions                                1000, 100
    nexmark.hot.seller.ratio, nexmark.hot.auction.ratio, nexmark.hot.bidder.ratio    4, 2, 4: one in so many is not hot
    nexmark.num.categories         5
    nexmark.max.chunk.size         read over: the barrier decides how many rows come at once
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seiche.connectors.bits import Bits, mixed
from seiche.connectors.options import Options
from seiche.connectors.splits import split_offsets
from seiche.errors import InvalidDefinition
from seiche.model import Column
from seiche.types import BIGINT, TIMESTAMP, VARCHAR, SqlType, struct_of

NAME = "nexmark"
_FASTEST = 10_000_000  # rows a second that are asked for where no gap is kept
_BEGINNING_US = 1_436_918_400_000_000  # 2015-07-15 00:00:00, the first moment of the stream
_EVENT_US = 100  # between two events
_FIRST_ID = 1000  # of people and of auctions
_FIRST_CATEGORY = 10
_ID_LEAD = 10  # sellers, bidders and auctions may be so many ahead of those that were there

_PERSON = (
    ("id", BIGINT), ("name", VARCHAR), ("email_address", VARCHAR), ("credit_card", VARCHAR), ("city", VARCHAR),
    ("state", VARCHAR), ("date_time", TIMESTAMP), ("extra", VARCHAR),
)  # fmt: skip
_AUCTION = (
    ("id", BIGINT), ("item_name", VARCHAR), ("description", VARCHAR), ("initial_bid", BIGINT), ("reserve", BIGINT),
    ("date_time", TIMESTAMP), ("expires", TIMESTAMP), ("seller", BIGINT), ("category", BIGINT), ("extra", VARCHAR),
)  # fmt: skip
_BID = (
    ("auction", BIGINT), ("bidder", BIGINT), ("price", BIGINT), ("channel", VARCHAR), ("url", VARCHAR),
    ("date_time", TIMESTAMP), ("extra", VARCHAR),
)  # fmt: skip
_KINDS = (_PERSON, _AUCTION, _BID)
_TABLES: Mapping[str, tuple[int, tuple[tuple[str, SqlType], ...]]] = {
    "person": (0, _PERSON),
    "auction": (1, _AUCTION),
    "bid": (2, _BID),
}
_EVENTS = (("event_type", BIGINT), *((name, struct_of(*fields)) for name, (_, fields) in _TABLES.items()))

_FIRST_NAMES = ("peter", "paul", "luke", "john", "saul", "vicky", "kate", "julie", "sarah", "deiter", "walter")
_LAST_NAMES = ("shultz", "abrams", "spencer", "white", "bartels", "walton", "smith", "jones", "noris")
_CITIES = (
    "phoenix", "los angeles", "san francisco", "boise", "portland", "bend", "redmond", "seattle", "kent", "cheyenne",
)  # fmt: skip
_STATES = ("az", "ca", "id", "or", "wa", "wy")
_HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
_CHANNELS = 10_000
_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz", np.uint8)

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Shares:
    """Who comes how often in each turn of events, and how popular the hot ones are."""

    of_kinds: tuple[int, int, int]
    active_people: int
    open_auctions: int
    hot_seller: int
    hot_auction: int
    hot_bidder: int
    categories: int

    @property
    def turn(self) -> int:
        return sum(self.of_kinds)

    def kinds_of(self, events: Numbers) -> Numbers:
        """0 for a person, 1 for an auction, 2 for a bid."""
        people, auctions, _ = self.of_kinds
        place = events % self.turn
        kinds: Numbers = (place >= people).astype(np.int64) + (place >= people + auctions)
        return kinds

    def events_of(self, kind: int, rows: Numbers) -> Numbers:
        """The numbers of the events that are rows of a kind, which the kinds before it come before in each turn."""
        share = self.of_kinds[kind]
        events: Numbers = rows // share * self.turn + sum(self.of_kinds[:kind]) + rows % share
        return events

    def count_before(self, kind: int, events: Numbers) -> Numbers:
        """How many events of a kind there are up to an event, the event itself included."""
        share, before = self.of_kinds[kind], sum(self.of_kinds[:kind])
        turns: Numbers = events // self.turn * share + np.clip(events % self.turn - before + 1, 0, share)
        return turns


class _Draws:
    """Random numbers for events, one stretch after the other."""

    def __init__(self, events: Numbers) -> None:
        self._bits = mixed(events.astype(np.uint64))
        self._drawn = 0

    def bits(self) -> Bits:
        self._drawn += 1
        salt = mixed(np.array([self._drawn], np.uint64)) | np.uint64(1)
        with np.errstate(over="ignore"):
            return mixed(self._bits * salt)

    def below(self, bound: Numbers | int) -> Numbers:
        limits = np.maximum(np.asarray(bound, np.int64), 1).astype(np.uint64)
        return (self.bits() % limits).astype(np.int64)

    def share(self) -> npt.NDArray[np.float64]:
        return (self.bits() >> np.uint64(11)).astype(np.float64) / float(1 << 53)

    def price(self) -> Numbers:
        """Between 1 and 1,000,000 with two more digits: each order of magnitude is as common as another."""
        prices: Numbers = np.rint(np.power(10.0, self.share() * 6) * 100).astype(np.int64)
        return prices

    def one_of(self, words: Sequence[str]) -> pa.Array:
        return pa.array(words, pa.string()).take(pa.array(self.below(len(words))))

    def text(self, length: int) -> pa.Array:
        count = len(self._bits)
        places = np.tile(np.arange(length, dtype=np.uint64), count)
        letters = _LETTERS[(mixed(np.repeat(self.bits(), length) + places) % np.uint64(len(_LETTERS))).astype(np.int64)]
        offsets = np.arange(count + 1, dtype=np.int32) * length
        return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


@dataclass(frozen=True, slots=True)
class Nexmark:
    """Makes the rows of one source."""

    kind: int | None  # None: all of them, each in a column of its own
    shares: _Shares
    splits: int
    rows_per_second: int
    rows: int | None
    real_time: bool

    def table(self, first: int, count: int, *, created_ms: int, now_ms: int) -> pa.Table:
        """The rows with the numbers `first` and up; fewer than `count` at the end."""
        if self.rows is not None:
            count = max(min(count, self.rows - first), 0)
        numbers = np.arange(first, first + count, dtype=np.int64)
        if self.kind is not None:
            events = self.shares.events_of(self.kind, numbers)
            made = self._made(self.kind, events, now_ms)
            return pa.Table.from_arrays(made, [name for name, _ in _KINDS[self.kind]])
        kinds = self.shares.kinds_of(numbers)
        columns = [pa.array(kinds)]
        for kind, (_, type_) in enumerate(_EVENTS[1:]):
            places = np.flatnonzero(kinds == kind)
            values = pa.StructArray.from_arrays(self._made(kind, numbers[places], now_ms), fields=list(type_.arrow))
            found = np.full(count, -1, np.int64)
            found[places] = np.arange(len(places))
            columns.append(values.take(pa.array(found, mask=found < 0)))
        return pa.Table.from_arrays(columns, [name for name, _ in _EVENTS])

    def offsets(self, rows: int) -> dict[str, str]:
        return split_offsets(rows, self.splits)

    def _made(self, kind: int, events: Numbers, now_ms: int) -> list[pa.Array]:
        moments = np.full(len(events), now_ms * 1000) if self.real_time else _BEGINNING_US + events * _EVENT_US
        make: Callable[[Numbers, Numbers], list[pa.Array]] = (self._people, self._auctions, self._bids)[kind]
        return make(events, moments)

    def _people(self, events: Numbers, moments: Numbers) -> list[pa.Array]:
        draws = _Draws(events)
        name = _joined(draws.one_of(_FIRST_NAMES), " ", draws.one_of(_LAST_NAMES))
        email = _joined(draws.text(7), "@", draws.text(5), ".com")
        groups = [pa.array(draws.below(9000) + 1000).cast(pa.string()) for _ in range(4)]
        card = _joined(groups[0], " ", groups[1], " ", groups[2], " ", groups[3])
        city, state = draws.one_of(_CITIES), draws.one_of(_STATES)
        ids = self.shares.count_before(0, events) - 1 + _FIRST_ID
        return [pa.array(ids), name, email, card, city, state, _timestamps(moments), draws.text(20)]

    def _auctions(self, events: Numbers, moments: Numbers) -> list[pa.Array]:
        shares, draws = self.shares, _Draws(events)
        ids = shares.count_before(1, events) - 1 + _FIRST_ID
        initial = draws.price()
        reserve = initial + draws.price()
        open_for = (draws.below(2 * self._auction_events * _EVENT_US) // 1000 + 1) * 1000
        hot = draws.below(shares.hot_seller) > 0
        seller = np.where(hot, self._hot_person(events, 0), self._any_person(events, draws))
        category = draws.below(shares.categories) + _FIRST_CATEGORY
        return [
            pa.array(ids), draws.text(20), draws.text(60), pa.array(initial), pa.array(reserve), _timestamps(moments),
            _timestamps(moments + open_for), pa.array(seller), pa.array(category), draws.text(20),
        ]  # fmt: skip

    def _bids(self, events: Numbers, moments: Numbers) -> list[pa.Array]:
        shares, draws = self.shares, _Draws(events)
        latest = np.maximum(shares.count_before(1, events) - 1, 0)
        oldest = np.maximum(latest - shares.open_auctions, 0)
        any_auction = oldest + draws.below(latest - oldest + 1 + _ID_LEAD)
        auction = np.where(draws.below(shares.hot_auction) > 0, latest // 100 * 100, any_auction) + _FIRST_ID
        bidder = np.where(
            draws.below(shares.hot_bidder) > 0, self._hot_person(events, 1), self._any_person(events, draws)
        )
        price = draws.price()
        hot_channel = draws.below(2) > 0
        number = np.where(hot_channel, draws.below(len(_HOT_CHANNELS)), draws.below(_CHANNELS))
        names = np.where(hot_channel, np.array(_HOT_CHANNELS)[number % len(_HOT_CHANNELS)], _numbered(number))
        page = _joined("https://www.nexmark.com/", draws.text(5), "/", draws.text(5), "/item.htm?query=1")
        tagged = _joined(page, "&channel_id=", pa.array(draws.below(1 << 30)).cast(pa.string()))
        url = pa.compute.if_else(pa.array(draws.below(10) > 0), tagged, page)
        channel = pa.array(names, pa.string())
        return [
            pa.array(auction), pa.array(bidder), pa.array(price), channel, url, _timestamps(moments), draws.text(20),
        ]  # fmt: skip

    @property
    def _auction_events(self) -> int:
        """So many events pass until as many auctions began as are open at once."""
        return max(self.shares.open_auctions * self.shares.turn // self.shares.of_kinds[1], 1)

    def _hot_person(self, events: Numbers, place: int) -> Numbers:
        people = np.maximum(self.shares.count_before(0, events) - 1, 0)
        hot: Numbers = people // 100 * 100 + place + _FIRST_ID
        return hot

    def _any_person(self, events: Numbers, draws: _Draws) -> Numbers:
        people = np.maximum(self.shares.count_before(0, events), 1)
        active = np.minimum(people, self.shares.active_people)
        found: Numbers = people - active + draws.below(active + _ID_LEAD) + _FIRST_ID
        return found


def nexmark(columns: Sequence[Column], given: Mapping[str, str]) -> Nexmark:
    """The generator that these options describe, of columns that are not computed. Raises what is wrong with them."""
    options = Options(given, NAME)
    options.text("connector", NAME)
    options.text("nexmark.max.chunk.size", "")
    kind: int | None = None
    wanted: tuple[tuple[str, SqlType], ...] = _EVENTS
    if options.has("nexmark.table.type"):
        kind, wanted = _TABLES[options.one_of("nexmark.table.type", "", *_TABLES)]
    people = options.number("nexmark.person.proportion", 1, 1, 1000)
    auctions = options.number("nexmark.auction.proportion", 3, 1, 1000)
    bids = options.number("nexmark.bid.proportion", 46, 1, 1000)
    shares = _Shares(
        (people, auctions, bids),
        options.number("nexmark.active.people", 1000, 1, 1_000_000),
        options.number("nexmark.in.flight.auctions", 100, 1, 1_000_000),
        options.number("nexmark.hot.seller.ratio", 4, 1, 1_000_000),
        options.number("nexmark.hot.auction.ratio", 2, 1, 1_000_000),
        options.number("nexmark.hot.bidder.ratio", 4, 1, 1_000_000),
        options.number("nexmark.num.categories", 5, 1, 1_000_000),
    )
    splits = options.number("nexmark.split.num", 1, 1, 1_000)
    gap_ns = options.number("nexmark.min.event.gap.in.ns", 100_000, 0, 1 << 62)
    events = options.number("nexmark.event.num", 1 << 62, 0, 1 << 64)
    real_time = options.one_of("nexmark.use.real.time", "false", "false", "true") == "true"
    options.refuse_others()
    _check_columns(columns, wanted)
    share = 1.0 if kind is None else shares.of_kinds[kind] / shares.turn
    pace = _FASTEST if gap_ns == 0 else max(min(round(1e9 / gap_ns * share), _FASTEST), 1)
    rows: int | None = None
    if events < 1 << 62:
        last = np.array([events - 1], np.int64)
        rows = events if kind is None else int(shares.count_before(kind, last)[0]) if events else 0
    return Nexmark(kind, shares, splits, pace, rows, real_time)


def _check_columns(columns: Sequence[Column], wanted: tuple[tuple[str, SqlType], ...]) -> None:
    if tuple((column.name, column.type.bare) for column in columns) != wanted:
        raise InvalidDefinition(
            f"columns are not those of the connector {NAME}",
            detail="The schema of the nexmark source must specify all columns in order; computed ones may be more.",
            hint="They are " + ", ".join(f"{name} {type_}" for name, type_ in wanted) + ".",
        )


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pa.compute.binary_join_element_wise(*parts, "")


def _numbered(numbers: Numbers) -> npt.NDArray[np.str_]:
    return np.char.add("channel-", numbers.astype(np.str_))


def _timestamps(moments: Numbers) -> pa.Array:
    return pa.array(moments).cast(TIMESTAMP.arrow)


__all__ = ["NAME", "Nexmark", "nexmark"]
