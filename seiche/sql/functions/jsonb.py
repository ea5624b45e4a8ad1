"""jsonb: stored as canonical text, taken apart through Spark's variants."""

from __future__ import annotations

import json

from sqlglot import exp

from seiche.errors import InvalidParameter
from seiche.sql.casts import convert, json_text, to_text
from seiche.sql.functions.registry import Any_, function, undefined
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    comparison,
    conjunction,
    equal,
    field,
    guarded,
    integer,
    is_null,
    lambda_,
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
from seiche.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    JSONB,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    struct_of,
)

Nodes = list[exp.Expr]

_LAST_POSITION = 2**31 - 1  # that a path of Spark's may name


def variant(node: exp.Expr) -> exp.Expr:
    return call(JSONB, "parse_json", node)


def starts(node: exp.Expr, mark: str) -> exp.Expr:
    """Whether it is an object ("{") or an array ("[")."""
    return call(BOOLEAN, "startswith", typed(node.copy(), VARCHAR), text(mark))


def items_of(node: exp.Expr) -> exp.Expr:
    """The items of an array, each as json text."""
    listed = spark_cast(variant(node.copy()), JSONB, "array<variant>")
    body = exp.Anonymous(this="to_json", expressions=[exp.column("x")])
    return call(array_of(VARCHAR), "transform", listed, lambda_(body, "x"))


def quoted(node: exp.Expr) -> exp.Expr:
    """A text as a json string."""
    return call(VARCHAR, "to_json", spark_cast(node, VARCHAR, "variant"))


def as_json(node: exp.Expr, settings: Settings) -> exp.Expr:
    """Any value as jsonb; SQL's NULL stays NULL."""
    type_ = type_of(node)
    match type_.kind:
        case Kind.JSONB:
            return node
        case Kind.BOOLEAN | Kind.SMALLINT | Kind.INTEGER | Kind.BIGINT | Kind.NUMERIC:
            return typed(to_text(node, settings), JSONB)
        case Kind.REAL | Kind.DOUBLE:
            # Json has no number for NaN, which compares greater than all, and for infinity.
            infinity = spark_cast(exp.Literal.string("Infinity"), type_)
            odd = comparison(exp.GTE, call(type_, "abs", node.copy()), infinity)
            quote = case(VARCHAR, [(odd, text('"'))], text(""))
            return call(JSONB, "concat", quote, to_text(node, settings), quote.copy())
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            shown = call(VARCHAR, "replace", to_text(node, settings), text(" "), text("T"))
            return typed(quoted(shown), JSONB)
        case Kind.ARRAY:
            assert type_.element is not None
            item = as_json(variable("x", type_.element), settings)
            shown = typed(exp.Coalesce(this=item, expressions=[text("null")]), VARCHAR)
            items = transform(node, "x", shown, array_of(VARCHAR))
            return call(JSONB, "concat", text("["), call(VARCHAR, "array_join", items, text(",")), text("]"))
        case Kind.STRUCT:
            members = [(text(name), field(node.copy(), name, member)) for name, member in type_.fields]
            return case(JSONB, [(not_null(node), _object(members, settings))])
        case Kind.MAP:
            return _of_entries(node, type_, settings)
        case _:
            return typed(quoted(to_text(node, settings)), JSONB)


def _of_entries(node: exp.Expr, type_: SqlType, settings: Settings) -> exp.Expr:
    """A map as an object: keys as texts."""
    entry = variable("e", struct_of(*type_.fields))
    (key, key_type), (value, value_type) = type_.fields
    name = quoted(to_text(field(entry.copy(), key, key_type), settings))
    pair = call(VARCHAR, "concat", name, text(":"), _or_null(field(entry, value, value_type), settings))
    pairs = transform(typed(node.copy(), type_.entries), "e", pair, array_of(VARCHAR))
    joined = call(VARCHAR, "concat", text("{"), call(VARCHAR, "array_join", pairs, text(",")), text("}"))
    return case(JSONB, [(not_null(node), call(JSONB, "to_json", variant(joined)))])  # sorts the keys


def _object(members: list[tuple[exp.Expr, exp.Expr]], settings: Settings) -> exp.Expr:
    if not members:
        return typed(text("{}"), JSONB)
    parts: Nodes = []
    for key, value in members:
        parts += [text(","), quoted(to_text(key, settings)), text(":"), _or_null(value, settings)]
    joined = call(VARCHAR, "concat", text("{"), *parts[1:], text("}"))
    return call(JSONB, "to_json", variant(joined))  # sorts the keys


def _or_null(value: exp.Expr, settings: Settings) -> exp.Expr:
    return typed(exp.Coalesce(this=as_json(value, settings), expressions=[text("null")]), VARCHAR)


# --- taking apart ------------------------------------------------------------------------------------


