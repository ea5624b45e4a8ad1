"""All system views by schema and name: `pg_catalog`, `information_schema` and `rw_catalog`.

Each view is a list of columns and a function from `Facts` to rows, and nothing else: no view reads the metadata
database. As in PostgreSQL, `pg_catalog` is searched before the schemas of the search path; the views of `rw_catalog`
are found by their bare names too, after them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seiche.catalog import information_schema, pg_catalog, rw_catalog
from seiche.catalog.facts import SystemView
from seiche.catalog.objects import DEFAULT_DATABASE
from seiche.errors import UndefinedTable, nearest

SYSTEM_SCHEMAS = (pg_catalog.SCHEMA, information_schema.SCHEMA, rw_catalog.SCHEMA)

SYSTEM_VIEWS: Mapping[tuple[str, str], SystemView] = {
    (view.schema, view.name): view for view in (*pg_catalog.VIEWS, *information_schema.VIEWS, *rw_catalog.VIEWS)
}


def system_view(schema: str, name: str) -> SystemView:
    """The view of that name in a system schema."""
    try:
        return SYSTEM_VIEWS[schema, name]
    except KeyError:
        near = nearest(name, [other for place, other in SYSTEM_VIEWS if place == schema])
        raise UndefinedTable(f'relation "{schema}.{name}" does not exist', hint=near) from None


def try_system_view(parts: Sequence[str], database: str = DEFAULT_DATABASE) -> SystemView | None:
    """The view that a name stands for if no schema of the search path has it: `name`, or with its system schema.

    `database` is the session's, whose objects they show. Raises UndefinedTable for a name in a system schema that is
    not there.
    """
    match tuple(parts):
        case (name,):
            return SYSTEM_VIEWS.get((pg_catalog.SCHEMA, name)) or SYSTEM_VIEWS.get((rw_catalog.SCHEMA, name))
        case (schema, name) if schema in SYSTEM_SCHEMAS:
            return system_view(schema, name)
        case (named, schema, name) if named == database and schema in SYSTEM_SCHEMAS:
            return system_view(schema, name)
        case _:
            return None
