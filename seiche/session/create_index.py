"""CREATE INDEX: checks, the stored copy, and the start of its backfill."""

from __future__ import annotations

from dataclasses import replace

from seiche.catalog.objects import CatalogObject, ObjectKind, ObjectStatus
from seiche.catalog.parallelism import given
from seiche.errors import FeatureNotSupported, InvalidDefinition
from seiche.model import RelationId
from seiche.plan.fragments import Fragment, cut, fragment_schema
from seiche.session import indexes
from seiche.session.database import PLAN_VERSION, schedule_of
from seiche.session.definitions import Definitions
from seiche.session.names import refuse_unfinished
from seiche.session.view_options import read_options
from seiche.session.views import ViewDefinitions
from seiche.sql import statements as ast
from seiche.stream.backfill.protocol import Backfill


class IndexDefinitions:
    """Creates indexes, for one session. Built and maintained, an index is a view in another order."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._catalog = definitions.catalog
        self._variables = definitions.variables

    def create_index(self, statement: ast.CreateIndex) -> tuple[Backfill | None, str | None]:
        """Registers the index and starts to build it; the caller decides whether to wait."""
        source = self._source(statement)
        name = statement.name.name if statement.name else indexes.default_name(statement, source.schema, self._catalog)
        if statement.if_not_exists and self._definitions.exists(source.schema, name):
            return None, f'relation "{name}" already exists, skipping'
        self._definitions.refuse_taken(source.schema, name)
        self._check(statement, source)
        rate = read_options(statement.options).rate_limit(self._variables.get("backfill_rate_limit"))
        views = ViewDefinitions(self._definitions)
        command = views.adding(self._index(statement, name, source, views), [], rate, ())
        return self._definitions.run(command), None

    def explain(self, statement: ast.CreateIndex) -> tuple[Fragment, ...]:
        """The fragment that an index of any name would have."""
        source = self._source(statement)
        self._check(statement, source)
        return cut(indexes.plan_of(statement, source), RelationId(-1), lambda: RelationId(-2))

    def _source(self, statement: ast.CreateIndex) -> CatalogObject:
        return self._catalog.find(
            statement.table.parts,
            search_path=self._variables.search_path,
            kinds=indexes.INDEXED_KINDS,
        )

    def _check(self, statement: ast.CreateIndex, source: CatalogObject) -> None:
        if statement.name is not None and statement.name.schema is not None:
            raise InvalidDefinition(
                f'index "{statement.name}" is always in the schema of its table',
                hint="Leave the schema out of the index's name.",
            )
        refuse_unfinished(source, self._definitions.database.jobs.progress)
        if schedule_of(source) is not None:
            raise FeatureNotSupported(
                f"{source} cannot be indexed", detail="It is refreshed on a schedule and keeps no change log to follow."
            )

    def _index(
        self, statement: ast.CreateIndex, name: str, source: CatalogObject, views: ViewDefinitions
    ) -> CatalogObject:
        plan = indexes.plan_of(statement, source)
        for column in source.relation.visible if source.relation is not None else ():
            if column.shown is not None and column.name in (statement.include or (column.name,)):
                raise FeatureNotSupported(
                    f'column "{column.name}" lost a field and cannot be in an index', hint="INCLUDE other columns only."
                )
        views.check_hidden_names(plan)
        text = indexes.definition_of(statement, name, source)
        properties = {
            "options": dict(statement.options),
            "columns": indexes.indexed_columns(statement),
            "include": list(statement.include),
            "plan_version": PLAN_VERSION,
            "background_ddl": self._variables.is_on("background_ddl"),
            **given(ObjectKind.INDEX, self._variables.get),
        }
        shape = fragment_schema(plan)
        index = self._definitions.new_object(
            ObjectKind.INDEX, source.schema, name, text, shape.visible, shape, properties
        )
        return replace(index, status=ObjectStatus.CREATING, dependencies=frozenset({source.id}))
