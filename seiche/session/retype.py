"""ALTER TABLE ... ALTER COLUMN ... TYPE: structs that get fields and lose them.

No row is written. Storage keeps every field that the column ever had, behind those that it had before, so that a view
which reads a field goes on reading it after the field was dropped; `Column.shown` is what statements see. Fields are
known by their names, in rows of today too: a new one is NULL in them, and one that was dropped does not come back,
since its old values would come back with it.
"""

from __future__ import annotations

from dataclasses import replace

from seiche.errors import DatatypeMismatch, FeatureNotSupported
from seiche.model import Column
from seiche.types import Kind, SqlType, array_of, map_of, struct_of

# RisingWave's names of types, which its users look for in these messages.
_NAMES = {
    Kind.BOOLEAN: "Boolean",
    Kind.SMALLINT: "Int16",
    Kind.INTEGER: "Int32",
    Kind.BIGINT: "Int64",
    Kind.NUMERIC: "Decimal",
    Kind.REAL: "Float32",
    Kind.DOUBLE: "Float64",
    Kind.ARRAY: "List",
}


def retyped(column: Column, wanted: SqlType) -> Column:
    """The column with another type, for statements; storage keeps what it has, and more."""
    shown = column.as_shown.type
    if not has_struct(shown):
        raise FeatureNotSupported(
            f'column "{column.name}" is of type {shown}: only types containing struct can be altered',
            hint="Add another column, and UPDATE the table.",
        )
    stored = _widened(column.type, shown, wanted)
    return replace(column, type=stored, shown=wanted if wanted != stored else None)


def has_struct(type_: SqlType) -> bool:
    inner = (type_.element,) if type_.element is not None else tuple(each for _, each in type_.fields)
    return type_.kind is Kind.STRUCT or any(has_struct(each) for each in inner)


def _widened(stored: SqlType, shown: SqlType, wanted: SqlType) -> SqlType:
    """What storage keeps from here on: `stored` with the fields that `wanted` has and `shown` has not."""
    if wanted.kind is not shown.kind:
        raise _incompatible(shown, wanted)
    match stored.kind:
        case Kind.STRUCT:
            return _with_fields(stored, shown, wanted)
        case Kind.ARRAY:
            assert stored.element is not None and shown.element is not None and wanted.element is not None
            return array_of(_widened(stored.element, shown.element, wanted.element))
        case Kind.MAP:
            (_, key), (_, value) = stored.fields
            if wanted.fields[0][1] != key:
                raise _incompatible(key, wanted.fields[0][1])
            return map_of(key, _widened(value, shown.fields[1][1], wanted.fields[1][1]))
        case _:
            if wanted != stored:
                raise _incompatible(stored, wanted)
            return stored


def _with_fields(stored: SqlType, shown: SqlType, wanted: SqlType) -> SqlType:
    kept, seen, asked = dict(stored.fields), dict(shown.fields), dict(wanted.fields)
    if len(asked) < len(wanted.fields):
        raise DatatypeMismatch(f"{wanted} has two fields of one name")
    for name in asked:
        if name in kept and name not in seen:
            raise FeatureNotSupported(
                f'a field "{name}" was dropped from the column earlier',
                detail="Rows that were written before still hold its values.",
                hint="Choose another name.",
            )
    old = [(name, _widened(each, seen[name], asked[name]) if name in asked else each) for name, each in kept.items()]
    return struct_of(*old, *((name, each) for name, each in asked.items() if name not in kept))


def _incompatible(old: SqlType, new: SqlType) -> DatatypeMismatch:
    return DatatypeMismatch(
        f"incompatible data type change from {_name(old)} to {_name(new)}",
        detail=f"Fields can be added and dropped; {old} cannot become {new}.",
    )


def _name(type_: SqlType) -> str:
    return _NAMES.get(type_.kind, type_.kind.name.capitalize())
