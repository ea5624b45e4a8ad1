"""Dates and intervals through template patterns: to_char, to_date and to_timestamp.

A template is a constant. Writing renders each of its fields by itself. Reading makes one regular expression of it,
as lenient as PostgreSQL is: separators match any separators or none, numbers may have fewer digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql import intervals
from seiche.sql.casts import instant, local_time, micros_of
from seiche.sql.functions.iso_years import iso_year
from seiche.sql.functions.making import counted_from_zero
from seiche.sql.functions.registry import function
from seiche.sql.functions.temporal import zone_shift
from seiche.sql.functions.varying_templates import read_by
from seiche.sql.literals import MICROS_PER_DAY
from seiche.sql.nodes import (
    Settings,
    attempt,
    bigint,
    binary,
    call,
    case,
    comparison,
    conjunction,
    equal,
    guarded,
    integer,
    let,
    negation,
    not_null,
    spark_cast,
    text,
    typed,
    variable,
)
from seiche.types import BIGINT, BOOLEAN, DATE, INTEGER, INTERVAL, TIMESTAMP, TIMESTAMPTZ, VARCHAR, numeric

Nodes = list[exp.Expr]

# Longest first where one begins another. Fields of text differ by case, those of numbers do not.
_NUMBERS = (
    "SSSSS SSSS HH24 HH12 HH MI SS MS US FF1 FF2 FF3 FF4 FF5 FF6 Y,YYY YYYY YYY YY Y IYYY IYY IY IDDD ID IW I "
    "MM DDD DD D WW W CC J Q TZH TZM"
).split()
_TEXTS = (
    "A.M. P.M. AM PM a.m. p.m. am pm B.C. A.D. BC AD b.c. a.d. bc ad MONTH Month month MON Mon mon DAY Day day "
    "DY Dy dy RM rm TZ tz OF"
).split()
_WORDS = sorted([*_NUMBERS, *(word.lower() for word in _NUMBERS), *_TEXTS], key=len, reverse=True)
_TOKEN = re.compile(
    r'"((?:[^"\\]|\\.)*)"|(?P<fm>FM|fm)?(?P<field>'
    + "|".join(map(re.escape, _WORDS))
    + r""")(?P<th>TH|th)?|(FX|fx)|\\(")|(.)""",
    re.S,
)
MONTHS = "January February March April May June July August September October November December".split()
DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split()
_ROMAN = "I II III IV V VI VII VIII IX X XI XII".split()


@dataclass(frozen=True, slots=True)
class _Field:
    name: str  # upper case for numbers, as written for texts
    fill: bool = True
    ordinal: str = ""


@dataclass(frozen=True, slots=True)
class _Plain:
    text: str
    quoted: bool = False


def _template(node: exp.Expr, name: str) -> list[_Field | _Plain]:
    if not isinstance(node, exp.Literal):
        raise FeatureNotSupported(f"function {name} needs a constant format")
    pieces: list[_Field | _Plain] = []
    for found in _TOKEN.finditer(str(node.this)):
        word = found["field"]
        if word is not None:
            known = word if word in _TEXTS else word.upper()
            pieces.append(_Field(known, not found["fm"], found["th"] or ""))
        elif found[1] is not None:
            pieces.append(_Plain(re.sub(r"\\(.)", r"\1", found[1]), quoted=True))
        elif found[5] is None:
            pieces.append(_Plain(found[6] or found[7] or ""))
    return pieces


# --- writing -----------------------------------------------------------------------------------------


def _digits(node: exp.Expr, width: int, field: _Field) -> exp.Expr:
    """A number with leading zeros, unless the field is not filled; a sign does not count."""
    shown = spark_cast(node, VARCHAR)
    if field.fill and width > 1:
        size = spark_cast(call(BIGINT, "abs", node.copy()), VARCHAR)
        filled = call(
            VARCHAR,
            "lpad",
            size,
            call(INTEGER, "greatest", call(INTEGER, "length", size.copy()), integer(width)),
            text("0"),
        )
        sign = case(VARCHAR, [(comparison(exp.LT, node.copy(), integer(0)), text("-"))], text(""))
        shown = call(VARCHAR, "concat", sign, filled)
    return shown


