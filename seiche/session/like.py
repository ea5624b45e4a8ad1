"""CREATE TABLE (LIKE …): the columns of another relation, as they are now, in the place where LIKE is written.

Names, types and NOT NULL always come along, that of the columns of a primary key too. Defaults, generation expressions
and the primary key come with INCLUDING only. Nothing ties the two tables to each other afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import DuplicateColumn, InvalidTable, UndefinedColumn, nearest
from seiche.model import ROW_ID, Column
from seiche.sql import statements as ast
from seiche.sql.parse import parse_expression
from seiche.sql.places import PlacedName, pointing_at

_KINDS = (ObjectKind.TABLE, ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW, ObjectKind.SOURCE)


def spelled_out(statement: ast.CreateTable, catalog: Catalog, search_path: Sequence[str]) -> ast.CreateTable:
    """The statement without LIKE."""
    if not statement.likes:
        return statement
    columns: list[ast.ColumnDef] = []
    key, taken = statement.primary_key, 0
    for like in statement.likes:
        with pointing_at(PlacedName(like.table.name, like.table.place)):
            source = catalog.find(like.table.parts, search_path=search_path, kinds=_KINDS)
        columns += statement.columns[taken : like.place]
        taken = like.place
        columns += [_copied(column, source, like) for column in source.columns if not column.hidden]
        if "indexes" in like.including and (copied := _key(source)):
            if key:
                raise InvalidTable(f'multiple primary keys for table "{statement.name}" are not allowed')
            key = copied
    columns += statement.columns[taken:]
    names = [column.name for column in columns]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise DuplicateColumn(f'column "{name}" specified more than once')
    for watermark in statement.watermarks:
        if watermark.column not in names:
            raise UndefinedColumn(
                f'column "{watermark.column}" named in watermark does not exist', hint=nearest(watermark.column, names)
            )
    return replace(statement, columns=tuple(columns), primary_key=key, likes=())


def left_out(statement: ast.CreateTable, catalog: Catalog, search_path: Sequence[str]) -> str | None:
    """What a user might miss though INCLUDING INDEXES was written: indexes are relations of their own."""
    for like in statement.likes:
        source = catalog.find(like.table.parts, search_path=search_path, kinds=_KINDS)
        indexes = [each for each in catalog.objects(ObjectKind.INDEX) if source.id in each.dependencies]
        if "indexes" in like.including and indexes:
            return f'of the indexes of "{source.name}" only the primary key is copied; create the others yourself'
    return None


def _key(source: CatalogObject) -> tuple[str, ...]:
    """The primary key of a table that has one."""
    declared = source.kind is ObjectKind.TABLE and source.relation is not None and ROW_ID not in source.relation.key
    return source.relation.key if declared and source.relation is not None else ()


def _copied(column: Column, source: CatalogObject, like: ast.Like) -> ast.ColumnDef:
    default = parse_expression(column.default) if column.default and "defaults" in like.including else None
    generated = parse_expression(column.generated) if column.generated and "generated" in like.including else None
    nullable = column.nullable and column.name not in _key(source)
    return ast.ColumnDef(column.name, column.as_shown.type, nullable, default, generated)
