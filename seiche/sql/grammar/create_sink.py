"""CREATE SINK [IF NOT EXISTS] name [INTO table [(column, …)]] {AS query | FROM relation} [WITH (…)]."""

from __future__ import annotations

from functools import partial

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from seiche.errors import FeatureNotSupported, SyntaxError_
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.statements import CreateSink, SqlQuery

# What stands before a relation that is followed as it is.
_ALL_OF = (Token(TokenType.SELECT, "SELECT"), Token(TokenType.STAR, "*"), Token(TokenType.FROM, "FROM"))
_FORMATS = frozenset({"plain", "upsert", "debezium", "debezium_mongo", "maxwell", "canal", "native", "none"})


def create_sink(cursor: Cursor) -> CreateSink:
    if_not_exists = cursor.if_not_exists()
    name = cursor.object_name()
    into = cursor.object_name() if cursor.accept("into") else None
    into_columns = cursor.column_names() if into is not None else ()
    end = cursor.region(partial(_ends_query, cursor))
    emit = False
    if cursor.accept("from"):
        tree, source = cursor.take(end, None, _ALL_OF)
        if not isinstance(tree, exp.Select) or not _is_plain(tree):
            raise cursor.error(hint="Write the query after AS.")
        query = SqlQuery(tree, f"SELECT * FROM {source}")
    else:
        cursor.expect("as")
        query, emit = cursor.emitting_query(end)
    position = cursor.position()
    connected = cursor.accept("with")
    options = cursor.options() if connected else ()
    if into is None and not connected:
        raise SyntaxError_(
            "a sink needs a connector or a table",
            detail="sql parser error: missing WITH clause",
            hint="Write INTO and a table, or WITH (connector = 'blackhole').",
            position=position,
        )
    if cursor.sees("format"):
        raise FeatureNotSupported(
            "connector table is not supported by FORMAT ... ENCODE ... syntax"
            if into is not None
            else "FORMAT ... ENCODE ... is not supported in a sink",
            hint="Leave it out: no connector that is offered encodes rows.",
            position=cursor.position(),
        )
    return CreateSink(name, query, options, if_not_exists, emit, into, into_columns, columns=into_columns)


def _ends_query(cursor: Cursor, index: int) -> bool:
    """WITH leads the options where a parenthesis follows; the one of a query has a name there."""
    ahead = index - cursor.index
    if cursor.word(ahead) == "format":
        return cursor.word(ahead + 1) in _FORMATS
    return cursor.word(ahead) == "with" and cursor.sees_symbol(TokenType.L_PAREN, ahead + 1)


def _is_plain(tree: exp.Select) -> bool:
    """Whether there is nothing but one relation behind FROM."""
    clause = tree.args.get("from_") or tree.args.get("from")
    others = [part for part in ("joins", "where", "group", "having", "order", "limit", "offset") if tree.args.get(part)]
    return clause is not None and isinstance(clause.this, exp.Table) and not others
