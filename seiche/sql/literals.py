"""Quoted literals: PostgreSQL's input text of each type, read when the statement is bound.

`literal(text, type)` gives the typed Spark constant or raises PostgreSQL's error, so a bad constant fails the
statement before anything runs. Text that is only known at run time is `sql/casts.py`'s business.
"""

from __future__ import annotations

import json
import re
import string
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlglot import exp

from seiche.errors import (
    DatetimeOutOfRange,
    InvalidDatetime,
    InvalidParameter,
    InvalidText,
    NumericOutOfRange,
)
from seiche.far_days import far_text, near_text
from seiche.sql.nodes import Settings, bigint, boolean, call, integer, null, spark_cast, text, typed
from seiche.types import (
    BYTEA,
    DATE,
    DOUBLE,
    INTERVAL,
    MAX_PRECISION,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
    numeric,
)

MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND
_EPOCH = datetime(1970, 1, 1)
_BOUNDS = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}


def literal(value: str, type_: SqlType, settings: Settings) -> exp.Expr:
    """The constant that `value` denotes in a type."""
    match type_.kind:
        case Kind.VARCHAR | Kind.NULL:
            return typed(text(value), type_)
        case Kind.BOOLEAN:
            return boolean(_boolean(value))
        case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
            if not re.fullmatch(r"\s*[+-]?\d+\s*", value):
                raise _invalid(value, type_)
            return integer_literal(int(value), type_)
        case Kind.NUMERIC:
            return _numeric(value, type_)
        case Kind.REAL | Kind.DOUBLE:
            return _float(value, type_)
        case Kind.DATE:
            near, cycles = near_text(value)
            return date_literal(parse_timestamp(near, type_, settings)[0].date(), cycles)
        case Kind.TIMESTAMP:
            near, cycles = near_text(value)
            return timestamp_literal(parse_timestamp(near, type_, settings)[0], cycles)
        case Kind.TIMESTAMPTZ:
            near, cycles = near_text(value)
            moment, zone = parse_timestamp(near, type_, settings)
            return timestamptz_literal(moment, zone_of(settings.timezone) if zone is None else zone, cycles)
        case Kind.TIME:
            return typed(bigint(parse_time(value)), TIME)
        case Kind.INTERVAL:
            return interval_literal(*parse_interval(value))
        case Kind.BYTEA:
            return bytes_literal(_bytes(value))
        case Kind.JSONB:
            return typed(text(canonical_json(value)), type_)
        case Kind.ARRAY:
            assert type_.element is not None
            return _array(value, type_, settings)
        case Kind.STRUCT:
            return _struct(value, type_, settings)
    raise _invalid(value, type_)


INVALID_DIGIT = "There is an invalid digit found in string."


def _invalid(value: str, type_: SqlType) -> InvalidText:
    detail = INVALID_DIGIT if type_.is_integer else None
    if type_.kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL):
        return InvalidDatetime(f'invalid input syntax for type {bare_name(type_)}: "{value}"')
    return InvalidText(f'invalid input syntax for type {bare_name(type_)}: "{value}"', detail=detail)


def bare_name(type_: SqlType) -> str:
    """The type's name as PostgreSQL's input errors print it."""
    match type_.kind:
        case Kind.NUMERIC:
            return "numeric"
        case Kind.TIMESTAMP:
            return "timestamp"
        case Kind.TIME:
            return "time"
        case Kind.JSONB:
            return "json"
        case _:
            return str(type_)


def integer_literal(value: int, type_: SqlType) -> exp.Expr:
    bits = _BOUNDS[type_.kind]
    if not -(1 << bits) <= value < (1 << bits):
        raise NumericOutOfRange(f'value "{value}" is out of range for type {type_}')
    return integer(value, type_)


def number_literal(digits: str) -> exp.Expr:
    """An unquoted number: integer, bigint or numeric by its size and form."""
    if re.fullmatch(r"\d+", digits):
        value = int(digits)
        if value < 1 << 31:
            return integer(value)
        if value < 1 << 63:
            return bigint(value)
    if Decimal(digits).adjusted() >= MAX_PRECISION:  # more than a decimal holds
        return _float(digits, DOUBLE)
    return _numeric(digits, None)


def numeric_literal(value: str) -> exp.Expr:
    """A number in quotes, with the digits that were written."""
    return _numeric(value, None)


