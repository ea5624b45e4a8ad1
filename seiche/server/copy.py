"""The three formats of COPY: bytes of a stream to rows of text cells, and rows of values to bytes.

A reader is fed pieces cut anywhere and keeps what is not a whole row yet. Rows come out as text, whichever format they
came in; NULL is None.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Protocol

from seiche.errors import BadCopyFormat, CharacterNotInRepertoire, InvalidColumnReference, ProtocolViolation
from seiche.server.messages import MESSAGE_BYTES_MAX
from seiche.server.types import decode_binary, encode_column
from seiche.sql.statements import CopyForm, CopyFormat, ForcedColumns
from seiche.sql.text import format_value
from seiche.types import SqlType

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
Rows = list[list[str | None]]


class Reader(Protocol):
    def feed(self, data: bytes) -> Rows:
        """The rows that are whole now."""
        ...

    def finish(self) -> Rows:
        """What is left at the end of the stream."""
        ...


def reader(format: CopyFormat, names: Sequence[str], types: Sequence[SqlType]) -> Reader:
    _refuse_unknown(format, names)
    match format.form:
        case CopyForm.TEXT:
            return _TextReader(format, names)
        case CopyForm.CSV:
            return _CsvReader(format, names)
        case CopyForm.BINARY:
            return _BinaryReader(types)


def _refuse_unknown(format: CopyFormat, names: Sequence[str]) -> None:
    """The columns of FORCE_… have to be among those that are copied."""
    for option in ("force_quote", "force_null", "force_not_null"):
        for name in getattr(format, option) or ():
            if name not in names:
                raise InvalidColumnReference(f'{option.upper()} column "{name}" not referenced by COPY')


def _among(names: Sequence[str], forced: ForcedColumns) -> list[bool]:
    """For each column, whether an option names it."""
    return [forced is None or name in forced for name in names]


# --- reading -------------------------------------------------------------------------------------------


class _Lines:
    """What the two formats of lines have in common. Lines are numbered from 1 for messages."""

    def __init__(self, format: CopyFormat, names: Sequence[str]) -> None:
        self._format = format
        self._names = names
        self._width = len(names)
        self._rest = b""
        self._line = 0
        self._ended = False
        self._skip_header = format.header

    def _text(self, raw: bytes) -> str:
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise _not_utf8(raw[error.start]) from error
        if "\0" in text:
            raise _not_utf8(0)
        return text

    def _header(self, cells: Sequence[str | None]) -> None:
        """The first line, which is only looked at where it has to name the columns."""
        self._skip_header = False
        if not self._format.match_header:
            return
        if len(cells) != self._width:
            raise BadCopyFormat(f"wrong number of fields in header line: got {len(cells)}, expected {self._width}")
        for number, (cell, name) in enumerate(zip(cells, self._names, strict=True), 1):
            if cell != name:
                got = "null value" if cell is None else f'"{cell}"'
                raise BadCopyFormat(f'column name mismatch in header line field {number}: got {got}, expected "{name}"')

    def _checked(self, cells: list[str | None]) -> list[str | None]:
        if len(cells) != self._width:
            what = "extra data after last expected column" if len(cells) > self._width else "missing data for a column"
            raise BadCopyFormat(
                what, detail=f"Line {self._line} has {len(cells)} columns where {self._width} are expected."
            )
        return cells

    def _bounded(self) -> None:
        if len(self._rest) > MESSAGE_BYTES_MAX:
            raise BadCopyFormat("a row is too large", detail=f"A row has at most {MESSAGE_BYTES_MAX} bytes.")


def _not_utf8(byte: int) -> CharacterNotInRepertoire:
    return CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": 0x{byte:02x}')


_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class _TextReader(_Lines):
    def feed(self, data: bytes) -> Rows:
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._bounded()
        return [row for line in lines for row in self._row(line)]

    def finish(self) -> Rows:
        if not self._rest:
            return []
        # Where lines end with a carriage return alone, all of them are in what is left.
        lines = self._rest.removesuffix(b"\r").split(b"\r") if self._line == 0 else [self._rest]
        return [row for line in lines for row in self._row(line)]

    def _row(self, line: bytes) -> Rows:
        self._line += 1
        line = line.removesuffix(b"\r")
        if self._ended or line == b"\\.":
            self._ended = True
            return []
        null = "\\N" if self._format.null is None else self._format.null
        if self._width == 0 and not self._skip_header:
            return [[]]
        parts = _split_escaped(self._text(line), self._format.delimiter or "\t")
        cells = [None if part == null else _unescaped(part) for part in parts]
        if self._skip_header:
            self._header(cells)
            return []
        return [self._checked(cells)]


def _split_escaped(line: str, delimiter: str) -> list[str]:
    """The cells of a line; a delimiter after a backslash is part of its cell."""
    if "\\" not in line:
        return line.split(delimiter)
    cells, current, at = [], [], 0
    while at < len(line):
        character = line[at]
        if character == "\\" and at + 1 < len(line):
            current.append(line[at : at + 2])
            at += 2
            continue
        if character == delimiter:
            cells.append("".join(current))
            current = []
        else:
            current.append(character)
        at += 1
    return [*cells, "".join(current)]


def _unescaped(cell: str) -> str:
    if "\\" not in cell:
        return cell
    out, at = bytearray(), 0
    while at < len(cell):
        character = cell[at]
        at += 1
        if character != "\\" or at == len(cell):
            out += character.encode()
            continue
        letter = cell[at]
        at += 1
        if letter in "01234567":
            digits = letter
            while len(digits) < 3 and at < len(cell) and cell[at] in "01234567":
                digits += cell[at]
                at += 1
            out.append(int(digits, 8) & 0xFF)
        elif letter == "x" and at < len(cell) and cell[at] in "0123456789abcdefABCDEF":
            digits = ""
            while len(digits) < 2 and at < len(cell) and cell[at] in "0123456789abcdefABCDEF":
                digits += cell[at]
                at += 1
            out.append(int(digits, 16))
        else:
            out += _ESCAPES.get(letter, letter).encode()
    try:
        text = out.decode()
    except UnicodeDecodeError as error:
        raise _not_utf8(out[error.start]) from error
    if "\0" in text:
        raise _not_utf8(0)
    return text


class _CsvReader(_Lines):
    """RFC 4180 with PostgreSQL's rule for NULL: an empty cell without quotes, unless told otherwise."""

    def __init__(self, format: CopyFormat, names: Sequence[str]) -> None:
        super().__init__(format, names)
        self._null_in_quotes = _among(names, format.force_null)
        self._never_null = _among(names, format.force_not_null)

    def feed(self, data: bytes) -> Rows:
        self._rest += data
        self._bounded()
        end = self._rest.rfind(b"\n")
        if end < 0:
            return []
        whole, rest = self._rest[: end + 1], self._rest[end + 1 :]
        rows, unfinished = self._rows(self._text(whole))
        self._rest = unfinished.encode() + rest
        return rows

    def finish(self) -> Rows:
        if not self._rest or self._ended:
            return []
        text = self._text(self._rest)
        rows, unfinished = self._rows(text if text.endswith("\r") else text + "\n")
        if unfinished:
            raise BadCopyFormat("unterminated CSV quoted field", detail=f"In line {self._line + 1} of the COPY.")
        return rows

    def _rows(self, text: str) -> tuple[Rows, str]:
        """The rows of text that ends with a line's end, and the text of a row whose quotes are still open."""
        rows: Rows = []
        at = 0
        while at < len(text) and not self._ended:
            found = self._row(text, at)
            if found is None:
                return rows, text[at:]
            cells, after = found
            self._line += 1
            if cells == ["\\."] and text.startswith("\\.", at):  # in quotes it is a value
                self._ended = True
            elif self._skip_header:
                self._header(cells)
            else:
                rows.append(self._checked(cells))
            at = after
        return rows, ""

    def _row(self, text: str, at: int) -> tuple[list[str | None], int] | None:
        quote, delimiter = self._format.quote or '"', self._format.delimiter or ","
        escape = self._format.escape or quote
        null = self._format.null or ""
        cells: list[str | None] = []
        while True:
            cell: list[str] = []
            quoted = False
            while True:
                if at >= len(text):
                    return None
                character = text[at]
                if character == quote:
                    quoted = True
                    inside = _quoted(text, at + 1, quote, escape)
                    if inside is None:
                        return None
                    cell.append(inside[0])
                    at = inside[1]
                elif character in (delimiter, "\n", "\r"):
                    break
                else:
                    cell.append(character)
                    at += 1
            value = "".join(cell)
            cells.append(None if value == null and self._is_null(len(cells), quoted) else value)
            if text[at] == delimiter:
                at += 1
                continue
            return cells, at + (2 if text.startswith("\r\n", at) else 1)

    def _is_null(self, index: int, quoted: bool) -> bool:
        """Whether a cell that reads as NULL is written is one. A line with too many cells is refused later."""
        if quoted:
            return index < self._width and self._null_in_quotes[index]
        return index >= self._width or not self._never_null[index]


