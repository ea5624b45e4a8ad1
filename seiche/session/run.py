"""A session: runs statements one after another, with its own variables, and can be told to stop one."""

from __future__ import annotations

import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from concurrent.futures import wait as wait_for
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, assert_never

import pyarrow as pa
from pyspark.sql import DataFrame

from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.facts import SessionFact
from seiche.catalog.objects import SUPERUSER, CatalogObject, ObjectKind, ObjectStatus, Privilege, User
from seiche.catalog.system_views import SYSTEM_VIEWS
from seiche.epoch.barrier import Barrier
from seiche.epoch.checkpoint import Effect
from seiche.epoch.graph import Graph
from seiche.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidParameter,
    QueryCanceled,
    SeicheError,
    TransactionState,
    UndefinedColumn,
    UndefinedObject,
    nearest,
)
from seiche.model import EPOCH_SHIFT, Epoch, RelationId
from seiche.plan import explain
from seiche.query import open_scope, relation_of, render, typed
from seiche.session import show
from seiche.session.administration import Administration
from seiche.session.alter import Alter
from seiche.session.copying import CopiedRows
from seiche.session.cursors import Cursors
from seiche.session.database import CursorFact, Database
from seiche.session.ddl import Ddl
from seiche.session.describe import Description, describe
from seiche.session.dml import Dml
from seiche.session.guard import Guard
from seiche.session.names import SYSTEM_SOURCE, CatalogNames
from seiche.session.point_reads import Found
from seiche.session.prepared import PreparedStatement, PreparedStatements, values_of
from seiche.session.result import Piece, Result, RowReader, fetch_rows, rows_of
from seiche.session.streaming import pieces
from seiche.session.subscribed import timeout_ms
from seiche.session.subscriptions import Subscriptions
from seiche.session.system.ask import Asker
from seiche.session.system.evaluate import Answer, arrow_of
from seiche.session.system.observe import observe
from seiche.session.transaction import Transaction, without_local
from seiche.session.variables import Variables, find
from seiche.sql import statements as ast
from seiche.sql.bind import BoundQuery, OutputColumn, Settings, bind_query
from seiche.sql.failures import translate_spark_error
from seiche.sql.parameters import Parameters
from seiche.sql.parse import parse, parse_name
from seiche.sql.text import format_value
from seiche.stream.backfill.protocol import Backfill
from seiche.types import VARCHAR, SqlType

_sessions = itertools.count(1)
_POLL_SECONDS = 0.05
_CANCEL_AGAIN_SECONDS = 0.2
Administered = (
    ast.CreateUser
    | ast.AlterUser
    | ast.Grant
    | ast.Revoke
    | ast.AlterOwner
    | ast.CommentOn
    | ast.CreateDatabase
    | ast.Drop
)
NOTICE_SECONDS = 1.0
T = TypeVar("T")


