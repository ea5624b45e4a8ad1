"""What every definition shares: where a new object goes, and the command that makes it true at a barrier."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import MADE_BY, SUPERUSER, CatalogObject, ObjectKind, ObjectStatus, Schema
from seiche.catalog.temporary import ALIAS as TEMPORARY
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Graph
from seiche.errors import DuplicateColumn, DuplicateObject, FeatureNotSupported, InvalidDefinition, UndefinedSchema
from seiche.model import RESERVED_COLUMNS, Column, ObjectId, RelationSchema
from seiche.session.database import Database
from seiche.session.databases import schema_of
from seiche.session.variables import Variables
from seiche.sql import statements as ast
from seiche.sql.functions.system import VERSION
from seiche.stream.view import ViewJob

_POSTGRES_COLUMNS = frozenset({"tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"})

# The new catalog and graph, what else to store, the command's value, and what to do once all is durable.
Work = Callable[[Catalog, Graph, Barrier], tuple[Catalog, Graph, Checkpoint, Any, Callable[[], None] | None]]


@dataclass(frozen=True, slots=True)
class CatalogCommand:
    """A command that makes a new catalog, and maybe a new graph; `work` runs on the coordinator's thread.

    It is given the catalog as seen from the database `home`.
    """

    database: Database
    home: str
    work: Work

    def apply(self, graph: Graph, barrier: Barrier) -> Effect:
        old = self.database.catalog_at(barrier).seen_from(self.home)
        new, changed, extra, value, then = self.work(old, graph, barrier)
        part, make_current = self.database.change_catalog(barrier, new)

        def publish() -> None:
            make_current()
            if then is not None:
                then()

        return Effect(changed, part.merge(extra), value, publish)


class Definitions:
    """Changes what exists, for one session."""

    def __init__(
        self, database: Database, variables: Variables, wait: Callable[[Future[Any]], Any], user: str = SUPERUSER
    ) -> None:
        self.database = database
        self.variables = variables
        self.user = user  # who owns what is made
        self.wait = wait

    @property
    def catalog(self) -> Catalog:
        """What exists, seen from the session's database."""
        return self.database.catalog.seen_from(self.variables.database)

    def command(self, work: Work) -> CatalogCommand:
        return CatalogCommand(self.database, self.variables.database, work)

    def run(self, command: CatalogCommand) -> Any:
        value = self.wait(self.database.coordinator.command(command))
        return self.database.jobs.get(value.id) if isinstance(value, ViewJob) else value

    def change(self, change: Callable[[Catalog], Catalog]) -> None:
        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            return change(catalog), graph, Checkpoint(), None, None

        self.run(self.command(work))

    def place(self, name: ast.ObjectName, *, temporary: bool = False) -> tuple[str, str]:
        """The name and the schema of something new. The first temporary one of a session makes their schema."""
        if temporary or name.schema == TEMPORARY:
            return self._temporary_place(name)
        if name.database is not None and name.database != self.variables.database:
            raise FeatureNotSupported(
                "objects can only be created in the database of the session",
                detail=f'This session works in database "{self.variables.database}".',
                hint=f"SET database TO {ast.quote_name(name.database)} goes there.",
            )
        if name.schema is not None:
            return name.name, self.catalog.schema(name.schema).name
        path = self.variables.lasting_path
        existing = [each for each in path if self.catalog.try_schema(each) is not None]
        if not existing:
            raise UndefinedSchema(
                "no schema has been selected to create in",
                detail="The search path names no schema that exists.",
                hint="SET search_path TO public.",
            )
        return name.name, existing[0]

    def _temporary_place(self, name: ast.ObjectName) -> tuple[str, str]:
        schema = self.variables.temporary
        if schema is None:
            raise FeatureNotSupported("temporary tables need a session of their own")
        if name.schema not in (None, TEMPORARY, schema):
            raise InvalidDefinition("cannot create temporary relation in non-temporary schema")
        if self.catalog.try_schema(schema) is None:
            (number,) = self.database.store.allocate_ids(1)
            new = Schema(ObjectId(number), self.variables.database, schema, self.user)
            self.change(lambda catalog: catalog.with_schema(new))
        return name.name, schema

    def exists(self, schema: str, name: str) -> bool:
        return self.catalog.try_find((schema, name)) is not None

    def refuse_taken(self, schema: str, name: str) -> None:
        there = self.catalog.try_find((schema, name))
        if there is None:
            return
        creating = there.status is ObjectStatus.CREATING
        raise DuplicateObject(
            f'relation "{name}" already exists',
            detail=f"In the catalog: {there.kind.value} named {name} already exists"
            + (" and is still being created." if creating else "."),
            hint="Wait for it with WAIT, or choose another name."
            if creating
            else "Drop it first, or choose another name.",
        )

    def new_object(
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
            self.refuse_taken(schema, name)
        (number,) = self.database.store.allocate_ids(1)
        return CatalogObject(
            ObjectId(number),
            kind,
            name,
            text,
            columns=columns,
            relation=relation,
            database=self.variables.database,
            schema=schema,
            owner=self.user,
            properties={**properties, MADE_BY: VERSION},
            created_ms=self.database.clock.now_ms(),
        )

    def create_schema(self, statement: ast.CreateSchema) -> str | None:
        name = schema_of(statement.name, self.variables.database)
        if statement.if_not_exists and self.catalog.try_schema(name) is not None:
            return f'schema "{name}" already exists, skipping'
        check_schema_name(name)
        (number,) = self.database.store.allocate_ids(1)
        new = Schema(ObjectId(number), self.variables.database, name, statement.owner or self.user)
        self.change(lambda catalog: catalog.with_schema(new))
        return None


def check_schema_name(name: str) -> None:
    if name.startswith("pg_"):
        raise InvalidDefinition(
            f'unacceptable schema name "{name}"', detail='The prefix "pg_" is reserved for system schemas.'
        )


def check_column_name(name: str) -> None:
    """Refuses the name of a column of a table or a materialized view that storage, or PostgreSQL, has for its own."""
    if name in RESERVED_COLUMNS:
        raise reserved_name(name)
    if name in _POSTGRES_COLUMNS:
        raise DuplicateColumn(
            f'column name "{name}" conflicts with a system column name', hint="Give the column another name."
        )


def reserved_name(name: str, detail: str | None = None) -> InvalidDefinition:
    return InvalidDefinition(f'column name "{name}" is reserved', detail=detail, hint="Give the column another name.")
