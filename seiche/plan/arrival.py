"""`proctime()` in a query: the time of the epoch in which a row came, found once and stored with the row.

The rows that a block reads are stored with that time, by their stream key: a row that changes gets the time of its
change, any other keeps what it has. So such a part is a history, and cannot be recomputed.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from seiche.plan.algebra import Field, input_column
from seiche.plan.keyed import Body, keyed, table
from seiche.plan.reasons import NotIncremental
from seiche.plan.rows import Rows, over, typed_as
from seiche.sql.invocations import PROCTIME, call_now
from seiche.types import TIMESTAMPTZ


def reads_arrival(node: exp.Expr) -> bool:
    return any(_is_arrival(each) for each in node.find_all(exp.Anonymous))


def _is_arrival(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == PROCTIME


def with_arrival(rows: Rows, remaining: Sequence[exp.Expr]) -> Rows:
    """The rows with the time of their arrival known, if what is asked of them needs it."""
    calls = [each for root in remaining for each in root.find_all(exp.Anonymous) if _is_arrival(each)]
    if not calls:
        return rows
    source, fields = rows.plan(rows.used_by(remaining))
    if not source.key:
        raise NotIncremental("time", "proctime() stands where rows have no key.")
    body = Body()
    known: dict[exp.Expr, Field] = {}
    for node, field in fields.items():
        known[node] = body.add(field.name, field, input_column(0, field.name))
    moment = Field("arrived", TIMESTAMPTZ)
    known[calls[0]] = body.add(moment.name, moment, typed_as(call_now(), calls[0]))
    key = body.carry(0, source, source.key, "k")
    plan = keyed(
        "Arrival time",
        [source],
        [source.key],
        body.select().from_(table(0), copy=False),
        body.columns,
        partition=key,
        key=key,
        looked_up=(),
    )
    return over(plan, known)


__all__ = ["reads_arrival", "with_arrival"]
