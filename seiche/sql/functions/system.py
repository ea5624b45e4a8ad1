"""Functions about the session and the server, where a query reads the user's relations.

Queries about nothing but the system are answered elsewhere (`seiche.session.system`), with many more functions.
"""

from __future__ import annotations

from sqlglot import exp

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
    text,
    type_of,
    typed,
)
from seiche.types import BOOLEAN, INTEGER, VARCHAR

Nodes = list[exp.Expr]

# Clients take the leading number for the version of PostgreSQL whose catalogs they may ask for.
VERSION = "PostgreSQL 13.14.0-Seiche"


@function("version")
def _version(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text(VERSION)


@function("current_database", "current_catalog")
def _current_database(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text("dev")


@function("current_schema")
def _current_schema(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text(settings.schema) if settings.schema is not None else null(VARCHAR)


@function("current_user")
def _current_user(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text(settings.user)


@function("pg_typeof", takes=[Any_.VALUE])
def _pg_typeof(arguments: Nodes, settings: Settings) -> exp.Expr:
    type_ = type_of(arguments[0])
    return text("numeric" if str(type_).startswith("numeric") else str(type_))


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
