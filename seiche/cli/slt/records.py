"""Text to records: what each directive of a sqllogictest file asks for, with the place it stands at.

    statement ok | count N | error [pattern]      query [types] [nosort|rowsort|valuesort] [label]
    query error [pattern]                         system ok
    let NAME, …
    include GLOB     connection NAME              skipif LABEL     onlyif LABEL
    sleep TIME       halt                         subtest NAME     hash-threshold N
    control sortmode|resultmode|substitution VALUE

`retry N backoff TIME` may end a statement, query or system line. Conditions and a connection's name belong to the
record that follows them. Reading is pure; only `read_file` touches the disk, for the file and those it includes.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from seiche.errors import InvalidParameter, SyntaxError_

DELIMITER = "----"
DEFAULT_CONNECTION = "default"
_INCLUDES_MAX = 16


@dataclass(frozen=True, slots=True)
class Place:
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class SortMode(Enum):
    NOSORT = "nosort"
    ROWSORT = "rowsort"
    VALUESORT = "valuesort"


class ResultMode(Enum):
    ROWWISE = "rowwise"
    VALUEWISE = "valuewise"


_SORT_MODES = {mode.value: mode for mode in SortMode}
_RESULT_MODES = {mode.value: mode for mode in ResultMode}


@dataclass(frozen=True, slots=True)
class Condition:
    """Whether a record runs: `onlyif` wants the label, `skipif` does not."""

    label: str
    wanted: bool


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a record that failed is tried again, and how long is waited before."""

    times: int = 0
    backoff_s: float = 0.0


# --- what is expected ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Succeeds:
    pass


@dataclass(frozen=True, slots=True)
class Counts:
    """A statement that succeeds and touches this many rows."""

    rows: int


@dataclass(frozen=True, slots=True)
class Answers:
    """A query with these lines. `sort` is None where the file's sort mode holds."""

    lines: tuple[str, ...]
    sort: SortMode | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class Fails:
    """An error: any, one that a pattern is found in, one with exactly this text, or one with this SQLSTATE."""

    pattern: re.Pattern[str] | None = None
    text: str | None = None
    sqlstate: str | None = None


Expectation = Succeeds | Counts | Answers | Fails


# --- records ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Execute:
    """SQL to run, of `statement` and of `query`."""

    place: Place
    sql: str
    expect: Expectation
    conditions: tuple[Condition, ...] = ()
    connection: str = DEFAULT_CONNECTION
    retry: Retry = Retry()


@dataclass(frozen=True, slots=True)
class Let:
    """A query of one row, whose values become variables."""

    place: Place
    names: tuple[str, ...]
    sql: str
    conditions: tuple[Condition, ...] = ()
    connection: str = DEFAULT_CONNECTION


@dataclass(frozen=True, slots=True)
class System:
    """A command for the shell; `output` is None where only its exit code counts."""

    place: Place
    command: str
    output: str | None = None
    conditions: tuple[Condition, ...] = ()
    retry: Retry = Retry()


@dataclass(frozen=True, slots=True)
class Sleep:
    place: Place
    seconds: float
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Halt:
    place: Place
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Include:
    """Other files, by a pattern relative to the file that names it. `read_file` puts their records in its place."""

    place: Place
    pattern: str
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class SetSortMode:
    place: Place
    mode: SortMode


@dataclass(frozen=True, slots=True)
class SetResultMode:
    place: Place
    mode: ResultMode


@dataclass(frozen=True, slots=True)
class SetSubstitution:
    place: Place
    on: bool


@dataclass(frozen=True, slots=True)
class SetHashThreshold:
    """Results with more values than this are given as a hash of them; 0 for never."""

    place: Place
    values: int


Record = (
    Execute | Let | System | Sleep | Halt | Include | SetSortMode | SetResultMode | SetSubstitution | SetHashThreshold
)


def read_file(path: Path) -> list[Record]:
    """The records of a file and of those it includes, in the order in which they run.

    Raises InvalidParameter for a file that cannot be read, and SyntaxError_ with its place for a wrong line.
    """
    return list(_read(path, ()))


