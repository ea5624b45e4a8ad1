"""Conditions on the clock: where they may stand in a query, and where they stand in its plan.

A condition that compares a value of a row with a moment that moves, as in `at > now() - INTERVAL '1 hour'`, is a
bound. Bounds in WHERE, HAVING and in the conditions of inner joins become a TemporalFilter right above the input that
they speak of, so that a row that comes or goes with time is found in storage by its value. A bound over several inputs
of a join filters the joined rows, which are stored then. Everywhere else the clock has no rule.

Views live in UTC. So a difference of hours or days, and the step between a timestamp with and without a zone, move from
the row's side to the clock's: what is left on the row's side is a column where it can be, which storage finds rows by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.errors import FeatureNotSupported
from seiche.plan.algebra import (
    Aggregate,
    ChangeLog,
    ClockBound,
    Closing,
    Field,
    Item,
    Keyed,
    Plan,
    Recompute,
    Recursion,
    Scan,
    Select,
    TemporalFilter,
    TopN,
    UnionAll,
    columns_in,
    field_of,
    input_column,
    input_index,
    make_select,
    own_column,
    reads_clock,
    rewrite_columns,
)
from seiche.plan.reasons import NotIncremental
from seiche.plan.rows import type_of
from seiche.plan.subqueries import holds_subquery
from seiche.sql.attempts import is_attempt
from seiche.sql.invocations import NOW
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import conjuncts, kind_of
from seiche.types import Kind, SqlType

MICROS = {"MICROSECOND": 1, "DAY": 86_400_000_000}

_COMPARISONS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.EQ: ("=", "="),
}
_MOMENTS = (Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.DATE)


def check_clock(ast: exp.Select, *, reads_rows: bool) -> None:
    """Raises NotIncremental when a query block reads the clock anywhere but in bounds.

    One that reads rows and shows, groups or sorts by the clock would have every row changed at every barrier. It is
    refused.
    """
    conditions: list[exp.Expr] = []
    for name in ("where", "having"):
        if ast.args.get(name) is not None:
            conditions += conjuncts(ast.args[name].this)
    for join in ast.args.get("joins") or ():
        on = join.args.get("on")
        if on is not None and not join.side:
            conditions += conjuncts(on)
        elif on is not None and reads_clock(on):
            raise NotIncremental("time", "The condition of an outer join reads the clock.")
    others = [value for name, value in ast.args.items() if name not in ("from_", "from", "joins", "where", "having")]
    if any(reads_clock(each) for each in _expressions(others)):
        if reads_rows:
            raise FeatureNotSupported(
                "now() can be used in a materialized view only in WHERE, HAVING, ON and FROM",
                detail="Elsewhere it would change every row of the view at every barrier.",
                hint="proctime() tells when a row came. What depends on the present, compute in the query that reads "
                "the view.",
            )
        raise NotIncremental("time", "The query reads the clock with now() outside of a condition.")
    for each in conditions:
        if reads_clock(each) and (holds_subquery(each) or _sides(each) is None):
            raise NotIncremental("time", "A condition does not compare a value of a row with the clock.")


def _expressions(values: Iterable[object]) -> list[exp.Expr]:
    listed = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [each for each in listed if isinstance(each, exp.Expr)]


def _sides(condition: exp.Expr) -> tuple[exp.Expr, str, exp.Expr] | None:
    """The row's side, the comparison and the clock's side of a condition, if it is a bound on a moment."""
    inner = condition.unnest()
    words = _COMPARISONS.get(type(inner))
    if words is None or not isinstance(inner, exp.Binary):
        return None
    left, right = inner.left.unnest(), inner.right.unnest()
    value, word, bound = (left, words[0], right) if reads_clock(right) else (right, words[1], left)
    if reads_clock(value) or any(columns_in(bound)):
        return None
    known = bound.meta.get("sql_type")
    return (value, word, bound) if isinstance(known, SqlType) and known.kind in _MOMENTS else None


def place(plan: Plan) -> Plan:
    """The plan with bounds taken out of its joins and put above the inputs that they speak of."""
    match plan:
        case Scan() | ChangeLog() | Recompute():
            return plan
        case UnionAll() | Keyed():
            return replace(plan, inputs=tuple(place(child) for child in plan.inputs))
        case Aggregate() | TopN() | TemporalFilter() | Closing():
            return replace(plan, input=place(plan.input))
        case Recursion():
            return replace(plan, base=place(plan.base), step=place(plan.step))
        case Select():
            return _placed(plan)


def _placed(select: Select) -> Select:
    bounds = [each for each in select.conjuncts if reads_clock(each)]
    own: dict[int, list[exp.Expr]] = {}
    joined: list[exp.Expr] = []
    for each in bounds:
        mentioned = {input_index(column) for column in columns_in(each)} or {0}
        if len(mentioned) == 1:
            own.setdefault(mentioned.pop(), []).append(each)
        else:
            joined.append(each)
    inputs = tuple(
        _filtered(child, own[index]) if index in own else place(child) for index, child in enumerate(select.inputs)
    )
    rest = tuple(each for each in select.conjuncts if each not in bounds)
    plain = replace(select, inputs=inputs, conjuncts=rest)
    return _over_join(plain, joined) if joined else plain


def _filtered(child: Plan, conditions: Sequence[exp.Expr]) -> Plan:
    """An input with conditions on it; in a union each branch has its own."""
    if isinstance(child, UnionAll) and all(isinstance(branch, Select) for branch in child.inputs):
        branches = [_below(branch, conditions) for branch in child.inputs if isinstance(branch, Select)]
        return replace(child, inputs=tuple(place(branch) for branch in branches))

    def own(column: exp.Column) -> exp.Expr:
        return _typed(own_column(column.name), field_of(child, column.name).type)

    return TemporalFilter(place(child), tuple(_bound(rewrite_columns(each, own)) for each in conditions))


def _below(branch: Select, conditions: Sequence[exp.Expr]) -> Select:
    """A Select with conditions on what it gives."""
    items = {item.field.name: item for item in branch.items}

    def meant(column: exp.Column) -> exp.Expr:
        item = items[column.name]
        return _typed(exp.paren(item.expr.copy(), copy=False), item.field.type)

    return replace(branch, conjuncts=(*branch.conjuncts, *(rewrite_columns(each, meant) for each in conditions)))


def _over_join(select: Select, conditions: Sequence[exp.Expr]) -> Select:
    """Conditions on values from several inputs: the join shows these values too, and its rows are filtered."""
    items, bounds = list(select.items), []
    for number, condition in enumerate(conditions):
        sides = _sides(condition)
        assert sides is not None
        value, word, bound = sides
        field = Field(f"_t{number}", type_of(value), hidden=True)
        items.append(Item(field, value))
        bounds.append(ClockBound(_typed(own_column(field.name), field.type), word, bound))
    rows = TemporalFilter(replace(select, items=tuple(items)), tuple(bounds))
    shown = [Item(item.field, input_column(0, item.field.name)) for item in select.items]
    return make_select([rows], [], shown)


def _bound(condition: exp.Expr) -> ClockBound:
    """The bound with everything but a column moved to the clock's side, as far as that changes nothing."""
    sides = _sides(condition)
    assert sides is not None
    value, word, bound = sides
    while True:
        added = _added(value)
        if added is not None:
            unit, amount, inner = added
            type_ = type_of(bound)
            moved = exp.Anonymous(this="timestampadd", expressions=[exp.var(unit), _number(-amount), bound])
            value, bound = inner, _typed(moved, type_)
            continue
        if isinstance(value, exp.Cast) and _is_zone_only(value):
            type_ = type_of(value.this)
            value, bound = value.this.unnest(), _typed(exp.cast(bound, type_.spark, dialect="spark"), type_)
            continue
        return ClockBound(value, word, bound)


