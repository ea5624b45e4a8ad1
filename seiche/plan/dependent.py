"""Queries that depend on the rows around them: a LATERAL item, or a subquery that groups, sorts or limits its rows.

Such a query is evaluated for all rows around it at once. The values that it reads of them become a relation of their
own, each combination once, which joins what is in its FROM clause; and whatever the query does with its rows it does
for each of those values.

    (SELECT berth, count(*) FROM arrivals a            SELECT berth, count(*), v.id FROM arrivals a, values v
      WHERE a.ship_id = ships.id GROUP BY berth)         WHERE a.ship_id = v.id GROUP BY berth, v.id
    ORDER BY cargo_t LIMIT 2                           row_number() OVER (PARTITION BY v.id ORDER BY cargo_t) <= 2

What it gives is then joined with the rows around it by those values. A row around it for whose values there are no rows
has no partner; so an aggregate without GROUP BY, which gives a row even then, is none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seiche.plan.algebra import Field, Plan
from seiche.plan.grouping import aggregates
from seiche.plan.joins import Tied, domain
from seiche.plan.reasons import NotIncremental
from seiche.plan.rows import Rows, type_of
from seiche.plan.windows import windows_in
from seiche.sql.ties import has_ties
from seiche.types import BIGINT, BOOLEAN

_PREFIX = "values"  # stored relations have other names in a bound query


@dataclass(slots=True)
class Domains:
    """Relations of values that queries in the making read, under names that stand in their FROM clauses."""

    plans: dict[str, Plan]

    def add(self, plan: Plan) -> str:
        name = f"{_PREFIX}{len(self.plans)}"
        self.plans[name] = plan
        return name

    def reads(self, query: exp.Expr) -> bool:
        return any(is_domain(table.name) for table in query.find_all(exp.Table))


def is_domain(name: str) -> bool:
    """Whether a relation in a FROM clause is one of values, by its name."""
    return name.startswith(_PREFIX)


@dataclass(frozen=True, slots=True)
class Spread:
    """A query for all rows around it: its plan, the fields that it shows, and the values that tie it to those rows."""

    plan: Plan
    shown: tuple[Field, ...]
    tied: Tied

    def known(self, shown: Sequence[exp.Expr]) -> dict[exp.Expr, Field]:
        """The fields by the parts of the query that they hold; `shown` are the columns of it."""
        fields = [each for each in self.plan.fields if not each.hidden]
        return dict(zip([*shown, *self.tied.right], fields, strict=True))


def opened(rows: Rows, query: exp.Query, domains: Domains) -> tuple[exp.Query, Tied]:
    """The query in terms of values of `rows`, and those tied to what they are values of."""
    outer = [node for node in rows.used_by([query]) if node.find(exp.Column)]
    plan, by_values = domain(rows, outer)
    name = domains.add(plan)
    tied, stand_in = Tied(), dict[exp.Expr, exp.Expr]()
    for pair in by_values.pairs:
        made = exp.column(pair[1].name, table=name, quoted=True)
        made.meta["sql_type"] = type_of(pair[0])
        stand_in[pair[0]] = made
        tied.pairs.append((pair[0], made))
        if pair in by_values.null_safe:
            tied.null_safe.add((pair[0], made))
    asked = query.copy().transform(lambda node: stand_in[node].copy() if node in stand_in else node, copy=False)
    assert isinstance(asked, exp.Query)
    return asked, tied


def spread(rows: Rows, query: exp.Query, domains: Domains, lower: Callable[[exp.Expr], Plan]) -> Spread:
    """The query for all `rows`; raises NotIncremental where it cannot be had."""
    asked, tied = opened(rows, query, domains)
    if not tied.pairs:
        raise NotIncremental("subquery", "A subquery refers to rows further out.")
    plan = lower(_for_each(asked, tied.right))
    fields = [field for field in plan.fields if not field.hidden]
    return Spread(plan, tuple(fields[: len(fields) - len(tied.pairs)]), tied)


# --- the query for each of the values ----------------------------------------------------------------


def _for_each(query: exp.Expr, values: Sequence[exp.Expr], place: str = "") -> exp.Query:
    """The query with the values behind its columns, and everything in it done for each of them.

    `place` tells parts of a set operation apart, for the names of what is made up.
    """
    match query:
        case exp.Subquery():
            return _for_each(query.this, values, place)
        case exp.SetOperation():
            made = query.copy()
            for side in ("this", "expression"):
                made.set(side, _for_each(made.args[side], values, f"{place}{side}"))
            return _limited(made, values, place)
        case exp.Select():
            return _limited(_select(query, values), values, place)
        case _:
            raise NotIncremental("shape", f"{type(query).__name__} has no rule.")


def _select(query: exp.Select, values: Sequence[exp.Expr]) -> exp.Select:
    made = query.copy()
    shown = [each.unalias() for each in made.expressions]
    clause = made.args.get("group")
    if clause is None and (made.args.get("having") or any(aggregates(each) for each in shown)):
        raise NotIncremental("subquery", "A correlated aggregate without GROUP BY gives a row where there are none.")
    if clause is not None:
        if any(isinstance(each, (exp.GroupingSets, exp.Rollup, exp.Cube)) for each in clause.expressions):
            raise NotIncremental("grouping_sets", "A correlated subquery has grouping sets.")
        clause.set("expressions", [*clause.expressions, *(each.copy() for each in values)])
    order = made.args.get("order")
    for window in windows_in([*shown, *((each.this for each in order.expressions) if order is not None else ())]):
        window.set("partition_by", [*(window.args.get("partition_by") or ()), *(each.copy() for each in values)])
    made.set("expressions", [*made.expressions, *(_named(number, each) for number, each in enumerate(values))])
    return with_domain(made, values)


def with_domain(query: exp.Select, values: Sequence[exp.Expr]) -> exp.Select:
    """The query with the relation of the values in its FROM clause; what depends on them there is LATERAL."""
    start = query.args.get("from_")
    name = _relation(values)
    relation = exp.Table(this=exp.to_identifier(name, quoted=True))
    if start is None:
        query.set("from_", exp.From(this=relation))
        return query
    joins = list(query.args.get("joins") or ())
    if not any(_reads(each, name) for each in (start, *joins)):
        query.set("joins", [*joins, exp.Join(this=relation, kind="CROSS")])
        return query
    if any((each.side or "") in ("RIGHT", "FULL") for each in joins):
        raise NotIncremental("subquery", "A correlated subquery has a RIGHT or FULL JOIN over what it is tied by.")
    for join in joins:
        join.set("this", _lateral(join.this, name))
    first = exp.Join(this=_lateral(start.this, name), kind="CROSS")
    query.set("from_", exp.From(this=relation))
    query.set("joins", [first, *joins])
    return query


def _relation(values: Sequence[exp.Expr]) -> str:
    """The name of the relation that holds the values."""
    first = values[0]
    assert isinstance(first, exp.Column)
    return str(first.table)


def _lateral(source: exp.Expr, name: str) -> exp.Expr:
    if not isinstance(source, exp.Subquery) or not _reads(source, name):
        return source
    return exp.Lateral(this=exp.Subquery(this=source.this), alias=source.args["alias"])


def _reads(node: exp.Expr, name: str) -> bool:
    return any(column.table == name for column in node.find_all(exp.Column))


def _named(number: int, value: exp.Expr) -> exp.Expr:
    return exp.alias_(value.copy(), f"{_relation([value])} {number}", quoted=True)


# --- the first rows for each of the values -----------------------------------------------------------


def _limited(query: exp.Query, values: Sequence[exp.Expr], place: str) -> exp.Query:
    """LIMIT and OFFSET as conditions on the number of a row among those of the same values."""
    first, skipped = row_count(query, "limit"), row_count(query, "offset") or 0
    if first is None and not skipped:
        return query
    ties, order = has_ties(query), query.args.get("order")
    inner = query.copy()
    for part in ("order", "limit", "offset"):
        inner.set(part, None)
    if not isinstance(inner, exp.Select) or inner.args.get("distinct"):
        inner = enclosed(inner, f"all {_relation(values)}{place}")
    meant = {each.alias_or_name: each.unalias() for each in inner.expressions}
    own = [meant[each.alias_or_name] for each in inner.expressions[-len(values) :]]
    keys = order.expressions if order is not None else [exp.Ordered(this=each) for each in own]

    def numbered(function: str) -> exp.Expr:
        made = exp.Window(
            this=exp.Anonymous(this=function),
            partition_by=[each.copy() for each in own],
            over="OVER",
            order=exp.Order(expressions=[_spelled(each, meant) for each in keys]),
        )
        made.meta["sql_type"] = BIGINT
        return made

    outer = enclosed(inner, f"first {_relation(values)}{place}")
    bounds: list[tuple[str, type[exp.Binary], int]] = []
    bounds += [("rank" if ties else "row_number", exp.LTE, first + skipped)] if first is not None else []
    bounds += [("row_number", exp.GT, skipped)] if skipped else []
    for name in dict.fromkeys(function for function, _, _ in bounds):
        inner.append("expressions", exp.alias_(numbered(name), f"{name} of {_relation(values)}", quoted=True))
    for name, comparison, bound in bounds:
        number = exp.column(f"{name} of {_relation(values)}", table=outer.args["from_"].this.alias, quoted=True)
        number.meta["sql_type"] = BIGINT
        condition = comparison(this=number, expression=exp.Literal.number(bound))
        condition.meta["sql_type"] = BOOLEAN
        outer = outer.where(condition, copy=False)
    return outer


def enclosed(query: exp.Query, name: str) -> exp.Select:
    """A query for the columns of another one, which stands in its FROM clause as it is."""
    shown = []
    for each in query.selects:
        column = exp.column(each.alias_or_name, table=name, quoted=True)
        column.meta["sql_type"] = type_of(each)
        shown.append(exp.alias_(column, each.alias_or_name, quoted=True))
    alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    return exp.Select(expressions=shown).from_(exp.Subquery(this=query, alias=alias), copy=False)


def _spelled(key: exp.Expr, meant: dict[str, exp.Expr]) -> exp.Expr:
    """A sort key with names of output columns replaced by what they stand for."""

    def place(node: exp.Expr) -> exp.Expr:
        return (
            meant[node.name].copy() if isinstance(node, exp.Column) and not node.table and node.name in meant else node
        )

    return key.copy().transform(place, copy=False)


def row_count(query: exp.Query, part: str) -> int | None:
    """The number in a query's LIMIT or OFFSET; raises NotIncremental where it is an expression."""
    clause = query.args.get(part)
    if clause is None:
        return None
    value = clause.expression
    if not isinstance(value, exp.Literal) or value.is_string or not value.name.isdigit():
        raise NotIncremental("limit", "The number of rows is not written down as a number.")
    return int(value.name)


__all__ = ["Domains", "Spread", "enclosed", "is_domain", "opened", "row_count", "spread", "with_domain"]
