"""The table that a statement writes to: its columns in scope, its defaults and its generated columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlglot
from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidColumnReference
from seiche.model import Column
from seiche.sql.binder import Clause
from seiche.sql.binding import Binding, common_tables
from seiche.sql.bound import Bound, BoundRelation, OutputColumn, aliased, derived_table, named_table
from seiche.sql.casts import assign
from seiche.sql.dialect import Seiche
from seiche.sql.from_clause import bind_from
from seiche.sql.kept_fields import as_stored, column_node
from seiche.sql.nodes import boolean, comparison, conjunction, equal, integer, null, typed
from seiche.sql.places import place_of, unplaced
from seiche.sql.scopes import Entry, RangeVariable, Scope, Subquery
from seiche.types import INTEGER

# The rows of an INSERT with ON CONFLICT, those that they meet, and what tells that one was met.
GIVEN_SOURCE, MET_SOURCE = "given_rows", "met_rows"
EXCLUDED, MET = "excluded", "_met"


def parsed(expression: exp.Expr | str) -> exp.Expr:
    """The tree of a stored expression, or one that is a tree already."""
    return unplaced(sqlglot.parse_one(expression, dialect=Seiche)) if isinstance(expression, str) else expression


def bare_scope(columns: Sequence[Column], values: Mapping[str, exp.Expr] | None = None) -> Scope:
    def no_subquery(query: exp.Expr, scope: Scope) -> Subquery:
        raise FeatureNotSupported("a subquery cannot stand in a column's expression")

    entries = []
    for column in columns:
        node = values[column.name] if values is not None else typed(exp.column(column.name, quoted=True), column.type)
        entries.append(Entry(column.name, node, column.hidden))
    return Scope(no_subquery, entries=entries)


def target_scope(binding: Binding, target: BoundRelation, alias: str | None) -> tuple[Scope, exp.Expr]:
    scope = Scope(binding.subquery({}))
    return scope, _add_target(binding, target, alias, scope)


def joined_scope(
    binding: Binding,
    target: BoundRelation,
    alias: str | None,
    others: exp.Select | None,
    common: exp.Expr | None = None,
) -> tuple[Scope, exp.Select]:
    """The columns of the target and of the relations beside it, and a query of their joined rows without columns yet.

    The target comes last: then an outer join among the others means what it says, and none of them sees the target.
    """
    if common is not None:
        binding.query(common, None, {})  # whose mistakes are told even where nothing uses it
    tables = common_tables(common, {}) if common is not None else {}
    scope = Scope(binding.subquery(tables))
    select = exp.Select()
    if others is None:
        return scope, select.from_(_add_target(binding, target, alias, scope), copy=False)
    bind_from(binding, others, select, scope, tables)
    select.append("joins", exp.Join(this=_add_target(binding, target, alias, scope), kind="CROSS"))
    return scope, select


def meeting_scope(
    binding: Binding, target: BoundRelation, alias: str | None, key: Sequence[str]
) -> tuple[Scope, exp.Select, dict[str, exp.Expr], dict[str, exp.Expr]]:
    """New rows beside those with the same key: what is in sight of ON CONFLICT, a query of both without columns yet,
    and the columns of the old and of the new rows. Old rows have the name of the target, and come first; those that
    are there have `MET`."""
    scope = Scope(binding.subquery({}))
    stored, met, given = binding.ref("stored"), binding.ref(alias or target.name), binding.ref(EXCLUDED)
    old = {column.name: column_node(column, met) for column in target.columns}
    new = {column.name: column_node(column, given) for column in target.columns}
    for name, ref, columns, schema in (
        (alias or target.name, met, old, None if alias else target.schema),
        (EXCLUDED, given, new, None),
    ):
        entries = tuple(Entry(column.name, columns[column.name], column.hidden) for column in target.columns)
        binding.add(scope, RangeVariable(name, ref, entries, schema))
    kept = [typed(exp.column(column.name, table=stored, quoted=True), column.type) for column in target.columns]
    marked = [*(aliased(node, node.name) for node in kept), aliased(boolean(True), MET)]
    rows = exp.Select(expressions=marked).from_(named_table(MET_SOURCE, stored), copy=False)
    # As in a key, NULL equals NULL.
    same = conjunction([comparison(exp.NullSafeEQ, new[name].copy(), old[name].copy()) for name in key])
    select = exp.Select().from_(named_table(GIVEN_SOURCE, given), copy=False)
    select.append("joins", exp.Join(this=derived_table(rows, met), side="LEFT", on=same))
    return scope, select, old, new


def once_each(binding: Binding, bound: Bound, key: Sequence[str], choosing: Sequence[str]) -> Bound:
    """One of the rows that agree in the columns of `key`: the first by those of `choosing`, as far as they differ."""
    all_rows, ranked, rank = binding.ref("all_rows"), binding.ref("ranked"), "_rank"
    types = {column.alias: column.type for column in bound.columns}

    def column(name: str, ref: str) -> exp.Expr:
        return typed(exp.column(name, table=ref, quoted=True), types[name])

    by = [exp.Ordered(this=column(name, all_rows), desc=False, nulls_first=False) for name in (*choosing, *key)]
    number = exp.Window(
        this=exp.Anonymous(this="row_number"),
        partition_by=[column(name, all_rows) for name in key],
        order=exp.Order(expressions=by),
        over="OVER",
    )
    numbered = [*(aliased(column(name, all_rows), name) for name in types), aliased(typed(number, INTEGER), rank)]
    inner = exp.Select(expressions=numbered).from_(derived_table(bound.ast, all_rows), copy=False)
    outer = exp.Select(expressions=[aliased(column(name, ranked), name) for name in types])
    outer.from_(derived_table(inner, ranked), copy=False)
    outer.set("where", exp.Where(this=equal(typed(exp.column(rank, table=ranked, quoted=True), INTEGER), integer(1))))
    return Bound(outer, bound.columns)


def _add_target(binding: Binding, target: BoundRelation, alias: str | None, scope: Scope) -> exp.Expr:
    if target.id is not None:
        binding.usage.relations.add(target.id)
    name = alias or target.name
    ref = binding.ref(name)
    entries = tuple(Entry(c.name, column_node(c, ref), c.hidden) for c in target.columns)
    binding.add(scope, RangeVariable(name, ref, entries, None if alias else target.schema))
    return named_table(target.source, ref)


def default_of(binding: Binding, column: Column) -> exp.Expr:
    type_ = column.as_shown.type
    if column.default is None:
        return null(type_)
    binder = binding.expressions(bare_scope([]), Clause.DEFAULT)
    return assign(binder.bind(parsed(column.default)), type_, column.name, binding.settings)


def generated(binding: Binding, target: BoundRelation, values: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
    """Generated columns over the other columns' values."""
    plain = [column for column in target.columns if column.generated is None and column.name in values]
    binder = binding.expressions(bare_scope(plain, values), Clause.GENERATED)
    made: dict[str, exp.Expr] = {}
    for column in target.columns:
        if column.generated is not None:
            made[column.name] = assign(
                binder.bind(parsed(column.generated)), column.type, column.name, binding.settings
            )
    return made


