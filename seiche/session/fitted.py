"""Rows from elsewhere, of a sink or a connector, as rows of a table: cast, completed and ready to be taken."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from seiche.catalog.objects import CatalogObject
from seiche.model import ROW_ID, VNODE, Column, RelationSchema
from seiche.query import open_scope, render, typed
from seiche.sql.bind import BoundQuery, BoundRelation, Settings, bind_insert
from seiche.sql.parse import parse_query
from seiche.sql.statements import quote_name
from seiche.storage.changes import vnode_sql
from seiche.stream.runtime import Runtime
from seiche.stream.table import inserted_schema


def bound_rows(
    given: Sequence[Column], names: tuple[str, ...] | None, target: CatalogObject, now_ms: int
) -> BoundQuery:
    """The query for rows of a table over rows with these columns, which it calls `given`.

    `names` are the table's columns that they fill, all of them if None. Raises where they do not fit.
    """
    assert target.relation is not None
    source = BoundRelation(None, "given", tuple(given), None, "given")
    wanted = BoundRelation(target.id, target.name, target.relation.columns, None, f"r{target.id}")
    columns = ", ".join(quote_name(column.name) for column in given)
    settings = Settings(timezone="UTC", now_ms=now_ms, strict=False)
    return bind_insert(wanted, names, parse_query(f"SELECT {columns} FROM given").tree, OneRelation(source), settings)


class OneRelation:
    """Satisfies `seiche.sql.bind.Names` for a query over one relation, whatever it calls it."""

    def __init__(self, relation: BoundRelation) -> None:
        self._relation = relation

    def relation(self, parts: tuple[str, ...]) -> BoundRelation:
        return self._relation


def fitted(runtime: Runtime, bound: BoundQuery, shape: RelationSchema, given: DataFrame) -> DataFrame:
    """The rows as those of the table, without those that lack a value that must be there."""
    with open_scope(runtime.spark) as scope:
        view = scope.view(given)
        frame = typed(scope.sql(render(bound.ast, lambda _: view)), bound)
    frame = frame.toDF(*(column.name for column in bound.columns))
    for column in shape.visible:
        if not column.nullable:
            frame = frame.filter(f"`{column.name}` IS NOT NULL")
    return frame


def collected(runtime: Runtime, shape: RelationSchema, frame: DataFrame) -> pa.Table | None:
    """Fitted rows on the driver; None where they are too many for it."""
    if shape.key != (ROW_ID,):
        frame = frame.selectExpr("*", f"{vnode_sql(shape)} AS `{VNODE}`")
    rows = runtime.collect(frame)
    if rows is None or rows.num_rows > runtime.limits.inline_rows_max:
        return None
    return rows.cast(inserted_schema(shape))
