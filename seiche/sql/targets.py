"""The table that a statement writes to: its columns in scope, its defaults and its generated columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlglot
from sqlglot import exp

from seiche.errors import FeatureNotSupported
from seiche.model import Column
from seiche.sql.binder import Clause
from seiche.sql.binding import Binding
from seiche.sql.bound import Bound, BoundRelation, OutputColumn, aliased, derived_table, named_table
from seiche.sql.casts import assign
from seiche.sql.dialect import Seiche
from seiche.sql.nodes import null, typed
from seiche.sql.scopes import Entry, RangeVariable, Scope, Subquery


def parsed(expression: exp.Expr | str) -> exp.Expr:
    return sqlglot.parse_one(expression, dialect=Seiche) if isinstance(expression, str) else expression


def bare_scope(columns: Sequence[Column], values: Mapping[str, exp.Expr] | None = None) -> Scope:
    def no_subquery(query: exp.Expr, scope: Scope) -> Subquery:
        raise FeatureNotSupported("a subquery cannot stand in a column's expression")

    entries = []
    for column in columns:
        node = values[column.name] if values is not None else typed(exp.column(column.name, quoted=True), column.type)
        entries.append(Entry(column.name, node, column.hidden))
    return Scope(no_subquery, entries=entries)


def target_scope(binding: Binding, target: BoundRelation, alias: str | None) -> tuple[Scope, exp.Expr]:
    if target.id is not None:
        binding.usage.relations.add(target.id)
    name = alias or target.name
    ref = binding.ref(name)
    entries = tuple(
        Entry(c.name, typed(exp.column(c.name, table=ref, quoted=True), c.type), c.hidden) for c in target.columns
    )
    scope = Scope(binding.subquery({}))
    scope.add(RangeVariable(name, ref, entries, None if alias else "public"))
    return scope, named_table(target.source, ref)


def default_of(binding: Binding, column: Column) -> exp.Expr:
    if column.default is None:
        return null(column.type)
    binder = binding.expressions(bare_scope([]), Clause.DEFAULT)
    return assign(binder.bind(parsed(column.default)), column.type, column.name, binding.settings)


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


def filled(
    binding: Binding, target: BoundRelation, visible: Sequence[Column], stored: Mapping[str, exp.Expr], given: Bound
) -> Bound:
    values = dict(stored) | generated(binding, target, stored)
    if given.rows is not None and len(given.columns) == len(visible) and list(stored) == [c.name for c in visible]:
        return Bound(
            given.ast, [OutputColumn(c.name, o.alias, c.type) for c, o in zip(visible, given.columns, strict=True)]
        )
    projections = [aliased(values[column.name].copy(), column.name) for column in visible]
    outputs = [OutputColumn(column.name, column.name, column.type) for column in visible]
    binding.reserve("given")
    return Bound(exp.Select(expressions=projections).from_(derived_table(given.ast, "given"), copy=False), outputs)
