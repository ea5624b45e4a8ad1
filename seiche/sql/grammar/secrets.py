"""Secrets: CREATE SECRET and ALTER SECRET."""

from __future__ import annotations

from seiche.sql.grammar.cursor import Cursor
from seiche.sql.statements import AlterSecret, CreateSecret, ObjectName


def create_secret(cursor: Cursor) -> CreateSecret:
    """CREATE SECRET [IF NOT EXISTS] name WITH (backend = 'meta') AS 'text'"""
    if_not_exists = cursor.if_not_exists()
    name = cursor.object_name()
    options = cursor.options() if cursor.accept("with") else ()
    cursor.expect("as")
    return CreateSecret(name, cursor.string(), options, if_not_exists)


def alter_secret(cursor: Cursor, name: ObjectName) -> AlterSecret:
    """ALTER SECRET name [WITH (backend = 'meta')] AS 'text', from behind the name on."""
    options = cursor.options() if cursor.accept("with") else ()
    cursor.expect("as")
    return AlterSecret(name, cursor.string(), options)
