"""FROM: tables, views, joins, derived tables and table functions, each added to the scope that it makes.

Plain views and common table expressions are expanded where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.errors import (
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidDefinition,
    SeicheError,
    SyntaxError_,
    UndefinedColumn,
    UndefinedTable,
)
from seiche.sql import tables
from seiche.sql.asof import asof_join
from seiche.sql.binder import Clause
from seiche.sql.binding import Binding, CommonTable, Rounds, common_tables
from seiche.sql.bound import (
    AS_OF_NOW,
    Bound,
    BoundRelation,
    aliased,
    derived_table,
    has_tail,
    lateral_table,
    named_table,
    unique,
)
from seiche.sql.calls import call_of
from seiche.sql.casts import common_type, convert, settle
from seiche.sql.change_log import bind_change_log, logged_relation
from seiche.sql.commit_time import commit_time, is_commit_time
from seiche.sql.functions import is_function
from seiche.sql.gap_fill import gap_fill_query
from seiche.sql.kept_fields import column_node
from seiche.sql.nodes import boolean, conjunction, equal, not_null, type_of, typed
from seiche.sql.operators import comparable
from seiche.sql.places import begin_as, place_of, pointing_at
from seiche.sql.recursion import bind_recursion
from seiche.sql.scopes import Entry, RangeVariable, Scope
from seiche.sql.series import refuse_endless
from seiche.sql.time_travel import past_source
from seiche.sql.user_rows import user_rows
from seiche.sql.values import values
from seiche.types import Kind


def bind_from(
    binding: Binding, node: exp.Select, select: exp.Select, scope: Scope, tables_: Mapping[str, CommonTable]
) -> None:
    clause = node.args.get("from_") or node.args.get("from")
    if clause is None:
        return
    first, joins = _table(binding, clause.this, scope, tables_)
    select.set("from_", exp.From(this=first))
    made = [*joins, *_joins(binding, node.args.get("joins") or (), scope, tables_)]
    if made:
        select.set("joins", made)


def _joins(
    binding: Binding, joins: Sequence[exp.Join], scope: Scope, tables_: Mapping[str, CommonTable]
) -> list[exp.Join]:
    made: list[exp.Join] = []
    apart: frozenset[str] = frozenset()  # what stands before the last comma
    for join in joins:
        if _is_comma(join):
            apart = scope.refs
        made += _join(binding, join, scope, tables_)
        if apart:
            _refuse_references(made[-1].args.get("on"), apart, scope)
    return made


def _is_comma(join: exp.Join) -> bool:
    return not (join.kind or join.side or join.method or join.args.get("on") or join.args.get("using"))


def _refuse_references(condition: exp.Expr | None, apart: frozenset[str], scope: Scope) -> None:
    """A comma binds less than JOIN: the condition of a join sees nothing of what the comma parts from it."""
    for column in condition.find_all(exp.Column) if condition is not None else ():
        if column.table in apart:
            name = next(variable.name for variable in scope.variables if variable.ref == column.table)
            raise UndefinedTable(
                f'invalid reference to FROM-clause entry for table "{name}"',
                hint=f'There is an entry for table "{name}", but it cannot be referenced from this part of the query.',
                position=place_of(column),
            )


def _join(binding: Binding, join: exp.Join, scope: Scope, tables_: Mapping[str, CommonTable]) -> list[exp.Join]:
    left = list(scope.entries)
    if _holds_joins(join.this):
        table = _joined(binding, join.this, scope, tables_)
    else:
        table, _ = _table(binding, join.this, scope, tables_)
    right = scope.entries[len(left) :]
    side = (join.side or "").upper()
    kind = (join.kind or "").upper()
    is_asof = (join.method or "").upper() == "ASOF"
    if kind in ("SEMI", "ANTI") or (join.method and join.method.upper() not in ("NATURAL", "ASOF")):
        raise FeatureNotSupported(f"{join.method or kind} joins are not supported")
    on = join.args.get("on")
    using = [item.name for item in join.args.get("using") or ()]
    if (join.method or "").upper() == "NATURAL":
        right_names = {entry.name for entry in right if not entry.hidden}
        using = list(dict.fromkeys(entry.name for entry in left if not entry.hidden and entry.name in right_names))
    condition: exp.Expr | None = None
    if using:
        condition = _using(binding, using, left, right, side, scope)
    elif on is not None:
        condition = binding.expressions(scope, Clause.JOIN).condition(on, "JOIN/ON")
    if is_asof:
        if condition is None or side not in ("", "LEFT") or isinstance(table, exp.Lateral):
            raise FeatureNotSupported("an ASOF join is an inner or a LEFT join with a condition")
        table, condition = asof_join(table, right, condition)
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


def _holds_joins(node: exp.Expr) -> bool:
    """Whether an item of FROM is a join itself, as it is in parentheses."""
    if node.args.get("joins"):
        return True
    return isinstance(node, exp.Subquery) and not node.args.get("alias") and _holds_joins(node.this)


def _joined(binding: Binding, node: exp.Expr, scope: Scope, tables_: Mapping[str, CommonTable]) -> exp.Expr:
    """A join that is joined as a whole, as a derived table. What is joined in it keeps its names around it."""
    inner = Scope(scope.bind_subquery, scope.parent)
    first, joins = _table(binding, node, inner, tables_)
    ref, taken = binding.ref("joined"), set[str]()
    shown: list[exp.Expr] = []
    outside: dict[exp.Expr, exp.Expr] = {}

    def seen(entries: Sequence[Entry]) -> tuple[Entry, ...]:
        found = []
        for entry in entries:
            if is_commit_time(entry):
                continue
            if entry.node not in outside:
                alias = unique(entry.name, taken)
                shown.append(aliased(entry.node.copy(), alias))
                outside[entry.node] = typed(exp.column(alias, table=ref, quoted=True), type_of(entry.node))
            found.append(Entry(entry.name, outside[entry.node].copy(), entry.hidden))
        return tuple(found)

    before = len(scope.entries)
    for each in inner.variables:
        binding.add(scope, RangeVariable(each.name, ref, seen(each.entries), each.schema, each.scalar))
    scope.entries[before:] = seen(inner.entries)  # columns of USING are one
    select = exp.Select(expressions=shown).from_(first, copy=False)
    select.set("joins", joins)
    return derived_table(select, ref)


def _using(
    binding: Binding, names: Sequence[str], left: Sequence[Entry], right: Sequence[Entry], side: str, scope: Scope
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
        a, b = comparable("=", found[0].copy(), found[1].copy(), binding.settings)
        conditions.append(equal(a, b))
        type_ = common_type([type_of(found[0]), type_of(found[1])], "JOIN/USING")
        sides = [convert(part.copy(), type_, binding.settings) for part in found]
        value = {"RIGHT": sides[1], "FULL": typed(exp.Coalesce(this=sides[0], expressions=[sides[1]]), type_)}.get(
            side, sides[0]
        )
        merged.append(Entry(name, value))
    rest = [entry for entry in [*left, *right] if entry.hidden or entry.name not in names]
    scope.entries = merged + rest
    return conjunction(conditions)


def _table(
    binding: Binding, node: exp.Expr, scope: Scope, tables_: Mapping[str, CommonTable]
) -> tuple[exp.Expr, list[exp.Join]]:
    """One item of FROM, added to the scope; with the joins that were written inside it."""
    lateral = isinstance(node, exp.Lateral)
    inner = node.this if lateral else node
    alias = node.args.get("alias") or (inner.args.get("alias") if lateral else None)
    match inner:
        case exp.Table() if isinstance(inner.this, exp.Func | exp.Dot):
            made = _function(binding, inner.this, alias, scope, tables_, ordinality=bool(inner.args.get("ordinality")))
        case exp.Func() if not isinstance(inner, exp.Unnest):
            made = _function(binding, inner, alias, scope, tables_, ordinality=bool(node.args.get("ordinality")))
        case exp.Unnest():
            made = _unnest(binding, inner, alias, scope)
        case exp.Table() if inner.args.get("rows_from"):
            made = _rows_from(binding, inner, alias, scope)
        case exp.Table():
            made = _relation(binding, inner, alias, scope, tables_)
        case exp.Values():
            bound = binding.settled(values(binding, inner, scope if lateral else scope.parent, tables_))
            made = _derived_table(binding, bound, alias, scope, "values", lateral=False)
        case exp.Subquery() if isinstance(inner.this, exp.Table | exp.Paren) and not alias:
            first, joins = _table(binding, inner.this, scope, tables_)
            return first, [*joins, *_joins(binding, inner.args.get("joins") or (), scope, tables_)]
        case exp.Subquery():
            bound = binding.settled(
                binding.query(
                    inner.this if not has_tail(inner) else inner.copy(),
                    scope if lateral else scope.parent,
                    common_tables(inner, tables_),
                )
            )
            made = _derived_table(binding, bound, alias, scope, "subquery", lateral=lateral)
        case _:
            raise FeatureNotSupported(f"{inner.sql('seiche')} is not supported in FROM")
    joins = _joins(binding, inner.args.get("joins") or (), scope, tables_)
    return made, joins


def _relation(
    binding: Binding, node: exp.Table, alias: exp.Expr | None, scope: Scope, tables_: Mapping[str, CommonTable]
) -> exp.Expr:
    for part in ("sample", "pivots", "when"):
        if node.args.get(part):
            raise FeatureNotSupported(f"{part.upper()} is not supported after a table name")
    if not node.db and node.name in tables_:
        _is_as_of_now(node, expanded=True)
        return _common_table(binding, node, tables_[node.name], alias, scope)
    parts = tuple(part.name for part in node.parts)
    try:
        relation = binding.names.relation(parts)
    except SeicheError as error:
        error.position = place_of(node)
        raise
    if relation.id is not None and not binding.expanding:
        binding.usage.references.append((relation.id, node))
    name = alias.name if alias is not None and alias.name else node.name
    schema = None if alias is not None else node.db or relation.schema
    past = _past(node)
    as_of_now = past is None and _is_as_of_now(node, expanded=relation.view is not None)
    if past is not None and (relation.id is None or relation.view is not None):
        raise FeatureNotSupported("only a table or a materialized view can be read as of an earlier time")
    if relation.view is not None:
        try:
            return _view(binding, relation, name, alias, scope, schema)
        except SeicheError as error:
            error.position = place_of(node)  # whatever is wrong stands in the text of the view
            raise
    if relation.id is not None:
        binding.usage.relations.add(relation.id)
    ref = binding.ref(name)
    renamed = _column_names(alias)
    visible = [column for column in relation.columns if not column.hidden]
    _check_names(renamed, len(visible), name)
    new_names = dict(zip((column.name for column in visible), renamed, strict=False))
    entries = tuple(Entry(new_names.get(c.name, c.name), column_node(c, ref), c.hidden) for c in relation.columns)
    key = tuple(column_node(column, ref) for column in relation.columns if column.name in relation.key)
    binding.add(scope, RangeVariable(name, ref, (*entries, *commit_time(relation, ref)), schema, key=key))
    source = relation.source if past is None else past_source(relation.source, past, binding.settings)
    made = named_table(source, ref)
    if as_of_now:
        made.meta[AS_OF_NOW] = True
    return made


def _past(node: exp.Table) -> exp.Version | None:
    """The version that a table is read as of, unless that is PROCTIME()."""
    version = node.args.get("version")
    if not isinstance(version, exp.Version):
        return None
    found = call_of(version.expression) if isinstance(version.expression, exp.Expr) else None
    return None if found is not None and found[0] == "proctime" else version


def _is_as_of_now(node: exp.Table, *, expanded: bool) -> bool:
    """Whether a table stands with FOR SYSTEM_TIME AS OF PROCTIME(), which only the right side of a join can."""
    version = node.args.get("version")
    if version is None:
        return False
    if expanded or _past(node) is not None:
        raise FeatureNotSupported("only a table or a materialized view can be read as of an earlier time")
    if not isinstance(node.parent, exp.Join):
        raise SyntaxError_("FOR SYSTEM_TIME AS OF PROCTIME() belongs to the right side of a join")
    return True


def _view(
    binding: Binding, relation: BoundRelation, name: str, alias: exp.Expr | None, scope: Scope, schema: str | None
) -> exp.Expr:
    assert relation.view is not None
    if relation.name in binding.expanding:
        raise InvalidDefinition(f'view "{relation.name}" refers to itself')
    binding.expanding.append(relation.name)
    around, binding.names = binding.names, relation.view_names or binding.names
    bound = binding.settled(binding.query(relation.view, None, {}))
    binding.names = around
    binding.expanding.pop()
    names = [column.name for column in relation.columns]
    if len(names) == len(bound.columns):
        bound = Bound(bound.ast, [replace(c, name=n) for c, n in zip(bound.columns, names, strict=True)])
    return _derived_table(binding, bound, alias, scope, name, lateral=False, schema=schema)


def _common_table(
    binding: Binding, node: exp.Table, table: CommonTable, alias: exp.Expr | None, scope: Scope
) -> exp.Expr:
    logged = logged_relation(table)
    if logged is not None:
        name = alias.name if alias is not None and alias.name else node.name
        return bind_change_log(binding, logged, name, tuple(_column_names(alias)) or table.column_names, scope)
    if table.rounds is not None:
        return _rounds(binding, table.rounds, node, alias, scope)
    if table.recursive:
        return _derived_table(binding, bind_recursion(binding, table), alias, scope, node.name, lateral=False)
    bound = binding.settled(binding.query(table.query, None, table.visible))
    with pointing_at(table.name):
        check_names(table.column_names, len(bound.columns), f'WITH query "{node.name}"')
    columns = [replace(c, name=n) for c, n in zip(bound.columns, table.column_names, strict=False)]
    return _derived_table(
        binding, Bound(bound.ast, columns + bound.columns[len(columns) :]), alias, scope, node.name, lateral=False
    )


def _rounds(binding: Binding, rounds: Rounds, node: exp.Table, alias: exp.Expr | None, scope: Scope) -> exp.Expr:
    """What a recursive query means in its own step."""
    name = alias.name if alias is not None and alias.name else node.name
    ref = binding.ref(name)
    renamed = _column_names(alias)
    _check_names(renamed, len(rounds.columns), name)
    shown = [*renamed, *(column.name for column in rounds.columns[len(renamed) :])]
    entries = tuple(
        Entry(each, typed(exp.column(column.alias, table=ref, quoted=True), column.type))
        for each, column in zip(shown, rounds.columns, strict=True)
    )
    binding.add(scope, RangeVariable(name, ref, entries))
    return named_table(rounds.source, ref)


def _derived_table(
    binding: Binding,
    bound: Bound,
    alias: exp.Expr | None,
    scope: Scope,
    default: str,
    *,
    lateral: bool,
    schema: str | None = None,
) -> exp.Expr:
    name = alias.name if alias is not None and alias.name else default
    ref = binding.ref(name)
    if alias is None and default in ("subquery", "values"):
        name = ref
    renamed = _column_names(alias)
    _check_names(renamed, len(bound.columns), name)
    entries = []
    for index, column in enumerate(bound.columns):
        shown = renamed[index] if index < len(renamed) else column.name
        entries.append(Entry(shown, typed(exp.column(column.alias, table=ref, quoted=True), column.type)))
    binding.add(scope, RangeVariable(name, ref, tuple(entries), schema))
    derived = derived_table(bound.ast, ref)
    return lateral_table(derived) if lateral else derived


def _unnest(binding: Binding, node: exp.Unnest, alias: exp.Expr | None, scope: Scope) -> exp.Expr:
    offset = node.args.get("offset")
    ordinal = offset.name if isinstance(offset, exp.Identifier) else "ordinality" if offset else None
    call = begin_as(exp.Anonymous(this="unnest", expressions=list(node.expressions)), node)
    return _function(
        binding, call, alias or node.args.get("alias"), scope, {}, ordinality=ordinal is not None, ordinal_name=ordinal
    )


def _function(
    binding: Binding,
    node: exp.Expr,
    alias: exp.Expr | None,
    scope: Scope,
    tables_: Mapping[str, CommonTable],
    *,
    ordinality: bool,
    ordinal_name: str | None = None,
) -> exp.Expr:
    name, arguments = _call(node)
    if name in ("tumble", "hop"):
        return _time_window(binding, name, arguments, alias, scope, tables_)
    if name == "gap_fill":
        return _gap_fill(binding, arguments, alias, scope, tables_)
    made = _made_rows(binding, node, scope, ordinality=ordinality)
    return _rows_of_function(binding, made, name, alias, scope, ordinal_name if ordinality else None)


def _rows_from(binding: Binding, node: exp.Table, alias: exp.Expr | None, scope: Scope) -> exp.Expr:
    """ROWS FROM (f(…), g(…)): the rows of several functions side by side, the fewer ones filled up with NULL."""
    named: list[tuple[str, tables.TableFunction]] = []
    for each in node.args["rows_from"]:
        if each.args.get("alias"):
            raise FeatureNotSupported("column definitions are not supported in ROWS FROM")
        if isinstance(each, exp.Unnest):
            call = begin_as(exp.Anonymous(this="unnest", expressions=list(each.expressions)), each)
        else:
            call = each.this
        named.append((_call(call)[0], _made_rows(binding, call, scope, ordinality=False)))
    made = tables.side_by_side(named)
    if node.args.get("ordinality"):
        made = tables.numbered(made)
    return _rows_of_function(binding, made, named[0][0], alias, scope, None)


def _call(node: exp.Expr) -> tuple[str, list[exp.Expr]]:
    found = call_of(node.expression if isinstance(node, exp.Dot) else node)
    if found is None:
        raise FeatureNotSupported(f"{node.sql('seiche')} is not supported in FROM")
    return found


def _made_rows(binding: Binding, node: exp.Expr, scope: Scope, *, ordinality: bool) -> tables.TableFunction:
    """The rows that a call in FROM gives. It sees what stands before it there."""
    name, arguments = _call(node)
    binder = binding.expressions(Scope(scope.bind_subquery, parent=scope), Clause.FROM)
    if is_function(name) or name in ("now", "current_date"):
        return tables.single_row(settle(binder.bind(node), binding.settings))
    written = user_rows(binder, name, arguments, ordinality=ordinality)
    if written is not None:
        return written
    refuse_endless(name, arguments)
    bound = [binder.bind(argument) for argument in arguments]
    with pointing_at(node.expression if isinstance(node, exp.Dot) else node):
        return tables.table_function(name, bound, binding.settings, ordinality=ordinality)


def _rows_of_function(
    binding: Binding,
    made: tables.TableFunction,
    name: str,
    alias: exp.Expr | None,
    scope: Scope,
    ordinal_name: str | None,
) -> exp.Expr:
    """The rows as an item of FROM, added to the scope."""
    shown = alias.name if alias is not None and alias.name else name
    ref = binding.ref(shown)
    select, entries = tables.rendered(made, shown, ref)
    renamed = _column_names(alias)
    if ordinal_name and len(renamed) == len(entries) - 1:
        renamed.append(ordinal_name)
    _check_names(renamed, len(entries), shown)
    if renamed:
        entries = tuple(
            Entry(n, e.node)
            for n, e in zip([*renamed, *(e.name for e in entries[len(renamed) :])], entries, strict=True)
        )
    derived = derived_table(select, ref)
    uses_outer = any(column.table in scope.refs for column in select.find_all(exp.Column))
    binding.add(scope, RangeVariable(shown, ref, entries, scalar=len(entries) == 1))
    return lateral_table(derived) if uses_outer else derived


def _time_window(
    binding: Binding,
    name: str,
    arguments: list[exp.Expr],
    alias: exp.Expr | None,
    scope: Scope,
    tables_: Mapping[str, CommonTable],
) -> exp.Expr:
    """TUMBLE and HOP: the table's rows with the window, or windows, that each falls in."""
    source = _table_argument(name, arguments)
    inner = Scope(scope.bind_subquery)
    table, _ = _table(binding, source, inner, tables_)
    binder = binding.expressions(inner, Clause.FROM)
    bound = [binder.bind(argument) for argument in arguments[1:]]
    columns = [(e.name, e.node.copy(), e.hidden) for e in inner.entries if not is_commit_time(e)]
    own, start, size = tables.time_window(name, bound, columns, binding.settings)
    taken: set[str] = set()
    named = [(column, node, hidden, unique(column, taken)) for column, node, hidden in own]
    start_alias = unique("window_start", taken)
    select = exp.Select(expressions=[aliased(node, column) for _, node, _, column in named]).from_(table, copy=False)
    if type_of(start).kind is Kind.ARRAY:  # a row for each window, and none for a row without a time
        select = select.where(not_null(bound[0].copy()), copy=False)
        windows = binding.ref("windows")
        exploded, (entry,) = tables.rendered(tables.single(start), "start", windows)
        select.append("joins", exp.Join(this=lateral_table(derived_table(exploded, windows)), kind="CROSS"))
        start = entry.node
    shown = alias.name if alias is not None and alias.name else source.name
    ref = binding.ref(shown)
    entries = [
        Entry(column, typed(exp.column(unique, table=ref, quoted=True), type_of(node)), hidden)
        for column, node, hidden, unique in named
    ]
    select.set("expressions", [*select.expressions, aliased(start, start_alias)])
    moment = typed(exp.column(start_alias, table=ref, quoted=True), type_of(start))
    entries += [Entry("window_start", moment), Entry("window_end", tables.window_end(moment.copy(), size))]
    binding.add(scope, RangeVariable(shown, ref, tuple(entries)))
    return derived_table(select, ref)


