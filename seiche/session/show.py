"""SHOW and DESCRIBE: what exists and how it is set, as rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from seiche.catalog import access
from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import FOLLOWING_KINDS, CatalogObject, ObjectKind, ObjectStatus, User
from seiche.catalog.pg_catalog import SYSTEM_NAMESPACES
from seiche.catalog.system_views import try_system_view
from seiche.config import SYSTEM_PARAMETERS
from seiche.errors import FeatureNotSupported
from seiche.model import COMMIT_TIME, ROW_ID, Column
from seiche.session.database import Database
from seiche.session.indexes import listed
from seiche.session.names import CATALOG_KINDS
from seiche.session.result import Result
from seiche.session.shown import shown_definition
from seiche.session.variables import VARIABLES, Variables
from seiche.sql import statements as ast
from seiche.sql.bind import OutputColumn
from seiche.sql.statements import quote_name
from seiche.types import BIGINT, TIMESTAMPTZ, VARCHAR, Kind, SqlType

Rows = list[tuple[Any, ...]]

_DESCRIBED = (("Name", VARCHAR), ("Type", VARCHAR), ("Is Hidden", VARCHAR), ("Description", VARCHAR))

_LISTED = {
    ast.Listing.TABLES: ObjectKind.TABLE,
    ast.Listing.MATERIALIZED_VIEWS: ObjectKind.MATERIALIZED_VIEW,
    ast.Listing.VIEWS: ObjectKind.VIEW,
    ast.Listing.SOURCES: ObjectKind.SOURCE,
    ast.Listing.SINKS: ObjectKind.SINK,
    ast.Listing.INDEXES: ObjectKind.INDEX,
    ast.Listing.FUNCTIONS: ObjectKind.FUNCTION,
    ast.Listing.SUBSCRIPTIONS: ObjectKind.SUBSCRIPTION,
    ast.Listing.SECRETS: ObjectKind.SECRET,
    ast.Listing.INTERNAL_TABLES: ObjectKind.INTERNAL,
}


def rows(tag: str, columns: Iterable[tuple[str, SqlType]], values: Rows) -> Result:
    """A result made of values."""
    return Result(tag, tuple(OutputColumn(name, name, type_) for name, type_ in columns), _rows=values)


def show_objects(database: Database, user: User, variables: Variables, statement: ast.ShowObjects) -> Result:
    """Of objects, those that the user sees."""
    catalog = database.catalog.seen_from(variables.database)
    match statement.listing:
        case ast.Listing.SCHEMAS:
            names = [schema.name for schema in catalog.home_schemas]
            names += SYSTEM_NAMESPACES
        case ast.Listing.DATABASES:
            names = [each.name for each in catalog.databases]
        case ast.Listing.USERS:
            names = [user.name for user in catalog.users]
        case ast.Listing.JOBS:
            return _jobs(database)
        case ast.Listing.CURSORS | ast.Listing.SUBSCRIPTION_CURSORS:
            return _cursors(database, variables, subscribed=statement.listing is ast.Listing.SUBSCRIPTION_CURSORS)
        case ast.Listing.CONNECTIONS:
            names = []
        case ast.Listing.INDEXES if statement.source is not None:
            return _indexes(catalog, variables, statement.source, statement.pattern)
        case listing:
            found = _in_schema(catalog, variables, statement.source, _LISTED[listing])
            shown = [it for it in found if _like(it.name, statement.pattern) and access.sees(catalog, user, it)]
            return _names(map(_qualified, shown))
    return _names(sorted(name for name in names if _like(name, statement.pattern)))


def _names(names: Iterable[str]) -> Result:
    return rows("SHOW_COMMAND", [("Name", VARCHAR)], [(name,) for name in names])


def _qualified(item: CatalogObject) -> str:
    return f"{quote_name(item.schema)}.{quote_name(item.name)}"


def _in_schema(
    catalog: Catalog, variables: Variables, source: ast.ObjectName | None, kind: ObjectKind
) -> list[CatalogObject]:
    """Those of a schema, or those of the search path in its order; by name."""
    schemas = variables.search_path if source is None else (catalog.schema(source.name).name,)
    found = [it for it in catalog.at_home(kind) if it.schema in schemas]
    return sorted(found, key=lambda it: (schemas.index(it.schema), it.name))


def _indexes(catalog: Catalog, variables: Variables, name: ast.ObjectName, pattern: str | None) -> Result:
    """The indexes of a relation, with their columns."""
    source = catalog.find(name.parts, search_path=variables.search_path)
    columns = [(each, VARCHAR) for each in ("Name", "On", "Key", "Include", "Distributed By")]
    found = [
        (it.name, source.name, *listed(it, source)) for it in _indexes_of(catalog, source) if _like(it.name, pattern)
    ]
    return rows("SHOW_COMMAND", columns, found)


def _indexes_of(catalog: Catalog, source: CatalogObject) -> list[CatalogObject]:
    found = [it for it in catalog.objects(ObjectKind.INDEX) if source.id in it.dependencies]
    return sorted(found, key=lambda it: it.name)


def _jobs(database: Database) -> Result:
    """Views that are being created."""
    found: Rows = []
    for item in database.catalog.objects(*FOLLOWING_KINDS):
        if item.status is ObjectStatus.CREATING:
            found.append((item.id, item.definition, database.jobs.progress(item.id) or "Stopped"))
    return rows("SHOW_COMMAND", [("Id", BIGINT), ("Statement", VARCHAR), ("Progress", VARCHAR)], found)


def _cursors(database: Database, variables: Variables, *, subscribed: bool) -> Result:
    """The open cursors of all sessions: those over subscriptions, or the others."""
    columns = [(name, VARCHAR) for name in ("Session", "User", "Host", "Database", "Cursor Name")]
    if subscribed:
        columns += [("Subscription Name", VARCHAR), ("State", VARCHAR), ("Idle Duration Ms", BIGINT)]
    found: Rows = []
    for pid, session in sorted(database.sessions.items()):
        for cursor in session.open_cursors():
            if (cursor.subscription is not None) is subscribed:
                who = session.fact()
                row = (str(pid), who.user, who.client, who.database, cursor.name)
                more = (cursor.subscription, cursor.state, cursor.idle_ms) if subscribed else ()
                found.append((*row, *more))
    return rows("SHOW_COMMAND", columns, found)


def describe(database: Database, variables: Variables, name: ast.ObjectName, pattern: str | None = None) -> Result:
    """A row for each column, hidden ones last; without a pattern also the key that the relation is kept and
    distributed by, and its comment."""
    catalog = database.catalog.seen_from(variables.database)
    found = catalog.try_find(name.parts, search_path=variables.search_path)
    view = try_system_view(name.parts, catalog.home) if found is None else None
    if view is not None:
        listed: Rows = [
            (each.name, str(each.type), "false", None) for each in view.columns if _like(each.name, pattern)
        ]
        return rows("DESCRIBE", _DESCRIBED, [*listed, *(_described(view.name, None) if pattern is None else [])])
    item = catalog.find(name.parts, search_path=variables.search_path)
    key = item.properties.get("primary_key", []) if item.kind is ObjectKind.TABLE else []
    values: Rows = []
    for column in item.columns:
        if _like(column.name, pattern):
            comment = catalog.comment(item.id, column.name) or _notes(column, column.name in key)
            (name_, type_), *inside = _parts(quote_name(column.name), column.type)
            values += [(name_, type_, "false", comment), *((*part, "false", None) for part in inside)]
    for hidden, type_ in _hidden(item):
        if _like(hidden, pattern):
            values.append((quote_name(hidden), type_, "true", catalog.comment(item.id, hidden)))
    if pattern is None:
        if item.relation is not None:
            kept = ", ".join(item.relation.key)
            values += [("primary key", kept, None, None), ("distribution key", kept, None, None)]
            values += [(it.name, _index_text(it, item), None, None) for it in _indexes_of(catalog, item)]
        values += _described(item.name, catalog.comment(item.id))
    return rows("DESCRIBE", _DESCRIBED, values)


def _index_text(index: CatalogObject, source: CatalogObject) -> str:
    keyed, included, spread = listed(index, source)
    return f"index({keyed})" + (f" include({included})" if included else "") + f" distributed by({spread})"


def _described(name: str, comment: str | None) -> Rows:
    return [("table description", name, None, comment)]


def _parts(name: str, type_: SqlType) -> Iterator[tuple[str, str]]:
    """A column with its type, and behind it the fields of the structs that it is made of, each with its path."""
    element, brackets = type_, ""
    while element.kind is Kind.ARRAY and element.element is not None:
        element, brackets = element.element, brackets + "[]"
    if element.kind is not Kind.STRUCT:
        yield name, str(type_)
        return
    yield name, f"struct{brackets}"
    if type_.kind is Kind.ARRAY and type_.element is not None:
        yield from _parts(f"{name}[1]", type_.element)
        return
    for field, inside in element.fields:
        yield from _parts(f"{name}.{quote_name(field)}", inside)


def _hidden(item: CatalogObject) -> Iterator[tuple[str, str]]:
    """The names and types of the columns that no `*` stands for."""
    if item.relation is None:
        return
    for column in item.relation.columns:
        if column.hidden:
            yield column.name, "serial" if column.name == ROW_ID else str(column.type)
    if item.kind in (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW):
        yield COMMIT_TIME, str(TIMESTAMPTZ)


def _notes(column: Column, in_key: bool) -> str | None:
    notes = []
    if in_key:
        notes.append("primary key")
    if not column.nullable:
        notes.append("not null")
    if column.default is not None:
        notes.append(f"default {column.default}")
    if column.generated is not None:
        notes.append(f"as {column.generated}")
    return ", ".join(notes) or None


def show_create(database: Database, variables: Variables, statement: ast.ShowCreate) -> Result:
    kind = CATALOG_KINDS.get(statement.kind)
    if kind is None:
        raise FeatureNotSupported(f"SHOW CREATE {statement.kind.value.upper()} is not supported yet")
    item = database.catalog.seen_from(variables.database).find(
        statement.name.parts, search_path=variables.search_path, kinds=(kind,), action="SHOW CREATE"
    )
    columns = [("Name", VARCHAR), ("Create Sql", VARCHAR)]
    return rows("SHOW_COMMAND", columns, [(f"{item.schema}.{item.name}", shown_definition(item))])


def show_parameters(database: Database, statement: ast.ShowParameters) -> Result:
    columns = [("Name", VARCHAR), ("Value", VARCHAR), ("Description", VARCHAR)]
    values: Rows = [
        (each.name, str(getattr(database.config, each.name)), each.meaning)
        for each in SYSTEM_PARAMETERS
        if _like(each.name, statement.pattern)
    ]
    return rows("SHOW_COMMAND", columns, values)


def show_all(variables: Variables) -> Result:
    columns = [("Name", VARCHAR), ("Setting", VARCHAR), ("Description", VARCHAR)]
    return rows("SHOW_COMMAND", columns, [(v.name, variables.shown(v.name), v.meaning) for v in VARIABLES.values()])


def _like(name: str, pattern: str | None) -> bool:
    """SQL's LIKE."""
    if pattern is None:
        return True
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    regex = "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, name, re.DOTALL) is not None