def _read(path: Path, above: tuple[Path, ...]) -> Iterator[Record]:
    if len(above) > _INCLUDES_MAX:
        raise InvalidParameter(f'file "{path}" is included too deeply', hint="Look for a file that includes itself.")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise InvalidParameter(f'file "{path}" cannot be read', detail=f"{cause}.") from cause
    for record in parse(text, str(path)):
        if not isinstance(record, Include):
            yield record
            continue
        found = sorted(glob.glob(str(path.parent / record.pattern), recursive=True))
        if not found:
            raise InvalidParameter(f'{record.place}: no file matches "{record.pattern}"')
        for each in found:
            for inner in _read(Path(each), (*above, path)):
                yield _under(inner, record.conditions)


def _under(record: Record, conditions: tuple[Condition, ...]) -> Record:
    """A record of an included file, which also stands under the conditions of the include."""
    match record:
        case Execute():
            return Execute(
                record.place,
                record.sql,
                record.expect,
                conditions + record.conditions,
                record.connection,
                record.retry,
            )
        case Let():
            return Let(record.place, record.names, record.sql, conditions + record.conditions, record.connection)
        case System():
            return System(record.place, record.command, record.output, conditions + record.conditions, record.retry)
        case Sleep():
            return Sleep(record.place, record.seconds, conditions + record.conditions)
        case Halt():
            return Halt(record.place, conditions + record.conditions)
        case _:
            return record


def parse(text: str, file: str) -> list[Record]:
    """The records of a text. `file` is what it is called in places."""
    return list(_Parser(text, file).records())


class _Parser:
    def __init__(self, text: str, file: str) -> None:
        self._lines = [line.rstrip("\r") for line in text.split("\n")]
        self._file = file
        self._next = 0
        self._conditions: tuple[Condition, ...] = ()
        self._connection = DEFAULT_CONNECTION

    def records(self) -> Iterator[Record]:
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            if not line.strip() or line.startswith("#"):
                continue
            yield from self._directive(line, Place(self._file, self._next))

    def _directive(self, line: str, place: Place) -> Iterator[Record]:
        words, retry = _retry(line.split(), place)
        match words:
            case ["statement", *rest]:
                yield self._statement(rest, retry, place)
            case ["query", *rest]:
                yield self._query(rest, retry, place)
            case ["let", *names]:
                yield self._let(" ".join(names), place)
            case ["system", "ok"]:
                command, delimited = self._sql(place)
                output = self._block() if delimited else None
                yield System(place, command, output, self._taken(), retry)
            case ["include", pattern]:
                yield Include(place, pattern, self._taken())
            case ["skipif" | "onlyif" as word, label]:
                self._conditions = (*self._conditions, Condition(label, wanted=word == "onlyif"))
            case ["connection", name]:
                self._connection = name
            case ["sleep", time]:
                yield Sleep(place, seconds(time, place), self._taken())
            case ["halt"]:
                yield Halt(place, self._taken())
            case ["subtest", _]:
                pass  # a name for readers
            case ["hash-threshold", number]:
                yield SetHashThreshold(place, _number(number, place))
            case ["control", "sortmode", mode] if mode in _SORT_MODES:
                yield SetSortMode(place, _SORT_MODES[mode])
            case ["control", "resultmode", mode] if mode in _RESULT_MODES:
                yield SetResultMode(place, _RESULT_MODES[mode])
            case ["control", "substitution", "on" | "off" as word]:
                yield SetSubstitution(place, word == "on")
            case _:
                raise _wrong(place, f'"{line.strip()}" is not a directive')

    def _statement(self, words: Sequence[str], retry: Retry, place: Place) -> Execute:
        expect: Expectation
        match words:
            case ["ok"]:
                expect = Succeeds()
            case ["count", number]:
                expect = Counts(_number(number, place))
            case ["error", *pattern]:
                expect = _failure(pattern, place)
            case _:
                raise _wrong(place, "a statement is ok, count N or error")
        sql, delimited = self._sql(place)
        if delimited:
            if not isinstance(expect, Fails):
                raise _wrong(place, "a statement has no results", "Write query instead of statement.")
            expect = self._error_text(expect, place)
        return self._execute(place, sql, expect, retry)

    def _query(self, words: Sequence[str], retry: Retry, place: Place) -> Execute:
        if words[:1] == ["error"]:
            failure = _failure(words[1:], place)
            sql, delimited = self._sql(place)
            return self._execute(place, sql, self._error_text(failure, place) if delimited else failure, retry)
        sort: SortMode | None = None
        rest = list(words[1:])  # the letters for types say nothing that the text of the values does not
        if rest and rest[0] in _SORT_MODES:
            sort = _SORT_MODES[rest.pop(0)]
        if len(rest) > 1:
            raise _wrong(place, f'"{rest[1]}" is not expected here')
        sql, delimited = self._sql(place)
        lines = tuple(self._until_blank()) if delimited else ()
        return self._execute(place, sql, Answers(lines, sort, rest[0] if rest else None), retry)

    def _let(self, names: str, place: Place) -> Let:
        split = tuple(name.strip() for name in names.strip("() ").split(","))
        if not all(_VARIABLE.fullmatch(name) for name in split):
            raise _wrong(place, f'"{names}" does not name variables', "Write let a, b.")
        sql, delimited = self._sql(place)
        if delimited:
            raise _wrong(place, "let has no results")
        connection, self._connection = self._connection, DEFAULT_CONNECTION
        return Let(place, split, sql, self._taken(), connection)

    def _execute(self, place: Place, sql: str, expect: Expectation, retry: Retry) -> Execute:
        connection, self._connection = self._connection, DEFAULT_CONNECTION
        return Execute(place, sql, expect, self._taken(), connection, retry)

    def _taken(self) -> tuple[Condition, ...]:
        conditions, self._conditions = self._conditions, ()
        return conditions

    # --- lines ---------------------------------------------------------------------------------------

    def _sql(self, place: Place) -> tuple[str, bool]:
        """The lines up to a blank one or the delimiter, and whether it was the delimiter.

        The first line belongs to it even where it is blank.
        """
        taken: list[str] = []
        delimited = False
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            delimited = line.strip() == DELIMITER
            if delimited or (not line and taken):
                break
            taken.append(line)
        if not any(taken):
            raise _wrong(place, "the directive has no text below it")
        return "\n".join(taken), delimited

    def _until_blank(self) -> Iterator[str]:
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            if not line:
                return
            yield line

    def _block(self) -> str:
        """Lines that may hold single blank ones; two of them, or the end of the text, end it."""
        taken: list[str] = []
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            if not line and (not taken or not taken[-1]):
                break
            taken.append(line)
        return "\n".join(taken).strip()

    def _error_text(self, expect: Fails, place: Place) -> Fails:
        if expect != Fails():
            raise _wrong(place, "an error is told twice", "Write it behind the directive or below ----, not both.")
        return Fails(text=self._block())


