"""A renamed relation keeps its readers: their definitions follow, and mean what they meant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seiche.catalog.catalog import Catalog
from seiche.errors import FeatureNotSupported
from seiche.session.names import CatalogNames
from seiche.session.rename import renamed
from seiche.sql.bind import Settings, bind_query
from seiche.sql.parse import parse
from seiche.sql.rename import spelled, with_own_name
from seiche.sql.statements import CreateMaterializedView, CreateView
from tests.unit.plan.harbour import Harbour


def harbour(**queries: str) -> Catalog:
    """The harbour's tables with definitions, and these materialized views."""
    made = Harbour()
    tables = [replace(each, definition=f"CREATE TABLE {each.name} (id int)") for each in made.catalog.objects()]
    made.catalog = made.catalog.with_objects(*tables)
    for name, query in queries.items():
        made.add_materialized_view(name, query)
    return made.catalog


def spark_sql(catalog: Catalog, name: str) -> str:
    (parsed,) = parse(catalog.find((name,)).definition)
    assert isinstance(parsed.statement, CreateMaterializedView | CreateView)
    return bind_query(
        parsed.statement.query.tree, CatalogNames(catalog, ("public",)), Settings(now_ms=None, strict=False)
    ).sql


@pytest.mark.parametrize(
    ("query", "followed"),
    [
        ("SELECT id FROM ships", "SELECT id FROM boats AS ships"),
        ("SELECT ships.id FROM ships", "SELECT ships.id FROM boats AS ships"),
        ("SELECT s.id FROM ships s", "SELECT s.id FROM boats s"),
        ("SELECT s.id FROM public.ships AS s", "SELECT s.id FROM public.boats AS s"),
        ('SELECT id FROM public . "ships"', "SELECT id FROM public . boats AS ships"),
        ("SELECT 'ships' AS ships /* ships */ FROM ships", "SELECT 'ships' AS ships /* ships */ FROM boats AS ships"),
        (
            "SELECT a.id FROM SHIPS a JOIN ships ON ships.id = a.id -- both",
            "SELECT a.id FROM boats a JOIN boats AS ships ON ships.id = a.id -- both",
        ),
        (
            "WITH ships AS (SELECT id FROM ships WHERE tons > 1) SELECT id FROM ships",
            "WITH ships AS (SELECT id FROM boats AS ships WHERE tons > 1) SELECT id FROM ships",
        ),
        (
            "SELECT id FROM berths WHERE id IN (SELECT ships.id FROM ships ORDER BY tons LIMIT 3)",
            "SELECT id FROM berths WHERE id IN (SELECT ships.id FROM boats AS ships ORDER BY tons LIMIT 3)",
        ),
        (
            "SELECT id FROM (TABLE ships) t UNION ALL SELECT id FROM berths",
            "SELECT id FROM (SELECT * FROM boats AS ships) t UNION ALL SELECT id FROM berths",
        ),
    ],
)
def test_the_definition_of_a_reader_follows_and_means_the_same(query: str, followed: str) -> None:
    before = harbour(v=query)
    after = renamed(before, before.find(("ships",)).id, "boats")
    assert after.find(("v",)).definition == f"CREATE MATERIALIZED VIEW v AS {followed}"
    assert spark_sql(after, "v") == spark_sql(before, "v")
    assert after.find(("boats",)).definition == "CREATE TABLE boats (id int)"
    assert after.try_find(("ships",)) is None


def test_a_rename_and_back_keeps_every_reader() -> None:
    before = harbour(v="SELECT ships.id FROM ships JOIN berths ON berths.id = ships.id")
    there = renamed(before, before.find(("ships",)).id, "select")
    again = renamed(there, there.find(("select",)).id, "ships")
    assert spark_sql(again, "v") == spark_sql(before, "v")
    assert '"select" AS ships' in there.find(("v",)).definition


def test_views_on_views_follow_the_view_that_they_name() -> None:
    made = Harbour()
    made.catalog = harbour()
    made.add_view("calls", "SELECT s.name, a.at FROM ships s JOIN arrivals a ON a.ship = s.id")
    made.add_materialized_view("busiest", "SELECT calls.name, count(*) AS n FROM calls GROUP BY calls.name")
    before = made.catalog
    after = renamed(before, before.find(("calls",)).id, "visits")
    assert after.find(("visits",)).definition.startswith("CREATE VIEW visits AS SELECT s.name")
    assert "FROM visits AS calls" in after.find(("busiest",)).definition
    assert spark_sql(after, "busiest") == spark_sql(before, "busiest")
    further = renamed(after, after.find(("ships",)).id, "boats")
    assert "FROM boats s JOIN" in further.find(("visits",)).definition
    assert further.find(("busiest",)).definition == after.find(("busiest",)).definition
    assert spark_sql(further, "busiest") == spark_sql(before, "busiest")


def test_a_name_that_would_be_taken_for_a_with_query_is_refused() -> None:
    before = harbour(v="WITH boats AS (SELECT id FROM berths) SELECT ships.id FROM ships JOIN boats ON true")
    with pytest.raises(FeatureNotSupported, match='table "ships" cannot be renamed while materialized view "v" reads'):
        renamed(before, before.find(("ships",)).id, "boats")


@pytest.mark.parametrize(
    ("definition", "new"),
    [
        ("CREATE TABLE ships (ships int)", "CREATE TABLE boats (ships int)"),
        ("create table if not exists north.Ships(id int)", "create table if not exists north.boats(id int)"),
        ('CREATE MATERIALIZED VIEW "Ships" AS TABLE ships', "CREATE MATERIALIZED VIEW boats AS TABLE ships"),
        ("CREATE OR REPLACE VIEW ships (a) AS SELECT 1", "CREATE OR REPLACE VIEW boats (a) AS SELECT 1"),
        ("CREATE TABLE ships AS SELECT 1 AS a", "CREATE TABLE boats AS SELECT 1 AS a"),
        ("CREATE LOCAL TEMP TABLE ships (id int)", "CREATE LOCAL TEMP TABLE boats (id int)"),
    ],
)
def test_an_object_is_created_under_its_new_name(definition: str, new: str) -> None:
    assert with_own_name(definition, "boats") == new


@pytest.mark.parametrize(
    ("name", "text"), [("boats", "boats"), ("Boats", '"Boats"'), ("table", '"table"'), ('a"b', '"a""b"'), ("é", '"é"')]
)
def test_a_name_is_quoted_where_it_must_be(name: str, text: str) -> None:
    assert spelled(name) == text