def shift_micros(bound: exp.Expr) -> int | None:
    """How far a bound is from the clock, in microseconds, where that is always the same."""
    inner = bound.unnest()
    if isinstance(inner, exp.Anonymous) and str(inner.this).lower() == NOW:
        return 0
    if isinstance(inner, exp.Cast) and _is_zone_only(inner):
        return shift_micros(inner.this)
    added = _added(inner)
    if added is None:
        return None
    unit, amount, below = added
    shift = shift_micros(below)
    return None if shift is None else shift + amount * MICROS[unit]


def bound_text(bound: exp.Expr) -> str:
    """A bound as EXPLAIN shows it."""
    shift = shift_micros(bound)
    if shift is None:
        return bound.sql("spark").replace(f"{NOW.upper()}()", "now()")
    if not shift:
        return "now()"
    seconds, micros = divmod(abs(shift), 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}" + (f".{micros:06}" if micros else "")
    parts = [f"{days} day{'s' if days > 1 else ''}"] if days else []
    parts += [clock] if seconds or micros else []
    return f"now() {'-' if shift < 0 else '+'} '{' '.join(parts)}'"


def _added(node: exp.Expr) -> tuple[str, int, exp.Expr] | None:
    """A fixed time added to a timestamp: its unit, how many, and the timestamp."""
    if is_attempt(node):  # a sum beyond the calendar, which is NULL, is compared all the same once the clock is moved
        return _added(node.expressions[0])
    if not isinstance(node, exp.Anonymous) or str(node.this).lower() != "timestampadd":
        return None
    unit, amount, moment = node.expressions
    number = constant_integer(amount)
    is_timestamp = kind_of(moment) in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
    return (unit.name, number, moment.unnest()) if number is not None and unit.name in MICROS and is_timestamp else None


def _number(value: int) -> exp.Expr:
    literal: exp.Expr = exp.Literal.number(abs(value))
    return exp.cast(exp.Neg(this=literal) if value < 0 else literal, "bigint")


def _is_zone_only(cast: exp.Cast) -> bool:
    """Whether a cast only puts a timestamp into the views' zone or takes it out of it."""
    kinds = {kind_of(cast), kind_of(cast.this)}
    return kinds == {Kind.TIMESTAMP, Kind.TIMESTAMPTZ}


def _typed(node: exp.Expr, type_: SqlType) -> exp.Expr:
    node.meta["sql_type"] = type_
    return node


__all__ = ["bound_text", "check_clock", "place", "shift_micros"]
