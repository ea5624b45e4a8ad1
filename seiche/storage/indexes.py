"""Copies of relations in another order, and which of them serves a lookup best.

An index is a relation of its own that holds the rows of another one, under the same column names, with the indexed
columns first in its key: a base is sorted by its key, so that a scan for few values of these columns opens few pages.
Whoever reads one column of a relation by value may read the index instead; the rows are the same at every epoch since
the index was complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from seiche.model import Epoch, RelationId, RelationSchema


@dataclass(frozen=True, slots=True)
class Index:
    """`columns` are the indexed ones in order, without those that are expressions; `since` is when it was complete."""

    relation: RelationId
    schema: RelationSchema
    columns: tuple[str, ...]
    since: Epoch


class Indexes:
    """The indexes that can be read now. Replaced as a whole, so readers need no lock."""

    def __init__(self) -> None:
        self._of: Mapping[RelationId, tuple[Index, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def set(self, found: Iterable[tuple[RelationId, Index]]) -> None:
        """Takes the indexes that exist, each with the relation that it copies; those known keep their `since`."""
        known = {each.relation: each for indexes in self._of.values() for each in indexes}
        new: dict[RelationId, tuple[Index, ...]] = {}
        for relation, index in found:
            new[relation] = (*new.get(relation, ()), known.get(index.relation, index))
        self._of = new

    def best(
        self, relation: RelationId, key: Collection[str], limited: Collection[str], needed: Collection[str], at: Epoch
    ) -> Index | None:
        """The index to read instead of a relation, of which few values of the `limited` columns are asked for.

        None when the relation's own `key` begins with such a column already, or no index has all `needed` columns.
        """
        if next(iter(key), None) in limited:
            return None
        usable = [
            each
            for each in self._of.get(relation, ())
            if each.since <= at and _prefix(each, limited) and all(name in each.schema.names for name in needed)
        ]
        return max(usable, key=lambda each: (_prefix(each, limited), -len(each.schema.names)), default=None)


def _prefix(index: Index, limited: Collection[str]) -> int:
    """How many of the index's first columns are limited."""
    count = 0
    for name in index.columns:
        if name not in limited:
            break
        count += 1
    return count
