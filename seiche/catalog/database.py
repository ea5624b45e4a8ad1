"""A connection to the metadata database: SQLite or PostgreSQL, told apart by the address.

Owns what differs between the two (drivers, pragmas, how a transaction begins, what an error means) and hands out
transactions. A transaction either commits or leaves nothing:

    with database.write() as connection:     one writer of this process at a time; COMMIT at the end
    with database.read() as connection:      sees one state of the database, whatever is written meanwhile
    with database.read_latest() as ...:      each statement sees what is committed by then

Errors of the drivers leave here as Seiche's: MetadataUnavailable and DiskFull when the transaction was rolled
back, CommitOutcomeUnknown when the connection broke while it was being committed.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError

from seiche.catalog import tables
from seiche.errors import (
    CommitOutcomeUnknown,
    ConfigError,
    DiskFull,
    FolderNotUsable,
    InvariantError,
    MetadataUnavailable,
    MetadataVersionError,
    SeicheError,
)

FORMAT = 2  # the number of the last migration
BUSY_TIMEOUT_S = 30  # how long to wait for another process that writes
IDLE_TIMEOUT_S = 60  # after which PostgreSQL ends a transaction that asks for nothing; ours take milliseconds
CONNECT_TIMEOUT_S = 10
MIGRATION_LOCK = 0x5E1C4E  # PostgreSQL's advisory lock while the tables are created or changed

_BEGIN = "seiche_begin"  # execution option: how a SQLite transaction begins
_DISK_FULL = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE}
_READING_PRAGMAS = (f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}", "PRAGMA query_only = ON")
_PRAGMAS = (
    f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # a commit is on the disk when it returns; WAL's default loses it with the power
    "PRAGMA foreign_keys = ON",
)


class MetadataDatabase:
    """Transactions on one metadata database. Safe to use from several threads.

    One that is `read_only` has `read` alone.
    """

    def __init__(self, url: URL, *, read_only: bool = False) -> None:
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._writing = threading.Lock()
        if self.is_sqlite:
            self._engine = sa.create_engine(url)
            sa.event.listen(self._engine, "connect", _prepare_sqlite_reader if read_only else _prepare_sqlite)
            sa.event.listen(self._engine, "begin", _begin_sqlite)
            self._reader = self._engine.execution_options(**{_BEGIN: "BEGIN"})
        else:
            # A process that vanished in the middle must not keep its locks, nor let us wait for them for ever.
            reading = "-c default_transaction_read_only=on " if read_only else ""
            limits = (
                f"{reading}-c idle_in_transaction_session_timeout={IDLE_TIMEOUT_S}s -c lock_timeout={BUSY_TIMEOUT_S}s"
            )
            options = f"{url.query.get('options', '')} {limits}".strip()
            # A pooled connection may have died with a restart of the server: ask before use.
            self._engine = sa.create_engine(
                url, pool_pre_ping=True, connect_args={"connect_timeout": CONNECT_TIMEOUT_S, "options": options}
            )
            self._reader = self._engine.execution_options(isolation_level="REPEATABLE READ")

    @staticmethod
    def connect(address: str, *, read_only: bool = False) -> MetadataDatabase:
        """Opens the database, without creating its tables yet; SQLite's folder is made if need be.

        One that is opened `read_only` has to exist, and nothing in it can change.
        """
        url = _parsed(address)
        database = MetadataDatabase(url, read_only=read_only)
        if database.is_sqlite and not read_only:
            assert url.database is not None
            _make_folder(Path(url.database).parent)
        try:
            with (database._reader if read_only else database._engine).begin():
                pass  # to begin a transaction that may write is to see whether one can
        except DBAPIError as error:
            database.close()
            raise database._cannot_open(error) from error
        return database

    @property
    def name(self) -> str:
        """The address as messages show it: without a password."""
        if self.is_sqlite:
            return str(self.url.database)
        return self.url.set(drivername="postgresql").render_as_string(hide_password=True)

    @property
    def uri(self) -> str:
        """The address with everything that another SQLAlchemy engine needs."""
        url = self.url.update_query_dict({"timeout": str(BUSY_TIMEOUT_S)}) if self.is_sqlite else self.url
        return url.render_as_string(hide_password=False)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        try:
            with self._reader.connect() as connection, connection.begin():
                yield connection
        except DBAPIError as error:
            raise self._translated(error) from error

    @contextmanager
    def read_latest(self) -> Iterator[Connection]:
        """A transaction that changes nothing but may lock rows, and sees what was committed while it waited."""
        try:
            with self._engine.connect() as connection, connection.begin() as transaction:
                yield connection
                transaction.rollback()  # not a commit, which could fail with an unknown outcome
        except DBAPIError as error:
            raise self._translated(error) from error

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is committed when the block ends and rolled back when it raises."""
        with self._writing:
            try:
                with self._engine.connect() as connection:
                    transaction = connection.begin()
                    yield connection
                    self._commit(connection, transaction)
            except DBAPIError as error:
                raise self._translated(error) from error

    def _commit(self, connection: Connection, transaction: sa.RootTransaction) -> None:
        try:
            transaction.commit()
        except DBAPIError as error:
            # SQLite keeps a transaction open that it could not commit, and the pool would hand it to the next.
            connection.invalidate()
            # A server that answers with an error has rolled back. Without an answer nobody here can know.
            # SQLite has no connection to lose: a commit that fails there did not happen.
            if not self.is_sqlite and (error.connection_invalidated or _sqlstate(error) is None):
                raise CommitOutcomeUnknown(
                    "connection to the metadata database was lost during a commit",
                    detail=f"Whether the checkpoint is durable is not known. The driver said: {error.orig}",
                    hint=f'Check that the server of "{self.name}" runs; the committed epoch tells the outcome.',
                ) from error
            raise

    def close(self) -> None:
        self._engine.dispose()

    # Errors

    def _translated(self, error: DBAPIError) -> SeicheError:
        """The error of a transaction that was rolled back."""
        cause = error.orig
        if isinstance(error, IntegrityError):
            return InvariantError(
                "metadata database refused a change that contradicts it", detail=f"The database said: {cause}"
            )
        full = getattr(cause, "sqlite_errorcode", None) in _DISK_FULL if self.is_sqlite else _sqlstate(error) == "53100"
        if full:
            return DiskFull(
                f'disk of the metadata database "{self.name}" is full',
                detail="Nothing of the change was kept.",
                hint="Make room; the next attempt goes on from the last state.",
            )
        return MetadataUnavailable(
            f'metadata database "{self.name}" cannot be used',
            detail=f"Nothing of the change was kept. The database said: {cause}",
            hint="Check that it runs and can be reached; the next attempt goes on from the last state.",
        )

    def _cannot_open(self, error: DBAPIError) -> SeicheError:
        cause = error.orig
        if not self.is_sqlite:
            return MetadataUnavailable(
                f'metadata database "{self.name}" cannot be opened',
                detail=f"The server said: {str(cause).strip()}",
                hint="Check the address, that the server runs, and that the database and the user exist.",
            )
        code = getattr(cause, "sqlite_errorcode", 0)
        if code in _DISK_FULL:
            return self._translated(error)
        if code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return self._translated(error)
        if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            return FolderNotUsable(
                f'file "{self.name}" is not a metadata database',
                detail=f"SQLite said: {cause}",
                hint="Use another data folder, or restore the file from an archive.",
            )
        return FolderNotUsable(
            f'file "{self.name}" cannot be opened for writing',
            detail=f"SQLite said: {cause}",
            hint="Check the owner and the permissions of its folder, or use another data folder.",
        )

    # Migrations

    def migrate(self, now_ms: int, fill: Callable[[Connection], None]) -> None:
        """Brings the tables to this version's format, and calls `fill` in the same transaction if they are new.

        Several processes that start together end with one set of tables.
        """
        with self.read() as connection:
            if _format_of(connection) == FORMAT:
                return
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            found = self.known_format(connection)
            if found < FORMAT:
                _run_migrations(connection)
                done = {"format": FORMAT, "seiche_version": _seiche_version(), "migrated_ms": now_ms}
                connection.execute(sa.insert(tables.history), done)
            if found == 0:
                fill(connection)

    def known_format(self, connection: Connection) -> int:
        """The format of the tables, 0 where there are none; raises MetadataVersionError for one of the future."""
        found = _format_of(connection)
        if found > FORMAT:
            raise self._too_new(connection, found)
        return found

    def _too_new(self, connection: Connection, found: int) -> MetadataVersionError:
        writer = connection.execute(
            sa.select(tables.history.c.seiche_version).order_by(tables.history.c.format.desc()).limit(1)
        ).scalar()
        return MetadataVersionError(
            f'metadata database "{self.name}" has format {found}, this version of Seiche knows formats up to {FORMAT}',
            detail=f"It was last migrated by Seiche {writer or 'of an unknown version'}; "
            f"this is Seiche {_seiche_version()}. Nothing was changed.",
            hint=f"Install Seiche {writer or 'of the version that wrote it'} or later, or use another data folder.",
        )