def member(node: exp.Expr, key: exp.Expr, settings: Settings, *, as_text: bool) -> exp.Expr:
    """`node -> key` and `node ->> key`, by name or by position."""
    key = convert(key, VARCHAR, settings) if type_of(key).kind is Kind.NULL else key
    if type_of(key).kind is Kind.VARCHAR:
        if isinstance(key, exp.Literal) and not {'"', "\\", "'"} & set(key.this):
            return _at(node, text(f'$["{key.this}"]'), as_text=as_text)
        return _at(_named_member(node, key), text("$"), as_text=as_text)
    if not type_of(key).is_integer:
        raise undefined("->>" if as_text else "->", [node, key])
    index = constant_integer(key)
    if index is not None and 0 <= index <= _LAST_POSITION:
        return _at(node, text(f"$[{index}]"), as_text=as_text)
    key = spark_cast(key, BIGINT)
    from_end = binary(exp.Add, BIGINT, spark_cast(_length(node), BIGINT), key.copy())
    position = case(BIGINT, [(comparison(exp.LT, key, integer(0)), from_end)], key.copy())
    step = call(VARCHAR, "concat", text("$["), spark_cast(position.copy(), VARCHAR), text("]"))
    found = _at(node, step, as_text=as_text)
    inside = typed(exp.Between(this=position, low=integer(0), high=integer(_LAST_POSITION)), BOOLEAN)
    return case(type_of(found), [(inside, found)])


def path(node: exp.Expr, keys: exp.Expr, settings: Settings, *, as_text: bool) -> exp.Expr:
    """`node #> '{a,b}'`."""
    keys = convert(keys, array_of(VARCHAR), settings)
    if isinstance(keys, exp.Cast):  # an empty array
        keys = keys.this
    if not isinstance(keys, exp.Anonymous) or keys.name != "array":
        raise InvalidParameter("a json path must be a constant array", hint="Write it as '{a,b,0}'.")
    if not keys.expressions:
        return _at(node, text("$"), as_text=as_text)
    current = node
    for index, key in enumerate(keys.expressions):
        last = index == len(keys.expressions) - 1
        step = key
        if isinstance(key, exp.Literal) and str(key.this).lstrip("-").isdigit():
            by_position = member(current, integer(int(key.this)), settings, as_text=as_text and last)
            by_name = member(current.copy(), key, settings, as_text=as_text and last)
            current = typed(exp.Coalesce(this=by_position, expressions=[by_name]), type_of(by_name))
            continue
        current = member(current, step, settings, as_text=as_text and last)
    return current


def _named_member(node: exp.Expr, key: exp.Expr) -> exp.Expr:
    """A member by a name that a path cannot spell."""
    members = call(JSONB, "from_json", node.copy(), text("map<string,variant>"))
    found = call(JSONB, "to_json", call(JSONB, "try_element_at", members, key))
    return case(JSONB, [(starts(node, "{"), found)])


def _at(node: exp.Expr, steps: exp.Expr, *, as_text: bool) -> exp.Expr:
    if as_text:
        found = call(VARCHAR, "variant_get", variant(node), steps, text("string"))
        nested = call(BOOLEAN, "rlike", found.copy(), text(r"^[\[{]"))
        inside = call(
            VARCHAR, "to_json", call(JSONB, "variant_get", variant(node.copy()), steps.copy(), text("variant"))
        )
        # A string that only looks like json is quoted in the json.
        plain = call(BOOLEAN, "startswith", inside, text('"'))
        return case(VARCHAR, [(conjunction([nested, negation(plain)]), json_text(found.copy()))], found)
    return call(JSONB, "to_json", call(JSONB, "variant_get", variant(node), steps, text("variant")))


def _length(node: exp.Expr) -> exp.Expr:
    return call(INTEGER, "json_array_length", node.copy())