def copied_rows(binding: Binding, target: BoundRelation, values: Mapping[str, exp.Expr], where: exp.Expr) -> exp.Expr:
    """The condition of a COPY, over the values that a row is about to have; none are generated yet."""

    def no_subquery(query: exp.Expr, scope: Scope) -> Subquery:
        raise FeatureNotSupported("cannot use subquery in COPY FROM WHERE condition")

    scope = Scope(no_subquery)
    entries = tuple(Entry(column.name, values[column.name]) for column in target.columns if column.name in values)
    binding.add(scope, RangeVariable(target.name, "given", entries, target.schema))
    for column in where.find_all(exp.Column):
        named = next((each for each in target.columns if each.name == column.name), None)
        if named is not None and named.generated is not None:
            raise InvalidColumnReference(
                "generated columns are not supported in COPY FROM WHERE conditions",
                detail=f'Column "{named.name}" is a generated column.',
                position=place_of(column),
            )
    return binding.expressions(scope, Clause.COPY).condition(where, "WHERE")


def filled(
    binding: Binding, target: BoundRelation, visible: Sequence[Column], stored: Mapping[str, exp.Expr], given: Bound
) -> Bound:
    values = dict(stored) | generated(binding, target, stored)
    as_given = given.rows is not None and all(column.shown is None for column in visible)
    if as_given and len(given.columns) == len(visible) and list(stored) == [c.name for c in visible]:
        return Bound(
            given.ast, [OutputColumn(c.name, o.alias, c.type) for c, o in zip(visible, given.columns, strict=True)]
        )
    projections = [aliased(as_stored(values[column.name].copy(), column), column.name) for column in visible]
    outputs = [OutputColumn(column.name, column.name, column.type) for column in visible]
    binding.reserve("given")
    return Bound(exp.Select(expressions=projections).from_(derived_table(given.ast, "given"), copy=False), outputs)