def ordinal(shown: exp.Expr, style: str) -> exp.Expr:
    """The ending of an ordinal number after its digits."""
    if not style:
        return shown
    last, two = call(VARCHAR, "right", shown.copy(), integer(1)), call(VARCHAR, "right", shown.copy(), integer(2))
    teen = conjunction(
        [
            comparison(exp.GT, call(INTEGER, "length", shown.copy()), integer(1)),
            call(BOOLEAN, "startswith", two, text("1")),
        ]
    )
    endings = [(teen, text("th"))]
    endings += [
        (equal(last.copy(), text(digit)), text(ending)) for digit, ending in (("1", "st"), ("2", "nd"), ("3", "rd"))
    ]
    ending = case(VARCHAR, endings, text("th"))
    return call(VARCHAR, "concat", shown, call(VARCHAR, "upper", ending) if style == "TH" else ending)


def _named(node: exp.Expr, names: list[str], field: _Field, width: int) -> exp.Expr:
    """One of a list of names by its number from 1, in the case that the field is written in."""
    cased = [n.upper() if field.name.isupper() else n.lower() if field.name.islower() else n for n in names]
    if field.fill and width:
        cased = [name.ljust(width) for name in cased]
    return call(VARCHAR, "element_at", call(VARCHAR, "array", *(text(name) for name in cased)), node)


def _of_moment(field: _Field, node: exp.Expr) -> exp.Expr | None:
    """A field of a timestamp; None for one that only a zone has."""
    year = call(INTEGER, "year", node.copy())
    iso = call(INTEGER, "date_part", text("YEAROFWEEK"), node.copy())
    doy = call(INTEGER, "dayofyear", node.copy())
    within = call(BIGINT, "pmod", micros_of(node.copy()), bigint(MICROS_PER_DAY))
    match field.name:
        case "YYYY" | "YYY" | "YY" | "Y" | "IYYY" | "IYY" | "IY" | "I":
            width = len(field.name)
            number = iso if field.name.startswith("I") else year
            kept = number if width == 4 else binary(exp.Mod, INTEGER, number, integer(10**width))
            return _digits(kept, width, field)
        case "Y,YYY":
            thousands = spark_cast(binary(exp.IntDiv, BIGINT, year, integer(1000)), VARCHAR)
            rest = _digits(binary(exp.Mod, INTEGER, year.copy(), integer(1000)), 3, _Field("YYY"))
            return call(VARCHAR, "concat", thousands, text(","), rest)
        case "MM":
            return _digits(call(INTEGER, "month", node), 2, field)
        case "DD":
            return _digits(call(INTEGER, "day", node), 2, field)
        case "DDD":
            return _digits(doy, 3, field)
        case "D":
            return _digits(call(INTEGER, "dayofweek", node), 1, field)
        case "ID":
            return _digits(binary(exp.Add, INTEGER, call(INTEGER, "weekday", node), integer(1)), 1, field)
        case "IW":
            return _digits(call(INTEGER, "weekofyear", node), 2, field)
        case "IDDD":
            weeks = binary(
                exp.Mul, INTEGER, binary(exp.Sub, INTEGER, call(INTEGER, "weekofyear", node), integer(1)), integer(7)
            )
            day = binary(exp.Add, INTEGER, call(INTEGER, "weekday", node.copy()), integer(1))
            return _digits(binary(exp.Add, INTEGER, weeks, day), 3, field)
        case "WW":
            return _digits(_weeks(doy), 2, field)
        case "W":
            return _digits(_weeks(call(INTEGER, "day", node)), 1, field)
        case "CC":
            before = binary(exp.Add, INTEGER, year, integer(99))
            return _digits(spark_cast(binary(exp.IntDiv, BIGINT, before, integer(100)), INTEGER), 2, field)
        case "J":
            day = binary(exp.Add, BIGINT, call(BIGINT, "unix_date", spark_cast(node, DATE)), integer(2_440_588))
            return spark_cast(day, VARCHAR)
        case "Q":
            return spark_cast(call(INTEGER, "quarter", node), VARCHAR)
        case "MONTH" | "Month" | "month":
            return _named(call(INTEGER, "month", node), MONTHS, field, 9)
        case "MON" | "Mon" | "mon":
            return _named(call(INTEGER, "month", node), [name[:3] for name in MONTHS], field, 0)
        case "DAY" | "Day" | "day":
            return _named(call(INTEGER, "dayofweek", node), DAYS, field, 9)
        case "DY" | "Dy" | "dy":
            return _named(call(INTEGER, "dayofweek", node), [name[:3] for name in DAYS], field, 0)
        case "RM" | "rm":
            return _named(call(INTEGER, "month", node), _ROMAN, field, 4)
        case "BC" | "AD" | "bc" | "ad" | "B.C." | "A.D." | "b.c." | "a.d.":
            words = ("B.C.", "A.D.") if "." in field.name else ("BC", "AD")
            return _one_of_two(comparison(exp.LTE, year, integer(0)), *words, lower=field.name.islower())
    return _of_clock(field, within)


