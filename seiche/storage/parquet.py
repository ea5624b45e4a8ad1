"""How executors write Parquet files: small row groups for a base, and dictionaries only where values repeat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from seiche.errors import DiskFull, StorageUnavailable

# How large a row group of a base is, in bytes as they are written.
ROW_GROUP_BYTES = 2 * 1024 * 1024

# How many rows a fold puts into one at most: numbers that hardly differ take a byte each as they are written, and
# sixteen when they are read. Fewer rows would slow scans of narrow relations down.
ROW_GROUP_ROWS = 65_536

# How Parquet calls values that are written one after the other.
PLAIN = "PLAIN"

# A dictionary that takes more than one part in so many of its column's bytes saves hardly any, and takes as long to
# make as one that does. In a row group of fewer rows every dictionary looks large.
_SHARE_OF_DICTIONARY = 4
_ROWS_THAT_TELL = 10_000

# The folder is new and nobody looks into it before it is registered: no second rename, no marker file.
_WRITE_OPTIONS = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


def write_parquet(frame: DataFrame, location: str, **options: Any) -> None:
    """Lets the executors write a folder of Parquet files."""
    try:
        frame.write.options(**_WRITE_OPTIONS, **options).mode("error").parquet(location)
    except Exception as error:  # a Spark job's failure arrives as one of many classes
        if "No space left on device" in str(error):
            raise DiskFull(
                "changes cannot be written",
                detail="No space is left on the device.",
                hint="Free some space; the database keeps its last state and goes on once there is room.",
            ) from error
        if "java.io.IOException" in str(error) or "FileAlreadyExists" in str(error):
            raise StorageUnavailable("changes cannot be written", detail=str(error).splitlines()[0]) from error
        raise


def hardly_repeating(metadata: pq.FileMetaData) -> frozenset[str]:
    """The columns for which Parquet's writer has given up a dictionary, or was told not to begin one, and those whose
    dictionary does not pay.

    It begins one in every row group, and gives it up when a page is full. A small row group has one page, so that all
    values are put into a dictionary for nothing.
    """
    tells = metadata.row_group(0).num_rows >= _ROWS_THAT_TELL
    return frozenset(
        each.path_in_schema
        for each in _first_columns(metadata)
        if PLAIN in each.encodings or (tells and _is_mostly_dictionary(each))
    )


def _is_mostly_dictionary(column: pq.ColumnChunkMetaData) -> bool:
    if not column.has_dictionary_page:
        return False
    size = column.data_page_offset - column.dictionary_page_offset
    return bool(size * _SHARE_OF_DICTIONARY > column.total_compressed_size)


def has_dictionaries(metadata: pq.FileMetaData) -> bool:
    return any(each.has_dictionary_page for each in _first_columns(metadata))


def _first_columns(metadata: pq.FileMetaData) -> list[pq.ColumnChunkMetaData]:
    first = metadata.row_group(0)
    return [first.column(number) for number in range(first.num_columns)]


def without_dictionaries(columns: Iterable[str]) -> dict[str, str]:
    """Tells Parquet's writer not to begin dictionaries for some columns."""
    return {f"parquet.enable.dictionary#{name}": "false" for name in columns}
