"""What Alembic runs: it uses the connection and the transaction that `seiche.catalog.database` hands it."""

from __future__ import annotations

from alembic import context

from seiche.catalog.tables import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
