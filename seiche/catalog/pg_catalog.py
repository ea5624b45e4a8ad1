"""The views of schema `pg_catalog`: what exists, told the way PostgreSQL tells it.

Their columns are PostgreSQL's own (`seiche.catalog.postgres`). A view without a function here is empty, since the
feature it would list does not exist. Objects appear under the numbers of `seiche.catalog.oids`; the primary key of a
table appears as an index and a constraint, though it is neither: the table's rows are simply kept by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from seiche.catalog import oids, pg_server, rw_catalog
from seiche.catalog.access import access_list
from seiche.catalog.catalog import Catalog
from seiche.catalog.definitions import index_definition, key_constraint, key_of, query_of
from seiche.catalog.facts import VISIBLE, Facts, Rows, SystemView
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.catalog.oids import oid_of, schema_oids, user_oid, user_oids
from seiche.catalog.pg_server import LANGUAGES
from seiche.catalog.postgres.shapes import Shape, shape, shapes
from seiche.catalog.postgres.types import find_type, pg_types, type_modifier, type_oid
from seiche.catalog.temporary import is_temporary
from seiche.model import Column
from seiche.types import Kind

SCHEMA = "pg_catalog"

Row = Mapping[str, Any]

_KINDS = {
    ObjectKind.TABLE: "r",
    ObjectKind.SOURCE: "r",
    ObjectKind.MATERIALIZED_VIEW: "m",
    ObjectKind.VIEW: "v",
    ObjectKind.INDEX: "i",
}
SYSTEM_NAMESPACES = {
    "pg_catalog": oids.PG_CATALOG_OID,
    "information_schema": oids.INFORMATION_SCHEMA_OID,
    rw_catalog.SCHEMA: oids.RW_CATALOG_OID,
}
_BLOCK_BYTES = 8192
_UTF8 = 6
_ALL_CONNECTIONS = -1


def relations(catalog: Catalog) -> Iterator[CatalogObject]:
    """What `pg_class` lists besides system views and keys."""
    return iter(catalog.at_home(*VISIBLE))


# --- relations ---------------------------------------------------------------------------------------


def _pg_class(facts: Facts) -> Iterator[Row]:
    catalog = facts.catalog
    namespaces, users = schema_oids(catalog), user_oids(catalog)
    indexed = {dependency for it in catalog.at_home(ObjectKind.INDEX) for dependency in it.dependencies}
    root = next(iter(users.values()))
    yield from ({**row, "relowner": root} for row in _system_classes())
    for it in relations(catalog):
        kept = "t" if is_temporary(it.schema) else "p"
        place = {"relnamespace": namespaces[it.schema], "relowner": users[it.owner], "relpersistence": kept}
        stored = it.relation is not None
        size = facts.sizes.get(it.id, 0)
        yield place | {
            "oid": oid_of(it.id),
            "relname": it.name,
            "relam": {"r": oids.HEAP, "m": oids.HEAP, "i": oids.BTREE}.get(_KINDS[it.kind], 0),
            "relfilenode": oid_of(it.id) if stored else 0,
            "relpages": -(-size // _BLOCK_BYTES),
            "reltuples": float(facts.counts.get(it.id, 0)) if stored else -1.0,
            "relhasindex": bool(key_of(it)) or it.id in indexed,
            "relkind": _KINDS[it.kind],
            "relnatts": len(it.columns),
            "relhasrules": it.kind in (ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW),
            "relispopulated": True,
            "relreplident": "n" if it.kind in (ObjectKind.VIEW, ObjectKind.INDEX) else "d",
            "relacl": access_list(catalog, it.id, it.owner),
        }
        if key_of(it):
            yield place | {
                "oid": oids.key_index_oid(it.id),
                "relname": key_constraint(it),
                "relam": oids.BTREE,
                "relkind": "i",
                "relnatts": len(key_of(it)),
                "relispopulated": True,
                "relreplident": "n",
            }
    for it in catalog.at_home(ObjectKind.SINK, ObjectKind.SUBSCRIPTION):  # PostgreSQL knows no such kinds
        yield {
            "oid": oid_of(it.id),
            "relname": it.name,
            "relnamespace": namespaces[it.schema],
            "relowner": users[it.owner],
            "relkind": None,
            "relacl": access_list(catalog, it.id, it.owner),
        }


@cache
def _system_classes() -> tuple[Row, ...]:
    found = [(it.schema, it.name, it.oid, it.kind, len(it.columns)) for it in shapes().values()]
    found += [(it.schema, it.name, it.oid, "v", len(it.columns)) for it in rw_catalog.VIEWS]
    return tuple(
        {
            "oid": oid,
            "relname": name,
            "relnamespace": SYSTEM_NAMESPACES[schema],
            "relkind": kind,
            "relnatts": width,
            "relpersistence": "p",
            "reltuples": -1.0,
            "relispopulated": True,
            "relreplident": "n",
        }
        for schema, name, oid, kind, width in found
    )


def _pg_attribute(facts: Facts) -> Iterator[Row]:
    yield from _system_attributes()
    for it in relations(facts.catalog):
        if it.kind is not ObjectKind.INDEX:
            yield from (_attribute(oid_of(it.id), n, column) for n, column in enumerate(it.columns, 1))
        elif it.relation is not None:
            keyed = it.properties.get("columns") or [column.name for column in it.columns]
            by_name = {column.name: column for column in it.columns}
            listed = [by_name[name] for name in keyed if name in by_name]
            yield from (_attribute(oid_of(it.id), n, column) for n, column in enumerate(listed, 1))
        if key_of(it):
            by_name = {column.name: column for column in it.columns}
            index = oids.key_index_oid(it.id)
            yield from (_attribute(index, n, by_name[name]) for n, name in enumerate(key_of(it), 1))


def _attribute(relation: int, number: int, column: Column) -> Row:
    oid = type_oid(column.type)
    pg_type = pg_types()[oid]
    return {
        "attrelid": relation,
        "attname": column.name,
        "atttypid": oid,
        "attstattarget": -1,
        "attlen": pg_type.length,
        "attnum": number,
        "attndims": 1 if column.type.kind is Kind.ARRAY else 0,
        "attcacheoff": -1,
        "atttypmod": type_modifier(column.type),
        "attbyval": pg_type.by_value,
        "attalign": pg_type.alignment,
        "attstorage": pg_type.storage,
        "attnotnull": not column.nullable,
        "atthasdef": column.default is not None or column.generated is not None,
        "attgenerated": "s" if column.generated is not None else "",
        "attislocal": True,
        "attcollation": pg_type.collation,
    }


@cache
def _system_attributes() -> tuple[Row, ...]:
    found = [
        _system_attribute(it.oid, n, column, type_name)
        for it in shapes().values()
        for n, (column, type_name) in enumerate(zip(it.columns, it.types, strict=True), 1)
    ]
    found += [_attribute(it.oid, n, column) for it in rw_catalog.VIEWS for n, column in enumerate(it.columns, 1)]
    return tuple(found)


def _system_attribute(relation: int, number: int, column: Column, type_name: str) -> Row:
    """As `_attribute`, of the type that PostgreSQL's own column has."""
    return {**_attribute(relation, number, column), "atttypid": find_type(type_name) or type_oid(column.type)}


