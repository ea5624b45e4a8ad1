"""Drawing a script: random tables, random views over them, random statements, with folds, restarts and views that are
created late in between. Nothing runs here, so that a script is whole before it costs any time.

`rng` may be Python's own generator or one of hypothesis's, which then knows every choice and can make a script that
fails smaller.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

from tests.differential import grammar
from tests.differential.harbour_tables import Contents, Table, Write, insert, write
from tests.differential.script import Check, CreateTable, CreateView, Fold, Restart, Script, Step, Writes

# Mostly the last ones. What fails shrinks towards the first.
VIEWS = (2, 5, 10, 10, 10)
EPOCHS = (1, 2, 4, 4, 4)


def script(rng: random.Random) -> Script:
    settings = {
        "fold_min_rows": rng.choice([0, 20, 50_000]),
        "fold_ratio": rng.choice([0.001, 0.5]),
        "segments_max_per_relation": rng.choice([2, 16]),
        "inline_rows_max": rng.choice([50_000, 50_000, 3, 0]),
        "technique_margin": rng.choice([0.8, 0.8, 1e9]),  # the last: never by the usual one
        "nearby_rows_max": rng.choice([200_000, 200_000, 0]),
        "nearby_bytes_max": rng.choice([1 << 25, 1 << 25, 0, 1]),
        "checkpoint_frequency": rng.choice([1, 1, 3]),
        "barrier_interval_ms": 50,
    }
    return Script(settings, tuple(_Draft(rng).steps()))


class _Draft:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._contents: dict[str, Contents] = {}
        self._views: list[str] = []
        self._steps: list[Step] = []

    def steps(self) -> list[Step]:
        rng = self._rng
        tables = grammar.schema(rng)
        for table in tables:
            self._contents[table.name] = Contents(table)
            self._steps.append(CreateTable(table.name, table.ddl))
        views = list(islice(grammar.views(rng, tables), rng.choice(VIEWS)))
        late = rng.randint(1, 4)  # views that are created over rows that are there already
        for view in views[:-late]:
            self._create_view(view)
        for table in tables:
            self._write(insert(rng, self._contents[table.name], rng.choice([1, 8, 15])), api=rng.random() < 0.5)
        self._steps.append(Check())
        late_views = iter(views[-late:])
        for _ in range(rng.choice(EPOCHS)):
            for _ in range(rng.choice([0, 1])):
                view_due = next(late_views, None)
                if view_due is not None:
                    self._create_view(view_due)
            self._epoch(tables)
            self._steps.append(Check())
        return self._steps

    def _create_view(self, view: grammar.View) -> None:
        self._views.append(view.name)
        self._steps.append(CreateView(view.name, view.query))

    def _epoch(self, tables: Sequence[Table]) -> None:
        rng = self._rng
        if len(tables) > 1 and rng.random() < 0.4:
            chosen = rng.sample(tables, rng.randint(2, len(tables)))
            self._write(*(write(rng, self._contents[table.name]) for table in chosen))
        else:
            for _ in range(rng.choice([1, 1, 3])):
                self._write(write(rng, self._contents[rng.choice(tables).name]), api=rng.random() < 0.3)
        happening = rng.random()
        if happening < 0.3:
            relations = [*self._contents, *self._views]
            self._steps.append(Fold(tuple(rng.sample(relations, min(len(relations), rng.randint(1, 3))))))
        elif happening < 0.5:
            self._steps.append(Restart())

    def _write(self, *writes: Write, api: bool = False) -> None:
        for each in writes:
            self._contents[each.table].rows = each.after
        self._steps.append(Writes(writes, api))
