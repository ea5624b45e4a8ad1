"""Text and bytes."""

from __future__ import annotations

import re

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql.casts import to_text
from seiche.sql.functions.registry import Any_, Maker, function
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import (
    Settings,
    attempt,
    binary,
    call,
    case,
    comparison,
    conjunction,
    equal,
    integer,
    not_null,
    spark_cast,
    text,
    type_of,
    typed,
)
from seiche.sql.operators import regex
from seiche.types import BOOLEAN, BYTEA, INTEGER, VARCHAR, Kind, SqlType, array_of

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
_same("repeat", "repeat", [VARCHAR, INTEGER], VARCHAR)
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
        return call(VARCHAR, "substr", node, call(INTEGER, "greatest", start, integer(1)))
    length = rest[0]
    first, size = constant_integer(start), constant_integer(length)
    if size is not None and size < 0:
        raise InvalidParameter("negative substring length not allowed")
    if first is not None and size is not None:
        return call(VARCHAR, "substr", node, integer(max(first, 1)), integer(max(0, min(size, size + first - 1))))
    end = binary(exp.Add, INTEGER, start, length)
    begin = call(INTEGER, "greatest", start.copy(), integer(1))
    return call(
        VARCHAR,
        "substr",
        node,
        begin,
        call(INTEGER, "greatest", binary(exp.Sub, INTEGER, end, begin.copy()), integer(0)),
    )


