"""What few changed rows bring to their groups, by Arrow instead of Spark.

Rows of a join that were put together on the driver, and rows of a single input, go to Spark for their conditions and
items: analysing that query takes most of a small epoch. Where `seiche.stream.near_values` can tell the groups and what
is summed up there is no need for it. So this is for rows whose conditions were told already, and for

    count, sum of exact numbers, min, max, bool_and, bool_or

Everything else is Spark's, above all floats, whose exact decimals are its to find.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from seiche.model import OP
from seiche.plan.algebra import Aggregate, Field, Function, Select
from seiche.stream.near_join import joined_row
from seiche.stream.near_values import ALIKE, Beyond, shown
from seiche.types import BIGINT, SqlType


def parts(aggregate: Aggregate, source: Select, rows: pa.Table) -> pa.Table | None:
    """The rows of `merge.parts_sql` without their vnodes, for joined rows that fulfil every condition.

    None where Spark has something to evaluate, or where a number does not fit into Arrow's type for its sum.
    """
    if not _are_exact(aggregate):
        return None
    row, items = joined_row(source, rows), {item.field.name: item for item in source.items}
    fields: dict[str, Any] = {}
    found: dict[str, Any] = {}
    try:
        for name in dict.fromkeys(field.name for field in (*aggregate.keys, *_arguments(aggregate))):
            fields[name] = shown(items[name], row, rows.num_rows)
        found |= {field.name: fields[field.name] for field in aggregate.keys}
        found[OP] = rows[OP]
        for call in aggregate.calls:
            if call.argument is not None:
                found |= _brought(call.function, call.argument.name, fields, rows[OP], call.field.type)
    except (Beyond, pa.ArrowInvalid):
        return None
    return pa.table(found)


def _arguments(aggregate: Aggregate) -> list[Field]:
    return [call.argument for call in aggregate.calls if call.argument is not None]


def _are_exact(aggregate: Aggregate) -> bool:
    """Whether groups are told apart by the bits of their keys, and sums are of exact numbers."""
    if any(field.type.kind not in ALIKE for field in aggregate.keys):
        return False
    summed = (call.argument for call in aggregate.calls if call.function is Function.SUM)
    return not any(field is not None and field.type.is_float for field in summed)


def _brought(
    function: Function, name: str, fields: Mapping[str, Any], ops: pa.ChunkedArray, type_: SqlType
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
