"""Bytes: taken apart through their hexadecimal digits where Spark has no function of its own."""

from __future__ import annotations

from sqlglot import exp

from seiche.errors import InvalidParameter
from seiche.sql.casts import to_text
from seiche.sql.functions.registry import Maker, function, invoke
from seiche.sql.functions.strings import constant_text
from seiche.sql.nodes import (
    Settings,
    attempt,
    bigint,
    binary,
    call,
    case,
    comparison,
    disjunction,
    equal,
    guarded,
    integer,
    lambda_,
    negation,
    spark_cast,
    text,
    transform,
    typed,
    variable,
)
from seiche.types import BIGINT, BOOLEAN, BYTEA, INTEGER, VARCHAR, array_of

Nodes = list[exp.Expr]

_ONE_TO_ONE = text("ISO-8859-1")  # each byte is a character, and each of its characters a byte


def _hex(node: exp.Expr) -> exp.Expr:
    return call(VARCHAR, "hex", node)


def _pairs(node: exp.Expr) -> exp.Expr:
    """Each byte as two digits."""
    return call(array_of(VARCHAR), "regexp_extract_all", _hex(node), text(".."), integer(0))


def _joined(items: exp.Expr) -> exp.Expr:
    return call(VARCHAR, "array_join", items, text(""))


def _unhex(digits: exp.Expr) -> exp.Expr:
    return call(BYTEA, "unhex", digits)


def _number(pair: exp.Expr) -> exp.Expr:
    return spark_cast(call(VARCHAR, "conv", pair, integer(16), integer(10)), INTEGER)


# --- encodings ---------------------------------------------------------------------------------------


@function("encode", takes=[BYTEA, VARCHAR])
def _encode(arguments: Nodes, settings: Settings) -> exp.Expr:
    match constant_text("encode", arguments[1]):
        case "hex":
            return call(VARCHAR, "lower", _hex(arguments[0]))
        case "base64":
            return call(VARCHAR, "replace", call(VARCHAR, "base64", arguments[0]), text("\r"), text(""))
        case "escape":
            return _escaped(arguments[0])
        case other:
            raise InvalidParameter(f'unrecognized encoding: "{other}"', hint="Use hex, base64 or escape.")


def _escaped(node: exp.Expr) -> exp.Expr:
    """Zero bytes and those above 127 in octal, a backslash twice."""
    pair = variable("x", VARCHAR)
    octal = call(VARCHAR, "lpad", call(VARCHAR, "conv", pair.copy(), integer(16), integer(8)), integer(3), text("0"))
    shown = case(
        VARCHAR,
        [
            (
                disjunction([equal(pair.copy(), text("00")), comparison(exp.GTE, pair.copy(), text("80"))]),
                call(VARCHAR, "concat", text("\\"), octal),
            ),
            (equal(pair.copy(), text("5C")), text("\\\\")),
        ],
        call(VARCHAR, "chr", spark_cast(_number(pair), BIGINT)),
    )
    return _joined(transform(_pairs(node), "x", shown, array_of(VARCHAR)))