@function("substring", takes=[VARCHAR, VARCHAR])
def _substring_regex(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The match, or its first group; NULL without a match."""
    node, pattern = arguments
    group = 0
    if isinstance(pattern, exp.Literal):
        group = 1 if re.search(r"(?<!\\)\((?!\?)", pattern.this) else 0
    found = call(VARCHAR, "regexp_extract", node, regex(pattern), integer(group))
    return case(VARCHAR, [(call(BOOLEAN, "rlike", node.copy(), regex(pattern.copy())), found)])


@function("substring", "substr", takes=[BYTEA, INTEGER, INTEGER], optional=1)
def _substring_bytes(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(BYTEA, "substr", *arguments)


@function("overlay", takes=[VARCHAR, VARCHAR, INTEGER, INTEGER], optional=1)
def _overlay(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(VARCHAR, "overlay", *arguments)


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


def _pad(spark: str) -> Maker:
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        return call(VARCHAR, spark, *arguments, *([text(" ")] if len(arguments) == 2 else []))

    return make


function("lpad", takes=[VARCHAR, INTEGER, VARCHAR], optional=1)(_pad("lpad"))
function("rpad", takes=[VARCHAR, INTEGER, VARCHAR], optional=1)(_pad("rpad"))


@function("left", takes=[VARCHAR, INTEGER])
def _left(arguments: Nodes, settings: Settings) -> exp.Expr:
    """A negative count drops that many from the end."""
    node, count = arguments
    size = binary(exp.Add, INTEGER, call(INTEGER, "length", node.copy()), count.copy())
    kept = case(
        INTEGER, [(comparison(exp.LT, count, integer(0)), call(INTEGER, "greatest", size, integer(0)))], count.copy()
    )
    return call(VARCHAR, "substr", node, integer(1), kept)


@function("right", takes=[VARCHAR, INTEGER])
def _right(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, count = arguments
    length = call(INTEGER, "length", node.copy())
    from_end = call(
        INTEGER,
        "greatest",
        binary(exp.Add, INTEGER, binary(exp.Sub, INTEGER, length, count.copy()), integer(1)),
        integer(1),
    )
    start = case(
        INTEGER, [(comparison(exp.LT, count, integer(0)), binary(exp.Sub, INTEGER, integer(1), count.copy()))], from_end
    )
    return call(VARCHAR, "substr", node, start)


@function("initcap", takes=[VARCHAR])
def _initcap(arguments: Nodes, settings: Settings) -> exp.Expr:
    """A word is a run of letters and digits, so one starts after any other character."""
    marked = call(
        VARCHAR, "regexp_replace", call(VARCHAR, "lower", arguments[0]), text(r"([^\p{L}\p{N}])"), text("$1 ")
    )
    capitalised = call(VARCHAR, "initcap", marked)
    return call(VARCHAR, "regexp_replace", capitalised, text(r"([^\p{L}\p{N}]) "), text("$1"))


@function("concat", takes=[Any_.VALUE], variadic=True)
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


@function("format", takes=[VARCHAR, Any_.VALUE], variadic=True)
def _format(arguments: Nodes, settings: Settings) -> exp.Expr:
    """`%s`, `%I`, `%L` and `%%` in a constant format."""
    pattern = arguments[0]
    if not isinstance(pattern, exp.Literal):
        raise FeatureNotSupported("function format needs a constant format string")
    parts: Nodes = []
    values = iter(arguments[1:])
    for piece in re.split(r"(%[sIL%])", pattern.this):
        if piece == "%%":
            parts.append(text("%"))
        elif piece in ("%s", "%I", "%L"):
            value = next(values, None)
            if value is None:
                raise InvalidParameter("too few arguments for format()")
            shown = _shown(value, settings)
            quoted = {"%I": _quote_ident, "%L": _quote_nullable}.get(piece)
            parts.append(
                quoted([shown], settings)
                if quoted
                else typed(exp.Coalesce(this=shown, expressions=[text("")]), VARCHAR)
            )
        elif "%" in piece:
            raise InvalidParameter(f'unrecognized format specifier in "{piece}"', hint='For a single "%" use "%%".')
        elif piece:
            parts.append(text(piece))
    return call(VARCHAR, "concat", *parts) if parts else text("")


@function("quote_ident", takes=[VARCHAR])
def _quote_ident(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    plain = call(BOOLEAN, "rlike", node.copy(), text("^[a-z_][a-z0-9_$]*$"))
    quoted = call(VARCHAR, "concat", text('"'), call(VARCHAR, "replace", node.copy(), text('"'), text('""')), text('"'))
    return case(VARCHAR, [(plain, node)], quoted)


@function("quote_literal", takes=[VARCHAR])
def _quote_literal(arguments: Nodes, settings: Settings) -> exp.Expr:
    doubled = call(VARCHAR, "replace", arguments[0], text("'"), text("''"))
    return call(VARCHAR, "concat", text("'"), doubled, text("'"))


@function("quote_nullable", takes=[VARCHAR])
def _quote_nullable(arguments: Nodes, settings: Settings) -> exp.Expr:
    return typed(exp.Coalesce(this=_quote_literal(arguments, settings), expressions=[text("NULL")]), VARCHAR)


@function("chr", takes=[INTEGER])
def _chr(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Any code point; Spark's own stops at 255."""
    code = constant_integer(arguments[0])
    if code is not None and code > 0:
        return text(chr(code))
    padded = call(VARCHAR, "lpad", call(VARCHAR, "hex", arguments[0]), integer(8), text("0"))
    return call(VARCHAR, "decode", call(BYTEA, "unhex", padded), text("UTF-32"))


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


@function("encode", takes=[BYTEA, VARCHAR])
def _encode(arguments: Nodes, settings: Settings) -> exp.Expr:
    match _constant_text("encode", arguments[1]):
        case "hex":
            return call(VARCHAR, "lower", call(VARCHAR, "hex", arguments[0]))
        case "base64":
            return call(VARCHAR, "base64", arguments[0])
        case "escape":
            return call(VARCHAR, "decode", arguments[0], text("UTF-8"))
        case other:
            raise InvalidParameter(f'unrecognized encoding: "{other}"', hint="Use hex, base64 or escape.")


@function("decode", takes=[VARCHAR, VARCHAR])
def _decode(arguments: Nodes, settings: Settings) -> exp.Expr:
    match _constant_text("decode", arguments[1]):
        case "hex" | "base64" as form:
            if settings.strict:
                return call(BYTEA, "to_binary", arguments[0], text(form))
            return attempt(BYTEA, "try_to_binary", arguments[0], text(form))
        case "escape":
            return call(BYTEA, "encode", arguments[0], text("UTF-8"))
        case other:
            raise InvalidParameter(f'unrecognized encoding: "{other}"', hint="Use hex, base64 or escape.")


@function("convert_from", takes=[BYTEA, VARCHAR])
def _convert_from(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(VARCHAR, "decode", arguments[0], text("UTF-8"))


@function("convert_to", takes=[VARCHAR, VARCHAR])
def _convert_to(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(BYTEA, "encode", arguments[0], text("UTF-8"))


def _constant_text(name: str, node: exp.Expr) -> str:
    if not isinstance(node, exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant format")
    return str(node.this).lower()


def _digest(bits: int) -> Maker:
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        return call(BYTEA, "unhex", call(VARCHAR, "sha2", arguments[0], integer(bits)))

    return make


for _bits in (224, 256, 384, 512):
    function(f"sha{_bits}", takes=[BYTEA])(_digest(_bits))


@function("sha1", takes=[BYTEA])
def _sha1(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(BYTEA, "unhex", call(VARCHAR, "sha1", arguments[0]))


# --- regular expressions -----------------------------------------------------------------------------


def _flagged(pattern: exp.Expr, flags: str) -> exp.Expr:
    inline = "".join(flag for flag in flags if flag in "ism")
    pattern = regex(pattern)
    if not inline:
        return pattern
    if isinstance(pattern, exp.Literal):
        return text(f"(?{inline}){pattern.this}")
    return call(VARCHAR, "concat", text(f"(?{inline})"), pattern)


def _replacement(node: exp.Expr) -> exp.Expr:
    r"""PostgreSQL's `\1` and `\&` as Java's `$1` and `$0`."""
    if isinstance(node, exp.Literal):
        out = re.sub(r"\\([\d&\\])|(\$)", _java_reference, node.this)
        return text(out)
    dollars = call(VARCHAR, "replace", node, text("$"), text("\\$"))
    return call(VARCHAR, "regexp_replace", dollars, text(r"\\(\d)"), text(r"\$$1"))


def _java_reference(found: re.Match[str]) -> str:
    if found[2]:
        return "\\$"
    return "$0" if found[1] == "&" else "\\\\" if found[1] == "\\" else "$" + found[1]


@function("regexp_replace", takes=[VARCHAR, VARCHAR, VARCHAR, VARCHAR], optional=1)
def _regexp_replace(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The first match only, unless the flags have `g`."""
    node, pattern, replacement = arguments[:3]
    flags = _constant_text("regexp_replace", arguments[3]) if len(arguments) > 3 else ""
    wanted = _flagged(pattern, flags)
    if "g" in flags:
        return call(VARCHAR, "regexp_replace", node, wanted, _replacement(replacement))
    # The rest after the first match is matched along and put back.
    if isinstance(wanted, exp.Literal):
        groups = (
            re.compile(re.sub(r"\(\?<?[=!]|\\p\{\w+\}", "(?:", wanted.this)).groups if _compiles(wanted.this) else 0
        )
        once: exp.Expr = text(f"(?s)^(.*?)(?-s:{_shifted(wanted.this)})(.*)$")
        tail = groups + 2
        body = _replacement(replacement)
        if isinstance(body, exp.Literal):
            moved = re.sub(r"(?<!\\)\$(\d)", lambda m: f"${int(m[1]) + 1}", body.this) if groups else body.this
            if "$0" not in body.this:
                shifted = text(f"$1{moved}${{x}}".replace("${x}", f"${tail}"))
                return call(VARCHAR, "regexp_replace", node, once, shifted)
    position = call(INTEGER, "regexp_instr", node.copy(), wanted.copy())
    found = call(VARCHAR, "regexp_substr", node.copy(), wanted.copy())
    before = call(VARCHAR, "substr", node.copy(), integer(1), binary(exp.Sub, INTEGER, position, integer(1)))
    after = call(
        VARCHAR, "substr", node.copy(), binary(exp.Add, INTEGER, position.copy(), call(INTEGER, "length", found))
    )
    replaced = call(VARCHAR, "regexp_replace", found.copy(), wanted.copy(), _replacement(replacement))
    return case(
        VARCHAR,
        [
            (
                conjunction([not_null(node), comparison(exp.GT, position.copy(), integer(0))]),
                call(VARCHAR, "concat", before, replaced, after),
            )
        ],
        case(VARCHAR, [(conjunction([not_null(pattern), not_null(replacement)]), node.copy())]),
    )


def _compiles(pattern: str) -> bool:
    try:
        re.compile(re.sub(r"\(\?<?[=!]|\\p\{\w+\}", "(?:", pattern))
    except re.error:
        return False
    return True


def _shifted(pattern: str) -> str:
    """Back references count one group more."""
    return re.sub(r"(?<!\\)\\([1-9])", lambda found: f"\\{int(found[1]) + 1}", pattern)


@function("regexp_match", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def _regexp_match(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The groups of the first match, or the whole of it."""
    node, pattern = arguments[:2]
    flags = _constant_text("regexp_match", arguments[2]) if len(arguments) > 2 else ""
    if not isinstance(pattern, exp.Literal):
        raise FeatureNotSupported("function regexp_match needs a constant pattern")
    groups = re.compile(pattern.this).groups if _compiles(pattern.this) else 0
    wanted = _flagged(pattern, flags)
    found = [
        call(VARCHAR, "regexp_extract", node.copy(), wanted.copy(), integer(g))
        for g in (range(1, groups + 1) if groups else [0])
    ]
    matched = call(array_of(VARCHAR), "array", *found)
    return case(array_of(VARCHAR), [(call(BOOLEAN, "rlike", node, wanted), matched)])


@function("regexp_count", takes=[VARCHAR, VARCHAR])
def _regexp_count(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(INTEGER, "regexp_count", arguments[0], regex(arguments[1]))


@function("regexp_like", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def _regexp_like(arguments: Nodes, settings: Settings) -> exp.Expr:
    flags = _constant_text("regexp_like", arguments[2]) if len(arguments) > 2 else ""
    return call(BOOLEAN, "rlike", arguments[0], _flagged(arguments[1], flags))


@function("regexp_split_to_array", takes=[VARCHAR, VARCHAR])
def _regexp_split(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(array_of(VARCHAR), "split", arguments[0], regex(arguments[1]))


@function("string_to_array", takes=[VARCHAR, VARCHAR, VARCHAR], optional=1)
def _string_to_array(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, separator = arguments[:2]
    type_ = array_of(VARCHAR)
    if isinstance(separator, exp.Literal):
        pattern: exp.Expr = text(_literal_regex(separator.this))
    else:
        pattern = call(VARCHAR, "concat", text("\\Q"), separator, text("\\E"))
    parts = call(type_, "split", node, pattern)
    made = case(type_, [(equal(node.copy(), text("")), spark_cast(call(type_, "array"), type_))], parts)
    if len(arguments) < 3:
        return made
    item = typed(exp.Nullif(this=exp.column("x"), expression=arguments[2]), VARCHAR)
    return call(type_, "transform", made, exp.Lambda(this=item, expressions=[exp.to_identifier("x")]))


def _literal_regex(value: str) -> str:
    return re.sub(r"([\\.\[\]{}()*+?^$|])", r"\\\1", value)
