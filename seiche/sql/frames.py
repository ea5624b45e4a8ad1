"""Window frames that Spark does not have: GROUPS, SESSION, and EXCLUDE.

The rows of the frame are collected as an array, what is excluded is taken out, and the function is computed over what
is left. That costs the length of the frame for each row. For GROUPS the array is the whole partition, of which the
groups around the row's own are kept; for SESSION too, of which the rows are kept that no gap parts from the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidParameter, SyntaxError_
from seiche.sql.casts import convert, settle
from seiche.sql.functions.registry import undefined
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import (
    Settings,
    binary,
    boolean,
    call,
    case,
    comparison,
    conjunction,
    integer,
    lambda_,
    let,
    spark_cast,
    text,
    type_of,
    typed,
    variable,
)
from seiche.sql.operators import decimal_quotient
from seiche.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, REAL, VARCHAR, Kind, SqlType, array_of, numeric, struct_of

Over = Callable[[exp.Expr, "exp.WindowSpec | None"], exp.Expr]
_WHOLE = {"kind": "ROWS", "start": "UNBOUNDED", "start_side": "PRECEDING", "end": "UNBOUNDED", "end_side": "FOLLOWING"}


@dataclass(frozen=True, slots=True)
class FramedCall:
    """A call over a frame. `keys` are what the window is ordered by, `frame` is without EXCLUDE."""

    name: str
    arguments: list[exp.Expr]
    star: bool
    condition: exp.Expr | None
    keys: Sequence[exp.Expr]
    frame: exp.WindowSpec
    exclude: str  # "", CURRENT ROW, GROUP, TIES


SESSION = "SESSION"
SESSION_GAP = "session_gap"  # on the window that lists a partition for a session: the gap, in units of the order
_OF_PARTITION = ("GROUPS", SESSION)


def is_special(frame: exp.WindowSpec | None) -> bool:
    return frame is not None and (str(frame.args.get("kind")).upper() in _OF_PARTITION or excluded(frame) != "")


def excluded(frame: exp.WindowSpec) -> str:
    exclude = frame.args.get("exclude")
    word = exclude.name.upper() if isinstance(exclude, exp.Expr) else ""
    return "" if word == "NO OTHERS" else word


def framed(made: FramedCall, over: Over, settings: Settings) -> exp.Expr:
    value = settle(made.arguments[0], settings) if made.arguments else integer(1)
    type_ = type_of(value)
    key = _struct([("one", integer(1))] if not made.keys else [(f"k{i}", k) for i, k in enumerate(made.keys)])
    condition = boolean(True) if made.condition is None else made.condition
    kind = str(made.frame.args.get("kind")).upper()
    gap = made.frame.args["start"] if kind == SESSION else None  # told, so that windows of different gaps differ
    row = _struct([("k", key), ("v", value), ("f", condition), *([("g", gap.copy())] if gap is not None else [])])
    by_groups = kind == "GROUPS"
    if kind == SESSION and len(made.keys) != 1:
        raise SyntaxError_("SESSION WITH GAP requires exactly one ORDER BY column")
    keys = [(f"k{i}", type_of(each)) for i, each in enumerate(made.keys)] or [("one", INTEGER)]
    gap_type = [("g", type_of(gap))] if gap is not None else []
    row_type = struct_of(("k", struct_of(*keys)), ("v", type_), ("f", BOOLEAN), *gap_type)
    rows = typed(exp.Anonymous(this="array_agg", expressions=[row]), array_of(row_type))
    listed = over(rows, exp.WindowSpec(**_WHOLE) if kind in _OF_PARTITION else made.frame)
    if gap is not None:
        listed.meta[SESSION_GAP] = gap.copy()
    parts = [
        ("frame", listed),
        ("k", key.copy()),
        ("v", value.copy()),
    ]
    if by_groups:
        parts.append(("own", over(call(INTEGER, "dense_rank"), None)))
    frame: exp.Expr = _of("w", "frame")
    if by_groups:
        frame = _groups(frame, made.frame)
    if kind == SESSION:
        frame = _session(frame, made.frame.args["start"])
    frame = _left(frame, made)
    kept = exp.Anonymous(this="filter", expressions=[frame, lambda_(_of("x", "f"), "x")])
    values = call(array_of(type_), "transform", kept, lambda_(_of("x", "v"), "x"))
    body = _computed(made, variable("listed", array_of(type_)), type_, settings)
    return let("w", typed(_struct(parts), type_), type_of(body), let("listed", values, type_of(body), body))


def _struct(fields: Sequence[tuple[str, exp.Expr]]) -> exp.Expr:
    return exp.Anonymous(
        this="named_struct", expressions=[part for name, node in fields for part in (text(name), node)]
    )


def _of(name: str, field: str) -> exp.Expr:
    return exp.Dot(this=exp.column(name), expression=exp.to_identifier(field))


def _groups(rows: exp.Expr, frame: exp.WindowSpec) -> exp.Expr:
    """The rows whose group is as far from the row's own as the frame says."""
    keys = exp.Anonymous(
        this="array_distinct",
        expressions=[exp.Anonymous(this="transform", expressions=[rows, lambda_(_of("y", "k"), "y")])],
    )
    number = exp.Anonymous(this="array_position", expressions=[exp.column("ks"), _of("x", "k")])
    conditions: list[exp.Expr] = []
    for side, kind in (("start", exp.GTE), ("end", exp.LTE)):
        bound, direction = frame.args.get(side), frame.args.get(f"{side}_side")
        if bound == "UNBOUNDED":
            continue
        distance = 0 if bound == "CURRENT ROW" or bound is None else _distance(bound)
        edge = exp.Add if direction == "FOLLOWING" else exp.Sub
        limit = exp.Paren(this=edge(this=_of("w", "own"), expression=integer(distance)))
        conditions.append(kind(this=number.copy(), expression=limit))
    inside = conjunction(conditions)
    chosen = exp.Anonymous(this="filter", expressions=[rows.copy(), lambda_(inside, "x")])
    listed = exp.Anonymous(
        this="transform", expressions=[exp.Anonymous(this="array", expressions=[keys]), lambda_(chosen, "ks")]
    )
    return exp.Anonymous(this="get", expressions=[listed, integer(0)])


