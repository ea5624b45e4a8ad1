"""What a database answered, and whether that is what a record expects.

Values are compared as text: NULL is `NULL`, an empty string is `(empty)`, the values of a row are joined by a blank,
and any run of white space counts as one blank. Sorting happens on both sides, so that a file may list its rows in any
order. `<slt:ignore>` in an expected line stands for anything.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from seiche.cli.slt.records import Answers, Counts, Expectation, Fails, ResultMode, SortMode, Succeeds

IGNORE = "<slt:ignore>"
_PREFIX = "db error: "
_CAUSED_BY = re.compile(r"^Caused by(?: these errors \(recent errors listed first\))?:\n", re.MULTILINE)
_NUMBERED = re.compile(r"^ +[0-9]+: ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answered:
    """A statement's outcome. `rows` is None where it gives none; `count` is the rows it touched, where it tells."""

    rows: tuple[tuple[str | None, ...], ...] | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """A statement's error, in the words a PostgreSQL client shows."""

    message: str
    sqlstate: str = ""
    detail: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        lines = [f"ERROR: {self.message}"]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Rules:
    """How results are compared, as far as `control` lines say."""

    sort: SortMode = SortMode.NOSORT
    mode: ResultMode = ResultMode.ROWWISE
    hash_threshold: int = 0


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why a record failed. `diff` is for results of several lines: `-` expected, `+` found."""

    expected: str
    found: str
    diff: tuple[str, ...] = ()


def compare(expect: Expectation, outcome: Answered | Refused, rules: Rules) -> Mismatch | None:
    """None where the outcome is what was expected."""
    match expect:
        case Fails():
            return _compare_failure(expect, outcome)
        case _ if isinstance(outcome, Refused):
            return Mismatch("success", str(outcome))
        case Succeeds():
            return None
        case Counts(rows):
            found = outcome.count if outcome.count is not None else len(outcome.rows or ())
            return None if found == rows else Mismatch(f"{rows} rows", f"{found} rows")
        case Answers():
            return _compare_rows(expect, outcome, rules)
        case _:
            assert_never(expect)


def _compare_failure(expect: Fails, outcome: Answered | Refused) -> Mismatch | None:
    if isinstance(outcome, Answered):
        return Mismatch("an error", "success")
    said = f"{_PREFIX}{outcome}"
    if expect.sqlstate is not None and expect.sqlstate != outcome.sqlstate:
        return Mismatch(f"an error of SQLSTATE {expect.sqlstate}", f"SQLSTATE {outcome.sqlstate}\n{outcome}")
    if expect.pattern is not None and not expect.pattern.search(said):
        return Mismatch(f"an error with {expect.pattern.pattern}", str(outcome))
    if expect.text is not None and expect.text not in (said, str(outcome), outcome.message):
        cause = _innermost_cause(expect.text)
        if cause is None or cause not in (outcome.message, outcome.detail):
            return Mismatch(expect.text, str(outcome))
    return None


def _innermost_cause(text: str) -> str | None:
    """What a text in RisingWave's layout ends with: the other lines name the parts of the server that handed it on."""
    causes = _CAUSED_BY.split(text, maxsplit=1)
    return _NUMBERED.split(causes[1])[-1].strip() if len(causes) > 1 else None


def _compare_rows(expect: Answers, outcome: Answered, rules: Rules) -> Mismatch | None:
    sort = expect.sort or rules.sort
    found = shown_lines(outcome.rows or (), sort, rules)
    expected = [_plain(line) for line in expect.lines]
    match sort:
        case SortMode.NOSORT:
            pass
        case SortMode.ROWSORT:
            expected = _sorted_rows(expected, rules.mode, outcome.rows or ())
        case SortMode.VALUESORT:
            if rules.mode is ResultMode.ROWWISE and any(" " in line for line in expected):
                expected = [word for line in expected for word in line.split()]
            expected.sort()
        case _:
            assert_never(sort)
    if len(found) == len(expected) and all(map(_equal, expected, found)):
        return None
    if sum(IGNORE in line for line in expected) and _equal("\n".join(expected), "\n".join(found)):
        return None
    return Mismatch("\n".join(expected), "\n".join(found), tuple(_diff(expected, found)))


def shown_lines(rows: Sequence[Sequence[str | None]], sort: SortMode, rules: Rules) -> list[str]:
    """Rows as the lines that a file would have for them."""
    values = [[_shown(value) for value in row] for row in rows]
    match sort:
        case SortMode.NOSORT:
            pass
        case SortMode.ROWSORT:
            values.sort()
        case SortMode.VALUESORT:
            values = [[value] for value in sorted(value for row in values for value in row)]
        case _:
            assert_never(sort)
    count = sum(len(row) for row in values)
    if rules.hash_threshold and count > rules.hash_threshold:
        digest = hashlib.md5("".join(f"{value}\n" for row in values for value in row).encode(), usedforsecurity=False)
        return [f"{count} values hashing to {digest.hexdigest()}"]
    if rules.mode is ResultMode.VALUEWISE:
        return [value for row in values for value in row]
    lines = [_plain(" ".join(row)) for row in values]
    return sorted(lines) if sort is SortMode.ROWSORT else lines


def _sorted_rows(lines: list[str], mode: ResultMode, rows: Sequence[Sequence[str | None]]) -> list[str]:
    """Expected rows in the order of the found ones. In valuewise files a row takes as many lines as it has values."""
    width = len(rows[0]) if rows else 1
    if mode is ResultMode.ROWWISE or len(lines) % width:
        return sorted(lines)
    grouped = sorted(lines[first : first + width] for first in range(0, len(lines), width))
    return [line for row in grouped for line in row]


def _shown(value: str | None) -> str:
    if value is None:
        return "NULL"
    return _plain(value) if value else "(empty)"


def _plain(text: str) -> str:
    return " ".join(text.split())


def _equal(expected: str, found: str) -> bool:
    if IGNORE not in expected:
        return expected == found
    pattern = ".*".join(re.escape(part) for part in expected.split(IGNORE))
    return re.fullmatch(pattern, found, re.DOTALL) is not None


def _diff(expected: Sequence[str], found: Sequence[str]) -> list[str]:
    return [line for line in difflib.ndiff(expected, found) if not line.startswith("?")]
