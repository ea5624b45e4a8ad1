"""Outer, semi and anti joins: the values of the join columns that changed are joined anew.

All of them are one query over two or more inputs that falls apart by the columns that its equalities tie together. A
condition without an equality does not fall apart by itself. The values that it reads of one side then become a relation
of their own, which is joined with the other side by the condition: that is an inner join, and the result is tied to the
first side by those values (`across`). A condition that reads one side alone, or none, is met by all rows of the other
or by no row. Then, and for a FULL join without an equality, joined rows and rows without a partner are united.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from seiche.plan.algebra import (
    Field,
    Item,
    Plan,
    Reason,
    Scan,
    Select,
    input_column,
    make_select,
    make_union,
    plain,
)
from seiche.plan.grouping import distinct, group
from seiche.plan.keyed import Body, keyed, table
from seiche.plan.rows import Rows, conjunction, distinct_parts, equality, over, side_by_side, type_of
from seiche.sql.nodes import conjuncts
from seiche.types import BOOLEAN, Kind, SqlType, numeric


@dataclass(slots=True)
class Tied:
    """The equalities of a condition between two sides, as pairs, and all other conjuncts."""

    pairs: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)
    others: list[exp.Expr] = field(default_factory=list)
    null_safe: set[tuple[exp.Expr, exp.Expr]] = field(default_factory=set)

    @property
    def left(self) -> tuple[exp.Expr, ...]:
        return tuple(pair[0] for pair in self.pairs)

    @property
    def right(self) -> tuple[exp.Expr, ...]:
        return tuple(pair[1] for pair in self.pairs)

    def add(self, pair: tuple[exp.Expr, exp.Expr]) -> bool:
        """Ties the pair, unless one of the two is tied to something else already; whether it did."""
        if pair[0] in self.left or pair[1] in self.right:
            return False
        self.pairs.append(pair)
        return True

    @property
    def conditions(self) -> list[exp.Expr]:
        """All of it as conditions in the words of the query."""
        return [*(self.equal(pair, pair[0].copy(), pair[1].copy()) for pair in self.pairs), *self.others]

    def equal(self, pair: tuple[exp.Expr, exp.Expr], mine: exp.Expr, other: exp.Expr) -> exp.Expr:
        """The equality of a pair, with its sides as they are called elsewhere."""
        kind = exp.NullSafeEQ if pair in self.null_safe else exp.EQ
        made: exp.Expr = kind(this=mine, expression=other)
        made.meta["sql_type"] = BOOLEAN
        return made


def tie(conditions: Sequence[exp.Expr], left: Rows, right: Rows) -> Tied:
    """Parts conditions into equalities of a value of the left with one of the right, and the rest."""
    found = Tied()
    for condition in conditions:
        sides = equality(condition)
        pair = None
        if sides is not None and common_type(type_of(sides[0]), type_of(sides[1])) is not None:
            for mine, other in (sides, sides[::-1]):
                if _only(mine, left, right) and _only(other, right, left):
                    pair = (mine, other)
        if pair is None or not found.add(pair):
            found.others.append(condition)
        elif isinstance(condition.unnest(), exp.NullSafeEQ):
            found.null_safe.add(pair)
    return found


def common_type(a: SqlType, b: SqlType) -> SqlType | None:
    """The type that holds all values of both; None when values of the two are not simply compared."""
    if a.bare == b.bare:
        return a.bare
    if a.kind is not Kind.NUMERIC or b.kind is not Kind.NUMERIC:
        return None
    scale = max(a.scale, b.scale)
    digits = max(a.precision - a.scale, b.precision - b.scale)
    return numeric(digits + scale, scale) if digits + scale <= 38 else None


def _only(node: exp.Expr, side: Rows, other: Rows) -> bool:
    return side.covers(node) and side.touches(node) and not other.touches(node)


def across(rows: Rows, inner: Rows, conditions: Sequence[exp.Expr]) -> tuple[Rows, Tied]:
    """The inner rows that meet conditions with values of `rows`, for each of those values, and how they are tied.

    The values are kept each once, unless they tell the rows apart anyway.
    """
    outer = rows.used_by(conditions)
    values, tied = domain(rows, outer)
    met = inner.copy()
    index = len(met.inputs)
    met.inputs.append(values)
    fields = [each for each in values.fields if not each.hidden]
    inside = Rows(met.inputs, [], dict(inner.known))
    for (mine, made), its in zip(tied.pairs, fields, strict=True):
        inside.known[mine] = met.known[made] = input_column(index, its.name)
    met.conjuncts += [inside.resolve(each) for each in conditions]
    return met, tied


def domain(rows: Rows, nodes: Sequence[exp.Expr]) -> tuple[Plan, Tied]:
    """The values that parts of the query have in the rows, each once, and columns made up for them."""
    source, fields = rows.plan(nodes)
    known = {each.name for each in fields.values()}
    values = source if known.issuperset(source.key) else plain(distinct(source))
    tied = Tied()
    for node in nodes:
        made = exp.column(fields[node].name, table=f"values of {node.sql('spark')}", quoted=True)
        made.meta["sql_type"] = type_of(node)
        pair = (node, made)
        tied.pairs.append(pair)
        if not never_null(source, fields[node].name):
            tied.null_safe.add(pair)
    return values, tied


def outer_join(side: str, left: Rows, right: Rows, on: exp.Expr, remaining: Sequence[exp.Expr]) -> Rows:
    """A LEFT, RIGHT or FULL join; afterwards what `remaining` asks of both sides is known."""
    conditions = [each for each in conjuncts(on) if not (isinstance(each, exp.Boolean) and each.this)]
    if side == "LEFT":  # what concerns the inner side alone can go below the join
        own = [each for each in conditions if _only(each, right, left)]
        for each in own:
            right.filter(each)
        conditions = [each for each in conditions if each not in own]
    tied = tie(conditions, left, right)
    if not tied.pairs:
        return _untied(side, left, right, conditions, remaining)
    asked = [*remaining, *conditions]
    plans = [rows.plan([*keys, *rows.used_by(asked)]) for rows, keys in ((left, tied.left), (right, tied.right))]
    present = side == "FULL"
    if present:
        plans = [(_with_presence(plan), fields) for plan, fields in plans]
    body, known = Body(), dict[exp.Expr, Field]()
    inside = Rows()
    for index, (plan, fields) in enumerate(plans):
        inside.add_input(plan, fields)
        for node, its in fields.items():
            known[node] = body.add(its.name, its, input_column(index, its.name))
    if present:
        for node in _merged(tied, remaining):
            known[node] = body.add("value", Field("", type_of(node)), inside.resolve(node))
    key: list[str] = []
    for index, (plan, _) in enumerate(plans):
        key += body.carry(index, plan, plan.key, "k")
    partition = _partition(side, body, [fields for _, fields in plans], tied)
    condition = conjunction([inside.resolve(each) for each in conditions]) if conditions else exp.true()
    join = exp.Join(this=table(1), side=side, on=condition)
    query = body.select().from_(table(0), copy=False)
    query.set("joins", [join])
    joined = keyed(
        f"{side.capitalize()} join",
        [plan for plan, _ in plans],
        [
            [fields[each].name for each in keys]
            for (_, fields), keys in zip(plans, (tied.left, tied.right), strict=True)
        ],
        query,
        body.columns,
        partition=partition,
        key=key,
        shown=[("on", condition)],
    )
    return over(joined, known)


def _untied(side: str, left: Rows, right: Rows, conditions: Sequence[exp.Expr], remaining: Sequence[exp.Expr]) -> Rows:
    """An outer join whose condition has no equality between its sides."""
    on = conjunction(conditions) if conditions else exp.true()
    if side == "RIGHT":
        return outer_join("LEFT", right, left, on, remaining)
    wanted = [*left.used_by(remaining), *right.used_by(remaining)]
    if side == "FULL":
        alone = _alone(right, left, conditions, remaining)
        return _united([outer_join("LEFT", left, right, on, remaining), *alone], wanted)
    if not (left.used_by(conditions) and right.used_by(conditions)):
        alone = _alone(left, right, conditions, remaining)
        joined = side_by_side(left, right)
        for each in conditions:
            joined.filter(each)
        return _united([joined, *alone], wanted)
    met, tied = across(left, right, conditions)
    found = outer_join(side, left, met, conjunction(tied.conditions), remaining)
    for made in tied.right:  # nobody else asks for them, and another join may make the same ones up
        found.known.pop(made, None)
    return found


def _alone(rows: Rows, other: Rows, conditions: Sequence[exp.Expr], remaining: Sequence[exp.Expr]) -> list[Rows]:
    """The rows that have no partner in the other ones, in one part or in several."""
    if rows.used_by(conditions) and other.used_by(conditions):
        met, tied = across(rows, other, conditions)
        return [probe(rows, [Probe(anti=True, inner=met, tied=tied)], remaining)]
    met, partners = rows.copy(), other.copy()
    decides = bool(rows.used_by(conditions))
    for each in conditions:
        (met if decides else partners).filter(each)
    count = exp.Count(this=exp.Star())
    none = side_by_side(met, group(partners, [], [count]))
    none.filter(exp.EQ(this=count, expression=exp.Literal.number(0)))
    if not decides:
        return [none]
    unmet = rows.copy()
    holds = conjunction([each.copy() for each in conditions])
    unmet.filter(exp.not_(exp.Coalesce(this=holds, expressions=[exp.false()]), copy=False))
    return [none, unmet]


def _united(parts: Sequence[Rows], wanted: Sequence[exp.Expr]) -> Rows:
    """All rows of several parts; what one of them does not know is NULL in its rows."""
    plans = []
    for rows in parts:
        for node in wanted:
            if node not in rows.known:
                rows.known[node] = exp.cast(exp.null(), type_of(node).spark, dialect="spark")
        plans.append(rows.plan(wanted))
    return over(make_union([plan for plan, _ in plans]), plans[0][1])


def _merged(tied: Tied, remaining: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The columns of USING, of both sides of a FULL join, that others ask for as one.

    Known as one, the next join in a row of them needs nothing of the two.
    """
    wanted = {exp.Coalesce(this=mine.copy(), expressions=[other.copy()]) for mine, other in tied.pairs}
    return [node for node in distinct_parts(remaining) if node in wanted]


