"""Objects in other schemas: ALTER … SET SCHEMA and ALTER SCHEMA … RENAME TO, in the catalog and in stored definitions.

Definitions are SQL text and name what they read. Those of the objects that move, and of whatever reads them, are
written anew, with the schema before each name that moved; as with other names (`seiche.session.rename`), a move is
taken only if Spark would run the same queries after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import DEFAULT_SCHEMA, INTO, CatalogObject, ObjectKind
from seiche.catalog.temporary import is_temporary
from seiche.errors import FeatureNotSupported, InvalidDefinition, InvariantError
from seiche.model import ObjectId
from seiche.session import indexes
from seiche.session.definitions import check_schema_name
from seiche.session.rename import query_references, same_query
from seiche.session.subscribed import with_name, with_source
from seiche.sql.rename import with_into_placed, with_relations_placed
from seiche.sql.renamed import renamed

_PATH = "search_path"  # of what a definition's bare names were looked up in
_QUERIED = (ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW, ObjectKind.SINK)


def moved(catalog: Catalog, object_id: ObjectId, schema: str) -> Catalog:
    """The catalog in which an object, with its indexes, is in another schema."""
    catalog.schema(schema)
    item = catalog.get(object_id)
    if is_temporary(schema) or is_temporary(item.schema):
        raise InvalidDefinition("cannot move objects into or out of temporary schemas")
    going = [item.id, *(each.id for each in catalog.objects(ObjectKind.INDEX) if item.id in each.dependencies)]
    return _moved(catalog, catalog, dict.fromkeys(going, schema))


def with_schema_named(catalog: Catalog, name: str, new_name: str) -> Catalog:
    """The catalog in which a schema has another name."""
    schema = catalog.schema(name)
    if name == DEFAULT_SCHEMA:
        raise FeatureNotSupported(f'schema "{name}" cannot be renamed', detail="New objects go there.")
    check_schema_name(name)
    check_schema_name(new_name)
    named = catalog.with_schema(replace(schema, name=new_name))
    inside = [item.id for item in catalog.at_home() if item.schema == name]
    paths = {
        item.id: _with_path(item, name, new_name)
        for item in catalog.at_home()
        if name in item.properties.get(_PATH, ())
    }
    return _moved(catalog, named, dict.fromkeys(inside, new_name), paths)


def _with_path(item: CatalogObject, name: str, new_name: str) -> CatalogObject:
    path = [new_name if part == name else part for part in item.properties[_PATH]]
    return replace(item, properties={**item.properties, _PATH: path})


def _moved(
    before: Catalog,
    after: Catalog,
    going: Mapping[ObjectId, str],
    paths: Mapping[ObjectId, CatalogObject] = MappingProxyType({}),
) -> Catalog:
    """`after` with these objects in other schemas, and others with other paths. In `before` the definitions as they are
    mean something."""
    whole = [item for item in before.objects() if item.parent is None]
    affected = [item for item in whole if item.id in going or any(each in going for each in item.dependencies)]
    changed = {item.id: _placed(before, paths.get(item.id, item), going) for item in affected}
    inside = [replace(child, schema=changed[item.id].schema) for item in affected for child in before.children(item.id)]
    new = after.with_objects(*{**paths, **changed}.values(), *inside)
    for item in affected:
        if item.kind in _QUERIED and not same_query(before, new, item.id):
            raise _cannot_follow(item)
    return new


def _placed(before: Catalog, item: CatalogObject, going: Mapping[ObjectId, str]) -> CatalogObject:
    """An object that moves, reads what moves, or both."""
    schema = going.get(item.id, item.schema)
    match item.kind:
        case ObjectKind.INDEX:
            (source,) = item.dependencies
            indexed = before.get(source)
            there = replace(indexed, schema=going.get(source, indexed.schema))
            return replace(indexes.with_names(item, item.name, there), schema=schema)
        case ObjectKind.SUBSCRIPTION:
            (source,) = item.dependencies
            named = with_name(item, schema, item.name) if item.id in going else item
            return with_source(named, going[source], before.get(source).name) if source in going else named
        case ObjectKind.VIEW | ObjectKind.MATERIALIZED_VIEW | ObjectKind.SINK:
            definition = _following(before, item, going)
        case ObjectKind.TABLE | ObjectKind.SOURCE | ObjectKind.FUNCTION:
            definition = item.definition
        case ObjectKind.SECRET:
            return replace(item, schema=schema)
        case ObjectKind.INTERNAL:
            raise InvariantError(f"{item} goes where its view goes")
        case _:
            assert_never(item.kind)
    if item.id in going:
        definition = renamed(definition, (item.name,) if schema == DEFAULT_SCHEMA else (schema, item.name))
    return replace(item, schema=schema, definition=definition)


def _following(before: Catalog, reader: CatalogObject, going: Mapping[ObjectId, str]) -> str:
    found = query_references(before, before.get(reader.id))
    meant = [(table, going[ObjectId(read)]) for read, table in found if read in going]
    try:
        definition = with_relations_placed(reader.definition, meant)
    except InvariantError as error:
        raise _cannot_follow(reader) from error
    target = reader.properties.get(INTO)
    if target is not None and target in going:
        return with_into_placed(definition, going[target], before.get(target).name)
    return definition


def _cannot_follow(reader: CatalogObject) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"what {reader} reads cannot be moved",
        detail="Its definition would mean something else, or could not be rewritten.",
        hint=f"Drop {reader} and create it again afterwards.",
    )
