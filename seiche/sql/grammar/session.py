"""Statements about the session and the system around it: transactions, SET and SHOW, DESCRIBE, CANCEL."""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import TokenType

from seiche.errors import FeatureNotSupported
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.statements import (
    Begin,
    CancelJobs,
    Commit,
    Describe,
    Listing,
    ObjectKind,
    ResetAll,
    Rollback,
    RollbackTo,
    SetTransaction,
    SetVariable,
    ShowAll,
    ShowColumns,
    ShowCreate,
    ShowObjects,
    ShowParameters,
    ShowVariable,
    Statement,
)

_SHOWN = (
    ObjectKind.TABLE,
    ObjectKind.VIEW,
    ObjectKind.MATERIALIZED_VIEW,
    ObjectKind.INDEX,
    ObjectKind.SOURCE,
    ObjectKind.SINK,
    ObjectKind.FUNCTION,
    ObjectKind.SUBSCRIPTION,
)


def begin(cursor: Cursor) -> Begin:
    if cursor.word(-1) == "start":
        cursor.expect("transaction")
    elif not cursor.accept("transaction"):
        cursor.accept("work")
    read_only, isolation = _modes(cursor)
    return Begin(read_only or False, isolation)


def _modes(cursor: Cursor) -> tuple[bool | None, str | None]:
    """The modes of a transaction, all of which are read: whether it is read only, and its isolation, each None if that
    was not said."""
    read_only: bool | None = None
    isolation: str | None = None
    while cursor.peek() is not None:
        if cursor.accept("isolation", "level"):
            if cursor.accept("serializable"):
                isolation = "serializable"
            elif cursor.accept("repeatable", "read"):
                isolation = "repeatable read"
            else:
                cursor.expect("read")
                isolation = "read committed" if cursor.accept("committed") else "read uncommitted"
                if isolation == "read uncommitted":
                    cursor.expect("uncommitted")
        elif cursor.accept("read", "only"):
            read_only = True
        elif cursor.accept("read"):
            cursor.expect("write")
            read_only = False
        elif not cursor.accept("not", "deferrable"):
            cursor.expect("deferrable")
        if cursor.accept_symbol(TokenType.COMMA) and cursor.peek() is None:
            raise cursor.error()
    return read_only, isolation


def end_transaction(cursor: Cursor, statement: Commit | Rollback) -> Commit | Rollback | RollbackTo:
    if not cursor.accept("transaction"):
        cursor.accept("work")
    if isinstance(statement, Rollback) and cursor.accept("to"):
        cursor.accept("savepoint")
        return RollbackTo(cursor.name())
    if cursor.sees("and", "chain"):
        raise cursor.unsupported("AND CHAIN")
    cursor.accept("and", "no", "chain")
    return statement


def set_(cursor: Cursor) -> SetVariable | SetTransaction:
    if cursor.accept("session", "characteristics"):
        cursor.expect("as", "transaction")
        return SetTransaction(*_modes(cursor), session=True)
    if cursor.sees("transaction") and cursor.word(1) in ("isolation", "read", "not", "deferrable"):
        cursor.index += 1
        return SetTransaction(*_modes(cursor))
    local = cursor.accept("local")
    if not local and cursor.word(1) not in ("", "to"):
        cursor.accept("session")
    if cursor.word() == "authorization":
        raise cursor.unsupported("SET SESSION AUTHORIZATION")
    if cursor.word() in ("transaction", "role", "constraints") and cursor.word(1) != "to":
        raise cursor.unsupported(f"SET {cursor.word().upper()}")
    if cursor.accept("time", "zone"):
        if cursor.accept("default") or cursor.accept("local"):
            return SetVariable("timezone", None, local)
        if cursor.accept("interval"):
            return SetVariable("timezone", _offset(cursor), local)
        return SetVariable("timezone", cursor.value(), local)
    if cursor.sees("names") and cursor.sees_symbol(TokenType.STRING, 1):
        cursor.index += 1
        return SetVariable("client_encoding", cursor.string(), local)
    if cursor.sees("schema") and cursor.sees_symbol(TokenType.STRING, 1):
        cursor.index += 1
        return SetVariable("search_path", cursor.string(), local)
    name = _variable(cursor)
    if name == "timezone" and cursor.word(1) == "local":
        cursor.index += 2
        return SetVariable(name, None, local)
    return SetVariable(name, cursor.setting(), local)


def _offset(cursor: Cursor) -> str:
    """`'+02:00' HOUR TO MINUTE`: the hours east of Greenwich."""
    position = cursor.position()
    offset = cursor.string()
    cursor.expect("hour", "to", "minute")
    hours, _, minutes = offset.strip().partition(":")
    if not re.fullmatch(r"[+-]?\d{1,2}", hours) or minutes.strip("0"):
        raise FeatureNotSupported(
            f"a time zone of {offset} is not supported", hint="Name the zone, or write UTC.", position=position
        )
    return str(int(hours))


def _variable(cursor: Cursor) -> str:
    """Variables are known by their lower-case names, quoted or not."""
    return ".".join(cursor.object_name().parts).lower()


def reset(cursor: Cursor) -> SetVariable | ResetAll:
    if cursor.accept("all"):
        return ResetAll()
    if cursor.accept("time", "zone"):
        return SetVariable("timezone", None)
    return SetVariable(_variable(cursor), None)


def show(cursor: Cursor) -> Statement:
    if cursor.accept("all"):
        return ShowAll()
    if cursor.accept("parameters"):
        return ShowParameters(_like(cursor))
    if cursor.accept("create"):
        kind = cursor.kind()
        if kind not in _SHOWN:
            raise cursor.unsupported(f"SHOW CREATE {kind.value.upper()}")
        return ShowCreate(kind, cursor.object_name())
    if cursor.accept("columns"):
        if not cursor.accept("in"):
            cursor.expect("from")
        return ShowColumns(cursor.object_name(), _like(cursor))
    if cursor.accept("time", "zone"):
        return ShowVariable("timezone")
    if cursor.accept("transaction", "isolation", "level"):
        return ShowVariable("transaction_isolation")
    for listing in Listing:
        if cursor.accept(*listing.value.split()):
            source = cursor.object_name() if cursor.accept("from") or cursor.accept("in") else None
            return ShowObjects(listing, source, _like(cursor))
    return ShowVariable(_variable(cursor))


def _like(cursor: Cursor) -> str | None:
    return cursor.string() if cursor.accept("like") else None


def describe(cursor: Cursor) -> Describe:
    return Describe(cursor.object_name())


def cancel(cursor: Cursor) -> CancelJobs:
    if not cursor.accept("jobs"):
        cursor.expect("job")
    return CancelJobs(cursor.comma_separated(cursor.integer))
