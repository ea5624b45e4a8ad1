"""Recursive queries of WITH, bound.

`WITH RECURSIVE name AS (base UNION [ALL] step)` is bound where `name` is read, to a derived table of this form:

    (WITH RECURSIVE `r-1000001` (n) AS (base UNION [ALL] step) SELECT n FROM `r-1000001`)

Its rows are those of the base, and of the step for them, and of the step for the rows of that, until there are none.
In the step `r-1000001` means the rows of the round before: to the planner it is a relation like any other, under an id
that no stored one has. All uses of one query have the same tree, so that its rows are found once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from seiche.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidRecursion,
    SyntaxError_,
)
from seiche.model import RelationId
from seiche.sql.aggregates import is_aggregate_node
from seiche.sql.binding import Binding, CommonTable, Rounds, common_tables
from seiche.sql.bound import Bound, OutputColumn, aliased, named_table, unique
from seiche.sql.calls import own_nodes
from seiche.sql.casts import common_type, convert
from seiche.sql.nodes import typed
from seiche.sql.places import place_of
from seiche.sql.recursive import parts_of
from seiche.types import NUMERIC, Kind, SqlType

_FIRST = 1_000_001  # ids of stored relations are positive, and those of plans that are not stored are near 0
_PREFIX = "r-"


@dataclass(frozen=True, slots=True)
class Recursion:
    """A bound recursive query. `rounds` is the relation that stands for the rows of the round before."""

    rounds: RelationId
    base: exp.Query
    step: exp.Query
    distinct: bool


def is_rounds(source: str) -> bool:
    """Whether a source of a bound query stands for the rows of the round before."""
    return source.startswith(_PREFIX)


def recursion_of(query: exp.Expr) -> Recursion | None:
    """The recursion that a bound query is, if it is one."""
    with_ = query.args.get("with_")
    if with_ is None or not with_.recursive:
        return None
    (item,) = with_.expressions
    union = item.this
    return Recursion(
        RelationId(int(item.alias.removeprefix("r"))),
        union.this.unnest(),
        union.expression.unnest(),
        bool(union.args.get("distinct")),
    )


def holds_recursion(query: exp.Expr) -> bool:
    return any(each.recursive for each in query.find_all(exp.With))  # binding leaves no other


def refuse_recursion(query: exp.Expr) -> None:
    """Raises for a recursive query where only Spark itself is asked, which takes few of them."""
    if holds_recursion(query):
        raise FeatureNotSupported(
            "a recursive query can be asked for or kept as a view, but not be part of another statement",
            hint="Create a materialized view of it, and read that here.",
        )


def only_stored(query: exp.Expr, is_stored: Callable[[str], bool]) -> bool:
    """Whether a recursive query reads nothing but relations that are stored, as they are now."""
    names = {each.name for each in query.find_all(exp.Table) if isinstance(each.this, exp.Identifier)}
    return all(is_rounds(name) or is_stored(name) for name in names)


def bind_recursion(binding: Binding, table: CommonTable) -> Bound:
    """The query's rows, each time as the same tree."""
    known = binding.recursions.get(id(table.query))
    if known is None:
        number = _FIRST + len(binding.recursions)
        binding.recursions[id(table.query)] = (table.query, None)  # its number is taken
        bound = _bound(binding, table, f"{_PREFIX}{number}")
        binding.recursions[id(table.query)] = (table.query, bound)
    else:
        assert known[1] is not None  # in its own step another relation stands for it
        bound = known[1]
    return Bound(bound.ast.copy(), list(bound.columns))


def refuse_aggregates(select: exp.Select) -> None:
    """Raises where a SELECT that reads the rows of the round before has aggregates over them."""
    start = select.args.get("from_")
    items = [start.this if start is not None else None, *(join.this for join in select.args.get("joins") or ())]
    if not any(isinstance(each, exp.Table) and is_rounds(each.name) for each in items):
        return
    parts = [*select.expressions, *(select.args[part] for part in ("having", "order") if select.args.get(part))]
    for node in (node for part in parts for node in own_nodes(part)):
        if is_aggregate_node(node) and not isinstance(node.parent, exp.Window):
            raise InvalidRecursion(
                "aggregate functions are not allowed in a recursive query's recursive term", position=place_of(node)
            )


