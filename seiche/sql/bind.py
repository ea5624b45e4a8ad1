"""Binding: a parsed query becomes a typed one that Spark runs as it is.

One translation serves SELECT, DML and materialized views, so that a view and its recomputation cannot disagree.
The bound query is plain in shape, for the planner's sake:

    every relation is an exp.Table named by `BoundRelation.source`, with an alias that is unique in the whole query
    every column is qualified by such an alias, every projection has a unique name, every node carries its SqlType
    views, common table expressions and stars are gone; joins are ON or CROSS; nulls are placed in every ORDER BY
    aggregates are those of `sql/aggregates.py`

Statements that write are bound to queries that produce the rows to write.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from seiche.errors import DatatypeMismatch, DuplicateColumn, FeatureNotSupported, SyntaxError_, UndefinedColumn, nearest
from seiche.model import COMMIT_TIME, Column
from seiche.sql.binder import Clause, Usage
from seiche.sql.binding import Binding
from seiche.sql.bound import Bound, BoundQuery, BoundRelation, Names, OutputColumn, aliased, has_tail
from seiche.sql.casts import assign, settle
from seiche.sql.expressions import expression_binder
from seiche.sql.invocations import NOW, inlined
from seiche.sql.kept_fields import as_stored
from seiche.sql.nodes import Settings, case, disjunction, integer, is_null, null, type_of, typed
from seiche.sql.places import place_of
from seiche.sql.queries import binding_of
from seiche.sql.scopes import Scope
from seiche.sql.select_list import select_items
from seiche.sql.targets import (
    MET,
    bare_scope,
    copied_rows,
    default_of,
    filled,
    generated,
    joined_scope,
    meeting_scope,
    once_each,
    parsed,
    target_scope,
)
from seiche.sql.user_functions import UserFunction, parameter_names
from seiche.sql.values import raw_values, row_cells
from seiche.types import BOOLEAN, INTEGER, SqlType

__all__ = [
    "Beside", "BoundExpression", "BoundQuery", "BoundRelation", "Meeting", "Names", "OutputColumn", "Settings",
    "bind_delete", "bind_expression", "bind_insert", "bind_query", "bind_returning", "bind_update", "bind_upsert",
    "check_default", "check_function", "references_of",
]  # fmt: skip

RETURNING_SOURCE = "returning_rows"


@dataclass(frozen=True, slots=True)
class Beside:
    """What an UPDATE or DELETE names besides its target: relations that it joins, and the queries of its WITH.

    A row of the target is written once, however many rows of the others it meets; `key` tells its rows apart.
    """

    others: exp.Select | None
    key: tuple[str, ...]
    common: exp.Expr | None = None


NOTHING_BESIDE = Beside(None, ())


@dataclass(frozen=True, slots=True)
class Meeting:
    """What an INSERT makes of a row whose `key` is there: where `where` holds it assigns, or nothing for none."""

    key: tuple[str, ...]
    assignments: tuple[tuple[str, exp.Expr], ...]
    where: exp.Expr | None = None


@dataclass(frozen=True, slots=True)
class BoundExpression:
    ast: exp.Expr
    type: SqlType
    uses_now: bool
    volatile: tuple[str, ...]

    @property
    def reads_clock(self) -> bool:
        """Whether it has the moment of a statement in it, not only that of a row's arrival. Known only where it was
        bound without a moment."""
        return any(each.this == NOW for each in self.ast.find_all(exp.Anonymous))


def bind_query(query: exp.Expr, names: Names, settings: Settings) -> BoundQuery:
    binding = binding_of(names, settings)
    return binding.finished(binding.settled(binding.query(query, None, {})))


def references_of(query: exp.Expr, names: Names) -> list[tuple[int, exp.Table]]:
    """The tables that a query itself names, with the ids of what they stand for."""
    binding = binding_of(names, Settings(timezone="UTC", now_ms=None, strict=False))
    binding.query(query, None, {})
    return binding.usage.references


def bind_expression(
    expression: exp.Expr | str, columns: Sequence[Column] | Mapping[str, Column], settings: Settings
) -> BoundExpression:
    """An expression over columns that are in scope by their bare names."""
    usage = Usage()
    listed = list(columns.values()) if isinstance(columns, Mapping) else list(columns)
    scope = bare_scope(listed)
    binder = expression_binder(scope, settings, usage, Clause.DEFAULT)
    node = settle(binder.bind(parsed(expression)), settings)
    return BoundExpression(node, type_of(node), usage.now, tuple(usage.volatile))


def check_default(expression: exp.Expr, column: Column, settings: Settings) -> None:
    """Raises what is wrong with the DEFAULT of a column that is about to be."""
    named = expression.find(exp.Column)
    if named is not None:
        raise FeatureNotSupported("cannot use column reference in DEFAULT expression", position=place_of(named))
    binder = expression_binder(bare_scope([]), settings, Usage(), Clause.DEFAULT)
    bound = binder.bind(expression)
    try:
        assign(bound, column.type, column.name, settings)
    except DatatypeMismatch as error:
        raise DatatypeMismatch(
            f'column "{column.name}" is of type {column.type.bare} but default expression is of type {type_of(bound)}',
            hint="You will need to rewrite or cast the expression.",
        ) from error


def check_function(function: UserFunction, names: Names, settings: Settings) -> None:
    """Raises what a call of the function would raise, whatever its arguments."""
    binding = binding_of(names, settings)
    scope = binding.scope_of(
        [(name, null(type_)) for name, (_, type_) in zip(parameter_names(function), function.parameters, strict=True)]
    )
    inlined(binding.expressions(scope, Clause.SELECT), function, [null(type_) for _, type_ in function.parameters])


# --- statements that write ---------------------------------------------------------------------------


def bind_insert(
    target: BoundRelation,
    column_names: Sequence[str] | None,
    query: exp.Expr | None,
    names: Names,
    settings: Settings,
    where: exp.Expr | None = None,
) -> BoundQuery:
    """The rows to insert: all visible columns of the target in order, defaults and generated columns filled in.

    Without a query, one row of defaults. `where` is the condition of a COPY, over the columns of the target.
    """
    visible = [column for column in target.columns if not column.hidden]
    if not visible:
        raise FeatureNotSupported(
            f'table "{target.name}" has no columns, and cannot have rows', hint="Add a column with ALTER TABLE first."
        )
    binding = binding_of(names, settings)
    if query is None:
        row = exp.Select(expressions=[exp.alias_(integer(1), "one", quoted=True)])
        given, columns = Bound(row, [OutputColumn("one", "one", INTEGER)]), []
    else:
        query = _without_defaults(target, column_names, query)
        if isinstance(query, exp.Values) and not has_tail(query):
            given = raw_values(binding, query)
        else:
            given = binding.query(query, None, {})
        columns = _target_columns(target, visible, column_names, given)
    types = [column.as_shown.type for column in columns]

    def store(node: exp.Expr, index: int) -> exp.Expr:
        return assign(node, types[index], columns[index].name, settings)

    if columns:
        given = binding.retyped(given, types, store)
    stored: dict[str, exp.Expr] = {
        column.name: typed(exp.column(output.alias, table="given", quoted=True), type_)
        for column, type_, output in zip(columns, types, given.columns, strict=False)
    }
    for column in visible:
        if column.name not in stored and column.generated is None:
            stored[column.name] = default_of(binding, column)
    made = filled(binding, target, visible, stored, given)
    if where is not None:
        made.ast.set("where", exp.Where(this=copied_rows(binding, target, stored, where)))
    return binding.finished(made)


def bind_upsert(
    target: BoundRelation, alias: str | None, meeting: Meeting, names: Names, settings: Settings
) -> BoundQuery:
    """Old and new values, as those of `bind_update`, of the rows that an INSERT writes whose rows may meet others.

    Spark knows its rows as `GIVEN_SOURCE`, fitted to the target, and those with the same keys as `MET_SOURCE`. Where
    `_met` is not true there are no old values.
    """
    binding = binding_of(names, settings)
    scope, select, old, given = meeting_scope(binding, target, alias, meeting.key)
    met = typed(exp.column(MET, table=scope.variables[0].ref, quoted=True), BOOLEAN)
    kept = old | _assigned(binding, target, scope, meeting.assignments)
    changed = kept | generated(binding, target, kept)
    outputs: list[OutputColumn] = [OutputColumn(MET, MET, BOOLEAN)]
    select.append("expressions", aliased(met.copy(), MET))
    for column in target.columns:
        before = as_stored(old[column.name].copy(), column)
        after = as_stored(changed[column.name].copy(), column)
        fresh = as_stored(given[column.name].copy(), column)
        for name, node in (("old_", before), ("new_", case(column.type, [(met.copy(), after)], fresh))):
            select.append("expressions", aliased(node, name + column.name))
            outputs.append(OutputColumn(name + column.name, name + column.name, column.type))
    if meeting.where is not None:
        wanted = binding.expressions(scope, Clause.WHERE).condition(meeting.where, "WHERE")
        select.set("where", exp.Where(this=disjunction([is_null(met), wanted])))
    return binding.finished(Bound(select, outputs))


def bind_update(
    target: BoundRelation,
    alias: str | None,
    assignments: Sequence[tuple[str, exp.Expr]],
    where: exp.Expr | None,
    names: Names,
    settings: Settings,
    beside: Beside = NOTHING_BESIDE,
) -> BoundQuery:
    """Old and new values (`old_<name>`, `new_<name>`) of all the target's columns, for the rows that match."""
    binding = binding_of(names, settings)
    scope, select = joined_scope(binding, target, alias, beside.others, beside.common)
    new = _assigned(binding, target, scope, assignments)
    old = _own(scope, target, alias)
    kept = {name: new.get(name, node) for name, node in old.items()}
    computed = generated(binding, target, kept) if new else {}
    outputs: list[OutputColumn] = []
    for prefix, values in (("old_", old), ("new_", kept | computed)):
        for column in target.columns:
            name = prefix + column.name
            select.append("expressions", aliased(as_stored(values[column.name].copy(), column), name))
            outputs.append(OutputColumn(name, name, column.type))
    if where is not None:
        select.set("where", exp.Where(this=binding.expressions(scope, Clause.WHERE).condition(where, "WHERE")))
    bound = Bound(select, outputs)
    if beside.others is not None:
        choosing = [f"new_{column.name}" for column in target.columns if column.name in new and column.type.is_hashable]
        bound = once_each(binding, bound, [f"old_{name}" for name in beside.key], choosing)
    return binding.finished(bound)


