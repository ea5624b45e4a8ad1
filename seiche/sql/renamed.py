"""A stored CREATE statement with another name or other options: the rest of the user's text stays as it was written."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot.tokenizer_core import TokenType

from seiche.catalog.catalog import quoted
from seiche.errors import InvariantError
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.tokens import tokenize


def renamed(definition: str, parts: tuple[str, ...]) -> str:
    """The definition of a relation, a sink or a function with the name `parts` in place of its own."""
    tokens = tokenize(definition)
    cursor = Cursor(definition, tokens, None)
    cursor.expect("create")
    cursor.accept("or", "replace")
    cursor.accept_temporary()
    cursor.accept("materialized")
    if not any(cursor.accept(kind) for kind in ("table", "view", "source", "sink", "function", "aggregate")):
        raise InvariantError("a definition that has no name to change was renamed", detail=definition)
    cursor.if_not_exists()
    first = cursor.index
    cursor.object_name()
    start, end = tokens[first].start, tokens[cursor.index - 1].end + 1
    return definition[:start] + ".".join(quoted(part) for part in parts) + definition[end:]


def with_options(definition: str, options: Mapping[str, str]) -> str:
    """The definition of a materialized view that has options, with these in their place."""
    tokens = tokenize(definition)
    cursor = Cursor(definition, tokens, None)
    cursor.expect("create", "materialized", "view")
    cursor.if_not_exists()
    cursor.object_name()
    if cursor.sees_symbol(TokenType.L_PAREN):
        cursor.in_parentheses(cursor.name)
    cursor.expect("with")
    first = cursor.index
    cursor.options()
    start, end = tokens[first].start, tokens[cursor.index - 1].end + 1
    written = ", ".join(f"{name} = {_written(value)}" for name, value in options.items())
    return f"{definition[:start]}({written}){definition[end:]}"


def _written(value: str) -> str:
    """A number or a call as it is, anything else as a string."""
    if value.isdecimal() or value.endswith(")"):
        return value
    return "'" + value.replace("'", "''") + "'"