def _boolean(value: str) -> bool:
    word = value.strip().lower()
    for full, answer in (("true", True), ("yes", True), ("false", False), ("no", False)):
        if word and full.startswith(word):
            return answer
    match word:
        case "on" | "1":
            return True
        case "of" | "off" | "0":
            return False
    raise InvalidText(f'invalid input syntax for type boolean: "{value}"')


def _numeric(value: str, type_: SqlType | None) -> exp.Expr:
    try:
        number = Decimal(value.strip())
    except InvalidOperation:
        raise InvalidText(f'invalid input syntax for type numeric: "{value}"') from None
    if not number.is_finite():
        raise InvalidText(
            f'invalid input syntax for type numeric: "{value}"', detail="NaN and infinity have no decimal form here."
        )
    if type_ is not None and type_.declared:
        return decimal_literal(number, type_)
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    whole = max(0, len(digits) + exponent)
    if whole + scale > MAX_PRECISION:
        scale = max(0, MAX_PRECISION - whole)
    if whole > MAX_PRECISION:
        raise NumericOutOfRange(
            f'value "{value}" is out of range for type numeric', detail="At most 38 digits can be kept."
        )
    made = type_ or numeric(max(1, whole + scale), scale, declared=True)
    if number and -number.adjusted() > MAX_PRECISION:
        raise NumericOutOfRange(
            f'value "{value}" is out of range for type numeric', detail="It has more than 38 digits behind the point."
        )
    return decimal_literal(number, made)


def numeric_limit(precision: int, scale: int) -> str:
    return (
        f"A field with precision {precision}, scale {scale} must round to an absolute value "
        f"less than 10^{precision - scale}."
    )


def _rounded(number: Decimal, scale: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, Context(prec=2 * MAX_PRECISION + 1))


def decimal_literal(number: Decimal, type_: SqlType) -> exp.Expr:
    limit = Decimal(10) ** (type_.precision - type_.scale)
    # Rounding may carry a number over the limit, and asks for no more digits than the type has.
    if number.copy_abs() >= limit or _rounded(number, type_.scale).copy_abs() >= limit:
        raise NumericOutOfRange("numeric field overflow", detail=numeric_limit(type_.precision, type_.scale))
    return spark_cast(exp.Literal.string(f"{number:f}"), type_)


def _float(value: str, type_: SqlType) -> exp.Expr:
    word = value.strip()
    try:
        if "_" in word:
            raise ValueError
        number = float(word)
    except ValueError:
        raise _invalid(value, type_) from None
    if word.lower().lstrip("+-") not in ("inf", "infinity", "nan") and number in (float("inf"), float("-inf")):
        raise NumericOutOfRange(f'"{word}" is out of range for type {type_}')
    return spark_cast(exp.Literal.string(repr(number)), type_)


# --- dates and times ---------------------------------------------------------------------------------

_DATE = r"(?P<year>\d{4,6})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
_COMPACT = r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?\s*(?P<half>[AaPp][Mm])?"
)
_ZONE = r"\s*(?P<zone>[zZ]|[+-]\d{1,2}(?::?\d{2})?|[A-Za-z]+(?:[/_][A-Za-z_+-]+)*)?"
_MOMENTS = tuple(re.compile(rf"\s*{d}(?:[ T]\s*{_CLOCK})?{_ZONE}\s*") for d in (_DATE, _COMPACT))
_TIME = re.compile(rf"\s*{_CLOCK}{_ZONE}\s*")


def parse_timestamp(value: str, type_: SqlType, settings: Settings) -> tuple[datetime, ZoneInfo | timedelta | None]:
    """A moment as written, and the zone written with it if any."""
    word = value.strip().lower()
    if word in ("now", "today", "yesterday", "tomorrow") and settings.now_ms is not None:
        now = datetime.fromtimestamp(settings.now_ms / 1000, zone_of(settings.timezone)).replace(tzinfo=None)
        if word == "now":
            return now, None
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight + timedelta(days={"yesterday": -1, "today": 0, "tomorrow": 1}[word]), None
    if word == "epoch":
        return _EPOCH, timedelta(0)
    for pattern in _MOMENTS:
        if found := pattern.fullmatch(value):
            try:
                day = datetime(int(found["year"]), int(found["month"]), int(found["day"]))
                moment = day + timedelta(microseconds=_clock(found)) if found["hour"] else day
            except (ValueError, OverflowError):
                raise DatetimeOutOfRange(
                    f'date/time field value out of range: "{value}"',
                    hint="Write dates as YYYY-MM-DD, those before the year 1 with BC behind them.",
                ) from None
            return moment, _zone(found["zone"], value, type_)
    raise _invalid(value, type_)


