"""A harbour without an engine: sessions that answer from memory, and a server in front of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlglot import exp

from seiche.errors import (
    DivisionByZero,
    InvalidLoginName,
    QueryCanceled,
    SeicheError,
    UndefinedDatabase,
    UndefinedStatement,
    UndefinedTable,
)
from seiche.model import Column
from seiche.server.backend import with_settings
from seiche.server.server import Server, ServerOptions
from seiche.session.copying import CopiedRows
from seiche.session.describe import Description
from seiche.session.result import Piece, Result, RowReader
from seiche.session.variables import Variables
from seiche.sql import statements as ast
from seiche.sql.bind import BoundRelation, OutputColumn, Settings, bind_query
from seiche.sql.parameters import Parameters
from seiche.types import BIGINT, VARCHAR, Kind, SqlType

SHIPS = (Column("id", BIGINT), Column("name", VARCHAR))
_READ: dict[Kind, Callable[[str], Any]] = {
    Kind.SMALLINT: int,
    Kind.INTEGER: int,
    Kind.BIGINT: int,
    Kind.DOUBLE: float,
    Kind.REAL: float,
    Kind.NUMERIC: Decimal,
    Kind.BOOLEAN: lambda text: text in ("t", "true"),
    Kind.DATE: date.fromisoformat,
    Kind.TIMESTAMP: datetime.fromisoformat,
    Kind.TIMESTAMPTZ: datetime.fromisoformat,
    Kind.BYTEA: lambda text: bytes.fromhex(text.removeprefix("\\x")),
}


def _constant(node: Any) -> Any:
    """The value of a projection that is a constant, perhaps cast and named."""
    while not isinstance(node, exp.Literal | exp.Null):
        node = node.this
    if isinstance(node, exp.Null):
        return None
    return node.name if node.is_string else int(node.name)


class _Names:
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        if parts[-1] != "ships":
            raise UndefinedTable(f'relation "{parts[-1]}" does not exist')
        return BoundRelation(1, "ships", SHIPS, None, "r1")


class FakeSession:
    """Knows `ships`, echoes parameters, counts (`SELECT … FROM generate_series(1, n)`), sleeps and fails."""

    def __init__(self, ships: list[tuple[int, str | None]], scratch: Path) -> None:
        self.variables = Variables()
        self.on_notice: Callable[[str], None] = lambda _: None
        self.on_hangup: Callable[[], None] = lambda: None
        self.transaction_status = "I"
        self.is_superuser = True
        self.ships = ships
        self.cancelled = threading.Event()
        self.closed = False
        self.produced = 0
        self.arrival: Future[None] = Future()  # of what a FETCH waits for
        self._scratch = scratch

    def describe(self, parsed: ast.ParsedStatement, types: Sequence[SqlType | None]) -> Description:
        parameters = Parameters(types)
        columns = None
        if isinstance(parsed.statement, ast.Select):
            columns = self._bound(parsed.statement, parameters)
        return Description(parameters.types(), columns)

    def _bound(self, statement: ast.Select, parameters: Parameters) -> tuple[OutputColumn, ...]:
        return bind_query(statement.query.tree, _Names(), Settings(now_ms=0, parameters=parameters)).columns

    def start(self, parsed: ast.ParsedStatement, types: Sequence[SqlType], values: Sequence[str | None]) -> Result:
        self.cancelled.clear()
        match parsed.statement:
            case ast.Select() as select:
                return self._select(select, parsed.text, types, values)
            case ast.CopyTo():
                result = self._select(ast.Select(parsed.statement.query), "from ships", types, values)
                result.tag = "COPY"
                return result
            case ast.Begin():
                self.transaction_status = "T"
                return Result("BEGIN")
            case ast.Commit() | ast.Rollback():
                tag = "ROLLBACK" if self.transaction_status == "E" else "COMMIT"
                self.transaction_status = "I"
                return Result(tag)
            case ast.SetVariable(name, value):
                self.variables = self.variables.with_value(name, value)
                return Result("SET")
            case ast.Deallocate(str() as name):
                raise UndefinedStatement(f'prepared statement "{name}" does not exist')
            case ast.FetchCursor(options=options):
                assert not options, "the server has waited already"
                arrived = self.arrival.done() and not self.arrival.cancelled()
                return Result("FETCH", (OutputColumn("id", "id", BIGINT),), _rows=[(7,)] if arrived else [])
            case ast.Flush():
                self.on_notice("the tide is coming in")
                return Result("FLUSH")
            case other:
                return Result(type(other).__name__.upper())

    def write(self, stretch: Sequence[ast.ParsedStatement]) -> tuple[list[Result], SeicheError | None]:
        done: list[Result] = []
        for parsed in stretch:
            if "broken" in parsed.text:
                return done, DivisionByZero("division by zero")
            done.append(self.start(parsed, (), ()))
        return done, None

    def _select(self, select: ast.Select, text: str, types: Sequence[SqlType], values: Sequence[str | None]) -> Result:
        columns = self._bound(select, Parameters(types, values))
        lowered = text.lower()
        if "1/0" in lowered.replace(" ", ""):
            raise DivisionByZero("division by zero")
        if "broken" in lowered:
            raise ZeroDivisionError("a secret of the server's inside")
        if "pg_sleep" in lowered or "'sleep'" in lowered:
            if self.cancelled.wait(20):
                raise QueryCanceled("canceling statement due to user request")
        if "generate_series" in lowered:
            return Result("SELECT", columns, _pieces=lambda: self._count(int(lowered.split(",")[1].split(")")[0])))
        if "from ships" in lowered:
            return Result("SELECT", columns, _rows=[tuple(ship)[: len(columns)] for ship in self.ships])
        if values:
            row = tuple(
                None if value is None else _READ.get(type_.kind, str)(value)
                for value, type_ in zip(values, types, strict=True)
            )
            return Result("SELECT", columns, _rows=[row])
        return Result("SELECT", columns, _rows=[tuple(map(_constant, select.query.tree.expressions))])

    def _count(self, until: int) -> Iterator[Piece]:
        for start in range(1, until + 1, 1000):
            numbers = list(range(start, min(start + 1000, until + 1)))
            self.produced += len(numbers)
            yield [numbers], len(numbers)

    def take(self, reader: RowReader, limit: int | None, *, first: bool) -> Piece | None:
        return reader.take(limit)

    def cursor_columns(self, name: str) -> Sequence[OutputColumn] | None:
        return None

    def rows_coming(self, statement: ast.FetchCursor) -> tuple[Future[None], float] | None:
        if self.arrival.cancelled():
            self.arrival = Future()
        return self.arrival, float(dict(statement.options)["timeout"].removesuffix("s"))

    def begin_copy(self, statement: ast.CopyFrom) -> CopiedRows:
        return CopiedRows(SHIPS, self._scratch)

    def finish_copy(self, statement: ast.CopyFrom, rows: CopiedRows) -> Result:
        rows._pack()
        for batch in rows._batches:
            cells = [column.to_pylist() for column in batch.columns]
            self.ships.extend((int(number), name) for number, name in zip(*cells, strict=True))
        return Result(f"COPY {rows.count}")

    def fail_transaction(self) -> None:
        if self.transaction_status == "T":
            self.transaction_status = "E"

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        self.closed = True


class FakeBackend:
    """Users by name, with the verifier of their password."""

    def __init__(self, scratch: Path, users: Mapping[str, str | None] | None = None) -> None:
        self.users = dict(users or {"root": None})
        self.sessions: list[FakeSession] = []
        self.ships: list[tuple[int, str | None]] = [(1, "Aurora"), (2, None)]
        self._scratch = scratch

    def has_user(self, user: str) -> bool:
        return user in self.users

    def verifier(self, user: str) -> str | None:
        if user not in self.users:
            raise InvalidLoginName(f'role "{user}" does not exist')
        return self.users[user]

    def open(self, user: str, database: str, settings: Mapping[str, str]) -> FakeSession:
        if database != "dev":
            raise UndefinedDatabase(f'database "{database}" does not exist')
        session = FakeSession(self.ships, self._scratch)
        session.variables = with_settings(session.variables, settings)
        self.sessions.append(session)
        return session


class RunningServer:
    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.port = server.port
        self._loop = loop

    def call(self, work: Callable[[], Any]) -> Any:
        """The value of a function called on the server's loop."""

        async def called() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(called(), self._loop).result(10)

    def until(self, condition: Callable[[], bool], seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.call(condition):
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.01)


@contextmanager
def running_server(backend: Any, **options: Any) -> Iterator[RunningServer]:
    """A server on a free port, on an event loop of its own thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="server", daemon=True)
    thread.start()

    async def start() -> Server:
        server = Server(backend, ServerOptions(**{"port": 0, "threads": 8, **options}))
        await server.start()
        return server

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    try:
        yield RunningServer(server, loop)
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()
