"""The messages of PostgreSQL's protocol 3.0 as values: what a client sends is decoded, what it is sent is encoded.

    bytes ── Decoder.feed ── Decoder.next ── a frozen value, or None while the message is incomplete

Nothing here does I/O or knows what a message means for a connection. A message that is not well formed raises
ProtocolViolation and is never half read: lengths are checked before anything is kept, and a message longer than the
decoder's limit is refused as soon as its length is known.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from seiche.errors import ProtocolViolation

PROTOCOL_3 = 196_608
_SSL_REQUEST = 80_877_103
_GSS_REQUEST = 80_877_104
_CANCEL_REQUEST = 80_877_102

STARTUP_BYTES_MAX = 10_000
PASSWORD_BYTES_MAX = 65_536
MESSAGE_BYTES_MAX = 64 * 1024 * 1024


# --- what a client sends -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Startup:
    """`minor` is the protocol's minor version that the client asks for."""

    parameters: dict[str, str]
    minor: int = 0


@dataclass(frozen=True, slots=True)
class SslRequest:
    pass


@dataclass(frozen=True, slots=True)
class GssRequest:
    pass


@dataclass(frozen=True, slots=True)
class CancelRequest:
    process: int
    secret: int


@dataclass(frozen=True, slots=True)
class Password:
    """A password or a step of SASL: which one, only the state of the connection tells."""

    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    text: str


@dataclass(frozen=True, slots=True)
class Parse:
    name: str
    text: str
    types: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bind:
    portal: str
    statement: str
    formats: tuple[int, ...] = ()
    values: tuple[bytes | None, ...] = ()
    result_formats: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Describe:
    """`kind` is "S" for a statement, "P" for a portal; so for Close."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Close:
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Execute:
    """`rows_max` 0 is no limit."""

    portal: str
    rows_max: int = 0


@dataclass(frozen=True, slots=True)
class Sync:
    pass


@dataclass(frozen=True, slots=True)
class Flush:
    pass


@dataclass(frozen=True, slots=True)
class Terminate:
    pass


@dataclass(frozen=True, slots=True)
class CopyData:
    data: bytes


@dataclass(frozen=True, slots=True)
class CopyDone:
    pass


@dataclass(frozen=True, slots=True)
class CopyFail:
    reason: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """Not offered; known so that the refusal can say so."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A message whose end is known but whose inside is wrong: the connection can go on after it."""

    kind: str
    error: ProtocolViolation


First: TypeAlias = Startup | SslRequest | GssRequest | CancelRequest
Message: TypeAlias = (
    Password
    | Query
    | Parse
    | Bind
    | Describe
    | Close
    | Execute
    | Sync
    | Flush
    | Terminate
    | CopyData
    | CopyDone
    | CopyFail
    | FunctionCall
    | Malformed
)


