"""A relation at an epoch as a Spark frame.

Two readings of the same files:

    weighted   base rows with `_op` = +1, and every row of the log with its own `_op`. Summed up by value this
               is the relation. Linear operators and sums need no more, so they never pay for an overlay.
    exact      one row for each row alive: the base without the keys that the log mentions, and the last
               change of each of those keys if it is an appearance.

The log of recent small segments is in the driver's memory and goes to Spark as a local relation: no file is
opened for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from seiche.model import EPOCH, OP, VNODE, Base, DataFile, Epoch, RelationId, RelationSchema, Segment
from seiche.storage.among import among, can_list
from seiche.storage.bounds import KeyBounds
from seiche.storage.changes import (
    EXTRA_TYPES,
    STORED_EXTRA,
    Changes,
    arrow_schema,
    consolidate,
    latest,
    local_frame,
    spark_ddl,
    vnode_sql,
)
from seiche.storage.evolution import read_files
from seiche.storage.files import DataFolder, segment_epoch_sql
from seiche.storage.membership import is_among
from seiche.storage.row_groups import RowGroups
from seiche.storage.segments import SegmentWriter
from seiche.storage.versions import RelationVersion

# A log with at most this many rows is overlaid on the driver.
DRIVER_LOG_ROWS_MAX = 200_000

# A relation with at most this many rows in its log, and none elsewhere, is read as rows of the driver.
NEAR_ROWS_MAX = 10_000

# Files with at most this many bytes, and as many rows as above, are read on the driver when a lookup needs them.
DRIVER_FILES_BYTES_MAX = 4 * 1024 * 1024

# A base with at most this many bytes, and few enough rows, is read on the driver by the columns that are needed.
NEAR_BASE_BYTES_MAX = 32 * 1024 * 1024

# More values of a key than these a lookup hands to Spark as data.
NAMED_MAX = 100

# Bare segments of at most this many epochs are read epoch by epoch, which tells Spark the epoch as a constant. A log
# that a pin has held back for long would become a plan with a part for each of hundreds of them.
BARE_EPOCHS_MAX = 8
_PATH = "_segment_path"

# Segments to be read whole, and segments of which some epochs are wanted.
_Stored = tuple[list[Segment], list[Segment]]


class RelationReader:
    """Turns versions into frames."""

    def __init__(
        self,
        spark: SparkSession,
        folder: DataFolder,
        segments: SegmentWriter,
        bounds: KeyBounds,
        groups: RowGroups,
        nearby_rows_max: int,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._segments = segments
        self._bounds = bounds
        self._groups = groups
        self._nearby_rows_max = nearby_rows_max
        self._lock = threading.Lock()
        self._bases: dict[RelationId, tuple[Base, RelationSchema, DataFrame]] = {}

    def settle(self) -> None:
        """Waits until nothing is read ahead for later lookups. For tests and for tools."""
        self._groups.settle()

    def weighted(self, version: RelationVersion, view: Callable[[DataFrame], str], predicate: str | None = None) -> str:
        """The query for the stored columns, `_vnode`, `_op` and `_epoch` (0 for rows of the base).

        `predicate` is a Spark condition on stored columns that the caller needs no other rows than. It is text and
        not a frame, so that Spark analyses it only once, as a part of the caller's query; `view` names frames in it.
        """
        columns = ", ".join(f"`{name}`" for name in (*version.schema.names, VNODE))
        where = f" WHERE {predicate}" if predicate else ""
        parts = []
        if version.base.files:
            signs = f"cast(1 as tinyint) AS `{OP}`, cast(0 as bigint) AS `{EPOCH}`"
            parts.append(f"SELECT {columns}, {signs} FROM {view(self._base(version))}{where}")
        log = self._log(version.schema, version.segments, version.base.fold_epoch, version.epoch)
        if log is None and not parts:
            log = self.local(arrow_schema(version.schema).empty_table(), version.schema)
        if log is not None:
            parts.append(f"SELECT {columns}, `{OP}`, `{EPOCH}` FROM {view(log)}{where}")
        return " UNION ALL ".join(parts)

    def exact(
        self,
        version: RelationVersion,
        predicate: str | None = None,
        *,
        epochs: bool = False,
        vnodes: tuple[int, int] | None = None,
    ) -> DataFrame:
        """The rows alive: stored columns and `_vnode`; with `epochs` also `_epoch`, 0 for rows of the base.

        Where `predicate` holds for none but the `vnodes` from the first number up to the second, rows of the log that
        are in others need not be handed to Spark.
        """
        names = [f"`{name}`" for name in (*version.schema.names, VNODE, *([EPOCH] if epochs else []))]
        near = self._near(version)
        if near is not None:
            frame = self.local(near, version.schema).selectExpr(*names)
            return frame.filter(predicate) if predicate else frame
        ground, log = _ground(version)
        grounds = self._ground_frames(version, ground, epochs=epochs, vnodes=vnodes)
        frames = [frame.selectExpr(*names) for frame in grounds]
        if log:
            overlay, keys, nulls = self._overlay(version, log, vnodes)
            if overlay is not None:
                assert keys is not None
                frames = [with_keys(frame, keys, version.schema, "left_anti", nulls=nulls) for frame in frames]
                frames.append(overlay.filter(f"`{OP}` = 1").selectExpr(*names))
        if not frames:  # epochs before the first change
            return self.local(arrow_schema(version.schema).empty_table(), version.schema).selectExpr(*names)
        return _union([frame.filter(predicate) if predicate else frame for frame in frames])

    def lookup(self, version: RelationVersion, wanted: pa.Table, condition: str | None, *, exact: bool) -> pa.Table:
        """The weighted rows with a wanted key, on the driver: shaped like a segment, `_epoch` 0 for rows of the base.

        `wanted` has the key's columns, each row once. `condition` holds for the rows with these keys, and with `exact`
        for no others. A key of several columns may bring rows along whose values are wanted, but not together.
        """
        shape = arrow_schema(version.schema)
        after, until = version.base.fold_epoch, version.epoch
        near, far = self._split(version.schema, version.segments, after, until, load=True)
        values = {name: wanted[name].combine_chunks() for name in wanted.column_names}
        found = [_having(near, values)] if near is not None else []
        frames = []
        if _is_small(version.base.files):
            found += [_having(self._segments.load_base(file, version.schema), values) for file in version.base.files]
        elif (around := self._groups.around(version, [*version.schema.names, VNODE], values)) is not None:
            rows = _signed(_having(around, values))
            found.append(rows.append_column(EPOCH, pa.array(np.zeros(rows.num_rows, np.int64))))
        else:
            frames.append(self._base(version).selectExpr("*", f"1 AS `{OP}`", f"0 AS `{EPOCH}`"))
        frames += self._far(version.schema, far, after, until)
        if frames:
            frame = _union([each.select(*shape.names) for each in frames])
            if len(values) == 1 and wanted.num_rows > NAMED_MAX and _can_list(version.schema, values):
                condition, exact = None, True
                frame = self._among(frame, version.schema, values)
            frame = frame.filter(condition) if condition else frame
            if not exact:
                types = ", ".join(f"`{name}` {version.schema.column(name).type.spark}" for name in wanted.column_names)
                keys = F.broadcast(local_frame(self._spark, wanted, types))
                frame = frame.join(keys, _same_key(version.schema, frame, keys, wanted), "left_semi")
            found.append(frame.toArrow().cast(shape))
        return pa.concat_tables(found) if found else shape.empty_table()

    def is_near(self, version: RelationVersion) -> bool:
        """Whether rows of a relation are found without Spark: all of it is in memory, or worth being there."""
        bytes_ = sum(file.bytes for file in version.base.files)
        few = version.rows_estimate <= self._nearby_rows_max and bytes_ <= NEAR_BASE_BYTES_MAX
        return few and all(self._is_at_hand(segment) for segment in version.segments)

    def _is_at_hand(self, segment: Segment) -> bool:
        return not segment.bare and (_is_small([segment]) or self._segments.is_remembered(segment))

    def having(
        self,
        version: RelationVersion,
        columns: Sequence[str],
        wanted: Mapping[str, pa.Array],
        condition_of: Callable[[Mapping[str, pa.Array]], str | None],
    ) -> pa.Table:
        """The rows with wanted values in some columns, on the driver: at least `columns`, and `_op`.

        Signs of the base and the log are added up where Arrow can tell rows apart, so that what left is not there.
        Each column is looked at by itself, so that rows may come along whose values are wanted, but not together.
        `condition_of` values that cannot be handed to Spark as data holds for the rows with them, and for few others.
        """
        schema = version.schema
        names = list(dict.fromkeys([*columns, *wanted, *schema.key]))
        after, until = version.base.fold_epoch, version.epoch
        log, far = self._split(schema, version.segments, after, until, load=True)
        found, frames = [], [frame.select(*names, OP) for frame in self._far(schema, far, after, until)]
        if log is not None:
            mentioned = _having(log, wanted)
            if not frames and len(wanted) == 1 and tuple(wanted) == schema.key:
                mentioned, wanted = _settled(mentioned, schema, wanted)
            found.append(mentioned.select([*names, OP]))
        if version.base.files and self.is_near(version):
            tables = [self._segments.base_columns(file, schema, names) for file in version.base.files]
            found.append(_signed(_having(pa.concat_tables(tables), wanted)))
        elif version.base.files:
            if not frames and schema.key and schema.key[0] in wanted:
                wanted = {**wanted, schema.key[0]: self._bounds.in_base(version, wanted[schema.key[0]])}
            some = all(len(values) for values in wanted.values())
            around = self._groups.around(version, names, wanted) if some else None
            if around is not None:
                found.append(_signed(_having(around, wanted)))
            elif some:
                frames.append(self._base(version).selectExpr(*(f"`{name}`" for name in names), f"1 AS `{OP}`"))
        target = pa.schema([arrow_schema(schema).field(name) for name in [*names, OP]])
        if frames and all(len(values) for values in wanted.values()):
            frame, condition = _union(frames), condition_of(wanted)
            frame = self._among(frame.filter(condition) if condition else frame, schema, wanted)
            found.append(frame.toArrow())
        rows = pa.concat_tables([each.cast(target) for each in found]) if found else target.empty_table()
        held = [schema.column(name) for name in names]
        return consolidate(rows, held, ()) if all(column.type.is_hashable for column in held) else rows

    def rows(self, version: RelationVersion) -> pa.Table | None:
        """All weighted rows of a small relation on the driver, shaped like a segment; None for any other."""
        if not _is_small((*version.base.files, *version.segments)):
            return None
        found = [self._segments.load_base(file, version.schema) for file in version.base.files]
        log, far = self._split(version.schema, version.segments, version.base.fold_epoch, version.epoch, load=True)
        if any(far):
            return None
        found += [log] if log is not None else []
        return pa.concat_tables(found) if found else arrow_schema(version.schema).empty_table()

    def _among(self, frame: DataFrame, schema: RelationSchema, wanted: Mapping[str, pa.Array]) -> DataFrame:
        """The rows with wanted values, as far as values are of types that can be listed."""
        for name, values in wanted.items():
            type_ = schema.column(name).type
            if can_list(type_):
                frame = frame.filter(among(self._spark, name, type_, values))
        return frame

    def log(self, schema: RelationSchema, segments: Sequence[Segment], after: Epoch, until: Epoch) -> DataFrame | None:
        """The changes of the epochs (after, until], as they happened; None when there are none."""
        return self._log(schema, segments, after, until)

    def greatest(self, segment: Segment, column: str) -> object | None:
        """The greatest value of a column in a segment's file; None when the file does not tell."""
        bounds = self._folder.column_bounds(segment.path, column)
        return None if bounds is None else bounds[1]

    def changes(self, changes: Changes) -> DataFrame:
        """Changes as a frame with the stored columns, `_vnode`, `_op` and `_epoch`."""
        if changes.frame is not None:
            return changes.frame().selectExpr("*", f"cast({changes.segments[0].epoch_hi} as bigint) AS `{EPOCH}`")
        if changes.table is not None:
            return self.local(changes.table, changes.schema)
        return _union(self._files(changes.schema, changes.segments))

    def local(self, table: pa.Table, schema: RelationSchema) -> DataFrame:
        """Rows on the driver as a frame; `table` is shaped like a segment."""
        shaped = table.select(arrow_schema(schema).names).cast(arrow_schema(schema))
        return local_frame(self._spark, shaped, spark_ddl(schema))

    # ------------------------------------------------------------------------------------------------

    def _base(self, version: RelationVersion) -> DataFrame:
        """The base as a frame. It is kept: a base stays for many epochs, and making the frame lists its files."""
        with self._lock:
            known = self._bases.get(version.relation)
        if known is not None and known[:2] == (version.base, version.schema):
            return known[2]
        locations = [self._folder.location(file.path) for file in version.base.files]
        frame = read_files(self._spark, locations, version.schema, (VNODE,))
        with self._lock:
            self._bases[version.relation] = (version.base, version.schema, frame)
        return frame

    def forget(self, relation: RelationId) -> None:
        """Lets go of the frame of a relation that was dropped."""
        with self._lock:
            self._bases.pop(relation, None)

    def _log(
        self,
        schema: RelationSchema,
        segments: Sequence[Segment],
        after: Epoch,
        until: Epoch,
        vnodes: tuple[int, int] | None = None,
    ) -> DataFrame | None:
        remembered, stored = self._split(schema, segments, after, until)
        frames = [self.local(_inside(remembered, vnodes), schema)] if remembered is not None else []
        frames += self._far(schema, stored, after, until)
        return _union(frames) if frames else None

    def _far(self, schema: RelationSchema, segments: _Stored, after: Epoch, until: Epoch) -> list[DataFrame]:
        """The part of a log that is read from files."""
        whole, clipped = segments
        inside = f"`{EPOCH}` > {after} and `{EPOCH}` <= {until}"
        return [*self._files(schema, whole), *(frame.filter(inside) for frame in self._files(schema, clipped))]

    def _files(self, schema: RelationSchema, segments: Sequence[Segment]) -> list[DataFrame]:
        """Segments read from their files, with all columns."""
        frames = []
        whole = [self._folder.location(segment.path) for segment in segments if not segment.bare]
        if whole:
            frames.append(read_files(self._spark, whole, schema, STORED_EXTRA))
        bare: dict[Epoch, list[str]] = {}
        for segment in segments:
            if segment.bare:
                bare.setdefault(segment.epoch_hi, []).append(self._folder.location(segment.path))
        if len(bare) > BARE_EPOCHS_MAX:
            locations = [location for each in bare.values() for location in each]
            frame = read_files(self._spark, locations, schema, (), path=_PATH)
            frames.append(_completed(frame, schema, segment_epoch_sql(_PATH)))
        else:
            for epoch, locations in bare.items():
                frames.append(_completed(read_files(self._spark, locations, schema, ()), schema, str(epoch)))
        return frames

    def _split(
        self, schema: RelationSchema, segments: Sequence[Segment], after: Epoch, until: Epoch, *, load: bool = False
    ) -> tuple[pa.Table | None, _Stored]:
        """Parts the log into rows in memory (clipped to the epochs) and files (whole, and to be clipped).

        With `load`, small files are read into memory first.
        """
        tables: list[pa.Table] = []
        whole: list[Segment] = []
        clipped: list[Segment] = []
        for segment in segments:
            inside = segment.epoch_lo > after and segment.epoch_hi <= until
            table = self._segments.remembered(segment, schema)
            if table is None and load and not segment.bare and _is_small([segment]):
                table = self._segments.load(segment, schema)
            if table is None:
                (whole if inside else clipped).append(segment)
            else:
                tables.append(table if inside else _clip(table, after, until))
        return (pa.concat_tables(tables) if tables else None), (whole, clipped)

    def _ground_frames(
        self,
        version: RelationVersion,
        fresh: Sequence[Segment],
        *,
        epochs: bool = False,
        vnodes: tuple[int, int] | None = None,
    ) -> list[DataFrame]:
        frames = [self._base(version)] if version.base.files else []
        if epochs:
            frames = [frame.selectExpr("*", f"cast(0 as bigint) AS `{EPOCH}`") for frame in frames]
        log = self._log(version.schema, fresh, version.base.fold_epoch, version.epoch, vnodes) if fresh else None
        return [*frames, log] if log is not None else frames

    def _near(self, version: RelationVersion) -> pa.Table | None:
        """The rows alive of a small relation that was never folded, None for any other.

        To find them Spark would need a join, and so a job.
        """
        if version.base.files or version.log_rows > NEAR_ROWS_MAX:
            return None
        log, (whole, clipped) = self._split(
            version.schema, version.segments, version.base.fold_epoch, version.epoch, load=True
        )
        if whole or clipped:
            return None
        if log is None:
            return arrow_schema(version.schema).empty_table()
        if version.schema.append_only:
            return log
        last = _last_changes(log, version.schema)
        return last.filter(pc.equal(last[OP], 1))

    def _overlay(
        self, version: RelationVersion, log: Sequence[Segment], vnodes: tuple[int, int] | None
    ) -> tuple[DataFrame | None, DataFrame | None, bool]:
        """The last change of each key that the log mentions, those keys, and whether NULL may be in one of them."""
        key = [f"`{name}`" for name in version.schema.key]
        if sum(segment.rows for segment in log) <= DRIVER_LOG_ROWS_MAX:
            table = pa.concat_tables([self._segments.load(segment, version.schema) for segment in log])
            table = _inside(_clip(table, version.base.fold_epoch, version.epoch), vnodes)
            if table.num_rows == 0:
                return None, None, False
            overlay = self.local(_last_changes(table, version.schema), version.schema)
            nulls = any(table[name].null_count for name in version.schema.key)
            return overlay, F.broadcast(overlay.selectExpr(*key)), nulls
        frame = self._log(version.schema, log, version.base.fold_epoch, version.epoch)
        assert frame is not None
        order = f"row_number() over (partition by {', '.join(key)} order by `{EPOCH}` desc, `{OP}` desc)"
        overlay = frame.selectExpr("*", f"{order} as _last").filter("_last = 1").drop("_last")
        return overlay, overlay.selectExpr(*key), True


