"""Conditions on keys: few values by name, many by ranges."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from seiche.stream.predicates import IN_LIST_MAX, RANGES_MAX, key_predicate
from seiche.types import BIGINT, DATE, DOUBLE, INTEGER, VARCHAR, SqlType


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (INTEGER, [2, None, 2], "`k` IN (2, NULL)"),
        (BIGINT, [-1], "`k` IN (cast(-1 as bigint), NULL)"),
        (VARCHAR, ["it's", "a\\b"], r"`k` IN ('it\'s', 'a\\b', NULL)"),
        (DATE, [date(2026, 5, 1)], "`k` IN (DATE'2026-05-01', NULL)"),
        (INTEGER, [None], "false"),
        (INTEGER, [], "false"),
        (DOUBLE, [1.0], None),
        (INTEGER, list(range(IN_LIST_MAX + 1)), "`k` BETWEEN 0 AND 128"),
        (VARCHAR, [str(n) for n in range(IN_LIST_MAX + 1)], None),
    ],
)
def test_a_key_predicate_names_few_values_and_spans_many(
    type_: SqlType, values: list[Any], expected: str | None
) -> None:
    assert key_predicate("k", type_, pa.chunked_array([pa.array(values, type_.arrow)])) == expected


def test_heaps_of_values_that_are_far_apart_are_ranges_of_their_own() -> None:
    leaving, coming = range(1, 6_001, 4), range(6_000_001, 6_006_001, 4)
    found = key_predicate("k", BIGINT, pa.chunked_array([pa.array([*leaving, *coming], pa.int64())]))
    assert found == "((`k` BETWEEN 0L AND 65536L) OR (`k` BETWEEN 5963776L AND 6029312L))"


def test_the_next_heaps_mostly_ask_for_the_same_ranges() -> None:
    """Spark keeps the code of a query that it has seen; with other literals it is another query."""
    asked = []
    for epoch in range(20):
        values = [*range(1 + epoch * 6_000, 1 + (epoch + 1) * 6_000, 4)]
        values += [each + 6_000_000 for each in values]
        asked.append(key_predicate("k", BIGINT, pa.chunked_array([pa.array(values, pa.int64())])))
    assert len(set(asked)) < 10


@pytest.mark.parametrize("seed", range(50))
def test_every_value_lies_in_one_of_few_ranges(seed: int) -> None:
    random = np.random.default_rng(seed)
    heaps = [random.integers(-(1 << 62), 1 << 62) + random.integers(0, 1 << int(random.integers(12, 40)), 60)
             for _ in range(int(random.integers(2, 8)))]  # fmt: skip
    values = np.concatenate(heaps)
    found = key_predicate("k", BIGINT, pa.chunked_array([pa.array(values)]))
    assert found is not None
    bounds = [
        tuple(int(side.removesuffix("L").removeprefix("cast(").removesuffix(" as bigint)")) for side in each)
        for each in re.findall(r"BETWEEN (cast\(-\d+ as bigint\)|\d+L) AND (cast\(-\d+ as bigint\)|\d+L)", found)
    ]
    assert 1 <= len(bounds) <= RANGES_MAX
    assert all(any(low <= value <= high for low, high in bounds) for value in values.tolist())


def test_a_long_list_of_values_says_in_which_ranges_they_lie() -> None:
    values = pa.chunked_array([pa.array([*range(150), *range(1_000_000, 1_000_150)], pa.int64())])
    found = key_predicate("k", BIGINT, values, listed_max=1_000)
    assert found is not None and found.startswith("((`k` BETWEEN 0L AND ") and ") AND `k` IN (0L, 1L," in found
    near = key_predicate("k", BIGINT, values.slice(0, 150), listed_max=1_000)
    assert near is not None and "BETWEEN" not in near
