"""Aggregates, brought down to a small core that can be maintained incrementally.

The core is count(*), count(x), sum(x), min(x), max(x), bool_and(x), bool_or(x), as sqlglot's own nodes with typed
arguments. Averages, and variances of integers, become expressions over the core; FILTER moves into the argument.
What has no such form is Spark's own aggregate; those that need all values at once are `sql/collecting.py`'s. Each
aggregate node is marked `meta["aggregate"]`, and none of them ever holds another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seiche.sql import intervals
from seiche.sql.casts import Context, castable, convert, settle
from seiche.sql.functions.registry import undefined
from seiche.sql.nodes import (
    Settings,
    binary,
    case,
    checked_cast,
    comparison,
    integer,
    spark_cast,
    type_of,
    typed,
)
from seiche.sql.operators import decimal_quotient
from seiche.sql.roots import decimal_root
from seiche.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    REAL,
    Kind,
    SqlType,
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


def register(*names: str) -> Callable[[Maker], Maker]:
    def register(make: Maker) -> Maker:
        for name in names:
            _AGGREGATES[name] = make
        return make

    return register


def marked(node: exp.Expr, type_: SqlType) -> exp.Expr:
    node.meta[AGGREGATE] = True
    return typed(node, type_)


def one(made: AggregateCall, settings: Settings) -> exp.Expr:
    if len(made.arguments) != 1 or made.star:
        raise undefined(made.name, made.arguments, aggregate_names())
    return settle(made.arguments[0], settings)


def filtered(node: exp.Expr, made: AggregateCall) -> exp.Expr:
    if made.condition is None:
        return node
    return case(type_of(node), [(made.condition.copy(), node)])


def distinct_of(node: exp.Expr, made: AggregateCall) -> exp.Expr:
    return exp.Distinct(expressions=[node]) if made.distinct else node


def core(kind: type[exp.Expr], node: exp.Expr, type_: SqlType, made: AggregateCall) -> exp.Expr:
    return marked(kind(this=distinct_of(filtered(node, made), made)), type_)


def native(name: str, type_: SqlType, made: AggregateCall, *arguments: exp.Expr) -> exp.Expr:
    """Spark's own aggregate, with Spark's own FILTER."""
    inner = list(arguments)
    if made.distinct:
        inner[0] = exp.Distinct(expressions=[inner[0]])
    node: exp.Expr = typed(exp.Anonymous(this=name, expressions=inner), type_)
    if made.condition is not None:
        node = exp.Filter(this=node, expression=exp.Where(this=made.condition.copy()))
    return marked(node, type_)


# --- the core ----------------------------------------------------------------------------------------


@register("count")
def _count(made: AggregateCall, settings: Settings) -> exp.Expr:
    if made.star:
        if made.condition is None:
            return marked(exp.Count(this=exp.Star()), BIGINT)
        return core(exp.Count, integer(1), BIGINT, made)
    if len(made.arguments) > 1 and made.distinct:
        raise undefined(made.name, made.arguments, aggregate_names())
    node = one(made, settings)
    if made.distinct and type_of(node).kind is Kind.INTERVAL:
        node = intervals.length(node)
    return core(exp.Count, node, BIGINT, made)


@register("sum")
def _sum(made: AggregateCall, settings: Settings) -> exp.Expr:
    node = one(made, settings)
    type_ = type_of(node)
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER:
            return core(exp.Sum, node, BIGINT, made)
        case Kind.BIGINT:
            wide = numeric(38, 0)
            return core(exp.Sum, spark_cast(node, wide), wide, made)
        case Kind.NUMERIC:
            wide = numeric(38, type_.scale, declared=type_.declared)
            return core(exp.Sum, convert(node, wide, settings), wide, made)
        case Kind.REAL:
            return spark_cast(core(exp.Sum, spark_cast(node, DOUBLE), DOUBLE, made), REAL)
        case Kind.DOUBLE:
            return core(exp.Sum, node, DOUBLE, made)
        case Kind.INTERVAL:
            parts = [
                spark_cast(core(exp.Sum, intervals.months_of(node), BIGINT, made), INTEGER),
                spark_cast(core(exp.Sum, intervals.days_of(node), BIGINT, made), INTEGER),
                core(exp.Sum, intervals.micros_in(node), BIGINT, made),
            ]
            some = comparison(exp.GT, core(exp.Count, node.copy(), BIGINT, made), integer(0))
            return intervals.nullable(case(INTERVAL, [(some, intervals.build(*parts))]))
    raise undefined(made.name, made.arguments, aggregate_names())


@register("avg")
def _avg(made: AggregateCall, settings: Settings) -> exp.Expr:
    node = one(made, settings)
    type_ = type_of(node)
    if type_.kind is Kind.INTERVAL:
        total = _sum(made, settings)
        count = core(exp.Count, node.copy(), BIGINT, made)
        return _interval_mean(total, count, settings)
    if not type_.is_number:
        raise undefined(made.name, made.arguments, aggregate_names())
    count = typed(exp.Nullif(this=core(exp.Count, node.copy(), BIGINT, made), expression=integer(0)), BIGINT)
    if type_.is_float:
        total = core(exp.Sum, spark_cast(node, DOUBLE) if type_.kind is Kind.REAL else node, DOUBLE, made)
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
        node = one(made, settings)
        type_ = type_of(node)
        if type_.kind in (Kind.BOOLEAN, Kind.JSONB):
            raise undefined(made.name, made.arguments, aggregate_names())
        if type_.kind is Kind.INTERVAL:
            inner = filtered(node, made)
            return marked(exp.Anonymous(this=spark, expressions=[inner, intervals.length(inner)]), INTERVAL)
        # A repeated value changes neither extreme.
        return marked(kind(this=filtered(node, made)), type_)

    return make


register("min")(_extreme(exp.Min, "min_by"))
register("max")(_extreme(exp.Max, "max_by"))


def _logical(kind: type[exp.Expr]) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        node = one(made, settings)
        if type_of(node).kind is not Kind.BOOLEAN:
            raise undefined(made.name, made.arguments, aggregate_names())
        return marked(kind(this=filtered(node, made)), BOOLEAN)

    return make


register("bool_and", "every")(_logical(exp.LogicalAnd))
register("bool_or")(_logical(exp.LogicalOr))


# --- variance ----------------------------------------------------------------------------------------


def _spread(spark: str, *, sample: bool, root: bool) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        node = one(made, settings)
        type_ = type_of(node)
        if not type_.is_number:
            raise undefined(made.name, made.arguments, aggregate_names())
        if type_.kind in (Kind.SMALLINT, Kind.INTEGER) and not made.distinct:
            return _exact_spread(node, made, settings, sample=sample, root=root)
        measured = _core_native(spark, convert(node, DOUBLE, settings), made)
        return measured if type_.is_float else checked_cast(measured, NUMERIC, settings)

    return make


def _core_native(spark: str, node: exp.Expr, made: AggregateCall) -> exp.Expr:
    return marked(exp.Anonymous(this=spark, expressions=[distinct_of(filtered(node, made), made)]), DOUBLE)


def _exact_spread(node: exp.Expr, made: AggregateCall, settings: Settings, *, sample: bool, root: bool) -> exp.Expr:
    """(n * sum(x*x) - sum(x)^2) / (n * (n - 1)), in integers until the division."""
    wide = numeric(38, 0)
    big = spark_cast(node, BIGINT)
    square = spark_cast(binary(exp.Mul, BIGINT, big, big.copy()), wide)
    count = spark_cast(core(exp.Count, node.copy(), BIGINT, made), wide)
    total = spark_cast(core(exp.Sum, node.copy(), BIGINT, made), wide)
    squares = core(exp.Sum, square, wide, made)
    spread = binary(exp.Sub, wide, binary(exp.Mul, wide, count, squares), binary(exp.Mul, wide, total, total.copy()))
    others = binary(exp.Sub, wide, count.copy(), integer(1)) if sample else count.copy()
    never_zero = Settings(settings.timezone, settings.now_ms, strict=True)
    variance = decimal_quotient(spread, binary(exp.Mul, wide, count.copy(), others), never_zero)
    if root:
        variance = decimal_root(variance)
    enough = comparison(exp.GT, count.copy(), integer(1 if sample else 0))
    return case(NUMERIC, [(enough, variance)])


register("variance", "var_samp")(_spread("var_samp", sample=True, root=False))
register("var_pop")(_spread("var_pop", sample=False, root=False))
register("stddev", "stddev_samp")(_spread("stddev_samp", sample=True, root=True))
register("stddev_pop")(_spread("stddev_pop", sample=False, root=True))


def _pairs(spark: str) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        if len(made.arguments) != 2 or not all(castable(type_of(a), DOUBLE, Context.IMPLICIT) for a in made.arguments):
            raise undefined(made.name, made.arguments, aggregate_names())
        y, x = (convert(a, DOUBLE, settings) for a in made.arguments)
        type_ = BIGINT if spark == "regr_count" else DOUBLE
        return native(spark, type_, made, y, x)

    return make


for _name in (
    "corr covar_pop covar_samp regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope "
    "regr_sxx regr_sxy regr_syy"
).split():
    register(_name)(_pairs(_name))


# --- bits, any value, approximate --------------------------------------------------------------------


def _bits(spark: str) -> Maker:
    def make(made: AggregateCall, settings: Settings) -> exp.Expr:
        node = one(made, settings)
        if not type_of(node).is_integer:
            raise undefined(made.name, made.arguments, aggregate_names())
        return native(spark, type_of(node), made, node)

    return make


for _name in ("bit_and", "bit_or", "bit_xor"):
    register(_name)(_bits(_name))


@register("any_value")
def _any_value(made: AggregateCall, settings: Settings) -> exp.Expr:
    """The least value: any will do, and this one does not depend on the order of the rows."""
    return _extreme(exp.Min, "min_by")(made, settings)


@register("approx_count_distinct")
def _approx(made: AggregateCall, settings: Settings) -> exp.Expr:
    return native("approx_count_distinct", BIGINT, made, one(made, settings))


@register("grouping")
def _grouping(made: AggregateCall, settings: Settings) -> exp.Expr:
    if len(made.arguments) == 1:
        return marked(spark_cast(exp.Anonymous(this="grouping", expressions=list(made.arguments)), INTEGER), INTEGER)
    return marked(spark_cast(exp.Anonymous(this="grouping_id", expressions=list(made.arguments)), INTEGER), INTEGER)
