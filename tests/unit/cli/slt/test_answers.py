"""When an answer is the expected one."""

from __future__ import annotations

import re

import pytest

from seiche.cli.slt.answers import Answered, Refused, Rules, compare
from seiche.cli.slt.records import Answers, Counts, Fails, ResultMode, SortMode, Succeeds

ROWS = Answered((("2", "b  b"), ("1", None), ("10", "")))


def agrees(lines: list[str], sort: SortMode | None = None, rules: Rules | None = None) -> bool:
    return compare(Answers(tuple(lines), sort), ROWS, rules or Rules()) is None


def test_values_are_joined_by_blanks_and_null_and_empty_have_words() -> None:
    assert agrees(["2 b b", "1   NULL", "10 (empty)"])
    assert not agrees(["2 b b", "1 NULL", "10"])


def test_order_counts_unless_rows_are_sorted() -> None:
    assert not agrees(["1 NULL", "10 (empty)", "2 b b"])
    assert agrees(["1 NULL", "10 (empty)", "2 b b"], SortMode.ROWSORT)
    assert agrees(["2 b b", "10 (empty)", "1 NULL"], SortMode.ROWSORT)
    assert agrees(["10 (empty)", "1 NULL", "2 b b"], rules=Rules(sort=SortMode.ROWSORT))
    assert not agrees(["10 (empty)", "1 NULL", "2 b b"], SortMode.NOSORT, Rules(sort=SortMode.ROWSORT))


def test_a_missing_and_an_additional_row_are_told_apart() -> None:
    mismatch = compare(Answers(("1 NULL", "3 c"), SortMode.ROWSORT), ROWS, Rules())
    assert mismatch is not None
    assert "- 3 c" in mismatch.diff
    assert "+ 2 b b" in mismatch.diff
    assert "  1 NULL" in mismatch.diff


def test_valuesort_forgets_rows() -> None:
    assert agrees(["(empty)", "1", "10", "2", "NULL", "b b"], SortMode.VALUESORT, Rules(mode=ResultMode.VALUEWISE))
    two = Answered((("2", "b"), ("1", "a")))
    assert compare(Answers(("1 a", "b 2"), SortMode.VALUESORT), two, Rules()) is None


def test_valuewise_results_have_a_line_a_value() -> None:
    assert agrees(["2", "b b", "1", "NULL", "10", "(empty)"], rules=Rules(mode=ResultMode.VALUEWISE))
    sort = SortMode.ROWSORT
    assert agrees(["10", "(empty)", "2", "b b", "1", "NULL"], sort, Rules(mode=ResultMode.VALUEWISE))


def test_many_values_may_be_given_as_a_hash() -> None:
    numbers = Answered((("1",), ("2",), ("3",)))
    expected = Answers(("3 values hashing to c0710d6b4f15dfa88f600b0e6b624077",))
    assert compare(expected, numbers, Rules(hash_threshold=2)) is None
    assert compare(expected, numbers, Rules(hash_threshold=3)) is not None


def test_ignored_parts_stand_for_anything() -> None:
    assert agrees(["2 <slt:ignore>", "1 NULL", "10 (empty)"])
    assert agrees(["2 b b", "<slt:ignore>"])
    assert not agrees(["3 <slt:ignore>", "1 NULL", "10 (empty)"])


def test_counts_are_of_touched_rows() -> None:
    assert compare(Counts(3), Answered(None, 3), Rules()) is None
    assert compare(Counts(3), Answered(None, 2), Rules()) is not None
    assert compare(Counts(2), Answered((("1",), ("2",)), None), Rules()) is None


ERROR = Refused('relation "shps" does not exist', "42P01", detail="no ships", hint='Perhaps you meant "ships".')


@pytest.mark.parametrize(
    ("expect", "agrees"),
    [
        (Fails(), True),
        (Fails(pattern=re.compile("shps.*exist")), True),
        (Fails(pattern=re.compile("^db error: ERROR: relation")), True),
        (Fails(pattern=re.compile("Perhaps")), True),
        (Fails(pattern=re.compile("nothing")), False),
        (Fails(text='relation "shps" does not exist'), True),
        (Fails(text='ERROR: relation "shps" does not exist\nDETAIL: no ships\nHINT: Perhaps you meant "ships".'), True),
        (Fails(text="relation"), False),
        (Fails(text='db error: ERROR: Failed\n\nCaused by:\n  relation "shps" does not exist'), True),
        (Fails(text="Failed\n\nCaused by these errors (recent errors listed first):\n  1: plan\n  2: no ships"), True),
        (Fails(text="db error: ERROR: Failed\n\nCaused by:\n  relation"), False),
        (Fails(sqlstate="42P01"), True),
        (Fails(sqlstate="42703"), False),
        (Succeeds(), False),
        (Counts(0), False),
        (Answers(()), False),
    ],
)
def test_an_error_is_expected_by_its_words_or_its_state(expect: Fails, agrees: bool) -> None:
    assert (compare(expect, ERROR, Rules()) is None) is agrees


def test_success_is_not_an_error() -> None:
    assert compare(Fails(), Answered(None, 1), Rules()) is not None
