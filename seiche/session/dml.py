"""INSERT, UPDATE and DELETE.

An insert is evaluated before it enters an epoch: what is wrong with it fails it alone. Its rows wait on the driver
if they are few, and stay with the executors if they are many. UPDATE and DELETE are evaluated inside their epoch,
against the newest rows. All of them are acknowledged when their epoch is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    SerializationFailure,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
    nearest,
)
from seiche.model import OP, Column, JobId, RelationId, RelationSchema
from seiche.query import adopt, estimated_bytes, estimated_rows, open_scope, render, select, typed
from seiche.session.database import Database
from seiche.session.fitted import OneRelation, collected
from seiche.session.names import CatalogNames, refuse_of_others, refuse_unfinished
from seiche.session.transaction import Transaction, too_large
from seiche.session.upserts import meeting_of
from seiche.session.variables import Variables
from seiche.sql import statements as ast
from seiche.sql.bind import (
    Beside,
    BoundQuery,
    BoundRelation,
    Meeting,
    OutputColumn,
    Settings,
    bind_delete,
    bind_insert,
    bind_returning,
    bind_update,
    bind_upsert,
)
from seiche.sql.failures import translate_spark_error
from seiche.sql.literal_rows import literal_columns
from seiche.sql.parameters import Parameters
from seiche.sql.parse import parse_query
from seiche.sql.statements import quote_name
from seiche.storage.changes import empty, local_frame
from seiche.stream.table import (
    DeleteRows,
    InsertFrame,
    InsertRows,
    Payload,
    UpdateRows,
    UpsertRows,
    Written,
    check_not_null,
    inserted_schema,
)
from seiche.types import VARCHAR, Kind, SqlType


class Dml:
    """Statements that write rows, for one session."""

    def __init__(
        self,
        database: Database,
        variables: Variables,
        now_ms: int,
        wait: Callable[[Future[Any]], Any],
        check: Callable[[], None],
        parameters: Parameters | None = None,
        transaction: Transaction | None = None,
    ) -> None:
        self._database = database
        self._variables = variables
        self._names = CatalogNames(database.catalog.seen_from(variables.database), variables.search_path)
        timezone = variables.get("timezone")
        self._settings = Settings(timezone=timezone, now_ms=now_ms, strict=True, parameters=parameters)
        self._transaction = transaction
        self._now_ms = now_ms
        self._wait = wait
        self._check = check

    def table(self, name: ast.ObjectName) -> CatalogObject:
        path, catalog = self._variables.search_path, self._database.catalog.seen_from(self._variables.database)
        named = catalog.try_find(name.parts, search_path=path)
        if named is not None and named.kind in (ObjectKind.MATERIALIZED_VIEW, ObjectKind.INDEX):
            raise WrongObjectType(
                f"cannot change {named}",
                detail="It follows the tables that it reads.",
                hint="Change their rows, and its own will follow.",
            )
        try:
            found = catalog.find(name.parts, search_path=path, kinds=(ObjectKind.TABLE,))
        except UndefinedObject as error:
            error.position = name.place
            raise
        refuse_of_others(found, path)
        refuse_unfinished(found)
        return found

    def insert(self, statement: ast.Insert) -> tuple[int, tuple[BoundQuery, DataFrame] | None]:
        return self.insert_into(self.table(statement.table), statement)

    def insert_into(
        self, table: CatalogObject, statement: ast.Insert
    ) -> tuple[int, tuple[BoundQuery, DataFrame] | None]:
        """As `insert`, into a table that is at hand, whatever the statement calls it."""
        target = self._target(table)
        returning = self._returning(statement.returning, target, statement.alias)
        columns = statement.columns or None
        query = statement.source.tree if statement.source is not None else None
        meeting = meeting_of(table, statement.on_conflict)
        if meeting is not None:
            bound = bind_insert(target, columns, query, self._names, self._settings)
            met = self._bound_meeting(target, statement.alias, meeting)
            return self._upsert(table, bound, met, returning)
        texts = self._as_text(table, statement)
        if texts is not None:
            return self.copy(table, texts.column_names, _plainly_named(texts, self._database.runtime.spark)), None
        bound = bind_insert(target, columns, query, self._names, self._settings)
        return self.insert_frame(table, self._evaluated(bound), returning)

    def _bound_meeting(self, target: BoundRelation, alias: str | None, meeting: Meeting) -> BoundQuery | None:
        if not meeting.assignments:
            return None
        return bind_upsert(target, alias, meeting, self._names, self._settings)

    def _upsert(
        self, table: CatalogObject, bound: BoundQuery, met: BoundQuery | None, returning: BoundQuery | None
    ) -> tuple[int, tuple[BoundQuery, DataFrame] | None]:
        """Inserts rows that may meet others. Like an UPDATE it has the table for itself, also while it reads."""
        if self._transaction is not None:
            rows = self._collected(table, self._evaluated(bound))
            if rows is None:
                raise too_large()
            check_not_null(rows, _shape(table), table.name)
            written = self._transaction.upsert(table, rows, met, self._now_ms)
            return written.rows, self._returned(returning, table, written, sign=1)
        with self._database.gate(RelationId(table.id)).alone(self._check):
            frame = self._evaluated(bound)
            few = None if self._is_large(frame, may_stay=True) else self._collected(table, frame)
            if few is not None:
                check_not_null(few, _shape(table), table.name)
            written = self._submit(table, UpsertRows(frame if few is None else few, met, self._now_ms))
        return written.rows, self._returned(returning, table, written, sign=1)

    def _as_text(self, table: CatalogObject, statement: ast.Insert) -> pa.Table | None:
        """Many rows of constants as columns of text, named as the table's; None for any other statement."""
        visible = table.columns
        plain = {column.name: column.type for column in visible if column.generated is None}
        names = statement.columns or tuple(column.name for column in visible)
        if statement.source is None or statement.returning or any(name not in plain for name in names):
            return None
        texts = literal_columns(statement.source, [plain[name] for name in names])
        return pa.table([pa.array(each, pa.string()) for each in texts], names=list(names)) if texts else None

    def insert_frame(
        self, table: CatalogObject, frame: DataFrame, returning: BoundQuery | None = None
    ) -> tuple[int, tuple[BoundQuery, DataFrame] | None]:
        """Inserts a frame that has exactly the table's visible columns."""
        shape = _shape(table)
        optional = returning is None and self._transaction is None
        rows = None if self._is_large(frame, may_stay=optional) else self._collected(table, frame)
        if rows is None:
            if returning is not None:
                raise FeatureNotSupported("RETURNING of an insert this large is not supported yet")
            if self._transaction is not None:
                raise too_large()
            with self._database.gate(RelationId(table.id)).alone(self._check):
                return self._submit(table, InsertFrame(frame)).rows, None
        check_not_null(rows, shape, table.name)
        shown = None
        if returning is not None:
            plain = rows.select([column.name for column in shape.visible])
            shown = (returning, local_frame(self._database.runtime.spark, plain))
        if rows.num_rows == 0:
            return 0, shown
        if self._transaction is not None:
            return self._transaction.insert(table, rows), shown
        with self._database.gate(RelationId(table.id)).shared(self._check):
            return self._submit(table, InsertRows(rows)).rows, shown

    def copied(
        self, table: CatalogObject, columns: Sequence[str], names: Sequence[str], where: ast.SqlExpression | None
    ) -> BoundQuery:
        """The rows of a COPY as those of the table, made of texts: the one for each of `columns` has its name in
        `names`."""
        types = {column.name: column.type for column in table.columns}
        source = BoundRelation(None, "given", tuple(Column(name, VARCHAR) for name in names), None, "given")
        cells = [f"{name}::{_spelled(types[column])}" for name, column in zip(names, columns, strict=True)]
        query = parse_query(f"SELECT {', '.join(cells)} FROM given").tree
        condition = where.tree if where is not None else None
        return bind_insert(self._target(table), columns, query, OneRelation(source), self._settings, condition)

    def copy(
        self,
        table: CatalogObject,
        columns: Sequence[str],
        rows: DataFrame,
        where: ast.SqlExpression | None = None,
    ) -> int:
        """Inserts rows of text, a plainly named column for each of `columns`, read as the columns' types."""
        bound = self.copied(table, columns, rows.columns, where)
        with open_scope(self._database.runtime.spark) as scope:
            view = scope.view(rows)
            frame = typed(scope.sql(render(bound.ast, lambda _: view)), bound)
        return self.insert_frame(table, _renamed(frame, bound))[0]

    def describe(self, statement: ast.Insert | ast.Update | ast.Delete) -> tuple[OutputColumn, ...] | None:
        """Binds a statement without running it; the columns of its RETURNING, None without one."""
        table = self.table(statement.table)
        target = self._target(table)
        match statement:
            case ast.Insert():
                query = statement.source.tree if statement.source is not None else None
                columns, meeting = statement.columns or None, meeting_of(table, statement.on_conflict)
                bind_insert(target, columns, query, self._names, self._settings)
                if meeting is not None:
                    self._bound_meeting(target, statement.alias, meeting)
                returning = self._returning(statement.returning, target, statement.alias)
            case ast.Update():
                _, returning = self._bound_update(statement, table)
            case ast.Delete():
                _, returning = self._bound_delete(statement, table)
        return None if returning is None else returning.columns

    def insert_table(self, table: CatalogObject, rows: pa.Table) -> int:
        """Inserts Arrow rows whose columns are among the table's; missing ones get their defaults."""
        shape = _shape(table)
        visible = [column.name for column in shape.visible]
        for name in rows.column_names:
            if name not in visible:
                raise UndefinedColumn(
                    f'column "{name}" of relation "{table.name}" does not exist', hint=nearest(name, visible)
                )
        plain = set(visible) == set(rows.column_names) and all(
            column.default is None and column.generated is None and not column.type.has_length and column.shown is None
            for column in shape.visible
        )
        is_small = rows.nbytes <= self._database.runtime.limits.inline_bytes_max
        if plain and is_small and shape.key == ("_row_id",):
            shaped = _cast(rows.select(visible), shape)
            check_not_null(shaped, shape, table.name)
            if self._transaction is not None:
                return self._transaction.insert(table, shaped)
            with self._database.gate(RelationId(table.id)).shared(self._check):
                return self._submit(table, InsertRows(shaped)).rows
        frame = local_frame(self._database.runtime.spark, rows)
        return self.insert_given(table, frame)

    def insert_given(self, table: CatalogObject, frame: DataFrame) -> int:
        """Inserts a Spark frame by column name, through the same casts and defaults as INSERT … SELECT."""
        target = self._target(table)
        shape = _shape(table)
        given = [column.as_shown for column in shape.visible if column.name in frame.columns]
        unknown = [name for name in frame.columns if name not in {column.name for column in given}]
        if unknown:
            raise UndefinedColumn(
                f'column "{unknown[0]}" of relation "{table.name}" does not exist',
                hint=nearest(unknown[0], [column.name for column in shape.visible]),
            )
        casts = [f"cast(`{column.name}` as {column.type.spark}) AS `{column.name}`" for column in given]
        source = BoundRelation(None, "given", tuple(given), None, "given")
        names = OneRelation(source)
        chosen = tuple(column.name for column in given)
        bound = bind_insert(target, chosen, _star(), names, self._settings)
        with open_scope(self._database.runtime.spark) as scope:
            view = scope.view(adopt(frame, self._database.runtime.spark).selectExpr(*casts))
            evaluated = typed(scope.sql(render(bound.ast, lambda _: view, self._now_ms)), bound)
        return self.insert_frame(table, _renamed(evaluated, bound))[0]

    def update(self, statement: ast.Update) -> tuple[int, tuple[BoundQuery, DataFrame] | None]:
        table = self.table(statement.table)
        self._refuse_append_only(table, "UPDATE")
        bound, returning = self._bound_update(statement, table)
        if self._transaction is not None:
            written = self._transaction.update(table, bound, self._now_ms)
            return written.rows, self._returned(returning, table, written, sign=1)
        with self._database.gate(RelationId(table.id)).alone(self._check):
            written = self._submit(table, UpdateRows(bound, self._now_ms))
        return written.rows, self._returned(returning, table, written, sign=1)

    def delete(self, statement: ast.Delete) -> tuple[int, tuple[BoundQuery, DataFrame] | None]:
        table = self.table(statement.table)
        self._refuse_append_only(table, "DELETE")
        bound, returning = self._bound_delete(statement, table)
        if self._transaction is not None:
            written = self._transaction.delete(table, bound, self._now_ms)
            return written.rows, self._returned(returning, table, written, sign=-1)
        with self._database.gate(RelationId(table.id)).alone(self._check):
            written = self._submit(table, DeleteRows(bound, self._now_ms))
        return written.rows, self._returned(returning, table, written, sign=-1)

    # ------------------------------------------------------------------------------------------------

    def _target(self, table: CatalogObject) -> BoundRelation:
        return BoundRelation(table.id, table.name, _shape(table).columns, None, f"r{table.id}", schema=table.schema)

    def _bound_update(self, statement: ast.Update, table: CatalogObject) -> tuple[BoundQuery, BoundQuery | None]:
        """The rows to change, and what RETURNING makes of them."""
        target = self._target(table)
        returning = self._returning(statement.returning, target, statement.alias, statement.others)
        assignments = tuple((each.column, each.value.tree) for each in statement.assignments)
        where = statement.where.tree if statement.where is not None else None
        beside = _beside(table, statement)
        return bind_update(target, statement.alias, assignments, where, self._names, self._settings, beside), returning

    def _bound_delete(self, statement: ast.Delete, table: CatalogObject) -> tuple[BoundQuery, BoundQuery | None]:
        target = self._target(table)
        returning = self._returning(statement.returning, target, statement.alias, statement.others)
        where = statement.where.tree if statement.where is not None else None
        beside = _beside(table, statement)
        return bind_delete(target, statement.alias, where, self._names, self._settings, beside), returning

    def _refuse_append_only(self, table: CatalogObject, verb: str) -> None:
        if _shape(table).append_only:
            raise FeatureNotSupported(
                f'table "{table.name}" is append-only: {verb} is not allowed', hint="Rows of such a table never leave."
            )

    def _returning(
        self,
        expressions: Sequence[exp.Expr],
        target: BoundRelation,
        alias: str | None,
        others: ast.SqlQuery | None = None,
    ) -> BoundQuery | None:
        if others is not None and any(isinstance(each, exp.Star) for each in expressions):
            raise FeatureNotSupported(
                "RETURNING has only the columns of the table that is written",
                hint=f"Write {quote_name(alias or target.name)}.* instead of the star.",
            )
        return bind_returning(expressions, target, alias, self._names, self._settings) if expressions else None

    def _returned(
        self, returning: BoundQuery | None, table: CatalogObject, written: Written, *, sign: int
    ) -> tuple[BoundQuery, DataFrame] | None:
        if returning is None:
            return None
        reader = self._database.runtime.reader
        if written.changes is None:
            shape = _shape(table)
            return returning, reader.local(empty(shape), shape)
        return returning, reader.changes(written.changes).filter(f"`{OP}` = {sign}")

    def _evaluated(self, bound: BoundQuery) -> DataFrame:
        if self._transaction is not None:
            return _renamed(self._transaction.evaluate(bound), bound)
        runtime = self._database.runtime
        frame = select(bound, runtime.versions, runtime.reader, runtime.spark, runtime.versions.committed_epoch)
        return _renamed(frame, bound)

    def _is_large(self, frame: DataFrame, *, may_stay: bool) -> bool:
        """Whether rows are expected to be more than the driver may hold. Where they `may_stay` with the executors
        whatever their number is, a coarse estimate will do: rows that turn out to be too many are computed twice."""
        limits = self._database.runtime.limits
        rows = estimated_rows(frame) if may_stay else None
        if rows is not None and rows > limits.inline_rows_max:
            return True
        return estimated_bytes(frame) > limits.inline_bytes_max // 4

    def _collected(self, table: CatalogObject, frame: DataFrame) -> pa.Table | None:
        """The rows on the driver, with `_vnode` where the table's key is its own columns."""
        try:
            return collected(self._database.runtime, _shape(table), frame)
        except Exception as error:  # a Spark job's failure arrives as one of many classes
            raise translate_spark_error(error) from error

    def _submit(self, table: CatalogObject, payload: Payload) -> Written:
        current = self._database.catalog.by_id.get(table.id)
        if current is not None and current.relation != table.relation:  # while this waited for the table
            raise SerializationFailure(f'table "{table.name}" was altered meanwhile', hint="Run the statement again.")
        written = self._wait(self._database.coordinator.submit(JobId(table.id), payload))
        assert isinstance(written, Written)
        return written


