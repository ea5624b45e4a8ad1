"""Which queries want single rows by their key."""

from __future__ import annotations

import pytest

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.model import Column, ObjectId, RelationSchema
from seiche.session.names import CatalogNames
from seiche.sql.bind import Settings, bind_query
from seiche.sql.parse import parse_query
from seiche.sql.point import KEYS_MAX, PointRead, point_read
from seiche.types import BIGINT, DATE, INTEGER, VARCHAR

SHIPS = RelationSchema((Column("id", INTEGER), Column("name", VARCHAR), Column("tons", BIGINT)), ("id",))
LOADS = RelationSchema((Column("berth", VARCHAR), Column("ship", BIGINT), Column("tons", BIGINT)), ("berth", "ship"))
TIDES = RelationSchema((Column("day", DATE), Column("metres", INTEGER)), ("day",))
STORED = {"r101": SHIPS, "r102": LOADS, "r103": TIDES}


def catalog() -> Catalog:
    names = ("ships", "loads", "tides")
    return Catalog.default().with_objects(
        *(
            CatalogObject(ObjectId(101 + n), ObjectKind.TABLE, name, "", columns=shape.columns, relation=shape)
            for n, (name, shape) in enumerate(zip(names, STORED.values(), strict=True))
        )
    )


def read(query: str) -> PointRead | None:
    settings = Settings(timezone="UTC", now_ms=0, strict=True)
    bound = bind_query(parse_query(query).tree, CatalogNames(catalog(), ["public"]), settings)
    return point_read(bound.ast, STORED.get)


def test_a_row_by_its_key_needs_a_lookup_only() -> None:
    assert read("SELECT name, id FROM ships WHERE id = 7") == PointRead(
        "r101", {"id": (7,)}, "`id` = 7", ("name", "id")
    )


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("SELECT * FROM ships WHERE 7 = id", {"id": (7,)}),
        ("SELECT * FROM ships WHERE (id = -7)", {"id": (-7,)}),
        ("SELECT * FROM ships WHERE id = '7'", {"id": (7,)}),
        ("SELECT * FROM ships WHERE id IN (1, 2, 1)", {"id": (1, 2)}),
        ("SELECT * FROM loads WHERE ship = 3 AND berth = 'south'", {"ship": (3,), "berth": ("south",)}),
    ],
)
def test_constants_are_read_however_they_are_written(query: str, values: dict[str, tuple[object, ...]]) -> None:
    found = read(query)
    assert found is not None and found.values == values and found.shown is not None


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id + 1 FROM ships WHERE id = 7",
        "SELECT id FROM ships WHERE id = 7 AND tons > 5",
        "SELECT id FROM ships WHERE id = 7 LIMIT 0",
        "SELECT DISTINCT id FROM ships WHERE id = 7",
        "SELECT count(*) FROM ships WHERE id = 7",
        "SELECT s.id FROM ships s JOIN loads l ON l.ship = s.id WHERE s.id = 7",
        "SELECT s.id FROM loads l LEFT JOIN ships s ON l.ship = s.id WHERE s.id = 7",
        "SELECT id, unnest(array[1, 2]) FROM ships WHERE id = 7",
    ],
)
def test_a_query_that_does_more_with_the_row_is_left_to_spark_over_that_row(query: str) -> None:
    found = read(query)
    assert found is not None
    assert (found.source, found.values, found.shown) == ("r101", {"id": (7,)}, None)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM ships",
        "SELECT * FROM ships WHERE id > 7",
        "SELECT * FROM ships WHERE id = 7 OR tons = 1",
        "SELECT * FROM ships WHERE NOT id = 7",
        "SELECT * FROM ships WHERE name = 'Ada'",
        "SELECT * FROM ships WHERE id = tons",
        "SELECT 7 WHERE true",
        "SELECT * FROM ships WHERE id = NULL",
        "SELECT * FROM ships WHERE id = 7.5",
        "SELECT * FROM loads WHERE berth = 'south'",
        "SELECT * FROM loads WHERE berth IN ('south', 'north') AND ship = 3",
        "SELECT * FROM tides WHERE day = '2026-01-01'",
        "SELECT * FROM ships a, ships b WHERE a.id = 7",
        "SELECT * FROM ships WHERE id = 7 UNION ALL SELECT * FROM ships WHERE id = 8",
        "SELECT * FROM ships WHERE id = 7 AND tons > (SELECT avg(tons) FROM ships)",
        f"SELECT * FROM ships WHERE id IN ({', '.join(map(str, range(KEYS_MAX + 1)))})",
    ],
)
def test_other_queries_are_not_cut_down(query: str) -> None:
    assert read(query) is None


def test_a_source_that_is_not_stored_is_left_alone() -> None:
    settings = Settings(timezone="UTC", now_ms=0, strict=True)
    query = parse_query("SELECT * FROM ships WHERE id = 7").tree
    bound = bind_query(query, CatalogNames(catalog(), ["public"]), settings)
    assert point_read(bound.ast, lambda _: None) is None
