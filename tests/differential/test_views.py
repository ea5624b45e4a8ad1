"""After every epoch every view equals Spark's answer for its query over the tables at that epoch.

Each script is one database: random tables, random views over them, random statements, with folds, joined segments,
restarts and views created late in between. Hypothesis makes the choices. The few scripts of every run are always
the same; SEICHE_TEST_EXAMPLES=n draws n new ones, and makes one that fails smaller before it is reported.

A script that fails is written to kept/failed.json, with its SQL and its rows. Given a name and a word on what it
found, it stays there, and is played in every run: the same script, however the grammar grows. One that nobody made
smaller takes a minute, and is played with the long tests.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.differential import draft
from tests.differential.scenario import Harbour
from tests.differential.script import Script, load, save

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEPT = Path(__file__).parent / "kept"
SMALL_STEPS = 12
DEFAULT_EXAMPLES = 6  # the first few that hypothesis tries are tiny
_asked = os.environ.get("SEICHE_TEST_EXAMPLES")
_numbers = itertools.count()


def played(script: Script, spark: SparkSession, folder: Path, title: str) -> None:
    """Plays a script in a new database; one that fails is kept."""
    with Harbour(folder, spark, title, **script.settings) as harbour:
        try:
            harbour.play(script)
        except AssertionError as error:
            save(replace(script, found=str(error).partition("\n")[0]), KEPT / "failed.json")
            raise


@pytest.mark.timeout(0 if _asked else 1800)
@settings(
    max_examples=int(_asked or DEFAULT_EXAMPLES),
    derandomize=_asked is None,
    # Shrinking plays hundreds of scripts, each of which takes Spark many seconds.
    phases=tuple(Phase) if _asked else (Phase.explicit, Phase.generate),
    deadline=None,
    print_blob=False,  # the kept script says more, and for longer
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(rng=st.randoms(use_true_random=False))
def test_views_equal_their_queries_after_every_epoch(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rng: random.Random
) -> None:
    played(draft.script(rng), spark, tmp_path_factory.mktemp("harbour"), f"example {next(_numbers)}")


def _kept() -> Iterator[object]:
    for path in sorted(KEPT.glob("*.json")):
        is_small = len(load(path).steps) <= SMALL_STEPS
        yield pytest.param(path, id=path.stem, marks=[] if is_small else [pytest.mark.long])


@pytest.mark.parametrize("path", list(_kept()))
@pytest.mark.timeout(600)
def test_a_script_that_once_failed_passes(path: Path, spark: SparkSession, tmp_path: Path) -> None:
    script = load(path)
    with Harbour(tmp_path / "harbour", spark, f"{path.name}: {script.found}", **script.settings) as harbour:
        harbour.play(script)
