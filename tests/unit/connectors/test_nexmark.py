"""Rows of the auction house: what follows from an event's number, and what the columns and options may be."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest

from seiche.connectors.nexmark import Nexmark, nexmark
from seiche.errors import InvalidDefinition, InvalidParameter
from seiche.model import Column
from seiche.types import BIGINT, TIMESTAMP, VARCHAR, SqlType, struct_of

NOW_MS = 1_700_000_000_000

BID: dict[str, SqlType] = {
    "auction": BIGINT,
    "bidder": BIGINT,
    "price": BIGINT,
    "channel": VARCHAR,
    "url": VARCHAR,
    "date_time": TIMESTAMP,
    "extra": VARCHAR,
}
PERSON: dict[str, SqlType] = {
    "id": BIGINT,
    "name": VARCHAR,
    "email_address": VARCHAR,
    "credit_card": VARCHAR,
    "city": VARCHAR,
    "state": VARCHAR,
    "date_time": TIMESTAMP,
    "extra": VARCHAR,
}
AUCTION: dict[str, SqlType] = {
    "id": BIGINT,
    "item_name": VARCHAR,
    "description": VARCHAR,
    "initial_bid": BIGINT,
    "reserve": BIGINT,
    "date_time": TIMESTAMP,
    "expires": TIMESTAMP,
    "seller": BIGINT,
    "category": BIGINT,
    "extra": VARCHAR,
}
ALL: dict[str, SqlType] = {
    "event_type": BIGINT,
    "person": struct_of(*PERSON.items()),
    "auction": struct_of(*AUCTION.items()),
    "bid": struct_of(*BID.items()),
}


def made(types: dict[str, SqlType], **given: str) -> Nexmark:
    options = {f"nexmark.{name.replace('_', '.')}": value for name, value in given.items()}
    return nexmark([Column(name, type_) for name, type_ in types.items()], {"connector": "nexmark", **options})


def rows(of: Nexmark, first: int, count: int) -> list[dict[str, object]]:
    table = of.table(first, count, created_ms=0, now_ms=NOW_MS)
    return table.to_pylist()  # type: ignore[no-any-return]


def test_a_row_follows_from_its_number_alone() -> None:
    of = made(ALL)
    assert rows(of, 0, 130)[70:120] == rows(of, 70, 50)


def test_a_table_of_one_type_has_the_events_of_that_type() -> None:
    together = rows(made(ALL), 0, 200)
    for name, types in (("person", PERSON), ("auction", AUCTION), ("bid", BID)):
        alone = rows(made(types, table_type=name.capitalize()), 0, 200)
        found = [row[name] for row in together if row[name] is not None]
        assert alone[: len(found)] == found


def test_events_come_in_turns_of_one_person_three_auctions_and_46_bids() -> None:
    kinds = [row["event_type"] for row in rows(made(ALL), 0, 100)]
    assert kinds == ([0] + [1] * 3 + [2] * 46) * 2
    other = made(ALL, person_proportion="2", auction_proportion="2", bid_proportion="4")
    assert [row["event_type"] for row in rows(other, 0, 8)] == [0, 0, 1, 1, 2, 2, 2, 2]


def test_people_and_auctions_are_numbered_in_order_and_referred_to() -> None:
    people = rows(made(PERSON, table_type="person"), 0, 300)
    auctions = rows(made(AUCTION, table_type="auction"), 0, 900)
    bids = rows(made(BID, table_type="bid"), 0, 13_800)
    assert [row["id"] for row in people] == list(range(1000, 1300))
    assert [row["id"] for row in auctions] == list(range(1000, 1900))
    ids = range(1000, 1310)
    assert all(row["seller"] in ids for row in auctions)
    assert all(row["bidder"] in ids and row["auction"] in range(1000, 1910) for row in bids)
    hot = Counter(row["bidder"] for row in bids).most_common(3)
    assert {person for person, _ in hot} == {1001, 1101, 1201}
    assert sum(count for _, count in hot) > len(bids) / 2


def test_time_runs_with_the_events_or_with_the_clock() -> None:
    first, second = rows(made(BID, table_type="Bid"), 0, 2)
    assert (first["date_time"], second["date_time"]) == (
        datetime(2015, 7, 15, 0, 0, 0, 400),
        datetime(2015, 7, 15, 0, 0, 0, 500),
    )
    (now,) = rows(made(BID, table_type="Bid", use_real_time="true"), 0, 1)
    assert now["date_time"] == datetime(2023, 11, 14, 22, 13, 20)


def test_the_number_of_events_ends_it() -> None:
    assert len(rows(made(ALL, event_num="60"), 0, 1000)) == 60
    of = made(AUCTION, table_type="Auction", event_num="52")
    assert of.rows == 4
    assert len(rows(of, 3, 1000)) == 1
    assert rows(of, 4, 1000) == []
    assert made(ALL).rows is None


def test_a_gap_between_events_is_the_pace() -> None:
    assert made(ALL, min_event_gap_in_ns="1000000").rows_per_second == 1000
    assert made(BID, table_type="Bid", min_event_gap_in_ns="1000000").rows_per_second == 920
    assert made(ALL, min_event_gap_in_ns="0").rows_per_second > 1_000_000


def test_other_columns_than_its_own_are_refused() -> None:
    turned = dict(reversed(BID.items()))
    for types, given in ((turned, {"table_type": "Bid"}), (BID, {}), (BID, {"table_type": "Person"})):
        with pytest.raises(InvalidDefinition) as caught:
            made(types, **given)
        assert "all columns in order" in str(caught.value.detail)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r'option "nexmark.splits" is not known to the connector nexmark'):
        made(ALL, splits="2")
    with pytest.raises(InvalidParameter, match="cannot be ship"):
        made(BID, table_type="Ship")
