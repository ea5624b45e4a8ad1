"""From a bound query to a plan.

A query block is lowered clause by clause, in SQL's own order: FROM, WHERE, GROUP BY, HAVING, window functions, SELECT,
DISTINCT, ORDER BY with LIMIT. What has no rule ends as a Recompute of the smallest query around it that stands for
itself, with the reason. Nothing is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from seiche.errors import FeatureNotSupported
from seiche.model import Column, RelationId, RelationSchema
from seiche.plan.algebra import (
    Aggregate,
    Field,
    Item,
    Plan,
    Reason,
    Recompute,
    Recursion,
    Scan,
    SortField,
    TopN,
    input_column,
    make_aggregate,
    make_select,
    make_union,
    own_column,
    plain,
    reads_clock,
    rewrite_columns,
    with_names,
)
from seiche.plan.arrival import reads_arrival, with_arrival
from seiche.plan.dependent import Domains, Spread, is_domain, row_count, spread
from seiche.plan.grouping import aggregates, distinct, group, grouping_sets
from seiche.plan.keyed import keyed, table, tidy
from seiche.plan.numbered import TOP_ROWS_MAX
from seiche.plan.reasons import NotIncremental
from seiche.plan.rows import Rows, over, type_of, typed_as
from seiche.plan.setops import except_or_intersect
from seiche.plan.sharing import shared
from seiche.plan.sources import Schemas, Sources
from seiche.plan.subqueries import (
    Lowering,
    filter_by,
    holds_subquery,
    is_correlated,
    with_single_values,
    with_values,
)
from seiche.plan.temporal import check_clock, place
from seiche.plan.temporal_join import has_temporal_join
from seiche.plan.windows import evaluate, windows_in
from seiche.sql.bind import BoundQuery
from seiche.sql.change_log import reads_change_log
from seiche.sql.nodes import conjuncts, factored
from seiche.sql.recursion import Recursion as BoundRecursion
from seiche.sql.recursion import holds_recursion, recursion_of
from seiche.sql.ties import has_ties


def lower(query: BoundQuery, schemas: Schemas, *, strict: bool = False) -> Plan:
    """The plan of a bound query; its visible fields are named and ordered as the query's columns.

    A `strict` one fails where a subquery in place of a value has several rows; any other has NULL there.
    """
    columns = tuple(Field(column.alias, column.type) for column in query.columns)
    plan = shared(place(_Planner(schemas, strict).part(query.ast, columns)))
    if isinstance(plan, Scan):
        plan = make_select([plan], [], [Item(f, input_column(0, f.name)) for f in plan.fields if not f.hidden])
    return plan


class _Planner:
    def __init__(self, schemas: Schemas, strict: bool) -> None:
        domains = Domains({})
        self._schemas = dict(schemas)  # and those of the rows of a round
        self._lowering = Lowering(self._block, self.part, self._query, domains, strict)
        self._sources = Sources(self._schemas, self.part, self._with_values, self._spread, domains)

    def part(self, ast: exp.Expr, columns: Sequence[Field] | None = None) -> Plan:
        """The plan of a query that stands for itself: recomputed if it has to be, and if it can be."""
        try:
            if not _relations(ast) and not reads_clock(ast) and not self._lowering.domains.reads(ast):
                raise NotIncremental("constant", "The query reads no relation, so it never changes.")
            return self._query(ast)
        except NotIncremental as stop:
            if is_correlated(ast) or not isinstance(ast, exp.Query) or self._lowering.domains.reads(ast):
                raise
            what = _history(ast) or ("a recursive query" if holds_recursion(ast) else None)
            if what is not None:
                raise _apart(what, stop.reason) from stop
            found = tuple(columns) if columns is not None else tuple(_output(each) for each in _projections(ast))
            clock = reads_clock(ast)
            return Recompute(with_single_values(ast), _relations(ast), found, stop.reason, time_driven=clock)

    def _query(self, ast: exp.Expr) -> Plan:
        match ast:
            case exp.Subquery():
                return self.part(ast.this)
            case exp.SetOperation():
                return self._set_operation(ast)
            case exp.Select():
                recursion = recursion_of(ast)
                return self._select(ast) if recursion is None else self._recursion(ast, recursion)
            case _:
                raise NotIncremental("shape", f"{type(ast).__name__} has no rule.")

    def _set_operation(self, ast: exp.SetOperation) -> Plan:
        if ast.args.get("with_") or ast.args.get("with"):
            raise NotIncremental("with", "The query keeps a WITH clause.")
        sides = [side.unnest() if isinstance(side, exp.Subquery) else side for side in (ast.left, ast.right)]
        branches = [self.part(side) for side in sides]
        plan: Plan
        if isinstance(ast, exp.Union):
            plan = make_union(branches)
            if ast.args.get("distinct"):
                plan = distinct(plan)
        else:
            plan = except_or_intersect(
                branches, is_except=isinstance(ast, exp.Except), every=not ast.args.get("distinct")
            )
        if not ast.args.get("limit") and not ast.args.get("offset"):
            return plan
        visible = [field for field in plan.fields if not field.hidden]
        names = {_bare(field): field for field in visible}
        return self._limited(ast, over(plan, names), [(field, _bare(field)) for field in visible], {})

    def _recursion(self, ast: exp.Select, found: BoundRecursion) -> Plan:
        reason = Reason("recursion", "A row that comes or leaves may bring or take others in any round.")
        what = _history(ast)
        if what is not None:
            raise _apart(what, reason)
        columns = tuple(_output(each) for each in ast.expressions)
        stored = tuple(Column(field.name, field.type) for field in columns)
        self._schemas[found.rounds] = RelationSchema(stored, tuple(field.name for field in columns))
        return Recursion(self.part(found.base), self.part(found.step), found.rounds, columns, found.distinct, reason)

    # --- SELECT --------------------------------------------------------------------------------------

    def _select(self, ast: exp.Select) -> Plan:
        for clause, (code, sentence) in _REFUSED_CLAUSES.items():
            if ast.args.get(clause):
                raise NotIncremental(code, sentence)
        check_clock(ast, reads_rows=bool(_relations(ast)))
        sets = grouping_sets(ast)
        if sets is not None and not windows_in(ast.expressions) and not any(ast.args.get(part) for part in _ABOVE):
            return make_union([self._select(each) for each in sets])
        where = ast.args.get("where")
        conditions = factored(where.this) if where is not None else []
        outputs = [(_output(each), each.unalias()) for each in ast.expressions]
        by_name = {_bare(field): value for field, value in outputs}
        limited = bool(ast.args.get("limit") or ast.args.get("offset"))
        order = _order(ast, by_name) if limited else []
        having = _having(ast)
        shown = [value for _, value in outputs]
        asked = [*shown, *order, *having]
        if sets is not None:
            rows, having = self._sets(ast, [*shown, *order]), []
        elif ast.args.get("group") is not None or having or any(aggregates(each) for each in asked):
            rows = self._groups(ast, conditions, asked)
        else:
            rows = self._block(ast, conditions, asked)
        rows = self._conditions(rows, having, [*shown, *order])
        rows = self._with_values(rows, [each for each in (*shown, *order) if holds_subquery(each)], [*shown, *order])
        windows = windows_in([*shown, *order])
        if windows:
            rows = evaluate(rows, windows, [*shown, *order])
        is_distinct = ast.args.get("distinct") is not None
        if limited and not is_distinct:
            return self._limited(ast, rows, outputs, by_name)
        plan = _finished(rows, outputs)
        if not is_distinct:
            return plan
        unique_rows = distinct(plan)
        if not limited:
            return unique_rows
        names = {_bare(field): field for field, _ in outputs}
        return self._limited(ast, over(unique_rows, names), [(f, _bare(f)) for f, _ in outputs], {})

    def _sets(self, ast: exp.Select, asked: Sequence[exp.Expr]) -> Rows:
        """The rows of all grouping sets, where windows, DISTINCT or LIMIT are about all of them together."""
        body = ast.copy()
        for part in ("order", *_ABOVE):
            body.set(part, None)
        parts = list(dict.fromkeys(_without_windows(asked)))
        body.set("expressions", [exp.alias_(each.copy(), f"p{n}", quoted=True) for n, each in enumerate(parts)])
        plan = make_union([self._select(each) for each in grouping_sets(body) or ()])
        return over(plan, dict(zip(parts, (field for field in plan.fields if not field.hidden), strict=True)))

    def _block(self, ast: exp.Select, conditions: Sequence[exp.Expr], remaining: Sequence[exp.Expr]) -> Rows:
        """FROM with conditions on it; afterwards what `remaining` asks for is known."""
        left = list(conditions)
        rows = self._sources.rows(ast, left, remaining)
        if any(reads_arrival(each) for each in conditions):
            raise NotIncremental("time", "A condition compares with the time at which a row came.")
        return with_arrival(self._conditions(rows, left, remaining), remaining)

    def _conditions(self, rows: Rows, conditions: Sequence[exp.Expr], remaining: Sequence[exp.Expr]) -> Rows:
        parts = [each for condition in conditions for each in conjuncts(condition)]
        for each in parts:
            if not holds_subquery(each):
                rows.filter(each)
        return filter_by(rows, [each for each in parts if holds_subquery(each)], remaining, self._lowering)

    def _with_values(self, rows: Rows, roots: Sequence[exp.Expr], remaining: Sequence[exp.Expr]) -> Rows:
        return with_values(rows, roots, remaining, self._lowering)

    def _spread(self, rows: Rows, query: exp.Query) -> Spread:
        return spread(rows, query, self._lowering.domains, self._query)

    def _groups(self, ast: exp.Select, conditions: Sequence[exp.Expr], asked: Sequence[exp.Expr]) -> Rows:
        clause = ast.args.get("group")
        keys = [each.unnest() for each in clause.expressions] if clause is not None else []
        inside = [*keys, *(call for each in asked for call in aggregates(each))]
        rows = self._block(ast, conditions, inside)
        rows = self._with_values(rows, [each for each in inside if holds_subquery(each)], inside)
        return group(rows, keys, asked)

    # --- ORDER BY with LIMIT -------------------------------------------------------------------------

    def _limited(
        self,
        ast: exp.Query,
        rows: Rows,
        outputs: Sequence[tuple[Field, exp.Expr]],
        by_name: dict[exp.Expr, exp.Expr],
    ) -> Plan:
        limit, offset = row_count(ast, "limit"), row_count(ast, "offset") or 0
        clause = ast.args.get("order")
        shown = list(outputs)
        names = {value: field.name for field, value in outputs}
        order: list[SortField] = []
        for number, each in enumerate(clause.expressions if clause is not None else ()):
            value = _spelled(each.this, by_name)
            if value not in names:
                names[value] = f"_o{number}"
                shown.append((Field(names[value], type_of(each.this), hidden=True), value))
            order.append(SortField(names[value], bool(each.args.get("desc")), bool(each.args.get("nulls_first"))))
        source = _finished(rows, shown)
        if isinstance(source, Aggregate):  # the first groups are stored without their state
            source = plain(source)
        ties = has_ties(ast)
        if ties and limit is not None and limit + offset > TOP_ROWS_MAX:
            raise NotIncremental("limit", f"LIMIT beyond {TOP_ROWS_MAX} rows is sorted anew.")
        if limit is None or limit + offset > TOP_ROWS_MAX:
            return _recomputed_top(source, order, limit, offset)
        top = TopN(source, tuple(order), limit + offset, ties=ties)
        return TopN(top, tuple(order), limit, offset, ties) if offset else top


def _recomputed_top(source: Plan, order: Sequence[SortField], limit: int | None, offset: int) -> Plan:
    """Too many rows to keep, or all but some: sorted anew at each change."""
    columns = [exp.alias_(input_column(0, f.name), exp.to_identifier(f.name, quoted=True)) for f in source.fields]
    body = exp.Select(expressions=columns).from_(table(0), copy=False)
    keys = [(each.name, each.descending, each.nulls_first) for each in order]
    keys += [(name, False, True) for name in source.key]
    ordering = [
        exp.Ordered(this=input_column(0, name), desc=descending, nulls_first=first) for name, descending, first in keys
    ]
    body.set("order", exp.Order(expressions=ordering))
    if limit is not None:
        body.set("limit", exp.Limit(expression=exp.Literal.number(limit)))
    if offset:
        body.set("offset", exp.Offset(expression=exp.Literal.number(offset)))
    what = "OFFSET without LIMIT" if limit is None else f"LIMIT beyond {TOP_ROWS_MAX} rows"
    reason = Reason("limit", f"{what} is sorted anew.")
    return keyed("Limit", [source], [[]], body, source.fields, partition=[], key=source.key, reason=reason)


def _finished(rows: Rows, outputs: Sequence[tuple[Field, exp.Expr]]) -> Plan:
    """The output of a block. A bare Aggregate computes it itself; a Keyed takes it into its query."""
    items = [Item(field, rows.resolve(value)) for field, value in outputs]
    if len(rows.inputs) == 1 and isinstance(rows.inputs[0], Recursion) and not rows.conjuncts:
        as_they_are = [item.expr.name if isinstance(item.expr, exp.Column) else None for item in items]
        if as_they_are == [field.name for field in rows.inputs[0].columns]:  # as it is, under other names
            return with_names(rows.inputs[0], [item.field.name for item in items])
    if len(rows.inputs) == 1 and isinstance(rows.inputs[0], Aggregate) and not rows.conjuncts:
        groups = rows.inputs[0]

        def own(column: exp.Column) -> exp.Expr:
            return typed_as(own_column(column.name), column)

        if all(isinstance(each.expr, exp.Column) and each.expr.name == each.field.name for each in groups.items):
            shown = [Item(item.field, rewrite_columns(item.expr, own)) for item in items]
            return make_aggregate(groups.input, groups.keys, groups.calls, shown, total=groups.total)
    return tidy(make_select(rows.inputs, rows.conjuncts, items))


def _apart(what: str, reason: Reason) -> FeatureNotSupported:
    return FeatureNotSupported(
        f"{what} cannot stand in a query that is recomputed",
        detail=f"{reason.sentence} (reason code: {reason.code})",
        hint=f"Put {what} into a materialized view of its own, and let the rest read that.",
    )


def _history(ast: exp.Expr) -> str | None:
    """What in a query is a record of what was there when rows came, which cannot be found anew."""
    if has_temporal_join(ast):
        return "a temporal join"
    if reads_change_log(ast):
        return "a change log"
    return "proctime()" if _relations(ast) and reads_arrival(ast) else None


_REFUSED_CLAUSES = {
    "laterals": ("lateral", "LATERAL VIEW has no rule."),
    "windows": ("window", "A named window was not expanded."),
    "qualify": ("window", "QUALIFY has no rule."),
    "with_": ("with", "The query keeps a WITH clause."),
    "with": ("with", "The query keeps a WITH clause."),
    "pivots": ("pivot", "PIVOT has no rule."),
}


# Clauses that concern the rows of all grouping sets together.
_ABOVE = ("limit", "offset", "distinct")


def _without_windows(roots: Sequence[exp.Expr]) -> Iterator[exp.Expr]:
    """The largest parts of expressions that are computed before window functions are, and depend on a group."""
    for root in roots:
        if root.find(exp.Window):
            yield from _without_windows(list(root.iter_expressions()))
        elif root.find(exp.Column, exp.Query) or aggregates(root):
            yield root


def _having(ast: exp.Select) -> list[exp.Expr]:
    having = ast.args.get("having")
    return conjuncts(having.this) if having is not None else []


def _order(ast: exp.Query, by_name: dict[exp.Expr, exp.Expr]) -> list[exp.Expr]:
    clause = ast.args.get("order")
    return [_spelled(each.this, by_name) for each in clause.expressions] if clause is not None else []


def _spelled(node: exp.Expr, by_name: dict[exp.Expr, exp.Expr]) -> exp.Expr:
    """A sort expression with names of output columns replaced by what they stand for."""
    if not by_name:
        return node
    if node in by_name:
        return by_name[node]
    return node.copy().transform(lambda each: by_name[each].copy() if each in by_name else each)


def _relations(ast: exp.Expr) -> tuple[RelationId, ...]:
    names = {table.name for table in ast.find_all(exp.Table) if isinstance(table.this, exp.Identifier)}
    names = {name for name in names if not is_domain(name)}
    return tuple(sorted(RelationId(int(name.removeprefix("r"))) for name in names))


def _projections(ast: exp.Expr) -> list[exp.Expr]:
    current = ast
    while not isinstance(current, exp.Select):
        current = current.this
    return list(current.expressions)


def _output(projection: exp.Expr) -> Field:
    return Field(projection.alias_or_name, type_of(projection))


def _bare(field: Field) -> exp.Expr:
    """The column by which ORDER BY names an output."""
    node = exp.column(field.name, quoted=True)
    node.meta["sql_type"] = field.type
    return node


__all__ = ["TOP_ROWS_MAX", "Schemas", "lower"]