class Session:
    """One user's conversation. Statements run on the caller's thread; `cancel` may come from another."""

    def __init__(self, database: Database, user: str = SUPERUSER) -> None:
        self._database = database
        self.user = database.catalog.user(user).name
        self.pid = next(_sessions)
        self.client: str | None = None  # where it comes from, for others to see
        self.variables = Variables()
        self.cursors = Cursors()
        self.prepared = PreparedStatements()
        self._name = f"session-{self.pid}"
        self._works = 0
        self._depth = 0
        self._started_ms = database.clock.now_ms()
        self._statement: tuple[str, int] = ("", self._started_ms)  # what runs or ran last, and since when
        self._asker = Asker(database, self.pid, self._started_ms)
        database.sessions[self.pid] = self
        self._cancelled = threading.Event()
        self._timed_out = threading.Event()
        self._running = threading.RLock()
        self._deadline: float | None = None
        self._notices: list[str] = []
        self.on_notice: Callable[[str], None] = lambda _: None  # what a client is told while a statement runs
        self._parameters: Parameters | None = None
        self._transaction: Transaction | None = None
        self._read_only = False

    def execute(self, text: str) -> list[Result]:
        """Runs all statements of a text; the first error ends it. Rows are fetched."""
        with self._working():
            results = self.run(text)
            for result in results:
                _ = result.rows
        return results

    def run(self, text: str) -> list[Result]:
        """As `execute`, with the rows of queries still to be fetched."""
        with self._working():
            try:
                statements = parse(text)
            except SeicheError:
                self.fail_transaction()
                raise
            return [self._one(parsed) for parsed in statements]

    def start(self, parsed: ast.ParsedStatement, types: Sequence[SqlType], values: Sequence[str | None]) -> Result:
        """Runs one statement with the values of its parameters, as text. Rows are still to be fetched."""
        with self._working():
            self._begin()
            self._parameters = Parameters(types, values)
            try:
                return self._one(parsed)
            finally:
                self._parameters = None

    def describe(self, parsed: ast.ParsedStatement, types: Sequence[SqlType | None]) -> Description:
        """The types of a statement's parameters, where given or else inferred, and its columns."""
        with self._working():
            self._begin()
            self._refuse_if_failed(parsed.statement)
            if isinstance(parsed.statement, ast.Execute):
                return Description((), self.prepared.find(parsed.statement.name).description.columns)
            if isinstance(parsed.statement, ast.Select):
                tree = parsed.statement.query.tree
                asked = self._translated(lambda: self._asker.describe(tree, self._me(), self.variables))
                if asked is not None:
                    columns, inferred = asked
                    return Description(_merged(types, inferred), columns)
            parameters = self._parameters = Parameters(types)
            try:
                return self._translated(
                    lambda: describe(
                        parsed.statement,
                        parameters,
                        bound=lambda query: self._bound(ast.Select(query)),
                        dml=self._dml(),
                        cursors=self.cursors,
                        run=lambda statement: self._dispatch(statement, parsed.text),
                    )
                )
            finally:
                self._parameters = None

    def take(self, reader: RowReader, limit: int | None, *, first: bool) -> Piece | None:
        """The next rows of a result of this session. With `first` the time that the statement may take begins."""
        with self._working():
            if first:
                self._begin()
            return self._translated(lambda: reader.take(limit))

    def begin_copy(self, statement: ast.CopyFrom) -> CopiedRows:
        """Where the rows of a COPY FROM are collected; `finish_copy` inserts them."""
        with self._working():
            self._begin()
            self._refuse_if_failed(statement)
            self._guard().check_write(statement.table, Privilege.INSERT)
            table = self._dml().table(statement.table)
            visible = {column.name: column for column in table.columns if column.generated is None}
            for name in statement.columns:
                if name not in visible:
                    raise UndefinedColumn(
                        f'column "{name}" of relation "{table.name}" does not exist', hint=nearest(name, visible)
                    )
            columns = [visible[name] for name in statement.columns] or list(visible.values())
            return CopiedRows(columns, self._scratch())

    def finish_copy(self, statement: ast.CopyFrom, rows: CopiedRows) -> Result:
        """Inserts all rows of a COPY at once."""
        with self._working():
            self._begin()
            dml, names = self._dml(), [column.name for column in rows.columns]
            frame = rows.frame(self._database.runtime.spark)
            count = self._in_transaction(lambda: dml.copy(dml.table(statement.table), names, frame))
            return Result(f"COPY {count}")

    @property
    def is_superuser(self) -> bool:
        return self._me().superuser

    @property
    def transaction_status(self) -> str:
        """I outside a transaction block, T inside one, E inside one that has failed; as PostgreSQL spells it."""
        if self._transaction is None:
            return "I"
        return "E" if self._transaction.failed else "T"

    def fail_transaction(self) -> None:
        """A statement of the transaction failed before it came to run."""
        if self._transaction is not None:
            self._transaction.failed = True

    def close(self) -> None:
        """Ends the conversation: an open transaction is rolled back, cursors are closed."""
        with self._running:
            self.cursors.close(None)
            if self._transaction is not None:
                self._transaction.close()
                self._transaction = None

    def cancel(self) -> None:
        """Stops the statement that runs now, if any. May be called from any thread, and returns at once."""
        if self._depth:
            self._cancelled.set()
            self._asker.stop()
            threading.Thread(target=self._cancel_jobs, args=(self._works,), name="cancel", daemon=True).start()

    def _cancel_jobs(self, work: int) -> None:
        """Again and again until the statement has ended: a job that is only being planned cannot be cancelled yet."""
        context = self._database.runtime.spark.sparkContext
        while self._depth and self._works == work:
            context.cancelJobGroup(f"{self._name}-{work}")
            time.sleep(_CANCEL_AGAIN_SECONDS)

    def _time_out(self) -> None:
        self._timed_out.set()
        self._asker.stop()
        self._cancel_jobs(self._works)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """Around everything that `cancel` stops, one after another; each has its own jobs, so that none is hit late."""
        with self._running:
            if not self._depth:
                self._cancelled.clear()
                self._works += 1
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1

    def fact(self) -> SessionFact:
        """The session as `pg_stat_activity` shows it."""
        query, since = self._statement
        name = self.variables.get("application_name")
        active = self._depth > 0
        return SessionFact(self.pid, self.user, name, self.client, self._started_ms, since, active, query)

    def insert(self, name: str, rows: Any) -> int:
        """Inserts a Spark frame, an Arrow table, or rows as tuples or dictionaries; returns how many."""
        with self._working():
            self._begin()
            dml = self._dml()
            self._guard().check_write(parse_name(name), Privilege.INSERT)
            table = dml.table(parse_name(name))
            if isinstance(rows, DataFrame):
                return self._translated(lambda: dml.insert_given(table, rows))
            if isinstance(rows, pa.RecordBatch):
                rows = pa.Table.from_batches([rows])
            if not isinstance(rows, pa.Table):
                rows = _as_arrow(rows, table)
            return self._translated(lambda: dml.insert_table(table, rows))

    def table(self, name: str) -> DataFrame:
        """A relation at the committed epoch as a Spark frame."""
        (result,) = self.run(f"TABLE {name}")
        return result.to_spark()

    def names(self) -> list[str]:
        """Names worth completing: relations and their columns."""
        items = [each for each in self._database.catalog.objects() if each.kind is not ObjectKind.INTERNAL]
        found = {str(each.qualified) for each in items}
        found.update(column.name for each in items for column in each.columns)
        return sorted(found)

    # ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._notices = []
        limit_ms = self.variables.integer("statement_timeout")
        self._deadline = time.monotonic() + limit_ms / 1000 if limit_ms else None
        self._timed_out.clear()
        context = self._database.runtime.spark.sparkContext
        context.setJobGroup(f"{self._name}-{self._works}", "a session's statement", True)
        context.setLocalProperty("spark.scheduler.pool", "queries")

    def _one(self, parsed: ast.ParsedStatement) -> Result:
        started = time.perf_counter()
        self._begin()
        self._statement = (shown_text(parsed), self._database.clock.now_ms())
        self._refuse_if_failed(parsed.statement)
        try:
            result = self._in_transaction(lambda: self._dispatch(parsed.statement, parsed.text))
        except SeicheError as error:
            if error.position is not None and parsed.start:
                error.position = min(error.position, parsed.start + len(parsed.text))
            raise
        return replace_result(result, tuple(self._notices), time.perf_counter() - started)

    def _in_transaction(self, work: Callable[[], T]) -> T:
        """An error inside a transaction block fails the block."""
        try:
            return self._translated(work)
        except SeicheError:
            self.fail_transaction()
            raise

    def _refuse_if_failed(self, statement: ast.Statement) -> None:
        ends = isinstance(statement, ast.Commit | ast.Rollback | ast.RollbackTo)
        if self.transaction_status == "E" and not ends:
            raise TransactionState(
                "current transaction is aborted, commands ignored until end of transaction block",
                sqlstate="25P02",
                hint="ROLLBACK ends it.",
            )

    def _translated(self, work: Callable[[], T]) -> T:
        """Runs the work, within its time; Spark's errors become ours."""
        timer: threading.Timer | None = None
        if self._deadline is not None:
            timer = threading.Timer(max(self._deadline - time.monotonic(), 0), self._time_out)
            timer.daemon = True
            timer.start()
        try:
            return work()
        except QueryCanceled:
            raise
        except Exception as error:  # the edge of a session
            if self._cancelled.is_set():
                raise QueryCanceled("canceling statement due to user request") from error
            if self._timed_out.is_set():
                raise QueryCanceled("canceling statement due to statement timeout") from error
            if isinstance(error, SeicheError):
                raise
            raise translate_spark_error(error) from error
        finally:
            if timer is not None:
                timer.cancel()

    def _dispatch(self, statement: ast.Statement, text: str) -> Result:
        self._guard().check(statement)
        match statement:
            case ast.Select():
                return self._select(statement)
            case ast.Insert():
                count, returned = self._dml().insert(statement)
                return self._written(f"INSERT 0 {count}", returned)
            case ast.Update():
                count, returned = self._dml().update(statement)
                return self._written(f"UPDATE {count}", returned)
            case ast.Delete():
                count, returned = self._dml().delete(statement)
                return self._written(f"DELETE {count}", returned)
            case ast.CreateTable():
                self._note(self._ddl().create_table(statement, text))
                return Result("CREATE_TABLE")
            case ast.CreateTableAs():
                return self._create_table_as(statement, text)
            case ast.CreateMaterializedView():
                return self._create_materialized_view(statement, text)
            case ast.CreateView():
                self._note(self._ddl().create_view(statement, text))
                return Result("CREATE_VIEW")
            case ast.CreateFunction():
                self._note(self._ddl().create_function(statement, text))
                return Result("CREATE_FUNCTION")
            case ast.CreateSchema():
                self._note(self._ddl().create_schema(statement))
                return Result("CREATE_SCHEMA")
            case (
                ast.CreateUser() | ast.AlterUser() | ast.Grant() | ast.Revoke() | ast.AlterOwner() | ast.CommentOn()
                | ast.CreateDatabase() | ast.Drop(kind=ast.ObjectKind.USER | ast.ObjectKind.DATABASE)
            ):  # fmt: skip
                return self._administer(statement)
            case ast.CreateIndex():
                raise FeatureNotSupported("CREATE INDEX is not supported yet")
            case ast.Drop():
                for notice in self._ddl().drop(statement):
                    self._note(notice)
                return Result("DROP_" + statement.kind.name)
            case ast.Rename():
                self._ddl().rename(statement)
                return Result("ALTER_" + statement.kind.name)
            case ast.AlterRelation():
                self._alter().relation(statement)
                return Result("ALTER_" + statement.kind.name)
            case ast.RefreshView():
                self._alter().refresh(statement)
                return Result("REFRESH_MATERIALIZED_VIEW")
            case ast.Flush():
                self._wait(self._database.coordinator.flush())
                return Result("FLUSH")
            case ast.Wait():
                self._wait_for_jobs(statement)
                return Result("WAIT")
            case ast.Recover() | ast.CancelJobs() | ast.Pause() | ast.Resume():
                return self._job_control(statement)
            case ast.Begin() | ast.Commit() | ast.Rollback():
                return self._block(statement)
            case ast.Savepoint() | ast.ReleaseSavepoint() | ast.RollbackTo():
                return self._savepoint(statement)
            case ast.SetTransaction():
                return self._set_transaction(statement)
            case ast.DeclareCursor(name, query, hold):
                self.cursors.declare(name, self._select(ast.Select(query)), hold=hold)
                return Result("DECLARE_CURSOR")
            case ast.DeclareSubscriptionCursor():
                self.cursors.refuse_taken(statement.name)
                cursor, later = self._subscriptions().declare(statement, self._batches)
                self.cursors.declare_subscribed(cursor)
                self._note(later)
                return Result("DECLARE_CURSOR")
            case ast.CreateSubscription():
                self._begin_definition()
                self._note(self._subscriptions().create(statement))
                return Result("CREATE_SUBSCRIPTION")
            case ast.FetchCursor(name, count):
                self._await_rows(statement)
                return self.cursors.fetch(name, count)
            case ast.CloseCursor(name):
                self.cursors.close(name)
                return Result("CLOSE_CURSOR")
            case ast.Prepare():
                return self._prepare(statement)
            case ast.Execute():
                return self._execute(statement)
            case ast.Deallocate(name):
                self.prepared.drop(name)
                return Result("DEALLOCATE")
            case ast.Discard(everything):
                if everything:
                    self.cursors.close(None)
                    self.prepared.drop(None)
                    self.variables = Variables()
                return Result("DISCARD")
            case ast.Unlisten():
                return Result("UNLISTEN")
            case ast.CopyTo(query):
                result = self._select(ast.Select(query))
                result.tag = "COPY"
                return result
            case ast.CopyFrom():
                raise FeatureNotSupported("COPY FROM STDIN needs a client that sends rows", hint="Use psql's \\copy.")
            case ast.AlterSystemSet():
                return self._alter_system(statement)
            case ast.SetVariable():
                return self._set(statement)
            case ast.ResetAll():
                self.variables = Variables()
                return Result("RESET")
            case ast.ShowVariable():
                value = self.variables.get(statement.name)
                return show.rows("SHOW_VARIABLE", [(statement.name, VARCHAR)], [(value,)])
            case ast.ShowAll():
                return show.show_all(self.variables)
            case ast.ShowParameters():
                return show.show_parameters(self._database, statement)
            case ast.ShowObjects():
                return show.show_objects(self._database, self.variables, statement)
            case ast.ShowColumns():
                return show.describe(self._database, self.variables, statement.name, statement.pattern or "%")
            case ast.ShowCreate():
                return show.show_create(self._database, self.variables, statement)
            case ast.Describe():
                return show.describe(self._database, self.variables, statement.name)
            case ast.Explain():
                return self._explain(statement)
            case _:
                assert_never(statement)

    # --- queries -------------------------------------------------------------------------------------

    def _select(self, statement: ast.Select) -> Result:
        values = self._parameters.values() if self._parameters is not None else None
        answered = self._asker.ask(statement.query.tree, self._me(), self.variables, values)
        if answered is not None:
            return self._answered(*answered)
        bound = self._bound(statement)
        held = self._hold()
        epoch = self._read_epoch(bound)
        try:
            found = self._database.points.find(bound, epoch) if self._transaction is None else None
            if found is not None and found.answer is not None:
                held.close()
                return self._answered(Answer(bound.columns, found.answer), {}, epoch)
            frame = self._planned(bound, epoch, found)
        except BaseException:
            held.close()
            raise
        result = Result(
            "SELECT",
            bound.columns,
            epoch=epoch,
            _pieces=lambda: self._pieces(frame),
            _frame=frame,
            _fetch=self._fetch,
            _hold=self._hold,
        )
        weakref.finalize(result, held.close)
        return result

    def _answered(self, answer: Answer, changes: Mapping[str, str], epoch: Epoch | None = None) -> Result:
        """The answer to a question about the system, or one that is on the driver already, as a result."""
        for name, value in changes.items():
            self.variables = self.variables.with_value(name, value)
        rows = rows_of(answer.table.to_pydict().values(), answer.table.num_rows)
        spark = self._database.runtime.spark
        return Result(
            f"SELECT {len(rows)}",
            answer.columns,
            epoch=epoch if epoch is not None else self._database.runtime.versions.committed_epoch,
            _rows=rows,
            _as_frame=lambda: spark.createDataFrame(answer.table),
        )

    def _me(self) -> User:
        return self._database.catalog.user(self.user)

    def _hold(self) -> ExitStack:
        """Keeps every file that is registered now, until it is closed."""
        held = ExitStack()
        held.enter_context(self._database.trash.reading())
        return held

    def _bound(self, statement: ast.Select) -> BoundQuery:
        names = CatalogNames(self._database.catalog, self.variables.search_path, progress=self._database.jobs.progress)
        timezone, now_ms = self.variables.get("timezone"), self._database.clock.now_ms()
        settings = Settings(timezone=timezone, now_ms=now_ms, strict=True, parameters=self._parameters)
        return bind_query(statement.query.tree, names, replace(settings, user=self.user, schema=self._schema()))

    def _schema(self) -> str | None:
        """Where something new would go: the first schema of the search path that exists."""
        catalog = self._database.catalog
        return next((name for name in self.variables.search_path if catalog.try_schema(name) is not None), None)

    def _read_epoch(self, bound: BoundQuery) -> Epoch:
        asked = self.variables.integer("query_epoch")
        if self._transaction is not None and not asked:
            return self._transaction.snapshot()
        committed = self._database.runtime.versions.committed_epoch
        if not asked:
            return committed
        for relation in bound.relations:
            created = Epoch(self._database.catalog.get(relation).created_ms << EPOCH_SHIFT)
            folded = self._database.runtime.versions.committed(RelationId(relation)).base.fold_epoch
            oldest = max(created, folded)
            if not oldest <= asked <= committed:
                raise InvalidParameter(
                    f"epoch {asked} is not retained",
                    detail=f"The relations of the query can be read from epoch {oldest} to {committed}.",
                    hint="ALTER SYSTEM SET retention_ms keeps more of the past.",
                )
        return Epoch(asked)

    def _planned(self, bound: BoundQuery, epoch: Epoch, found: Found | None) -> DataFrame:
        """The query as a frame, which may have been made before."""
        database, relations = self._database, sorted(bound.relations)
        stored = [RelationId(each) for each in relations if RelationId(each) in database.runtime.versions]
        plain = len(stored) == len(relations) and not bound.volatile and f"`{SYSTEM_SOURCE}" not in bound.sql
        if self._transaction is not None or found is not None or not plain:
            return self._frame(bound, epoch, found)
        versions = [database.runtime.versions.at(each, epoch) for each in stored]
        return database.plans.frame(bound, database.catalog, versions, lambda: self._frame(bound, epoch))

    def _frame(self, bound: BoundQuery, epoch: Epoch, found: Found | None = None) -> DataFrame:
        runtime = self._database.runtime
        views: dict[str, str] = {}
        with open_scope(runtime.spark) as scope:

            def view_of(source: str) -> str:
                if source not in views:
                    if source.startswith(SYSTEM_SOURCE):
                        views[source] = scope.view(self._system_frame(source.removeprefix(SYSTEM_SOURCE)))
                    elif found is not None and source == found.source:
                        schema = runtime.versions.schema(relation_of(source))
                        views[source] = scope.view(runtime.reader.local(found.rows, schema))
                    elif self._transaction is not None and epoch == self._transaction.epoch:
                        views[source] = scope.view(self._transaction.frame(relation_of(source)))
                    else:
                        version = runtime.versions.at(relation_of(source), epoch)
                        views[source] = scope.view(runtime.reader.exact(version))
                return views[source]

            return typed(scope.sql(render(bound.ast, view_of)), bound)

    def _system_frame(self, name: str) -> DataFrame:
        schema, _, view = name.partition(".")
        rows = arrow_of(SYSTEM_VIEWS[schema, view], observe(self._database, self.variables))
        return self._database.runtime.spark.createDataFrame(rows)

    def _fetch(self, frame: DataFrame) -> list[tuple[Any, ...]]:
        with self._working():
            self._begin()
            self._stop_if_told()
            with self._database.plans.using(frame):
                return list(self._translated(lambda: fetch_rows(frame)))

    def _batches(self, frame: DataFrame) -> Iterator[pa.RecordBatch]:
        limit = self._database.runtime.limits.inline_bytes_max
        with self._database.plans.using(frame):
            for batch in pieces(frame, inline_bytes=limit, scratch=self._scratch()):
                self._stop_if_told()
                yield batch

    def _pieces(self, frame: DataFrame) -> Iterator[Piece]:
        for batch in self._batches(frame):
            yield [column.to_pylist() for column in batch.columns], batch.num_rows

    def _scratch(self) -> Path:
        return Path(self._database.config.data_dir).absolute() / "scratch"

    def _written(self, tag: str, returned: tuple[BoundQuery, DataFrame] | None) -> Result:
        if self.variables.is_on("rw_implicit_flush"):
            self._wait(self._database.coordinator.flush())
        if returned is None:
            return Result(tag)
        bound, frame = returned
        with open_scope(self._database.runtime.spark) as scope:
            view = scope.view(frame)
            shown = typed(scope.sql(render(bound.ast, lambda _: view)), bound)
        return Result(tag, bound.columns, _rows=fetch_rows(shown))

    def _dml(self) -> Dml:
        return Dml(
            self._database,
            self.variables,
            self._database.clock.now_ms(),
            self._wait,
            self._stop_if_told,
            self._parameters,
            self._transaction,
        )

    # --- subscriptions and prepared statements -------------------------------------------------------

    def _subscriptions(self) -> Subscriptions:
        return Subscriptions(self._database, self.variables, self._wait, self.user)

    def open_cursors(self) -> list[CursorFact]:
        return self.cursors.facts()

    def rows_coming(self, statement: ast.FetchCursor) -> tuple[Future[None], float] | None:
        """What a FETCH waits for and for how many seconds at most; None when it does not wait."""
        cursor, wait_ms = self.cursors.subscribed(statement.name), timeout_ms(statement.options)
        if cursor is None or not wait_ms or self.transaction_status == "E":
            return None
        return cursor.coming(), wait_ms / 1000

    def _await_rows(self, statement: ast.FetchCursor) -> None:
        waiting = self.rows_coming(statement)
        if waiting is None:
            return
        future, seconds = waiting
        until = time.monotonic() + seconds
        while not future.done() and time.monotonic() < until:
            self._stop_if_told()
            wait_for([future], timeout=min(_POLL_SECONDS, max(until - time.monotonic(), 0)))
        future.cancel()

    def _prepare(self, statement: ast.Prepare) -> Result:
        self.prepared.refuse_taken(statement.name)
        parsed = ast.ParsedStatement(statement.statement, statement.text, 0)
        description = self.describe(parsed, statement.types)
        self.prepared.add(statement.name, PreparedStatement(statement.statement, statement.text, description))
        return Result("PREPARE")

    def _execute(self, statement: ast.Execute) -> Result:
        prepared = self.prepared.find(statement.name)
        types = prepared.description.parameters
        values = values_of(statement, types, self._text_of)
        outer, self._parameters = self._parameters, Parameters(types, values)
        try:
            return self._dispatch(prepared.statement, prepared.text)
        finally:
            self._parameters = outer

    def _text_of(self, query: ast.SqlQuery) -> str | None:
        """The one value of a query, as text."""
        result = self._select(ast.Select(query))
        ((value,),) = result.rows or []
        assert result.columns is not None
        type_, timezone = result.columns[0].type, self.variables.get("timezone")
        return None if value is None else format_value(value, type_, timezone)

    # --- definitions ---------------------------------------------------------------------------------

    def _begin_definition(self) -> None:
        """A definition in a read-only transaction is refused; in another one a notice tells what to expect."""
        if self._transaction is not None:
            self._transaction.refuse_if_read_only("a definition")
            self._note("a definition takes effect at once, and stays if the transaction is rolled back")

    def _ddl(self) -> Ddl:
        self._begin_definition()
        return Ddl(self._database, self.variables, self._wait, self.user)

    def _guard(self) -> Guard:
        return Guard(self._database.catalog, self._me(), self.variables.search_path)

    def _administer(self, statement: Administered) -> Result:
        administration = Administration(self._database, self._me(), self.variables, self._wait)
        match statement:
            case ast.CreateUser():
                administration.create_user(statement)
                return Result("CREATE_USER")
            case ast.AlterUser():
                administration.alter_user(statement)
                return Result("UPDATE_USER")
            case ast.Grant():
                administration.grant(statement)
                return Result("GRANT_PRIVILEGE")
            case ast.Revoke():
                administration.revoke(statement)
                return Result("REVOKE_PRIVILEGE")
            case ast.AlterOwner():
                administration.alter_owner(statement)
                return Result("ALTER_" + statement.kind.name)
            case ast.CommentOn():
                administration.comment(statement)
                return Result("COMMENT")
            case ast.CreateDatabase():
                self._note(administration.create_database(statement))
                return Result("CREATE_DATABASE")
            case ast.Drop():
                users = statement.kind is ast.ObjectKind.USER
                drop = administration.drop_users if users else administration.drop_databases
                for notice in drop(statement):
                    self._note(notice)
                return Result("DROP_" + statement.kind.name)

    def _alter(self) -> Alter:
        return Alter(self._database, self.variables, self._wait)

    def _create_table_as(self, statement: ast.CreateTableAs, text: str) -> Result:
        query = ast.Select(statement.query)
        bound = self._bound(query)
        plain = self._ddl().create_table_as(statement, bound.columns)
        if plain is None:
            self._note(f'relation "{statement.name.name}" already exists, skipping')
            return Result("CREATE_TABLE")
        self._ddl().create_table(plain, text)
        insert = ast.Insert(statement.name, tuple(column.name for column in plain.columns), statement.query)
        count, _ = self._dml().insert(insert)
        return Result(f"SELECT {count}")

    def _create_materialized_view(self, statement: ast.CreateMaterializedView, text: str) -> Result:
        ddl = self._ddl()
        backfill, notice = ddl.create_materialized_view(statement, text)
        self._note(notice)
        if backfill is None or self.variables.is_on("background_ddl"):
            return Result("CREATE_MATERIALIZED_VIEW")
        try:
            self._wait_for(backfill)
        except SeicheError:
            self._abandon(backfill)
            raise
        return Result("CREATE_MATERIALIZED_VIEW")

    def _wait_for(self, backfill: Backfill) -> None:
        """Waits for a view, and tells how far it is every now and then."""
        told, due = "", time.monotonic() + NOTICE_SECONDS
        while True:
            try:
                backfill.done.result(timeout=_POLL_SECONDS)
                return
            except FutureTimeout:
                if backfill.done.done():
                    raise
                self._stop_if_told()
            progress = self._database.jobs.progress(backfill.job.id)
            if time.monotonic() >= due and progress is not None and progress != told:
                told, due = progress, time.monotonic() + NOTICE_SECONDS
                self.on_notice(f'creation of "{backfill.job.name}": {progress}')

    def _wait_for_jobs(self, statement: ast.Wait) -> None:
        if statement.name is None:
            for backfill in self._database.jobs.listed():
                self._wait_for(backfill)
            return
        view = self._database.catalog.find(
            statement.name.parts,
            search_path=self.variables.search_path,
            kinds=(ObjectKind.MATERIALIZED_VIEW,),
            action="WAIT",
        )
        found = self._database.jobs.get(view.id)
        if found is not None:
            self._wait_for(found)

    def _abandon(self, backfill: Backfill) -> None:
        """A view that could not be created leaves nothing behind."""
        self._cancelled.clear()
        view = self._database.catalog.by_id.get(backfill.job.id)  # type: ignore[call-overload]
        if view is not None and view.status is ObjectStatus.CREATING:
            self._ddl().drop_objects([view.id], cascade=True)

    def _job_control(self, statement: ast.Recover | ast.CancelJobs | ast.Pause | ast.Resume) -> Result:
        match statement:
            case ast.Recover():
                self._wait(self._database.recover())
                return Result("RECOVER")
            case ast.Pause():
                self._database.set_paused(True)
                return Result("PAUSE")
            case ast.Resume():
                self._database.set_paused(False)
                return Result("RESUME")
            case ast.CancelJobs():
                return self._cancel_listed(statement)

    def _cancel_listed(self, statement: ast.CancelJobs) -> Result:
        for number in statement.ids:
            item = self._database.catalog.by_id.get(number)  # type: ignore[call-overload]
            if item is None or item.status is not ObjectStatus.CREATING:
                raise UndefinedObject(f"job {number} does not exist", hint="SHOW JOBS lists the jobs.")
            self._ddl().drop_objects([item.id], cascade=True)
        return show.rows("CANCEL_COMMAND", [("Id", VARCHAR)], [(str(number),) for number in statement.ids])

    # --- transactions --------------------------------------------------------------------------------

    def _block(self, statement: ast.Begin | ast.Commit | ast.Rollback) -> Result:
        transaction = self._transaction
        match statement:
            case ast.Begin(read_only):
                if transaction is not None:
                    self._note("there is already a transaction in progress")
                else:
                    self._transaction = Transaction(self._database, self.variables, read_only or self._read_only)
                return Result("BEGIN")
            case ast.Commit() if transaction is not None and not transaction.failed:
                self._transaction = None
                self.cursors.end_transaction()
                self.variables = without_local(self.variables, transaction.local.items())
                transaction.commit(self._stop_if_told)
                return Result("COMMIT")
            case _:
                if transaction is None:
                    self._note("there is no transaction in progress")
                    return Result("COMMIT" if isinstance(statement, ast.Commit) else "ROLLBACK")
                self._transaction = None
                self.cursors.end_transaction()
                self.variables = transaction.variables
                transaction.close()
                return Result("ROLLBACK")

    def _savepoint(self, statement: ast.Savepoint | ast.ReleaseSavepoint | ast.RollbackTo) -> Result:
        transaction = self._transaction
        if transaction is None:
            words = {ast.Savepoint: "SAVEPOINT", ast.ReleaseSavepoint: "RELEASE SAVEPOINT"}
            verb = words.get(type(statement), "ROLLBACK TO SAVEPOINT")
            raise TransactionState(f"{verb} can only be used in transaction blocks", sqlstate="25P01")
        match statement:
            case ast.Savepoint(name):
                transaction.savepoint(name, self.variables)
                return Result("SAVEPOINT")
            case ast.ReleaseSavepoint(name):
                transaction.release(name)
                return Result("RELEASE")
            case ast.RollbackTo(name):
                self.variables = transaction.rollback_to(name)
                return Result("ROLLBACK")

    def _set_transaction(self, statement: ast.SetTransaction) -> Result:
        if statement.read_only is not None and statement.session:
            self._read_only = statement.read_only
        elif statement.read_only is not None and self._transaction is not None:
            self._transaction.read_only = statement.read_only
        return Result("SET")

    def _set(self, statement: ast.SetVariable) -> Result:
        if statement.local:
            if self._transaction is None:
                self._note("SET LOCAL can only be used in transaction blocks")
                return Result("SET_VARIABLE")
            name = find(statement.name).name
            self._transaction.local.setdefault(name, self.variables.values.get(name))
        self.variables = self.variables.with_value(statement.name, statement.value)
        return Result("SET_VARIABLE")

    def _alter_system(self, statement: ast.AlterSystemSet) -> Result:
        database = self._database
        config = database.config.with_parameter(statement.name, statement.value)

        class Change:
            def apply(self, graph: Graph, barrier: Barrier) -> Effect:
                return Effect(graph, Checkpoint(settings={statement.name: statement.value}))

        self._wait(database.coordinator.command(Change()))
        database.config = config
        database.apply_parameters()
        return Result("ALTER_SYSTEM")

    def _explain(self, statement: ast.Explain) -> Result:
        match statement.statement:
            case ast.CreateMaterializedView() as view:
                fragments = self._ddl().explain(view)
                root = explain.describe(fragments, lambda relation: self._relation_name(relation, str(view.name)))
                match statement.format:
                    case ast.ExplainFormat.TEXT:
                        shown = explain.text(root).rstrip() + "\n" + self._ddl().explained_backfill(view)
                    case ast.ExplainFormat.JSON:
                        shown = explain.as_json(root)
                    case ast.ExplainFormat.DOT:
                        shown = explain.dot(root)
            case ast.Select() as query:
                bound = self._bound(query)
                frame = self._frame(bound, self._read_epoch(bound))
                mode = "formatted" if statement.verbose else "simple"
                shown = str(frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))
            case _:
                raise FeatureNotSupported(
                    "EXPLAIN of this statement is not supported", hint="Explain a query or CREATE MATERIALIZED VIEW."
                )
        lines: list[tuple[Any, ...]] = [(line,) for line in shown.rstrip().splitlines()]
        return Result("EXPLAIN", (OutputColumn("QUERY PLAN", "QUERY PLAN", VARCHAR),), _rows=lines)

    def _relation_name(self, relation: RelationId, new: str) -> str:
        item = self._database.catalog.by_id.get(relation)  # type: ignore[call-overload]
        return str(item.qualified) if item is not None else new

    # ------------------------------------------------------------------------------------------------

    def _note(self, notice: str | None) -> None:
        if notice is not None:
            self._notices.append(notice)

    def _wait(self, future: Future[Any], *, owned: bool = True) -> Any:
        """The future's value. A cancelled statement stops waiting, and takes back what is its own (`owned`)."""
        while True:
            try:
                return future.result(timeout=_POLL_SECONDS)
            except FutureTimeout:
                if future.done():
                    raise
                try:
                    self._stop_if_told()
                except QueryCanceled as told:
                    if not owned or future.cancel():
                        raise
                    detail = "An epoch had taken it up already: what it asked for may still happen."
                    raise QueryCanceled(told.message, detail=detail) from None

    def _stop_if_told(self) -> None:
        if self._cancelled.is_set():
            raise QueryCanceled("canceling statement due to user request")
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise QueryCanceled("canceling statement due to statement timeout")


