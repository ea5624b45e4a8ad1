"""ALTER … RENAME TO: the object's new name, in the catalog and in every stored definition that mentions it.

Definitions are SQL text and are bound again at every start, so they have to follow. After they are rewritten each is
bound both ways, the old text in the old catalog and the new text in the new one: only if Spark would run the same
query is the rename taken.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import DEFAULT_SCHEMA, INTO, CatalogObject, ObjectKind
from seiche.errors import FeatureNotSupported, InvariantError, SeicheError
from seiche.session import indexes
from seiche.session.names import CatalogNames
from seiche.session.shapes import shapes_of
from seiche.session.subscribed import with_source_renamed
from seiche.sql.bind import Settings, bind_query, references_of
from seiche.sql.parse import parse
from seiche.sql.rename import with_into_named, with_own_name, with_relation_named
from seiche.sql.statements import CreateMaterializedView, CreateSink, CreateView, SqlQuery

RELATION_KINDS = (ObjectKind.TABLE, ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW, ObjectKind.INDEX)
RENAMED_KINDS = (*RELATION_KINDS, ObjectKind.SOURCE, ObjectKind.SINK, ObjectKind.SUBSCRIPTION)


def renamed(catalog: Catalog, object_id: int, new_name: str) -> Catalog:
    """The catalog in which the object has its new name; raises where a definition cannot follow."""
    item = catalog.get(object_id)
    if item.kind is ObjectKind.INDEX:
        (source,) = item.dependencies
        return catalog.with_objects(indexes.with_names(item, new_name, catalog.get(source)))
    own = replace(item, name=new_name, definition=with_own_name(item.definition, new_name))
    readers = [each for each in catalog.objects() if item.id in each.dependencies]
    copies = [indexes.with_names(each, each.name, own) for each in readers if each.kind is ObjectKind.INDEX]
    followers = [
        replace(each, definition=_following(catalog, each, item, new_name))
        for each in readers
        if each.kind not in (ObjectKind.INDEX, ObjectKind.SUBSCRIPTION)
    ]
    subscribed = [with_source_renamed(each, new_name) for each in readers if each.kind is ObjectKind.SUBSCRIPTION]
    internal = [replace(each, name=internal_name(new_name, each.id)) for each in catalog.children(item.id)]
    changed = catalog.with_objects(own, *copies, *followers, *subscribed, *internal)
    for each in followers:
        if not same_query(catalog, changed, each.id):
            raise _cannot_follow(item, each)
    return changed


def internal_name(view: str, relation: int) -> str:
    """The name of an internal relation of a view."""
    return f"__internal_{view}_{relation}"


def _following(catalog: Catalog, reader: CatalogObject, item: CatalogObject, new_name: str) -> str:
    try:
        found = query_references(catalog, reader)
        meant = [table for object_id, table in found if object_id == item.id]
        definition = with_relation_named(reader.definition, meant, new_name)
        return with_into_named(definition, new_name) if reader.properties.get(INTO) == item.id else definition
    except InvariantError as error:
        raise _cannot_follow(item, reader) from error


def query_references(catalog: Catalog, reader: CatalogObject) -> list[tuple[int, exp.Table]]:
    """The tables that the definition of a view or a sink names, with the ids of what they stand for."""
    return references_of(_query(reader).tree, _names(catalog, reader))


def same_query(before: Catalog, after: Catalog, object_id: int) -> bool:
    old, new = before.get(object_id), after.get(object_id)
    then, now = (_settings(it) for it in (old, new))
    try:
        bound = bind_query(_query(new).tree, _names(after, new), now)
    except SeicheError:  # a name means something else now, or nothing
        return False
    return bound.sql == bind_query(_query(old).tree, _names(before, old), then).sql


def _settings(item: CatalogObject) -> Settings:
    """As the item is bound. A plain view tells whoever reads it of their own database."""
    settings = Settings(timezone="UTC", now_ms=None, strict=False)
    return settings if item.kind is ObjectKind.VIEW else replace(settings, database=item.database)


def _query(item: CatalogObject) -> SqlQuery:
    (parsed,) = parse(item.definition)
    if not isinstance(parsed.statement, CreateView | CreateMaterializedView | CreateSink):
        raise InvariantError(f"{item} is not defined by a query")
    return parsed.statement.query


def _names(catalog: Catalog, item: CatalogObject) -> CatalogNames:
    home = catalog.seen_from(item.database)
    return CatalogNames(home, item.properties.get("search_path", [DEFAULT_SCHEMA]), shapes=shapes_of(item))


def _cannot_follow(item: CatalogObject, reader: CatalogObject) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"{item} cannot be renamed while {reader} reads it",
        detail="Its definition would mean something else, or could not be rewritten.",
        hint=f"Drop {reader} and create it again afterwards, or choose another name.",
    )
