"""What few changed rows bring to their groups, by Arrow instead of Spark.

Rows of a join that were put together on the driver, and rows of a single input, go to Spark for their conditions and
items: analysing that query takes most of a small epoch. Where nothing is left to evaluate there is no need for it. So
this is for groups by columns as they are, calls over columns as they are, and conditions that were told already:

    count, sum of exact numbers, min, max, bool_and, bool_or

Everything else is Spark's, above all floats, whose exact decimals are its to find.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from seiche.model import OP
from seiche.plan.algebra import Aggregate, Function, Select, field_of, input_index
from seiche.stream.joined_row import flat_name
from seiche.stream.near import is_stored_as
from seiche.types import BIGINT, Kind, SqlType

_KEYS = (
    Kind.SMALLINT,
    Kind.INTEGER,
    Kind.BIGINT,
    Kind.NUMERIC,
    Kind.BOOLEAN,
    Kind.VARCHAR,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,
)


def parts(aggregate: Aggregate, source: Select, rows: pa.Table) -> pa.Table | None:
    """The rows of `merge.parts_sql` without their vnodes, for joined rows that fulfil every condition.

    None where Spark has something to evaluate, or where a number does not fit into Arrow's type for its sum.
    """
    columns = _columns(source) if _are_exact(aggregate) else None
    if columns is None:
        return None
    fields = {field.name: pc.cast(rows[columns[field.name]], field.type.arrow) for field in source.fields}
    found = {field.name: fields[field.name] for field in aggregate.keys}
    found[OP] = rows[OP]
    try:
        for call in aggregate.calls:
            if call.argument is not None:
                found |= _brought(call.function, call.argument.name, fields, rows[OP], call.field.type)
    except pa.ArrowInvalid:
        return None
    return pa.table(found)


def _are_exact(aggregate: Aggregate) -> bool:
    """Whether groups are told apart by the bits of their keys, and sums are of exact numbers."""
    if aggregate.total or any(field.type.kind not in _KEYS for field in aggregate.keys):
        return False
    summed = (call.argument for call in aggregate.calls if call.function is Function.SUM)
    return not any(field is not None and field.type.is_float for field in summed)


def _columns(source: Select) -> Mapping[str, str] | None:
    """The column of the joined row behind each field, when all of them are columns as they are, or with more digits."""
    found = {}
    for item in source.items:
        is_cast = isinstance(item.expr, exp.Cast)
        column = item.expr.this.unnest() if is_cast else item.expr
        if not isinstance(column, exp.Column):
            return None
        type_ = field_of(source.inputs[input_index(column)], column.name).type
        if not (_has_more_digits if is_cast else is_stored_as)(type_, item.field.type):
            return None
        found[item.field.name] = flat_name(input_index(column), column.name)
    return found


def _has_more_digits(type_: SqlType, wide: SqlType) -> bool:
    """Whether a cast from one numeric to the other leaves every value as it is."""
    if type_.kind is not Kind.NUMERIC or wide.kind is not Kind.NUMERIC:
        return False
    assert type_.precision is not None and wide.precision is not None
    return type_.scale == wide.scale and type_.precision <= wide.precision


def _brought(
    function: Function, name: str, fields: Mapping[str, pa.ChunkedArray], ops: pa.ChunkedArray, type_: SqlType
) -> dict[str, pa.ChunkedArray]:
    """The state's columns of one call, as `seiche.plan.state` names them and says in SQL what a row adds."""
    values = fields[name]
    if function in (Function.MIN, Function.MAX):
        return {f"_{function.value}_{name}": values}
    signs = pc.cast(ops, BIGINT.arrow)
    none = pa.scalar(0, BIGINT.arrow)
    found = {f"_n_{name}": pc.if_else(pc.is_null(values), none, signs)}
    match function:
        case Function.SUM:
            wide = pc.fill_null(pc.cast(values, type_.arrow), pa.scalar(0, type_.arrow))
            found[f"_s_{name}"] = pc.if_else(pc.greater(ops, 0), wide, pc.negate(wide))
        case Function.BOOL_AND:
            found[f"_f_{name}"] = pc.if_else(pc.fill_null(pc.invert(values), False), signs, none)
        case Function.BOOL_OR:
            found[f"_t_{name}"] = pc.if_else(pc.fill_null(values, False), signs, none)
    return found


__all__ = ["parts"]
