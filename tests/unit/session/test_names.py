"""Names in queries mean what they meant where they were written."""

from __future__ import annotations

from dataclasses import replace

from seiche.catalog.objects import ObjectId, Schema
from seiche.session.names import CatalogNames
from seiche.sql.bind import Settings, bind_query
from seiche.sql.parse import parse_query
from tests.unit.plan.harbour import SHIPS, Harbour


def test_a_view_looks_names_up_as_its_creator_did_not_as_its_reader_does() -> None:
    harbour = Harbour()
    harbour.add_view("fleet", "SELECT id FROM ships")
    catalog = harbour.catalog.with_schema(Schema(ObjectId(90), "dev", "north"))
    fleet = replace(catalog.find(("fleet",)), properties={"search_path": ["public"]})
    other = replace(catalog.find(("ships",)), id=ObjectId(91), schema="north")
    catalog = catalog.with_objects(fleet, other)
    names = CatalogNames(catalog, ("north", "public"))
    bound = bind_query(parse_query("SELECT f.id FROM fleet f, ships s").tree, names, Settings(now_ms=0))
    assert bound.relations == {int(SHIPS), 91}
    assert names.mentioned == {fleet.id, int(SHIPS), 91}
    assert "`r1`" in bound.sql
