"""Scripts are the same after they were kept, and drawing them follows the choices alone. No Spark here."""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seiche.sql.parse import parse
from tests.differential import draft
from tests.differential.harbour_tables import Write
from tests.differential.script import Check, CreateTable, CreateView, Fold, Restart, Script, Writes, load, save

KEPT = Path(__file__).parent / "kept"

EVERYTHING = Script(
    {"inline_rows_max": 3},
    (
        CreateTable("ships", "CREATE TABLE ships (id int)"),
        CreateView("heavy", "SELECT * FROM ships"),
        Writes((Write("ships", "INSERT INTO ships VALUES (1)", [(1,)], [(1,)]),), api=True),
        Writes(
            (
                Write("ships", "UPDATE", [(None, True, 1.5, "ö", b"\x00", Decimal("1.50"), date(2024, 2, 29))]),
                Write(
                    "tides",
                    "DELETE",
                    [
                        (datetime(2024, 2, 29, 12, 30), datetime(2024, 2, 29, tzinfo=UTC)),
                        ({"a": 1, "b": {"c": [1, None]}}, [-0.0, math.inf]),
                    ],
                ),
            )
        ),
        Fold(("ships", "heavy")),
        Restart(),
        Check(),
    ),
    "nothing",
)


def test_a_kept_script_is_the_same_script(tmp_path: Path) -> None:
    save(EVERYTHING, tmp_path / "kept.json")
    again = load(tmp_path / "kept.json")
    assert again == EVERYTHING
    assert repr(again) == repr(EVERYTHING)  # the sign of a zero, and tuples that are tuples


def test_a_script_is_read_line_by_line(tmp_path: Path) -> None:
    save(EVERYTHING, tmp_path / "kept.json")
    assert len((tmp_path / "kept.json").read_text(encoding="utf-8").splitlines()) == len(EVERYTHING.steps) + 2


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10_000))
def test_the_same_choices_make_the_same_script_of_statements_that_parse(seed: int) -> None:
    script = draft.script(random.Random(seed))
    assert repr(script) == repr(draft.script(random.Random(seed)))
    assert isinstance(script.steps[-1], Check)
    for step in script.steps:
        match step:
            case CreateTable():
                parse(step.ddl)
            case CreateView():
                parse(f"CREATE MATERIALIZED VIEW {step.name} AS {step.query}")
            case Writes():
                for each in step.writes:
                    parse(each.sql)
            case Fold() | Restart() | Check():
                pass


@pytest.mark.parametrize("path", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem)
def test_every_kept_script_can_be_read_and_says_what_it_found(path: Path) -> None:
    script = load(path)
    assert script.found
    assert script.steps