class Decoder:
    """Cuts a stream of bytes into messages. The first ones have no type byte: ask for them with `next_first`."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self.limit = PASSWORD_BYTES_MAX  # raised once the client has proved who it is

    def feed(self, data: bytes) -> None:
        self._buffer += data

    @property
    def buffered(self) -> int:
        """Bytes that no message was made of yet."""
        return len(self._buffer) - self._at

    def next_first(self) -> First | None:
        """The next message of a connection that has not started yet."""
        body = self._cut(0, STARTUP_BYTES_MAX)
        return None if body is None else _first(_Reader(body))

    def next(self) -> Message | None:
        if self.buffered < 5:
            return None
        kind = self._buffer[self._at]
        read = _READERS.get(kind)
        if read is None:
            raise ProtocolViolation(f"invalid frontend message type {kind}")
        body = self._cut(1, self.limit)
        if body is None:
            return None
        reader = _Reader(body)
        try:
            message = read(reader)
            reader.finish()
        except ProtocolViolation as error:
            if error.fatal:
                raise
            return Malformed(chr(kind), error)
        return message

    def _cut(self, head: int, limit: int) -> bytes | None:
        if self.buffered < head + 4:
            return None
        (length,) = struct.unpack_from("!i", self._buffer, self._at + head)
        if not 4 <= length <= limit + 4:
            raise ProtocolViolation(
                f"invalid message length {length}", detail=f"A message here has at most {limit} bytes."
            )
        if self.buffered < head + length:
            return None
        start = self._at + head + 4
        body = bytes(self._buffer[start : self._at + head + length])
        self._at += head + length
        # The front of the buffer is given back in large pieces: each time would cost a move of all that follows.
        if self._at == len(self._buffer) or self._at > 65_536:
            del self._buffer[: self._at]
            self._at = 0
        return body


class _Reader:
    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def integer(self, form: str, size: int) -> int:
        if self._at + size > len(self._body):
            raise ProtocolViolation("insufficient data left in message")
        (value,) = struct.unpack_from(form, self._body, self._at)
        self._at += size
        return int(value)

    def int16(self) -> int:
        return self.integer("!h", 2)

    def int32(self) -> int:
        return self.integer("!i", 4)

    def count(self) -> int:
        """How many items follow: a 16-bit number without a sign."""
        return self.integer("!H", 2)

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise ProtocolViolation("invalid string in message", detail="It has no end.")
        raw = self._body[self._at : end]
        self._at = end + 1
        return decode_text(raw)

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._body):
            raise ProtocolViolation("insufficient data left in message")
        self._at += count
        return self._body[self._at - count : self._at]

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)

    @property
    def left(self) -> int:
        return len(self._body) - self._at

    def finish(self) -> None:
        if self._at != len(self._body):
            raise ProtocolViolation("invalid message format", detail=f"{self.left} bytes are left over.")


def decode_text(raw: bytes) -> str:
    shown = "0x00"  # no text has it, though UTF-8 does
    try:
        text = raw.decode()
        if "\0" not in text:
            return text
    except UnicodeDecodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in raw[error.start : error.end])
    raise ProtocolViolation(f'invalid byte sequence for encoding "UTF8": {shown}', sqlstate="22021", fatal=False)


def _first(reader: _Reader) -> First:
    code = reader.int32()
    match code:
        case 80_877_103:
            reader.finish()
            return SslRequest()
        case 80_877_104:
            reader.finish()
            return GssRequest()
        case 80_877_102:
            # Later versions of the protocol have longer keys; ours have four bytes.
            process, secret = reader.int32(), reader.integer("!I", 4)
            reader.finish()
            return CancelRequest(process, secret)
    if code >> 16 != PROTOCOL_3 >> 16:
        raise ProtocolViolation(
            f"unsupported frontend protocol {code >> 16 & 0xFFFF}.{code & 0xFFFF}: server supports 3.0",
            sqlstate="0A000",
        )
    parameters: dict[str, str] = {}
    while True:
        name = reader.text()
        if not name:
            break
        parameters[name] = reader.text()
    reader.finish()
    return Startup(parameters, code & 0xFFFF)


def _parse(reader: _Reader) -> Parse:
    name, text = reader.text(), reader.text()
    return Parse(name, text, tuple(reader.integer("!I", 4) for _ in range(reader.count())))


def _bind(reader: _Reader) -> Bind:
    portal, statement = reader.text(), reader.text()
    formats = tuple(_format(reader) for _ in range(reader.count()))
    values: list[bytes | None] = []
    for _ in range(reader.count()):
        length = reader.int32()
        values.append(None if length == -1 else reader.take(length))
    result_formats = tuple(_format(reader) for _ in range(reader.count()))
    if len(formats) > 1 and len(formats) != len(values):
        raise ProtocolViolation(
            f"bind message has {len(formats)} parameter formats but {len(values)} parameters", fatal=False
        )
    return Bind(portal, statement, formats, tuple(values), result_formats)


def _format(reader: _Reader) -> int:
    code = reader.int16()
    if code not in (0, 1):
        raise ProtocolViolation(f"unsupported format code: {code}", sqlstate="22023", fatal=False)
    return code


def _target(reader: _Reader) -> tuple[str, str]:
    kind = reader.take(1)
    if kind not in (b"S", b"P"):
        raise ProtocolViolation(f"invalid message subtype {kind[0]}", fatal=False)
    return kind.decode(), reader.text()


def _execute(reader: _Reader) -> Execute:
    return Execute(reader.text(), max(reader.int32(), 0))


def _function_call(reader: _Reader) -> FunctionCall:
    reader.rest()
    return FunctionCall()


_READERS: dict[int, Callable[[_Reader], Message]] = {
    ord("p"): lambda reader: Password(reader.rest()),
    ord("Q"): lambda reader: Query(reader.text()),
    ord("P"): _parse,
    ord("B"): _bind,
    ord("D"): lambda reader: Describe(*_target(reader)),
    ord("C"): lambda reader: Close(*_target(reader)),
    ord("E"): _execute,
    ord("S"): lambda _: Sync(),
    ord("H"): lambda _: Flush(),
    ord("X"): lambda _: Terminate(),
    ord("d"): lambda reader: CopyData(reader.rest()),
    ord("c"): lambda _: CopyDone(),
    ord("f"): lambda reader: CopyFail(reader.text()),
    ord("F"): _function_call,
}


# --- what a client is sent -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Field:
    """A column of a row description. `width` is -1 for a type without a fixed one."""

    name: str
    oid: int
    width: int = -1
    modifier: int = -1
    format: int = 0


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _text(value: str) -> bytes:
    # A NUL would end the string early and shift all that follows.
    return value.replace("\0", "").encode(errors="replace") + b"\0"


def authentication_ok() -> bytes:
    return _message(b"R", struct.pack("!i", 0))


def authentication_sasl(mechanisms: Iterable[str]) -> bytes:
    return _message(b"R", struct.pack("!i", 10) + b"".join(map(_text, mechanisms)) + b"\0")


def authentication_sasl_continue(data: bytes) -> bytes:
    return _message(b"R", struct.pack("!i", 11) + data)


def authentication_sasl_final(data: bytes) -> bytes:
    return _message(b"R", struct.pack("!i", 12) + data)


def negotiate_protocol_version(unknown_options: Sequence[str]) -> bytes:
    body = struct.pack("!ii", 0, len(unknown_options)) + b"".join(map(_text, unknown_options))
    return _message(b"v", body)


def backend_key_data(process: int, secret: int) -> bytes:
    return _message(b"K", struct.pack("!iI", process, secret))


def parameter_status(name: str, value: str) -> bytes:
    return _message(b"S", _text(name) + _text(value))


def ready_for_query(status: str) -> bytes:
    return _message(b"Z", status.encode())


def row_description(fields: Sequence[Field]) -> bytes:
    parts = [struct.pack("!H", len(fields))]
    for each in fields:
        parts.append(_text(each.name))
        parts.append(struct.pack("!IhIhih", 0, 0, each.oid, each.width, each.modifier, each.format))
    return _message(b"T", b"".join(parts))


def parameter_description(oids: Sequence[int]) -> bytes:
    return _message(b"t", struct.pack(f"!H{len(oids)}I", len(oids), *oids))


_NULL = b"\xff\xff\xff\xff"
_LENGTH = struct.Struct("!i")


def data_rows(columns: Sequence[Sequence[bytes | None]], count: int) -> bytes:
    """One DataRow for each of `count` rows, given as columns of encoded values."""
    pack = _LENGTH.pack
    width = struct.pack("!H", len(columns))
    if not columns:
        return _message(b"D", width) * count
    # Column by column, so that the inner loops stay short: this is where large results spend their time.
    cells = [[_NULL if value is None else pack(len(value)) + value for value in column] for column in columns]
    parts = []
    for row in zip(*cells, strict=True):
        body = b"".join(row)
        parts.append(b"D" + pack(len(body) + 6) + width + body)
    return b"".join(parts)


def command_complete(tag: str) -> bytes:
    return _message(b"C", _text(tag))


def empty_query() -> bytes:
    return _message(b"I")


def parse_complete() -> bytes:
    return _message(b"1")


def bind_complete() -> bytes:
    return _message(b"2")


def close_complete() -> bytes:
    return _message(b"3")


def no_data() -> bytes:
    return _message(b"n")


def portal_suspended() -> bytes:
    return _message(b"s")


def copy_in(format: int, columns: int) -> bytes:
    return _message(b"G", struct.pack(f"!bH{columns}h", format, columns, *[format] * columns))


def copy_out(format: int, columns: int) -> bytes:
    return _message(b"H", struct.pack(f"!bH{columns}h", format, columns, *[format] * columns))


def copy_data(data: bytes) -> bytes:
    return _message(b"d", data)


def copy_done() -> bytes:
    return _message(b"c")


def report(kind: bytes, fields: Sequence[tuple[str, str | None]]) -> bytes:
    """An ErrorResponse (kind E) or a NoticeResponse (kind N); fields without a value are left out."""
    body = b"".join(letter.encode() + _text(value) for letter, value in fields if value is not None)
    return _message(kind, body + b"\0")
