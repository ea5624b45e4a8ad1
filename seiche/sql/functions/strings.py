"""Text and bytes."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter, OutOfDomain
from seiche.sql.casts import convert, to_text
from seiche.sql.functions.formats import formatted
from seiche.sql.functions.registry import Any_, Maker, function
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    comparison,
    conjunction,
    equal,
    guarded,
    integer,
    is_null,
    lambda_,
    negation,
    not_null,
    null,
    once,
    spark_cast,
    text,
    type_of,
    typed,
    variable,
)
from seiche.sql.regex_parts import literal_text
from seiche.types import BIGINT, BOOLEAN, BYTEA, INTEGER, VARCHAR, Kind, SqlType, array_of

Nodes = list[exp.Expr]


def _same(names: str, spark: str, takes: list[SqlType], gives: SqlType, optional: int = 0) -> None:
    """Functions that Spark has with PostgreSQL's meaning."""

    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        return call(gives, spark, *arguments)

    function(*names.split(), takes=takes, optional=optional)(make)


_same("lower", "lower", [VARCHAR], VARCHAR)
_same("upper", "upper", [VARCHAR], VARCHAR)
_same("length char_length character_length", "length", [VARCHAR], INTEGER)
_same("length octet_length", "octet_length", [BYTEA], INTEGER)
_same("octet_length", "octet_length", [VARCHAR], INTEGER)
_same("bit_length", "bit_length", [VARCHAR], INTEGER)
_same("reverse", "reverse", [VARCHAR], VARCHAR)
_same("replace", "replace", [VARCHAR, VARCHAR, VARCHAR], VARCHAR)
_same("translate", "translate", [VARCHAR, VARCHAR, VARCHAR], VARCHAR)
_same("md5", "md5", [VARCHAR], VARCHAR)
_same("md5", "md5", [BYTEA], VARCHAR)
_same("ascii", "ascii", [VARCHAR], INTEGER)
_same("starts_with", "startswith", [VARCHAR, VARCHAR], BOOLEAN)
_same("levenshtein", "levenshtein", [VARCHAR, VARCHAR], INTEGER)


