"""Whether a subquery that stands for a value can return a second row.

In a query that is an error of the moment it happens. In a view it would be one of every statement that brings the
second row, so that a view takes only subqueries of which it is sure: aggregates without groups, LIMIT 1, a whole key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from seiche.errors import FeatureNotSupported
from seiche.sql.aggregates import is_aggregate_node
from seiche.sql.calls import own_nodes
from seiche.sql.nodes import conjuncts

SCALAR = "scalar"  # marks the subquery of a value

KeyOf = Callable[[str], Sequence[str]]


def refuse_many_rows(query: exp.Expr, key_of: KeyOf) -> None:
    """Raises for a subquery of its own, of which nothing tells that it has one row. `key_of` gives a relation's key."""
    for node in query.find_all(exp.Subquery):
        if node.meta.get(SCALAR) and not _is_correlated(node.this) and not _is_single(node.this, key_of):
            raise FeatureNotSupported(
                "a subquery of more than one row cannot be a value of a materialized view",
                detail="Scalar subquery might produce more than one row.",
                hint="Take an aggregate of its column, such as max(column), or write LIMIT 1.",
            )


def _is_correlated(query: exp.Expr) -> bool:
    names = {alias.name for alias in query.find_all(exp.TableAlias)}
    return any(column.table and column.table not in names for column in query.find_all(exp.Column))


def _is_single(query: exp.Expr, key_of: KeyOf) -> bool:
    if isinstance(query, exp.Subquery):
        return _is_single(query.this, key_of)
    limit = query.args.get("limit")
    if isinstance(limit, exp.Limit) and limit.expression.name in ("0", "1"):
        return True
    if not isinstance(query, exp.Select):
        return False
    items = [part for item in query.expressions for part in own_nodes(item)]
    if query.args.get("group") is None and any(is_aggregate_node(part) for part in items):
        return True
    if any(isinstance(part, exp.Anonymous) and str(part.this).lower() == "explode" for part in items):
        return False
    source = query.args.get("from_")
    if source is None:
        return True
    if query.args.get("joins") or query.args.get("laterals"):
        return False
    if isinstance(source.this, exp.Subquery):
        return _is_single(source.this, key_of)
    return isinstance(source.this, exp.Table) and _is_one_key(query, key_of(source.this.name))


def _is_one_key(query: exp.Select, key: Sequence[str]) -> bool:
    where = query.args.get("where")
    fixed: set[str] = set()
    for condition in conjuncts(where.this) if where is not None else ():
        if isinstance(condition, exp.EQ):
            for column, value in ((condition.left, condition.right), (condition.right, condition.left)):
                if isinstance(column, exp.Column) and value.find(exp.Column, exp.Query) is None:
                    fixed.add(column.name)
    return bool(key) and fixed.issuperset(key)
