"""What the binding of an expression shares: its clause, the query around it, and the way to its parts.

The binder knows nothing of FROM: it asks its `Surroundings` what a column name means and hands subqueries back.
What an expression used besides its columns (the time, random numbers) is noted in `Usage`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from enum import Enum
from typing import Protocol

from sqlglot import exp

from seiche.errors import DatatypeMismatch
from seiche.sql.casts import convert, settle
from seiche.sql.nodes import Settings, is_unknown, type_of, typed
from seiche.sql.order_keys import order_key
from seiche.sql.places import place_of
from seiche.sql.user_functions import Functions
from seiche.types import BOOLEAN, Kind, SqlType

QUERY = (exp.Query, exp.Values)  # what can stand where a query can


class Clause(Enum):
    """Where an expression stands: what may be in it, and what the errors call the place."""

    SELECT = "SELECT"
    WHERE = "WHERE"
    JOIN = "JOIN conditions"
    GROUP = "GROUP BY"
    HAVING = "HAVING"
    ORDER = "ORDER BY"
    FROM = "functions in FROM"
    VALUES = "VALUES"
    UPDATE = "UPDATE"
    COPY = "COPY FROM WHERE conditions"
    LIMIT = "LIMIT"
    DEFAULT = "DEFAULT expressions"
    GENERATED = "column generation expressions"
    AGGREGATE = "aggregate function calls"
    WINDOW = "window definitions"

    @property
    def aggregates(self) -> bool:
        return self in (Clause.SELECT, Clause.HAVING, Clause.ORDER, Clause.WINDOW)

    @property
    def windows(self) -> bool:
        return self in (Clause.SELECT, Clause.ORDER)


@dataclass(slots=True)
class Usage:
    """What a query used, gathered while it is bound."""

    relations: set[int] = dataclass_field(default_factory=set)
    references: list[tuple[int, exp.Table]] = dataclass_field(default_factory=list)  # as written, views not expanded
    now: bool = False
    volatile: list[str] = dataclass_field(default_factory=list)


class Surroundings(Protocol):
    """What an expression needs from the query it stands in."""

    def column(self, node: exp.Column) -> exp.Expr:
        """The bound column, or the error of a name that means nothing or too much."""

    def subquery(self, query: exp.Expr) -> tuple[exp.Query, tuple[tuple[str, SqlType], ...]]:
        """The bound query with its output names and types; it may refer to the columns around it."""

    def window(self, name: str) -> exp.Window | None:
        """A window of the WINDOW clause."""

    def around(self, values: Sequence[tuple[str, exp.Expr]]) -> Surroundings:
        """What the body of a function sees: its arguments by their names, and tables."""


@dataclass(frozen=True, slots=True)
class Binder:
    """Binds the expressions of one clause of one query: what the handlers of all kinds of node share."""

    surroundings: Surroundings
    settings: Settings
    usage: Usage
    clause: Clause
    handle: Callable[[Binder, exp.Expr], exp.Expr]
    functions: Functions | None = None
    depth: int = 0  # of the user's functions around

    def bind(self, node: exp.Expr) -> exp.Expr:
        """The bound expression; a literal may still be of no type."""
        return self.handle(self, node)

    def settled(self, node: exp.Expr) -> exp.Expr:
        return settle(self.bind(node), self.settings)

    def condition(self, node: exp.Expr, what: str) -> exp.Expr:
        """A boolean, as WHERE wants it."""
        bound = self.bind(node)
        if is_unknown(bound):
            return convert(bound, BOOLEAN, self.settings)
        if type_of(bound).kind is not Kind.BOOLEAN:
            raise DatatypeMismatch(
                f"argument of {what} must be type boolean, not type {type_of(bound)}", position=place_of(bound)
            )
        return bound

    def ordered(self, node: exp.Expr) -> exp.Expr:
        """A sort key with its nulls placed as PostgreSQL places them."""
        inner = node.this if isinstance(node, exp.Ordered) else node
        return sorted_by(settle(self.bind(inner), self.settings), node)

    def within(self, clause: Clause) -> Binder:
        return replace(self, clause=clause)

    def called(self, surroundings: Surroundings, clause: Clause) -> Binder:
        """For the body of a function, one call deeper."""
        return replace(self, surroundings=surroundings, clause=clause, depth=self.depth + 1)


def sorted_by(bound: exp.Expr, node: exp.Expr) -> exp.Expr:
    """A bound sort key with the direction that was written, its nulls placed."""
    desc = bool(node.args.get("desc")) if isinstance(node, exp.Ordered) else False
    explicit = node.args.get("nulls_first") if isinstance(node, exp.Ordered) else None
    first = desc if explicit is None else bool(explicit)
    return typed(exp.Ordered(this=order_key(bound), desc=desc, nulls_first=first), type_of(bound))
