"""Words that every layer shares: ids, epochs, columns, relations.

Nothing here does any work; these are the values that planning, storage and coordination pass around.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NewType

from seiche.errors import InvariantError
from seiche.types import SqlType

ObjectId = NewType("ObjectId", int)  # anything in the catalog; ids are never used twice
RelationId = NewType("RelationId", int)  # an ObjectId whose object has rows, or an internal state relation
JobId = NewType("JobId", int)  # the ObjectId of the relation that the job keeps up to date

Epoch = NewType("Epoch", int)
EPOCH_ZERO = Epoch(0)
EPOCH_SHIFT = 16
VNODES = 256
NEIGHBOURS = 16  # vnodes that rows with one value in the first column of their key are spread over

# Hidden columns of storage. `_vnode` is the hash slice of the stream key, `_op` is +1 or -1 and `_epoch`
# the epoch in which a change happened.
VNODE = "_vnode"
OP = "_op"
EPOCH = "_epoch"
BARE = "-bare/"  # in the path of a segment's file that lacks these columns
ROW_ID = "_row_id"  # key of a table without a primary key
COMMIT_TIME = "_rw_timestamp"  # when a row was last written; no file has it
CHANGELOG_ROW_ID = "_changelog_row_id"  # key of a change log that is read as rows

# Names that no column of a user may have: those above, and those under which operators keep things for a moment
# beside the columns of a relation.
RESERVED_COLUMNS = frozenset(
    {VNODE, OP, EPOCH, ROW_ID}
    | {"_failed", "_sign", "_seq", "_last", "_row", "_redo", "_had", "_has", "_o", "_new", "_w", "_e"}
    | {"_old", "_r", "_at", "_first", "_is", "_was", "_one", "_present", "_tie", "_doubt", "_segment_path", "_metadata"}
)


def physical_ms(epoch: Epoch) -> int:
    """Wall-clock milliseconds at which the epoch began."""
    return epoch >> EPOCH_SHIFT


def next_epoch(previous: Epoch, now_ms: int) -> Epoch:
    """The epoch after `previous`: the wall clock if it moved on, else the next number."""
    return Epoch(max(previous + 1, now_ms << EPOCH_SHIFT))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a relation. Hidden ones are stored and never shown by `SELECT *`.

    `default` and `generated` are the user's SQL expressions. In files the column is called `stored`, where that differs
    from its name; a file written before the column was added lacks it and holds the constant `missing` (text that casts
    to the type; None is NULL) in every row. Where `shown` is given, statements see that type: storage keeps fields of
    structs that the column had once, for those who read them.
    """

    name: str
    type: SqlType
    hidden: bool = False
    nullable: bool = True
    default: str | None = None
    generated: str | None = None
    stored: str | None = None
    missing: str | None = None
    shown: SqlType | None = None

    @property
    def file_name(self) -> str:
        return self.stored or self.name

    @property
    def as_shown(self) -> Column:
        """The column as statements see it."""
        return self if self.shown is None else replace(self, type=self.shown, shown=None)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type.to_json(),
            "hidden": self.hidden,
            "nullable": self.nullable,
            "default": self.default,
            "generated": self.generated,
            "stored": self.stored,
            "missing": self.missing,
            "shown": None if self.shown is None else self.shown.to_json(),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Column:
        shown = data.get("shown")  # of a catalog that was written before structs could change
        types = {"type": SqlType.from_json(data["type"]), "shown": None if shown is None else SqlType.from_json(shown)}
        return Column(**{**data, **types})


class Spread(Enum):
    """How keys of several columns are spread over vnodes. Keys of one column have one way."""

    BY_WHOLE_KEY = "by whole key"  # rows of relations that were created before there was another way
    NEIGHBOURS = "neighbours"  # rows that agree in the first column are in 16 vnodes that follow each other


@dataclass(frozen=True, slots=True)
class RelationSchema:
    """The stored shape of a relation: its columns in order, its stream key, whether rows ever leave.

    The key's columns are among `columns`; no two rows alive at one epoch agree in all of them
    (NULL counts as equal to NULL).
    """

    columns: tuple[Column, ...]
    key: tuple[str, ...]
    append_only: bool = False
    spread: Spread = Spread.NEIGHBOURS

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        repeated = sorted({name for index, name in enumerate(names) if name in names[:index]})
        if repeated:
            raise InvariantError(f'relation schema repeats column "{repeated[0]}"')
        missing = [name for name in self.key if name not in names]
        if missing:
            raise InvariantError(f"stream key names columns that do not exist: {missing}")

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def visible(self) -> tuple[Column, ...]:
        return tuple(column for column in self.columns if not column.hidden)

    def shares_vnodes_with(self, other: RelationSchema) -> bool:
        """Whether rows of both that have equal keys are in the same vnode."""
        return len(self.key) == 1 or self.spread is other.spread

    def column(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise InvariantError(f"relation schema has no column {name!r}")

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [column.to_json() for column in self.columns],
            "key": list(self.key),
            "append_only": self.append_only,
            "spread": self.spread.value,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> RelationSchema:
        return RelationSchema(
            tuple(Column.from_json(column) for column in data["columns"]),
            tuple(data["key"]),
            data["append_only"],
            Spread(data["spread"]),
        )


@dataclass(frozen=True, slots=True)
class QualifiedName:
    """A name as the catalog keeps it, folded already."""

    schema: str
    name: str

    def __str__(self) -> str:
        return self.name if self.schema == "public" else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file of a base. Its path is relative to the data folder; it holds the rows of a range of vnodes."""

    path: str
    rows: int
    bytes: int
    vnode_lo: int
    vnode_hi: int


@dataclass(frozen=True, slots=True)
class Base:
    """A relation as of its last fold."""

    relation: RelationId
    snapshot_id: int | None
    fold_epoch: Epoch
    files: tuple[DataFile, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """A file with the changes of one relation in the epochs [epoch_lo, epoch_hi].

    `fresh` says that every row in it is an insertion of a key that never lived before in the relation. A `bare` one is
    fresh, of one epoch, large, and has the stored columns only: `_vnode`, `_op` and `_epoch` follow from what is known.
    """

    relation: RelationId
    path: str
    epoch_lo: Epoch
    epoch_hi: Epoch
    rows: int
    bytes: int
    fresh: bool = False

    @property
    def bare(self) -> bool:
        return BARE in self.path


@dataclass(frozen=True, slots=True)
class Pin:
    """Keeps whatever is needed to read `relation` (None: every relation) at `epoch` and later."""

    holder: str
    relation: RelationId | None
    epoch: Epoch
