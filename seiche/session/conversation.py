"""What the statements of a session change for those after them: variables, cursors, prepared statements and the
transaction block."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field

from seiche.errors import InvalidParameter, TransactionState
from seiche.session.cursors import Cursors
from seiche.session.database import Database
from seiche.session.prepared import PreparedStatements
from seiche.session.result import Result
from seiche.session.subscribed import timeout_ms
from seiche.session.transaction import Transaction, without_local
from seiche.session.variables import DATABASE, Variables, find
from seiche.sql import statements as ast

_DEFINITIONS = (
    ast.CreateTable | ast.CreateTableAs | ast.CreateMaterializedView | ast.CreateSink | ast.CreateView
    | ast.CreateSource | ast.CreateFunction
    | ast.CreateIndex | ast.CreateSchema | ast.CreateDatabase | ast.CreateUser | ast.CreateSubscription | ast.AlterUser
    | ast.AlterDefaultPrivileges | ast.AlterOwner | ast.AlterColumns | ast.AlterRelation | ast.AlterSystemSet
    | ast.Grant | ast.Revoke | ast.Drop | ast.Rename | ast.CommentOn | ast.RefreshView
)  # fmt: skip

_ISOLATION = "transaction_isolation"


@dataclass(slots=True)
class Conversation:
    """Ended by `close`, which rolls an open transaction back."""

    database: Database
    note: Callable[[str], None]
    variables: Variables = field(default_factory=Variables)
    cursors: Cursors = field(default_factory=Cursors)
    prepared: PreparedStatements = field(default_factory=PreparedStatements)
    transaction: Transaction | None = None
    read_only: bool = False

    @property
    def status(self) -> str:
        """I outside a transaction block, T inside one, E inside one that has failed; as PostgreSQL spells it."""
        if self.transaction is None:
            return "I"
        return "E" if self.transaction.failed else "T"

    def fail(self) -> None:
        """A statement failed, and the transaction around it with it, unless that has nothing to undo."""
        if self.transaction is not None and not self.transaction.read_only:
            self.transaction.failed = True

    def refuse_if_failed(self, statement: ast.Statement) -> None:
        ends = isinstance(statement, ast.Commit | ast.Rollback | ast.RollbackTo)
        if self.status == "E" and not ends:
            raise TransactionState(
                "current transaction is aborted, commands ignored until end of transaction block",
                sqlstate="25P02",
                hint="ROLLBACK ends it.",
            )

    def refuse_if_read_only(self, statement: ast.Statement) -> None:
        """Definitions in a read-only block are refused, except for tables that are there already. Rows see to it
        themselves."""
        if self.transaction is None or not isinstance(statement, _DEFINITIONS):
            return
        if isinstance(statement, ast.CreateTable | ast.CreateTableAs) and statement.if_not_exists:
            parts, path = statement.name.parts, self.variables.search_path
            if self.database.catalog.seen_from(self.variables.database).try_find(parts, search_path=path) is not None:
                return
        self.transaction.refuse_if_read_only(re.sub(r"(?<=.)([A-Z])", r" \1", type(statement).__name__).upper())

    def rows_coming(self, statement: ast.FetchCursor) -> tuple[Future[None], float] | None:
        """What a FETCH waits for and for how many seconds at most; None when it does not wait."""
        cursor, wait_ms = self.cursors.subscribed(statement.name), timeout_ms(statement.options)
        if cursor is None or not wait_ms or self.status == "E":
            return None
        return cursor.coming(), wait_ms / 1000

    def close(self) -> None:
        self.cursors.close(None)
        if self.transaction is not None:
            self.transaction.close()
            self.transaction = None

    def block(self, statement: ast.Begin | ast.Commit | ast.Rollback, stop_if_told: Callable[[], None]) -> Result:
        transaction = self.transaction
        match statement:
            case ast.Begin(read_only, isolation):
                if transaction is not None:
                    self.note("there is already a transaction in progress")
                else:
                    self.transaction = Transaction(self.database, self.variables, read_only or self.read_only)
                    self._show_isolation(isolation)
                return Result("BEGIN")
            case ast.Commit() if transaction is not None and not transaction.failed:
                self.transaction = None
                self.cursors.end_transaction()
                self.variables = without_local(self.variables, transaction.local.items())
                transaction.commit(stop_if_told)
                return Result("COMMIT")
            case _:
                if transaction is None:
                    self.note("there is no transaction in progress")
                    return Result("COMMIT" if isinstance(statement, ast.Commit) else "ROLLBACK")
                self.transaction = None
                self.cursors.end_transaction()
                self.variables = transaction.variables
                transaction.close()
                return Result("ROLLBACK")

    def savepoint(self, statement: ast.Savepoint | ast.ReleaseSavepoint | ast.RollbackTo) -> Result:
        transaction = self.transaction
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

    def set_transaction(self, statement: ast.SetTransaction) -> Result:
        if statement.read_only is not None and statement.session:
            self.read_only = statement.read_only
        elif statement.read_only is not None and self.transaction is not None:
            self.transaction.read_only = statement.read_only
        if statement.isolation is not None and statement.session:
            for name in ("default_transaction_isolation", _ISOLATION):
                self.variables = self.variables.with_value(name, statement.isolation)
        elif self.transaction is not None:
            self._show_isolation(statement.isolation)
        return Result("SET")

    def _show_isolation(self, isolation: str | None) -> None:
        """Until the block ends SHOW tells the level that was asked for. Every block reads one epoch, whatever it is."""
        if isolation is not None:
            self.set(ast.SetVariable(_ISOLATION, isolation, local=True))

    def set(self, statement: ast.SetVariable) -> Result:
        if statement.name.lower() == DATABASE:
            return self._set_database(statement)
        if statement.local:
            if self.transaction is None:
                self.note("SET LOCAL can only be used in transaction blocks")
                return Result("SET_VARIABLE")
            name = find(statement.name).name
            self.transaction.local.setdefault(name, self.variables.values.get(name))
        self.variables = self.variables.with_value(statement.name, statement.value)
        return Result("SET_VARIABLE")

    def _set_database(self, statement: ast.SetVariable) -> Result:
        if statement.local:
            raise InvalidParameter('parameter "database" cannot be set for a transaction alone')
        wanted = self.variables.login_database if statement.value is None else statement.value
        self.variables = self.variables.in_database(self.database.catalog.database(wanted).name)
        return Result("SET_VARIABLE")
