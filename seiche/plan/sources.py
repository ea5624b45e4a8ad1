"""FROM: tables, derived tables and the joins between them, from left to right.

Inner joins only add inputs and conditions: they end up in one n-ary Select. An outer join takes what was joined so far
as its left side, with the conditions of WHERE that may go below it. A LATERAL item that joins is merged into the rest;
one that unnests an array is evaluated for the rows that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seiche.model import RelationId, RelationSchema
from seiche.plan.algebra import ChangeLog, Field, Plan, Scan
from seiche.plan.dependent import Domains, Spread, is_domain
from seiche.plan.grouping import aggregates
from seiche.plan.joins import Tied, outer_join
from seiche.plan.reasons import NotIncremental
from seiche.plan.rows import Rows, conjunction, over, side_by_side, type_of
from seiche.plan.subqueries import holds_subquery, is_correlated
from seiche.plan.temporal_join import is_temporal, temporal_join
from seiche.plan.unnest import unnest
from seiche.plan.windows import windows_in
from seiche.sql.change_log import is_change_log
from seiche.sql.nodes import conjuncts

Schemas = Mapping[RelationId, RelationSchema]


@dataclass(frozen=True, slots=True)
class Sources:
    """Lowers FROM clauses. `query` lowers a derived table, `values` makes subqueries known as values, `spread` lowers
    a query for all rows that it depends on; `domains` are what such a query reads of them."""

    schemas: Schemas
    query: Callable[[exp.Expr], Plan]
    values: Callable[[Rows, Sequence[exp.Expr], Sequence[exp.Expr]], Rows]
    spread: Callable[[Rows, exp.Query], Spread]
    domains: Domains

    def rows(self, ast: exp.Select, conditions: list[exp.Expr], remaining: Sequence[exp.Expr]) -> Rows:
        """The joined inputs. Takes out of `conditions` those that had to be, or could be, applied on the way."""
        start = ast.args.get("from_") or ast.args.get("from")
        if start is None:
            if any(holds_subquery(each) for each in (*conditions, *remaining)):
                return Rows()  # one row, of what the subqueries give
            raise NotIncremental("constant", "A part without FROM stands where rows are joined.")
        rows = self._source(start.this)
        joins = list(ast.args.get("joins") or ())
        for position, join in enumerate(joins):
            later = [each.args["on"] for each in joins[position:] if each.args.get("on") is not None]
            later += [each.this for each in joins[position + 1 :] if isinstance(each.this, exp.Lateral)]
            only_left = all((each.side or "") in ("", "LEFT") for each in joins[position:])
            rows = self._join(rows, join, conditions, [*remaining, *conditions, *later], only_left=only_left)
        return rows

    def _join(
        self,
        rows: Rows,
        join: exp.Join,
        conditions: list[exp.Expr],
        remaining: Sequence[exp.Expr],
        *,
        only_left: bool,
    ) -> Rows:
        side, on = (join.side or "").upper(), join.args.get("on")
        if join.kind not in ("", "INNER", "CROSS") or join.method or side not in ("", "LEFT", "RIGHT", "FULL"):
            raise NotIncremental("shape", f"{join.kind or join.method} JOIN has no rule.")
        if join.args.get("using"):
            raise NotIncremental("using", "USING was not expanded.")
        if only_left and (side or isinstance(join.this, exp.Lateral)):
            ready = [each for each in conditions if not holds_subquery(each) and rows.covers(each)]
            for each in ready:
                rows.filter(each)
            conditions[:] = [each for each in conditions if each not in ready]
        if is_temporal(join.this):
            if on is not None and holds_subquery(on):
                raise NotIncremental("subquery", "A subquery stands in the condition of a temporal join.")
            return temporal_join(side, rows, self._source(join.this), on, remaining)
        if isinstance(join.this, exp.Lateral):
            return self._lateral(rows, join.this, side, on, remaining)
        if not side:
            rows = side_by_side(rows, self._source(join.this))
            for each in conjuncts(on) if on is not None else ():
                if holds_subquery(each):
                    conditions.append(each)
                else:
                    rows.filter(each)
            return rows
        other = self._source(join.this)
        for each in conjuncts(on) if on is not None and holds_subquery(on) else ():
            # What a subquery gives is a value of the rows that it reads; of either, if it reads none.
            if holds_subquery(each):
                if _depends_on(each, rows):
                    rows = self.values(rows, [each], [*remaining, each])
                else:
                    other = self.values(other, [each], [*remaining, each])
        return outer_join(side, rows, other, on if on is not None else exp.true(), remaining)

    def _source(self, source: exp.Expr) -> Rows:
        alias = source.alias_or_name
        match source:
            case exp.Table() if isinstance(source.this, exp.Identifier):
                if any(source.args.get(part) for part in ("joins", "pivots", "sample")):
                    raise NotIncremental("shape", "The FROM clause has an unusual shape.")
                if is_domain(source.name):
                    values = self.domains.plans[source.name]
                    return over(values, {_column(field, alias): field for field in values.fields if not field.hidden})
                relation = RelationId(int(source.name.removeprefix("r")))
                scan = Scan(relation, self.schemas[relation])
                plan: Plan = ChangeLog(scan) if is_change_log(source) else scan
                return over(plan, {_column(field, alias): field for field in plan.fields})
            case exp.Subquery():
                columns = source.args["alias"].args.get("columns") if source.args.get("alias") else None
                if columns:
                    raise NotIncremental("shape", "A derived table renames its columns.")
                plan = self.query(source.this)
                return over(plan, {_column(field, alias): field for field in plan.fields if not field.hidden})
            case _:
                raise NotIncremental("table_function", f"{source.key.upper()} in FROM has no rule.")

    # --- LATERAL -------------------------------------------------------------------------------------

    def _lateral(
        self, rows: Rows, source: exp.Lateral, side: str, on: exp.Expr | None, remaining: Sequence[exp.Expr]
    ) -> Rows:
        inner, alias = source.this.unnest(), source.alias_or_name
        always = on is None or (isinstance(on.unnest(), exp.Boolean) and bool(on.unnest().this))
        if side not in ("", "LEFT") or not isinstance(inner, exp.Query):
            raise NotIncremental("lateral", "This LATERAL item has no rule.")
        if not isinstance(inner, exp.Select) or (inner.args.get("from_") and not _merges(inner, side, always)):
            return self._spread_out(rows, inner, alias, side, on, remaining)
        outputs = {_named(each.alias_or_name, alias): each.unalias() for each in inner.expressions}
        if not inner.args.get("from_"):
            if side and not always:
                raise NotIncremental("lateral", "A function in FROM is left joined by a condition.")
            rows = unnest(rows, inner, alias, side, [*remaining, *(conjuncts(on) if on is not None else ())])
        elif any(aggregates(each) for each in outputs.values()):
            for node, value in outputs.items():
                single = inner.copy()
                single.set("expressions", [exp.alias_(value.copy(), "value", quoted=True)])
                wrapped = exp.Subquery(this=single)
                wrapped.meta["sql_type"] = type_of(value)
                rows = self.values(rows, [wrapped], [*remaining, inner])
                rows.known[node] = rows.known.pop(wrapped)
        else:
            where = inner.args.get("where")
            own = conjuncts(where.this) if where is not None else []
            rows = side_by_side(rows, self.rows(inner, [], [*own, *outputs.values()]))
            for each in own:
                rows.filter(each)
            for node, value in outputs.items():
                rows.known[node] = rows.resolve(value)
        for each in conjuncts(on) if on is not None and not always else ():
            rows.filter(each)
        return rows

    def _spread_out(
        self, rows: Rows, inner: exp.Query, alias: str, side: str, on: exp.Expr | None, remaining: Sequence[exp.Expr]
    ) -> Rows:
        """A LATERAL item for all values that it reads of the rows, joined with them by those values."""
        if is_correlated(inner):
            found = self.spread(rows, inner)
            tied = found.tied
            other = over(found.plan, found.known([_column(field, alias) for field in found.shown]))
        else:
            plan, tied = self.query(inner), Tied()
            other = over(plan, {_column(field, alias): field for field in plan.fields if not field.hidden})
        conditions = [*tied.conditions, *(conjuncts(on) if on is not None else ())]
        if side:
            joined = outer_join(side, rows, other, conjunction(conditions), remaining)
        else:
            joined = side_by_side(rows, other)
            for each in conditions:
                joined.filter(each)
        for made in tied.right:
            joined.known.pop(made, None)
        return joined


def _depends_on(condition: exp.Expr, rows: Rows) -> bool:
    """Whether a subquery in the condition reads the rows."""
    return any(rows.touches(each) for each in condition.find_all(exp.Query, exp.In, exp.Exists))


def _merges(inner: exp.Select, side: str, always: bool) -> bool:
    """Whether a LATERAL item can be merged into the query around it: one that joins, or one row of aggregates."""
    if any(inner.args.get(part) for part in ("group", "having", "limit", "offset", "distinct")):
        return False
    if any(aggregates(each) for each in inner.expressions):
        return always or not side
    return not side and not holds_subquery(inner) and not windows_in(inner.expressions)


def _column(field: Field, alias: str) -> exp.Expr:
    return _named(field.name, alias)


def _named(name: str, alias: str) -> exp.Expr:
    return exp.column(name, table=alias, quoted=True)
