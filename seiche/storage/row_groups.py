"""Rows of a base with wanted values, read by the driver from the few row groups that may hold them.

A base is sorted by its key in each file, and its row groups are small. Values that lie together, like the newest orders
and the oldest ones, are then in a row group or two of each file, and to read these costs a part of what it costs to ask
Spark. Which they are the files' own statistics say. What was read is remembered: the next lookup is often next to it.

Values that are spread over a large base are in more row groups than the driver should read while somebody waits.
Executors look through these (`far_groups`). Where the base changes slowly and there is room for it in memory, the
driver reads them afterwards, beside the epochs, so that the next lookup finds them there: parts and customers are
looked up by keys from all over whatever orders change.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from seiche.errors import StorageUnavailable
from seiche.model import NEIGHBOURS, VNODE, Column, DataFile, RelationSchema, Spread, physical_ms
from seiche.storage.beside import Beside
from seiche.storage.changes import vnode_column
from seiche.storage.column_memory import WHOLE, ColumnMemory, Place, place_of_order
from seiche.storage.evolution import constant
from seiche.storage.far_groups import FarGroups
from seiche.storage.files import DataFolder
from seiche.storage.membership import is_whole
from seiche.storage.packed import Packed, is_packable, joined, packed, width_of
from seiche.storage.versions import RelationVersion
from seiche.storage.vnodes import first_neighbour, vnodes
from seiche.types import Kind

log = logging.getLogger(__name__)

# Footers that are remembered.
FOOTERS_MAX = 1_000

# A base that would be new from end to end in this time, at the pace at which its log grows, is soon folded, into files
# that nobody remembers anything of.
TURNOVER_MS = 5 * 60 * 1000

# What one lookup goes through may take one part in so many of the memory.
SHARE_OF_MEMORY = 2

# The texts of a column of a file are kept as one up to here: Arrow counts their bytes with 31 bits.
COLUMN_BYTES_MAX = 1 << 30

# Types whose values Parquet's statistics order as Python does.
_ORDERED = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.VARCHAR)

_Groups = tuple[int, ...]
_Bounds = tuple[npt.NDArray[Any], npt.NDArray[Any]]  # the least and the greatest value in each row group


@dataclass(frozen=True, slots=True)
class _Footer:
    """Of a file: what Parquet keeps about it, and the bytes of each of its columns in each row group."""

    metadata: pq.FileMetaData
    bytes: tuple[Mapping[str, int], ...]
    bounds: dict[str, _Bounds | None]  # of columns that were asked for
    packed: dict[str, tuple[int, ...]]  # of columns that were asked for: about their bytes in memory, by row group


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Row groups of a file that may hold wanted values, or `WHOLE` for all of it as one; and those values of the column
    that leads that may be in it."""

    file: DataFile
    footer: _Footer
    groups: _Groups
    leading: npt.NDArray[Any] | None

    def sizes(self, columns: Collection[Column]) -> dict[int, int]:
        """By row group: the bytes of these columns, before compression."""
        names = [column.file_name for column in columns]
        bytes_of = self.footer.bytes
        return {group: sum(bytes_of[group].get(name, 0) for name in names) for group in self.groups}

    def only(self, groups: Collection[int]) -> _Chosen:
        return replace(self, groups=tuple(group for group in self.groups if group in groups))

    def whole(self) -> _Chosen:
        return replace(self, groups=(WHOLE,))

    def as_one(self, columns: Collection[Column]) -> _Chosen:
        """All of the file as one, where Arrow can have its columns so."""
        fits = all(sum(_packed_sizes(self.footer, column)) <= COLUMN_BYTES_MAX for column in columns)
        return self.whole() if fits else self

    def bytes_in_memory(self, columns: Collection[Column]) -> int:
        """About how many bytes these columns take once they are read and packed."""
        found = [_packed_sizes(self.footer, column) for column in columns]
        return sum(sum(each) if group == WHOLE else each[group] for each in found for group in self.groups)


