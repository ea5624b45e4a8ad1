"""Compound values: arrays, rows and JSON, built and taken apart again."""

from __future__ import annotations

from sqlglot import exp

from seiche.errors import (
    DatatypeMismatch,
    IndeterminateType,
    SyntaxError_,
    UndefinedColumn,
    UndefinedObject,
    WrongObjectType,
    nearest,
)
from seiche.sql import choices, operators
from seiche.sql.aggregates import AggregateCall, aggregate
from seiche.sql.attempts import attempted
from seiche.sql.binder import QUERY, Binder, Clause
from seiche.sql.calls import row_parts
from seiche.sql.casts import convert
from seiche.sql.functions import arrays, invoke, jsonb, maps, spans
from seiche.sql.literals import array_literal
from seiche.sql.nodes import bigint, call, field, integer, is_unknown, text, transform, type_of, typed, variable
from seiche.types import JSONB, VARCHAR, Kind, array_of, struct_of


def array(binder: Binder, node: exp.Array) -> exp.Expr:
    if len(node.expressions) == 1 and isinstance(node.expressions[0], QUERY):
        return _listed(binder, node.expressions[0])
    if not node.expressions:
        raise IndeterminateType(
            "cannot determine type of empty array",
            hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
        )
    items = choices.unified(binder, [binder.bind(item) for item in node.expressions], "ARRAY")
    return array_literal(items, array_of(type_of(items[0])))


def _listed(binder: Binder, query: exp.Expr) -> exp.Expr:
    """ARRAY(SELECT …): the rows of a query of one column, in the query's order; an empty array of none."""
    bound, columns = binder.surroundings.subquery(query)
    if len(columns) != 1:
        raise SyntaxError_("subquery must return only one column")
    name, type_ = columns[0]
    outputs = {name}
    order = []
    for number, each in enumerate(bound.args["order"].expressions if bound.args.get("order") else ()):
        key = each.this
        shown = key.name if isinstance(key, exp.Column) and not key.table and key.name in outputs else f"_o{number}"
        if shown not in outputs:
            assert isinstance(bound, exp.Select)  # whatever else is sorted is sorted by its own columns
            bound.append("expressions", exp.alias_(key.copy(), shown, quoted=True))
        kept = each.copy()
        kept.set("this", typed(exp.column(shown, table="listed", quoted=True), type_of(key)))
        order.append(kept)
    value = typed(exp.column(name, table="listed", quoted=True), type_)
    source = exp.Subquery(this=bound, alias=exp.TableAlias(this=exp.to_identifier("listed", quoted=True)))
    listed = aggregate(AggregateCall("array_agg", [value], order=order), binder.settings)
    rows = exp.Select(expressions=[exp.alias_(listed, "listed", quoted=True)]).from_(source)
    found = typed(exp.Subquery(this=rows), array_of(type_))
    return typed(exp.Coalesce(this=found, expressions=[array_literal([], array_of(type_))]), array_of(type_))


def subscript(binder: Binder, node: exp.Bracket) -> exp.Expr:
    inner = binder.bind(node.this)
    index = node.expressions[0]
    if type_of(inner).kind is Kind.JSONB:
        key = binder.bind(index)
        return _attempted(binder, jsonb.member(inner, key, binder.settings, as_text=False), inner, key)
    if type_of(inner).kind is Kind.MAP:
        return maps.access(inner, binder.bind(index), binder.settings)
    if type_of(inner).kind is not Kind.ARRAY:
        raise DatatypeMismatch(f"cannot subscript type {type_of(inner)} because it does not support subscripting")
    if isinstance(index, exp.Slice):
        low, high = index.this, index.args.get("expression")
        return arrays.part(
            inner, binder.bind(low) if low else None, binder.bind(high) if high else None, binder.settings
        )
    return arrays.element(inner, binder.bind(index), binder.settings)


def transformed(binder: Binder, arguments: list[exp.Expr]) -> exp.Expr:
    """`array_transform(array, |x| …)`: the function sees its element and nothing else."""
    if len(arguments) != 2 or not isinstance(arguments[1], exp.Lambda) or len(arguments[1].expressions) != 1:
        raise SyntaxError_("array_transform takes an array and a function of one element, as in |x| x + 1")
    items, function = binder.bind(arguments[0]), arguments[1]
    item = type_of(items).element
    if item is None:
        raise DatatypeMismatch(f"array_transform needs an array, not type {type_of(items)}")
    given = variable("element", item)
    inside = binder.surroundings.around([(function.expressions[0].name, given)])
    body = binder.called(inside, Clause.FROM).settled(function.this)
    return transform(items, given.name, body, array_of(type_of(body)))


