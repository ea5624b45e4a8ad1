"""What readers of a table see of it after its columns have changed.

A stored definition is text that is bound again at every start. A view that says `*` must not grow with its table, so
whoever reads a table when it gets a column remembers the columns that it saw until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seiche.catalog.objects import CatalogObject
from seiche.model import Column

SHAPES = "shapes"  # the property of a reader: columns by the id of the relation
Shapes = Mapping[str, Sequence[str]]


def shapes_of(reader: CatalogObject) -> Shapes:
    found: Shapes = reader.properties.get(SHAPES, {})
    return found


def seen(item: CatalogObject, shapes: Shapes) -> CatalogObject:
    """The relation as one sees it whose shapes are given."""
    names = shapes.get(str(item.id))
    if names is None or item.relation is None:
        return item
    relation = item.relation

    def visible(column: Column) -> bool:
        return column.hidden or column.name in names or column.name in relation.key

    shape = replace(relation, columns=tuple(column for column in relation.columns if visible(column)))
    return replace(item, columns=tuple(column for column in item.columns if visible(column)), relation=shape)


def remembering(reader: CatalogObject, item: CatalogObject) -> CatalogObject:
    """A reader that goes on seeing the relation as it sees it now."""
    names = [column.name for column in seen(item, shapes_of(reader)).columns]
    return replace(reader, properties={**reader.properties, SHAPES: {**shapes_of(reader), str(item.id): names}})