def _with_presence(plan: Plan) -> Plan:
    """The plan with a hidden column that is true, and part of its key: the other side of a FULL join has NULL there."""
    name, taken = "_present", {field.name for field in plan.fields}
    while name in taken:  # a side that is a FULL join itself has one already
        name += "_"
    mark = Field(name, BOOLEAN, hidden=True)
    if isinstance(plan, Select):
        return replace(plan, items=(*plan.items, Item(mark, exp.true())), key=(*plan.key, mark.name))
    kept = [Item(each, input_column(0, each.name)) for each in plan.fields]
    made = make_select([plan], [], kept)
    return replace(made, items=(*made.items, Item(mark, exp.true())), key=(*made.key, mark.name))


def _partition(side: str, body: Body, fields: Sequence[dict[exp.Expr, Field]], tied: Tied) -> list[str]:
    """The columns that carry the join columns, also for rows without a partner."""
    found = []
    for number, (mine, other) in enumerate(tied.pairs):
        left, right = input_column(0, fields[0][mine].name), input_column(1, fields[1][other].name)
        value: exp.Expr = left
        if side == "RIGHT":
            value = right
        elif side == "FULL":
            value = exp.Coalesce(this=left, expressions=[right])
        shown = next((item.field.name for item in body.items if item.expr == value), None)
        if shown is None:
            type_ = common_type(fields[0][mine].type, fields[1][other].type)
            shown = body.add(f"_p{number}", Field("", type_ or fields[0][mine].type), value, hidden=True).name
        found.append(shown)
    return found


