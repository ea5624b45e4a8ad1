"""One connection's protocol, without I/O: bytes go in, actions and bytes come out.

    receive(bytes) ─▶ step() ─▶ an Action for whoever owns the session, or None: more bytes are needed
                                  └─ told with the methods below (`described`, `rows`, `fail`, …) ─▶ take_output()

Everything that follows from the protocol alone is decided here: the order of messages, what is skipped after an error
until Sync, which prepared statements and portals exist, and the spelling of every answer. What a statement does, and on
which thread, is not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, TypeAlias, assert_never

from seiche.errors import (
    DuplicateCursor,
    DuplicateStatement,
    FeatureNotSupported,
    InvalidLogin,
    InvalidLoginName,
    ObjectNotReady,
    ProtocolViolation,
    SeicheError,
    UndefinedCursor,
    UndefinedStatement,
)
from seiche.server import messages as wire
from seiche.server.scram import MECHANISM, Exchange, Verifier
from seiche.server.types import field_of, oid_of, text_of
from seiche.types import SqlType

log = logging.getLogger(__name__)

# A client that opens portals or statements without end is stopped here.
NAMES_MAX = 10_000


class Closeable(Protocol):
    def close(self) -> None: ...


class OutputColumn(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def type(self) -> SqlType: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """`statement` is None for an empty text; `columns` is None for a statement without rows."""

    statement: Any
    parameters: tuple[SqlType, ...] = ()
    columns: tuple[OutputColumn, ...] | None = None
    oids: tuple[int, ...] = ()  # as the client named them, 0 where it did not


@dataclass(slots=True)
class Portal:
    """A statement with values. `rows` is where its execution stands, once it has begun."""

    prepared: Prepared
    values: tuple[str | None, ...]
    formats: tuple[int, ...]
    rows: Closeable | None = None
    tag: str | None = None  # set when it has run to its end

    def close(self) -> None:
        if self.rows is not None:
            self.rows.close()
            self.rows = None


# --- what is left to the caller ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartTls:
    """Answered already; the next bytes are TLS."""


@dataclass(frozen=True, slots=True)
class Cancel:
    process: int
    secret: int


@dataclass(frozen=True, slots=True)
class Login:
    """Answer with `ask_password`, `welcome` or `end_with`."""

    user: str
    database: str
    settings: dict[str, str]


@dataclass(frozen=True, slots=True)
class PasswordRight:
    """Answer with `welcome` or `end_with`."""


@dataclass(frozen=True, slots=True)
class RunText:
    """Answer with the results, then `ready`."""

    text: str


@dataclass(frozen=True, slots=True)
class Prepare:
    """Answer with `prepared` or `fail`."""

    name: str
    text: str
    oids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunPortal:
    portal: Portal
    rows_max: int


@dataclass(frozen=True, slots=True)
class Refused:
    """What was asked for is wrong by the protocol alone. Answer with `fail`, and with `ready` where that is next."""

    error: SeicheError
    ready: bool = False


@dataclass(frozen=True, slots=True)
class CopyChunk:
    data: bytes


@dataclass(frozen=True, slots=True)
class CopyEnd:
    pass


@dataclass(frozen=True, slots=True)
class CopyAbort:
    reason: str


@dataclass(frozen=True, slots=True)
class Hangup:
    """Send what waits and close."""


Action: TypeAlias = (
    StartTls
    | Cancel
    | Login
    | PasswordRight
    | RunText
    | Prepare
    | RunPortal
    | Refused
    | CopyChunk
    | CopyEnd
    | CopyAbort
    | Hangup
)


class Phase(Enum):
    STARTUP = "startup"
    LOGIN = "login"  # the caller decides
    SASL_FIRST = "sasl, first message"
    SASL_FINAL = "sasl, last message"
    QUERY = "query"
    COPY_IN = "copy in"
    ENDED = "ended"


@dataclass(slots=True)
class _Login:
    user: str
    exchange: Exchange | None = None


def _no_cursor(name: str) -> None:
    """Before there is a session."""


@dataclass(slots=True)
class Connection:
    """`tls` tells whether TLS can be offered. `transaction` is I, T or E and kept right by the caller.

    `cursor_columns` knows the cursors that were made by DECLARE: to clients these are portals, too.
    """

    tls: bool = False
    phase: Phase = Phase.STARTUP
    transaction: str = "I"
    timezone: str = "UTC"
    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    cursor_columns: Callable[[str], Sequence[OutputColumn] | None] = _no_cursor
    _decoder: wire.Decoder = field(default_factory=wire.Decoder)
    _out: bytearray = field(default_factory=bytearray)
    _login: _Login = field(default_factory=lambda: _Login(""))
    _encrypted: bool = False
    _extended: bool = False  # the message under way is one of the extended protocol
    _skipping: bool = False  # until Sync, after an error there

    # --- bytes -----------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        if self.phase is not Phase.ENDED:
            self._decoder.feed(data)

    @property
    def buffered(self) -> int:
        return self._decoder.buffered

    def take_output(self) -> bytes:
        out = bytes(self._out)
        self._out.clear()
        return out

    @property
    def pending_output(self) -> int:
        return len(self._out)

    # --- messages --------------------------------------------------------------------------------------

    def step(self) -> Action | None:
        """The next thing to do, or None until more bytes arrive. Never raises for what a client sent."""
        try:
            while True:
                if self.phase is Phase.ENDED:
                    return Hangup()
                if self.phase is Phase.STARTUP:
                    first = self._decoder.next_first()
                    action = None if first is None else self._first(first)
                    if first is None or action is not None:
                        return action
                    continue
                message = self._decoder.next()
                if message is None:
                    return None
                action = self._message(message)
                if action is not None:
                    return action
        except ProtocolViolation as error:
            self.end_with(error)
            return Hangup()

    def _first(self, message: wire.First) -> Action | None:
        match message:
            case wire.SslRequest():
                if not self.tls or self._encrypted:
                    self._out += b"N"
                    return None
                if self.buffered:
                    # Somebody in between could have put these bytes before the encrypted ones.
                    raise ProtocolViolation("received unencrypted data after SSL request")
                self._out += b"S"
                self._encrypted = True
                return StartTls()
            case wire.GssRequest():
                self._out += b"N"
                return None
            case wire.CancelRequest(process, secret):
                self.phase = Phase.ENDED
                return Cancel(process, secret)
            case wire.Startup(parameters, minor):
                return self._startup(dict(parameters), minor)
            case _:
                assert_never(message)

    def _startup(self, parameters: dict[str, str], minor: int) -> Action:
        extensions = [name for name in parameters if name.startswith("_pq_.")]
        if minor or extensions:
            self._out += wire.negotiate_protocol_version(extensions)
        user = parameters.pop("user", "")
        if not user:
            self.end_with(InvalidLoginName("no PostgreSQL user name specified in startup packet"))
            return Hangup()
        if parameters.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
            self.end_with(FeatureNotSupported("replication connections are not offered"))
            return Hangup()
        database = parameters.pop("database", "") or user
        self._login = _Login(user)
        self.phase = Phase.LOGIN
        return Login(user, database, {name: value for name, value in parameters.items() if name not in extensions})

    def _message(self, message: wire.Message) -> Action | None:
        match self.phase:
            case Phase.SASL_FIRST | Phase.SASL_FINAL:
                return self._sasl(message)
            case Phase.COPY_IN:
                return self._in_copy(message)
            case Phase.QUERY:
                return self._query(message)
            case _:
                raise ProtocolViolation(f"a message arrived during {self.phase.value}")

    def _sasl(self, message: wire.Message) -> Action | None:
        if not isinstance(message, wire.Password):
            raise ProtocolViolation("expected a password response")
        exchange = self._login.exchange
        assert exchange is not None
        try:
            if self.phase is Phase.SASL_FIRST:
                mechanism, zero, rest = message.data.partition(b"\0")
                if mechanism != MECHANISM.encode() or not zero or len(rest) < 4:
                    raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
                self._out += wire.authentication_sasl_continue(exchange.first(rest[4:]))
                self.phase = Phase.SASL_FINAL
                return None
            self._out += wire.authentication_sasl_final(exchange.final(message.data))
        except InvalidLogin as error:
            self.end_with(error)
            return Hangup()
        self.phase = Phase.LOGIN
        return PasswordRight()

    def _query(self, message: wire.Message) -> Action | None:
        if isinstance(message, wire.Terminate):
            self.phase = Phase.ENDED
            return Hangup()
        if self._skipping and not isinstance(message, wire.Sync):
            return None
        self._extended = True
        try:
            match message:
                case wire.Query(text):
                    self._extended = False
                    self._drop_portal("")
                    return RunText(text)
                case wire.Parse(name, text, types):
                    return self._parse(name, text, types)
                case wire.Bind():
                    self._bind(message)
                case wire.Describe(kind, name):
                    self._describe(kind, name)
                case wire.Execute(name, rows_max):
                    return self._execute(name, rows_max)
                case wire.Close(kind, name):
                    if kind == "S":
                        self.statements.pop(name, None)
                    else:
                        self._drop_portal(name)
                    self._out += wire.close_complete()
                case wire.Sync():
                    self._skipping = False
                    self.ready()
                case wire.Flush() | wire.CopyData() | wire.CopyDone() | wire.CopyFail():
                    pass  # what is left of a COPY that failed; and everything is sent as soon as it is known
                case wire.FunctionCall():
                    self._extended = False
                    return Refused(FeatureNotSupported("the function call protocol is not supported"), ready=True)
                case wire.Malformed(kind, error):
                    self._extended = kind != "Q"
                    return Refused(error, ready=kind == "Q")
                case wire.Password():
                    raise ProtocolViolation("a password was not asked for")
                case _:
                    assert_never(message)
        except ProtocolViolation as error:
            if error.fatal:
                raise
            return Refused(error)
        except SeicheError as error:
            return Refused(error)
        return None

    def _parse(self, name: str, text: str, types: tuple[int, ...]) -> Action:
        if name and name in self.statements:
            raise DuplicateStatement(f'prepared statement "{name}" already exists')
        if len(self.statements) >= NAMES_MAX:
            raise FeatureNotSupported("too many prepared statements", hint="Close those that are not needed.")
        return Prepare(name, text, types)

    def _bind(self, message: wire.Bind) -> None:
        prepared = self._statement(message.statement)
        if len(message.values) != len(prepared.parameters):
            raise ProtocolViolation(
                f"bind message supplies {len(message.values)} parameters, but prepared statement "
                f'"{message.statement}" requires {len(prepared.parameters)}',
                fatal=False,
            )
        if message.portal and message.portal in self.portals:
            raise DuplicateCursor(f'cursor "{message.portal}" already exists')
        if len(self.portals) >= NAMES_MAX:
            raise FeatureNotSupported("too many portals", hint="Close those that are not needed.")
        formats = _spread(message.formats, len(message.values), "parameter")
        oids = [oid or oid_of(type_) for oid, type_ in zip(prepared.oids, prepared.parameters, strict=True)]
        values = tuple(
            None if raw is None else text_of(raw, type_, oid, format)
            for raw, type_, oid, format in zip(message.values, prepared.parameters, oids, formats, strict=True)
        )
        shown = _spread(message.result_formats, len(prepared.columns or ()), "column")
        self._drop_portal(message.portal)
        self.portals[message.portal] = Portal(prepared, values, shown)
        self._out += wire.bind_complete()

    def _describe(self, kind: str, name: str) -> None:
        if kind == "S":
            prepared = self._statement(name)
            oids = [oid or oid_of(type_) for oid, type_ in zip(prepared.oids, prepared.parameters, strict=True)]
            self._out += wire.parameter_description(oids)
            self._columns(prepared.columns, ())
        elif name not in self.portals and (columns := self.cursor_columns(name)) is not None:
            self._columns(columns, ())
        else:
            portal = self._portal(name)
            self._columns(portal.prepared.columns, portal.formats)

    def _columns(self, columns: Sequence[OutputColumn] | None, formats: Sequence[int]) -> None:
        if columns is None:
            self._out += wire.no_data()
        else:
            self.describe(columns, formats)

    def _execute(self, name: str, rows_max: int) -> Action | None:
        portal = self._portal(name)
        if portal.prepared.statement is None:
            self._out += wire.empty_query()
            return None
        if portal.tag is not None:
            # It has run to its end: only a query may be asked again, and has no more rows.
            if portal.prepared.columns is None:
                raise ObjectNotReady(f'portal "{name}" cannot be run')
            self._out += wire.command_complete("SELECT 0")
            return None
        return RunPortal(portal, rows_max)

    def _in_copy(self, message: wire.Message) -> Action | None:
        match message:
            case wire.CopyData(data):
                return CopyChunk(data)
            case wire.CopyDone():
                return CopyEnd()
            case wire.CopyFail(reason):
                return CopyAbort(f"COPY from stdin failed: {reason}")
            case wire.Flush() | wire.Sync():
                return None
            case wire.Terminate():
                self.phase = Phase.ENDED
                return Hangup()
            case _:
                raise ProtocolViolation("unexpected message type during COPY from stdin")

    def _statement(self, name: str) -> Prepared:
        if name not in self.statements:
            raise UndefinedStatement(
                f'prepared statement "{name}" does not exist' if name else "unnamed prepared statement does not exist"
            )
        return self.statements[name]

    def _portal(self, name: str) -> Portal:
        if name not in self.portals:
            raise UndefinedCursor(f'portal "{name}" does not exist')
        return self.portals[name]

    def _drop_portal(self, name: str) -> None:
        portal = self.portals.pop(name, None)
        if portal is not None:
            portal.close()

    # --- what the caller tells -------------------------------------------------------------------------

    def ask_password(self, verifier: Verifier) -> None:
        self._login.exchange = Exchange(verifier, self._login.user)
        self._out += wire.authentication_sasl([MECHANISM])
        self.phase = Phase.SASL_FIRST

    def welcome(self, statuses: Iterable[tuple[str, str]], process: int, secret: int) -> None:
        """The client is in: it learns the session's settings and how to cancel, and may ask."""
        self._out += wire.authentication_ok()
        for name, value in statuses:
            self.status(name, value)
        self._out += wire.backend_key_data(process, secret)
        self.phase = Phase.QUERY
        self._decoder.limit = wire.MESSAGE_BYTES_MAX
        self._out += wire.ready_for_query(self.transaction)

    def status(self, name: str, value: str) -> None:
        self._out += wire.parameter_status(name, value)

    def prepared(self, name: str, prepared: Prepared) -> None:
        self.statements[name] = prepared
        self._out += wire.parse_complete()

    def describe(self, columns: Sequence[OutputColumn], formats: Sequence[int] = ()) -> None:
        spread = formats or [0] * len(columns)
        fields = [field_of(each.name, each.type, form) for each, form in zip(columns, spread, strict=True)]
        self._out += wire.row_description(fields)

    def send(self, encoded: bytes) -> None:
        """Messages that were encoded elsewhere: rows, which a thread encodes."""
        self._out += encoded

    def complete(self, tag: str) -> None:
        self._out += wire.command_complete(tag)

    def suspended(self) -> None:
        self._out += wire.portal_suspended()

    def empty(self) -> None:
        self._out += wire.empty_query()

    def notice(self, text: str) -> None:
        self._out += wire.report(b"N", [("S", "NOTICE"), ("V", "NOTICE"), ("C", "00000"), ("M", text)])

    def fail(self, error: SeicheError) -> None:
        """The statement failed. In the extended protocol everything up to Sync is skipped."""
        self._out += _error("ERROR", error)
        self._skipping = self._extended

    def end_with(self, error: SeicheError) -> None:
        """The connection ends with this error."""
        self._out += _error("FATAL", error)
        self.phase = Phase.ENDED

    def ready(self) -> None:
        if self.transaction == "I":
            # Outside a transaction block nothing outlives its Sync.
            self.close_portals()
        self._out += wire.ready_for_query(self.transaction)

    def close_portals(self) -> None:
        for name in list(self.portals):
            self._drop_portal(name)

    def begin_copy_in(self, format: int, columns: int) -> None:
        self._out += wire.copy_in(format, columns)
        self.phase = Phase.COPY_IN

    def end_copy_in(self) -> None:
        if self.phase is Phase.COPY_IN:
            self.phase = Phase.QUERY

    def begin_copy_out(self, format: int, columns: int) -> None:
        self._out += wire.copy_out(format, columns)

    def copy_data(self, data: bytes) -> None:
        self._out += wire.copy_data(data)

    def end_copy_out(self) -> None:
        self._out += wire.copy_done()


def _spread(formats: Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """One format a value, from none (all text), one (for all) or as many as there are values."""
    if len(formats) <= 1:
        return tuple(formats or (0,)) * count
    if len(formats) != count:
        raise ProtocolViolation(f"bind message has {len(formats)} {what} formats but {count} {what}s", fatal=False)
    return tuple(formats)


def _error(severity: str, error: SeicheError) -> bytes:
    position = None if error.position is None else str(error.position)
    return wire.report(
        b"E",
        [
            ("S", severity),
            ("V", severity),
            ("C", error.sqlstate),
            ("M", error.message),
            ("D", error.detail),
            ("H", error.hint),
            ("P", position),
        ],
    )
