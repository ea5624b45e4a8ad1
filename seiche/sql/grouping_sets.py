"""GROUPING SETS, ROLLUP and CUBE: the sets they stand for, and the one without columns.

PostgreSQL gives a row for the set without columns even where there are no rows at all. To Spark it is a group like
the others, of which there is none then. So it becomes an aggregate without GROUP BY beside the rest:

    SELECT k, count(*) FROM t GROUP BY ROLLUP (k)
    SELECT s.c0 AS k, s.c1 FROM (SELECT k AS c0, count(*) AS c1 FROM t GROUP BY GROUPING SETS ((k))
                                 UNION ALL SELECT NULL, count(*) FROM t) AS s
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from sqlglot import exp

from seiche.sql.aggregates import is_aggregate_node, marked
from seiche.sql.bound import aliased, derived_table
from seiche.sql.nodes import TYPE, integer, null, spark_cast, type_of, typed
from seiche.types import BIGINT

_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)


def sets_of(select: exp.Select) -> list[list[exp.Expr]] | None:
    """The keys of each grouping set; None when there is just a plain GROUP BY, or none."""
    clause = select.args.get("group")
    if clause is None or not any(isinstance(each, _SETS) for each in clause.expressions):
        return None
    choices = [_sets(each) for each in clause.expressions]
    return [
        list(dict.fromkeys(key for option in combination for key in option))
        for combination in itertools.product(*choices)
    ]


def in_set(root: exp.Expr, everything: Sequence[exp.Expr], chosen: Sequence[exp.Expr]) -> exp.Expr:
    """What an expression is in the rows of one set, as a node of its own."""
    made = exp.Paren(this=root.copy())
    _replace(made, lambda node: _outside(node, everything, chosen))
    found: exp.Expr = made.this
    found.pop()
    return found


def with_total(
    select: exp.Select, keys: list[exp.Expr], own: frozenset[str], ref_of: Callable[[str], str]
) -> exp.Select:
    """The SELECT itself, or one around its sets and the set without columns; `keys`, which it is sorted by, change with
    it. `own` are the names of what it reads from: one that depends on a query around it stays as it is."""
    sets = sets_of(select)
    if sets is None or all(sets) or _depends_on_others(select, keys, own):
        return select
    everything = list(dict.fromkeys(key for each in sets for key in each))
    ref = ref_of("sets")
    made: dict[exp.Expr, str] = {}

    def inside(node: exp.Expr) -> None:
        for child in list(node.iter_expressions()):
            child.replace(around(child))

    def around(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Window):  # its function comes after the groups, and what it is called with does not
            function = node.this.this if isinstance(node.this, exp.IgnoreNulls | exp.RespectNulls) else node.this
            inside(function)
            for child in [each for each in node.iter_expressions() if each is not node.this]:
                child.replace(around(child))
            return node
        if node.find(exp.Column, exp.Query) is None and not any(is_aggregate_node(part) for part in node.walk()):
            return node
        if TYPE not in node.meta or isinstance(node, exp.Ordered) or node.find(exp.Window):
            inside(node)
            return node
        name = made.setdefault(node.copy(), f"c{len(made)}")
        return typed(exp.column(name, table=ref, quoted=True), type_of(node.unnest()))

    shown = [aliased(around(each.this), each.alias) for each in select.expressions]
    for key in keys:
        if not isinstance(key.this, exp.Column) or key.this.table:  # else it is a column of the output
            key.set("this", around(key.this))
    made.setdefault(marked(exp.Count(this=exp.Star()), BIGINT), f"c{len(made)}")  # so that it is an aggregate
    parts = [_of_sets(select, made, [each for each in sets if each])] if any(sets) else []
    parts += [_total(select, made, everything) for each in sets if not each]
    united: exp.Query = parts[0]
    for part in parts[1:]:
        united = exp.Union(this=united, expression=part, distinct=False)
    return exp.Select(expressions=shown).from_(derived_table(united, ref), copy=False)


def _of_sets(select: exp.Select, made: dict[exp.Expr, str], sets: Sequence[Sequence[exp.Expr]]) -> exp.Select:
    body = select.copy()
    body.set("expressions", [aliased(node.copy(), name) for node, name in made.items()])
    listed = [exp.Tuple(expressions=[key.copy() for key in each]) for each in sets]
    body.set("group", exp.Group(expressions=[exp.GroupingSets(expressions=listed)]))
    return body


def _total(select: exp.Select, made: dict[exp.Expr, str], everything: Sequence[exp.Expr]) -> exp.Select:
    body = select.copy()
    body.set("group", None)
    body.set("expressions", [aliased(in_set(node, everything, []), name) for node, name in made.items()])
    having = body.args.get("having")
    if having is not None:
        having.set("this", in_set(having.this, everything, []))
    return body


def _depends_on_others(select: exp.Select, keys: Sequence[exp.Expr], own: frozenset[str]) -> bool:
    named = {each.alias_or_name for each in select.find_all(exp.Table, exp.Subquery, exp.Lateral)} | own
    columns = (column for root in (select, *keys) for column in root.find_all(exp.Column))
    return any(column.table and column.table not in named for column in columns)


def _sets(element: exp.Expr) -> list[list[exp.Expr]]:
    parts = [_keys(each) for each in element.expressions] if isinstance(element, (exp.Rollup, exp.Cube)) else []
    match element:
        case exp.Rollup():
            prefixes = (parts[:count] for count in range(len(parts), -1, -1))
            return [[key for part in prefix for key in part] for prefix in prefixes]
        case exp.Cube():
            subsets = (subset for count in range(len(parts), -1, -1) for subset in itertools.combinations(parts, count))
            return [[key for part in subset for key in part] for subset in subsets]
        case exp.GroupingSets():
            return [one for each in element.expressions for one in _sets(each)]
        case _:
            return [_keys(element)]


def _keys(element: exp.Expr) -> list[exp.Expr]:
    match element:
        case exp.Tuple():
            return list(element.expressions)
        case exp.Paren():
            return [element.this]
        case _:
            return [element]


def _replace(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None]) -> None:
    """Replaces nodes from the top down; what was replaced, and what stands in an aggregate, is left alone."""
    for child in list(node.iter_expressions()):
        new = change(child)
        if new is not None:
            child.replace(new)
        elif not is_aggregate_node(child):
            _replace(child, change)


def _outside(node: exp.Expr, everything: Sequence[exp.Expr], chosen: Sequence[exp.Expr]) -> exp.Expr | None:
    """What a node is in one of the sets, when it is not itself: NULL for other keys, a number for grouping()."""
    if node in everything and node not in chosen:
        return null(type_of(node))
    inner = node.this if isinstance(node, exp.Cast) and is_aggregate_node(node) else node
    if isinstance(inner, exp.Anonymous) and str(inner.this).lower() in ("grouping", "grouping_id"):
        bits = 0
        for each in inner.expressions:
            bits = bits * 2 + (each not in chosen)
        return spark_cast(integer(bits), type_of(node))
    return None


__all__ = ["in_set", "sets_of", "with_total"]
