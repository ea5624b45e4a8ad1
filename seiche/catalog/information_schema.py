"""The views of schema `information_schema`: what exists, as the SQL standard tells it.

Columns are PostgreSQL's. A view without a function here is empty, since the feature it would list does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from seiche.catalog import rw_catalog
from seiche.catalog.definitions import key_constraint, key_of, query_of
from seiche.catalog.facts import VISIBLE, Facts, Rows, SystemView
from seiche.catalog.objects import PUBLIC, CatalogObject, ObjectKind, Privilege
from seiche.catalog.pg_catalog import SYSTEM_NAMESPACES
from seiche.catalog.postgres.shapes import Shape, shapes
from seiche.catalog.postgres.types import format_type, pg_types, type_oid
from seiche.catalog.temporary import is_temporary
from seiche.model import Column
from seiche.types import Kind, SqlType

SCHEMA = "information_schema"

Row = Mapping[str, Any]

_TABLES = tuple(kind for kind in VISIBLE if kind is not ObjectKind.INDEX)
_BITS = {Kind.SMALLINT: 16, Kind.INTEGER: 32, Kind.BIGINT: 64, Kind.REAL: 24, Kind.DOUBLE: 53}
_MOMENTS = (Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL)
_MICROSECONDS = 6
_WRITES = (Privilege.INSERT, Privilege.SELECT, Privilege.UPDATE, Privilege.DELETE)


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _place(it: CatalogObject, prefix: str = "table") -> dict[str, Any]:
    return {f"{prefix}_catalog": it.database, f"{prefix}_schema": it.schema, f"{prefix}_name": it.name}


def _table_type(it: CatalogObject) -> str:
    match it.kind:
        case ObjectKind.VIEW:
            return "VIEW"
        case ObjectKind.MATERIALIZED_VIEW:
            return "MATERIALIZED VIEW"  # PostgreSQL leaves them out; RisingWave's users look for them here
        case ObjectKind.SOURCE:
            return "SOURCE"
        case _:
            return "LOCAL TEMPORARY" if is_temporary(it.schema) else "BASE TABLE"


def _tables(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(*_TABLES):
        yield _place(it) | {
            "table_type": _table_type(it),
            "is_insertable_into": _yes(it.kind is ObjectKind.TABLE),
            "is_typed": "NO",
        }
    for schema, name in _system_names():
        place = {"table_catalog": facts.database, "table_schema": schema, "table_name": name}
        yield place | {"table_type": "VIEW", "is_insertable_into": "NO", "is_typed": "NO"}


def _system_names() -> Iterator[tuple[str, str]]:
    yield from shapes()
    yield from ((it.schema, it.name) for it in rw_catalog.VIEWS)


def _columns(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(*_TABLES):
        for number, column in enumerate(it.columns, 1):
            yield _place(it) | _column(facts, number, column)
    system = [(it.schema, it.name, it.columns) for it in shapes().values()]
    system += [(it.schema, it.name, it.columns) for it in rw_catalog.VIEWS]
    for schema, name, columns in system:
        for number, column in enumerate(columns, 1):
            place = {"table_catalog": facts.database, "table_schema": schema, "table_name": name}
            yield place | _column(facts, number, column)


def _type_name(type_: SqlType) -> str | None:
    """PostgreSQL's name of a type; one with fields is written out, as RisingWave does."""
    if type_.kind in (Kind.STRUCT, Kind.MAP):
        return str(type_)
    return "ARRAY" if type_.kind is Kind.ARRAY else format_type(type_oid(type_))


def _column(facts: Facts, number: int, column: Column) -> dict[str, Any]:
    type_ = column.type
    oid = type_oid(type_)
    exact = type_.kind is Kind.NUMERIC and type_.declared
    return {
        "column_name": column.name,
        "ordinal_position": number,
        "column_default": column.default,
        "is_nullable": _yes(column.nullable),
        "data_type": _type_name(type_),
        "numeric_precision": type_.precision if exact else _BITS.get(type_.kind),
        "numeric_precision_radix": 2 if type_.kind in _BITS else 10 if type_.kind is Kind.NUMERIC else None,
        "numeric_scale": type_.scale if exact else 0 if type_.is_integer else None,
        "datetime_precision": _MICROSECONDS if type_.kind in _MOMENTS else 0 if type_.kind is Kind.DATE else None,
        "udt_catalog": facts.database,
        "udt_schema": "pg_catalog",
        "udt_name": pg_types()[oid].name,
        "dtd_identifier": str(number),
        "is_self_referencing": "NO",
        "is_identity": "NO",
        "identity_cycle": "NO",
        "is_generated": "ALWAYS" if column.generated is not None else "NEVER",
        "generation_expression": column.generated,
        "is_updatable": _yes(column.generated is None),
    }


