"""Which statements of a text take effect together."""

from __future__ import annotations

import pytest

from seiche.session.together import stretches
from seiche.sql.parse import parse


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("INSERT INTO a VALUES (1); UPDATE a SET b = 2; DELETE FROM a; TRUNCATE a", [4]),
        ("INSERT INTO a VALUES (1)", [1]),
        ("SELECT 1; SELECT 2", [1, 1]),
        ("INSERT INTO a VALUES (1); SELECT 1; INSERT INTO a VALUES (2); INSERT INTO a VALUES (3)", [1, 1, 2]),
        ("INSERT INTO a VALUES (1); FLUSH; INSERT INTO a VALUES (2)", [1, 1, 1]),
        ("INSERT INTO a VALUES (1); CREATE TABLE b (c int); INSERT INTO b VALUES (2)", [1, 1, 1]),
        ("INSERT INTO a VALUES (1) RETURNING b; INSERT INTO a VALUES (2)", [1, 1]),
        ("BEGIN; INSERT INTO a VALUES (1); INSERT INTO a VALUES (2); COMMIT", [1, 2, 1]),
    ],
)
def test_writes_that_follow_each_other_go_together(text: str, lengths: list[int]) -> None:
    assert [len(each) for each in stretches(parse(text))] == lengths
