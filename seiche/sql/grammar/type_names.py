"""Types as SQL spells them: the names PostgreSQL knows them by, their modifiers, arrays and structs."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from seiche import types
from seiche.errors import (
    DuplicateColumn,
    FeatureNotSupported,
    InvalidDefinition,
    InvalidParameter,
    UndefinedObject,
    nearest,
)
from seiche.sql.grammar.cursor import Cursor
from seiche.sql.statements import RESERVED_WORDS
from seiche.sql.tokens import MAX_NESTING, too_deep
from seiche.types import SqlType

_TYPES: dict[str, SqlType] = {
    "bool": types.BOOLEAN,
    "boolean": types.BOOLEAN,
    "smallint": types.SMALLINT,
    "int2": types.SMALLINT,
    "int": types.INTEGER,
    "int4": types.INTEGER,
    "integer": types.INTEGER,
    "bigint": types.BIGINT,
    "int8": types.BIGINT,
    "numeric": types.NUMERIC,
    "decimal": types.NUMERIC,
    "dec": types.NUMERIC,
    "real": types.REAL,
    "float4": types.REAL,
    "float": types.DOUBLE,
    "float8": types.DOUBLE,
    "double": types.DOUBLE,
    "double precision": types.DOUBLE,
    "varchar": types.VARCHAR,
    "character varying": types.VARCHAR,
    "char varying": types.VARCHAR,
    "char": types.character(1),
    "character": types.character(1),
    "bpchar": types.VARCHAR,
    "text": types.VARCHAR,
    "string": types.VARCHAR,
    "bytea": types.BYTEA,
    "date": types.DATE,
    "time": types.TIME,
    "timestamp": types.TIMESTAMP,
    "timestamptz": types.TIMESTAMPTZ,
    "interval": types.INTERVAL,
    "jsonb": types.JSONB,
}
_WITH_LENGTH = frozenset({"varchar", "character varying", "char varying", "char", "character", "bpchar"})
_LENGTH_MAX = 10 * 1024 * 1024
_FLOAT_DIGITS = 53
_SINGLE_FLOAT_DIGITS = 24
_TIME_DIGITS = 6


def read_type(cursor: Cursor) -> SqlType:
    """A type, with any number of array suffixes."""
    return _nested_type(cursor, 0)[0]


def _nested_type(cursor: Cursor, around: int) -> tuple[SqlType, int]:
    """A type and how many levels of arrays and structs it has, where `around` more are around it."""
    start = cursor.position()
    if cursor.accept("struct"):
        base, levels = _struct(cursor, start, around)
    elif cursor.sees("map") and cursor.sees_symbol(TokenType.L_PAREN, 1):
        base, levels = _map(cursor, start, around)
    else:
        base, levels = _scalar_type(cursor, start), 0
    while True:
        if cursor.accept_symbol(TokenType.L_BRACKET):
            if cursor.sees_symbol(TokenType.NUMBER):
                cursor.integer()  # PostgreSQL takes a length here and ignores it
            cursor.expect_symbol(TokenType.R_BRACKET)
        elif not cursor.accept("array"):
            return base, levels
        levels += 1
        _refuse_deep_type(cursor, around + levels)
        base = types.array_of(base)


def _refuse_deep_type(cursor: Cursor, levels: int) -> None:
    if levels > MAX_NESTING:
        raise too_deep(f"A type has at most {MAX_NESTING} levels of arrays and structs.", cursor.peek())


def _struct(cursor: Cursor, start: int, around: int) -> tuple[SqlType, int]:
    _refuse_deep_type(cursor, around + 1)
    cursor.expect_symbol(TokenType.LT)
    deepest = 0

    def field() -> tuple[str, SqlType]:
        nonlocal deepest
        name = cursor.name()
        type_, levels = _nested_type(cursor, around + 1)
        deepest = max(deepest, levels)
        return name, type_

    fields = cursor.comma_separated(field)
    cursor.expect_symbol(TokenType.GT)
    names = [name for name, _ in fields]
    repeated = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if repeated is not None:
        raise DuplicateColumn(f'field "{repeated}" of struct specified more than once', position=start)
    return types.struct_of(*fields), deepest + 1


def _map(cursor: Cursor, start: int, around: int) -> tuple[SqlType, int]:
    _refuse_deep_type(cursor, around + 1)
    cursor.index += 2
    key, _ = _nested_type(cursor, around + 1)
    cursor.expect_symbol(TokenType.COMMA)
    value, levels = _nested_type(cursor, around + 1)
    cursor.expect_symbol(TokenType.R_PAREN)
    if key.kind is not types.Kind.VARCHAR and not key.is_integer:
        raise InvalidDefinition(f"invalid map key type: {key}", hint="Keys are texts or integers.", position=start)
    return types.map_of(key, value), levels + 1


def _scalar_type(cursor: Cursor, start: int) -> SqlType:
    if cursor.sees("pg_catalog") and cursor.sees_symbol(TokenType.DOT, 1):
        cursor.index += 2
    if cursor.sees_symbol(TokenType.IDENTIFIER):
        name = cursor.name()
    else:
        name = cursor.word()
        if not name or name in RESERVED_WORDS:
            raise cursor.error()
        cursor.index += 1
    if name in ("character", "char") and cursor.accept("varying"):
        name += " varying"
    type_ = _TYPES.get(name)
    if type_ is None:
        while cursor.accept_symbol(TokenType.DOT):
            name += f".{cursor.name()}"
        known = {*_TYPES, "struct", "map"} - {"double"}
        raise UndefinedObject(f'type "{name}" does not exist', hint=nearest(name, known), position=start)
    arguments = cursor.in_parentheses(cursor.integer) if cursor.sees_symbol(TokenType.L_PAREN) else ()
    if name in ("time", "timestamp"):
        type_ = _with_zone(cursor, name, type_, start)
    return _with_arguments(name, type_, arguments, start) if arguments else type_


def _with_zone(cursor: Cursor, name: str, type_: SqlType, start: int) -> SqlType:
    if cursor.accept("without", "time", "zone"):
        return type_
    if not cursor.accept("with", "time", "zone"):
        return type_
    if name == "time":
        raise FeatureNotSupported(
            "type time with time zone is not supported", hint="Use timestamptz, or time.", position=start
        )
    return types.TIMESTAMPTZ


def _with_arguments(name: str, type_: SqlType, arguments: tuple[int, ...], start: int) -> SqlType:
    def invalid(message: str, hint: str | None = None) -> InvalidParameter:
        return InvalidParameter(message, hint=hint, position=start)

    first = arguments[0]
    if type_.kind is types.Kind.NUMERIC and len(arguments) <= 2:
        scale = arguments[1] if len(arguments) == 2 else 0
        if not 1 <= first <= types.MAX_PRECISION:
            raise invalid(
                f"numeric precision {first} must be between 1 and {types.MAX_PRECISION}",
                "Numeric without a precision holds 20 digits before the point and 18 after it.",
            )
        if not 0 <= scale <= first:
            raise invalid(f"numeric scale {scale} must be between 0 and the precision {first}")
        return types.numeric(first, scale, declared=True)
    if len(arguments) == 1:
        if name in _WITH_LENGTH:
            if first < 1:
                raise invalid(f"length for type {name} must be at least 1")
            if first > _LENGTH_MAX:
                raise invalid(f"length for type {name} cannot exceed {_LENGTH_MAX}")
            return types.varchar(first) if name.startswith("varchar") or "varying" in name else types.character(first)
        if name == "float":
            if not 1 <= first <= _FLOAT_DIGITS:
                raise invalid(f"precision for type float must be between 1 and {_FLOAT_DIGITS} bits")
            return types.REAL if first <= _SINGLE_FLOAT_DIGITS else types.DOUBLE
        if name in ("time", "timestamp", "timestamptz", "interval"):
            if first == _TIME_DIGITS:
                return type_
            raise FeatureNotSupported(
                f"{name} precision {first} is not supported",
                hint=f"Leave the precision out: {name} always keeps microseconds.",
                position=start,
            )
    raise invalid(f'type modifier is not allowed for type "{name}"')