# --- words -----------------------------------------------------------------------------------------------

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|us|ns|s|m|h)")
_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_SQLSTATE = re.compile(r"\(([0-9A-Z]{5})\)")


def seconds(text: str, place: Place) -> float:
    """A time such as `5s`, `100ms` or `1m30s`."""
    parts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in parts) != text or not parts:
        raise _wrong(place, f'"{text}" is not a time', "Write it as 5s, 100ms or 1m30s.")
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def _retry(words: list[str], place: Place) -> tuple[list[str], Retry]:
    """The words without `retry N backoff TIME` at their end, and what it says."""
    match words:
        case [*before, "retry", times, "backoff", backoff]:
            return before, Retry(_number(times, place), seconds(backoff, place))
        case _:
            return words, Retry()


def _failure(words: Sequence[str], place: Place) -> Fails:
    text = " ".join(words)
    if not text:
        return Fails()
    if state := _SQLSTATE.fullmatch(text):
        return Fails(sqlstate=state[1])
    try:
        return Fails(pattern=re.compile(text))
    except re.error as cause:
        raise _wrong(place, f'"{text}" is not a regular expression', f"{cause}.") from cause


def _number(text: str, place: Place) -> int:
    if not text.isdecimal():
        raise _wrong(place, f'"{text}" is not a number')
    return int(text)


def _wrong(place: Place, message: str, hint: str | None = None) -> SyntaxError_:
    return SyntaxError_(f"{place}: {message}", hint=hint)
