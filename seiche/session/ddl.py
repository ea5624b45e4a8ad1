"""CREATE, DROP and ALTER: commands that take effect at a barrier."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import SUPERUSER, CatalogObject, ObjectKind, ObjectStatus, Schema
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Graph
from seiche.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidDefinition,
    InvariantError,
    SeicheError,
    UndefinedColumn,
    UndefinedObject,
    UndefinedSchema,
    nearest,
)
from seiche.model import RESERVED_COLUMNS, ROW_ID, Column, JobId, ObjectId, RelationId, RelationSchema
from seiche.plan.algebra import Keyed, Plan, Recompute, recomputed
from seiche.plan.fragments import Fragment, count_internal, cut
from seiche.session import python_functions
from seiche.session.database import PLAN_VERSION, Database, schedule_of
from seiche.session.names import CATALOG_KINDS, CatalogNames, user_function
from seiche.session.rename import RENAMED_KINDS, internal_name, renamed
from seiche.session.variables import Variables
from seiche.session.view_options import ViewOptions, read_options
from seiche.sql import statements as ast
from seiche.sql.bind import OutputColumn, Settings, bind_expression, bind_query, check_function
from seiche.stream.backfill.arrangement import ArrangementState, BackfillKind, choose
from seiche.stream.backfill.protocol import Backfill
from seiche.stream.backfill.snapshot import BackfillState, pin_holder, pins_at
from seiche.stream.backfill.stages import stages
from seiche.stream.table import Conflict
from seiche.stream.view import ViewJob
from seiche.types import BIGINT, Kind


@dataclass(frozen=True, slots=True)
class CatalogCommand:
    """A command that makes a new catalog, and maybe a new graph; `work` runs on the coordinator's thread."""

    database: Database
    work: Callable[[Catalog, Graph, Barrier], tuple[Catalog, Graph, Checkpoint, Any, Callable[[], None] | None]]

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        old = self.database.catalog_at(barrier)
        new, changed, extra, value, then = self.work(old, graph, barrier)
        part, make_current = self.database.change_catalog(barrier, new)

        def publish() -> None:
            make_current()
            if then is not None:
                then()

        return Effect(changed, part.merge(extra), value, publish)


