"""The generator: rows that follow from their number, for trying things out.

A row's number n, counted from 0, decides everything in it: it is row n // splits of split n % splits, a sequence has
its start + n, and a random value is a hash of the field's seed, the split and the offset in it. So the same stretch of
rows can be made again after a crash, and no state is needed beyond how far each split is. Only timestamps look at the
clock: a `relative` one lies before the moment at which its row is made.

    fields.<column>.kind           sequence or random (random); of numbers only
    fields.<column>.start, .end    of a sequence (0; without an end). The source ends with the first sequence that does
    fields.<column>.min, .max      of random numbers (0, 1000), both included. What the other kind has is read over
    fields.<column>.seed           other random values for another seed (0)
    fields.<column>.length         of random text (10) or of an array (3)
    fields.<column>.max_past       how long ago a timestamp may lie (1 day)
    fields.<column>.max_past_mode  before the source was created (absolute) or before now (relative)
    fields.<column>.basetime       before this moment instead
    datagen.rows.per.second        10
    datagen.split.num              1

A struct's fields are fields.<column>.<field>…, an array's elements fields.<column>._….
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from seiche.connectors.bits import Bits, mixed
from seiche.connectors.options import Options
from seiche.connectors.splits import split_offsets
from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.model import Column
from seiche.types import Kind, SqlType

NAME = "datagen"
ROWS_PER_SECOND, SPLITS = "datagen.rows.per.second", "datagen.split.num"
_FIELDS = "fields."
_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", np.uint8)
_LONGEST = 10_000  # characters of a text, elements of an array
_MOST_SPLITS = 1_000

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Consecutive values of one field: what they are hashed from, and what a sequence counts on from."""

    numbers: Numbers
    bits: Bits
    created_ms: int
    now_ms: int

    def __len__(self) -> int:
        return len(self.numbers)

    def elements(self, count: int) -> _Stretch:
        """The values of the elements of arrays that have `count` each."""
        places = np.tile(np.arange(count, dtype=np.uint64), len(self))
        return _Stretch(
            np.repeat(self.numbers, count) * count + places.astype(np.int64),
            mixed(np.repeat(self.bits, count) + places),
            self.created_ms,
            self.now_ms,
        )


@dataclass(frozen=True, slots=True)
class _Sequence:
    type: SqlType
    start: int

    def values(self, of: _Stretch) -> pa.Array:
        return _whole_numbers(of.numbers + self.start, self.type)


@dataclass(frozen=True, slots=True)
class _Whole:
    """Random whole numbers."""

    type: SqlType
    low: int
    high: int

    def values(self, of: _Stretch) -> pa.Array:
        drawn = (of.bits % np.uint64(self.high - self.low + 1)).astype(np.int64) + self.low
        return _whole_numbers(drawn, self.type)


@dataclass(frozen=True, slots=True)
class _Fraction:
    """Random floating-point numbers."""

    type: SqlType
    low: float
    high: float

    def values(self, of: _Stretch) -> pa.Array:
        share = (of.bits >> np.uint64(11)).astype(np.float64) / float(1 << 53)
        return pa.array(self.low + share * (self.high - self.low)).cast(self.type.arrow)


@dataclass(frozen=True, slots=True)
class _Flag:
    def values(self, of: _Stretch) -> pa.Array:
        return pa.array((of.bits >> np.uint64(63)).astype(bool))


@dataclass(frozen=True, slots=True)
class _Text:
    length: int

    def values(self, of: _Stretch) -> pa.Array:
        draws = of.elements(self.length).bits % np.uint64(len(_LETTERS))
        offsets = np.arange(len(of) + 1, dtype=np.int32) * self.length
        letters = _LETTERS[draws.astype(np.int64)]
        return pa.StringArray.from_buffers(len(of), pa.py_buffer(offsets), pa.py_buffer(letters.tobytes()))


@dataclass(frozen=True, slots=True)
class _Moment:
    """Random timestamps before a moment: one that is given, the source's creation, or now."""

    type: SqlType
    past_us: int
    base_us: int | None
    relative: bool

    def values(self, of: _Stretch) -> pa.Array:
        base = self.base_us
        if base is None:
            base = (of.now_ms if self.relative else of.created_ms) * 1000
        ago = (of.bits % np.uint64(self.past_us + 1)).astype(np.int64)
        return pa.array(base - ago).cast(pa.timestamp("us")).cast(self.type.arrow)