def _pg_attrdef(facts: Facts) -> Iterator[Row]:
    for it in relations(facts.catalog):
        for number, column in enumerate(it.columns, 1):
            expression = column.default if column.default is not None else column.generated
            if expression is not None:
                yield {
                    "oid": oids.default_oid(it.id, number),
                    "adrelid": oid_of(it.id),
                    "adnum": number,
                    "adbin": expression,
                }


def _pg_index(facts: Facts) -> Iterator[Row]:
    catalog = facts.catalog
    for it in relations(catalog):
        if key_of(it):
            yield _index(oids.key_index_oid(it.id), it, key_of(it), primary=True)
        if it.kind is ObjectKind.INDEX:
            for table in sorted(it.dependencies):
                names = it.properties.get("columns") or [column.name for column in it.columns]
                included = tuple(it.properties.get("include") or ())
                yield _index(oid_of(it.id), catalog.get(table), tuple(names), included, primary=False)


def _index(
    oid: int, table: CatalogObject, names: tuple[str, ...], included: tuple[str, ...] = (), *, primary: bool
) -> Row:
    numbers = {column.name: number for number, column in enumerate(table.columns, 1)}
    keys = [numbers.get(name, 0) for name in names]
    others = [numbers.get(name, 0) for name in included]
    return {
        "indexrelid": oid,
        "indrelid": oid_of(table.id),
        "indnatts": len(keys) + len(others),
        "indnkeyatts": len(keys),
        "indisunique": primary,
        "indisprimary": primary,
        "indimmediate": True,
        "indisvalid": True,
        "indisready": True,
        "indislive": True,
        "indkey": [*keys, *others],
        "indcollation": [0] * len(keys),
        "indclass": [0] * len(keys),
        "indoption": [0] * len(keys),
    }


