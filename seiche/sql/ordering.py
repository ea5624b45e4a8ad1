"""ORDER BY, DISTINCT ON, LIMIT and OFFSET: which rows of a result come first, and how many come at all."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import (
    AmbiguousColumn,
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnReference,
    NumericOutOfRange,
    OutOfDomain,
    SyntaxError_,
    UndefinedColumn,
    UndefinedTable,
)
from seiche.sql.binder import Binder, Clause, sorted_by
from seiche.sql.binding import Binding
from seiche.sql.bound import Bound, OutputColumn, aliased, derived_table, unique
from seiche.sql.casts import convert, settle
from seiche.sql.literals import constant_integer
from seiche.sql.nodes import equal, integer, is_unknown, spark_cast, type_of, typed
from seiche.sql.operators import sort_key
from seiche.sql.order_keys import order_key
from seiche.sql.places import begin_of, place_of
from seiche.sql.scopes import Entry, Scope
from seiche.sql.select_list import ordinal, output_at
from seiche.types import BIGINT, INTEGER, VARCHAR, Kind

_INTEGER_MAX, _BIGINT_MAX = 2**31 - 1, 2**63 - 1


def sort_keys(
    binding: Binding, node: exp.Select, scope: Scope, projections: Sequence[exp.Expr], columns: Sequence[OutputColumn]
) -> list[exp.Expr]:
    order = node.args.get("order")
    if order is None:
        return []
    binder = binding.expressions(scope, Clause.ORDER)
    return [
        sorted_by(_sort_target(binding, item.this, binder, projections, columns), item) for item in order.expressions
    ]


def _sort_target(
    binding: Binding, item: exp.Expr, binder: Binder, projections: Sequence[exp.Expr], columns: Sequence[OutputColumn]
) -> exp.Expr:
    """An output column by position or name; else an expression, which may turn out to be one."""

    def output(index: int) -> exp.Expr:
        column = columns[index]
        return typed(exp.column(column.alias, quoted=True), VARCHAR if column.type.kind is Kind.NULL else column.type)

    position = ordinal(item, "ORDER BY")
    if position is not None:
        output_at(columns, item, "ORDER BY")
        return output(position - 1)
    if isinstance(item, exp.Column) and not item.table:
        named = [index for index, column in enumerate(columns) if column.name == item.name]
        if len({projections[index].this for index in named}) > 1:
            raise AmbiguousColumn(f'ORDER BY "{item.name}" is ambiguous', position=place_of(item))
        if named:
            return output(named[0])
    bound = settle(binder.bind(item), binding.settings)
    for index, projection in enumerate(projections):
        if projection.this == bound:
            return output(index)
    return bound


def ordered_output(binding: Binding, bound: Bound, node: exp.Expr) -> Bound:
    """ORDER BY, LIMIT and OFFSET after a set operation or VALUES: only output names and positions."""
    order = node.args.get("order")
    if order is None and not node.args.get("limit") and not node.args.get("offset"):
        return bound
    bound = binding.settled(bound)
    if bound.rows is not None:
        bound = Bound(bound.ast, bound.columns)
    scope = Scope(
        binding.subquery({}),
        entries=[Entry(c.name, typed(exp.column(c.alias, quoted=True), c.type)) for c in bound.columns],
    )
    binder = binding.expressions(scope, Clause.ORDER)
    if order is not None:
        keys = []
        for item in order.expressions:
            if ordinal(item.this, "ORDER BY") is not None:
                target = output_at(bound.columns, item.this, "ORDER BY")
                keys.append(sorted_by(typed(exp.column(target.alias, quoted=True), target.type), item))
            elif isinstance(node, exp.SetOperation) and not _is_output(item.this):
                raise FeatureNotSupported(
                    "invalid UNION/INTERSECT/EXCEPT ORDER BY clause",
                    detail="Only result column names can be used, not expressions or functions.",
                    hint="Add the expression to every SELECT, or move the set operation into a FROM clause.",
                    position=begin_of(item.this),
                )
            else:
                keys.append(binder.ordered(item))
        bound.ast.set("order", exp.Order(expressions=keys))
    limits(binding, bound.ast, node, scope)
    return bound


def limits(binding: Binding, ast: exp.Query, node: exp.Expr, scope: Scope) -> None:
    limit, offset = node.args.get("limit"), node.args.get("offset")
    binder = binding.expressions(Scope(scope.bind_subquery), Clause.LIMIT)
    count: exp.Expr | None = None
    with_ties = False
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        with_ties = bool(options is not None and options.args.get("with_ties"))
        if with_ties and ast.args.get("order") is None:
            raise SyntaxError_("WITH TIES cannot be specified without ORDER BY clause")
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
        given = _without_columns(value, binder, binding.expressions(scope, Clause.LIMIT), name.upper())
        if not is_unknown(given) and not type_of(given).is_number:
            raise DatatypeMismatch(
                f"argument of {name.upper()} must be type bigint, not type {type_of(given)}", position=place_of(given)
            )
        bound = convert(given, BIGINT, binding.settings)
        if (constant_integer(bound) or 0) < 0:
            raise OutOfDomain(f"{name.upper()} must not be negative", sqlstate="2201W" if name == "limit" else "2201X")
        if isinstance(value, exp.Literal) and value.name.isdigit() and int(value.name) > _INTEGER_MAX:
            if int(value.name) > _BIGINT_MAX:
                raise NumericOutOfRange(f"value of {name.upper()} is out of range for type bigint")
            if name == "limit":
                continue  # no result has that many rows
        kind = exp.Limit if name == "limit" else exp.Offset
        plain = value.copy() if isinstance(value, exp.Literal) and not value.is_string else spark_cast(bound, INTEGER)
        if plain.find(exp.Null) is not None:  # NULL is no limit, and Spark has none for it
            most = integer(_INTEGER_MAX if name == "limit" else 0)
            plain = typed(exp.Coalesce(this=plain, expressions=[most]), INTEGER)
        ast.set(name, kind(expression=plain))
    if with_ties and ast.args.get("limit") is not None:
        ast.args["limit"].set("with_ties", True)


def _without_columns(value: exp.Expr, binder: Binder, around: Binder, clause: str) -> exp.Expr:
    """The value bound, which may read no column, be there one of that name or not."""
    try:
        return binder.bind(value)
    except (UndefinedColumn, UndefinedTable) as error:
        around.bind(value)
        message = f"argument of {clause} must not contain variables"
        raise InvalidColumnReference(message, position=error.position) from error


def check_distinct(keys: Sequence[exp.Expr]) -> None:
    for key in keys:
        inside = key.find_all(exp.Column)
        if any(column.table for column in inside):
            raise InvalidColumnReference(
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list", position=place_of(key.this)
            )


def distinct_on(
    binding: Binding,
    node: exp.Select,
    select: exp.Select,
    columns: list[OutputColumn],
    on: exp.Expr,
    keys: list[exp.Expr],
    scope: Scope,
) -> Bound:
    """The first row of each group in the order given, through row_number()."""
    binder = binding.expressions(scope, Clause.ORDER)
    projections = list(select.expressions)
    by_alias = {projection.alias: projection.this for projection in projections}

    def spelled(key: exp.Expr) -> exp.Expr:
        """Output names do not exist yet where the window is computed."""
        spelled_out: exp.Expr = key.copy().transform(
            lambda part: by_alias[part.name].copy() if _is_output(part) and part.name in by_alias else part
        )
        return spelled_out

    items = on.expressions if isinstance(on, exp.Tuple) else [_inner(on)]
    wanted = [_sort_target(binding, item, binder, projections, columns) for item in items]
    partition = [spelled(sort_key(item)) for item in wanted]
    for key in keys[: len(wanted)]:
        if not any(order_key(item) == key.this for item in wanted):
            raise InvalidColumnReference(
                "SELECT DISTINCT ON expressions must match initial ORDER BY expressions", position=begin_of(items[0])
            )
    ordering = [spelled(key) for key in keys] or [exp.Ordered(this=exp.Null(), desc=False, nulls_first=False)]
    number = exp.Window(
        this=exp.Anonymous(this="row_number"),
        partition_by=partition,
        order=exp.Order(expressions=ordering),
        over="OVER",
    )
    number.meta["distinct_on"] = True  # planning tells why by the user's words
    taken = {column.alias.lower() for column in columns}
    rank = unique("row_number", taken)
    outer_keys: list[exp.Expr] = []
    extra: list[exp.Expr] = []
    ref = binding.ref("ranked")
    for key in keys:
        if isinstance(key.this, exp.Column) and not key.this.table:
            outer_keys.append(key.copy())
            continue
        alias = unique("sort_key", taken)
        extra.append(aliased(spelled(key.this), alias))
        moved = key.copy()
        moved.set("this", typed(exp.column(alias, table=ref, quoted=True), type_of(key)))
        outer_keys.append(moved)
    bound = binding.settled(Bound(select, columns))
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
    limits(binding, outer, node, scope)
    return Bound(outer, bound.columns)


def _is_output(node: exp.Expr) -> bool:
    """Whether it is a reference to an output column; those alone have no table."""
    return isinstance(node, exp.Column) and not node.table


def _inner(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Paren) else node
