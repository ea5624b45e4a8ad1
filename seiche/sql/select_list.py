"""The select list: stars expanded, set-returning functions moved to FROM, every item under a unique name."""

from __future__ import annotations

from collections.abc import Container, Sequence

from sqlglot import exp

from seiche.errors import (
    AmbiguousColumn,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidColumnReference,
    SyntaxError_,
    UndefinedColumn,
    UserError,
    WrongObjectType,
)
from seiche.sql import tables
from seiche.sql.aggregates import is_aggregate
from seiche.sql.binder import Binder, Clause
from seiche.sql.binding import Binding
from seiche.sql.bound import OutputColumn, aliased, derived_table, lateral_table, unique
from seiche.sql.calls import call_of, own_nodes
from seiche.sql.nodes import type_of, typed
from seiche.sql.output_names import output_name
from seiche.sql.places import begin_as, place_of, pointing_at
from seiche.sql.rows_over_groups import apart
from seiche.sql.scopes import Entry, RangeVariable, Scope
from seiche.sql.series import refuse_endless
from seiche.sql.user_functions import Functions
from seiche.sql.user_rows import returns_rows, user_rows
from seiche.types import Kind


def select_items(
    binding: Binding, nodes: Sequence[exp.Expr], scope: Scope
) -> tuple[list[exp.Expr], list[OutputColumn]]:
    """The select list with stars expanded, each item under a unique name."""
    binder = binding.expressions(scope, Clause.SELECT)
    named: list[tuple[str, exp.Expr]] = []
    for node in nodes:
        match node:
            case exp.Star():
                if not scope.variables and not scope.entries:
                    raise SyntaxError_("SELECT * with no tables specified is not valid", position=place_of(node))
                named += _placed(_starred(node, scope.visible(), scope), node)
            case exp.Column() if isinstance(node.this, exp.Star):
                with pointing_at(node):
                    columns_of_table = scope.visible(node.table, node.db or None)
                named += _placed(_starred(node.this, columns_of_table, scope), node)
            case exp.Dot() if isinstance(node.expression, exp.Star):
                with pointing_at(node):
                    named += _fields(binding, binder.bind(node.this))
            case _:
                named.append((output_name(node), _item(binder, node)))
    taken: set[str] = set()
    projections: list[exp.Expr] = []
    columns: list[OutputColumn] = []
    for name, bound in named:
        alias = unique("column" if name == "?column?" else name, taken)
        projections.append(aliased(bound, alias))
        columns.append(OutputColumn(name, alias, type_of(bound)))
    return projections, columns


def _item(binder: Binder, node: exp.Expr) -> exp.Expr:
    try:
        return binder.bind(node)
    except UserError as error:
        if error.detail is None:
            inner = node.this if isinstance(node, exp.Alias) else node
            error.detail = f"Failed to bind expression: {inner.sql('seiche', normalize_functions='lower')}."
        raise


def _placed(named: list[tuple[str, exp.Expr]], star: exp.Expr) -> list[tuple[str, exp.Expr]]:
    return [(name, begin_as(node, star)) for name, node in named]


def _starred(star: exp.Star, entries: Sequence[Entry], scope: Scope) -> list[tuple[str, exp.Expr]]:
    """The columns of `*`, without those that EXCEPT names."""
    for part in ("replace", "rename", "ilike"):
        if star.args.get(part):
            raise FeatureNotSupported(f"* {part.upper()} is not supported")
    left_out: list[exp.Expr] = []
    for named in star.args.get("except_") or ():
        found = _left_out(named, entries, scope)
        if found in left_out:
            raise DuplicateColumn(f'column "{named.name}" is left out twice', detail="Duplicate entry in except list.")
        left_out.append(found)
    return [(entry.name, entry.node.copy()) for entry in entries if entry.node not in left_out]


def _left_out(named: exp.Expr, entries: Sequence[Entry], scope: Scope) -> exp.Expr:
    if not isinstance(named, exp.Column | exp.Identifier):
        raise SyntaxError_("EXCEPT takes names of columns", detail="Only support column name in except list.")
    table, schema = (named.table or None, named.db or None) if isinstance(named, exp.Column) else (None, None)
    shown = [entry for entry in entries if entry.name == named.name]
    if table is None and len(shown) == 1:
        return shown[0].node
    try:
        found = scope.local(named.name, table, schema)
    except AmbiguousColumn as error:
        error.detail = f"Ambiguous column name: {named.name}."
        raise
    if found is None:
        raise UndefinedColumn(
            f'column "{named.name}" does not exist', detail=f"Item not found: Invalid column: {named.name}."
        )
    return found.node


