"""ALTER of tables and views: other names, schemas and owners, and how jobs run.

The definitions of what reads an object are text that mentions it, and follow (`seiche.session.rename` and `moving`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn, assert_never

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import CONFIG, DECOUPLED, INTO, SINK_RATE_LIMIT, CatalogObject, ObjectKind, ObjectStatus
from seiche.catalog.parallelism import (
    BACKFILL_PARALLELISM,
    PARALLELISM,
    backfill_parallelism_of,
    check,
    read_parallelism,
)
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.errors import (
    FeatureNotSupported,
    InvalidDefinition,
    InvalidParameter,
    ObjectNotReady,
    WrongObjectType,
)
from seiche.model import JobId, ObjectId
from seiche.session import databases
from seiche.session.database import schedule_of
from seiche.session.definitions import Definitions
from seiche.session.moving import moved, with_schema_named
from seiche.session.names import CATALOG_KINDS, refuse_unfinished
from seiche.session.rename import RELATION_KINDS, RENAMED_KINDS
from seiche.session.rename import renamed as named_anew
from seiche.session.subscriptions import SubscriptionDefinitions
from seiche.session.view_options import RATE_LIMIT
from seiche.sql import statements as ast
from seiche.sql.renamed import with_options
from seiche.stream.backfill.arrangement import ArrangementBackfill
from seiche.stream.backfill.rate_limit import rate_of
from seiche.stream.batch_refresh.schedule import CRON, INTERVAL, read_schedule


class Alter:
    """Statements that change an object and leave its rows, for one session."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._database = definitions.database
        self._variables = definitions.variables
        self._wait = definitions.wait

    def rename(self, statement: ast.Rename) -> None:
        """Gives a table or a view another name; the definitions of what reads it follow."""
        kind, name = CATALOG_KINDS.get(statement.kind), statement.name.name
        if statement.kind is ast.ObjectKind.SCHEMA:
            name = databases.schema_of(statement.name, self._variables.database)
            return self._restate(lambda catalog: with_schema_named(catalog, name, statement.new_name))
        if statement.kind is ast.ObjectKind.DATABASE:
            self._refuse_visited(name)
            return self._restate(lambda catalog: databases.with_name(catalog, name, statement.new_name))
        if kind not in RENAMED_KINDS:
            raise FeatureNotSupported(f"ALTER {statement.kind.value.upper()} RENAME is not supported yet")
        path, catalog = self._variables.search_path, self._definitions.catalog
        found = None
        if kind is ObjectKind.TABLE:  # as in PostgreSQL, it renames whatever has rows
            found = catalog.try_find(statement.name.parts, search_path=path, kinds=RELATION_KINDS)
        if found is None:
            found = catalog.find(statement.name.parts, search_path=path, kinds=(kind,), action="ALTER")
        self._definitions.refuse_taken(found.schema, statement.new_name)
        named_anew(self._definitions.catalog, found.id, statement.new_name)  # what cannot be is told before any epoch

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            changed = named_anew(catalog, found.id, statement.new_name)
            job = JobId(found.id)
            if job in graph and self._database.jobs.get(job) is None:  # jobs know their names, for messages
                graph = graph.replace(replace(graph.job(job), name=statement.new_name))  # type: ignore[type-var]
            return changed, graph, Checkpoint(), None, None

        self._definitions.run(self._definitions.command(work))
        return None

    def _refuse_visited(self, database: str) -> None:
        """Sessions know the database that they work in by its name."""
        others = [each for each in self._database.sessions.values() if each.fact().database == database]
        if others and database != self._variables.database:
            raise ObjectNotReady(
                f'database "{database}" is being accessed by other users',
                detail=f"There are {len(others)} sessions that work in it." if len(others) > 1 else None,
                hint="pg_stat_activity lists them.",
            )

    def relation(self, statement: ast.AlterRelation) -> None:
        match statement.action:
            case ast.SetSchema(schema):
                self._move(self._find(statement.kind, statement.name), schema)
            case ast.SwapWith(other):
                self._swap(statement.kind, statement.name, other)
            case ast.SetBackfillRateLimit(value):
                found = self._find(statement.kind, statement.name)
                self._set_rate(found, value)
            case ast.SetSinkRateLimit(value):
                self._set_sink_rate(self._find(statement.kind, statement.name), value)
            case ast.SetParallelism(value, backfill):
                self._set_parallelism(self._find(statement.kind, statement.name), value, backfill=backfill)
            case ast.SetOptions(options):
                self._set_options(self._find(statement.kind, statement.name), options)
            case ast.SetConfig(values):
                self._set_config(self._find(statement.kind, statement.name), values)
            case ast.SetRetention(text):
                SubscriptionDefinitions(self._definitions).set_retention(statement.name, text)
            case ast.SetQuery():
                _refuse_query(self._find(statement.kind, statement.name))
            case action:
                assert_never(action)

    def refresh(self, statement: ast.RefreshView) -> str | None:
        """Returns when the view has everything that was committed before the statement, with a note if it had."""
        found = self._find(ast.ObjectKind.MATERIALIZED_VIEW, statement.name, action=None)
        refuse_unfinished(found, self._database.jobs.progress)
        if schedule_of(found) is None:
            self._wait(self._database.coordinator.flush())
            return f"{found} follows every change at once: only views with {INTERVAL} or {CRON} need a refresh"
        self._wait(self._database.refreshes.refresh(JobId(found.id)))
        return None

    # ------------------------------------------------------------------------------------------------

    def _find(self, kind: ast.ObjectKind, name: ast.ObjectName, action: str | None = "ALTER") -> CatalogObject:
        wanted = CATALOG_KINDS.get(kind)
        if wanted is None:
            raise FeatureNotSupported(f"ALTER {kind.value.upper()} is not supported yet")
        return self._definitions.catalog.find(
            name.parts,
            search_path=self._variables.search_path,
            kinds=(wanted,),
            action=action,
            parameters=name.parameters,
        )

    def _move(self, found: CatalogObject, schema: str) -> None:
        if found.schema != schema:
            self._restate(lambda catalog: moved(catalog, found.id, schema))

    def _swap(self, kind: ast.ObjectKind, name: ast.ObjectName, other: ast.ObjectName) -> None:
        first = self._find(kind, name)
        second = self._definitions.catalog.find(other.parts, search_path=self._variables.search_path)
        if second.kind is not first.kind:
            raise WrongObjectType(
                f"{first} cannot be swapped with {second}",
                detail="Permission denied: names are swapped by objects of one kind.",
            )
        if first.id == second.id:
            raise InvalidDefinition(f"{first} cannot be swapped with itself")
        if first.schema != second.schema:
            raise FeatureNotSupported(f"{first} and {second} are of different schemas", hint="Move one of them first.")

        def swapped(catalog: Catalog) -> Catalog:
            """Definitions of what reads them follow, so that it goes on reading the same rows."""
            aside = named_anew(catalog, first.id, f"swapped_{first.id}")
            return named_anew(named_anew(aside, second.id, first.name), first.id, second.name)

        self._restate(swapped)

    def _set_rate(self, found: CatalogObject, value: str | None) -> None:
        rate = rate_of(value, where=RATE_LIMIT)
        if found.status is ObjectStatus.CREATED:
            raise ObjectNotReady(
                f"{found} has no backfill that runs",
                detail="A rate limit slows down the reading of history; the view has read it all.",
                hint="SHOW JOBS lists the views that are being created.",
            )
        self._database.jobs.set_rate_limit(found.id, rate)
        growing = self._database.jobs.get(found.id)
        if isinstance(growing, ArrangementBackfill):
            self._wait(self._database.keep(growing))

    def _set_sink_rate(self, found: CatalogObject, value: str | None) -> None:
        """Remembered with the sink, and shown: what the sinks that there are hand their rows to takes any number."""
        rate = rate_of(value, where=SINK_RATE_LIMIT)
        if INTO in found.properties or not found.properties.get(DECOUPLED, True):
            raise FeatureNotSupported(
                f"{found} has no rate of its own",
                detail="It hands its rows on in the epochs in which they change.",
                hint="Sinks with a connector that are created while sink_decouple is on have one.",
            )

        def changed(item: CatalogObject) -> CatalogObject:
            kept = {key: known for key, known in item.properties.items() if key != SINK_RATE_LIMIT}
            return replace(item, properties=kept if rate is None else {**kept, SINK_RATE_LIMIT: rate})

        self._change([found], changed)

    def _set_parallelism(self, found: CatalogObject, value: str | None, *, backfill: bool) -> None:
        """Takes effect with the next epoch, or with the next step of a view that is being created."""
        name = BACKFILL_PARALLELISM if backfill else PARALLELISM
        wanted = read_parallelism("default" if value is None else value, where=name)
        if wanted is not None:
            check(wanted, found.properties)

        def changed(item: CatalogObject) -> CatalogObject:
            kept = {key: known for key, known in item.properties.items() if key != name}
            return replace(item, properties=kept if wanted is None else {**kept, name: wanted.text})

        self._change([found], changed)
        running = self._database.jobs.get(found.id)
        if running is not None:
            now = backfill_parallelism_of(self._definitions.catalog.get(found.id))
            running.set_tasks(now.tasks(self._database.runtime.cores), now.fixed)

    def _set_config(self, found: CatalogObject, values: Sequence[tuple[str, str | None]]) -> None:
        """Remembered with the job, and shown: they are settings of operators that are not here."""
        names = [name for name, _ in values]
        for index, name in enumerate(names):
            if not name.startswith("streaming."):
                raise InvalidParameter(f'"{name}" is no setting of a job', hint="Those of jobs begin with streaming.")
            if name in names[:index]:
                raise InvalidParameter(f'setting "{name}" is given twice', hint="Leave one of them out.")

        def changed(item: CatalogObject) -> CatalogObject:
            config = {**item.properties.get(CONFIG, {}), **dict(values)}
            kept = {name: value for name, value in sorted(config.items()) if value is not None}
            return replace(item, properties={**item.properties, CONFIG: kept})

        self._change([found], changed)

    def _set_options(self, found: CatalogObject, options: ast.Options) -> None:
        for name, _ in options:
            if name not in (INTERVAL, CRON):
                raise FeatureNotSupported(
                    f'option "{name}" of a view cannot be changed', hint=f"{INTERVAL} and {CRON} can be."
                )
        names = [name for name, _ in options]
        if repeated := [name for index, name in enumerate(names) if name in names[:index]]:
            raise InvalidDefinition(f'option "{repeated[0]}" is given twice', hint="Leave one of them out.")
        schedule = read_schedule(dict(options))
        if schedule_of(found) is None:
            raise FeatureNotSupported(
                f"{found} follows every change at once and cannot be given a schedule",
                hint=f"Create another view WITH ({INTERVAL} = …) and let the two swap names.",
            )

        def changed(item: CatalogObject) -> CatalogObject:
            others = {name: value for name, value in item.properties["options"].items() if name not in (INTERVAL, CRON)}
            now = {**others, **dict(options)}
            definition = with_options(item.definition, now)
            return replace(item, definition=definition, properties={**item.properties, "options": now})

        self._change([found], changed)
        if schedule is not None and JobId(found.id) in self._database.refreshes:
            self._database.refreshes.set_schedule(JobId(found.id), schedule)

    def _restate(self, change: Callable[[Catalog], Catalog]) -> None:
        """Other names and places of what exists, the same rows."""
        database = self._database
        change(self._definitions.catalog)  # what cannot be is told before any epoch

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            new = change(catalog)
            return new, database.main_graph(new), Checkpoint(), None, None

        self._wait(database.coordinator.command(self._definitions.command(work)))

    def _change(self, items: list[CatalogObject], change: Callable[[CatalogObject], CatalogObject]) -> None:
        database = self._database
        ids: list[ObjectId] = [item.id for item in items]

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            changed = [change(catalog.get(each)) for each in ids]
            inside = [
                replace(child, schema=parent.schema, owner=parent.owner)
                for parent in changed
                for child in catalog.children(parent.id)
            ]
            new = catalog.with_objects(*changed, *inside)
            return new, database.main_graph(new), Checkpoint(), None, None

        self._wait(database.coordinator.command(self._definitions.command(work)))


def _refuse_query(found: CatalogObject) -> NoReturn:
    """Rows of the old query that stay would make the view differ from its query, which it never does."""
    if schedule_of(found) is not None:
        raise FeatureNotSupported(
            f"{found} cannot be given another query",
            detail="ALTER MATERIALIZED VIEW is not supported for batch refresh materialized views.",
            hint="Create another view, and let the two swap names.",
        )
    raise FeatureNotSupported(
        f"{found} cannot be given another query",
        detail="Its rows, and those of what reads it, would have to be made anew.",
        hint=f"Create another view, ALTER MATERIALIZED VIEW {ast.quote_name(found.name)} SWAP WITH it, and drop it.",
    )
