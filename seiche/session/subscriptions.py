"""Statements about subscriptions, and cursors over them, for one session."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import SUPERUSER, CatalogObject, ObjectKind, ObjectStatus
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InvalidDefinition,
    InvalidParameter,
    ObjectNotReady,
    UndefinedObject,
    UndefinedSchema,
    WrongObjectType,
    nearest,
)
from seiche.model import EPOCH_SHIFT, Epoch, ObjectId, RelationId
from seiche.session.database import Database, schedule_of
from seiche.session.ddl import CatalogCommand
from seiche.session.subscribed import RETENTION, defined, definition, duration_ms, retained_since
from seiche.session.subscription_cursor import Pieces, SubscriptionCursor
from seiche.session.variables import Variables
from seiche.sql import statements as ast


@dataclass(frozen=True, slots=True)
class _Retention:
    text: str
    ms: int


def _read_retention(options: ast.Options) -> _Retention:
    for name, _ in options:
        if name != RETENTION:
            raise InvalidParameter(
                f'unknown option "{name}" of a subscription',
                hint=nearest(name, (RETENTION,)) or f"{RETENTION} is known.",
            )
    text = dict(options).get(RETENTION)
    if text is None:
        raise InvalidDefinition(
            "subscription has no retention", hint=f"Say how long changes are kept: WITH ({RETENTION} = '1 day')."
        )
    return _Retention(text, duration_ms(text, RETENTION))


class Subscriptions:
    """What one session does with subscriptions."""

    def __init__(
        self, database: Database, variables: Variables, wait: Callable[[Future[Any]], Any], user: str = SUPERUSER
    ) -> None:
        self._database = database
        self._variables = variables
        self._wait = wait
        self._user = user

    def create(self, statement: ast.CreateSubscription) -> str | None:
        """Creates a subscription; a notice when it was there already."""
        catalog = self._database.catalog
        schema = self._schema(statement.name)
        name = statement.name.name
        if catalog.try_find((schema, name)) is not None:
            if statement.if_not_exists:
                return f'relation "{name}" already exists, skipping'
            raise DuplicateObject(f'relation "{name}" already exists', hint="Drop it first, or choose another name.")
        retention = _read_retention(statement.options)
        source = self._source(statement.source)
        (number,) = self._database.store.allocate_ids(1)
        item = CatalogObject(
            ObjectId(number),
            ObjectKind.SUBSCRIPTION,
            name,
            definition(statement),
            schema=schema,
            owner=self._user,
            properties={"retention_ms": retention.ms},
            dependencies=frozenset([source.id]),
            created_ms=self._database.clock.now_ms(),
        )

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            if source.id not in catalog.by_id:
                raise UndefinedObject(f'{source} that "{name}" is to follow was dropped meanwhile')
            known = replace(item, properties={**item.properties, "since_epoch": barrier.epoch})
            return catalog.with_objects(known), graph, Checkpoint(), None, None

        self._wait(self._database.coordinator.command(CatalogCommand(self._database, work)))
        return None

    def set_retention(self, name: ast.ObjectName, text: str) -> None:
        """Keeps changes for longer or shorter from now on. What is gone already does not come back."""
        found = self.find(name)
        retention = _read_retention(((RETENTION, text),))

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            item = catalog.get(found.id)
            kept = retained_since(item, self._database.clock.now_ms())
            properties = {**item.properties, "retention_ms": retention.ms, "since_epoch": kept}
            text = definition(replace(defined(item), options=((RETENTION, retention.text),)))
            return (
                catalog.with_objects(replace(item, properties=properties, definition=text)),
                graph,
                Checkpoint(),
                None,
                None,
            )

        self._wait(self._database.coordinator.command(CatalogCommand(self._database, work)))
        self._database.maintenance.note(RelationId(each) for each in found.dependencies)

    def declare(
        self, statement: ast.DeclareSubscriptionCursor, pieces: Pieces
    ) -> tuple[SubscriptionCursor, str | None]:
        """A cursor where the statement says, and a notice when it begins later than that."""
        found = self.find(statement.subscription)
        committed = self._database.runtime.versions.committed_epoch
        notice = None
        match statement.since:
            case ast.Since.NOW | ast.Since.FULL:
                start = committed
            case ast.Since.BEGIN:
                start = retained_since(found, self._database.clock.now_ms())
            case int() as since_ms:
                start, notice = self._at(found, since_ms)
        full = statement.since is ast.Since.FULL
        return SubscriptionCursor(self._database, statement.name, found, start, full=full, pieces=pieces), notice

    def find(self, name: ast.ObjectName) -> CatalogObject:
        return self._database.catalog.find(
            name.parts, search_path=self._variables.search_path, kinds=(ObjectKind.SUBSCRIPTION,)
        )

    # ------------------------------------------------------------------------------------------------

    def _at(self, found: CatalogObject, since_ms: int) -> tuple[Epoch, str | None]:
        now_ms = self._database.clock.now_ms()
        oldest_ms = now_ms - found.properties["retention_ms"]
        if not oldest_ms <= since_ms <= now_ms:
            raise InvalidParameter(
                f"time {since_ms} is not within the retention of {found}",
                detail=f"It may be from {oldest_ms} to {now_ms} now, in milliseconds since 1970.",
                hint="SINCE begin() starts with the oldest change that is retained.",
            )
        start = Epoch((since_ms << EPOCH_SHIFT) - 1)
        oldest = retained_since(found, now_ms)
        if start >= oldest:
            return start, None
        return oldest, f"changes are retained from {oldest >> EPOCH_SHIFT} on, and given from there"

    def _source(self, name: ast.ObjectName) -> CatalogObject:
        found = self._database.catalog.find(name.parts, search_path=self._variables.search_path)
        if found.kind is ObjectKind.INTERNAL:
            raise FeatureNotSupported(
                "CREATE SUBSCRIPTION does not support internal table", hint="Subscribe to the materialized view."
            )
        if found.kind not in (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW):
            raise WrongObjectType(f"{found} keeps no change log", hint="Subscribe to a table or a materialized view.")
        if found.status is ObjectStatus.CREATING:
            raise ObjectNotReady(f"{found} is still being created", hint="Wait for it with WAIT.")
        if found.kind is ObjectKind.MATERIALIZED_VIEW and schedule_of(found) is not None:
            raise FeatureNotSupported(
                f"{found} keeps no change log to subscribe to",
                detail="It is refreshed on a schedule of its own.",
                hint="Subscribe to what it reads, or create it without a schedule.",
            )
        return found

    def _schema(self, name: ast.ObjectName) -> str:
        """The schema of something new."""
        catalog = self._database.catalog
        if name.schema is not None:
            return catalog.schema(name.schema).name
        for each in self._variables.search_path:
            if catalog.try_schema(each) is not None:
                return each
        raise UndefinedSchema("no schema has been selected to create in", hint="SET search_path TO public.")