def _fields(binding: Binding, node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    type_ = type_of(node)
    if type_.kind is not Kind.STRUCT:
        raise WrongObjectType(f"type {type_} is not composite")
    return [
        (name, typed(exp.Dot(this=exp.Paren(this=node.copy()), expression=exp.to_identifier(name, quoted=True)), part))
        for name, part in type_.fields
    ]


def exploded(binding: Binding, node: exp.Select, select: exp.Select, scope: Scope) -> exp.Select:
    """Set-returning functions of the select list, joined as if they stood in FROM, side by side.

    One among the arguments of another is joined first, so that the other sees each of its rows.
    """
    binder = binding.expressions(scope, Clause.FROM)
    if not _set_returning(node, binder.functions):
        return node
    if _is_grouped(node, binder.functions):
        raise FeatureNotSupported(
            "a set-returning function in the select list of a grouped query is not supported",
            hint="Put the grouping into a derived table, or the function into FROM.",
        )
    node = node.copy()
    found = _set_returning(node, binder.functions)
    ids = {id(part) for part in found}
    outer = {id(part) for part in found if any(other is not part for other in own_nodes(part) if id(other) in ids)}
    innermost = [part for part in found if id(part) not in outer and _is_inside(part, outer)]
    chosen = innermost or found
    arrays: list[exp.Expr] = []
    for part in chosen:
        call = call_of(part)
        assert call is not None
        rows_of_it = user_rows(binder, *call)
        if rows_of_it is None:
            refuse_endless(*call)
            bound = [binder.bind(argument) for argument in call[1]]
            with pointing_at(part):
                rows_of_it = tables.table_function(call[0], bound, binding.settings, ordinality=False)
        arrays.append(rows_of_it.exploded)
    made = tables.single(arrays[0]) if len(arrays) == 1 else tables.zipped(arrays)
    ref = binding.ref("rows")
    rows, entries = tables.rendered(made, "value", ref)
    entries = tuple(Entry(f"value{index}", entry.node) for index, entry in enumerate(entries))
    derived = derived_table(rows, ref)
    if select.args.get("from_") is None:
        select.set("from_", exp.From(this=derived))
    else:
        select.append("joins", exp.Join(this=lateral_table(derived), kind="CROSS"))
    # Its columns are found by name, but a star does not show them.
    scope.variables.append(RangeVariable(ref, ref, entries))
    for index, part in enumerate(chosen):
        _become_column(part, node, ref, index)
    return exploded(binding, node, select, scope) if innermost else node


def over_groups(binding: Binding, node: exp.Select) -> exp.Select | None:
    """The query with its groups or windows in a derived table, where set-returning functions follow them."""
    functions = binding.expressions(Scope(binding.subquery({})), Clause.FROM).functions
    if not _set_returning(node, functions) or not _is_grouped(node, functions):
        return None
    around = apart(node, lambda part: _is_set(part, functions), binding.ref("groups"))
    if around is not None and _is_grouped(around, functions):
        raise FeatureNotSupported("aggregate and window function calls cannot contain set-returning function calls")
    return around


def _is_grouped(node: exp.Select, functions: Functions | None) -> bool:
    if node.args.get("group") or node.args.get("having"):
        return True
    calls = (call_of(part) for projection in node.expressions for part in own_nodes(projection))
    aggregated = any(made is not None and _is_aggregate(made[0], functions) for made in calls)
    return aggregated or any(projection.find(exp.Window) for projection in node.expressions)


def _is_aggregate(name: str, functions: Functions | None) -> bool:
    return is_aggregate(name) or (functions is not None and any(each.aggregate for each in functions.functions(name)))


def _set_returning(node: exp.Select, functions: Functions | None) -> list[exp.Expr]:
    return [part for projection in node.expressions for part in own_nodes(projection) if _is_set(part, functions)]


def _is_set(part: exp.Expr, functions: Functions | None) -> bool:
    named = call_of(part)
    return named is not None and (named[0] in tables.SET_RETURNING or returns_rows(functions, *named))


def _is_inside(part: exp.Expr, outer: Container[int]) -> bool:
    parent = part.parent
    while parent is not None and not isinstance(parent, exp.Select):
        if id(parent) in outer:
            return True
        parent = parent.parent
    return False


def _become_column(part: exp.Expr, node: exp.Select, ref: str, index: int) -> None:
    """A set-returning call in the select list becomes a column of the rows that it makes, under its own name."""
    column = exp.column(f"value{index}", table=ref, quoted=True)
    called = call_of(part)
    assert called is not None
    part.replace(exp.alias_(column, called[0], quoted=True) if part.parent is node else column)


def ordinal(node: exp.Expr, clause: str) -> int | None:
    """The place of an output column that a bare number stands for. No other constant may stand there."""
    if isinstance(node, exp.Literal):
        if node.is_string or not node.name.isdigit():
            raise SyntaxError_(f"non-integer constant in {clause}", position=place_of(node))
        return int(node.name)
    return None


def output_at(columns: Sequence[OutputColumn], number: exp.Expr, clause: str) -> OutputColumn:
    """The column that a number stands for."""
    if not 1 <= int(number.name) <= len(columns):
        raise InvalidColumnReference(
            f"{clause} position {number.name} is not in select list", position=place_of(number)
        )
    return columns[int(number.name) - 1]
