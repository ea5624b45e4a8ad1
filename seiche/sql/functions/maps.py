"""Maps: values by keys, each key once. They are stored as arrays of entries, in the order in which these came."""

from __future__ import annotations

from sqlglot import exp

from seiche.errors import DatatypeMismatch, FeatureNotSupported
from seiche.sql.casts import common_type, convert
from seiche.sql.functions.registry import Any_, function, undefined
from seiche.sql.nodes import (
    Settings,
    call,
    case,
    comparison,
    conjunction,
    equal,
    field,
    guarded,
    integer,
    is_null,
    is_unknown,
    lambda_,
    negation,
    not_null,
    spark_cast,
    text,
    transform,
    type_of,
    typed,
    variable,
)
from seiche.types import BOOLEAN, INTEGER, Kind, SqlType, array_of, map_of, struct_of

Nodes = list[exp.Expr]

KEY_KINDS = (Kind.VARCHAR, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)


def check_key(type_: SqlType) -> None:
    if type_.kind not in KEY_KINDS:
        raise DatatypeMismatch(f"invalid map key type: {type_.unmodified}", hint="Keys are texts or integers.")


def key_type(type_: SqlType) -> SqlType:
    return type_.fields[0][1]


def value_type(type_: SqlType) -> SqlType:
    return type_.fields[1][1]


def entries(node: exp.Expr) -> exp.Expr:
    """The map as the array that it is stored as."""
    return typed(node.copy(), type_of(node).entries)


def _entry(key: exp.Expr, value: exp.Expr, type_: SqlType) -> exp.Expr:
    return call(struct_of(*type_.fields), "named_struct", text("key"), key, text("value"), value)


def _key(name: str, type_: SqlType) -> exp.Expr:
    return field(variable(name, struct_of(*type_.fields)), "key", key_type(type_))


def _value(name: str, type_: SqlType) -> exp.Expr:
    return field(variable(name, struct_of(*type_.fields)), "value", value_type(type_))


def _keys(node: exp.Expr) -> exp.Expr:
    type_ = type_of(node)
    return transform(entries(node), "e", _key("e", type_), array_of(key_type(type_)))


def _asked(node: exp.Expr, key: exp.Expr, settings: Settings) -> exp.Expr:
    """A key as the map's own type."""
    wanted = key_type(type_of(node))
    given = type_of(key)
    same = given.kind is wanted.kind or (wanted.is_integer and given.is_integer)
    if same or is_unknown(key) or wanted.kind is Kind.VARCHAR:
        return convert(key, wanted, settings)
    raise undefined("map_access", [node, key])


def access(node: exp.Expr, key: exp.Expr, settings: Settings) -> exp.Expr:
    """`m[key]`, NULL where there is no such key."""
    type_ = type_of(node)
    asked = _asked(node, key, settings)
    found = call(type_.entries, "filter", entries(node), lambda_(equal(_key("e", type_), asked), "e"))
    return field(call(struct_of(*type_.fields), "get", found, integer(0)), "value", value_type(type_))


def made(listed: exp.Expr, type_: SqlType, settings: Settings) -> exp.Expr:
    """A map from entries, which must have different keys, none of them NULL."""
    check_key(key_type(type_))
    keys = transform(listed.copy(), "e", _key("e", type_), array_of(key_type(type_)))
    whole = typed(listed, type_)
    missing = call(BOOLEAN, "exists", keys.copy(), lambda_(is_null(variable("k", key_type(type_))), "k"))
    distinct = call(array_of(key_type(type_)), "array_distinct", keys.copy())
    repeated = comparison(exp.NEQ, call(INTEGER, "size", keys), call(INTEGER, "size", distinct))
    checked = guarded(whole, _surely(repeated), "map keys must be unique", settings)
    return guarded(checked, _surely(missing), "map keys must not be NULL", settings)


def _surely(condition: exp.Expr) -> exp.Expr:
    return typed(exp.Coalesce(this=condition, expressions=[exp.Boolean(this=False)]), BOOLEAN)


def empty(type_: SqlType) -> exp.Expr:
    return spark_cast(exp.Anonymous(this="array", expressions=[]), type_)


@function("map_from_key_values", takes=[Any_.ARRAY, Any_.ARRAY])
def _from_key_values(arguments: Nodes, settings: Settings) -> exp.Expr:
    keys, values = arguments
    key, value = (type_of(each).element for each in arguments)
    assert key is not None and value is not None
    type_ = map_of(key, value)
    check_key(key)
    pair = _entry(variable("k", key), variable("v", value), type_)
    zipped = call(type_.entries, "zip_with", keys, values, lambda_(pair, "k", "v"))
    sizes = [call(INTEGER, "size", each.copy()) for each in arguments]
    different = _surely(comparison(exp.NEQ, *sizes))
    return guarded(made(zipped, type_, settings), different, "map keys and values have different length", settings)


