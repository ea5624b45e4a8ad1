"""The system views of schema `rw_catalog`: what exists, as rows that SQL can query.

Each view is a list of columns and a function from `Facts` to rows, and nothing else: no view reads the metadata
database. Names and columns follow RisingWave's, so that its tools find what they look for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Event
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import UndefinedTable, nearest
from seiche.model import Column, ObjectId
from seiche.types import BIGINT, BOOLEAN, INTEGER, JSONB, TIMESTAMPTZ, VARCHAR, SqlType

SCHEMA = "rw_catalog"

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the views show. `settings` holds every system parameter with its present value."""

    catalog: Catalog
    settings: Mapping[str, str] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    creating: Mapping[ObjectId, str] = field(default_factory=dict)  # how far each job in creation is
    refreshes: tuple[Refreshed, ...] = ()


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A view with a schedule: the epoch that it stands for, and how far that is behind."""

    id: ObjectId
    state: str
    committed_epoch: int
    lag_ms: int
    runs: int
    rows: int
    last_error: str | None


@dataclass(frozen=True, slots=True)
class SystemView:
    name: str
    columns: tuple[Column, ...]
    rows: Callable[[Facts], Rows]


def system_view(name: str) -> SystemView:
    """The view of that name, without its schema."""
    try:
        return SYSTEM_VIEWS[name]
    except KeyError:
        raise UndefinedTable(f'relation "{SCHEMA}.{name}" does not exist', hint=nearest(name, SYSTEM_VIEWS)) from None


def _columns(**types: SqlType) -> tuple[Column, ...]:
    return tuple(Column(name, type_) for name, type_ in types.items())


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _heads(facts: Facts, *kinds: ObjectKind) -> list[tuple[CatalogObject, tuple[Any, ...]]]:
    """Objects with the columns that all views of objects begin with: id, name, schema_id, owner, definition."""
    catalog = facts.catalog
    schemas = {(it.database, it.name): it.id for it in catalog.schemas}
    users = {it.name: it.id for it in catalog.users}
    return [
        (it, (it.id, it.name, schemas[it.database, it.schema], users[it.owner], it.definition))
        for it in catalog.objects(*kinds)
    ]


_HEAD = {"id": BIGINT, "name": VARCHAR, "schema_id": BIGINT, "owner": BIGINT, "definition": VARCHAR}
_RELATIONS = tuple(kind for kind in ObjectKind if kind is not ObjectKind.FUNCTION)


def _tables(facts: Facts) -> Rows:
    return [
        (*head, it.relation is not None and it.relation.append_only, _moment(it.created_ms))
        for it, head in _heads(facts, ObjectKind.TABLE)
    ]


def _materialized_views(facts: Facts) -> Rows:
    return [
        (*head, it.relation is not None and it.relation.append_only, it.status.value, _moment(it.created_ms))
        for it, head in _heads(facts, ObjectKind.MATERIALIZED_VIEW)
    ]


def _relations(facts: Facts) -> Rows:
    return [(*head, it.kind.value) for it, head in _heads(facts, *_RELATIONS)]


def _column_rows(facts: Facts) -> Rows:
    rows: Rows = []
    for it in facts.catalog.objects(*_RELATIONS):
        columns = it.relation.columns if it.relation is not None else it.columns
        key = it.relation.key if it.relation is not None else ()
        rows += [
            (
                it.id,
                column.name,
                position,
                column.hidden,
                column.name in key,
                column.generated is not None,
                column.nullable,
                str(column.type),
            )
            for position, column in enumerate(columns, start=1)
        ]
    return rows


def _depend(facts: Facts) -> Rows:
    return [(it.id, other) for it in facts.catalog.objects() for other in sorted(it.dependencies)]


def _system_parameters(facts: Facts) -> Rows:
    return sorted(facts.settings.items())


def _users(facts: Facts) -> Rows:
    return [(it.id, it.name, it.superuser, it.create_db, it.create_user, it.can_login) for it in facts.catalog.users]


def _schemas(facts: Facts) -> Rows:
    users = {it.name: it.id for it in facts.catalog.users}
    return [(it.id, it.name, users[it.owner]) for it in facts.catalog.schemas]


def _jsonb(value: Mapping[str, Any]) -> str:
    """The value as jsonb is stored: keys sorted, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _event_logs(facts: Facts) -> Rows:
    return [(_moment(it.time_ms), it.kind, _jsonb(it.info)) for it in facts.events]


def _ddl_progress(facts: Facts) -> Rows:
    found = [facts.catalog.get(each) for each in sorted(facts.creating)]
    return [(it.id, it.definition, facts.creating[it.id], _moment(it.created_ms)) for it in found]


def _batch_refresh_jobs(facts: Facts) -> Rows:
    rows: Rows = []
    for it in facts.refreshes:
        options = facts.catalog.get(it.id).properties.get("options", {})
        schedule = options.get("refresh.interval.sec"), options.get("refresh.cron")
        told = (it.state, it.committed_epoch, it.lag_ms, it.runs, it.rows, it.last_error)
        rows.append((it.id, facts.catalog.get(it.id).name, *schedule, *told))
    return rows


SYSTEM_VIEWS: Mapping[str, SystemView] = {
    view.name: view
    for view in (
        SystemView("rw_tables", _columns(**_HEAD, append_only=BOOLEAN, created_at=TIMESTAMPTZ), _tables),
        SystemView(
            "rw_materialized_views",
            _columns(**_HEAD, append_only=BOOLEAN, status=VARCHAR, created_at=TIMESTAMPTZ),
            _materialized_views,
        ),
        SystemView("rw_relations", _columns(**_HEAD, relation_type=VARCHAR), _relations),
        SystemView(
            "rw_columns",
            _columns(
                relation_id=BIGINT,
                name=VARCHAR,
                position=INTEGER,
                is_hidden=BOOLEAN,
                is_primary_key=BOOLEAN,
                is_generated=BOOLEAN,
                is_nullable=BOOLEAN,
                data_type=VARCHAR,
            ),
            _column_rows,
        ),
        SystemView("rw_depend", _columns(objid=BIGINT, refobjid=BIGINT), _depend),
        SystemView("rw_system_parameters", _columns(name=VARCHAR, value=VARCHAR), _system_parameters),
        SystemView(
            "rw_users",
            _columns(
                id=BIGINT,
                name=VARCHAR,
                is_super=BOOLEAN,
                create_db=BOOLEAN,
                create_user=BOOLEAN,
                can_login=BOOLEAN,
            ),
            _users,
        ),
        SystemView("rw_schemas", _columns(id=BIGINT, name=VARCHAR, owner=BIGINT), _schemas),
        SystemView(
            "rw_ddl_progress",
            _columns(ddl_id=BIGINT, ddl_statement=VARCHAR, progress=VARCHAR, initialized_at=TIMESTAMPTZ),
            _ddl_progress,
        ),
        SystemView(
            "rw_batch_refresh_jobs",
            _columns(
                id=BIGINT,
                name=VARCHAR,
                interval_sec=VARCHAR,
                cron=VARCHAR,
                state=VARCHAR,
                committed_epoch=BIGINT,
                lag_ms=BIGINT,
                runs=BIGINT,
                rows_changed=BIGINT,
                last_error=VARCHAR,
            ),
            _batch_refresh_jobs,
        ),
        SystemView("rw_event_logs", _columns(timestamp=TIMESTAMPTZ, event_type=VARCHAR, info=JSONB), _event_logs),
    )
}