@dataclass(frozen=True, slots=True)
class _Asked:
    """Columns that are asked for, each with its name among the places of the memory; and the one of them by which rows
    are found, where one can be."""

    columns: Mapping[str, Column]
    lead: str | None

    @staticmethod
    def of(columns: Sequence[Column], lead: str | None) -> _Asked:
        return _Asked({_kept_as(column): column for column in columns}, lead)

    def places(self, file: DataFile, group: int) -> list[Place]:
        return [(file.path, group, kept) for kept in self.columns]

    def needed(self, file: DataFile, group: int) -> list[Place]:
        """What has to be in memory for a lookup to read nothing and to put nothing in order."""
        places = self.places(file, group)
        leading = zip(places, self.columns.values(), strict=True)
        return places + [place_of_order(place) for place, column in leading if column.name == self.lead]


@dataclass(frozen=True, slots=True)
class _Placed:
    """Wanted values of a column of the key, in order, and the vnodes from `low` to `high` that each may be in."""

    name: str
    values: npt.NDArray[Any]
    low: npt.NDArray[np.int16]
    high: npt.NDArray[np.int16]

    def inside(self, file: DataFile) -> npt.NDArray[Any]:
        return self.values[(self.high >= file.vnode_lo) & (self.low <= file.vnode_hi)]


