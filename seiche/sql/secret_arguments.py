"""`f(x, SECRET name)`: a secret as the argument of a function that a user wrote, and nowhere else.

The word and the name become a call among the tokens, which the binding of a user's function knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import FeatureNotSupported
from seiche.sql.nodes import text
from seiche.sql.tokens import FOLDED

REFERENCE = "seiche_secret"
_NAME = (TokenType.VAR, TokenType.IDENTIFIER)
_BEFORE = (TokenType.L_PAREN, TokenType.COMMA, TokenType.FARROW)
_AFTER = (TokenType.COMMA, TokenType.R_PAREN)


@runtime_checkable
class Secrets(Protocol):
    """Where names are looked up, if there are secrets among them."""

    def secret(self, parts: tuple[str, ...]) -> str:
        """The text of a secret, by its name or the name of its schema and its own."""


def with_references(tokens: Sequence[Token]) -> list[Token]:
    """The tokens with each `SECRET name` between the parentheses of a call as a call itself."""
    made: list[Token] = []
    calls: list[bool] = []  # for each open parenthesis: whether it holds arguments
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token.token_type is TokenType.L_PAREN:
            calls.append(index > 0 and tokens[index - 1].token_type in _NAME)
        elif token.token_type is TokenType.R_PAREN and calls:
            calls.pop()
        end = _end_of_reference(tokens, index) if calls and calls[-1] else index
        if end == index:
            made.append(token)
            index += 1
            continue
        parts = [part for part in tokens[index + 1 : end] if part.token_type in _NAME]
        made += [_like(token, TokenType.VAR, REFERENCE), _like(token, TokenType.L_PAREN, "(")]
        for part in parts:
            if part is not parts[0]:
                made.append(_like(part, TokenType.COMMA, ","))
            quoted = part.token_type is TokenType.IDENTIFIER
            made.append(_like(part, TokenType.STRING, part.text if quoted else part.text.translate(FOLDED)))
        made.append(_like(parts[-1], TokenType.R_PAREN, ")"))
        index = end
    return made


def _end_of_reference(tokens: Sequence[Token], index: int) -> int:
    """Behind the name of a secret that is written here; the same index where none is."""
    if tokens[index].token_type is not TokenType.VAR or tokens[index].text.lower() != "secret":
        return index
    if index == 0 or tokens[index - 1].token_type not in _BEFORE:
        return index
    end = index + 1
    while end < len(tokens) and tokens[end].token_type in _NAME:
        if end + 1 < len(tokens) and tokens[end + 1].token_type is TokenType.DOT:
            end += 2
            continue
        return end + 1 if end + 1 < len(tokens) and tokens[end + 1].token_type in _AFTER else index
    return index


def _like(token: Token, kind: TokenType, written: str) -> Token:
    return Token(kind, written, token.line, token.col, token.start, token.end)


def parts_of(node: exp.Expr) -> tuple[str, ...] | None:
    """The name of the secret that an argument is; None for any other."""
    if not isinstance(node, exp.Anonymous) or str(node.this).lower() != REFERENCE:
        return None
    return tuple(part.name for part in node.expressions)


def looked_up(names: object, node: exp.Expr) -> exp.Expr | None:
    """The text of the secret that an argument is, as a constant; None for any other argument."""
    parts = parts_of(node)
    if parts is None or not isinstance(names, Secrets):
        return None
    return text(names.secret(parts))


def misplaced() -> FeatureNotSupported:
    return FeatureNotSupported(
        "a secret cannot be used here",
        detail="A secret reference is only allowed in user-defined function arguments.",
    )
