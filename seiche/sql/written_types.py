"""Types as they are written in SQL: their names, lengths and precisions."""

from __future__ import annotations

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter, UndefinedObject, nearest
from seiche.sql.places import place_of
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    array_of,
    character,
    map_of,
    numeric,
    struct_of,
    varchar,
)


def sql_type(node: exp.Expr) -> SqlType:
    """A written type as SqlType."""
    if isinstance(node, exp.DataType):
        kind = node.this
        simple = _TYPES.get(kind)
        if simple is not None:
            return simple
        match kind:
            case exp.DataType.Type.VARCHAR | exp.DataType.Type.CHAR | exp.DataType.Type.BPCHAR:
                return _text_type(node)
            case exp.DataType.Type.DECIMAL:
                return _numeric_type(node)
            case exp.DataType.Type.ARRAY:
                return array_of(sql_type(node.expressions[0]))
            case exp.DataType.Type.MAP if len(node.expressions) == 2:
                return map_of(sql_type(node.expressions[0]), sql_type(node.expressions[1]))
            case exp.DataType.Type.STRUCT:
                return struct_of(
                    *((definition.name, sql_type(definition.args["kind"])) for definition in node.expressions)
                )
            case _:
                name = str(node.args.get("kind") or node.sql("seiche")).strip('"').lower()
                if name in _WORDS:
                    return _WORDS[name]
                raise UndefinedObject(f'type "{name}" does not exist', hint=nearest(name, _WORDS))
    raise UndefinedObject(f'type "{node.sql("seiche").lower()}" does not exist')


def numerics_cast_to(tree: exp.Expr) -> list[SqlType]:
    """The numeric types that the casts of a query name."""
    return [_numeric_type(cast.to) for cast in tree.find_all(exp.Cast) if cast.to.this is exp.DataType.Type.DECIMAL]


def _text_type(node: exp.DataType) -> SqlType:
    """`varchar(n)` and `char(n)`; a bare `char` has one character, the others have no limit."""
    is_char = node.this is not exp.DataType.Type.VARCHAR
    if not node.expressions:
        return character(1) if node.this is exp.DataType.Type.CHAR else VARCHAR
    length = int(node.expressions[0].this.name)
    if length < 1:
        raise InvalidParameter(f"length for type {'char' if is_char else 'varchar'} must be at least 1")
    return character(length) if is_char else varchar(length)


def _numeric_type(node: exp.DataType) -> SqlType:
    if not node.expressions:
        return NUMERIC
    sizes = [int(parameter.this.name) for parameter in node.expressions]
    precision, scale = sizes[0], sizes[1] if len(sizes) > 1 else 0
    if not 1 <= precision <= 1000:
        raise InvalidParameter(f"NUMERIC precision {precision} must be between 1 and 1000", position=place_of(node))
    if not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise FeatureNotSupported(
            f"numeric({precision},{scale}) is not supported",
            detail="Precision goes from 1 to 38 and scale up to the precision.",
        )
    return numeric(precision, scale, declared=True)


_T = exp.DataType.Type
_TYPES: dict[exp.DType, SqlType] = {
    _T.BOOLEAN: BOOLEAN, _T.SMALLINT: SMALLINT, _T.INT: INTEGER, _T.BIGINT: BIGINT, _T.FLOAT: REAL, _T.DOUBLE: DOUBLE,
    _T.TEXT: VARCHAR, _T.NAME: VARCHAR, _T.UUID: VARCHAR,
    _T.VARBINARY: BYTEA, _T.BINARY: BYTEA, _T.DATE: DATE, _T.TIME: TIME, _T.TIMESTAMP: TIMESTAMP,
    _T.TIMESTAMPNTZ: TIMESTAMP, _T.TIMESTAMPTZ: TIMESTAMPTZ, _T.TIMESTAMPLTZ: TIMESTAMPTZ, _T.INTERVAL: INTERVAL,
    _T.JSONB: JSONB, _T.JSON: JSONB,
}  # fmt: skip
_WORDS = {
    "string": VARCHAR, "text": VARCHAR, "bytea": BYTEA, "int": INTEGER, "integer": INTEGER,
    "bigint": BIGINT, "smallint": SMALLINT, "real": REAL, "boolean": BOOLEAN, "date": DATE, "time": TIME,
    "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ, "interval": INTERVAL, "jsonb": JSONB, "numeric": NUMERIC,
}  # fmt: skip
CAST_NAMES = {
    "text": VARCHAR, "int2": SMALLINT, "int4": INTEGER, "int8": BIGINT, "float4": REAL, "float8": DOUBLE,
    "bool": BOOLEAN, "numeric": NUMERIC, "varchar": VARCHAR,
}  # fmt: skip
