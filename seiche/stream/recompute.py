"""Recompute and Recursion: what has no change rule is evaluated anew, and only the difference is written.

Rows are compared by all their columns. Equal rows are told apart by `_n`, counted from 1, so that the stored
relation has a key: when there are more of a row than before, the next numbers appear; when fewer, the last leave.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from sqlglot import exp

from seiche.model import OP, VNODE, physical_ms
from seiche.plan.algebra import Recompute, Recursion
from seiche.plan.fragments import Fragment
from seiche.query import relation_of
from seiche.query import render as render_query
from seiche.storage.changes import Changes, vnode_sql
from seiche.stream.runtime import EpochReads, Runtime


def step(fragment: Fragment, runtime: Runtime, reads: EpochReads, answer: DataFrame) -> Changes | None:
    """Writes how the answer at `reads.after` differs from what is stored."""
    plan = fragment.plan
    assert isinstance(plan, Recompute | Recursion)
    names = ", ".join(f"`{field.name}`" for field in plan.columns)
    fresh = reads.scope.view(answer)
    stored = reads.exact(fragment.relation, reads.before)
    new = f"SELECT {names}, 1 AS `_new`, 0 AS `_old` FROM {fresh}"
    if isinstance(plan, Recompute) and _has_subquery_value(plan.query):
        # Spark fails ("key not found") when it pushes a correlated subquery from one union into another, and every
        # relation with a log is a union. A grouping between the two keeps them apart.
        new = f"SELECT {names}, count(*) AS `_new`, 0 AS `_old` FROM {fresh} GROUP BY {names}"
    counted = (
        f"SELECT {names}, sum(`_new`) AS `_new`, sum(`_old`) AS `_old` FROM ({new}"
        f" UNION ALL SELECT {names}, 0, 1 FROM {stored}"
        f") GROUP BY {names} HAVING sum(`_new`) <> sum(`_old`)"
    )
    numbered = (
        f"SELECT {names}, explode(sequence(least(`_new`, `_old`) + 1, greatest(`_new`, `_old`))) AS `_n`,"
        f" if(`_new` > `_old`, 1, -1) AS `{OP}` FROM ({counted})"
    )
    return runtime.emit(fragment.relation, fragment.schema, _stored(reads, fragment, numbered), reads.after, small=True)


def _has_subquery_value(query: exp.Query) -> bool:
    """Whether a subquery stands in place of a value somewhere in the query."""
    return any(not isinstance(node.parent, (exp.From, exp.Join)) for node in query.find_all(exp.Subquery))


def build(fragment: Fragment, reads: EpochReads, answer: DataFrame) -> DataFrame:
    """The answer at `reads.after` as the relation stores it."""
    plan = fragment.plan
    assert isinstance(plan, Recompute | Recursion)
    names = ", ".join(f"`{field.name}`" for field in plan.columns)
    fresh = reads.scope.view(answer)
    counted = f"SELECT {names}, count(*) AS `_new` FROM {fresh} GROUP BY {names}"
    numbered = f"SELECT {names}, explode(sequence(1, `_new`)) AS `_n`, 1 AS `{OP}` FROM ({counted})"
    return _stored(reads, fragment, numbered)


def evaluate(plan: Recompute, reads: EpochReads) -> DataFrame:
    """The query's answer at `reads.after`, each column of its declared type."""
    answer = reads.scope.sql(render(plan.query, reads))
    return answer.selectExpr(*(f"cast(`{f.name}` as {f.type.spark}) AS `{f.name}`" for f in plan.columns))


def render(query: exp.Query, reads: EpochReads) -> str:
    """The query's text with its relations read exactly at `reads.after`, and the clock at that epoch."""

    def view_of(source: str) -> str:
        return reads.exact(relation_of(source), reads.after)

    return render_query(query.transform(tolerant), view_of, physical_ms(reads.after))


def tolerant(node: exp.Expr) -> exp.Expr:
    """A sum that outgrows its type gives NULL in a view, like every other failure."""
    return exp.Anonymous(this="try_sum", expressions=[node.this]) if isinstance(node, exp.Sum) else node


def _stored(reads: EpochReads, fragment: Fragment, numbered: str) -> DataFrame:
    columns = ", ".join(f"cast(`{c.name}` as {c.type.spark}) AS `{c.name}`" for c in fragment.schema.columns)
    typed = f"SELECT {columns}, cast(`{OP}` as tinyint) AS `{OP}` FROM ({numbered})"
    names = ", ".join(f"`{name}`" for name in fragment.schema.names)
    return reads.scope.sql(f"SELECT {names}, {vnode_sql(fragment.schema)} AS `{VNODE}`, `{OP}` FROM ({typed})")
