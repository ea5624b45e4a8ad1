"""Definitions as PostgreSQL spells them."""

from __future__ import annotations

import pytest

from seiche.catalog.definitions import index_definition
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.model import Column, ObjectId
from seiche.types import VARCHAR

SHIPS = CatalogObject(ObjectId(100), ObjectKind.TABLE, "ships", "", columns=(Column("name", VARCHAR),))


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("(name DESC)", "(name DESC)"),
        ("(flag, (length(name))) INCLUDE (tons)", "(flag, (length(name))) INCLUDE (tons)"),
        ("(name) DISTRIBUTED BY (name)", "(name)"),
    ],
)
def test_an_index_is_told_with_its_order_its_expressions_and_what_it_includes(body: str, shown: str) -> None:
    text = f"CREATE INDEX by_name ON public.ships {body}"
    index = CatalogObject(ObjectId(101), ObjectKind.INDEX, "by_name", text, dependencies=frozenset({SHIPS.id}))
    assert index_definition(SHIPS, index) == f"CREATE INDEX by_name ON public.ships USING btree {shown}"
    assert index_definition(SHIPS, index, qualified=False) == f"CREATE INDEX by_name ON ships USING btree {shown}"
