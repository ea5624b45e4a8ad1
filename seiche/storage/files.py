"""The data folder: where a file goes, and the few things the driver itself does with files.

    <root>/r<relation>/seg/<epoch>-<process>-<n>.parquet          a segment written by the driver
    <root>/r<relation>/seg/<epoch>-<process>-<n>/part-*.parquet   segments written by executors; their folder's name
                                                                  ends in -bare where they hold stored columns only
    <root>/r<relation>/base/<epoch>-<process>-<n>/part-*.parquet  files of a base
    <root>/r<relation>/metadata/...                               Iceberg's own

Paths in the metadata database are relative to the root, so that a data folder can be moved. The root is a
local folder or the URI of an object store that both Spark and Arrow reach.
"""

from __future__ import annotations

import errno
import itertools
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from seiche.errors import DiskFull, FolderNotUsable, StorageUnavailable
from seiche.model import BARE, Epoch, RelationId


class DataFolder:
    """Reads, writes and lists files below one root."""

    def __init__(self, root: str) -> None:
        if "://" in root:
            self._fs, self._base = pafs.FileSystem.from_uri(root)
            self.uri = root.rstrip("/")
            self._local = False
        else:
            path = os.path.abspath(root)
            self._fs, self._base = pafs.LocalFileSystem(), path
            self.uri = path
            self._local = True
        self._base = self._base.rstrip("/")
        with _surroundings(f'data folder "{root}" cannot be written', FolderNotUsable):
            self._fs.create_dir(self._base, recursive=True)
            if self._local and not os.access(self._base, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "permission denied", self._base)

    def location(self, path: str) -> str:
        """The address of a file as Spark wants it."""
        return f"{self.uri}/{path}"

    @property
    def filesystem(self) -> pafs.FileSystem:
        """What Arrow reads files by, at their `absolute` paths; it can be sent elsewhere."""
        return self._fs

    def absolute(self, path: str) -> str:
        return f"{self._base}/{path}"

    def relative(self, location: str) -> str:
        """The inverse of `location`, for addresses that Spark or Iceberg gave back."""
        bare = location.removeprefix("file://").removeprefix("file:")
        return bare.removeprefix(self.uri).lstrip("/")

    def write_table(self, path: str, table: pa.Table) -> int:
        """Writes one Parquet file that is either complete and on disk when this returns, or not there."""
        with _surroundings(f'file "{path}" cannot be written', StorageUnavailable):
            target = self.absolute(path)
            parent = target.rpartition("/")[0]
            if self._local and not os.path.isdir(parent):
                os.makedirs(parent, exist_ok=True)
            try:
                with self._fs.open_output_stream(target) as sink:
                    pq.write_table(table, sink, compression="zstd", use_dictionary=False, store_schema=False)
                if self._local:
                    _fsync(target)
            except BaseException:
                with suppress(OSError):  # half a file; what cannot be deleted now the next start sweeps
                    self._fs.delete_file(target)
                raise
            return int(self._fs.get_file_info(target).size)

    def read_table(self, path: str) -> pa.Table:
        with _surroundings(f'file "{path}" cannot be read', StorageUnavailable):
            return pq.read_table(self.absolute(path), filesystem=self._fs, partitioning=None)

    def read_columns(self, path: str, names: Sequence[str]) -> pa.Table:
        """Those of the columns that a Parquet file has."""
        fact = f'file "{path}" cannot be read'
        with _surroundings(fact, StorageUnavailable), self._fs.open_input_file(self.absolute(path)) as source:
            file = pq.ParquetFile(source)
            held = set(file.schema_arrow.names)
            return file.read(columns=[name for name in names if name in held])

    def footer(self, path: str) -> tuple[int, int]:
        """Rows and bytes of a Parquet file."""
        with _surroundings(f'file "{path}" cannot be read', StorageUnavailable):
            info = self._fs.get_file_info(self.absolute(path))
        return self.metadata(path).num_rows, int(info.size)

    def metadata(self, path: str) -> pq.FileMetaData:
        """What a Parquet file says about itself at its end."""
        fact = f'file "{path}" cannot be read'
        with _surroundings(fact, StorageUnavailable), self._fs.open_input_file(self.absolute(path)) as source:
            return pq.ParquetFile(source).metadata

    def read_group(self, path: str, metadata: pq.FileMetaData, group: int, names: Sequence[str]) -> pa.Table:
        """Columns of one row group of a Parquet file whose metadata is known."""
        fact = f'file "{path}" cannot be read'
        with _surroundings(fact, StorageUnavailable), self._fs.open_input_file(self.absolute(path)) as source:
            return pq.ParquetFile(source, metadata=metadata).read_row_group(group, columns=list(names))

    def column_bounds(self, path: str, column: str) -> tuple[Any, Any] | None:
        """The least and greatest value of a column as the file's own statistics tell; None when they do not."""
        metadata = self.metadata(path)
        ends: list[tuple[Any, Any]] = []
        for group in (metadata.row_group(index) for index in range(metadata.num_row_groups)):
            found = [group.column(index) for index in range(group.num_columns)]
            statistics = next((c.statistics for c in found if c.path_in_schema == column), None)
            if statistics is None or not statistics.has_min_max:
                return None
            try:
                ends.append((statistics.min, statistics.max))
            except (OverflowError, ValueError):  # a date outside of Python's calendar
                return None
        return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None

    def parts(self, folder: str) -> list[str]:
        """The Parquet files that executors left in a folder; what Hadoop puts beside them is removed."""
        found = self.walk(folder)
        for path in found:
            if not path.endswith(".parquet"):
                self.delete(path)
        return sorted(path for path in found if path.endswith(".parquet"))

    def walk(self, folder: str = "") -> list[str]:
        """All files below a folder, relative to the root."""
        selector = pafs.FileSelector(f"{self._base}/{folder}".rstrip("/"), allow_not_found=True, recursive=True)
        with _surroundings(f'folder "{folder}" cannot be listed', StorageUnavailable):
            infos = self._fs.get_file_info(selector)
        return [info.path[len(self._base) + 1 :] for info in infos if info.type == pafs.FileType.File]

    def folders(self) -> list[str]:
        """The names of the folders directly below the root."""
        with _surroundings("data folder cannot be listed", StorageUnavailable):
            infos = self._fs.get_file_info(pafs.FileSelector(self._base, allow_not_found=True))
        return [info.base_name for info in infos if info.type == pafs.FileType.Directory]

    def delete(self, path: str) -> None:
        """Deletes a file; one that is gone already is fine."""
        try:
            self._fs.delete_file(self.absolute(path))
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageUnavailable(f'file "{path}" cannot be deleted', detail=str(error)) from error

    def delete_folder(self, folder: str) -> None:
        """Deletes a folder with all that is in it; one that is gone already is fine."""
        try:
            self._fs.delete_dir(f"{self._base}/{folder}")
        except FileNotFoundError:
            return
        except OSError as error:
            raise StorageUnavailable(f'folder "{folder}" cannot be deleted', detail=str(error)) from error

    def remove_empty_folders(self, folder: str) -> None:
        """Removes folders that deletions left empty (local folders only; object stores have none).

        Only for folders that nobody writes to meanwhile.
        """
        if not self._local:
            return
        for parent, _, _ in os.walk(f"{self._base}/{folder}", topdown=False):
            if not os.listdir(parent):
                os.rmdir(parent)


