"""The first rows of all, asked for by a condition on their numbers.

    SELECT … FROM (SELECT …, row_number() OVER (ORDER BY tons DESC) AS n FROM ships) x WHERE n <= 3

A window without PARTITION BY covers all rows, but a condition on `row_number` or `rank` needs only the first ones. They
are kept by a TopN below the window, which then numbers no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.plan.algebra import Field, Item, Keyed, SortField, TopN, field_of, input_column, make_select
from seiche.types import SqlType

# As many rows a TopN keeps at most, since each step looks at all of them.
TOP_ROWS_MAX = 10_000
_NUMBERS = frozenset(("row_number", "rank"))
_MIRRORED = {exp.GT: exp.LT, exp.GTE: exp.LTE}


def only_first(window: Keyed, conditions: Sequence[exp.Expr]) -> Keyed:
    """The window over no more rows than conditions ask for, which are spelled out in terms of its input (`l0`)."""
    if window.reason is None or window.title != "Window":
        return window
    windows = list(window.body.find_all(exp.Window))
    orders = {each.args.get("order") for each in windows}
    bounds = [found for each in conditions for found in _last(each)]
    if not bounds or len(orders) != 1 or not all(_number(each) for each in windows):
        return window
    (order,) = orders
    numbered, limit = min(bounds, key=lambda each: each[1])
    if order is None or not 0 < limit <= TOP_ROWS_MAX:
        return window
    source = window.inputs[0]
    items = [Item(each, input_column(0, each.name)) for each in source.fields]
    sort: list[SortField] = []
    for number, each in enumerate(order.expressions):
        key = each.this
        known = key.meta.get("sql_type")
        if isinstance(key, exp.Column):
            named = field_of(source, key.name).name
        elif isinstance(known, SqlType):
            named = f"_o{number}"
            items.append(Item(Field(named, known, hidden=True), key.copy()))
        else:
            return window
        sort.append(SortField(named, bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
    sorted_source = source if len(items) == len(source.fields) else make_select([source], [], items)
    top = TopN(sorted_source, tuple(sort), limit, ties=_number(numbered) == "rank")
    return replace(window, inputs=(top,), reason=None)


def _bare(node: exp.Expr) -> exp.Expr:
    inner = node.unnest()
    while isinstance(inner, exp.Cast):
        inner = inner.this.unnest()
    return inner


def _number(node: exp.Window) -> str | None:
    """The function of a window that numbers rows; None when it does anything else."""
    if node.args.get("spec") is not None:
        return None
    name = str(node.this.this if isinstance(node.this, exp.Anonymous) else node.this.key).lower()
    return name if name in _NUMBERS else None


def _last(condition: exp.Expr) -> list[tuple[exp.Window, int]]:
    """The window that a condition bounds from above, and its last value; nothing where it does not."""
    inner = condition.unnest()
    if isinstance(inner, exp.Between):
        return _bound(inner.this, exp.LTE, inner.args["high"])
    if not isinstance(inner, (exp.LT, exp.LTE, exp.EQ, exp.GT, exp.GTE)):
        return []
    kind = type(inner)
    return _bound(inner.left, kind, inner.right) or _bound(inner.right, _MIRRORED.get(kind, exp.Expr), inner.left)


def _bound(value: exp.Expr, kind: type[exp.Expr], limit: exp.Expr) -> list[tuple[exp.Window, int]]:
    node, last = _bare(value), _bare(limit)
    if not isinstance(node, exp.Window) or not isinstance(last, exp.Literal) or not last.name.isdigit():
        return []
    if kind in (exp.LTE, exp.EQ):
        return [(node, int(last.name))]
    return [(node, int(last.name) - 1)] if kind is exp.LT else []


__all__ = ["TOP_ROWS_MAX", "only_first"]
