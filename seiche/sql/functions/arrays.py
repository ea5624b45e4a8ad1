"""Arrays: one-based subscripts, and NULL for what is outside."""

from __future__ import annotations

import math

from sqlglot import exp

from seiche.errors import DatatypeMismatch, WrongObjectType
from seiche.sql.casts import Context, castable, common_type, convert, to_text
from seiche.sql.functions.registry import Any_, function, undefined
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import (
    Settings,
    binary,
    boolean,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    element_by_itself,
    equal,
    guarded,
    integer,
    is_null,
    lambda_,
    not_null,
    null,
    spark_cast,
    text,
    transform,
    type_of,
    typed,
    variable,
)
from seiche.sql.operators import compare, concatenate
from seiche.types import BOOLEAN, DOUBLE, INTEGER, VARCHAR, Kind, SqlType, array_of

Nodes = list[exp.Expr]

_LARGEST = 1 << 22  # elements; PostgreSQL makes thirty-two times as many, and Java runs out of memory before


def element_type(node: exp.Expr) -> SqlType:
    element = type_of(node).element
    assert element is not None
    return element


def element(node: exp.Expr, index: exp.Expr, settings: Settings) -> exp.Expr:
    """`a[i]`."""
    place = _place(index, settings)
    if (number := constant_integer(place)) is not None:
        found = element_by_itself(node, number)
        if found is not None:
            return found
        return call(element_type(node), "get", node, binary(exp.Sub, INTEGER, place, integer(1)))
    return call(element_type(node), "get", node, call(INTEGER, "try_subtract", place, integer(1)))


def _place(index: exp.Expr, settings: Settings) -> exp.Expr:
    if not castable(type_of(index), INTEGER, Context.IMPLICIT):
        raise DatatypeMismatch(
            "array subscript must have type integer",
            detail=f'It may not lose digits: cannot cast type "{type_of(index)}" to "integer" in Implicit context.',
        )
    return convert(index, INTEGER, settings)


def part(node: exp.Expr, low: exp.Expr | None, high: exp.Expr | None, settings: Settings) -> exp.Expr:
    """`a[low:high]`, empty where they do not meet."""
    type_ = type_of(node)
    size = call(INTEGER, "size", node.copy())
    places = [_place(each, settings) for each in (low, high) if each is not None]
    first = call(INTEGER, "greatest", places[0], integer(1)) if low else integer(1)
    last = call(INTEGER, "greatest", call(INTEGER, "least", places[-1], size), integer(0)) if high else size
    length = call(
        INTEGER,
        "greatest",
        binary(exp.Add, INTEGER, binary(exp.Sub, INTEGER, last, first.copy()), integer(1)),  # first is at least 1
        integer(0),
    )
    made = call(type_, "slice", node, first, length)
    unknown = [not_null(each.copy()) for each in places if constant_integer(each) is None]
    return case(type_, [(conjunction(unknown), made)]) if unknown else made


@function("array_length", "array_upper", takes=[Any_.ARRAY, INTEGER])
def _array_length(arguments: Nodes, settings: Settings) -> exp.Expr:
    """NULL for an empty array, as for a dimension that it does not have."""
    node, dimension = arguments
    conditions: list[tuple[exp.Expr, exp.Expr]] = []
    current = node
    while type_of(current).kind is Kind.ARRAY:
        size = call(INTEGER, "nullif", call(INTEGER, "size", current.copy()), integer(0))
        conditions.append((equal(dimension.copy(), integer(len(conditions) + 1)), size))
        current = call(element_type(current), "get", current.copy(), integer(0))
    return case(INTEGER, conditions)


@function("array_length", takes=[Any_.ARRAY])
def _array_size(arguments: Nodes, settings: Settings) -> exp.Expr:
    return call(INTEGER, "size", arguments[0])


@function("array_dims", takes=[Any_.ARRAY])
def _array_dims(arguments: Nodes, settings: Settings) -> exp.Expr:
    """`[1:2][1:3]`, NULL for an empty array."""
    node, shown = arguments[0], []
    current = node
    while type_of(current).kind is Kind.ARRAY:
        size = spark_cast(call(INTEGER, "size", current.copy()), VARCHAR)
        shown += [text("[1:"), size, text("]")]
        current = call(element_type(current), "get", current.copy(), integer(0))
    some = comparison(exp.GT, call(INTEGER, "size", node.copy()), integer(0))
    return case(VARCHAR, [(some, call(VARCHAR, "concat", *shown))])


