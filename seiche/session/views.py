"""CREATE VIEW, CREATE MATERIALIZED VIEW, CREATE SINK: checks, plan, stored relations, and the start of the backfill."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import MADE_BY, TIMEZONE, CatalogObject, ObjectKind, ObjectStatus
from seiche.catalog.parallelism import given
from seiche.catalog.temporary import is_temporary
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.errors import (
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidDefinition,
    InvariantError,
    SyntaxError_,
    UndefinedObject,
)
from seiche.model import RESERVED_COLUMNS, Column, JobId, ObjectId, RelationId
from seiche.plan.algebra import Keyed, Plan, Recompute, Recursion, follows_clock, recomputed
from seiche.plan.fragments import Fragment, count_internal, cut, fragment_schema
from seiche.plan.reasons import what_to_write
from seiche.query import is_stored, relation_of
from seiche.session.database import PLAN_VERSION, schedule_of
from seiche.session.databases import refuse_unsubscribed
from seiche.session.definitions import CatalogCommand, Definitions, check_column_name, reserved_name
from seiche.session.delta_joins import serving
from seiche.session.names import CatalogNames
from seiche.session.rename import internal_name
from seiche.session.sink_options import explained_options, handing_on, read_sink_options
from seiche.session.sinks import filling
from seiche.session.view_options import ViewOptions, read_options
from seiche.sql import statements as ast
from seiche.sql.bind import OutputColumn, Settings, bind_query
from seiche.sql.functions.system import VERSION
from seiche.sql.single_rows import refuse_many_rows
from seiche.stream.backfill.arrangement import ArrangementState, choose
from seiche.stream.backfill.protocol import Backfill, BackfillKind
from seiche.stream.backfill.slices import count_by_vnode
from seiche.stream.backfill.stages import stages
from seiche.stream.backfill.state import BackfillState, pins_at
from seiche.stream.batch_refresh.schedule import read_schedule
from seiche.stream.view import ViewJob
from seiche.types import Kind

History = tuple[dict[RelationId, int], dict[RelationId, tuple[int, ...]]]  # rows of relations, and of their vnodes


class ViewDefinitions:
    """Creates and explains views, for one session."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._database = definitions.database
        self._variables = definitions.variables

    def create_view(self, statement: ast.CreateView, text: str) -> str | None:
        catalog = self._definitions.catalog
        name, schema = self._definitions.place(statement.name, temporary=statement.temporary)
        if statement.if_not_exists and self._definitions.exists(schema, name):
            return f'relation "{name}" already exists, skipping'
        names = CatalogNames(catalog, self._variables.search_path, self._database.jobs.progress)
        bound = bind_query(statement.query.tree, names, Settings(timezone="UTC", now_ms=0, strict=True))
        notice = None
        if not is_temporary(schema) and any(is_temporary(catalog.get(each).schema) for each in names.mentioned):
            name, schema = self._definitions.place(statement.name, temporary=True)
            notice = f'view "{name}" will be a temporary view'
        existing = self._definitions.catalog.try_find((schema, name))
        shown = _named(statement.columns, bound.columns, twice=True)
        columns = tuple(Column(name_, column.type) for name_, column in zip(shown, bound.columns, strict=True))
        path = self._variables.search_path if is_temporary(schema) else self._variables.lasting_path
        view = self._definitions.new_object(
            ObjectKind.VIEW, schema, name, text, columns, None, {"search_path": list(path)}
        )
        view = replace(view, dependencies=frozenset(ObjectId(each) for each in names.mentioned))
        if statement.or_replace and existing is not None:
            view = self._replacing(existing, view)

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            return catalog.with_objects(view), graph, Checkpoint(), None, None

        self._definitions.run(self._definitions.command(work))
        return notice

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

    def explain(self, statement: ast.CreateFollowing) -> tuple[Fragment, ...]:
        """The fragments that a view of any name would have; internal relations have negative ids.

        What a sink would hand its rows to does not matter for them.
        """
        return self._explained(statement)[0]

    def _explained(
        self, statement: ast.CreateFollowing
    ) -> tuple[tuple[Fragment, ...], tuple[tuple[RelationId, RelationId], ...]]:
        """The fragments, and the order in which their inputs are to be read."""
        if isinstance(statement, ast.CreateSink):
            statement = replace(statement, options=explained_options(statement.options), into=None)
        plan, names, options = self._planned(statement)
        numbers = iter(range(-2, -10_000, -1))
        return cut(plan, RelationId(-1), lambda: RelationId(next(numbers))), options.order_of(names)

    def create_following(self, statement: ast.CreateFollowing, text: str) -> tuple[Backfill | None, str | None]:
        """Registers a materialized view or a sink and starts to build it; the caller decides whether to wait."""
        name, schema = self._definitions.place(statement.name)
        if statement.if_not_exists and self._definitions.exists(schema, name):
            return None, f'relation "{name}" already exists, skipping'
        self._definitions.refuse_taken(schema, name)
        plan, names, options = self._planned(statement)
        view, internal = self._view_objects(statement, text, schema, name, plan, names)
        if isinstance(statement, ast.CreateSink):
            view = filling(view, statement, self._definitions.catalog, self._variables.search_path)
        rate = options.rate_limit(self._variables.get("backfill_rate_limit"))
        backfill = self._definitions.run(self.adding(view, internal, rate, options.order_of(names)))
        return backfill, None

    def _key_of(self, source: str) -> Sequence[str]:
        if not is_stored(source):
            return ()
        relation = self._definitions.catalog.get(ObjectId(relation_of(source))).relation
        return relation.key if relation is not None else ()

    def _planned(self, statement: ast.CreateFollowing) -> tuple[Plan, CatalogNames, ViewOptions]:
        """The plan of a view that may be created, the names that it mentions, and its options; raises what is wrong."""
        name = statement.name.name
        of_sink, what = None, "materialized view"
        if isinstance(statement, ast.CreateSink):
            of_sink, what = read_sink_options(statement.options, into_table=statement.into is not None), "sink"
        options = read_options(statement.options if of_sink is None else of_sink.rest)
        catalog = self._definitions.catalog
        names = CatalogNames(catalog, self._variables.search_path, self._database.jobs.progress)
        timezone = self._variables.get("timezone")
        bound = bind_query(statement.query.tree, names, Settings(timezone=timezone, now_ms=None, strict=False))
        if not bound.columns:
            raise FeatureNotSupported(
                f"a {what} without columns is not supported", hint="Write SELECT 1 FROM …, or make it a plain view."
            )
        for column in _named(statement.columns, bound.columns):
            check_column_name(column)
        refuse_many_rows(bound.ast, self._key_of)
        if bound.volatile:
            raise FeatureNotSupported(
                f"function {bound.volatile[0]}() cannot be used in a {what}",
                detail="Its answer changes from call to call, so the view could never equal its query.",
                hint="Store the value in a table's column with a DEFAULT, and read that.",
            )
        if names.system:
            raise FeatureNotSupported(f'{what} "{name}" cannot read system view "{names.system[0]}"')
        plan = self._database.view_plan(statement, catalog, self._variables.search_path, timezone)
        reasons = recomputed(plan) if options.strict else ()
        if reasons:
            whole = isinstance(plan, Recompute | Recursion) or (isinstance(plan, Keyed) and plan.reason is not None)
            raise FeatureNotSupported(
                f'{"" if whole else "a part of "}materialized view "{name}" would be recomputed in full',
                detail=" ".join(f"{each.sentence} (reason code: {each.code})" for each in dict.fromkeys(reasons)),
                hint=f"{what_to_write(reasons)} Or leave out incremental = 'strict' to accept that.",
            )
        self.check_hidden_names(plan)
        if of_sink is not None:
            of_sink.check(fragment_schema(plan))
        self._check_schedules(what, name, options, plan, names)
        options.order_of(names)
        refuse_unsubscribed(catalog, catalog.home, f'{what} "{name}"', names.mentioned)
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

    def explained_backfill(self, statement: ast.CreateFollowing) -> str:
        """The line of EXPLAIN that tells how the view would be built."""
        fragments, order = self._explained(statement)
        job = ViewJob(JobId(-1), str(statement.name), fragments, self._database.runtime)
        kind = self.backfill_kind(job, read_schedule(dict(statement.options)) is not None)
        versions = self._database.runtime.versions
        steps = stages(job.fragments, lambda relation: versions.committed(relation).rows_estimate, order)
        driven = dict.fromkeys(relation for stage in steps for relation in stage.driven)
        names = [str(self._definitions.catalog.get(each).qualified) for each in driven]
        return f"Backfill: {kind.value}" + (f", {' then '.join(names)} in steps" if names else ", in one step")

    def _check_schedules(self, what: str, name: str, options: ViewOptions, plan: Plan, names: CatalogNames) -> None:
        """Views with a schedule keep no change log that others could follow, and need one of every input."""
        for each in sorted(names.mentioned):
            item = self._definitions.catalog.get(each)
            if item.kind is ObjectKind.MATERIALIZED_VIEW and schedule_of(item) is not None:
                raise FeatureNotSupported(
                    f'{what} "{name}" cannot read {item}',
                    detail="That view is refreshed on a schedule of its own and keeps no change log to follow:"
                    " creating streaming jobs on batch refresh materialized views is not supported.",
                    hint="Read what that view reads, or query it.",
                )
        if options.schedule is None:
            return
        parts = [each.plan for each in cut(plan, RelationId(0), lambda: RelationId(0))]
        if any(follows_clock(each) for each in parts):
            raise FeatureNotSupported(
                f'materialized view "{name}" reads the clock, which keeps no change log',
                hint="Leave out the schedule, or the clock.",
            )
        for each in sorted(names.mentioned):
            item = self._definitions.catalog.get(each)
            if item.kind is ObjectKind.SOURCE:
                raise FeatureNotSupported(
                    f'materialized view "{name}" has a schedule and cannot read {item}',
                    detail="For now batch refresh materialized views must not depend on sources.",
                    hint="Let another materialized view follow the source, and read that.",
                )
        if not names.mentioned:
            raise FeatureNotSupported(f'materialized view "{name}" has no input whose change log it could follow')

    def check_hidden_names(self, plan: Plan) -> None:
        """No stored relation of the view, internal ones included, may have a column that storage or its state needs."""
        try:
            fragments = cut(plan, RelationId(0), lambda: RelationId(0))
        except InvariantError as error:
            found = re.search('repeats column "(.*)"', error.message)
            if found is None:
                raise
            raise reserved_name(found[1], "The state that the view keeps has a column of that name.") from error
        for column in (column for each in fragments for column in each.schema.visible):
            if column.name in RESERVED_COLUMNS:
                raise reserved_name(column.name)

    def _view_objects(
        self, statement: ast.CreateFollowing, text: str, schema: str, name: str, plan: Plan, names: CatalogNames
    ) -> tuple[CatalogObject, list[CatalogObject]]:
        ids = iter(self._database.store.allocate_ids(1 + count_internal(plan)))
        view_id = RelationId(next(ids))
        fragments = cut(plan, view_id, lambda: RelationId(next(ids)))
        shape = fragments[-1].schema
        kind = ObjectKind.SINK if isinstance(statement, ast.CreateSink) else ObjectKind.MATERIALIZED_VIEW
        properties = {
            "options": dict(statement.options),
            "search_path": list(self._variables.lasting_path),
            TIMEZONE: self._variables.get("timezone"),
            "plan_version": PLAN_VERSION,
            "background_ddl": self._variables.is_on("background_ddl"),
            **given(kind, self._variables.get),
            **(handing_on(self._variables.get) if kind is ObjectKind.SINK else {}),
            MADE_BY: VERSION,
        }
        held = frozenset[ObjectId]()
        if self._variables.is_on("streaming_enable_delta_join"):
            held = serving(plan, self._definitions.catalog)
        view = CatalogObject(
            ObjectId(view_id),
            kind,
            name,
            text,
            columns=shape.visible,
            relation=shape,
            database=self._variables.database,
            schema=schema,
            owner=self._definitions.user,
            status=ObjectStatus.CREATING,
            properties=properties,
            dependencies=frozenset(ObjectId(each) for each in names.mentioned) | held,
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
                database=view.database,
                schema=schema,
                owner=self._definitions.user,
                parent=view.id,
                created_ms=view.created_ms,
            )
            for each in fragments[:-1]
        ]
        return view, internal

    def adding(
        self,
        view: CatalogObject,
        internal: list[CatalogObject],
        rate: int | None,
        order: tuple[tuple[RelationId, RelationId], ...],
    ) -> CatalogCommand:
        """The command that registers a view and starts to build it."""
        database = self._database
        history: History = ({}, {})
        if not self._variables.is_on("streaming_use_snapshot_backfill"):
            history = self._counted(view.dependencies, limited=rate is not None)

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            for each in view.dependencies:
                if each not in catalog.by_id:
                    raise UndefinedObject(f'a relation that "{view.name}" reads was dropped meanwhile')
            refuse_unsubscribed(catalog, view.database, str(view), view.dependencies)
            changed = catalog.with_objects(view, *internal)
            job = database.view_job(view, changed)
            for fragment in job.fragments:
                database.runtime.versions.add_relation(fragment.relation, fragment.schema)
            kind = self.backfill_kind(job, schedule_of(view) is not None)
            if kind is not BackfillKind.SNAPSHOT:
                begins = ArrangementState(kind, False, history[0], rate, order, history[1])
                growing = database.grows_in_graph(view, job, begins, barrier.previous)
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

        return self._definitions.command(work)

    def _counted(self, items: Iterable[ObjectId], *, limited: bool) -> History:
        """The rows of relations that a view will read inside the main graph, where nobody has time to count them.

        Their number is known where nothing but new rows came. Where rows change or leave, the log has more than there
        are; and a limit is kept to the row, which takes the rows of each vnode.
        """
        rows: dict[RelationId, int] = {}
        by_vnode: dict[RelationId, tuple[int, ...]] = {}
        runtime = self._database.runtime
        for relation in map(RelationId, items):
            if relation not in runtime.versions:
                continue
            with self._database.trash.reading():
                version = runtime.versions.committed(relation)
                rows[relation] = version.rows_estimate
                if limited or not version.only_grows:
                    by_vnode[relation] = count_by_vnode(runtime.reader.exact(version))
                    rows[relation] = sum(by_vnode[relation])
        return rows, by_vnode


def _named(wanted: tuple[str, ...], columns: tuple[OutputColumn, ...], *, twice: bool = False) -> tuple[str, ...]:
    """The names of a view's columns, which must differ unless they may come `twice`, as those of a query may."""
    if wanted and len(wanted) != len(columns):
        raise SyntaxError_(
            f"{len(wanted)} column names were given for {len(columns)} columns", hint="Name each column once."
        )
    names = wanted or tuple(column.name for column in columns)
    for index, name in enumerate(names):
        if name in names[:index] and not twice:
            raise DuplicateColumn(f'column "{name}" specified more than once', hint="Give one of them an alias.")
        if columns[index].type.kind is Kind.NULL:
            raise InvalidDefinition(f'column "{name}" has no type', hint="Cast the NULL to the type you want.")
    return names
