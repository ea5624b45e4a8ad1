"""A known workload on the engine beside the same tables in plain Spark, which says what each view should hold.

The mirror never reads the engine's storage, and its queries do not pass through our binding: sqlglot turns them from
PostgreSQL's dialect into Spark's. A change is told once, as values, and made on both sides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import sqlglot
from pyspark.sql import DataFrame, SparkSession

import seiche
from tests.differential.oracle import collect

Row = tuple[Any, ...]

_CONF = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
}


@dataclass(frozen=True, slots=True)
class Insert:
    table: str
    rows: pa.Table


@dataclass(frozen=True, slots=True)
class Update:
    """Conditions and expressions are simple enough to mean the same in both dialects."""

    table: str
    columns: Mapping[str, str]
    where: str


@dataclass(frozen=True, slots=True)
class Delete:
    table: str
    where: str


Change = Insert | Update | Delete


class Mirror:
    """The tables in plain Spark."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark.newSession()
        for name, value in _CONF.items():
            self.spark.conf.set(name, value)
        self._tables: dict[str, pa.Table] = {}

    def set(self, name: str, rows: pa.Table) -> None:
        self._tables[name] = rows
        self.spark.createDataFrame(rows).createOrReplaceTempView(name)

    def apply(self, change: Change) -> None:
        now = self._tables[change.table]
        match change:
            case Insert():
                self.set(change.table, pa.concat_tables([now, change.rows.cast(now.schema)]))
            case Delete():
                kept = self.spark.sql(f"SELECT * FROM {change.table} WHERE NOT coalesce({change.where}, false)")
                self.set(change.table, kept.toArrow().cast(now.schema))
            case Update():
                columns = ", ".join(
                    f"CASE WHEN {change.where} THEN {change.columns[name]} ELSE {name} END AS {name}"
                    if name in change.columns
                    else name
                    for name in now.column_names
                )
                self.set(
                    change.table, self.spark.sql(f"SELECT {columns} FROM {change.table}").toArrow().cast(now.schema)
                )

    def answers(self, queries: Mapping[str, str]) -> dict[str, list[Row]]:
        """The answers to queries in Spark's dialect."""
        frames: dict[str, DataFrame] = {name: self.spark.sql(query) for name, query in queries.items()}
        return collect(frames)


def translated(query: str) -> str:
    (sql,) = sqlglot.transpile(query, read="postgres", write="spark")
    return sql


class Workload:
    """The engine with its tables and views, and the mirror."""

    def __init__(
        self, spark: SparkSession, folder: Path, schema: Mapping[str, str], *, append_only: bool = False
    ) -> None:
        self.append_only = append_only
        self.db = seiche.connect(folder, spark=spark, barrier_interval_ms=50)
        self.mirror = Mirror(spark)
        self._views: dict[str, str] = {}
        self.db.execute("; ".join(f"CREATE TABLE {name} {columns}" for name, columns in schema.items()))

    def close(self) -> None:
        self.db.close()

    def load(self, tables: Mapping[str, pa.Table]) -> None:
        for name, rows in tables.items():
            self.mirror.set(name, rows)
        self._at_once([Insert(name, rows) for name, rows in tables.items()])

    def change(self, changes: Sequence[Change]) -> None:
        """All at once, so that several inputs of a view change in the same epoch."""
        for each in changes:
            self.mirror.apply(each)
        self._at_once(changes)

    def create_views(self, prefix: str, queries: Mapping[str, str], in_spark: Mapping[str, str] = {}) -> None:
        """`in_spark` has what Spark is asked instead, for queries that cannot be translated."""
        for name, query in queries.items():
            self.db.execute(f"CREATE MATERIALIZED VIEW {prefix}_{name} AS {query}")
            self._views[f"{prefix}_{name}"] = in_spark.get(name) or translated(query)

    def wrong_views(self) -> tuple[dict[str, str], set[str]]:
        """Views that differ from Spark's answer, each with how; and the names of those that hold rows."""
        distinct = {query: f"v{number}" for number, query in enumerate(dict.fromkeys(self._views.values()))}
        expected = self.mirror.answers({name: query for query, name in distinct.items()})
        actual = collect({name: self.db.table(name) for name in self._views})
        wrong = {}
        for name, query in self._views.items():
            if told := difference(actual[name], expected[distinct[query]]):
                wrong[name] = told
        return wrong, {name for name, rows in actual.items() if any(value is not None for row in rows for value in row)}

    def _at_once(self, changes: Sequence[Change]) -> None:
        # Statements on one table keep their order; tables do not wait for each other.
        def run(of_table: Iterable[Change]) -> None:
            session = self.db.session()
            for change in of_table:
                match change:
                    case Insert():
                        session.insert(change.table, change.rows)
                    case Update():
                        assignments = ", ".join(f"{name} = {value}" for name, value in change.columns.items())
                        session.execute(f"UPDATE {change.table} SET {assignments} WHERE {change.where}")
                    case Delete():
                        session.execute(f"DELETE FROM {change.table} WHERE {change.where}")

        grouped = itertools.groupby(sorted(changes, key=lambda each: each.table), key=lambda each: each.table)
        work = [list(each) for _, each in grouped]
        with ThreadPoolExecutor(len(work)) as pool:
            list(pool.map(run, work))


# --- comparing -------------------------------------------------------------------------------------------

# Spark keeps 6 digits of a quotient of decimals where we keep 18.
RELATIVE = 1e-6
ABSOLUTE = 1e-5


def difference(actual: Sequence[Row], expected: Sequence[Row]) -> str | None:
    """How two answers differ as multisets of rows, or None. Numbers of any type are compared as numbers."""
    left, right = sorted(map(_split, actual), key=repr), sorted(map(_split, expected), key=repr)
    if [words for words, _ in left] != [words for words, _ in right]:
        return f"found {len(actual)} rows: {_few(actual)}\nexpected {len(expected)} rows: {_few(expected)}"
    for (words, ours), (_, theirs) in zip(left, right, strict=True):
        if not all(math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE) for a, b in zip(ours, theirs, strict=True)):
            return f"{words}: found {ours}, expected {theirs}"
    return None


def _split(row: Row) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """A row's texts and its numbers."""
    numbers = tuple(float(value) for value in row if isinstance(value, (int, float, Decimal)))
    return tuple("#" if isinstance(value, (int, float, Decimal)) else str(value) for value in row), numbers


def _few(rows: Sequence[Row]) -> str:
    return "; ".join(map(str, sorted(rows, key=repr)[:5]))