def _assigned(
    binding: Binding, target: BoundRelation, scope: Scope, assignments: Sequence[tuple[str, exp.Expr]]
) -> dict[str, exp.Expr]:
    """The new values of the columns that are assigned to."""
    _check_assignments(target, [name for name, _ in assignments], updating=True)
    expressions = binding.expressions(scope, Clause.UPDATE)
    by_name = {column.name: column for column in target.columns}
    new: dict[str, exp.Expr] = {}
    for name, value in assignments:
        column = by_name[name]
        if _is_default(value):
            new[name] = default_of(binding, column)
        else:
            new[name] = assign(expressions.bind(value), column.as_shown.type, name, binding.settings)
    return new


def bind_delete(
    target: BoundRelation,
    alias: str | None,
    where: exp.Expr | None,
    names: Names,
    settings: Settings,
    beside: Beside = NOTHING_BESIDE,
) -> BoundQuery:
    """All columns of the rows to delete."""
    binding = binding_of(names, settings)
    scope, select = joined_scope(binding, target, alias, beside.others, beside.common)
    own = _own(scope, target, alias)
    for column in target.columns:
        select.append("expressions", aliased(as_stored(own[column.name].copy(), column), column.name))
    if where is not None:
        select.set("where", exp.Where(this=binding.expressions(scope, Clause.WHERE).condition(where, "WHERE")))
    bound = Bound(select, [OutputColumn(c.name, c.name, c.type) for c in target.columns])
    return binding.finished(bound if beside.others is None else once_each(binding, bound, beside.key, ()))


