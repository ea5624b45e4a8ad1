"""Hidden row ids and their vnodes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from seiche.model import VNODES, RelationId
from seiche.stream.rowids import RowIds, vnodes_of

SHIPS, TIDES = RelationId(7), RelationId(9)


@pytest.mark.parametrize(
    ("number", "vnode"),
    # As Spark 4.3 answers pmod(xxhash64(cast(number as bigint)), 256).
    [
        (0, 108),
        (1, 50),
        (-1, 210),
        (42, 222),
        (255, 58),
        (1 << 33, 161),
        (1 << 62, 89),
        ((1 << 63) - 1, 6),
        (-(1 << 63), 244),
    ],
)
def test_a_vnode_is_what_spark_computes(number: int, vnode: int) -> None:
    assert vnodes_of(np.array([number], np.int64)).tolist() == [vnode]


def test_vnodes_of_many_ids_are_those_of_each_and_spread_evenly() -> None:
    ids = np.arange(10_000, dtype=np.int64)
    vnodes = vnodes_of(ids)
    assert vnodes.dtype == np.int16
    assert vnodes[:5].tolist() == [vnodes_of(ids[n : n + 1])[0] for n in range(5)]
    counts = np.bincount(vnodes, minlength=VNODES)
    assert len(counts) == VNODES
    assert counts.min() > 10 and counts.max() < 80


def test_no_ids_have_no_vnodes() -> None:
    assert vnodes_of(np.array([], np.int64)).tolist() == []


def test_numbers_go_on_where_the_checkpoint_left_them_and_are_never_used_twice() -> None:
    ids = RowIds({SHIPS: 100})
    assert ids.take(SHIPS, 5) == 100
    assert ids.take(SHIPS, 1) == 105
    assert ids.take(TIDES, 3) == 0


def test_only_counters_that_moved_are_part_of_a_checkpoint() -> None:
    ids = RowIds({SHIPS: 100, TIDES: 5})
    assert ids.moved() == {}
    ids.take(SHIPS, 5)
    assert ids.moved() == {SHIPS: 105}
    ids.settled()
    assert ids.moved() == {}
    ids.take(TIDES, 1)
    assert ids.moved() == {TIDES: 6}


def test_threads_never_get_the_same_number() -> None:
    ids = RowIds({})
    taken: list[int] = []

    def take() -> None:
        for _ in range(200):
            taken.append(ids.take(SHIPS, 2))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == list(range(0, 1600, 2))
