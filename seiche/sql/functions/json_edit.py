"""jsonb with a part of it changed: set, inserted, deleted, stripped of nulls; and jsonb made pretty.

Paths are constant arrays. An object is rebuilt through a map of variants, an array through the list of its items.
"""

from __future__ import annotations

from enum import Enum

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.sql.casts import convert
from seiche.sql.functions.jsonb import items_of, member, quoted, starts, variant
from seiche.sql.functions.registry import Any_, function, undefined
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    equal,
    guarded,
    integer,
    is_null,
    lambda_,
    let,
    negation,
    not_null,
    text,
    type_of,
    typed,
    variable,
)
from seiche.types import BIGINT, BOOLEAN, INTEGER, JSONB, NULL, VARCHAR, Kind, array_of

Nodes = list[exp.Expr]
_TEXTS = array_of(VARCHAR)


class _Edit(Enum):
    SET = "set"  # what is there, and what is missing if wanted
    INSERT_BEFORE = "insert before"
    INSERT_AFTER = "insert after"
    DELETE = "delete"


def _path(node: exp.Expr, settings: Settings) -> list[str]:
    keys = convert(node, _TEXTS, settings)
    if not isinstance(keys, exp.Anonymous) or keys.name != "array":
        raise FeatureNotSupported("a json path must be a constant array", hint="Write it as '{a,b,0}'.")
    found: list[str] = []
    for position, key in enumerate(keys.expressions, start=1):
        if not isinstance(key, exp.Literal):
            raise InvalidParameter(f"path element at position {position} is null or not constant")
        found.append(key.this)
    return found


def _listed(items: exp.Expr) -> exp.Expr:
    return call(JSONB, "concat", text("["), call(VARCHAR, "array_join", items, text(",")), text("]"))


def _map(node: exp.Expr) -> exp.Expr:
    return call(JSONB, "from_json", node, text("map<string,variant>"))


def _object(members: exp.Expr) -> exp.Expr:
    return call(JSONB, "to_json", variant(call(JSONB, "to_json", members)))  # sorts the keys


def _without(node: exp.Expr, key: exp.Expr) -> exp.Expr:
    return call(JSONB, "map_filter", _map(node), lambda_(exp.NEQ(this=exp.column("k"), expression=key), "k", "v"))


def _has(node: exp.Expr, key: exp.Expr) -> exp.Expr:
    return call(BOOLEAN, "array_contains", call(_TEXTS, "json_object_keys", node.copy()), key.copy())


def _edited(
    node: exp.Expr,
    path: list[str],
    value: exp.Expr | None,
    how: _Edit,
    settings: Settings,
    *,
    create: bool,
    depth: int = 0,
) -> exp.Expr:
    """The value with the edit made at the path; unchanged where the path leads nowhere."""
    here = variable(f"j{depth}", JSONB)
    branches = [
        (starts(here, "{"), _in_object(here, path, value, how, settings, create=create, depth=depth)),
        (starts(here, "["), _in_array(here, path, value, how, settings, create=create, depth=depth)),
    ]
    return let(f"j{depth}", node, JSONB, case(JSONB, branches, here.copy()))


def _in_object(
    here: exp.Expr, path: list[str], value: exp.Expr | None, how: _Edit, settings: Settings, *, create: bool, depth: int
) -> exp.Expr:
    key, rest = text(path[0]), path[1:]
    there = _has(here, key)

    def put(new: exp.Expr) -> exp.Expr:
        added = call(JSONB, "map", key.copy(), variant(new))
        return _object(call(JSONB, "map_concat", _without(here.copy(), key.copy()), added))

    if rest:
        old = member(here.copy(), key.copy(), settings, as_text=False)
        inner = _edited(old, rest, value, how, settings, create=create, depth=depth + 1)
        return case(JSONB, [(there, put(inner))], here.copy())
    if how is _Edit.DELETE:
        return case(JSONB, [(there, _object(_without(here.copy(), key.copy())))], here.copy())
    assert value is not None
    if how is _Edit.SET:
        return put(value.copy()) if create else case(JSONB, [(there, put(value.copy()))], here.copy())
    return guarded(put(value.copy()), there, "cannot replace existing key", settings)