def map_filtered(binder: Binder, arguments: list[exp.Expr]) -> exp.Expr:
    """`map_filter(map, |k, v| …)`: the condition sees the key and the value and nothing else."""
    if len(arguments) != 2 or not isinstance(arguments[1], exp.Lambda) or len(arguments[1].expressions) != 2:
        raise SyntaxError_("map_filter takes a map and a condition on key and value, as in |k, v| v > 1")
    node, function = binder.bind(arguments[0]), arguments[1]
    if type_of(node).kind is not Kind.MAP:
        raise DatatypeMismatch(f"map_filter needs a map, not type {type_of(node)}")
    given = [variable(f"map_{name}", type_) for name, type_ in type_of(node).fields]
    named = [(each.name, part) for each, part in zip(function.expressions, given, strict=True)]
    inside = binder.surroundings.around(named)
    condition = binder.called(inside, Clause.FROM).settled(function.this)
    return maps.filtered(node, condition, ("map_key", "map_value"))


def map_of_pairs(binder: Binder, arguments: list[exp.Expr]) -> exp.Expr:
    """`MAP {key: value, …}`, as the parser gives it: keys and values in turn."""
    if not arguments:
        raise UndefinedObject(
            "cannot determine type of empty map",
            hint="Explicitly cast to the desired type, for example MAP{}::map(int,int).",
        )
    sides = [exp.Array(expressions=[each.copy() for each in arguments[start::2]]) for start in (0, 1)]
    return invoke("map_from_key_values", [array(binder, each) for each in sides], binder.settings)


def row(binder: Binder, node: exp.Expr) -> exp.Expr:
    parts = [binder.settled(part) for part in node.expressions]
    fields = [(f"f{index}", type_of(part)) for index, part in enumerate(parts, start=1)]
    arguments: list[exp.Expr] = []
    for (name, _), part in zip(fields, parts, strict=True):
        arguments += [text(name), part]
    return call(struct_of(*fields), "named_struct", *arguments)


def member(binder: Binder, node: exp.Dot) -> exp.Expr:
    if isinstance(node.expression, exp.Func):  # a function named with its schema
        return binder.bind(node.expression)
    inner = binder.bind(node.this)
    type_ = type_of(inner)
    if isinstance(node.expression, exp.Star) and type_.kind is Kind.STRUCT:  # as an argument it is the row itself
        return inner
    name = node.expression.name
    for field_name, field_type in type_.fields:
        if field_name == name:
            return field(inner, name, field_type)
    if type_.kind is not Kind.STRUCT:
        raise WrongObjectType(f"column notation .{name} applied to type {type_}, which is not a composite type")
    raise UndefinedColumn(
        f'column "{name}" not found in struct type',
        detail=f"The type is {type_}.",
        hint=nearest(name, [n for n, _ in type_.fields]),
    )


def json_member(binder: Binder, node: exp.Expr) -> exp.Expr:
    as_text = isinstance(node, exp.JSONExtractScalar)
    current = _json(binder, node.this)
    keys: list[exp.Expr] = []
    if isinstance(node.expression, exp.JSONPath):
        for step in node.expression.expressions:
            match step:
                case exp.JSONPathKey():
                    keys.append(text(str(step.this)))
                case exp.JSONPathSubscript():
                    number = int(step.this)
                    keys.append(integer(number) if abs(number) < 2**31 else bigint(number))
    else:
        keys.append(binder.bind(node.expression))
    for position, key in enumerate(keys):
        found = jsonb.member(current, key, binder.settings, as_text=as_text and position == len(keys) - 1)
        current = _attempted(binder, found, current, key)
    return current


def _attempted(binder: Binder, made: exp.Expr, *given: exp.Expr) -> exp.Expr:
    """In a view NULL where Spark cannot read the json: it takes less of it than can be stored."""
    return made if binder.settings.strict else attempted(made, given)


