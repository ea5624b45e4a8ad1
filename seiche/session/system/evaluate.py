"""Runs queries over system views in DuckDB.

One small database in memory serves all sessions, one query at a time: they take milliseconds. It holds no data between
queries but the views that depend on the catalog alone, which are built again when the catalog has changed. It can
reach neither files nor the network nor its own settings.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa
from duckdb.func import SPECIAL
from sqlglot import exp

from seiche.catalog.catalog import Catalog
from seiche.catalog.facts import Facts, SystemView
from seiche.errors import (
    AmbiguousColumn,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidText,
    QueryCanceled,
    SeicheError,
    UndefinedColumn,
    UndefinedTable,
)
from seiche.session.system.functions import FUNCTIONS, Function
from seiche.session.system.rewrite import KEYWORDS_VIEW, VECTORS, Rewritten, registered_name, rewrite
from seiche.session.system.state import Asking
from seiche.sql.bind import OutputColumn
from seiche.sql.places import place_of
from seiche.sql.statements import RESERVED_WORDS
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    numeric,
)

_MACROS = (
    "CREATE MACRO pg_expandarray(a) AS list_transform(a, lambda v, i: {'x': v, 'n': i})",
    "CREATE MACRO pg_array_upper(a, d) AS CASE WHEN d = 1 AND len(a) > 0 THEN len(a)::INTEGER END",
    "CREATE MACRO pg_array_lower(a, d) AS CASE WHEN d = 1 AND len(a) > 0 THEN 1 END",
    "CREATE MACRO array_remove(a, x) AS list_filter(a, lambda v: v IS DISTINCT FROM x)",
    "CREATE MACRO pg_array_ndims(a) AS CASE WHEN len(a) > 0 THEN 1 END",
)
_LOCKED = (
    "SET default_null_order = 'NULLS_LAST_ON_ASC_FIRST_ON_DESC'",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_NO_COLUMN = re.compile(r'Referenced column "([^"]*)" not found|does not have a column named "([^"]*)"')
_NO_TABLE = re.compile(r'Referenced table "([^"]*)" not found')
_AMBIGUOUS = re.compile(r'Ambiguous reference to column name "([^"]*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows as Arrow, with the columns that they are shown as."""

    columns: tuple[OutputColumn, ...]
    table: pa.Table


