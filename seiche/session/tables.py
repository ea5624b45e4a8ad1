"""CREATE TABLE: the shape of its rows, its key, and what its columns compute."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import CONNECTOR, CatalogObject, ObjectKind, ObjectStatus
from seiche.catalog.parallelism import given
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.errors import (
    DuplicateColumn,
    InvalidDefinition,
    SyntaxError_,
    UndefinedColumn,
    nearest,
)
from seiche.model import ROW_ID, Column, RelationId, RelationSchema
from seiche.plan.explain import Node
from seiche.session import watermarks
from seiche.session.definitions import CatalogCommand, Definitions, check_column_name
from seiche.session.feeds import check_connector
from seiche.session.like import left_out, spelled_out
from seiche.session.table_text import create_table_text
from seiche.sql import statements as ast
from seiche.sql.bind import OutputColumn, Settings, bind_expression, check_default
from seiche.stream.conflict import Conflict
from seiche.types import BIGINT, Kind

RETENTION = "retention_seconds"


class TableDefinitions:
    """Creates tables, for one session."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self._database = definitions.database
        self._variables = definitions.variables

    def create_source(self, statement: ast.CreateSource, text: str) -> str | None:
        """Creates a source; a notice when it was there already."""
        if CONNECTOR not in dict(statement.rows.options):
            raise InvalidDefinition(
                f'source "{statement.rows.name}" has no connector', hint="Write WITH (connector = 'datagen')."
            )
        return self.create_table(statement.rows, text, ObjectKind.SOURCE)

    def create_table(self, statement: ast.CreateTable, text: str, kind: ObjectKind = ObjectKind.TABLE) -> str | None:
        """Creates a table, or what keeps the rows of a source; a notice when it was there already."""
        name, schema = self._definitions.place(statement.name, temporary=statement.temporary)
        if statement.if_not_exists and self._definitions.exists(schema, name):
            return f'relation "{name}" already exists, skipping'
        plain = spelled_out(statement, self._definitions.catalog, self._variables.search_path)
        self.create_new(plain, text, kind=kind, spelled=plain is not statement)
        if statement.likes:
            return left_out(statement, self._definitions.catalog, self._variables.search_path)
        kept = RETENTION in dict(statement.options)
        return f'option "{RETENTION}" has no effect: the rows of "{name}" are kept' if kept else None

    def create_new(
        self,
        statement: ast.CreateTable,
        text: str,
        status: ObjectStatus = ObjectStatus.CREATED,
        kind: ObjectKind = ObjectKind.TABLE,
        *,
        spelled: bool = False,
    ) -> CatalogObject:
        """Creates a table whose name must be free. `spelled`: the text says less than the statement."""
        name, schema = self._definitions.place(statement.name, temporary=statement.temporary)
        columns, relation = _table_shape(statement)
        self._check_table_expressions(statement, columns)
        check_connector(statement, columns)
        self._check_retention(statement)
        properties: dict[str, Any] = {"options": dict(statement.options)}
        if statement.encoding is not None:
            properties |= {"format": statement.encoding.format, "encode": statement.encoding.encode}
        if statement.on_conflict is not None:
            properties["on_conflict"] = Conflict(statement.on_conflict.value).value
        elif statement.append_only and statement.primary_key:
            properties["on_conflict"] = Conflict.IGNORE.value  # a row that is there stays
        properties["primary_key"] = list(statement.primary_key)
        if statement.version_columns:
            properties["version_columns"] = list(statement.version_columns)
        properties |= given(kind, self._variables.get)
        properties |= watermarks.properties_of(statement.watermarks)
        inner: list[CatalogObject] = []
        if statement.watermarks:
            (properties[watermarks.RELATION],) = self._database.store.allocate_ids(1)
        table = self._definitions.new_object(kind, schema, name, text, columns, relation, properties)
        table = replace(table, status=status, definition=create_table_text(table) if spelled else text)
        if statement.watermarks:
            inner.append(watermarks.kept_in(table, properties[watermarks.RELATION]))
        self._definitions.run(self._adding_table(table, inner))
        return table

    def _check_retention(self, statement: ast.CreateTable) -> None:
        """Rows that may change cannot be forgotten by their age alone."""
        allowed = self._variables.is_on("unsafe_enable_storage_retention_for_non_append_only_tables")
        if RETENTION in dict(statement.options) and not statement.append_only and not allowed:
            raise InvalidDefinition(
                f'option "{RETENTION}" needs an append-only table', hint="Add APPEND ONLY, or leave the option out."
            )

    def explain(self, statement: ast.CreateTable) -> Node:
        """What a table of any name would store."""
        statement = spelled_out(statement, self._definitions.catalog, self._variables.search_path)
        columns, relation = _table_shape(statement)
        self._check_table_expressions(statement, columns)
        details = (f"columns: {', '.join(column.name for column in columns)}",)
        return Node(f"Materialize {statement.name}", "stored", relation.key, details)

    def create_table_as(
        self, statement: ast.CreateTableAs, columns: tuple[OutputColumn, ...]
    ) -> ast.CreateTable | None:
        """The CREATE TABLE that CREATE TABLE AS begins with; None when the table exists and may."""
        name, schema = self._definitions.place(statement.name, temporary=statement.temporary)
        if statement.if_not_exists and self._definitions.exists(schema, name):
            return None
        if CONNECTOR in dict(statement.options):
            raise InvalidDefinition(f'table "{name}" is filled by a query or by a connector, not by both')
        names = (*statement.columns, *(column.name for column in columns[len(statement.columns) :]))
        if len(names) != len(columns):
            raise SyntaxError_(f"{len(names)} column names were given for {len(columns)} columns")
        for index, each in enumerate(names):
            if each in names[:index]:
                raise DuplicateColumn(f'column "{each}" specified more than once', hint="Give one of them an alias.")
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
            temporary=statement.temporary,
        )

    def _adding_table(self, table: CatalogObject, inner: list[CatalogObject]) -> CatalogCommand:
        database = self._database

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            changed = catalog.with_objects(table, *inner)
            for each in (table, *inner):
                assert each.relation is not None
                database.runtime.versions.add_relation(RelationId(each.id), each.relation)
            return changed, graph.with_job(database.table_job(table)), Checkpoint(), None, None

        return self._definitions.command(work)

    def _check_table_expressions(self, statement: ast.CreateTable, columns: tuple[Column, ...]) -> None:
        """Defaults and generated columns must make sense before the table exists."""
        settings = Settings(timezone="UTC", now_ms=0, strict=True)
        plain = tuple(column for column in columns if column.generated is None)
        for column, made in zip(statement.columns, columns, strict=True):
            if column.default is not None:
                check_default(column.default.tree, made, settings)
            if column.generated is not None:
                bound = bind_expression(column.generated.tree, plain, replace(settings, now_ms=None))
                if bound.reads_clock:
                    raise InvalidDefinition(
                        f'generated column "{column.name}" cannot read the clock',
                        detail=f"Failed to bind expression: {column.generated.text}. "
                        "The generation expression is not immutable.",
                        hint="proctime() is the moment at which a row is written, and a DEFAULT may be now().",
                    )
                if column.name in statement.primary_key and (bound.volatile or bound.uses_now):
                    raise InvalidDefinition(
                        f'generated column "{column.name}" cannot be part of the primary key',
                        detail="Generated columns with impure expressions should not be part of the primary key. "
                        f'Here column "{column.name}" is defined as part of the primary key.',
                        hint="Store the moment in a column with a DEFAULT.",
                    )
        watermarks.check_watermarks(statement.watermarks, columns, append_only=statement.append_only)


def _table_shape(statement: ast.CreateTable) -> tuple[tuple[Column, ...], RelationSchema]:
    columns = []
    for column in statement.columns:
        check_column_name(column.name)
        columns.append(
            Column(
                column.name,
                column.type,
                nullable=column.nullable,
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
    keeps_rows = statement.on_conflict in (None, ast.ConflictRule.IGNORE)
    if statement.append_only and statement.primary_key and not keeps_rows:
        raise InvalidDefinition(
            "an append-only table cannot overwrite rows", hint="Leave out PRIMARY KEY, or add ON CONFLICT IGNORE."
        )
    visible = tuple(columns)
    if statement.primary_key:
        return visible, RelationSchema(visible, statement.primary_key, statement.append_only)
    row_id = Column(ROW_ID, BIGINT, hidden=True, nullable=False)
    return visible, RelationSchema((*visible, row_id), (ROW_ID,), statement.append_only)