def _quoted(text: str, at: int, quote: str, escape: str) -> tuple[str, int] | None:
    """What stands in quotes from `at` on, and the place after the closing one; None where that is still to come."""
    out = []
    while at < len(text):
        character = text[at]
        if character == escape and at + 1 < len(text) and text[at + 1] in (quote, escape):
            out.append(text[at + 1])
            at += 2
        elif character == quote:
            return "".join(out), at + 1
        else:
            out.append(character)
            at += 1
    return None


class _BinaryReader:
    def __init__(self, types: Sequence[SqlType]) -> None:
        self._types = types
        self._buffer = b""
        self._started = False
        self._ended = False

    def feed(self, data: bytes) -> Rows:
        self._buffer += data
        if len(self._buffer) > 2 * MESSAGE_BYTES_MAX:
            raise BadCopyFormat("a row is too large")
        if not self._started and not self._head():
            return []
        rows: Rows = []
        at = 0
        while not self._ended:
            found = self._row(at)
            if found is None:
                break
            cells, at = found
            if cells is not None:
                rows.append(cells)
        self._buffer = self._buffer[at:]
        return rows

    def finish(self) -> Rows:
        if not self._ended and (self._buffer or not self._started):
            raise BadCopyFormat("unexpected EOF in COPY data")
        return []

    def _head(self) -> bool:
        size = len(_SIGNATURE) + 8
        if len(self._buffer) < size:
            return False
        if not self._buffer.startswith(_SIGNATURE):
            raise BadCopyFormat("COPY file signature not recognized")
        flags, extension = struct.unpack_from("!Ii", self._buffer, len(_SIGNATURE))
        if flags & 0xFFFF0000 or not 0 <= extension <= 65_536:
            raise BadCopyFormat("invalid COPY file header")
        if len(self._buffer) < size + extension:
            return False
        self._buffer = self._buffer[size + extension :]
        self._started = True
        return True

    def _row(self, at: int) -> tuple[list[str | None] | None, int] | None:
        if len(self._buffer) < at + 2:
            return None
        (count,) = struct.unpack_from("!h", self._buffer, at)
        at += 2
        if count == -1:
            self._ended = True
            return None, at
        if count != len(self._types):
            raise BadCopyFormat(f"row field count is {count}, expected {len(self._types)}")
        cells: list[str | None] = []
        for type_ in self._types:
            if len(self._buffer) < at + 4:
                return None
            (length,) = struct.unpack_from("!i", self._buffer, at)
            at += 4
            if length == -1:
                cells.append(None)
                continue
            if length < 0:
                raise BadCopyFormat("invalid field size")
            if len(self._buffer) < at + length:
                return None
            cells.append(self._cell(self._buffer[at : at + length], type_))
            at += length
        return cells, at

    def _cell(self, raw: bytes, type_: SqlType) -> str:
        try:
            return format_value(decode_binary(raw, type_), type_)
        except ProtocolViolation as error:
            raise BadCopyFormat(error.message) from error


