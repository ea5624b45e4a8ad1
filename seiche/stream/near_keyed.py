"""The query of a Keyed over few rows that are on the driver, by Arrow instead of Spark.

Semi, anti and outer joins are queries of one kind: rows of the inputs, joined one input after the other, conditions and
columns. Those are evaluated here; `seiche.stream.near_values` says which expressions can be. Anything else, a window or
a group among them, is Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from seiche.plan.algebra import Field, Item, Keyed
from seiche.stream.matching import PLAIN, Places, all_pairs, pairs
from seiche.stream.near_values import Beyond, Row, fulfilled, shown
from seiche.types import SqlType

# A SELECT that has no other parts than these.
_KNOWN = {"expressions", "from_", "joins", "where", "kind"}


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows whose columns are called by the name of their table and their own."""

    table: pa.Table
    types: Mapping[tuple[str, str], SqlType]

    def find(self, column: exp.Column) -> tuple[str, SqlType]:
        found = [each for each in self.types if each[1] == column.name and column.table in ("", each[0])]
        if len(found) != 1:
            raise Beyond
        return _name(*found[0]), self.types[found[0]]

    def take(self, places: Places) -> pa.Table:
        return self.table.take(pa.array(places))

    def fulfilling(self, condition: exp.Expr) -> pa.ChunkedArray | pa.Array:
        return fulfilled(condition, Row(self.table, self.find), self.table.num_rows)


def evaluated(plan: Keyed, inputs: Sequence[pa.Table], limit: int) -> pa.Table | None:
    """The rows of a node's query, its inputs being tables of their fields; None where Spark has to evaluate it.

    At most `limit` pairs of rows are looked at.
    """
    named = {}
    for number, (source, rows) in enumerate(zip(plan.inputs, inputs, strict=True)):
        named[f"l{number}"] = (rows, {field.name: field.type for field in source.fields})
    try:
        table, types = _query(plan.body, named, limit)
    except Beyond:
        return None
    if any(
        (types[each.name].spark, types[each.name].arrow) != (each.type.spark, each.type.arrow) for each in plan.columns
    ):
        return None
    return table.select([field.name for field in plan.columns])


def looked_in(plan: Keyed) -> list[int]:
    """The inputs without a row of which, for a value of the key, there is nothing: those that semi joins look in."""
    query: exp.Expr = plan.body
    while isinstance(query, exp.Select) and isinstance(query.args["from_"].this, exp.Subquery):
        if query.args.get("joins") or any(value for name, value in query.args.items() if name not in _KNOWN):
            return []
        query = query.args["from_"].this.this
    if not isinstance(query, exp.Select) or any(value for name, value in query.args.items() if name not in _KNOWN):
        return []
    joins = query.args.get("joins") or ()
    if any(join.kind.upper() not in ("SEMI", "ANTI") or not isinstance(join.this, exp.Table) for join in joins):
        return []
    return [int(join.this.name[1:]) for join in joins if join.kind.upper() == "SEMI"]


_Named = tuple[pa.Table, Mapping[str, SqlType]]


def _query(query: exp.Expr, named: Mapping[str, _Named], limit: int) -> _Named:
    if not isinstance(query, exp.Select) or any(value for name, value in query.args.items() if name not in _KNOWN):
        raise Beyond
    rows = _source(query.args["from_"].this, named, limit)
    for join in query.args.get("joins") or ():
        rows = _joined(rows, _source(join.this, named, limit), join, limit)
    where = query.args.get("where")
    if where is not None:
        rows = _Rows(rows.table.filter(rows.fulfilling(where.this)), rows.types)
    row, columns, types = Row(rows.table, rows.find), {}, {}
    for each in query.expressions:
        expr, name = each.unalias(), each.alias_or_name
        type_ = rows.find(expr)[1] if isinstance(expr, exp.Column) else expr.meta.get("sql_type")
        if not isinstance(type_, SqlType):
            raise Beyond
        columns[name], types[name] = shown(Item(Field(name, type_), expr), row, rows.table.num_rows), type_
    return pa.table(columns), types


def _source(node: exp.Expr, named: Mapping[str, _Named], limit: int) -> _Rows:
    match node:
        case exp.Table() if node.name in named and not node.args.get("alias"):
            alias, (table, types) = node.name, named[node.name]
        case exp.Subquery() if node.alias:
            alias, (table, types) = node.alias, _query(node.this, named, limit)
        case _:
            raise Beyond
    names = [_name(alias, name) for name in types]
    return _Rows(table.select(list(types)).rename_columns(names), {(alias, name): types[name] for name in types})