class SystemQueries:
    """DuckDB, from the first question on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database: duckdb.DuckDBPyConnection | None = None
        self._asking: Asking | None = None
        self._shown: Catalog | None = None
        self._registered: set[str] = set()

    def answer(self, tree: exp.Expr, asking: Asking, running: Callable[[Callable[[], None] | None], None]) -> Answer:
        """The query's rows. `running` is told how to stop it, and None when it is over.

        Raises NotForUs where the query has something that only the binder for Spark knows.
        """
        rewritten = rewrite(tree)
        with self._lock:
            database = self._open()
            self._asking = asking
            try:
                self._show(rewritten, asking)
                running(database.interrupt)
                table = database.sql(rewritten.sql).to_arrow_table()
            except duckdb.Error as error:
                raise _translated(error, asking, tree) from error
            finally:
                running(None)
                self._asking = None
        return _shaped(table, rewritten)

    def close(self) -> None:
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def _open(self) -> duckdb.DuckDBPyConnection:
        if self._database is None:
            database = duckdb.connect(":memory:", config={"threads": 1, "python_enable_replacements": False})
            for statement in (*_MACROS, *_LOCKED):
                database.execute(statement)
            for (name, arity), function in FUNCTIONS.items():
                database.create_function(
                    registered_name(name, arity),
                    self._answering(function),
                    list(function.takes),
                    function.gives,
                    null_handling=SPECIAL,
                )
            database.register(KEYWORDS_VIEW, _keywords())
            self._database = database
            self._registered = set()
        return self._database

    def _answering(self, function: Function) -> Callable[..., Any]:
        """The function as DuckDB calls it: of whoever asks now."""

        def call(*arguments: Any) -> Any:
            asking = self._asking
            assert asking is not None
            if function.strict and any(argument is None for argument in arguments):
                return None
            try:
                return function.answer(asking, *arguments)
            except SeicheError as error:
                asking.error = error
                raise

        # DuckDB counts the parameters that a function names.
        shapes: list[Callable[..., Any]] = [
            lambda: call(),
            lambda a: call(a),
            lambda a, b: call(a, b),
            lambda a, b, c: call(a, b, c),
            lambda a, b, c, d: call(a, b, c, d),
        ]
        return shapes[len(function.takes)]

    def _show(self, rewritten: Rewritten, asking: Asking) -> None:
        """Puts the views that the query reads in place."""
        database = self._database
        assert database is not None
        if self._shown is not asking.catalog:
            for name in self._registered:
                database.unregister(name)
            self._registered = set()
            self._shown = asking.catalog
        for name, view in rewritten.views.items():
            if name not in self._registered or not view.lasting:
                database.register(name, arrow_of(view, asking.facts))
                self._registered.add(name)


def arrow_of(view: SystemView, facts: Facts) -> pa.Table:
    """The view's rows as Arrow."""
    schema = pa.schema([pa.field(column.name, column.type.arrow) for column in view.columns])
    values = list(zip(*view.rows(facts), strict=True)) or [() for _ in view.columns]
    arrays = [pa.array(each, each_field.type) for each, each_field in zip(values, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _keywords() -> pa.Table:
    words = sorted(RESERVED_WORDS)
    return pa.table({"word": words, "catcode": ["R"] * len(words), "catdesc": ["reserved"] * len(words)})


def _shaped(table: pa.Table, rewritten: Rewritten) -> Answer:
    """The rows in our types, under PostgreSQL's names."""
    columns, arrays = [], []
    for index, each in enumerate(table.schema):
        type_ = _type_of(each.type)
        array = table.column(index)
        if type_.element is not None and (index in rewritten.vectors or each.name in VECTORS):
            array, type_ = _spaced(array), VARCHAR
        elif each.type != type_.arrow:
            array = _converted(array, type_)
        wanted = rewritten.names[index] if index < len(rewritten.names) else None
        name = wanted if wanted is not None else each.name
        columns.append(OutputColumn(name, f"c{index}", known_to_clients(type_)))
        arrays.append(array)
    shaped = pa.Table.from_arrays(arrays, names=[column.alias for column in columns])
    return Answer(tuple(columns), shaped)


def _converted(array: pa.ChunkedArray, type_: SqlType) -> pa.ChunkedArray:
    if pa.types.is_struct(array.type) or pa.types.is_map(array.type):
        shown = [None if value is None else _row_text(value) for value in array.to_pylist()]
        return pa.chunked_array([pa.array(shown, pa.string())])
    if type_ == INTERVAL:
        spans = [None if value is None else _span(value) for value in array.to_pylist()]
        return pa.chunked_array([pa.array(spans, type_.arrow)])
    if type_ == TIME:
        array = array.cast(pa.time64("us"))
    return array.cast(type_.arrow)


def _span(value: pa.MonthDayNano) -> dict[str, int]:
    return {"months": value.months, "days": value.days, "micros": value.nanoseconds // 1000}


def _spaced(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Vectors of numbers as PostgreSQL shows them, `1 2 3`."""
    shown = [None if value is None else " ".join(map(str, value)) for value in array.to_pylist()]
    return pa.chunked_array([pa.array(shown, pa.string())])


def _row_text(value: Any) -> str:
    return "(" + ",".join("" if each is None else str(each) for each in value.values()) + ")"


def _type_of(type_: pa.DataType) -> SqlType:
    """Our type for what DuckDB gives."""
    match type_:
        case _ if pa.types.is_boolean(type_):
            return BOOLEAN
        case _ if pa.types.is_int8(type_) or pa.types.is_int16(type_) or pa.types.is_uint8(type_):
            return SMALLINT
        case _ if pa.types.is_int32(type_) or pa.types.is_uint16(type_):
            return INTEGER
        case _ if pa.types.is_integer(type_):
            return BIGINT
        case _ if pa.types.is_float32(type_):
            return REAL
        case _ if pa.types.is_floating(type_):
            return DOUBLE
        case _ if pa.types.is_decimal(type_):
            return numeric(type_.precision, type_.scale)
        case _ if pa.types.is_date(type_):
            return DATE
        case _ if pa.types.is_timestamp(type_):
            return TIMESTAMPTZ if type_.tz is not None else TIMESTAMP
        case _ if pa.types.is_interval(type_):
            return INTERVAL
        case _ if pa.types.is_time(type_):
            return TIME
        case _ if pa.types.is_list(type_) or pa.types.is_large_list(type_):
            return array_of(_type_of(type_.value_type))
        case _ if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
            return BYTEA
        case _:
            return VARCHAR


def _translated(error: duckdb.Error, asking: Asking, tree: exp.Expr) -> SeicheError:
    if asking.error is not None:
        return asking.error
    message = str(error).splitlines()[0]
    if found := _NO_COLUMN.search(str(error)):
        name = found.group(1) or found.group(2)
        return UndefinedColumn(f'column "{name}" does not exist', position=_first(tree, lambda each: each.name == name))
    if found := _NO_TABLE.search(str(error)):
        name = found.group(1)
        position = _first(tree, lambda each: each.table == name)
        return UndefinedTable(f'missing FROM-clause entry for table "{name}"', position=position)
    if found := _AMBIGUOUS.search(str(error)):
        name = found.group(1)
        position = _first(tree, lambda each: each.name == name and not each.table)
        return AmbiguousColumn(f'column reference "{name}" is ambiguous', position=position)
    match error:
        case duckdb.InterruptException():
            return QueryCanceled("canceling statement due to user request")
        case duckdb.ConversionException():
            return InvalidText("a value does not fit the type that the query needs", detail=message)
        case duckdb.BinderException():
            return DatatypeMismatch("the query about the system does not fit together", detail=message)
        case _:
            return FeatureNotSupported("this query about the system is not supported", detail=message)


def _first(tree: exp.Expr, meant: Callable[[exp.Column], bool]) -> int | None:
    """Where the first of such columns is written."""
    places = [place_of(column) for column in tree.find_all(exp.Column) if meant(column)]
    return min((place for place in places if place is not None), default=None)


_KNOWN_AS = {Kind.BIGINT: "oid", Kind.VARCHAR: "text"}


def known_to_clients(type_: SqlType) -> SqlType:
    """Arrays in the catalogs are of oids and texts, and drivers that look types up know no others by themselves."""
    element = type_.element
    if element is None or element.kind not in _KNOWN_AS:
        return type_
    return array_of(replace(element, known_as=_KNOWN_AS[element.kind]))
