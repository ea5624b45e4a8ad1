"""Arrays whose elements become rows, in the list of a SELECT: windows that overlap (HOP) are written so.

An array of few elements that are written down is a union with one branch for each, which is linear. Any other array
goes to the FROM clause, where it is evaluated for the rows that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.plan.algebra import Field, Item, Plan, Select, UnionAll, make_union
from seiche.plan.reasons import NotIncremental
from seiche.types import SMALLINT

# Beyond this many branches a union costs more than looking at the rows that changed.
BRANCHES_MAX = 16


def array_of(node: exp.Expr) -> exp.Expr | None:
    """What a call turns into rows; None when it is no such call."""
    if isinstance(node, exp.Explode):
        found: exp.Expr = node.this
        return found
    if isinstance(node, exp.Anonymous) and str(node.this).lower() == "explode":
        argument: exp.Expr = node.expressions[0]
        return argument
    return None


def unnested(ast: exp.Select, lower: Callable[[exp.Select], Plan]) -> Plan | None:
    """The plan of a block whose list has such a call; None when it has none."""
    if not (ast.args.get("from_") or ast.args.get("from")):
        return None
    calls = [node for each in ast.expressions for node in _own(each) if array_of(node) is not None]
    if not calls:
        return None
    if len(calls) > 1 or any(ast.args.get(part) for part in ("group", "having", "distinct", "limit", "offset")):
        raise NotIncremental("table_function", "Elements of an array become rows in a list with more than that.")
    array = array_of(calls[0])
    assert array is not None
    written_down = isinstance(array, exp.Array) or (isinstance(array, exp.Anonymous) and str(array.this) == "array")
    if written_down and 0 < len(array.expressions) <= BRANCHES_MAX:
        return _united([lower(_with(ast, calls[0], each)) for each in array.expressions])
    item = exp.column("item", table="unnested", quoted=True)
    moved = _with(ast, calls[0], item)
    made = exp.Select(expressions=[exp.alias_(calls[0].copy(), "item", quoted=True)])
    alias = exp.TableAlias(this=exp.to_identifier("unnested", quoted=True))
    moved.append("joins", exp.Join(this=exp.Lateral(this=exp.Subquery(this=made), alias=alias), kind="CROSS"))
    return lower(moved)


def _own(node: exp.Expr) -> list[exp.Expr]:
    return list(node.walk(prune=lambda part: isinstance(part, exp.Query)))


def _with(ast: exp.Select, call: exp.Expr, value: exp.Expr) -> exp.Select:
    """The block with a value in place of the call; the value takes over the call's type."""
    new = value.copy()
    new.meta["sql_type"] = call.meta["sql_type"]

    def place(node: exp.Expr) -> exp.Expr:
        return new.copy() if node == call else node

    made = ast.copy()
    made.set("expressions", [each.transform(place) for each in made.expressions])
    return made


def _united(branches: Sequence[Plan]) -> Plan:
    """A union of branches that are alike: the same key serves all of them, with the number of the branch."""
    selects = [each for each in branches if isinstance(each, Select)]
    if len(selects) < len(branches) or any(each.fields != selects[0].fields for each in selects):
        return make_union(branches)
    mark = Field("_branch", SMALLINT, hidden=True)
    marked = []
    for number, each in enumerate(selects):
        item = Item(mark, exp.cast(exp.Literal.number(number), "smallint"))
        marked.append(replace(each, items=(*each.items, item), key=(mark.name, *each.key)))
    return UnionAll(tuple(marked), (mark.name, *selects[0].key))
