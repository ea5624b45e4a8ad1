"""ALTER TABLE ... ADD, DROP, RENAME and ALTER COLUMN, and ALTER WATERMARK."""

from __future__ import annotations

from seiche.errors import FeatureNotSupported
from seiche.sql.grammar.create_table import column_definition, watermark_of
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.grammar.type_names import read_type
from seiche.sql.statements import (
    AddColumn,
    AlterColumns,
    DropColumn,
    ObjectKind,
    ObjectName,
    RenameColumn,
    RetypeColumn,
)


def alter_columns(cursor: Cursor, kind: ObjectKind, table: ObjectName) -> AlterColumns | None:
    """What follows ALTER TABLE <name>; None when it is none of ours, with the cursor where it was."""
    if kind is not ObjectKind.TABLE:
        return None
    if cursor.word() in ("add", "drop") and cursor.word(1) in ("constraint", "primary key", "unique", "check"):
        raise FeatureNotSupported(
            f"ALTER TABLE ... {cursor.word().upper()} {cursor.word(1).upper()} is not supported",
            position=cursor.position(),
        )
    if cursor.accept("add"):
        cursor.accept("column")
        if_not_exists = cursor.if_not_exists()
        position = cursor.position()
        column, is_key = column_definition(cursor, table)
        if is_key:
            raise FeatureNotSupported("ALTER TABLE cannot alter primary key columns", position=position)
        return AlterColumns(table, AddColumn(column, if_not_exists))
    if cursor.accept("drop"):
        cursor.accept("column")
        if_exists = cursor.accept("if", "exists")
        name = cursor.name()
        cascade = cursor.accept("cascade")
        if not cascade:
            cursor.accept("restrict")
        return AlterColumns(table, DropColumn(name, if_exists, cascade))
    if cursor.accept("rename"):
        cursor.accept("column")
        name = cursor.name()
        cursor.expect("to")
        return AlterColumns(table, RenameColumn(name, cursor.name()))
    if cursor.accept("alter", "watermark", "for"):
        name = cursor.name()
        cursor.expect("as")
        return AlterColumns(table, watermark_of(cursor, name))
    if cursor.word() == "alter":
        return _altered_column(cursor, table)
    return None


def _altered_column(cursor: Cursor, table: ObjectName) -> AlterColumns:
    cursor.expect("alter")
    cursor.accept("column")
    name = cursor.name()
    if not cursor.accept("type") and not cursor.accept("set", "data", "type"):
        raise cursor.unsupported("ALTER COLUMN other than TYPE")
    type_ = read_type(cursor)
    if cursor.sees("using"):
        raise cursor.unsupported("USING", hint="Fields are taken by their names.")
    return AlterColumns(table, RetypeColumn(name, type_))
