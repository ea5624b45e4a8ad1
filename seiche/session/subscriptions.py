"""Statements about subscriptions, and where cursors over them begin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.errors import (
    FeatureNotSupported,
    InvalidDefinition,
    InvalidParameter,
    UndefinedObject,
    WrongObjectType,
    nearest,
)
from seiche.model import EPOCH_SHIFT, Epoch, RelationId
from seiche.session.database import Database, schedule_of
from seiche.session.definitions import Definitions
from seiche.session.names import refuse_unfinished
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


class SubscriptionDefinitions:
    """CREATE and ALTER of subscriptions, for one session."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._database = definitions.database
        self._variables = definitions.variables

    def create(self, statement: ast.CreateSubscription) -> str | None:
        """Creates a subscription; a notice when it was there already."""
        name, schema = self._definitions.place(statement.name)
        if statement.if_not_exists and self._definitions.exists(schema, name):
            return f'relation "{name}" already exists, skipping'
        retention = _read_retention(statement.options)
        source = self._source(statement.source)
        kept = {"retention_ms": retention.ms}
        item = self._definitions.new_object(
            ObjectKind.SUBSCRIPTION, schema, name, definition(statement), (), None, kept
        )

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            if source.id not in catalog.by_id:
                raise UndefinedObject(f'{source} that "{name}" is to follow was dropped meanwhile')
            since = {**item.properties, "since_epoch": barrier.epoch}
            known = replace(item, properties=since, dependencies=frozenset([source.id]))
            return catalog.with_objects(known), graph, Checkpoint(), None, None

        self._definitions.run(self._definitions.command(work))
        return None

    def set_retention(self, name: ast.ObjectName, text: str) -> None:
        """Keeps changes for longer or shorter from now on. What is gone already does not come back."""
        found = _find(self._database, self._variables, name)
        retention = _read_retention(((RETENTION, text),))

        def change(catalog: Catalog) -> Catalog:
            item = catalog.get(found.id)
            kept = retained_since(item, self._database.clock.now_ms())
            properties = {**item.properties, "retention_ms": retention.ms, "since_epoch": kept}
            changed = replace(defined(item), options=((RETENTION, retention.text),))
            return catalog.with_objects(replace(item, properties=properties, definition=definition(changed)))

        self._definitions.change(change)
        self._database.maintenance.note(RelationId(each) for each in found.dependencies)

    def _source(self, name: ast.ObjectName) -> CatalogObject:
        found = self._definitions.catalog.find(name.parts, search_path=self._variables.search_path)
        if found.kind is ObjectKind.INTERNAL:
            raise FeatureNotSupported(
                "CREATE SUBSCRIPTION does not support internal table", hint="Subscribe to the materialized view."
            )
        if found.kind not in (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW):
            raise WrongObjectType(f"{found} keeps no change log", hint="Subscribe to a table or a materialized view.")
        refuse_unfinished(found, self._database.jobs.progress)
        if found.kind is ObjectKind.MATERIALIZED_VIEW and schedule_of(found) is not None:
            raise FeatureNotSupported(
                f"{found} keeps no change log to subscribe to",
                detail="It is refreshed on a schedule of its own.",
                hint="Subscribe to what it reads, or create it without a schedule.",
            )
        return found


def declared(
    database: Database, variables: Variables, statement: ast.DeclareSubscriptionCursor, pieces: Pieces
) -> tuple[SubscriptionCursor, str | None]:
    """A cursor where the statement says, and a notice when it begins later than that."""
    found = _find(database, variables, statement.subscription)
    notice = None
    match statement.since:
        case ast.Since.NOW | ast.Since.FULL:
            start = database.runtime.versions.committed_epoch
        case ast.Since.BEGIN:
            start = retained_since(found, database.clock.now_ms())
        case int() as since_ms:
            start, notice = _at(found, since_ms, database.clock.now_ms())
    full = statement.since is ast.Since.FULL
    return SubscriptionCursor(database, statement.name, found, start, full=full, pieces=pieces), notice


def _find(database: Database, variables: Variables, name: ast.ObjectName) -> CatalogObject:
    catalog = database.catalog.seen_from(variables.database)
    return catalog.find(name.parts, search_path=variables.search_path, kinds=(ObjectKind.SUBSCRIPTION,))


def _at(found: CatalogObject, since_ms: int, now_ms: int) -> tuple[Epoch, str | None]:
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