def _weeks(day: exp.Expr) -> exp.Expr:
    """The week of a day when weeks start with the first day."""
    done = binary(exp.IntDiv, BIGINT, binary(exp.Sub, INTEGER, day, integer(1)), integer(7))
    return spark_cast(binary(exp.Add, BIGINT, done, integer(1)), INTEGER)


def _one_of_two(condition: exp.Expr, first: str, second: str, *, lower: bool) -> exp.Expr:
    words = (first.lower(), second.lower()) if lower else (first, second)
    return case(VARCHAR, [(condition, text(words[0])), (negation(condition.copy()), text(words[1]))])


def _of_clock(field: _Field, micros: exp.Expr) -> exp.Expr | None:
    """A field of a time of day in microseconds; an interval's hours go on beyond 24."""

    def part(unit: int, modulo: int | None = None) -> exp.Expr:
        whole = binary(exp.IntDiv, BIGINT, micros.copy(), bigint(unit))
        return whole if modulo is None else binary(exp.Mod, BIGINT, whole, bigint(modulo))

    hours = part(3_600_000_000)
    match field.name:
        case "HH24":
            return _digits(hours, 2, field)
        case "HH" | "HH12":
            twelve = binary(exp.Mod, BIGINT, hours, integer(12))
            return _digits(case(BIGINT, [(equal(twelve, integer(0)), bigint(12))], twelve.copy()), 2, field)
        case "MI":
            return _digits(part(60_000_000, 60), 2, field)
        case "SS":
            return _digits(part(1_000_000, 60), 2, field)
        case "SSSS" | "SSSSS":
            return spark_cast(part(1_000_000), VARCHAR)
        case "MS" | "FF3":
            return _digits(part(1000, 1000), 3, _Field("MS"))
        case "US" | "FF6":
            return _digits(part(1, 1_000_000), 6, _Field("US"))
        case "FF1" | "FF2" | "FF4" | "FF5":
            width = int(field.name[2])
            return _digits(part(10 ** (6 - width), 10**width), width, _Field("FF"))
        case "AM" | "PM" | "am" | "pm" | "A.M." | "P.M." | "a.m." | "p.m.":
            words = ("A.M.", "P.M.") if "." in field.name else ("AM", "PM")
            forenoon = comparison(exp.LT, binary(exp.Mod, BIGINT, hours, integer(24)), integer(12))
            return _one_of_two(forenoon, *words, lower=field.name.islower())
    return None


