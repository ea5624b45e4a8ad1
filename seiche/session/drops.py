"""DROP: objects with what belongs to them and, told to, what depends on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.errors import FeatureNotSupported, SeicheError, WrongObjectType
from seiche.model import JobId, ObjectId, RelationId
from seiche.session.definitions import CatalogCommand, Definitions
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
                    self._drop_schema(each.name, statement, notices)
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
            found = self._database.catalog.try_find(
                each.parts, search_path=path, kinds=kinds, parameters=each.parameters
            )
            if found is None and statement.if_exists:
                notices.append(f'{wanted.value} "{each}" does not exist, skipping')
                continue
            targets.append(
                self._database.catalog.find(
                    each.parts, search_path=path, kinds=(wanted,), action="DROP", parameters=each.parameters
                )
            )
        for function in targets if wanted is ObjectKind.FUNCTION else ():
            self._check_word(function, aggregate=statement.aggregate)
        if targets:
            doomed = self._database.catalog.plan_drop([each.id for each in targets], cascade=statement.cascade)
            notices += self._cascade_notices(doomed, [each.id for each in targets])
            self.drop_objects([each.id for each in targets], cascade=statement.cascade)
        return notices

    def drop_temporary(self) -> None:
        """Drops the session's temporary tables, if there are any, and the schema that they are in."""
        schema = self._variables.temporary
        if schema is None or self._database.catalog.try_schema(schema) is None:
            return
        inside = self._inside(schema)
        if inside:
            self.drop_objects(inside, cascade=True)
        self._definitions.change(lambda catalog: catalog.without_schema(schema))

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
        others = [self._database.catalog.get(each) for each in doomed if each not in named]
        return [f"drop cascades to {each}" for each in others if each.kind is not ObjectKind.INTERNAL]

    def drop_objects(self, ids: list[ObjectId], *, cascade: bool) -> None:
        """Drops objects with what belongs to them; a view that is still being built stops first."""
        while True:
            try:
                self._drop_stopped(ids, self._stopped(ids, cascade=cascade), cascade=cascade)
                return
            except _StartedMeanwhile:
                continue
            except SeicheError:
                self._database.resume_left(ids)  # they are still there, and must not stand still for that
                raise

    def _stopped(self, ids: list[ObjectId], *, cascade: bool) -> frozenset[ObjectId]:
        """What is to be dropped as things are now, none of which touches anything any more."""
        catalog = self._database.catalog
        doomed = catalog.plan_drop([each for each in ids if each in catalog.by_id], cascade=cascade)
        for each in doomed:
            self._database.jobs.forget(each)
            self._database.refreshes.remove(JobId(each))
            self._database.deliveries.remove(each)
        return frozenset(doomed)

    def _drop_stopped(self, ids: list[ObjectId], stopped: frozenset[ObjectId], *, cascade: bool) -> None:
        """Drops objects that stand still. Raises `_StartedMeanwhile` when one of them does not."""
        database = self._database

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            gone = catalog.plan_drop([each for each in ids if each in catalog.by_id], cascade=cascade)
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
            return catalog.without(gone), graph, forgotten, None, publish

        self._definitions.run(CatalogCommand(database, work))

    def _inside(self, schema: str) -> list[ObjectId]:
        """What users see in a schema; internal relations go with their views."""
        found = (each for each in self._database.catalog.objects() if each.schema == schema)
        return [each.id for each in found if each.kind is not ObjectKind.INTERNAL]

    def _drop_schema(self, name: str, statement: ast.Drop, notices: list[str]) -> None:
        catalog = self._database.catalog
        if statement.if_exists and catalog.try_schema(name) is None:
            notices.append(f'schema "{name}" does not exist, skipping')
            return
        catalog.schema(name)
        inside = self._inside(name)
        if inside and statement.cascade:
            notices += self._cascade_notices(catalog.plan_drop(inside, cascade=True), [])
            self.drop_objects(inside, cascade=True)
        self._definitions.change(lambda current: current.without_schema(name))
