"""Numbers through template patterns: to_char and to_number.

A template is a constant: digits `9` and `0`, a point (`.` or `D`), groups (`,` or `G`), signs (`S`, `MI`, `PL`, `SG`,
`PR`), `FM`, `V`, `TH`, `RN`, `EEEE`, and other text, which stands for itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql.casts import convert
from seiche.sql.functions.registry import Any_, function
from seiche.sql.functions.templates import ordinal
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    checked_cast,
    comparison,
    conjunction,
    disjunction,
    equal,
    integer,
    negation,
    not_null,
    spark_cast,
    text,
    typed,
)
from seiche.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, NUMERIC, VARCHAR, numeric

Nodes = list[exp.Expr]

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(FM|SG|PR|MI|PL|RN|TH|EEEE|[90.DGSLV,])|(.)', re.S | re.I)


@dataclass(frozen=True, slots=True)
class _Template:
    fill: bool
    whole: tuple[str, ...]  # 9, 0 and G before the point, and texts as "'..."
    fraction: str  # 9 and 0 behind it
    point: bool
    sign: str  # "", S, MI, PL, SG, PR
    sign_place: str  # first, last or none
    before: str
    after: str
    shift: int
    th: str


def _parsed(pattern: str) -> _Template:
    fill, point, sign, place, before, after, shift, th = True, False, "", "", "", "", 0, ""
    whole: list[str] = []
    fraction, shifting = "", False
    for quoted, word, other in _TOKEN.findall(pattern):
        upper = word.upper()
        started = bool(whole) or point
        match upper:
            case "FM":
                fill = False
            case "S" | "MI" | "PL" | "SG" | "PR":
                sign, place = upper, "last" if started else "first"
                if upper in ("SG", "MI", "PL") and started and not _ends(pattern, word):
                    raise FeatureNotSupported(f'number format "{pattern}" is not supported')
            case "9" | "0" if shifting:
                shift += 1
            case "9" | "0" if point:
                fraction += upper
            case "9" | "0":
                whole.append(upper)
            case "." | "D":
                point = True
            case "," | "G":
                whole.append("G")
            case "V":
                shifting = True
            case "TH":
                th = word
            case "L":
                # The locale is "C", whose sign of currency is nothing.
                before += " " if not started and fill else ""
            case "":
                plain = re.sub(r"\\(.)", r"\1", quoted) if quoted else other
                if not started:
                    before += plain
                elif point:
                    after += plain
                else:
                    whole.append("'" + plain)
            case _:
                raise FeatureNotSupported(f'number format "{pattern}" is not supported')
    while whole and whole[-1].startswith("'") and not point:
        after = whole.pop()[1:] + after
    return _Template(fill, tuple(whole), fraction, point, sign, place, before, after, shift, th)


def _ends(pattern: str, word: str) -> bool:
    return pattern.upper().rstrip().endswith(word.upper())


@function("to_char", takes=[Any_.NUMBER, VARCHAR])
def _to_char(arguments: Nodes, settings: Settings) -> exp.Expr:
    pattern = arguments[1]
    if not isinstance(pattern, exp.Literal):
        raise FeatureNotSupported("function to_char needs a constant format")
    words = str(pattern.this).upper()
    if re.fullmatch(r"(FM)?RN", words):
        return _roman(arguments[0], settings, fill="FM" not in words)
    if found := re.fullmatch(r"(FM)?9(?:[.D](9*))?EEEE", words):
        return _scientific(arguments[0], len(found[2] or ""), settings)
    template = _parsed(str(pattern.this))
    if not template.whole and not template.fraction:
        raise FeatureNotSupported(f'number format "{pattern.this}" is not supported')
    return _written(arguments[0], template, settings)


def _written(number: exp.Expr, template: _Template, settings: Settings) -> exp.Expr:
    scale = len(template.fraction)
    if template.shift:
        number = binary(
            exp.Mul,
            NUMERIC,
            convert(number, NUMERIC, settings),
            spark_cast(integer(10**template.shift), numeric(10, 0)),
        )
        number = typed(number, NUMERIC)
    node = convert(number, numeric(38, scale, declared=True), settings)
    size = call(VARCHAR, "ltrim", text("-"), spark_cast(node.copy(), VARCHAR))
    digits = call(VARCHAR, "substring_index", size, text("."), integer(1))
    fraction = call(VARCHAR, "substring_index", size.copy(), text("."), integer(-1)) if scale else text("")
    kept_zeros = template.fraction.rfind("0") + 1
    if scale and not template.fill:
        head, tail = (
            call(VARCHAR, "left", fraction, integer(kept_zeros)),
            call(VARCHAR, "substr", fraction.copy(), integer(kept_zeros + 1)),
        )
        fraction = call(VARCHAR, "concat", head, call(VARCHAR, "rtrim", text("0"), tail))
    places = [part for part in template.whole if part in "90"] + ["9"] * template.shift
    width = len(places)
    forced = width - places.index("0") if "0" in places else 0
    shown = _whole_part(digits, fraction, width, forced, template)
    body = _grouped(shown, template, width)
    too_large = comparison(
        exp.GT, call(INTEGER, "length", digits.copy()), integer(max(width, 1 if width == 0 else width))
    )
    if template.point:
        body = call(VARCHAR, "concat", body, text("."), fraction.copy())
    hashes = "".join("#" if p in "90" else "," if p == "G" else p[1:] for p in template.whole) + "#" * template.shift
    overflow = text(hashes + ("." + "#" * scale if template.point else ""))
    body = case(VARCHAR, [(too_large, overflow)], body)
    if not template.fill:
        body = call(VARCHAR, "ltrim", text(" "), body)
    body = ordinal(body, template.th) if template.th else body
    signed = _signed(body, comparison(exp.LT, node.copy(), integer(0)), template)
    return call(VARCHAR, "concat", text(template.before), signed, text(template.after))


def _whole_part(digits: exp.Expr, fraction: exp.Expr, width: int, forced: int, template: _Template) -> exp.Expr:
    """The digits before the point, with zeros where the template has them and spaces before."""
    shown = digits
    if forced == 0 and template.point:  # no zero before the point, unless nothing would be left of the number
        bare = [equal(digits.copy(), text("0"))]
        if not template.fill:
            bare.append(comparison(exp.NEQ, fraction.copy(), text("")))
        shown = case(VARCHAR, [(conjunction(bare), text(""))], digits)
    if forced:
        short = comparison(exp.LT, call(INTEGER, "length", shown.copy()), integer(forced))
        shown = case(VARCHAR, [(short, call(VARCHAR, "lpad", shown.copy(), integer(forced), text("0")))], shown)
    return call(VARCHAR, "lpad", shown, integer(width), text(" "))


def _grouped(shown: exp.Expr, template: _Template, width: int) -> exp.Expr:
    """The digits with the template's separators between them; one shows only behind a digit."""
    if all(part in "90" for part in template.whole):
        return shown
    parts: Nodes = []
    at, start = 0, 0
    for part in [*template.whole, *(["9"] * template.shift), ""]:
        if part in ("9", "0"):
            at += 1
            continue
        if at > start:
            parts.append(call(VARCHAR, "substr", shown.copy(), integer(start + 1), integer(at - start)))
            start = at
        if part == "G":
            blank = equal(call(VARCHAR, "substr", shown.copy(), integer(max(at, 1)), integer(1)), text(" "))
            parts.append(case(VARCHAR, [(blank, text(" "))], text(",")))
        elif part:
            parts.append(text(part[1:]))
    return call(VARCHAR, "concat", *parts)


