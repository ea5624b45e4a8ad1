"""Queries: FROM, WHERE, GROUP BY and the rest of SELECT, set operations and VALUES, bound into one typed tree.

`QueryBinder` walks a statement once, innermost scopes first; expressions are `sql/expressions.py`'s business. What
the bound query looks like is promised in `sql/bind.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import sqlglot
from sqlglot import exp

from seiche.errors import (
    DatatypeMismatch,
    DuplicateAlias,
    FeatureNotSupported,
    GroupingError,
    InvalidDefinition,
    InvalidParameter,
    SyntaxError_,
    UndefinedColumn,
)
from seiche.model import Column
from seiche.sql import tables
from seiche.sql.aggregates import is_aggregate, is_aggregate_node
from seiche.sql.binder import Binder, Clause, Usage, sorted_by
from seiche.sql.calls import call_of
from seiche.sql.casts import assign, common_type, convert, settle
from seiche.sql.dialect import Seiche
from seiche.sql.expressions import expression_binder
from seiche.sql.functions import is_function
from seiche.sql.nodes import (
    Settings,
    boolean,
    conjunction,
    equal,
    integer,
    is_unknown,
    null,
    spark_cast,
    type_of,
    typed,
)
from seiche.sql.operators import comparable, sort_key
from seiche.sql.scopes import Entry, RangeVariable, Scope, Subquery
from seiche.sql.user_functions import Functions
from seiche.types import BIGINT, INTEGER, NULL, VARCHAR, Kind, SqlType


@dataclass(frozen=True, slots=True)
class BoundRelation:
    """What a name stands for. `view` is the definition of a plain view, expanded where it is used; `view_names` is how
    that definition looks names up, where not as the query around it does."""

    id: int | None
    name: str
    columns: tuple[Column, ...]
    view: exp.Expr | None = None
    source: str = ""
    view_names: Names | None = None


class Names(Protocol):
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        """The relation of a name, with its schema and database as far as written; raises UndefinedTable."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a result: the user's name for it, and its unique name in the query."""

    name: str
    alias: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query in Spark's dialect. `relations` are the ids of all it reads."""

    ast: exp.Query
    columns: tuple[OutputColumn, ...]
    relations: frozenset[int]
    uses_now: bool
    volatile: tuple[str, ...]

    @property
    def sql(self) -> str:
        return self.ast.sql("spark")


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


def row_cells(row: exp.Expr) -> list[exp.Expr]:
    return list(row.expressions) if isinstance(row, exp.Tuple) else [row.this if isinstance(row, exp.Paren) else row]


Converter = Callable[[exp.Expr, int], exp.Expr]


@dataclass(slots=True)
class Bound:
    """A query in the making. Its literals may still have no type; `rows` are the cells of a VALUES."""

    ast: exp.Query
    columns: list[OutputColumn]
    rows: list[list[exp.Expr]] | None = None


@dataclass(frozen=True, slots=True)
class _CommonTable:
    query: exp.Expr
    column_names: tuple[str, ...]
    visible: dict[str, _CommonTable]


