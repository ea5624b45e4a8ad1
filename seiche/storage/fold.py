"""Folding: merging a relation's segments into a new base, beside the stream.

The new base is the relation at one committed epoch, cut into slices of vnodes (one file each, about a million
rows) and sorted by the stream key within a slice: a narrow range of keys then touches one page of each file,
and a range of vnodes touches few files. Row groups are small, so that the driver can read the few that a lookup
needs. The cost is amortised: a fold starts when the log has grown to a share of the base. It ends with a Base value;
making it current is the checkpoint's business.

Where the log only adds rows, the files of the base stay as they are and new ones join them: the cost is then that of
the new rows, however large the relation is. When a base has many more files than its rows need, it is written anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import functions as F

from seiche.model import VNODE, VNODES, Base, DataFile
from seiche.storage.base import IcebergBases
from seiche.storage.evolution import named_as_in_files
from seiche.storage.files import DataFolder, is_part, new_base_folder
from seiche.storage.relation import RelationReader
from seiche.storage.row_groups import ROW_GROUP_BYTES
from seiche.storage.segments import whole_or_nothing, write_parquet
from seiche.storage.versions import RelationVersion

ROWS_PER_SLICE = 1_000_000

# Times as many rows a slice may have where they are not spread evenly.
CROWDED = 2

# How many files a base may have, beside one for each slice, before a fold makes them fewer.
FILES_SPARE = 16

# How Parquet calls values that are written one after the other.
PLAIN = "PLAIN"


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
    if not version.base.files or not version.only_grows or len(version.base.files) > 2 * slices + FILES_SPARE:
        return None
    log = replace(version, base=replace(version.base, files=()))
    return [*version.base.files, *_written(log, reader, folder)]


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
        options = {"parquet.block.size": ROW_GROUP_BYTES, **_without_dictionaries(version, folder)}
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


def _without_dictionaries(version: RelationVersion, folder: DataFolder) -> dict[str, str]:
    """Tells Parquet's writer not to begin dictionaries for columns where it has given one up before.

    It begins one in every row group, and gives it up when a page is full. A small row group has one page, so that all
    values would be put into dictionaries for nothing. What the writer did the largest file of the base tells, or else
    the first files of the log: later ones have no dictionaries at all.
    """
    largest = max(version.base.files, key=lambda each: each.rows, default=None)
    written = largest or next((each for each in version.segments if is_part(each.path)), None)
    if written is None:
        return {}
    metadata = folder.metadata(written.path)
    first = metadata.row_group(0)
    columns = [first.column(number) for number in range(first.num_columns)]
    if largest is None and not any(each.has_dictionary_page for each in columns):
        return {}  # nobody has tried
    return {f"parquet.enable.dictionary#{each.path_in_schema}": "false" for each in columns if PLAIN in each.encodings}
