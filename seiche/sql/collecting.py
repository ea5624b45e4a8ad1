"""Aggregates that need all values of a group at once: lists, texts, json, percentiles, modes and ranks.

The values are collected as an array, put into the wanted order, and worked on as an array. Ranks of a hypothetical
row are counts, and therefore can be maintained like counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from seiche.errors import FeatureNotSupported, GroupingError, NumericOutOfRange
from seiche.sql import intervals
from seiche.sql.aggregates import (
    AggregateCall,
    Maker,
    aggregate_names,
    core,
    distinct_of,
    filtered,
    marked,
    native,
    one,
    register,
)
from seiche.sql.casts import convert, settle, to_text
from seiche.sql.functions.jsonb import as_json, quoted
from seiche.sql.functions.registry import undefined
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    comparison,
    conjunction,
    disjunction,
    equal,
    field,
    guarded,
    integer,
    is_null,
    lambda_,
    let,
    not_null,
    spark_cast,
    text,
    type_of,
    typed,
    variable,
)
from seiche.sql.operators import compare
from seiche.types import BIGINT, BYTEA, DOUBLE, INTEGER, JSONB, VARCHAR, Kind, SqlType, array_of, struct_of

# --- lists -------------------------------------------------------------------------------------------


@register("array_agg")
def _array_agg(made: AggregateCall, settings: Settings) -> exp.Expr:
    """NULLs are kept, and no rows give NULL; Spark does neither by itself."""
    return _collected(one(made, settings), made)


def _collected(node: exp.Expr, made: AggregateCall) -> exp.Expr:
    """The values in their order, as an array; NULL of no rows."""
    type_ = type_of(node)
    fields = {**{f"o{index}": item.this for index, item in enumerate(made.order)}, "v": node}
    row = struct_of(*((name, type_of(value)) for name, value in fields.items()))
    wrapped = call(row, "named_struct", *(part for name, value in fields.items() for part in (text(name), value)))
    rows = native("array_agg", array_of(row), made, wrapped)
    some = comparison(exp.GT, call(INTEGER, "size", rows.copy()), integer(0))
    if made.order:
        rows = call(array_of(row), "array_sort", rows, _comparator(made.order))
    elif made.distinct:
        rows = call(array_of(row), "array_sort", rows)
    value = exp.Dot(this=exp.column("s"), expression=exp.to_identifier("v"))
    values = call(array_of(type_), "transform", rows, lambda_(value, "s"))
    return case(array_of(type_), [(some, values)])


def _comparator(order: Sequence[exp.Expr]) -> exp.Expr:
    branches: list[exp.If] = []
    for index, item in enumerate(order):
        left = exp.Dot(this=exp.column("l"), expression=exp.to_identifier(f"o{index}"))
        right = exp.Dot(this=exp.column("r"), expression=exp.to_identifier(f"o{index}"))
        first, last = exp.Literal.number(-1), exp.Literal.number(1)
        one_null = (first, last) if item.args.get("nulls_first") else (last, first)
        less = (last, first) if item.args.get("desc") else (first, last)
        for condition, answer in (
            (exp.And(this=_null(left), expression=exp.Not(this=_null(right))), one_null[0]),
            (exp.And(this=_null(right), expression=exp.Not(this=_null(left))), one_null[1]),
            (exp.LT(this=left.copy(), expression=right.copy()), less[0]),
            (exp.GT(this=left.copy(), expression=right.copy()), less[1]),
        ):
            branches.append(exp.If(this=condition, true=answer.copy()))
    body = exp.Case(ifs=branches, default=exp.Literal.number(0))
    return exp.Lambda(this=body, expressions=[exp.to_identifier("l"), exp.to_identifier("r")])


def _null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node.copy(), expression=exp.Null())


def _edge(position: int) -> Maker:
    """The first or last value in the order given, NULL or not."""

    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        node = one(made, settings)
        return call(type_of(node), "element_at", _collected(node, made), integer(position))

    return make


# As aggregates these need an ORDER BY inside; without one they are window functions.
ORDERED: dict[str, Maker] = {"first_value": _edge(1), "last_value": _edge(-1)}


def _at_extreme(spark: str, *, last: bool) -> Maker:
    """The first argument where the second is least or greatest; rows with a NULL in either do not count."""

    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        if len(made.arguments) != 2:
            raise undefined(made.name, made.arguments, aggregate_names())
        node, key = (settle(each, settings) for each in made.arguments)
        if type_of(key).kind in (Kind.STRUCT, Kind.ARRAY, Kind.JSONB):
            raise FeatureNotSupported(
                f"{made.name} does not support struct, array, map, vector, jsonb for comparison argument, "
                f"got {type_of(key)}"
            )
        if type_of(key).kind is Kind.INTERVAL:
            key = intervals.length(key)
        there = _with(made.condition, conjunction([not_null(node.copy()), not_null(key.copy())]))
        if not made.order:
            counted = case(type_of(key), [(there, key)])
            return marked(exp.Anonymous(this=spark, expressions=[node, counted]), type_of(node))
        order = [exp.Ordered(this=key, desc=last, nulls_first=False), *made.order]
        listed = _collected(node, AggregateCall(made.name, [], order=order, condition=there))
        return call(type_of(node), "element_at", listed, integer(1))

    return make


register("arg_min")(_at_extreme("min_by", last=False))
register("arg_max")(_at_extreme("max_by", last=True))


# --- texts -------------------------------------------------------------------------------------------


@register("string_agg")
def _string_agg(made: AggregateCall, settings: Settings) -> exp.Expr:
    if len(made.arguments) != 2:
        raise undefined(made.name, made.arguments, aggregate_names())
    node, separator = made.arguments
    if type_of(separator).kind is Kind.NULL and type_of(node).kind is Kind.BYTEA:
        separator = convert(separator, BYTEA, settings)
    node, separator = settle(node, settings), settle(separator, settings)
    if type_of(node).kind not in (Kind.VARCHAR, Kind.BYTEA) or type_of(separator) != type_of(node):
        raise undefined(made.name, made.arguments, aggregate_names())
    order = list(made.order)
    if made.distinct and any(item.this != node for item in order):
        raise GroupingError("in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list")
    constant = isinstance(separator, exp.Literal | exp.Null | exp.Cast) and separator.find(exp.Column) is None
    # Spark cannot plan a sorted listagg of distinct values beside other distinct aggregates.
    if type_of(node).kind is Kind.BYTEA or not constant or (made.distinct and order):
        return _strung(node, separator, made)
    inner = filtered(node, made)
    listed: exp.Expr = exp.Anonymous(this="listagg", expressions=[distinct_of(inner, made), separator])
    if order:
        listed = exp.WithinGroup(this=listed, expression=exp.Order(expressions=order))
    return marked(listed, type_of(node))


def _strung(node: exp.Expr, separator: exp.Expr, made: AggregateCall) -> exp.Expr:
    """Each value after the first behind its own row's separator; NULLs are left out."""
    type_ = type_of(node)
    pair = struct_of(("t", type_), ("s", type_))
    both = call(pair, "named_struct", text("t"), node, text("s"), separator)
    there = exp.Not(this=exp.Is(this=_of("x", "t"), expression=exp.Null()))
    present = call(array_of(pair), "filter", _collected(both, made), lambda_(there, "x"))
    nothing = spark_cast(text(""), type_, "binary") if type_.kind is Kind.BYTEA else text("")
    before = exp.Coalesce(this=_of("x", "s"), expressions=[nothing])
    later = exp.Anonymous(this="concat", expressions=[before, _of("x", "t")])
    first = exp.EQ(this=exp.column("i"), expression=exp.Literal.number(0))
    shown = exp.Case(ifs=[exp.If(this=first, true=_of("x", "t"))], default=later)
    pieces = call(array_of(type_), "transform", present, lambda_(shown, "x", "i"))
    added = exp.Anonymous(this="concat", expressions=[exp.column("a"), exp.column("b")])
    joined = call(type_, "aggregate", pieces, nothing.copy(), lambda_(added, "a", "b"))
    some = comparison(exp.GT, call(INTEGER, "size", pieces.copy()), integer(0))
    return case(type_, [(some, joined)])