def _table_argument(name: str, arguments: Sequence[exp.Expr]) -> exp.Table | exp.Subquery:
    """The table that a function in FROM takes first, be it a name or a query."""
    source = arguments[0] if arguments else None
    if isinstance(source, exp.Column):
        return exp.Table(this=source.this, db=source.args.get("table"))
    if not isinstance(source, exp.Table | exp.Subquery):
        raise SyntaxError_(f"the first argument of {name} must be a table")
    return source


def _gap_fill(
    binding: Binding,
    arguments: Sequence[exp.Expr],
    alias: exp.Expr | None,
    scope: Scope,
    tables_: Mapping[str, CommonTable],
) -> exp.Expr:
    """GAP_FILL: bound once for the columns of its table, and then as the query that it stands for."""
    source = _table_argument("gap_fill", arguments)
    known, seen = Scope(scope.bind_subquery), len(binding.usage.references)
    _table(binding, source.copy(), known, tables_)
    del binding.usage.references[seen:]  # they are found again below, in the nodes of the query itself
    columns = {entry.name: type_of(entry.node) for entry in known.entries if not entry.hidden}
    bound = binding.settled(binding.query(gap_fill_query(source, columns, arguments[1:]), None, tables_))
    return _derived_table(binding, bound, alias, scope, source.alias_or_name, lateral=False)


def _column_names(alias: exp.Expr | None) -> list[str]:
    return [column.name for column in alias.columns] if isinstance(alias, exp.TableAlias) else []


def _check_names(names: Sequence[str], count: int, table: str) -> None:
    check_names(names, count, f'table "{table}"')


def check_names(names: Sequence[str], count: int, what: str) -> None:
    """Raises where more columns are named than there are."""
    if len(names) > count:
        raise InvalidColumnReference(f"{what} has {count} columns available but {len(names)} columns specified")
