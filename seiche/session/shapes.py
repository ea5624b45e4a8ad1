"""What readers of a table see of it after its columns have changed.

A stored definition is text that is bound again at every start. A view that says `*` must not grow with its table, so
whoever reads a table when it gets a column remembers the columns that it saw until then, and whoever reads it when a
column gets another type remembers the types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from seiche.catalog.objects import CatalogObject
from seiche.model import Column
from seiche.session.retype import has_struct
from seiche.types import SqlType

SHAPES = "shapes"  # the property of a reader: columns by the id of the relation, each its name or its name and type
Shapes = Mapping[str, Sequence[Any]]


def shapes_of(reader: CatalogObject) -> Shapes:
    found: Shapes = reader.properties.get(SHAPES, {})
    return found


def seen(item: CatalogObject, shapes: Shapes) -> CatalogObject:
    """The relation as one sees it whose shapes are given."""
    remembered = shapes.get(str(item.id))
    if remembered is None or item.relation is None:
        return item
    relation = item.relation
    names: dict[str, SqlType | None] = {}
    for each in remembered:
        name, type_ = (each, None) if isinstance(each, str) else (each[0], SqlType.from_json(each[1]))
        names[name] = type_

    def visible(column: Column) -> bool:
        return column.hidden or column.name in names or column.name in relation.key

    def typed(column: Column) -> Column:
        known = names.get(column.name)
        return column if known is None else replace(column, shown=known if known != column.type else None)

    columns = tuple(typed(column) for column in relation.columns if visible(column))
    shape = replace(relation, columns=columns)
    return replace(item, columns=tuple(column.as_shown for column in shape.visible), relation=shape)


def remembering(reader: CatalogObject, item: CatalogObject) -> CatalogObject:
    """A reader that goes on seeing the relation as it sees it now."""
    known = [
        [column.name, column.type.to_json()] if has_struct(column.type) else column.name
        for column in seen(item, shapes_of(reader)).columns
    ]
    return replace(reader, properties={**reader.properties, SHAPES: {**shapes_of(reader), str(item.id): known}})