def with_keys(rows: DataFrame, keys: DataFrame, schema: RelationSchema, how: str, *, nulls: bool = True) -> DataFrame:
    """The rows of a relation that have one of some keys (`left_semi`), or none of them (`left_anti`).

    `nulls` tells whether one of the keys may hold NULL: a join that need not look for it is faster.
    """
    renamed = keys.toDF(*(f"_wanted_{index}" for index in range(len(schema.key))))
    condition = F.lit(True)
    for index, name in enumerate(schema.key):
        equal = "<=>" if nulls and schema.column(name).nullable else "="
        condition &= F.expr(f"`{name}` {equal} `_wanted_{index}`")
    return rows.join(renamed, condition, how)


def _ground(version: RelationVersion) -> tuple[list[Segment], list[Segment]]:
    """Parts the segments into those whose rows stand like the base's, and those that overlay them.

    An append-only relation has no overlay at all. In another one, a fresh segment holds keys that never lived
    before, so no earlier change can mention them; later ones do overlay it.
    """
    if version.schema.append_only:
        return list(version.segments), []
    fresh = [segment for segment in version.segments if segment.fresh]
    return fresh, [segment for segment in version.segments if not segment.fresh]


def _inside(rows: pa.Table, vnodes: tuple[int, int] | None) -> pa.Table:
    if vnodes is None:
        return rows
    first, end = vnodes
    return rows.filter(pc.and_(pc.greater_equal(rows[VNODE], first), pc.less(rows[VNODE], end)))