def _plainly_named(table: pa.Table, spark: SparkSession) -> DataFrame:
    names = [f"c{number}" for number in range(table.num_columns)]
    return local_frame(spark, table.rename_columns(names), ", ".join(f"{name} string" for name in names))


def _spelled(type_: SqlType) -> str:
    """The type's name as one word, which goes before the brackets of an array too."""
    match type_.kind:
        case Kind.ARRAY:
            assert type_.element is not None
            return f"{_spelled(type_.element)}[]"
        case Kind.STRUCT:
            return "struct<" + ", ".join(f"{quote_name(name)} {_spelled(each)}" for name, each in type_.fields) + ">"
        case Kind.MAP:
            return f"map({', '.join(_spelled(each) for _, each in type_.fields)})"
        case kind:
            return _WORDS.get(kind, str(type_))


_WORDS = {
    Kind.VARCHAR: "varchar",
    Kind.DOUBLE: "float8",
    Kind.TIME: "time",
    Kind.TIMESTAMP: "timestamp",
    Kind.TIMESTAMPTZ: "timestamptz",
}


def _star() -> Any:
    return parse_query("SELECT * FROM given").tree


def _beside(table: CatalogObject, statement: ast.Update | ast.Delete) -> Beside:
    others = statement.others.tree if statement.others is not None else None
    assert others is None or isinstance(others, exp.Select)
    return Beside(others, _shape(table).key, statement.common.tree if statement.common is not None else None)


def _shape(table: CatalogObject) -> RelationSchema:
    assert table.relation is not None
    return table.relation


def _renamed(frame: DataFrame, bound: BoundQuery) -> DataFrame:
    return frame.toDF(*(column.name for column in bound.columns))


def _cast(rows: pa.Table, shape: RelationSchema) -> pa.Table:
    try:
        return rows.cast(inserted_schema(shape))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DatatypeMismatch("rows do not fit the table's types", detail=str(error)) from error
