"""A query by the plan that a view of it would have.

Spark plans most queries by itself, subqueries that are tied to the rows around them included. Some it refuses: tied
by an inequality through two levels, a row of values looked for inside of an expression, columns of the query around
in the select list. The planner of views takes all of them apart into joins and groups, which Spark has no trouble with.
Each part is evaluated whole, at one epoch, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count

from pyspark.sql import DataFrame
from sqlglot import exp

from seiche.model import Epoch, RelationId
from seiche.plan.algebra import Recompute
from seiche.plan.fragments import cut
from seiche.plan.lower import lower
from seiche.plan.sources import Schemas
from seiche.query import Scope
from seiche.sql.bind import BoundQuery, OutputColumn
from seiche.sql.bound import aliased
from seiche.sql.nodes import type_of
from seiche.sql.recursion import holds_recursion
from seiche.stream.fragment import build
from seiche.stream.runtime import EpochReads, Runtime

_KEY = "_sorted{}"


class _Reads(EpochReads):
    """Relations as the caller shows them, and the parts of the query that were evaluated before."""

    def __init__(self, runtime: Runtime, scope: Scope, epoch: Epoch, view_of: Callable[[RelationId], str]) -> None:
        super().__init__(runtime, scope, epoch, epoch, {})
        self._view_of = view_of
        self.parts: dict[RelationId, str] = {}

    def exact(self, relation: RelationId, epoch: Epoch) -> str:
        return self.parts[relation] if relation in self.parts else self._view_of(relation)


def planned(
    query: BoundQuery,
    schemas: Schemas,
    runtime: Runtime,
    scope: Scope,
    epoch: Epoch,
    view_of: Callable[[RelationId], str],
) -> DataFrame | None:
    """The query's rows, in its order; None where a view of it would be asked of Spark as it is, too.

    `view_of` names a view of a relation's rows in `scope`.
    """
    shown, order = _with_keys(query)
    fragments = cut(lower(shown, schemas, strict=True), RelationId(-1), map(RelationId, count(-2, -1)).__next__)
    recursive = holds_recursion(query.ast)  # of which Spark takes few
    if not recursive and any(isinstance(each.plan, Recompute) for each in fragments):
        return None
    reads = _Reads(runtime, scope, epoch, view_of)
    for fragment in fragments:
        reads.parts[fragment.relation] = scope.view(build(fragment, reads))
    columns = ", ".join(f"`{column.alias}`" for column in query.columns)
    sorting = f" ORDER BY {', '.join(order)}" if order else ""
    return scope.sql(f"SELECT {columns} FROM {reads.parts[fragments[-1].relation]}{sorting}")


def _with_keys(query: BoundQuery) -> tuple[BoundQuery, list[str]]:
    """The query with what it is sorted by as columns, and the order by those: the rows of a view have none."""
    clause = query.ast.args.get("order")
    if clause is None:
        return query, []
    ast, columns, order = query.ast.copy(), list(query.columns), []
    outputs = {column.alias for column in columns}
    for number, each in enumerate(clause.expressions):
        key, name = each.this, _KEY.format(number)
        if isinstance(key, exp.Column) and not key.table and key.name in outputs:
            name = key.name
        else:
            assert isinstance(ast, exp.Select)  # whatever else is sorted is sorted by its own columns
            ast.append("expressions", aliased(key.copy(), name))
            columns.append(OutputColumn(name, name, type_of(key)))
        way = "DESC" if each.args.get("desc") else "ASC"
        order.append(f"`{name}` {way} NULLS {'FIRST' if each.args.get('nulls_first') else 'LAST'}")
    return replace(query, ast=ast, columns=tuple(columns)), order
