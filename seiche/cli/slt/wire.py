"""A server behind PostgreSQL's wire protocol as a target: simple queries, values in the server's own text.

Nothing here is of one server: what a file left behind is found in `pg_catalog`, as any client would.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterable

import psycopg
from psycopg import pq

from seiche.cli.slt.answers import Answered, Refused
from seiche.cli.slt.targets import SEICHE_LABEL, Thing, drop_all, quoted
from seiche.errors import SurroundingsError

_CONNECT_TIMEOUT_S = 10

_KINDS = {"r": "TABLE", "p": "TABLE", "v": "VIEW", "m": "MATERIALIZED VIEW"}
_RELATIONS = """
SELECT c.relkind, n.nspname, c.relname, NULL
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm')
  AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'rw_catalog', 'pg_toast')
"""
# What PostgreSQL has no word for is a table in its catalogs.
_OBJECTS = """
SELECT upper(r.relation_type), s.name, r.name, NULL
FROM rw_catalog.rw_relations r JOIN rw_catalog.rw_schemas s ON s.id = r.schema_id
WHERE r.relation_type <> 'internal table'
UNION ALL
SELECT 'SECRET', s.name, x.name, NULL
FROM rw_catalog.rw_secrets x JOIN rw_catalog.rw_schemas s ON s.id = x.schema_id
UNION ALL
SELECT CASE p.prokind WHEN 'a' THEN 'AGGREGATE' ELSE 'FUNCTION' END, n.nspname, p.proname,
  pg_catalog.pg_get_function_identity_arguments(p.oid)
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
"""
_SCHEMAS = "SELECT nspname FROM pg_catalog.pg_namespace"
_DATABASES = "SELECT datname FROM pg_catalog.pg_database"
_USERS = "SELECT rolname FROM pg_catalog.pg_roles"


def _named(schema: str | None, name: str | None, parameters: str | None) -> str:
    return quoted(str(schema), str(name)) + (f"({parameters})" if parameters is not None else "")


class WireTarget:
    """A server by its address, in libpq's form."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._own = self.connect()
        version = self._own.run("SELECT version()")
        words = str(version.rows).lower() if isinstance(version, Answered) else ""
        self.labels = frozenset({SEICHE_LABEL if SEICHE_LABEL in words else "postgres"})

    def connect(self) -> WireConnection:
        try:
            return WireConnection(psycopg.connect(self._address, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S))
        except psycopg.OperationalError as cause:
            raise SurroundingsError("server cannot be reached", detail=str(cause).strip()) from cause

    def inventory(self) -> frozenset[Thing]:
        rows = self._expect(_OBJECTS if SEICHE_LABEL in self.labels else _RELATIONS)
        found = {Thing(_KINDS.get(str(row[0]), str(row[0])), _named(*row[1:])) for row in rows}
        found |= {Thing("SCHEMA", quoted(str(row[0]))) for row in self._expect(_SCHEMAS)}
        found |= {Thing("DATABASE", quoted(str(row[0]))) for row in self._expect(_DATABASES)}
        return frozenset(found | {Thing("USER", quoted(str(row[0]))) for row in self._expect(_USERS)})

    def drop(self, things: Iterable[Thing]) -> None:
        def run(statement: str) -> Refused | None:
            outcome = self._own.run(statement)
            return outcome if isinstance(outcome, Refused) else None

        drop_all(things, run)

    def close(self) -> None:
        self._own.close()

    def _expect(self, sql: str) -> tuple[tuple[str | None, ...], ...]:
        outcome = self._own.run(sql)
        if isinstance(outcome, Refused):
            raise SurroundingsError(f"server refused a statement of the runner: {outcome.message}", detail=sql.strip())
        return outcome.rows or ()


class WireConnection:
    def __init__(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        self._connection = connection

    def run(self, sql: str) -> Answered | Refused:
        # libpq's own simple query: psycopg's cursors would use the extended protocol and convert values.
        try:
            result = self._connection.pgconn.exec_(sql.encode())
        except psycopg.OperationalError as cause:  # it was lost before, and that was told then
            raise self._lost() from cause
        return self._outcome(result)

    def run_for(self, sql: str, seconds: float) -> Answered | Refused | None:
        """The outcome if it comes in that time; else the statement is left to run and the connection is of no use."""
        connection = self._connection.pgconn
        connection.send_query(sql.encode())
        deadline = time.monotonic() + seconds
        last: pq.abc.PGresult | None = None
        while True:
            connection.flush()
            while connection.is_busy():
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([connection.socket], [], [], left)[0]:
                    return None
                connection.consume_input()
            result = connection.get_result()
            if result is None:
                return Answered() if last is None else self._outcome(last)
            last = result

    @property
    def in_transaction(self) -> bool:
        return self._connection.pgconn.transaction_status != pq.TransactionStatus.IDLE

    def _outcome(self, result: pq.abc.PGresult) -> Answered | Refused:
        match result.status:
            case pq.ExecStatus.TUPLES_OK:
                rows = tuple(
                    tuple(_text(result.get_value(row, column)) for column in range(result.nfields))
                    for row in range(result.ntuples)
                )
                return Answered(rows, _touched(result))
            case pq.ExecStatus.COMMAND_OK | pq.ExecStatus.EMPTY_QUERY:
                return Answered(None, _touched(result))
            case _:
                return self._refused(result)

    def close(self) -> None:
        self._connection.close()

    def _lost(self) -> SurroundingsError:
        return SurroundingsError(
            "server closed the connection", detail=self._connection.pgconn.error_message.decode().strip()
        )

    def _refused(self, result: pq.abc.PGresult) -> Refused:
        def part(field: pq.DiagnosticField) -> str | None:
            return _text(result.error_field(field))

        if self._connection.pgconn.status != pq.ConnStatus.OK:
            raise self._lost()
        message = part(pq.DiagnosticField.MESSAGE_PRIMARY) or (_text(result.error_message) or "").strip()
        detail, hint = part(pq.DiagnosticField.MESSAGE_DETAIL), part(pq.DiagnosticField.MESSAGE_HINT)
        return Refused(message, part(pq.DiagnosticField.SQLSTATE) or "", detail, hint)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()


def _touched(result: pq.abc.PGresult) -> int | None:
    return result.command_tuples
