"""Aggregates of a subquery over its own columns and those of the query around it, as sum(berths.fee * ships.size).

Spark refuses an aggregate whose argument has both. So the rows are read in a query of their own, which also computes
such arguments, and the aggregates stand around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from seiche.sql.aggregates import is_aggregate_node
from seiche.sql.bound import aliased, derived_table
from seiche.sql.calls import own_nodes
from seiche.sql.nodes import type_of, typed

_AROUND_ARGUMENTS = (exp.Distinct, exp.Order, exp.Ordered)


def compute_apart(
    select: exp.Select, keys: Sequence[exp.Expr], own: frozenset[str], ref_of: Callable[[str], str]
) -> frozenset[str]:
    """Changes a grouped SELECT in place; `own` are the names of what it reads from, before. Those after are given."""
    clauses = [select.args.get("group"), select.args.get("having")]
    roots = [*select.expressions, *keys, *(clause for clause in clauses if clause is not None)]
    for root in roots:
        _leave_out_idle_orders(root, own)
    mixed = [part for root in roots for part in _arguments(root) if _is_mixed(part, own)]
    if not mixed:
        return own
    ref = ref_of("rows")
    made: dict[exp.Expr, str] = {}

    def column(node: exp.Expr) -> exp.Expr:
        name = made.setdefault(node.copy(), f"c{len(made)}")
        return typed(exp.column(name, table=ref, quoted=True), type_of(node.unnest()))

    for part in mixed:
        part.replace(column(part))
    for root in roots:
        for node in [each for each in root.walk() if isinstance(each, exp.Column) and each.table in own]:
            node.replace(column(node))
    rows = exp.Select(expressions=[aliased(node, name) for node, name in made.items()])
    for clause in ("from_", "joins", "laterals", "where"):
        if select.args.get(clause):
            rows.set(clause, select.args[clause])
            select.set(clause, None)
    select.from_(derived_table(rows, ref), copy=False)
    return frozenset((ref,))


def _leave_out_idle_orders(root: exp.Expr, own: frozenset[str]) -> None:
    """WITHIN GROUP (ORDER BY outer.a, b): a column of the query around is the same in all rows, and orders nothing."""
    for node in list(own_nodes(root)):
        if not isinstance(node, exp.WithinGroup):
            continue
        kept = [key for key in node.expression.expressions if _tables(key) & own]
        if kept:
            node.expression.set("expressions", kept)
        elif node.this.name == "listagg" and node.parent is not None:
            node.replace(node.this)  # any order will do


def _arguments(root: exp.Expr) -> Iterator[exp.Expr]:
    for call in own_nodes(root):
        if is_aggregate_node(call) and isinstance(call, exp.AggFunc | exp.Anonymous):
            yield from _inside(call)


def _inside(node: exp.Expr) -> Iterator[exp.Expr]:
    for child in list(node.iter_expressions()):
        if isinstance(child, _AROUND_ARGUMENTS):
            yield from _inside(child)
        else:
            yield child


def _is_mixed(node: exp.Expr, own: frozenset[str]) -> bool:
    tables = _tables(node)
    return bool(tables & own) and not tables <= own


def _tables(node: exp.Expr) -> set[str]:
    return {column.table for column in node.find_all(exp.Column) if column.table}


__all__ = ["compute_apart"]