def _own(scope: Scope, target: BoundRelation, alias: str | None) -> dict[str, exp.Expr]:
    """The target's columns by name, whatever else is in scope."""
    return {column.name: scope.lookup(column.name, alias or target.name) for column in target.columns}


def bind_returning(
    expressions: Sequence[exp.Expr], target: BoundRelation, alias: str | None, names: Names, settings: Settings
) -> BoundQuery:
    """RETURNING over the written rows, which Spark knows as `returning_rows`."""
    rows = replace(target, source=RETURNING_SOURCE, id=None)
    binding = binding_of(names, settings)
    scope, table = target_scope(binding, rows, alias)
    projections, outputs = select_items(binding, expressions, scope)
    select = exp.Select(expressions=projections).from_(table, copy=False)
    return binding.finished(binding.settled(Bound(select, outputs)))


def _check_assignments(target: BoundRelation, names: Sequence[str], *, updating: bool = False) -> None:
    visible = {column.name: column for column in target.columns if not column.hidden}
    seen: set[str] = set()
    for name in names:
        column = visible.get(name)
        if column is None and name == COMMIT_TIME:
            what = f"update modifying column `{name}`" if updating else "value for it"
            raise FeatureNotSupported(
                f'cannot assign to system column "{name}"',
                detail=f"It tells when a row was written: {what} is unsupported.",
            )
        if column is None:
            raise UndefinedColumn(
                f'column "{name}" of relation "{target.name}" does not exist',
                hint=nearest(name, visible),
                position=place_of(name),
            )
        if name in seen:
            raise DuplicateColumn(f'column "{name}" specified more than once', position=place_of(name))
        if column.generated is not None:
            also = " An update modifying the generated column is unsupported." if updating else ""
            raise SyntaxError_(
                f'cannot write to generated column "{name}"', detail=f'Column "{name}" is a generated column.{also}'
            )
        seen.add(name)


