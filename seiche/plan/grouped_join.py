"""Groups of a left join, one for each row of its outer side: the inner side is grouped first.

    SELECT s.id, count(a.id)                   SELECT s.id, coalesce(g.n, 0)
    FROM ships s LEFT JOIN arrivals a    ──▶   FROM ships s LEFT JOIN
      ON a.ship_id = s.id                        (SELECT ship_id, count(id) AS n FROM arrivals GROUP BY ship_id) g
    GROUP BY s.id                                ON g.ship_id = s.id

A changed arrival then changes one group, which is found by its key. Joined first, all arrivals of its ship would be
looked up, by a column that is not their key, and joined anew; and every joined row would be stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from seiche.plan.algebra import (
    Call,
    Field,
    Function,
    Item,
    Keyed,
    Plan,
    Scan,
    Select,
    columns_in,
    field_of,
    input_column,
    input_index,
    make_aggregate,
    make_select,
    own_column,
    plain,
    rewrite_columns,
)
from seiche.plan.keyed import Body, keyed, meaning, table, tidy
from seiche.plan.rows import conjunction
from seiche.sql.nodes import conjuncts
from seiche.types import BIGINT, BOOLEAN

# What calls give for an outer row without a partner, of which there is one joined row; others give NULL.
_ALONE = {Function.COUNT_ROWS: 1, Function.COUNT: 0}

_STRICT = (exp.Paren, exp.Cast, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def grouped_first(source: Plan, keys: Sequence[Field], calls: Sequence[Call]) -> Keyed | None:
    """The groups of a left join as a left join with groups: the fields of the keys and of the calls.

    None unless each row of the outer side is a group of its own, the calls are about the inner side alone, and nothing
    but equalities ties the two. An outer side that is filtered may be much smaller than the groups would be.
    """
    if not isinstance(source, Keyed) or source.reason is not None or source.looked_up is not None:
        return None
    pairs = _pairs(source.body)
    if len(source.inputs) != 2 or set(pairs) != set(zip(*source.keys, strict=True)) or not _is_whole(source.inputs[0]):
        return None
    outer, inner = source.inputs
    meant = {each.name: meaning(source.body, each.name) for each in source.columns}
    named = {meant[each.name].name for each in keys if isinstance(meant[each.name], exp.Column)}
    if not all(_is_over(meant[each.name], 0) for each in keys) or not named.issuperset(outer.key):
        return None
    arguments = {call.argument.name: call.argument for call in calls if call.argument is not None}
    if not all(_is_null_with(meant[name], 1) for name in arguments):
        return None
    values = {name: rewrite_columns(meant[name], lambda column: input_column(0, column.name)) for name in arguments}
    joined = [Field(f"j{number}", field_of(inner, theirs).type) for number, (_, theirs) in enumerate(pairs)]
    items = [Item(field, input_column(0, theirs)) for field, (_, theirs) in zip(joined, pairs, strict=True)]
    items += [Item(field, values[name]) for name, field in arguments.items()]
    shown = [Item(each, own_column(each.name)) for each in (*joined, *(call.field for call in calls))]
    groups = plain(make_aggregate(tidy(make_select([inner], [], items)), joined, calls, shown))
    return _joined(outer, groups, [mine for mine, _ in pairs], joined, {each: meant[each.name] for each in keys}, calls)


def _joined(
    outer: Plan,
    groups: Plan,
    mine: Sequence[str],
    theirs: Sequence[Field],
    keys: Mapping[Field, exp.Expr],
    calls: Sequence[Call],
) -> Keyed:
    body = Body()
    for field, value in keys.items():
        body.add(field.name, field, value)
    for call in calls:
        found: exp.Expr = input_column(1, call.field.name)
        found.meta["sql_type"] = call.field.type
        if call.function in _ALONE:
            alone = exp.cast(exp.Literal.number(_ALONE[call.function]), "bigint")
            alone.meta["sql_type"] = BIGINT
            found = exp.Coalesce(this=found, expressions=[alone])
            found.meta["sql_type"] = call.field.type
        body.add(call.field.name, call.field, found)
    key = body.carry(0, outer, outer.key, "k")
    partition = body.carry(0, outer, mine, "p")
    equal = [
        exp.EQ(this=input_column(0, a), expression=input_column(1, b.name)) for a, b in zip(mine, theirs, strict=True)
    ]
    for each in equal:
        each.meta["sql_type"] = BOOLEAN
    condition = conjunction(equal)
    query = body.select().from_(table(0), copy=False)
    query.set("joins", [exp.Join(this=table(1), side="LEFT", on=condition)])
    return keyed(
        "Left join",
        [outer, groups],
        [list(mine), [each.name for each in theirs]],
        query,
        body.columns,
        partition=partition,
        key=key,
        shown=[("on", condition)],
    )


def _pairs(body: exp.Query) -> list[tuple[str, str]]:
    """The fields of the two inputs that a left join sets equal; none where the query is, or asks, anything else."""
    current: exp.Expr = body
    while isinstance(current, exp.Select) and isinstance(current.args["from_"].this, exp.Subquery):
        if _has_more(current, "expressions", "from_"):
            return []
        current = current.args["from_"].this.this
    if not isinstance(current, exp.Select) or _has_more(current, "expressions", "from_", "joins"):
        return []
    joins: list[exp.Join] = current.args.get("joins") or []
    if len(joins) != 1:
        return []
    (join,) = joins
    if join.side.upper() != "LEFT" or join.kind or join.args.get("on") is None:
        return []
    found = []
    for each in conjuncts(join.args["on"]):
        condition = each.unnest()
        if not isinstance(condition, exp.EQ):
            return []
        sides = condition.left.unnest(), condition.right.unnest()
        columns = {input_index(side): side.name for side in sides if isinstance(side, exp.Column)}
        if set(columns) != {0, 1}:
            return []
        found.append((columns[0], columns[1]))
    return found


def _has_more(query: exp.Select, *known: str) -> bool:
    return any(value for name, value in query.args.items() if name not in known)


def _is_whole(plan: Plan) -> bool:
    """Whether it has all rows of a stored relation."""
    if isinstance(plan, Select):
        return len(plan.inputs) == 1 and not plan.conjuncts and _is_whole(plan.inputs[0])
    return isinstance(plan, Scan)


def _is_over(expr: exp.Expr, index: int) -> bool:
    return {input_index(column) for column in columns_in(expr)} == {index}


def _is_null_with(expr: exp.Expr, index: int) -> bool:
    """Whether an expression is about one input alone, and NULL when all columns of that are."""

    def is_strict(node: exp.Expr) -> bool:
        if isinstance(node, exp.Column | exp.Literal | exp.DataType):
            return True
        if not isinstance(node, _STRICT) and not _is_tolerant(node):
            return False
        return all(is_strict(child) for child in node.iter_expressions())

    return _is_over(expr, index) and is_strict(expr)


def _is_tolerant(node: exp.Expr) -> bool:
    """Whether it is an operator that gives NULL instead of failing."""
    names = ("try_add", "try_subtract", "try_multiply")
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in names


__all__ = ["grouped_first"]