def _bound(binding: Binding, table: CommonTable, source: str) -> Bound:
    name = table.name.name
    union = parts_of(table.query, table.name)
    base = binding.settled(binding.query(union.this, None, common_tables(union, table.visible)))
    if len(table.column_names) > len(base.columns):
        raise InvalidColumnReference(
            f'WITH query "{name}" has {len(base.columns)} columns available but {len(table.column_names)} columns'
            " specified",
            position=place_of(table.name),
        )
    names = [*table.column_names, *(each.name for each in base.columns[len(table.column_names) :])]
    taken: set[str] = set()
    columns = [OutputColumn(n, unique(n, taken), c.type.bare) for c, n in zip(base.columns, names, strict=True)]
    step, columns = _step(binding, table, union, base, source, columns)
    types = [column.type for column in columns]

    def change(part: exp.Expr, index: int) -> exp.Expr:
        return convert(part, types[index], binding.settings)

    distinct = bool(union.args.get("distinct"))
    if distinct and any(type_.kind is Kind.INTERVAL for type_ in types):
        raise FeatureNotSupported(
            f'recursive query "{name}" has a column of type interval under UNION',
            hint="Write UNION ALL, or the interval as a number of seconds: extract(epoch FROM …).",
        )
    parts = [exp.Subquery(this=binding.retyped(each, types, change).ast) for each in (base, step)]
    item = exp.CTE(
        this=exp.Union(this=parts[0], expression=parts[1], distinct=distinct),
        alias=exp.TableAlias(
            this=exp.to_identifier(source, quoted=True),
            columns=[exp.to_identifier(column.alias, quoted=True) for column in columns],
        ),
    )
    ref = binding.ref(name)
    shown = [aliased(typed(exp.column(c.alias, table=ref, quoted=True), c.type), c.alias) for c in columns]
    select = exp.Select(expressions=shown).from_(named_table(source, ref), copy=False)
    select.set("with_", exp.With(recursive=True, expressions=[item]))
    return Bound(select, columns)


def _step(
    binding: Binding,
    table: CommonTable,
    union: exp.Union,
    base: Bound,
    source: str,
    columns: Sequence[OutputColumn],
) -> tuple[Bound, list[OutputColumn]]:
    """The step, and the columns with the types that they have in all rounds: those of the base.

    A numeric that has other digits in the step has as many as it can have, in every round.
    """
    name, columns = table.name.name, list(columns)
    while True:
        seen = len(binding.usage.references)
        rounds = replace(table, rounds=Rounds(source, tuple(columns)))
        step = binding.query(union.expression, None, common_tables(union, {**table.visible, name: rounds}))
        if len(step.columns) != len(columns):
            raise SyntaxError_(
                "each UNION query must have the same number of columns",
                position=step.place(0) if step.columns else None,
            )
        overall = [
            common_type([mine.type, theirs.type.bare], "UNION", [base.place(i), step.place(i)])
            for i, (mine, theirs) in enumerate(zip(columns, step.columns, strict=True))
        ]
        grown = [
            replace(mine, type=NUMERIC) if _has_free_digits(mine.type, type_) else mine
            for mine, type_ in zip(columns, overall, strict=True)
        ]
        if grown == columns:
            break
        columns = grown
        del binding.usage.references[seen:]  # they are found again
    for index, (mine, type_) in enumerate(zip(columns, overall, strict=True)):
        if mine.type != type_ and {mine.type.kind, type_.kind} != {Kind.NUMERIC}:
            raise DatatypeMismatch(
                f'recursive query "{name}" column {index + 1} has type {mine.type} in non-recursive term '
                f"but type {type_} overall",
                hint="Cast the output of the non-recursive term to the correct type.",
                position=base.place(index),
            )
    return step, columns


def _has_free_digits(mine: SqlType, overall: SqlType) -> bool:
    """Whether a number has other digits in the step than in the base, which each of them has found for itself."""
    return mine.kind is Kind.NUMERIC and overall.kind is Kind.NUMERIC and mine not in (overall, NUMERIC)


__all__ = [
    "Recursion",
    "bind_recursion",
    "holds_recursion",
    "is_rounds",
    "only_stored",
    "recursion_of",
    "refuse_aggregates",
    "refuse_recursion",
]
