"""Functions about the session and the server."""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.functions.registry import Any_, function
from seiche.sql.nodes import Settings, call, text, type_of, typed
from seiche.types import VARCHAR

Nodes = list[exp.Expr]


@function("version")
def _version(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text("PostgreSQL 15.0-Seiche")


@function("current_database", "current_catalog")
def _current_database(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text("dev")


@function("current_schema")
def _current_schema(arguments: Nodes, settings: Settings) -> exp.Expr:
    return text("public")


@function("pg_typeof", takes=[Any_.VALUE])
def _pg_typeof(arguments: Nodes, settings: Settings) -> exp.Expr:
    type_ = type_of(arguments[0])
    return text("numeric" if str(type_).startswith("numeric") else str(type_))


@function("gen_random_uuid")
def _uuid(arguments: Nodes, settings: Settings) -> exp.Expr:
    return typed(call(VARCHAR, "uuid"), VARCHAR)