class QueryBinder:
    """Binds one statement; aliases are unique in all of it."""

    def __init__(self, names: Names, settings: Settings) -> None:
        self.settings = settings
        self.usage = Usage()
        self._names = names
        self._refs: set[str] = set()
        self._expanding: list[str] = []

    def finished(self, bound: Bound) -> BoundQuery:
        usage = self.usage
        return BoundQuery(bound.ast, tuple(bound.columns), frozenset(usage.relations), usage.now, tuple(usage.volatile))

    def ref(self, name: str) -> str:
        candidate, count = name, 1
        while candidate.lower() in self._refs:
            count += 1
            candidate = f"{name}_{count}"
        self._refs.add(candidate.lower())
        return candidate

    def expressions(self, scope: Scope, clause: Clause) -> Binder:
        functions = self._names if isinstance(self._names, Functions) else None
        return expression_binder(scope, self.settings, self.usage, clause, functions)

    def scope_of(self, values: Sequence[tuple[str, exp.Expr]]) -> Scope:
        """A scope of nothing but named values."""
        return Scope(self._subquery({}), entries=[Entry(name, node) for name, node in values])

    # --- types of results ----------------------------------------------------------------------------

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
            return Bound(self._values_ast(rows, columns), columns, rows)
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

    # --- the kinds of query --------------------------------------------------------------------------

    def query(self, node: exp.Expr, outer: Scope | None, tables_: Mapping[str, _CommonTable]) -> Bound:
        visible = self._with(node, tables_)
        match node:
            case exp.Subquery():
                inner = self.query(node.this, outer, visible)
                if any(node.args.get(part) for part in ("order", "limit", "offset")):
                    return self._around(inner, node)
                return inner
            case exp.Select():
                return self._select(node, outer, visible)
            case exp.SetOperation():
                return self._set_operation(node, outer, visible)
            case exp.Values():
                return self._ordered_output(self._values(node, outer, visible), node)
            case exp.Table():
                return self._select(exp.Select(expressions=[exp.Star()]).from_(node), outer, visible)
            case exp.Paren():
                return self.query(node.this, outer, visible)
        raise FeatureNotSupported(f"query {node.sql('risingwave')} is not supported")

    def _with(self, node: exp.Expr, tables_: Mapping[str, _CommonTable]) -> dict[str, _CommonTable]:
        visible = dict(tables_)
        with_ = node.args.get("with_") or node.args.get("with")
        if with_ is None:
            return visible
        written: set[str] = set()
        for cte in with_.expressions:
            if cte.alias in written:
                raise DuplicateAlias(
                    f'WITH query name "{cte.alias}" specified more than once', hint="Give one of them another name."
                )
            written.add(cte.alias)
            if with_.recursive and any(t.name == cte.alias for t in cte.this.find_all(exp.Table)):
                raise FeatureNotSupported(f'recursive common table expression "{cte.alias}" is not supported')
            names = tuple(column.name for column in cte.args["alias"].columns)
            visible[cte.alias] = _CommonTable(cte.this, names, dict(visible))
        return visible

    def _subquery(self, tables_: Mapping[str, _CommonTable]) -> Callable[[exp.Expr, Scope], Subquery]:
        def bind(query: exp.Expr, scope: Scope) -> Subquery:
            bound = self.settled(self.query(query, scope, tables_))
            return bound.ast, tuple((column.alias, column.type) for column in bound.columns)

        return bind

    def _around(self, inner: Bound, node: exp.Expr) -> Bound:
        inner = self.settled(inner)
        ref = self.ref("inner")
        projections = [
            aliased(typed(exp.column(c.alias, table=ref, quoted=True), c.type), c.alias) for c in inner.columns
        ]
        select = exp.Select(expressions=projections).from_(derived_table(inner.ast, ref), copy=False)
        return self._ordered_output(Bound(select, inner.columns), node)

    def _ordered_output(self, bound: Bound, node: exp.Expr) -> Bound:
        """ORDER BY, LIMIT and OFFSET after a set operation or VALUES: only output names and positions."""
        order = node.args.get("order")
        if order is None and not node.args.get("limit") and not node.args.get("offset"):
            return bound
        bound = self.settled(bound)
        if bound.rows is not None:
            bound = Bound(bound.ast, bound.columns)
        scope = Scope(
            self._subquery({}),
            entries=[Entry(c.name, typed(exp.column(c.alias, quoted=True), c.type)) for c in bound.columns],
        )
        binder = self.expressions(scope, Clause.ORDER)
        if order is not None:
            keys = []
            for item in order.expressions:
                position = _ordinal(item.this)
                if position is not None:
                    target = _at(bound.columns, position, "ORDER BY")
                    keys.append(sorted_by(typed(exp.column(target.alias, quoted=True), target.type), item))
                else:
                    keys.append(binder.ordered(item))
            bound.ast.set("order", exp.Order(expressions=keys))
        self._limits(bound.ast, node, scope)
        return bound

    def _set_operation(self, node: exp.SetOperation, outer: Scope | None, tables_: Mapping[str, _CommonTable]) -> Bound:
        name = type(node).__name__.upper()
        operands = _flattened(node)
        bounds = [self.query(operand, outer, tables_) for operand in operands]
        width = len(bounds[0].columns)
        if any(len(bound.columns) != width for bound in bounds):
            raise SyntaxError_(f"each {name} query must have the same number of columns")
        types = [common_type([bound.columns[index].type for bound in bounds], name) for index in range(width)]

        def change(part: exp.Expr, index: int) -> exp.Expr:
            return convert(part, types[index], self.settings)

        parts = [_operand(self.retyped(bound, types, change).ast) for bound in bounds]
        columns = [replace(column, type=type_) for column, type_ in zip(bounds[0].columns, types, strict=True)]
        ast = parts[0]
        for part in parts[1:]:
            ast = type(node)(this=ast, expression=part, distinct=bool(node.args.get("distinct")))
        return self._ordered_output(Bound(ast, columns), node)

    # --- VALUES --------------------------------------------------------------------------------------

    def _values(self, node: exp.Values, outer: Scope | None, tables_: Mapping[str, _CommonTable]) -> Bound:
        rows = self._bound_cells(node, outer, tables_)
        types = []
        for index in range(len(rows[0])):
            found = [type_of(row[index]) for row in rows]
            # A column of nothing but untyped literals stays untyped: a set operation may know better.
            types.append(NULL if all(t.kind is Kind.NULL for t in found) else common_type(found, "VALUES"))
        rows = [
            [
                cell if type_.kind is Kind.NULL else convert(cell, type_, self.settings)
                for type_, cell in zip(types, row, strict=True)
            ]
            for row in rows
        ]
        return self._rows(rows, types)

    def raw_values(self, node: exp.Values) -> Bound:
        """VALUES of an INSERT: each cell goes to its column's type on its own."""
        rows = self._bound_cells(node, None, {})
        return self._rows(rows, [NULL] * len(rows[0]))

    def _bound_cells(
        self, node: exp.Values, outer: Scope | None, tables_: Mapping[str, _CommonTable]
    ) -> list[list[exp.Expr]]:
        scope = Scope(self._subquery(tables_), parent=outer)
        binder = self.expressions(scope, Clause.VALUES)
        rows = [[binder.bind(cell) for cell in row_cells(row)] for row in node.expressions]
        if any(len(row) != len(rows[0]) for row in rows):
            raise SyntaxError_("VALUES lists must all be the same length")
        return rows

    def _rows(self, rows: list[list[exp.Expr]], types: Sequence[SqlType]) -> Bound:
        columns = [OutputColumn(f"column{i}", f"column{i}", type_) for i, type_ in enumerate(types, start=1)]
        return Bound(self._values_ast(rows, columns), columns, rows)

    def _values_ast(self, rows: list[list[exp.Expr]], columns: Sequence[OutputColumn]) -> exp.Query:
        def select(row: list[exp.Expr]) -> exp.Select:
            return exp.Select(expressions=[aliased(cell.copy(), c.alias) for cell, c in zip(row, columns, strict=True)])

        if len(rows) == 1:
            return select(rows[0])
        if any(_not_constant(cell) for row in rows for cell in row):
            ast: exp.Query = select(rows[0])
            for row in rows[1:]:
                ast = exp.Union(this=ast, expression=select(row), distinct=False)
            return ast
        ref = self.ref("rows")
        alias = exp.TableAlias(
            this=exp.to_identifier(ref, quoted=True), columns=[exp.to_identifier(c.alias, quoted=True) for c in columns]
        )
        values = exp.Values(
            expressions=[exp.Tuple(expressions=[cell.copy() for cell in row]) for row in rows], alias=alias
        )
        projections = [aliased(typed(exp.column(c.alias, table=ref, quoted=True), c.type), c.alias) for c in columns]
        return exp.Select(expressions=projections).from_(values, copy=False)

    # --- SELECT --------------------------------------------------------------------------------------

    def _select(self, node: exp.Select, outer: Scope | None, tables_: Mapping[str, _CommonTable]) -> Bound:
        for part in ("qualify", "into", "locks", "connect", "laterals", "sample", "pivots", "match"):
            if node.args.get(part):
                raise FeatureNotSupported(f"{part.upper()} is not supported in a query")
        scope = Scope(self._subquery(tables_), parent=outer)
        select = exp.Select()
        self._from(node, select, scope, tables_)
        for window in node.args.get("windows") or ():
            scope.windows[window.name] = window
        node = self._exploded(node, select, scope)
        if (where := node.args.get("where")) is not None:
            select.set("where", exp.Where(this=self.expressions(scope, Clause.WHERE).condition(where.this, "WHERE")))
        projections, columns = self.projections(node.expressions, scope)
        groups = self._group(node, select, scope, projections, columns)
        having = node.args.get("having")
        if having is not None:
            select.set(
                "having", exp.Having(this=self.expressions(scope, Clause.HAVING).condition(having.this, "HAVING"))
            )
        select.set("expressions", projections)
        keys = self._order(node, scope, projections, columns)
        self._check_grouping(select, scope, groups, keys, having is not None)
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on") is not None:
            return self._distinct_on(node, select, columns, distinct.args["on"], keys, scope)
        if distinct is not None:
            self._check_distinct(keys)
            bound = self.settled(Bound(select, columns))
            assert bound.ast is select  # the literals of a select list are typed in place
            columns = bound.columns
            select.set("distinct", exp.Distinct())
        if keys:
            select.set("order", exp.Order(expressions=keys))
        self._limits(select, node, scope)
        return Bound(select, columns)

    def _exploded(self, node: exp.Select, select: exp.Select, scope: Scope) -> exp.Select:
        """Set-returning functions of the select list, joined as if they stood in FROM, side by side."""
        found = [
            part
            for projection in node.expressions
            for part in _own_nodes(projection)
            if (named := call_of(part)) is not None and named[0] in tables.SET_RETURNING
        ]
        if not found:
            return node
        calls = (call_of(part) for projection in node.expressions for part in _own_nodes(projection))
        aggregated = any(made is not None and is_aggregate(made[0]) for made in calls)
        windowed = any(projection.find(exp.Window) for projection in node.expressions)
        if node.args.get("group") or node.args.get("having") or aggregated or windowed:
            raise FeatureNotSupported(
                "a set-returning function in the select list of a grouped query is not supported",
                hint="Put the grouping into a derived table, or the function into FROM.",
            )
        binder = self.expressions(scope, Clause.FROM)
        arrays: list[exp.Expr] = []
        names: list[str] = []
        for part in found:
            call = call_of(part)
            assert call is not None
            bound = [binder.bind(argument) for argument in call[1]]
            arrays.append(tables.table_function(call[0], bound, self.settings, ordinality=False).exploded)
            names.append(call[0])
        made = tables.single(arrays[0]) if len(arrays) == 1 else tables.zipped(arrays)
        ref = self.ref("rows")
        exploded, entries = tables.rendered(made, "value", ref)
        entries = tuple(Entry(f"value{index}", entry.node) for index, entry in enumerate(entries))
        derived = derived_table(exploded, ref)
        if select.args.get("from_") is None:
            select.set("from_", exp.From(this=derived))
        else:
            select.append("joins", exp.Join(this=_lateral(derived), kind="CROSS"))
        # Its columns are found by name, but a star does not show them.
        scope.variables.append(RangeVariable(ref, ref, entries))
        copied = node.copy()
        wanted = iter(enumerate(names))
        projections: list[exp.Expr] = []
        for projection in copied.expressions:
            projections.append(_with_columns(projection, ref, wanted))
        copied.set("expressions", projections)
        return copied

    def projections(self, nodes: Sequence[exp.Expr], scope: Scope) -> tuple[list[exp.Expr], list[OutputColumn]]:
        """The select list with stars expanded, each item under a unique name."""
        binder = self.expressions(scope, Clause.SELECT)
        named: list[tuple[str, exp.Expr]] = []
        for node in nodes:
            match node:
                case exp.Star():
                    if not scope.variables and not scope.entries:
                        raise SyntaxError_("SELECT * with no tables specified is not valid")
                    named += [(entry.name, entry.node.copy()) for entry in scope.visible()]
                case exp.Column() if isinstance(node.this, exp.Star):
                    named += [(entry.name, entry.node.copy()) for entry in scope.visible(node.table, node.db or None)]
                case exp.Dot() if isinstance(node.expression, exp.Star):
                    named += self._fields(binder.bind(node.this))
                case _:
                    named.append((output_name(node), binder.bind(node)))
        taken: set[str] = set()
        projections: list[exp.Expr] = []
        columns: list[OutputColumn] = []
        for name, bound in named:
            alias = _unique("column" if name == "?column?" else name, taken)
            projections.append(aliased(bound, alias))
            columns.append(OutputColumn(name, alias, type_of(bound)))
        return projections, columns

    def _fields(self, node: exp.Expr) -> list[tuple[str, exp.Expr]]:
        type_ = type_of(node)
        if type_.kind is not Kind.STRUCT:
            raise DatatypeMismatch(f"type {type_} is not composite")
        return [
            (
                name,
                typed(exp.Dot(this=exp.Paren(this=node.copy()), expression=exp.to_identifier(name, quoted=True)), part),
            )
            for name, part in type_.fields
        ]

    # --- FROM ----------------------------------------------------------------------------------------

    def _from(self, node: exp.Select, select: exp.Select, scope: Scope, tables_: Mapping[str, _CommonTable]) -> None:
        clause = node.args.get("from_") or node.args.get("from")
        if clause is None:
            return
        first, joins = self._table(clause.this, scope, tables_)
        select.set("from_", exp.From(this=first))
        made = [*joins, *self._joins(node.args.get("joins") or (), scope, tables_)]
        if made:
            select.set("joins", made)

    def _joins(self, joins: Sequence[exp.Join], scope: Scope, tables_: Mapping[str, _CommonTable]) -> list[exp.Join]:
        made: list[exp.Join] = []
        for join in joins:
            made += self._join(join, scope, tables_)
        return made

    def _join(self, join: exp.Join, scope: Scope, tables_: Mapping[str, _CommonTable]) -> list[exp.Join]:
        left = list(scope.entries)
        before = len(scope.variables)
        table, nested = self._table(join.this, scope, tables_)
        if nested:
            raise FeatureNotSupported(
                "a join in parentheses is not supported", hint="Write it as a subquery, or without parentheses."
            )
        right = scope.entries[len(left) :]
        side = (join.side or "").upper()
        kind = (join.kind or "").upper()
        if kind in ("SEMI", "ANTI") or (join.method and join.method.upper() not in ("NATURAL",)):
            raise FeatureNotSupported(f"{join.method or kind} joins are not supported")
        on = join.args.get("on")
        using = [item.name for item in join.args.get("using") or ()]
        if (join.method or "").upper() == "NATURAL":
            right_names = {entry.name for entry in right if not entry.hidden}
            using = list(dict.fromkeys(entry.name for entry in left if not entry.hidden and entry.name in right_names))
        condition: exp.Expr | None = None
        if using:
            condition = self._using(using, left, right, side, scope)
        elif on is not None:
            condition = self.expressions(scope, Clause.JOIN).condition(on, "JOIN/ON")
        del before
        made = exp.Join(this=table)
        if condition is None:
            if side:
                condition = boolean(True)
            else:
                made.set("kind", "CROSS")
        if condition is not None:
            made.set("on", condition)
            if side:
                made.set("side", side)
            else:
                made.set("kind", "INNER")
        return [made]

    def _using(
        self, names: Sequence[str], left: Sequence[Entry], right: Sequence[Entry], side: str, scope: Scope
    ) -> exp.Expr:
        conditions: list[exp.Expr] = []
        merged: list[Entry] = []
        for name in names:
            found = []
            for which, entries in (("left", left), ("right", right)):
                matches = [entry for entry in entries if entry.name == name and not entry.hidden]
                if len(matches) != 1:
                    problem = "does not exist in" if not matches else "appears more than once in"
                    error = UndefinedColumn if not matches else SyntaxError_
                    raise error(f'column "{name}" specified in USING clause {problem} {which} table')
                found.append(matches[0].node)
            a, b = comparable("=", found[0].copy(), found[1].copy(), self.settings)
            conditions.append(equal(a, b))
            type_ = common_type([type_of(found[0]), type_of(found[1])], "JOIN/USING")
            sides = [convert(part.copy(), type_, self.settings) for part in found]
            value = {"RIGHT": sides[1], "FULL": typed(exp.Coalesce(this=sides[0], expressions=[sides[1]]), type_)}.get(
                side, sides[0]
            )
            merged.append(Entry(name, value))
        rest = [entry for entry in [*left, *right] if entry.hidden or entry.name not in names]
        scope.entries = merged + rest
        return conjunction(conditions)

    def _table(
        self, node: exp.Expr, scope: Scope, tables_: Mapping[str, _CommonTable]
    ) -> tuple[exp.Expr, list[exp.Join]]:
        """One item of FROM, added to the scope; with the joins that were written inside it."""
        lateral = isinstance(node, exp.Lateral)
        inner = node.this if lateral else node
        alias = node.args.get("alias") or (inner.args.get("alias") if lateral else None)
        match inner:
            case exp.Table() if isinstance(inner.this, exp.Func | exp.Dot):
                made = self._function(inner.this, alias, scope, ordinality=bool(inner.args.get("ordinality")))
            case exp.Func() if not isinstance(inner, exp.Unnest):
                made = self._function(inner, alias, scope, ordinality=bool(node.args.get("ordinality")))
            case exp.Unnest():
                made = self._unnest(inner, alias, scope)
            case exp.Table():
                made = self._relation(inner, alias, scope, tables_)
            case exp.Values():
                bound = self.settled(self._values(inner, scope if lateral else scope.parent, tables_))
                made = self._derived_table(bound, alias, scope, "values", lateral=False)
            case exp.Subquery() if isinstance(inner.this, exp.Table | exp.Paren) and not alias:
                first, joins = self._table(inner.this, scope, tables_)
                return first, [*joins, *self._joins(inner.args.get("joins") or (), scope, tables_)]
            case exp.Subquery():
                bound = self.settled(
                    self.query(
                        inner.this if not has_tail(inner) else inner.copy(),
                        scope if lateral else scope.parent,
                        self._with(inner, tables_),
                    )
                )
                made = self._derived_table(bound, alias, scope, "subquery", lateral=lateral)
            case _:
                raise FeatureNotSupported(f"{inner.sql('risingwave')} is not supported in FROM")
        joins = self._joins(inner.args.get("joins") or (), scope, tables_)
        return made, joins

    def _relation(
        self, node: exp.Table, alias: exp.Expr | None, scope: Scope, tables_: Mapping[str, _CommonTable]
    ) -> exp.Expr:
        for part in ("version", "sample", "pivots", "when"):
            if node.args.get(part):
                raise FeatureNotSupported(f"{part.upper()} is not supported after a table name")
        if not node.db and node.name in tables_:
            return self._common_table(node, tables_[node.name], alias, scope)
        parts = tuple(part.name for part in node.parts)
        relation = self._names.relation(parts)
        if relation.id is not None and not self._expanding:
            self.usage.references.append((relation.id, node))
        name = alias.name if alias is not None and alias.name else node.name
        if relation.view is not None:
            return self._view(relation, name, alias, scope)
        if relation.id is not None:
            self.usage.relations.add(relation.id)
        ref = self.ref(name)
        renamed = _column_names(alias)
        visible = [column for column in relation.columns if not column.hidden]
        _check_names(renamed, len(visible), name)
        new_names = dict(zip((column.name for column in visible), renamed, strict=False))
        entries = tuple(
            Entry(new_names.get(c.name, c.name), typed(exp.column(c.name, table=ref, quoted=True), c.type), c.hidden)
            for c in relation.columns
        )
        schema = node.db or (None if alias is not None else "public")
        scope.add(RangeVariable(name, ref, entries, schema))
        return _named_table(relation.source, ref)

    def _view(self, relation: BoundRelation, name: str, alias: exp.Expr | None, scope: Scope) -> exp.Expr:
        assert relation.view is not None
        if relation.name in self._expanding:
            raise InvalidDefinition(f'view "{relation.name}" refers to itself')
        self._expanding.append(relation.name)
        around, self._names = self._names, relation.view_names or self._names
        bound = self.settled(self.query(relation.view, None, {}))
        self._names = around
        self._expanding.pop()
        names = [column.name for column in relation.columns]
        if len(names) == len(bound.columns):
            bound = Bound(bound.ast, [replace(c, name=n) for c, n in zip(bound.columns, names, strict=True)])
        return self._derived_table(bound, alias, scope, name, lateral=False)

    def _common_table(self, node: exp.Table, table: _CommonTable, alias: exp.Expr | None, scope: Scope) -> exp.Expr:
        bound = self.settled(self.query(table.query, None, table.visible))
        _check_names(list(table.column_names), len(bound.columns), node.name)
        columns = [replace(c, name=n) for c, n in zip(bound.columns, table.column_names, strict=False)]
        return self._derived_table(
            Bound(bound.ast, columns + bound.columns[len(columns) :]), alias, scope, node.name, lateral=False
        )

    def _derived_table(
        self, bound: Bound, alias: exp.Expr | None, scope: Scope, default: str, *, lateral: bool
    ) -> exp.Expr:
        name = alias.name if alias is not None and alias.name else default
        if alias is None and default in ("subquery", "values"):
            name = self.ref(default)
            self._refs.discard(name.lower())
        ref = self.ref(name)
        renamed = _column_names(alias)
        _check_names(renamed, len(bound.columns), name)
        entries = []
        for index, column in enumerate(bound.columns):
            shown = renamed[index] if index < len(renamed) else column.name
            entries.append(Entry(shown, typed(exp.column(column.alias, table=ref, quoted=True), column.type)))
        scope.add(RangeVariable(name, ref, tuple(entries)))
        derived = derived_table(bound.ast, ref)
        return _lateral(derived) if lateral else derived

    def _unnest(self, node: exp.Unnest, alias: exp.Expr | None, scope: Scope) -> exp.Expr:
        offset = node.args.get("offset")
        ordinal = offset.name if isinstance(offset, exp.Identifier) else "ordinality" if offset else None
        call = exp.Anonymous(this="unnest", expressions=list(node.expressions))
        return self._function(
            call, alias or node.args.get("alias"), scope, ordinality=ordinal is not None, ordinal_name=ordinal
        )

    def _function(
        self, node: exp.Expr, alias: exp.Expr | None, scope: Scope, *, ordinality: bool, ordinal_name: str | None = None
    ) -> exp.Expr:
        found = call_of(node.expression if isinstance(node, exp.Dot) else node)
        if found is None:
            raise FeatureNotSupported(f"{node.sql('risingwave')} is not supported in FROM")
        name, arguments = found
        if name in ("tumble", "hop"):
            return self._time_window(name, arguments, alias, scope)
        inside = Scope(scope.bind_subquery, parent=scope)
        binder = self.expressions(inside, Clause.FROM)
        if is_function(name) or name in ("now", "current_date"):
            made = tables.single_row(settle(binder.bind(node), self.settings))
        else:
            made = tables.table_function(
                name, [binder.bind(a) for a in arguments], self.settings, ordinality=ordinality
            )
        shown = alias.name if alias is not None and alias.name else name
        ref = self.ref(shown)
        select, entries = tables.rendered(made, shown, ref)
        renamed = _column_names(alias)
        if ordinality and ordinal_name and len(renamed) == len(entries) - 1:
            renamed.append(ordinal_name)
        _check_names(renamed, len(entries), shown)
        if renamed:
            entries = tuple(
                Entry(n, e.node)
                for n, e in zip([*renamed, *(e.name for e in entries[len(renamed) :])], entries, strict=True)
            )
        derived = derived_table(select, ref)
        uses_outer = any(column.table in scope.refs for column in select.find_all(exp.Column))
        scope.add(RangeVariable(shown, ref, entries, scalar=len(entries) == 1))
        return _lateral(derived) if uses_outer else derived

    def _time_window(self, name: str, arguments: list[exp.Expr], alias: exp.Expr | None, scope: Scope) -> exp.Expr:
        """TUMBLE and HOP: the table's rows with the window, or windows, that each falls in."""
        source = arguments[0]
        if not isinstance(source, exp.Column):
            raise SyntaxError_(f"the first argument of {name} must be a table")
        inner = Scope(scope.bind_subquery)
        table = self._relation(exp.Table(this=source.this, db=source.args.get("table")), None, inner, {})
        binder = self.expressions(inner, Clause.FROM)
        bound = [binder.bind(argument) for argument in arguments[1:]]
        own, start, size = tables.time_window(
            name, bound, [(e.name, e.node.copy(), e.hidden) for e in inner.entries], self.settings
        )
        taken: set[str] = set()
        named = [(column, node, hidden, _unique(column, taken)) for column, node, hidden in own]
        start_alias = _unique("window_start", taken)
        select = exp.Select(expressions=[aliased(node, column) for _, node, _, column in named]).from_(
            table, copy=False
        )
        if type_of(start).kind is Kind.ARRAY:  # a row for each window
            windows = self.ref("windows")
            exploded, (entry,) = tables.rendered(tables.single(start), "start", windows)
            select.append("joins", exp.Join(this=_lateral(derived_table(exploded, windows)), kind="CROSS"))
            start = entry.node
        shown = alias.name if alias is not None and alias.name else name
        ref = self.ref(shown)
        entries = [
            Entry(column, typed(exp.column(unique, table=ref, quoted=True), type_of(node)), hidden)
            for column, node, hidden, unique in named
        ]
        select.set("expressions", [*select.expressions, aliased(start, start_alias)])
        moment = typed(exp.column(start_alias, table=ref, quoted=True), type_of(start))
        entries += [Entry("window_start", moment), Entry("window_end", tables.window_end(moment.copy(), size))]
        scope.add(RangeVariable(shown, ref, tuple(entries)))
        return derived_table(select, ref)

    # --- GROUP BY ------------------------------------------------------------------------------------

    def _group(
        self,
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

        def key(item: exp.Expr) -> exp.Expr:
            bound = self._group_key(item, scope, projections, columns)
            found.append(bound)
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
        self, item: exp.Expr, scope: Scope, projections: Sequence[exp.Expr], columns: Sequence[OutputColumn]
    ) -> exp.Expr:
        position = _ordinal(item)
        if position is not None:
            _at(columns, position, "GROUP BY")
            return self._no_aggregate(projections[position - 1].this)
        if isinstance(item, exp.Column) and not item.table and scope.local(item.name) is None:
            for projection, column in zip(projections, columns, strict=True):
                if column.name == item.name:
                    return self._no_aggregate(projection.this)
        return settle(self.expressions(scope, Clause.GROUP).bind(item), self.settings)

    def _no_aggregate(self, node: exp.Expr) -> exp.Expr:
        if any(is_aggregate_node(part) for part in node.walk()):
            raise GroupingError("aggregate functions are not allowed in GROUP BY")
        return settle(node, self.settings)

    def _check_grouping(
        self, select: exp.Select, scope: Scope, groups: Sequence[exp.Expr], keys: Sequence[exp.Expr], having: bool
    ) -> None:
        parts = [projection.this for projection in select.expressions]
        if having:
            parts.append(select.args["having"].this)
        parts += [key.this for key in keys if not isinstance(key.this, exp.Column) or key.this.table]
        grouped = (
            select.args.get("group") is not None
            or having
            or any(is_aggregate_node(n) for part in parts for n in _own_nodes(part))
        )
        if not grouped:
            return
        refs = scope.refs
        for part in parts:
            _check_grouped(part, groups, refs)

    # --- ORDER BY, DISTINCT, LIMIT -------------------------------------------------------------------

    def _order(
        self, node: exp.Select, scope: Scope, projections: Sequence[exp.Expr], columns: Sequence[OutputColumn]
    ) -> list[exp.Expr]:
        order = node.args.get("order")
        if order is None:
            return []
        binder = self.expressions(scope, Clause.ORDER)
        return [
            sorted_by(self._sort_target(item.this, binder, projections, columns), item) for item in order.expressions
        ]

    def _sort_target(
        self, item: exp.Expr, binder: Binder, projections: Sequence[exp.Expr], columns: Sequence[OutputColumn]
    ) -> exp.Expr:
        """An output column by position or name; else an expression, which may turn out to be one."""

        def output(index: int) -> exp.Expr:
            column = columns[index]
            return typed(
                exp.column(column.alias, quoted=True), VARCHAR if column.type.kind is Kind.NULL else column.type
            )

        position = _ordinal(item)
        if position is not None:
            _at(columns, position, "ORDER BY")
            return output(position - 1)
        if isinstance(item, exp.Column) and not item.table:
            named = [index for index, column in enumerate(columns) if column.name == item.name]
            if len({projections[index].this for index in named}) > 1:
                raise SyntaxError_(f'ORDER BY "{item.name}" is ambiguous')
            if named:
                return output(named[0])
        bound = settle(binder.bind(item), self.settings)
        for index, projection in enumerate(projections):
            if projection.this == bound:
                return output(index)
        return bound

    def _check_distinct(self, keys: Sequence[exp.Expr]) -> None:
        for key in keys:
            inside = key.find_all(exp.Column)
            if any(column.table for column in inside):
                raise SyntaxError_("for SELECT DISTINCT, ORDER BY expressions must appear in select list")

    def _distinct_on(
        self,
        node: exp.Select,
        select: exp.Select,
        columns: list[OutputColumn],
        on: exp.Expr,
        keys: list[exp.Expr],
        scope: Scope,
    ) -> Bound:
        """The first row of each group in the order given, through row_number()."""
        binder = self.expressions(scope, Clause.ORDER)
        projections = list(select.expressions)
        by_alias = {projection.alias: projection.this for projection in projections}

        def spelled(key: exp.Expr) -> exp.Expr:
            """Output names do not exist yet where the window is computed."""
            spelled_out: exp.Expr = key.copy().transform(
                lambda part: by_alias[part.name].copy() if _is_output(part) and part.name in by_alias else part
            )
            return spelled_out

        wanted = [
            self._sort_target(item, binder, projections, columns)
            for item in (on.expressions if isinstance(on, exp.Tuple) else [_inner(on)])
        ]
        partition = [spelled(item) for item in wanted]
        for key in keys[: len(wanted)]:
            if not any(sort_key(item) == key.this for item in wanted):
                raise SyntaxError_("SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
        ordering = [spelled(key) for key in keys] or [exp.Ordered(this=exp.Null(), desc=False, nulls_first=False)]
        number = exp.Window(
            this=exp.Anonymous(this="row_number"),
            partition_by=partition,
            order=exp.Order(expressions=ordering),
            over="OVER",
        )
        number.meta["distinct_on"] = True  # planning tells why by the user's words
        taken = {column.alias.lower() for column in columns}
        rank = _unique("row_number", taken)
        outer_keys: list[exp.Expr] = []
        extra: list[exp.Expr] = []
        ref = self.ref("ranked")
        for key in keys:
            if isinstance(key.this, exp.Column) and not key.this.table:
                outer_keys.append(key.copy())
                continue
            alias = _unique("sort_key", taken)
            extra.append(aliased(key.this.copy(), alias))
            moved = key.copy()
            moved.set("this", typed(exp.column(alias, table=ref, quoted=True), type_of(key)))
            outer_keys.append(moved)
        bound = self.settled(Bound(select, columns))
        inner = bound.ast
        inner.set("expressions", [*inner.expressions, *extra, aliased(typed(number, INTEGER), rank)])
        outer = exp.Select(
            expressions=[
                aliased(typed(exp.column(c.alias, table=ref, quoted=True), c.type), c.alias) for c in bound.columns
            ]
        ).from_(derived_table(inner, ref), copy=False)
        outer.set("where", exp.Where(this=equal(typed(exp.column(rank, table=ref, quoted=True), INTEGER), integer(1))))
        if outer_keys:
            outer.set("order", exp.Order(expressions=outer_keys))
        self._limits(outer, node, scope)
        return Bound(outer, bound.columns)

    def _limits(self, ast: exp.Query, node: exp.Expr, scope: Scope) -> None:
        limit, offset = node.args.get("limit"), node.args.get("offset")
        binder = self.expressions(Scope(scope.bind_subquery), Clause.LIMIT)
        count: exp.Expr | None = None
        if isinstance(limit, exp.Fetch):
            options = limit.args.get("limit_options")
            if options is not None and options.args.get("with_ties"):
                raise FeatureNotSupported("FETCH FIRST ... WITH TIES is not supported")
            count = limit.args.get("count") or exp.Literal.number(1)
        elif limit is not None:
            count = limit.expression
        for name, value in (("limit", count), ("offset", offset.expression if offset is not None else None)):
            if (
                value is None
                or isinstance(value, exp.Null)
                or (value.name.upper() == "ALL" and not isinstance(value, exp.Literal))
            ):
                continue
            bound = convert(binder.bind(value), BIGINT, self.settings)
            if isinstance(value, exp.Neg):
                raise InvalidParameter(f"{name.upper()} must not be negative")
            kind = exp.Limit if name == "limit" else exp.Offset
            plain = (
                value.copy() if isinstance(value, exp.Literal) and not value.is_string else spark_cast(bound, INTEGER)
            )
            ast.set(name, kind(expression=plain))

    # --- writing -------------------------------------------------------------------------------------

    def target_scope(self, target: BoundRelation, alias: str | None) -> tuple[Scope, exp.Expr]:
        if target.id is not None:
            self.usage.relations.add(target.id)
        name = alias or target.name
        ref = self.ref(name)
        entries = tuple(
            Entry(c.name, typed(exp.column(c.name, table=ref, quoted=True), c.type), c.hidden) for c in target.columns
        )
        scope = Scope(self._subquery({}))
        scope.add(RangeVariable(name, ref, entries, None if alias else "public"))
        return scope, _named_table(target.source, ref)

    def default(self, column: Column) -> exp.Expr:
        if column.default is None:
            return null(column.type)
        binder = self.expressions(bare_scope([]), Clause.DEFAULT)
        return assign(binder.bind(parsed(column.default)), column.type, column.name, self.settings)

    def generated(self, target: BoundRelation, values: Mapping[str, exp.Expr]) -> dict[str, exp.Expr]:
        """Generated columns over the other columns' values."""
        plain = [column for column in target.columns if column.generated is None and column.name in values]
        binder = self.expressions(bare_scope(plain, values), Clause.GENERATED)
        made: dict[str, exp.Expr] = {}
        for column in target.columns:
            if column.generated is not None:
                made[column.name] = assign(
                    binder.bind(parsed(column.generated)), column.type, column.name, self.settings
                )
        return made

    def filled(
        self, target: BoundRelation, visible: Sequence[Column], stored: Mapping[str, exp.Expr], given: Bound
    ) -> Bound:
        values = dict(stored) | self.generated(target, stored)
        if given.rows is not None and len(given.columns) == len(visible) and list(stored) == [c.name for c in visible]:
            return Bound(
                given.ast, [OutputColumn(c.name, o.alias, c.type) for c, o in zip(visible, given.columns, strict=True)]
            )
        projections = [aliased(values[column.name].copy(), column.name) for column in visible]
        outputs = [OutputColumn(column.name, column.name, column.type) for column in visible]
        self._refs.add("given")
        return Bound(exp.Select(expressions=projections).from_(derived_table(given.ast, "given"), copy=False), outputs)


# --- small pieces ------------------------------------------------------------------------------------


def aliased(node: exp.Expr, alias: str) -> exp.Expr:
    return typed(exp.Alias(this=node, alias=exp.to_identifier(alias, quoted=True)), type_of(node))


def _with_columns(projection: exp.Expr, ref: str, wanted: Iterator[tuple[int, str]]) -> exp.Expr:
    """A select item whose set-returning calls are columns of the rows that they make."""
    name = None

    def column(part: exp.Expr) -> exp.Expr | None:
        found = call_of(part)
        if found is None or found[0] not in tables.SET_RETURNING:
            return None
        index, called = next(wanted)
        nonlocal name
        name = called
        return exp.column(f"value{index}", table=ref, quoted=True)

    if (whole := column(projection)) is not None:
        return exp.alias_(whole, name or "", quoted=True)
    for part in list(_own_nodes(projection)):
        if part is not projection and (made := column(part)) is not None:
            part.replace(made)
    return projection


def _is_output(node: exp.Expr) -> bool:
    """Whether it is a reference to an output column; those alone have no table."""
    return isinstance(node, exp.Column) and not node.table


def derived_table(query: exp.Query, ref: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(ref, quoted=True)))


