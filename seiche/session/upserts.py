"""ON CONFLICT of an INSERT: which rows can meet, and what the statement makes of those that do.

    INSERT INTO berths VALUES (1, 'east') ON CONFLICT (number) DO UPDATE SET name = excluded.name
    INSERT INTO berths VALUES (1, 'east') ON CONFLICT DO NOTHING

It is for this statement alone. What every other INSERT does is declared on the table.
"""

from __future__ import annotations

from seiche.catalog.definitions import key_constraint, key_of
from seiche.catalog.objects import CatalogObject
from seiche.errors import FeatureNotSupported, InvalidColumnReference, UndefinedColumn, UndefinedObject, nearest
from seiche.session.watermarks import watermark_of
from seiche.sql.bind import Meeting
from seiche.sql.statements import OnConflict, quote_name


def meeting_of(table: CatalogObject, conflict: OnConflict | None) -> Meeting | None:
    """None where the statement says nothing of rows that meet, or the table has no key by which they could."""
    if conflict is None:
        return None
    key = key_of(table)
    if conflict.constraint is not None and (not key or conflict.constraint != key_constraint(table)):
        raise UndefinedObject(f'constraint "{conflict.constraint}" for table "{table.name}" does not exist')
    names = [column.name for column in table.columns]
    for name in conflict.columns:
        if name not in names:
            raise UndefinedColumn(f'column "{name}" does not exist', hint=nearest(name, names))
    if conflict.columns and set(conflict.columns) != set(key):
        raise InvalidColumnReference(
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            hint=f"Name the primary key: ({', '.join(map(quote_name, key))})." if key else None,
        )
    if not key:
        return None
    if watermark_of(table) is not None:
        raise FeatureNotSupported(
            f'table "{table.name}" has a watermark: ON CONFLICT in INSERT is not supported',
            hint="Declare it on the table: CREATE TABLE … ON CONFLICT IGNORE.",
        )
    if conflict.assignments and table.relation is not None and table.relation.append_only:
        raise FeatureNotSupported(
            f'table "{table.name}" is append-only: ON CONFLICT DO UPDATE is not allowed',
            hint="Rows of such a table never leave. DO NOTHING leaves them alone.",
        )
    assignments = tuple((each.column, each.value.tree) for each in conflict.assignments)
    return Meeting(key, assignments, conflict.where.tree if conflict.where is not None else None)


__all__ = ["meeting_of"]