@function("array_fill", takes=[Any_.VALUE, array_of(INTEGER)])
def _array_fill(arguments: Nodes, settings: Settings) -> exp.Expr:
    """One dimension, or more where they are written down."""
    node, sizes = arguments
    written = isinstance(sizes, exp.Anonymous) and sizes.name == "array"
    counts = list(sizes.expressions) if written else [call(INTEGER, "get", sizes, integer(0))]
    constants = [constant_integer(count) for count in counts]
    size: exp.Expr = spark_cast(counts[0].copy(), DOUBLE)
    for count in counts[1:]:
        size = binary(exp.Mul, DOUBLE, size, spark_cast(count.copy(), DOUBLE))
    largest = spark_cast(integer(_LARGEST), DOUBLE)
    known = None not in constants and math.prod(each or 0 for each in constants) <= _LARGEST
    made = node
    for count in reversed(counts):
        # Spark may repeat before it looks at the condition, so that it is never asked for more.
        times = count if known else case(INTEGER, [(comparison(exp.LTE, size.copy(), largest.copy()), count.copy())])
        made = call(array_of(type_of(made)), "array_repeat", made, times)
    if known:
        return made
    told = f"array size exceeds the maximum allowed ({_LARGEST})"
    return guarded(made, comparison(exp.GT, size, largest), told, settings)


@function("array_lower", takes=[Any_.ARRAY, INTEGER])
def _array_lower(arguments: Nodes, settings: Settings) -> exp.Expr:
    return case(INTEGER, [(not_null(_array_length(arguments, settings)), integer(1))])


@function("array_ndims", takes=[Any_.ARRAY])
def _array_ndims(arguments: Nodes, settings: Settings) -> exp.Expr:
    depth, type_ = 0, type_of(arguments[0])
    while type_.element is not None:
        depth, type_ = depth + 1, type_.element
    some = comparison(exp.GT, call(INTEGER, "size", arguments[0]), integer(0))
    return case(INTEGER, [(some, integer(depth))])