def _lateral(derived: exp.Subquery) -> exp.Lateral:
    alias = derived.args["alias"]
    derived.set("alias", None)
    return exp.Lateral(this=derived, alias=alias)


def _named_table(source: str, ref: str) -> exp.Table:
    return exp.Table(
        this=exp.to_identifier(source, quoted=True), alias=exp.TableAlias(this=exp.to_identifier(ref, quoted=True))
    )


def _operand(query: exp.Query) -> exp.Query:
    """An operand of a set operation, in parentheses where it would be read otherwise."""
    plain = isinstance(query, exp.Select) and not any(query.args.get(part) for part in ("order", "limit", "offset"))
    return query if plain else exp.Subquery(this=query)


def _flattened(node: exp.SetOperation) -> list[exp.Expr]:
    """`a UNION ALL b UNION ALL c` as one list, without recursion."""
    kind, distinct = type(node), bool(node.args.get("distinct"))
    if node.args.get("by_name") or node.args.get("side") or node.args.get("kind"):
        raise FeatureNotSupported("set operations BY NAME are not supported")
    parts: list[exp.Expr] = [node.expression]
    left = node.this
    while (
        type(left) is kind
        and bool(left.args.get("distinct")) == distinct
        and not any(left.args.get(p) for p in ("order", "limit", "offset", "with_"))
    ):
        parts.append(left.expression)
        left = left.this
    return [left, *reversed(parts)]


