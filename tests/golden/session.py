"""A session over the harbour's catalog for statements that fail before anything runs: no Spark, no epochs."""

from __future__ import annotations

from typing import Any

from seiche.catalog.objects import Database as DatabaseEntry
from seiche.catalog.objects import Schema
from seiche.clock import SimulatedClock
from seiche.config import Config
from seiche.model import ObjectId
from seiche.session.database import Database
from seiche.session.run import Session
from seiche.storage.versions import Versions
from seiche.stream.runtime import Limits, Runtime
from tests.sparks import NoSpark
from tests.unit.plan.harbour import Harbour


def harbour_session() -> Session:
    return Session(harbour_database())


def harbour_database() -> Database:
    harbour = Harbour()
    harbour.add_materialized_view("heavy", "SELECT id, name, tons FROM ships WHERE tons > 1000")
    harbour.add_view("calls", "SELECT s.name, a.at, a.tons FROM ships s JOIN arrivals a ON a.ship = s.id")
    harbour.add_materialized_view("busiest", "SELECT name, count(*) AS visits FROM calls GROUP BY name")
    catalog = harbour.catalog.with_database(DatabaseEntry(ObjectId(990), "office"))
    absent: Any = None  # nothing that a failing statement reaches
    runtime = Runtime(NoSpark(), Versions(), absent, absent, Limits(1000, 1_000_000, 100, 10_000))
    return Database(
        config=Config(),
        clock=SimulatedClock(),
        store=absent,
        runtime=runtime,
        row_ids=absent,
        bounds=absent,
        pins=absent,
        trash=absent,
        maintenance=absent,
        coordinator=absent,
        catalog=catalog.with_schema(Schema(ObjectId(991), "office", "public")),
    )