@function("jsonb_array_length", "json_array_length", takes=[JSONB])
def _array_length(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    told = [text(f"cannot get array length of a {what}") for what in ("non-array", "scalar")]
    complaint = case(VARCHAR, [(starts(node, "{"), told[0])], told[1])
    return guarded(call(INTEGER, "json_array_length", node.copy()), negation(starts(node, "[")), complaint, settings)


@function("jsonb_typeof", "json_typeof", takes=[JSONB])
def _typeof(arguments: Nodes, settings: Settings) -> exp.Expr:
    first = call(VARCHAR, "left", arguments[0], integer(1))
    names = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
    branches = [(equal(first.copy(), text(mark)), text(name)) for mark, name in names.items()]
    return case(VARCHAR, [*branches, (not_null(arguments[0].copy()), text("number"))])


@function("array_to_json", takes=[Any_.ARRAY])
@function("row_to_json", "to_jsonb", "to_json", takes=[Any_.VALUE])
def _to_jsonb(arguments: Nodes, settings: Settings) -> exp.Expr:
    return as_json(arguments[0], settings)


@function("jsonb_build_object", "json_build_object", takes=[Any_.VALUE], variadic=True)
def _build_object(arguments: Nodes, settings: Settings) -> exp.Expr:
    if len(arguments) % 2:
        raise InvalidParameter(
            "argument list must have even number of elements",
            hint="The arguments of jsonb_build_object() must consist of alternating keys and values.",
        )
    return _object(list(zip(arguments[::2], arguments[1::2], strict=True)), settings)


@function("jsonb_build_array", "json_build_array", takes=[Any_.VALUE], variadic=True)
def _build_array(arguments: Nodes, settings: Settings) -> exp.Expr:
    items = call(array_of(VARCHAR), "array", *(_or_null(a, settings) for a in arguments))
    return call(JSONB, "concat", text("["), call(VARCHAR, "array_join", items, text(",")), text("]"))


def _extract_path(name: str, *, as_text: bool) -> None:
    @function(name, takes=[JSONB, VARCHAR], variadic=True)
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        return path(arguments[0], call(array_of(VARCHAR), "array", *arguments[1:]), settings, as_text=as_text)


for _name in ("jsonb_extract_path", "json_extract_path"):
    _extract_path(_name, as_text=False)
    _extract_path(f"{_name}_text", as_text=True)


def is_json(node: exp.Expr, kind: str) -> exp.Expr:
    """`node IS JSON [VALUE | SCALAR | ARRAY | OBJECT]` of a text or a jsonb."""
    if type_of(node).kind not in (Kind.VARCHAR, Kind.JSONB):
        raise undefined("IS JSON", [node])
    parsed = call(JSONB, "try_parse_json", typed(node.copy(), VARCHAR))
    shown = call(VARCHAR, "to_json", parsed)
    match kind:
        case "VALUE":
            holds = not_null(shown)
        case "OBJECT" | "ARRAY":
            holds = starts(shown, "{" if kind == "OBJECT" else "[")
        case _:
            holds = negation(call(BOOLEAN, "rlike", shown, text(r"^[\[{]")))
    answer = typed(exp.Coalesce(this=holds, expressions=[exp.Boolean(this=False)]), BOOLEAN)
    return case(BOOLEAN, [(not_null(node), answer)])


# --- asking ------------------------------------------------------------------------------------------


def has_key(node: exp.Expr, key: exp.Expr, settings: Settings) -> exp.Expr:
    """`node ? key`: a member of an object, a string in an array, or the string itself."""
    key = convert(key, VARCHAR, settings)
    in_object = typed(
        exp.Coalesce(
            this=call(BOOLEAN, "array_contains", call(JSONB, "json_object_keys", node.copy()), key.copy()),
            expressions=[exp.Boolean(this=False)],
        ),
        BOOLEAN,
    )
    items = items_of(node)
    in_array = call(BOOLEAN, "array_contains", items, quoted(key.copy()))
    array = equal(call(VARCHAR, "left", node.copy(), integer(1)), text("["))
    itself = equal(typed(node.copy(), VARCHAR), quoted(key.copy()))
    object_ = equal(call(VARCHAR, "left", node.copy(), integer(1)), text("{"))
    missing = typed(exp.Or(this=is_null(node), expression=is_null(key)), BOOLEAN)
    return case(BOOLEAN, [(missing, null(BOOLEAN)), (object_, in_object), (array, in_array)], itself)


def has_keys(node: exp.Expr, keys: exp.Expr, settings: Settings, *, every: bool) -> exp.Expr:
    """`?|` and `?&`."""
    keys = convert(keys, array_of(VARCHAR), settings)
    body = has_key(node, variable("k", VARCHAR), settings)
    return call(
        BOOLEAN, "forall" if every else "exists", keys, exp.Lambda(this=body, expressions=[exp.to_identifier("k")])
    )


def contains(node: exp.Expr, other: exp.Expr, settings: Settings) -> exp.Expr:
    """`node @> other` for an `other` that is constant: its members are looked up one by one."""
    other = convert(other, JSONB, settings)
    if not isinstance(other, exp.Literal):
        raise InvalidParameter("operator @> needs a constant jsonb on the right")
    held = _held(node, json.loads(other.this), settings)
    return case(
        BOOLEAN,
        [(not_null(node.copy()), typed(exp.Coalesce(this=held, expressions=[exp.Boolean(this=False)]), BOOLEAN))],
    )


def _held(node: exp.Expr, wanted: object, settings: Settings, *, top: bool = True) -> exp.Expr:
    match wanted:
        case dict():
            inner = [
                _held(member(node.copy(), text(key), settings, as_text=False), value, settings, top=False)
                for key, value in wanted.items()
            ]
            return conjunction([starts(node, "{"), *inner])
        case list():
            items = items_of(node)
            found = [
                call(
                    BOOLEAN,
                    "exists",
                    items.copy(),
                    exp.Lambda(
                        this=_held(variable("x", JSONB), value, settings, top=False),
                        expressions=[exp.to_identifier("x")],
                    ),
                )
                for value in wanted
            ]
            return case(BOOLEAN, [(starts(node, "["), conjunction(found))], exp.Boolean(this=False))
        case _:
            same = equal(typed(node.copy(), VARCHAR), text(json.dumps(wanted, ensure_ascii=False)))
            if not top:
                return same
            items = items_of(node)
            return case(
                BOOLEAN,
                [
                    (
                        starts(node, "["),
                        call(BOOLEAN, "array_contains", items, text(json.dumps(wanted, ensure_ascii=False))),
                    )
                ],
                same,
            )
