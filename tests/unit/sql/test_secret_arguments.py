"""SECRET name as the argument of a call, and the word as the name that it may be anywhere else."""

from __future__ import annotations

import pytest
from sqlglot import exp

from seiche.errors import SyntaxError_
from seiche.sql.parse import parse_query
from seiche.sql.secret_arguments import parts_of


def secrets(query: str) -> list[tuple[str, ...]]:
    found = (parts_of(call) for call in parse_query(query).tree.find_all(exp.Anonymous))
    return [parts for parts in found if parts is not None]


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("SELECT notify(SECRET harbour_key)", ("harbour_key",)),
        ("SELECT notify(ship, secret Harbour_Key, 1) FROM ships", ("harbour_key",)),
        ('SELECT notify(ship, SECRET "Harbour Key") FROM ships', ("Harbour Key",)),
        ("SELECT notify(SECRET east.harbour_key) FROM ships", ("east", "harbour_key")),
        ("SELECT notify(key => SECRET harbour_key)", ("harbour_key",)),
    ],
)
def test_a_secret_is_an_argument(query: str, parts: tuple[str, ...]) -> None:
    assert secrets(query) == [parts]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT secret FROM ships",
        "SELECT id, secret x, name FROM ships",
        "SELECT * FROM (SELECT id, secret x FROM ships) AS s",
        "SELECT upper(secret), secret.name FROM secret",
        "SELECT 'notify(SECRET key)' FROM ships ORDER BY id, secret",
    ],
)
def test_the_word_is_a_name_elsewhere(query: str) -> None:
    assert secrets(query) == []


def test_a_secret_without_a_name_is_a_syntax_error() -> None:
    with pytest.raises(SyntaxError_):
        parse_query("SELECT notify(ship, SECRET 'harbour_key')")