def _of(name: str, field: str) -> exp.Expr:
    return exp.Dot(this=exp.column(name), expression=exp.to_identifier(field))


# --- json --------------------------------------------------------------------------------------------


@register("jsonb_agg", "json_agg")
def _jsonb_agg(made: AggregateCall, settings: Settings) -> exp.Expr:
    item = typed(exp.Coalesce(this=as_json(one(made, settings), settings), expressions=[text("null")]), VARCHAR)
    items = _collected(item, made)
    return call(JSONB, "concat", text("["), call(VARCHAR, "array_join", items, text(",")), text("]"))


@register("jsonb_object_agg", "json_object_agg")
def _jsonb_object_agg(made: AggregateCall, settings: Settings) -> exp.Expr:
    """Of several values for a key the last counts."""
    if len(made.arguments) != 2:
        raise undefined(made.name, made.arguments, aggregate_names())
    key, value = (settle(a, settings) for a in made.arguments)
    shown = typed(exp.Coalesce(this=as_json(value, settings), expressions=[text("null")]), VARCHAR)
    pair = struct_of(("k", VARCHAR), ("m", VARCHAR))
    member = call(VARCHAR, "concat", quoted(to_text(key.copy(), settings)), text(":"), shown)
    name = to_text(key.copy(), settings)
    if settings.strict:
        name = guarded(name, is_null(key), "field name must not be null", settings)
    both = call(pair, "named_struct", text("k"), name, text("m"), member)
    members = variable("members", array_of(pair))
    keys = call(array_of(VARCHAR), "transform", members.copy(), lambda_(_of("y", "k"), "y"))
    rest = call(array_of(VARCHAR), "slice", keys, exp.Add(this=exp.column("i"), expression=integer(2)),
                call(INTEGER, "size", keys.copy()))  # fmt: skip
    last = exp.Not(this=exp.Anonymous(this="array_contains", expressions=[rest, _of("x", "k")]))
    kept = call(array_of(pair), "filter", members.copy(), lambda_(last, "x", "i"))
    texts = call(array_of(VARCHAR), "transform", kept, lambda_(_of("x", "m"), "x"))
    joined = call(VARCHAR, "concat", text("{"), call(VARCHAR, "array_join", texts, text(",")), text("}"))
    parsed = call(JSONB, "to_json", call(JSONB, "parse_json", joined))
    return let("members", _collected(both, made), JSONB, parsed)


