"""SQL types: PostgreSQL's names for the user, and the physical form that Spark and Arrow store.

A type is a plain value. Four of them have no direct Spark type and are stored as something that has:

    time       bigint, microseconds since midnight
    interval   struct<months int, days int, micros bigint>, as PostgreSQL keeps it
    jsonb      string, canonical JSON text (keys sorted, no spaces)
    map        array<struct<key, value>>, since Spark cannot compare its own maps

`numeric` without a precision is decimal(38, 18) and prints without trailing zeros. A length of text is a column's
affair: `character varying(20)` is stored and computed with as any other text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pyarrow as pa

MAX_PRECISION = 38
FREE_NUMERIC_SCALE = 18


class Kind(Enum):
    BOOLEAN = "boolean"
    SMALLINT = "smallint"
    INTEGER = "integer"
    BIGINT = "bigint"
    NUMERIC = "numeric"
    REAL = "real"
    DOUBLE = "double precision"
    VARCHAR = "character varying"
    BYTEA = "bytea"
    DATE = "date"
    TIME = "time without time zone"
    TIMESTAMP = "timestamp without time zone"
    TIMESTAMPTZ = "timestamp with time zone"
    INTERVAL = "interval"
    JSONB = "jsonb"
    ARRAY = "array"
    STRUCT = "struct"
    MAP = "map"
    NULL = "unknown"  # the type of a bare NULL, before a context gives it one


@dataclass(frozen=True, slots=True)
class SqlType:
    """A type. `precision` and `scale` belong to NUMERIC, `length` and `padded` to VARCHAR, `element` to ARRAY, `fields`
    to STRUCT, and to MAP, where they are `key` and `value`.

    A NUMERIC with `declared=False` was not given a precision by the user: it prints without trailing zeros. A VARCHAR
    of length 0 has no limit; one that is `padded` is PostgreSQL's character(n). A type of the system's own
    catalogs may be `known_as` another one to clients: oid for bigint, text for character varying.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    declared: bool = False
    element: SqlType | None = None
    fields: tuple[tuple[str, SqlType], ...] = ()
    length: int = 0
    padded: bool = False
    known_as: str = ""

    def __str__(self) -> str:
        kind: Kind = self.kind
        match kind:
            case Kind.NUMERIC if self.declared:
                return f"numeric({self.precision},{self.scale})"
            case Kind.VARCHAR if self.length:
                return f"character{'' if self.padded else ' varying'}({self.length})"
            case Kind.ARRAY:
                return f"{self.element}[]"
            case Kind.STRUCT:
                return "struct<" + ", ".join(f"{_as_written(name)} {type_}" for name, type_ in self.fields) + ">"
            case Kind.MAP:
                return f"map({self.fields[0][1]},{self.fields[1][1]})"
            case _:
                return str(kind.value)

    @property
    def spark(self) -> str:
        """The type as Spark's DDL spells its physical form."""
        match self.kind:
            case Kind.NUMERIC:
                return f"decimal({self.precision},{self.scale})"
            case Kind.ARRAY:
                assert self.element is not None
                return f"array<{self.element.spark}>"
            case Kind.STRUCT:
                return "struct<" + ",".join(f"`{n}`:{t.spark}" for n, t in self.fields) + ">"
            case Kind.MAP:
                return self.entries.spark
            case kind:
                return _SPARK[kind]

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of the physical form."""
        match self.kind:
            case Kind.NUMERIC:
                return pa.decimal128(self.precision, self.scale)
            case Kind.ARRAY:
                assert self.element is not None
                return pa.list_(pa.field("element", self.element.arrow))
            case Kind.STRUCT:
                return pa.struct([pa.field(name, type_.arrow) for name, type_ in self.fields])
            case Kind.MAP:
                return self.entries.arrow
            case kind:
                return _ARROW[kind]

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)

    @property
    def is_float(self) -> bool:
        return self.kind in (Kind.REAL, Kind.DOUBLE)

    @property
    def is_number(self) -> bool:
        return self.is_integer or self.is_float or self.kind is Kind.NUMERIC

    @property
    def is_hashable(self) -> bool:
        """Whether Arrow can group by it on the driver."""
        return self.kind not in (Kind.ARRAY, Kind.STRUCT, Kind.MAP, Kind.INTERVAL)

    @property
    def entries(self) -> SqlType:
        """What a map is stored as: its entries, in the order in which they were given."""
        return array_of(struct_of(*self.fields))

    @property
    def is_nested(self) -> bool:
        return self.kind in (Kind.ARRAY, Kind.STRUCT, Kind.MAP)

    @property
    def has_length(self) -> bool:
        """Whether it limits the length of some text, its own or that of a part."""
        if self.length:
            return True
        inner = (self.element,) if self.element is not None else tuple(type_ for _, type_ in self.fields)
        return any(type_.has_length for type_ in inner)

    @property
    def bare(self) -> SqlType:
        """The same type without any length: what an expression has."""
        if not self.has_length:
            return self
        match self.kind:
            case Kind.ARRAY:
                assert self.element is not None
                return array_of(self.element.bare)
            case Kind.STRUCT:
                return struct_of(*((name, type_.bare) for name, type_ in self.fields))
            case Kind.MAP:
                return map_of(self.fields[0][1].bare, self.fields[1][1].bare)
            case _:
                return VARCHAR

    @property
    def unmodified(self) -> SqlType:
        """The same type without lengths, precisions and scales: what PostgreSQL calls the type of an argument."""
        match self.kind:
            case Kind.NUMERIC:
                return NUMERIC
            case Kind.ARRAY:
                assert self.element is not None
                return array_of(self.element.unmodified)
            case Kind.STRUCT:
                return struct_of(*((name, type_.unmodified) for name, type_ in self.fields))
            case Kind.MAP:
                return map_of(self.fields[0][1].unmodified, self.fields[1][1].unmodified)
            case _:
                return self.bare

    def __deepcopy__(self, memo: dict[int, Any]) -> SqlType:
        return self  # trees carry types in their nodes, and are copied a great deal

    def to_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"kind": self.kind.name}
        if self.kind is Kind.NUMERIC:
            out |= {"precision": self.precision, "scale": self.scale, "declared": self.declared}
        if self.length:
            out |= {"length": self.length, "padded": self.padded}
        if self.element is not None:
            out["element"] = self.element.to_json()
        if self.fields:
            out["fields"] = [[name, type_.to_json()] for name, type_ in self.fields]
        return out

    @staticmethod
    def from_json(data: dict[str, Any]) -> SqlType:
        return SqlType(
            Kind[data["kind"]],
            precision=data.get("precision", 0),
            scale=data.get("scale", 0),
            declared=data.get("declared", False),
            element=SqlType.from_json(data["element"]) if "element" in data else None,
            fields=tuple((name, SqlType.from_json(t)) for name, t in data.get("fields", [])),
            length=data.get("length", 0),
            padded=data.get("padded", False),
        )


_BARE_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def _as_written(name: str) -> str:
    """The name of a field, in quotes where it would be folded or end without them."""
    return name if _BARE_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


_SPARK = {
    Kind.BOOLEAN: "boolean",
    Kind.SMALLINT: "smallint",
    Kind.INTEGER: "int",
    Kind.BIGINT: "bigint",
    Kind.REAL: "float",
    Kind.DOUBLE: "double",
    Kind.VARCHAR: "string",
    Kind.BYTEA: "binary",
    Kind.DATE: "date",
    Kind.TIME: "bigint",
    Kind.TIMESTAMP: "timestamp_ntz",
    Kind.TIMESTAMPTZ: "timestamp",
    Kind.INTERVAL: "struct<months:int,days:int,micros:bigint>",
    Kind.JSONB: "string",
    Kind.NULL: "string",
}

_ARROW = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.SMALLINT: pa.int16(),
    Kind.INTEGER: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.REAL: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.VARCHAR: pa.string(),
    Kind.BYTEA: pa.binary(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.int64(),
    Kind.TIMESTAMP: pa.timestamp("us"),
    Kind.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    Kind.INTERVAL: pa.struct([("months", pa.int32()), ("days", pa.int32()), ("micros", pa.int64())]),
    Kind.JSONB: pa.string(),
    Kind.NULL: pa.string(),
}

BOOLEAN = SqlType(Kind.BOOLEAN)
SMALLINT = SqlType(Kind.SMALLINT)
INTEGER = SqlType(Kind.INTEGER)
BIGINT = SqlType(Kind.BIGINT)
NUMERIC = SqlType(Kind.NUMERIC, MAX_PRECISION, FREE_NUMERIC_SCALE)
REAL = SqlType(Kind.REAL)
DOUBLE = SqlType(Kind.DOUBLE)
VARCHAR = SqlType(Kind.VARCHAR)
BYTEA = SqlType(Kind.BYTEA)
DATE = SqlType(Kind.DATE)
TIME = SqlType(Kind.TIME)
TIMESTAMP = SqlType(Kind.TIMESTAMP)
TIMESTAMPTZ = SqlType(Kind.TIMESTAMPTZ)
INTERVAL = SqlType(Kind.INTERVAL)
JSONB = SqlType(Kind.JSONB)
NULL = SqlType(Kind.NULL)


def numeric(precision: int, scale: int, *, declared: bool = False) -> SqlType:
    """A decimal of the given precision and scale; `declared` when the user wrote them."""
    return SqlType(Kind.NUMERIC, precision, scale, declared)


def varchar(length: int) -> SqlType:
    return SqlType(Kind.VARCHAR, length=length)


def character(length: int) -> SqlType:
    """Text of a fixed length, whose trailing spaces mean nothing."""
    return SqlType(Kind.VARCHAR, length=length, padded=True)


def array_of(element: SqlType) -> SqlType:
    return SqlType(Kind.ARRAY, element=element)


def struct_of(*fields: tuple[str, SqlType]) -> SqlType:
    return SqlType(Kind.STRUCT, fields=fields)


def map_of(key: SqlType, value: SqlType) -> SqlType:
    return SqlType(Kind.MAP, fields=(("key", key), ("value", value)))
