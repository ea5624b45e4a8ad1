"""Functions about the session and the server, where a query reads the user's relations.

Queries about nothing but the system are answered elsewhere (`seiche.session.system`), with many more functions.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql.functions.registry import Any_, Maker, function
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    comparison,
    equal,
    integer,
    is_null,
    not_null,
    null,
    spark_cast,
    text,
    type_of,
    typed,
)
from seiche.types import BIGINT, BOOLEAN, BYTEA, INTEGER, SMALLINT, VARCHAR, Kind, array_of

Nodes = list[exp.Expr]

# Clients take the leading number for the version of PostgreSQL whose catalogs they may ask for.
VERSION = "PostgreSQL 13.14.0-Seiche"


@function("version")
def _version(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text(VERSION)


@function("current_database", "current_catalog")
def _current_database(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text(settings.database)


@function("current_schema")
def _current_schema(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text(settings.schema) if settings.schema is not None else null(VARCHAR)


@function("current_user")
def _current_user(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text(settings.user)


@function("pg_typeof", takes=[Any_.ELEMENT])
def _pg_typeof(arguments: Nodes, settings: Settings) -> exp.Expr:
    type_ = type_of(arguments[0])
    if type_.kind is Kind.STRUCT and all(name == f"f{n}" for n, (name, _) in enumerate(type_.fields, start=1)):
        return text("record")  # a row that nobody gave names
    return text(str(type_.unmodified))


@function("gen_random_uuid")
def _uuid(arguments: Nodes, settings: Settings) -> exp.Expr:
    return typed(call(VARCHAR, "uuid"), VARCHAR)


@function("booleq", takes=[BOOLEAN, BOOLEAN])
def _booleq(arguments: Nodes, settings: Settings) -> exp.Expr:
    return equal(arguments[0], arguments[1])


@function("boolne", takes=[BOOLEAN, BOOLEAN])
def _boolne(arguments: Nodes, settings: Settings) -> exp.Expr:
    return comparison(exp.NEQ, arguments[0], arguments[1])


def _counted(*, missing: bool) -> Maker:
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        marks = []
        for argument in arguments:
            condition = is_null(argument) if missing else not_null(argument)
            marks.append(case(INTEGER, [(condition, integer(1))], integer(0)))
        total = marks[0]
        for mark in marks[1:]:
            total = binary(exp.Add, INTEGER, total, mark)
        return total

    return make


function("num_nulls", takes=[Any_.VALUE, Any_.VALUE], variadic=True)(_counted(missing=True))
function("num_nonnulls", takes=[Any_.VALUE, Any_.VALUE], variadic=True)(_counted(missing=False))


VNODES_MAX = 32768


@function("rw_vnode", takes=[Any_.VALUE], variadic=True)
def _vnode(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The bucket of a key among `count` ones, as RisingWave distributes rows: by the CRC-32 of the values' bytes."""
    if len(arguments) < 2:
        raise InvalidParameter(f"function rw_vnode takes at least 2 arguments ({len(arguments)} given)")
    count, *key = arguments
    number = _constant(count)
    if not 1 <= number <= VNODES_MAX:
        raise InvalidParameter(f"the first argument (vnode count) must be in range 1..={VNODES_MAX}")
    if not all(type_of(each).is_integer for each in key):
        raise FeatureNotSupported("rw_vnode of values other than integers is not supported")
    sizes = {Kind.SMALLINT: 4, Kind.INTEGER: 8, Kind.BIGINT: 16}
    hashed = call(BYTEA, "concat", *(_little_endian(each, sizes[type_of(each).kind]) for each in key))
    bucket = binary(exp.Mod, BIGINT, call(BIGINT, "crc32", hashed), integer(number))
    return spark_cast(bucket, SMALLINT)


def _constant(node: exp.Expr) -> int:
    inner = node.this if isinstance(node, exp.Cast) else node
    if isinstance(inner, exp.Null):
        raise InvalidParameter("the first argument (vnode count) must not be NULL")
    if not isinstance(inner, exp.Literal) or not inner.name.isdigit():
        raise InvalidParameter("the first argument (vnode count) must be a constant")
    return int(inner.name)


def _little_endian(node: exp.Expr, digits: int) -> exp.Expr:
    """The bytes of an integer, lowest first; of the digits that Spark shows for a negative one only the last count."""
    shown = call(VARCHAR, "lpad", call(VARCHAR, "hex", node), integer(16), text("0"))
    pairs = call(
        array_of(VARCHAR), "regexp_extract_all", call(VARCHAR, "right", shown, integer(digits)), text(".."), integer(0)
    )
    return call(BYTEA, "unhex", call(VARCHAR, "array_join", call(array_of(VARCHAR), "reverse", pairs), text("")))