def _signed(body: exp.Expr, negative: exp.Expr, template: _Template) -> exp.Expr:
    """The sign in its place: before the first digit, or where the template says."""

    def choice(minus: str, plus: str) -> exp.Expr:
        return case(VARCHAR, [(negative.copy(), text(minus))], text(plus))

    blank = " " if template.fill else ""
    match template.sign, template.sign_place:
        case "", _:
            return _before_digit(body, choice("-", blank), template)
        case "S", "first":
            return _before_digit(body, choice("-", "+"), template)
        case "S", _:
            return call(VARCHAR, "concat", body, choice("-", "+"))
        case "PR", _:
            closed = call(VARCHAR, "concat", body, choice(">", blank))
            return _before_digit(closed, choice("<", blank), template)
        case "SG", place:
            sign = choice("-", "+")
        case "MI", place:
            sign = choice("-", blank)
        case "PL", place:
            # The plus has a place of its own, and the minus still stands before the digits.
            body = _before_digit(body, choice("-", blank), template)
            sign = choice(blank, "+")
        case other:
            raise InvalidParameter(f'"{other[0]}" cannot stand here')
    return call(VARCHAR, "concat", sign, body) if place == "first" else call(VARCHAR, "concat", body, sign)


def _before_digit(body: exp.Expr, sign: exp.Expr, template: _Template) -> exp.Expr:
    if not template.fill:
        return call(VARCHAR, "concat", sign, body)
    spaces = call(VARCHAR, "regexp_extract", body.copy(), text("^ *"), integer(0))
    return call(VARCHAR, "concat", spaces, sign, call(VARCHAR, "ltrim", text(" "), body))


_ROMAN = (
    ["", "M", "MM", "MMM"],
    ["", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"],
    ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"],
    ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"],
)


def _roman(number: exp.Expr, settings: Settings, *, fill: bool) -> exp.Expr:
    node = convert(convert(number, NUMERIC, settings), INTEGER, settings)
    parts: Nodes = []
    for power, names in zip((1000, 100, 10, 1), _ROMAN, strict=True):
        place = spark_cast(
            binary(exp.Mod, BIGINT, binary(exp.IntDiv, BIGINT, node.copy(), integer(power)), integer(10)), INTEGER
        )
        listed = call(VARCHAR, "array", *(text(name) for name in names))
        parts.append(call(VARCHAR, "get", listed, place))
    made = call(VARCHAR, "concat", *parts)
    outside = disjunction([comparison(exp.LT, node.copy(), integer(1)), comparison(exp.GT, node.copy(), integer(3999))])
    shown = case(VARCHAR, [(outside, text("#" * 15)), (not_null(node), made)])
    return call(VARCHAR, "lpad", shown, integer(15), text(" ")) if fill else shown


def _scientific(number: exp.Expr, digits: int, settings: Settings) -> exp.Expr:
    node = convert(number, DOUBLE, settings)
    shown = call(VARCHAR, "format_string", text(f"%.{digits}e"), node)
    sign = case(VARCHAR, [(comparison(exp.LT, node.copy(), integer(0)), text(""))], text(" "))
    return call(VARCHAR, "concat", sign, shown)


@function("to_number", takes=[VARCHAR, VARCHAR])
def _to_number(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Digits and the point count; what else the text has is passed over, but for the signs."""
    node, pattern = arguments
    if not isinstance(pattern, exp.Literal):
        raise FeatureNotSupported("function to_number needs a constant format")
    digits = call(VARCHAR, "regexp_replace", node, text("[^0-9.]"), text(""))
    value = checked_cast(digits, NUMERIC, settings)
    minus = call(BOOLEAN, "rlike", node.copy(), text("[-<]"))
    return case(NUMERIC, [(minus, typed(exp.Neg(this=value), NUMERIC)), (negation(minus.copy()), value.copy())])
