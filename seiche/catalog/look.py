"""Looking at a metadata database without changing it: no tables are made or migrated, no lease is taken.

For those who want to know whether the database could be opened, while somebody else may be using it.
"""

from __future__ import annotations

from dataclasses import dataclass

from seiche.catalog import lease
from seiche.catalog.database import FORMAT, MetadataDatabase
from seiche.clock import Clock


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen: the format of the tables, 0 where there are none yet."""

    format: int

    @property
    def is_current(self) -> bool:
        return self.format == FORMAT


def look(address: str, *, clock: Clock) -> Sight:
    """Raises what opening would: LeaseHeld while a process uses the database, MetadataVersionError where it is of a
    newer version, FolderNotUsable or MetadataUnavailable where it cannot be read."""
    database = MetadataDatabase.connect(address, read_only=True)
    try:
        with database.read() as connection:
            found = database.known_format(connection)
            if found:
                lease.refuse_if_held(connection, database.name, clock.now_ms())
        return Sight(found)
    finally:
        database.close()
