"""Functions in FROM: each explodes an array that is computed from its arguments.

generate_series, unnest, the json ones, and the time windows TUMBLE and HOP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter, SyntaxError_
from seiche.sql.casts import common_type, convert
from seiche.sql.functions.arrays import element_type
from seiche.sql.functions.jsonb import variant
from seiche.sql.functions.registry import undefined
from seiche.sql.functions.temporal import window_start
from seiche.sql.literals import MICROS_PER_DAY, interval_constant
from seiche.sql.nodes import (
    Settings,
    bigint,
    binary,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    field,
    integer,
    spark_cast,
    text,
    type_of,
    typed,
    variable,
)
from seiche.sql.scopes import Entry
from seiche.types import (
    BIGINT,
    INTEGER,
    INTERVAL,
    JSONB,
    TIMESTAMP,
    TIMESTAMPTZ,
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
            made = TableFunction(_series(name, arguments, settings), (("", ""),), _constant_series(name, arguments))
        case "unnest":
            made = _unnest(arguments, settings)
        case "jsonb_array_elements" | "json_array_elements" | "jsonb_array_elements_text" | "json_array_elements_text":
            made = _json_elements(name, arguments, settings)
        case "jsonb_object_keys" | "json_object_keys":
            keys = call(array_of(VARCHAR), "json_object_keys", _one_json(name, arguments, settings))
            made = TableFunction(keys, (("", ""),))
        case "jsonb_each" | "jsonb_each_text" | "json_each" | "json_each_text":
            made = _json_each(name, arguments, settings)
        case "regexp_split_to_table" | "string_to_table":
            raise FeatureNotSupported(
                f"function {name} is not supported in FROM", hint="Use unnest(string_to_array(...))."
            )
        case _:
            raise undefined(name, arguments)
    return _numbered(made) if ordinality else made


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
    types = dict(item_type.fields)
    entries = tuple(
        Entry(name or shown, field(item.copy(), part, types[part]) if part else item.copy())
        for name, part in made.fields
    )
    return select, entries


def _item(value: exp.Expr, type_: SqlType) -> exp.Expr:
    return typed(exp.Alias(this=value, alias=exp.to_identifier(ITEM, quoted=True)), type_)


def _constant_series(name: str, arguments: list[exp.Expr]) -> tuple[int, int, int] | None:
    """The bounds of a series of integers that are written down."""
    if not all(type_of(argument).is_integer for argument in arguments):
        return None
    values = [_written_integer(argument) for argument in arguments]
    if len(values) == 2:
        values.append(1)
    if len(values) != 3 or None in values or values[2] == 0:
        return None
    start, stop, step = (int(value) for value in values if value is not None)
    return start, stop - (1 if name == "range" else 0), step


def _written_integer(node: exp.Expr) -> int | None:
    match node:
        case exp.Paren() | exp.Cast():
            return _written_integer(node.this)
        case exp.Neg():
            inner = _written_integer(node.this)
            return None if inner is None else -inner
        case exp.Literal(is_string=False) if str(node.this).isdigit():
            return int(node.this)
        case _:
            return None


def _numbered(made: TableFunction) -> TableFunction:
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
    if any(part for _, part in made.fields):
        raise FeatureNotSupported("WITH ORDINALITY needs a function of one column")
    return TableFunction(counted, ((made.fields[0][0], "item"), ("ordinality", "ordinality")))


def _series(name: str, arguments: list[exp.Expr], settings: Settings) -> exp.Expr:
    if len(arguments) not in (2, 3):
        raise undefined(name, arguments)
    if type_of(arguments[0]).kind in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ) or type_of(arguments[1]).kind in (
        Kind.DATE,
        Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ,
    ):
        return _time_series(name, arguments, settings)
    type_ = common_type([INTEGER, *(type_of(a) for a in arguments)], name)
    if not type_.is_integer and type_.kind is not Kind.NUMERIC:
        raise undefined(name, arguments)
    whole = type_ if type_.is_integer else BIGINT
    if type_.kind is Kind.NUMERIC:
        raise FeatureNotSupported(
            "generate_series over numeric is not supported", hint="Generate integers and divide them."
        )
    start, stop, *rest = (convert(a, whole, settings) for a in arguments)
    step = rest[0] if rest else integer(1, whole)
    last = stop if name == "generate_series" else binary(exp.Sub, whole, stop, integer(1, whole))
    return _guarded(start, last, step, call(array_of(whole), "sequence", start.copy(), last.copy(), step.copy()), whole)


def _guarded(start: exp.Expr, stop: exp.Expr, step: exp.Expr, series: exp.Expr, type_: SqlType) -> exp.Expr:
    """Empty where the step leads away from the end; Spark raises there."""
    up = conjunction([comparison(exp.GT, step, integer(0)), comparison(exp.LTE, start, stop)])
    down = conjunction([comparison(exp.LT, step.copy(), integer(0)), comparison(exp.GTE, start.copy(), stop.copy())])
    return case(array_of(type_), [(disjunction([up, down]), series)])


def _time_series(name: str, arguments: list[exp.Expr], settings: Settings) -> exp.Expr:
    if len(arguments) != 3:
        raise undefined(name, arguments)
    zoned = any(type_of(a).kind in (Kind.DATE, Kind.TIMESTAMPTZ) for a in arguments[:2])
    type_ = TIMESTAMPTZ if zoned else TIMESTAMP
    start, stop = (convert(a, type_, settings) for a in arguments[:2])
    width = interval_constant(convert(arguments[2], INTERVAL, settings))
    if width is None:
        raise FeatureNotSupported("generate_series needs a constant interval as its step")
    months, days, micros = width
    if not (months or days or micros):
        raise InvalidParameter("step size cannot equal zero")
    if months and (days or micros):
        raise FeatureNotSupported("a step of both months and days is not supported")
    if months:
        step: exp.Expr = exp.Anonymous(this="make_ym_interval", expressions=[exp.Literal.number(0), integer(months)])
        ahead = months > 0
    else:
        total = days * MICROS_PER_DAY + micros
        whole, rest = divmod(abs(total), 1_000_000)
        seconds: exp.Expr = exp.Literal.number(f"{whole}.{rest:06d}")
        seconds = exp.Neg(this=seconds) if total < 0 else seconds
        zero = exp.Literal.number(0)
        step = exp.Anonymous(this="make_dt_interval", expressions=[zero, zero.copy(), zero.copy(), seconds])
        ahead = total > 0
    series = call(array_of(type_), "sequence", start, stop, step)
    leads = comparison(exp.LTE if ahead else exp.GTE, start.copy(), stop.copy())
    return case(array_of(type_), [(leads, series)])


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
    fields = [(f"f{index}", element_type(a)) for index, a in enumerate(arguments, start=1)]
    item = struct_of(*fields)
    names: list[exp.Expr] = [text(name) for name, _ in fields]
    zipped = call(array_of(item), "arrays_zip", *arguments)
    # arrays_zip names its fields by position, from 0.
    zero_based = struct_of(*((str(i), t) for i, (_, t) in enumerate(fields)))
    body = call(
        item,
        "named_struct",
        *(
            part
            for i, name in enumerate(names)
            for part in (name, field(variable("x", zero_based), str(i), fields[i][1]))
        ),
    )
    named = call(array_of(item), "transform", zipped, exp.Lambda(this=body, expressions=[exp.to_identifier("x")]))
    return TableFunction(named, tuple(("", name) for name, _ in fields))


def _one_json(name: str, arguments: list[exp.Expr], settings: Settings) -> exp.Expr:
    if len(arguments) != 1 or type_of(arguments[0]).kind not in (Kind.JSONB, Kind.NULL):
        raise undefined(name, arguments)
    return convert(arguments[0], JSONB, settings)


def _json_elements(name: str, arguments: list[exp.Expr], settings: Settings) -> TableFunction:
    node = _one_json(name, arguments, settings)
    items = spark_cast(variant(node), array_of(JSONB), "array<variant>")
    if name.endswith("_text"):
        body = call(VARCHAR, "variant_get", variable("x", JSONB), text("$"), text("string"))
    else:
        body = call(JSONB, "to_json", variable("x", JSONB))
    listed = call(
        array_of(type_of(body)), "transform", items, exp.Lambda(this=body, expressions=[exp.to_identifier("x")])
    )
    return TableFunction(listed, (("value", ""),))


def _json_each(name: str, arguments: list[exp.Expr], settings: Settings) -> TableFunction:
    node = _one_json(name, arguments, settings)
    value_type = VARCHAR if name.endswith("_text") else JSONB
    item = struct_of(("key", VARCHAR), ("value", value_type))
    entries = call(array_of(item), "map_entries", call(JSONB, "from_json", node, text("map<string,variant>")))
    value = exp.Dot(this=exp.column("x"), expression=exp.to_identifier("value"))
    shown = (
        exp.Anonymous(this="variant_get", expressions=[value, text("$"), text("string")])
        if value_type == VARCHAR
        else exp.Anonymous(this="to_json", expressions=[value])
    )
    key = exp.Dot(this=exp.column("x"), expression=exp.to_identifier("key"))
    body = call(item, "named_struct", text("key"), key, text("value"), shown)
    listed = call(array_of(item), "transform", entries, exp.Lambda(this=body, expressions=[exp.to_identifier("x")]))
    return TableFunction(listed, (("key", "key"), ("value", "value")))


# --- time windows ------------------------------------------------------------------------------------


def time_window(
    name: str, arguments: Sequence[exp.Expr], columns: Sequence[tuple[str, exp.Expr, bool]], settings: Settings
) -> tuple[list[tuple[str, exp.Expr, bool]], exp.Expr, int]:
    """The columns of TUMBLE or HOP over a table: its own, and the window's start; and the window's size.

    TUMBLE gives each row one start; HOP gives an exploded one for each window that the row falls in.
    """
    needed = 2 if name == "tumble" else 3
    if len(arguments) not in (needed, needed + 1):
        raise SyntaxError_(f"{name} takes a table, a column and {needed - 1} intervals")
    moment = arguments[0]
    type_ = type_of(moment)
    if type_.kind is Kind.DATE:
        moment, type_ = spark_cast(moment, TIMESTAMP), TIMESTAMP
    if type_.kind not in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        raise undefined(name, arguments)
    widths = [_micros(a) for a in arguments[1:]]
    hop, size = (widths[0], widths[0]) if name == "tumble" else (widths[0], widths[1])
    origin = widths[needed - 1] if len(widths) >= needed else 0
    last = window_start(moment, _constant(arguments[1]), bigint(origin), type_)
    if name == "tumble":
        return [*columns], last, size
    if size % hop:
        raise InvalidParameter("the size of a hopping window must be a multiple of its hop")
    starts = [_moved(last.copy(), -hop * index, type_) for index in range(size // hop - 1, -1, -1)]
    listed = call(array_of(type_), "array", *starts)
    return [*columns], typed(exp.Anonymous(this="explode", expressions=[listed]), type_), size


def window_end(start: exp.Expr, size: int) -> exp.Expr:
    return _moved(start, size, type_of(start))


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
