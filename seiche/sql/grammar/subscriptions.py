"""Subscriptions: CREATE SUBSCRIPTION, and cursors over them."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from seiche.sql.grammar.cursor import Cursor
from seiche.sql.statements import CreateSubscription, DeclareSubscriptionCursor, Since

_WORDS = {"now": Since.NOW, "proctime": Since.NOW, "begin": Since.BEGIN}


def create_subscription(cursor: Cursor) -> CreateSubscription:
    """CREATE SUBSCRIPTION [IF NOT EXISTS] name FROM relation WITH (retention = …)"""
    if_not_exists = cursor.if_not_exists()
    name = cursor.object_name()
    cursor.expect("from")
    source = cursor.object_name()
    options = cursor.options() if cursor.accept("with") else ()
    return CreateSubscription(name, source, options, if_not_exists)


def declare_subscription_cursor(cursor: Cursor, name: str) -> DeclareSubscriptionCursor:
    """DECLARE name SUBSCRIPTION CURSOR FOR subscription [SINCE now() | proctime() | begin() | milliseconds | FULL]"""
    cursor.expect("cursor", "for")
    subscription = cursor.object_name()
    since: Since | int = Since.NOW
    if cursor.accept("full"):
        since = Since.FULL
    elif cursor.accept("since"):
        since = _since(cursor)
    return DeclareSubscriptionCursor(name, subscription, since)


def _since(cursor: Cursor) -> Since | int:
    if cursor.sees_symbol(TokenType.NUMBER):
        return cursor.integer()
    word = cursor.word()
    if word not in _WORDS:
        raise cursor.error(hint="Write now(), begin() or a time in milliseconds since 1970.")
    cursor.index += 1
    cursor.expect_symbol(TokenType.L_PAREN)
    cursor.expect_symbol(TokenType.R_PAREN)
    return _WORDS[word]
