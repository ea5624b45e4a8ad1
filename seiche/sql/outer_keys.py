"""Columns of the query around it that a grouped subquery groups by or shows.

They are the same in all rows of the subquery. So a number stands for each in GROUP BY, and what the subquery shows of
them is computed around its groups: Spark refuses them inside. In the row of a grouping set without such a key the
key is NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from seiche.sql.aggregates import is_aggregate_node
from seiche.sql.bound import aliased, derived_table
from seiche.sql.nodes import case, equal, integer, spark_cast, type_of, typed
from seiche.types import INTEGER

_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)


def is_outer(node: exp.Expr, own: frozenset[str]) -> bool:
    """Whether it is made of columns of the queries around this one alone."""
    columns = list(node.find_all(exp.Column))
    return bool(columns) and node.find(exp.Query) is None and not any(column.table in own for column in columns)


def stand_in(number: int) -> exp.Expr:
    """What is grouped by instead of an outer key: the same for all rows, and not a position to Spark."""
    return spark_cast(exp.Literal.number(number), INTEGER)


def show_around(
    select: exp.Select, groups: Sequence[exp.Expr], own: frozenset[str], ref_of: Callable[[str], str]
) -> exp.Select:
    """The SELECT itself, or one around it that shows what it may not; `own` are the names of what it reads from, and
    `groups` its keys as they were written."""
    group = select.args.get("group")
    shown = [(projection.this, projection.alias) for projection in select.expressions]
    if group is None or not any(_shows_outer(node, own) for node, _ in shown):
        return select
    if any(node.find(exp.Window) for node, _ in shown):
        return select
    ref = ref_of("groups")
    keys = [key for key in dict.fromkeys(groups) if is_outer(key, own)]
    in_sets = any(isinstance(element, _SETS) for element in group.expressions)
    made: dict[exp.Expr, str] = {}

    def column(node: exp.Expr) -> exp.Expr:
        name = made.setdefault(node.copy(), f"c{len(made)}")
        return typed(exp.column(name, table=ref, quoted=True), type_of(node.unnest()))

    def around(node: exp.Expr) -> exp.Expr:
        if in_sets and node in keys:
            grouping = typed(exp.Anonymous(this="grouping", expressions=[stand_in(keys.index(node))]), INTEGER)
            left_out = spark_cast(grouping, INTEGER)
            return case(type_of(node), [(equal(column(left_out), integer(0)), node.copy())])
        if not _shows_outer(node, own):
            return column(node) if _depends_on_rows(node) else node
        for child in list(node.iter_expressions()):
            child.replace(around(child))
        return node

    projections = [aliased(around(node), alias) for node, alias in shown]
    select.set("expressions", [aliased(node, name) for node, name in made.items()] or [aliased(integer(0), "c0")])
    return exp.Select(expressions=projections).from_(derived_table(select, ref), copy=False)


def _shows_outer(node: exp.Expr, own: frozenset[str]) -> bool:
    columns = (part for part in _outside_aggregates(node) if isinstance(part, exp.Column))
    return any(column.table and column.table not in own for column in columns)  # a lambda's have none


def _depends_on_rows(node: exp.Expr) -> bool:
    return any(
        isinstance(part, exp.Column | exp.Query) or is_aggregate_node(part) for part in _outside_aggregates(node)
    )


def _outside_aggregates(node: exp.Expr) -> list[exp.Expr]:
    return list(node.walk(prune=lambda part: isinstance(part, exp.Query) or is_aggregate_node(part)))