def shown_text(parsed: ast.ParsedStatement) -> str:
    """A statement as others may see it: without the password that it may hold."""
    match parsed.statement:
        case ast.CreateUser(name):
            return f"CREATE USER {ast.quote_name(name)}"
        case ast.AlterUser(name):
            return f"ALTER USER {ast.quote_name(name)}"
        case _:
            return parsed.text


def replace_result(result: Result, notices: tuple[str, ...], seconds: float) -> Result:
    result.notices = notices
    result.seconds = seconds
    return result


def _as_arrow(rows: Iterable[Any], table: CatalogObject) -> pa.Table:
    """Rows as tuples in the order of the table's columns, or as dictionaries by column name."""
    listed = list(rows)
    plain = [column for column in table.columns if column.generated is None]
    if listed and isinstance(listed[0], Mapping):
        given = {name for row in listed for name in row}
        columns = [column for column in plain if column.name in given]
        unknown = given - {column.name for column in columns}
        if unknown:
            name = sorted(unknown)[0]
            raise UndefinedColumn(
                f'column "{name}" of relation "{table.name}" does not exist',
                hint=nearest(name, [column.name for column in plain]),
            )
        values = [[row.get(column.name) for row in listed] for column in columns]
    else:
        widths = {len(row) for row in listed}
        if widths - {len(plain)}:
            raise DatatypeMismatch(
                f'rows of {sorted(widths)[0]} values do not fit the {len(plain)} columns of "{table.name}"'
            )
        columns = plain
        values = [[row[index] for row in listed] for index in range(len(plain))]
    arrays = []
    for column, each in zip(columns, values, strict=True):
        try:
            arrays.append(pa.array(each, column.type.arrow))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise DatatypeMismatch(
                f'values for column "{column.name}" are not of type {column.type}', detail=str(error)
            ) from error
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


def _merged(given: Sequence[SqlType | None], inferred: Mapping[int, SqlType]) -> tuple[SqlType, ...]:
    """The types of parameters: what the client says, else what their places tell."""
    count = max([len(given), *inferred])
    said = [*given, *([None] * (count - len(given)))]
    return tuple(each or inferred.get(number, VARCHAR) for number, each in enumerate(said, start=1))
