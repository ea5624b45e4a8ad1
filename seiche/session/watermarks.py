"""WATERMARK FOR: what a table may declare, where its watermark is kept, and which columns of relations have bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import FeatureNotSupported, InvalidDefinition, UndefinedColumn, UndefinedObject
from seiche.model import Column, ObjectId, RelationId
from seiche.plan.algebra import Plan
from seiche.plan.closing import Bounds, Known, watermarks
from seiche.plan.marks import MARKED_KINDS, mark, watermark_schema
from seiche.session.rename import internal_name
from seiche.sql import statements as ast
from seiche.sql.bind import Settings, bind_expression
from seiche.stream.watermark import Watermark
from seiche.types import SqlType

# SHOW CREATE TABLE tells words of the grammar in capitals.
_INTERVAL = re.compile(r"\binterval(\s+'[^']*')((?:\s+(?:second|minute|hour|day|month|year)\b)?)", re.IGNORECASE)

WATERMARKS, RELATION, TTL = "watermarks", "watermark_relation", "watermark_ttl"  # properties of a table


def check_watermarks(declared: Sequence[ast.Watermark], columns: Sequence[Column], *, append_only: bool) -> None:
    """Raises what is wrong with the watermarks of a table."""
    for each in declared:
        check_expression(each, columns)
        if not append_only and not each.ttl:
            raise InvalidDefinition(
                "a watermark needs an append-only table",
                detail="Defining watermarks on table requires the table to be append only, or rows below could change.",
                hint="Add APPEND ONLY, or WITH TTL to the watermark.",
            )
    if len(declared) > 1:
        raise FeatureNotSupported("a table cannot have more than one watermark")


def check_expression(declared: ast.Watermark, columns: Sequence[Column]) -> None:
    type_ = next(column.type for column in columns if column.name == declared.column)
    bound = bind_expression(declared.expression.tree, columns, Settings(timezone="UTC", now_ms=0, strict=True))
    if bound.type.bare != type_.bare:
        raise InvalidDefinition(
            f'watermark of column "{declared.column}" is of another type than the column',
            detail="The return value type of the watermark expression must be identical to the watermark column data "
            f"type. Current data type of watermark return value: `{bound.type}`, column `{type_}`",
        )
    if type_.kind not in MARKED_KINDS:
        raise FeatureNotSupported(
            f"a column of type {type_} cannot have a watermark", hint="Use an integer, a date or a timestamp."
        )
    if bound.volatile or bound.uses_now:
        raise InvalidDefinition(f'watermark of column "{declared.column}" must follow from the row alone')


def properties_of(declared: Sequence[ast.Watermark]) -> dict[str, object]:
    if not declared:
        return {}
    kept: dict[str, object] = {WATERMARKS: [[each.column, each.expression.text] for each in declared]}
    return {**kept, TTL: True} if any(each.ttl for each in declared) else kept


def with_watermark(table: CatalogObject, declared: ast.Watermark) -> CatalogObject:
    """The table with another expression for the watermark that it has."""
    names = [column for column, _ in table.properties.get(WATERMARKS, ())]
    if declared.column not in names:
        raise UndefinedObject(f'no watermark defined on column "{declared.column}"')
    check_expression(declared, table.columns)
    if declared.ttl != bool(table.properties.get(TTL)):
        raise FeatureNotSupported("toggling WITH TTL of a watermark is not supported")
    properties = {**table.properties, **properties_of([declared])}
    written = _INTERVAL.sub(lambda found: f"INTERVAL{found[1]}{found[2].upper()}", declared.expression.text)
    properties[WATERMARKS] = [[declared.column, written]]
    return replace(table, properties=properties)


def watermark_binds(table: CatalogObject, columns: Sequence[Column]) -> bool:
    """Whether the watermark of a table can be computed from these columns alone."""
    try:
        for _, text in table.properties.get(WATERMARKS, ()):
            bind_expression(text, columns, Settings(timezone="UTC", now_ms=0, strict=False))
    except UndefinedColumn:
        return False
    return True


def kept_in(table: CatalogObject, number: int) -> CatalogObject:
    """The internal relation that holds a table's watermark."""
    schema = watermark_schema(_type_of(table))
    return CatalogObject(
        ObjectId(number),
        ObjectKind.INTERNAL,
        internal_name(table.name, number),
        "",
        columns=schema.columns,
        relation=schema,
        database=table.database,
        schema=table.schema,
        owner=table.owner,
        parent=table.id,
        created_ms=table.created_ms,
    )


def watermark_of(table: CatalogObject) -> Watermark | None:
    """What a table's job has to know of its watermark."""
    declared = table.properties.get(WATERMARKS)
    if not declared or table.properties.get(RELATION) is None:
        return None
    ((column, text),) = declared
    bound = bind_expression(text, table.columns, Settings(timezone="UTC", now_ms=0, strict=False))
    return Watermark(RelationId(table.properties[RELATION]), watermark_schema(_type_of(table)), column, bound)


def _type_of(table: CatalogObject) -> SqlType:
    ((name, _),) = table.properties[WATERMARKS]
    return next(column.type for column in table.columns if column.name == name).bare


def bounds_in(catalog: Catalog, plan_of: Callable[[CatalogObject], Plan]) -> Known:
    """The bounds of columns, of tables by what they declare, and of views by their plans."""

    def known(relation: RelationId) -> Bounds:
        item = catalog.by_id.get(ObjectId(relation))
        if item is not None and item.kind is ObjectKind.MATERIALIZED_VIEW:
            return watermarks(plan_of(item), known)
        if item is None or item.relation is None or not item.relation.append_only or RELATION not in item.properties:
            return {}
        ((column, _),) = item.properties[WATERMARKS]
        return {column: mark(RelationId(item.properties[RELATION]), _type_of(item))}

    return known


__all__ = [
    "RELATION",
    "TTL",
    "WATERMARKS",
    "bounds_in",
    "check_expression",
    "check_watermarks",
    "kept_in",
    "properties_of",
    "watermark_binds",
    "watermark_of",
    "with_watermark",
]