def _target_columns(
    target: BoundRelation, visible: Sequence[Column], names: Sequence[str] | None, given: Bound
) -> list[Column]:
    count = len(given.columns)
    if names is None:
        writable = [column for column in visible if column.generated is None]
        if count > len(writable):
            raise _too_many(target, given, len(writable))
        misplaced = next((column for column in visible[:count] if column.generated is not None), None)
        if misplaced is not None:
            raise SyntaxError_(
                f'cannot insert a non-DEFAULT value into column "{misplaced.name}"',
                detail=f'Column "{misplaced.name}" is a generated column.',
                hint="Name the columns that the values are for.",
            )
        return writable[:count]
    _check_assignments(target, names)
    if count > len(names):
        raise _too_many(target, given, len(names))
    if count < len(names):
        raise SyntaxError_(
            "INSERT has more target columns than expressions",
            detail=_sizes(target, count, len(names)),
            position=place_of(names[count]),
        )
    by_name = {column.name: column for column in visible}
    return [by_name[name] for name in names]


def _too_many(target: BoundRelation, given: Bound, columns: int) -> SyntaxError_:
    return SyntaxError_(
        "INSERT has more expressions than target columns",
        detail=_sizes(target, len(given.columns), columns),
        position=given.place(columns),
    )


def _sizes(target: BoundRelation, count: int, columns: int) -> str:
    return f'{count} values were given for {columns} columns of "{target.name}".'


def _is_default(node: exp.Expr) -> bool:
    """The word DEFAULT, which the parser takes for a column."""
    return (
        isinstance(node, exp.Column | exp.Var | exp.Identifier)
        and not node.args.get("table")
        and node.name.upper() == "DEFAULT"
    )


def _without_defaults(target: BoundRelation, names: Sequence[str] | None, query: exp.Expr) -> exp.Expr:
    """VALUES with the word DEFAULT replaced by the default's expression."""
    values = query.find(exp.Values) if isinstance(query, exp.Values) else None
    if values is None or not any(_is_default(cell) for row in values.expressions for cell in row_cells(row)):
        return query
    visible = {column.name: column for column in target.columns if not column.hidden}
    wanted = list(names) if names is not None else [c.name for c in visible.values() if c.generated is None]
    replaced = query.copy()
    for row in replaced.expressions:
        for index, cell in enumerate(row_cells(row)):
            if _is_default(cell) and index < len(wanted) and wanted[index] in visible:
                default = visible[wanted[index]].default
                cell.replace(parsed(default) if default else exp.Null())
    return replaced
