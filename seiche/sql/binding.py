"""Binding one statement: what its clauses share, whatever module binds them.

Aliases are made unique and results are retyped here; how a query is bound is handed in, so that the clauses reach the
queries inside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from seiche.errors import DuplicateAlias
from seiche.sql.binder import Binder, Clause, Usage
from seiche.sql.bound import (
    Bound,
    BoundQuery,
    Converter,
    Names,
    OutputColumn,
    aliased,
    derived_table,
    rows_query,
)
from seiche.sql.casts import convert
from seiche.sql.commit_time import with_epochs
from seiche.sql.expressions import expression_binder
from seiche.sql.nodes import Settings, is_unknown, typed
from seiche.sql.places import place_of
from seiche.sql.recursive import is_recursive, readable_first
from seiche.sql.scopes import Entry, RangeVariable, Scope, Subquery
from seiche.sql.user_functions import Functions
from seiche.types import VARCHAR, Kind, SqlType


@dataclass(frozen=True, slots=True)
class Rounds:
    """What a recursive query means in its own step: the rows of the round before, by their source and columns."""

    source: str
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True)
class CommonTable:
    """A query of WITH, and those that it sees itself."""

    name: exp.Expr
    query: exp.Expr
    column_names: tuple[str, ...]
    visible: dict[str, CommonTable]
    recursive: bool = False
    rounds: Rounds | None = None


@dataclass(slots=True)
class Binding:
    """Binds one statement; aliases are unique in all of it."""

    names: Names
    settings: Settings
    bind: Callable[[Binding, exp.Expr, Scope | None, Mapping[str, CommonTable]], Bound]
    usage: Usage = field(default_factory=Usage)
    expanding: list[str] = field(default_factory=list)  # the views around, outermost first
    recursions: dict[int, tuple[exp.Expr, Bound | None]] = field(default_factory=dict)  # by the id of their query
    _refs: set[str] = field(default_factory=set)
    _columns: set[str] = field(default_factory=set)  # of everything in FROM

    def query(self, node: exp.Expr, outer: Scope | None, tables_: Mapping[str, CommonTable]) -> Bound:
        return self.bind(self, node, outer, tables_)

    def reserve(self, name: str) -> None:
        """Keeps a name from being given to something else."""
        self._refs.add(name.lower())

    def add(self, scope: Scope, variable: RangeVariable) -> None:
        """Brings something of FROM into sight."""
        scope.add(variable)
        self._columns.update(entry.name.lower() for entry in variable.entries)

    def finished(self, bound: Bound) -> BoundQuery:
        usage = self.usage
        with_epochs(bound.ast, self.settings)
        self._rename_ambiguous(bound.ast)
        return BoundQuery(bound.ast, tuple(bound.columns), frozenset(usage.relations), usage.now, tuple(usage.volatile))

    def _rename_ambiguous(self, query: exp.Expr) -> None:
        """Gives other aliases to relations that are called like a column.

        In a subquery whose relation has a column `a`, Spark takes `a.b` of the query around it for a field of that
        column.
        """
        ambiguous = self._refs & self._columns
        if not ambiguous:
            return
        new: dict[str, str] = {}
        for node in list(query.find_all(exp.Column, exp.TableAlias)):
            part = "table" if isinstance(node, exp.Column) else "this"
            name = node.args.get(part)
            if not isinstance(name, exp.Identifier) or name.name.lower() not in ambiguous:
                continue
            if name.name not in new:
                new[name.name] = self.ref(f"{name.name}_rows")
                while new[name.name].lower() in self._columns:
                    new[name.name] = self.ref(f"{name.name}_rows")
            node.set(part, exp.to_identifier(new[name.name], quoted=True))

    def ref(self, name: str) -> str:
        candidate, count = name, 1
        while candidate.lower() in self._refs:
            count += 1
            candidate = f"{name}_{count}"
        self._refs.add(candidate.lower())
        return candidate

    def expressions(self, scope: Scope, clause: Clause) -> Binder:
        functions = self.names if isinstance(self.names, Functions) else None
        return expression_binder(scope, self.settings, self.usage, clause, functions)

    def scope_of(self, values: Sequence[tuple[str, exp.Expr]]) -> Scope:
        """A scope of nothing but named values."""
        return Scope(self.subquery({}), entries=[Entry(name, node) for name, node in values])

    def subquery(self, tables_: Mapping[str, CommonTable]) -> Callable[[exp.Expr, Scope], Subquery]:
        def bind(query: exp.Expr, scope: Scope) -> Subquery:
            bound = self.settled(self.query(query, scope, tables_))
            return bound.ast, tuple((column.alias, column.type) for column in bound.columns)

        return bind

    def settled(self, bound: Bound) -> Bound:
        """Literals that nothing has typed are text."""
        if all(column.type.kind is not Kind.NULL for column in bound.columns):
            return bound
        types = [VARCHAR if column.type.kind is Kind.NULL else column.type for column in bound.columns]
        return self.retyped(bound, types, lambda node, index: convert(node, types[index], self.settings))

    def retyped(self, bound: Bound, types: Sequence[SqlType], change: Converter) -> Bound:
        """The same rows in other types."""
        columns = [replace(column, type=type_) for column, type_ in zip(bound.columns, types, strict=True)]
        if bound.rows is not None:
            rows = [[change(cell, index) for index, cell in enumerate(row)] for row in bound.rows]
            return Bound(rows_query(rows, columns, self.ref), columns, rows)
        if all(a.type == b.type for a, b in zip(columns, bound.columns, strict=True)) and not any(
            column.type.kind is Kind.NULL for column in bound.columns
        ):
            return bound
        ast = bound.ast
        if isinstance(ast, exp.Select) and not ast.args.get("distinct") and not ast.args.get("group"):
            changed = [
                aliased(change(projection.this, index), projection.alias)
                for index, projection in enumerate(ast.expressions)
            ]
            ast.set("expressions", changed)
            return Bound(ast, columns)
        if isinstance(ast, exp.Select):
            # Under DISTINCT and GROUP BY only literals change in place; the rest changes around the query.
            old = list(bound.columns)
            for index, projection in enumerate(ast.expressions):
                if is_unknown(projection.this):
                    projection.replace(aliased(change(projection.this, index), projection.alias))
                    old[index] = columns[index]
            if old == columns:
                return Bound(ast, columns)
            bound = Bound(ast, old)
        ref = self.ref("retyped")
        outputs = [typed(exp.column(old.alias, table=ref, quoted=True), old.type) for old in bound.columns]
        changed = [aliased(change(node, index), node.name) for index, node in enumerate(outputs)]
        return Bound(exp.Select(expressions=changed).from_(derived_table(ast, ref), copy=False), columns)


def common_tables(node: exp.Expr, tables_: Mapping[str, CommonTable]) -> dict[str, CommonTable]:
    visible = dict(tables_)
    with_ = node.args.get("with_") or node.args.get("with")
    if with_ is None:
        return visible
    written: set[str] = set()
    for cte in with_.expressions:
        if cte.alias in written:
            raise DuplicateAlias(
                f'WITH query name "{cte.alias}" specified more than once',
                hint="Give one of them another name.",
                position=place_of(cte.args["alias"].this),
            )
        written.add(cte.alias)
    for cte in readable_first(with_) if with_.recursive else with_.expressions:
        names = tuple(column.name for column in cte.args["alias"].columns)
        recursive = bool(with_.recursive) and is_recursive(cte)
        visible[cte.alias] = CommonTable(cte.args["alias"].this, cte.this, names, dict(visible), recursive)
    return visible
