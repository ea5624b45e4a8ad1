"""Names of temporary tables: a schema for each session that has some, which goes with the session.

PostgreSQL's names: session 7 keeps them in `pg_temp_7`, which it may call `pg_temp` and which comes first in its search
path. What other sessions make cannot depend on them. Opening a database forgets those of sessions that were cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

ALIAS = "pg_temp"
_PREFIX = "pg_temp_"


def schema_of(session: int) -> str:
    return f"{_PREFIX}{session}"


def is_temporary(schema: str) -> bool:
    return schema.startswith(_PREFIX)


def resolved(schema: str, search_path: Sequence[str]) -> str:
    """The schema that a name's first part means; `pg_temp` is the one of the session whose path it is."""
    if schema != ALIAS:
        return schema
    return next((name for name in search_path if is_temporary(name)), schema)
