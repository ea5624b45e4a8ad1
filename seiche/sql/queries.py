"""Queries: SELECT, set operations and VALUES, bound into one typed tree.

A statement is walked once, innermost scopes first; each clause has a module of its own, expressions are those of
`sql/expressions.py`. What the bound query looks like is promised in `sql/bind.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.errors import FeatureNotSupported, SeicheError, SyntaxError_, WindowingError
from seiche.sql.binder import Clause
from seiche.sql.binding import Binding, CommonTable, common_tables
from seiche.sql.bound import Bound, Names, aliased, derived_table, has_tail, shown
from seiche.sql.casts import common_type, convert
from seiche.sql.equal_intervals import distinct_by_length, group_by_length, has_interval
from seiche.sql.from_clause import bind_from, check_names
from seiche.sql.group_by import add_dependent, bind_group, check_grouping
from seiche.sql.grouping_sets import with_total
from seiche.sql.mixed_aggregates import compute_apart
from seiche.sql.nearer import use_nearer
from seiche.sql.nodes import Settings, typed
from seiche.sql.ordering import check_distinct, distinct_on, limits, ordered_output, sort_keys
from seiche.sql.outer_keys import show_around
from seiche.sql.places import pointing_at
from seiche.sql.recursion import bind_recursion, refuse_aggregates
from seiche.sql.scopes import Scope
from seiche.sql.select_list import exploded, over_groups, select_items
from seiche.sql.values import values
from seiche.types import Kind


def binding_of(names: Names, settings: Settings) -> Binding:
    """The binding of one statement."""
    return Binding(names, settings, _query)


def _query(binding: Binding, node: exp.Expr, outer: Scope | None, tables_: Mapping[str, CommonTable]) -> Bound:
    visible = common_tables(node, tables_)
    _unused_tables(binding, node, visible)
    match node:
        case exp.Subquery():
            inner = binding.query(node.this, outer, visible)
            if has_tail(node):
                return _around(binding, inner, node)
            return inner
        case exp.Select():
            return _select(binding, node, outer, visible)
        case exp.SetOperation():
            return _set_operation(binding, node, outer, visible)
        case exp.Values():
            return ordered_output(binding, values(binding, node, outer, visible), node)
        case exp.Table():
            return _select(binding, exp.Select(expressions=[exp.Star()]).from_(node), outer, visible)
        case exp.Paren():
            return binding.query(node.this, outer, visible)
    raise FeatureNotSupported(f"query {node.sql('seiche')} is not supported")


def _unused_tables(binding: Binding, node: exp.Expr, visible: Mapping[str, CommonTable]) -> None:
    """Binds the queries of WITH that nothing reads: their mistakes are told, and what they name is known to be used."""
    with_ = node.args.get("with_") or node.args.get("with")
    if with_ is None:
        return
    for cte in with_.expressions:
        own = {id(table) for table in cte.find_all(exp.Table)}
        if all(table.name != cte.alias for table in node.find_all(exp.Table) if id(table) not in own):
            table = visible[cte.alias]
            if table.recursive:
                bind_recursion(binding, table)
                continue
            bound = binding.query(table.query, None, table.visible)
            with pointing_at(table.name):
                check_names(table.column_names, len(bound.columns), f'WITH query "{cte.alias}"')


def _select(binding: Binding, node: exp.Select, outer: Scope | None, tables_: Mapping[str, CommonTable]) -> Bound:
    for part in ("qualify", "into", "locks", "connect", "laterals", "sample", "pivots", "match"):
        if node.args.get(part):
            raise FeatureNotSupported(f"{part.upper()} is not supported in a query")
    around = over_groups(binding, node)
    if around is not None:
        return _select(binding, around, outer, tables_)
    scope = Scope(binding.subquery(tables_), parent=outer)
    select = exp.Select()
    bind_from(binding, node, select, scope, tables_)
    for window in node.args.get("windows") or ():
        if window.name in scope.windows:
            raise WindowingError(f'window "{window.name}" is already defined')
        scope.windows[window.name] = window
    node = exploded(binding, node, select, scope)
    if (where := node.args.get("where")) is not None:
        try:
            condition = binding.expressions(scope, Clause.WHERE).condition(where.this, "WHERE")
        except SeicheError:
            select_items(binding, node.expressions, scope)  # whose mistakes PostgreSQL tells first
            raise
        select.set("where", exp.Where(this=condition))
    projections, columns = select_items(binding, node.expressions, scope)
    groups = bind_group(binding, node, select, scope, projections, columns)
    having = node.args.get("having")
    if having is not None:
        select.set(
            "having", exp.Having(this=binding.expressions(scope, Clause.HAVING).condition(having.this, "HAVING"))
        )
    select.set("expressions", shown(projections))
    keys = sort_keys(binding, node, scope, projections, columns)
    add_dependent(select, scope, groups, keys)
    check_grouping(select, scope, groups, keys, having is not None)
    refuse_aggregates(select)
    group_by_length(select, keys)
    distinct = node.args.get("distinct")
    distinct_by = distinct.args.get("on") if distinct is not None else None
    if distinct is not None and distinct_by is None:
        check_distinct(keys)
    if distinct_by is None:
        select = with_total(select, keys, scope.refs, binding.ref)
    if outer is not None:
        use_nearer(select, scope.refs)
        own = compute_apart(select, keys, scope.refs, binding.ref)
        if not keys:
            select = show_around(select, groups, own, binding.ref)
    if distinct_by is not None:
        return distinct_on(binding, node, select, columns, distinct_by, keys, scope)
    if distinct is not None:
        bound = binding.settled(Bound(select, columns))
        assert bound.ast is select  # the literals of a select list are typed in place
        columns = bound.columns
        if has_interval(bound):
            bound = distinct_by_length(bound, binding.ref)
            assert isinstance(bound.ast, exp.Select)
            select = bound.ast
        else:
            select.set("distinct", exp.Distinct())
    if keys:
        select.set("order", exp.Order(expressions=keys))
    limits(binding, select, node, scope)
    return Bound(select, columns)


def _around(binding: Binding, inner: Bound, node: exp.Expr) -> Bound:
    inner = binding.settled(inner)
    ref = binding.ref("inner")
    projections = [aliased(typed(exp.column(c.alias, table=ref, quoted=True), c.type), c.alias) for c in inner.columns]
    select = exp.Select(expressions=shown(projections)).from_(derived_table(inner.ast, ref), copy=False)
    return ordered_output(binding, Bound(select, inner.columns), node)


def _set_operation(
    binding: Binding, node: exp.SetOperation, outer: Scope | None, tables_: Mapping[str, CommonTable]
) -> Bound:
    name = type(node).__name__.upper()
    operands = _flattened(node)
    bounds = [binding.query(operand, outer, tables_) for operand in operands]
    if _is_corresponding(node):
        bounds = _corresponding(binding, bounds, [column.name for column in node.args.get("on") or ()])
    width = len(bounds[0].columns)
    uneven = next((bound for bound in bounds if len(bound.columns) != width), None)
    if uneven is not None:
        message = f"each {name} query must have the same number of columns"
        raise SyntaxError_(message, position=uneven.place(0) if uneven.columns else None)
    types = [
        common_type([bound.columns[i].type for bound in bounds], name, [bound.place(i) for bound in bounds])
        for i in range(width)
    ]

    def change(part: exp.Expr, index: int) -> exp.Expr:
        return convert(part, types[index], binding.settings)

    parts = [_operand(binding.retyped(bound, types, change).ast) for bound in bounds]
    columns = [replace(column, type=type_) for column, type_ in zip(bounds[0].columns, types, strict=True)]
    ast = parts[0]
    distinct = bool(node.args.get("distinct"))
    by_length = distinct and isinstance(node, exp.Union) and any(type_.kind is Kind.INTERVAL for type_ in types)
    for part in parts[1:]:
        ast = type(node)(this=ast, expression=part, distinct=distinct and not by_length)
    bound = Bound(ast, columns)
    return ordered_output(binding, distinct_by_length(bound, binding.ref) if by_length else bound, node)


def _is_corresponding(node: exp.SetOperation) -> bool:
    return bool(node.args.get("by_name")) and node.args.get("kind") == "INNER"


def _corresponding(binding: Binding, bounds: Sequence[Bound], wanted: Sequence[str]) -> list[Bound]:
    """CORRESPONDING: the columns of either side whose names are on both, or those that BY lists, in one order."""
    first, second = ([column.name for column in bound.columns] for bound in bounds)
    names = list(wanted) or [name for name in first if name in second]
    if not names:
        raise SyntaxError_("the two sides of CORRESPONDING have no column in common")
    for name in names:
        if first.count(name) != 1 or second.count(name) != 1:
            raise SyntaxError_(f'column "{name}" of CORRESPONDING must be once on each side')
    return [_narrowed(binding, binding.settled(bound), names) for bound in bounds]


def _narrowed(binding: Binding, bound: Bound, names: Sequence[str]) -> Bound:
    ref = binding.ref("corresponding")
    by_name = {column.name: column for column in bound.columns}
    columns = [by_name[name] for name in names]
    projections = [aliased(typed(exp.column(c.alias, table=ref, quoted=True), c.type), c.alias) for c in columns]
    return Bound(exp.Select(expressions=projections).from_(derived_table(bound.ast, ref), copy=False), columns)


def _operand(query: exp.Query) -> exp.Query:
    """An operand of a set operation, in parentheses where it would be read otherwise."""
    plain = isinstance(query, exp.Select) and not has_tail(query)
    return query if plain else exp.Subquery(this=query)


def _flattened(node: exp.SetOperation) -> list[exp.Expr]:
    """`a UNION ALL b UNION ALL c` as one list, without recursion."""
    kind, distinct = type(node), bool(node.args.get("distinct"))
    if _is_corresponding(node):
        return [node.this, node.expression]
    if node.args.get("by_name") or node.args.get("side") or node.args.get("kind"):
        raise FeatureNotSupported("set operations BY NAME are not supported", hint="Write CORRESPONDING.")
    parts: list[exp.Expr] = [node.expression]
    left = node.this
    while (
        type(left) is kind
        and bool(left.args.get("distinct")) == distinct
        and not any(left.args.get(p) for p in ("order", "limit", "offset", "with_", "by_name"))
    ):
        parts.append(left.expression)
        left = left.this
    return [left, *reversed(parts)]
