"""GROUP BY: its keys, and the check that nothing else stands outside an aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from seiche.errors import FeatureNotSupported, GroupingError
from seiche.sql.aggregates import is_aggregate_node
from seiche.sql.binder import Clause
from seiche.sql.binding import Binding
from seiche.sql.bound import OutputColumn
from seiche.sql.calls import own_nodes
from seiche.sql.casts import settle
from seiche.sql.nodes import spark_cast, type_of
from seiche.sql.outer_keys import is_outer, stand_in
from seiche.sql.places import place_of, pointing_at
from seiche.sql.scopes import Scope
from seiche.sql.select_list import ordinal, output_at


def bind_group(
    binding: Binding,
    node: exp.Select,
    select: exp.Select,
    scope: Scope,
    projections: Sequence[exp.Expr],
    columns: Sequence[OutputColumn],
) -> list[exp.Expr]:
    group = node.args.get("group")
    if group is None:
        return []
    if group.args.get("all"):
        raise FeatureNotSupported("GROUP BY ALL is not supported", hint="Name the columns to group by.")
    found: list[exp.Expr] = []
    outer: list[exp.Expr] = []

    def key(item: exp.Expr) -> exp.Expr:
        bound = _group_key(binding, item, scope, projections, columns)
        found.append(bound)
        if is_outer(bound, scope.refs):
            if bound not in outer:
                outer.append(bound)
            return stand_in(outer.index(bound))
        # A bare number would be a position to Spark.
        return spark_cast(bound, type_of(bound)) if isinstance(bound, exp.Literal) else bound.copy()

    def element(item: exp.Expr) -> exp.Expr:
        match item:
            case exp.Rollup() | exp.Cube():
                return type(item)(expressions=[element(part) for part in item.expressions])
            case exp.GroupingSets():
                return exp.GroupingSets(expressions=[element(part) for part in item.expressions])
            case exp.Tuple():
                return exp.Tuple(expressions=[key(part) for part in item.expressions])
            case exp.Paren():
                return exp.Paren(this=key(item.this))
            case _:
                return key(item)

    made = [element(item) for item in group.expressions]
    for part in ("rollup", "cube", "grouping_sets"):
        made += [element(item) for item in group.args.get(part) or ()]
    if made and all(isinstance(item, exp.Tuple) and not item.expressions for item in made):
        made = [exp.GroupingSets(expressions=made)]
    select.set("group", exp.Group(expressions=made))
    return found


def _group_key(
    binding: Binding, item: exp.Expr, scope: Scope, projections: Sequence[exp.Expr], columns: Sequence[OutputColumn]
) -> exp.Expr:
    position = ordinal(item, "GROUP BY")
    if position is not None:
        output_at(columns, item, "GROUP BY")
        return _no_aggregate(binding, projections[position - 1].this)
    with pointing_at(item):
        is_output = isinstance(item, exp.Column) and not item.table and scope.local(item.name) is None
    if is_output:
        for projection, column in zip(projections, columns, strict=True):
            if column.name == item.name:
                return _no_aggregate(binding, projection.this)
    return settle(binding.expressions(scope, Clause.GROUP).bind(item), binding.settings)


def _no_aggregate(binding: Binding, node: exp.Expr) -> exp.Expr:
    if any(is_aggregate_node(part) for part in node.walk()):
        raise GroupingError("aggregate functions are not allowed in GROUP BY", position=place_of(node))
    return settle(node, binding.settings)


def add_dependent(select: exp.Select, scope: Scope, groups: list[exp.Expr], keys: Sequence[exp.Expr]) -> None:
    """Makes keys of the columns that depend on others: a whole primary key among the keys decides the other columns of
    its table, so that grouping by them too changes nothing."""
    group = select.args.get("group")
    if group is None or any(isinstance(item, _SETS) for item in group.expressions):
        return
    decided = [each.ref for each in scope.variables if each.key and all(column in groups for column in each.key)]
    for part in _parts(select, keys):
        for column in _ungrouped(part, groups, frozenset(decided)):
            if column not in groups:
                groups.append(column.copy())
                group.append("expressions", column.copy())


_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)


def _parts(select: exp.Select, keys: Sequence[exp.Expr]) -> list[exp.Expr]:
    """What has to be made of keys and aggregates alone."""
    parts = [projection.this for projection in select.expressions]
    if select.args.get("having") is not None:
        parts.append(select.args["having"].this)
    return parts + [key.this for key in keys if not isinstance(key.this, exp.Column) or key.this.table]


def check_grouping(
    select: exp.Select, scope: Scope, groups: Sequence[exp.Expr], keys: Sequence[exp.Expr], having: bool
) -> None:
    parts = _parts(select, keys)
    grouped = (
        select.args.get("group") is not None
        or having
        or any(is_aggregate_node(n) for part in parts for n in own_nodes(part))
    )
    if not grouped:
        return
    refs = scope.refs
    for part in parts:
        _check_grouped(part, groups, refs)


def _check_grouping_call(node: exp.Expr, groups: Sequence[exp.Expr]) -> None:
    """`grouping(…)` tells of keys, and of nothing else."""
    for call in node.find_all(exp.Anonymous):
        if str(call.this) in ("grouping", "grouping_id"):
            for argument in call.expressions:
                if all(argument != group for group in groups):
                    raise GroupingError(
                        "arguments to GROUPING must be grouping expressions of the associated query level",
                        position=place_of(argument),
                    )


def _check_grouped(node: exp.Expr, groups: Sequence[exp.Expr], refs: frozenset[str]) -> None:
    for column in _ungrouped(node, groups, refs):
        raise GroupingError(
            f'column "{column.table}.{column.name}" must appear in the GROUP BY clause '
            "or be used in an aggregate function",
            position=place_of(column),
        )


def _ungrouped(node: exp.Expr, groups: Sequence[exp.Expr], refs: frozenset[str]) -> Iterator[exp.Column]:
    """The columns of these relations that stand neither in a key nor in an aggregate, the first that was written
    first."""
    stack = [node]
    while stack:
        current = stack.pop()
        if is_aggregate_node(current) or any(current == group for group in groups):
            _check_grouping_call(current, groups)
            continue
        if isinstance(current, exp.Column):
            if current.table in refs:
                yield current
            continue
        stack += list(current.iter_expressions(reverse=True))