def _in_array(
    here: exp.Expr, path: list[str], value: exp.Expr | None, how: _Edit, settings: Settings, *, create: bool, depth: int
) -> exp.Expr:
    key, rest = path[0], path[1:]
    if not key.lstrip("-").isdigit():
        message = f'path element at position {depth + 1} is not an integer: "{key}"'
        return guarded(here.copy(), not_null(here.copy()), message, settings)
    items = items_of(here)
    size = call(INTEGER, "size", items.copy())
    index = int(key)
    place = integer(index) if index >= 0 else binary(exp.Add, INTEGER, size.copy(), integer(index))
    inside = conjunction([comparison(exp.GTE, place, integer(0)), comparison(exp.LT, place.copy(), size)])
    below = comparison(exp.LT, place.copy(), integer(0))

    def at(new: exp.Expr) -> exp.Expr:
        chosen = case(JSONB, [(equal(typed(exp.column("n"), INTEGER), place.copy()), new)], variable("x", JSONB))
        return _listed(call(_TEXTS, "transform", items.copy(), lambda_(chosen, "x", "n")))

    if rest:
        inner = _edited(
            call(JSONB, "get", items.copy(), place.copy()), rest, value, how, settings, create=create, depth=depth + 1
        )
        return case(JSONB, [(inside, at(inner))], here.copy())
    if how is _Edit.DELETE:
        kept = exp.NEQ(this=exp.column("n"), expression=place.copy())
        return _listed(call(_TEXTS, "filter", items.copy(), lambda_(kept, "x", "n")))
    assert value is not None
    single = call(_TEXTS, "array", value.copy())
    outside = [
        (below, _listed(call(_TEXTS, "concat", single, items.copy()))),
        (not_null(here.copy()), _listed(call(_TEXTS, "concat", items.copy(), single.copy()))),
    ]
    if how is _Edit.SET:
        return case(JSONB, [(inside, at(value.copy())), *(outside if create else [])], here.copy())
    cut = place if how is _Edit.INSERT_BEFORE else binary(exp.Add, INTEGER, place.copy(), integer(1))
    head = call(_TEXTS, "slice", items.copy(), integer(1), cut.copy())
    tail = call(
        _TEXTS,
        "slice",
        items.copy(),
        binary(exp.Add, INTEGER, cut.copy(), integer(1)),
        call(INTEGER, "size", items.copy()),
    )
    return case(JSONB, [(inside, _listed(call(_TEXTS, "concat", head, single.copy(), tail))), *outside])


def _scalar(node: exp.Expr) -> exp.Expr:
    return negation(disjunction([starts(node, "{"), starts(node, "[")]))


def _at_path(
    node: exp.Expr, path: list[str], value: exp.Expr | None, how: _Edit, settings: Settings, *, create: bool = True
) -> exp.Expr:
    if not path:
        return node
    made = _edited(node.copy(), path, value, how, settings, create=create)
    verb = "delete path in" if how is _Edit.DELETE else "set path in"
    whole = guarded(made, _scalar(node), f"cannot {verb} scalar", settings)
    if value is None:
        return whole
    return case(JSONB, [(not_null(value.copy()), whole)])