@dataclass(frozen=True, slots=True)
class _Struct:
    type: SqlType
    fields: tuple[_Field, ...]

    def values(self, of: _Stretch) -> pa.Array:
        parts = [_values(field, of, place) for place, field in enumerate(self.fields)]
        return pa.StructArray.from_arrays(parts, fields=list(self.type.arrow))


@dataclass(frozen=True, slots=True)
class _Array:
    type: SqlType
    length: int
    element: _Field

    def values(self, of: _Stretch) -> pa.Array:
        offsets = pa.array(np.arange(len(of) + 1, dtype=np.int32) * self.length)
        return pa.ListArray.from_arrays(
            offsets, _values(self.element, of.elements(self.length), 0), type=self.type.arrow
        )


_Kind = _Sequence | _Whole | _Fraction | _Flag | _Text | _Moment | _Struct | _Array


@dataclass(frozen=True, slots=True)
class _Field:
    made: _Kind
    seed: int


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes the rows of one source."""

    columns: tuple[Column, ...]
    fields: tuple[_Field, ...]
    rows_per_second: int
    splits: int
    rows: int | None  # how many there are in all; None: no end

    def table(self, first: int, count: int, *, created_ms: int, now_ms: int) -> pa.Table:
        """The rows with the numbers `first` and up; fewer than `count` at the end."""
        if self.rows is not None:
            count = max(min(count, self.rows - first), 0)
        numbers = np.arange(first, first + count, dtype=np.int64)
        split, offset = (numbers % self.splits).astype(np.uint64), (numbers // self.splits).astype(np.uint64)
        bits = mixed(mixed(split) + offset)
        of = _Stretch(numbers, bits, created_ms, now_ms)
        names = [column.name for column in self.columns]
        places = [zlib.crc32(name.encode()) for name in names]
        values = [_values(field, of, place) for field, place in zip(self.fields, places, strict=True)]
        return pa.Table.from_arrays(values, names)

    def offsets(self, rows: int) -> dict[str, str]:
        return split_offsets(rows, self.splits)


def _values(field: _Field, of: _Stretch, place: int) -> pa.Array:
    """The values of a field. `place` tells fields with the same seed apart."""
    salt = np.array([(field.seed * 0x9E3779B97F4A7C15 + place) % (1 << 64)], np.uint64)
    return field.made.values(_Stretch(of.numbers, mixed(of.bits ^ mixed(salt)), of.created_ms, of.now_ms))


def _whole_numbers(numbers: Numbers, type_: SqlType) -> pa.Array:
    if type_.kind is Kind.NUMERIC:  # Arrow wants room for 19 digits before it makes a decimal of a number
        return pa.array(numbers).cast(pa.string()).cast(type_.arrow)
    return pa.array(numbers).cast(type_.arrow)


def generator(columns: Sequence[Column], given: Mapping[str, str]) -> Generator:
    """The generator that these options describe, of columns that are not computed. Raises what is wrong with them."""
    reader = _Reader(Options(given, NAME))
    fields = tuple(reader.field(column.type, _FIELDS + column.name) for column in columns)
    options = reader.options
    options.text("connector", NAME)
    pace = options.number(ROWS_PER_SECOND, 10, 1, 1 << 62)
    splits = options.number(SPLITS, 1, 1, _MOST_SPLITS)
    names = {column.name for column in columns}
    # Options of a field that is no column are read over, as RisingWave does.
    options.refuse_others(
        read_over=lambda option: option.startswith(_FIELDS) and option.removeprefix(_FIELDS).split(".")[0] not in names
    )
    return Generator(tuple(columns), fields, pace, splits, reader.rows)


class _Reader:
    """Reads the options of fields, and how many rows the sequences among them allow."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.rows: int | None = None

    def field(self, type_: SqlType, name: str) -> _Field:
        match type_.kind:
            case Kind.STRUCT:
                return _Field(_Struct(type_, tuple(self.field(t, f"{name}.{each}") for each, t in type_.fields)), 0)
            case Kind.ARRAY:
                assert type_.element is not None
                length = self.options.number(f"{name}.length", 3, 0, _LONGEST)
                rows, self.rows = self.rows, None
                element = self.field(type_.element, f"{name}._")
                if self.rows is not None:
                    raise InvalidParameter(f'option "{name}._.kind" cannot be sequence', hint="Choose random.")
                self.rows = rows
                return _Field(_Array(type_, length, element), 0)
            case _:
                made = self._made(type_, name)
                return _Field(made, self.options.number(f"{name}.seed", 0, -(1 << 63), (1 << 63) - 1))

    def _made(self, type_: SqlType, name: str) -> _Kind:
        options = self.options
        kinds = ("random", "sequence") if type_.is_number else ("random",)
        is_sequence = options.one_of(f"{name}.kind", "random", *kinds) == "sequence"
        if type_.is_number:  # what only the other kind of numbers has is read over, as RisingWave does
            for other in ("min", "max") if is_sequence else ("start", "end"):
                options.has(f"{name}.{other}")
        match type_.kind:
            case Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT:
                most = {Kind.SMALLINT: (1 << 15) - 1, Kind.INTEGER: (1 << 31) - 1, Kind.BIGINT: (1 << 62)}[type_.kind]
                return self._sequence(type_, name, most) if is_sequence else self._whole(type_, name, most)
            case Kind.NUMERIC:
                most = min(10 ** (type_.precision - type_.scale) - 1, 1 << 62)
                return self._sequence(type_, name, most) if is_sequence else self._whole(type_, name, most)
            case Kind.REAL | Kind.DOUBLE if is_sequence:
                return self._sequence(type_, name, 1 << (24 if type_.kind is Kind.REAL else 53))
            case Kind.REAL | Kind.DOUBLE:
                low, high = options.decimal(f"{name}.min", 0), options.decimal(f"{name}.max", 1000)
                _refuse_empty(name, low, high)
                return _Fraction(type_, low, high)
            case Kind.BOOLEAN:
                return _Flag()
            case Kind.VARCHAR:
                longest = type_.length or _LONGEST
                return _Text(options.number(f"{name}.length", min(10, longest), 1, longest))
            case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
                return self._moment(type_, name)
            case _:
                raise FeatureNotSupported(
                    f"the connector {NAME} makes no values of type {type_}",
                    detail=f'Column "{name.removeprefix(_FIELDS)}" is of that type.',
                )

    def _sequence(self, type_: SqlType, name: str, most: int) -> _Sequence:
        start = self.options.number(f"{name}.start", 0, -most, most)
        end = self.options.number(f"{name}.end", most, -most, most)
        _refuse_empty(name, start, end)
        rows = end - start + 1
        self.rows = rows if self.rows is None else min(self.rows, rows)
        return _Sequence(type_, start)

    def _whole(self, type_: SqlType, name: str, most: int) -> _Whole:
        low = self.options.number(f"{name}.min", 0, -most, most)
        high = self.options.number(f"{name}.max", min(1000, most), -most, most)
        _refuse_empty(name, low, high)
        return _Whole(type_, low, high)

    def _moment(self, type_: SqlType, name: str) -> _Moment:
        options = self.options
        past = _duration_us(f"{name}.max_past", options.text(f"{name}.max_past", "1day"))
        relative = options.one_of(f"{name}.max_past_mode", "absolute", "absolute", "relative") == "relative"
        base: int | None = None
        if options.has(f"{name}.basetime"):
            text = options.text(f"{name}.basetime", "")
            try:
                moment = datetime.fromisoformat(text)
            except ValueError:
                raise InvalidParameter(f'option "{name}.basetime" is not a moment: {text}') from None
            moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            base = round(moment.timestamp() * 1_000_000)
        return _Moment(type_, past, base, relative)


def _refuse_empty(name: str, low: float, high: float) -> None:
    if low > high:
        raise InvalidParameter(f'options of "{name}" leave no value: {low} is greater than {high}')


_UNITS = {
    **dict.fromkeys(("us", "usec"), 1),
    **dict.fromkeys(("ms", "msec"), 1_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400_000_000),
}


def _duration_us(name: str, text: str) -> int:
    """A duration such as `2h 37min`, in microseconds."""
    parts = re.findall(r"(\d+)\s*([a-z]+)", text.lower())
    if not parts or re.sub(r"\d+\s*[a-z]+|\s", "", text.lower()) or any(unit not in _UNITS for _, unit in parts):
        raise InvalidParameter(f'option "{name}" is not a duration: {text}', hint="Write for example 2h 37min.")
    return sum(int(count) * _UNITS[unit] for count, unit in parts)


__all__ = ["NAME", "Generator", "generator"]
