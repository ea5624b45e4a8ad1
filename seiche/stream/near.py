"""Filters and projections of few rows that are on the driver already, by Arrow instead of Spark.

Handing rows to Spark, having it plan and fetching them back takes tens of milliseconds, whatever it does with them; a
comparison of a thousand values takes microseconds. But a view must hold what its query says by Spark's evaluation. So
this is done for nothing but columns as they are, and conditions of comparisons whose meaning is beyond doubt:

    columns and constants   of the same family: integers, double precision, varchar, date; a bare boolean column; a date
                            plus months, which is the beginning of a day
    comparisons             = <> < <= > >= IN, IS NULL, and AND, OR, NOT over them, three-valued
    keys                    those of the input, so that a row stays in its vnode

NaN compares otherwise in Spark than in Arrow, so where one turns up Spark does the step.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from seiche.model import OP, VNODE, RelationId, RelationSchema
from seiche.plan.algebra import Plan, Scan, Select
from seiche.storage.changes import Changes
from seiche.types import Kind, SqlType

_INTEGERS = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)
_DOUBLES_EXACT = 1 << 53

_COMPARISONS: Mapping[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.EQ: pc.equal,
    exp.NEQ: pc.not_equal,
    exp.LT: pc.less,
    exp.LTE: pc.less_equal,
    exp.GT: pc.greater,
    exp.GTE: pc.greater_equal,
}


class _Beyond(Exception):
    """Something that is Spark's to evaluate."""


def mapped(plan: Plan, schema: RelationSchema, changes: Mapping[RelationId, Changes]) -> pa.Table | None:
    """The changes of a Select with `_vnode` and `_op`, as rows of `schema`; None when Spark has to tell."""
    if not isinstance(plan, Select) or len(plan.inputs) != 1 or not isinstance(plan.inputs[0], Scan):
        return None
    scan = plan.inputs[0]
    changed = changes.get(scan.relation)
    if changed is None or changed.table is None:
        return None
    names = _plain_columns(plan, scan)
    if names is None or [names[each] for each in schema.key] != list(scan.schema.key):
        return None
    rows = changed.table
    for condition in plan.conjuncts:
        kept = filtered(condition, rows, scan.schema)
        if kept is None:
            return None
        rows = kept
    columns = [rows[names[each]] for each in schema.names]
    return pa.table([*columns, rows[VNODE], rows[OP]], names=[*schema.names, VNODE, OP])


def filtered(condition: exp.Expr, rows: pa.Table, schema: RelationSchema) -> pa.Table | None:
    """The rows of an input that fulfil a condition on its own columns; None when Spark has to tell."""
    try:
        return rows.filter(_condition(condition, rows, schema))
    except _Beyond:
        return None


def _plain_columns(plan: Select, scan: Scan) -> dict[str, str] | None:
    """The input's column behind each item, when all of them are columns as they are."""
    found = {}
    for item in plan.items:
        if not isinstance(item.expr, exp.Column):
            return None
        type_ = scan.schema.column(item.expr.name).type
        if not is_stored_as(type_, item.field.type):
            return None
        found[item.field.name] = item.expr.name
    return found


def is_stored_as(type_: SqlType, other: SqlType) -> bool:
    """Whether values of one type are stored as those of the other are."""
    return (type_.spark, type_.arrow) == (other.spark, other.arrow)


def _condition(node: exp.Expr, rows: pa.Table, schema: RelationSchema) -> Any:
    """The condition's value for each row: true, false or NULL."""
    match node:
        case exp.Paren():
            return _condition(node.this, rows, schema)
        case exp.And():
            return pc.and_kleene(_condition(node.left, rows, schema), _condition(node.right, rows, schema))
        case exp.Or():
            return pc.or_kleene(_condition(node.left, rows, schema), _condition(node.right, rows, schema))
        case exp.Not():
            return pc.invert(_condition(node.this, rows, schema))
        case exp.Is() if isinstance(node.expression, exp.Null) and isinstance(node.this, exp.Column):
            return pc.is_null(rows[node.this.name])
        case exp.In() if node.expressions and set(node.args) - {"this", "expressions"} <= _empty(node):
            equal = [_compared(exp.EQ, node.this, each, rows, schema) for each in node.expressions]
            found = equal[0]
            for each in equal[1:]:
                found = pc.or_kleene(found, each)
            return found
        case exp.Column() if schema.column(node.name).type.kind is Kind.BOOLEAN:
            return rows[node.name]
        case _ if type(node) in _COMPARISONS:
            assert isinstance(node, exp.Binary)
            return _compared(type(node), node.left, node.right, rows, schema)
        case _:
            raise _Beyond