def _pg_constraint(facts: Facts) -> Iterator[Row]:
    namespaces = schema_oids(facts.catalog)
    for it in relations(facts.catalog):
        if key_of(it):
            numbers = {column.name: number for number, column in enumerate(it.columns, 1)}
            yield {
                "oid": oids.key_constraint_oid(it.id),
                "conname": key_constraint(it),
                "connamespace": namespaces[it.schema],
                "contype": "p",
                "convalidated": True,
                "conrelid": oid_of(it.id),
                "conindid": oids.key_index_oid(it.id),
                "conislocal": True,
                "connoinherit": True,
                "conkey": [numbers[name] for name in key_of(it)],
            }


def _pg_rewrite(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW):
        yield {
            "oid": oids.rule_oid(it.id),
            "rulename": "_RETURN",
            "ev_class": oid_of(it.id),
            "ev_type": "1",
            "ev_enabled": "O",
            "is_instead": True,
            "ev_qual": "",
            "ev_action": query_of(it),
        }


def _pg_depend(facts: Facts) -> Iterator[Row]:
    """A view depends on what it reads through its rule, an index on its table directly."""
    for it in facts.catalog.at_home(*VISIBLE):
        view = it.kind in (ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW)
        dependant = (oids.PG_REWRITE_OID, oids.rule_oid(it.id)) if view else (oids.PG_CLASS_OID, oid_of(it.id))
        if view:
            yield _dependency(*dependant, oid_of(it.id), "i")
        for other in sorted(it.dependencies):
            if facts.catalog.get(other).kind in VISIBLE:
                yield _dependency(*dependant, oid_of(other), "n" if view else "a")


def _dependency(catalog: int, dependant: int, used: int, kind: str) -> Row:
    return {
        "classid": catalog,
        "objid": dependant,
        "refclassid": oids.PG_CLASS_OID,
        "refobjid": used,
        "deptype": kind,
    }


def _pg_description(facts: Facts) -> Iterator[Row]:
    catalog = facts.catalog
    schemas = {it.id for it in catalog.home_schemas}
    for comment in sorted(catalog.comments, key=lambda it: it.key):
        item = catalog.by_id.get(comment.target)
        if item is not None:
            if item.database != catalog.home:
                continue
            names = [column.name for column in item.columns]
            if comment.column is None or comment.column in names:
                function = item.kind is ObjectKind.FUNCTION
                yield {
                    "objoid": oid_of(item.id),
                    "classoid": oids.PG_PROC_OID if function else oids.PG_CLASS_OID,
                    "objsubid": names.index(comment.column) + 1 if comment.column is not None else 0,
                    "description": comment.text,
                }
        elif comment.target in schemas:
            yield {
                "objoid": oid_of(comment.target),
                "classoid": oids.PG_NAMESPACE_OID,
                "description": comment.text,
            }