def _session(rows: exp.Expr, gap: exp.Expr) -> exp.Expr:
    """The rows that are reached from the row's own by steps no longer than the gap."""
    own = exp.Dot(this=_of("w", "k"), expression=exp.to_identifier("k0"))
    key = exp.Dot(this=_of("x", "k"), expression=exp.to_identifier("k0"))
    keys = exp.Anonymous(this="transform", expressions=[rows, lambda_(key, "x")])
    reached, other = exp.column("a"), exp.column("b")
    edges = []
    for ascending, further, behind in ((True, exp.GTE, (other, reached)), (False, exp.LTE, (reached, other))):
        listed = exp.Anonymous(this="sort_array", expressions=[keys.copy(), exp.Boolean(this=ascending)])
        step = exp.Anonymous(this="try_subtract", expressions=[each.copy() for each in behind])
        near = conjunction(
            [further(this=other.copy(), expression=own.copy()), exp.LTE(this=step, expression=gap.copy())]
        )
        grown = exp.Anonymous(this="if", expressions=[near, other.copy(), reached.copy()])
        edges.append(exp.Anonymous(this="aggregate", expressions=[listed, own.copy(), lambda_(grown, "a", "b")]))
    last, first = edges
    inside = conjunction(
        [
            exp.GTE(this=key.copy(), expression=_of("s", "first")),
            exp.LTE(this=key.copy(), expression=_of("s", "last")),
        ]
    )
    chosen = exp.Anonymous(this="filter", expressions=[rows.copy(), lambda_(inside, "x")])
    ends = _struct([("first", first), ("last", last)])
    once = exp.Anonymous(
        this="transform", expressions=[exp.Anonymous(this="array", expressions=[ends]), lambda_(chosen, "s")]
    )
    return exp.Anonymous(this="get", expressions=[once, integer(0)])


def _distance(bound: exp.Expr | str) -> int:
    value = constant_integer(bound) if isinstance(bound, exp.Expr) else None
    if value is None or value < 0:
        raise InvalidParameter("frame offset of GROUPS must be a constant that is not negative")
    return value


def _left(rows: exp.Expr, made: FramedCall) -> exp.Expr:
    """The rows without those that are excluded."""
    if not made.exclude:
        return rows
    peer = exp.NullSafeEQ(this=_of("x", "k"), expression=_of("w", "k"))
    if made.exclude == "GROUP":
        return exp.Anonymous(this="filter", expressions=[rows, lambda_(exp.Not(this=exp.Paren(this=peer)), "x")])
    # Rows alike in key and value are interchangeable, so the first of them stands for the row itself.
    inside = _holds_current(made.frame)
    alike = conjunction([exp.NullSafeEQ(this=_of("z", name), expression=_of("w", name)) for name in ("k", "v")])
    marks = exp.Anonymous(this="transform", expressions=[rows, lambda_(alike, "z")])
    place = exp.Anonymous(this="array_position", expressions=[marks, exp.Boolean(this=True)])
    at = exp.EQ(this=exp.Add(this=exp.column("i"), expression=integer(1)), expression=place)
    if made.exclude == "CURRENT ROW":
        if not inside:
            return rows
        return exp.Anonymous(
            this="filter", expressions=[rows.copy(), lambda_(exp.Not(this=exp.Paren(this=at)), "x", "i")]
        )
    stays: exp.Expr = exp.Not(this=exp.Paren(this=peer.copy()))
    if inside:
        stays = exp.Or(this=stays, expression=at)
    return exp.Anonymous(this="filter", expressions=[rows.copy(), lambda_(stays, "x", "i")])