# --- writing -------------------------------------------------------------------------------------------


def head(format: CopyFormat, names: Sequence[str]) -> bytes:
    """What goes before the rows."""
    _refuse_unknown(format, names)
    match format.form:
        case CopyForm.BINARY:
            return _SIGNATURE + struct.pack("!Ii", 0, 0)
        case _ if format.header:
            return _line([name.encode() for name in names], format, [False] * len(names))
        case _:
            return b""


def rows(
    format: CopyFormat,
    names: Sequence[str],
    types: Sequence[SqlType],
    columns: Sequence[Sequence[Any]],
    count: int,
    timezone: str,
) -> list[bytes]:
    """One message for each row: drivers take a message for a row."""
    binary = format.form is CopyForm.BINARY
    encoded = [encode_column(each, type_, int(binary), timezone) for each, type_ in zip(columns, types, strict=True)]
    lines = zip(*encoded, strict=True) if encoded else [()] * count
    quoted = _among(names, format.force_quote)
    return [_binary_row(line) if binary else _line(line, format, quoted) for line in lines]


def tail(format: CopyFormat) -> bytes:
    return struct.pack("!h", -1) if format.form is CopyForm.BINARY else b""


def _binary_row(cells: Sequence[bytes | None]) -> bytes:
    parts = [struct.pack("!h", len(cells))]
    for cell in cells:
        parts.append(struct.pack("!i", -1) if cell is None else struct.pack("!i", len(cell)) + cell)
    return b"".join(parts)


