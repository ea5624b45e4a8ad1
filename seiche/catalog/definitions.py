"""Definitions of objects as text: the query of a view, the key of a table, the statement that would make an index."""

from __future__ import annotations

import re

from seiche.catalog.catalog import quoted
from seiche.catalog.objects import CatalogObject, ObjectKind

# The parts of a statement that the word AS may hide in, each as one piece.
_PIECE = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \w+ | [()] | .""", re.VERBOSE | re.DOTALL
)


def query_of(view: CatalogObject) -> str:
    """The query of a view, as its definition has it: what follows the first AS outside any parenthesis."""
    depth = 0
    for piece in _PIECE.finditer(view.definition):
        match piece.group().lower():
            case "(":
                depth += 1
            case ")":
                depth -= 1
            case "as" if depth == 0:
                return view.definition[piece.end() :].strip().rstrip(";").rstrip()
    return view.definition


def key_of(table: CatalogObject) -> tuple[str, ...]:
    """The primary key that a table declares; empty for everything else."""
    return tuple(table.properties.get("primary_key", ())) if table.kind is ObjectKind.TABLE else ()


def key_constraint(table: CatalogObject) -> str:
    """The name of the primary key, which is also that of its index."""
    return f"{table.name}_pkey"


def key_definition(table: CatalogObject) -> str:
    return f"PRIMARY KEY ({', '.join(quoted(name) for name in key_of(table))})"


def index_columns(table: CatalogObject, index: CatalogObject | None) -> tuple[str, ...]:
    """The columns of an index; None is the primary key's."""
    if index is None:
        return key_of(table)
    return tuple(index.properties.get("columns") or [column.name for column in index.columns])


def index_definition(table: CatalogObject, index: CatalogObject | None, *, qualified: bool = True) -> str:
    unique, name = ("UNIQUE ", key_constraint(table)) if index is None else ("", index.name)
    place = f"{quoted(table.schema)}.{quoted(table.name)}" if qualified else quoted(table.name)
    return f"CREATE {unique}INDEX {quoted(name)} ON {place} USING btree {_index_body(table, index)}"


def _index_body(table: CatalogObject, index: CatalogObject | None) -> str:
    """What stands behind the table's name: columns and expressions in their order, and included columns."""
    if index is not None:
        head = f"CREATE INDEX {quoted(index.name)} ON {quoted(table.schema)}.{quoted(table.name)} "
        if index.definition.startswith(head):
            return index.definition.removeprefix(head).split(" DISTRIBUTED BY (")[0]
    return f"({', '.join(quoted(column) for column in index_columns(table, index))})"
