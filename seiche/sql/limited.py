"""Which columns of a query's sources are compared with constants: where a sorted copy of the source would help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from seiche.sql.nodes import conjuncts

_COMPARISONS = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE)


@dataclass(frozen=True, slots=True)
class LimitedSource:
    """A table of a bound query, the columns of it that conditions limit, and all that the query reads of it."""

    table: exp.Table
    limited: frozenset[str]
    needed: frozenset[str]


def limited_sources(query: exp.Expr) -> Iterator[LimitedSource]:
    """The tables in FROM whose columns WHERE compares with constants. The nodes are the query's own."""
    if query.find(exp.Star) is not None and any(
        not isinstance(star.parent, exp.Count) for star in query.find_all(exp.Star)
    ):
        return
    needed: dict[str, set[str]] = {}
    for column in query.find_all(exp.Column):
        needed.setdefault(column.table, set()).add(column.name)
    for select in query.find_all(exp.Select):
        where = select.args.get("where")
        if where is None:
            continue
        limited: dict[str, set[str]] = {}
        for condition in conjuncts(where.this):
            compared = _limited(condition)
            if compared is not None:
                limited.setdefault(compared.table, set()).add(compared.name)
        for table in _sources(select):
            found = limited.get(table.alias_or_name)
            if found:
                yield LimitedSource(table, frozenset(found), frozenset(needed[table.alias_or_name]))


def _sources(select: exp.Select) -> Iterator[exp.Table]:
    first = select.args.get("from_") or select.args.get("from")
    for each in (first, *(select.args.get("joins") or ())):
        if each is not None and isinstance(each.this, exp.Table) and isinstance(each.this.this, exp.Identifier):
            yield each.this


def _limited(condition: exp.Expr) -> exp.Column | None:
    """The column that a condition compares with something that has no columns."""
    if isinstance(condition, _COMPARISONS):
        sides = condition.left.unnest(), condition.right.unnest()
        for mine, other in (sides, sides[::-1]):
            if isinstance(mine, exp.Column) and _constant(other):
                return mine
    elif isinstance(condition, (exp.In, exp.Between)) and isinstance(condition.this.unnest(), exp.Column):
        column = condition.this.unnest()
        others = [each for each in condition.iter_expressions() if each is not condition.this]
        if all(_constant(each) for each in others):
            return column  # type: ignore[no-any-return]
    return None


def _constant(expr: exp.Expr) -> bool:
    return expr.find(exp.Column, exp.Query) is None