def has_tail(node: exp.Expr) -> bool:
    return any(node.args.get(part) for part in ("order", "limit", "offset"))


def _inner(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Paren) else node


def _ordinal(node: exp.Expr) -> int | None:
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
        return int(node.name)
    return None


def _at(columns: Sequence[OutputColumn], position: int, clause: str) -> OutputColumn:
    if not 1 <= position <= len(columns):
        raise SyntaxError_(f"{clause} position {position} is not in select list")
    return columns[position - 1]


def _unique(name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate.lower() in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate.lower())
    return candidate


def _column_names(alias: exp.Expr | None) -> list[str]:
    return [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []


def _check_names(names: Sequence[str], count: int, table: str) -> None:
    if len(names) > count:
        raise SyntaxError_(f'table "{table}" has {count} columns available but {len(names)} columns specified')


def _not_constant(node: exp.Expr) -> bool:
    """Whether Spark would refuse it in an inline table."""
    for part in node.walk():
        if isinstance(part, exp.Column | exp.Query | exp.Subquery | exp.Lambda):
            return True
        if isinstance(part, exp.Anonymous) and part.name.lower() in ("rand", "uuid", "seiche_now", "raise_error"):
            return True
    return False


def _check_grouped(node: exp.Expr, groups: Sequence[exp.Expr], refs: frozenset[str]) -> None:
    stack = [node]
    while stack:
        current = stack.pop()
        if is_aggregate_node(current) or any(current == group for group in groups):
            continue
        if isinstance(current, exp.Column):
            if current.table in refs:
                raise GroupingError(
                    f'column "{current.table}.{current.name}" must appear in the GROUP BY clause '
                    "or be used in an aggregate function"
                )
            continue
        stack += list(current.iter_expressions())


def _own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """The nodes of an expression without those of its subqueries."""
    return node.walk(prune=lambda part: isinstance(part, exp.Query))


def output_name(node: exp.Expr) -> str:
    """The name PostgreSQL gives a column of a result."""
    match node:
        case exp.Alias():
            return str(node.alias)
        case exp.Column() | exp.Dot():
            return str(node.name)
        case exp.Paren():
            return output_name(node.this)
        case exp.Cast():
            inner = output_name(node.this)
            return inner if inner != "?column?" else _type_word(node.args["to"])
        case exp.Subquery():
            query = node.unnest()
            if isinstance(query, exp.Select) and len(query.expressions) == 1:
                return output_name(query.expressions[0])
            return "?column?"
        case exp.Case():
            default = node.args.get("default")
            while isinstance(default, exp.Paren | exp.Cast):
                default = default.this
            named = output_name(default) if default is not None else "?column?"
            return "case" if named == "?column?" or isinstance(default, exp.Case | exp.Boolean) else named
        case exp.Window() | exp.Filter() | exp.WithinGroup() | exp.IgnoreNulls():
            return output_name(node.this)
        case exp.Exists():
            return "exists"
        case exp.Array():
            return "array"
        case exp.Bracket():
            return output_name(node.this)
        case exp.AtTimeZone():
            return "timezone"
        case exp.Interval():
            return "interval"
        case exp.CurrentTimestamp():
            return "current_timestamp" if not node.args.get("this") else "now"
        case exp.Tuple():
            return "row"
    if isinstance(node, exp.Connector | exp.Binary | exp.Not | exp.Neg | exp.Boolean | exp.Literal | exp.Null):
        return "bool" if isinstance(node, exp.Boolean) else "?column?"
    found = call_of(node)
    return found[0] if found is not None else "?column?"


_TYPE_WORDS = {
    "INT": "int4",
    "BIGINT": "int8",
    "SMALLINT": "int2",
    "FLOAT": "float4",
    "DOUBLE": "float8",
    "DECIMAL": "numeric",
    "BOOLEAN": "bool",
}


def _type_word(node: exp.Expr) -> str:
    word = node.this.name if isinstance(node, exp.DataType) else str(node.this)
    return _TYPE_WORDS.get(word, word.lower())
