"""Types on the wire: oids, and values in PostgreSQL's text and binary formats.

Values are in their physical form (`seiche.types`) on our side. Text is what `seiche.sql.text` prints. A value that a
client sends becomes text, whichever format it came in, and is read by the same code as a literal of that type: there
is one reading of each type in the whole system.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from seiche.errors import FeatureNotSupported, InvalidText, NumericOutOfRange, ProtocolViolation
from seiche.far_days import FarDate, FarTimestamp, day_of, moment_of
from seiche.server.messages import Field, decode_text
from seiche.sql.text import format_value
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NULL,
    NUMERIC,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
)

RECORD_OID = 2249
UNKNOWN_OID = 705

# Kind: oid, oid of the array, bytes of the binary form (-1: it varies).
_OIDS: Mapping[Kind, tuple[int, int, int]] = {
    Kind.BOOLEAN: (16, 1000, 1),
    Kind.BYTEA: (17, 1001, -1),
    Kind.BIGINT: (20, 1016, 8),
    Kind.SMALLINT: (21, 1005, 2),
    Kind.INTEGER: (23, 1007, 4),
    Kind.REAL: (700, 1021, 4),
    Kind.DOUBLE: (701, 1022, 8),
    Kind.VARCHAR: (1043, 1015, -1),
    Kind.DATE: (1082, 1182, 4),
    Kind.TIME: (1083, 1183, 8),
    Kind.TIMESTAMP: (1114, 1115, 8),
    Kind.TIMESTAMPTZ: (1184, 1185, 8),
    Kind.INTERVAL: (1186, 1187, 16),
    Kind.NUMERIC: (1700, 1231, -1),
    Kind.JSONB: (3802, 3807, -1),
    Kind.STRUCT: (RECORD_OID, 2287, -1),
    Kind.MAP: (1043, 1015, -1),  # clients read it as text
    Kind.NULL: (25, 1009, -1),
}

_SCALARS = (
    BOOLEAN, BYTEA, BIGINT, SMALLINT, INTEGER, REAL, DOUBLE, VARCHAR, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL,
    NUMERIC, JSONB,
)  # fmt: skip
_BY_OID: dict[int, SqlType] = {
    **{_OIDS[each.kind][0]: each for each in _SCALARS},
    **{_OIDS[each.kind][1]: array_of(each) for each in _SCALARS},
    # Other spellings that drivers send: "char", name, text, json, bpchar, uuid, and oid.
    **dict.fromkeys((18, 19, 25, 1042, 2950), VARCHAR),
    **dict.fromkeys((1002, 1003, 1009, 1014, 2951), array_of(VARCHAR)),
    114: JSONB,
    199: array_of(JSONB),
    26: BIGINT,
    1028: array_of(BIGINT),
}
_OID_OID, _JSON_OID, _UUID_OID = 26, 114, 2950

# What a type of the system's catalogs is known as: its oid, and that of the array.
_KNOWN_AS: Mapping[str, tuple[int, int]] = {"oid": (_OID_OID, 1028), "text": (25, 1009)}

_DAYS_TO_2000 = 10_957
_MICROS_TO_2000 = _DAYS_TO_2000 * 86_400_000_000
_EPOCH_2000 = datetime(2000, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


def oid_of(type_: SqlType) -> int:
    if type_.kind is Kind.ARRAY:
        element = type_
        while element.kind is Kind.ARRAY:  # arrays of arrays are of the same type in PostgreSQL
            assert element.element is not None
            element = element.element
        return _KNOWN_AS[element.known_as][1] if element.known_as else _OIDS[element.kind][1]
    return _KNOWN_AS[type_.known_as][0] if type_.known_as else _OIDS[type_.kind][0]


def type_of_oid(oid: int) -> SqlType | None:
    """The type behind an oid that a client names; None where it leaves the type to us."""
    if oid in (0, UNKNOWN_OID):
        return None
    if oid not in _BY_OID:
        raise FeatureNotSupported(f"parameters of the type with oid {oid} are not supported")
    return _BY_OID[oid]


def field_of(name: str, type_: SqlType, format: int = 0) -> Field:
    modifier = -1
    if type_.kind is Kind.NUMERIC and type_.declared:
        modifier = (type_.precision << 16 | type_.scale) + 4
    width = -1 if type_.kind is Kind.ARRAY else _OIDS[type_.kind][2]
    return Field(name, oid_of(type_), width, modifier, format)


def encode_column(values: Sequence[Any], type_: SqlType, format: int, timezone: str = "UTC") -> Sequence[bytes | None]:
    """The values of one column in a format; None stays None."""
    encode = _binary_encoder(type_) if format else _text_encoder(type_, timezone)
    return [None if value is None else encode(value) for value in values]


def text_of(raw: bytes, type_: SqlType | None, oid: int, format: int) -> str:
    """A value that a client sent, as the text of its type. `oid` is the one that the client was told or named."""
    if not format:
        return decode_text(raw)
    if type_ is None or type_.kind in (Kind.VARCHAR, Kind.NULL):
        if oid == _UUID_OID and len(raw) == 16:
            digits = raw.hex()
            return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return decode_text(raw)
    if oid == _OID_OID:
        return str(_unpack("!I", raw, 4, type_))
    if oid == _JSON_OID:
        return decode_text(raw)
    return format_value(decode_binary(raw, type_), type_)


# --- our values to bytes -------------------------------------------------------------------------------


def _text_encoder(type_: SqlType, timezone: str) -> Callable[[Any], bytes]:
    match type_.kind:
        case Kind.VARCHAR | Kind.NULL:
            return lambda value: str(value).encode(errors="replace")
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return lambda value: b"%d" % value
        case _:
            return lambda value: format_value(value, type_, timezone).encode(errors="replace")


def _binary_encoder(type_: SqlType) -> Callable[[Any], bytes]:
    match type_.kind:
        case Kind.BOOLEAN:
            return lambda value: b"\1" if value else b"\0"
        case Kind.SMALLINT:
            return struct.Struct("!h").pack
        case Kind.INTEGER:
            return struct.Struct("!i").pack
        case Kind.BIGINT:
            return _encode_oid if type_.known_as else struct.Struct("!q").pack
        case Kind.REAL:
            return struct.Struct("!f").pack
        case Kind.DOUBLE:
            return struct.Struct("!d").pack
        case Kind.NUMERIC:
            return lambda value: _encode_numeric(value, type_)
        case Kind.VARCHAR | Kind.NULL:
            return lambda value: str(value).encode(errors="replace")
        case Kind.BYTEA:
            return bytes
        case Kind.DATE:
            return _encode_date
        case Kind.TIME:
            return struct.Struct("!q").pack
        case Kind.TIMESTAMP:
            return _encode_moment
        case Kind.TIMESTAMPTZ:
            return _encode_moment
        case Kind.INTERVAL:
            return _encode_interval
        case Kind.JSONB:
            return lambda value: b"\1" + format_value(value, type_).encode(errors="replace")
        case Kind.ARRAY:
            return lambda value: _encode_array(value, type_)
        case Kind.STRUCT:
            return lambda value: _encode_struct(value, type_)
        case Kind.MAP:
            return lambda value: format_value(value, type_).encode(errors="replace")


def _encode_oid(value: int) -> bytes:
    if not 0 <= value < 1 << 32:
        raise NumericOutOfRange("OID out of range", hint="Ask for the text format.")
    return struct.pack("!I", value)


def _encode_date(value: date | FarDate) -> bytes:
    if isinstance(value, FarDate):
        return struct.pack("!i", value.days - _DAYS_TO_2000)
    return struct.pack("!i", (value - date(2000, 1, 1)).days)


def _encode_moment(value: datetime | FarTimestamp) -> bytes:
    if isinstance(value, FarTimestamp):
        return struct.pack("!q", value.micros - _MICROS_TO_2000)
    plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
    return struct.pack("!q", (plain - _EPOCH_2000) // _MICROSECOND)


def _encode_interval(value: Mapping[str, int] | Sequence[int]) -> bytes:
    if isinstance(value, Mapping):
        months, days, micros = value["months"], value["days"], value["micros"]
    else:
        months, days, micros = value
    return struct.pack("!qii", micros, days, months)


def _encode_numeric(value: Decimal | int, type_: SqlType) -> bytes:
    """Digits to the base of 10,000, and how many decimal ones of them are shown."""
    number = Decimal(format_value(value, type_))
    sign, _, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole, _, fraction = f"{number.copy_abs():f}".partition(".")
    whole = whole.lstrip("0")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    digits = [int((whole + fraction)[at : at + 4]) for at in range(0, len(whole + fraction), 4)]
    weight = len(whole) // 4 - 1
    while digits and digits[0] == 0:
        digits.pop(0)
        weight -= 1
    while digits and digits[-1] == 0:
        digits.pop()
    if not digits:
        weight, sign = 0, 0
    return struct.pack(f"!hhHh{len(digits)}h", len(digits), weight, 0x4000 if sign else 0, scale, *digits)


def _encode_array(value: Sequence[Any], type_: SqlType) -> bytes:
    element, items = type_, [value]
    sizes: list[int] = []
    while element.kind is Kind.ARRAY:
        widths = {len(each) for each in items if each is not None}
        if len(widths) > 1 or (sizes and any(each is None for each in items)):
            raise FeatureNotSupported(
                "an array of arrays of different lengths has no binary format", hint="Ask for the text format."
            )
        sizes.append(widths.pop() if widths else 0)
        items = [part for each in items for part in each]
        assert element.element is not None
        element = element.element
    head = struct.pack("!iiI", len(sizes) if all(sizes) else 0, any(each is None for each in items), oid_of(element))
    if not all(sizes):
        return head
    encode = _binary_encoder(element)
    parts = [head, *(struct.pack("!ii", size, 1) for size in sizes)]
    for each in items:
        parts.append(_sized(None if each is None else encode(each)))
    return b"".join(parts)


def _encode_struct(value: Mapping[str, Any] | Sequence[Any], type_: SqlType) -> bytes:
    values = list(value.values()) if isinstance(value, Mapping) else list(value)
    parts = [struct.pack("!i", len(values))]
    for each, (_, field_type) in zip(values, type_.fields, strict=True):
        parts.append(struct.pack("!I", oid_of(field_type)))
        parts.append(_sized(None if each is None else _binary_encoder(field_type)(each)))
    return b"".join(parts)


def _sized(encoded: bytes | None) -> bytes:
    return struct.pack("!i", -1) if encoded is None else struct.pack("!i", len(encoded)) + encoded


# --- a client's bytes to our values --------------------------------------------------------------------


def decode_binary(raw: bytes, type_: SqlType) -> Any:
    """The physical value of a binary one. ProtocolViolation for bytes that are no value of the type."""
    match type_.kind:
        case Kind.BOOLEAN:
            return bool(_unpack("!b", raw, 1, type_))
        case Kind.SMALLINT:
            return _unpack("!h", raw, 2, type_)
        case Kind.INTEGER:
            return _unpack("!i", raw, 4, type_)
        case Kind.BIGINT:
            return _unpack("!I", raw, 4, type_) if type_.known_as else _unpack("!q", raw, 8, type_)
        case Kind.REAL:
            return _unpack("!f", raw, 4, type_)
        case Kind.DOUBLE:
            return _unpack("!d", raw, 8, type_)
        case Kind.NUMERIC:
            return _decode_numeric(raw, type_)
        case Kind.VARCHAR | Kind.NULL:
            return decode_text(raw)
        case Kind.BYTEA:
            return raw
        case Kind.DATE:
            return day_of(_finite(_unpack("!i", raw, 4, type_), 32, type_) + _DAYS_TO_2000)
        case Kind.TIME:
            micros = _unpack("!q", raw, 8, type_)
            if not 0 <= micros <= 86_400_000_000:
                raise _bad(type_)
            return micros
        case Kind.TIMESTAMP:
            return moment_of(_finite(_unpack("!q", raw, 8, type_), 64, type_) + _MICROS_TO_2000, zoned=False)
        case Kind.TIMESTAMPTZ:
            return moment_of(_finite(_unpack("!q", raw, 8, type_), 64, type_) + _MICROS_TO_2000, zoned=True)
        case Kind.INTERVAL:
            if len(raw) != 16:
                raise _bad(type_)
            micros, days, months = struct.unpack("!qii", raw)
            return {"months": months, "days": days, "micros": micros}
        case Kind.JSONB:
            if raw[:1] != b"\1":
                raise _bad(type_)
            return decode_text(raw[1:])
        case Kind.ARRAY:
            return _decode_array(raw, type_)
        case Kind.STRUCT:
            return _decode_struct(raw, type_)


def _bad(type_: SqlType) -> ProtocolViolation:
    return ProtocolViolation(f"incorrect binary data format for type {type_}", sqlstate="22P03", fatal=False)


def _unpack(form: str, raw: bytes, size: int, type_: SqlType) -> Any:
    if len(raw) != size:
        raise _bad(type_)
    return struct.unpack(form, raw)[0]


def _finite(count: int, bits: int, type_: SqlType) -> int:
    """The number, unless it is one of the two that stand for infinity."""
    if count in (-(1 << bits - 1), (1 << bits - 1) - 1):
        raise InvalidText(f"infinity is no value of type {type_} here")
    return count


def _decode_numeric(raw: bytes, type_: SqlType) -> Decimal:
    if len(raw) < 8:
        raise _bad(type_)
    count, weight, sign, scale = struct.unpack_from("!hhHh", raw)
    if sign not in (0, 0x4000):
        raise InvalidText("NaN and infinity are no values of type numeric here")
    if count < 0 or scale < 0 or len(raw) != 8 + 2 * count:
        raise _bad(type_)
    digits = struct.unpack_from(f"!{count}h", raw, 8)
    if any(not 0 <= digit < 10_000 for digit in digits):
        raise _bad(type_)
    if weight > 10 or count > 40:
        raise InvalidText("numeric field overflow")
    decimal = tuple(int(each) for digit in digits for each in f"{digit:04d}")
    return Decimal((1 if sign else 0, decimal, 4 * (weight - count + 1)))


def _decode_array(raw: bytes, type_: SqlType) -> list[Any]:
    if len(raw) < 12:
        raise _bad(type_)
    dimensions, _, _ = struct.unpack_from("!iiI", raw)
    if dimensions == 0:
        return []
    depth, element = 0, type_
    while element.kind is Kind.ARRAY:
        assert element.element is not None
        depth, element = depth + 1, element.element
    if dimensions != depth or len(raw) < 12 + 8 * depth:
        raise _bad(type_)
    sizes = [struct.unpack_from("!i", raw, 12 + 8 * each)[0] for each in range(depth)]
    total = math.prod(sizes)
    # Each item takes at least its length: more of them than bytes cannot be.
    if any(size < 0 for size in sizes) or total > len(raw) // 4:
        raise _bad(type_)
    at, items = 12 + 8 * depth, []
    for _ in range(total):
        item, at = _part(raw, at, element, type_)
        items.append(item)
    if at != len(raw):
        raise _bad(type_)
    for size in reversed(sizes[1:]):
        items = [items[start : start + size] for start in range(0, len(items), size)] if size else []
    return items


def _decode_struct(raw: bytes, type_: SqlType) -> list[Any]:
    if len(raw) < 4 or struct.unpack_from("!i", raw)[0] != len(type_.fields):
        raise _bad(type_)
    at, values = 4, []
    for _, field_type in type_.fields:
        value, at = _part(raw, at + 4, field_type, type_)
        values.append(value)
    if at != len(raw):
        raise _bad(type_)
    return values


def _part(raw: bytes, at: int, element: SqlType, whole: SqlType) -> tuple[Any, int]:
    if at + 4 > len(raw):
        raise _bad(whole)
    (length,) = struct.unpack_from("!i", raw, at)
    at += 4
    if length == -1:
        return None, at
    if length < 0 or at + length > len(raw):
        raise _bad(whole)
    return decode_binary(raw[at : at + length], element), at + length


__all__ = ["NULL", "decode_binary", "encode_column", "field_of", "oid_of", "text_of", "type_of_oid"]
