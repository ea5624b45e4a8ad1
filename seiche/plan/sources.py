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
from seiche.plan.algebra import ChangeLog, Field, Plan, Scan, input_column, rewrite_columns
from seiche.plan.grouping import aggregates
from seiche.plan.joins import outer_join
from seiche.plan.reasons import NotIncremental
from seiche.plan.rows import Rows, over, type_of
from seiche.plan.subqueries import holds_subquery
from seiche.plan.temporal_join import is_temporal, temporal_join
from seiche.plan.unnest import unnest
from seiche.sql.change_log import is_change_log
from seiche.sql.nodes import conjuncts

Schemas = Mapping[RelationId, RelationSchema]


@dataclass(frozen=True, slots=True)
class Sources:
    """Lowers FROM clauses. `query` lowers a derived table, `values` makes subqueries known as values."""

    schemas: Schemas
    query: Callable[[exp.Expr], Plan]
    values: Callable[[Rows, Sequence[exp.Expr], Sequence[exp.Expr]], Rows]

    def rows(self, ast: exp.Select, conditions: list[exp.Expr], remaining: Sequence[exp.Expr]) -> Rows:
        """The joined inputs. Takes out of `conditions` those that had to be, or could be, applied on the way."""
        start = ast.args.get("from_") or ast.args.get("from")
        if start is None:
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
            index = len(rows.inputs)
            other = self._source(join.this)
            rows.inputs += other.inputs
            for node, value in other.known.items():
                rows.known[node] = _shifted(value, index)
            for each in conjuncts(on) if on is not None else ():
                if holds_subquery(each):
                    conditions.append(each)
                else:
                    rows.filter(each)
            return rows
        if on is None or holds_subquery(on):
            raise NotIncremental("subquery", "A subquery stands in the condition of an outer join.")
        return outer_join(side, rows, self._source(join.this), on, remaining)

    def _source(self, source: exp.Expr) -> Rows:
        alias = source.alias_or_name
        match source:
            case exp.Table() if isinstance(source.this, exp.Identifier):
                if any(source.args.get(part) for part in ("joins", "pivots", "sample")):
                    raise NotIncremental("shape", "The FROM clause has an unusual shape.")
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
        if not isinstance(inner, exp.Select) or side not in ("", "LEFT") or (side and not always):
            raise NotIncremental("lateral", "This LATERAL item has no rule.")
        outputs = {_named(each.alias_or_name, alias): each.unalias() for each in inner.expressions}
        if not inner.args.get("from_"):
            rows = unnest(rows, inner, alias, side, [*remaining, *(conjuncts(on) if on is not None else ())])
        elif any(inner.args.get(part) for part in ("group", "having", "limit", "offset", "distinct")):
            raise NotIncremental("lateral", "A LATERAL item groups, sorts or limits its rows.")
        elif any(aggregates(each) for each in outputs.values()):
            for node, value in outputs.items():
                single = inner.copy()
                single.set("expressions", [exp.alias_(value.copy(), "value", quoted=True)])
                wrapped = exp.Subquery(this=single)
                wrapped.meta["sql_type"] = type_of(value)
                rows = self.values(rows, [wrapped], [*remaining, inner])
                rows.known[node] = rows.known.pop(wrapped)
        elif side:
            raise NotIncremental("lateral", "A LATERAL item that is left joined has no rule.")
        else:
            where = inner.args.get("where")
            own = conjuncts(where.this) if where is not None else []
            if any(holds_subquery(each) for each in own):
                raise NotIncremental("lateral", "A LATERAL item holds a subquery.")
            found = self.rows(inner, [], [*own, *outputs.values()])
            index = len(rows.inputs)
            rows.inputs += found.inputs
            for node, expr in found.known.items():
                rows.known[node] = _shifted(expr, index)
            rows.conjuncts += [_shifted(each, index) for each in found.conjuncts]
            for each in own:
                rows.filter(each)
            for node, value in outputs.items():
                rows.known[node] = rows.resolve(value)
        for each in conjuncts(on) if on is not None and not always else ():
            rows.filter(each)
        return rows


def _shifted(expr: exp.Expr, by: int) -> exp.Expr:
    return rewrite_columns(expr, lambda column: input_column(int(column.table[1:]) + by, column.name))


def _column(field: Field, alias: str) -> exp.Expr:
    return _named(field.name, alias)


def _named(name: str, alias: str) -> exp.Expr:
    return exp.column(name, table=alias, quoted=True)