def _completed(rows: DataFrame, schema: RelationSchema, epoch: str) -> DataFrame:
    """Rows of bare segments with the columns that follow."""
    known = (vnode_sql(schema), "1", epoch)
    derived = [
        f"cast({value} as {type_}) AS `{name}`" for (name, type_), value in zip(EXTRA_TYPES.items(), known, strict=True)
    ]
    return rows.selectExpr(*(f"`{name}`" for name in schema.names), *derived)


def _is_small(files: Sequence[Segment | DataFile]) -> bool:
    """Whether files are worth opening on the driver for a lookup: the next one finds them in memory."""
    bytes_ = sum(file.bytes for file in files)
    return bytes_ <= DRIVER_FILES_BYTES_MAX and sum(file.rows for file in files) <= DRIVER_LOG_ROWS_MAX


def _can_list(schema: RelationSchema, wanted: Mapping[str, pa.Array]) -> bool:
    return all(can_list(schema.column(name).type) and not values.null_count for name, values in wanted.items())


def _settled(
    mentioned: pa.Table, schema: RelationSchema, wanted: Mapping[str, pa.Array]
) -> tuple[pa.Table, dict[str, pa.Array]]:
    """What the log says about rows with wanted keys, and the keys that it does not mention.

    The last change of a key tells what there is of it, whatever the base has.
    """
    ((key, values),) = wanted.items()
    last = _last_changes(mentioned, schema)
    others = values.filter(pc.invert(pc.is_in(values, value_set=pc.unique(mentioned[key]))))
    return last.filter(pc.equal(last[OP], 1)), {key: others}