def _holds_current(frame: exp.WindowSpec) -> bool:
    def reaches(side: str, away: str) -> bool:
        bound, direction = frame.args.get(side), frame.args.get(f"{side}_side")
        if bound in ("CURRENT ROW", None) or direction != away:
            return True
        return isinstance(bound, exp.Expr) and constant_integer(bound) == 0

    return reaches("start", "FOLLOWING") and reaches("end", "PRECEDING")


# --- functions over the values that are left ---------------------------------------------------------


def _computed(made: FramedCall, values: exp.Expr, type_: SqlType, settings: Settings) -> exp.Expr:
    present = call(type_of(values), "array_compact", values.copy())
    some = comparison(exp.GT, call(INTEGER, "size", present.copy()), integer(0))
    match made.name:
        case "count":
            return spark_cast(call(INTEGER, "size", values if made.star else present), BIGINT)
        case "sum":
            return case(_sum_type(made, type_), [(some, _sum(present, _sum_type(made, type_)))])
        case "avg":
            return case(_mean_type(type_), [(some, _mean(made, present, type_))])
        case "min" | "max" if type_.kind not in (Kind.INTERVAL, Kind.STRUCT, Kind.JSONB):
            return call(type_, f"array_{made.name}", values)
        case "bool_and" | "every" | "bool_or" if type_.kind is Kind.BOOLEAN:
            test = "exists" if made.name == "bool_or" else "forall"
            return case(BOOLEAN, [(some, call(BOOLEAN, test, present, lambda_(exp.column("b"), "b")))])
        case "array_agg":
            any_row = comparison(exp.GT, call(INTEGER, "size", values.copy()), integer(0))
            return case(array_of(type_), [(any_row, values)])
        case "string_agg" if type_.kind is Kind.VARCHAR and len(made.arguments) == 2:
            separator = convert(made.arguments[1], VARCHAR, settings)
            return case(VARCHAR, [(some, call(VARCHAR, "array_join", present, separator))])
        case "first_value":
            return call(type_, "get", values, integer(0))
        case "last_value":
            last = binary(exp.Sub, INTEGER, call(INTEGER, "size", values.copy()), integer(1))
            return call(type_, "get", values, last)
        case "nth_value" if len(made.arguments) == 2:
            place = convert(made.arguments[1], INTEGER, settings)
            return call(type_, "get", values, binary(exp.Sub, INTEGER, place, integer(1)))
    raise FeatureNotSupported(f"function {made.name} over a frame with GROUPS, SESSION or EXCLUDE is not supported")


def _sum_type(made: FramedCall, type_: SqlType) -> SqlType:
    match type_.kind:
        case Kind.SMALLINT | Kind.INTEGER:
            return BIGINT
        case Kind.BIGINT:
            return numeric(38, 0)
        case Kind.NUMERIC:
            return numeric(38, type_.scale, declared=type_.declared)
        case Kind.REAL | Kind.DOUBLE:
            return type_
    raise undefined(made.name, made.arguments)


def _sum(values: exp.Expr, type_: SqlType) -> exp.Expr:
    wide = DOUBLE if type_ == REAL else type_
    added = spark_cast(exp.Add(this=exp.column("a"), expression=exp.column("b")), wide)
    total = call(wide, "aggregate", values, spark_cast(integer(0), wide), lambda_(added, "a", "b"))
    return spark_cast(total, type_) if type_ == REAL else total


def _mean_type(type_: SqlType) -> SqlType:
    return (
        DOUBLE
        if type_.is_float
        else type_of(decimal_quotient(integer(0, numeric(1, 0)), integer(1, numeric(1, 0)), Settings()))
    )


def _mean(made: FramedCall, values: exp.Expr, type_: SqlType) -> exp.Expr:
    size = call(INTEGER, "size", values.copy())
    total = _sum(values, DOUBLE if type_.is_float else _sum_type(made, type_))
    if type_.is_float:
        return binary(exp.Div, DOUBLE, total, spark_cast(size, DOUBLE))
    exact = numeric(19, 0) if type_of(total) == BIGINT else type_of(total)
    return decimal_quotient(spark_cast(total, exact), spark_cast(size, numeric(19, 0)), Settings())
