"""Columns of a query further out, named by equal ones that are nearer.

Spark lets a subquery see the columns of the query around it, but not of those around that. Where the query between
them asks for `outer.x = own.x`, its subqueries may take the one for the other: no other rows are left.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.sql.nodes import conjuncts


def use_nearer(select: exp.Select, own: frozenset[str]) -> None:
    """Changes the subqueries in WHERE of a subquery whose own relations are `own`."""
    where = select.args.get("where")
    if where is None or where.find(exp.Query) is None:
        return
    equal: dict[exp.Expr, exp.Expr] = {}
    for condition in conjuncts(where.this):
        if isinstance(condition, exp.EQ) and isinstance(condition.left, exp.Column):
            for outer, near in ((condition.left, condition.right), (condition.right, condition.left)):
                if isinstance(near, exp.Column) and isinstance(outer, exp.Column):
                    if near.table in own and outer.table and outer.table not in own:
                        equal[outer] = near
    for query in list(where.find_all(exp.Query)) if equal else ():
        for column in list(query.find_all(exp.Column)):
            if column in equal:
                column.replace(equal[column].copy())