def _views(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.VIEW):
        yield _place(it) | {
            "view_definition": query_of(it),
            "check_option": "NONE",
            "is_updatable": "NO",
            "is_insertable_into": "NO",
            "is_trigger_updatable": "NO",
            "is_trigger_deletable": "NO",
            "is_trigger_insertable_into": "NO",
        }


def _view_table_usage(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.VIEW):
        for other in sorted(it.dependencies):
            yield _place(it, "view") | _place(facts.catalog.get(other))


def _schemata(facts: Facts) -> Iterator[Row]:
    owners = [(name, facts.catalog.users[0].name) for name in SYSTEM_NAMESPACES]
    owners += [(it.name, it.owner) for it in facts.catalog.home_schemas]
    for name, owner in owners:
        yield {"catalog_name": facts.database, "schema_name": name, "schema_owner": owner}


def _table_constraints(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.TABLE):
        if key_of(it):
            yield {
                "constraint_catalog": facts.database,
                "constraint_schema": it.schema,
                "constraint_name": key_constraint(it),
                **_place(it),
                "constraint_type": "PRIMARY KEY",
                "is_deferrable": "NO",
                "initially_deferred": "NO",
                "enforced": "YES",
            }


def _key_column_usage(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.TABLE):
        for number, name in enumerate(key_of(it), 1):
            yield {
                "constraint_catalog": facts.database,
                "constraint_schema": it.schema,
                "constraint_name": key_constraint(it),
                **_place(it),
                "column_name": name,
                "ordinal_position": number,
            }


def _constraint_column_usage(facts: Facts) -> Iterator[Row]:
    for row in _key_column_usage(facts):
        yield {name: value for name, value in row.items() if name != "ordinal_position"}


def _routines(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.FUNCTION):
        yield {
            "specific_catalog": facts.database,
            "specific_schema": it.schema,
            "specific_name": f"{it.name}_{it.id}",
            "routine_catalog": facts.database,
            "routine_schema": it.schema,
            "routine_name": it.name,
            "routine_type": "FUNCTION",
            "data_type": format_type(type_oid(it.columns[-1].type)) if it.columns else None,
            "routine_body": "EXTERNAL",
            "routine_definition": it.definition,
        }


def _parameters(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.FUNCTION):
        for number, column in enumerate(it.columns[:-1], 1):
            yield {
                "specific_catalog": facts.database,
                "specific_schema": it.schema,
                "specific_name": f"{it.name}_{it.id}",
                "ordinal_position": number,
                "parameter_mode": "IN",
                "parameter_name": column.name,
                "data_type": format_type(type_oid(column.type)),
            }


def _table_privileges(facts: Facts) -> Iterator[Row]:
    names = {PUBLIC: "PUBLIC", **{it.id: it.name for it in facts.catalog.users}}
    for it in facts.catalog.at_home(*_TABLES):
        held = [(it.owner, privilege, True) for privilege in _WRITES]
        held += [
            (names[grant.user], grant.privilege, grant.grantable)
            for grant in sorted(facts.catalog.grants, key=lambda it: it.key)
            if grant.target == it.id and grant.privilege in _WRITES and names[grant.user] != it.owner
        ]
        for user, privilege, grantable in held:
            yield _place(it) | {
                "grantor": it.owner,
                "grantee": user,
                "privilege_type": privilege.value,
                "is_grantable": _yes(grantable),
                "with_hierarchy": _yes(privilege is Privilege.SELECT),
            }


def _name(facts: Facts) -> Iterator[Row]:
    yield {"catalog_name": facts.database}


def _roles(facts: Facts) -> Iterator[Row]:
    return ({"role_name": it.name} for it in facts.catalog.users)


_FILLED: Mapping[str, Callable[[Facts], Iterable[Row]]] = {
    "columns": _columns,
    "constraint_column_usage": _constraint_column_usage,
    "enabled_roles": _roles,
    "information_schema_catalog_name": _name,
    "key_column_usage": _key_column_usage,
    "parameters": _parameters,
    "role_table_grants": _table_privileges,
    "routines": _routines,
    "schemata": _schemata,
    "table_constraints": _table_constraints,
    "table_privileges": _table_privileges,
    "tables": _tables,
    "view_table_usage": _view_table_usage,
    "views": _views,
}


def _view(it: Shape) -> SystemView:
    fill = _FILLED.get(it.name)

    def rows(facts: Facts) -> Rows:
        return it.rows(fill(facts)) if fill is not None else []

    return SystemView(it.schema, it.name, it.columns, rows, it.oid)


VIEWS = tuple(_view(it) for it in shapes().values() if it.schema == SCHEMA)