def _empty(node: exp.Expr) -> set[str]:
    return {name for name, value in node.args.items() if not value}


def _compared(how: type[exp.Expr], left: exp.Expr, right: exp.Expr, rows: pa.Table, schema: RelationSchema) -> Any:
    left, right = left.unnest(), right.unnest()
    days = _day_of(left), _day_of(right)
    if None not in days and any(isinstance(each, exp.Column) for each in days):
        return _COMPARISONS[how](*(_day_operand(each, rows, schema) for each in days))
    sides = [schema.column(each.name).type for each in (left, right) if isinstance(each, exp.Column)]
    families = {_family(each) for each in sides}
    if len(families) != 1:
        raise _Beyond
    (family,) = families
    return _COMPARISONS[how](*(_operand(each, family, rows) for each in (left, right)))


def _day_of(node: exp.Expr) -> exp.Column | date | None:
    """The day whose beginning an expression is: a date as a timestamp, maybe moved by months; None for any other."""
    match node:
        case exp.Cast() if isinstance(node.to, exp.DataType) and node.to.this is exp.DataType.Type.TIMESTAMPNTZ:
            inner = node.this.unnest()
            return inner if isinstance(inner, exp.Column) else _constant(inner, pa.date32())  # type: ignore[return-value]
        case exp.Anonymous() if str(node.this).lower() == "timestampadd" and len(node.expressions) == 3:
            unit, count, start = node.expressions
            months, day = _integer(count), _day_of(start.unnest())
            if not isinstance(day, date) or months is None or unit.name.upper() != "MONTH":
                return None
            year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
            if not 1 <= year <= 9999:
                return None
            return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
    return None


def _day_operand(day: exp.Column | date | None, rows: pa.Table, schema: RelationSchema) -> Any:
    if not isinstance(day, exp.Column):
        return pa.scalar(day, pa.date32())
    if schema.column(day.name).type.kind is not Kind.DATE:
        raise _Beyond
    return rows[day.name]


def _family(type_: SqlType) -> pa.DataType:
    """The Arrow type in which values of a type are compared."""
    if type_.kind in _INTEGERS:
        return pa.int64()
    if type_.kind is Kind.DOUBLE:
        return pa.float64()
    if type_.kind is Kind.DATE:
        return pa.date32()
    if type_.kind is Kind.VARCHAR and not type_.padded:
        return pa.string()
    raise _Beyond


def _operand(node: exp.Expr, family: pa.DataType, rows: pa.Table) -> Any:
    if isinstance(node, exp.Column):
        values = rows[node.name].cast(family)
        if pa.types.is_floating(family) and pc.any(pc.is_nan(values)).as_py():
            raise _Beyond
        return values
    value = _constant(node, family)
    if value is None:
        raise _Beyond
    return pa.scalar(value, family)


def _constant(node: exp.Expr, family: pa.DataType) -> int | float | str | date | None:
    """A constant of the family, as binding writes it; None where its value is not plain to see."""
    if pa.types.is_string(family):
        return str(node.this) if isinstance(node, exp.Literal) and node.is_string else None
    if pa.types.is_int64(family):
        number = _integer(node)
        return number if number is not None and -(1 << 63) <= number < 1 << 63 else None
    if not isinstance(node, exp.Cast) or not isinstance(node.to, exp.DataType):
        return None
    inner = node.this.unnest()
    if pa.types.is_date32(family):
        is_date = node.to.this is exp.DataType.Type.DATE and isinstance(inner, exp.Literal) and inner.is_string
        return _day(str(inner.this)) if is_date else None
    if node.to.this is not exp.DataType.Type.DOUBLE:
        return None
    number = _integer(inner)
    return float(number) if number is not None and abs(number) <= _DOUBLES_EXACT else None


def _integer(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Neg):
        number = _integer(node.this)
        return -number if number is not None else None
    plain = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isascii()
    return int(str(node.this)) if plain and str(node.this).isdecimal() else None


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if len(text) == len("2020-01-01") else None
    except ValueError:
        return None


__all__ = ["filtered", "is_stored_as", "mapped"]
