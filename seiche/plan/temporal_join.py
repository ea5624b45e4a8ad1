"""`FROM s JOIN t FOR SYSTEM_TIME AS OF PROCTIME() ON …`: rows of the left side meet the right one as it is then.

A change of the left side is joined with the right side at that epoch; later changes of the right side alter nothing
that has been joined. So such a view is the history of its left side, not a query over both: it cannot be recomputed.
A row of the left side that leaves takes with it what it was joined to, which is why the rows are stored by its key.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.errors import FeatureNotSupported
from seiche.plan.algebra import Field, input_column
from seiche.plan.joins import tie
from seiche.plan.keyed import Body, keyed, table
from seiche.plan.rows import Rows, conjunction, over
from seiche.sql.bound import AS_OF_NOW
from seiche.sql.nodes import conjuncts


def is_temporal(source: exp.Expr) -> bool:
    """Whether an item of FROM is a table as of the time at which the rows of the other side come."""
    return isinstance(source, exp.Table) and bool(source.meta.get(AS_OF_NOW))


def has_temporal_join(ast: exp.Expr) -> bool:
    return any(is_temporal(each) for each in ast.find_all(exp.Table))


def temporal_join(side: str, left: Rows, right: Rows, on: exp.Expr | None, remaining: Sequence[exp.Expr]) -> Rows:
    """The join; afterwards what `remaining` asks of both sides is known."""
    if side not in ("", "LEFT"):
        raise FeatureNotSupported(f"a {side} JOIN cannot have FOR SYSTEM_TIME AS OF PROCTIME() on its right side")
    conditions = conjuncts(on) if on is not None else []
    conditions = [each for each in conditions if not (isinstance(each, exp.Boolean) and each.this)]
    tied = tie(conditions, left, right)
    asked = [*remaining, *conditions]
    plans = [rows.plan([*keys, *rows.used_by(asked)]) for rows, keys in ((left, tied.left), (right, tied.right))]
    body, known = Body(), dict[exp.Expr, Field]()
    inside = Rows()
    for index, (plan, fields) in enumerate(plans):
        inside.add_input(plan, fields)
        for node, its in fields.items():
            known[node] = body.add(its.name, its, input_column(index, its.name))
    source = plans[0][0]
    partition = body.carry(0, source, source.key, "k")
    key = [*partition, *body.carry(1, plans[1][0], plans[1][0].key, "k")]
    condition = conjunction([inside.resolve(each) for each in conditions]) if conditions else exp.true()
    query = body.select().from_(table(0), copy=False)
    query.set("joins", [exp.Join(this=table(1), on=condition, **({"side": side} if side else {"kind": "INNER"}))])
    pairs = tuple((plans[0][1][mine].name, plans[1][1][other].name) for mine, other in tied.pairs)
    joined = keyed(
        "Temporal left join" if side else "Temporal join",
        [plan for plan, _ in plans],
        [source.key, ()],
        query,
        body.columns,
        partition=partition,
        key=key,
        shown=[("on", condition)] if conditions else [],
        looked_up=pairs,
    )
    return over(joined, known)


__all__ = ["has_temporal_join", "is_temporal", "temporal_join"]
