"""After every epoch every view equals Spark's answer for its query over the tables at that epoch.

Each seed is one database: random tables, random views over them, random statements, with folds, joined segments,
restarts and views created late in between. SEICHE_TEST_SEEDS=n runs n new seeds instead of the few that are
part of every run. A failure prints its seed and the script that leads to it; the seed then belongs into
seeds.txt, whose scenarios are run every time.
"""

from __future__ import annotations

import os
import random
from itertools import islice
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.differential import grammar
from tests.differential.harbour_tables import insert, write
from tests.differential.scenario import Harbour

pytestmark = [pytest.mark.spark, pytest.mark.slow]

DEFAULT_SEEDS = 3
VIEWS = 10
EPOCHS = 4


def _seeds() -> list[int]:
    lines = (Path(__file__).parent / "seeds.txt").read_text(encoding="utf-8").splitlines()
    stored = [int(line.split("#")[0]) for line in lines if line.split("#")[0].strip()]
    asked = os.environ.get("SEICHE_TEST_SEEDS")
    if asked is None:
        return list(dict.fromkeys([*stored, *range(DEFAULT_SEEDS)]))
    start = int(os.environ.get("SEICHE_TEST_FIRST_SEED", "1000"))
    return list(range(start, start + int(asked)))


@pytest.mark.parametrize("seed", _seeds())
@pytest.mark.timeout(600)
def test_views_equal_their_queries_after_every_epoch(seed: int, spark: SparkSession, tmp_path: Path) -> None:
    rng = random.Random(seed)
    settings = {
        "fold_min_rows": rng.choice([0, 20, 50_000]),
        "fold_ratio": rng.choice([0.001, 0.5]),
        "segments_max_per_relation": rng.choice([2, 16]),
        "inline_rows_max": rng.choice([50_000, 50_000, 3, 0]),
        "checkpoint_frequency": rng.choice([1, 1, 3]),
        "barrier_interval_ms": 50,
    }
    with Harbour(tmp_path / "harbour", spark, f"seed {seed}", **settings) as harbour:
        _play(harbour, rng)


def _play(harbour: Harbour, rng: random.Random) -> None:
    tables = grammar.schema(rng)
    for table in tables:
        harbour.create_table(table)
    views = list(islice(grammar.views(rng, tables), VIEWS))
    late = rng.randint(1, 4)  # views that are created over rows that are there already
    for view in views[:-late]:
        harbour.create_view(view.name, view.query)
    for table in tables:
        harbour.write(insert(rng, harbour.contents[table.name], rng.choice([1, 8, 15])), api=rng.random() < 0.5)
    harbour.check()
    late_views = iter(views[-late:])
    for _ in range(EPOCHS):
        for _ in range(rng.choice([0, 1])):
            view = next(late_views, None)
            if view is not None:
                harbour.create_view(view.name, view.query)
        if len(tables) > 1 and rng.random() < 0.4:
            chosen = rng.sample(tables, rng.randint(2, len(tables)))
            harbour.write(*(write(rng, harbour.contents[table.name]) for table in chosen))
        else:
            for _ in range(rng.choice([1, 1, 3])):
                harbour.write(write(rng, harbour.contents[rng.choice(tables).name]), api=rng.random() < 0.3)
        happening = rng.random()
        if happening < 0.3:
            harbour.fold(rng)
        elif happening < 0.5:
            harbour.restart()
        harbour.check()
