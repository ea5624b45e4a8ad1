"""Folding: merging a relation's segments into a new base, beside the stream.

The new base is the relation at one committed epoch, cut into slices of vnodes (one file each, about a million
rows) and sorted by the stream key within a slice: a narrow range of keys then touches one page of each file,
and a range of vnodes touches few files. Row groups are small, so that the driver can read the few that a lookup
needs. The cost is amortised: a fold starts when the log has grown to a share of the base. It ends with a Base value;
making it current is the checkpoint's business.

Where the log only adds rows, the files of the base stay as they are and new ones join them: the cost is then that of
the new rows, however large the relation is. Large files of the log that are like those of a base are not even written
again: they change their owner. When a base has many more files than its rows need, it is written anew.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow.parquet as pq
from pyspark.sql import functions as F

from seiche.model import VNODE, VNODES, Base, DataFile, Epoch, RelationSchema
from seiche.storage.base import IcebergBases
from seiche.storage.evolution import named_as_in_files
from seiche.storage.files import DataFolder, is_part, new_base_folder
from seiche.storage.parquet import (
    ROW_GROUP_BYTES,
    ROW_GROUP_ROWS,
    hardly_repeating,
    has_dictionaries,
    without_dictionaries,
    write_parquet,
)
from seiche.storage.relation import RelationReader
from seiche.storage.segments import whole_or_nothing
from seiche.storage.versions import RelationVersion

ROWS_PER_SLICE = 1_000_000

# Times as many rows a slice may have where they are not spread evenly.
CROWDED = 2

# A file of the log with at least so many rows may become one of the base.
ROWS_TAKEN_OVER = ROWS_PER_SLICE // 4

# How many files a base may have before a fold makes them fewer: so many for each slice, and some more.
FILES_PER_SLICE = ROWS_PER_SLICE // ROWS_TAKEN_OVER
FILES_SPARE = 16


@dataclass(frozen=True, slots=True)
class FoldPolicy:
    """When a fold pays: the log holds at least `rows_min` rows and `ratio` of the base's."""

    ratio: float
    rows_min: int

    def wants(self, version: RelationVersion) -> bool:
        return version.log_rows >= max(self.rows_min, self.ratio * version.base_rows)


def fold(version: RelationVersion, reader: RelationReader, folder: DataFolder, bases: IcebergBases) -> Base:
    """Writes the relation at `version.epoch` as a base and commits it to Iceberg."""
    files = _grown(version, reader, folder)
    if files is None:
        files = _written(version, reader, folder)
    snapshot = bases.replace_files(version.relation, version.schema, [file.path for file in files])
    return Base(version.relation, snapshot, version.epoch, tuple(files))


def _grown(version: RelationVersion, reader: RelationReader, folder: DataFolder) -> list[DataFile] | None:
    """The base's own files and new ones for rows that only came; None where a row left, or files became too many."""
    slices = version.rows_estimate // ROWS_PER_SLICE
    if not version.only_grows or len(version.base.files) > FILES_PER_SLICE * slices + FILES_SPARE:
        return None
    taken = _taken_over(version, folder)
    if not version.base.files and not taken:
        return None
    paths = {file.path for file in taken}
    rest = tuple(segment for segment in version.segments if segment.path not in paths)
    log = replace(version, base=replace(version.base, files=()), segments=rest)
    return [*version.base.files, *taken, *(_written(log, reader, folder) if rest else ())]


def _taken_over(version: RelationVersion, folder: DataFolder) -> list[DataFile]:
    """Files of the log that a base may have as they are.

    Each is large, and in the order of the key as far as the bounds of its row groups tell. Rows of one epoch that would
    make many slices are written in slices: a file that has all vnodes is read whole for each piece of a backfill.
    """
    rows: Counter[Epoch] = Counter()
    for segment in version.segments:
        rows[segment.epoch_hi] += segment.rows
    return [
        DataFile(segment.path, segment.rows, segment.bytes, 0, VNODES - 1)
        for segment in version.segments
        if segment.bare
        and segment.rows >= ROWS_TAKEN_OVER
        and rows[segment.epoch_hi] <= CROWDED * ROWS_PER_SLICE
        and is_like_a_base(folder.metadata(segment.path), version.schema)
    ]


def is_like_a_base(metadata: pq.FileMetaData, schema: RelationSchema) -> bool:
    """Whether a file tells the vnodes of its rows, and has them in the order of the key's first column."""
    names = [column.path for column in metadata.schema]
    first = schema.column(schema.key[0]).file_name
    if VNODE not in names or first not in names:
        return False
    number = names.index(first)
    bounds = []
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(number).statistics
        if statistics is None or not statistics.has_min_max:
            return False
        bounds.append((statistics.min, statistics.max))
    return all(before[1] <= after[0] for before, after in pairwise(bounds))


def _written(version: RelationVersion, reader: RelationReader, folder: DataFolder) -> list[DataFile]:
    """All rows of a version in new files."""
    width = slice_width(version)
    slices = VNODES // width
    target = new_base_folder(version.relation, version.epoch)
    rows = reader.exact(version)
    slice_of = F.expr(f"cast(`{VNODE}` div {width} as int)")
    sliced = rows.repartitionById(slices, slice_of) if slices > 1 else rows.coalesce(1)
    sliced = sliced.sortWithinPartitions(*(f"`{name}`" for name in version.schema.key))
    files = []
    with whole_or_nothing(folder, target):
        without = without_dictionaries(_hardly_repeating(version, folder))
        small = {"parquet.block.size": ROW_GROUP_BYTES, "parquet.block.row.count.limit": ROW_GROUP_ROWS}
        options = {**small, **without}
        write_parquet(named_as_in_files(sliced, version.schema, (VNODE,)), folder.location(target), **options)
        for path in folder.parts(target):
            count, size = folder.footer(path)
            if count == 0:
                folder.delete(path)
                continue
            # Spark names its files part-<task>-…; the task's number is the slice.
            number = int(path.rpartition("/")[2].split("-")[1])
            files.append(DataFile(path, count, size, number * width, (number + 1) * width - 1))
    return files


def slice_width(version: RelationVersion) -> int:
    """How many vnodes a file of the next base has: fewer where the rows of the last one crowd in some of them."""
    width = VNODES
    while width > 1 and version.rows_estimate * width > VNODES * ROWS_PER_SLICE:
        width //= 2
    densest = max((file.rows / (file.vnode_hi - file.vnode_lo + 1) for file in version.base.files), default=0.0)
    while width > 1 and densest * width > CROWDED * ROWS_PER_SLICE:
        width //= 2
    return width


def _hardly_repeating(version: RelationVersion, folder: DataFolder) -> frozenset[str]:
    """Columns that are better off without dictionaries: what the writer did tells the largest file of the base, or else
    the first files of the log, since later ones may have no dictionaries at all."""
    largest = max(version.base.files, key=lambda each: each.rows, default=None)
    written = largest or next((each for each in version.segments if is_part(each.path)), None)
    if written is None:
        return frozenset()
    metadata = folder.metadata(written.path)
    if largest is None and not has_dictionaries(metadata):
        return frozenset()  # nobody has tried
    return hardly_repeating(metadata)
