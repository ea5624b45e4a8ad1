"""What every operator works with: a Spark session, the versions of relations, and the way in and out of storage."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import expr
from sqlglot import exp

from seiche.config import Config
from seiche.metrics import EngineMetrics
from seiche.model import EPOCH, OP, VNODE, Epoch, RelationId, RelationSchema, Segment, physical_ms
from seiche.plan.algebra import Plan, Scan, TemporalFilter, temporal_filters
from seiche.plan.choice import MEASURED, Costs
from seiche.query import (
    Scope,
    is_local,
    is_too_large,
    local_rows,
    open_scope,
    to_arrow,
    to_arrow_within_limits,
    without_inference,
)
from seiche.storage.among import can_list
from seiche.storage.changes import Changes, arrow_schema, consolidate, local_frame, spark_ddl, vnode_sql
from seiche.storage.relation import RelationReader
from seiche.storage.segments import SegmentWriter
from seiche.storage.versions import RelationVersion, Versions
from seiche.storage.vnodes import vnodes_of
from seiche.stream.marks import read_watermark
from seiche.stream.predicates import LOOKUP_LIST_MAX, key_predicate
from seiche.stream.temporal import MOMENTS_MAX, Asked, Crossing, Horizons, Moments, micros
from seiche.types import SqlType

FAILED = "_failed"
DOUBT = "_doubt"


@dataclass(slots=True)
class Failures:
    """How many rows of a step made an expression fail, which gave NULL instead."""

    rows: int = 0
    _watched: list[Observation] = field(default_factory=list)

    def add(self, rows: int) -> None:
        self.rows += rows

    def watch(self, frame: DataFrame) -> DataFrame:
        """The frame without `_failed` and the rows that are there for it alone; `settle` counts what went by."""
        seen = Observation()
        self._watched.append(seen)
        counted = frame.observe(seen, expr(f"coalesce(sum(`{FAILED}`), 0) AS n"))
        return counted.filter(f"`{OP}` <> 0").drop(FAILED)

    def forget(self) -> None:
        """What watched frames have told does not count: they are computed again."""
        self._watched.clear()

    def settle(self) -> None:
        """Adds what watched frames have told, now that they were computed."""
        while self._watched:
            self.add(_counted(self._watched.pop()))


@dataclass(slots=True)
class Doubts:
    """Whether a frame that was made on an assumption holds rows for which that is wrong."""

    _watched: list[Observation] = field(default_factory=list)

    def watch(self, frame: DataFrame) -> DataFrame:
        """The frame without `_doubt`; `settle` tells whether that was true for any of its rows."""
        seen = Observation()
        self._watched.append(seen)
        return frame.observe(seen, expr(f"count_if(`{DOUBT}`) AS n")).drop(DOUBT)

    def settle(self) -> bool:
        """Whether watched frames were wrong, now that they were computed."""
        told, self._watched = [_counted(each) for each in self._watched], []
        return any(told)


def _counted(seen: Observation) -> int:
    told = seen._jo.getRow()  # without a column where Spark knew that there are no rows
    return int(told.getLong(0)) if told.length() else 0


@dataclass(slots=True)
class Limits:
    """What the driver may hold of one relation's changes; anything larger stays with the executors. And how far a
    recursion may go before it is taken for endless.

    They are system parameters, so they may change while the engine runs.
    """

    inline_rows_max: int
    inline_bytes_max: int
    recursion_rounds_max: int
    recursion_rows_max: int

    @classmethod
    def of(cls, config: Config) -> Limits:
        return cls(**{each.name: getattr(config, each.name) for each in fields(cls)})

    def follow(self, config: Config) -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(config, each.name))


@dataclass(frozen=True, slots=True)
class Runtime:
    spark: SparkSession
    versions: Versions
    reader: RelationReader
    writer: SegmentWriter
    limits: Limits
    horizons: Horizons = field(default_factory=Horizons)
    metrics: EngineMetrics = field(default_factory=EngineMetrics)
    cores: int = 1  # tasks that Spark runs at a time
    tasks: int | None = None  # at most so many write a large result; None: as Spark sees fit
    costs: Costs = MEASURED

    @contextmanager
    def scope(self) -> Iterator[Scope]:
        """Names for frames in SQL text, gone when the block ends."""
        with open_scope(self.spark) as scope:
            yield scope

    def spread(self, frame: DataFrame) -> DataFrame:
        """The frame with at most as many tasks as the job may have."""
        return frame if self.tasks is None else frame.coalesce(self.tasks)

    def is_small(self, *changes: Changes) -> bool:
        """Whether changes are few enough for their results to be expected on the driver."""
        return all(each.table is not None for each in changes) and (
            sum(each.rows for each in changes) <= self.limits.inline_rows_max
        )

    def crossing(self, plan: TemporalFilter, before: Epoch, old_ms: int, new_ms: int, *, ask: bool = True) -> Crossing:
        """How many rows of a filter's input may cross its bounds between two times.

        Without `ask` neither files are opened nor Spark is asked, and what is not known counts as many rows.
        """
        if old_ms == new_ms:
            return Crossing.NONE
        assert isinstance(plan.input, Scan)
        version = self.versions.at(plan.input.relation, before)

        def values(value: exp.Expr, low: int) -> Moments:
            return self._moments(version, value, low)

        def greatest(segment: Segment, column: str) -> int | None:
            return self._greatest(segment, version.schema.column(column).file_name)

        asked = Asked(lambda segment: self.writer.remembered(segment, version.schema), self.moment)
        if ask:
            asked = replace(asked, greatest=greatest, values=values)
        return self.horizons.crossing(plan, version, old_ms, new_ms, asked)

    def watermark(self, relation: RelationId, epoch: Epoch) -> int | None:
        """The watermark that a relation holds at an epoch: a number, or microseconds since 1970. None before rows."""
        return read_watermark(self.reader, self.versions.at(relation, epoch))

    def _greatest(self, segment: Segment, column: str) -> int | None:
        value = self.reader.greatest(segment, column)
        return None if value is None else int(micros(pa.array([value]))[0])

    def moment(self, constant: str) -> int | None:
        with self.scope() as scope:
            value = f"unix_micros(cast({constant} as timestamp))"
            found = to_arrow(scope.sql(f"SELECT {value} AS m FROM VALUES (1)"))["m"][0].as_py()
        return None if found is None else int(found)

    def _moments(self, version: RelationVersion, value: exp.Expr, low: int) -> Moments:
        """The next moments of a relation's rows, in their order."""
        text, type_ = value.sql("spark"), value.meta["sql_type"]
        assert isinstance(type_, SqlType)
        later = f"({text}) >= cast(timestamp_micros({low}) as {type_.spark})"
        with self.scope() as scope:
            rows = self.reader.weighted(version, scope.view, later)
            moments = f"SELECT unix_micros(cast({text} as timestamp)) AS m FROM ({rows}) AS x"
            found = to_arrow(scope.sql(f"{moments} ORDER BY m LIMIT {MOMENTS_MAX + 1}"))
        listed: Moments = found["m"].to_numpy()
        return listed

    def collect(self, frame: DataFrame) -> pa.Table | None:
        """The frame's rows on the driver, or None when they are more than the driver may hold."""
        table = to_arrow_within_limits(frame)
        return table if table is not None and table.nbytes <= self.limits.inline_bytes_max else None

    def emit(
        self,
        relation: RelationId,
        schema: RelationSchema,
        frame: DataFrame,
        epoch: Epoch,
        *,
        small: bool,
        failures: Failures | None = None,
    ) -> Changes | None:
        """Consolidates and writes the changes of one epoch; None when they cancel to nothing.

        `frame` has the stored columns, `_vnode` and `_op`, and `_failed` where failures are counted.
        """
        if small:
            table = self.collect(frame)
            if table is not None:
                changes = self.emit_table(relation, schema, self.count_failures(table, failures), epoch)
                if changes is None or changes.rows != table.num_rows:
                    return changes
                if not is_local(frame):
                    return changes
                named = [*schema.names, VNODE, OP]  # nothing cancelled, so these are the changes
                return replace(changes, frame=lambda: local_rows(frame).select(*named))
        if failures is not None and FAILED in frame.columns:
            failures.add(frame.filter(f"`{FAILED}` > 0 AND `{OP}` >= 0").count())
        names = ", ".join(f"`{name}`" for name in (*schema.names, VNODE))
        with self.scope() as scope:
            net = scope.sql(
                f"SELECT {names}, cast(sum(`{OP}`) as tinyint) AS `{OP}` FROM {scope.view(frame)}"
                f" GROUP BY {names} HAVING sum(`{OP}`) <> 0"
            )
            net = without_inference(net)
        return self.written(relation, schema, self.writer.write_frame(relation, schema, self.spread(net), epoch))

    def count_failures(self, table: pa.Table, failures: Failures | None) -> pa.Table:
        """The rows without the count of failures among them."""
        if FAILED not in table.column_names:
            return table
        if failures is not None:
            failures.add(int(pc.sum(pc.if_else(pc.greater_equal(table[OP], 0), table[FAILED], 0)).as_py() or 0))
        return table.filter(pc.not_equal(table[OP], 0)).drop_columns([FAILED])

    def emit_table(
        self, relation: RelationId, schema: RelationSchema, table: pa.Table, epoch: Epoch, *, fresh: bool = False
    ) -> Changes | None:
        """As `emit`, for rows on the driver."""
        net = consolidate(shape(table, schema), schema.columns, key=schema.key)
        if net.num_rows == 0:
            return None
        segment = self.writer.write_table(relation, schema, net, epoch, fresh=fresh)
        self.versions.stage([segment])
        stamped = self.writer.load(segment, schema)
        return Changes(relation, schema, segment.rows, (segment,), stamped)

    def emit_rows(self, relation: RelationId, schema: RelationSchema, frame: DataFrame, epoch: Epoch) -> Changes | None:
        """Writes many rows with keys that never lived before; `frame` has the stored columns."""
        return self.keep_rows(relation, schema, self.write_rows(relation, schema, frame, epoch), epoch)

    def write_rows(self, relation: RelationId, schema: RelationSchema, frame: DataFrame, epoch: Epoch) -> list[Segment]:
        """The first half of `emit_rows`: nothing is staged yet."""
        return self.writer.write_bare(relation, schema, self.spread(frame), epoch)

    def keep_rows(
        self, relation: RelationId, schema: RelationSchema, segments: list[Segment], epoch: Epoch
    ) -> Changes | None:
        """The second half of `emit_rows`."""
        rows = sum(segment.rows for segment in segments)
        if not segments or rows > self.limits.inline_rows_max:
            return self.written(relation, schema, segments)
        # They turned out to be few: as one whole segment they cost the next readers less.
        table = self.writer.read_bare(segments, schema)
        numbers = vnodes_of(table, schema)
        if numbers is None:
            frame = local_frame(self.spark, table, spark_ddl(schema, ()))
            table = to_arrow(frame.selectExpr("*", f"{vnode_sql(schema)} AS `{VNODE}`"))
        else:
            table = table.append_column(VNODE, numbers)
        table = table.append_column(OP, pa.array(np.ones(table.num_rows, np.int8)))
        self.writer.remove(segments)
        return self.emit_table(relation, schema, table, epoch, fresh=True)

    def written(self, relation: RelationId, schema: RelationSchema, segments: list[Segment]) -> Changes | None:
        """Stages segments that executors wrote."""
        if not segments:
            return None
        self.versions.stage(segments)
        rows = sum(segment.rows for segment in segments)
        table = None
        few = rows <= self.limits.inline_rows_max and sum(s.bytes for s in segments) <= self.limits.inline_bytes_max
        if few and not any(segment.bare for segment in segments):
            table = pa.concat_tables([self.writer.load(segment, schema) for segment in segments])
        return Changes(relation, schema, rows, tuple(segments), table)

    def changes_between(self, relation: RelationId, after: Epoch, until: Epoch) -> Changes | None:
        """The net changes of several committed epochs, read back from the change log."""
        segments = self.versions.between(relation, after, until)
        if not segments:
            return None
        schema = self.versions.schema(relation)
        log = self.reader.log(schema, segments, after, until)
        if log is None:
            return None
        if sum(segment.rows for segment in segments) <= self.limits.inline_rows_max:
            table = self.collect(log)
            if table is not None:
                net = consolidate(shape(table, schema), schema.columns)
                if net.num_rows == 0:
                    return None
                stamp = pa.array([until] * net.num_rows, pa.int64())
                return Changes(relation, schema, net.num_rows, (), net.append_column(EPOCH, stamp))
        rows = sum(segment.rows for segment in segments)
        if len({epoch for segment in segments for epoch in (segment.epoch_lo, segment.epoch_hi)}) == 1:
            return Changes(relation, schema, rows, segments)  # the changes of one epoch are net as they are
        return Changes(relation, schema, rows, segments, None, lambda: _net(log, schema))


