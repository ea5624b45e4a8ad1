"""Values to characters: each type in the text form that PostgreSQL prints, and rows as psql aligns them.

Values come in their physical form (`seiche.types`), as Arrow's `to_pylist` and Spark's rows give them. One form is
RisingWave's instead of PostgreSQL's: a timestamp with time zone ends in `+00:00`, not `+00`. NULL has no text
form; outside arrays, structs and tables it is the caller's to show.
"""

from __future__ import annotations

import json
import math
import re
import struct
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, assert_never
from zoneinfo import ZoneInfo

from seiche.far_days import FarDate, FarTimestamp
from seiche.types import Kind, SqlType

# Powers of ten from which on a number is printed with an exponent, and below which it is, as RisingWave has them.
_DOUBLE_PLAIN = range(-5, 16)
_REAL_PLAIN = range(-6, 13)
_DOUBLE_ROUND_TRIP_DIGITS = 17
_REAL_ROUND_TRIP_DIGITS = 9
_EXACT_DOUBLES = 2.0**53  # below it no decimal text lies halfway between two doubles
_NUMERIC_EXPONENT_LIMIT = 131_072  # the digits PostgreSQL's numeric can hold before its point


def format_value(value: Any, type_: SqlType, timezone: str = "UTC") -> str:
    """The text of one value that is not NULL. `timezone` is where timestamps with time zone are shown."""
    match type_.kind:
        case Kind.BOOLEAN:
            return "t" if value else "f"
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            return str(int(value))
        case Kind.NUMERIC:
            return _numeric(value, type_)
        case Kind.DOUBLE:
            return _double(float(value))
        case Kind.REAL:
            return _real(float(value))
        case Kind.VARCHAR | Kind.NULL:
            return str(value)
        case Kind.BYTEA:
            return "\\x" + bytes(value).hex()
        case Kind.DATE:
            return _date(value)
        case Kind.TIME:
            return _time(value)
        case Kind.TIMESTAMP:
            return _timestamp(value)
        case Kind.TIMESTAMPTZ:
            return _timestamptz(value, timezone)
        case Kind.INTERVAL:
            return _interval(value)
        case Kind.JSONB:
            return format_jsonb(value)
        case Kind.ARRAY:
            return _array(value, type_, timezone)
        case Kind.STRUCT:
            return _struct(value, type_, timezone)
        case Kind.MAP:
            return _map(value, type_, timezone)
        case kind:
            assert_never(kind)


# --- numbers -----------------------------------------------------------------------------------------


def _numeric(value: Decimal | int, type_: SqlType) -> str:
    number = Decimal(value)
    if type_.declared:
        return f"{number:.{type_.scale}f}"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _digits_of(shortest: str) -> tuple[str, int]:
    """The significant digits of a positive or negative decimal text, and the power of ten of the first of them."""
    mantissa, _, exponent = shortest.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    return digits.rstrip("0") or "0", len(whole) - 1 - leading_zeros + int(exponent or 0)


def _double(value: float) -> str:
    shortest = repr(value)
    if _EXACT_DOUBLES <= abs(value) < math.inf:
        below, above = math.nextafter(value, -math.inf), math.nextafter(value, math.inf)
        shortest = _shortest(value, below, above, len(_digits_of(shortest)[0]), _DOUBLE_ROUND_TRIP_DIGITS)
    return _float(value, _digits_of(shortest), _DOUBLE_PLAIN)


def _real(value: float) -> str:
    shortest = repr(value)
    if math.isfinite(value) and value != 0:
        shortest = _shortest(value, _next_single(value, -1), _next_single(value, 1), 1, _REAL_ROUND_TRIP_DIGITS)
    return _float(value, _digits_of(shortest), _REAL_PLAIN)


def _shortest(value: float, below: float, above: float, fewest: int, most: int) -> str:
    """The fewest digits that read as this value under any rounding: nearer to it than half the way to its
    neighbours, where Python's `repr` is content with half the way."""
    exact = Fraction(value)
    gap_above = Fraction(above) - exact if math.isfinite(above) else exact - Fraction(below)
    gap_below = exact - Fraction(below) if math.isfinite(below) else gap_above
    for digits in range(fewest, most):
        text = f"{value:.{digits}g}"
        if -gap_below < 2 * (Fraction(text) - exact) < gap_above:
            return text
    return f"{value:.{most}g}"


