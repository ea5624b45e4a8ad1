"""What a view should hold: Spark's answer for its query over the tables' rows, and how two answers are compared.

The rows come from a test's own model of the tables, never from the engine's storage. The query is bound as views
are bound (an expression that fails is NULL), then it is plain batch SQL in a Spark session of its own: none of
the rules for changes, no stored state, no segments take part. A view over views is evaluated through their
queries, down to the tables.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from seiche.catalog.catalog import Catalog
from seiche.query import render, typed
from seiche.session.names import CatalogNames
from seiche.sql.bind import Settings, bind_query
from seiche.sql.parse import parse_query
from seiche.stream import attempts
from tests.sparks import INTERPRETED

Row = tuple[Any, ...]

_CONF = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    **INTERPRETED,
}
_numbers = itertools.count(1)


class Oracle:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark.newSession()
        for name, value in _CONF.items():
            self._spark.conf.set(name, value)
        attempts.register(self._spark)

    def answers(
        self, catalog: Catalog, tables: Mapping[str, pa.Table], queries: Mapping[str, str]
    ) -> dict[str, list[Row]]:
        """The rows of every view. `queries` are in the order of creation: a view comes after what it reads."""
        prefix = f"o{next(_numbers)}_"
        sources: dict[str, str] = {}
        frames: dict[str, DataFrame] = {}

        def register(name: str, frame: DataFrame) -> None:
            view = prefix + name
            frame.createOrReplaceTempView(view)
            sources[f"r{catalog.find((name,)).id}"] = view

        try:
            for name, rows in tables.items():
                register(name, self._spark.createDataFrame(rows))
            for name, query in queries.items():
                settings = Settings(timezone="UTC", now_ms=None, strict=False)
                bound = bind_query(parse_query(query).tree, CatalogNames(catalog, ("public",)), settings)
                sql = render(bound.ast.transform(_tolerant), sources.__getitem__)
                frame = typed(self._spark.sql(sql), bound)
                frames[name] = frame.toDF(*(column.name for column in bound.columns))
                register(name, frames[name])
            return collect(frames)
        finally:
            for view in sources.values():
                self._spark.catalog.dropTempView(view)


def _tolerant(node: exp.Expr) -> exp.Expr:
    """In a view a sum that outgrows its type is NULL, as every other expression that fails."""
    return exp.Anonymous(this="try_sum", expressions=[node.this]) if isinstance(node, exp.Sum) else node


def collect(frames: Mapping[str, DataFrame]) -> dict[str, list[Row]]:
    """The rows of many small frames of one session, in one Spark action."""
    if not frames:
        return {}
    names = list(frames)
    types = {name: frames[name].schema.simpleString() for name in names}
    united: DataFrame | None = None
    for name in names:
        columns = [
            f"struct({', '.join(f'`{c}`' for c in frames[name].columns)}) AS `{each}`"
            if each == name
            else f"cast(null as {types[each]}) AS `{each}`"
            for each in names
        ]
        part = frames[name].selectExpr(f"'{name}' AS `_from`", *columns)
        united = part if united is None else united.union(part)
    assert united is not None
    found: dict[str, list[Row]] = {name: [] for name in names}
    for row in united.toArrow().to_pylist():
        found[row["_from"]].append(tuple(row[row["_from"]].values()))
    return found


# --- comparing -------------------------------------------------------------------------------------------

# Sums of floats may differ in their last bits, as the order of adding does. Near zero, where a sum cancels, that
# is told from the size of what was added, which is at most a few thousand here.
RELATIVE = 1e-9
ABSOLUTE = 1e-9


def difference(actual: Sequence[Row], expected: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of `actual` that should not be there, and rows of `expected` that are missing, as multisets."""
    have, want = Counter(map(_canonical, actual)), Counter(map(_canonical, expected))
    extra, missing = list((have - want).elements()), list((want - have).elements())
    if not extra or not missing:
        return extra, missing
    # What is left may still agree but for the last bits of a float.
    candidates: dict[Row, list[Row]] = defaultdict(list)
    for row in missing:
        candidates[_without_floats(row)].append(row)
    unmatched = []
    for row in extra:
        near = candidates[_without_floats(row)]
        partner = next((each for each in near if _close(row, each)), None)
        if partner is None:
            unmatched.append(row)
        else:
            near.remove(partner)
    return unmatched, [row for near in candidates.values() for row in near]


def _canonical(value: Any) -> Any:
    match value:
        case float() if math.isnan(value):
            return _NAN
        case dict():
            return tuple((name, _canonical(each)) for name, each in value.items())
        case list() | tuple():
            return tuple(_canonical(each) for each in value)
        case _:
            return value


class _Nan(float):
    """NaN that equals itself."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Nan)

    def __hash__(self) -> int:
        return 7

    def __repr__(self) -> str:
        return "NaN"


_NAN = _Nan("nan")


def _without_floats(row: Row) -> Row:
    return tuple("a float" if isinstance(each, float) else each for each in row)


def _close(a: Row, b: Row) -> bool:
    return all(
        x == y
        or (
            not isinstance(x, _Nan)
            and not isinstance(y, _Nan)
            and math.isclose(x, y, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
        )
        for x, y in zip(a, b, strict=True)
        if isinstance(x, float)
    )