def _clock(found: re.Match[str]) -> int:
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second"] or 0)
    if found["half"]:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + (12 if found["half"].lower() == "pm" else 0)
    if hour > 24 or minute > 59 or second > 60 or (hour == 24 and (minute or second)):
        raise ValueError
    fraction = round(int((found["fraction"] or "0").ljust(9, "0")) / 1000)
    return ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + fraction


def _zone(name: str | None, value: str, type_: SqlType) -> ZoneInfo | timedelta | None:
    if name is None:
        return None
    if name in ("z", "Z"):
        return timedelta(0)
    if name[0] in "+-":
        digits = name[1:].replace(":", "").rjust(2, "0") if ":" in name else name[1:]
        hours, minutes = (int(digits[:-2]), int(digits[-2:])) if len(digits) > 2 else (int(digits), 0)
        offset = timedelta(hours=hours, minutes=minutes)
        return -offset if name[0] == "-" else offset
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        if "/" in name:  # a word may be anything, this is meant for a zone
            raise InvalidParameter(f'time zone "{name.lower()}" not recognized') from None
        raise _invalid(value, type_) from None


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidParameter(f'time zone "{name}" not recognized') from None


def parse_time(value: str) -> int:
    """Microseconds since midnight."""
    found = _TIME.fullmatch(value)
    if not found:
        raise InvalidDatetime(f'invalid input syntax for type time: "{value}"')
    try:
        return _clock(found)
    except ValueError:
        raise DatetimeOutOfRange(f'date/time field value out of range: "{value}"') from None


def date_literal(value: date, cycles: int = 0) -> exp.Expr:
    """A day, or the same one of a year that is some times 400 years off, as `near_text` tells."""
    return spark_cast(exp.Literal.string(far_text(value.isoformat(), cycles)), DATE)


def timestamp_literal(value: datetime, cycles: int = 0) -> exp.Expr:
    return spark_cast(exp.Literal.string(far_text(value.isoformat(" "), cycles)), TIMESTAMP)


def timestamptz_literal(value: datetime, zone: ZoneInfo | timedelta, cycles: int = 0) -> exp.Expr:
    if isinstance(zone, timedelta):
        instant = value - zone
    else:
        instant = value.replace(tzinfo=zone).astimezone(UTC).replace(tzinfo=None)
    return spark_cast(exp.Literal.string(far_text(instant.isoformat(" "), cycles) + "Z"), TIMESTAMPTZ)


def now_literal(now_ms: int) -> exp.Expr:
    return timestamptz_literal(_EPOCH + timedelta(milliseconds=now_ms), timedelta(0))


# --- intervals ---------------------------------------------------------------------------------------

_MONTH_UNITS = {"year": 12, "yr": 12, "y": 12, "decade": 120, "century": 1200, "centurie": 1200, "millennium": 12000}
_MONTH_UNITS |= {"millennia": 12000, "month": 1, "mon": 1}
_DAY_UNITS = {"week": 7, "w": 7, "day": 1, "d": 1}
_MICRO_UNITS = {"hour": 3600 * MICROS_PER_SECOND, "hr": 3600 * MICROS_PER_SECOND, "h": 3600 * MICROS_PER_SECOND}
_MICRO_UNITS |= dict.fromkeys(("minute", "min", "m"), 60 * MICROS_PER_SECOND)
_MICRO_UNITS |= dict.fromkeys(("second", "sec", "s"), MICROS_PER_SECOND)
_MICRO_UNITS |= dict.fromkeys(("millisecond", "msec", "ms"), 1000) | dict.fromkeys(("microsecond", "usec", "us"), 1)
_PART = re.compile(
    r"\s*(?:(?P<sign>[+-]?)(?P<hours>\d+):(?P<minutes>\d{0,2})(?::(?P<seconds>\d{1,2}(?:\.\d*)?))?"
    r"|(?P<years>[+-]?\d+)-(?P<months>\d{1,2})"
    r"|(?P<amount>[+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*(?P<unit>[a-zA-Z]+)?)(?=\s|$|[+-]|\d)"
)
_ISO = re.compile(
    r"P(?:(?P<y>-?\d+)Y)?(?:(?P<mo>-?\d+)M)?(?:(?P<w>-?\d+)W)?(?:(?P<d>-?\d+)D)?"
    r"(?:T(?:(?P<h>-?\d+)H)?(?:(?P<mi>-?\d+)M)?(?:(?P<s>-?\d+(?:\.\d+)?)S)?)?"
)


