"""Every statement Seiche understands, as a plain value.

A statement says what was written and nothing about whether it makes sense: names are folded but not looked up,
types are resolved, and query parts are sqlglot trees with their source text beside them. `Statement` is the
closed union of all of them; whoever runs statements matches on it.

Two spellings inside the trees are worth knowing: `DEFAULT` as a value of INSERT or UPDATE is the tree
`exp.Var(this="DEFAULT")`, and `$1` is `exp.Parameter`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from sqlglot import exp

from seiche.types import SqlType

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_$]*")

# The words that PostgreSQL refuses as a name unless they are quoted.
RESERVED_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
    all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc
    distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral
    leading limit localtime localtimestamp not null offset on only or order placing primary references returning
    select session_user some symmetric table then to trailing true union unique user using variadic when where
    window with
    """,
    )
)


def quote_name(name: str) -> str:
    """The name as SQL text that folds back to exactly this name."""
    if _PLAIN_NAME.fullmatch(name) and name not in RESERVED_WORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class ObjectName:
    """A folded name of one to three parts: `[[database.]schema.]name`. That of a function may have the types of its
    `parameters`. `place` is the 1-based character at which it is written."""

    parts: tuple[str, ...]
    parameters: tuple[SqlType, ...] | None = None
    place: int | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.parts[-1]

    @property
    def schema(self) -> str | None:
        return self.parts[-2] if len(self.parts) > 1 else None

    @property
    def database(self) -> str | None:
        return self.parts[-3] if len(self.parts) > 2 else None

    def __str__(self) -> str:
        return ".".join(quote_name(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query: its tree (`exp.Query` or `exp.Values`, identifiers folded) and the text it was read from."""

    tree: exp.Expr
    text: str


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """A scalar expression: its tree (identifiers folded) and the text it was read from."""

    tree: exp.Expr
    text: str


class ObjectKind(Enum):
    """What a DROP, ALTER, COMMENT or SHOW CREATE names. The value is how messages spell it."""

    TABLE = "table"
    VIEW = "view"
    MATERIALIZED_VIEW = "materialized view"
    INDEX = "index"
    SOURCE = "source"
    SINK = "sink"
    SCHEMA = "schema"
    DATABASE = "database"
    USER = "user"
    FUNCTION = "function"
    CONNECTION = "connection"
    SECRET = "secret"  # noqa: S105 - a word of the grammar
    SUBSCRIPTION = "subscription"


Options = tuple[tuple[str, str], ...]  # WITH (name = value, ...), in the order written


# --- definitions -------------------------------------------------------------------------------------


class ConflictRule(Enum):
    """What an insert does to a row whose primary key is already there."""

    OVERWRITE = "overwrite"
    IGNORE = "ignore"
    UPDATE_IF_NOT_NULL = "do update if not null"


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column as declared. `nullable` is False only where NOT NULL was written."""

    name: str
    type: SqlType
    nullable: bool = True
    default: SqlExpression | None = None
    generated: SqlExpression | None = None


@dataclass(frozen=True, slots=True)
class Watermark:
    """`ttl`: rows below it need not be kept."""

    column: str
    expression: SqlExpression
    ttl: bool = False


@dataclass(frozen=True, slots=True)
class Encoding:
    """FORMAT … ENCODE …, in capitals: what the messages of a connector say, and how they are written."""

    format: str
    encode: str


@dataclass(frozen=True, slots=True)
class Like:
    """LIKE in the list of a table's columns, behind as many of its own as `place` says. `including` are the words of
    what comes along besides names, types and NOT NULL."""

    table: ObjectName
    place: int
    including: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CreateTable:
    """`primary_key` is empty when none was declared; `on_conflict` is None when the default applies."""

    name: ObjectName
    columns: tuple[ColumnDef, ...]
    primary_key: tuple[str, ...] = ()
    watermarks: tuple[Watermark, ...] = ()
    if_not_exists: bool = False
    append_only: bool = False
    on_conflict: ConflictRule | None = None
    options: Options = ()
    version_columns: tuple[str, ...] = ()  # a row that is older by them does not replace another
    temporary: bool = False
    encoding: Encoding | None = None
    likes: tuple[Like, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateSource:
    """`rows` is what keeps the rows that came: a table that nobody but the connector writes to."""

    rows: CreateTable


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """`columns` renames the query's columns, and is empty when they keep their names."""

    name: ObjectName
    columns: tuple[str, ...]
    query: SqlQuery
    if_not_exists: bool = False
    append_only: bool = False
    on_conflict: ConflictRule | None = None
    options: Options = ()
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class CreateMaterializedView:
    name: ObjectName
    columns: tuple[str, ...]
    query: SqlQuery
    if_not_exists: bool = False
    emit_on_window_close: bool = False
    options: Options = ()


@dataclass(frozen=True, slots=True)
class CreateSink:
    """`query` is what the sink follows: the one written after AS, or all of the relation written after FROM.

    `into` is a table, and `into_columns` those of its columns that the query's columns fill, in order; the sink's own
    `columns` are then called like them.
    """

    name: ObjectName
    query: SqlQuery
    options: Options = ()
    if_not_exists: bool = False
    emit_on_window_close: bool = False
    into: ObjectName | None = None
    into_columns: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


# What defines a job that follows its query.
CreateFollowing = CreateMaterializedView | CreateSink


@dataclass(frozen=True, slots=True)
class CreateView:
    name: ObjectName
    columns: tuple[str, ...]
    query: SqlQuery
    or_replace: bool = False
    if_not_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """`name` is None where only the type was written; the body knows it by its number then."""

    name: str | None
    type: SqlType


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """A function, or an aggregate. A `strict` one gives NULL for any NULL argument; a `volatile` one may answer
    otherwise each time. `columns` are those of the rows it returns: as `UserFunction` has them."""

    name: ObjectName
    parameters: tuple[FunctionParameter, ...]
    returns: SqlType
    body: str
    or_replace: bool = False
    if_not_exists: bool = False
    strict: bool = False
    language: str = "sql"
    volatile: bool = False
    aggregate: bool = False
    columns: tuple[tuple[str, SqlType], ...] = ()


@dataclass(frozen=True, slots=True)
class IndexColumn:
    """`nulls_first` is None when the order's own default applies."""

    expression: SqlExpression
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """`name` is None when the user left it to the system."""

    name: ObjectName | None
    table: ObjectName
    columns: tuple[IndexColumn, ...]
    include: tuple[str, ...] = ()
    distributed_by: tuple[SqlExpression, ...] = ()
    if_not_exists: bool = False
    options: Options = ()


@dataclass(frozen=True, slots=True)
class CreateSchema:
    name: ObjectName
    if_not_exists: bool = False
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    name: str
    if_not_exists: bool = False
    owner: str | None = None


@dataclass(frozen=True, slots=True)
class CreateUser:
    """`options` are the words as written, lower case (`superuser`, `nologin`, ...)."""

    name: str
    options: tuple[str, ...] = ()
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class AlterUser:
    """`options` as for CREATE USER. `sets_password` tells PASSWORD NULL from no PASSWORD at all."""

    name: str
    options: tuple[str, ...] = ()
    password: str | None = field(default=None, repr=False)
    sets_password: bool = False
    new_name: str | None = None


@dataclass(frozen=True, slots=True)
class GrantTarget:
    """What GRANT and REVOKE are about: objects by name, or all of a kind in schemas (`whole_schemas`).

    `explicit` says that the kind was written; ON without one means any relation.
    """

    kind: ObjectKind
    names: tuple[ObjectName, ...]
    whole_schemas: bool = False
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """`privileges` in lower case, empty for ALL."""

    privileges: tuple[str, ...]
    target: GrantTarget
    users: tuple[str, ...]
    grant_option: bool = False
    granted_by: str | None = None


@dataclass(frozen=True, slots=True)
class Revoke:
    """`option_only` takes away the right to grant on, and leaves the privilege."""

    privileges: tuple[str, ...]
    target: GrantTarget
    users: tuple[str, ...]
    option_only: bool = False
    cascade: bool = False
    granted_by: str | None = None


@dataclass(frozen=True, slots=True)
class AlterDefaultPrivileges:
    """GRANT or REVOKE on what will be made: by `owners` (empty: who says so), in `schemas` (empty: any).

    `kind` is SCHEMA for schemas themselves. `option` is WITH GRANT OPTION, or GRANT OPTION FOR.
    """

    privileges: tuple[str, ...]
    kind: ObjectKind
    users: tuple[str, ...]
    owners: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    revokes: bool = False
    option: bool = False


@dataclass(frozen=True, slots=True)
class AlterOwner:
    """ALTER ... OWNER TO."""

    kind: ObjectKind
    name: ObjectName
    owner: str


@dataclass(frozen=True, slots=True)
class Drop:
    """Functions are told apart: an `aggregate` is dropped by its own word."""

    kind: ObjectKind
    names: tuple[ObjectName, ...]
    if_exists: bool = False
    cascade: bool = False
    aggregate: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """ALTER ... RENAME TO. The new name stays in the schema of the old one."""

    kind: ObjectKind
    name: ObjectName
    new_name: str


@dataclass(frozen=True, slots=True)
class CommentOn:
    """`column` is set for COMMENT ON COLUMN, `comment` is None to remove one."""

    kind: ObjectKind
    name: ObjectName
    column: str | None
    comment: str | None


# --- rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Select:
    """Any query: SELECT, WITH, VALUES, TABLE, and set operations of them."""

    query: SqlQuery


@dataclass(frozen=True, slots=True)
class Assignment:
    column: str
    value: SqlExpression


@dataclass(frozen=True, slots=True)
class OnConflict:
    """What an INSERT does with a row whose key is there: without assignments, nothing.

    The key is named by its columns or by its constraint, or not at all.
    """

    columns: tuple[str, ...] = ()
    constraint: str | None = None
    assignments: tuple[Assignment, ...] = ()
    where: SqlExpression | None = None


@dataclass(frozen=True, slots=True)
class Insert:
    """`columns` is empty when none were listed; `source` is None for DEFAULT VALUES."""

    table: ObjectName
    columns: tuple[str, ...]
    source: SqlQuery | None
    returning: tuple[exp.Expr, ...] = ()
    alias: str | None = None
    on_conflict: OnConflict | None = None


@dataclass(frozen=True, slots=True)
class Update:
    table: ObjectName
    alias: str | None
    assignments: tuple[Assignment, ...]
    where: SqlExpression | None = None
    returning: tuple[exp.Expr, ...] = ()
    others: SqlQuery | None = None  # FROM: everything of what it lists
    common: SqlQuery | None = None  # WITH: a query that has nothing but those before the statement


@dataclass(frozen=True, slots=True)
class Delete:
    table: ObjectName
    alias: str | None
    where: SqlExpression | None = None
    returning: tuple[exp.Expr, ...] = ()
    truncating: bool = False  # written as TRUNCATE
    others: SqlQuery | None = None  # USING: everything of what it lists
    common: SqlQuery | None = None  # as in Update


# --- the database and the session --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Flush:
    """Returns when everything written before it is visible in every view."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Returns when the jobs being created in the background are done; with a name, when that one is."""

    name: ObjectName | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing moves until RESUME: no write, no view, no job in creation. Queries go on."""


@dataclass(frozen=True, slots=True)
class Resume:
    pass


@dataclass(frozen=True, slots=True)
class Tended:
    """A relation that VACUUM or ANALYZE names, with columns where some were listed."""

    name: ObjectName
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vacuum:
    """VACUUM (`folds`) or ANALYZE; `relations` is empty when none were named."""

    relations: tuple[Tended, ...]
    folds: bool
    analyzes: bool
    verbose: bool


@dataclass(frozen=True, slots=True)
class RefreshView:
    """Brings a view with a schedule up to date now."""

    name: ObjectName


@dataclass(frozen=True, slots=True)
class SetSchema:
    schema: str


@dataclass(frozen=True, slots=True)
class SwapWith:
    """Two objects exchange their names. Whatever reads them goes on reading the same rows."""

    other: ObjectName


@dataclass(frozen=True, slots=True)
class SetBackfillRateLimit:
    """`value` is None for DEFAULT."""

    value: str | None


@dataclass(frozen=True, slots=True)
class SetSinkRateLimit:
    """`value` is None for DEFAULT."""

    value: str | None


@dataclass(frozen=True, slots=True)
class SetParallelism:
    """How many tasks a job may use, ever after or while it is created; `value` is None for DEFAULT."""

    value: str | None
    backfill: bool = False


@dataclass(frozen=True, slots=True)
class SetOptions:
    options: Options


@dataclass(frozen=True, slots=True)
class SetConfig:
    """Settings of one job, each as TOML writes its value; None for one that is taken back."""

    values: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class SetRetention:
    """How long a subscription keeps changes, as written."""

    retention: str


@dataclass(frozen=True, slots=True)
class SetQuery:
    """Another query of a materialized view."""

    query: SqlQuery


@dataclass(frozen=True, slots=True)
class AddColumn:
    column: ColumnDef
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class RetypeColumn:
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class AlterColumns:
    """ALTER TABLE of a column, or of its watermark."""

    table: ObjectName
    action: AddColumn | DropColumn | RenameColumn | RetypeColumn | Watermark


@dataclass(frozen=True, slots=True)
class AlterRelation:
    kind: ObjectKind
    name: ObjectName
    action: (
        SetSchema
        | SwapWith
        | SetBackfillRateLimit
        | SetSinkRateLimit
        | SetParallelism
        | SetOptions
        | SetConfig
        | SetRetention
        | SetQuery
    )


@dataclass(frozen=True, slots=True)
class Recover:
    """Starts the coordinator again from the last checkpoint."""


@dataclass(frozen=True, slots=True)
class Begin:
    """`isolation` is None where not mentioned; so for SET TRANSACTION."""

    read_only: bool = False
    isolation: str | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Rollback:
    pass


@dataclass(frozen=True, slots=True)
class Savepoint:
    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    name: str


@dataclass(frozen=True, slots=True)
class RollbackTo:
    savepoint: str


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """SET TRANSACTION and SET SESSION CHARACTERISTICS AS TRANSACTION. `read_only` is None where not mentioned."""

    read_only: bool | None = None
    isolation: str | None = None
    session: bool = False


@dataclass(frozen=True, slots=True)
class DeclareCursor:
    name: str
    query: SqlQuery
    hold: bool = False


@dataclass(frozen=True, slots=True)
class CreateSubscription:
    """A change log of `source` that is kept for a while."""

    name: ObjectName
    source: ObjectName
    options: Options
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSecret:
    """A text that others use by its name, and nobody is shown."""

    name: ObjectName
    text: str = field(repr=False)
    options: Options
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterSecret:
    """Another text for a secret. `options` are those that were given anew."""

    name: ObjectName
    text: str = field(repr=False)
    options: Options


class Since(Enum):
    """Where a cursor over a subscription begins, unless at a time."""

    NOW = "now"
    BEGIN = "begin"  # the oldest change that is retained
    FULL = "full"  # with all rows as of now


@dataclass(frozen=True, slots=True)
class DeclareSubscriptionCursor:
    """`since` as a number is a time in milliseconds since 1970."""

    name: str
    subscription: ObjectName
    since: Since | int = Since.NOW


@dataclass(frozen=True, slots=True)
class FetchCursor:
    """`count` is None for ALL. The options say how long to wait for rows."""

    name: str
    count: int | None = 1
    options: Options = ()


@dataclass(frozen=True, slots=True)
class MoveCursor:
    """Passes over rows. `count` is None for ALL."""

    name: str
    count: int | None = 1


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """`name` is None for ALL; so for DEALLOCATE."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Prepare:
    """`types` are those of the first parameters; the others are found. `text` is the source of the statement."""

    name: str
    types: tuple[SqlType, ...]
    statement: Statement
    text: str


@dataclass(frozen=True, slots=True)
class Execute:
    name: str
    arguments: tuple[SqlExpression, ...] = ()


@dataclass(frozen=True, slots=True)
class Deallocate:
    name: str | None


@dataclass(frozen=True, slots=True)
class Discard:
    """`everything` is DISCARD ALL, `temporary` DISCARD TEMP; the others have nothing to discard."""

    everything: bool
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Unlisten:
    """Accepted because connection pools send it; nobody can listen."""


class CopyForm(Enum):
    TEXT = "text"
    CSV = "csv"
    BINARY = "binary"


# The columns of an option FORCE_… of COPY; None is all of them, which is spelled *.
ForcedColumns: TypeAlias = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """The options of COPY; None is the form's own default."""

    form: CopyForm = CopyForm.TEXT
    delimiter: str | None = None
    null: str | None = None
    header: bool = False
    quote: str | None = None
    escape: str | None = None
    match_header: bool = False  # the names of the header have to be those of the columns
    force_quote: ForcedColumns = ()
    force_null: ForcedColumns = ()
    force_not_null: ForcedColumns = ()


@dataclass(frozen=True, slots=True)
class CopyFrom:
    """COPY ... FROM STDIN. `columns` is empty when none were listed; rows that do not meet `where` are left out."""

    table: ObjectName
    columns: tuple[str, ...]
    format: CopyFormat
    where: SqlExpression | None = None


@dataclass(frozen=True, slots=True)
class CopyTo:
    """COPY ... TO STDOUT of a query, which reads `table` where one was named."""

    query: SqlQuery
    table: ObjectName | None
    columns: tuple[str, ...]
    format: CopyFormat


@dataclass(frozen=True, slots=True)
class AlterSystemSet:
    """`value` is None for DEFAULT."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class SetVariable:
    """SET and RESET of one variable. `value` is None for DEFAULT; a list is joined with ", "."""

    name: str
    value: str | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class ResetAll:
    pass


@dataclass(frozen=True, slots=True)
class ShowVariable:
    name: str


@dataclass(frozen=True, slots=True)
class ShowAll:
    pass


@dataclass(frozen=True, slots=True)
class ShowParameters:
    pattern: str | None = None


class Listing(Enum):
    """What SHOW lists. The value is how it is written."""

    TABLES = "tables"
    MATERIALIZED_VIEWS = "materialized views"
    VIEWS = "views"
    SOURCES = "sources"
    SINKS = "sinks"
    INDEXES = "indexes"
    SCHEMAS = "schemas"
    DATABASES = "databases"
    USERS = "users"
    JOBS = "jobs"
    FUNCTIONS = "functions"
    CONNECTIONS = "connections"
    SECRETS = "secrets"
    SUBSCRIPTIONS = "subscriptions"
    CURSORS = "cursors"
    SUBSCRIPTION_CURSORS = "subscription cursors"
    INTERNAL_TABLES = "internal tables"


@dataclass(frozen=True, slots=True)
class ShowObjects:
    """`source` is what FROM names: a schema, or for INDEXES a table. `pattern` is LIKE's."""

    listing: Listing
    source: ObjectName | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowColumns:
    name: ObjectName
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class ShowCreate:
    kind: ObjectKind
    name: ObjectName


@dataclass(frozen=True, slots=True)
class Describe:
    name: ObjectName


class ExplainFormat(Enum):
    TEXT = "text"
    JSON = "json"
    DOT = "dot"


@dataclass(frozen=True, slots=True)
class Explain:
    """`text` is the source of the statement explained."""

    statement: Statement
    text: str
    verbose: bool = False
    analyze: bool = False
    format: ExplainFormat = ExplainFormat.TEXT


@dataclass(frozen=True, slots=True)
class ExplainJob:
    """EXPLAIN ANALYZE of what is kept up to date: what it does in some seconds."""

    kind: ObjectKind
    name: ObjectName
    seconds: int


@dataclass(frozen=True, slots=True)
class CancelJobs:
    ids: tuple[int, ...]


Statement = (
    CreateTable
    | CreateTableAs
    | CreateMaterializedView
    | CreateSink
    | CreateSource
    | CreateView
    | CreateFunction
    | CreateIndex
    | CreateSchema
    | CreateDatabase
    | CreateUser
    | Vacuum
    | AlterUser
    | Grant
    | Revoke
    | AlterDefaultPrivileges
    | AlterOwner
    | Drop
    | Rename
    | CommentOn
    | Select
    | Insert
    | Update
    | Delete
    | Flush
    | Wait
    | Recover
    | Pause
    | Resume
    | RefreshView
    | AlterColumns
    | AlterRelation
    | Begin
    | Commit
    | Rollback
    | Savepoint
    | ReleaseSavepoint
    | RollbackTo
    | SetTransaction
    | CreateSubscription
    | CreateSecret
    | AlterSecret
    | DeclareCursor
    | DeclareSubscriptionCursor
    | FetchCursor
    | MoveCursor
    | CloseCursor
    | Prepare
    | Execute
    | Deallocate
    | Discard
    | Unlisten
    | CopyFrom
    | CopyTo
    | AlterSystemSet
    | SetVariable
    | ResetAll
    | ShowVariable
    | ShowAll
    | ShowParameters
    | ShowObjects
    | ShowColumns
    | ShowCreate
    | Describe
    | Explain
    | ExplainJob
    | CancelJobs
)


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement with its exact source, without the semicolon. `start` is its offset in the text parsed."""

    statement: Statement
    text: str
    start: int