@function("map_from_entries", takes=[Any_.ARRAY])
def _from_entries(arguments: Nodes, settings: Settings) -> exp.Expr:
    item = type_of(arguments[0]).element
    assert item is not None
    if item.kind is not Kind.STRUCT or len(item.fields) != 2:
        raise DatatypeMismatch(f"invalid map entries type, expected struct of two fields, got: {item}")
    type_ = map_of(item.fields[0][1], item.fields[1][1])
    parts = [field(variable("e", item), name, part) for name, part in item.fields]
    listed = transform(arguments[0], "e", _entry(parts[0], parts[1], type_), type_.entries)
    return made(listed, type_, settings)


@function("map_access", takes=[Any_.MAP, Any_.ELEMENT])
def _access(arguments: Nodes, settings: Settings) -> exp.Expr:
    return access(arguments[0], arguments[1], settings)


@function("map_contains", takes=[Any_.MAP, Any_.ELEMENT])
def _contains(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, key = arguments
    same = equal(_key("e", type_of(node)), _asked(node, key, settings))
    return call(BOOLEAN, "exists", entries(node), lambda_(same, "e"))


@function("map_keys", takes=[Any_.MAP])
def _map_keys(arguments: Nodes, settings: Settings) -> exp.Expr:
    return _keys(arguments[0])


@function("map_values", takes=[Any_.MAP])
def _map_values(arguments: Nodes, settings: Settings) -> exp.Expr:
    type_ = type_of(arguments[0])
    return transform(entries(arguments[0]), "e", _value("e", type_), array_of(value_type(type_)))


@function("map_entries", takes=[Any_.MAP])
def _map_entries(arguments: Nodes, settings: Settings) -> exp.Expr:
    return entries(arguments[0])


@function("map_length", takes=[Any_.MAP])
def _map_length(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(INTEGER, "size", entries(arguments[0]))


@function("map_cat", takes=[Any_.MAP, Any_.MAP])
def _map_cat(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Both together, the second one winning; of two maps one of which is NULL the other."""
    type_ = common_type([type_of(each) for each in arguments], "map_cat")
    left, right = (convert(each, type_, settings) for each in arguments)
    told = call(BOOLEAN, "array_contains", _keys(right), _key("e", type_))
    kept = call(type_.entries, "filter", entries(left), lambda_(negation(told), "e"))
    both = call(type_, "concat", kept, entries(right))
    return case(type_, [(is_null(left.copy()), right.copy()), (is_null(right.copy()), left.copy())], both)


@function("map_insert", takes=[Any_.MAP, Any_.ELEMENT, Any_.ELEMENT])
def _map_insert(arguments: Nodes, settings: Settings) -> exp.Expr:
    """The map with a value in the place of the key's, or behind all others."""
    node, key, value = arguments
    type_ = type_of(node)
    asked = _asked(node, key, settings)
    new = _entry(asked, convert(value, value_type(type_), settings), type_)
    entry = variable("e", struct_of(*type_.fields))
    swapped = case(struct_of(*type_.fields), [(equal(_key("e", type_), asked.copy()), new.copy())], entry)
    replaced = call(type_, "transform", entries(node), lambda_(swapped, "e"))
    appended = call(type_, "concat", entries(node), call(type_.entries, "array", new))
    there = call(BOOLEAN, "exists", entries(node), lambda_(equal(_key("e", type_), asked.copy()), "e"))
    known = conjunction([not_null(node.copy()), not_null(asked.copy())])
    return case(type_, [(negation(known), typed(node.copy(), type_)), (there, replaced)], appended)


@function("map_delete", takes=[Any_.MAP, Any_.ELEMENT])
def _map_delete(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, key = arguments
    type_ = type_of(node)
    stays = negation(equal(_key("e", type_), _asked(node, key, settings)))
    left = call(type_, "filter", entries(node), lambda_(stays, "e"))
    return case(type_, [(is_null(convert(key.copy(), key_type(type_), settings)), typed(node.copy(), type_))], left)


def filtered(node: exp.Expr, condition: exp.Expr, names: tuple[str, str]) -> exp.Expr:
    """`map_filter(m, |k, v| condition)`, where the condition is over two variables; NULL when no entry is left."""
    type_ = type_of(node)
    if type_of(condition).kind is not Kind.BOOLEAN:
        raise FeatureNotSupported("the function of map_filter must give a boolean")
    key, value = names

    def placed(inner: exp.Expr) -> exp.Expr:
        if isinstance(inner, exp.Column) and not inner.table and inner.name in (key, value):
            return _key("e", type_) if inner.name == key else _value("e", type_)
        return inner

    kept = call(type_, "filter", entries(node), lambda_(condition.copy().transform(placed), "e"))
    some = comparison(exp.GT, call(INTEGER, "size", kept.copy()), integer(0))
    return case(type_, [(some, kept)])


__all__ = ["access", "check_key", "empty", "entries", "filtered", "made"]
