"""Rows of `pg_catalog` about the server itself: types, functions, settings and sessions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from seiche.catalog import oids
from seiche.catalog.facts import Facts, moment
from seiche.catalog.objects import ObjectKind
from seiche.catalog.oids import oid_of, schema_oids, user_oids
from seiche.catalog.postgres.types import pg_types, type_oid

Row = Mapping[str, Any]

LANGUAGES = {"sql": 14, "python": 15}


def pg_type(facts: Facts) -> Iterator[Row]:
    root = next(iter(user_oids(facts.catalog).values()))
    return ({**row, "typowner": root} for row in _built_in_types())


@cache
def _built_in_types() -> tuple[Row, ...]:
    return tuple(
        {
            "oid": it.oid,
            "typname": it.name,
            "typnamespace": oids.PG_CATALOG_OID,
            "typlen": it.length,
            "typbyval": it.by_value,
            "typtype": it.kind,
            "typcategory": it.category,
            "typispreferred": it.preferred,
            "typisdefined": True,
            "typdelim": it.delimiter,
            "typelem": it.element,
            "typarray": it.array,
            "typinput": it.input,
            "typoutput": it.output,
            "typreceive": it.receive,
            "typsend": it.send,
            "typmodin": "-",
            "typmodout": "-",
            "typanalyze": "-",
            "typsubscript": "array_subscript_handler" if it.category == "A" else "-",
            "typalign": it.alignment,
            "typstorage": it.storage,
            "typtypmod": -1,
            "typcollation": it.collation,
        }
        for it in pg_types().values()
    )


def pg_proc(facts: Facts) -> Iterator[Row]:
    """The functions that users made; those of SQL itself are not listed."""
    catalog = facts.catalog
    namespaces, users = schema_oids(catalog), user_oids(catalog)
    for it in catalog.at_home(ObjectKind.FUNCTION):
        arguments, result = it.columns[:-1], it.columns[-1:]
        yield {
            "oid": oid_of(it.id),
            "proname": it.name,
            "pronamespace": namespaces[it.schema],
            "proowner": users[it.owner],
            "prolang": LANGUAGES.get(str(it.properties.get("language")), LANGUAGES["sql"]),
            "procost": 1.0,
            "prokind": "a" if it.properties.get("aggregate") else "f",
            "proretset": bool(it.properties.get("rows")),
            "provolatile": "i",
            "proparallel": "s",
            "pronargs": len(arguments),
            "prorettype": type_oid(result[0].type) if result else 0,
            "proargtypes": [type_oid(column.type) for column in arguments],
            "proargnames": [column.name for column in arguments] if any(column.name for column in arguments) else None,
            "prosrc": it.definition,
        }


def pg_settings(facts: Facts) -> Iterator[Row]:
    for it in facts.variables:
        yield {
            "name": it.name,
            "setting": it.value,
            "category": "Session",
            "short_desc": it.meaning,
            "context": "user",
            "vartype": "string",
            "source": "default" if it.value == it.default else "session",
            "boot_val": it.default,
            "reset_val": it.default,
            "pending_restart": False,
        }
    for name, value in sorted(facts.settings.items()):
        yield {
            "name": name,
            "setting": value,
            "category": "System",
            "short_desc": "system parameter",
            "context": "postmaster",
            "vartype": "string",
            "source": "configuration file",
            "boot_val": value,
            "reset_val": value,
            "pending_restart": False,
        }


def pg_stat_activity(facts: Facts) -> Iterator[Row]:
    users = user_oids(facts.catalog)
    databases = {it.name: oid_of(it.id) for it in facts.catalog.databases}
    for it in facts.sessions:
        yield {
            "datid": databases.get(it.database),
            "datname": it.database,
            "pid": it.pid,
            "usesysid": users.get(it.user),
            "usename": it.user,
            "application_name": it.application,
            "client_addr": it.client,
            "backend_start": moment(it.started_ms),
            "query_start": moment(it.query_started_ms) if it.query_started_ms is not None else None,
            "state": "active" if it.active else "idle",
            "query": it.query,
            "backend_type": "client backend",
        }
