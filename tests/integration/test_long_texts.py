"""Regular expressions over long texts, for which Java calls itself for each letter: no text makes an epoch fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import seiche
from seiche.errors import InvalidParameter
from seiche.sql.regexes import LONGEST

pytestmark = pytest.mark.spark

DEEP = {
    "a": "s ~ '(a|b)*c'",
    "b": r"regexp_replace(s, '(?:\w+\s?)+$', 'x')",
    "c": "(regexp_match(s, '((a|b)(a|b))*'))[1]",
    "d": "s SIMILAR TO '(a|b|c)*'",
    "e": "regexp_count(s, '(ab?)+')",
    "f": "s ~ '((((a|b))))+c'",
    "g": "s ~ p",
}
SHALLOW = {"h": "s ~ '^(ab)*c'", "i": "regexp_count(s, 'a|b')", "j": "regexp_replace(s, '[ab]+', 'x')"}


def test_a_text_that_is_too_long_gives_null_in_a_view_and_an_error_in_a_query(
    open_database: Callable[..., seiche.Engine],
) -> None:
    db = open_database()
    db.execute("CREATE TABLE texts (id integer PRIMARY KEY, s text, p text)")
    cells = ", ".join(f"{made} AS {name}" for name, made in {**DEEP, **SHALLOW}.items())
    db.execute(f"CREATE MATERIALIZED VIEW found AS SELECT id, {cells} FROM texts")
    for number, length in enumerate((10, LONGEST, LONGEST + 2, 100 * LONGEST)):
        db.execute(f"INSERT INTO texts SELECT {number}, repeat('ab', {length // 2}), '(a|b)*c'")
    rows = db.execute("SELECT * FROM found ORDER BY id")[0].rows or []
    assert [tuple(row[1:8]) for row in rows] == [
        (False, "x", "ab", True, 1, False, False),
        (False, "x", "ab", True, 1, False, False),
        (None,) * 7,
        (None,) * 7,
    ]
    assert [tuple(row[8:]) for row in rows] == [
        (False, length, "x") for length in (10, LONGEST, LONGEST + 2, 1_000_000)
    ]
    for made in DEEP.values():
        with pytest.raises(InvalidParameter, match="too long for it"):
            db.execute(f"SELECT {made} FROM texts")[0].rows  # noqa: B018 -- rows are fetched when they are asked for