# --- ordered sets ------------------------------------------------------------------------------------


ORDERED_SETS = ("mode", "percentile_cont", "percentile_disc", "approx_percentile")


def _ordered(made: AggregateCall) -> exp.Expr:
    if len(made.order) != 1:
        raise undefined(made.name, made.arguments, aggregate_names())
    return made.order[0]


def _sorted_values(made: AggregateCall, node: exp.Expr) -> exp.Expr:
    """The values that are not NULL in their order; NULL where there is none."""
    present = AggregateCall(made.name, [], order=made.order, condition=_with(made.condition, not_null(node.copy())))
    return _collected(node, present)


def _with(condition: exp.Expr | None, other: exp.Expr) -> exp.Expr:
    return other if condition is None else conjunction([condition.copy(), other])


@register("mode")
def _mode(made: AggregateCall, settings: Settings) -> exp.Expr:
    """The most frequent value; of several the first in the order."""
    item = _ordered(made)
    node = item.this
    if not item.args.get("desc"):
        return marked(
            exp.Anonymous(this="mode", expressions=[filtered(node, made), exp.Boolean(this=True)]), type_of(node)
        )
    type_ = type_of(node)
    values = variable("listed", array_of(type_))
    same = exp.EQ(this=exp.column("y"), expression=exp.column("x"))
    count = exp.Anonymous(
        this="size", expressions=[exp.Anonymous(this="filter", expressions=[values.copy(), lambda_(same, "y")])]
    )
    best = f"struct<n:int,v:{type_.spark}>"
    start = spark_cast(exp.Anonymous(this="struct", expressions=[integer(0), exp.Null()]), type_, best)
    more = exp.GT(this=count, expression=_of("a", "n"))
    taken = exp.Anonymous(this="named_struct", expressions=[text("n"), count.copy(), text("v"), exp.column("x")])
    step = spark_cast(exp.Case(ifs=[exp.If(this=more, true=taken)], default=exp.column("a")), type_, best)
    distinct = call(array_of(type_), "array_distinct", values.copy())
    found = call(type_, "aggregate", distinct, start, lambda_(step, "a", "x"), lambda_(_of("a", "v"), "a"))
    return let("listed", _sorted_values(made, node), type_, found)


@register("percentile_disc")
def _percentile_disc(made: AggregateCall, settings: Settings) -> exp.Expr:
    """The first value whose share of the rows reaches the fraction; for an array of fractions an array."""
    node = _ordered(made).this
    type_ = type_of(node)

    def at(share: exp.Expr, values: exp.Expr) -> exp.Expr:
        size = call(INTEGER, "size", values.copy())
        place = call(BIGINT, "ceil", binary(exp.Mul, DOUBLE, share, spark_cast(size, DOUBLE)))
        position = call(INTEGER, "greatest", spark_cast(place, INTEGER), integer(1))
        return call(type_, "element_at", values.copy(), position)

    return _by_fractions(made, node, type_, at, settings)


