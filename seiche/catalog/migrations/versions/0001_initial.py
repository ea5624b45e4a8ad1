"""Creates everything.

Revision ID: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "seiche_counters",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_seiche_counters")),
    )
    op.create_table(
        "seiche_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("time_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("info", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seiche_events")),
    )
    op.create_table(
        "seiche_history",
        sa.Column("format", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seiche_version", sa.Text(), nullable=False),
        sa.Column("migrated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("format", name=op.f("pk_seiche_history")),
    )
    op.create_table(
        "seiche_lease",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("machine", sa.Text(), nullable=False),
        sa.Column("process_start", sa.Text(), nullable=True),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seiche_lease")),
    )
    op.create_table(
        "seiche_refresh_history",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("info", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seiche_refresh_history")),
    )
    op.create_index(
        op.f("ix_seiche_refresh_history_job_id_id"), "seiche_refresh_history", ["job_id", "id"], unique=False
    )
    op.create_table(
        "seiche_settings",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_seiche_settings")),
    )
    op.create_table(
        "seiche_users",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("superuser", sa.Boolean(), nullable=False),
        sa.Column("can_login", sa.Boolean(), nullable=False),
        sa.Column("create_db", sa.Boolean(), nullable=False),
        sa.Column("create_user", sa.Boolean(), nullable=False),
        sa.Column("verifier", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seiche_users")),
        sa.UniqueConstraint("name", name=op.f("uq_seiche_users_name")),
    )
    op.create_table(
        "seiche_databases",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id"],
            ["seiche_users.id"],
            name=op.f("fk_seiche_databases_owner_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seiche_databases")),
        sa.UniqueConstraint("name", name=op.f("uq_seiche_databases_name")),
    )
    op.create_table(
        "seiche_grants",
        sa.Column("user_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("target_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("privilege", sa.Text(), nullable=False),
        sa.Column("grantable", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "target_id", "privilege", name=op.f("pk_seiche_grants")),
    )
    op.create_index(op.f("ix_seiche_grants_target_id"), "seiche_grants", ["target_id"], unique=False)
    op.create_table(
        "seiche_default_grants",
        sa.Column("owner_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("schema_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("user_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("privilege", sa.Text(), nullable=False),
        sa.Column("grantable", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint(
            "owner_id", "schema_id", "kind", "user_id", "privilege", name=op.f("pk_seiche_default_grants")
        ),
    )
    op.create_table(
        "seiche_comments",
        sa.Column("target_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("column_name", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("target_id", "column_name", name=op.f("pk_seiche_comments")),
    )
    op.create_table(
        "seiche_schemas",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("database_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["database_id"],
            ["seiche_databases.id"],
            name=op.f("fk_seiche_schemas_database_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["owner_id"],
            ["seiche_users.id"],
            name=op.f("fk_seiche_schemas_owner_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seiche_schemas")),
        sa.UniqueConstraint("database_id", "name", name=op.f("uq_seiche_schemas_database_id_name")),
    )
    op.create_table(
        "seiche_objects",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("schema_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.Column("relation", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("properties", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.BigInteger(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id"],
            ["seiche_users.id"],
            name=op.f("fk_seiche_objects_owner_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_objects_parent_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["schema_id"],
            ["seiche_schemas.id"],
            name=op.f("fk_seiche_objects_schema_id"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_seiche_objects")),
        sa.UniqueConstraint("schema_id", "namespace", "name", name=op.f("uq_seiche_objects_schema_id_namespace_name")),
    )
    op.create_index(op.f("ix_seiche_objects_parent_id"), "seiche_objects", ["parent_id"], unique=False)
    op.create_table(
        "seiche_backfill",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("relation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("vnode", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.LargeBinary(), nullable=True),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("finished", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_backfill_job_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["relation_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_backfill_relation_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("job_id", "relation_id", "vnode", name=op.f("pk_seiche_backfill")),
    )
    op.create_index(op.f("ix_seiche_backfill_relation_id"), "seiche_backfill", ["relation_id"], unique=False)
    op.create_table(
        "seiche_bases",
        sa.Column("relation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=True),
        sa.Column("fold_epoch", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_bases_relation_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("relation_id", name=op.f("pk_seiche_bases")),
    )
    op.create_table(
        "seiche_dependencies",
        sa.Column("object_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("depends_on", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.ForeignKeyConstraint(
            ["depends_on"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_dependencies_depends_on"),
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.ForeignKeyConstraint(
            ["object_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_dependencies_object_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("object_id", "depends_on", name=op.f("pk_seiche_dependencies")),
    )
    op.create_index(op.f("ix_seiche_dependencies_depends_on"), "seiche_dependencies", ["depends_on"], unique=False)
    op.create_table(
        "seiche_pins",
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("scope", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("relation_id", sa.BigInteger(), nullable=True),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_pins_relation_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("holder", "scope", name=op.f("pk_seiche_pins")),
    )
    op.create_index(op.f("ix_seiche_pins_relation_id"), "seiche_pins", ["relation_id"], unique=False)
    op.create_table(
        "seiche_progress",
        sa.Column("job_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_progress_job_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_seiche_progress")),
    )
    op.create_table(
        "seiche_row_counters",
        sa.Column("relation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("next_row_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_row_counters_relation_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("relation_id", name=op.f("pk_seiche_row_counters")),
    )
    op.create_table(
        "seiche_segments",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("relation_id", sa.BigInteger(), nullable=False),
        sa.Column("epoch_lo", sa.BigInteger(), nullable=False),
        sa.Column("epoch_hi", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("fresh", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_segments_relation_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_seiche_segments")),
    )
    op.create_index(
        op.f("ix_seiche_segments_relation_id_epoch_lo"), "seiche_segments", ["relation_id", "epoch_lo"], unique=False
    )
    op.create_table(
        "seiche_source_offsets",
        sa.Column("source_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"],
            ["seiche_objects.id"],
            name=op.f("fk_seiche_source_offsets_source_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("source_id", "split", name=op.f("pk_seiche_source_offsets")),
    )
    op.create_table(
        "seiche_base_files",
        sa.Column("relation_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("vnode_lo", sa.SmallInteger(), nullable=False),
        sa.Column("vnode_hi", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["relation_id"],
            ["seiche_bases.relation_id"],
            name=op.f("fk_seiche_base_files_relation_id"),
            ondelete="CASCADE",
            initially="DEFERRED",
            deferrable=True,
        ),
        sa.PrimaryKeyConstraint("relation_id", "position", name=op.f("pk_seiche_base_files")),
    )