class RowGroups:
    """Safe to use from several threads. `bytes_max` are what a lookup may read, as they are before compression; with 0
    files are left alone, and executors do not look through row groups either."""

    def __init__(
        self, folder: DataFolder, memory: ColumnMemory, bytes_max: int, far_groups: FarGroups | None = None
    ) -> None:
        self._folder = folder
        self._memory = memory
        self._bytes_max = bytes_max
        self._far_groups = far_groups
        self._lock = threading.Lock()
        self._footers: OrderedDict[str, _Footer] = OrderedDict()
        self._beside = Beside("remember-columns")  # reads what executors had to look through

    def around(self, version: RelationVersion, names: Sequence[str], wanted: Mapping[str, pa.Array]) -> pa.Table | None:
        """Some columns of those rows of the base among which all are that have a wanted value in each wanted column.

        None where nothing tells which row groups these are, or where it is for Spark's own reader to find them.
        """
        schema = version.schema
        asked = {name: values for name, values in wanted.items() if schema.column(name).type.kind in _ORDERED}
        if not self._bytes_max or not asked or any(values.null_count for values in wanted.values()):
            return None
        ordered = {name: np.unique(_comparable(values)) for name, values in asked.items()}
        key = _placed(schema, wanted)
        columns = [vnode_column() if name == VNODE else schema.column(name) for name in names]
        lead = _lead(schema, asked)
        looked_at = _Asked.of(columns, lead if lead in names else None)
        chosen: list[_Chosen] = []
        for file in version.base.files:
            footer = self._footer(file)
            here = ordered if key is None else {**ordered, key.name: key.inside(file)}
            groups = _chosen(footer, schema, here)
            if groups:
                chosen.append(_Chosen(file, footer, groups, here[lead] if lead is not None else None))
        near, far = self._parted(chosen, looked_at)
        found = [self._wanted(each, group, looked_at) for each in near for group in each.groups]
        others = self._far(far, columns, {schema.column(name): values for name, values in asked.items()})
        if _rests(version):
            self._remember(near, far, looked_at)
        if others is None:
            return None
        return pa.concat_tables([*found, others])

    def settle(self) -> None:
        """Waits until nothing is read beside."""
        self._beside.settle()

    def _parted(self, chosen: Sequence[_Chosen], asked: _Asked) -> tuple[Sequence[_Chosen], Sequence[_Chosen]]:
        """The row groups for the driver to look through, and those for executors: what is not in memory, if it is
        more than the driver should read."""
        near: list[_Chosen] = []
        far: list[_Chosen] = []
        for each in chosen:
            if not self._memory.lacking(asked.needed(each.file, WHOLE)):
                near.append(each.whole())
                continue
            lacking = {group for group in each.groups if self._memory.lacking(asked.needed(each.file, group))}
            near.append(each.only(set(each.groups) - lacking))
            far.append(each.only(lacking))
        if sum(sum(each.sizes(asked.columns.values()).values()) for each in far) <= self._bytes_max:
            return near + far, ()
        return near, [each for each in far if each.groups]

    def _remember(self, near: Sequence[_Chosen], far: Sequence[_Chosen], asked: _Asked) -> None:
        """Has row groups read into memory soon, where there is room for all of them.

        Rows are found in one column faster than in many: a file is read as one where half of it was asked for, or where
        it was before and has a column that nobody asked for yet.
        """
        columns = asked.columns.values()
        begun = [each for each in near if each.groups and each.groups != (WHOLE,) and self._is_begun(each.file, asked)]
        worth = [each.as_one(columns) for each in begun]
        for each in far:
            many = len(each.groups) * 2 >= len(each.footer.bytes) or self._is_begun(each.file, asked)
            worth.append(each.as_one(columns) if many else each)
        size = sum(each.bytes_in_memory(columns) for each in worth)
        if not worth or self._memory.is_full or size * SHARE_OF_MEMORY > self._memory.bytes_max:
            return
        self._beside.soon(lambda: self._read_beside(worth, asked))

    def _is_begun(self, file: DataFile, asked: _Asked) -> bool:
        """Whether some columns of a file are in memory as one."""
        places = asked.places(file, WHOLE)
        return len(self._memory.lacking(places)) < len(places)

    def _read_beside(self, chosen: Sequence[_Chosen], asked: _Asked) -> None:
        try:
            for each in chosen:
                for group in each.groups:
                    if self._memory.is_full:
                        return
                    if self._memory.lacking(asked.needed(each.file, group)):
                        self._wanted(each, group, asked)
        except StorageUnavailable as cause:  # a fold may have taken the file away: whoever needs it is told
            log.debug("columns are not remembered: %s", cause.message)

    def _far(
        self, chosen: Sequence[_Chosen], columns: Sequence[Column], wanted: Mapping[Column, pa.Array]
    ) -> pa.Table | None:
        """The same read by executors, which leave out all other rows; None where they cannot."""
        if not chosen:
            return _shape(columns).empty_table()
        if self._far_groups is None or not all(_has(each.footer, wanted) for each in chosen):
            return None
        asked = [(each.file.path, each.sizes(columns)) for each in chosen]
        names = list(dict.fromkeys(column.file_name for column in columns))
        values = {column.file_name: array.cast(column.type.arrow) for column, array in wanted.items()}
        found = self._far_groups.rows(asked, names, values)
        if found is None:
            return None
        tables = []
        for rows in found.values():
            held = set(rows.column_names)
            arrays = [
                rows[column.file_name] if column.file_name in held else constant(column, rows.num_rows)
                for column in columns
            ]
            typed = [array.cast(column.type.arrow) for array, column in zip(arrays, columns, strict=True)]
            tables.append(pa.table(typed, schema=_shape(columns)))
        return pa.concat_tables(tables) if tables else _shape(columns).empty_table()

    def _footer(self, file: DataFile) -> _Footer:
        with self._lock:
            known = self._footers.get(file.path)
            if known is not None:
                self._footers.move_to_end(file.path)
                return known
        metadata = self._folder.metadata(file.path)
        sizes = []
        for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
            held: dict[str, int] = {}
            for column in (group.column(number) for number in range(group.num_columns)):
                name = column.path_in_schema.split(".")[0]
                held[name] = held.get(name, 0) + column.total_uncompressed_size
            sizes.append(held)
        made = _Footer(metadata, tuple(sizes), {}, {})
        with self._lock:
            self._footers[file.path] = made
            while len(self._footers) > FOOTERS_MAX:
                self._footers.popitem(last=False)
        return made

    def _wanted(self, chosen: _Chosen, group: int, asked: _Asked) -> pa.Table:
        """Some columns of a row group, each remembered; of the rows that have a wanted value of the column that leads,
        where one does."""
        places = asked.places(chosen.file, group)
        read = self._columns(chosen.file, chosen.footer, group, dict(zip(places, asked.columns.values(), strict=True)))
        names = [column.name for column in asked.columns.values()]
        rows = None
        if chosen.leading is not None and asked.lead is not None:
            place = places[names.index(asked.lead)]
            order = self._memory.order(place, read[place])
            rows = None if order is None else order.rows(chosen.leading)
        return pa.table([read[place].taken(rows) for place in places], names=names)

    def _columns(
        self, file: DataFile, footer: _Footer, group: int, columns: Mapping[Place, Column]
    ) -> dict[Place, Packed]:
        known = {place: self._memory.column(place) for place in columns}
        found = {place: column for place, column in known.items() if column is not None}
        missing = {place: column for place, column in columns.items() if place not in found}
        if missing:
            numbers = range(len(footer.bytes)) if group == WHOLE else (group,)
            parts = [self._read(file, footer, number, missing.values()) for number in numbers]
            for number, place in enumerate(missing):
                found[place] = joined([each[number] for each in parts])
                self._memory.put(place, found[place])
        return found

    def _read(self, file: DataFile, footer: _Footer, group: int, columns: Collection[Column]) -> list[Packed]:
        held = {column.file_name for column in columns} & footer.bytes[group].keys()
        read = self._folder.read_group(file.path, footer.metadata, group, sorted(held))
        rows = footer.metadata.row_group(group).num_rows
        found = [read[column.file_name] if column.file_name in held else constant(column, rows) for column in columns]
        return [packed(_whole(values.cast(column.type.arrow))) for values, column in zip(found, columns, strict=True)]