class Ddl:
    """Statements that change what exists, for one session."""

    def __init__(
        self,
        database: Database,
        variables: Variables,
        wait: Callable[[Future[Any]], Any],
        user: str = SUPERUSER,
    ) -> None:
        self._database = database
        self._variables = variables
        self._wait = wait
        self._user = user  # who owns what is made

    # --- tables --------------------------------------------------------------------------------------

    def create_table(self, statement: ast.CreateTable, text: str) -> str | None:
        """Creates a table; a notice when it was there already."""
        name, schema = self._place(statement.name)
        if statement.if_not_exists and self._exists(schema, name):
            return f'relation "{name}" already exists, skipping'
        columns, relation = _table_shape(statement)
        self._check_table_expressions(statement, columns)
        properties: dict[str, Any] = {"options": dict(statement.options)}
        if statement.on_conflict is not None:
            properties["on_conflict"] = Conflict(statement.on_conflict.value).value
        properties["primary_key"] = list(statement.primary_key)
        if statement.watermarks:
            properties["watermarks"] = [[each.column, each.expression.text] for each in statement.watermarks]
        table = self._object(ObjectKind.TABLE, schema, name, text, columns, relation, properties)
        self._run(self._adding_table(table))
        return None

    def create_table_as(
        self, statement: ast.CreateTableAs, columns: tuple[OutputColumn, ...]
    ) -> ast.CreateTable | None:
        """The CREATE TABLE that CREATE TABLE AS begins with; None when the table exists and may."""
        name, schema = self._place(statement.name)
        if statement.if_not_exists and self._exists(schema, name):
            return None
        names = statement.columns or tuple(column.name for column in columns)
        if len(names) != len(columns):
            raise InvalidDefinition(f"{len(names)} column names were given for {len(columns)} columns")
        types = [column.type if column.type.kind is not Kind.NULL else None for column in columns]
        if None in types:
            raise InvalidDefinition(
                f'column "{names[types.index(None)]}" has no type', hint="Cast the NULL to the type you want."
            )
        return ast.CreateTable(
            statement.name,
            tuple(ast.ColumnDef(n, t) for n, t in zip(names, types, strict=True) if t is not None),
            if_not_exists=statement.if_not_exists,
            append_only=statement.append_only,
            on_conflict=statement.on_conflict,
            options=statement.options,
        )

    def _adding_table(self, table: CatalogObject) -> CatalogCommand:
        database = self._database

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            changed = catalog.with_objects(table)
            assert table.relation is not None
            database.runtime.versions.add_relation(RelationId(table.id), table.relation)
            return changed, graph.with_job(database.table_job(table)), Checkpoint(), None, None

        return CatalogCommand(database, work)

    def _check_table_expressions(self, statement: ast.CreateTable, columns: tuple[Column, ...]) -> None:
        """Defaults and generated columns must make sense before the table exists."""
        settings = Settings(timezone="UTC", now_ms=0, strict=True)
        plain = tuple(column for column in columns if column.generated is None)
        for column in statement.columns:
            if column.default is not None:
                bind_expression(column.default.tree, (), settings)
            if column.generated is not None:
                bind_expression(column.generated.tree, plain, settings)
        for watermark in statement.watermarks:
            type_ = next(column.type for column in columns if column.name == watermark.column)
            bound = bind_expression(watermark.expression.tree, columns, settings)
            if type_.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ) or bound.type != type_:
                raise InvalidDefinition(
                    f'watermark of column "{watermark.column}" must be a timestamp like the column',
                    detail=f"The column is of type {type_} and the expression of type {bound.type}.",
                )

    # --- views ---------------------------------------------------------------------------------------

    def create_view(self, statement: ast.CreateView, text: str) -> str | None:
        name, schema = self._place(statement.name)
        existing = self._database.catalog.try_find((schema, name))
        if existing is not None and statement.if_not_exists:
            return f'relation "{name}" already exists, skipping'
        names = CatalogNames(self._database.catalog, self._variables.search_path)
        bound = bind_query(statement.query.tree, names, Settings(timezone="UTC", now_ms=0, strict=True))
        shown = _named(statement.columns, bound.columns)
        columns = tuple(Column(name_, column.type) for name_, column in zip(shown, bound.columns, strict=True))
        view = self._object(
            ObjectKind.VIEW, schema, name, text, columns, None, {"search_path": list(self._variables.search_path)}
        )
        view = replace(view, dependencies=frozenset(ObjectId(each) for each in names.mentioned))
        if statement.or_replace and existing is not None:
            view = self._replacing(existing, view)

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            return catalog.with_objects(view), graph, Checkpoint(), None, None

        self._run(CatalogCommand(self._database, work))
        return None

    def _replacing(self, existing: CatalogObject, view: CatalogObject) -> CatalogObject:
        if existing.kind is not ObjectKind.VIEW:
            raise DuplicateObject(f"{existing} is not a view", hint="Drop it first, or choose another name.")
        old, new = existing.columns, view.columns
        if len(new) < len(old) or any(a.name != b.name or a.type != b.type for a, b in zip(old, new, strict=False)):
            raise InvalidDefinition(
                f'view "{existing.name}" would lose or change columns that others may use',
                hint="Columns may only be added at the end. Drop the view and create it again to change them.",
            )
        return replace(view, id=existing.id, owner=existing.owner)

    def explain(self, statement: ast.CreateMaterializedView) -> tuple[Fragment, ...]:
        """The fragments that a view would have, after the checks of CREATE; internal relations have negative ids."""
        name, schema = self._place(statement.name)
        if not statement.if_not_exists:
            self._refuse_taken(schema, name)
        plan, _, _ = self._planned(statement)
        numbers = iter(range(-2, -10_000, -1))
        return cut(plan, RelationId(-1), lambda: RelationId(next(numbers)))

    def create_materialized_view(
        self, statement: ast.CreateMaterializedView, text: str
    ) -> tuple[Backfill | None, str | None]:
        """Registers the view and starts to build it; the caller decides whether to wait."""
        name, schema = self._place(statement.name)
        if statement.if_not_exists and self._exists(schema, name):
            return None, f'relation "{name}" already exists, skipping'
        self._refuse_taken(schema, name)
        plan, names, options = self._planned(statement)
        view, internal = self._view_objects(statement, text, schema, name, plan, names)
        rate = options.rate_limit(self._variables.get("backfill_rate_limit"))
        backfill = self._run(self._adding_view(view, internal, rate, options.order_of(names)))
        return backfill, None

    def _planned(self, statement: ast.CreateMaterializedView) -> tuple[Plan, CatalogNames, ViewOptions]:
        """The plan of a view that may be created, the names that it mentions, and its options; raises what is wrong."""
        name = statement.name.name
        options = read_options(statement.options)
        if statement.emit_on_window_close:
            raise FeatureNotSupported("EMIT ON WINDOW CLOSE is not supported yet")
        catalog = self._database.catalog
        names = CatalogNames(catalog, self._variables.search_path)
        bound = bind_query(statement.query.tree, names, Settings(timezone="UTC", now_ms=None, strict=False))
        _named(statement.columns, bound.columns)
        if bound.volatile:
            raise FeatureNotSupported(
                f"function {bound.volatile[0]}() cannot be used in a materialized view",
                detail="Its answer changes from call to call, so the view could never equal its query.",
                hint="Store the value in a table's column with a DEFAULT, and read that.",
            )
        if names.system:
            raise FeatureNotSupported(f'materialized view "{name}" cannot read system view "{names.system[0]}"')
        plan = self._database.view_plan(statement, catalog, self._variables.search_path)
        reasons = recomputed(plan) if options.strict else ()
        if reasons:
            whole = isinstance(plan, Recompute) or (isinstance(plan, Keyed) and plan.reason is not None)
            raise FeatureNotSupported(
                f'{"" if whole else "a part of "}materialized view "{name}" would be recomputed in full',
                detail=" ".join(f"{each.sentence} (reason code: {each.code})" for each in dict.fromkeys(reasons)),
                hint="Leave out incremental = 'strict' to accept that, or rewrite the query.",
            )
        self._check_hidden_names(plan)
        self._check_schedules(name, options, plan, names)
        options.order_of(names)
        return plan, names, options

    def backfill_kind(self, job: ViewJob, schedule: bool) -> BackfillKind:
        """How a new view reads its inputs' history, as the session's variables have it."""
        if schedule:
            return BackfillKind.SNAPSHOT
        return choose(
            job,
            snapshot=self._variables.is_on("streaming_use_snapshot_backfill"),
            arrangement=self._variables.is_on("streaming_use_arrangement_backfill"),
        )

    def explained_backfill(self, statement: ast.CreateMaterializedView) -> str:
        """The line of EXPLAIN that tells how the view would be built."""
        job = ViewJob(JobId(-1), str(statement.name), self.explain(statement), self._database.runtime)
        kind = self.backfill_kind(job, read_options(statement.options).schedule is not None)
        versions = self._database.runtime.versions
        steps = stages(job.fragments, lambda relation: versions.committed(relation).rows_estimate)
        driven = dict.fromkeys(relation for stage in steps for relation in stage.driven)
        names = [str(self._database.catalog.get(each).qualified) for each in driven]
        return f"Backfill: {kind.value}" + (f", {' then '.join(names)} in steps" if names else ", in one step")

    def _check_schedules(self, name: str, options: ViewOptions, plan: Plan, names: CatalogNames) -> None:
        """Views with a schedule keep no change log that others could follow, and need one of every input."""
        for each in sorted(names.mentioned):
            item = self._database.catalog.get(each)
            if item.kind is ObjectKind.MATERIALIZED_VIEW and schedule_of(item) is not None:
                raise FeatureNotSupported(
                    f'materialized view "{name}" cannot read {item}',
                    detail="That view is refreshed on a schedule of its own and keeps no change log to follow.",
                    hint="Read what that view reads, or query it.",
                )
        if options.schedule is None:
            return
        parts = [each.plan for each in cut(plan, RelationId(0), lambda: RelationId(0))]
        if any(isinstance(each, Recompute) and each.time_driven for each in parts):
            raise FeatureNotSupported(
                f'materialized view "{name}" reads the clock, which keeps no change log',
                hint="Leave out the schedule, or the clock.",
            )
        if not names.mentioned:
            raise FeatureNotSupported(f'materialized view "{name}" has no input whose change log it could follow')

    def _check_hidden_names(self, plan: Plan) -> None:
        """No stored relation of the view, internal ones included, may have a column that storage or its state needs."""
        try:
            fragments = cut(plan, RelationId(0), lambda: RelationId(0))
        except InvariantError as error:
            found = re.search('repeats column "(.*)"', error.message)
            if found is None:
                raise
            raise _reserved(found[1], "The state that the view keeps has a column of that name.") from error
        for column in (column for each in fragments for column in each.schema.visible):
            if column.name in RESERVED_COLUMNS:
                raise _reserved(column.name)

    def _view_objects(
        self,
        statement: ast.CreateMaterializedView,
        text: str,
        schema: str,
        name: str,
        plan: Plan,
        names: CatalogNames,
    ) -> tuple[CatalogObject, list[CatalogObject]]:
        ids = iter(self._database.store.allocate_ids(1 + count_internal(plan)))
        view_id = RelationId(next(ids))
        fragments = cut(plan, view_id, lambda: RelationId(next(ids)))
        shape = fragments[-1].schema
        properties = {
            "options": dict(statement.options),
            "search_path": list(self._variables.search_path),
            "plan_version": PLAN_VERSION,
            "background_ddl": self._variables.is_on("background_ddl"),
        }
        view = CatalogObject(
            ObjectId(view_id),
            ObjectKind.MATERIALIZED_VIEW,
            name,
            text,
            columns=shape.visible,
            relation=shape,
            schema=schema,
            owner=self._user,
            status=ObjectStatus.CREATING,
            properties=properties,
            dependencies=frozenset(ObjectId(each) for each in names.mentioned),
            created_ms=self._database.clock.now_ms(),
        )
        internal = [
            CatalogObject(
                ObjectId(each.relation),
                ObjectKind.INTERNAL,
                internal_name(name, each.relation),
                "",
                columns=each.schema.columns,
                relation=each.schema,
                schema=schema,
                owner=self._user,
                parent=view.id,
                created_ms=view.created_ms,
            )
            for each in fragments[:-1]
        ]
        return view, internal

    def _adding_view(
        self,
        view: CatalogObject,
        internal: list[CatalogObject],
        rate: int | None,
        order: tuple[tuple[RelationId, RelationId], ...],
    ) -> CatalogCommand:
        database = self._database

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            for each in view.dependencies:
                if each not in catalog.by_id:
                    raise UndefinedObject(f'a relation that "{view.name}" reads was dropped meanwhile')
            changed = catalog.with_objects(view, *internal)
            job = database.view_job(view, changed)
            for fragment in job.fragments:
                database.runtime.versions.add_relation(fragment.relation, fragment.schema)
            kind = self.backfill_kind(job, schedule_of(view) is not None)
            if kind is not BackfillKind.SNAPSHOT:
                begins = ArrangementState(kind, rate=rate, order=order)
                growing = database.grows_in_graph(job, begins, barrier.previous)
                stored = Checkpoint(put_progress={job.id: begins.to_json()})
                return changed, graph.with_job(growing), stored, job, lambda: database.jobs.add(growing)
            database.runtime.versions.set_independent(job.outputs, True)
            pins = pins_at(job, barrier.epoch)
            state = BackfillState(barrier.epoch, rate=rate, order=order)
            extra = Checkpoint(put_pins=pins, put_progress={job.id: state.to_json()})

            def publish() -> None:
                database.pins.put(pins)
                database.start_backfill(view, job, state)

            return changed, graph, extra, job, publish

        return CatalogCommand(database, work)

    # --- functions -----------------------------------------------------------------------------------

    def create_function(self, statement: ast.CreateFunction, text: str) -> str | None:
        """Registers a function once its body makes sense over parameters of its types."""
        name, schema = self._place(statement.name)
        existing = self._database.catalog.try_find((schema, name), kinds=(ObjectKind.FUNCTION,))
        if existing is not None and statement.if_not_exists:
            return f'function "{name}" already exists, skipping'
        names = CatalogNames(self._database.catalog, self._variables.search_path)
        function = user_function(statement)
        if function.language == "python":
            python_functions.register(self._database.runtime.spark, function)
        else:
            check_function(function, names, Settings(timezone="UTC", now_ms=0, strict=True))
        parameters = tuple(Column(label or "", type_) for label, type_ in function.parameters)
        signature = (*parameters, Column("", function.returns))
        properties = {"language": function.language}
        item = self._object(ObjectKind.FUNCTION, schema, name, text, signature, None, properties)
        item = replace(item, dependencies=frozenset(ObjectId(each) for each in names.mentioned))
        if existing is not None and statement.or_replace:
            readers = [each for each in self._database.catalog.objects() if existing.id in each.dependencies]
            if readers:
                raise DependentObjects(
                    f'function "{name}" cannot be replaced because other objects use it',
                    detail=f"{readers[0]} uses it.",
                    hint="Drop them first, or create the function under another name.",
                )
            item = replace(item, id=existing.id, owner=existing.owner)
        self._change(lambda catalog: catalog.with_objects(item))
        return None

    # --- schemas -------------------------------------------------------------------------------------

    def create_schema(self, statement: ast.CreateSchema) -> str | None:
        name = statement.name.name
        if statement.if_not_exists and self._database.catalog.try_schema(name) is not None:
            return f'schema "{name}" already exists, skipping'
        (number,) = self._database.store.allocate_ids(1)
        new = Schema(ObjectId(number), "dev", name, statement.owner or self._user)
        self._change(lambda catalog: catalog.with_schema(new))
        return None

    # --- dropping and renaming -----------------------------------------------------------------------

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
            kinds = (wanted,) if wanted is ObjectKind.FUNCTION else None  # functions have names of their own
            found = self._database.catalog.try_find(each.parts, search_path=self._variables.search_path, kinds=kinds)
            if found is None and statement.if_exists:
                notices.append(f'{wanted.value} "{each}" does not exist, skipping')
                continue
            targets.append(
                self._database.catalog.find(
                    each.parts, search_path=self._variables.search_path, kinds=(wanted,), action="DROP"
                )
            )
        if targets:
            doomed = self._database.catalog.plan_drop([each.id for each in targets], cascade=statement.cascade)
            notices += self._cascade_notices(doomed, [each.id for each in targets])
            self.drop_objects([each.id for each in targets], cascade=statement.cascade)
        return notices

    def _cascade_notices(self, doomed: tuple[ObjectId, ...], named: list[ObjectId]) -> list[str]:
        others = [self._database.catalog.get(each) for each in doomed if each not in named]
        return [f"drop cascades to {each}" for each in others if each.kind is not ObjectKind.INTERNAL]

    def drop_objects(self, ids: list[ObjectId], *, cascade: bool) -> None:
        """Drops objects with what belongs to them; a view that is still being built stops first."""
        database = self._database
        for doomed in database.catalog.plan_drop(ids, cascade=cascade):
            database.jobs.forget(doomed)
            database.refreshes.remove(JobId(doomed))

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            gone = catalog.plan_drop([each for each in ids if each in catalog.by_id], cascade=cascade)
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

        try:
            self._run(CatalogCommand(database, work))
        except SeicheError:
            database.resume_left(ids)  # they are still there, and must not stand still for that
            raise

    def _drop_schema(self, name: str, statement: ast.Drop, notices: list[str]) -> None:
        catalog = self._database.catalog
        if statement.if_exists and catalog.try_schema(name) is None:
            notices.append(f'schema "{name}" does not exist, skipping')
            return
        catalog.schema(name)
        inside = [each.id for each in catalog.objects() if each.schema == name and each.kind is not ObjectKind.INTERNAL]
        if inside and statement.cascade:
            notices += self._cascade_notices(catalog.plan_drop(inside, cascade=True), [])
            self.drop_objects(inside, cascade=True)
        self._change(lambda current: current.without_schema(name))

    def rename(self, statement: ast.Rename) -> None:
        """Gives a table or a view another name; the definitions of what reads it follow."""
        kind = CATALOG_KINDS.get(statement.kind)
        if kind not in RENAMED_KINDS:
            raise FeatureNotSupported(f"ALTER {statement.kind.value.upper()} RENAME is not supported yet")
        found = self._database.catalog.find(
            statement.name.parts, search_path=self._variables.search_path, kinds=(kind,), action="ALTER"
        )
        self._refuse_taken(found.schema, statement.new_name)
        renamed(self._database.catalog, found.id, statement.new_name)  # what cannot be is told before any epoch

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            changed = renamed(catalog, found.id, statement.new_name)
            job = JobId(found.id)
            if job in graph:  # jobs know their names, for messages
                graph = graph.replace(replace(graph.job(job), name=statement.new_name))  # type: ignore[type-var]
            return changed, graph, Checkpoint(), None, None

        self._run(CatalogCommand(self._database, work))

    # ------------------------------------------------------------------------------------------------

    def _change(self, change: Callable[[Catalog], Catalog]) -> None:
        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            return change(catalog), graph, Checkpoint(), None, None

        self._run(CatalogCommand(self._database, work))

    def _run(self, command: CatalogCommand) -> Any:
        value = self._wait(self._database.coordinator.command(command))
        return self._database.jobs.get(value.id) if isinstance(value, ViewJob) else value

    def _exists(self, schema: str, name: str) -> bool:
        return self._database.catalog.try_find((schema, name)) is not None

    def _refuse_taken(self, schema: str, name: str) -> None:
        if self._exists(schema, name):
            raise DuplicateObject(f'relation "{name}" already exists', hint="Drop it first, or choose another name.")

    def _place(self, name: ast.ObjectName) -> tuple[str, str]:
        """The name and the schema of something new."""
        if name.database is not None and name.database != "dev":
            raise FeatureNotSupported("objects can only be created in the database of the session")
        if name.schema is not None:
            return name.name, self._database.catalog.schema(name.schema).name
        path = self._variables.search_path
        existing = [each for each in path if self._database.catalog.try_schema(each) is not None]
        if not existing:
            raise UndefinedSchema(
                "no schema has been selected to create in",
                detail="The search path names no schema that exists.",
                hint="SET search_path TO public.",
            )
        return name.name, existing[0]

    def _object(
        self,
        kind: ObjectKind,
        schema: str,
        name: str,
        text: str,
        columns: tuple[Column, ...],
        relation: RelationSchema | None,
        properties: dict[str, Any],
    ) -> CatalogObject:
        if kind is not ObjectKind.VIEW:
            self._refuse_taken(schema, name)
        (number,) = self._database.store.allocate_ids(1)
        return CatalogObject(
            ObjectId(number),
            kind,
            name,
            text,
            columns=columns,
            relation=relation,
            schema=schema,
            owner=self._user,
            properties=properties,
            created_ms=self._database.clock.now_ms(),
        )


