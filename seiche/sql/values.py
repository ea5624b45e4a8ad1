"""VALUES: rows of expressions, each column brought to one type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from seiche.errors import SyntaxError_
from seiche.sql.binder import Clause
from seiche.sql.binding import Binding, CommonTable
from seiche.sql.bound import Bound, OutputColumn, rows_query
from seiche.sql.casts import common_type, convert
from seiche.sql.nodes import type_of
from seiche.sql.places import place_of
from seiche.sql.scopes import Scope
from seiche.types import NULL, Kind, SqlType


def values(binding: Binding, node: exp.Values, outer: Scope | None, tables_: Mapping[str, CommonTable]) -> Bound:
    rows = _bound_cells(binding, node, outer, tables_)
    types = []
    for index in range(len(rows[0])):
        cells = [row[index] for row in rows]
        found, places = [type_of(cell) for cell in cells], [place_of(cell) for cell in cells]
        # A column of nothing but untyped literals stays untyped: a set operation may know better.
        types.append(NULL if all(t.kind is Kind.NULL for t in found) else common_type(found, "VALUES", places))
    rows = [
        [
            cell if type_.kind is Kind.NULL else convert(cell, type_, binding.settings)
            for type_, cell in zip(types, row, strict=True)
        ]
        for row in rows
    ]
    return _rows(binding, rows, types)


def raw_values(binding: Binding, node: exp.Values) -> Bound:
    """VALUES of an INSERT: each cell goes to its column's type on its own."""
    rows = _bound_cells(binding, node, None, {})
    return _rows(binding, rows, [NULL] * len(rows[0]))


def row_cells(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]


def _bound_cells(
    binding: Binding, node: exp.Values, outer: Scope | None, tables_: Mapping[str, CommonTable]
) -> list[list[exp.Expr]]:
    scope = Scope(binding.subquery(tables_), parent=outer)
    binder = binding.expressions(scope, Clause.VALUES)
    rows = [[binder.bind(cell) for cell in row_cells(row)] for row in node.expressions]
    uneven = next((row for row in rows if len(row) != len(rows[0])), None)
    if uneven is not None:
        raise SyntaxError_("VALUES lists must all be the same length", position=place_of(uneven[0]))
    return rows


def _rows(binding: Binding, rows: list[list[exp.Expr]], types: Sequence[SqlType]) -> Bound:
    columns = [OutputColumn(f"column{i}", f"column{i}", type_) for i, type_ in enumerate(types, start=1)]
    return Bound(rows_query(rows, columns, binding.ref), columns, rows)
