"""The columns of PostgreSQL's catalogs, and rows for them from the few values that mean something here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from seiche.errors import InvariantError
from seiche.model import Column
from seiche.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DOUBLE,
    INTEGER,
    INTERVAL,
    REAL,
    SMALLINT,
    TIMESTAMPTZ,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
)

# An oid is a number to us, and whatever else PostgreSQL keeps in a type of its own is text.
_TYPES = {
    "oid": BIGINT,
    "xid": BIGINT,
    "bigint": BIGINT,
    "integer": INTEGER,
    "cardinal_number": INTEGER,
    "smallint": SMALLINT,
    "boolean": BOOLEAN,
    "real": REAL,
    "double precision": DOUBLE,
    "timestamp with time zone": TIMESTAMPTZ,
    "time_stamp": TIMESTAMPTZ,
    "interval": INTERVAL,
    "bytea": BYTEA,
    "int2vector": array_of(SMALLINT),
    "oidvector": array_of(BIGINT),
    "anyarray": array_of(VARCHAR),
}

_ZEROS: Mapping[Kind, Any] = {
    Kind.BOOLEAN: False,
    Kind.SMALLINT: 0,
    Kind.INTEGER: 0,
    Kind.BIGINT: 0,
    Kind.REAL: 0.0,
    Kind.DOUBLE: 0.0,
    Kind.VARCHAR: "",
    Kind.ARRAY: [],
}


@dataclass(frozen=True, slots=True)
class Shape:
    """A relation of PostgreSQL. `kind` is that of `pg_class`; `types` are PostgreSQL's names for its columns' types."""

    schema: str
    name: str
    oid: int
    kind: str
    columns: tuple[Column, ...]
    types: tuple[str, ...]

    def rows(self, given: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
        """Rows from the values that are given by name. A column that is not given is NULL, or PostgreSQL's zero where
        it is never NULL there."""
        names = {column.name for column in self.columns}
        blank = {column.name: None if column.nullable else _ZEROS.get(column.type.kind) for column in self.columns}
        found = []
        for values in given:
            if not names.issuperset(values):
                raise InvariantError(f"{self.schema}.{self.name} has no column {sorted(values.keys() - names)[0]}")
            found.append(tuple((blank | dict(values)).values()))
        return found


@cache
def shapes() -> Mapping[tuple[str, str], Shape]:
    """All of them, by schema and name."""
    found = {}
    for line in _lines("relations.tsv"):
        name, oid, kind, columns = line.split("\t")
        schema, _, relation = name.partition(".")
        listed, types = [], []
        for column in columns.split(","):
            label, _, spelled = column.partition(":")
            type_name = spelled.removesuffix("!")
            listed.append(Column(label, _type(type_name), nullable=type_name == spelled))
            types.append(type_name)
        found[schema, relation] = Shape(schema, relation, int(oid), kind, tuple(listed), tuple(types))
    return MappingProxyType(found)


def shape(schema: str, name: str) -> Shape:
    return shapes()[schema, name]


def _type(name: str) -> SqlType:
    if name.endswith("[]"):
        return array_of(_type(name.removesuffix("[]")))
    return _TYPES.get(name, VARCHAR)


def _lines(file: str) -> list[str]:
    return resources.files("seiche.catalog.postgres").joinpath(file).read_text("utf-8").splitlines()
