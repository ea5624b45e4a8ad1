"""Databases beside each other: what one may read of another, and what therefore has to stay.

    database harbour                     database office
    arrivals ◀── log FOR arrivals        harbour.public.arrivals ◀── daily_fees

Queries and plain views read what is in other databases by its full name. A materialized view or a sink follows it, too,
as long as somebody in that other database has subscribed to it: as in RisingWave, changes are handed on only where they
are kept on purpose. CASCADE never leaves a database, so nobody loses a view to a drop in a database that is not theirs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import DEFAULT_DATABASE, INTO, CatalogObject, ObjectKind
from seiche.errors import DependentObjects, FeatureNotSupported
from seiche.model import ObjectId
from seiche.session.rename import query_references, same_query
from seiche.session.subscribed import defined
from seiche.session.subscribed import definition as subscription_text
from seiche.sql import statements as ast
from seiche.sql.parse import parse
from seiche.sql.rename import with_database_named, with_into_placed
from seiche.sql.renamed import renamed

_FOLLOWING = (ObjectKind.MATERIALIZED_VIEW, ObjectKind.SINK)
_FOLLOWED = (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW, ObjectKind.INDEX, ObjectKind.SOURCE)


def schema_of(name: ast.ObjectName, home: str) -> str:
    """The schema that a statement about schemas names, alone or behind its database."""
    if name.schema not in (None, home):
        raise FeatureNotSupported(
            f'schema "{name}" is in another database',
            detail=f'This session works in database "{home}".',
            hint=f"SET database TO {ast.quote_name(name.schema)} goes there.",
        )
    return name.name


# --- following --------------------------------------------------------------------------------------


def refuse_unsubscribed(catalog: Catalog, home: str, what: str, dependencies: Iterable[int]) -> None:
    """Raises for a view or a sink in `home` that would follow what is in another database without a subscription."""
    for item in (catalog.get(each) for each in sorted(dependencies)):
        if item.database != home and item.kind in _FOLLOWED and not _subscriptions(catalog, _rows_of(item)):
            raise FeatureNotSupported(
                f'{what} cannot follow {item} of database "{item.database}"',
                detail="Changes go to other databases only where a subscription keeps them.",
                hint=f"CREATE SUBSCRIPTION … FROM {item.name} WITH (retention = '1 day') there, or query it instead.",
            )


def _rows_of(item: CatalogObject) -> ObjectId:
    """Whose changes it has: an index has those of its relation."""
    return min(item.dependencies) if item.kind is ObjectKind.INDEX else item.id


def _subscriptions(catalog: Catalog, relation: ObjectId) -> set[ObjectId]:
    return {it.id for it in catalog.objects(ObjectKind.SUBSCRIPTION) if relation in it.dependencies}


# --- dropping ---------------------------------------------------------------------------------------


def plan_drop(catalog: Catalog, ids: Iterable[int], *, cascade: bool) -> tuple[ObjectId, ...]:
    """As `Catalog.plan_drop`; raises where something in another database needs what would go."""
    targets = [catalog.get(each) for each in ids]
    doomed = catalog.plan_drop([item.id for item in targets], cascade=cascade)
    databases = {item.database for item in targets}
    for item in (catalog.get(each) for each in reversed(doomed)):  # what is nearest comes first
        if item.database not in databases:
            used = next(it for it in map(catalog.get, sorted(item.dependencies)) if it.id in doomed)
            raise DependentObjects(
                f'{used} cannot be dropped because {item} of database "{item.database}" depends on it',
                detail="CASCADE takes along what is in the same database, and nothing else.",
                hint=f'Drop {item} in database "{item.database}" first.',
            )
        if item.kind is ObjectKind.SUBSCRIPTION:
            _refuse_last(catalog, item, doomed)
    return doomed


def _refuse_last(catalog: Catalog, subscription: CatalogObject, doomed: tuple[ObjectId, ...]) -> None:
    """The last subscription to a relation stays as long as something in another database follows the relation."""
    (relation,) = subscription.dependencies
    if _subscriptions(catalog, relation) - set(doomed):
        return
    indexed = {it.id for it in catalog.objects(ObjectKind.INDEX) if relation in it.dependencies}
    for reader in catalog.objects(*_FOLLOWING):
        if (
            reader.database != subscription.database
            and reader.id not in doomed
            and reader.dependencies & {relation, *indexed}
        ):
            raise DependentObjects(
                f'{subscription} cannot be dropped because {reader} of database "{reader.database}" depends on it',
                detail=f"It is the last subscription to {catalog.get(relation)}, which that follows.",
                hint=f'Drop {reader} in database "{reader.database}" first, or make another subscription.',
            )


def inside(catalog: Catalog, database: str) -> list[ObjectId]:
    """What users see in a database; internal relations go with their views."""
    found = catalog.seen_from(database).at_home()
    return [item.id for item in found if item.kind is not ObjectKind.INTERNAL]


def without_database(catalog: Catalog, name: str) -> Catalog:
    """The catalog without a database and its schemas, which must be empty."""
    for schema in [it for it in catalog.schemas if it.database == name]:
        catalog = catalog.without_schema(schema.name, database=name)
    return catalog.without_database(name)


# --- other names ------------------------------------------------------------------------------------


def with_name(catalog: Catalog, name: str, new_name: str) -> Catalog:
    """The catalog in which a database has another name, in the definitions of what reads it, too."""
    database = catalog.database(name)
    if name in (DEFAULT_DATABASE, catalog.home):
        raise FeatureNotSupported("current database cannot be renamed")
    changed = catalog.with_database(replace(database, name=new_name))
    for schema in [it for it in catalog.schemas if it.database == name]:
        changed = changed.with_schema(replace(schema, database=new_name))
    affected = [it for it in catalog.objects() if it.database == name or _reads(catalog, it, name)]
    changed = changed.with_objects(*(_following(catalog, it, name, new_name) for it in affected))
    for item in affected:
        if item.kind in (ObjectKind.VIEW, *_FOLLOWING) and not same_query(catalog, changed, item.id):
            raise FeatureNotSupported(
                f'database "{name}" cannot be renamed because of {item}',
                detail="Its definition would mean something else, or could not be rewritten.",
                hint=f"Drop {item} and create it again afterwards.",
            )
    return changed


def _reads(catalog: Catalog, item: CatalogObject, database: str) -> bool:
    return any(catalog.get(each).database == database for each in item.dependencies)


def _following(catalog: Catalog, item: CatalogObject, name: str, new_name: str) -> CatalogObject:
    """An object in the database, or one that reads what is."""
    moved = replace(item, database=new_name) if item.database == name else item
    match item.kind:
        case ObjectKind.VIEW | ObjectKind.MATERIALIZED_VIEW | ObjectKind.SINK:
            named = [table for _, table in query_references(catalog, item) if table.catalog == name]
            text = with_database_named(item.definition, named, new_name)
            target = item.properties.get(INTO)
            if target is not None:
                into = catalog.get(target)
                text = with_into_placed(text, into.schema, into.name)
            return replace(moved, definition=_without_own_database(item, text))
        case ObjectKind.TABLE | ObjectKind.SOURCE | ObjectKind.FUNCTION:
            return replace(moved, definition=_without_own_database(item, item.definition))
        case ObjectKind.SUBSCRIPTION:
            known = defined(item)
            name_, source = (ast.ObjectName(each.parts[-2:]) for each in (known.name, known.source))
            return replace(moved, definition=subscription_text(replace(known, name=name_, source=source)))
        case ObjectKind.INDEX | ObjectKind.INTERNAL | ObjectKind.SECRET:
            return moved
        case _:
            assert_never(item.kind)


def _without_own_database(item: CatalogObject, definition: str) -> str:
    statement = parse(definition)[0].statement
    name = statement.rows.name if isinstance(statement, ast.CreateSource) else getattr(statement, "name", None)
    if isinstance(name, ast.ObjectName) and name.database is not None:
        return renamed(definition, (item.schema, item.name))
    return definition
