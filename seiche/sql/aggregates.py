"""Aggregates, brought down to a small core that can be maintained incrementally.

The core is count(*), count(x), sum(x), min(x), max(x), bool_and(x), bool_or(x), as sqlglot's own nodes with typed
arguments. Averages, and variances of integers, become expressions over the core; FILTER moves into the argument.
What has no such form (DISTINCT, string_agg, array_agg, percentiles) is Spark's own aggregate. Each aggregate node
is marked `meta["aggregate"]`, and none of them ever holds another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import FeatureNotSupported, GroupingError
from seiche.sql import intervals
from seiche.sql.casts import Context, castable, convert, settle
from seiche.sql.functions.registry import undefined
from seiche.sql.nodes import (
    Settings,
    binary,
    call,
    case,
    checked_cast,
    comparison,
    integer,
    spark_cast,
    text,
    type_of,
    typed,
)
from seiche.sql.operators import decimal_quotient
from seiche.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSONB,
    NUMERIC,
    REAL,
    VARCHAR,
    Kind,
    SqlType,
    array_of,
    numeric,
)

AGGREGATE = "aggregate"


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """A call with everything that may stand in it, bound already."""

    name: str
    arguments: list[exp.Expr]
    star: bool = False
    distinct: bool = False
    order: Sequence[exp.Expr] = ()  # exp.Ordered, nulls placed
    condition: exp.Expr | None = None


Maker = Callable[[AggregateCall, Settings], exp.Expr]
_AGGREGATES: dict[str, Maker] = {}


def is_aggregate(name: str) -> bool:
    return name in _AGGREGATES


def aggregate(made: AggregateCall, settings: Settings) -> exp.Expr:
    return _AGGREGATES[made.name](made, settings)


def aggregate_names() -> tuple[str, ...]:
    return tuple(_AGGREGATES)


def is_aggregate_node(node: exp.Expr) -> bool:
    return bool(node.meta.get(AGGREGATE))


def _register(*names: str) -> Callable[[Maker], Maker]:
    def register(make: Maker) -> Maker:
        for name in names:
            _AGGREGATES[name] = make
        return make

    return register


def _marked(node: exp.Expr, type_: SqlType) -> exp.Expr:
    node.meta[AGGREGATE] = True
    return typed(node, type_)


def _one(made: AggregateCall, settings: Settings) -> exp.Expr:
    if len(made.arguments) != 1 or made.star:
        raise undefined(made.name, made.arguments, aggregate_names())
    return settle(made.arguments[0], settings)


def _filtered(node: exp.Expr, made: AggregateCall) -> exp.Expr:
    if made.condition is None:
        return node
    return case(type_of(node), [(made.condition.copy(), node)])


def _distinct(node: exp.Expr, made: AggregateCall) -> exp.Expr:
    return exp.Distinct(expressions=[node]) if made.distinct else node


def _core(kind: type[exp.Expr], node: exp.Expr, type_: SqlType, made: AggregateCall) -> exp.Expr:
    return _marked(kind(this=_distinct(_filtered(node, made), made)), type_)


def _native(name: str, type_: SqlType, made: AggregateCall, *arguments: exp.Expr) -> exp.Expr:
    """Spark's own aggregate, with Spark's own FILTER."""
    inner = list(arguments)
    if made.distinct:
        inner[0] = exp.Distinct(expressions=[inner[0]])
    node: exp.Expr = typed(exp.Anonymous(this=name, expressions=inner), type_)
    if made.condition is not None:
        node = exp.Filter(this=node, expression=exp.Where(this=made.condition.copy()))
    return _marked(node, type_)


# --- the core ----------------------------------------------------------------------------------------


@_register("count")
def _count(made: AggregateCall, settings: Settings) -> exp.Expr:
    if made.star:
        if made.condition is None:
            return _marked(exp.Count(this=exp.Star()), BIGINT)
        return _core(exp.Count, integer(1), BIGINT, made)
    if len(made.arguments) > 1 and made.distinct:
        raise undefined(made.name, made.arguments, aggregate_names())
    return _core(exp.Count, _one(made, settings), BIGINT, made)


@_register("sum")
def _sum(made: AggregateCall, settings: Settings) -> exp.Expr:
    node = _one(made, settings)
    type_ = type_of(node)
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER:
            return _core(exp.Sum, node, BIGINT, made)
        case Kind.BIGINT:
            wide = numeric(38, 0)
            return _core(exp.Sum, spark_cast(node, wide), wide, made)
        case Kind.NUMERIC:
            wide = numeric(38, type_.scale, declared=type_.declared)
            return _core(exp.Sum, convert(node, wide, settings), wide, made)
        case Kind.REAL:
            return spark_cast(_core(exp.Sum, spark_cast(node, DOUBLE), DOUBLE, made), REAL)
        case Kind.DOUBLE:
            return _core(exp.Sum, node, DOUBLE, made)
        case Kind.INTERVAL:
            parts = [
                spark_cast(_core(exp.Sum, intervals.months_of(node), BIGINT, made), INTEGER),
                spark_cast(_core(exp.Sum, intervals.days_of(node), BIGINT, made), INTEGER),
                _core(exp.Sum, intervals.micros_in(node), BIGINT, made),
            ]
            some = comparison(exp.GT, _core(exp.Count, node.copy(), BIGINT, made), integer(0))
            return intervals.nullable(case(INTERVAL, [(some, intervals.build(*parts))]))
    raise undefined(made.name, made.arguments, aggregate_names())


@_register("avg")
def _avg(made: AggregateCall, settings: Settings) -> exp.Expr:
    node = _one(made, settings)
    type_ = type_of(node)
    if type_.kind is Kind.INTERVAL:
        total = _sum(made, settings)
        count = _core(exp.Count, node.copy(), BIGINT, made)
        return _interval_mean(total, count, settings)
    if not type_.is_number:
        raise undefined(made.name, made.arguments, aggregate_names())
    count = typed(exp.Nullif(this=_core(exp.Count, node.copy(), BIGINT, made), expression=integer(0)), BIGINT)
    if type_.is_float:
        total = _core(exp.Sum, spark_cast(node, DOUBLE) if type_.kind is Kind.REAL else node, DOUBLE, made)
        return binary(exp.Div, DOUBLE, total, spark_cast(count, DOUBLE))
    total = _sum(made, settings)
    width = numeric(19, 0) if type_.kind in (Kind.SMALLINT, Kind.INTEGER) else type_of(total)
    never_zero = Settings(settings.timezone, settings.now_ms, strict=True)
    return decimal_quotient(
        spark_cast(total, width) if type_of(total) != width else total, spark_cast(count, numeric(19, 0)), never_zero
    )


def _interval_mean(total: exp.Expr, count: exp.Expr, settings: Settings) -> exp.Expr:
    divided = intervals.arithmetic("/", total, count, settings)
    assert divided is not None
    return case(INTERVAL, [(comparison(exp.GT, count.copy(), integer(0)), divided)])


def _extreme(kind: type[exp.Expr], spark: str) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        node = _one(made, settings)
        type_ = type_of(node)
        if type_.kind in (Kind.BOOLEAN, Kind.JSONB, Kind.STRUCT):
            raise undefined(made.name, made.arguments, aggregate_names())
        if type_.kind is Kind.INTERVAL:
            inner = _filtered(node, made)
            return _marked(exp.Anonymous(this=spark, expressions=[inner, intervals.length(inner)]), INTERVAL)
        # A repeated value changes neither extreme.
        return _marked(kind(this=_filtered(node, made)), type_)

    return make


_register("min")(_extreme(exp.Min, "min_by"))
_register("max")(_extreme(exp.Max, "max_by"))


def _logical(kind: type[exp.Expr]) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        node = _one(made, settings)
        if type_of(node).kind is not Kind.BOOLEAN:
            raise undefined(made.name, made.arguments, aggregate_names())
        return _marked(kind(this=_filtered(node, made)), BOOLEAN)

    return make


_register("bool_and", "every")(_logical(exp.LogicalAnd))
_register("bool_or")(_logical(exp.LogicalOr))


# --- variance ----------------------------------------------------------------------------------------


def _spread(spark: str, *, sample: bool, root: bool) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        node = _one(made, settings)
        type_ = type_of(node)
        if not type_.is_number:
            raise undefined(made.name, made.arguments, aggregate_names())
        if type_.kind in (Kind.SMALLINT, Kind.INTEGER) and not made.distinct:
            return _exact_spread(node, made, settings, sample=sample, root=root)
        measured = _core_native(spark, convert(node, DOUBLE, settings), made)
        return measured if type_.is_float else checked_cast(measured, NUMERIC, settings)

    return make


def _core_native(spark: str, node: exp.Expr, made: AggregateCall) -> exp.Expr:
    return _marked(exp.Anonymous(this=spark, expressions=[_distinct(_filtered(node, made), made)]), DOUBLE)


def _exact_spread(node: exp.Expr, made: AggregateCall, settings: Settings, *, sample: bool, root: bool) -> exp.Expr:
    """(n * sum(x*x) - sum(x)^2) / (n * (n - 1)), in integers until the division."""
    wide = numeric(38, 0)
    big = spark_cast(node, BIGINT)
    square = spark_cast(binary(exp.Mul, BIGINT, big, big.copy()), wide)
    count = spark_cast(_core(exp.Count, node.copy(), BIGINT, made), wide)
    total = spark_cast(_core(exp.Sum, node.copy(), BIGINT, made), wide)
    squares = _core(exp.Sum, square, wide, made)
    spread = binary(exp.Sub, wide, binary(exp.Mul, wide, count, squares), binary(exp.Mul, wide, total, total.copy()))
    others = binary(exp.Sub, wide, count.copy(), integer(1)) if sample else count.copy()
    never_zero = Settings(settings.timezone, settings.now_ms, strict=True)
    variance = decimal_quotient(spread, binary(exp.Mul, wide, count.copy(), others), never_zero)
    if root:
        variance = spark_cast(call(DOUBLE, "sqrt", spark_cast(variance, DOUBLE)), NUMERIC)
    enough = comparison(exp.GT, count.copy(), integer(1 if sample else 0))
    return case(NUMERIC, [(enough, variance)])


_register("variance", "var_samp")(_spread("var_samp", sample=True, root=False))
_register("var_pop")(_spread("var_pop", sample=False, root=False))
_register("stddev", "stddev_samp")(_spread("stddev_samp", sample=True, root=True))
_register("stddev_pop")(_spread("stddev_pop", sample=False, root=True))


def _pairs(spark: str) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        if len(made.arguments) != 2 or not all(castable(type_of(a), DOUBLE, Context.IMPLICIT) for a in made.arguments):
            raise undefined(made.name, made.arguments, aggregate_names())
        y, x = (convert(a, DOUBLE, settings) for a in made.arguments)
        type_ = BIGINT if spark == "regr_count" else DOUBLE
        return _native(spark, type_, made, y, x)

    return make


for _name in (
    "corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope "
    "regr_sxx regr_sxy regr_syy"
).split():
    _register(_name)(_pairs(_name))


# --- bits, any value, approximate --------------------------------------------------------------------


def _bits(spark: str) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        node = _one(made, settings)
        if not type_of(node).is_integer:
            raise undefined(made.name, made.arguments, aggregate_names())
        return _native(spark, type_of(node), made, node)

    return make


for _name in ("bit_and", "bit_or", "bit_xor"):
    _register(_name)(_bits(_name))


@_register("any_value")
def _any_value(made: AggregateCall, settings: Settings) -> exp.Expr:
    """The least value: any will do, and this one does not depend on the order of the rows."""
    return _extreme(exp.Min, "min_by")(made, settings)


@_register("approx_count_distinct")
def _approx(made: AggregateCall, settings: Settings) -> exp.Expr:
    return _native("approx_count_distinct", BIGINT, made, _one(made, settings))


# --- collecting --------------------------------------------------------------------------------------


@_register("string_agg")
def _string_agg(made: AggregateCall, settings: Settings) -> exp.Expr:
    if len(made.arguments) != 2:
        raise undefined(made.name, made.arguments, aggregate_names())
    node, separator = (settle(a, settings) for a in made.arguments)
    if type_of(node).kind not in (Kind.VARCHAR, Kind.BYTEA):
        raise undefined(made.name, made.arguments, aggregate_names())
    if not isinstance(separator, exp.Literal | exp.Null | exp.Cast):
        raise FeatureNotSupported("function string_agg needs a constant separator")
    inner = _filtered(node, made)
    order = list(made.order)
    if made.distinct and order:
        for item in order:
            if item.this != node:
                raise GroupingError("in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list")
            item.set("this", inner.copy())
    listed: exp.Expr = exp.Anonymous(this="listagg", expressions=[_distinct(inner, made), separator])
    if order:
        listed = exp.WithinGroup(this=listed, expression=exp.Order(expressions=order))
    return _marked(listed, type_of(node))


@_register("array_agg")
def _array_agg(made: AggregateCall, settings: Settings) -> exp.Expr:
    """NULLs are kept, and no rows give NULL; Spark does neither by itself."""
    return _collected(_one(made, settings), made)


def _collected(node: exp.Expr, made: AggregateCall) -> exp.Expr:
    type_ = type_of(node)
    fields: list[exp.Expr] = []
    for index, item in enumerate(made.order):
        fields += [text(f"o{index}"), item.this]
    wrapped = call(type_, "named_struct", *fields, text("v"), node)
    rows = _native("array_agg", array_of(type_), made, wrapped)
    some = comparison(exp.GT, call(INTEGER, "size", rows.copy()), integer(0))
    if made.order:
        rows = call(array_of(type_), "array_sort", rows, _comparator(made.order))
    elif made.distinct:
        rows = call(array_of(type_), "array_sort", rows)
    value = exp.Dot(this=exp.column("s"), expression=exp.to_identifier("v"))
    values = call(array_of(type_), "transform", rows, exp.Lambda(this=value, expressions=[exp.to_identifier("s")]))
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


@_register("jsonb_agg", "json_agg")
def _jsonb_agg(made: AggregateCall, settings: Settings) -> exp.Expr:
    from seiche.sql.functions.jsonb import as_json

    item = typed(exp.Coalesce(this=as_json(_one(made, settings), settings), expressions=[text("null")]), VARCHAR)
    items = _collected(item, made)
    return call(JSONB, "concat", text("["), call(VARCHAR, "array_join", items, text(",")), text("]"))


@_register("jsonb_object_agg", "json_object_agg")
def _jsonb_object_agg(made: AggregateCall, settings: Settings) -> exp.Expr:
    from seiche.sql.casts import to_text
    from seiche.sql.functions.jsonb import as_json, quoted

    if len(made.arguments) != 2:
        raise undefined(made.name, made.arguments, aggregate_names())
    key, value = (settle(a, settings) for a in made.arguments)
    shown = typed(exp.Coalesce(this=as_json(value, settings), expressions=[text("null")]), VARCHAR)
    member = call(VARCHAR, "concat", quoted(to_text(key, settings)), text(":"), shown)
    members = _collected(member, made)
    joined = call(VARCHAR, "concat", text("{"), call(VARCHAR, "array_join", members, text(",")), text("}"))
    return call(JSONB, "to_json", call(JSONB, "parse_json", joined))


# --- ordered sets ------------------------------------------------------------------------------------


def _ordered_set(spark: str) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        if len(made.order) != 1:
            raise undefined(made.name, made.arguments, aggregate_names())
        item = made.order[0]
        node = item.this
        type_ = type_of(node)
        if spark == "mode":
            return _marked(
                exp.Anonymous(this="mode", expressions=[_filtered(node, made), exp.Boolean(this=True)]), type_
            )
        if len(made.arguments) != 1 or not type_.is_number:
            raise undefined(made.name, [*made.arguments, node], aggregate_names())
        share = convert(made.arguments[0], DOUBLE, settings)
        ordered = exp.Ordered(
            this=_filtered(convert(node, DOUBLE, settings), made),
            desc=item.args.get("desc"),
            nulls_first=item.args.get("nulls_first"),
        )
        measured = exp.WithinGroup(
            this=exp.Anonymous(this=spark, expressions=[share]), expression=exp.Order(expressions=[ordered])
        )
        result = _marked(measured, DOUBLE)
        if spark == "percentile_cont" or type_.kind is Kind.DOUBLE:
            return result
        return convert(result, type_, Settings(settings.timezone, settings.now_ms, strict=True))

    return make


for _name in ("percentile_cont", "percentile_disc", "mode"):
    _register(_name)(_ordered_set(_name))


@_register("grouping")
def _grouping(made: AggregateCall, settings: Settings) -> exp.Expr:
    if len(made.arguments) == 1:
        return _marked(spark_cast(exp.Anonymous(this="grouping", expressions=list(made.arguments)), INTEGER), INTEGER)
    return _marked(spark_cast(exp.Anonymous(this="grouping_id", expressions=list(made.arguments)), INTEGER), INTEGER)