def _next_single(value: float, direction: int) -> float:
    """The neighbour of a finite real that is not zero, away from minus infinity for a positive direction."""
    bits: int = struct.unpack("<i", struct.pack("<f", value))[0]
    away_from_zero = (value > 0) == (direction > 0)
    neighbour: float = struct.unpack("<f", struct.pack("<i", bits + (1 if away_from_zero else -1)))[0]
    return neighbour


def _float(value: float, digits_and_exponent: tuple[str, int], plain: range) -> str:
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return sign + "Infinity"
    if value == 0:
        return sign + "0"
    digits, exponent = digits_and_exponent
    if exponent not in plain:
        mantissa = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        return f"{sign}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return sign + whole + ("." + fraction if fraction else "")


# --- dates and times ---------------------------------------------------------------------------------

_SECOND_MICROS = 1_000_000


def _clock(micros: int) -> str:
    """Hours, minutes and seconds of a non-negative length of time; the fraction without trailing zeros."""
    seconds, fraction = divmod(micros, _SECOND_MICROS)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{fraction:06d}".rstrip("0") if fraction else text


def _date(value: date | FarDate) -> str:
    if isinstance(value, FarDate):
        return str(value)
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def _time(value: int) -> str:
    """As `_clock`, but a fraction is told in thousandths or in millionths, as RisingWave has it."""
    seconds, fraction = divmod(value, _SECOND_MICROS)
    text = _clock(seconds * _SECOND_MICROS)
    if fraction % 1000:
        return f"{text}.{fraction:06d}"
    return f"{text}.{fraction // 1000:03d}" if fraction else text


def _timestamp(value: datetime | FarTimestamp) -> str:
    if isinstance(value, FarTimestamp):
        return value.shown(_timestamp)
    seconds = value.hour * 3600 + value.minute * 60 + value.second
    return f"{_date(value)} {_time(seconds * _SECOND_MICROS + value.microsecond)}"


def _timestamptz(value: datetime | FarTimestamp, timezone: str) -> str:
    if isinstance(value, FarTimestamp):
        return value.shown(lambda moment: _timestamptz(moment, timezone))
    instant = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    try:
        shown = instant.astimezone(ZoneInfo(timezone))
    except OverflowError:
        # The first and last hours that Python's calendar has do not exist in every zone.
        shown = instant.astimezone(UTC)
    offset = shown.utcoffset() or timedelta()
    minutes = int(abs(offset).total_seconds()) // 60  # RisingWave shows no seconds of the offsets before time zones
    return f"{_timestamp(shown)}{'-' if offset < timedelta() else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _interval(value: Mapping[str, int] | Sequence[int]) -> str:
    if isinstance(value, Mapping):
        months, days, micros = value["months"], value["days"], value["micros"]
    else:
        months, days, micros = value
    years = abs(months) // 12 * (1 if months >= 0 else -1)
    parts: list[str] = []
    after_negative = False  # a positive part after a negative one shows its sign
    for number, unit in ((years, "year"), (months - years * 12, "mon"), (days, "day")):
        if number:
            sign = "+" if after_negative and number > 0 else ""
            parts.append(f"{sign}{number} {unit}{'' if number == 1 else 's'}")
            after_negative = number < 0
    if micros or not parts:
        sign = "-" if micros < 0 else "+" if after_negative else ""
        parts.append(sign + _clock(abs(micros)))
    return " ".join(parts)


# --- jsonb -------------------------------------------------------------------------------------------


def format_jsonb(text: str) -> str:
    """Any JSON text as jsonb is printed: a space after each colon and comma, keys in the order of their letters."""
    return _json(json.loads(text, parse_float=Decimal, parse_int=Decimal))


