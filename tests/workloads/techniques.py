"""How a workload's queries would be maintained, planned from its tables' definitions. Nothing here needs Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.model import ROW_ID, Column, ObjectId, RelationId, RelationSchema
from seiche.plan import explain
from seiche.plan.algebra import Plan, with_names
from seiche.plan.fragments import cut
from seiche.plan.lower import lower
from seiche.session.names import CatalogNames
from seiche.sql.bind import Settings, bind_query
from seiche.sql.parse import parse, parse_query
from seiche.sql.statements import CreateTable
from seiche.types import BIGINT

_RECOMPUTED = re.compile(r"recompute \((\w+)\)")


class Planner:
    """A catalog with the tables. `schema` has what follows each table's name in CREATE TABLE."""

    def __init__(self, schema: Mapping[str, str]) -> None:
        tables = (_table(number, name, columns) for number, (name, columns) in enumerate(schema.items(), start=100))
        self._catalog = Catalog.default().with_objects(*tables)

    def recomputed(self, query: str) -> str | None:
        """The reason codes for which EXPLAIN says that the query, or a part of it, is recomputed; None if it is not."""
        numbers = iter(range(-2, -1000, -1))
        fragments = cut(self.plan(query), RelationId(-1), lambda: RelationId(next(numbers)))
        text = explain.text(explain.describe(fragments, str))
        return " ".join(sorted(set(_RECOMPUTED.findall(text)))) or None

    def plan(self, query: str) -> Plan:
        """The plan of the query as a view."""
        bound = bind_query(
            parse_query(query).tree, CatalogNames(self._catalog, ("public",)), Settings(now_ms=None, strict=False)
        )
        schemas = {RelationId(item.id): item.relation for item in self._catalog.objects() if item.relation is not None}
        return with_names(lower(bound, schemas), [column.name for column in bound.columns])


def _table(number: int, name: str, columns: str) -> CatalogObject:
    definition = f"CREATE TABLE {name} {columns}"
    (parsed,) = parse(definition)
    assert isinstance(parsed.statement, CreateTable)
    key = parsed.statement.primary_key or (ROW_ID,)
    stored = [Column(each.name, each.type, nullable=each.name not in key) for each in parsed.statement.columns]
    if key == (ROW_ID,):
        stored.append(Column(ROW_ID, BIGINT, hidden=True, nullable=False))
    shape = RelationSchema(tuple(stored), tuple(key), parsed.statement.append_only)
    return CatalogObject(ObjectId(number), ObjectKind.TABLE, name, definition, columns=shape.visible, relation=shape)