@function("jsonb_set", takes=[JSONB, array_of(VARCHAR), JSONB, BOOLEAN], optional=1)
def _jsonb_set(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, path, value = arguments[:3]
    return _at_path(node, _path(path, settings), value, _Edit.SET, settings, create=_flag(arguments, 3, True))


@function("jsonb_set_lax", takes=[JSONB, array_of(VARCHAR), JSONB, BOOLEAN, VARCHAR], optional=2)
def _jsonb_set_lax(arguments: Nodes, settings: Settings) -> exp.Expr:
    """As jsonb_set, but a NULL is a json null, or deletes, or leaves the target alone."""
    node, path, value = arguments[:3]
    create = _flag(arguments, 3, True)
    how = arguments[4].name if len(arguments) > 4 else "use_json_null"
    steps = _path(path, settings)
    done = _at_path(node.copy(), steps, value.copy(), _Edit.SET, settings, create=create)
    match how:
        case "use_json_null":
            missing = _at_path(node.copy(), steps, typed(text("null"), JSONB), _Edit.SET, settings, create=create)
        case "delete_key":
            missing = _at_path(node.copy(), steps, None, _Edit.DELETE, settings)
        case "return_target":
            missing = node.copy()
        case _:
            raise InvalidParameter(
                'null_value_treatment must be "delete_key", "return_target" or "use_json_null"',
            )
    return case(JSONB, [(is_null(value), missing)], done)


@function("jsonb_insert", takes=[JSONB, array_of(VARCHAR), JSONB, BOOLEAN], optional=1)
def _jsonb_insert(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, path, value = arguments[:3]
    how = _Edit.INSERT_AFTER if _flag(arguments, 3, False) else _Edit.INSERT_BEFORE
    return _at_path(node, _path(path, settings), value, how, settings)


def _flag(arguments: Nodes, index: int, default: bool) -> bool:
    if len(arguments) <= index:
        return default
    node = arguments[index]
    if not isinstance(node, exp.Boolean):
        raise FeatureNotSupported("the option of a json function must be true or false itself")
    return bool(node.this)


@function("jsonb_delete_path", takes=[JSONB, array_of(VARCHAR)])
def delete_path(arguments: Nodes, settings: Settings) -> exp.Expr:
    """`node #- path`."""
    return _at_path(arguments[0], _path(arguments[1], settings), None, _Edit.DELETE, settings)


def subtract(node: exp.Expr, key: exp.Expr, settings: Settings) -> exp.Expr:
    """`node - key`, `node - keys` and `node - position`."""
    if type_of(key).kind is Kind.NULL:
        key = convert(key, VARCHAR, settings)
    match type_of(key).kind:
        case Kind.VARCHAR:
            keys = call(_TEXTS, "array", key)
        case Kind.ARRAY if type_of(key).element == VARCHAR:
            keys = key
        case Kind.SMALLINT | Kind.INTEGER:
            return _without_position(node, key, settings)
        case _:
            raise undefined("-", [node, key])
    known = exp.Anonymous(this="array_contains", expressions=[keys, exp.column("k")])
    in_object = _object(call(JSONB, "map_filter", _map(node.copy()), lambda_(exp.Not(this=known), "k", "v")))
    strings = call(_TEXTS, "transform", keys.copy(), lambda_(quoted(variable("s", VARCHAR)), "s"))
    same = exp.Anonymous(this="array_contains", expressions=[strings, exp.column("x")])
    in_array = _listed(call(_TEXTS, "filter", items_of(node), lambda_(exp.Not(this=same), "x")))
    made = case(JSONB, [(starts(node, "{"), in_object), (starts(node, "["), in_array)])
    whole = guarded(made, _scalar(node), "cannot delete from scalar", settings)
    return case(JSONB, [(not_null(key.copy()), whole)])


def _without_position(node: exp.Expr, key: exp.Expr, settings: Settings) -> exp.Expr:
    items = items_of(node)
    position = convert(key, INTEGER, settings)
    index = constant_integer(position)
    from_end = binary(exp.Add, INTEGER, call(INTEGER, "size", items.copy()), position)
    place: exp.Expr
    if index is not None:
        place = position if index >= 0 else from_end
    else:
        place = case(INTEGER, [(comparison(exp.LT, position.copy(), integer(0)), from_end)], position.copy())
    kept = exp.NEQ(this=exp.column("n"), expression=place)
    made = _listed(call(_TEXTS, "filter", items, lambda_(kept, "x", "n")))
    bad = negation(starts(node, "["))
    return guarded(made, bad, "cannot delete from object using integer index", settings)


# --- whole values ------------------------------------------------------------------------------------

_STRING = r'"(?:[^"\\]++|\\.)*+"'


@function("jsonb_strip_nulls", "json_strip_nulls", takes=[JSONB])
def _strip_nulls(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Members that are null go, at any depth; first with the comma behind them, then those commas before a brace."""
    before = rf'\G((?:[^"]++|{_STRING}(?!:null[,}}]))*+){_STRING}:null(?:,|(?=\}}))'
    gone = call(VARCHAR, "regexp_replace", typed(arguments[0], VARCHAR), text(before), text("$1"))
    dangling = rf'\G((?:[^",]++|{_STRING}|,(?!\}}))*+),(?=\}})'
    return call(JSONB, "regexp_replace", gone, text(dangling), text("$1"))


@function("jsonb_pretty", takes=[JSONB])
def _pretty(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Token by token, with the depth carried along."""
    pattern = text(rf'{_STRING}|[{{}}\[\],:]|[^{{}}\[\],:"]+')
    tokens = call(_TEXTS, "regexp_extract_all", typed(arguments[0].copy(), VARCHAR), pattern, integer(0))
    state = "struct<shown:string,depth:int,opened:boolean>"
    start = exp.Cast(
        this=exp.Anonymous(this="struct", expressions=[text(""), integer(0), exp.Boolean(this=False)]),
        to=exp.DataType.build(state, dialect="spark"),
    )

    def part(name: str) -> exp.Expr:
        return exp.Dot(this=exp.column("s"), expression=exp.to_identifier(name))

    def line(shift: int) -> exp.Expr:
        depth = exp.Paren(this=exp.Add(this=part("depth"), expression=integer(shift)))
        return call(VARCHAR, "concat", text("\n"), call(VARCHAR, "repeat", text("    "), depth))

    def step(shown: Nodes, shift: int, opened: bool) -> exp.Expr:
        depth = exp.Add(this=part("depth"), expression=integer(shift))
        return exp.Anonymous(
            this="named_struct",
            expressions=[
                text("shown"), call(VARCHAR, "concat", part("shown"), *shown), text("depth"), depth,
                text("opened"), exp.Boolean(this=opened),
            ],
        )  # fmt: skip

    token = exp.column("t")
    first = case(VARCHAR, [(part("opened"), line(0))], text(""))

    def among(*marks: str) -> exp.Expr:
        return exp.In(this=token.copy(), expressions=[text(mark) for mark in marks])

    body = exp.Case(
        ifs=[
            exp.If(this=among("{", "["), true=step([first, token.copy()], 1, True)),
            exp.If(this=among("}", "]"), true=step([line(-1), token.copy()], -1, False)),
            exp.If(this=among(","), true=step([token.copy(), line(0)], 0, False)),
            exp.If(this=among(":"), true=step([text(": ")], 0, False)),
        ],
        default=step([first.copy(), token.copy()], 0, False),
    )
    return call(VARCHAR, "aggregate", tokens, start, lambda_(body, "s", "t"), lambda_(part("shown"), "s"))


@function("jsonb_object", "json_object", takes=[array_of(VARCHAR), array_of(VARCHAR)])
def _object_of_two(arguments: Nodes, settings: Settings) -> exp.Expr:
    keys, values = arguments
    uneven = comparison(exp.NEQ, call(INTEGER, "size", keys.copy()), call(INTEGER, "size", values.copy()))
    value = typed(exp.Coalesce(this=quoted(variable("v", VARCHAR)), expressions=[text("null")]), VARCHAR)
    joined = call(VARCHAR, "concat", quoted(variable("k", VARCHAR)), text(":"), value)
    pairs = call(_TEXTS, "zip_with", keys, values, lambda_(joined, "k", "v"))
    # Of a key that comes again the last value counts; Spark reads no object that has one twice.
    place = variable("n", INTEGER)
    size = call(INTEGER, "size", keys.copy())
    behind = call(_TEXTS, "slice", keys.copy(), binary(exp.Add, INTEGER, place, integer(2)), size)
    again = call(BIGINT, "array_position", behind, call(VARCHAR, "get", keys.copy(), place.copy()))
    last = equal(typed(exp.Coalesce(this=again, expressions=[integer(0)]), BIGINT), integer(0))
    pairs = call(_TEXTS, "filter", pairs, lambda_(last, "pair", "n"))
    listed = call(VARCHAR, "concat", text("{"), call(VARCHAR, "array_join", pairs, text(",")), text("}"))
    return guarded(call(JSONB, "to_json", variant(listed)), uneven, "mismatched array dimensions", settings)


@function("jsonb_object", "json_object", takes=[Any_.ARRAY])
def _object_of_one(arguments: Nodes, settings: Settings) -> exp.Expr:
    """Keys and values in turn, or as pairs."""
    node = arguments[0]
    inner = type_of(node).element
    assert inner is not None
    if inner.kind is Kind.ARRAY:
        node = call(_TEXTS, "flatten", node)
    elif inner != VARCHAR:
        raise undefined("jsonb_object", arguments)

    def every(other: int) -> exp.Expr:
        turn = exp.EQ(this=exp.Mod(this=exp.column("n"), expression=integer(2)), expression=integer(other))
        return call(_TEXTS, "filter", node.copy(), lambda_(turn, "x", "n"))

    return _object_of_two([every(0), every(1)], settings)


@function("jsonb_object", "json_object", takes=[VARCHAR])
def _object_of_text(arguments: Nodes, settings: Settings) -> exp.Expr:
    """A constant array."""
    if not isinstance(arguments[0], exp.Literal):
        raise undefined("jsonb_object", arguments)
    unknown = typed(arguments[0].copy(), NULL)
    nested = str(arguments[0].this).strip().startswith("{{")
    return _object_of_one([convert(unknown, array_of(_TEXTS) if nested else _TEXTS, settings)], settings)