def _pg_shdescription(facts: Facts) -> Iterator[Row]:
    databases = {it.id for it in facts.catalog.databases}
    for comment in sorted(facts.catalog.comments, key=lambda it: it.key):
        if comment.target in databases:
            yield {
                "objoid": oid_of(comment.target),
                "classoid": oids.PG_DATABASE_OID,
                "description": comment.text,
            }


# --- schemas, databases, users -----------------------------------------------------------------------


def _pg_namespace(facts: Facts) -> Iterator[Row]:
    catalog = facts.catalog
    users = user_oids(catalog)
    root = next(iter(users.values()))
    yield from ({"oid": oid, "nspname": name, "nspowner": root} for name, oid in SYSTEM_NAMESPACES.items())
    for it in catalog.home_schemas:
        acl = access_list(catalog, it.id, it.owner)
        yield {"oid": oid_of(it.id), "nspname": it.name, "nspowner": users[it.owner], "nspacl": acl}


def _pg_database(facts: Facts) -> Iterator[Row]:
    users = user_oids(facts.catalog)
    for it in facts.catalog.databases:
        yield {
            "oid": oid_of(it.id),
            "datname": it.name,
            "datdba": users[it.owner],
            "encoding": _UTF8,
            "datlocprovider": "c",
            "datallowconn": True,
            "datconnlimit": _ALL_CONNECTIONS,
            "dattablespace": oids.DEFAULT_TABLESPACE,
            "datcollate": "C",
            "datctype": "C",
            "datacl": access_list(facts.catalog, it.id, it.owner),
        }


