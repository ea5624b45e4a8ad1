"""One client: moves bytes between its socket and the protocol, and runs what it asks on the server's threads.

    socket ─▶ Connection.step ─▶ an action ─▶ a thread of the pool: parse, run, fetch and encode ─▶ socket

While a thread works for the client the socket is watched: a client that goes away cancels its statement. While the
client does not read, nothing is fetched for it and no thread waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, TypeVar, assert_never

from seiche.errors import (
    EngineStopped,
    FeatureNotSupported,
    InternalError,
    InvalidLoginName,
    QueryCanceled,
    SeicheError,
    StatementTooComplex,
    SyntaxError_,
    TooManyConnections,
    TransactionState,
)
from seiche.server import connection as protocol
from seiche.server import copy
from seiche.server import messages as wire
from seiche.server.backend import Backend, Conversation
from seiche.server.connection import Connection, Portal, Prepared
from seiche.server.scram import Verifier
from seiche.server.types import encode_column, type_of_oid
from seiche.session.result import Piece, Result, RowReader
from seiche.session.together import stretches
from seiche.session.variables import VARIABLES
from seiche.sql import statements as ast
from seiche.sql.parse import parse

log = logging.getLogger(__name__)

T = TypeVar("T")
READ_BYTES = 65_536
AHEAD_BYTES = 1024 * 1024  # of further messages, read while a statement runs
LOGIN_SECONDS = 30.0

# What a client is told of its session's settings, by the names PostgreSQL gives them.
REPORTED = {
    "server_version": "server_version",
    "server_encoding": "server_encoding",
    "client_encoding": "client_encoding",
    "application_name": "application_name",
    "DateStyle": "datestyle",
    "IntervalStyle": "intervalstyle",
    "TimeZone": "timezone",
    "standard_conforming_strings": "standard_conforming_strings",
}
_FIXED = {"integer_datetimes": "on", "default_transaction_read_only": "off"}


class House(Protocol):
    """The server, as far as its clients know it."""

    backend: Backend
    tls: ssl.SSLContext | None
    pepper: bytes

    def admit(self, client: Client) -> tuple[int, int]:
        """A place among the connections: the number and the secret to cancel by. Raises TooManyConnections."""
        ...

    def leave(self, client: Client) -> None: ...

    def cancel(self, process: int, secret: int) -> None: ...

    def trusts(self, peer: str) -> bool:
        """Whether a user without a password may come from this address."""
        ...

    async def run(self, work: Callable[[], T]) -> T:
        """Runs the work on a thread of the pool."""
        ...


class Gone(Exception):
    """The client has hung up."""


class Client:
    def __init__(self, house: House, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._house = house
        self._reader = reader
        self._writer = writer
        self._connection = Connection(tls=house.tls is not None)
        self._login: protocol.Login | None = None
        self._reported: dict[str, str] = {}
        self._stopping: SeicheError | None = None
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._busy = False
        self._in_statement = False
        self._cancelled = False
        self._awaited: asyncio.Future[None] | None = None  # what a FETCH waits for, without a thread
        self.session: Conversation | None = None
        peer = writer.get_extra_info("peername")
        self.peer = str(peer[0]) if isinstance(peer, tuple) else ""

    # --- the conversation --------------------------------------------------------------------------------

    async def serve(self) -> None:
        """Until the client leaves or is sent away."""
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                welcome = await self._enter()
            while welcome and await self._act(await self._next()):
                pass
            await self._flush()
        except (Gone, ConnectionError, ssl.SSLError, TimeoutError):
            pass  # nobody is left to be told
        finally:
            await self._leave()

    async def stop(self, reason: SeicheError) -> None:
        """Ends the connection: the statement that runs is cancelled, the client is told why."""
        self._stopping = reason
        if self._awaited is not None:
            self._awaited.cancel()
        elif self._busy and self.session is not None:
            await asyncio.to_thread(self.session.cancel)
        elif self._task is not None:
            self._task.cancel()

    async def cancel(self) -> None:
        """Stops the statement under way, also while its rows are being sent and no thread works on it."""
        if self._in_statement and self.session is not None:
            self._cancelled = True
            if self._awaited is not None:
                self._awaited.cancel()
            await asyncio.to_thread(self.session.cancel)

    async def _leave(self) -> None:
        if self._stopping is not None and self._connection.phase is not protocol.Phase.ENDED:
            self._connection.end_with(self._stopping)
        with suppress(ConnectionError, ssl.SSLError, RuntimeError):
            self._writer.write(self._connection.take_output())
        self._connection.close_portals()
        if self.session is not None:
            session, self.session = self.session, None
            await asyncio.shield(asyncio.to_thread(session.close))
        self._house.leave(self)
        self._writer.close()
        with suppress(ConnectionError, ssl.SSLError, TimeoutError):
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()

    async def _next(self) -> protocol.Action:
        """The next action; waits for bytes as long as it takes."""
        while True:
            if self._stopping is not None:
                self._connection.end_with(self._stopping)
            action = self._connection.step()
            if action is not None:
                return action
            await self._flush()
            data = await self._reader.read(READ_BYTES)
            if not data:
                raise Gone
            self._connection.receive(data)

    async def _flush(self) -> None:
        out = self._connection.take_output()
        if out:
            self._writer.write(out)
            await self._writer.drain()

    async def _work(self, work: Callable[[], T]) -> T:
        """Runs the work on a thread, watching the socket. What is not an error of ours becomes one."""
        watcher = asyncio.create_task(self._watch())
        self._busy = True
        try:
            return await self._house.run(work)
        except SeicheError:
            raise
        except RecursionError as error:
            raise StatementTooComplex("statement is nested too deeply") from error
        except Exception as error:
            log.exception("a statement failed in a way nobody foresaw")
            raise InternalError("internal error", hint="The server's log tells more.") from error
        finally:
            self._busy = False
            watcher.cancel()
            await asyncio.wait([watcher])  # only one may read from a socket at a time

    async def _watch(self) -> None:
        """Reads ahead while a thread works; a client that is gone cancels what it asked for."""
        while self._connection.buffered < AHEAD_BYTES:
            try:
                data = await self._reader.read(READ_BYTES)
            except (ConnectionError, ssl.SSLError):
                data = b""
            if not data:
                if self.session is not None:
                    await asyncio.to_thread(self.session.cancel)
                return
            self._connection.receive(data)

    # --- coming in ---------------------------------------------------------------------------------------

    async def _enter(self) -> bool:
        """Whether the client is in."""
        while True:
            action = await self._next()
            match action:
                case protocol.StartTls():
                    await self._flush()
                    assert self._house.tls is not None
                    await self._writer.start_tls(self._house.tls)
                case protocol.Cancel(process, secret):
                    self._house.cancel(process, secret)
                    return False
                case protocol.Login():
                    self._login = action
                    if await self._check_user(action.user):
                        return await self._welcome()
                case protocol.PasswordRight():
                    return await self._welcome()
                case _:
                    return False

    async def _check_user(self, user: str) -> bool:
        """Whether the user may come in without a password; else one was asked for, or the connection ends."""
        verifier = self._house.backend.verifier(user) if self._house.backend.has_user(user) else None
        if verifier is not None:
            self._connection.ask_password(Verifier.parse(verifier))
            return False
        if self._house.trusts(self.peer):
            return True
        self._connection.ask_password(Verifier.of_nobody(user, self._house.pepper))
        return False

    async def _welcome(self) -> bool:
        assert self._login is not None
        login = self._login
        try:
            if not self._house.backend.has_user(login.user):
                raise InvalidLoginName(f'role "{login.user}" does not exist')
            process, secret = self._house.admit(self)
            self.session = await self._work(
                lambda: self._house.backend.open(login.user, login.database, login.settings)
            )
        except (SeicheError, TooManyConnections) as error:
            self._connection.end_with(error)
            return False
        self.session.on_notice = self._notice_from_thread
        self.session.on_hangup = self._hang_up_from_thread
        self._connection.timezone = self.session.variables.get("timezone")
        self._connection.cursor_columns = self.session.cursor_columns
        self._reported = self._settings()
        who = {"session_authorization": login.user, "is_superuser": "on" if self.session.is_superuser else "off"}
        statuses = [*self._reported.items(), *_FIXED.items(), *who.items()]
        self._connection.welcome(statuses, process, secret)
        return True

    def _settings(self) -> dict[str, str]:
        assert self.session is not None
        return {shown: self.session.variables.get(name) for shown, name in REPORTED.items() if name in VARIABLES}

    def _notice_from_thread(self, text: str) -> None:
        self._loop.call_soon_threadsafe(self._notice, text)

    def _hang_up_from_thread(self) -> None:
        """Another session sends this client away."""
        reason = EngineStopped("terminating connection due to administrator command")
        asyncio.run_coroutine_threadsafe(self.stop(reason), self._loop)

    def _notice(self, text: str) -> None:
        if self.session is None or not self.session.variables.wants_notices:
            return
        self._connection.notice(text)
        if not self._writer.is_closing():
            self._writer.write(self._connection.take_output())

    # --- statements --------------------------------------------------------------------------------------

    async def _act(self, action: protocol.Action) -> bool:
        """Whether the conversation goes on."""
        match action:
            case protocol.RunText(text):
                await self._run_text(text)
            case protocol.Prepare():
                await self._guarded(lambda: self._prepare(action))
            case protocol.RunPortal(portal, rows_max):
                await self._guarded(lambda: self._run_portal(portal, rows_max))
            case protocol.Refused(error, ready):
                self._refuse(error)
                if ready:
                    self._connection.ready()
            case protocol.CopyChunk() | protocol.CopyEnd() | protocol.CopyAbort():
                pass  # of a COPY that has ended already
            case protocol.Hangup():
                return False
            case protocol.StartTls() | protocol.Cancel() | protocol.Login() | protocol.PasswordRight():
                return False
            case _:
                assert_never(action)
        return True

    async def _guarded(self, work: Callable[[], Any]) -> None:
        assert self.session is not None
        self._in_statement, self._cancelled = True, False
        try:
            await work()
        except SeicheError as error:
            self._refuse(error)
        finally:
            self._in_statement = False
        self._report_state()

    def _refuse(self, error: SeicheError) -> None:
        """Tells an error, which ends the work of a transaction block."""
        assert self.session is not None
        self.session.fail_transaction()
        self._connection.fail(error)
        self._report_state()

    def _report_state(self) -> None:
        """Tells the settings that changed, and keeps the transaction's status."""
        assert self.session is not None
        self._connection.transaction = self.session.transaction_status
        self._connection.timezone = self.session.variables.get("timezone")
        now = self._settings()
        for name, value in now.items():
            if self._reported.get(name) != value:
                self._connection.status(name, value)
        self._reported = now

    async def _run_text(self, text: str) -> None:
        async def run() -> None:
            statements = await self._work(lambda: parse(text))
            if not statements:
                self._connection.empty()
            for stretch in stretches(statements):
                if len(stretch) == 1:
                    await self._run(stretch[0], (), (), None)
                else:
                    await self._write(stretch)
                self._report_state()

        await self._guarded(run)
        self._connection.ready()

    async def _write(self, stretch: list[ast.ParsedStatement]) -> None:
        """Statements that take effect together. Those before the one that failed are told too, as by PostgreSQL."""
        assert self.session is not None
        session = self.session
        results, error = await self._work(lambda: session.write(stretch))
        for result in results:
            for notice in result.notices if session.variables.wants_notices else ():
                self._connection.notice(notice)
            self._connection.complete(result.tag)
        if error is not None:
            raise error

    async def _prepare(self, action: protocol.Prepare) -> None:
        assert self.session is not None
        session = self.session

        def prepare() -> Prepared:
            types = [type_of_oid(oid) for oid in action.oids]
            statements = parse(action.text)
            if len(statements) > 1:
                raise SyntaxError_(
                    "cannot insert multiple commands into a prepared statement", hint="Prepare one at a time."
                )
            if not statements:
                return Prepared(None)
            found = session.describe(statements[0], types)
            oids = [*action.oids, *[0] * (len(found.parameters) - len(action.oids))]
            return Prepared(statements[0], found.parameters, found.columns, tuple(oids))

        self._connection.prepared(action.name, await self._work(prepare))

    async def _run_portal(self, portal: Portal, rows_max: int) -> None:
        prepared = portal.prepared
        if isinstance(portal.rows, RowReader):
            await self._send_rows(portal.rows, portal.formats, rows_max, portal)
        else:
            await self._run(prepared.statement, prepared.parameters, portal.values, portal, rows_max)

    async def _run(
        self,
        parsed: ast.ParsedStatement,
        types: Sequence[Any],
        values: Sequence[str | None],
        portal: Portal | None,
        rows_max: int = 0,
    ) -> None:
        assert self.session is not None
        session = self.session
        match parsed.statement:
            case ast.CopyFrom() as statement:
                return await self._copy_in(statement)
            case ast.Deallocate(str() as name) if name in self._connection.statements:
                self._refuse_if_failed()
                del self._connection.statements[name]
                return self._connection.complete("DEALLOCATE")
            case ast.FetchCursor() as statement if statement.options:
                await self._until_rows(statement)
                parsed = replace(parsed, statement=replace(statement, options=()))
            case ast.Deallocate(None) | ast.Discard(True):
                self._connection.statements.clear()
            case _:
                pass
        result = await self._work(lambda: session.start(parsed, types, values))
        for notice in result.notices if self.session.variables.wants_notices else ():
            self._connection.notice(notice)
        match parsed.statement:
            case ast.CopyTo(format=format):
                return await self._copy_out(result, format)
            case _ if result.columns is None:
                self._connection.complete(result.tag)
                if portal is not None:
                    portal.tag = result.tag
                return None
        formats: Sequence[int] = ()
        if portal is None:
            self._connection.describe(result.columns)
        else:
            formats = portal.formats
            _refuse_other_columns(portal, result)
        reader = RowReader(result)
        if portal is not None:
            portal.rows = reader
        return await self._send_rows(reader, formats, rows_max, portal)

    async def _until_rows(self, statement: ast.FetchCursor) -> None:
        """Waits as long as a FETCH may for rows to come. No thread waits with it."""
        assert self.session is not None
        waiting = self.session.rows_coming(statement)
        if waiting is None:
            return
        limit_ms = self.session.variables.integer("statement_timeout")
        seconds = min(waiting[1], limit_ms / 1000) if limit_ms else waiting[1]
        coming, watcher = asyncio.wrap_future(waiting[0]), asyncio.create_task(self._watch())
        self._awaited = coming
        try:
            until = self._loop.time() + seconds
            await asyncio.wait([coming, watcher], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if watcher.done() and self._reader.at_eof():
                raise Gone
            rest = max(until - self._loop.time(), 0)  # a client that sent much is no longer watched
            await asyncio.wait([coming], timeout=rest)
            came = coming.done()
        finally:
            self._awaited = None
            coming.cancel()
            watcher.cancel()
            await asyncio.wait([watcher])
        if self._cancelled or self._stopping is not None:
            raise QueryCanceled("canceling statement due to user request")
        if not came and seconds < waiting[1]:
            raise QueryCanceled("canceling statement due to statement timeout")

    def _refuse_if_failed(self) -> None:
        if self._connection.transaction == "E":
            raise TransactionState(
                "current transaction is aborted, commands ignored until end of transaction block", sqlstate="25P02"
            )

    async def _send_rows(self, reader: RowReader, formats: Sequence[int], rows_max: int, portal: Portal | None) -> None:
        """The rows that are left, at most `rows_max` if that is not 0."""
        columns, timezone, sent = reader.columns, self._connection.timezone, 0
        try:
            async for piece, count in self._pieces(
                reader, rows_max, lambda piece: _encoded(columns, piece, formats, timezone)
            ):
                sent += count
                self._connection.send(piece)
                await self._flush()
        except BaseException:
            reader.close()
            raise
        if rows_max and sent == rows_max:
            self._connection.suspended()
            return
        reader.close()
        tag = reader.result.tag_for(sent)
        if portal is not None:
            portal.tag, portal.rows = tag, None
        self._connection.complete(tag)

    async def _pieces(self, reader: RowReader, rows_max: int, encode: Callable[[Piece], bytes]) -> Any:
        """Pieces of rows, encoded by a thread, with how many rows each has."""
        assert self.session is not None
        session, left, first = self.session, rows_max or None, True

        def next_piece(limit: int | None, first: bool) -> tuple[bytes, int] | None:
            piece = session.take(reader, limit, first=first)
            return None if piece is None else (encode(piece), piece[1])

        while left is None or left > 0:
            if self._cancelled:
                raise QueryCanceled("canceling statement due to user request")
            found = await self._work(lambda limit=left, first=first: next_piece(limit, first))  # type: ignore[misc]
            if found is None:
                return
            first = False
            if left is not None:
                left -= found[1]
            yield found

    # --- COPY --------------------------------------------------------------------------------------------

    async def _copy_out(self, result: Result, format: ast.CopyFormat) -> None:
        columns, timezone, sent = result.columns or (), self._connection.timezone, 0
        names, types = [column.name for column in columns], [column.type for column in columns]
        # In the binary format the header is part of the first row's message, as drivers expect it.
        head = copy.head(format, names)
        self._connection.begin_copy_out(int(format.form is ast.CopyForm.BINARY), len(columns))
        if head and format.form is ast.CopyForm.CSV:
            self._connection.copy_data(head)
            head = b""
        reader = RowReader(result)

        def encode(piece: Piece) -> bytes:
            nonlocal head
            lines = copy.rows(format, names, types, piece[0], piece[1], timezone)
            if head and lines:
                lines[0], head = head + lines[0], b""
            return b"".join(map(wire.copy_data, lines))

        try:
            async for messages, count in self._pieces(reader, 0, encode):
                sent += count
                self._connection.send(messages)
                await self._flush()
        finally:
            reader.close()
        tail = head + copy.tail(format)
        if tail:
            self._connection.copy_data(tail)
        self._connection.end_copy_out()
        self._connection.complete(f"COPY {sent}")

    async def _copy_in(self, statement: ast.CopyFrom) -> None:
        assert self.session is not None
        session = self.session
        rows = await self._work(lambda: session.begin_copy(statement))
        names, types = [column.name for column in rows.columns], [column.type for column in rows.columns]
        parser = copy.reader(statement.format, names, types)
        self._connection.begin_copy_in(int(statement.format.form is ast.CopyForm.BINARY), len(rows.columns))
        try:
            while True:
                action = await self._next()
                match action:
                    case protocol.CopyChunk(data):
                        await self._work(lambda data=data: rows.add(parser.feed(data)))  # type: ignore[misc]
                    case protocol.CopyEnd():
                        break
                    case protocol.CopyAbort(reason):
                        raise QueryCanceled(reason)
                    case _:
                        raise Gone

            def finish() -> Result:
                rows.add(parser.finish())
                return session.finish_copy(statement, rows)

            result = await self._work(finish)
        finally:
            self._connection.end_copy_in()
            await asyncio.shield(asyncio.to_thread(rows.close))
        self._connection.complete(result.tag)


def _encoded(columns: Sequence[Any], piece: Piece, formats: Sequence[int], timezone: str) -> bytes:
    values, count = piece
    spread = formats or [0] * len(columns)
    encoded = [
        encode_column(each, column.type, format, timezone)
        for each, column, format in zip(values, columns, spread, strict=True)
    ]
    return wire.data_rows(encoded, count)


def _refuse_other_columns(portal: Portal, result: Result) -> None:
    """The client was told the columns when it prepared the statement, and reads the rows by that."""
    told, given = portal.prepared.columns or (), result.columns or ()
    if [column.type for column in told] != [column.type for column in given]:
        raise FeatureNotSupported("cached plan must not change result type", hint="Prepare the statement again.")
