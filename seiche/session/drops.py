"""DROP: objects with what belongs to them and, told to, what depends on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import DEFAULT_DATABASE, CatalogObject, ObjectKind, Schema
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.errors import DependentObjects, FeatureNotSupported, SeicheError, UndefinedSchema, WrongObjectType
from seiche.model import JobId, ObjectId, RelationId
from seiche.session import databases
from seiche.session.definitions import Definitions
from seiche.session.names import CATALOG_KINDS
from seiche.sql import statements as ast
from seiche.stream.backfill.state import pin_holder


class _StartedMeanwhile(Exception):
    """A view was created between the look at what a drop takes along and its barrier: it must be stopped too."""


class Drops:
    """Drops, for one session."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._database = definitions.database
        self._variables = definitions.variables

    def drop(self, statement: ast.Drop) -> list[str]:
        """Drops objects; notices for those that were not there."""
        notices: list[str] = []
        match statement.kind:
            case ast.ObjectKind.SCHEMA:
                for each in statement.names:
                    name = databases.schema_of(each, self._variables.database)
                    self._drop_schema(name, statement, notices)
                return notices
            case ast.ObjectKind.DATABASE:
                for each in statement.names:
                    self._drop_database(each.name, statement, notices)
                return notices
            case kind if kind in CATALOG_KINDS:
                wanted = CATALOG_KINDS[kind]
            case kind:
                raise FeatureNotSupported(f"DROP {kind.value.upper()} is not supported yet")
        targets = []
        for each in statement.names:
            own_names = wanted.namespace != ObjectKind.TABLE.namespace
            kinds = (wanted,) if own_names else None
            path = self._variables.search_path
            found = self._definitions.catalog.try_find(
                each.parts, search_path=path, kinds=kinds, parameters=each.parameters
            )
            missing = self._missing_schema(each) if found is None else None
            if missing is not None and statement.if_exists:
                notices.append(f'schema "{missing}" does not exist, skipping')
                continue
            if missing is not None:
                raise UndefinedSchema(f'schema "{missing}" does not exist')
            if found is None and statement.if_exists:
                notices.append(f'{wanted.value} "{each}" does not exist, skipping')
                continue
            targets.append(
                self._definitions.catalog.find(
                    each.parts, search_path=path, kinds=(wanted,), action="DROP", parameters=each.parameters
                )
            )
        for function in targets if wanted is ObjectKind.FUNCTION else ():
            self._check_word(function, aggregate=statement.aggregate)
        if targets:
            ids = [each.id for each in targets]
            doomed = databases.plan_drop(self._definitions.catalog, ids, cascade=statement.cascade)
            notices += self._cascade_notices(doomed, ids)
            self.drop_objects(ids, cascade=statement.cascade)
        return notices

    def _missing_schema(self, name: ast.ObjectName) -> str | None:
        """The schema that a name is written with, where the session's database has none of that name."""
        if len(name.parts) != 2 or name.schema is None:
            return None
        return name.schema if self._definitions.catalog.try_schema(name.schema) is None else None

    def drop_temporary(self) -> None:
        """Drops the session's temporary tables, if there are any, and the schema that they are in."""
        name = self._variables.temporary
        for schema in [each for each in self._definitions.catalog.schemas if each.name == name]:  # in any database
            home = self._definitions.catalog.seen_from(schema.database)
            self.drop_objects(self._inside(home, schema.name), cascade=True, then=_without(schema))

    def _check_word(self, function: CatalogObject, *, aggregate: bool) -> None:
        """An aggregate is dropped as one, and nothing else is."""
        is_one = bool(function.properties.get("aggregate"))
        if is_one and not aggregate:
            raise WrongObjectType(
                f'"{function.name}" is an aggregate function', hint=f"Use DROP AGGREGATE {function.name}."
            )
        if aggregate and not is_one:
            raise WrongObjectType(
                f'"{function.name}" is not an aggregate function', hint=f"Use DROP FUNCTION {function.name}."
            )

    def _cascade_notices(self, doomed: tuple[ObjectId, ...], named: list[ObjectId]) -> list[str]:
        others = [self._definitions.catalog.get(each) for each in doomed if each not in named]
        return [f"drop cascades to {each}" for each in others if each.kind is not ObjectKind.INTERNAL]

    def drop_objects(
        self, ids: list[ObjectId], *, cascade: bool, then: Callable[[Catalog], Catalog] = lambda catalog: catalog
    ) -> None:
        """Drops objects with what belongs to them; a view that is still being built stops first.

        `then` changes the catalog without them further, in the same epoch.
        """
        while True:
            try:
                self._drop_stopped(ids, self._stopped(ids, cascade=cascade), then, cascade=cascade)
                return
            except _StartedMeanwhile:
                continue
            except SeicheError:
                self._database.resume_left(ids)  # they are still there, and must not stand still for that
                raise

    def _stopped(self, ids: list[ObjectId], *, cascade: bool) -> frozenset[ObjectId]:
        """What is to be dropped as things are now, none of which touches anything any more."""
        catalog = self._definitions.catalog
        doomed = databases.plan_drop(catalog, [each for each in ids if each in catalog.by_id], cascade=cascade)
        for each in doomed:
            self._database.jobs.forget(each)
            self._database.refreshes.remove(JobId(each))
            self._database.deliveries.remove(each)
        return frozenset(doomed)

    def _drop_stopped(
        self,
        ids: list[ObjectId],
        stopped: frozenset[ObjectId],
        then: Callable[[Catalog], Catalog],
        *,
        cascade: bool,
    ) -> None:
        """Drops objects that stand still. Raises `_StartedMeanwhile` when one of them does not."""
        database = self._database

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            gone = databases.plan_drop(catalog, [each for each in ids if each in catalog.by_id], cascade=cascade)
            if any(each not in stopped or database.jobs.get(each) is not None for each in gone):
                raise _StartedMeanwhile
            items = [catalog.get(each) for each in gone]
            for item in items:
                if JobId(item.id) in graph:
                    graph = graph.without_job(JobId(item.id))
            stored = [RelationId(item.id) for item in items if item.relation is not None]
            holders = frozenset(pin_holder(JobId(each)) for each in gone)

            def publish() -> None:
                database.pins.drop(holders)
                database.runtime.versions.set_independent(stored, False)
                for relation in stored:
                    database.runtime.versions.drop_relation(relation)
                    database.runtime.reader.forget(relation)
                database.maintenance.forget(stored)
                subscribed = [each for each in items if each.kind is ObjectKind.SUBSCRIPTION]
                database.maintenance.note(RelationId(id) for each in subscribed for id in each.dependencies)

            progress: Mapping[JobId, None] = {JobId(each): None for each in gone}
            forgotten = Checkpoint(drop_pins=holders, put_progress=progress, drop_backfill=frozenset(progress))
            return then(catalog.without(gone)), graph, forgotten, None, publish

        self._definitions.run(self._definitions.command(work))

    def _inside(self, catalog: Catalog, schema: str) -> list[ObjectId]:
        """What users see in a schema; internal relations go with their views."""
        found = (each for each in catalog.at_home() if each.schema == schema)
        return [each.id for each in found if each.kind is not ObjectKind.INTERNAL]

    def _drop_schema(self, name: str, statement: ast.Drop, notices: list[str]) -> None:
        catalog = self._definitions.catalog
        if statement.if_exists and catalog.try_schema(name) is None:
            notices.append(f'schema "{name}" does not exist, skipping')
            return
        catalog.schema(name)
        inside = self._inside(catalog, name)
        if inside and statement.cascade:
            notices += self._cascade_notices(databases.plan_drop(catalog, inside, cascade=True), [])
            self.drop_objects(inside, cascade=True)
        self._definitions.change(lambda current: current.without_schema(name))

    def _drop_database(self, name: str, statement: ast.Drop, notices: list[str]) -> None:
        """Drops a database with all that is in it, at once."""
        catalog = self._definitions.catalog
        if statement.if_exists and all(each.name != name for each in catalog.databases):
            notices.append(f'database "{name}" does not exist, skipping')
            return
        catalog.database(name)
        if name == self._variables.database:
            raise DependentObjects("cannot drop the currently open database", hint="SET database TO another one first.")
        if name == DEFAULT_DATABASE:
            raise FeatureNotSupported(
                f'database "{name}" cannot be dropped', detail="Sessions that name no other database begin there."
            )
        self.drop_objects(
            databases.inside(catalog, name),
            cascade=True,
            then=lambda current: databases.without_database(current, name),
        )


def _without(schema: Schema) -> Callable[[Catalog], Catalog]:
    return lambda catalog: catalog.without_schema(schema.name, database=schema.database)