@function("reverse", takes=[BYTEA])
def _reverse(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(BYTEA, "unhex", _joined(call(array_of(VARCHAR), "reverse", _pairs(arguments[0]))))


@function("decode", takes=[VARCHAR, VARCHAR])
def _decode(arguments: Nodes, settings: Settings) -> exp.Expr:
    match constant_text("decode", arguments[1]):
        case "hex" | "base64" as form:
            if settings.strict:
                return call(BYTEA, "to_binary", arguments[0], text(form))
            return attempt(BYTEA, "try_to_binary", arguments[0], text(form))
        case "escape":
            return _unescaped(arguments[0], settings)
        case other:
            raise InvalidParameter(f'unrecognized encoding: "{other}"', hint="Use hex, base64 or escape.")


def _unescaped(node: exp.Expr, settings: Settings) -> exp.Expr:
    tokens = r"\\[0-3][0-7]{2}|\\\\|[^\\]+"
    token = variable("x", VARCHAR)
    digits = call(VARCHAR, "conv", call(VARCHAR, "substr", token.copy(), integer(2)), integer(8), integer(16))
    shown = case(
        VARCHAR,
        [
            (equal(token.copy(), text("\\\\")), text("5C")),
            (
                call(BOOLEAN, "startswith", token.copy(), text("\\")),
                call(VARCHAR, "lpad", digits, integer(2), text("0")),
            ),
        ],
        _hex(call(BYTEA, "encode", token.copy(), text("UTF-8"))),
    )
    items = call(array_of(VARCHAR), "regexp_extract_all", node.copy(), text(tokens), integer(0))
    made = _unhex(_joined(transform(items, "x", shown, array_of(VARCHAR))))
    fits = call(BOOLEAN, "rlike", node, text(rf"\A(?:{tokens})*\z"))
    return guarded(made, negation(fits), "invalid input syntax for type bytea", settings)


_CHARSETS = {"utf8": "UTF-8", "utf-8": "UTF-8", "unicode": "UTF-8", "latin1": "ISO-8859-1", "iso_8859_1": "ISO-8859-1",
             "iso-8859-1": "ISO-8859-1", "sql_ascii": "US-ASCII"}  # fmt: skip


def _charset(name: str, node: exp.Expr) -> exp.Expr:
    wanted = constant_text(name, node)
    if wanted not in _CHARSETS:
        raise InvalidParameter(f'invalid encoding name "{wanted}"', hint="Use UTF8 or LATIN1.")
    return text(_CHARSETS[wanted])


@function("convert_from", takes=[BYTEA, VARCHAR])
def _convert_from(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(VARCHAR, "decode", arguments[0], _charset("convert_from", arguments[1]))


@function("convert_to", takes=[VARCHAR, VARCHAR])
def _convert_to(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(BYTEA, "encode", arguments[0], _charset("convert_to", arguments[1]))


def _digest(bits: int) -> Maker:
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        return _unhex(call(VARCHAR, "sha2", arguments[0], integer(bits)))

    return make


for _bits in (224, 256, 384, 512):
    function(f"sha{_bits}", takes=[BYTEA])(_digest(_bits))


@function("sha1", takes=[BYTEA])
def _sha1(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _unhex(call(VARCHAR, "sha1", arguments[0]))


@function("crc32", takes=[BYTEA])
def _crc32(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(BIGINT, "crc32", arguments[0])


def _castagnoli() -> exp.Expr:
    """The checksums of the 256 bytes by the polynomial of CRC-32C, bits reversed."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(exp.Literal.number(f"{byte}L"))
    return call(array_of(BIGINT), "array", *table)


@function("crc32c", takes=[BYTEA])
def _crc32c(arguments: Nodes, settings: Settings) -> exp.Expr:
    total = variable("total", BIGINT)
    place = binary(
        exp.BitwiseAnd, BIGINT, binary(exp.BitwiseXor, BIGINT, total, _number(variable("x", VARCHAR))), integer(255)
    )
    found = call(BIGINT, "get", _castagnoli(), spark_cast(place, INTEGER))
    mixed = binary(exp.BitwiseXor, BIGINT, call(BIGINT, "shiftright", total.copy(), integer(8)), found)
    ones = bigint(0xFFFFFFFF)
    folded = call(BIGINT, "aggregate", _pairs(arguments[0]), ones, lambda_(mixed, "total", "x"))
    return binary(exp.BitwiseXor, BIGINT, folded, ones.copy())


@function("int8send", takes=[BIGINT])
def _int8send(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _unhex(call(VARCHAR, "lpad", _hex(arguments[0]), integer(16), text("0")))


@function("int8recv", takes=[BYTEA])
def _int8recv(arguments: Nodes, settings: Settings) -> exp.Expr:
    whole = negation(equal(_size(arguments[0]), integer(8)))
    number = spark_cast(call(VARCHAR, "conv", _hex(arguments[0]), integer(16), integer(-10)), BIGINT)
    return guarded(number, whole, "could not convert slice to array: int8recv needs 8 bytes", settings)


# --- parts -------------------------------------------------------------------------------------------


@function("substring", "substr", takes=[BYTEA, INTEGER, INTEGER], optional=1)
def _substring(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Positions before the first count against the length."""
    node, start, *rest = arguments
    begin = call(INTEGER, "greatest", start, integer(1))
    if not rest:
        return call(BYTEA, "substr", node, begin)
    end = binary(exp.Add, INTEGER, start.copy(), rest[0])
    size = call(INTEGER, "greatest", binary(exp.Sub, INTEGER, end, begin.copy()), integer(0))
    negative = comparison(exp.LT, rest[0].copy(), integer(0))
    return guarded(
        call(BYTEA, "substr", node, begin, size), negative, "negative substring length not allowed", settings
    )


@function("overlay", takes=[BYTEA, BYTEA, INTEGER, INTEGER], optional=1)
def _overlay(arguments: Nodes, settings: Settings) -> exp.Expr:
    before = comparison(exp.LTE, arguments[2].copy(), integer(0))
    return guarded(call(BYTEA, "overlay", *arguments), before, "negative substring length not allowed", settings)


@function("strpos", "position", takes=[BYTEA, BYTEA])
def _position(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Digits are compared pair by pair: a match may not begin in the middle of a byte."""
    whole, part = arguments
    wanted = call(VARCHAR, "concat", text("^((?:..)*?)"), _hex(part))
    before = call(INTEGER, "length", call(VARCHAR, "regexp_extract", _hex(whole), wanted, integer(1)))
    position = spark_cast(binary(exp.IntDiv, BIGINT, before, integer(2)), INTEGER)
    found = call(BOOLEAN, "rlike", _hex(whole.copy()), wanted.copy())
    there = binary(exp.Add, INTEGER, position, integer(1))
    return case(INTEGER, [(found, there), (negation(found.copy()), integer(0))])


def _trim(side: str) -> Maker:
    """By way of text with a character for each byte: a pattern would run out of stack over many bytes."""

    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        whole, unwanted = (call(VARCHAR, "decode", node, _ONE_TO_ONE.copy()) for node in arguments)
        trimmed = invoke(side, [whole, unwanted], settings)
        return call(BYTEA, "encode", trimmed, _ONE_TO_ONE.copy())

    return make


function("btrim", "trim", takes=[BYTEA, BYTEA])(_trim("btrim"))
function("ltrim", takes=[BYTEA, BYTEA])(_trim("ltrim"))
function("rtrim", takes=[BYTEA, BYTEA])(_trim("rtrim"))


# --- single bytes and bits ---------------------------------------------------------------------------


def _outside(index: exp.Expr, size: exp.Expr) -> exp.Expr:
    return disjunction([comparison(exp.LT, index.copy(), integer(0)), comparison(exp.GTE, index.copy(), size)])


def _within(value: exp.Expr, index: exp.Expr, size: exp.Expr, settings: Settings) -> exp.Expr:
    """The value where the index lies inside; else PostgreSQL's words, with the numbers."""
    last = to_text(binary(exp.Sub, INTEGER, size.copy(), integer(1)), settings)
    told = call(
        VARCHAR, "concat", text("index "), to_text(index.copy(), settings), text(" out of valid range, 0.."), last
    )
    return guarded(value, _outside(index, size), told, settings)


def _byte(node: exp.Expr, index: exp.Expr) -> exp.Expr:
    after = binary(exp.Add, INTEGER, index, integer(1))
    return _number(_hex(call(BYTEA, "substr", node, after, integer(1))))


def _with_byte(node: exp.Expr, index: exp.Expr, value: exp.Expr) -> exp.Expr:
    digits = call(VARCHAR, "lpad", _hex(binary(exp.BitwiseAnd, INTEGER, value, integer(255))), integer(2), text("0"))
    return call(BYTEA, "overlay", node, _unhex(digits), binary(exp.Add, INTEGER, index, integer(1)), integer(1))


def _size(node: exp.Expr) -> exp.Expr:
    return call(INTEGER, "octet_length", node.copy())


@function("get_byte", takes=[BYTEA, INTEGER])
def _get_byte(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, index = arguments
    return _within(_byte(node.copy(), index.copy()), index, _size(node), settings)


@function("set_byte", takes=[BYTEA, INTEGER, INTEGER])
def _set_byte(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, index, value = arguments
    made = _with_byte(node.copy(), index.copy(), value)
    return _within(made, index, _size(node), settings)


def _bit_place(index: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """The byte of a bit, and its place in it, lowest first."""
    byte = spark_cast(binary(exp.IntDiv, BIGINT, index.copy(), integer(8)), INTEGER)
    return byte, spark_cast(binary(exp.Mod, BIGINT, index.copy(), integer(8)), INTEGER)


@function("get_bit", takes=[BYTEA, BIGINT])
def _get_bit(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, index = arguments
    byte, place = _bit_place(index)
    bit = binary(exp.BitwiseAnd, INTEGER, call(INTEGER, "shiftright", _byte(node.copy(), byte), place), integer(1))
    bits = binary(exp.Mul, INTEGER, _size(node), integer(8))
    return _within(bit, index, bits, settings)


@function("set_bit", takes=[BYTEA, BIGINT, INTEGER])
def _set_bit(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, index, value = arguments
    byte, place = _bit_place(index)
    mask = call(INTEGER, "shiftleft", integer(1), place)
    cleared = binary(exp.BitwiseAnd, INTEGER, _byte(node.copy(), byte), typed(exp.BitwiseNot(this=mask), INTEGER))
    changed = binary(exp.BitwiseOr, INTEGER, cleared, call(INTEGER, "shiftleft", value, place.copy()))
    made = _with_byte(node.copy(), byte.copy(), changed)
    bits = binary(exp.Mul, INTEGER, _size(node), integer(8))
    not_a_bit = negation(typed(exp.In(this=value.copy(), expressions=[integer(0), integer(1)]), BOOLEAN))
    told = call(
        VARCHAR, "concat", text("value "), to_text(value.copy(), settings), text(" is invalid, new bit must be 0 or 1")
    )
    return guarded(_within(made, index, bits, settings), not_a_bit, told, settings)


@function("bit_count", takes=[BYTEA])
def _bit_count(arguments: Nodes, settings: Settings) -> exp.Expr:
    pair = variable("x", VARCHAR)
    ones = call(INTEGER, "bit_count", _number(pair))
    counted = binary(exp.Add, BIGINT, exp.column("total"), ones)
    return call(BIGINT, "aggregate", _pairs(arguments[0]), bigint(0), lambda_(counted, "total", "x"))


@function("bit_length", takes=[BYTEA])
def _bit_length(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(INTEGER, "bit_length", arguments[0])
