"""ALTER TABLE ... ADD, DROP, RENAME and ALTER COLUMN, and ALTER WATERMARK.

No row is written: files keep what they have, and storage reads them as the table is now (`storage/evolution.py`).
Views go on seeing the columns that they saw. The table is held meanwhile, so no statement meets both shapes.

    statement             the table               its files            its readers
    ADD COLUMN c          c behind the others     lack c: a constant   do not see c
    DROP COLUMN c         without c               may have c: unread   must not mention c
    RENAME COLUMN c TO d  d                       have d as c          there must be none
    ALTER COLUMN c TYPE   c with other fields     lack some: NULL      see c as they saw it (`session/retype.py`)

ALTER WATERMARK lets another expression raise the watermark from here on. What it was it stays at least.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.objects import FOLLOWING_KINDS, INTO, CatalogObject, ObjectKind, ObjectStatus
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Graph
from seiche.errors import (
    DependentObjects,
    DuplicateColumn,
    FeatureNotSupported,
    InvariantError,
    NotNullViolation,
    ObjectNotReady,
    SeicheError,
    UndefinedColumn,
    WrongObjectType,
    nearest,
)
from seiche.model import Column, RelationId, RelationSchema
from seiche.query import open_scope
from seiche.session.database import schedule_of
from seiche.session.definitions import Definitions, check_column_name
from seiche.session.names import CatalogNames
from seiche.session.rename import same_query
from seiche.session.retype import retyped
from seiche.session.shapes import remembering
from seiche.session.table_text import create_table_text
from seiche.session.transaction import Transaction
from seiche.session.watermarks import WATERMARKS, watermark_binds, with_watermark
from seiche.sql import statements as ast
from seiche.sql.bind import BoundRelation, Settings, bind_expression, bind_insert
from seiche.types import Kind, SqlType

_FILE_NAMES = "file_names"  # the property of a table: every name that a column ever had in its files
_NO_CONSTANT = (Kind.ARRAY, Kind.STRUCT, Kind.MAP, Kind.INTERVAL, Kind.BYTEA)


Action = ast.AddColumn | ast.DropColumn | ast.RenameColumn | ast.RetypeColumn | ast.Watermark


class ColumnChanges:
    """These statements for one session, inside of its transaction block if there is one. `check` raises when the
    statement is to stop."""

    def __init__(self, definitions: Definitions, check: Callable[[], None], block: Transaction | None = None) -> None:
        self._definitions = definitions
        self._database = definitions.database
        self._check = check
        self._block = block

    def run(self, name: ast.ObjectName, action: Action) -> str | None:
        """Changes the table; a notice when there was nothing to do."""
        table_id = self._find(name).id
        if self._block is not None:
            self._block.refuse_if_written(RelationId(table_id), "ALTER TABLE of a column")
        with self._database.gate(RelationId(table_id)).alone(self._check):
            table = self._definitions.catalog.get(table_id)
            notice = _needless(table, action)
            if notice is None:
                self._apply(table, self._changed(table, action))
                if self._block is not None:
                    self._block.read_anew(RelationId(table_id))
            return notice

    def _find(self, name: ast.ObjectName) -> CatalogObject:
        path = self._definitions.variables.search_path
        found = self._definitions.catalog.find(name.parts, search_path=path, action="ALTER")
        if found.kind is not ObjectKind.TABLE:
            raise WrongObjectType(f'"{found.name}" is not a table or cannot be altered')
        return found

    def _changed(self, table: CatalogObject, action: Action) -> tuple[CatalogObject, ...]:
        match action:
            case ast.AddColumn(column):
                missing = self._constant(table, column)
                readers = [remembering(each, table) for each in self._readers(table)]
                return (with_column(table, column, missing), *readers)
            case ast.DropColumn(name):
                self._refuse_if_filled(table, name)
                return (without_column(table, name),)
            case ast.RenameColumn(name, new_name):
                renamed = with_column_named(table, name, new_name)
                readers = self._readers(table)
                if readers:
                    raise DependentObjects(
                        f'cannot rename column "{name}" of {table} because other objects read the table',
                        detail=f"{readers[0]} reads it.",
                        hint="Drop them and create them again afterwards.",
                    )
                return (renamed,)
            case ast.RetypeColumn(name, type_):
                self._refuse_if_filled(table, name)
                readers = [remembering(each, table) for each in self._readers(table)]
                return (with_column_typed(table, name, type_), *readers)
            case ast.Watermark():
                altered = with_watermark(table, action)
                return (replace(altered, definition=create_table_text(altered)),)

    def _refuse_if_filled(self, table: CatalogObject, column: str) -> None:
        for sink in self._definitions.catalog.objects(ObjectKind.SINK):
            if sink.properties.get(INTO) == table.id:
                raise DependentObjects(
                    f'cannot drop or alter column "{column}" of {table} because {sink} fills the table',
                    detail="Its rows would not fit: dropping columns in target table of sinks is not supported.",
                    hint="Drop the sink, and create it again afterwards.",
                )

    def _readers(self, table: CatalogObject) -> list[CatalogObject]:
        """What reads the table; nothing that is still being created may."""
        found = [each for each in self._definitions.catalog.objects() if table.id in each.dependencies]
        for each in found:
            if each.status is ObjectStatus.CREATING:
                raise ObjectNotReady(
                    f"{table} cannot be altered while {each} is being created", hint="Wait for it with WAIT."
                )
        return found

    def _constant(self, table: CatalogObject, column: ast.ColumnDef) -> str | None:
        """What the rows of today hold in a new column, as text that casts to its type."""
        value = None
        if column.default is not None:
            value = self._evaluated(table, column)
        if value is None and not column.nullable:
            raise NotNullViolation(
                "alter table add NOT NULL columns must have default value", hint=f'Give "{column.name}" a DEFAULT.'
            )
        return value

    def _evaluated(self, table: CatalogObject, column: ast.ColumnDef) -> str | None:
        assert column.default is not None
        target = BoundRelation(None, table.name, (Column(column.name, column.type, default=column.default.text),))
        names = CatalogNames(self._definitions.catalog, self._definitions.variables.search_path)
        timezone = self._definitions.variables.get("timezone")
        settings = Settings(timezone=timezone, now_ms=self._database.clock.now_ms(), strict=True)
        bound = bind_insert(target, None, None, names, settings)
        if bound.volatile:
            raise FeatureNotSupported(
                f"a column with DEFAULT {bound.volatile[0]}() cannot be added",
                detail="Each row of today would have a value of its own.",
                hint="Add the column without a default, and UPDATE the table.",
            )
        with open_scope(self._database.runtime.spark) as scope:
            text = scope.sql(f"SELECT cast(`{column.name}` as string) AS v FROM ({bound.sql})").first()["v"]
        if text is None:
            return None
        if column.type.kind in _NO_CONSTANT:
            raise FeatureNotSupported(
                f"a column of type {column.type} with a default cannot be added",
                hint="Add the column without a default, and UPDATE the table.",
            )
        return f"{text}+00:00" if column.type.kind is Kind.TIMESTAMPTZ else str(text)

    def _apply(self, table: CatalogObject, changed: tuple[CatalogObject, ...]) -> None:
        database = self._database
        altered = changed[0]
        assert altered.relation is not None
        shape = altered.relation
        self._check_readers(table, self._definitions.catalog.with_objects(*changed))

        def work(catalog: Catalog, graph: Graph, barrier: Barrier) -> Any:
            new = catalog.with_objects(*changed)

            def publish() -> None:
                database.runtime.versions.set_schema(RelationId(table.id), shape)
                database.runtime.reader.forget(RelationId(table.id))

            return new, database.main_graph(new), Checkpoint(), None, publish

        self._definitions.run(self._definitions.command(work))

    def _check_readers(self, table: CatalogObject, new: Catalog) -> None:
        """Whatever reads the table must go on as it is; what cannot is told before any epoch."""
        for each in self._readers(table):
            try:
                if each.kind in (ObjectKind.VIEW, ObjectKind.MATERIALIZED_VIEW, ObjectKind.SINK):
                    follows = _is_retyped(table, new) or same_query(self._definitions.catalog, new, each.id)
                else:
                    follows = each.kind is ObjectKind.INDEX or _grows(table, new)
                if follows and each.kind in FOLLOWING_KINDS:
                    self._database.fragments_of(new.get(each.id), new)
            except (InvariantError, UndefinedColumn):
                follows = False
            if follows and not (_grows(table, new) or _is_retyped(table, new)) and schedule_of(each) is not None:
                follows = False
            if not follows:
                raise DependentObjects(
                    f"{table} cannot be altered because a column of it is being referenced",
                    detail=f"{each} references it.",
                    hint=f"Drop {each} and create it again afterwards.",
                )


def _grows(table: CatalogObject, new: Catalog) -> bool:
    return len(new.get(table.id).columns) > len(table.columns)


def _is_retyped(table: CatalogObject, new: Catalog) -> bool:
    return any(
        column.name == other.name and column.type != other.type
        for column, other in zip(table.columns, new.get(table.id).columns, strict=False)
    )


def _needless(table: CatalogObject, action: Action) -> str | None:
    names = [column.name for column in table.columns]
    match action:
        case ast.AddColumn(column, if_not_exists=True) if column.name in names:
            return f'column "{column.name}" of relation "{table.name}" already exists, skipping'
        case ast.DropColumn(name, if_exists=True) if name not in names:
            return f'column "{name}" of relation "{table.name}" does not exist, skipping'
        case ast.DropColumn(cascade=True):
            raise FeatureNotSupported(
                "DROP COLUMN ... CASCADE is not yet implemented", hint="Drop what reads the column first."
            )
    return None


def with_column(table: CatalogObject, definition: ast.ColumnDef, missing: str | None) -> CatalogObject:
    """The table with one more column, behind those that it has."""
    relation = _relation(table)
    name = definition.name
    _refuse_taken(table, name)
    if definition.generated is not None:
        raise FeatureNotSupported(
            "a generated column cannot be added to a table",
            detail="The rows of today would have to be computed.",
            hint="Create a view that computes it.",
        )
    used = _file_names(table)
    stored, count = name, 1
    while stored.lower() in used:
        count += 1
        stored = f"{name}_{count}"
    column = Column(
        name,
        definition.type,
        nullable=definition.nullable,
        default=definition.default.text if definition.default is not None else None,
        stored=stored if stored != name else None,
        missing=missing,
    )
    hidden = tuple(each for each in relation.columns if each.hidden)
    return _rebuilt(table, replace(relation, columns=(*relation.visible, column, *hidden)))


def without_column(table: CatalogObject, name: str) -> CatalogObject:
    """The table without one of its columns."""
    relation = _relation(table)
    _refuse_unknown(table, name)
    if name in relation.key:
        raise FeatureNotSupported(
            f'cannot drop column "{name}"',
            detail="ALTER TABLE cannot alter primary key columns.",
            hint="Create another table, and insert the rows of this one.",
        )
    if name in [watermark for watermark, _ in table.properties.get(WATERMARKS, ())]:
        raise DependentObjects(f'failed to drop column "{name}" because it has a watermark')
    rest = tuple(each for each in relation.columns if each.name != name)
    if not watermark_binds(table, rest):
        raise DependentObjects(f'failed to drop column "{name}" because the watermark is computed from it')
    for column in _broken(table, rest):
        raise DependentObjects(
            f'failed to drop column "{name}" because it\'s referenced by a generated column "{column.name}"',
            hint=f'Drop "{column.name}" first.',
        )
    return _rebuilt(table, replace(relation, columns=rest))


def with_column_named(table: CatalogObject, name: str, new_name: str) -> CatalogObject:
    """The table with a column under another name."""
    relation = _relation(table)
    _refuse_unknown(table, name)
    _refuse_taken(table, new_name)

    def renamed(column: Column) -> Column:
        if column.name != name:
            return column
        stored = column.file_name
        return replace(column, name=new_name, stored=stored if stored != new_name else None)

    columns = tuple(renamed(column) for column in relation.columns)
    texts = [text for _, text in table.properties.get(WATERMARKS, ())]
    if _broken(table, columns) or texts:
        raise FeatureNotSupported(
            f'column "{name}" cannot be renamed while expressions of the table may mention it',
            hint="Create another table, and insert the rows of this one.",
        )
    key = tuple(new_name if each == name else each for each in relation.key)
    primary = [new_name if each == name else each for each in table.properties.get("primary_key", ())]
    item = replace(table, properties={**table.properties, "primary_key": primary})
    return _rebuilt(item, replace(relation, columns=columns, key=key), used=_file_names(table))


def with_column_typed(table: CatalogObject, name: str, type_: SqlType) -> CatalogObject:
    """The table with a column whose structs have other fields."""
    relation = _relation(table)
    _refuse_unknown(table, name)
    column = relation.column(name)
    altered = retyped(column, type_)
    if name in relation.key:
        raise FeatureNotSupported(f'cannot alter column "{name}"', detail="It belongs to the primary key.")
    if column.generated is not None or column.default is not None:
        raise FeatureNotSupported(
            f'cannot alter column "{name}"',
            detail="Its values come from an expression, which is of the type that it has now.",
            hint="Create another table, and insert the rows of this one.",
        )
    columns = tuple(altered if each.name == name else each for each in relation.columns)
    for broken in _broken(table, columns):
        raise DependentObjects(
            f'failed to alter column "{name}" because it\'s referenced by a generated column "{broken.name}"',
            hint=f'Drop "{broken.name}" first.',
        )
    return _rebuilt(table, replace(relation, columns=columns))


def _rebuilt(table: CatalogObject, relation: RelationSchema, used: frozenset[str] | None = None) -> CatalogObject:
    """The table with another shape; no name of a column in files is ever used again."""
    names = (used or _file_names(table)) | {column.file_name.lower() for column in relation.columns}
    properties = {**table.properties, _FILE_NAMES: sorted(names)}
    shown = tuple(column.as_shown for column in relation.visible)
    item = replace(table, columns=shown, relation=relation, properties=properties)
    return replace(item, definition=create_table_text(item))


def _file_names(table: CatalogObject) -> frozenset[str]:
    known = frozenset(table.properties.get(_FILE_NAMES, ()))
    return known | {column.file_name.lower() for column in _relation(table).columns}


def _broken(table: CatalogObject, columns: tuple[Column, ...]) -> list[Column]:
    """Generated columns whose expressions make no sense over these columns."""
    plain = tuple(each.as_shown for each in columns if each.generated is None)
    settings = Settings(timezone="UTC", now_ms=0, strict=True)
    broken = []
    for column in columns:
        if column.generated is not None:
            try:
                bind_expression(column.generated, plain, settings)
            except SeicheError:  # whatever is wrong with it, it was right over the columns before
                broken.append(column)
    return broken


def _relation(table: CatalogObject) -> RelationSchema:
    if table.relation is None:
        raise InvariantError(f"{table} has no rows")
    return table.relation


def _refuse_taken(table: CatalogObject, name: str) -> None:
    check_column_name(name)
    if any(column.name == name for column in table.columns):
        raise DuplicateColumn(f'column "{name}" of relation "{table.name}" already exists')


def _refuse_unknown(table: CatalogObject, name: str) -> None:
    names = [column.name for column in table.columns]
    if name not in names:
        raise UndefinedColumn(f'column "{name}" of relation "{table.name}" does not exist', hint=nearest(name, names))
