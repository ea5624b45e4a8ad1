"""Writing segments, and the memory of recent ones.

Small changes are written by the driver as one file and remembered, so that the next epochs need not open
files to read them; large ones are written by the executors. A segment exists for readers only after the
checkpoint that registers it.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from seiche.errors import StorageUnavailable
from seiche.model import EPOCH, OP, VNODE, Column, DataFile, Epoch, RelationId, RelationSchema, Segment
from seiche.storage.changes import EXTRA_TYPES, STORED_EXTRA, arrow_schema, number_sql, vnode_sql
from seiche.storage.evolution import constant, from_files, in_files, to_files
from seiche.storage.files import DataFolder, new_segment_path, segment_folder
from seiche.storage.parquet import ROW_GROUP_BYTES, hardly_repeating, without_dictionaries, write_parquet

log = logging.getLogger(__name__)

_Written = tuple[str, int, int]  # path, rows and bytes of a file


class SegmentCache:
    """The most recently written or read small segments, up to a number of bytes."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._lock = threading.Lock()
        self._tables: OrderedDict[str, pa.Table] = OrderedDict()

    def get(self, path: str) -> pa.Table | None:
        with self._lock:
            table = self._tables.get(path)
            if table is not None:
                self._tables.move_to_end(path)
            return table

    def put(self, path: str, table: pa.Table) -> None:
        with self._lock:
            if path in self._tables:
                return
            self._tables[path] = table
            self._bytes += table.nbytes
            while self._bytes > self._bytes_max and len(self._tables) > 1:
                _, old = self._tables.popitem(last=False)
                self._bytes -= old.nbytes

    def drop(self, path: str) -> None:
        with self._lock:
            table = self._tables.pop(path, None)
            if table is not None:
                self._bytes -= table.nbytes


