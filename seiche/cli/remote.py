"""A running server in the place of an engine: what the shell needs, over the wire.

The server prints every value; here it is only read back as far as the shell's table needs to know it, to set numbers
right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import TracebackType
from typing import Any

import psycopg
from psycopg.pq import ExecStatus

from seiche.errors import SeicheError
from seiche.server.types import type_of_oid
from seiche.types import VARCHAR, Kind, SqlType, numeric


class ServerError(SeicheError):
    """What the server said, with its own state."""

    code = "server_error"

    def __init__(self, message: str, sqlstate: str, detail: str | None, hint: str | None, position: int | None) -> None:
        super().__init__(message, detail=detail, hint=hint, position=position)
        self.sqlstate = sqlstate


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    name: str
    type: SqlType


@dataclass(frozen=True, slots=True)
class RemoteResult:
    tag: str
    columns: tuple[RemoteColumn, ...] | None
    rows: list[tuple[Any, ...]] | None
    notices: tuple[str, ...] = ()
    seconds: float = 0.0


class RemoteDatabase:
    """Satisfies what `seiche.cli.session.Session` asks of a database."""

    def __init__(self, host: str, port: int, *, user: str = "root", database: str = "dev") -> None:
        self._notices: list[str] = []
        try:
            self._connection = psycopg.connect(
                host=host, port=port, user=user, dbname=database, autocommit=True, application_name="seiche sql"
            )
        except psycopg.OperationalError as error:
            raise ServerError(str(error).strip().splitlines()[0], "08006", None, None, None) from error
        self._connection.add_notice_handler(lambda diag: self._notices.append(diag.message_primary or ""))

    def __enter__(self) -> RemoteDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def execute(self, text: str) -> Sequence[RemoteResult]:
        self._notices.clear()
        results: list[RemoteResult] = []
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(text.encode())  # no parameters: PostgreSQL's simple query, of several statements
                while True:
                    assert cursor.pgresult is not None
                    results.append(self._result(cursor.pgresult, cursor.statusmessage or ""))
                    if not cursor.nextset():
                        return results
        except psycopg.Error as error:
            raise _translated(error) from error

    def _result(self, result: Any, tag: str) -> RemoteResult:
        notices, self._notices = tuple(self._notices), []
        if result.status != ExecStatus.TUPLES_OK:
            return RemoteResult(tag, None, None, notices)
        columns = tuple(
            RemoteColumn((result.fname(index) or b"").decode(), _type(result.ftype(index), result.fmod(index)))
            for index in range(result.nfields)
        )
        rows = [
            tuple(_value(result.get_value(row, index), column.type) for index, column in enumerate(columns))
            for row in range(result.ntuples)
        ]
        return RemoteResult(tag, columns, rows, notices)

    def cancel(self) -> None:
        self._connection.cancel_safe()

    def names(self) -> Sequence[str]:
        found = []
        for listing in ("SHOW TABLES", "SHOW MATERIALIZED VIEWS", "SHOW VIEWS"):  # each behind its schema
            found += [str(row[0]).split(".", 1)[-1] for result in self.execute(listing) for row in result.rows or []]
        return sorted(found)


def _type(oid: int, modifier: int) -> SqlType:
    """Numbers by their own types; of everything else the text is shown as it came."""
    try:
        type_ = type_of_oid(oid)
    except SeicheError:
        return VARCHAR
    if type_ is None or not type_.is_number:
        return VARCHAR
    if type_.kind is Kind.NUMERIC and modifier >= 4:
        return numeric(modifier - 4 >> 16, modifier - 4 & 0xFFFF, declared=True)
    return type_


def _value(raw: bytes | None, type_: SqlType) -> Any:
    if raw is None:
        return None
    text = raw.decode()
    if type_.is_integer:
        return int(text)
    if type_.is_float:
        return float(text)
    return Decimal(text) if type_.kind is Kind.NUMERIC else text


def _translated(error: psycopg.Error) -> ServerError:
    diag = error.diag
    position = diag.statement_position
    return ServerError(
        diag.message_primary or str(error),
        error.sqlstate or "08006",
        diag.message_detail,
        diag.message_hint,
        None if position is None else int(position),
    )