def parse_interval(value: str, unit: str | None = None) -> tuple[int, int, int]:
    """Months, days and microseconds; `unit` is what a bare number counts."""
    body = value.strip()
    if iso := _ISO.fullmatch(body):
        if body not in ("P", "PT"):
            part = {name: Decimal(digits or 0) for name, digits in iso.groupdict().items()}
            clock = (part["h"] * 60 + part["mi"]) * 60 + part["s"]
            return int(part["y"] * 12 + part["mo"]), int(part["w"] * 7 + part["d"]), int(clock * MICROS_PER_SECOND)
    ago = body.lower().endswith("ago")
    body = body[:-3].strip() if ago else body
    body = re.sub(r"([+-])\s+", r"\1", body.removeprefix("@").strip())  # a sign may stand apart from its number
    months, days, micros = Decimal(0), Decimal(0), Decimal(0)
    position = 0
    while position < len(body):
        found = _PART.match(body, position)
        if not found:
            raise InvalidDatetime(f'invalid input syntax for type interval: "{value}"')
        position = found.end()
        if found["hours"] is not None:
            clock = (int(found["hours"]) * 60 + int(found["minutes"] or 0)) * 60 + Decimal(found["seconds"] or 0)
            micros += clock * MICROS_PER_SECOND * (-1 if found["sign"] == "-" else 1)
        elif found["years"] is not None:
            total = abs(int(found["years"])) * 12 + int(found["months"])
            months += -total if found["years"].startswith("-") else total
        else:
            amount, name = Decimal(found["amount"]), (found["unit"] or unit or "second").lower()
            name = name if name in _MICRO_UNITS or name in _MONTH_UNITS else name.removesuffix("s")
            if name in _MONTH_UNITS:
                exact = amount * _MONTH_UNITS[name]
                months += int(exact)
                if _MONTH_UNITS[name] == 1:  # the fraction of a month falls to days, of a year to months
                    days += (exact - int(exact)) * 30
            elif name in _DAY_UNITS:
                days += amount * _DAY_UNITS[name]
            elif name in _MICRO_UNITS:
                micros += amount * _MICRO_UNITS[name]
            else:
                raise InvalidDatetime(f'invalid input syntax for type interval: "{value}"')
    if not body:
        raise InvalidDatetime(f'invalid input syntax for type interval: "{value}"')
    micros += (days - int(days)) * MICROS_PER_DAY
    sign = -1 if ago else 1
    return sign * int(months), sign * int(days), sign * int(micros.to_integral_value())


def interval_literal(months: int, days: int, micros: int) -> exp.Expr:
    return call(
        INTERVAL, "named_struct", text("months"), integer(months), text("days"), integer(days), text("micros"),
        bigint(micros),
    )  # fmt: skip


def interval_constant(node: exp.Expr) -> tuple[int, int, int] | None:
    """Months, days and microseconds of an interval that was built as a constant."""
    if not (isinstance(node, exp.Anonymous) and node.name == "named_struct" and len(node.expressions) == 6):
        return None
    values = [constant_integer(node.expressions[index]) for index in (1, 3, 5)]
    return None if None in values else (values[0], values[1], values[2])  # type: ignore[return-value]


def constant_integer(node: exp.Expr) -> int | None:
    match node:
        case exp.Literal(is_string=False) if node.name.isdigit():
            return int(node.name)
        case exp.Neg() | exp.Cast() | exp.Paren():
            inner = constant_integer(node.this)
            return -inner if inner is not None and isinstance(node, exp.Neg) else inner
    return None


# --- bytes, json, arrays, structs --------------------------------------------------------------------


def bytes_literal(value: bytes) -> exp.Expr:
    return call(BYTEA, "unhex", text(value.hex()))