class SegmentWriter:
    """Writes changes of one epoch. What it returns is not registered anywhere yet."""

    def __init__(self, folder: DataFolder, cache: SegmentCache) -> None:
        self._folder = folder
        self._cache = cache
        self._plain: dict[RelationId, frozenset[str]] = {}  # columns whose values hardly repeat, as files tell

    def write_table(
        self, relation: RelationId, schema: RelationSchema, table: pa.Table, epoch: Epoch, *, fresh: bool = False
    ) -> Segment:
        """Writes rows that are on the driver; `table` has the stored columns, `_vnode` and `_op`."""
        stamped = table.append_column(EPOCH, pa.repeat(pa.scalar(epoch, pa.int64()), table.num_rows))
        return self.write_stamped(relation, schema, stamped, epoch, epoch, fresh=fresh)

    def write_stamped(
        self,
        relation: RelationId,
        schema: RelationSchema,
        table: pa.Table,
        epoch_lo: Epoch,
        epoch_hi: Epoch,
        *,
        fresh: bool = False,
    ) -> Segment:
        """Writes rows that know their epochs already."""
        shaped = table.select(arrow_schema(schema).names).cast(arrow_schema(schema)).combine_chunks()
        path = new_segment_path(relation, epoch_hi)
        stored = to_files(shaped, schema)
        size = self._folder.write_table(path, stored)
        self._cache.put(path, stored)
        return Segment(relation, path, epoch_lo, epoch_hi, shaped.num_rows, size, fresh)

    def write_frame(
        self, relation: RelationId, schema: RelationSchema, frame: DataFrame, epoch: Epoch, *, fresh: bool = False
    ) -> list[Segment]:
        """Lets the executors write; `frame` has the stored columns, `_vnode` and `_op`."""
        stamped = frame.withColumn(EPOCH, F.expr(number_sql(epoch)))
        return self.write_frame_stamped(relation, schema, stamped, epoch, epoch, fresh=fresh)

    def write_frame_stamped(
        self,
        relation: RelationId,
        schema: RelationSchema,
        frame: DataFrame,
        epoch_lo: Epoch,
        epoch_hi: Epoch,
        *,
        fresh: bool = False,
    ) -> list[Segment]:
        """As `write_frame`, for rows that carry `_epoch` themselves."""
        folder = new_segment_path(relation, epoch_hi, folder=True)
        shaped = frame.selectExpr(*stored_columns(schema))
        # The first files have dictionaries, which tells for which columns they pay. Those after them go without: to
        # make dictionaries takes a quarter of the time that a file takes, and a log is soon folded.
        if relation in self._plain:
            found = self._write(shaped, folder, **{"parquet.enable.dictionary": "false"})
        else:
            found = self._learn(relation, self._write(shaped, folder))
        return [Segment(relation, path, epoch_lo, epoch_hi, rows, size, fresh) for path, rows, size in found]

    def write_bare(self, relation: RelationId, schema: RelationSchema, frame: DataFrame, epoch: Epoch) -> list[Segment]:
        """Lets the executors write many rows with keys that never lived before; `frame` has the stored columns.

        The files are made like those of a base, so that a fold may take them over as they are.
        """
        folder = new_segment_path(relation, epoch, bare=True)
        vnode = f"cast({vnode_sql(schema)} as {EXTRA_TYPES[VNODE]}) AS `{VNODE}`"
        shaped = frame.selectExpr(*stored_columns(schema, extra=()), vnode)
        options = {"parquet.block.size": ROW_GROUP_BYTES, **without_dictionaries(self._plain.get(relation, ()))}
        found = self._learn(relation, self._write(shaped, folder, **options))
        return [Segment(relation, path, epoch, epoch, rows, size, fresh=True) for path, rows, size in found]

    def _write(self, frame: DataFrame, folder: str, **options: Any) -> list[_Written]:
        """Lets the executors write a folder; what is not empty of it."""
        found = []
        with whole_or_nothing(self._folder, folder):
            write_parquet(frame, self._folder.location(folder), **options)
            for path in self._folder.parts(folder):
                rows, size = self._folder.footer(path)
                if rows:
                    found.append((path, rows, size))
                else:
                    self._folder.delete(path)
        return found

    def _learn(self, relation: RelationId, found: list[_Written]) -> list[_Written]:
        """Remembers for which columns dictionaries did not pay in what was written."""
        if found:
            path, _, _ = max(found, key=lambda each: each[1])
            known = self._plain.get(relation, frozenset())
            self._plain[relation] = known | hardly_repeating(self._folder.metadata(path))
        return found

    def join(self, schema: RelationSchema, segments: list[Segment]) -> Segment:
        """Puts the changes of several small segments into one; they stay readable epoch by epoch."""
        tables = [self.load(segment, schema) for segment in segments]
        whole = pa.concat_tables(tables)
        return self.write_stamped(
            segments[0].relation,
            schema,
            whole,
            min(segment.epoch_lo for segment in segments),
            max(segment.epoch_hi for segment in segments),
            fresh=all(segment.fresh for segment in segments),
        )

    def load(self, segment: Segment, schema: RelationSchema) -> pa.Table:
        """A small segment as Arrow, remembered from now on."""
        table = self._cache.get(segment.path)
        if table is None:
            # Files that Spark wrote differ from ours in what may be NULL and in the names of nested fields.
            table = in_files(self._folder.read_table(segment.path), schema)
            self._cache.put(segment.path, table)
        return from_files(table, schema)

    def read_bare(self, segments: Iterable[Segment], schema: RelationSchema) -> pa.Table:
        """The stored columns of small bare segments that were just written."""
        tables = [in_files(self._folder.read_table(segment.path), schema, ()) for segment in segments]
        return pa.concat_tables(tables).rename_columns(list(schema.names))

    def load_base(self, file: DataFile, schema: RelationSchema) -> pa.Table:
        """A small file of a base as Arrow, shaped like a segment of the epoch before all others, and remembered."""
        table = self._cache.get(file.path)
        if table is None:
            read = in_files(self._folder.read_table(file.path), schema, (VNODE,))
            signs = pa.array(np.ones(read.num_rows, np.int8))
            epochs = pa.array(np.zeros(read.num_rows, np.int64))
            table = read.append_column(OP, signs).append_column(EPOCH, epochs)
            self._cache.put(file.path, table)
        return from_files(table, schema)

    def base_columns(self, file: DataFile, schema: RelationSchema, names: Sequence[str]) -> pa.Table:
        """Some columns of a file of a base as Arrow, each remembered."""
        columns = {name: schema.column(name) for name in names}
        known = {name: self._cache.get(_place(file, column)) for name, column in columns.items()}
        if any(each is None for each in known.values()):
            read = self._folder.read_columns(file.path, [column.file_name for column in columns.values()])
            for name, column in columns.items():
                held = column.file_name in read.column_names
                values = read[column.file_name] if held else constant(column, file.rows)
                known[name] = pa.table([values.cast(column.type.arrow)], names=[column.file_name])
                self._cache.put(_place(file, column), known[name])
        return pa.table([table.column(0) for table in known.values() if table is not None], names=list(known))

    def is_remembered(self, segment: Segment) -> bool:
        return self._cache.get(segment.path) is not None

    def remembered(self, segment: Segment, schema: RelationSchema) -> pa.Table | None:
        table = self._cache.get(segment.path)
        return None if table is None else from_files(table, schema)

    def forget(self, segment: Segment) -> None:
        self._cache.drop(segment.path)

    def remove(self, segments: Iterable[Segment]) -> None:
        """Deletes what was written and will never be registered; nobody may be reading it.

        What cannot be deleted now the next start sweeps.
        """
        for segment in segments:
            self.forget(segment)
            folder = segment.path.rpartition("/")[0]
            try:
                self._folder.delete(segment.path)
                if folder != segment_folder(segment.relation):
                    self._folder.remove_empty_folders(folder)
            except StorageUnavailable as error:
                log.info("%s; the next start sweeps it", error.message)


def _place(file: DataFile, column: Column) -> str:
    """Where a column of a file is remembered. A column or a field that the file lacks is what the schema says, so that
    is told."""
    fields = column.type.spark if column.type.is_nested else ""
    return f"{file.path}#{column.file_name}#{column.missing}#{fields}"


@contextmanager
def whole_or_nothing(folder: DataFolder, path: str) -> Iterator[None]:
    """Around the writing of a folder of files: one that fails leaves none of them.

    A task that Spark has not stopped yet may still write one; that, and what cannot be deleted now, is swept later.
    """
    try:
        yield
    except BaseException:
        with suppress(StorageUnavailable):
            folder.delete_folder(path)
        raise


def stored_columns(schema: RelationSchema, extra: Sequence[str] = STORED_EXTRA) -> list[str]:
    """Select expressions that give a frame exactly the columns and types of a segment."""
    parts = [(column.name, column.type.spark, column.file_name) for column in schema.columns]
    parts += [(name, EXTRA_TYPES[name], name) for name in extra]
    return [f"cast(`{name}` as {type_}) as `{stored}`" for name, type_, stored in parts]
