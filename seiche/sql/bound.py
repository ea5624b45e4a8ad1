"""What binding makes: relations by name, output columns, queries in the making, and the nodes to build them of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from seiche.model import Column
from seiche.sql.nodes import integer, type_of, typed
from seiche.sql.places import place_of
from seiche.types import SqlType

_CHANGING = ("rand", "uuid", "seiche_now", "seiche_proctime", "raise_error")

# The mark, among a bound table's meta, of FOR SYSTEM_TIME AS OF PROCTIME().
AS_OF_NOW = "as_of_now"
# The only column, in Spark, of a query without columns: Spark has no rows without columns.
NOTHING = "nothing"
# The mark of a relation whose changes are read, not its rows.
CHANGES_OF = "changes_of"


@dataclass(frozen=True, slots=True)
class BoundRelation:
    """What a name stands for. `view` is the definition of a plain view, expanded where it is used; `view_names` is how
    that definition looks names up, where not as the query around it does. `schema` is where it was found, `key` the
    primary key of a table that has one."""

    id: int | None
    name: str
    columns: tuple[Column, ...]
    view: exp.Expr | None = None
    source: str = ""
    view_names: Names | None = None
    schema: str = "public"
    key: tuple[str, ...] = ()


class Names(Protocol):
    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        """The relation of a name, with its schema and database as far as written; raises UndefinedTable."""


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """A column of a result: the user's name for it, and its unique name in the query."""

    name: str
    alias: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query in Spark's dialect. `relations` are the ids of all it reads."""

    ast: exp.Query
    columns: tuple[OutputColumn, ...]
    relations: frozenset[int]
    uses_now: bool
    volatile: tuple[str, ...]

    @property
    def sql(self) -> str:
        return self.ast.sql("spark")


Converter = Callable[[exp.Expr, int], exp.Expr]


@dataclass(slots=True)
class Bound:
    """A query in the making. Its literals may still have no type; `rows` are the cells of a VALUES."""

    ast: exp.Query
    columns: list[OutputColumn]
    rows: list[list[exp.Expr]] | None = None

    def place(self, index: int) -> int | None:
        """Where the expression of a column is written, where it is known."""
        if self.rows is not None:
            return place_of(self.rows[0][index])
        return place_of(self.ast.expressions[index].this) if isinstance(self.ast, exp.Select) else None


def aliased(node: exp.Expr, alias: str) -> exp.Expr:
    return typed(exp.Alias(this=node, alias=exp.to_identifier(alias, quoted=True)), type_of(node))


def shown(projections: list[exp.Expr]) -> list[exp.Expr]:
    """What Spark selects for a select list, which may be empty."""
    return projections or [aliased(integer(1), NOTHING)]


def derived_table(query: exp.Query, ref: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(ref, quoted=True)))


def lateral_table(derived: exp.Subquery) -> exp.Lateral:
    alias = derived.args["alias"]
    derived.set("alias", None)
    return exp.Lateral(this=derived, alias=alias)


def named_table(source: str, ref: str) -> exp.Table:
    return exp.Table(
        this=exp.to_identifier(source, quoted=True), alias=exp.TableAlias(this=exp.to_identifier(ref, quoted=True))
    )


def rows_query(rows: list[list[exp.Expr]], columns: Sequence[OutputColumn], ref_of: Callable[[str], str]) -> exp.Query:
    def select(row: list[exp.Expr]) -> exp.Select:
        return exp.Select(expressions=[aliased(cell.copy(), c.alias) for cell, c in zip(row, columns, strict=True)])

    if len(rows) == 1:
        return select(rows[0])
    if any(_not_constant(cell) for row in rows for cell in row):
        ast: exp.Query = select(rows[0])
        for row in rows[1:]:
            ast = exp.Union(this=ast, expression=select(row), distinct=False)
        return ast
    ref = ref_of("rows")
    alias = exp.TableAlias(
        this=exp.to_identifier(ref, quoted=True), columns=[exp.to_identifier(c.alias, quoted=True) for c in columns]
    )
    values = exp.Values(expressions=[exp.Tuple(expressions=[cell.copy() for cell in row]) for row in rows], alias=alias)
    projections = [aliased(typed(exp.column(c.alias, table=ref, quoted=True), c.type), c.alias) for c in columns]
    return exp.Select(expressions=projections).from_(values, copy=False)


def _not_constant(node: exp.Expr) -> bool:
    """Whether Spark would refuse it in an inline table."""
    for part in node.walk():
        if isinstance(part, exp.Column | exp.Query | exp.Subquery | exp.Lambda):
            return True
        if isinstance(part, exp.Anonymous) and part.name.lower() in _CHANGING:
            return True
    return False


def unique(name: str, taken: set[str]) -> str:
    candidate, count = name, 0
    while candidate.lower() in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate.lower())
    return candidate


def has_tail(node: exp.Expr) -> bool:
    """Whether ORDER BY, LIMIT or OFFSET follow the query."""
    return any(node.args.get(part) for part in ("order", "limit", "offset"))
