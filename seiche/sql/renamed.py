"""A stored CREATE statement under another name: the rest of the user's text stays as it was written."""

from __future__ import annotations

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
