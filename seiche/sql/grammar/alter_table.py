"""ALTER TABLE ... ADD, DROP and RENAME COLUMN, and ALTER WATERMARK."""

from __future__ import annotations

from seiche.errors import FeatureNotSupported
from seiche.sql.grammar.create_table import column_definition, watermark_of
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.statements import AddColumn, AlterColumns, DropColumn, ObjectKind, ObjectName, RenameColumn


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
    return None