def _pg_roles(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.users:
        yield {
            "oid": user_oid(it.id),
            "rolname": it.name,
            "rolsuper": it.superuser,
            "rolinherit": True,
            "rolcreaterole": it.create_user,
            "rolcreatedb": it.create_db,
            "rolcanlogin": it.can_login,
            "rolreplication": it.superuser,
            "rolconnlimit": _ALL_CONNECTIONS,
            "rolpassword": "********",
            "rolbypassrls": it.superuser,
        }


def _pg_authid(facts: Facts) -> Iterator[Row]:
    for row in _pg_roles(facts):
        yield {**row, "rolpassword": None}  # verifiers are shown to nobody


def _pg_user(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.users:
        if it.can_login:
            yield {
                "usename": it.name,
                "usesysid": user_oid(it.id),
                "usecreatedb": it.create_db,
                "usesuper": it.superuser,
                "userepl": False,
                "usebypassrls": it.superuser,
                "passwd": "********",
            }


def _pg_shadow(facts: Facts) -> Iterator[Row]:
    for row in _pg_user(facts):
        yield {**row, "userepl": False, "usebypassrls": False, "passwd": None}


# --- views over the above ----------------------------------------------------------------------------


def _pg_tables(facts: Facts) -> Iterator[Row]:
    indexed = {dependency for it in facts.catalog.at_home(ObjectKind.INDEX) for dependency in it.dependencies}
    for it in facts.catalog.at_home(ObjectKind.TABLE, ObjectKind.SOURCE):
        yield {
            "schemaname": it.schema,
            "tablename": it.name,
            "tableowner": it.owner,
            "hasindexes": bool(key_of(it)) or it.id in indexed,
            "hasrules": False,
            "hastriggers": False,
            "rowsecurity": False,
        }


def _pg_views(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.VIEW):
        yield {"schemaname": it.schema, "viewname": it.name, "viewowner": it.owner, "definition": query_of(it)}


def _pg_matviews(facts: Facts) -> Iterator[Row]:
    indexed = {dependency for it in facts.catalog.at_home(ObjectKind.INDEX) for dependency in it.dependencies}
    for it in facts.catalog.at_home(ObjectKind.MATERIALIZED_VIEW):
        yield {
            "schemaname": it.schema,
            "matviewname": it.name,
            "matviewowner": it.owner,
            "hasindexes": it.id in indexed,
            "ispopulated": True,
            "definition": query_of(it),
        }


def _pg_indexes(facts: Facts) -> Iterator[Row]:
    for it in relations(facts.catalog):
        if key_of(it):
            yield _shown_index(it, key_constraint(it), index_definition(it, None))
        if it.kind is ObjectKind.INDEX:
            for table in sorted(it.dependencies):
                found = facts.catalog.get(table)
                yield _shown_index(found, it.name, index_definition(found, it))


def _shown_index(table: CatalogObject, name: str, definition: str) -> Row:
    return {"schemaname": table.schema, "tablename": table.name, "indexname": name, "indexdef": definition}


def _pg_stat_tables(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(ObjectKind.TABLE, ObjectKind.SOURCE, ObjectKind.MATERIALIZED_VIEW):
        yield {
            "relid": oid_of(it.id),
            "schemaname": it.schema,
            "relname": it.name,
            "n_live_tup": facts.counts.get(it.id, 0),
        }


def _constant(*given: Row) -> Callable[[Facts], Iterable[Row]]:
    return lambda facts: given


_HEAP = {"oid": oids.HEAP, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
_BTREE = {"oid": oids.BTREE, "amname": "btree", "amhandler": "bthandler", "amtype": "i"}

_FILLED: Mapping[str, Callable[[Facts], Iterable[Row]]] = {
    "pg_am": _constant(_HEAP, _BTREE),
    "pg_attrdef": _pg_attrdef,
    "pg_attribute": _pg_attribute,
    "pg_authid": _pg_authid,
    "pg_class": _pg_class,
    "pg_constraint": _pg_constraint,
    "pg_database": _pg_database,
    "pg_depend": _pg_depend,
    "pg_description": _pg_description,
    "pg_index": _pg_index,
    "pg_indexes": _pg_indexes,
    "pg_language": _constant(
        {"oid": 12, "lanname": "internal", "lanowner": user_oid(oids.ROOT_ID)},
        {"oid": LANGUAGES["sql"], "lanname": "sql", "lanowner": user_oid(oids.ROOT_ID), "lanpltrusted": True},
        {"oid": LANGUAGES["python"], "lanname": "python", "lanowner": user_oid(oids.ROOT_ID)},
    ),
    "pg_matviews": _pg_matviews,
    "pg_namespace": _pg_namespace,
    "pg_proc": pg_server.pg_proc,
    "pg_rewrite": _pg_rewrite,
    "pg_roles": _pg_roles,
    "pg_settings": pg_server.pg_settings,
    "pg_shadow": _pg_shadow,
    "pg_shdescription": _pg_shdescription,
    "pg_stat_activity": pg_server.pg_stat_activity,
    "pg_stat_all_tables": _pg_stat_tables,
    "pg_stat_user_tables": _pg_stat_tables,
    "pg_tables": _pg_tables,
    "pg_tablespace": _constant(
        {"oid": oids.DEFAULT_TABLESPACE, "spcname": "pg_default", "spcowner": user_oid(oids.ROOT_ID)},
        {"oid": 1664, "spcname": "pg_global", "spcowner": user_oid(oids.ROOT_ID)},
    ),
    "pg_type": pg_server.pg_type,
    "pg_user": _pg_user,
    "pg_views": _pg_views,
}
_PASSING = frozenset({"pg_settings", "pg_stat_activity", "pg_class", "pg_stat_all_tables", "pg_stat_user_tables"})


def _view(it: Shape) -> SystemView:
    fill = _FILLED.get(it.name)

    def rows(facts: Facts) -> Rows:
        return it.rows(fill(facts)) if fill is not None else []

    return SystemView(it.schema, it.name, it.columns, rows, it.oid, lasting=it.name not in _PASSING)


VIEWS = tuple(_view(it) for it in shapes().values() if it.schema == SCHEMA)

assert all(shape(SCHEMA, name) for name in _FILLED)
