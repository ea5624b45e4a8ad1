"""The same views in epochs of one row, some, a quarter of the table, all of it: each technique is chosen, and is right.

The costs are ones under which small tables behave like large ones: a step costs nothing but its rows.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from seiche.plan.choice import MEASURED, Costs
from tests.differential import domains
from tests.differential.harbour_tables import Row, Write
from tests.differential.scenario import Port
from tests.differential.test_operators import BERTHS, Quay, table

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(600)]

ROWS = 200
CALLS = table("calls", "id", id=domains.INTEGER, berth=domains.INTEGER, ship=domains.INTEGER, tons=domains.INTEGER)

LARGEST = "SELECT ship, min(tons) AS least, max(tons) AS most FROM calls GROUP BY ship"
NUMBERED = "SELECT id, row_number() OVER (PARTITION BY ship ORDER BY id) AS n FROM calls"


def _quay(port: Port, costs: Costs, views: dict[str, str]) -> Quay:
    """A harbour with two calls of each ship, and the views over them."""
    quay = Quay(port(), CALLS, BERTHS)
    object.__setattr__(quay.harbour.db.database.runtime, "costs", costs)
    for name, query in views.items():
        quay.view(name, query)
    berths: list[Row] = [(number, f"pier {number % 3}") for number in range(8)]
    calls: list[Row] = [(n, n % 8, n // 2, n % 7) for n in range(ROWS)]
    quay.harbour.write(
        Write("berths", "INSERT INTO berths SELECT i, 'pier ' || i % 3 FROM generate_series(0, 7) g(i)", berths)
    )
    query = f"SELECT i, i % 8, i / 2, i % 7 FROM generate_series(0, {ROWS - 1}) g(i)"
    quay.harbour.write(Write("calls", f"INSERT INTO calls {query}", calls))
    return quay


def _set_tons(quay: Quay, value: str, condition: str, rows: list[Row]) -> Write:
    return Write("calls", f"UPDATE calls SET tons = {value} WHERE {condition}", rows)


def _changed(quay: Quay, **tons: int | None) -> list[Row]:
    """The calls with other tons; `n7` is those of call 7."""
    return [(*row[:3], tons.get(f"n{row[0]}", row[3])) for row in quay.harbour.contents["calls"].rows]


def _chosen(quay: Quay) -> dict[str, dict[str, Any]]:
    """The last entry of each view."""
    found: dict[str, dict[str, Any]] = {}
    for (info,) in quay.harbour.db.sql("SELECT info FROM rw_catalog.rw_refresh_history").rows or []:
        entry = json.loads(info)
        if entry["epoch"] > found.get(entry["job_name"], {"epoch": 0})["epoch"]:
            found[entry["job_name"]] = entry
    return found


def test_the_number_of_changed_rows_decides(port: Port) -> None:
    costs = replace(MEASURED, near_ms=0.0, action_ms=0.0, far_ms=0.0, margin=0.85)
    quay = _quay(port, costs, {"largest": LARGEST, "numbered": NUMBERED})

    def choices() -> tuple[str, str]:
        last = _chosen(quay)
        return last["largest"]["choice"], last["numbered"]["choice"]

    quay.write(_set_tons(quay, "50", "id = 10", _changed(quay, n10=50)))
    assert choices() == ("change rule", "affected keys")

    # Most of the groups that are mentioned lose an extreme.
    some = _changed(quay, **{f"n{n}": 60 - n for n in range(0, ROWS, 20)})
    quay.write(_set_tons(quay, "60 - id", "id % 20 = 0", some))
    assert choices() == ("affected keys", "affected keys")

    quay.harbour.fold_named("calls", "largest", "numbered")  # a log counts rows that left among those to read
    more = _changed(quay, **{f"n{n}": n % 5 for n in range(0, ROWS, 4)})
    quay.write(_set_tons(quay, "id % 5", "id % 4 = 0", more))
    assert choices() == ("affected keys", "full")

    quay.harbour.fold_named("calls", "largest", "numbered")
    quay.write(_set_tons(quay, "id % 11", "true", _changed(quay, **{f"n{n}": n % 11 for n in range(ROWS)})))
    assert choices() == ("full", "full")

    # And back to little: it is decided anew.
    quay.write(_set_tons(quay, "NULL", "id = 3", _changed(quay, n3=None)))
    assert choices() == ("change rule", "affected keys")
    entry = _chosen(quay)["largest"]
    assert (entry["kind"], entry["part"], entry["changed_rows"]) == ("epoch", 1, 2)
    assert entry["stored_rows"] >= ROWS // 2 and entry["input_rows"] >= ROWS
    assert set(entry["estimates_ms"]) == {"change rule", "affected keys", "full"}
    metrics = quay.harbour.db.database.runtime.metrics
    for technique, ms in entry["estimates_ms"].items():
        told = metrics.estimates.value(relation="largest", part="1", technique=technique)
        assert told == pytest.approx(ms / 1000, abs=0.001)


def test_every_part_is_right_also_by_another_technique_than_its_own(port: Port) -> None:
    """With a margin that nothing can miss, the best of the others is taken always."""
    views = {
        "heavy": "SELECT id, tons FROM calls WHERE tons > 3",
        "ratios": "SELECT id, 100 / tons AS share FROM calls",
        "numbers": "SELECT id FROM calls WHERE tons > 3 UNION ALL SELECT berth FROM berths",
        "piers": "SELECT c.id, c.tons, b.pier FROM calls c JOIN berths b ON c.berth = b.berth",
        "loads": "SELECT berth, count(*) AS n, sum(100 / tons) AS shares FROM calls GROUP BY berth",
        "largest": LARGEST,
        "total": "SELECT count(*) AS n, max(tons) AS most FROM calls",
        "busy": "SELECT berth, count(*) AS n FROM calls GROUP BY berth HAVING count(*) > 3",
        "numbered": NUMBERED,
        "top": "SELECT id, tons FROM calls ORDER BY tons DESC, id LIMIT 5",
    }
    quay = _quay(port, replace(MEASURED, margin=float("inf")), views)
    quay.write(_set_tons(quay, "0", "id < 4", _changed(quay, n0=0, n1=0, n2=0, n3=0)))
    last = _chosen(quay)
    assert "change rule" not in {entry["choice"] for entry in last.values()}
    assert last["largest"]["choice"] == "affected keys"
    assert [last[name]["choice"] for name in ("heavy", "numbers", "piers", "total", "numbered", "top")] == ["full"] * 6
    failed = quay.harbour.db.sql("SELECT event_type FROM rw_catalog.rw_event_logs").rows or []
    assert ("EXPRESSION_FAILED",) in failed  # 100 / 0 is counted, whatever the technique
    quay.write(
        Write("calls", "DELETE FROM calls WHERE id % 3 > 0", [row for row in _changed(quay) if row[0] % 3 == 0]),
        Write("berths", "UPDATE berths SET pier = 'quay'", [(number, "quay") for number in range(8)]),
    )
    quay.write(Write("calls", "DELETE FROM calls", []))
