"""Values to rows and back: how a checkpoint is written to the tables and how the stored state is read from them.

Works inside a transaction that it is given. `CheckpointWriter.write` costs one statement for each part of the
checkpoint that is not empty; nothing here depends on which of the two databases it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Connection
from sqlalchemy.sql.dml import Delete, Insert

from seiche.catalog import tables
from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint, Event, VnodeProgress
from seiche.catalog.objects import (
    CatalogObject,
    Comment,
    Database,
    DefaultGrant,
    Grant,
    ObjectKind,
    ObjectStatus,
    Privilege,
    Schema,
    User,
)
from seiche.errors import InvariantError
from seiche.model import (
    Base,
    Column,
    DataFile,
    Epoch,
    JobId,
    ObjectId,
    Pin,
    RelationId,
    RelationSchema,
    Segment,
)

EVENTS_KEPT = 10_000  # the oldest go first
HISTORY_KEPT = 500  # of each job; the oldest go first

COMMITTED_EPOCH = "committed_epoch"
NEXT_ID = "next_id"


@dataclass(frozen=True, slots=True)
class StoredState:
    """Everything that was durable at the committed epoch. Segments are in order of relation and epoch."""

    catalog: Catalog
    committed_epoch: Epoch
    bases: Mapping[RelationId, Base]
    segments: tuple[Segment, ...]
    pins: tuple[Pin, ...]
    progress: Mapping[JobId, Mapping[str, Any]]
    backfill: tuple[VnodeProgress, ...]
    offsets: Mapping[ObjectId, Mapping[str, str]]
    row_counters: Mapping[RelationId, int]
    settings: Mapping[str, str]


class CheckpointWriter:
    """Writes checkpoints. Statements are built once, since building one takes longer than running it."""

    def __init__(self, *, is_sqlite: bool) -> None:
        self._upserts = {table.name: _upsert(table, is_sqlite=is_sqlite) for table in tables.metadata.tables.values()}

    def write(self, connection: Connection, checkpoint: Checkpoint) -> None:
        """Drops first, then puts. The caller has checked the lease and the epoch."""
        self._drop(connection, checkpoint)
        self._put_catalog(connection, checkpoint)
        self._put_relations(connection, checkpoint)
        self._put_jobs(connection, checkpoint)
        _append_log(
            connection,
            tables.events,
            [{"time_ms": it.time_ms, "kind": it.kind, "info": _to_json(it.info)} for it in checkpoint.events],
        )
        _append_history(connection, checkpoint.refresh_history)
        if checkpoint.epoch is not None:
            self._put(connection, tables.counters, [{"name": COMMITTED_EPOCH, "value": checkpoint.epoch}])

    def _put(self, connection: Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
        if rows:
            connection.execute(self._upserts[table.name], rows)

    def _drop(self, connection: Connection, checkpoint: Checkpoint) -> None:
        # What hangs on an object goes with it by its foreign keys; grants hang on ids of several tables.
        for table, ids in (
            (tables.objects, checkpoint.drop_objects),
            (tables.schemas, checkpoint.drop_schemas),
            (tables.databases, checkpoint.drop_databases),
        ):
            _delete(connection, tables.grants.c.target_id, ids)
            _delete(connection, tables.comments.c.target_id, ids)
            _delete(connection, table.c.id, ids)
        _delete(connection, tables.refresh_history.c.job_id, checkpoint.drop_objects)
        _delete(connection, tables.users.c.id, checkpoint.drop_users)
        _delete_by_key(connection, tables.grants, checkpoint.drop_grants)
        _delete_by_key(connection, tables.default_grants, checkpoint.drop_default_grants)
        _delete_by_key(connection, tables.comments, checkpoint.drop_comments)
        _delete(connection, tables.segments.c.path, checkpoint.remove_segments)
        _delete(connection, tables.pins.c.holder, checkpoint.drop_pins)
        _delete(connection, tables.backfill.c.job_id, checkpoint.drop_backfill)

    def _put_catalog(self, connection: Connection, checkpoint: Checkpoint) -> None:
        self._put(
            connection,
            tables.users,
            [
                {
                    "id": it.id,
                    "name": it.name,
                    "superuser": it.superuser,
                    "can_login": it.can_login,
                    "create_db": it.create_db,
                    "create_user": it.create_user,
                    "verifier": it.verifier,
                }
                for it in checkpoint.put_users
            ],
        )
        self._put(
            connection,
            tables.grants,
            [
                {
                    "user_id": it.user,
                    "target_id": it.target,
                    "privilege": it.privilege.value,
                    "grantable": it.grantable,
                }
                for it in checkpoint.put_grants
            ],
        )
        self._put(
            connection,
            tables.default_grants,
            [
                {
                    "owner_id": it.owner,
                    "schema_id": it.schema or 0,
                    "kind": it.kind.name if it.kind is not None else "",
                    "user_id": it.user,
                    "privilege": it.privilege.value,
                    "grantable": it.grantable,
                }
                for it in checkpoint.put_default_grants
            ],
        )
        self._put(
            connection,
            tables.comments,
            [
                {"target_id": it.target, "column_name": it.column or "", "comment": it.text}
                for it in checkpoint.put_comments
            ],
        )
        if not (checkpoint.put_databases or checkpoint.put_schemas or checkpoint.put_objects):
            return
        user_ids = _ids(connection, tables.users.c.name)
        self._put(
            connection,
            tables.databases,
            [{"id": it.id, "name": it.name, "owner_id": _known(user_ids, it.owner)} for it in checkpoint.put_databases],
        )
        database_ids = _ids(connection, tables.databases.c.name)
        self._put(
            connection,
            tables.schemas,
            [
                {
                    "id": it.id,
                    "database_id": _known(database_ids, it.database),
                    "name": it.name,
                    "owner_id": _known(user_ids, it.owner),
                }
                for it in checkpoint.put_schemas
            ],
        )
        self._put_objects(connection, checkpoint.put_objects, database_ids, user_ids)

    def _put_objects(
        self,
        connection: Connection,
        items: tuple[CatalogObject, ...],
        database_ids: Mapping[Any, int],
        user_ids: Mapping[Any, int],
    ) -> None:
        if not items:
            return
        schema_ids = _ids(connection, tables.schemas.c.database_id, tables.schemas.c.name)
        if len(items) > 1:
            # Two objects may swap their names, which no order of single updates gets past the unique key.
            aside = sa.update(tables.objects).where(tables.objects.c.id == sa.bindparam("put"))
            free = sa.literal("renaming object ") + sa.cast(tables.objects.c.id, sa.Text)
            connection.execute(aside.values(name=free), [{"put": it.id} for it in items])
        self._put(
            connection,
            tables.objects,
            [
                {
                    "id": it.id,
                    "kind": it.kind.name,
                    "namespace": it.namespace,
                    "schema_id": _known(schema_ids, (_known(database_ids, it.database), it.schema)),
                    "name": it.name,
                    "owner_id": _known(user_ids, it.owner),
                    "definition": it.definition,
                    "columns": _to_json([column.to_json() for column in it.columns]),
                    "relation": _to_json(it.relation.to_json()) if it.relation is not None else None,
                    "status": it.status.name,
                    "properties": _to_json(it.properties),
                    "parent_id": it.parent,
                    "created_ms": it.created_ms,
                }
                for it in items
            ],
        )
        _delete(connection, tables.dependencies.c.object_id, [it.id for it in items])
        self._put(
            connection,
            tables.dependencies,
            [{"object_id": it.id, "depends_on": other} for it in items for other in sorted(it.dependencies)],
        )

    def _put_relations(self, connection: Connection, checkpoint: Checkpoint) -> None:
        if checkpoint.add_segments:
            # Not an upsert: a path that is there already would be a file written twice.
            connection.execute(
                _INSERT_SEGMENT,
                [
                    {
                        "path": it.path,
                        "relation_id": it.relation,
                        "epoch_lo": it.epoch_lo,
                        "epoch_hi": it.epoch_hi,
                        "rows": it.rows,
                        "bytes": it.bytes,
                        "fresh": it.fresh,
                    }
                    for it in checkpoint.add_segments
                ],
            )
        self._put(
            connection,
            tables.bases,
            [
                {"relation_id": it.relation, "snapshot_id": it.snapshot_id, "fold_epoch": it.fold_epoch}
                for it in checkpoint.put_bases
            ],
        )
        _delete(connection, tables.base_files.c.relation_id, [it.relation for it in checkpoint.put_bases])
        self._put(
            connection,
            tables.base_files,
            [
                {
                    "relation_id": base.relation,
                    "position": position,
                    "path": it.path,
                    "rows": it.rows,
                    "bytes": it.bytes,
                    "vnode_lo": it.vnode_lo,
                    "vnode_hi": it.vnode_hi,
                }
                for base in checkpoint.put_bases
                for position, it in enumerate(base.files)
            ],
        )
        self._put(
            connection,
            tables.pins,
            [
                {"holder": it.holder, "scope": it.relation or 0, "relation_id": it.relation, "epoch": it.epoch}
                for it in checkpoint.put_pins
            ],
        )
        self._put(
            connection,
            tables.row_counters,
            [{"relation_id": id, "next_row_id": value} for id, value in checkpoint.row_counters.items()],
        )

    def _put_jobs(self, connection: Connection, checkpoint: Checkpoint) -> None:
        states = checkpoint.put_progress
        _delete(connection, tables.progress.c.job_id, [job for job, state in states.items() if state is None])
        self._put(
            connection,
            tables.progress,
            [{"job_id": job, "state": _to_json(state)} for job, state in states.items() if state is not None],
        )
        self._put(
            connection,
            tables.backfill,
            [
                {
                    "job_id": it.job,
                    "relation_id": it.relation,
                    "vnode": it.vnode,
                    "position": it.position,
                    "rows": it.rows,
                    "finished": it.finished,
                }
                for it in checkpoint.put_backfill
            ],
        )
        self._put(
            connection,
            tables.source_offsets,
            [
                {"source_id": source, "split": split, "position": offset}
                for source, splits in checkpoint.source_offsets.items()
                for split, offset in splits.items()
            ],
        )
        settings = checkpoint.settings
        _delete(connection, tables.settings.c.name, [name for name, value in settings.items() if value is None])
        self._put(
            connection,
            tables.settings,
            [{"name": name, "value": value} for name, value in settings.items() if value is not None],
        )


_INSERT_SEGMENT = sa.insert(tables.segments)
_DELETES: dict[sa.Column[Any], Delete] = {
    column: sa.delete(table).where(column == sa.bindparam("gone"))
    for table in tables.metadata.tables.values()
    for column in table.columns
}


def _upsert(table: sa.Table, *, is_sqlite: bool) -> Insert:
    key = [column.name for column in table.primary_key.columns]
    others = [column.name for column in table.columns if not column.primary_key]
    # The two constructs are spelled alike and share no type.
    insert: Any = sqlite.insert(table) if is_sqlite else postgresql.insert(table)
    if others:
        upsert = insert.on_conflict_do_update(index_elements=key, set_={name: insert.excluded[name] for name in others})
    else:
        upsert = insert.on_conflict_do_nothing(index_elements=key)
    return cast(Insert, upsert)


def _delete(connection: Connection, column: sa.Column[Any], values: Iterable[object]) -> None:
    # One statement run for each value rather than an IN list: that has a limit and defeats the statement cache.
    if rows := [{"gone": value} for value in values]:
        connection.execute(_DELETES[column], rows)


def _delete_by_key(connection: Connection, table: sa.Table, keys: Iterable[tuple[object, ...]]) -> None:
    columns = list(table.primary_key.columns)
    names = [f"key_{column.name}" for column in columns]
    if rows := [dict(zip(names, key, strict=True)) for key in sorted(keys, key=repr)]:
        matches = (column == sa.bindparam(name) for column, name in zip(columns, names, strict=True))
        connection.execute(sa.delete(table).where(*matches), rows)


def _append_log(connection: Connection, table: sa.Table, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(sa.insert(table), rows)
        newest = sa.select(sa.func.max(table.c.id)).scalar_subquery()
        connection.execute(sa.delete(table).where(table.c.id <= newest - EVENTS_KEPT))


_INSERT_HISTORY = sa.insert(tables.refresh_history)
_OLDEST_HISTORY = (
    sa.select(tables.refresh_history.c.id)
    .where(tables.refresh_history.c.job_id == sa.bindparam("job"))
    .order_by(tables.refresh_history.c.id.desc())
    .limit(1)
    .offset(sa.bindparam("kept"))
    .scalar_subquery()
)
_CUT_HISTORY = sa.delete(tables.refresh_history).where(
    tables.refresh_history.c.job_id == sa.bindparam("job"), tables.refresh_history.c.id <= _OLDEST_HISTORY
)


def _append_history(connection: Connection, entries: Sequence[Mapping[str, Any]]) -> None:
    """Each entry names its job. A busy one does not crowd out the entries of others."""
    if entries:
        connection.execute(_INSERT_HISTORY, [{"job_id": it["job_id"], "info": _to_json(it)} for it in entries])
        jobs = sorted({it["job_id"] for it in entries})
        connection.execute(_CUT_HISTORY, [{"job": job, "kept": HISTORY_KEPT} for job in jobs])


def _ids(connection: Connection, *names: sa.Column[Any]) -> dict[Any, int]:
    """The ids of a table by name, or by the tuple of several columns."""
    rows = connection.execute(sa.select(names[0].table.c.id, *names)).all()
    return {(row[1] if len(names) == 1 else tuple(row[1:])): row[0] for row in rows}


def _known(ids: Mapping[Any, int], name: object) -> int:
    try:
        return ids[name]
    except KeyError:
        raise InvariantError(f"checkpoint names {name!r}, which is not in the metadata database") from None


# Reading


def read_state(connection: Connection) -> StoredState:
    """All of it, in one transaction that sees one state."""

    def rows(table: sa.Table, *order: sa.Column[Any]) -> Iterable[sa.Row[Any]]:
        return connection.execute(sa.select(table).order_by(*order)).all()

    files: dict[int, list[DataFile]] = {}
    for it in rows(tables.base_files, tables.base_files.c.relation_id, tables.base_files.c.position):
        files.setdefault(it.relation_id, []).append(DataFile(it.path, it.rows, it.bytes, it.vnode_lo, it.vnode_hi))
    offsets: dict[ObjectId, dict[str, str]] = {}
    for it in rows(tables.source_offsets, tables.source_offsets.c.split):
        offsets.setdefault(ObjectId(it.source_id), {})[it.split] = it.position
    backfill_order = (tables.backfill.c.job_id, tables.backfill.c.relation_id, tables.backfill.c.vnode)
    segment_order = (tables.segments.c.relation_id, tables.segments.c.epoch_lo, tables.segments.c.path)
    return StoredState(
        catalog=_read_catalog(connection),
        committed_epoch=read_committed_epoch(connection),
        bases={
            RelationId(it.relation_id): Base(
                RelationId(it.relation_id), it.snapshot_id, Epoch(it.fold_epoch), tuple(files.get(it.relation_id, ()))
            )
            for it in rows(tables.bases)
        },
        segments=tuple(
            Segment(RelationId(relation), path, Epoch(lo), Epoch(hi), count, size, fresh)
            for path, relation, lo, hi, count, size, fresh in map(tuple, rows(tables.segments, *segment_order))
        ),
        pins=tuple(
            Pin(it.holder, RelationId(it.relation_id) if it.relation_id is not None else None, Epoch(it.epoch))
            for it in rows(tables.pins, tables.pins.c.holder, tables.pins.c.scope)
        ),
        progress={JobId(it.job_id): json.loads(it.state) for it in rows(tables.progress)},
        backfill=tuple(
            VnodeProgress(JobId(it.job_id), RelationId(it.relation_id), it.vnode, it.position, it.rows, it.finished)
            for it in rows(tables.backfill, *backfill_order)
        ),
        offsets=offsets,
        row_counters={RelationId(it.relation_id): it.next_row_id for it in rows(tables.row_counters)},
        settings={it.name: it.value for it in rows(tables.settings, tables.settings.c.name)},
    )


def read_committed_epoch(connection: Connection) -> Epoch:
    return Epoch(read_counter(connection, COMMITTED_EPOCH))


def read_counter(connection: Connection, name: str) -> int:
    value = sa.select(tables.counters.c.value).where(tables.counters.c.name == name)
    return int(connection.execute(value).scalar_one())


def read_events(connection: Connection, limit: int) -> tuple[Event, ...]:
    """The newest first."""
    newest = sa.select(tables.events).order_by(tables.events.c.id.desc()).limit(limit)
    return tuple(Event(it.time_ms, it.kind, json.loads(it.info)) for it in connection.execute(newest))


def read_refresh_history(connection: Connection, limit: int) -> tuple[Mapping[str, Any], ...]:
    """The newest first."""
    newest = sa.select(tables.refresh_history).order_by(tables.refresh_history.c.id.desc()).limit(limit)
    return tuple(json.loads(it.info) for it in connection.execute(newest))


def _read_catalog(connection: Connection) -> Catalog:
    users = {
        it.id: User(ObjectId(it.id), it.name, it.superuser, it.can_login, it.create_db, it.create_user, it.verifier)
        for it in connection.execute(sa.select(tables.users))
    }
    databases = {
        it.id: Database(ObjectId(it.id), it.name, users[it.owner_id].name)
        for it in connection.execute(sa.select(tables.databases))
    }
    schemas = {
        it.id: Schema(ObjectId(it.id), databases[it.database_id].name, it.name, users[it.owner_id].name)
        for it in connection.execute(sa.select(tables.schemas))
    }
    dependencies: dict[int, set[ObjectId]] = {}
    for it in connection.execute(sa.select(tables.dependencies)):
        dependencies.setdefault(it.object_id, set()).add(ObjectId(it.depends_on))
    objects = {
        ObjectId(it.id): CatalogObject(
            id=ObjectId(it.id),
            kind=ObjectKind[it.kind],
            name=it.name,
            definition=it.definition,
            columns=tuple(Column.from_json(column) for column in json.loads(it.columns)),
            relation=RelationSchema.from_json(json.loads(it.relation)) if it.relation is not None else None,
            database=schemas[it.schema_id].database,
            schema=schemas[it.schema_id].name,
            owner=users[it.owner_id].name,
            status=ObjectStatus[it.status],
            properties=MappingProxyType(json.loads(it.properties)),
            dependencies=frozenset(dependencies.get(it.id, ())),
            parent=ObjectId(it.parent_id) if it.parent_id is not None else None,
            created_ms=it.created_ms,
        )
        for it in connection.execute(sa.select(tables.objects))
    }
    grants = frozenset(
        Grant(ObjectId(it.user_id), ObjectId(it.target_id), Privilege(it.privilege), it.grantable)
        for it in connection.execute(sa.select(tables.grants))
    )
    comments = frozenset(
        Comment(ObjectId(it.target_id), it.column_name or None, it.comment)
        for it in connection.execute(sa.select(tables.comments))
    )
    default_grants = frozenset(
        DefaultGrant(
            ObjectId(it.owner_id),
            ObjectId(it.schema_id) if it.schema_id else None,
            ObjectKind[it.kind] if it.kind else None,
            ObjectId(it.user_id),
            Privilege(it.privilege),
            it.grantable,
        )
        for it in connection.execute(sa.select(tables.default_grants))
    )
    return Catalog(
        tuple(databases.values()),
        tuple(schemas.values()),
        tuple(users.values()),
        objects,
        grants,
        comments,
        default_grants,
    )


def _to_json(value: Any) -> str:
    plain = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(plain, separators=(",", ":"), sort_keys=True, allow_nan=False)