def _json(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Decimal():
            value = value if value else abs(value)  # a numeric has no negative zero
            # `1e5` is shown as 100000, but a number of a million digits would be nobody's wish.
            return f"{value:f}" if abs(value.adjusted()) <= _NUMERIC_EXPONENT_LIMIT else str(value)
        case list():
            return "[" + ", ".join(_json(item) for item in value) + "]"
        case dict():
            return "{" + ", ".join(f"{_json(key)}: {_json(value[key])}" for key in sorted(value)) + "}"
        case _:
            return str(value)  # NaN and the infinities, which json.loads lets through


# --- arrays and structs ------------------------------------------------------------------------------

_ARRAY_QUOTED = re.compile(r'[{}",\\ \t\n\r\v\f]')
_STRUCT_QUOTED = re.compile(r'[()",\\ \t\n\r\v\f]')


def _array(value: Iterable[Any], type_: SqlType, timezone: str) -> str:
    element = type_.element
    assert element is not None

    def item(part: Any) -> str:
        if part is None:
            return "NULL"
        text = format_value(part, element, timezone)
        if element.kind is Kind.ARRAY:
            return text
        if text == "" or text.upper() == "NULL" or _ARRAY_QUOTED.search(text):
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return text

    return "{" + ",".join(item(part) for part in value) + "}"


def _struct(value: Mapping[str, Any] | Sequence[Any], type_: SqlType, timezone: str) -> str:
    values = list(value.values()) if isinstance(value, Mapping) else list(value)

    def item(part: Any, part_type: SqlType) -> str:
        if part is None:
            return ""
        text = format_value(part, part_type, timezone)
        if text == "" or _STRUCT_QUOTED.search(text):
            return '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'
        return text

    return "(" + ",".join(item(part, field) for part, (_, field) in zip(values, type_.fields, strict=True)) + ")"


def _map(value: Iterable[Mapping[str, Any]], type_: SqlType, timezone: str) -> str:
    """RisingWave's form: nothing is quoted."""

    def part(entry: Mapping[str, Any], name: str, part_type: SqlType) -> str:
        return "NULL" if entry[name] is None else format_value(entry[name], part_type, timezone)

    return "{" + ",".join(":".join(part(each, *field) for field in type_.fields) for each in value) + "}"


# --- tables ------------------------------------------------------------------------------------------

_TAB = 8


def render_table(
    columns: Sequence[tuple[str, SqlType]],
    rows: Iterable[Sequence[Any]],
    *,
    null: str = "",
    timezone: str = "UTC",
    footer: bool = True,
) -> str:
    """The rows as psql's aligned table, without a newline at its end.

    Numbers are set right, names in the middle; a cell of several lines shows `+` where it goes on. `null` stands
    for NULL and `footer` adds the number of rows. Holds all rows in memory, to know how wide they are.
    """
    header = [_lines(name) for name, _ in columns]
    body = [
        [
            _lines(null if value is None else format_value(value, type_, timezone))
            for value, (_, type_) in zip(row, columns, strict=True)
        ]
        for row in rows
    ]
    widths = [max(_width(line) for cells in (header, *body) for line in cells[index]) for index in range(len(columns))]
    right = [type_.is_number for _, type_ in columns]
    out = [
        *_row(header, widths, [None] * len(columns)),
        "+".join("-" * (width + 2) for width in widths) or "--",
    ]
    for cells in body if columns else []:
        out.extend(_row(cells, widths, right))
    if footer:
        out.append(f"({len(body)} row{'' if len(body) == 1 else 's'})")
    return "\n".join(out)


def _row(cells: Sequence[list[str]], widths: Sequence[int], right: Sequence[bool | None]) -> list[str]:
    """One row as lines of the table; `right` is None for a cell in the middle."""
    height = max((len(lines) for lines in cells), default=0)
    out = []
    for number in range(height):
        shown = []
        for index, (lines, width) in enumerate(zip(cells, widths, strict=True)):
            there = number < len(lines)
            goes_on = number + 1 < len(lines)
            text = lines[number] if there else ""
            gap = width - _width(text)
            # psql leaves out the blanks that nothing follows, except in its header.
            last = index + 1 == len(cells) and not goes_on and right[index] is not None
            match right[index]:
                case None:
                    text = " " * (gap // 2) + text + " " * (gap - gap // 2)
                case True if there or not last:
                    text = " " * gap + text
                case False if not last:
                    text += " " * gap
                case _:
                    pass
            shown.append(f" {text}" if last else f" {text}{'+' if goes_on else ' '}")
        out.append("|".join(shown))
    return out


def _lines(text: str) -> list[str]:
    """A cell's lines with tabs as blanks and other control characters spelled out."""
    lines = []
    for line in text.split("\n"):
        shown = ""
        for character in line:
            if character == "\t":
                shown += " " * (_TAB - _width(shown) % _TAB)
            elif character == "\r":
                shown += "\\r"
            elif ord(character) < 0x20 or ord(character) == 0x7F:
                shown += f"\\x{ord(character):02X}"
            elif 0x80 <= ord(character) < 0xA0:
                shown += f"\\u{ord(character):04X}"
            else:
                shown += character
        lines.append(shown)
    return lines


def _width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_character_width(character) for character in text)


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
