"""Renaming inside stored definitions, which are the user's own text: only the names change, the rest stays as typed.

    SELECT ships.name FROM ships JOIN north.ships n ...      ships is renamed to boats
    SELECT ships.name FROM boats AS ships JOIN north.ships n ...

A relation that had no alias gets its old name as one, so that whatever qualifies a column by it still does. Which
tables of a query are meant is what binding found: a name may also be that of a WITH query, or lie in another schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import InvariantError
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.tokens import tokenize

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


def spelled(name: str) -> str:
    """The name as SQL text, in double quotes where it would be folded or taken for a word of the language."""
    if _PLAIN.fullmatch(name) and [token.token_type for token in tokenize(name)] == [TokenType.VAR]:
        return name
    return '"' + name.replace('"', '""') + '"'


def with_own_name(definition: str, new_name: str) -> str:
    """A CREATE statement that creates the same under another name, in the same schema."""
    cursor = Cursor(definition, tokenize(definition), None)
    cursor.expect("create")
    cursor.accept("or", "replace")
    cursor.accept_temporary()
    cursor.kind()
    cursor.if_not_exists()
    return _with_next_name(cursor, new_name)


def with_into_named(definition: str, new_name: str) -> str:
    """A CREATE SINK … INTO that fills the same table, which has another name."""
    return _with_next_name(_at_into(definition), new_name)


def with_into_placed(definition: str, schema: str, name: str) -> str:
    """A CREATE SINK … INTO that fills the same table, which is in another schema."""
    cursor = _at_into(definition)
    first = cursor.tokens[cursor.index]
    cursor.object_name()
    last = cursor.tokens[cursor.index - 1]
    return cursor.text[: first.start] + f"{spelled(schema)}.{spelled(name)}" + cursor.text[last.end + 1 :]


def _at_into(definition: str) -> Cursor:
    cursor = Cursor(definition, tokenize(definition), None)
    cursor.expect("create", "sink")
    cursor.if_not_exists()
    cursor.object_name()
    cursor.expect("into")
    return cursor


def _with_next_name(cursor: Cursor, new_name: str) -> str:
    """The cursor's text with the last part of the name that comes next replaced."""
    cursor.object_name()
    last = cursor.tokens[cursor.index - 1]
    return cursor.text[: last.start] + spelled(new_name) + cursor.text[last.end + 1 :]


def with_relations_placed(definition: str, references: Iterable[tuple[exp.Table, str]]) -> str:
    """The definition with these tables of its queries, whose names stay, found in other schemas."""
    tokens = tokenize(definition)
    by_start = {token.start: index for index, token in enumerate(tokens)}
    edits: dict[int, tuple[int, str]] = {}
    for table, schema in references:
        index = _index_of(table, by_start, definition)
        edits[tokens[_first_part(tokens, index)].start] = (
            tokens[index].end,
            ".".join(spelled(part) for part in (table.catalog, schema, table.name) if part),
        )
    return _edited(definition, edits)


def with_database_named(definition: str, references: Iterable[exp.Table], new_name: str) -> str:
    """The definition with these tables of its queries, each with its database before it, found in another."""
    tokens = tokenize(definition)
    by_start = {token.start: index for index, token in enumerate(tokens)}
    firsts = [tokens[_first_part(tokens, _index_of(table, by_start, definition))] for table in references]
    return _edited(definition, {token.start: (token.end, spelled(new_name)) for token in firsts})


def with_relation_named(definition: str, references: Iterable[exp.Table], new_name: str) -> str:
    """The definition with these tables of its queries called by another name."""
    tokens = tokenize(definition)
    by_start = {token.start: index for index, token in enumerate(tokens)}
    edits: dict[int, tuple[int, str]] = {}
    for table in references:
        index = _index_of(table, by_start, definition)
        first = _first_part(tokens, index)
        before = tokens[first - 1] if first else None
        qualifier = definition[tokens[first].start : tokens[index].start]
        logged = before is not None and first > 1 and tokens[first - 2].text.lower() == "changelog"
        alias = "" if table.args.get("alias") or logged else f" AS {spelled(table.name)}"
        if before is not None and before.text.lower() == "table":  # TABLE ships takes no alias
            edits[before.start] = (tokens[index].end, f"SELECT * FROM {qualifier}{spelled(new_name)}{alias}")
        else:
            edits[tokens[index].start] = (tokens[index].end, f"{spelled(new_name)}{alias}")
    return _edited(definition, edits)


def _index_of(table: exp.Table, by_start: Mapping[int, int], definition: str) -> int:
    """Which token is the last part of the table's name."""
    at = table.this.meta.get("start")
    if at not in by_start:
        raise InvariantError(f'place of "{table.name}" in a definition is not known', detail=definition)
    return by_start[at]


def _edited(definition: str, edits: Mapping[int, tuple[int, str]]) -> str:
    """`edits`: where something begins, where it ends, and what takes its place."""
    for start in sorted(edits, reverse=True):
        end, text = edits[start]
        definition = definition[:start] + text + definition[end + 1 :]
    return definition


def _first_part(tokens: list[Token], index: int) -> int:
    """The index of the first part of a qualified name whose last part is at `index`."""
    while index >= 2 and tokens[index - 1].token_type is TokenType.DOT:
        index -= 2
    return index