def _line(cells: Sequence[bytes | None], format: CopyFormat, quoted: Sequence[bool]) -> bytes:
    if format.form is CopyForm.CSV:
        null = (format.null or "").encode()
        delimiter = (format.delimiter or ",").encode()
        alone = len(cells) == 1
        parts = (
            null if cell is None else _csv_cell(cell, format, null, alone, always)
            for cell, always in zip(cells, quoted, strict=True)
        )
        return delimiter.join(parts) + b"\n"
    null = ("\\N" if format.null is None else format.null).encode()
    delimiter = (format.delimiter or "\t").encode()
    return delimiter.join(null if cell is None else _text_cell(cell, delimiter) for cell in cells) + b"\n"


_TEXT_ESCAPES = [
    (b"\\", b"\\\\"), (b"\b", b"\\b"), (b"\f", b"\\f"), (b"\n", b"\\n"), (b"\r", b"\\r"), (b"\t", b"\\t"),
    (b"\v", b"\\v"),
]  # fmt: skip


def _text_cell(cell: bytes, delimiter: bytes) -> bytes:
    for plain, escaped in _TEXT_ESCAPES:
        if plain in cell:
            cell = cell.replace(plain, escaped)
    return cell if delimiter == b"\t" else cell.replace(delimiter, b"\\" + delimiter)


def _csv_cell(cell: bytes, format: CopyFormat, null: bytes, alone: bool, always: bool) -> bytes:
    quote = (format.quote or '"').encode()
    escape = (format.escape or format.quote or '"').encode()
    delimiter = (format.delimiter or ",").encode()
    plain = not any(special in cell for special in (quote, delimiter, b"\n", b"\r", escape))
    if plain and not always and cell != null and not (alone and cell == b"\\."):
        return cell
    if escape != quote:
        cell = cell.replace(escape, escape * 2)
    return quote + cell.replace(quote, escape + quote) + quote