def _json(binder: Binder, node: exp.Expr) -> exp.Expr:
    inner = binder.bind(node)
    if is_unknown(inner):
        return convert(inner, JSONB, binder.settings)
    if type_of(inner).kind is not Kind.JSONB:
        raise operators.no_operator("->", inner, text(""))
    return inner


def json_path(binder: Binder, node: exp.Expr) -> exp.Expr:
    as_text = isinstance(node, exp.JSONBExtractScalar)
    inner = _json(binder, node.this)
    keys = _texts(binder, "#>>" if as_text else "#>", inner, binder.bind(node.expression))
    return _attempted(binder, jsonb.path(inner, keys, binder.settings, as_text=as_text), inner)


def contains(binder: Binder, node: exp.Expr) -> exp.Expr:
    left, right = binder.bind(node.this), binder.bind(node.expression)
    if isinstance(node, exp.ArrayContainedBy):
        left, right = right, left
    kinds = {type_of(left).kind, type_of(right).kind}
    if Kind.JSONB in kinds and kinds <= {Kind.JSONB, Kind.NULL}:
        left = convert(left, JSONB, binder.settings)
        return _attempted(binder, jsonb.contains(left, right, binder.settings), left)
    return arrays.contains(*_two_arrays(binder, "@>", left, right), binder.settings)


def overlaps(binder: Binder, node: exp.Expr) -> exp.Expr:
    left, right = binder.bind(node.this), binder.bind(node.expression)
    return arrays.overlaps(*_two_arrays(binder, "&&", left, right), binder.settings)


def _two_arrays(binder: Binder, symbol: str, left: exp.Expr, right: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Both operands as arrays, a literal in the type of the other; raises UndefinedFunction for what else they are."""
    known = next((type_of(each) for each in (left, right) if not is_unknown(each)), None)
    if known is not None:
        left, right = (convert(each, known, binder.settings) if is_unknown(each) else each for each in (left, right))
    if known is None or type_of(left).kind is not Kind.ARRAY or type_of(right).kind is not Kind.ARRAY:
        raise operators.no_operator(symbol, left, right)
    return left, right


def overlapping_spans(binder: Binder, node: exp.Expr) -> exp.Expr:
    sides = [row_parts(side) for side in (node.this, node.expression)]
    if any(side is None or len(side) != 2 for side in sides):
        raise SyntaxError_("wrong number of parameters on one side of OVERLAPS expression")
    left, right = ([binder.bind(part) for part in side] for side in sides if side is not None)
    return spans.overlaps(left, right, binder.settings)


def json_without(binder: Binder, node: exp.Expr) -> exp.Expr:
    return invoke("jsonb_delete_path", [_json(binder, node.this), binder.bind(node.expression)], binder.settings)


def json_path_test(binder: Binder, node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.MatchAgainst):  # `@@`
        return invoke("jsonb_path_match", [_json(binder, node.expressions[0]), binder.bind(node.this)], binder.settings)
    return invoke("jsonb_path_exists", [_json(binder, node.this), binder.bind(node.expression)], binder.settings)


def has_key(binder: Binder, node: exp.Expr) -> exp.Expr:
    inner, key = _json(binder, node.this), binder.bind(node.expression)
    if type_of(key).kind not in (Kind.VARCHAR, Kind.NULL):
        raise operators.no_operator("?", inner, key)
    return _attempted(binder, jsonb.has_key(inner, key, binder.settings), inner, key)


def has_keys(binder: Binder, node: exp.Expr) -> exp.Expr:
    every = isinstance(node, exp.JSONBContainsAllTopKeys)
    inner = _json(binder, node.this)
    keys = _texts(binder, "?&" if every else "?|", inner, binder.bind(node.expression))
    return _attempted(binder, jsonb.has_keys(inner, keys, binder.settings, every=every), inner, keys)


def _texts(binder: Binder, symbol: str, inner: exp.Expr, keys: exp.Expr) -> exp.Expr:
    """Keys of a json operator as an array of texts; raises UndefinedFunction for what is none."""
    if type_of(keys) != array_of(VARCHAR) and not is_unknown(keys):
        raise operators.no_operator(symbol, inner, keys)
    return convert(keys, array_of(VARCHAR), binder.settings)
