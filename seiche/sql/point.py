"""Queries that want single rows by their key: `SELECT … FROM ships WHERE id = 7`.

Such a query needs no scan. What is found here is which rows of which source are enough: the query itself stays as it
is, so whatever else it says about them still holds. A source is cut down to these rows only where its key is compared
with constants in a condition that every row of the answer has to meet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from seiche.model import Column, RelationSchema
from seiche.sql.nodes import conjuncts, type_of
from seiche.types import Kind

# How many rows a list of keys may ask for.
KEYS_MAX = 100

_WHOLE_NUMBERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_PLAIN = frozenset({"expressions", "from_", "where"})


@dataclass(frozen=True, slots=True)
class PointRead:
    """The rows of `source` whose key columns have one of these values.

    `condition` says the same for Spark. `shown` are the source's columns that the query gives, one for each of its own,
    where it gives nothing else and asks for nothing more; else None.
    """

    source: str
    values: Mapping[str, tuple[Any, ...]]
    condition: str
    shown: tuple[str, ...] | None


def point_read(query: exp.Expr, schema_of: Callable[[str], RelationSchema | None]) -> PointRead | None:
    """What a bound query needs of one source; None where it wants more than a few rows, or the source is not stored.

    `schema_of` gives the shape of a source that is.
    """
    where = query.args.get("where") if isinstance(query, exp.Select) else None
    source = query.args.get("from_")
    if where is None or source is None:
        return None
    tables = [each for each in query.find_all(exp.Table) if isinstance(each.this, exp.Identifier)]
    own = [join.this for join in query.args.get("joins") or ()] + [source.this]
    conditions = conjuncts(where.this)
    for table in own:
        if not isinstance(table, exp.Table) or sum(each.name == table.name for each in tables) > 1:
            continue
        schema = schema_of(table.name)
        found = _key_values(conditions, table.alias_or_name, schema) if schema is not None else None
        if schema is not None and found is not None:
            values, used = found
            shown = _shown(query, table.alias_or_name) if len(used) == len(conditions) else None
            return PointRead(table.name, values, " AND ".join(_unqualified(each) for each in used), shown)
    return None


def _key_values(
    conditions: Sequence[exp.Expr], alias: str, schema: RelationSchema
) -> tuple[dict[str, tuple[Any, ...]], list[exp.Expr]] | None:
    """The constants that the whole key is compared with, and the conditions that say so."""
    values: dict[str, tuple[Any, ...]] = {}
    used: list[exp.Expr] = []
    for condition in conditions:
        column, constants = _compared(condition, alias)
        if column is None or column in values or column not in schema.key:
            continue
        known = tuple(_constant(each, schema.column(column)) for each in constants)
        if None in known or (len(known) > 1 and len(schema.key) > 1):
            continue
        values[column] = tuple(dict.fromkeys(known))
        used.append(condition)
    return (values, used) if set(values) == set(schema.key) and values else None


def _compared(condition: exp.Expr, alias: str) -> tuple[str | None, list[exp.Expr]]:
    """The column of the source that a condition compares, and what with."""
    match condition:
        case exp.EQ():
            sides = (condition.this, condition.expression)
            for column, other in (sides, sides[::-1]):
                if isinstance(column, exp.Column) and column.table == alias:
                    return column.name, [other]
        case exp.In(this=exp.Column() as column) if column.table == alias:
            listed = condition.expressions
            if condition.args.get("query") is None and 0 < len(listed) <= KEYS_MAX:
                return column.name, listed
    return None, []


def _constant(node: exp.Expr, column: Column) -> Any:
    """The value of a constant of the column's own type; None for anything else."""
    kind = column.type.kind
    negative = False
    while True:
        match node:
            case exp.Paren():
                node = node.this
            case exp.Cast() if type_of(node).kind is kind and kind in _WHOLE_NUMBERS:
                node = node.this
            case exp.Neg() if kind in _WHOLE_NUMBERS:
                negative, node = not negative, node.this
            case _:
                break
    if not isinstance(node, exp.Literal):
        return None
    if kind in _WHOLE_NUMBERS and not node.is_string and str(node.this).isdecimal():
        return -int(node.this) if negative else int(node.this)
    if kind is Kind.VARCHAR and node.is_string and not column.type.padded:
        return str(node.this)
    return None


def _shown(query: exp.Expr, alias: str) -> tuple[str, ...] | None:
    if {part for part, value in query.args.items() if value} != _PLAIN:
        return None
    names = []
    for each in query.expressions:
        column = each.this if isinstance(each, exp.Alias) else each
        if not isinstance(column, exp.Column) or column.table != alias:
            return None
        names.append(column.name)
    return tuple(names)


def _unqualified(condition: exp.Expr) -> str:
    bare = condition.copy()
    for column in bare.find_all(exp.Column):
        column.set("table", None)
    return bare.sql("spark")