def _of_zone(field: _Field, shift: exp.Expr | None, zone: str) -> exp.Expr:
    """A field of the time zone; a timestamp without one has nothing to show, and an offset of zero."""
    seconds = bigint(0) if shift is None else shift
    minutes = call(BIGINT, "abs", binary(exp.IntDiv, BIGINT, seconds, integer(60)))
    sign = case(VARCHAR, [(comparison(exp.LT, seconds.copy(), integer(0)), text("-"))], text("+"))
    hours = _digits(binary(exp.IntDiv, BIGINT, minutes, integer(60)), 2, _Field("HH"))
    rest = binary(exp.Mod, BIGINT, minutes.copy(), integer(60))
    match field.name:
        case "TZH":
            return call(VARCHAR, "concat", sign, hours)
        case "TZM":
            return _digits(rest, 2, _Field("MI"))
        case "OF":
            odd = call(VARCHAR, "concat", text(":"), _digits(rest, 2, _Field("MI")))
            return call(
                VARCHAR, "concat", sign, hours, case(VARCHAR, [(equal(rest.copy(), integer(0)), text(""))], odd)
            )
        case _ if shift is None:
            return text("")
        case _ if zone == "UTC":
            return text("utc" if field.name == "tz" else "UTC")
    odd = call(VARCHAR, "concat", text(":"), _digits(rest, 2, _Field("MI")))
    return call(VARCHAR, "concat", sign, hours, case(VARCHAR, [(equal(rest.copy(), integer(0)), text(""))], odd))


def _written(pieces: list[_Field | _Plain], render: Callable[[_Field], exp.Expr], source: exp.Expr) -> exp.Expr:
    parts: Nodes = []
    for piece in pieces:
        match piece:
            case _Plain():
                parts.append(text(piece.text))
            case _Field():
                parts.append(ordinal(render(piece), piece.ordinal))
    made = call(VARCHAR, "concat", *parts) if parts else text("")
    return case(VARCHAR, [(not_null(source.copy()), made)])


def _moment_to_char(node: exp.Expr, template: exp.Expr, shift: exp.Expr | None, zone: str) -> exp.Expr:
    here = variable("m", TIMESTAMP)

    def render(field: _Field) -> exp.Expr:
        made = _of_moment(field, here.copy())
        return made if made is not None else _of_zone(field, shift, zone)

    return let("m", node, VARCHAR, _written(_template(template, "to_char"), render, here))


