"""Window functions: OVER with its partition, its order and its frame, named windows included."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from sqlglot import exp

from seiche.errors import (
    FeatureNotSupported,
    GroupingError,
    InvalidColumnReference,
    OutOfDomain,
    UndefinedObject,
    WindowingError,
    WrongObjectType,
)
from seiche.sql import aggregate_calls, choices, frames
from seiche.sql.aggregates import AGGREGATE, is_aggregate
from seiche.sql.binder import Binder, Clause
from seiche.sql.calls import call_of
from seiche.sql.casts import convert, micros_of, settle
from seiche.sql.functions import undefined
from seiche.sql.literals import MICROS_PER_DAY, interval_constant
from seiche.sql.nodes import bigint, call, integer, is_unknown, null, spark_cast, type_of, typed
from seiche.sql.operators import sort_key
from seiche.sql.places import begin_of, place_of
from seiche.sql.user_aggregates import aggregated, user_aggregate
from seiche.types import BIGINT, DOUBLE, INTEGER, Kind, SqlType

_SIDES = ("start", "end")  # of a frame
_WITHOUT_DISTANCE = (Kind.VARCHAR, Kind.BOOLEAN, Kind.BYTEA, Kind.JSONB, Kind.ARRAY, Kind.STRUCT)
_MICROS = "micros"  # marks a frame bound that was an interval
RANKING: dict[str, tuple[SqlType, SqlType]] = {
    "row_number": (INTEGER, BIGINT),
    "rank": (INTEGER, BIGINT),
    "dense_rank": (INTEGER, BIGINT),
    "percent_rank": (DOUBLE, DOUBLE),
    "cume_dist": (DOUBLE, DOUBLE),
    "ntile": (INTEGER, INTEGER),
}
OFFSET = frozenset(("lag", "lead", "first_value", "last_value", "nth_value"))


def window_names() -> tuple[str, ...]:
    return (*RANKING, *OFFSET)


def windowed(binder: Binder, node: exp.Window) -> exp.Expr:
    if not binder.clause.windows:
        if binder.clause is Clause.AGGREGATE:
            raise GroupingError("aggregate function calls cannot contain window function calls")
        raise WindowingError(f"window functions are not allowed in {binder.clause.value}")
    inside = binder.within(Clause.WINDOW)
    partition, order, spec = _window_parts(binder, node, inside)
    function = node.this
    ignore_nulls = isinstance(function, exp.IgnoreNulls)
    if isinstance(function, exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    condition = None
    if isinstance(function, exp.Filter):
        condition, function = function.expression.this, function.this
    found = call_of(function)
    if found is None:
        raise WrongObjectType("OVER specified, but the expression is not a window function nor an aggregate function")
    name, arguments = found
    if any(isinstance(each, exp.IgnoreNulls | exp.RespectNulls) for each in arguments):  # said inside the parentheses
        ignore_nulls = any(isinstance(each, exp.IgnoreNulls) for each in arguments)
        arguments = [e.this if isinstance(e, exp.IgnoreNulls | exp.RespectNulls) else e for e in arguments]

    if any(isinstance(each, exp.Distinct) for each in arguments):
        raise FeatureNotSupported("DISTINCT is not implemented for window functions")

    nothing = spec is not None and _is_empty(spec)
    if nothing:  # Spark knows no such frame, but one of which no row is taken
        spec = exp.WindowSpec(kind="ROWS", start="CURRENT ROW", end="CURRENT ROW")
        condition = exp.false()

    unframed = spec is None or name in RANKING or name in ("lag", "lead")

    def over(inner: exp.Expr, frame: exp.WindowSpec | None = None if unframed else spec) -> exp.Expr:
        placed = [item.copy() for item in order]
        if not placed and (name in RANKING or name in OFFSET):
            placed = [exp.Ordered(this=exp.Null(), desc=False, nulls_first=False)]
        made = exp.Window(
            this=inner,
            partition_by=[item.copy() for item in partition],
            over="OVER",
            spec=frame.copy() if frame is not None else None,
        )
        if placed:
            made.set("order", exp.Order(expressions=placed))
        return typed(made, type_of(inner))

    if spec is not None and frames.is_special(spec) and name not in RANKING and name not in ("lag", "lead"):
        return _framed(binder, name, arguments, condition, order, spec, over, inside)
    if name in RANKING:
        type_, cast_to = RANKING[name]
        given = [_folded(convert(inside.bind(a), INTEGER, binder.settings)) for a in arguments]
        parts = _whole(given[0]) if name == "ntile" and given else None
        if parts is not None and parts < 1:
            raise OutOfDomain("argument of ntile must be greater than zero", sqlstate="22014")
        made = over(call(type_, name, *given))
        return spark_cast(made, cast_to) if cast_to != type_ else made
    if name in OFFSET:
        made = _offset(binder, name, [inside.bind(a) for a in arguments], over, ignore_nulls)
        return null(type_of(made)) if nothing and not unframed else made
    own = None if is_aggregate(name) else user_aggregate(binder, name, arguments)
    if own is not None:
        return _replaced(aggregated(inside, own, arguments, condition, Clause.WINDOW), over)
    if not is_aggregate(name):
        raise WrongObjectType(f"OVER specified, but {name} is not a window function nor an aggregate function")
    made = aggregate_calls.aggregate_of(inside, name, arguments, condition, (), Clause.WINDOW)
    return _replaced(made, over)


def _framed(
    binder: Binder,
    name: str,
    arguments: Sequence[exp.Expr],
    condition: exp.Expr | None,
    order: Sequence[exp.Expr],
    spec: exp.WindowSpec,
    over: Callable[..., exp.Expr],
    inside: Binder,
) -> exp.Expr:
    """A frame that Spark does not have."""
    star = name == "count" and (not arguments or isinstance(arguments[0], exp.Star))
    plain = spec.copy()
    plain.set("exclude", None)
    made = frames.FramedCall(
        name,
        [] if star else [inside.bind(argument) for argument in arguments],
        star,
        None if condition is None else inside.condition(condition, "FILTER"),
        [key.this for key in order],
        plain,
        frames.excluded(spec),
    )
    return frames.framed(made, lambda inner, frame: over(inner, frame=frame), binder.settings)


def _offset(
    binder: Binder, name: str, arguments: list[exp.Expr], over: Callable[[exp.Expr], exp.Expr], ignore_nulls: bool
) -> exp.Expr:
    if not arguments:
        raise undefined(name, arguments)
    value, *rest = arguments
    value = settle(value, binder.settings)
    if name in ("lag", "lead"):
        offset = [_folded(convert(rest[0], INTEGER, binder.settings))] if rest else []
        if len(rest) > 1:
            value, default = choices.unified(binder, [value, rest[1]], name)
            offset.append(default)
        inner = call(type_of(value), name, value, *offset)
    elif name == "nth_value":
        inner = call(type_of(value), name, value, _folded(convert(rest[0], INTEGER, binder.settings)))
    else:
        inner = call(type_of(value), name, value)
    if ignore_nulls:
        inner = typed(exp.IgnoreNulls(this=inner), type_of(inner))
    return over(inner)


_ARITHMETIC = {"try_add": operator.add, "try_subtract": operator.sub, "try_multiply": operator.mul}


def _folded(node: exp.Expr) -> exp.Expr:
    """Arithmetic of whole numbers as its result: Spark wants a constant here, and takes none that may fail for one."""
    number = _whole(node)
    return node if number is None else integer(number, type_of(node))


def _whole(node: exp.Expr) -> int | None:
    match node:
        case exp.Literal(is_string=False) if node.name.isdecimal():
            return int(node.name)
        case exp.Paren() | exp.Cast():
            return _whole(node.this)
        case exp.Neg():
            inner = _whole(node.this)
            return None if inner is None else -inner
        case exp.Anonymous() if str(node.this) in _ARITHMETIC:
            left, right = (_whole(each) for each in node.expressions)
            return None if left is None or right is None else int(_ARITHMETIC[str(node.this)](left, right))
        case _:
            return None


def _window_parts(
    binder: Binder, node: exp.Window, inside: Binder
) -> tuple[list[exp.Expr], list[exp.Expr], exp.WindowSpec | None]:
    named = node.args.get("alias")
    partition_by = list(node.args.get("partition_by") or ())
    order_by = node.args.get("order")
    spec = node.args.get("spec")
    while named is not None:  # a named window may be built on another
        base = binder.surroundings.window(named.name)
        if base is None:
            raise UndefinedObject(f'window "{named.name}" does not exist', position=place_of(named))
        if partition_by:
            raise WindowingError(f'cannot override PARTITION BY clause of window "{named.name}"')
        if order_by is not None and base.args.get("order") is not None:
            raise WindowingError(f'cannot override ORDER BY clause of window "{named.name}"')
        if base.args.get("spec") is not None and (order_by is not None or spec is not None):
            raise WindowingError(f'cannot copy window "{named.name}" because it has a frame clause')
        named = base.args.get("alias")
        partition_by = list(base.args.get("partition_by") or ())
        order_by = order_by or base.args.get("order")
        spec = spec or base.args.get("spec")
    if order_by is not None and order_by.args.get("session_gap") is not None:
        spec = exp.WindowSpec(kind=frames.SESSION, start=order_by.args["session_gap"], end="CURRENT ROW")
    partition = [sort_key(settle(inside.bind(item), binder.settings)) for item in partition_by]
    order = [inside.ordered(item) for item in (order_by.expressions if order_by else ())]
    if spec is None:
        return partition, order, None
    frame = _frame(binder, spec, inside)
    offsets = any(isinstance(frame.args.get(side), exp.Expr) for side in ("start", "end"))
    if offsets and frame.args["kind"] == "RANGE" and len(order) != 1:
        raise WindowingError("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
    if offsets and frame.args["kind"] == "RANGE" and type_of(order[0].this).kind in _WITHOUT_DISTANCE:
        type_ = type_of(order[0].this)
        raise FeatureNotSupported(f"RANGE with offset PRECEDING/FOLLOWING is not supported for column type {type_}")
    if frame.args["kind"] == "GROUPS" and not order:
        raise WindowingError("GROUPS mode requires an ORDER BY clause")
    if any(isinstance(bound, exp.Expr) and bound.meta.get(_MICROS) for bound in frame.args.values()):
        order = [_in_micros(order)]
    return partition, order, frame


def _is_empty(spec: exp.WindowSpec) -> bool:
    """Whether the frame ends before it begins, as `BETWEEN 1 PRECEDING AND 2 PRECEDING` does."""
    side = spec.args.get("start_side")
    bounds = [spec.args.get(each) for each in ("start", "end")]
    start, end = (_whole(each) if isinstance(each, exp.Expr) else None for each in bounds)
    if start is None or end is None or side != spec.args.get("end_side"):
        return False
    return start < end if side == "PRECEDING" else start > end


def _in_micros(order: Sequence[exp.Expr]) -> exp.Expr:
    """The one moment that a frame of time is ordered by, in the unit of its bounds."""
    if len(order) != 1:
        raise WindowingError("RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
    key = order[0].copy()
    moment = key.this
    is_time = type_of(moment).kind is Kind.TIME
    key.set("this", typed(moment, BIGINT) if is_time else micros_of(moment))
    return key


def _frame(binder: Binder, spec: exp.WindowSpec, inside: Binder) -> exp.WindowSpec:
    kind = str(spec.args.get("kind") or "").upper()
    _check_bounds(spec)
    made = exp.WindowSpec(kind=kind, exclude=spec.args.get("exclude"))
    for side in ("start", "end"):
        bound = spec.args.get(side)
        if isinstance(bound, exp.Expr):
            bound = _frame_bound(binder, _without_columns(inside.bind(bound), kind))
        made.set(side, bound.upper() if isinstance(bound, str) else bound)
        direction = spec.args.get(f"{side}_side")
        made.set(f"{side}_side", direction.upper() if direction else None)
    if made.args.get("end") is None:
        made.set("end", "CURRENT ROW")
    return made


def _check_bounds(spec: exp.WindowSpec) -> None:
    """Refuses a frame that begins after it ends, whatever the rows are."""
    (start, begins), (end, ends) = ((spec.args.get(s), (spec.args.get(f"{s}_side") or "").upper()) for s in _SIDES)
    if start == "UNBOUNDED" and begins == "FOLLOWING":
        raise WindowingError("frame start cannot be UNBOUNDED FOLLOWING", position=_place_of(start))
    if end == "UNBOUNDED" and ends == "PRECEDING":
        raise WindowingError("frame end cannot be UNBOUNDED PRECEDING", position=_place_of(end))
    if start == "CURRENT ROW" and ends == "PRECEDING":
        raise WindowingError("frame starting from current row cannot have preceding rows", position=_place_of(end))
    if begins == "FOLLOWING" and end is None:
        message = "frame starting from following row cannot end with current row"
        raise WindowingError(message, position=_place_of(start))
    if begins == "FOLLOWING" and (ends == "PRECEDING" or end == "CURRENT ROW"):
        raise WindowingError("frame starting from following row cannot have preceding rows", position=_place_of(end))


def _place_of(bound: exp.Expr | str | None) -> int | None:
    return begin_of(bound) if isinstance(bound, exp.Expr) else place_of(bound)


def _without_columns(bound: exp.Expr, kind: str) -> exp.Expr:
    column = bound.find(exp.Column)
    if column is not None:
        message = f"argument of {kind} must not contain variables"
        raise InvalidColumnReference(message, position=place_of(column))
    return bound


def _frame_bound(binder: Binder, node: exp.Expr) -> exp.Expr:
    constant = interval_constant(node)
    if constant is None:
        return convert(node, INTEGER, binder.settings) if is_unknown(node) else _folded(node)
    if constant[0]:
        raise FeatureNotSupported("a window frame in months is not supported", hint="Write the frame in days.")
    made = bigint(constant[1] * MICROS_PER_DAY + constant[2])
    made.meta[_MICROS] = True
    return made


def _replaced(node: exp.Expr, over: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The expression with each aggregate in it put over the window."""
    if node.meta.get(AGGREGATE):
        bare = node.copy()
        bare.meta.pop(AGGREGATE)
        return over(bare)

    def put(inner: exp.Expr) -> exp.Expr:
        if inner.meta.get(AGGREGATE):
            bare = inner.copy()
            bare.meta.pop(AGGREGATE)
            return over(bare)
        return inner

    return node.transform(put)
