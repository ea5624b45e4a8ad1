"""Chains of AND and OR, as Spark's parser gets to read them."""

from __future__ import annotations

import pytest
from sqlglot import exp

from seiche.sql.nodes import conjunction, disjunction, typed
from seiche.types import BOOLEAN


def _flag(name: str) -> exp.Expr:
    return typed(exp.column(name), BOOLEAN)


A, B, C, D = (_flag(name) for name in "abcd")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (disjunction([disjunction([disjunction([A, B]), C]), D]), "a OR b OR c OR d"),
        (disjunction([A, disjunction([B, disjunction([C, D])])]), "a OR b OR c OR d"),
        (conjunction([conjunction([A, B]), conjunction([C, D])]), "a AND b AND c AND d"),
        (disjunction([conjunction([A, B]), C]), "(a AND b) OR c"),
        (conjunction([disjunction([A, B]), C]), "(a OR b) AND c"),
        (disjunction([exp.Paren(this=disjunction([A, B])), C]), "a OR b OR c"),
        (disjunction([A]), "a"),
        (disjunction([]), "FALSE"),
        (conjunction([]), "TRUE"),
    ],
)
def test_a_chain_has_parentheses_only_around_chains_of_the_other_kind(made: exp.Expr, text: str) -> None:
    assert made.sql("spark") == text
