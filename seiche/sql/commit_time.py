"""`_rw_timestamp`: when a row was last written, a column that tables and materialized views have besides their own.

No star stands for it. It is told by the epoch of the row's last change, which a fold forgets: then it is NULL. A source
of which it is asked is named `r12#epochs`, and has the column `_epoch`.
"""

from __future__ import annotations

from sqlglot import exp

from seiche.errors import FeatureNotSupported
from seiche.model import COMMIT_TIME, EPOCH, EPOCH_SHIFT
from seiche.sql.bound import BoundRelation
from seiche.sql.nodes import Settings, call, integer, typed
from seiche.sql.scopes import Entry
from seiche.types import BIGINT, TIMESTAMPTZ

_MARK = "#epochs"


def commit_time(relation: BoundRelation, ref: str) -> tuple[Entry, ...]:
    """The column as an entry of what `ref` stands for, unless the relation has none or one of its own."""
    if relation.id is None or any(column.name == COMMIT_TIME for column in relation.columns):
        return ()
    epoch = typed(exp.column(EPOCH, table=ref, quoted=True), BIGINT)
    known = call(BIGINT, "nullif", epoch, integer(0))
    moment = call(TIMESTAMPTZ, "timestamp_millis", call(BIGINT, "shiftright", known, integer(EPOCH_SHIFT)))
    return (Entry(COMMIT_TIME, moment, hidden=True),)


def is_commit_time(entry: Entry) -> bool:
    return entry.hidden and entry.name == COMMIT_TIME


def with_epochs(query: exp.Query, settings: Settings) -> None:
    """Names the sources anew whose epochs the query reads. Raises where only a query may."""
    asked = {column.table for column in query.find_all(exp.Column) if column.name == EPOCH}
    if asked and not settings.past:
        raise FeatureNotSupported(
            f'only a query can read the column "{COMMIT_TIME}"',
            hint="Store the time of a row in a column of the table, for instance with DEFAULT now().",
        )
    for table in query.find_all(exp.Table) if asked else ():
        if table.alias_or_name in asked:
            table.set("this", exp.to_identifier(f"{table.name}{_MARK}", quoted=True))


def epochs_of(source: str) -> str | None:
    """The source of which a name asks the epochs; None where it asks for rows alone."""
    return source.removesuffix(_MARK) if source.endswith(_MARK) else None