def _named(wanted: tuple[str, ...], columns: tuple[OutputColumn, ...]) -> tuple[str, ...]:
    """The names of a view's columns, which must differ."""
    if wanted and len(wanted) != len(columns):
        raise InvalidDefinition(
            f"{len(wanted)} column names were given for {len(columns)} columns", hint="Name each column once."
        )
    names = wanted or tuple(column.name for column in columns)
    for index, name in enumerate(names):
        if name in names[:index]:
            raise DuplicateColumn(f'column "{name}" specified more than once', hint="Give one of them an alias.")
        if columns[index].type.kind is Kind.NULL:
            raise InvalidDefinition(f'column "{name}" has no type', hint="Cast the NULL to the type you want.")
    return names


def _table_shape(statement: ast.CreateTable) -> tuple[tuple[Column, ...], RelationSchema]:
    columns = []
    for column in statement.columns:
        if column.name in RESERVED_COLUMNS:
            raise _reserved(column.name)
        columns.append(
            Column(
                column.name,
                column.type,
                nullable=column.nullable and column.name not in statement.primary_key,
                default=column.default.text if column.default is not None else None,
                generated=column.generated.text if column.generated is not None else None,
            )
        )
    names = [column.name for column in columns]
    for name in statement.primary_key:
        if name not in names:
            raise UndefinedColumn(f'column "{name}" named in key does not exist', hint=nearest(name, names))
        if not next(c for c in columns if c.name == name).type.is_hashable:
            raise InvalidDefinition(f'column "{name}" cannot be part of a primary key', hint="Use a plain type.")
    if statement.append_only and statement.primary_key and statement.on_conflict is not ast.ConflictRule.IGNORE:
        raise InvalidDefinition(
            "an append-only table cannot overwrite rows",
            hint="Leave out PRIMARY KEY, or add ON CONFLICT IGNORE.",
        )
    visible = tuple(columns)
    if statement.primary_key:
        return visible, RelationSchema(visible, statement.primary_key, statement.append_only)
    row_id = Column(ROW_ID, BIGINT, hidden=True, nullable=False)
    return visible, RelationSchema((*visible, row_id), (ROW_ID,), statement.append_only)


def _reserved(name: str, detail: str | None = None) -> InvalidDefinition:
    return InvalidDefinition(f'column name "{name}" is reserved', detail=detail, hint="Give the column another name.")
