"""Sums of doubles through the engine: large values come and go, and the small ones stay what they are."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

import seiche

pytestmark = [pytest.mark.spark]


def test_sums_of_doubles_do_not_drift_as_rows_come_and_go(db: seiche.Engine) -> None:
    rng = random.Random(7)
    db.execute("CREATE TABLE tides (id int PRIMARY KEY, gauge varchar, level double precision)")
    db.execute("CREATE MATERIALIZED VIEW levels AS SELECT gauge, sum(level) AS level FROM tides GROUP BY gauge")
    present: dict[int, tuple[str, float]] = {}
    for epoch in range(12):
        for id_ in [each for each, (_, level) in present.items() if abs(level) > 100]:
            present.pop(id_)
        db.execute("DELETE FROM tides WHERE abs(level) > 100")
        rows = []
        for number in range(6):
            level = rng.uniform(-1, 1) * 10.0 ** (rng.randint(-2, 1) if number % 2 else 15)
            rows.append((epoch * 10 + number, rng.choice(["north", "south"]), level))
        present |= {id_: (gauge, level) for id_, gauge, level in rows}
        db.insert("tides", rows)
        if epoch == 5:
            for each in db.database.catalog.objects():
                db.database.maintenance.fold_now(each.id)  # type: ignore[arg-type]
    db.execute("DELETE FROM tides WHERE abs(level) > 100")
    expected = {
        gauge: float(sum(Decimal(repr(level)) for g, level in present.values() if g == gauge and abs(level) <= 100))
        for gauge in ("north", "south")
    }
    found = dict(db.sql("SELECT gauge, level FROM levels").rows or [])
    assert found == pytest.approx(expected, rel=1e-12)
