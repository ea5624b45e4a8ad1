"""CREATE TABLE AS: a table and the rows of a query, both or neither.

The table is there from the first, so that rows can be written to it as to any other, but marked as being created:
nobody else reads it or writes to it. A second checkpoint takes the mark away once the rows are durable. What fails
in between is dropped again, by the statement itself or, after a kill, by the next start.

Inside a transaction the rows come with the others at COMMIT, and the table is an ordinary one at once.
"""

from __future__ import annotations

import logging
from concurrent.futures import Future
from dataclasses import replace

from seiche.catalog.objects import ObjectKind, ObjectStatus
from seiche.session.database import Database
from seiche.session.definitions import Definitions
from seiche.session.dml import Dml
from seiche.session.drops import Drops
from seiche.session.tables import TableDefinitions
from seiche.session.variables import Variables
from seiche.sql import statements as ast
from seiche.sql.bind import BoundQuery, OutputColumn
from seiche.sql.written_types import numerics_cast_to
from seiche.types import NUMERIC

log = logging.getLogger(__name__)


def create_table_of_query(
    statement: ast.CreateTableAs,
    text: str,
    bound: BoundQuery,
    definitions: Definitions,
    dml: Dml,
    *,
    in_transaction: bool,
) -> int | None:
    """The number of rows it was created with; None when the table exists and may."""
    tables = TableDefinitions(definitions)
    plain = tables.create_table_as(statement, _columns(statement, bound, definitions.database))
    if plain is None:
        return None
    status = ObjectStatus.CREATED if in_transaction else ObjectStatus.CREATING
    table = tables.create_new(plain, text, status)
    rows = ast.Insert(statement.name, tuple(column.name for column in plain.columns), statement.query)
    try:
        count, _ = dml.insert_into(table, rows)
        if not in_transaction:
            definitions.change(
                lambda catalog: catalog.with_objects(replace(catalog.get(table.id), status=ObjectStatus.CREATED))
            )
    except BaseException:
        _dropping(definitions.database, definitions.variables).drop_objects([table.id], cascade=True)
        raise
    return count


def _columns(statement: ast.CreateTableAs, bound: BoundQuery, database: Database) -> tuple[OutputColumn, ...]:
    """What the table's columns are.

    As in PostgreSQL, a column is limited to so many digits only if that was said, by a column that the query reads or
    by a cast; the digits of a constant or of a sum are no limit.
    """
    said = {
        (column.type.precision, column.type.scale)
        for each in bound.relations
        for column in database.catalog.get(each).columns
        if column.type.declared
    }
    said |= {(type_.precision, type_.scale) for type_ in numerics_cast_to(statement.query.tree)}

    def lasting(column: OutputColumn) -> OutputColumn:
        limits = (column.type.precision, column.type.scale)
        return column if not column.type.declared or limits in said else replace(column, type=NUMERIC)

    return tuple(lasting(column) for column in bound.columns)


def drop_unfinished(database: Database) -> None:
    """Drops the tables whose CREATE TABLE AS did not live to see its end."""
    left = [each for each in database.catalog.objects(ObjectKind.TABLE) if each.status is ObjectStatus.CREATING]
    for table in left:
        log.warning("%s is dropped: the statement that created it did not end", table)
    if left:
        _dropping(database, Variables()).drop_objects([each.id for each in left], cascade=True)


def _dropping(database: Database, variables: Variables) -> Drops:
    """Drops on nobody's behalf: a statement that was cancelled must not be cancelled out of its own tidying up."""
    return Drops(Definitions(database, variables, Future.result))
