"""Conditions that the rows with certain keys fulfil, for a scan to skip pages by.

They are checked against the least and greatest values of files and pages, so a few ranges say as much as many values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seiche.far_days import FarDate, python_values
from seiche.model import RelationSchema
from seiche.types import Kind, SqlType

# Up to this many different values a lookup asks for by name; beyond it, by range. Parquet skips pages by both.
IN_LIST_MAX = 100

# A lookup that has nothing else to do with the keys names this many. Parquet then skips by range all the same, and no
# table of keys has to be broadcast.
LOOKUP_LIST_MAX = 2_000

# So many ranges a lookup asks for at most, where values lie in heaps that are far apart; and how finely the span from
# the least to the greatest value is divided to tell (2^7 cells). A base has about as many pages of a column in a file.
RANGES_MAX = 4
_CELL_BITS = 7

_INTEGER_SUFFIX = {Kind.SMALLINT: "S", Kind.INTEGER: "", Kind.BIGINT: "L"}


@dataclass(frozen=True, slots=True)
class Lookup:
    """A condition that all wanted rows of a relation fulfil, for a scan to skip pages by, and the columns it limits."""

    sql: str
    columns: tuple[str, ...]

    @staticmethod
    def of(conditions: Sequence[tuple[str, str | None]]) -> Lookup | None:
        """All of the conditions, each with its column; None when there is none."""
        found = [(name, each) for name, each in conditions if each]
        return Lookup(" AND ".join(each for _, each in found), tuple(name for name, _ in found)) if found else None


def key_predicate(name: str, type_: SqlType, values: pa.ChunkedArray, *, listed_max: int = IN_LIST_MAX) -> str | None:
    """A condition that holds for every non-null value among `values`, cheap to check against page statistics.

    Up to `listed_max` different values it holds for no others.
    """
    if type_.kind not in (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.DATE, Kind.VARCHAR):
        return None
    unique = pc.drop_null(pc.unique(values))
    if len(unique) == 0:
        return "false"
    if len(unique) <= listed_max:
        # A NULL more, since Spark turns a list of one into an equality with a literal.
        listed = [_literal(value, type_) for value in python_values(unique)]
        named = f"`{name}` IN ({', '.join(listed)}, NULL)"
        if len(unique) <= IN_LIST_MAX or not type_.is_integer:
            return named
        # Of a long list Parquet looks at the least and the greatest value alone.
        ranges = _ranges(unique)
        return named if len(ranges) == 1 else f"{_between(name, type_, ranges)} AND {named}"
    if not type_.is_integer:
        return None
    return _between(name, type_, _ranges(unique))


def _between(name: str, type_: SqlType, ranges: Sequence[tuple[int, int]]) -> str:
    parts = [f"`{name}` BETWEEN {_bounded(low, type_)} AND {_bounded(high, type_)}" for low, high in ranges]
    return parts[0] if len(parts) == 1 else f"({' OR '.join(f'({each})' for each in parts)})"


def _ranges(values: pa.ChunkedArray) -> list[tuple[int, int]]:
    """Few ranges with round ends that hold all the values: new rows at one end of a table and old ones that leave at
    the other are two.

    Ends are round so that epochs that follow each other ask the same: Spark compiles the bounds into its code, and
    keeps the code of queries that it has seen.
    """
    found = values.cast(pa.int64()).to_numpy()
    low, high = int(found.min()), int(found.max())
    width = 1 << max((high - low).bit_length() - _CELL_BITS, 0)
    cells = np.unique(found // width)
    gaps = np.diff(cells)
    wide = np.flatnonzero(gaps > 1)
    wide = np.sort(wide[np.argsort(-gaps[wide], kind="stable")[: RANGES_MAX - 1]])
    if not len(wide):
        step = 1 << max((high - low).bit_length() - 1, 0)
        return [(low // step * step, -(-high // step) * step)]
    firsts, lasts = cells[[0, *(wide + 1)]], cells[[*wide, -1]]
    return [(int(a) * width, (int(b) + 1) * width) for a, b in zip(firsts, lasts, strict=True)]


def _bounded(value: int, type_: SqlType) -> str:
    bits = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}[type_.kind]
    return _literal(max(min(value, (1 << bits) - 1), -(1 << bits)), type_)


def _literal(value: object, type_: SqlType) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, FarDate):
        return f"DATE'{value.spark}'"
    if type_.is_integer and int(str(value)) >= 0:
        # A thousand casts would take longer to analyse than the query takes to run.
        return f"{value}{_INTEGER_SUFFIX[type_.kind]}"
    return f"cast({value} as {type_.spark})"


def lookup_condition(schema: RelationSchema, wanted: pa.Table) -> tuple[str | None, bool]:
    """A condition on stored rows that those with a wanted key fulfil, and whether no others do."""
    found = {
        name: key_predicate(name, schema.column(name).type, wanted[name], listed_max=LOOKUP_LIST_MAX)
        for name in wanted.column_names
        if not wanted[name].null_count
    }
    conditions = [each for each in found.values() if each]
    alone = len(wanted.column_names) == 1 and len(conditions) == 1
    return " AND ".join(conditions) or None, alone and wanted.num_rows <= LOOKUP_LIST_MAX


__all__ = ["IN_LIST_MAX", "Lookup", "key_predicate", "lookup_condition"]