def _parsed(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise ConfigError(
            f'metadata address "{address}" is not an address',
            hint="Write sqlite:///path/to/file.db or postgresql://user@host/database.",
        ) from error
    match url.get_backend_name():
        case "sqlite" if url.database and url.database != ":memory:":
            # Absolute, since the process may change its folder and others are handed the address.
            return URL.create("sqlite", database=str(Path(url.database).absolute()))
        case "postgresql" | "postgres":
            return url.set(drivername="postgresql+psycopg")
        case _:
            raise ConfigError(
                f'metadata address "{url.render_as_string(hide_password=True)}" is not supported',
                detail="The metadata database is a SQLite file or a PostgreSQL database.",
                hint="Write sqlite:///path/to/file.db or postgresql://user@host/database.",
            )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderNotUsable(
            f'folder "{folder}" cannot be created',
            detail=f"The system said: {error.strerror}.",
            hint="Check the path and its permissions, or use another data folder.",
        ) from error


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where we say so, not before the first change
    for pragma in _PRAGMAS:
        connection.execute(pragma)


def _prepare_sqlite_reader(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    for pragma in _READING_PRAGMAS:
        connection.execute(pragma)


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE takes the right to write at once. A transaction that begins as a reader cannot wait for it later.
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN IMMEDIATE"))


def _sqlstate(error: DBAPIError) -> str | None:
    return getattr(error.orig, "sqlstate", None)


def _format_of(connection: Connection) -> int:
    """The format of the tables, 0 where there are none."""
    if not sa.inspect(connection).has_table(tables.VERSION_TABLE):
        return 0
    found = connection.execute(sa.text(f"SELECT version_num FROM {tables.VERSION_TABLE}")).scalar()
    return int(found) if found is not None else 0


def _run_migrations(connection: Connection) -> None:
    from alembic import command  # not needed, and slow to import, when the tables are there already
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _seiche_version() -> str:
    try:
        return version("seiche")
    except PackageNotFoundError:  # a source tree that was not installed
        return "from source"
