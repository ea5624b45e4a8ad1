"""A database under test beside the model of its tables: every step is followed by a check of everything.

The steps are written down as they happen, so that a failure comes with the script that leads to it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

from pyspark.sql import SparkSession

import seiche
from seiche.errors import SeicheError
from seiche.model import RelationId
from tests.differential.domains import Domain
from tests.differential.harbour_tables import Contents, Row, Table, TableColumn, Write
from tests.differential.oracle import Oracle, collect, difference
from tests.differential.script import Check, CreateTable, CreateView, Fold, Restart, Script, Writes


class Harbour:
    """A database, opened; `check` compares every table with the model and every view with Spark's answer."""

    def __init__(self, folder: Path, spark: SparkSession, title: str = "", **settings: Any) -> None:
        self._folder, self._spark, self._settings = folder, spark, settings
        self._oracle = Oracle(spark)
        self.contents: dict[str, Contents] = {}
        self.queries: dict[str, str] = {}
        self.script: list[str] = [f"-- {title}", f"-- settings: {settings}"] if title else []
        self.db = self._open()

    def __enter__(self) -> Harbour:
        return self

    def __exit__(self, *_: object) -> None:
        self.db.close()

    def _open(self) -> seiche.Engine:
        return seiche.connect(self._folder, spark=self._spark, **self._settings)

    # --- steps ---

    def create_table(self, table: Table) -> None:
        self.run(table.ddl)
        self.contents[table.name] = Contents(table)

    def create_view(self, name: str, query: str) -> None:
        self.run(f"CREATE MATERIALIZED VIEW {name} AS {query}")
        self.queries[name] = query

    def run(self, sql: str) -> None:
        self.script.append(sql + ";")
        try:
            self.db.execute(sql)
        except SeicheError as error:
            raise AssertionError(f"{error}\n\n{self.story()}") from error

    def write(self, *writes: Write, api: bool = False) -> None:
        """Carries out statements on different tables, side by side so that they share an epoch where they can."""
        if len(writes) == 1:
            self._carry_out(writes[0], api)
        else:
            self.script.append("-- side by side:")
            self._together(writes)
        for each in writes:
            self.contents[each.table].rows = each.after

    def _carry_out(self, write: Write, api: bool) -> None:
        if not api or write.rows is None:
            self.run(write.sql)
            return
        self.script.append(f"{write.sql};  -- through insert()")
        try:
            self.db.insert(write.table, write.rows)
        except SeicheError as error:
            raise AssertionError(f"{error}\n\n{self.story()}") from error

    def _together(self, writes: Sequence[Write]) -> None:
        failures: list[BaseException] = []

        def work(sql: str) -> None:
            try:
                self.db.session().execute(sql)
            except SeicheError as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(each.sql,)) for each in writes]
        self.script += [each.sql + ";" for each in writes]
        coordinator = self.db.database.coordinator
        coordinator.pause()  # nothing is taken up before all of them had time to arrive
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(0.3)
        coordinator.resume()
        for thread in threads:
            thread.join()
        if failures:
            raise AssertionError(f"{failures[0]}\n\n{self.story()}") from failures[0]

    def play(self, script: Script) -> None:
        """Does what the script says; raises AssertionError where something is not as it should be."""
        for step in script.steps:
            match step:
                case CreateTable():
                    self.run(step.ddl)
                    self.contents[step.name] = Contents(self._described(step.name))
                case CreateView():
                    self.create_view(step.name, step.query)
                case Writes():
                    self.write(*step.writes, api=step.api)
                case Fold():
                    self.fold_named(*step.names)
                case Restart():
                    self.restart()
                case Check():
                    self.check()
                case _:
                    assert_never(step)

    def _described(self, name: str) -> Table:
        """As much of a table as checking its rows needs."""
        columns = self.db.database.catalog.find((name,)).columns
        return Table(name, tuple(TableColumn(c.name, Domain(str(c.type), c.type, "", ())) for c in columns))

    def fold(self, rng: random.Random) -> None:
        """Folds some of the relations, internal ones too."""
        relations = [each for each in self.db.database.catalog.objects() if each.relation is not None]
        for each in rng.sample(relations, min(len(relations), rng.randint(1, 3))):
            self.script.append(f"-- fold {each.name}")
            self.db.database.maintenance.fold_now(RelationId(each.id))

    def fold_named(self, *names: str) -> None:
        """Folds tables and views, with the internal relations of the views."""
        catalog = self.db.database.catalog
        for name in names:
            found = catalog.find((name,))
            for each in (found, *catalog.children(found.id)):
                self.script.append(f"-- fold {each.name}")
                self.db.database.maintenance.fold_now(RelationId(each.id))

    def restart(self) -> None:
        self.script.append("-- restart")
        self.db.close()
        self.db = self._open()

    # --- checks ---

    def check(self) -> None:
        """Raises AssertionError with the script so far when anything is not as it should be."""
        results = {name: self.db.sql(f"SELECT * FROM {name}") for name in (*self.contents, *self.queries)}
        actual = collect({name: result.to_spark() for name, result in results.items()})
        for name, contents in self.contents.items():
            self._same(f"table {name}", actual[name], contents.rows)
        tables = {name: contents.to_arrow() for name, contents in self.contents.items()}
        expected = self._oracle.answers(self.db.database.catalog, tables, self.queries)
        for name in self.queries:
            self._same(f"view {name}", actual[name], expected[name])

    def rows(self, name: str) -> list[Row]:
        rows = self.db.sql(f"SELECT * FROM {name}").rows
        assert rows is not None
        return rows

    def _same(self, what: str, actual: Sequence[Row], expected: Sequence[Row]) -> None:
        extra, missing = difference(actual, expected)
        if extra or missing:
            raise AssertionError(
                f"{what} is not what it should be\n"
                f"  has {len(actual)} rows, should have {len(expected)}\n"
                f"  should not be there: {_some(extra)}\n"
                f"  missing: {_some(missing)}\n\n{self.story(what.split()[-1])}"
            )

    def story(self, name: str | None = None) -> str:
        """The script so far; for a view only the definitions that matter to it, and its plan."""
        lines = self.script
        if name in self.queries:
            wanted = _needed(name, self.queries)
            lines = [line for line in lines if not line.startswith("CREATE MAT") or line.split()[3] in wanted]
            lines = [*lines, "", *self._plan(name)]
        return "\n".join(lines)

    def _plan(self, name: str) -> list[str]:
        result = self.db.execute(f"EXPLAIN CREATE MATERIALIZED VIEW plan_of_{name} AS {self.queries[name]}")[-1]
        return [str(row[0]) for row in result.rows or []]


def _needed(name: str, queries: Mapping[str, str]) -> set[str]:
    found = {name}
    for other in queries:
        if f"{other} AS " in queries[name] and other not in found:
            found |= _needed(other, queries)
    return found


def _some(rows: Sequence[Row]) -> str:
    shown = "\n    ".join(str(row) for row in rows[:6])
    return f"{len(rows)} rows" + (f"\n    {shown}" if rows else "")


Port = Callable[..., Harbour]  # opens a database
