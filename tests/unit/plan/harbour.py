"""The harbour as a catalog of plain values, and its views as plans. Nothing here needs Spark."""

from __future__ import annotations

from dataclasses import replace

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.model import ROW_ID, Column, ObjectId, RelationId, RelationSchema
from seiche.plan.algebra import Plan, with_names
from seiche.plan.closing import Bounds, emit_on_close
from seiche.plan.fragments import Fragment, cut
from seiche.plan.lower import lower
from seiche.plan.marks import mark
from seiche.session.names import CatalogNames
from seiche.sql.bind import BoundQuery, Settings, bind_query
from seiche.sql.parse import parse
from seiche.sql.statements import CreateMaterializedView, CreateView
from seiche.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    REAL,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    SqlType,
    array_of,
    numeric,
)

SHIPS, BERTHS, ARRIVALS, TIDES = (RelationId(number) for number in (1, 2, 3, 4))
NEW = RelationId(-1)  # the view that is being planned
MONEY = numeric(10, 2, declared=True)


def schema_of(
    columns: dict[str, SqlType], *, key: tuple[str, ...] = (ROW_ID,), append_only: bool = False
) -> RelationSchema:
    """The stored shape of a table; without a key of its own it gets a hidden row id."""
    stored = [Column(name, type_, nullable=name not in key) for name, type_ in columns.items()]
    if key == (ROW_ID,):
        stored.append(Column(ROW_ID, BIGINT, hidden=True, nullable=False))
    return RelationSchema(tuple(stored), key, append_only)


SCHEMAS = {
    SHIPS: schema_of(
        {"id": INTEGER, "name": VARCHAR, "flag": VARCHAR, "tons": INTEGER, "draught": REAL, "fee": MONEY}, key=("id",)
    ),
    BERTHS: schema_of({"id": INTEGER, "quay": VARCHAR, "depth": DOUBLE, "free": BOOLEAN}, key=("id",)),
    ARRIVALS: schema_of(
        {"ship": INTEGER, "berth": INTEGER, "day": DATE, "at": TIMESTAMP, "tons": INTEGER, "crew": array_of(VARCHAR)}
    ),
    TIDES: schema_of({"at": TIMESTAMPTZ, "height": DOUBLE, "high": BOOLEAN}, append_only=True),
}
_NAMES = {SHIPS: "ships", BERTHS: "berths", ARRIVALS: "arrivals", TIDES: "tides"}


WATERMARKS = {TIDES: RelationId(104), ARRIVALS: RelationId(103)}  # of their columns `at`


def bounds_of(relation: RelationId) -> Bounds:
    """As if both had been declared with a watermark."""
    held = WATERMARKS.get(relation)
    return {} if held is None else {"at": mark(held, SCHEMAS[relation].column("at").type)}


def _table(relation: RelationId) -> CatalogObject:
    schema = SCHEMAS[relation]
    name = _NAMES[relation]
    definition = f"CREATE TABLE {name} ()"
    return CatalogObject(
        ObjectId(relation), ObjectKind.TABLE, name, definition, columns=schema.visible, relation=schema
    )


class Harbour:
    """A catalog to which views are added as a session would add them."""

    def __init__(self) -> None:
        self.catalog = Catalog.default().with_objects(*(_table(each) for each in SCHEMAS))
        self._next = 10

    @property
    def schemas(self) -> dict[RelationId, RelationSchema]:
        return {RelationId(item.id): item.relation for item in self.catalog.objects() if item.relation is not None}

    def bound(self, query: str) -> BoundQuery:
        (parsed,) = parse(f"CREATE MATERIALIZED VIEW new AS {query}")
        assert isinstance(parsed.statement, CreateMaterializedView)
        names = CatalogNames(self.catalog, ("public",))
        return bind_query(parsed.statement.query.tree, names, Settings(now_ms=None, strict=False))

    def plan(self, query: str) -> Plan:
        """The plan of a query with its fields named as the query's columns, as a view stores it."""
        bound = self.bound(query)
        named = with_names(lower(bound, self.schemas), [column.name for column in bound.columns])
        return emit_on_close(named, bounds_of) if query.rstrip().endswith("EMIT ON WINDOW CLOSE") else named

    def fragments(self, query: str) -> tuple[Fragment, ...]:
        numbers = iter(range(-2, -100, -1))
        return cut(self.plan(query), NEW, lambda: RelationId(next(numbers)))

    def name_of(self, relation: RelationId, new: str = "new") -> str:
        found = {int(item.id): item for item in self.catalog.objects()}.get(int(relation))
        if relation in WATERMARKS.values():
            return next(_NAMES[each] for each, held in WATERMARKS.items() if held == relation)
        return str(found.qualified) if found is not None else new

    def add_materialized_view(self, name: str, query: str) -> RelationId:
        number = ObjectId(self._next)
        self._next += 1
        shape = self.fragments(query)[-1].schema
        definition = f"CREATE MATERIALIZED VIEW {name} AS {query}"
        view = CatalogObject(
            number, ObjectKind.MATERIALIZED_VIEW, name, definition, columns=shape.visible, relation=shape
        )
        self._add(view, query)
        return RelationId(number)

    def add_view(self, name: str, query: str) -> None:
        number = ObjectId(self._next)
        self._next += 1
        definition = f"CREATE VIEW {name} AS {query}"
        (parsed,) = parse(definition)
        assert isinstance(parsed.statement, CreateView)
        columns = tuple(Column(column.name, column.type) for column in self.bound(query).columns)
        self._add(CatalogObject(number, ObjectKind.VIEW, name, definition, columns=columns), query)

    def _add(self, item: CatalogObject, query: str) -> None:
        names = CatalogNames(self.catalog, ("public",))
        (parsed,) = parse(f"CREATE MATERIALIZED VIEW new AS {query}")
        assert isinstance(parsed.statement, CreateMaterializedView)
        bind_query(parsed.statement.query.tree, names, Settings(now_ms=None, strict=False))
        needs = frozenset(ObjectId(each) for each in names.mentioned)
        self.catalog = self.catalog.with_objects(replace(item, dependencies=needs))
