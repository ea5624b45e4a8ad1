"""The definition that SHOW CREATE shows: one way of writing, whatever way the user's was.

A table is shown with the columns that it has. The query of a view or a sink is written anew from its tree, in capitals
and on one line; where that would be in other words than the user's, or where a view has options, the user's text is
shown.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sqlglot import exp

from seiche.catalog.objects import DEFAULT_SCHEMA, CatalogObject, ObjectKind
from seiche.errors import SeicheError
from seiche.session.indexes import columns_text
from seiche.session.table_text import create_table_text, options_text
from seiche.sql import statements as ast
from seiche.sql.dialect import CHANGE_LOG
from seiche.sql.parse import parse, parse_query
from seiche.sql.statements import quote_name

_REMEMBERED = 4096  # definitions; to write one anew takes as long as to parse it
_WORD = re.compile(r"'(?:[^']|'')*'|[\w$]+")


def shown_definition(item: CatalogObject) -> str:
    match item.kind:
        case ObjectKind.TABLE | ObjectKind.SOURCE:
            return create_table_text(item)
        case ObjectKind.VIEW | ObjectKind.MATERIALIZED_VIEW:
            return _view(item.definition)
        case ObjectKind.SINK:
            return _sink(item.definition)
        case ObjectKind.INDEX:
            return _index(item)
        case _:
            return item.definition


def _index(item: CatalogObject) -> str:
    """Without blanks before parentheses, and with the relation's schema where it is not the usual one."""
    statement = parse(item.definition)[0].statement
    assert isinstance(statement, ast.CreateIndex)
    parts = statement.table.parts
    relation = ".".join(quote_name(part) for part in (parts[-1:] if item.schema == DEFAULT_SCHEMA else parts))
    return f"CREATE INDEX {quote_name(item.name)} ON {relation}{columns_text(statement, '')}"


@lru_cache(_REMEMBERED)
def _view(definition: str) -> str:
    statement = parse(definition)[0].statement
    match statement:
        case ast.CreateMaterializedView(emit_on_window_close=False, options=()):
            head = "CREATE MATERIALIZED VIEW"
        case ast.CreateView():
            head = "CREATE VIEW"
        case _:
            return definition
    query = _written(statement.query)
    if query is None:
        return definition
    name = ".".join(quote_name(part) for part in statement.name.parts)
    columns = f" ({', '.join(quote_name(column) for column in statement.columns)})" if statement.columns else ""
    return f"{head} {name}{columns} AS {query}"


@lru_cache(_REMEMBERED)
def _sink(definition: str) -> str:
    """A sink's query is written after AS, unless all of a relation is, after FROM."""
    statement = parse(definition)[0].statement
    if not isinstance(statement, ast.CreateSink) or statement.emit_on_window_close:
        return definition
    followed: str | None = statement.query.text.removeprefix("SELECT * ")
    if statement.query.text in definition:
        query = _written(statement.query)
        followed = f"AS {query}" if query is not None else None
    if followed is None:
        return definition
    text = f"CREATE SINK {statement.name}"
    if statement.into is not None:
        columns = ", ".join(quote_name(column) for column in statement.into_columns)
        text += f" INTO {statement.into}" + (f" ({columns})" if columns else "")
    return f"{text} {followed}{options_text(dict(statement.options))}"


def _written(query: ast.SqlQuery) -> str | None:
    """The query as one line; None where that has other words, or cannot be read back."""
    text: str = _with_change_logs(query.tree).sql("seiche", normalize_functions=False)
    if _words(text) != _words(query.text):
        return None
    try:
        again = parse_query(text).tree
    except SeicheError:
        return None
    return text if again == query.tree else None


def _with_change_logs(tree: exp.Expr) -> exp.Expr:
    """The tree with its change logs as they are read: they are no queries in parentheses."""
    logs = [table for table in tree.find_all(exp.Table) if table.meta.get(CHANGE_LOG)]
    if not logs:
        return tree
    copied: exp.Expr = tree.copy()
    for table in [each for each in copied.find_all(exp.Table) if each.meta.get(CHANGE_LOG)]:
        named = table.find_ancestor(exp.CTE)
        assert named is not None  # there is no other way to write one
        alias = named.args["alias"].sql("seiche")
        named.replace(exp.Var(this=f"{alias} AS changelog from {table.sql('seiche')}"))
    return copied


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text.lower()) if word != "as"]
