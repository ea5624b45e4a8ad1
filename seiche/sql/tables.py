"""Functions that return rows: each explodes an array that is computed from its arguments.

generate_series, unnest, those that split text or take jsonb apart, and the time windows TUMBLE and HOP. Whether it
stands in FROM or in a select list, such a function is bound to `CROSS JOIN LATERAL (SELECT explode(array) AS item)`,
a map of each row to some rows; without columns among its arguments it is `(SELECT explode(array) AS item)` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from seiche.errors import InvalidParameter, SyntaxError_
from seiche.sql.attempts import attempted
from seiche.sql.casts import convert, settle
from seiche.sql.functions import json_records, jsonpath, patterns
from seiche.sql.functions.arrays import element_type
from seiche.sql.functions.jsonb import variant
from seiche.sql.functions.registry import invoke, undefined
from seiche.sql.functions.strings import string_to_array
from seiche.sql.functions.temporal import window_start
from seiche.sql.literals import MICROS_PER_DAY, interval_constant
from seiche.sql.nodes import (
    Settings,
    bigint,
    call,
    case,
    field,
    guarded,
    integer,
    negation,
    spark_cast,
    text,
    transform,
    type_of,
    typed,
    variable,
)
from seiche.sql.scopes import Entry
from seiche.sql.series import constant_series, series
from seiche.sql.written import written_as
from seiche.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    INTERVAL,
    JSONB,
    TIMESTAMP,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    struct_of,
)

ITEM = "item"


@dataclass(frozen=True, slots=True)
class TableFunction:
    """The array to explode and its columns: fields of the items, or the items themselves (field "")."""

    exploded: exp.Expr
    fields: tuple[tuple[str, str], ...]  # name of the column ("" takes the alias), field of the item
    series: tuple[int, int, int] | None = None  # start, stop and step of a series of constant integers


def table_function(name: str, arguments: list[exp.Expr], settings: Settings, *, ordinality: bool) -> TableFunction:
    """The rows of a function in FROM; a function of one value gives one row."""
    match name:
        case "generate_series" | "range":
            made = TableFunction(series(name, arguments, settings), (("", ""),), constant_series(name, arguments))
        case "unnest":
            made = _unnest(arguments, settings)
        case "_pg_expandarray":  # of information_schema: the elements with their places
            counted = numbered(single(_unnest(arguments[:1], settings).exploded))
            made = TableFunction(counted.exploded, (("x", "item"), ("n", "ordinality")))
        case "jsonb_array_elements" | "json_array_elements" | "jsonb_array_elements_text" | "json_array_elements_text":
            made = _json_elements(name, arguments, settings)
        case "generate_subscripts":
            made = TableFunction(_subscripts(arguments, settings), (("", ""),))
        case "regexp_matches":
            made = TableFunction(patterns.all_matches(_texts(name, arguments, 2, 3, settings), settings), (("", ""),))
        case "regexp_split_to_table":
            given = _texts(name, arguments, 2, 3, settings)
            made = TableFunction(patterns.split_to_array(given, settings), (("", ""),))
        case "string_to_table":
            made = TableFunction(string_to_array(_texts(name, arguments, 2, 3, settings), settings), (("", ""),))
        case "jsonb_path_query":
            found = jsonpath.query(
                [_one_json(name, arguments[:1], settings), *_settled(arguments[1:], settings)], settings
            )
            made = TableFunction(found, (("", ""),))
        case "jsonb_object_keys" | "json_object_keys":
            node = _one_json(name, arguments, settings)
            keys = call(array_of(VARCHAR), "json_object_keys", node.copy())
            made = TableFunction(_of_shape(keys, node, "{", f"cannot call {name} on", settings), (("", ""),))
        case "jsonb_populate_recordset" | "json_populate_recordset":
            made = _unnest([json_records.record_set(name, arguments, settings)], settings)
        case "jsonb_each" | "jsonb_each_text" | "json_each" | "json_each_text":
            made = _json_each(name, arguments, settings)
        case _:
            raise undefined(name, arguments)
    if not settings.strict:
        made = replace(made, exploded=attempted(made.exploded, arguments))
    return numbered(made) if ordinality else made


def single(exploded: exp.Expr) -> TableFunction:
    return TableFunction(exploded, (("", ""),))


def single_row(value: exp.Expr) -> TableFunction:
    return TableFunction(call(array_of(type_of(value)), "array", value), (("", ""),))


def rendered(made: TableFunction, shown: str, ref: str) -> tuple[exp.Select, tuple[Entry, ...]]:
    """The query that explodes, and its columns seen through alias `ref`."""
    item_type = element_type(made.exploded)
    if made.series is not None:
        # Executors make such a series piece by piece; an array would be made by one task, and in memory.
        start, stop, step = made.series
        bounds = (start, stop + (1 if step > 0 else -1), step)
        numbers = exp.Anonymous(this="range", expressions=[integer(each, BIGINT) for each in bounds])
        value = spark_cast(typed(exp.column("id"), BIGINT), item_type)
        select = exp.Select(expressions=[_item(value, item_type)]).from_(exp.Table(this=numbers))
    else:
        exploded = typed(exp.Anonymous(this="explode", expressions=[made.exploded]), item_type)
        select = exp.Select(expressions=[_item(exploded, item_type)])
    item = typed(exp.column(ITEM, table=ref, quoted=True), item_type)
    return select, tuple(Entry(name or shown, _part(item, part)) for name, part in made.fields)


def _part(item: exp.Expr, path: str) -> exp.Expr:
    """The item itself, or a field of it, or a field of that."""
    node = item.copy()
    for name in path.split(".") if path else ():
        node = field(node, name, dict(type_of(node).fields)[name])
    return node


def _item(value: exp.Expr, type_: SqlType) -> exp.Expr:
    return typed(exp.Alias(this=value, alias=exp.to_identifier(ITEM, quoted=True)), type_)


def numbered(made: TableFunction) -> TableFunction:
    """WITH ORDINALITY: the items counted from one."""
    item_type = element_type(made.exploded)
    wrapped = struct_of(("item", item_type), ("ordinality", BIGINT))
    position = typed(exp.Add(this=exp.column("i"), expression=exp.Literal.number(1)), INTEGER)
    body = call(
        wrapped,
        "named_struct",
        text("item"),
        variable("x", item_type),
        text("ordinality"),
        spark_cast(position, BIGINT),
    )
    counted = call(
        array_of(wrapped),
        "transform",
        made.exploded,
        exp.Lambda(this=body, expressions=[exp.to_identifier("x"), exp.to_identifier("i")]),
    )
    fields = tuple((name, f"item.{part}" if part else "item") for name, part in made.fields)
    return TableFunction(counted, (*fields, ("ordinality", "ordinality")))


def _subscripts(arguments: list[exp.Expr], settings: Settings) -> exp.Expr:
    if len(arguments) not in (2, 3) or type_of(arguments[0]).kind is not Kind.ARRAY:
        raise undefined("generate_subscripts", arguments)
    length = invoke("array_length", arguments[:2], settings)
    upward = call(array_of(INTEGER), "sequence", integer(1), length)
    if len(arguments) == 2:
        return upward
    back = convert(arguments[2], BOOLEAN, settings)
    return case(array_of(INTEGER), [(back, call(array_of(INTEGER), "reverse", upward.copy()))], upward)


def _settled(arguments: Sequence[exp.Expr], settings: Settings) -> list[exp.Expr]:
    return [settle(argument, settings) for argument in arguments]


def _texts(name: str, arguments: list[exp.Expr], least: int, most: int, settings: Settings) -> list[exp.Expr]:
    given = [convert(a, VARCHAR, settings) if type_of(a).kind is Kind.NULL else a for a in arguments]
    if not least <= len(given) <= most or any(type_of(a).kind is not Kind.VARCHAR for a in given):
        raise undefined(name, arguments)
    return given


def _unnest(arguments: list[exp.Expr], settings: Settings) -> TableFunction:
    arrays = [a if type_of(a).kind is Kind.ARRAY else None for a in arguments]
    if not arguments or None in arrays:
        raise undefined("unnest", arguments)
    if len(arguments) == 1:
        node = arguments[0]
        inner = element_type(node)
        while inner.element is not None:  # all dimensions at once
            node = call(inner, "flatten", node)
            inner = inner.element
        if inner.kind is Kind.STRUCT:
            return TableFunction(node, tuple((name, name) for name, _ in inner.fields))
        return TableFunction(node, (("", ""),))
    return zipped(arguments)


def zipped(arrays: Sequence[exp.Expr]) -> TableFunction:
    """Several arrays side by side, the shorter ones filled up with NULL."""
    fields = [(f"f{index}", element_type(a)) for index, a in enumerate(arrays, start=1)]
    item = struct_of(*fields)
    # arrays_zip names its fields by position, from 0, and is NULL where one array is.
    zero_based = struct_of(*((str(i), t) for i, (_, t) in enumerate(fields)))
    filled = [
        typed(exp.Coalesce(this=a, expressions=[spark_cast(call(type_of(a), "array"), type_of(a))]), type_of(a))
        for a in arrays
    ]
    parts: list[exp.Expr] = []
    for index, (name, type_) in enumerate(fields):
        parts += [text(name), field(variable("x", zero_based), str(index), type_)]
    named = transform(
        call(array_of(item), "arrays_zip", *filled), "x", call(item, "named_struct", *parts), array_of(item)
    )
    return TableFunction(named, tuple(("", name) for name, _ in fields))


def side_by_side(named: Sequence[tuple[str, TableFunction]]) -> TableFunction:
    """ROWS FROM: the columns of several functions, of which those without a name have that of their function."""
    if len(named) == 1:
        return named[0][1]
    fields = [
        (column or name, f"f{index}.{part}" if part else f"f{index}")
        for index, (name, made) in enumerate(named, start=1)
        for column, part in made.fields
    ]
    return TableFunction(zipped([made.exploded for _, made in named]).exploded, tuple(fields))


SET_RETURNING = frozenset(
    (
        "generate_series", "generate_subscripts", "range", "unnest", "regexp_matches", "regexp_split_to_table",
        "string_to_table", "jsonb_array_elements", "jsonb_array_elements_text", "json_array_elements",
        "json_array_elements_text",
        "jsonb_each", "jsonb_each_text", "json_each", "json_each_text", "jsonb_object_keys", "json_object_keys",
        "jsonb_path_query", "jsonb_populate_recordset", "json_populate_recordset",
    )
)  # fmt: skip


def _one_json(name: str, arguments: list[exp.Expr], settings: Settings) -> exp.Expr:
    if len(arguments) != 1 or type_of(arguments[0]).kind not in (Kind.JSONB, Kind.NULL):
        raise undefined(name, arguments)
    return convert(arguments[0], JSONB, settings)


def _of_shape(listed: exp.Expr, node: exp.Expr, opening: str, told: str, settings: Settings) -> exp.Expr:
    """What a JSON value is taken apart into, where it is an object or an array as `opening` says."""
    other, what = ("[", "an array") if opening == "{" else ("{", "an object")

    def opens(with_: str) -> exp.Expr:
        return call(BOOLEAN, "startswith", node.copy(), text(with_))

    shape = case(VARCHAR, [(opens(other), text(f"{told} {what}"))], text(f"{told} a scalar"))
    return guarded(listed, negation(opens(opening)), shape, settings)


def _json_elements(name: str, arguments: list[exp.Expr], settings: Settings) -> TableFunction:
    node = _one_json(name, arguments, settings)
    items = spark_cast(variant(node.copy()), array_of(JSONB), "array<variant>")
    if name.endswith("_text"):
        body = call(VARCHAR, "variant_get", variable("x", JSONB), text("$"), text("string"))
    else:
        body = call(JSONB, "to_json", variable("x", JSONB))
    listed = call(
        array_of(type_of(body)), "transform", items, exp.Lambda(this=body, expressions=[exp.to_identifier("x")])
    )
    return TableFunction(_of_shape(listed, node, "[", "cannot extract elements from", settings), (("value", ""),))


def _json_each(name: str, arguments: list[exp.Expr], settings: Settings) -> TableFunction:
    node = _one_json(name, arguments, settings)
    value_type = VARCHAR if name.endswith("_text") else JSONB
    item = struct_of(("key", VARCHAR), ("value", value_type))
    entries = call(array_of(item), "map_entries", call(JSONB, "from_json", node.copy(), text("map<string,variant>")))
    value = exp.Dot(this=exp.column("x"), expression=exp.to_identifier("value"))
    shown = (
        exp.Anonymous(this="variant_get", expressions=[value, text("$"), text("string")])
        if value_type == VARCHAR
        else exp.Anonymous(this="to_json", expressions=[value])
    )
    key = exp.Dot(this=exp.column("x"), expression=exp.to_identifier("key"))
    body = call(item, "named_struct", text("key"), key, text("value"), shown)
    listed = call(array_of(item), "transform", entries, exp.Lambda(this=body, expressions=[exp.to_identifier("x")]))
    told = f"cannot call {name} on a non-object: cannot deconstruct"
    return TableFunction(_of_shape(listed, node, "{", told, settings), (("key", "key"), ("value", "value")))


# --- time windows ------------------------------------------------------------------------------------


def time_window(
    name: str, arguments: Sequence[exp.Expr], columns: Sequence[tuple[str, exp.Expr, bool]], settings: Settings
) -> tuple[list[tuple[str, exp.Expr, bool]], exp.Expr, int]:
    """The columns of TUMBLE or HOP over a table: its own, and the window's start; and the window's size.

    TUMBLE gives each row one start; HOP gives an array of them, one for each window that the row falls in.
    """
    needed = 2 if name == "tumble" else 3
    if len(arguments) not in (needed, needed + 1):
        raise SyntaxError_(f"{name} takes a table, a column and {needed - 1} intervals")
    moment = arguments[0]
    spans = [convert(a, INTERVAL, settings) if type_of(a).kind is Kind.NULL else a for a in arguments[1:]]
    type_ = type_of(moment)
    if type_.kind is Kind.DATE:
        moment, type_ = spark_cast(moment, TIMESTAMP), TIMESTAMP
    if type_.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        raise undefined(name, arguments)
    widths = [_micros(a) for a in spans]
    hop, size = (widths[0], widths[0]) if name == "tumble" else (widths[0], widths[1])
    if hop <= 0 or size <= 0:
        raise InvalidParameter(f"the intervals of {name} must be longer than zero")
    origin = widths[needed - 1] if len(widths) >= needed else 0
    last = window_start(moment, _constant(spans[0]), bigint(origin), type_)
    if name == "tumble":
        return [*columns], _named(last, "window_start"), size
    if size % hop:
        raise InvalidParameter("the size of a hopping window must be a multiple of its hop")
    starts = [_moved(last.copy(), -hop * index, type_) for index in range(size // hop - 1, -1, -1)]
    starts = [_named(each, "window_start") for each in starts]
    listed = call(array_of(type_), "array", *starts)
    return [*columns], listed, size


def window_end(start: exp.Expr, size: int) -> exp.Expr:
    return _named(_moved(start, size, type_of(start)), "window_end")


def _named(node: exp.Expr, name: str) -> exp.Expr:
    """A computed column, which is shown by its name."""
    return written_as(node, exp.column(name))


def _moved(node: exp.Expr, micros: int, type_: SqlType) -> exp.Expr:
    return call(type_, "timestampadd", exp.var("MICROSECOND"), bigint(micros), node) if micros else node


def _constant(node: exp.Expr) -> exp.Expr:
    if interval_constant(node) is None:
        raise InvalidParameter("a window must be a constant interval without months")
    return node


def _micros(node: exp.Expr) -> int:
    constant = interval_constant(node)
    if constant is None or constant[0]:
        raise InvalidParameter("a window must be a constant interval without months")
    return constant[1] * MICROS_PER_DAY + constant[2]
