"""Parameters of a query about the system: `$1` and its followers, the types they are likely to have, their values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from sqlglot import exp

from seiche.catalog.system_views import SYSTEM_VIEWS
from seiche.errors import UndefinedParameter
from seiche.session.system.rewrite import type_name
from seiche.types import BIGINT, BOOLEAN, INTEGER, SMALLINT, VARCHAR, SqlType, array_of

_TYPES = {
    "oid": BIGINT,
    "int8": BIGINT,
    "bigint": BIGINT,
    "int4": INTEGER,
    "int": INTEGER,
    "integer": INTEGER,
    "int2": SMALLINT,
    "smallint": SMALLINT,
    "bool": BOOLEAN,
    "boolean": BOOLEAN,
}


def parameter_types(tree: exp.Expr) -> dict[int, SqlType]:
    """A type for each parameter: that of the cast around it, or of the column it is compared with, or text."""
    found: dict[int, SqlType] = {}
    for node in tree.find_all(exp.Parameter):
        number = _number(node)
        if number is not None:
            found.setdefault(number, _type_at(node))
    return found


def filled(tree: exp.Expr, values: Mapping[int, str | None] | None) -> exp.Expr:
    """The query with its parameters' values in their places."""
    if values is None or tree.find(exp.Parameter) is None:
        return tree
    copied = tree.copy()
    for node in list(copied.find_all(exp.Parameter)):
        number = _number(node)
        if number is None:
            continue
        if number not in values:
            raise UndefinedParameter(f"there is no parameter ${number}")
        value = values[number]
        node.replace(exp.Null() if value is None else exp.Literal.string(value))
    return copied


def _number(node: exp.Parameter) -> int | None:
    return int(node.name) if node.name.isdecimal() else None


def _type_at(node: exp.Expr) -> SqlType:
    parent = node.parent
    if isinstance(parent, exp.Cast):
        return _type(parent.args["to"])
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.Any) and isinstance(parent.parent, exp.Binary):
        return array_of(_compared(parent.parent, parent))
    if isinstance(parent, exp.Binary):
        return _compared(parent, node)
    return VARCHAR


def _compared(node: exp.Binary, side: exp.Expr) -> SqlType:
    other = node.expression if node.this is side else node.this
    return _column_types().get(other.name, VARCHAR) if isinstance(other, exp.Column) else VARCHAR


@cache
def _column_types() -> Mapping[str, SqlType]:
    """Types of columns by name; names of PostgreSQL's catalogs tell the view too."""
    return {column.name: column.type for view in SYSTEM_VIEWS.values() for column in view.columns}


def _type(node: exp.Expr) -> SqlType:
    if isinstance(node, exp.DataType) and node.is_type("array"):
        return array_of(_type(node.expressions[0]))
    return _TYPES.get(type_name(node), VARCHAR)