# --- semi and anti joins -----------------------------------------------------------------------------


@dataclass(slots=True)
class Probe:
    """One EXISTS or IN: the rows to look in, how they are tied to the outer rows, and what else must hold."""

    anti: bool
    inner: Rows
    tied: Tied


def probe(rows: Rows, probes: Sequence[Probe], remaining: Sequence[exp.Expr]) -> Rows:
    """The rows that have a partner, or none, for each probe; all probes are tied to the same values of the rows."""
    others = [each for one in probes for each in one.tied.others]
    outer = probes[0].tied.left
    source, fields = rows.plan([*outer, *rows.used_by([*remaining, *others])])
    body = Body()
    known = {node: body.add(each.name, each, input_column(0, each.name)) for node, each in fields.items()}
    key = body.carry(0, source, source.key, "k")
    inputs, keys = [source], [[fields[each].name for each in outer]]
    joins, shown = [], []
    for number, one in enumerate(probes, start=1):
        looked_in, found = one.inner.plan([*one.tied.right, *one.inner.used_by(one.tied.others)])
        if not one.tied.others and not {found[each].name for each in one.tied.right}.issuperset(looked_in.key[:1]):
            # Looked up by something else than its key: which values there are is kept, with how often.
            looked_in = plain(distinct(looked_in))
        inputs.append(looked_in)
        keys.append([found[each].name for each in one.tied.right])
        inside = Rows()
        inside.add_input(source, fields)
        for node, its in found.items():
            inside.known[node] = input_column(number, its.name)
        equal = [
            one.tied.equal(pair, input_column(0, mine), input_column(number, other))
            for pair, mine, other in zip(one.tied.pairs, keys[0], keys[-1], strict=True)
        ]
        condition = conjunction([*equal, *(inside.resolve(each) for each in one.tied.others)])
        kind = "ANTI" if one.anti else "SEMI"
        joins.append(exp.Join(this=table(number), side="LEFT", kind=kind, on=condition))
        shown.append((f"{kind.lower()} join on", condition))
    query = body.select().from_(table(0), copy=False)
    query.set("joins", joins)
    titles = {True: "Anti join", False: "Semi join"}
    joined = keyed(
        titles[probes[0].anti] if len({one.anti for one in probes}) == 1 else "Semi and anti join",
        inputs,
        keys,
        query,
        body.columns,
        partition=[known[each].name for each in outer],
        key=key,
        shown=shown,
        reason=None if outer else Reason("subquery", "The subquery is tied to the outer rows by no equality."),
    )
    return over(joined, known)


def never_null(plan: Plan, name: str) -> bool:
    """Whether a field is known to hold a value in every row."""
    match plan:
        case Scan():
            return not plan.schema.column(name).nullable
        case Select():
            expr = next(item.expr for item in plan.items if item.field.name == name).unnest()
            return isinstance(expr, exp.Column) and never_null(plan.inputs[int(expr.table[1:])], expr.name)
        case _:
            return False