def relation_folder(relation: RelationId) -> str:
    return f"r{relation}"


def segment_folder(relation: RelationId) -> str:
    return f"{relation_folder(relation)}/seg"


def new_segment_path(relation: RelationId, epoch: Epoch, *, folder: bool = False, bare: bool = False) -> str:
    """A path never used before. Names sort by epoch, which helps whoever looks into the folder."""
    if bare:
        return f"{segment_folder(relation)}/{_new_name(epoch)}{BARE.rstrip('/')}"
    return f"{segment_folder(relation)}/{_new_name(epoch)}" + ("" if folder else ".parquet")


def segment_epoch_sql(path: str) -> str:
    """The epoch that a file of a segment's folder was written for, as SQL text over a column with its path."""
    return f"regexp_extract(`{path}`, '/seg/([0-9]+)-[^/]*/[^/]*$', 1)"


def new_base_folder(relation: RelationId, epoch: Epoch) -> str:
    return f"{relation_folder(relation)}/base/{_new_name(epoch)}"


def is_part(path: str) -> bool:
    """Whether executors wrote a file, and not the driver."""
    return path.rpartition("/")[2].startswith("part-")


def written_by_another_process(path: str) -> bool:
    """Whether a segment or a file of a base was named by a process other than this one."""
    parts = path.split("/")
    return len(parts) > 2 and parts[1] in ("seg", "base") and f"-{_PROCESS}-" not in parts[2]


_PROCESS = secrets.token_hex(4)
_numbers = itertools.count(1)


def _new_name(epoch: Epoch) -> str:
    return f"{epoch:020d}-{_PROCESS}-{next(_numbers):x}"


def _fsync(path: str) -> None:
    for target in (path, os.path.dirname(path)):
        handle = os.open(target, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def _surroundings(fact: str, kind: type[StorageUnavailable] | type[FolderNotUsable]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error):
            raise DiskFull(
                fact,
                detail=str(error),
                hint="Free some space; the database keeps its last state and goes on once there is room.",
            ) from error
        raise kind(fact, detail=str(error), hint="Check that the folder exists and may be written.") from error
