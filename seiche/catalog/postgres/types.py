"""PostgreSQL's built-in types: their oids, and how ours are told in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Any

from seiche.types import Kind, SqlType

_NUMERIC_HEADER = 4  # added to the precision and scale in a type modifier
_NUMERIC, _VARCHAR, _BPCHAR = 1700, 1043, 1042
_LENGTHS = (_VARCHAR, _BPCHAR, 1560, 1562)
_MOMENTS = (1083, 1114, 1184, 1266)

# Columns of `types.tsv` that are numbers, and those that are flags; the rest is text.
_NUMERALS, _FLAGS = (0, 2, 8, 9, 16), (3, 6)

_OIDS = {
    Kind.BOOLEAN: 16,
    Kind.BYTEA: 17,
    Kind.BIGINT: 20,
    Kind.SMALLINT: 21,
    Kind.INTEGER: 23,
    Kind.REAL: 700,
    Kind.DOUBLE: 701,
    Kind.VARCHAR: _VARCHAR,
    Kind.DATE: 1082,
    Kind.TIME: 1083,
    Kind.TIMESTAMP: 1114,
    Kind.TIMESTAMPTZ: 1184,
    Kind.INTERVAL: 1186,
    Kind.NUMERIC: _NUMERIC,
    Kind.JSONB: 3802,
    Kind.STRUCT: 2249,
    Kind.MAP: _VARCHAR,
    Kind.NULL: 25,
}

# Other names for types, as casts and `regtype` take them.
_ALIASES = {
    "int": "integer",
    "decimal": "numeric",
    "float": "double precision",
    "varchar": "character varying",
    "string": "character varying",
    "timestamp": "timestamp without time zone",
    "time": "time without time zone",
    "timestamptz": "timestamp with time zone",
}


@dataclass(frozen=True, slots=True)
class PgType:
    """A line of `pg_type`. `formatted` is what `format_type` says without a modifier."""

    oid: int
    name: str
    length: int
    by_value: bool
    kind: str
    category: str
    preferred: bool
    delimiter: str
    element: int
    array: int
    input: str
    output: str
    receive: str
    send: str
    alignment: str
    storage: str
    collation: int
    formatted: str


@cache
def pg_types() -> Mapping[int, PgType]:
    """All built-in types by oid."""
    text = resources.files("seiche.catalog.postgres").joinpath("types.tsv").read_text("utf-8")
    found: dict[int, PgType] = {}
    for line in text.splitlines()[1:]:
        values: list[Any] = line.split("\t")
        for numeral in _NUMERALS:
            values[numeral] = int(values[numeral])
        for flag in _FLAGS:
            values[flag] = values[flag] == "t"
        found[values[0]] = PgType(*values)
    return MappingProxyType(found)


@cache
def _by_name() -> Mapping[str, int]:
    found = {}
    for each in pg_types().values():
        found[each.name] = each.oid
        found.setdefault(each.formatted, each.oid)
    for alias, name in _ALIASES.items():
        found.setdefault(alias, found[name])
    return found


def find_type(name: str) -> int | None:
    """The oid of a type by PostgreSQL's name or the standard's; the name is folded and may be qualified."""
    bare = name.removeprefix("pg_catalog.").strip().replace('"', "")
    if bare.endswith("[]"):
        element = find_type(bare.removesuffix("[]"))
        return pg_types()[element].array if element is not None else None
    return _by_name().get(bare.partition("(")[0].rstrip() if "(" in bare else bare)


def type_oid(type_: SqlType) -> int:
    """The oid under which clients know the type."""
    if type_.kind is Kind.ARRAY:
        assert type_.element is not None
        inner = type_.element
        while inner.kind is Kind.ARRAY and inner.element is not None:  # one array type for all numbers of dimensions
            inner = inner.element
        return pg_types()[_OIDS[inner.kind]].array or pg_types()[25].array
    return _OIDS[type_.kind]


def type_modifier(type_: SqlType) -> int:
    """PostgreSQL's `typmod`: precision and scale of a numeric that declares them, -1 otherwise."""
    if type_.kind is Kind.ARRAY and type_.element is not None:
        return type_modifier(type_.element)
    if type_.kind is Kind.NUMERIC and type_.declared:
        return ((type_.precision << 16) | type_.scale) + _NUMERIC_HEADER
    return -1


def format_type(oid: int | None, modifier: int | None = None) -> str | None:
    """The type as SQL spells it, as PostgreSQL's function of that name does."""
    if oid is None:
        return None
    found = pg_types().get(oid)
    if found is None:
        return "-" if oid == 0 else "???"
    if found.category == "A" and found.element and found.name.startswith("_"):
        return f"{format_type(found.element, modifier)}[]"
    if modifier is None or modifier < 0:
        return found.formatted if oid != _BPCHAR or modifier is None else "bpchar"
    if oid == _NUMERIC:
        packed = modifier - _NUMERIC_HEADER
        return f"numeric({packed >> 16},{packed & 0xFFFF})"
    if oid in _LENGTHS:
        return f"{found.formatted}({modifier - _NUMERIC_HEADER if oid in (_VARCHAR, _BPCHAR) else modifier})"
    if oid in _MOMENTS:
        word, _, rest = found.formatted.partition(" ")
        return f"{word}({modifier}) {rest}"
    return found.formatted