def _having(rows: pa.Table, wanted: Mapping[str, pa.Array]) -> pa.Table:
    """The rows whose columns, each by itself, have a wanted value: few more than those with all of them."""
    for name, theirs in wanted.items():
        mine = rows[name]
        if pa.types.is_floating(theirs.type):  # -0.0 and 0.0 are one value to SQL, and two to Arrow
            mine, theirs = (pc.add(each, pa.scalar(0, theirs.type)) for each in (mine, theirs))
        rows = rows.filter(is_among(mine, theirs))
    return rows


def _signed(rows: pa.Table) -> pa.Table:
    """Rows of a base as rows of a log."""
    return rows.append_column(OP, pa.array(np.ones(rows.num_rows, np.int8)))


def _same_key(schema: RelationSchema, rows: DataFrame, keys: DataFrame, wanted: pa.Table) -> Column:
    condition = F.lit(True)
    for name in schema.key:
        mine, theirs = rows[f"`{name}`"], keys[f"`{name}`"]
        condition &= mine.eqNullSafe(theirs) if wanted[name].null_count else mine == theirs
    return condition


def _last_changes(log: pa.Table, schema: RelationSchema) -> pa.Table:
    """The last change of each key of a log."""
    return latest(log.take(pc.sort_indices(log, sort_keys=[(EPOCH, "ascending"), (OP, "ascending")])), schema)


def _clip(table: pa.Table, after: Epoch, until: Epoch) -> pa.Table:
    return table.filter(pc.and_(pc.greater(table[EPOCH], after), pc.less_equal(table[EPOCH], until)))


def _union(frames: list[DataFrame]) -> DataFrame:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole
