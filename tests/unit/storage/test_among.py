"""Into which sets wanted values are cut: Parquet skips what lies between them."""

from __future__ import annotations

import numpy as np
import pytest

from seiche.storage.among import HEAPS_MAX, _heaps


def heaps(values: list[int]) -> list[list[int]]:
    return [each.tolist() for each in _heaps(np.array(values, np.int64))]


def test_values_close_together_are_one_set() -> None:
    assert heaps(list(range(1000, 0, -1))) == [list(range(1, 1001))]


def test_new_rows_at_one_end_and_old_ones_at_the_other_are_two() -> None:
    old, new = list(range(100)), list(range(1_000_000, 1_000_100))
    assert heaps(new + old) == [old, new]


@pytest.mark.parametrize("values", [[7], [-(2**63), 2**63 - 1], [0, 2**40, 2**41, 2**42, 2**43, 2**44]])
def test_no_value_is_lost_and_sets_are_few(values: list[int]) -> None:
    found = heaps(values)
    assert sorted(value for heap in found for value in heap) == sorted(values)
    assert len(found) <= HEAPS_MAX
