"""Which copy of a relation a lookup reads."""

from __future__ import annotations

from seiche.model import Column, Epoch, RelationId, RelationSchema
from seiche.storage.indexes import Index, Indexes
from seiche.types import INTEGER

SHIPS = RelationId(1)
ALL = ("id", "flag", "tons", "berth")


def index(number: int, columns: tuple[str, ...], names: tuple[str, ...] = ALL, since: int = 10) -> Index:
    schema = RelationSchema(tuple(Column(name, INTEGER) for name in names), (*columns, "id"))
    return Index(RelationId(number), schema, columns, Epoch(since))


def best(limited: set[str], needed: set[str], *indexes: Index, at: int = 20) -> int | None:
    known = Indexes()
    known.set((SHIPS, each) for each in indexes)
    found = known.best(SHIPS, ("id",), limited, needed, Epoch(at))
    return found.relation if found is not None else None


def test_the_index_with_the_most_limited_columns_first_is_read() -> None:
    by_flag, by_both, by_berth = index(2, ("flag",)), index(3, ("flag", "tons")), index(4, ("berth", "flag"))
    assert best({"flag", "tons"}, set(ALL), by_flag, by_both, by_berth) == 3
    assert best({"flag"}, set(ALL), by_flag, by_berth) == 2
    assert best({"tons"}, set(ALL), by_flag, by_both, by_berth) is None


def test_the_narrower_of_two_equal_ones_is_read() -> None:
    wide, narrow = index(2, ("flag",)), index(3, ("flag",), ("flag", "tons", "id"))
    assert best({"flag"}, {"flag", "tons"}, wide, narrow) == 3


def test_an_index_without_a_needed_column_is_of_no_use() -> None:
    assert best({"flag"}, {"berth"}, index(2, ("flag",), ("flag", "id"))) is None


def test_the_relations_own_key_goes_first() -> None:
    assert best({"id", "flag"}, set(ALL), index(2, ("flag",))) is None


def test_an_epoch_before_the_index_was_complete_is_read_from_the_relation() -> None:
    assert best({"flag"}, set(ALL), index(2, ("flag",), since=10), at=9) is None
    assert best({"flag"}, set(ALL), index(2, ("flag",), since=10), at=10) == 2


def test_an_index_that_was_known_keeps_the_epoch_of_its_completion() -> None:
    known = Indexes()
    known.set([(SHIPS, index(2, ("flag",), since=10))])
    known.set([(SHIPS, index(2, ("flag",), since=30))])
    assert known.best(SHIPS, ("id",), {"flag"}, {"flag"}, Epoch(15)) is not None
    known.set([])
    assert not known
