"""The reference in docs/sql.md is what is registered, and every entry of it has an answer to be compared with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from seiche.sql.aggregates import aggregate_names
from seiche.sql.collecting import HYPOTHETICAL, ORDERED
from seiche.sql.functions.registry import overloads
from seiche.sql.reference import OPERATORS, SYNTAX, updated
from seiche.sql.tables import SET_RETURNING
from seiche.sql.windows import window_names

ROOT = Path(__file__).parents[3]
INTEGRATION = ROOT / "tests" / "integration"
ASKED = "\n".join(
    path.read_text() for path in (*(INTEGRATION / "answers").glob("*.txt"), INTEGRATION / "test_postgres_answers.py")
).lower()
NAMES = sorted({*overloads(), *aggregate_names(), *HYPOTHETICAL, *ORDERED, *window_names(), *SET_RETURNING})


def test_the_reference_in_the_documents_is_up_to_date() -> None:
    path = ROOT / "docs" / "sql.md"
    text = path.read_text()
    assert updated(text) == text, "run python -m seiche.sql.reference docs/sql.md"


@pytest.mark.parametrize("name", NAMES)
def test_every_function_is_compared_with_an_answer(name: str) -> None:
    assert re.search(rf"\b{re.escape(name)}\(", ASKED) or _by_syntax(name)


def _by_syntax(name: str) -> bool:
    """Calls that are asked for by a syntax of their own."""
    words = {"timezone": "at time zone", "strpos": "strpos(", "position": "position(", "trim": "trim("}
    words |= {"current_user": "current_user is"}
    return name in words and words[name] in ASKED


@pytest.mark.parametrize("kind", OPERATORS)
def test_every_operator_is_compared_with_an_answer(kind: str) -> None:
    symbols = [word for word in OPERATORS[kind].lower().split(" ") if word not in ("[", "]", ":")]
    missing = [symbol for symbol in symbols if symbol not in ASKED]
    assert not missing


def test_every_syntax_is_compared_with_an_answer() -> None:
    assert not [word for word in SYNTAX if word.lower() not in ASKED and word != "proctime()"]
