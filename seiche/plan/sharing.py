"""Parts that a query asks for twice, each time with other columns, are stored once.

Equal parts of a plan share one relation. A WITH query that is read twice is rarely equal to itself, though: each reader
takes the columns that it needs, under names of its own. So where several parts below other operators differ in nothing
but what they show, each becomes a Select over one that shows what all of them ask for:

    Aggregate   one that shows its keys and calls as they are
    Keyed       one whose query has the columns of all of them, each once: joins, windows, lists by group
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from seiche.plan.algebra import (
    Aggregate,
    Field,
    Item,
    Keyed,
    Plan,
    Select,
    TopN,
    UnionAll,
    children,
    input_column,
    make_aggregate,
    make_select,
    own_column,
    rewrite_columns,
)
from seiche.plan.keyed import Body


@dataclass(frozen=True, slots=True)
class _Shared:
    """A part of a plan, what shows all that it shows, and its columns over that."""

    part: Plan
    whole: Plan
    items: tuple[Item, ...]


def shared(plan: Plan) -> Plan:
    """The plan with parts that differ in nothing but what they show made the same; those within first."""
    while found := _found(list(_below(plan))):
        plan = _over_wholes(plan, found)
    return plan


def _below(plan: Plan) -> Iterator[Aggregate | Keyed]:
    """The parts for which a Select may stand: those below what takes one."""
    if isinstance(plan, Select | UnionAll | Keyed | Aggregate | TopN):
        for child in children(plan):
            yield from _below(child)
            if isinstance(child, Aggregate | Keyed):
                yield child


def _found(parts: Sequence[Aggregate | Keyed]) -> list[_Shared]:
    groups = [_groups(part) for part in parts if isinstance(part, Aggregate)]
    queries = _queries([part for part in parts if isinstance(part, Keyed)])
    return [
        each
        for each in (*groups, *queries)
        if each.part != each.whole
        and any(each.whole == other.whole and each.part != other.part for other in (*groups, *queries))
    ]


def _over_wholes(plan: Plan, found: Sequence[_Shared]) -> Plan:
    def below(child: Plan) -> Plan:
        for each in found:
            if each.part == child:
                return make_select([_over_wholes(each.whole, found)], [], each.items)
        return _over_wholes(child, found)

    match plan:
        case Select():
            return make_select(
                [below(child) for child in plan.inputs], plan.conjuncts, plan.items, keyed=bool(plan.key)
            )
        case UnionAll() | Keyed():
            return replace(plan, inputs=tuple(below(child) for child in plan.inputs))
        case Aggregate() | TopN():
            return replace(plan, input=below(plan.input))
        case _:
            return plan


def _groups(part: Aggregate) -> _Shared:
    shown = [Item(each, own_column(each.name)) for each in (*part.keys, *(call.field for call in part.calls))]
    items = [
        Item(item.field, rewrite_columns(item.expr, lambda column: input_column(0, column.name))) for item in part.items
    ]
    whole = make_aggregate(part.input, part.keys, part.calls, shown, total=part.total)
    return _Shared(part, whole, tuple(items))


# --- Queries by key ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """What a Keyed answers but for its columns, and those by name, as expressions over the rows of one query."""

    rest: Keyed
    ties: tuple[exp.Expr, ...]  # of the partition and of the stream key
    columns: tuple[Item, ...]


def _queries(parts: Sequence[Keyed]) -> list[_Shared]:
    asked = [(part, row) for part in parts if (row := _row(part)) is not None]
    made = []
    for part, row in asked:
        alike = [other for _, other in asked if (other.rest, other.ties) == (row.rest, row.ties)]
        columns = _columns(alike)
        names = {item.expr: item.field.name for item in columns}
        items = [Item(item.field, input_column(0, names[item.expr])) for item in row.columns]
        made.append(_Shared(part, _whole(part, row, columns), tuple(items)))
    return made


def _row(part: Keyed) -> _Row | None:
    """None where the query is not one that filters and shows the rows of another."""
    rest = _filtered_and_shown(part.body.copy())
    if rest is None:
        return None
    values = {each.alias_or_name: each.unalias() for each in rest.expressions}
    rest.set("expressions", [])
    while (named := _names_anew(rest)) is not None:  # one level less
        where = rest.args.get("where")
        values = {name: _over(value, named) for name, value in values.items()}
        rest = exp.Select(from_=rest.args["from_"].this.this.args["from_"].copy())
        if where is not None:
            rest.set("where", exp.Where(this=_over(where.this, named)))
    return _Row(
        replace(part, body=rest, columns=(), partition=(), key=()),
        tuple(values[name] for name in (*part.partition, *part.key)),
        tuple(Item(field, values[field.name]) for field in part.columns),
    )


def _filtered_and_shown(query: exp.Expr) -> exp.Select | None:
    """The query if each row of it is one of the query in FROM."""
    if not isinstance(query, exp.Select) or not isinstance(query.args["from_"].this, exp.Subquery):
        return None
    if any(value for name, value in query.args.items() if name not in ("expressions", "from_", "where")):
        return None
    return query if not any(each.find(exp.AggFunc, exp.Window, exp.UDTF) for each in query.expressions) else None


def _names_anew(query: exp.Select) -> dict[str, exp.Column] | None:
    """The columns of the query in FROM by name, if it does nothing but call those of another one so."""
    below = _filtered_and_shown(query.args["from_"].this.this)
    if below is None or below.args.get("where"):
        return None
    columns = {each.alias_or_name: each.unalias() for each in below.expressions}
    return columns if all(isinstance(each, exp.Column) for each in columns.values()) else None


def _over(expr: exp.Expr, named: Mapping[str, exp.Column]) -> exp.Expr:
    return rewrite_columns(expr, lambda column: named[column.name].copy())


def _columns(rows: Sequence[_Row]) -> list[Item]:
    """The columns of all, each once: those that only pass through under their own name."""
    body = Body()
    shown = [item for row in rows for item in row.columns]
    for expr in dict.fromkeys(item.expr for item in shown):
        first = next(item for item in shown if item.expr == expr)
        name = expr.name if isinstance(expr, exp.Column) else first.field.name
        hidden = all(item.field.hidden for item in shown if item.expr == expr)
        body.add(name, first.field, expr, hidden=hidden)
    return body.items


def _whole(part: Keyed, row: _Row, columns: Sequence[Item]) -> Keyed:
    names = {item.expr: item.field.name for item in columns}
    query = row.rest.body.copy()
    query.set(
        "expressions",
        [exp.alias_(item.expr.copy(), exp.to_identifier(item.field.name, quoted=True)) for item in columns],
    )
    ties = [names[each] for each in row.ties]
    partition, key = tuple(ties[: len(part.partition)]), tuple(ties[len(part.partition) :])
    fields: tuple[Field, ...] = tuple(item.field for item in columns)
    return replace(part, body=query, columns=fields, partition=partition, key=key)


__all__ = ["shared"]