def _name(table: str, column: str) -> str:
    return f"{table}.{column}"


def _joined(left: _Rows, right: _Rows, join: exp.Join, limit: int) -> _Rows:
    side, kind, on = join.side.upper(), join.kind.upper(), join.args.get("on")
    if join.args.get("using") or join.method or on is None or set(left.types) & set(right.types):
        raise Beyond
    mine, theirs = _matches(left, right, on, limit)
    if kind in ("SEMI", "ANTI") and side == "LEFT":
        kept = np.zeros(left.table.num_rows, np.bool_)
        kept[mine] = True
        return _Rows(left.table.filter(pa.array(kept if kind == "SEMI" else ~kept)), left.types)
    if kind not in ("", "OUTER", "INNER") or (kind == "INNER" and side):
        raise Beyond
    found = [_beside(left.take(mine), right.take(theirs))]
    if side in ("LEFT", "FULL"):
        alone = left.take(np.setdiff1d(np.arange(left.table.num_rows), mine))
        found.append(_beside(alone, _nothing(right.table, alone.num_rows)))
    if side in ("RIGHT", "FULL"):
        alone = right.take(np.setdiff1d(np.arange(right.table.num_rows), theirs))
        found.append(_beside(_nothing(left.table, alone.num_rows), alone))
    return _Rows(pa.concat_tables(found), {**left.types, **right.types})


def _matches(left: _Rows, right: _Rows, on: exp.Expr, limit: int) -> tuple[Places, Places]:
    """The places of rows that fulfil a condition together."""
    conditions = (
        [each.unnest() for each in on.unnest().flatten()] if isinstance(on.unnest(), exp.And) else [on.unnest()]
    )
    ties = [tie for each in conditions if (tie := _tie(each, left, right)) is not None]
    rest = [each for each in conditions if _tie(each, left, right) is None]
    if ties:
        sides = [_valid(rows.table, [tie[number] for tie in ties]) for number, rows in enumerate((left, right))]
        found = pairs(sides[0][0], sides[1][0], limit)
        found = None if found is None else (sides[0][1][found[0]], sides[1][1][found[1]])
    else:
        found = all_pairs(left.table, right.table, limit)
    if found is None:
        raise Beyond  # too many
    mine, theirs = found
    for condition in rest:
        both = _Rows(_beside(left.take(mine), right.take(theirs)), {**left.types, **right.types})
        kept = np.asarray(pc.fill_null(both.fulfilling(condition), False)).astype(np.bool_)
        mine, theirs = mine[kept], theirs[kept]
    return mine, theirs


def _tie(condition: exp.Expr, left: _Rows, right: _Rows) -> tuple[str, str] | None:
    """The columns that a condition sets equal, if one is of each side and equal values have equal bits."""
    if not isinstance(condition, exp.EQ):
        return None
    sides = condition.left.unnest(), condition.right.unnest()
    for mine, theirs in (sides, sides[::-1]):
        if isinstance(mine, exp.Column) and isinstance(theirs, exp.Column):
            if (mine.table, mine.name) in left.types and (theirs.table, theirs.name) in right.types:
                (name, type_), (other, their_type) = left.find(mine), right.find(theirs)
                return (name, other) if type_.kind in PLAIN and type_ == their_type else None
    return None


def _valid(rows: pa.Table, names: Sequence[str]) -> tuple[pa.Table, Places]:
    """The columns without rows that have a NULL in one of them, and where their rows are."""
    held = np.ones(rows.num_rows, np.bool_)
    for name in names:
        held &= np.asarray(pc.is_valid(rows[name])).astype(np.bool_)
    return rows.select(list(names)).filter(pa.array(held)), np.flatnonzero(held)


def _beside(left: pa.Table, right: pa.Table) -> pa.Table:
    return pa.table([*left.columns, *right.columns], names=[*left.column_names, *right.column_names])


def _nothing(like: pa.Table, rows: int) -> pa.Table:
    return pa.table([pa.nulls(rows, field.type) for field in like.schema], names=like.column_names)


__all__ = ["evaluated", "looked_in"]