@function("strpos", "position", takes=[VARCHAR, VARCHAR])
def _strpos(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(INTEGER, "instr", *arguments)


@function("substring", "substr", takes=[VARCHAR, INTEGER, INTEGER], optional=1)
def _substring(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Positions before the first count against the length."""
    node, start, *rest = arguments
    if not rest:
        # greatest() would pass over a NULL.
        begin = case(INTEGER, [(comparison(exp.LT, start, integer(1)), integer(1))], start.copy())
        return call(VARCHAR, "substr", node, begin)
    length = rest[0]
    first, size = constant_integer(start), constant_integer(length)
    if size is not None and size < 0:
        raise OutOfDomain("negative substring length not allowed", sqlstate="22011")
    if first is not None and size is not None:
        return call(VARCHAR, "substr", node, integer(max(first, 1)), integer(max(0, min(size, size + first - 1))))
    end = binary(exp.Add, INTEGER, start, length)
    begin = call(INTEGER, "greatest", start.copy(), integer(1))
    size_left = call(INTEGER, "greatest", binary(exp.Sub, INTEGER, end, begin.copy()), integer(0))
    known = conjunction([not_null(start.copy()), not_null(length.copy())])
    return case(VARCHAR, [(known, call(VARCHAR, "substr", node, begin, size_left))])


@function("overlay", takes=[VARCHAR, VARCHAR, INTEGER, INTEGER], optional=1)
def _overlay(arguments: Nodes, settings: Settings) -> exp.Expr:
    before = comparison(exp.LTE, arguments[2].copy(), integer(0))
    return guarded(call(VARCHAR, "overlay", *arguments), before, "negative substring length not allowed", settings)


@function("split_part", takes=[VARCHAR, VARCHAR, INTEGER])
def _split_part(arguments: Nodes, settings: Settings) -> exp.Expr:
    if constant_integer(arguments[2]) == 0:
        raise InvalidParameter("field position must not be zero")
    return call(VARCHAR, "split_part", *arguments)


def _trim(spark: str) -> Maker:
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        node, characters = arguments[0], arguments[1] if len(arguments) > 1 else text(" ")
        if spark == "btrim":
            return call(VARCHAR, "btrim", node, characters)
        return call(VARCHAR, spark, characters, node)

    return make


function("btrim", "trim", takes=[VARCHAR, VARCHAR], optional=1)(_trim("btrim"))
function("ltrim", takes=[VARCHAR, VARCHAR], optional=1)(_trim("ltrim"))
function("rtrim", takes=[VARCHAR, VARCHAR], optional=1)(_trim("rtrim"))


_LONGEST = 1 << 26  # characters; PostgreSQL makes sixteen times as many, and Java runs out of memory before
_FEW = 1 << 10


@function("repeat", takes=[VARCHAR, INTEGER])
def _repeat(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, count = arguments
    constant = constant_integer(count)
    if constant is not None and constant <= _FEW:
        return call(VARCHAR, "repeat", node, count)
    length = call(INTEGER, "greatest", call(INTEGER, "length", node.copy()), integer(1))
    most = spark_cast(binary(exp.IntDiv, BIGINT, integer(_LONGEST), length), INTEGER)
    return _unless_more(count, most, lambda times: call(VARCHAR, "repeat", node, times), settings)


def _unless_more(count: exp.Expr, most: exp.Expr, make: Callable[[exp.Expr], exp.Expr], settings: Settings) -> exp.Expr:
    """Spark may evaluate it before it looks at the condition, so that it is never asked for more."""
    bounded = make(case(INTEGER, [(comparison(exp.LTE, count.copy(), most), count)]))
    return guarded(bounded, comparison(exp.GT, count.copy(), most.copy()), "requested length too large", settings)


def _pad(spark: str) -> Maker:
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        node, size = arguments[:2]
        fill = arguments[2] if len(arguments) > 2 else text(" ")
        constant = constant_integer(size)
        if constant is not None and constant <= _LONGEST:
            return call(VARCHAR, spark, node, size, fill)
        return _unless_more(size, integer(_LONGEST), lambda most: call(VARCHAR, spark, node, most, fill), settings)

    return make


function("lpad", takes=[VARCHAR, INTEGER, VARCHAR], optional=1)(_pad("lpad"))
function("rpad", takes=[VARCHAR, INTEGER, VARCHAR], optional=1)(_pad("rpad"))


@function("left", takes=[VARCHAR, INTEGER])
def _left(arguments: Nodes, settings: Settings) -> exp.Expr:
    """A negative count drops that many from the end."""
    count = arguments[1]

    def make(node: exp.Expr) -> exp.Expr:
        size = binary(exp.Add, INTEGER, call(INTEGER, "length", node.copy()), count.copy())
        kept = call(INTEGER, "greatest", size, integer(0))
        kept = case(INTEGER, [(comparison(exp.LT, count.copy(), integer(0)), kept)], count.copy())
        return call(VARCHAR, "substr", node, integer(1), kept)

    return once(arguments[0], VARCHAR, make, count)


@function("right", takes=[VARCHAR, INTEGER])
def _right(arguments: Nodes, settings: Settings) -> exp.Expr:
    count = arguments[1]

    def make(node: exp.Expr) -> exp.Expr:
        length = call(INTEGER, "length", node.copy())
        from_end = binary(exp.Add, INTEGER, binary(exp.Sub, INTEGER, length, count.copy()), integer(1))
        from_end = call(INTEGER, "greatest", from_end, integer(1))
        dropped = binary(exp.Sub, INTEGER, integer(1), count.copy())
        start = case(INTEGER, [(comparison(exp.LT, count.copy(), integer(0)), dropped)], from_end)
        return call(VARCHAR, "substr", node, start)

    return once(arguments[0], VARCHAR, make, count)


@function("initcap", takes=[VARCHAR])
def _initcap(arguments: Nodes, settings: Settings) -> exp.Expr:
    """A word is a run of letters and digits, so one starts after any other character."""
    marked = call(
        VARCHAR, "regexp_replace", call(VARCHAR, "lower", arguments[0]), text(r"([^\p{L}\p{N}])"), text("$1 ")
    )
    capitalised = call(VARCHAR, "initcap", marked)
    return call(VARCHAR, "regexp_replace", capitalised, text(r"([^\p{L}\p{N}]) "), text("$1"))


@function("concat", takes=[Any_.VALUE, Any_.VALUE], variadic=True)
def _concat(arguments: Nodes, settings: Settings) -> exp.Expr:
    """NULLs are skipped."""
    return call(VARCHAR, "concat_ws", text(""), *(_shown(a, settings) for a in arguments))


@function("concat_ws", takes=[VARCHAR, Any_.VALUE], variadic=True)
def _concat_ws(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(VARCHAR, "concat_ws", arguments[0], *(_shown(a, settings) for a in arguments[1:]))


def _shown(node: exp.Expr, settings: Settings) -> exp.Expr:
    """Output form: booleans as t and f."""
    if type_of(node).kind is Kind.BOOLEAN:
        return case(VARCHAR, [(node, text("t")), (typed(exp.Not(this=node.copy()), BOOLEAN), text("f"))])
    return to_text(node, settings)


_SPECIFIER = re.compile(r"%(?:(\d+)\$)?(-?)(?:(\d+)|\*(?:(\d+)\$)?)?([sIL%])|%(.?)")


@function("format", takes=[VARCHAR, Any_.VALUE], variadic=True)
def _format(arguments: Nodes, settings: Settings) -> exp.Expr:
    """`%s`, `%I`, `%L` and `%%`, with positions, and in a constant format also with widths."""
    pattern = arguments[0]
    if not isinstance(pattern, exp.Literal):
        plain, names, quoted = (
            [_formatted(kind, value.copy(), settings) for value in arguments[1:]] for kind in ("s", "I", "L")
        )
        return formatted(pattern, plain, names, quoted, settings)
    values, used, end = arguments[1:], 0, 0
    parts: Nodes = []

    def value_at(position: int) -> exp.Expr:
        if not 1 <= position <= len(values):
            raise InvalidParameter("too few arguments for format()")
        return values[position - 1].copy()

    for found in _SPECIFIER.finditer(pattern.this):
        parts.append(text(pattern.this[end : found.start()]))
        end = found.end()
        position, minus, width, width_at, kind, bad = found.groups()
        if kind is None:
            raise InvalidParameter(f'unrecognized format() type specifier "{bad}"', hint='For a single "%" use "%%".')
        if kind == "%":
            parts.append(text("%"))
            continue
        size: exp.Expr | None = integer(int(width)) if width else None
        if "*" in found[0]:
            used = int(width_at) if width_at else used + 1
            size = convert(value_at(used), INTEGER, settings)
        used = int(position) if position else used + 1
        parts.append(_aligned(_formatted(kind, value_at(used), settings), size, left=bool(minus)))
    parts.append(text(pattern.this[end:]))
    shown = [part for part in parts if not (isinstance(part, exp.Literal) and part.this == "")]
    return call(VARCHAR, "concat", *shown) if shown else text("")


def _formatted(kind: str, value: exp.Expr, settings: Settings) -> exp.Expr:
    shown = _shown(value, settings)
    match kind:
        case "I":
            return _quote_ident([shown], settings)
        case "L":
            return _quote_nullable([shown], settings)
        case _:
            return typed(exp.Coalesce(this=shown, expressions=[text("")]), VARCHAR)


def _aligned(node: exp.Expr, size: exp.Expr | None, *, left: bool) -> exp.Expr:
    """Filled with spaces up to a width, never cut; a negative width fills on the right."""
    if size is None:
        return node
    width = call(INTEGER, "greatest", call(INTEGER, "abs", size), call(INTEGER, "length", node.copy()))
    on_left, on_right = (call(VARCHAR, pad, node.copy(), width.copy(), text(" ")) for pad in ("lpad", "rpad"))
    if left:
        return on_right
    return case(VARCHAR, [(comparison(exp.LT, size.copy(), integer(0)), on_right)], on_left)


@function("quote_ident", takes=[VARCHAR])
def _quote_ident(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    plain = call(BOOLEAN, "rlike", node.copy(), text("^[a-z_][a-z0-9_$]*$"))
    keyword = typed(exp.In(this=node.copy(), expressions=[text(word) for word in _KEYWORDS]), BOOLEAN)
    quoted = call(VARCHAR, "concat", text('"'), call(VARCHAR, "replace", node.copy(), text('"'), text('""')), text('"'))
    return case(VARCHAR, [(conjunction([plain, negation(keyword)]), node)], quoted)


# PostgreSQL's words that name a column only in quotes.
_KEYWORDS = tuple(
    """all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both
    case cast char character check coalesce collate collation column concurrently constraint create cross
    current_catalog current_date current_role current_schema current_time current_timestamp current_user dec
    decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign
    freeze from full grant greatest group grouping having ilike in initially inner inout int integer
    intersect interval into is isnull join lateral leading least left like limit localtime localtimestamp
    national natural nchar none normalize not notnull null nullif numeric offset on only or order out outer
    overlaps overlay placing position precision primary real references returning right row select
    session_user setof similar smallint some substring symmetric table tablesample then time timestamp to
    trailing treat trim true union unique user using values varchar variadic verbose when where window with
    xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize
    xmltable""".split()
)


@function("quote_literal", takes=[VARCHAR])
def _quote_literal(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    doubled = call(VARCHAR, "replace", node, text("'"), text("''"))
    plain = call(VARCHAR, "concat", text("'"), doubled, text("'"))
    escaped = call(VARCHAR, "replace", doubled.copy(), text("\\"), text("\\\\"))
    with_escapes = call(VARCHAR, "concat", text("E'"), escaped, text("'"))
    return case(VARCHAR, [(call(BOOLEAN, "contains", node.copy(), text("\\")), with_escapes)], plain)


@function("quote_literal", takes=[Any_.VALUE])
def _quote_value(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _quote_literal([to_text(arguments[0], settings)], settings)


@function("quote_nullable", takes=[Any_.VALUE])
def _quote_nullable(arguments: Nodes, settings: Settings) -> exp.Expr:
    quoted = _quote_value(arguments, settings)
    return typed(exp.Coalesce(this=quoted, expressions=[text("NULL")]), VARCHAR)


@function("chr", takes=[INTEGER])
def _chr(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Any code point; Spark's own stops at 255."""
    code = constant_integer(arguments[0])
    if code is not None:
        return _character(code, settings)
    padded = call(VARCHAR, "lpad", call(VARCHAR, "hex", arguments[0]), integer(8), text("0"))
    decoded = call(VARCHAR, "decode", call(BYTEA, "unhex", padded), text("UTF-32"))
    return guarded(
        guarded(decoded, equal(arguments[0].copy(), integer(0)), NULL_CHARACTER, settings),
        comparison(exp.LT, arguments[0].copy(), integer(0)),
        NEGATIVE_CHARACTER,
        settings,
    )


NULL_CHARACTER = "null character not permitted"
NEGATIVE_CHARACTER = "character number must be positive"


def _character(code: int, settings: Settings) -> exp.Expr:
    surrogate = 0xD800 <= code <= 0xDFFF
    if 0 < code <= 0x10FFFF and not surrogate:
        return text(chr(code))
    if not settings.strict:
        return null(VARCHAR)
    if code < 0:
        raise InvalidParameter(NEGATIVE_CHARACTER)
    too = f"requested character {'not valid' if surrogate else 'too large'} for encoding: {code}"
    raise OutOfDomain(too if code else NULL_CHARACTER, sqlstate="54000")


@function("to_hex", takes=[Any_.INTEGER])
def _to_hex(arguments: Nodes, settings: Settings) -> exp.Expr:
    digits = call(VARCHAR, "lower", call(VARCHAR, "hex", arguments[0]))
    if type_of(arguments[0]).kind is Kind.BIGINT:
        return digits
    return case(
        VARCHAR,
        [(comparison(exp.LT, arguments[0].copy(), integer(0)), call(VARCHAR, "right", digits.copy(), integer(8)))],
        digits,
    )


def constant_text(name: str, node: exp.Expr) -> str:
    if not isinstance(node, exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant format")
    return str(node.this).lower()


@function("string_to_array", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def string_to_array(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Without a separator the characters, with an empty one the whole."""
    node, separator = arguments[:2]
    type_ = array_of(VARCHAR)
    if isinstance(separator, exp.Literal):
        pattern: exp.Expr = text(literal_text(separator.this))
    else:
        pattern = call(VARCHAR, "concat", text("\\Q"), separator.copy(), text("\\E"))
    nothing = spark_cast(call(type_, "array"), type_)
    made = case(
        type_,
        [
            (equal(node.copy(), text("")), nothing),
            (
                conjunction([equal(separator.copy(), text("")), not_null(node.copy())]),
                call(type_, "array", node.copy()),
            ),
            (is_null(separator.copy()), call(type_, "split", node.copy(), text(""))),
        ],
        call(type_, "split", node, pattern),
    )
    if len(arguments) < 3:
        return made
    item = typed(exp.Nullif(this=exp.column("x"), expression=arguments[2]), VARCHAR)
    return call(type_, "transform", made, lambda_(item, "x"))


@function("unistr", takes=[VARCHAR])
def _unistr(arguments: Nodes, settings: Settings) -> exp.Expr:
    r"""`\0061`, `\+000061`, `\u0061` and `\U00000061` in a constant."""
    if not isinstance(arguments[0], exp.Literal):
        raise FeatureNotSupported("function unistr needs a constant")
    return text(re.sub(_UNICODE, _code_point, arguments[0].this))


def _code_point(found: re.Match[str]) -> str:
    return "\\" if found[1] else chr(int("".join(digits or "" for digits in found.groups()), 16))


_UNICODE = r"\\(?:(\\)|([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))"


@function("to_bin", takes=[Any_.INTEGER])
def _to_bin(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _in_base(arguments[0], 2, 32)


@function("to_oct", takes=[Any_.INTEGER])
def _to_oct(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _in_base(arguments[0], 8, 32)


def _in_base(node: exp.Expr, base: int, bits: int) -> exp.Expr:
    """Two's complement, of 32 bits unless the type has 64."""
    value = node
    if type_of(node).kind is not Kind.BIGINT:
        wide = spark_cast(node, BIGINT)
        turned = binary(exp.Add, BIGINT, wide.copy(), integer(1 << bits, BIGINT))
        value = case(BIGINT, [(comparison(exp.LT, node.copy(), integer(0)), turned)], wide)
    return call(VARCHAR, "conv", spark_cast(value, VARCHAR), integer(10), integer(base))


@function("parse_ident", takes=[VARCHAR])
def _parse_ident(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The parts of a qualified name, unquoted ones in lower case."""
    type_ = array_of(VARCHAR)
    parts = call(type_, "regexp_extract_all", arguments[0], text(r'"(?:[^"]|"")*"|[^".\s]+'), integer(0))
    part = variable("x", VARCHAR)
    size = binary(exp.Sub, INTEGER, call(INTEGER, "length", part.copy()), integer(2))
    inner = call(VARCHAR, "substr", part.copy(), integer(2), size)
    quoted = call(VARCHAR, "replace", inner, text('""'), text('"'))
    body = case(VARCHAR, [(call(BOOLEAN, "startswith", part, text('"')), quoted)], call(VARCHAR, "lower", part.copy()))
    return call(type_, "transform", parts, lambda_(body, "x"))


# --- addresses ---------------------------------------------------------------------------------------

_BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"


@function("inet_aton", takes=[VARCHAR])
def _inet_aton(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The number of an IPv4 address."""
    address = arguments[0]
    parts = call(array_of(VARCHAR), "split", address, text("[.]"))
    value: exp.Expr | None = None
    for place in range(4):
        part = spark_cast(call(VARCHAR, "get", parts.copy(), integer(place)), BIGINT)
        shifted = call(BIGINT, "shiftleft", part, integer(24 - 8 * place))
        value = shifted if value is None else typed(exp.Add(this=value, expression=shifted), BIGINT)
    assert value is not None
    fits = typed(exp.RegexpLike(this=address.copy(), expression=text(f"^{_BYTE}([.]{_BYTE}){{3}}$")), BOOLEAN)
    return guarded(value, negation(fits), "not an IPv4 address", settings)


@function("inet_ntoa", takes=[BIGINT])
def _inet_ntoa(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The IPv4 address of a number."""
    number = arguments[0]
    parts = []
    for place in range(4):
        shifted = call(BIGINT, "shiftright", number.copy(), integer(24 - 8 * place))
        parts.append(spark_cast(typed(exp.BitwiseAnd(this=shifted, expression=integer(255)), BIGINT), VARCHAR))
    outside = typed(
        exp.Or(
            this=comparison(exp.LT, number.copy(), integer(0)),
            expression=comparison(exp.GT, number.copy(), typed(exp.Literal.number(2**32 - 1), BIGINT)),
        ),
        BOOLEAN,
    )
    dots = [piece for part in parts for piece in (text("."), part)][1:]
    return guarded(call(VARCHAR, "concat", *dots), outside, "the number of an IPv4 address is out of range", settings)


@function("secure_compare", takes=[VARCHAR, VARCHAR])
def _secure_compare(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Equality: how long it takes tells nobody anything here, where rows are compared by the batch."""
    return equal(arguments[0], arguments[1])
