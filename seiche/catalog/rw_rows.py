"""The rows of the views of `rw_catalog`, by column name. Columns that a row does not name are NULL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from seiche.catalog import oids
from seiche.catalog.access import access_list
from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import RECOVERED
from seiche.catalog.facts import Facts, moment
from seiche.catalog.objects import (
    CONFIG,
    CONNECTOR,
    FOLLOWING_KINDS,
    MADE_BY,
    SINK_RATE_LIMIT,
    CatalogObject,
    ObjectKind,
    ObjectStatus,
)
from seiche.catalog.parallelism import max_parallelism_of, parallelism_of
from seiche.catalog.postgres.types import pg_types, type_oid
from seiche.model import COMMIT_TIME, Column
from seiche.types import TIMESTAMPTZ

Row = Mapping[str, Any]

_RELATIONS = tuple(kind for kind in ObjectKind if kind.namespace == "relation")
_DATED = (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW)  # whose rows tell when they were written


def _heads(facts: Facts, *kinds: ObjectKind) -> Iterator[tuple[CatalogObject, dict[str, Any]]]:
    """Objects with the columns that views of objects share."""
    catalog = facts.catalog
    schemas = _schema_ids(catalog)
    users = oids.user_oids(catalog)
    for it in catalog.at_home(*kinds):
        yield (
            it,
            {
                "id": it.id,
                "name": it.name,
                "schema_id": schemas[it.schema],
                "owner": users[it.owner],
                "definition": facts.shown(it),
                "acl": access_list(catalog, it.id, it.owner) or [],
                "initialized_at": moment(it.created_ms),
                "created_at": moment(it.created_ms) if it.status is ObjectStatus.CREATED else None,
                "initialized_at_cluster_version": it.properties.get(MADE_BY),
                "created_at_cluster_version": it.properties.get(MADE_BY),
            },
        )


def _schema_ids(catalog: Catalog) -> dict[str, int]:
    """Those of `pg_namespace`, so that its rows can be joined."""
    return {it.name: oids.oid_of(it.id) for it in catalog.home_schemas}


def _append_only(it: CatalogObject) -> bool:
    return it.relation is not None and it.relation.append_only


def tables(facts: Facts) -> Iterator[Row]:
    for it, head in _heads(facts, ObjectKind.TABLE):
        yield head | {"append_only": _append_only(it), "refreshable": False}


def materialized_views(facts: Facts) -> Iterator[Row]:
    for it, head in _heads(facts, ObjectKind.MATERIALIZED_VIEW):
        yield head | {
            "schema_name": it.schema,
            "append_only": _append_only(it),
            "background_ddl": bool(it.properties.get("background_ddl", False)),
            "status": it.status.value.capitalize(),
        }


def views(facts: Facts) -> Iterator[Row]:
    for _, head in _heads(facts, ObjectKind.VIEW):
        yield {name: value for name, value in head.items() if name != "initialized_at"}


def _options(it: CatalogObject) -> Mapping[str, Any]:
    found = it.properties.get("options", {})
    return found if isinstance(found, Mapping) else dict(found)


def sources(facts: Facts) -> Iterator[Row]:
    """Sources, and tables that fill themselves from a connector."""
    for it, head in _heads(facts, ObjectKind.SOURCE, ObjectKind.TABLE):
        options = _options(it)
        if CONNECTOR not in options:
            continue
        yield head | {
            "connector": str(options[CONNECTOR]).upper(),
            "columns": [column.name for column in it.columns],
            "format": it.properties.get("format"),
            "row_encode": it.properties.get("encode"),
            "append_only": _append_only(it),
            "is_shared": True,
            "connector_props": _jsonb(options),
            "format_encode_options": "{}",
        }


def sinks(facts: Facts) -> Iterator[Row]:
    for it, head in _heads(facts, ObjectKind.SINK):
        options = _options(it)
        yield head | {
            "connector": str(options.get(CONNECTOR, "")),
            "sink_type": str(options.get("type", "")),
            "background_ddl": bool(it.properties.get("background_ddl", False)),
            "connector_props": _jsonb(options),
            "format_encode_options": "{}",
        }


def indexes(facts: Facts) -> Iterator[Row]:
    for it, head in _heads(facts, ObjectKind.INDEX):
        for table in sorted(it.dependencies):
            numbers = {column.name: n for n, column in enumerate(facts.catalog.get(table).columns, 1)}
            keyed = it.properties.get("columns") or [column.name for column in it.columns]
            included = it.properties.get("include") or []
            yield head | {
                "primary_table_id": table,
                "key_columns": [numbers[name] for name in keyed if name in numbers],
                "include_columns": [numbers[name] for name in included if name in numbers],
                "background_ddl": bool(it.properties.get("background_ddl", False)),
            }


def subscriptions(facts: Facts) -> Iterator[Row]:
    for it, head in _heads(facts, ObjectKind.SUBSCRIPTION):
        yield head | {
            "schema_name": it.schema,
            "retention_seconds": int(it.properties.get("retention_ms", 0)) // 1000,
        }


def internal_tables(facts: Facts) -> Iterator[Row]:
    for it, head in _heads(facts, ObjectKind.INTERNAL):
        yield head | {"job_id": it.parent}


_FUNCTION_KINDS = (("aggregate", "aggregate"), ("rows", "table"))


def functions(facts: Facts) -> Iterator[Row]:
    for it, head in _heads(facts, ObjectKind.FUNCTION):
        types = [type_oid(column.type) for column in it.columns]
        plain = {name: head[name] for name in ("id", "name", "schema_id", "owner", "acl", "created_at")}
        yield plain | {
            "type": next((kind for flag, kind in _FUNCTION_KINDS if it.properties.get(flag)), "scalar"),
            "arg_type_ids": types[:-1],
            "return_type_id": types[-1] if types else 0,
            "language": str(it.properties.get("language", "sql")),
            "always_retry_on_network_error": False,
        }


def secrets(facts: Facts) -> Iterator[Row]:
    for _, head in _heads(facts, ObjectKind.SECRET):
        yield {name: head[name] for name in ("id", "schema_id", "name", "owner", "acl")}


def relations(facts: Facts) -> Iterator[Row]:
    for it, head in _heads(facts, *_RELATIONS):
        plain = {name: head[name] for name in ("id", "name", "schema_id", "owner", "definition", "acl")}
        yield plain | {"relation_type": "internal table" if it.kind is ObjectKind.INTERNAL else it.kind.value}


def column_rows(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(*_RELATIONS):
        listed = [each.as_shown for each in (it.relation.columns if it.relation is not None else it.columns)]
        if it.kind in _DATED and all(column.name != COMMIT_TIME for column in listed):
            listed.append(Column(COMMIT_TIME, TIMESTAMPTZ, hidden=True))
        key = it.relation.key if it.relation is not None else ()
        yield from (_column(it.id, n, column, column.name in key) for n, column in enumerate(listed, 1))


def _column(relation: int, position: int, column: Column, in_key: bool) -> Row:
    oid = type_oid(column.type)
    return {
        "relation_id": relation,
        "name": column.name,
        "position": position,
        "is_hidden": column.hidden,
        "is_primary_key": in_key,
        "is_distribution_key": in_key,
        "is_generated": column.generated is not None,
        "is_nullable": column.nullable,
        "generation_expression": column.generated,
        "data_type": str(column.type),
        "type_oid": oid,
        "type_len": pg_types()[oid].length,
        "udt_type": pg_types()[oid].name,
    }


def depend(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home():
        yield from ({"objid": it.id, "refobjid": other} for other in sorted(it.dependencies))


def system_parameters(facts: Facts) -> Iterator[Row]:
    return ({"name": name, "value": value} for name, value in sorted(facts.settings.items()))


def users(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.users:
        yield {
            "id": oids.user_oid(it.id),  # so that an owner is found in pg_roles, too
            "name": it.name,
            "is_super": it.superuser,
            "create_db": it.create_db,
            "create_user": it.create_user,
            "can_login": it.can_login,
            "is_admin": False,
        }


def schemas(facts: Facts) -> Iterator[Row]:
    users = oids.user_oids(facts.catalog)
    for it in facts.catalog.home_schemas:
        acl = access_list(facts.catalog, it.id, it.owner) or []
        yield {"id": oids.oid_of(it.id), "name": it.name, "owner": users[it.owner], "acl": acl}


def databases(facts: Facts) -> Iterator[Row]:
    users = oids.user_oids(facts.catalog)
    for it in facts.catalog.databases:
        acl = access_list(facts.catalog, it.id, it.owner) or []
        yield {"id": it.id, "name": it.name, "owner": users[it.owner], "acl": acl, "resource_group": "default"}


def description(facts: Facts) -> Iterator[Row]:
    for comment in sorted(facts.catalog.comments, key=lambda it: it.key):
        item = facts.catalog.by_id.get(comment.target)
        if item is not None and item.database != facts.database:
            continue
        names = [column.name for column in item.columns] if item is not None else []
        if comment.column is None or comment.column in names:
            yield {
                "objoid": comment.target if item is not None else oids.oid_of(comment.target),
                "classoid": oids.PG_CLASS_OID if item is not None else oids.PG_NAMESPACE_OID,
                "objsubid": names.index(comment.column) + 1 if comment.column is not None else 0,
                "description": comment.text,
            }


def types(facts: Facts) -> Iterator[Row]:
    for it in pg_types().values():
        if it.kind == "b":
            yield {
                "id": it.oid,
                "name": it.formatted,
                "input_oid": it.input,
                "typelem": it.element,
                "typarray": it.array,
            }


def ddl_progress(facts: Facts) -> Iterator[Row]:
    for it in facts.backfills:
        item = facts.catalog.by_id.get(it.job)  # type: ignore[call-overload]
        background = item is not None and bool(item.properties.get("background_ddl", False))
        yield {
            "ddl_id": it.job,
            "ddl_statement": it.statement,
            "create_type": "BACKGROUND" if background else "FOREGROUND",
            "progress": it.progress,
            "initialized_at": moment(it.started_ms),
            "is_serverless_backfill": False,
            "backfill_type": f"{it.kind.replace('-', '_').upper()}_BACKFILL",
        }


def backfill_progress(facts: Facts) -> Iterator[Row]:
    """A line for each relation that a view being created reads."""
    for it in facts.backfills:
        item = facts.catalog.by_id.get(it.job)  # type: ignore[call-overload]
        for other in sorted(it.inputs or item.dependencies) if item is not None else ():
            read = facts.catalog.get(other)
            yield {
                "job_id": it.job,
                "fragment_id": it.job,
                "job_name": f"{item.schema}.{item.name}",
                "upstream_table_name": f"{read.schema}.{read.name}",
                "progress": _share(*it.inputs[other]) if other in it.inputs else it.progress,
            }


def _share(done: int, total: int) -> str:
    return f"{100 * done / total if total else 100:.2f}% ({done}/{total})"


def rate_limits(facts: Facts) -> Iterator[Row]:
    """How fast the views that are being created may read, and what was asked of sinks."""
    for it in facts.backfills:
        if it.rate_limit is not None:
            yield _limited(it.job, "STREAM_SCAN", it.rate_limit)
    for sink in facts.catalog.at_home(ObjectKind.SINK):
        if SINK_RATE_LIMIT in sink.properties:
            yield _limited(sink.id, "SINK", sink.properties[SINK_RATE_LIMIT])


def job_config(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.objects():
        for key, value in it.properties.get(CONFIG, {}).items():
            yield {"id": it.id, "name": it.name, "key": key, "value": value}


def _limited(job: int, node: str, rate: int) -> Row:
    return {"fragment_id": job, "fragment_type": [node], "node_name": node, "table_id": job, "rate_limit": rate}


_FLAGS = {ObjectKind.MATERIALIZED_VIEW: ["MVIEW"], ObjectKind.SINK: ["SINK"]}


def fragments(facts: Facts) -> Iterator[Row]:
    """A fragment is known by the relation that it maintains."""
    kinds = (ObjectKind.TABLE, *FOLLOWING_KINDS, ObjectKind.INTERNAL)
    for it in facts.catalog.at_home(*kinds):
        job = it if it.parent is None else facts.catalog.get(it.parent)
        yield {
            "fragment_id": it.id,
            "table_id": it.parent if it.parent is not None else it.id,
            "distribution_type": "HASH",
            "state_table_ids": [it.id],
            "upstream_fragment_ids": sorted(it.dependencies),
            "flags": _FLAGS.get(it.kind, []),
            "parallelism": parallelism_of(job).shown(facts.cores),
            "max_parallelism": max_parallelism_of(job),
            "parallelism_policy": parallelism_of(job).text,
        }


def fragment_definitions(facts: Facts) -> Iterator[Row]:
    """Which statement made a fragment."""
    schemas = _schema_ids(facts.catalog)
    for row in fragments(facts):
        job = facts.catalog.get(row["table_id"])
        kind = "mv" if job.kind is ObjectKind.MATERIALIZED_VIEW else job.kind.value
        yield {
            "fragment_id": row["fragment_id"],
            "job_id": job.id,
            "schema_id": schemas[job.schema],
            "ddl_type": kind,
            "name": job.name,
        }


def fragment_parallelism(facts: Facts) -> Iterator[Row]:
    for row in fragments(facts):
        job = facts.catalog.get(row["table_id"])
        yield {**row, "id": job.id, "name": job.name, "relation_type": job.kind.value}


def table_fragments(facts: Facts) -> Iterator[Row]:
    """A line for each job."""
    for it in facts.catalog.at_home(*_JOBS):
        yield {
            "table_id": it.id,
            "status": "CREATING" if it.status is ObjectStatus.CREATING else "CREATED",
            "parallelism": parallelism_of(it).text,
            "max_parallelism": max_parallelism_of(it),
        }


def streaming_parallelism(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home(*_JOBS):
        yield {
            "id": it.id,
            "name": it.name,
            "relation_type": it.kind.value,
            "parallelism": parallelism_of(it).text,
            "max_parallelism": max_parallelism_of(it),
        }


_JOBS = (
    ObjectKind.TABLE,
    ObjectKind.MATERIALIZED_VIEW,
    ObjectKind.SOURCE,
    ObjectKind.SINK,
    ObjectKind.INDEX,
)


def jobs(facts: Facts) -> Iterator[Row]:
    database = facts.catalog.database(facts.database).id
    for it in facts.catalog.at_home(ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW, ObjectKind.SINK):
        yield {
            "id": it.id,
            "name": it.name,
            "database_id": database,
            "status": it.status.value.upper(),
            "parallelism": parallelism_of(it).text,
            "max_parallelism": max_parallelism_of(it),
            "resource_group": "default",
        }


def table_stats(facts: Facts) -> Iterator[Row]:
    for it in facts.catalog.at_home():
        if it.relation is not None:
            yield {
                "id": it.id,
                "total_key_count": facts.counts.get(it.id, 0),
                "total_key_size": 0,
                "total_value_size": facts.sizes.get(it.id, 0),
            }


def event_logs(facts: Facts) -> Iterator[Row]:
    for number, it in enumerate(facts.events):
        yield {
            "unique_id": f"{it.time_ms}-{number}",
            "timestamp": moment(it.time_ms),
            "event_type": it.kind,
            "info": _jsonb(it.info),
        }


def recovery_info(facts: Facts) -> Iterator[Row]:
    last = next((it for it in facts.events if it.kind == RECOVERED), None)
    for it in facts.catalog.databases:
        yield {
            "database_id": it.id,
            "database_name": it.name,
            "recovery_state": "RUNNING",
            "last_database_event": _jsonb(last.info) if last is not None else "",
            "last_global_event": _jsonb(last.info) if last is not None else "",
            "in_global_running": True,
            "in_global_recovering": False,
        }


def refresh_history(facts: Facts) -> Iterator[Row]:
    for it in facts.refresh_history:
        yield {
            "job_id": it.get("job_id"),
            "job_name": it.get("job_name"),
            "epoch": it.get("epoch"),
            "choice": it.get("choice"),
            "reason": it.get("reason"),
            "info": _jsonb(it),
        }


def batch_refresh_jobs(facts: Facts) -> Iterator[Row]:
    for it in facts.refreshes:
        view = facts.catalog.get(it.id)
        options = _options(view)
        yield {
            "id": it.id,
            "name": view.name,
            "interval_sec": options.get("refresh.interval.sec"),
            "cron": options.get("refresh.cron"),
            "state": it.state,
            "committed_epoch": it.committed_epoch,
            "lag_ms": it.lag_ms,
            "runs": it.runs,
            "rows_changed": it.rows,
            "last_error": it.last_error,
        }


def _jsonb(value: Mapping[str, Any]) -> str:
    """The value as jsonb is stored: keys sorted, no spaces."""
    return json.dumps(dict(value), sort_keys=True, separators=(",", ":"))


def none(facts: Facts) -> Iterable[Row]:
    return ()
