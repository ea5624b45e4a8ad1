"""What a bound expression was written as, for whoever shows it to the user.

Binding turns `to_char(at, 'YYYY')` into what Spark computes, which may be long and is nothing that anybody wrote. So
each bound expression keeps the one that it was bound from. When the planner puts a column in the place of a part, as
for a group's key, or an expression in the place of a column, as for a derived table's, the new one keeps what it
stands for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from sqlglot import exp

N = TypeVar("N", bound=exp.Expr)

_WRITTEN = "written"
_STANDS_FOR = "stands for"
_WRAPPERS = (exp.Paren, exp.Alias)  # they are bound as what they hold


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    node: exp.Expr

    def __deepcopy__(self, _: object) -> _Written:
        return self  # which node it was counts, and nobody changes it


def written_as(bound: N, node: exp.Expr) -> N:
    """The bound expression, which remembers the node."""
    if not isinstance(node, _WRAPPERS):
        bound.meta[_WRITTEN] = _Written(node)
    return bound


def in_place_of(new: N, old: exp.Expr) -> N:
    """The new expression, which remembers that it stands where the old one stood."""
    stood = [*old.meta.get(_STANDS_FOR, ()), *([old.meta[_WRITTEN]] if _WRITTEN in old.meta else [])]
    if stood:
        new.meta[_STANDS_FOR] = (*new.meta.get(_STANDS_FOR, ()), *stood)
    return new


def unnamed(bound: N) -> N:
    """The expression without the names of computed columns, which have other values from here on. Changes it."""
    for part in bound.walk():
        if isinstance(written(part), exp.Column):
            del part.meta[_WRITTEN]
    return bound


def written(bound: exp.Expr) -> exp.Expr | None:
    """What the expression was bound from, if it was written by somebody. Not to be changed."""
    found = bound.meta.get(_WRITTEN)
    return found.node if isinstance(found, _Written) else None


def stands_for(bound: exp.Expr) -> Iterator[exp.Expr]:
    """Written expressions that a part of a bound one is the value of."""
    own = written(bound)
    if own is not None:
        yield own
    for each in bound.meta.get(_STANDS_FOR, ()):
        yield each.node


__all__ = ["in_place_of", "stands_for", "unnamed", "written", "written_as"]