@function("to_char", takes=[TIMESTAMP, VARCHAR])
def _to_char(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _moment_to_char(arguments[0], arguments[1], None, settings.timezone)


@function("to_char", takes=[TIMESTAMPTZ, VARCHAR])
def _to_char_zoned(arguments: Nodes, settings: Settings) -> exp.Expr:
    local = local_time(arguments[0], text(settings.timezone))
    return _moment_to_char(local, arguments[1], zone_shift(arguments[0].copy(), settings), settings.timezone)


@function("to_char", takes=[INTERVAL, VARCHAR])
def _to_char_interval(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    months = intervals.months_of(node)

    def render(field: _Field) -> exp.Expr:
        match field.name:
            case "YYYY" | "YYY" | "YY" | "Y":
                years = binary(exp.IntDiv, BIGINT, months.copy(), integer(12))
                kept = years if len(field.name) == 4 else binary(exp.Mod, BIGINT, years, integer(10 ** len(field.name)))
                return _digits(kept, len(field.name), field)
            case "MM":
                return _digits(binary(exp.Mod, INTEGER, months.copy(), integer(12)), 2, field)
            case "IYYY" | "IYY" | "IY" | "I":
                return _iso_year(node, field)
            case "DD":
                return _printed(intervals.days_of(node), 2, field)
            case "HH" | "HH12":
                return _half_hours(node, field)
        made = _of_clock(field, intervals.micros_in(node))
        if made is None:
            raise InvalidParameter(
                f'invalid format specification for an interval value: "{field.name}"',
                hint="Intervals are not tied to specific calendar dates.",
            )
        return made

    return _written(_template(arguments[1], "to_char"), render, node)


def _printed(node: exp.Expr, width: int, field: _Field) -> exp.Expr:
    """As C prints a number: the sign is one of the characters that are filled up."""
    return call(VARCHAR, "format_string", text(f"%0{width}d" if field.fill else "%d"), node)


def _wider_if_negative(node: exp.Expr, width: int, negative: exp.Expr, field: _Field) -> exp.Expr:
    return case(VARCHAR, [(negative, _printed(node, width + 1, field))], _printed(node.copy(), width, field))


def _iso_year(node: exp.Expr, field: _Field) -> exp.Expr:
    months, width = intervals.months_of(node), len(field.name)
    years = binary(exp.IntDiv, BIGINT, months, integer(12))
    rest = binary(exp.Mod, INTEGER, months.copy(), integer(12))
    year = iso_year(years.copy(), rest, intervals.days_of(node))
    kept = year if width == 4 else binary(exp.Mod, BIGINT, year, integer(10**width))
    return _wider_if_negative(kept, width, comparison(exp.LT, years, integer(0)), field)


def _half_hours(node: exp.Expr, field: _Field) -> exp.Expr:
    hours = binary(exp.IntDiv, BIGINT, intervals.micros_in(node), bigint(3_600_000_000))
    twelve = binary(exp.Mod, BIGINT, hours.copy(), integer(12))
    shown = case(BIGINT, [(equal(twelve, integer(0)), bigint(12))], twelve.copy())
    return _wider_if_negative(shown, 2, comparison(exp.LT, hours, integer(0)), field)


# --- reading -----------------------------------------------------------------------------------------

_WIDTHS = {
    "YYYY": 4, "YYY": 3, "YY": 2, "Y": 1, "MM": 2, "DD": 2, "DDD": 3, "D": 1, "HH24": 2, "HH12": 2, "HH": 2,
    "MI": 2, "SS": 2, "MS": 3, "US": 6, "SSSS": 5, "SSSSS": 5, "Q": 1, "J": 7, "IYYY": 4, "IYY": 3, "IY": 2,
    "I": 1, "IW": 2, "ID": 1, "IDDD": 3, "WW": 2, "W": 1, "CC": 2, "FF1": 1, "FF2": 2, "FF3": 3, "FF4": 4,
    "FF5": 5, "FF6": 6,
}  # fmt: skip
_SKIPPED = r"[^0-9A-Za-z]*?"


class _Reader:
    """One template as a regular expression, and what its groups mean."""

    def __init__(self, node: exp.Expr, pieces: list[_Field | _Plain]) -> None:
        self._node = node
        self._groups: dict[str, int] = {}
        out = ""
        for index, piece in enumerate(pieces):
            match piece:
                case _Plain(text=plain, quoted=True):
                    out += f"(?s:.{{{len(plain)}}})"
                case _Plain(text=plain):
                    out += r"\s*" if plain.isspace() else re.escape(plain) if plain.isalnum() else _SKIPPED
                case _Field():
                    out += _SKIPPED if piece.name not in ("TZH", "TZM") else r"\s*:?"
                    following = pieces[index + 1] if index + 1 < len(pieces) else None
                    self._groups[_key(piece)] = len(self._groups) + 1
                    out += f"({_pattern(piece, first=index == 0, before_digits=isinstance(following, _Field))})"
                    if piece.ordinal:
                        out += "(?i:st|nd|rd|th)"
        self.pattern = text(rf"(?i)\A\s*{out}")

    def has(self, *keys: str) -> bool:
        return any(key in self._groups for key in keys)

    def word(self, key: str) -> exp.Expr:
        group = integer(self._groups[key])
        return call(VARCHAR, "regexp_extract", self._node.copy(), self.pattern.copy(), group)

    def number(self, key: str, default: int) -> exp.Expr:
        if key not in self._groups:
            return integer(default)
        return spark_cast(typed(exp.Nullif(this=self.word(key), expression=text("")), VARCHAR), INTEGER)

    def unmatched(self) -> exp.Expr:
        return negation(call(BOOLEAN, "rlike", self._node.copy(), self.pattern.copy()))


_KEYS = {
    "YYYY": "year", "YYY": "short_year", "YY": "short_year", "Y": "short_year", "MM": "month", "DD": "day",
    "DDD": "doy", "HH24": "hour", "HH12": "hour12", "HH": "hour12", "MI": "minute", "SS": "second",
    "MS": "ms", "FF3": "ms", "US": "us", "FF6": "us", "SSSS": "seconds", "SSSSS": "seconds",
    "IYYY": "iso_year", "IW": "iso_week", "ID": "iso_day", "J": "julian", "TZH": "zone_hour",
    "TZM": "zone_minute",
}  # fmt: skip


def _key(field: _Field) -> str:
    word = field.name.lower().replace(".", "")
    if word in ("am", "pm"):
        return "noon"
    if word in ("month", "mon"):
        return "month_name"
    if word in ("day", "dy"):
        return "day_name"
    key = _KEYS.get(field.name)
    if key is None:
        raise FeatureNotSupported(f'format field "{field.name}" cannot be read')
    return key


def _pattern(field: _Field, *, first: bool, before_digits: bool) -> str:
    match _key(field):
        case "noon":
            return r"[ap]\.?m\.?"
        case "month_name":
            return "|".join(MONTHS) if field.name.lower() == "month" else "|".join(name[:3] for name in MONTHS)
        case "day_name":
            return "|".join(DAYS) if field.name.lower() == "day" else "|".join(name[:3] for name in DAYS)
        case "zone_hour":
            return r"[+-]?\d{1,2}"
        case "zone_minute":
            return r"\d{1,2}"
        case "year" if not before_digits:
            return r"-?\d+" if first else r"\d+"  # elsewhere the sign is what stands between two fields
    return rf"\d{{1,{_WIDTHS[field.name]}}}"


def _year(reader: _Reader) -> exp.Expr:
    if reader.has("year"):
        return counted_from_zero(reader.number("year", 1))
    if not reader.has("short_year"):
        return integer(1)
    short = reader.number("short_year", 0)
    centuries = case(
        INTEGER,
        [
            (comparison(exp.LT, short, integer(70)), integer(2000)),
            (comparison(exp.LT, short.copy(), integer(100)), integer(1900)),
            (comparison(exp.LT, short.copy(), integer(520)), integer(2000)),
        ],
        integer(1000),
    )
    return binary(exp.Add, INTEGER, short.copy(), centuries)


def _month(reader: _Reader) -> exp.Expr:
    if not reader.has("month_name"):
        return reader.number("month", 1)
    wanted = call(VARCHAR, "lower", call(VARCHAR, "left", reader.word("month_name"), integer(3)))
    names = call(VARCHAR, "array", *(text(name[:3].lower()) for name in MONTHS))
    return spark_cast(call(BIGINT, "array_position", names, wanted), INTEGER)


def _hour(reader: _Reader) -> exp.Expr:
    if not reader.has("hour12"):
        return reader.number("hour", 0)
    twelve = reader.number("hour12", 0)
    if not reader.has("noon"):
        return twelve
    within = binary(exp.Mod, INTEGER, twelve, integer(12))
    later = call(BOOLEAN, "startswith", call(VARCHAR, "lower", reader.word("noon")), text("p"))
    return case(INTEGER, [(later, binary(exp.Add, INTEGER, within.copy(), integer(12)))], within)


def _fraction(reader: _Reader) -> exp.Expr:
    """Digits after the point of the seconds, as microseconds."""
    for key in ("us", "ms"):
        if reader.has(key):
            padded = call(VARCHAR, "rpad", reader.word(key), integer(6), text("0"))
            return spark_cast(padded, INTEGER)
    return integer(0)


def _read(arguments: Nodes, name: str, settings: Settings) -> tuple[exp.Expr, _Reader]:
    """The moment that a text denotes by a template, without its zone."""
    pieces = _template(arguments[1], name)
    reader = _Reader(arguments[0], pieces)
    if not reader.has("year", "short_year", "iso_year", "julian"):
        raise FeatureNotSupported(f"function {name} needs a year in its format")
    year, month, day = _year(reader), _month(reader), reader.number("day", 1)
    fraction = _fraction(reader)
    micros = binary(
        exp.Div, numeric(16, 6), spark_cast(fraction, numeric(6, 0)), spark_cast(integer(1_000_000), numeric(7, 0))
    )
    seconds = binary(
        exp.Add,
        numeric(16, 6),
        spark_cast(reader.number("second", 0), numeric(2, 0)),
        spark_cast(micros, numeric(8, 6)),
    )
    clock = [_hour(reader), reader.number("minute", 0), spark_cast(seconds, numeric(16, 6))]
    make = "make_timestamp_ntz"
    parts = [year, month, day, *clock]
    if settings.strict:
        moment = call(TIMESTAMP, make, *parts)
    else:
        moment = attempt(TIMESTAMP, f"try_{make}", *parts)
    for unit, amount in _offsets(reader):
        moment = call(TIMESTAMP, "timestampadd", exp.var(unit), amount, moment)
    return guarded(moment, reader.unmatched(), f"invalid value for {name}", settings), reader


def _offsets(reader: _Reader) -> list[tuple[str, exp.Expr]]:
    """What is added to the first day of the year: days of the year, weeks of the ISO year, seconds of the day."""
    found: list[tuple[str, exp.Expr]] = []
    if reader.has("doy"):
        found.append(("DAY", binary(exp.Sub, INTEGER, reader.number("doy", 1), integer(1))))
    if reader.has("seconds"):
        found.append(("SECOND", reader.number("seconds", 0)))
    if reader.has("iso_year"):
        # The first ISO week holds January 4th.
        fourth = call(DATE, "make_date", reader.number("iso_year", 1), integer(1), integer(4))
        monday = call(DATE, "date_sub", fourth, call(INTEGER, "weekday", fourth.copy()))
        first = call(DATE, "make_date", integer(1), integer(1), integer(1))
        weeks = binary(exp.Mul, INTEGER, binary(exp.Sub, INTEGER, reader.number("iso_week", 1), integer(1)), integer(7))
        day = binary(exp.Sub, INTEGER, reader.number("iso_day", 1), integer(1))
        found.append(
            (
                "DAY",
                binary(
                    exp.Add, INTEGER, call(INTEGER, "date_diff", monday, first), binary(exp.Add, INTEGER, weeks, day)
                ),
            )
        )
    if reader.has("julian"):
        found.append(("DAY", binary(exp.Sub, INTEGER, reader.number("julian", 0), integer(1_721_426))))
    return found


@function("to_timestamp", takes=[VARCHAR, VARCHAR])
def _to_timestamp(arguments: Nodes, settings: Settings) -> exp.Expr:
    if not isinstance(arguments[1], exp.Literal):
        return instant(read_by(arguments[0], arguments[1], "to_timestamp", settings), text(settings.timezone))
    moment, reader = _read(arguments, "to_timestamp", settings)
    if not reader.has("zone_hour"):
        return instant(moment, text(settings.timezone))
    hours, minutes = reader.number("zone_hour", 0), reader.number("zone_minute", 0)
    signed = case(
        INTEGER,
        [(call(BOOLEAN, "startswith", reader.word("zone_hour"), text("-")), typed(exp.Neg(this=minutes), INTEGER))],
        minutes.copy(),
    )
    ahead = binary(exp.Add, INTEGER, binary(exp.Mul, INTEGER, hours, integer(60)), signed)
    moved = call(TIMESTAMP, "timestampadd", exp.var("MINUTE"), typed(exp.Neg(this=ahead), INTEGER), moment)
    return spark_cast(moved, TIMESTAMPTZ)


@function("to_date", takes=[VARCHAR, VARCHAR])
def _to_date(arguments: Nodes, settings: Settings) -> exp.Expr:
    if not isinstance(arguments[1], exp.Literal):
        return spark_cast(read_by(arguments[0], arguments[1], "to_date", settings), DATE)
    return spark_cast(_read(arguments, "to_date", settings)[0], DATE)
