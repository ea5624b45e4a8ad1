"""Rows that a program hands over as Python values, as an Arrow table of the target's types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from seiche.catalog.objects import CatalogObject
from seiche.errors import DatatypeMismatch, UndefinedColumn, nearest


def arrow_rows(rows: Iterable[Any], table: CatalogObject) -> pa.Table:
    """Rows as tuples in the order of the table's columns, or as dictionaries by column name."""
    listed = list(rows)
    plain = [column for column in table.columns if column.generated is None]
    if listed and isinstance(listed[0], Mapping):
        given = {name for row in listed for name in row}
        columns = [column for column in plain if column.name in given]
        unknown = given - {column.name for column in columns}
        if unknown:
            name = sorted(unknown)[0]
            raise UndefinedColumn(
                f'column "{name}" of relation "{table.name}" does not exist',
                hint=nearest(name, [column.name for column in plain]),
            )
        values = [[row.get(column.name) for row in listed] for column in columns]
    else:
        widths = {len(row) for row in listed}
        if widths - {len(plain)}:
            raise DatatypeMismatch(
                f'rows of {sorted(widths)[0]} values do not fit the {len(plain)} columns of "{table.name}"'
            )
        columns = plain
        values = [[row[index] for row in listed] for index in range(len(plain))]
    arrays = []
    for column, each in zip(columns, values, strict=True):
        try:
            arrays.append(pa.array(each, column.type.arrow))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise DatatypeMismatch(
                f'values for column "{column.name}" are not of type {column.type}', detail=str(error)
            ) from error
    return pa.Table.from_arrays(arrays, names=[column.name for column in columns])