def _bytes(value: str) -> bytes:
    if value.startswith("\\x"):
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            wrong = next((each for each in value[2:] if each not in string.hexdigits + " \t\n"), None)
            if wrong is not None:
                raise InvalidParameter(f'invalid hexadecimal digit: "{wrong}"') from None
            raise InvalidParameter("invalid hexadecimal data: odd number of digits") from None
    return re.sub(
        rb"\\(\\|[0-3][0-7]{2})",
        lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]),
        value.encode(),
    )


def canonical_json(value: str) -> str:
    """Keys sorted, no spaces: the physical form of jsonb."""

    def refuse(word: str) -> Any:
        raise ValueError(word)

    try:
        parsed = json.loads(value, parse_float=_JsonNumber, parse_int=_JsonNumber, parse_constant=refuse)
    except ValueError as cause:
        raise InvalidText("invalid input syntax for type json", detail=f"{cause}.") from cause
    return _json_text(parsed)


class _JsonNumber(str):
    """A number's digits, so that reading and writing it changes nothing."""


def _json_text(value: Any) -> str:
    match value:
        case _JsonNumber():
            number = Decimal(value)
            return f"{number:f}" if abs(number.adjusted()) < MAX_PRECISION else str(value)
        case dict():
            items = (f"{json.dumps(key, ensure_ascii=False)}:{_json_text(value[key])}" for key in sorted(value))
            return "{" + ",".join(items) + "}"
        case list():
            return "[" + ",".join(_json_text(item) for item in value) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _array(value: str, type_: SqlType, settings: Settings) -> exp.Expr:
    assert type_.element is not None
    body = value.strip()
    if not (body.startswith("{") and body.endswith("}")):
        raise InvalidText(f'malformed array literal: "{value}"', detail='Array value must start with "{".')
    items: list[exp.Expr] = []
    for item, quoted in _elements(body[1:-1], value, "{}"):
        if not quoted and item.lower() == "null":
            items.append(null(type_.element))
        else:
            items.append(literal(item, type_.element, settings))
    return array_literal(items, type_)


def array_literal(items: list[exp.Expr], type_: SqlType) -> exp.Expr:
    made = call(type_, "array", *items)
    return made if items else spark_cast(made, type_)


def _struct(value: str, type_: SqlType, settings: Settings) -> exp.Expr:
    body = value.strip()
    if not (body.startswith("(") and body.endswith(")")):
        raise InvalidText(f'malformed record literal: "{value}"', detail="Missing left parenthesis.")
    parts = list(_elements(body[1:-1], value, "()")) or [("", False)]
    if len(parts) != len(type_.fields):
        raise InvalidText(
            f'malformed record literal: "{value}"', detail="The number of fields differs from the type's."
        )
    arguments: list[exp.Expr] = []
    for (name, field_type), (item, quoted) in zip(type_.fields, parts, strict=True):
        empty = not quoted and item == ""
        arguments += [text(name), null(field_type) if empty else literal(item, field_type, settings)]
    return call(type_, "named_struct", *arguments)


def _elements(body: str, whole: str, brackets: str) -> list[tuple[str, bool]]:
    """The items between commas, unquoted, each with whether it was quoted; nested brackets stay together."""
    items: list[tuple[str, bool]] = []
    current, quoted, depth, inside = "", False, 0, False
    if not body.strip():
        return []
    index = 0
    while index < len(body):
        char = body[index]
        if char == "\\" and index + 1 < len(body):
            index += 1
            current += body[index]
        elif char == '"':
            if inside and body[index + 1 : index + 2] == '"':
                current, index = current + '"', index + 1
            else:
                if not inside and brackets == "{}" and depth == 0:
                    current = current.strip()  # space before the quotes
                inside, quoted = not inside, True
                current += '"' if depth else ""
        elif inside:
            current += char
        elif char.isspace() and quoted and brackets == "{}" and depth == 0:
            pass  # space behind the quotes
        elif char == brackets[0]:
            depth, current = depth + 1, current + char
        elif char == brackets[1]:
            depth, current = depth - 1, current + char
        elif char == "," and depth == 0:
            items.append((current if quoted else current.strip(), quoted))
            current, quoted = "", False
        else:
            current += char
        index += 1
    if inside or depth:
        raise InvalidText(f'malformed array literal: "{whole}"', detail="Unexpected end of input.")
    items.append((current if quoted else current.strip(), quoted))
    return items
