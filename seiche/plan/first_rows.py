"""The first rows of each partition, where rows only come: those stored and those that come tell which they are.

    SELECT … FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS n FROM bid) WHERE n <= 10

A row that is not stored has enough rows before it already, all of them stored or outdone by others since, and none of
them ever leaves. So a new row is compared with stored rows alone, however long the history of its partition is.

That needs the stored rows to tell what the query asks of the input: a column that rows are ordered by must be among
those that the view shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from seiche.plan.algebra import Keyed, columns_in, field_of, is_append_only, reads_clock
from seiche.plan.keyed import meaning, unfolded
from seiche.sql.literals import constant_integer

_RANKS = ("row_number", "rank", "dense_rank")
_LEVEL = {"expressions", "from_", "where", "kind"}


def stored_columns(plan: Keyed) -> dict[str, str] | None:
    """For each field of the input that the query needs, the stored column that holds it.

    None where the rows that the node stores are not the first of each partition of rows that only come, or do not tell
    enough about themselves.
    """
    if len(plan.inputs) != 1 or not plan.partition or plan.looked_up is not None or plan.reason is not None:
        return None
    if not is_append_only(plan.inputs[0]) or reads_clock(plan.body):
        return None
    levels = list(_levels(plan.body))
    windows = {window for level in levels for window in level.find_all(exp.Window)}
    if len(windows) != 1:
        return None
    rank = windows.pop()
    conditions = [condition for level in levels for condition in _conditions(level)]
    if not _is_rank(rank) or not conditions or not all(_is_limit(each, rank) for each in conditions):
        return None
    meanings = {field.name: meaning(plan.body, field.name) for field in plan.columns}
    held = {expr.name: name for name, expr in meanings.items() if _is_field(plan, name, expr)}
    needed = {column.name for expr in (*meanings.values(), rank) for column in columns_in(expr)}
    return {name: held[name] for name in sorted(needed)} if needed <= held.keys() else None


def _levels(body: exp.Query) -> Iterator[exp.Select]:
    """The queries of a body, each over the next; none where one of them does more than to project and to filter."""
    levels = []
    current: exp.Expr = body
    while isinstance(current, exp.Select):
        if any(value for name, value in current.args.items() if name not in _LEVEL):
            return
        levels.append(current)
        below = current.args["from_"].this
        current = below.this if isinstance(below, exp.Subquery) else below
    if isinstance(current, exp.Table):
        yield from levels


def _conditions(level: exp.Select) -> list[exp.Expr]:
    """The conditions of a query as expressions over the node's input."""
    where = level.args.get("where")
    below = level.args["from_"].this
    if where is None:
        return []
    return [unfolded(below.this, each) if isinstance(below, exp.Subquery) else each for each in where.this.flatten()]


def _is_rank(window: exp.Window) -> bool:
    function = window.this
    ranks = isinstance(function, exp.Anonymous) and str(function.this).lower() in _RANKS
    return ranks and window.args.get("order") is not None


def _is_limit(condition: exp.Expr, rank: exp.Window) -> bool:
    """Whether a condition holds for the first rows of a partition, and for no row behind one for which it does not."""
    bare = condition.unnest()
    if not isinstance(bare, exp.LTE | exp.LT | exp.EQ) or _uncast(bare.left) != rank:
        return False
    limit = constant_integer(bare.right)
    return limit is not None and (limit == 1 or not isinstance(bare, exp.EQ))


def _uncast(expr: exp.Expr) -> exp.Expr:
    while isinstance(expr, exp.Cast | exp.Paren):
        expr = expr.this
    return expr


def _is_field(plan: Keyed, name: str, expr: exp.Expr) -> bool:
    """Whether an output column is a field of the input as it is."""
    if not isinstance(expr, exp.Column):
        return False
    return field_of(plan, name).type.bare == field_of(plan.inputs[0], expr.name).type.bare


__all__ = ["stored_columns"]
