"""Indexes that views hold on to: with `streaming_enable_delta_join`, those by which both sides of a join are found.

Joins use the indexes that exist, with or without the setting. With it, a view counts on them: they cannot be dropped
from under it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import ObjectKind, ObjectStatus
from seiche.model import ObjectId
from seiche.plan.algebra import Plan, Recursion, Scan, Select, children, input_index
from seiche.plan.rows import equality


def serving(plan: Plan, catalog: Catalog) -> frozenset[ObjectId]:
    """The indexes on the columns of equalities between tables, where both sides have one."""
    first = {
        (source, index.properties["columns"][0]): index.id
        for index in catalog.objects(ObjectKind.INDEX)
        if index.status is ObjectStatus.CREATED and index.properties.get("columns")
        for source in index.dependencies
    }
    found: set[ObjectId] = set()
    for sides in _tied(plan):
        indexes = [first.get(side) for side in sides]
        if None not in indexes:
            found.update(each for each in indexes if each is not None)
    return frozenset(found)


def _tied(plan: Plan) -> Iterator[list[tuple[ObjectId, str]]]:
    """The pairs of stored columns that joins of a plan compare."""
    for select in _selects(plan):
        for condition in select.conjuncts:
            sides = [each.unnest() for each in equality(condition) or ()]
            columns = [each for each in sides if isinstance(each, exp.Column)]
            inputs = [select.inputs[input_index(each)] for each in columns]
            scans = [each for each in inputs if isinstance(each, Scan)]
            if len(scans) == 2 and input_index(columns[0]) != input_index(columns[1]):
                yield [(ObjectId(s.relation), c.name) for s, c in zip(scans, columns, strict=True)]


def _selects(plan: Plan) -> Iterator[Select]:
    if isinstance(plan, Select):
        yield plan
    for each in children(plan) if not isinstance(plan, Recursion) else ():  # its joins are redone round by round
        yield from _selects(each)
