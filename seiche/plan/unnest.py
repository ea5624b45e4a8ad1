"""Arrays whose elements become rows: functions that return rows, and windows that overlap (HOP), are bound so.

An array of few elements that are written down is a union with one branch for each, which is linear. Any other array is
taken apart anew for the rows that changed, whose elements are told apart by their places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.plan.algebra import Field, Item, Plan, Select, UnionAll, input_column, make_union
from seiche.plan.keyed import Body, keyed, table
from seiche.plan.reasons import NotIncremental
from seiche.plan.rows import Rows, over, type_of
from seiche.types import INTEGER, SMALLINT

# Beyond this many branches a union costs more than looking at the rows that changed.
BRANCHES_MAX = 16


def unnest(rows: Rows, inner: exp.Select, alias: str, side: str, remaining: Sequence[exp.Expr]) -> Rows:
    """The rows with the elements of an array that is computed from each; `inner` is (SELECT explode(array) AS item)."""
    shown = inner.expressions[0]
    array = _exploded(shown.unalias())
    if len(inner.expressions) != 1 or inner.args.get("where") or array is None:
        raise NotIncremental("table_function", "A function in FROM gives more than the elements of an array.")
    item = exp.column(shown.alias_or_name, table=alias, quoted=True)
    item.meta["sql_type"] = type_of(shown.unalias())
    written_down = isinstance(array, exp.Array) or (isinstance(array, exp.Anonymous) and str(array.this) == "array")
    if written_down and not side and 0 < len(array.expressions) <= BRANCHES_MAX:
        return _branches(rows, array.expressions, item, remaining)
    return _places(rows, array, item, side, remaining)


def _exploded(node: exp.Expr) -> exp.Expr | None:
    """What a call turns into rows; None when it is no such call."""
    if isinstance(node, exp.Explode):
        found: exp.Expr = node.this
        return found
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "explode":
        argument: exp.Expr = node.expressions[0]
        return argument
    return None


# --- one branch for each element ---------------------------------------------------------------------


def _branches(rows: Rows, elements: Sequence[exp.Expr], item: exp.Expr, remaining: Sequence[exp.Expr]) -> Rows:
    wanted = [*rows.used_by(remaining), item]
    branches, fields = [], dict[exp.Expr, Field]()
    for element in elements:
        known = {**rows.known, item: rows.resolve(element)}
        plan, fields = Rows(rows.inputs, rows.conjuncts, known).plan(wanted)
        branches.append(plan)
    return over(_united(branches), fields)


def _united(branches: Sequence[Plan]) -> Plan:
    """A union of branches that are alike: the same key serves all of them, with the number of the branch."""
    selects = [each for each in branches if isinstance(each, Select)]
    if len(selects) < len(branches):
        return make_union(branches)
    mark = Field("_branch", SMALLINT, hidden=True)
    marked = []
    for number, each in enumerate(selects):
        item = Item(mark, exp.cast(exp.Literal.number(number), "smallint"))
        marked.append(replace(each, items=(*each.items, item), key=(mark.name, *each.key)))
    return UnionAll(tuple(marked), (mark.name, *selects[0].key))


# --- elements by their places ------------------------------------------------------------------------


def _places(rows: Rows, array: exp.Expr, item: exp.Expr, side: str, remaining: Sequence[exp.Expr]) -> Rows:
    source, fields = rows.plan(rows.used_by([*remaining, array]))
    inside = over(source, fields)
    body, known = Body(), dict[exp.Expr, Field]()
    for node, field in fields.items():
        known[node] = body.add(field.name, field, input_column(0, field.name))
    known[item] = body.add(item.name, Field(item.name, type_of(item)), _part("v"))
    key = list(body.carry(0, source, source.key, "k"))
    number = body.add("_n", Field("_n", INTEGER), _part("n"), hidden=True)
    query = body.select().from_(table(0), copy=False)
    query.set("joins", [_numbered(inside.resolve(array), side)])
    made = keyed(
        "Unnest",
        [source],
        [source.key],
        query,
        body.columns,
        partition=key,
        key=[*key, number.name],
        shown=[("elements of", inside.resolve(array))],
    )
    return over(made, known)


def _part(name: str) -> exp.Expr:
    return exp.Dot(this=exp.column("z", table="z"), expression=exp.to_identifier(name))


def _numbered(array: exp.Expr, side: str) -> exp.Join:
    """A join with the elements of an array: structs `z` of a place `n` and a value `v`."""
    literal = exp.Literal.string
    pair = [literal("n"), exp.column("i"), literal("v"), exp.column("x")]
    pairs = exp.Lambda(
        this=exp.Anonymous(this="named_struct", expressions=pair),
        expressions=[exp.to_identifier("x"), exp.to_identifier("i")],
    )
    structs = exp.Anonymous(this="transform", expressions=[array, pairs])
    exploded = exp.alias_(exp.Anonymous(this="explode", expressions=[structs]), "z")
    inner = exp.Subquery(this=exp.Select(expressions=[exploded]))
    lateral = exp.Lateral(this=inner, alias=exp.TableAlias(this=exp.to_identifier("z")))
    if side:
        return exp.Join(this=lateral, side=side, on=exp.true())
    return exp.Join(this=lateral, kind="CROSS")
