"""What subscriptions retain, and the texts that define them."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import DependentObjects, InvalidParameter, InvalidText
from seiche.model import EPOCH_SHIFT, Column, ObjectId, RelationSchema
from seiche.session.rename import renamed
from seiche.session.subscribed import definition, log_since, retained_since, timeout_ms, with_name
from seiche.sql.parse import parse
from seiche.sql.statements import CreateSubscription
from seiche.types import INTEGER

HOUR_MS = 3_600_000
SHAPE = RelationSchema((Column("id", INTEGER),), ("id",))
SHIPS = CatalogObject(
    ObjectId(101), ObjectKind.TABLE, "ships", "CREATE TABLE ships (id int)", columns=SHAPE.columns, relation=SHAPE
)


def subscription(name: str, *, created_ms: int, retention_ms: int, number: int = 200) -> CatalogObject:
    return CatalogObject(
        ObjectId(number),
        ObjectKind.SUBSCRIPTION,
        name,
        f"CREATE SUBSCRIPTION {name} FROM ships WITH (retention = '1h')",
        properties={"retention_ms": retention_ms, "since_epoch": created_ms << EPOCH_SHIFT},
        dependencies=frozenset([SHIPS.id]),
    )


def test_a_subscription_retains_what_came_after_it_was_made_as_long_as_it_is_young() -> None:
    made = subscription("log", created_ms=1000, retention_ms=HOUR_MS)
    assert retained_since(made, 2000) == 1000 << EPOCH_SHIFT
    assert retained_since(made, 2000 + HOUR_MS) == 2000 << EPOCH_SHIFT


def test_a_relation_keeps_what_any_of_its_subscriptions_retains() -> None:
    catalog = Catalog.default().with_objects(
        SHIPS,
        subscription("short", created_ms=0, retention_ms=HOUR_MS),
        subscription("long", created_ms=0, retention_ms=2 * HOUR_MS, number=201),
    )
    now = 5 * HOUR_MS
    assert log_since(catalog, SHIPS.id, now) == (3 * HOUR_MS) << EPOCH_SHIFT
    assert log_since(catalog, 999, now) is None


def test_what_is_subscribed_to_cannot_be_dropped_alone() -> None:
    catalog = Catalog.default().with_objects(SHIPS, subscription("log", created_ms=0, retention_ms=1))
    with pytest.raises(DependentObjects):
        catalog.plan_drop([SHIPS.id], cascade=False)
    assert catalog.plan_drop([SHIPS.id], cascade=True) == (200, SHIPS.id)


def read(text: str) -> CreateSubscription:
    return cast(CreateSubscription, parse(text)[0].statement)


def test_a_definition_is_written_one_way_however_it_was_typed() -> None:
    text = "create subscription if not exists port.log from ships with(retention = '1D')"
    assert definition(read(text)) == "CREATE SUBSCRIPTION port.log FROM ships WITH (retention = '1D')"


def test_a_definition_follows_new_names() -> None:
    made = subscription("log", created_ms=0, retention_ms=1)
    catalog = renamed(Catalog.default().with_objects(SHIPS, made), SHIPS.id, "boats")
    assert catalog.get(200).definition == "CREATE SUBSCRIPTION log FROM boats WITH (retention = '1h')"
    catalog = renamed(catalog, 200, "diary")
    assert catalog.get(200).definition == "CREATE SUBSCRIPTION diary FROM boats WITH (retention = '1h')"
    moved = with_name(catalog.get(200), "port", "diary")
    assert moved.definition == "CREATE SUBSCRIPTION port.diary FROM boats WITH (retention = '1h')"
    assert moved == replace(catalog.get(200), schema="port", definition=moved.definition)


def test_a_timeout_is_an_interval_and_nothing_else_can_be_asked() -> None:
    assert timeout_ms(()) is None
    assert timeout_ms((("timeout", "1.5s"),)) == 1500
    with pytest.raises(InvalidParameter):
        timeout_ms((("patience", "1s"),))
    with pytest.raises(InvalidParameter):
        timeout_ms((("timeout", "-1s"),))
    with pytest.raises(InvalidText):
        timeout_ms((("timeout", "soon"),))