@function("cardinality", takes=[Any_.ARRAY])
def _cardinality(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    if element_type(node).kind is Kind.ARRAY:
        node = call(element_type(node), "flatten", node)
    return call(INTEGER, "size", node)


def _with_element(node: exp.Expr, item: exp.Expr, settings: Settings) -> tuple[exp.Expr, exp.Expr]:
    type_ = common_type([element_type(node), type_of(item)], "array")
    return convert(node, array_of(type_), settings), convert(item, type_, settings)


@function("array_append", takes=[Any_.ARRAY, Any_.ELEMENT])
def _array_append(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, item = _with_element(arguments[0], arguments[1], settings)
    empty = spark_cast(call(type_of(node), "array"), type_of(node))
    whole = typed(exp.Coalesce(this=node, expressions=[empty]), type_of(node))
    return call(type_of(node), "concat", whole, call(type_of(node), "array", item))


@function("array_prepend", takes=[Any_.ELEMENT, Any_.ARRAY])
def _array_prepend(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, item = _with_element(arguments[1], arguments[0], settings)
    empty = spark_cast(call(type_of(node), "array"), type_of(node))
    whole = typed(exp.Coalesce(this=node, expressions=[empty]), type_of(node))
    return call(type_of(node), "concat", call(type_of(node), "array", item), whole)


@function("array_cat", takes=[Any_.ELEMENT, Any_.ARRAY])
@function("array_cat", takes=[Any_.ARRAY, Any_.ELEMENT])
def _array_cat(arguments: Nodes, settings: Settings) -> exp.Expr:
    return concatenate(arguments[0], arguments[1], settings)


@function("array_position", takes=[Any_.ARRAY, Any_.ELEMENT])
def _array_position(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, item = _with_element(arguments[0], arguments[1], settings)
    return call(INTEGER, "get", _array_positions([node, item], settings), integer(0))


@function("array_position", takes=[Any_.ARRAY, Any_.ELEMENT, INTEGER])
def _array_position_from(arguments: Nodes, settings: Settings) -> exp.Expr:
    found = _array_positions(arguments[:2], settings)
    start = arguments[2]
    later = exp.GTE(this=exp.column("p"), expression=start)
    position = call(INTEGER, "get", call(type_of(found), "filter", found, lambda_(later, "p")), integer(0))
    if constant_integer(start) is not None:
        return position
    nowhere = conjunction([is_null(start.copy()), not_null(arguments[0].copy())])
    return guarded(position, nowhere, "initial position must not be null", settings)


@function("array_positions", takes=[Any_.ARRAY, Any_.ELEMENT])
def _array_positions(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, item = _with_element(arguments[0], arguments[1], settings)
    marked = exp.If(
        this=exp.NullSafeEQ(this=exp.column("x"), expression=item),
        true=exp.Add(this=exp.column("i"), expression=exp.Literal.number(1)),
    )
    found = call(
        array_of(INTEGER),
        "transform",
        node,
        exp.Lambda(this=exp.Case(ifs=[marked]), expressions=[exp.to_identifier("x"), exp.to_identifier("i")]),
    )
    return call(array_of(INTEGER), "array_compact", found)


@function("array_remove", takes=[Any_.ARRAY, Any_.ELEMENT])
def _array_remove(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, item = _with_element(arguments[0], arguments[1], settings)
    kept = exp.Not(this=exp.Paren(this=exp.NullSafeEQ(this=exp.column("x"), expression=item)))
    return call(type_of(node), "filter", node, exp.Lambda(this=kept, expressions=[exp.to_identifier("x")]))


@function("array_replace", takes=[Any_.ARRAY, Any_.ELEMENT, Any_.ELEMENT])
def _array_replace(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, old = _with_element(arguments[0], arguments[1], settings)
    new = convert(arguments[2], element_type(node), settings)
    body = exp.Case(
        ifs=[exp.If(this=exp.NullSafeEQ(this=exp.column("x"), expression=old), true=new)], default=exp.column("x")
    )
    return transform(node, "x", body, type_of(node))


@function("array_to_string", "array_join", takes=[Any_.ARRAY, VARCHAR, VARCHAR], optional=1)
def _array_to_string(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    while element_type(node).kind is Kind.ARRAY:
        node = call(element_type(node), "flatten", node)
    inner = element_type(node)
    if inner.kind is Kind.BOOLEAN:  # output form, not the text of a cast
        shown = case(VARCHAR, [(variable("x", inner), text("t")), (not_null(variable("x", inner)), text("f"))])
        node = transform(node, "x", shown, array_of(VARCHAR))
    elif inner.kind is not Kind.VARCHAR:
        node = transform(node, "x", to_text(variable("x", inner), settings), array_of(VARCHAR))
    if len(arguments) < 3:
        return call(VARCHAR, "array_join", node, arguments[1])
    # Without a text for them NULLs are left out, as without the argument.
    filled = call(VARCHAR, "array_join", node.copy(), arguments[1].copy(), arguments[2])
    return case(VARCHAR, [(is_null(arguments[2].copy()), call(VARCHAR, "array_join", node, arguments[1]))], filled)


@function("trim_array", takes=[Any_.ARRAY, INTEGER])
def _trim_array(arguments: Nodes, settings: Settings) -> exp.Expr:
    node, count = arguments
    return part(node, None, binary(exp.Sub, INTEGER, call(INTEGER, "size", node.copy()), count), settings)


def _on_array(name: str, spark: str) -> None:
    @function(name, takes=[Any_.ARRAY])
    def make(arguments: Nodes, settings: Settings) -> exp.Expr:
        type_ = type_of(arguments[0])
        gives = element_type(arguments[0]) if spark in ("array_max", "array_min") else type_
        return call(gives, spark, arguments[0])


for _name in ("array_max", "array_min", "array_distinct", "array_sort"):
    _on_array(_name, _name)
_on_array("array_reverse", "reverse")


@function("array_flatten", takes=[Any_.ARRAY])
def _array_flatten(arguments: Nodes, settings: Settings) -> exp.Expr:
    if element_type(arguments[0]).kind is not Kind.ARRAY:
        raise undefined("array_flatten", arguments)
    return call(element_type(arguments[0]), "flatten", arguments[0])


@function("array_contains", takes=[Any_.ARRAY, Any_.ARRAY])
def _contains_all(arguments: Nodes, settings: Settings) -> exp.Expr:
    return contains(arguments[0], arguments[1], settings)


@function("array_sum", takes=[Any_.ARRAY])
def _array_sum(arguments: Nodes, settings: Settings) -> exp.Expr:
    node = arguments[0]
    if not element_type(node).is_number:
        raise undefined("array_sum", arguments)
    zero = spark_cast(integer(0), element_type(node))
    value = exp.Coalesce(this=exp.column("x"), expressions=[zero.copy()])
    body: exp.Expr = typed(exp.Add(this=exp.column("a"), expression=value), element_type(node))
    if element_type(node).kind is Kind.NUMERIC:  # a sum of decimals has a digit more
        body = spark_cast(body, element_type(node))
    return call(
        element_type(node),
        "aggregate",
        node,
        zero,
        exp.Lambda(this=body, expressions=[exp.to_identifier("a"), exp.to_identifier("x")]),
    )


def contains(node: exp.Expr, other: exp.Expr, settings: Settings) -> exp.Expr:
    """`a @> b`: every element of b is in a."""
    type_ = common_type([type_of(node), type_of(other)], "@>")
    node, other = convert(node, type_, settings), convert(other, type_, settings)
    missing = call(type_, "array_except", other, call(type_, "array_compact", node))  # a NULL is in no array
    empty = equal(call(INTEGER, "size", missing), integer(0))
    return case(BOOLEAN, [(conjunction([not_null(node.copy()), not_null(other.copy())]), empty)])


def overlaps(node: exp.Expr, other: exp.Expr, settings: Settings) -> exp.Expr:
    type_ = common_type([type_of(node), type_of(other)], "&&")
    present = [call(type_, "array_compact", convert(each, type_, settings)) for each in (node, other)]
    return call(BOOLEAN, "arrays_overlap", *present)


@function("array_overlaps", "array_is_overlap", "array_is_intersect", takes=[Any_.ARRAY, Any_.ARRAY])
def _array_overlaps(arguments: Nodes, settings: Settings) -> exp.Expr:
    return overlaps(arguments[0], arguments[1], settings)


def quantified(kind: type[exp.Binary], node: exp.Expr, array: exp.Expr, settings: Settings, *, every: bool) -> exp.Expr:
    """`x op ANY (array)` and `x op ALL (array)`, three-valued."""
    if type_of(array).kind is Kind.NULL:
        array = convert(array, array_of(VARCHAR if type_of(node).kind is Kind.NULL else type_of(node)), settings)
    if type_of(array).kind is not Kind.ARRAY:
        raise WrongObjectType("op ANY/ALL (array) requires array on right side")
    if (
        kind in _OPPOSITES
        and array.find(exp.Query) is not None
        and castable(type_of(node), element_type(array), Context.IMPLICIT)
    ):
        return _without_lambda(kind, convert(node, element_type(array), settings), array, every=every)
    body = compare(kind, node, variable("x", element_type(array)), settings)
    return call(
        BOOLEAN, "forall" if every else "exists", array, exp.Lambda(this=body, expressions=[exp.to_identifier("x")])
    )


_OPPOSITES: dict[type[exp.Binary], type[exp.Binary]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.LTE: exp.GT, exp.GT: exp.LTE
}  # fmt: skip


def _without_lambda(kind: type[exp.Binary], node: exp.Expr, array: exp.Expr, *, every: bool) -> exp.Expr:
    """The same where the array comes from a subquery, which Spark does not take beside a lambda."""
    known = call(type_of(array), "array_compact", array)
    decides = _some(_OPPOSITES[kind] if every else kind, node, known)
    sizes = [call(INTEGER, "size", each.copy()) for each in (array, known)]
    return case(
        BOOLEAN,
        [
            (equal(sizes[0], integer(0)), boolean(every)),
            (disjunction([is_null(node.copy()), is_null(array.copy())]), null(BOOLEAN)),
            (decides, boolean(not every)),
            (comparison(exp.GT, sizes[0].copy(), sizes[1]), null(BOOLEAN)),
        ],
        boolean(every),
    )


def _some(kind: type[exp.Binary], node: exp.Expr, known: exp.Expr) -> exp.Expr:
    """Whether the comparison holds for an element; NULL is not among them."""
    type_ = type_of(node)
    if kind is exp.EQ:
        return call(BOOLEAN, "array_contains", known.copy(), node.copy())
    if kind is exp.NEQ:
        others = call(type_of(known), "array_remove", known.copy(), node.copy())
        return comparison(exp.GT, call(INTEGER, "size", others), integer(0))
    extreme = call(type_, "array_max" if kind in (exp.LT, exp.LTE) else "array_min", known.copy())
    return comparison(kind, node.copy(), extreme)
