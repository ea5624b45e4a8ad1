"""The tables of the metadata database.

Every name begins with `seiche_`: the database may hold other tables too (PyIceberg's are among them), and nothing
here ever touches those. The migrations create the same tables step by step; a test compares the two.

Foreign keys are checked at the end of the transaction, so that a checkpoint may drop and put in any order, and
whatever belongs to an object goes when its row goes.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

PREFIX = "seiche_"
VERSION_TABLE = PREFIX + "format"  # kept by Alembic

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)

# SQLite numbers the rows of an INTEGER PRIMARY KEY by itself, and of no other type.
Serial = BigInteger().with_variant(Integer, "sqlite")


def _key(name: str, *target: ForeignKey) -> Column[int]:
    return Column(name, BigInteger, *target, primary_key=True, autoincrement=False)


def _belongs_to(target: str) -> ForeignKey:
    return ForeignKey(f"{PREFIX}{target}", ondelete="CASCADE", deferrable=True, initially="DEFERRED")


def _refers_to(target: str) -> ForeignKey:
    return ForeignKey(f"{PREFIX}{target}", deferrable=True, initially="DEFERRED")


# Which versions of Seiche brought the database to its format. Never changes its shape: an older version reads it
# to say which newer one it met.
history = Table(
    PREFIX + "history",
    metadata,
    Column("format", Integer, primary_key=True, autoincrement=False),
    Column("seiche_version", Text, nullable=False),
    Column("migrated_ms", BigInteger, nullable=False),
)

# Two numbers: `committed_epoch` and `next_id`.
counters = Table(
    PREFIX + "counters",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# One row, with id 1. Whoever writes must hold the token that stands here.
lease = Table(
    PREFIX + "lease",
    metadata,
    _key("id"),
    Column("token", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("label", Text, nullable=False),
    Column("started_ms", BigInteger, nullable=False),
    Column("machine", Text, nullable=False),
    Column("process_start", Text),
    Column("expires_ms", BigInteger, nullable=False),
)

users = Table(
    PREFIX + "users",
    metadata,
    _key("id"),
    Column("name", Text, nullable=False, unique=True),
    Column("superuser", Boolean, nullable=False),
    Column("can_login", Boolean, nullable=False),
    Column("create_db", Boolean, nullable=False),
    Column("create_user", Boolean, nullable=False),
    Column("verifier", Text),
)

databases = Table(
    PREFIX + "databases",
    metadata,
    _key("id"),
    Column("name", Text, nullable=False, unique=True),
    Column("owner_id", BigInteger, _refers_to("users.id"), nullable=False),
)

schemas = Table(
    PREFIX + "schemas",
    metadata,
    _key("id"),
    Column("database_id", BigInteger, _refers_to("databases.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("owner_id", BigInteger, _refers_to("users.id"), nullable=False),
    UniqueConstraint("database_id", "name"),
)

# `columns`, `relation` and `properties` are JSON.
objects = Table(
    PREFIX + "objects",
    metadata,
    _key("id"),
    Column("kind", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("schema_id", BigInteger, _refers_to("schemas.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("owner_id", BigInteger, _refers_to("users.id"), nullable=False),
    Column("definition", Text, nullable=False),
    Column("columns", Text, nullable=False),
    Column("relation", Text),
    Column("status", Text, nullable=False),
    Column("properties", Text, nullable=False),
    Column("parent_id", BigInteger, _belongs_to("objects.id"), index=True),
    Column("created_ms", BigInteger, nullable=False),
    UniqueConstraint("schema_id", "namespace", "name"),
)

dependencies = Table(
    PREFIX + "dependencies",
    metadata,
    _key("object_id", _belongs_to("objects.id")),
    _key("depends_on", _refers_to("objects.id")),
    Index(None, "depends_on"),
)

# Who may do what with which object, schema or database; ids are unique across all of them.
# The user 0, which is in no table, is everybody.
grants = Table(
    PREFIX + "grants",
    metadata,
    _key("user_id"),
    _key("target_id"),
    Column("privilege", Text, primary_key=True),
    Column("grantable", Boolean, nullable=False),
    Index(None, "target_id"),
)

# What is granted on whatever an owner makes. The schema is 0 where any is meant, the kind empty for schemas themselves.
default_grants = Table(
    PREFIX + "default_grants",
    metadata,
    _key("owner_id"),
    _key("schema_id"),
    Column("kind", Text, primary_key=True),
    _key("user_id"),
    Column("privilege", Text, primary_key=True),
    Column("grantable", Boolean, nullable=False),
)

# What COMMENT ON said. `column_name` is empty for a comment on the object itself: a key cannot hold NULL.
comments = Table(
    PREFIX + "comments",
    metadata,
    _key("target_id"),
    Column("column_name", Text, primary_key=True),
    Column("comment", Text, nullable=False),
)

bases = Table(
    PREFIX + "bases",
    metadata,
    _key("relation_id", _belongs_to("objects.id")),
    Column("snapshot_id", BigInteger),
    Column("fold_epoch", BigInteger, nullable=False),
)

base_files = Table(
    PREFIX + "base_files",
    metadata,
    _key("relation_id", _belongs_to("bases.relation_id")),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("path", Text, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("vnode_lo", SmallInteger, nullable=False),
    Column("vnode_hi", SmallInteger, nullable=False),
)

segments = Table(
    PREFIX + "segments",
    metadata,
    Column("path", Text, primary_key=True),
    Column("relation_id", BigInteger, _belongs_to("objects.id"), nullable=False),
    Column("epoch_lo", BigInteger, nullable=False),
    Column("epoch_hi", BigInteger, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("fresh", Boolean, nullable=False),
    Index(None, "relation_id", "epoch_lo"),
)

# `scope` is the relation's id, or 0 for a pin on all of them: a key cannot hold NULL.
pins = Table(
    PREFIX + "pins",
    metadata,
    Column("holder", Text, primary_key=True),
    _key("scope"),
    Column("relation_id", BigInteger, _belongs_to("objects.id"), index=True),
    Column("epoch", BigInteger, nullable=False),
)

# `state` is JSON whose shape is the job's own affair.
progress = Table(
    PREFIX + "progress",
    metadata,
    _key("job_id", _belongs_to("objects.id")),
    Column("state", Text, nullable=False),
)

backfill = Table(
    PREFIX + "backfill",
    metadata,
    _key("job_id", _belongs_to("objects.id")),
    _key("relation_id", _belongs_to("objects.id")),
    Column("vnode", SmallInteger, primary_key=True, autoincrement=False),
    Column("position", LargeBinary),
    Column("rows", BigInteger, nullable=False),
    Column("finished", Boolean, nullable=False),
    Index(None, "relation_id"),
)

source_offsets = Table(
    PREFIX + "source_offsets",
    metadata,
    _key("source_id", _belongs_to("objects.id")),
    Column("split", Text, primary_key=True),
    Column("position", Text, nullable=False),
)

row_counters = Table(
    PREFIX + "row_counters",
    metadata,
    _key("relation_id", _belongs_to("objects.id")),
    Column("next_row_id", BigInteger, nullable=False),
)

settings = Table(
    PREFIX + "settings",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)

events = Table(
    PREFIX + "events",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("time_ms", BigInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("info", Text, nullable=False),
)

# What was chosen for a job in an epoch, the last entries of each job. It goes with the job.
refresh_history = Table(
    PREFIX + "refresh_history",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("job_id", BigInteger, nullable=False),
    Column("info", Text, nullable=False),
    Index(None, "job_id", "id"),
)
