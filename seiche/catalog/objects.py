"""The things a catalog names, as plain values.

An object is anything that a `CREATE` statement makes, and the internal relations that a job keeps for itself.
Objects point at each other by id and carry the names of their database, schema and owner, so that a value can
be shown without a catalog at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any

from seiche.model import Column, ObjectId, QualifiedName, RelationSchema
from seiche.types import NUMERIC, Kind, SqlType

DEFAULT_DATABASE = "dev"
DEFAULT_SCHEMA = "public"
SUPERUSER = "root"


class ObjectKind(Enum):
    """Kinds of objects; the value is the kind as a sentence names it."""

    TABLE = "table"
    SOURCE = "source"
    MATERIALIZED_VIEW = "materialized view"
    VIEW = "view"
    INDEX = "index"
    SINK = "sink"
    FUNCTION = "function"
    SUBSCRIPTION = "subscription"
    SECRET = "secret"  # noqa: S105 - the kind's name
    INTERNAL = "internal relation"

    @property
    def sql(self) -> str:
        """The kind as `DROP ...` spells it."""
        return self.value.upper()

    @property
    def namespace(self) -> str:
        """Names are unique within a schema and a namespace: a function or a secret may be called like a table.

        Those of functions are unique together with the types of their parameters, see `CatalogObject.namespace`.
        """
        return self.value if self in (ObjectKind.FUNCTION, ObjectKind.SECRET) else "relation"


# What follows the changes of other relations, and is built from their rows first.
FOLLOWING_KINDS = (ObjectKind.MATERIALIZED_VIEW, ObjectKind.INDEX, ObjectKind.SINK)


CONNECTOR = "connector"  # the option of a source, a table or a sink: what brings its rows, or takes them
SINK_RATE_LIMIT = "sink_rate_limit"  # of a sink: rows a second that it hands on at most
DECOUPLED = "decoupled"  # of a sink: whether it may be behind what it follows
CONFIG = "config"  # of a job: settings of RisingWave's that it was given, which have no effect here
TIMEZONE = "timezone"  # the property of what follows: the time zone of the session that created it
INTO = "into"  # the property of a sink: the table that it fills
SECRET_TEXT = "text"  # noqa: S105 - the property of a secret: what it stands for
MADE_BY = "made_by"  # the property of an object: what version() said when it was created


class ObjectStatus(Enum):
    CREATING = "creating"
    CREATED = "created"


@dataclass(frozen=True, slots=True)
class CatalogObject:
    """One object.

    `columns` is what `DESCRIBE` shows; `relation` is the stored shape, hidden columns included, and None for
    what stores no rows. `definition` is the user's SQL text. An internal relation names its job as `parent`.
    `properties` holds JSON values only (lists, not tuples) and is not changed once the object exists.
    """

    id: ObjectId
    kind: ObjectKind
    name: str
    definition: str
    columns: tuple[Column, ...] = ()
    relation: RelationSchema | None = None
    database: str = DEFAULT_DATABASE
    schema: str = DEFAULT_SCHEMA
    owner: str = SUPERUSER
    status: ObjectStatus = ObjectStatus.CREATED
    properties: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    dependencies: frozenset[ObjectId] = frozenset()
    parent: ObjectId | None = None
    created_ms: int = 0

    @property
    def qualified(self) -> QualifiedName:
        return QualifiedName(self.schema, self.name)

    @property
    def parameter_types(self) -> tuple[SqlType, ...]:
        """Of a function, whose last column is what it returns."""
        return signature(column.type for column in self.columns[:-1])

    @property
    def namespace(self) -> str:
        if self.kind is not ObjectKind.FUNCTION:
            return self.kind.namespace
        return f"{self.kind.namespace}({', '.join(map(str, self.parameter_types))})"

    def __str__(self) -> str:
        return f'{self.kind.value} "{self.qualified}"'


def signature(types: Iterable[SqlType]) -> tuple[SqlType, ...]:
    """Types of parameters as functions are told apart by them: without lengths and precisions."""
    return tuple(NUMERIC if type_.kind is Kind.NUMERIC else type_.bare for type_ in types)


@dataclass(frozen=True, slots=True)
class Database:
    id: ObjectId
    name: str
    owner: str = SUPERUSER


@dataclass(frozen=True, slots=True)
class Schema:
    id: ObjectId
    database: str
    name: str
    owner: str = SUPERUSER


@dataclass(frozen=True, slots=True)
class User:
    """Someone who may log in. `verifier` is what a password is checked against, never the password itself."""

    id: ObjectId
    name: str
    superuser: bool = False
    can_login: bool = True
    create_db: bool = False
    create_user: bool = False
    verifier: str | None = field(default=None, repr=False)


class Privilege(Enum):
    """What may be granted; the value is how SQL spells it."""

    SELECT = "SELECT"
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CREATE = "CREATE"
    USAGE = "USAGE"
    CONNECT = "CONNECT"
    EXECUTE = "EXECUTE"


PUBLIC = ObjectId(0)  # stands for every user in a grant
PUBLIC_NAME = "public"
MAINTAINER = "rwadmin"  # a superuser that every database has, for those who run it


@dataclass(frozen=True, slots=True)
class Grant:
    """A user may do something with an object, a schema or a database; `grantable`: and may allow it to others."""

    user: ObjectId
    target: ObjectId
    privilege: Privilege
    grantable: bool = False

    @property
    def key(self) -> tuple[int, int, str]:
        return self.user, self.target, self.privilege.value


@dataclass(frozen=True, slots=True)
class DefaultGrant:
    """What is granted on whatever `owner` makes from now on: objects of a kind in a schema, or in any (None).

    `kind` is None for schemas themselves.
    """

    owner: ObjectId
    schema: ObjectId | None
    kind: ObjectKind | None
    user: ObjectId
    privilege: Privilege
    grantable: bool = False

    @property
    def key(self) -> tuple[int, int, str, int, str]:
        kind = self.kind.name if self.kind is not None else ""
        return self.owner, self.schema or 0, kind, self.user, self.privilege.value


@dataclass(frozen=True, slots=True)
class Comment:
    """What COMMENT ON said about an object, a schema, a database, or one column of an object."""

    target: ObjectId
    column: str | None
    text: str

    @property
    def key(self) -> tuple[int, str]:
        return self.target, self.column or ""
