"""Days and moments outside of Python's calendar, which has the years 1 to 9999 only.

Spark and Arrow count days and microseconds from 1970, far beyond both ends. A value that Python can hold is Python's
own `date` or `datetime`; any other is one of the two classes here, which print as PostgreSQL prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import MAXYEAR, UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

_DAY_MICROS = 86_400_000_000
_CYCLE_DAYS = 146_097  # of 400 years, after which dates and days of the week come again
_DAYS_TO_1970 = 719_162  # from the first of the year 1
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)


class _Far:
    """Compared with each other and with Python's own by the number that Arrow keeps."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return _number(self) < _number(other)

    def __le__(self, other: object) -> bool:
        return _number(self) <= _number(other)

    def __gt__(self, other: object) -> bool:
        return _number(self) > _number(other)

    def __ge__(self, other: object) -> bool:
        return _number(self) >= _number(other)


@dataclass(frozen=True, slots=True)
class FarDate(_Far):
    """A day, by its number since 1970-01-01."""

    days: int

    def __str__(self) -> str:
        near, cycles = _near(self.days)
        year, era = _year(near.year, cycles)
        return f"{year}-{near.month:02d}-{near.day:02d}{era}"

    @property
    def spark(self) -> str:
        """As Spark reads it."""
        near, cycles = _near(self.days)
        return far_text(near.isoformat(), cycles)


@dataclass(frozen=True, slots=True)
class FarTimestamp(_Far):
    """A moment, in microseconds since 1970-01-01; of a timestamp with time zone, those in UTC."""

    micros: int

    def __str__(self) -> str:
        return self.shown(lambda moment: moment.isoformat(" "))

    def shown(self, write: Callable[[datetime], str]) -> str:
        """In the words of `write`, which gets a moment that Python can hold, and begins with its date."""
        moment, cycles = self._near()
        told = write(moment)
        year, era = _year(int(told[:4]), cycles)
        return f"{year}{told[4:]}{era}"

    @property
    def spark(self) -> str:
        """As Spark reads it, without a zone."""
        moment, cycles = self._near()
        return far_text(moment.isoformat(" "), cycles)

    def _near(self) -> tuple[datetime, int]:
        days, micros = divmod(self.micros, _DAY_MICROS)
        near, cycles = _near(days)
        return datetime.combine(near, datetime.min.time()) + timedelta(microseconds=micros), cycles


def _number(value: object) -> int:
    match value:
        case FarDate():
            return value.days
        case FarTimestamp():
            return value.micros
        case datetime():
            plain = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo is not None else value
            return (plain - _EPOCH) // timedelta(microseconds=1)
        case date():
            return (value - date(1970, 1, 1)).days
        case _:
            raise TypeError(f"a date cannot be compared with {type(value).__name__}")


def _near(days: int) -> tuple[date, int]:
    """A date of the same month and day that Python can hold, and by how many times 400 years it is off.

    Zones have the same time in both: there were no rules for centuries, and the last ones go on for ever.
    """
    far = (days + _DAYS_TO_1970) // _CYCLE_DAYS
    cycles = far - 1 if far < 0 else far - 20
    return date(1970, 1, 1) + timedelta(days=days - cycles * _CYCLE_DAYS), cycles


def _year(near: int, cycles: int) -> tuple[str, str]:
    year = near + 400 * cycles
    return (f"{year:04d}", "") if year > 0 else (f"{1 - year:04d}", " BC")


# --- as text -----------------------------------------------------------------------------------------

_FAR_YEAR = re.compile(r"\s*(\d{4,6})(-.*?)(\s*BC)?\s*", re.I)


def near_text(value: str) -> tuple[str, int]:
    """The text of a date or moment with a year that Python can hold, and by how many times 400 years it is off."""
    found = _FAR_YEAR.fullmatch(value)
    if found is None or int(found[1]) == 0 or (not found[3] and int(found[1]) <= MAXYEAR):
        return value, 0
    year = 1 - int(found[1]) if found[3] else int(found[1])
    cycles = year // 400 - (20 if year > 0 else 1)
    return f"{year - 400 * cycles:04d}{found[2]}", cycles


def far_text(near: str, cycles: int) -> str:
    """The way back, as Spark reads it: the year 0 is 1 BC."""
    return f"{int(near[:4]) + 400 * cycles:+05d}{near[4:]}" if cycles else near


# --- out of Arrow, and back --------------------------------------------------------------------------


def python_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column as Python's, far days and moments included."""
    try:
        return list(column.to_pylist())
    except (OverflowError, ValueError):
        if pa.types.is_date32(column.type):
            return [None if each is None else day_of(each) for each in column.cast(pa.int32()).to_pylist()]
        if _in_micros(column.type):
            zoned = column.type.tz is not None
            return [None if each is None else moment_of(each, zoned) for each in column.cast(pa.int64()).to_pylist()]
        raise


def python_rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table by the names of its columns."""
    try:
        return list(table.to_pylist())
    except (OverflowError, ValueError):
        names = table.column_names
        rows = zip(*(python_values(column) for column in table.columns), strict=True)
        return [dict(zip(names, row, strict=True)) for row in rows]


def arrow_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """The way back."""
    columns = [_arrow_column([row[field.name] for row in rows], field.type) for field in schema]
    return pa.table(columns, schema=schema)


def _arrow_column(values: list[Any], type_: pa.DataType) -> pa.Array:
    if any(isinstance(each, _Far) for each in values):
        numbers = pa.array([None if each is None else _number(each) for each in values], pa.int64())
        return numbers.cast(pa.int32()).cast(type_) if pa.types.is_date32(type_) else numbers.cast(type_)
    return pa.array(values, type_)


def _in_micros(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_) and type_.unit == "us")


def day_of(days: int) -> date | FarDate:
    """The day of that number since 1970-01-01."""
    try:
        return date(1970, 1, 1) + timedelta(days=days)
    except OverflowError:
        return FarDate(days)


def moment_of(micros: int, zoned: bool) -> datetime | FarTimestamp:
    """The moment so many microseconds after 1970-01-01, in UTC where it has a zone."""
    try:
        return (_EPOCH_UTC if zoned else _EPOCH) + timedelta(microseconds=micros)
    except OverflowError:
        return FarTimestamp(micros)