@register("percentile_cont")
def _percentile_cont(made: AggregateCall, settings: Settings) -> exp.Expr:
    """Between two values as far as the fraction falls between their places."""
    item = _ordered(made)
    node = item.this
    if not type_of(node).is_number:
        raise undefined(made.name, [*made.arguments, node], aggregate_names())
    node = convert(node, DOUBLE, settings)

    def at(share: exp.Expr, values: exp.Expr) -> exp.Expr:
        steps = spark_cast(binary(exp.Sub, INTEGER, call(INTEGER, "size", values.copy()), integer(1)), DOUBLE)
        place = binary(exp.Mul, DOUBLE, share, steps)
        low = call(BIGINT, "floor", place)
        ends = [
            call(DOUBLE, "element_at", values.copy(), spark_cast(binary(exp.Add, BIGINT, end, integer(1)), INTEGER))
            for end in (low, call(BIGINT, "ceil", place.copy()))
        ]
        rest = binary(exp.Sub, DOUBLE, place.copy(), spark_cast(low.copy(), DOUBLE))
        apart = binary(exp.Sub, DOUBLE, ends[1], ends[0].copy())
        return binary(exp.Add, DOUBLE, ends[0], binary(exp.Mul, DOUBLE, rest, apart))

    return _by_fractions(made, node, DOUBLE, at, settings)


@register("approx_percentile")
def _approx_percentile(made: AggregateCall, settings: Settings) -> exp.Expr:
    """A value within a share (0.01 unless told) of the one at the fraction's place, as a histogram would find it.

    The buckets of the histogram grow by (1 + share) / (1 - share), and a value is told as the middle of its bucket.
    """
    node = _ordered(made).this
    if len(made.arguments) not in (1, 2) or not type_of(node).is_number:
        raise undefined(made.name, [*made.arguments, node], aggregate_names())
    fraction, *rest = (convert(argument, DOUBLE, settings) for argument in made.arguments)
    share = rest[0] if rest else spark_cast(text("0.01"), DOUBLE)
    above, below = (binary(kind, DOUBLE, _double(1), share.copy()) for kind in (exp.Add, exp.Sub))
    growth = binary(exp.Div, DOUBLE, above, below)
    values, bucket = variable("listed", array_of(_BUCKET)), variable("bucket", _BUCKET)
    size = call(INTEGER, "size", values.copy())
    place = call(BIGINT, "floor", binary(exp.Mul, DOUBLE, fraction, spark_cast(size, DOUBLE)))
    following = binary(exp.Add, INTEGER, spark_cast(place, INTEGER), integer(1))
    found = call(_BUCKET, "element_at", values.copy(), call(INTEGER, "least", following, size.copy()))
    known = case(DOUBLE, [(not_null(values.copy()), let("bucket", found, DOUBLE, _middle(bucket, growth)))])
    return let("listed", _sorted_values(made, _bucket(convert(node, DOUBLE, settings), growth)), DOUBLE, known)


_BUCKET = struct_of(("side", DOUBLE), ("n", INTEGER))


def _double(number: int) -> exp.Expr:
    return spark_cast(integer(number), DOUBLE)


def _bucket(value: exp.Expr, growth: exp.Expr) -> exp.Expr:
    """The sign of a value and the number of its bucket; NULL of NULL."""
    size = call(DOUBLE, "ln", call(DOUBLE, "abs", value.copy()))
    steps = call(BIGINT, "ceil", binary(exp.Div, DOUBLE, size, call(DOUBLE, "ln", growth.copy())))
    side = call(DOUBLE, "sign", value.copy())
    made = call(_BUCKET, "named_struct", text("side"), side, text("n"), spark_cast(steps, INTEGER))
    return case(_BUCKET, [(not_null(value), made)])


def _middle(bucket: exp.Expr, growth: exp.Expr) -> exp.Expr:
    """The middle of a bucket. Squares of the growth are multiplied, as RisingWave does, for the same last digits."""
    side, n = field(bucket.copy(), "side", DOUBLE), field(bucket.copy(), "n", INTEGER)
    state = struct_of(("r", DOUBLE), ("a", DOUBLE))
    start = call(state, "named_struct", text("r"), _double(1), text("a"), growth.copy())
    r, a = (typed(_of("s", name), DOUBLE) for name in "ra")
    shifted = call(INTEGER, "shiftright", call(INTEGER, "abs", n.copy()), variable("i", INTEGER))
    is_odd = equal(binary(exp.Mod, INTEGER, shifted, integer(2)), integer(1))
    times = case(DOUBLE, [(is_odd, binary(exp.Mul, DOUBLE, r, a))], r.copy())
    square = binary(exp.Mul, DOUBLE, a.copy(), a.copy())
    step = call(state, "named_struct", text("r"), times, text("a"), square)
    bits = call(array_of(INTEGER), "sequence", integer(0), integer(30))
    power = call(DOUBLE, "aggregate", bits, start, lambda_(step, "s", "i"), lambda_(_of("s", "r"), "s"))
    inverse = binary(exp.Div, DOUBLE, _double(1), power.copy())
    end = case(DOUBLE, [(comparison(exp.LT, n.copy(), integer(0)), inverse)], power)
    middle = binary(
        exp.Div, DOUBLE, binary(exp.Mul, DOUBLE, _double(2), end), binary(exp.Add, DOUBLE, growth, _double(1))
    )
    return case(DOUBLE, [(equal(side.copy(), _double(0)), _double(0))], binary(exp.Mul, DOUBLE, side, middle))


