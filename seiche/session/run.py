"""A session: runs statements one after another, with its own variables, and can be told to stop one."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar, assert_never

import pyarrow as pa
from pyspark.sql import DataFrame

from seiche.catalog import temporary
from seiche.catalog.catalog import Catalog
from seiche.catalog.facts import SessionFact
from seiche.catalog.objects import DEFAULT_DATABASE, SUPERUSER, ObjectKind, Privilege, User
from seiche.errors import (
    FeatureNotSupported,
    SeicheError,
    UndefinedColumn,
    nearest,
)
from seiche.query import open_scope, render, typed
from seiche.session import show
from seiche.session.administration import Administration
from seiche.session.alter import Alter
from seiche.session.analyzing import analyzed
from seiche.session.columns import ColumnChanges
from seiche.session.conversation import Conversation
from seiche.session.copying import CopiedRows
from seiche.session.creation import Creation
from seiche.session.database import CursorFact, Database
from seiche.session.definitions import Definitions
from seiche.session.describe import Description, describe, merged_types
from seiche.session.dml import Dml
from seiche.session.drops import Drops
from seiche.session.explaining import explained
from seiche.session.functions import create_function
from seiche.session.given import arrow_rows
from seiche.session.guard import Guard
from seiche.session.reading import Reading, answered, scratch_folder
from seiche.session.result import Piece, Result, RowReader, fetch_rows
from seiche.session.secrets import alter_secret, create_secret
from seiche.session.sleeping import sleep_for
from seiche.session.subscriptions import SubscriptionDefinitions, declared
from seiche.session.system.ask import Asker
from seiche.session.system.evaluate import Answer
from seiche.session.system_settings import alter_system
from seiche.session.table_of_query import create_table_of_query
from seiche.session.tables import TableDefinitions
from seiche.session.together import stretches, write_together
from seiche.session.vacuum import vacuum
from seiche.session.variables import Variables
from seiche.session.views import ViewDefinitions
from seiche.session.work import Work
from seiche.sql import statements as ast
from seiche.sql.bind import BoundQuery, OutputColumn
from seiche.sql.parameters import Parameters
from seiche.sql.parse import parse, parse_name
from seiche.types import VARCHAR, SqlType

log = logging.getLogger(__name__)
_sessions = itertools.count(1)
T = TypeVar("T")


class Session:
    """One user's conversation. Statements run on the caller's thread; `cancel` may come from another."""

    def __init__(self, database: Database, user: str = SUPERUSER, home: str = DEFAULT_DATABASE) -> None:
        """`home` is the one of the databases whose names the session knows."""
        self._database = database
        self.user = database.catalog.user(user).name
        home = database.catalog.database(home).name
        self.pid = next(_sessions)
        self.client: str | None = None  # where it comes from, for others to see
        self._conversation = Conversation(database, self._note)
        self._started_ms = database.clock.now_ms()
        self._statement: tuple[str, int] = ("", self._started_ms)  # what runs or ran last, and since when
        self._asker = Asker(database, self.pid, self._started_ms)
        context = database.runtime.spark.sparkContext
        self._work = Work(context, f"session-{self.pid}", self._asker.stop, self._say_why)
        database.sessions[self.pid] = self
        self._notices: list[str] = []
        self.on_notice: Callable[[str], None] = lambda _: None  # what a client is told while a statement runs
        self.on_hangup: Callable[[], None] = lambda: None  # sends the client away
        self._parameters: Parameters | None = None
        self.variables = Variables(
            temporary=temporary.schema_of(self.pid),
            defaults=database.session_defaults,
            database=home,
            login_database=home,
        )

    @property
    def variables(self) -> Variables:
        return self._conversation.variables

    @variables.setter
    def variables(self, value: Variables) -> None:
        self._conversation.variables = value

    def execute(self, text: str) -> list[Result]:
        """Runs all statements of a text; the first error ends it. Rows are fetched."""
        with self._work.running():
            results = self.run(text)
            for result in results:
                _ = result.rows
        return results

    def run(self, text: str) -> list[Result]:
        """As `execute`, with the rows of queries still to be fetched."""
        with self._work.running():
            try:
                statements = parse(text)
            except SeicheError:
                self.fail_transaction()
                raise
            results: list[Result] = []
            for stretch in stretches(statements):
                done, error = self.write(stretch)
                results += done
                if error is not None:
                    raise error
            return results

    def write(self, stretch: Sequence[ast.ParsedStatement]) -> tuple[list[Result], SeicheError | None]:
        """Runs the statements of one of a text's `stretches`: the results of those that ran, and the error that ended
        it if any, which undid them. In a block it is the block that goes together."""
        done: list[Result] = []
        with self._work.running():
            try:
                in_block = self._conversation.transaction is not None
                if len(stretch) == 1 or in_block or self.variables.is_on("rw_implicit_flush"):
                    for each in stretch:
                        done.append(self._one(each))
                else:
                    self._begin()
                    write_together(self._conversation, stretch, done, self._one, self._work.stop_if_told)
            except SeicheError as error:
                return done, error
        return done, None

    def start(self, parsed: ast.ParsedStatement, types: Sequence[SqlType], values: Sequence[str | None]) -> Result:
        """Runs one statement with the values of its parameters, as text. Rows are still to be fetched."""
        with self._work.running():
            self._begin()
            self._parameters = Parameters(types, values)
            try:
                return self._one(parsed)
            finally:
                self._parameters = None

    def describe(self, parsed: ast.ParsedStatement, types: Sequence[SqlType | None]) -> Description:
        """The types of a statement's parameters, where given or else inferred, and its columns."""
        with self._work.running():
            self._begin()
            self._conversation.refuse_if_failed(parsed.statement)
            if isinstance(parsed.statement, ast.Execute):
                return Description((), self._conversation.prepared.find(parsed.statement.name).columns)
            if isinstance(parsed.statement, ast.Select):
                tree = parsed.statement.query.tree
                asked = self._work.translated(lambda: self._asker.describe(tree, self._me(), self.variables))
                if asked is not None:
                    columns, inferred = asked
                    return Description(merged_types(types, inferred), columns)
            parameters = self._parameters = Parameters(types)
            try:
                return self._work.translated(
                    lambda: describe(
                        parsed.statement,
                        parameters,
                        bound=lambda query: self._reading().bound(ast.Select(query)),
                        dml=self._dml(),
                        cursors=self._conversation.cursors,
                        run=lambda statement: self._dispatch(statement, parsed.text),
                    )
                )
            finally:
                self._parameters = None

    def take(self, reader: RowReader, limit: int | None, *, first: bool) -> Piece | None:
        """The next rows of a result of this session. With `first` the time that the statement may take begins."""
        with self._work.running():
            if first:
                self._begin()
            return self._work.translated(lambda: reader.take(limit))

    def begin_copy(self, statement: ast.CopyFrom) -> CopiedRows:
        """Where the rows of a COPY FROM are collected; `finish_copy` inserts them."""
        with self._work.running():
            self._begin()
            self._conversation.refuse_if_failed(statement)
            self._guard().check_write(statement.table, Privilege.INSERT)
            table = self._dml().table(statement.table)
            visible = {column.name: column for column in table.columns if column.generated is None}
            for name in statement.columns:
                if name not in visible:
                    raise UndefinedColumn(
                        f'column "{name}" of relation "{table.name}" does not exist', hint=nearest(name, visible)
                    )
            columns = [visible[name] for name in statement.columns] or list(visible.values())
            if statement.where is not None:  # it reads columns, and its mistakes are told before rows are sent
                self._guard().check_write(statement.table, Privilege.SELECT)
                names = [column.name for column in columns]
                self._dml().copied(table, names, [f"c{index}" for index in range(len(names))], statement.where)
            return CopiedRows(columns, scratch_folder(self._database))

    def finish_copy(self, statement: ast.CopyFrom, rows: CopiedRows) -> Result:
        """Inserts all rows of a COPY at once."""
        with self._work.running():
            self._begin()
            dml, names = self._dml(), [column.name for column in rows.columns]
            frame = rows.frame(self._database.runtime.spark)
            count = self._in_transaction(lambda: dml.copy(dml.table(statement.table), names, frame, statement.where))
            return Result(f"COPY {count}")

    @property
    def is_superuser(self) -> bool:
        return self._me().superuser

    @property
    def transaction_status(self) -> str:
        """I outside a transaction block, T inside one, E inside one that has failed; as PostgreSQL spells it."""
        return self._conversation.status

    def fail_transaction(self) -> None:
        """A statement of the transaction failed before it came to run."""
        self._conversation.fail()

    def close(self) -> None:
        """Ends the conversation: an open transaction is rolled back, cursors are closed, temporary tables dropped.
        Nobody sees the session afterwards."""
        self._database.sessions.pop(self.pid, None)
        with self._work.running():
            self._conversation.close()
            self._work.forget_limits()
            try:
                Drops(self._definitions()).drop_temporary()
            except SeicheError as error:  # the database is closing, or failed: its next start forgets them
                log.info("temporary tables of session %d are left to the next start: %s", self.pid, error.message)

    def cancel(self) -> None:
        """Stops the statement that runs now, if any. May be called from any thread, and returns at once."""
        self._work.cancel()

    def hang_up(self) -> None:
        """Ends the conversation from outside: what runs is stopped, and a client is sent away."""
        self.cancel()
        self.on_hangup()

    def fact(self) -> SessionFact:
        """The session as `pg_stat_activity` shows it."""
        query, since = self._statement
        name = self.variables.get("application_name")
        active = self._work.is_active
        database = self.variables.database
        return SessionFact(self.pid, self.user, name, self.client, self._started_ms, since, active, query, database)

    def insert(self, name: str, rows: Any) -> int:
        """Inserts a Spark frame, an Arrow table, or rows as tuples or dictionaries; returns how many."""
        with self._work.running():
            self._begin()
            dml = self._dml()
            self._guard().check_write(parse_name(name), Privilege.INSERT)
            table = dml.table(parse_name(name))
            if isinstance(rows, DataFrame):
                return self._work.translated(lambda: dml.insert_given(table, rows))
            if isinstance(rows, pa.RecordBatch):
                rows = pa.Table.from_batches([rows])
            if not isinstance(rows, pa.Table):
                rows = arrow_rows(rows, table)
            return self._work.translated(lambda: dml.insert_table(table, rows))

    def table(self, name: str) -> DataFrame:
        """A relation at the committed epoch as a Spark frame."""
        (result,) = self.run(f"TABLE {name}")
        return result.to_spark()

    def names(self) -> list[str]:
        """Names worth completing: relations and their columns."""
        items = [each for each in self._catalog.at_home() if each.kind is not ObjectKind.INTERNAL]
        found = {str(each.qualified) for each in items}
        found.update(column.name for each in items for column in each.columns)
        return sorted(found)

    # ------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._notices = []
        self._work.begin(self.variables.integer("statement_timeout"))

    def _one(self, parsed: ast.ParsedStatement) -> Result:
        started, metrics = time.perf_counter(), self._database.runtime.metrics
        self._begin()
        self._statement = (shown_text(parsed), self._database.clock.now_ms())
        self._conversation.refuse_if_failed(parsed.statement)
        try:
            result = self._in_transaction(lambda: self._dispatch(parsed.statement, parsed.text))
        except SeicheError as error:
            metrics.statements.add(outcome="failed")
            if error.position is not None and parsed.start:
                error.position = min(error.position, parsed.start + len(parsed.text))
            raise
        seconds = time.perf_counter() - started
        metrics.statements.add(outcome="done")
        metrics.statement_seconds.observe(seconds)
        return replace_result(result, tuple(self._notices), seconds)

    def _in_transaction(self, work: Callable[[], T]) -> T:
        """An error inside a transaction block fails the block."""
        try:
            return self._work.translated(work)
        except SeicheError:
            self.fail_transaction()
            raise

    def _dispatch(self, statement: ast.Statement, text: str) -> Result:
        self._guard().check(statement)
        self._conversation.refuse_if_read_only(statement)
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
                return self._written("TRUNCATE TABLE" if statement.truncating else f"DELETE {count}", returned)
            case ast.CreateTable():
                self._note(TableDefinitions(self._definitions()).create_table(statement, text))
                return Result("CREATE_TABLE")
            case ast.CreateSource():
                self._note(TableDefinitions(self._definitions()).create_source(statement, text))
                return Result("CREATE_SOURCE")
            case ast.CreateTableAs():
                return self._create_table_as(statement, text)
            case ast.CreateMaterializedView():
                self._note(self._creation().create_following(statement, text))
                return Result("CREATE_MATERIALIZED_VIEW")
            case ast.CreateSink():
                self._note(self._creation().create_following(statement, text))
                return Result("CREATE_SINK")
            case ast.CreateView():
                self._note(ViewDefinitions(self._definitions()).create_view(statement, text))
                return Result("CREATE_VIEW")
            case ast.CreateFunction():
                self._note(create_function(self._definitions(), statement, text))
                return Result("CREATE_FUNCTION")
            case ast.CreateSchema():
                self._note(self._definitions().create_schema(statement))
                return Result("CREATE_SCHEMA")
            case (
                ast.CreateUser() | ast.AlterUser() | ast.Grant() | ast.Revoke() | ast.AlterOwner() | ast.CommentOn()
                | ast.AlterDefaultPrivileges() | ast.CreateDatabase()
                | ast.Drop(kind=ast.ObjectKind.USER)
            ):  # fmt: skip
                return Administration(self._database, self._me(), self.variables, self._work.wait).run(
                    statement, self._note
                )
            case ast.CreateIndex():
                self._note(self._creation().create_index(statement))
                return Result("CREATE_INDEX")
            case ast.Drop():
                for notice in Drops(self._definitions()).drop(statement):
                    self._note(notice)
                return Result("DROP_" + statement.kind.name)
            case ast.Rename():
                Alter(self._definitions()).rename(statement)
                return Result("ALTER_" + statement.kind.name)
            case ast.AlterColumns():
                block = self._conversation.transaction
                columns = ColumnChanges(self._definitions(), self._work.stop_if_told, block)
                self._note(columns.run(statement.table, statement.action))
                return Result("ALTER_TABLE")
            case ast.AlterRelation():
                self._alter().relation(statement)
                return Result("ALTER_" + statement.kind.name)
            case ast.RefreshView():
                self._note(self._alter().refresh(statement))
                return Result("REFRESH_MATERIALIZED_VIEW")
            case ast.Vacuum():
                return self._vacuum(statement)
            case ast.Flush():
                self._flush()
                return Result("FLUSH")
            case ast.Wait():
                self._creation().wait(statement)
                return Result("WAIT")
            case ast.Recover() | ast.CancelJobs() | ast.Pause() | ast.Resume():
                return self._job_control(statement)
            case ast.Begin() | ast.Commit() | ast.Rollback():
                return self._conversation.block(statement, self._work.stop_if_told)
            case ast.Savepoint() | ast.ReleaseSavepoint() | ast.RollbackTo():
                return self._conversation.savepoint(statement)
            case ast.SetTransaction():
                return self._conversation.set_transaction(statement)
            case ast.DeclareCursor(name, query, hold):
                self._conversation.cursors.declare(name, self._select(ast.Select(query)), hold=hold)
                return Result("DECLARE_CURSOR")
            case ast.DeclareSubscriptionCursor():
                self._conversation.cursors.refuse_taken(statement.name)
                cursor, later = declared(self._database, self.variables, statement, self._reading().batches)
                self._conversation.cursors.declare_subscribed(cursor)
                self._note(later)
                return Result("DECLARE_CURSOR")
            case ast.CreateSubscription():
                self._note(SubscriptionDefinitions(self._definitions()).create(statement))
                return Result("CREATE_SUBSCRIPTION")
            case ast.CreateSecret():
                self._note(create_secret(self._definitions(), statement))
                return Result("CREATE_SECRET")
            case ast.AlterSecret():
                alter_secret(self._definitions(), statement)
                return Result("ALTER_SECRET")
            case ast.FetchCursor(name, count):
                coming = self.rows_coming(statement)
                if coming is not None:
                    self._work.wait_at_most(*coming)
                return self._conversation.cursors.fetch(name, count)
            case ast.MoveCursor(name, count):
                return self._conversation.cursors.move(name, count)
            case ast.CloseCursor(name):
                self._conversation.cursors.close(name)
                return Result("CLOSE_CURSOR")
            case ast.Prepare():
                return self._prepare(statement)
            case ast.Execute():
                return self._execute(statement)
            case ast.Deallocate(name):
                self._conversation.prepared.drop(name)
                return Result("DEALLOCATE")
            case ast.Discard(everything, temporaries):
                if everything or temporaries:
                    Drops(self._definitions()).drop_temporary()
                if everything:
                    self._conversation.cursors.close(None)
                    self._conversation.prepared.drop(None)
                    self.variables = self.variables.reset()
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
                return self._conversation.set(statement)
            case ast.ResetAll():
                self.variables = self.variables.reset()
                return Result("RESET")
            case ast.ShowVariable():
                value = self.variables.shown(statement.name)
                return show.rows("SHOW_VARIABLE", [(statement.name, VARCHAR)], [(value,)])
            case ast.ShowAll():
                return show.show_all(self.variables)
            case ast.ShowParameters():
                return show.show_parameters(self._database, statement)
            case ast.ShowObjects():
                return show.show_objects(
                    self._database, self._database.catalog.user(self.user), self.variables, statement
                )
            case ast.ShowColumns():
                return show.describe(self._database, self.variables, statement.name, statement.pattern or "%")
            case ast.ShowCreate():
                return show.show_create(self._database, self.variables, statement)
            case ast.Describe():
                return show.describe(self._database, self.variables, statement.name)
            case ast.ExplainJob():
                return analyzed(statement, self._database, self.variables, self._work)
            case ast.Explain():
                return explained(statement, self._definitions, self._reading(), self._database.catalog)
            case _:
                assert_never(statement)

    # --- queries -------------------------------------------------------------------------------------

    def _select(self, statement: ast.Select) -> Result:
        values = self._parameters.values() if self._parameters is not None else None
        sleep_for(statement.query, self._work)
        answered = self._asker.ask(statement.query.tree, self._me(), self.variables, values)
        if answered is not None:
            return self._answered(*answered)
        tree = self._asker.with_answers(statement.query.tree, self._me(), self.variables)
        return self._reading().select(ast.Select(ast.SqlQuery(tree, statement.query.text)))

    def _reading(self) -> Reading:
        return Reading(
            self._database,
            self.user,
            self.variables,
            self._parameters,
            self._conversation.transaction,
            self._work,
            self._begin,
        )

    def _answered(self, answer: Answer, changes: Mapping[str, str]) -> Result:
        """The answer to a question about the system, as a result."""
        for name, value in changes.items():
            self.variables = self.variables.with_value(name, value)
        return answered(self._database, answer)

    def _vacuum(self, statement: ast.Vacuum) -> Result:
        for notice in vacuum(
            statement,
            self._catalog,
            self.variables.search_path,
            self._me(),
            self._database.maintenance,
            lambda folding: bool(self._work.wait(folding)),
            in_block=self._conversation.transaction is not None,
        ):
            self._note(notice)
        return Result("VACUUM" if statement.folds else "ANALYZE")

    @property
    def _catalog(self) -> Catalog:
        """What exists, seen from the session's database."""
        return self._database.catalog.seen_from(self.variables.database)

    def _me(self) -> User:
        return self._database.catalog.user(self.user)

    def _written(self, tag: str, returned: tuple[BoundQuery, DataFrame] | None) -> Result:
        if self.variables.is_on("rw_implicit_flush"):
            self._flush()
        if returned is None:
            return Result(tag)
        bound, frame = returned
        with open_scope(self._database.runtime.spark) as scope:
            view = scope.view(frame)
            shown = typed(scope.sql(render(bound.ast, lambda _: view)), bound)
        return Result(tag, bound.columns, _rows=fetch_rows(shown, len(bound.columns)))

    def _flush(self) -> None:
        """Waits for all that was written before, in views and in the tables that sinks fill."""
        database = self._database
        self._work.wait(database.coordinator.flush())
        self._work.wait(database.delivered())

    def _dml(self) -> Dml:
        return Dml(
            self._database,
            self.variables,
            self._database.clock.now_ms(),
            self._work.wait,
            self._work.stop_if_told,
            self._parameters,
            self._conversation.transaction,
        )

    # --- subscriptions and prepared statements -------------------------------------------------------

    def open_cursors(self) -> list[CursorFact]:
        return self._conversation.cursors.facts()

    def cursor_columns(self, name: str) -> Sequence[OutputColumn] | None:
        """The columns of an open cursor; None where there is none of this name."""
        return self._conversation.cursors.columns(name)

    def rows_coming(self, statement: ast.FetchCursor) -> tuple[Future[None], float] | None:
        """What a FETCH waits for and for how many seconds at most; None when it does not wait."""
        return self._conversation.rows_coming(statement)

    def _prepare(self, statement: ast.Prepare) -> Result:
        self._conversation.prepared.refuse_taken(statement.name)
        description = self.describe(ast.ParsedStatement(statement.statement, statement.text, 0), statement.types)
        self._conversation.prepared.add(statement, description)
        return Result("PREPARE")

    def _execute(self, statement: ast.Execute) -> Result:
        prepared = self._conversation.prepared.find(statement.name)
        values = prepared.values(statement, lambda query: self._select(ast.Select(query)), self.variables)
        outer, self._parameters = self._parameters, Parameters(prepared.types, values)
        try:
            return self._dispatch(prepared.statement, prepared.text)
        except SeicheError as error:
            error.position = None  # it would count in the text of PREPARE
            raise
        finally:
            self._parameters = outer

    # --- definitions ---------------------------------------------------------------------------------

    def _definitions(self, *, through: bool = False) -> Definitions:
        if self._conversation.transaction is not None:
            self._note("a definition takes effect at once, and stays if the transaction is rolled back")
        return Definitions(self._database, self.variables, partial(self._work.wait, through=through), self.user)

    def _guard(self) -> Guard:
        return Guard(self._catalog, self._me(), self.variables.search_path)

    def _alter(self) -> Alter:
        return Alter(Definitions(self._database, self.variables, self._work.wait, self.user))

    def _creation(self) -> Creation:
        # What an epoch makes of a statement that is cancelled has to be known, so that it can be taken away again.
        definitions = partial(self._definitions, through=True)
        return Creation(self._database, self.variables, definitions, self._work, lambda notice: self.on_notice(notice))

    def _create_table_as(self, statement: ast.CreateTableAs, text: str) -> Result:
        bound = self._reading().bound(ast.Select(statement.query))
        in_transaction = self._conversation.transaction is not None
        count = create_table_of_query(
            statement, text, bound, self._definitions(), self._dml(), in_transaction=in_transaction
        )
        if count is None:
            self._note(f'relation "{statement.name.name}" already exists, skipping')
            return Result("CREATE_TABLE")
        return Result(f"SELECT {count}")

    def _job_control(self, statement: ast.Recover | ast.CancelJobs | ast.Pause | ast.Resume) -> Result:
        match statement:
            case ast.Recover():
                self._work.wait(self._database.recover())
                return Result("RECOVER")
            case ast.Pause():
                self._database.set_paused(True)
                return Result("PAUSE")
            case ast.Resume():
                self._database.set_paused(False)
                return Result("RESUME")
            case ast.CancelJobs():
                return self._creation().cancel(statement)

    def _alter_system(self, statement: ast.AlterSystemSet) -> Result:
        self.variables = alter_system(self._database, self._work, self.variables, statement)
        return Result("ALTER_SYSTEM")

    # ------------------------------------------------------------------------------------------------

    def _say_why(self) -> None:
        """Tells the client why its statement waits, where that is not the statement's own doing."""
        if self._database.coordinator.paused:
            self.on_notice("the database is paused: the statement goes on after RESUME")

    def _note(self, notice: str | None) -> None:
        if notice is not None:
            self._notices.append(notice)


def shown_text(parsed: ast.ParsedStatement) -> str:
    """A statement as others may see it: without the password or the secret that it may hold."""
    match parsed.statement:
        case ast.CreateSecret(name):
            return f"CREATE SECRET {name}"
        case ast.AlterSecret(name):
            return f"ALTER SECRET {name}"
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