def _rests(version: RelationVersion) -> bool:
    """Whether the base changes slowly. The pace of a log of one epoch is not known, and taken to be fast."""
    if not version.segments:
        return True
    begun = max(version.base.fold_epoch, min(segment.epoch_lo for segment in version.segments))
    age_ms = physical_ms(version.epoch) - physical_ms(begun)
    return version.log_rows * TURNOVER_MS <= version.base_rows * age_ms


def _packed_sizes(footer: _Footer, column: Column) -> tuple[int, ...]:
    """About the bytes of a column in each row group, once it is read and packed."""
    name = column.file_name
    if name not in footer.packed:
        groups = (footer.metadata.row_group(number) for number in range(footer.metadata.num_row_groups))
        footer.packed[name] = tuple(_packed_size(group, column) for group in groups)
    return footer.packed[name]


def _packed_size(group: pq.RowGroupMetaData, column: Column) -> int:
    parts = [group.column(number) for number in range(group.num_columns)]
    mine = [part for part in parts if part.path_in_schema.split(".")[0] == column.file_name]
    held = sum(part.total_uncompressed_size for part in mine)
    try:
        width = -(-column.type.arrow.bit_width // 8)
    except ValueError:  # texts have a byte each where they are few, and else a place for where they begin
        return group.num_rows if held < 2 * group.num_rows else held + 4 * group.num_rows
    said = mine[0].statistics if mine else None
    if said is not None and said.has_min_max and not said.null_count and is_packable(column.type.arrow):
        width = min(width, width_of(_number(said.min_raw), _number(said.max_raw)))
    return group.num_rows * width


def _number(raw: int | bytes) -> int:
    """The number that Parquet says in its own way."""
    return raw if isinstance(raw, int) else int.from_bytes(raw, "big", signed=True)


def _lead(schema: RelationSchema, wanted: Mapping[str, pa.Array]) -> str | None:
    """The wanted column that has the fewest rows for each of its values, as far as the key tells."""
    known = [name for name in (*schema.key, *wanted) if name in wanted and is_whole(schema.column(name).type.arrow)]
    return next(iter(known), None)


def _placed(schema: RelationSchema, wanted: Mapping[str, pa.Array]) -> _Placed | None:
    """Where wanted keys are; None where every vnode may have them, or where Spark would have to tell."""
    known = [name for name in schema.key if name in wanted and wanted[name].type == schema.column(name).type.arrow]
    varied = [name for name in known if len(wanted[name]) != 1]
    if not known:
        return None
    if len(known) == len(schema.key) and len(varied) <= 1:  # the whole key
        name = next(iter(varied), schema.key[0])
        return _placed_by(schema, name, {each: wanted[each][0] for each in known if each != name}, wanted[name])
    if schema.key[0] in known and schema.spread is Spread.NEIGHBOURS:
        return _placed_by(schema, schema.key[0], {}, wanted[schema.key[0]])
    return None


def _placed_by(schema: RelationSchema, name: str, others: Mapping[str, pa.Scalar], values: pa.Array) -> _Placed | None:
    """As `_placed` for values of one column, where these are the `others` of the key that are known."""
    if schema.column(name).type.kind not in _ORDERED:
        return None
    ordered = pc.unique(values)
    ordered = ordered.take(pc.sort_indices(ordered))
    key = [each for each in schema.key if each == name or each in others]
    columns = [ordered if each == name else pa.repeat(others[each], len(ordered)) for each in key]
    numbers = vnodes(columns, [schema.column(each).type for each in key], schema.spread)
    if numbers is None:
        return None
    low = high = np.asarray(numbers)
    if len(key) < len(schema.key):
        low = first_neighbour(low)
        high = low + np.int16(NEIGHBOURS - 1)
    return _Placed(name, _comparable(ordered), low, high)


def _shape(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema([pa.field(column.name, column.type.arrow) for column in columns])


def _has(footer: _Footer, columns: Iterable[Column]) -> bool:
    """Whether a file has all these columns."""
    return not footer.bytes or all(column.file_name in footer.bytes[0] for column in columns)


def _kept_as(column: Column) -> str:
    """What a column is remembered as: files may lack it, and nested values may get more fields."""
    fields = column.type.spark if column.type.is_nested else ""
    return f"{column.file_name}#{column.missing}#{fields}"


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _chosen(footer: _Footer, schema: RelationSchema, ordered: Mapping[str, npt.NDArray[Any]]) -> _Groups:
    """The row groups that may hold a wanted value of each column."""
    kept = np.ones(len(footer.bytes), np.bool_)
    for name, values in ordered.items():
        bounds = _bounds(footer, schema.column(name))
        if bounds is not None:
            kept &= np.searchsorted(values, bounds[0], "left") < np.searchsorted(values, bounds[1], "right")
    return tuple(int(group) for group in np.flatnonzero(kept))


def _bounds(footer: _Footer, column: Column) -> _Bounds | None:
    """The bounds of a column; None where the file does not say them."""
    name = column.file_name
    if name not in footer.bounds:
        said = []
        for group in (footer.metadata.row_group(number) for number in range(footer.metadata.num_row_groups)):
            parts = (group.column(number) for number in range(group.num_columns))
            said.append(next((part.statistics for part in parts if part.path_in_schema == name), None))
        known = [each for each in said if each is not None and each.has_min_max]
        days = column.type.kind is Kind.DATE  # there are some that Python does not know
        ends = [
            [each.min_raw if days else each.min for each in known],
            [each.max_raw if days else each.max for each in known],
        ]
        type_ = pa.int32() if days else column.type.arrow
        low, high = (_comparable(pa.array(each, type_)) for each in ends)
        footer.bounds[name] = (low, high) if len(known) == len(said) else None
    return footer.bounds[name]


def _comparable(values: pa.Array) -> npt.NDArray[Any]:
    """Values in a form that NumPy orders as Parquet does."""
    plain = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    return plain.to_numpy(zero_copy_only=False)


__all__ = ["RowGroups"]
