"""jsonb made into structs and maps: `jsonb_populate_record`, `jsonb_populate_recordset`, `jsonb_populate_map`.

The first argument tells the type, and the values of what the json does not name. A member becomes its field as text
would; an object becomes a struct, an array an array, and JSON's null is NULL.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.errors import DatatypeMismatch
from seiche.sql.casts import convert
from seiche.sql.functions.jsonb import items_of, member, path, starts
from seiche.sql.functions.maps import key_type, value_type
from seiche.sql.functions.registry import Any_, function, invoke, undefined
from seiche.sql.nodes import (
    Settings,
    call,
    case,
    field,
    guarded,
    is_null,
    let,
    negation,
    not_null,
    null,
    spark_cast,
    text,
    transform,
    type_of,
    typed,
    variable,
)
from seiche.types import JSONB, VARCHAR, Kind, SqlType, array_of, struct_of

Nodes = list[exp.Expr]


@function("jsonb_populate_record", "json_populate_record", takes=[Any_.VALUE, JSONB])
def _populate_record(arguments: Nodes, settings: Settings) -> exp.Expr:
    base, node = arguments
    type_ = _row_type("jsonb_populate_record", arguments)
    made = _record(node, type_, settings, base)
    return case(type_, [(is_null(node.copy()), base.copy())], made)


def record_set(name: str, arguments: Nodes, settings: Settings) -> exp.Expr:
    """The structs of `jsonb_populate_recordset`, as an array."""
    if len(arguments) != 2 or type_of(arguments[1]).kind not in (Kind.JSONB, Kind.NULL):
        raise undefined(name, arguments)
    type_ = _row_type(name, arguments)
    base, node = arguments[0], convert(arguments[1], JSONB, settings)
    item = _record(variable("item", JSONB), type_, settings, base)
    listed = transform(_items(node), "item", item, array_of(type_))
    return guarded(listed, negation(starts(node, "[")), f"cannot call {name} on a non-array", settings)


@function("jsonb_populate_map", takes=[Any_.MAP, JSONB])
def _populate_map(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _map(arguments[1], type_of(arguments[0]), settings, arguments[0], 0)


def _row_type(name: str, arguments: Nodes) -> SqlType:
    type_ = type_of(arguments[0])
    if type_.kind is not Kind.STRUCT:
        raise undefined(name, arguments)
    return type_


def _map(node: exp.Expr, type_: SqlType, settings: Settings, base: exp.Expr, depth: int) -> exp.Expr:
    """A json object as a map, over the entries of `base`."""
    if key_type(type_).kind is not Kind.VARCHAR:
        raise DatatypeMismatch("cannot convert jsonb to a map with non-string keys")
    entry = struct_of(*type_.fields)
    key = variable(f"k{depth}", VARCHAR)
    inside = variable(f"m{depth}", JSONB)
    value = _value(inside, value_type(type_), settings, depth + 1)
    found = let(f"m{depth}", member(node.copy(), key.copy(), settings, as_text=False), value_type(type_), value)
    pair = spark_cast(call(entry, "named_struct", text("key"), key, text("value"), found), entry)
    keys = call(array_of(VARCHAR), "json_object_keys", node.copy())
    made = typed(transform(keys, f"k{depth}", pair, type_.entries), type_)
    checked = guarded(made, negation(starts(node, "{")), "cannot convert to map: not a json object", settings)
    return invoke("map_cat", [base, checked], settings)


def _record(node: exp.Expr, type_: SqlType, settings: Settings, base: exp.Expr | None, depth: int = 0) -> exp.Expr:
    """A json object as a struct; what it does not name comes from `base`, else it is NULL."""
    parts: Nodes = []
    found = variable(f"m{depth}", JSONB)
    for name, part in type_.fields:
        other = null(part) if base is None else field(base.copy(), name, part)
        value = case(part, [(is_null(found.copy()), other)], _value(found.copy(), part, settings, depth + 1))
        told = member(node.copy(), text(name), settings, as_text=False)
        parts += [text(name), let(f"m{depth}", told, part, value)]
    made = spark_cast(call(type_, "named_struct", *parts), type_)
    kinds = [text(f"cannot call populate_composite on {what}") for what in ("an array", "a scalar")]
    complaint = case(VARCHAR, [(starts(node, "["), kinds[0])], kinds[1])
    return guarded(made, negation(starts(node, "{")), complaint, settings)


def _value(node: exp.Expr, type_: SqlType, settings: Settings, depth: int) -> exp.Expr:
    """A json value as one of a type. `node` is a variable: it is used many times over."""
    there = call(JSONB, "nullif", node, text("null"))
    match type_.kind:
        case Kind.JSONB:
            return there
        case Kind.STRUCT:
            made = _record(node.copy(), type_, settings, None, depth)
        case Kind.ARRAY:
            assert type_.element is not None
            item = _value(variable(f"i{depth}", JSONB), type_.element, settings, depth + 1)
            listed = transform(_items(node), f"i{depth}", item, type_)
            made = guarded(listed, negation(starts(node, "[")), "expected JSON array", settings)
        case Kind.MAP:
            made = _map(node.copy(), type_, settings, null(type_), depth)
        case _:
            return convert(path(node.copy(), call(array_of(VARCHAR), "array"), settings, as_text=True), type_, settings)
    return case(type_, [(not_null(there), made)])


def _items(node: exp.Expr) -> exp.Expr:
    return typed(items_of(node), array_of(JSONB))