def _net(log: DataFrame, schema: RelationSchema) -> DataFrame:
    """A change log of several epochs as one step: of a key what left first and what appeared last."""
    keys = [f"`{name}`" for name in schema.key]
    stored = ", ".join(f"`{name}`" for name in (*schema.names, VNODE, OP))
    rows = log.selectExpr(*keys, f"struct({stored}) AS `_row`", f"struct(`{EPOCH}`, `{OP}`) AS `_at`")
    ends = rows.groupBy(*keys).agg(expr("min_by(`_row`, `_at`) AS `_first`"), expr("max_by(`_row`, `_at`) AS `_last`"))
    both = f"array(if(`_first`.`{OP}` < 0, `_first`, null), if(`_last`.`{OP}` > 0, `_last`, null))"
    return ends.selectExpr(f"inline(filter({both}, each -> each IS NOT NULL))")


def shape(table: pa.Table, schema: RelationSchema) -> pa.Table:
    """The table with the columns and types of a segment, `_epoch` aside."""
    target = pa.schema([field for field in arrow_schema(schema) if field.name != EPOCH])
    return table.select(target.names).cast(target)


class EpochReads:
    """The relations as a step of a job sees them: before it, after it, and what changed in between."""

    looks_up = True  # whether stored rows may be looked up one relation after the other

    def __init__(
        self,
        runtime: Runtime,
        scope: Scope,
        before: Epoch,
        after: Epoch,
        changes: dict[RelationId, Changes],
    ) -> None:
        self.runtime = runtime
        self.scope = scope
        self.before = before
        self.after = after
        self.changes = changes
        self._views: dict[tuple[RelationId, Epoch, bool, str | None], str] = {}
        self._crossings: list[tuple[TemporalFilter, Crossing]] = []
        self._had: list[tuple[tuple[RelationId, Epoch, dict[str, pa.Array]], pa.Table]] = []

    def changed(self, relation: RelationId) -> Changes | None:
        return self.changes.get(relation)

    def now_ms(self, epoch: Epoch) -> int:
        """What now() says at an epoch."""
        return physical_ms(epoch)

    def watermark(self, relation: RelationId, epoch: Epoch) -> int | None:
        """What a watermark's relation says at an epoch, see `Runtime.watermark`."""
        return self.runtime.watermark(relation, epoch)

    def crossing(self, plan: TemporalFilter) -> Crossing:
        """How many rows the clock may move across a filter's bounds in this step."""
        if all(each != plan for each, _ in self._crossings):
            times = self.now_ms(self.before), self.now_ms(self.after)
            self._crossings.append((plan, self.runtime.crossing(plan, self.before, *times)))
        return next(found for each, found in self._crossings if each == plan)

    def is_small(self, plan: Plan) -> bool:
        """Whether few rows change, by what the inputs say and by the clock."""
        few = all(self.crossing(each) is not Crossing.MANY for each in temporal_filters(plan))
        return few and self.runtime.is_small(*self.changes.values())

    def weighted(self, relation: RelationId, epoch: Epoch, predicate: str | None = None) -> str:
        """The relation at an epoch, weighted, as something to select from."""
        name = (relation, epoch, False, predicate)
        if name not in self._views:
            version = self.runtime.versions.at(relation, epoch)
            self._views[name] = f"({self.runtime.reader.weighted(version, self.scope.view, predicate)})"
        return self._views[name]

    def index_for(self, relation: RelationId, limited: Collection[str], needed: Collection[str]) -> RelationId | None:
        """An index to read at `before` instead of a relation, where few values of some columns are wanted.

        Only for an input that this step leaves as it is: the index of one that changes may not have followed yet.
        """
        versions = self.runtime.versions
        if not versions.indexes or relation in self.changes or self.after <= versions.committed_epoch:
            return None
        found = versions.index_for(relation, limited, needed, self.before)
        return found.relation if found is not None else None

    def is_near(self, relation: RelationId) -> bool:
        """Whether rows of a relation can be looked up without a Spark job."""
        return self.runtime.reader.is_near(self.runtime.versions.at(relation, self.after))

    def rows_of(self, relation: RelationId) -> int:
        """About how many rows a relation has."""
        return self.runtime.versions.at(relation, self.after).rows_estimate

    def having(
        self, relation: RelationId, epoch: Epoch, columns: Sequence[str], wanted: Mapping[str, pa.ChunkedArray]
    ) -> pa.Table | None:
        """The rows at an epoch with one of the wanted values in each of some columns, on the driver, with `_op`.

        None when they are more than the driver may hold.
        """
        version = self.runtime.versions.at(relation, epoch)
        values = {name: pc.drop_null(pc.unique(each)) for name, each in wanted.items()}
        if not self.is_near(relation):
            index = self.index_for(relation, list(values), [*columns, *values])
            version = version if index is None else self.runtime.versions.at(index, self.before)
        for asked, found in self._had:
            if asked[:2] == (version.relation, version.epoch) and set(columns) <= set(found.column_names):
                if asked[2].keys() == values.keys() and all(asked[2][name].equals(values[name]) for name in values):
                    return found
        types = {name: version.schema.column(name).type for name in values}
        if any(len(each) > LOOKUP_LIST_MAX and not can_list(types[name]) for name, each in values.items()):
            return None

        def condition_of(wanted: Mapping[str, pa.Array]) -> str | None:
            listed = {name: each for name, each in wanted.items() if not can_list(types[name])}
            limits = [
                key_predicate(name, types[name], pa.chunked_array([each]), listed_max=LOOKUP_LIST_MAX)
                for name, each in listed.items()
            ]
            return " AND ".join(each for each in limits if each) or None

        try:
            found = self.runtime.reader.having(version, columns, values, condition_of)
        except Exception as error:
            if is_too_large(error):
                return None
            raise
        if found.nbytes > self.runtime.limits.inline_bytes_max:
            return None
        self._had.append(((version.relation, version.epoch, values), found))
        return found

    def alive(self, relation: RelationId, epoch: Epoch) -> pa.Table | None:
        """All rows of a small relation at an epoch, on the driver, with `_op`; None for any other."""
        version = self.runtime.versions.at(relation, epoch)
        rows = self.runtime.reader.rows(version)
        return None if rows is None else consolidate(rows, version.schema.columns)

    def exact(self, relation: RelationId, epoch: Epoch) -> str:
        """The name of a view of the relation's rows at an epoch."""
        name = (relation, epoch, True, None)
        if name not in self._views:
            version = self.runtime.versions.at(relation, epoch)
            self._views[name] = self.scope.view(self._exact_rows(version))
        return self._views[name]

    def _exact_rows(self, version: RelationVersion) -> DataFrame:
        return self.runtime.reader.exact(version)

    def delta(self, relation: RelationId) -> str:
        """The name of a view of the relation's changes."""
        name = (relation, Epoch(-1), False, None)
        if name not in self._views:
            self._views[name] = self.scope.view(self.runtime.reader.changes(self.changes[relation]))
        return self._views[name]
