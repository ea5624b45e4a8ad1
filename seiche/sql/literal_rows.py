"""VALUES of nothing but constants, as columns of text.

Binding, rendering and parsing each of a hundred thousand constants as an expression takes minutes. As text they are
read by one cast for each column, which gives the same: a constant in quotes has no type until its column gives it one,
and a number is read the same way by every type that can hold it as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.sql.statements import SqlQuery
from seiche.types import Kind, SqlType

# Fewer rows are bound like any query.
ROWS_MIN = 200

_INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_FRACTIONS = (Kind.NUMERIC, Kind.REAL, Kind.DOUBLE)
_TEXTS = (*_INTEGERS, *_FRACTIONS, Kind.BOOLEAN, Kind.VARCHAR, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def literal_columns(source: SqlQuery, types: Sequence[SqlType]) -> list[list[str | None]] | None:
    """The texts of each column's constants; None where the rows have to be evaluated as expressions."""
    query = source.tree
    if not isinstance(query, exp.Values) or set(query.args) - {"expressions"} - _unset(query):
        return None
    rows = query.expressions
    if len(rows) < ROWS_MIN or any(
        not isinstance(row, exp.Tuple) or len(row.expressions) != len(types) for row in rows
    ):
        return None
    columns = []
    for number, type_ in enumerate(types):
        cells = _cells([row.expressions[number] for row in rows], type_)
        if cells is None:
            return None
        columns.append(cells)
    return columns


def _unset(query: exp.Expr) -> set[str]:
    return {name for name, value in query.args.items() if not value}


def _cells(nodes: Sequence[exp.Expr], type_: SqlType) -> list[str | None] | None:
    """The texts of one column; all of them are in quotes, or all are numbers, or all are truth values."""
    cells: list[str | None] = []
    kinds = set()
    for node in nodes:
        if isinstance(node, exp.Null):
            cells.append(None)
            continue
        negative = isinstance(node, exp.Neg)
        inner = node.this if negative else node
        if isinstance(inner, exp.Boolean) and not negative:
            kinds.add("truth")
            cells.append("true" if inner.this else "false")
        elif isinstance(inner, exp.Literal) and inner.is_string and not negative:
            kinds.add("text")
            cells.append(inner.this)
        elif isinstance(inner, exp.Literal) and not inner.is_string:
            kinds.add("integer" if inner.this.isdecimal() else "fraction")
            cells.append(f"-{inner.this}" if negative else inner.this)
        else:
            return None
    return cells if _reads_the_same(kinds, type_) else None


def _reads_the_same(kinds: set[str], type_: SqlType) -> bool:
    if not kinds:
        return type_.kind in _TEXTS
    if kinds == {"text"}:
        return type_.kind in _TEXTS
    if kinds == {"truth"}:
        return type_.kind is Kind.BOOLEAN
    if kinds == {"integer"}:
        return type_.kind in (*_INTEGERS, *_FRACTIONS)
    return kinds <= {"integer", "fraction"} and type_.kind in _FRACTIONS