def _by_fractions(
    made: AggregateCall,
    node: exp.Expr,
    type_: SqlType,
    at: Callable[[exp.Expr, exp.Expr], exp.Expr],
    settings: Settings,
) -> exp.Expr:
    if len(made.arguments) != 1:
        raise undefined(made.name, [*made.arguments, node], aggregate_names())
    given = made.arguments[0]
    for each in given.expressions if type_of(given).kind is Kind.ARRAY else [given]:
        fraction = _fraction(each)
        if fraction is not None and not 0 <= fraction <= 1:
            raise NumericOutOfRange(f"percentile value {fraction:g} is not between 0 and 1")
    values = variable("listed", array_of(type_))
    if type_of(given).kind is Kind.ARRAY:
        shares = convert(given, array_of(DOUBLE), settings)
        body = call(array_of(type_), "transform", shares, lambda_(at(variable("p", DOUBLE), values), "p"))
        gives = array_of(type_)
    else:
        body, gives = at(convert(given, DOUBLE, settings), values), type_
    known = case(gives, [(not_null(values.copy()), body)])
    return let("listed", _sorted_values(made, node), gives, known)


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


def _fraction(node: exp.Expr) -> float | None:
    """The number, where it is a constant. Decimals are texts that are cast."""
    match node:
        case exp.Literal() if _NUMBER.fullmatch(node.name):
            return float(node.name)
        case exp.Neg() | exp.Cast() | exp.Paren():
            inner = _fraction(node.this)
            return -inner if inner is not None and isinstance(node, exp.Neg) else inner
    return None


# --- ranks of a row that is not there ----------------------------------------------------------------


def _hypothetical(name: str) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        item = _ordered(made)
        if len(made.arguments) != 1:
            raise undefined(made.name, made.arguments, aggregate_names())
        node, given = item.this, made.arguments[0]
        nulls_first = bool(item.args.get("nulls_first"))
        before = compare(exp.GT if item.args.get("desc") else exp.LT, node.copy(), given.copy(), settings)
        ahead = (
            disjunction([before, is_null(node.copy())]) if nulls_first else conjunction([not_null(node.copy()), before])
        )

        def rows(condition: exp.Expr | None) -> exp.Expr:
            counted = AggregateCall("count", [], condition=_both(made.condition, condition))
            return core(exp.Count, integer(1), BIGINT, counted)

        match name:
            case "rank":
                return binary(exp.Add, BIGINT, rows(ahead), integer(1))
            case "dense_rank":
                distinct = AggregateCall("count", [], distinct=True, condition=_both(made.condition, ahead))
                return binary(exp.Add, BIGINT, core(exp.Count, node.copy(), BIGINT, distinct), integer(1))
            case "percent_rank":
                every = spark_cast(rows(None), DOUBLE)
                share = binary(exp.Div, DOUBLE, spark_cast(rows(ahead), DOUBLE), every)
                return case(DOUBLE, [(equal(every.copy(), integer(0)), spark_cast(integer(0), DOUBLE))], share)
            case _:
                same = compare(exp.EQ, node.copy(), given.copy(), settings)
                reached = binary(exp.Add, BIGINT, rows(disjunction([ahead, same])), integer(1))
                every = binary(exp.Add, BIGINT, rows(None), integer(1))
                return binary(exp.Div, DOUBLE, spark_cast(reached, DOUBLE), spark_cast(every, DOUBLE))

    return make


def _both(condition: exp.Expr | None, other: exp.Expr | None) -> exp.Expr | None:
    if other is None:
        return condition
    return _with(condition, other)


HYPOTHETICAL: dict[str, Maker] = {
    name: _hypothetical(name) for name in ("rank", "dense_rank", "percent_rank", "cume_dist")
}
