"""Real drivers against a server whose sessions answer from memory."""

from __future__ import annotations

import asyncio
import datetime
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import asyncpg
import psycopg
import psycopg2
import pytest

from seiche.errors import ConfigError, InvalidText
from seiche.far_days import FarDate, FarTimestamp
from seiche.server.server import ServerOptions
from seiche.server.types import encode_column, text_of
from seiche.session.passwords import verifier_of
from seiche.types import DATE, TIMESTAMP, TIMESTAMPTZ
from tests.unit.server.harbour import FakeBackend, RunningServer, running_server


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path, {"root": None, "pilot": verifier_of("tide")})


@pytest.fixture
def running(backend: FakeBackend) -> Iterator[RunningServer]:
    with running_server(backend, connections_max=20) as server:
        yield server


def connect(running: RunningServer, **more: object) -> psycopg.Connection[tuple[object, ...]]:
    arguments = {"host": "127.0.0.1", "port": running.port, "dbname": "dev", "user": "root", "autocommit": True, **more}
    return psycopg.connect(**arguments)  # type: ignore[arg-type]


def test_a_query_gives_typed_rows(running: RunningServer) -> None:
    with connect(running) as connection:
        assert connection.execute("SELECT * FROM ships").fetchall() == [(1, "Aurora"), (2, None)]


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    ("type_name", "value"),
    [
        ("bigint", 2**62),
        ("integer", -7),
        ("smallint", 3),
        ("double precision", 1.5e300),
        ("real", 0.25),
        ("numeric", Decimal("12345.67890001")),
        ("numeric", Decimal("-0.0001")),
        ("numeric", Decimal("0")),
        ("numeric", Decimal("99990000")),
        ("boolean", True),
        ("varchar", "O'Hara; DROP TABLE ships --"),
        ("date", datetime.date(1999, 12, 31)),
        ("timestamp", datetime.datetime(2024, 2, 29, 12, 30, 0, 123456)),
        ("timestamptz", datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)),
        ("bytea", b"\x00\xff\\"),
    ],
)
def test_values_go_there_and_back(running: RunningServer, binary: bool, type_name: str, value: object) -> None:
    placeholder = "%b" if binary else "%t"
    with connect(running) as connection, connection.cursor(binary=binary) as cursor:
        cursor.execute(f"SELECT {placeholder}::{type_name}", [value])
        assert cursor.fetchone() == (value,)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize(
    ("type_name", "text"),
    [
        ("date", "12345-01-02"),
        ("date", "0044-03-15 BC"),
        ("timestamp", "12345-01-02 03:04:05"),
        ("timestamp", "0044-03-15 00:00:00 BC"),
        ("timestamptz", "12345-01-02 03:04:05+00:00"),
    ],
)
def test_days_beyond_pythons_calendar_are_read_in_both_formats(binary: bool, type_name: str, text: str) -> None:
    kind = {"date": DATE, "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ}[type_name]
    value: FarDate | FarTimestamp = FarDate(3_789_392) if type_name == "date" else FarTimestamp(327_403_479_845_000_000)
    if "BC" in text:
        value = FarDate(-735_160) if type_name == "date" else FarTimestamp(-735_160 * 86_400_000_000)
    (raw,) = encode_column([value], kind, int(binary))
    assert raw is not None
    assert text_of(raw, kind, 0, int(binary)) == text


def test_infinity_in_binary_is_refused() -> None:
    for raw, kind in ((b"\x7f\xff\xff\xff", DATE), (b"\x80" + bytes(7), TIMESTAMP)):
        with pytest.raises(InvalidText, match="infinity is no value"):
            text_of(raw, kind, 0, 1)


def test_null_parameters_are_null(running: RunningServer) -> None:
    with connect(running) as connection:
        assert connection.execute("SELECT %s::integer", [None]).fetchone() == (None,)


def test_asyncpg_infers_parameters_and_reads_rows(running: RunningServer) -> None:
    async def talk() -> None:
        connection = await asyncpg.connect(
            host="127.0.0.1", port=running.port, user="root", database="dev", ssl=False, timeout=10
        )
        assert await connection.fetch("SELECT * FROM ships WHERE id = $1", 1) == [(1, "Aurora"), (2, None)]
        assert await connection.fetchval("SELECT $1::numeric", Decimal("1.50")) == Decimal("1.5")
        async with connection.transaction():
            found = [row[0] async for row in connection.cursor("SELECT * FROM generate_series(1, 2500)", prefetch=700)]
        assert found == list(range(1, 2501))
        with pytest.raises(asyncpg.DivisionByZeroError):
            await connection.execute("SELECT 1/0")
        assert await connection.fetchval("SELECT 5") == 5
        await connection.close()

    asyncio.run(talk())


def test_psql_is_told_each_of_several_writes_and_the_error_that_ends_them(running: RunningServer) -> None:
    address = f"postgresql://root@127.0.0.1:{running.port}/dev"
    text = "INSERT INTO ships VALUES (8); UPDATE ships SET id = 9; DELETE FROM ships WHERE broken; SELECT 1"
    done = subprocess.run(["psql", "-X", address, "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["INSERT", "UPDATE"]
    assert "division by zero" in done.stderr and done.returncode == 1


def test_psycopg2_runs_several_statements_in_one_query(running: RunningServer) -> None:
    connection = psycopg2.connect(host="127.0.0.1", port=running.port, dbname="dev", user="root")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute("BEGIN; SELECT 1; COMMIT; SELECT * FROM ships")
        assert cursor.fetchall() == [(1, "Aurora"), (2, None)]
        with pytest.raises(psycopg2.errors.DivisionByZero):
            cursor.execute("SELECT 1; SELECT 1/0; SELECT 2")
        cursor.execute("SELECT 1")
    connection.close()


def test_an_error_has_its_state_position_and_hint(running: RunningServer) -> None:
    with connect(running) as connection:
        with pytest.raises(psycopg.errors.SyntaxError) as caught:
            connection.execute("SELEC 1")
        assert caught.value.diag.statement_position == "1"
        assert caught.value.diag.message_hint is not None


def test_an_error_inside_a_transaction_shows_in_its_status(running: RunningServer) -> None:
    with connect(running, autocommit=False) as connection:
        connection.execute("SELECT 1")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1/0")
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        connection.rollback()
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def test_a_pipeline_skips_to_its_sync_after_an_error(running: RunningServer) -> None:
    with connect(running) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero), connection.pipeline():  # noqa: PT012
            connection.execute("SELECT 1")
            connection.execute("SELECT 1/0")
            connection.execute("SELECT 2")
        assert connection.execute("SELECT * FROM ships").fetchall()


def test_what_is_wrong_inside_is_not_shown(running: RunningServer, caplog: pytest.LogCaptureFixture) -> None:
    with connect(running) as connection:
        with pytest.raises(psycopg.errors.InternalError_) as caught:
            connection.execute("SELECT 'broken'")
        assert "secret" not in str(caught.value) and "Traceback" not in str(caught.value)
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert "secret" in caplog.text


def test_a_cancel_request_stops_the_statement(running: RunningServer) -> None:
    with connect(running) as connection:
        timer = threading.Timer(0.3, connection.cancel_safe)  # the other one would keep this process from answering
        timer.start()
        started = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT 'sleep'")
        assert time.monotonic() - started < 10
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_cancel_with_a_wrong_secret_does_nothing(running: RunningServer, backend: FakeBackend) -> None:
    with connect(running) as connection, socket.create_connection(("127.0.0.1", running.port)) as other:
        process = connection.info.backend_pid
        other.sendall(struct.pack("!iiiI", 16, 80_877_102, process, 12345))
        assert other.recv(100) == b""
        assert not backend.sessions[-1].cancelled.is_set()


def test_a_client_that_vanishes_cancels_its_statement_and_leaves_nothing(
    running: RunningServer, backend: FakeBackend
) -> None:
    connection = connect(running)
    connection.pgconn.send_query(b"SELECT 'sleep'")
    connection.pgconn.flush()
    running.until(lambda: len(backend.sessions) == 1)
    time.sleep(0.2)
    connection.close()
    running.until(lambda: backend.sessions[0].cancelled.is_set())
    running.until(lambda: backend.sessions[0].closed)
    running.until(lambda: running.server.sessions == 0)


def test_a_slow_reader_makes_the_server_wait_instead_of_fetching(running: RunningServer, backend: FakeBackend) -> None:
    connection = connect(running)
    connection.pgconn.send_query(b"SELECT * FROM generate_series(1, 5000000)")
    connection.pgconn.flush()
    running.until(lambda: bool(backend.sessions and backend.sessions[0].produced))
    seen = [0, backend.sessions[0].produced]
    while seen[-1] != seen[-2]:  # until the server waits; one that does not produces all of them
        time.sleep(1.0)
        seen.append(backend.sessions[0].produced)
    assert seen[-1] < 5_000_000
    connection.close()


def test_more_clients_than_the_limit_are_refused_clearly(running: RunningServer) -> None:
    connections = [connect(running) for _ in range(20)]
    with pytest.raises(psycopg.OperationalError, match="too many clients"):
        connect(running)
    connections.pop().close()
    running.until(lambda: running.server.sessions == 19)
    connect(running).close()
    for connection in connections:
        connection.close()


def test_the_right_password_lets_in_and_a_wrong_one_does_not(running: RunningServer) -> None:
    with connect(running, user="pilot", password="tide") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    for user, password in (("pilot", "ebb"), ("pilot", "")):
        with pytest.raises(psycopg.OperationalError):
            connect(running, user=user, password=password)


def test_an_unknown_user_or_database_is_refused(running: RunningServer) -> None:
    with pytest.raises(psycopg.OperationalError, match='role "nobody" does not exist'):
        connect(running, user="nobody")
    with pytest.raises(psycopg.OperationalError, match='database "other" does not exist'):
        connect(running, dbname="other")


def test_a_server_for_the_network_wants_to_be_told_whom_to_trust() -> None:
    for options in (ServerOptions(host="0.0.0.0"), ServerOptions(host="harbour.example")):
        with pytest.raises(ConfigError):
            options.check()
    ServerOptions(host="0.0.0.0", passwords=True).check()
    ServerOptions(host="0.0.0.0", trust_network=True).check()
    ServerOptions(host="::1").check()


def test_settings_of_the_startup_message_are_the_sessions(running: RunningServer, backend: FakeBackend) -> None:
    with connect(running, options="-c statement_timeout=500 -c search_path=quay", application_name="crane"):
        variables = backend.sessions[0].variables
        assert variables.get("statement_timeout") == "500"
        assert variables.get("application_name") == "crane"


def test_a_client_that_asks_for_another_encoding_is_told_the_one_that_is_used(running: RunningServer) -> None:
    with connect(running, client_encoding="latin1") as connection:
        assert connection.info.encoding == "utf-8"
        assert connection.execute("SELECT 'Ægir'::varchar").fetchone() == ("Ægir",)
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            connection.execute("SET client_encoding = 'latin1'")


def test_notices_stay_away_where_they_are_not_wanted(running: RunningServer) -> None:
    heard: list[str | None] = []
    with connect(running) as connection:
        connection.add_notice_handler(lambda diag: heard.append(diag.message_primary))
        connection.execute("SET client_min_messages = warning")
        connection.execute("FLUSH")
        assert heard == []


def test_a_changed_setting_is_told(running: RunningServer) -> None:
    with connect(running) as connection:
        connection.execute("SET TIME ZONE 'Europe/Oslo'")
        assert connection.info.parameter_status("TimeZone") == "Europe/Oslo"


def test_notices_arrive_while_the_statement_runs(running: RunningServer) -> None:
    with connect(running) as connection:
        heard: list[str | None] = []
        connection.add_notice_handler(lambda diag: heard.append(diag.message_primary))
        connection.execute("FLUSH")
        assert heard == ["the tide is coming in"]


@pytest.mark.parametrize("options", ["", "(FORMAT csv)", "(FORMAT binary)"])
def test_copied_rows_arrive_and_come_back(running: RunningServer, backend: FakeBackend, options: str) -> None:
    rows = [(7, 'tab\there, comma, "quote", back\\slash\nline'), (8, None), (9, "")]
    backend.ships.clear()
    with connect(running) as connection, connection.cursor() as cursor:
        if "csv" in options:
            with cursor.copy(f"COPY ships FROM STDIN {options}") as copy:
                copy.write('7,"tab\there, comma, ""quote"", back\\slash\nline"\n8,\n9,""\n')
        else:
            with cursor.copy(f"COPY ships FROM STDIN {options}") as copy:
                if "binary" in options:
                    copy.set_types(["int8", "varchar"])
                for row in rows:
                    copy.write_row(row)
        assert cursor.statusmessage == "COPY 3"
        assert backend.ships == rows
        with cursor.copy(f"COPY ships TO STDOUT {options}") as copy:
            if "binary" in options:
                copy.set_types(["int8", "varchar"])
                assert list(copy.rows()) == rows
            elif "csv" in options:
                text = b"".join(bytes(part) for part in copy).decode()
                assert text == '7,"tab\there, comma, ""quote"", back\\slash\nline"\n8,\n9,""\n'
            else:
                assert list(copy.rows()) == [tuple(None if v is None else str(v) for v in row) for row in rows]


def test_a_copy_that_the_client_gives_up_leaves_nothing(running: RunningServer, backend: FakeBackend) -> None:
    before = list(backend.ships)
    with connect(running) as connection, connection.cursor() as cursor:
        with pytest.raises(ValueError), cursor.copy("COPY ships FROM STDIN") as copy:  # noqa: PT012
            copy.write("5\tEos\n")
            raise ValueError("the client changes its mind")
        assert connection.execute("SELECT 1").fetchone() == (1,)
    assert backend.ships == before


def test_malformed_rows_of_a_copy_are_an_error(running: RunningServer) -> None:
    with connect(running) as connection, connection.cursor() as cursor:
        with pytest.raises(psycopg.errors.BadCopyFileFormat), cursor.copy("COPY ships FROM STDIN") as copy:
            copy.write("5\tEos\textra\n")
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_psql_talks(running: RunningServer) -> None:
    script = "SELECT * FROM ships;\nBEGIN; SELECT 1/0; COMMIT;\n\\copy ships from stdin\n5\tEos\n\\.\nSELECT 1;\n"
    address = f"host=127.0.0.1 port={running.port} dbname=dev user=root"
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", address], input=script, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.splitlines() == ["1|Aurora", "2|", "BEGIN", "ROLLBACK", "COPY 1", "1"]
    assert "division by zero" in done.stderr


def test_a_stopped_server_tells_its_clients(backend: FakeBackend) -> None:
    with running_server(backend) as running:
        connection = connect(running)
    with pytest.raises(psycopg.OperationalError, match="administrator command|closed"):
        connection.execute("SELECT 1")


def test_prepared_statements_can_be_deallocated(running: RunningServer) -> None:
    with connect(running) as connection:
        connection.prepare_threshold = 0
        connection.execute("SELECT * FROM ships WHERE id = %s", [1])
        connection.execute("DEALLOCATE ALL")
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            connection.execute("DEALLOCATE tug")


def test_a_cancel_stops_a_result_whose_rows_are_being_sent(running: RunningServer, backend: FakeBackend) -> None:
    with connect(running) as connection, connection.cursor() as cursor:

        def read() -> None:
            for number, _ in enumerate(cursor.stream("SELECT * FROM generate_series(1, 5000000)")):
                if number == 10:
                    connection.cancel_safe()

        with pytest.raises(psycopg.errors.QueryCanceled):
            read()
    assert backend.sessions[0].produced < 5_000_000


# --- FETCH that waits --------------------------------------------------------------------------------


def _waits(backend: FakeBackend, number: int = 0) -> bool:
    """Whether the server has begun to wait for what the session's FETCH wants."""
    return len(backend.sessions) > number and bool(backend.sessions[number].arrival._done_callbacks)


def test_a_fetch_waits_without_a_thread_until_rows_come(tmp_path: Path) -> None:
    backend = FakeBackend(tmp_path)
    with running_server(backend, threads=1) as running, connect(running) as waiting, connect(running) as other:
        answers: list[object] = []
        query = b"FETCH 5 FROM c WITH (timeout = '60s')"
        thread = threading.Thread(target=lambda: answers.append(waiting.execute(query).fetchall()), daemon=True)
        thread.start()
        running.until(lambda: _waits(backend))
        assert other.execute("SELECT 1").fetchone() == (1,), "the only thread is free"
        backend.sessions[0].arrival.set_result(None)
        thread.join(20)
        assert answers == [[(7,)]]


def test_a_fetch_gives_nothing_when_its_time_is_over(running: RunningServer) -> None:
    with connect(running) as connection:
        assert connection.execute("FETCH 5 FROM c WITH (timeout = '0.05s')").fetchall() == []
        connection.execute("SET statement_timeout = 20")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            connection.execute("FETCH 5 FROM c WITH (timeout = '60s')")


def test_a_waiting_fetch_can_be_cancelled(running: RunningServer, backend: FakeBackend) -> None:
    with connect(running) as connection:
        thread = threading.Thread(
            target=lambda: (running.until(lambda: _waits(backend)), connection.cancel_safe()), daemon=True
        )
        thread.start()
        with pytest.raises(psycopg.errors.QueryCanceled, match="user request"):
            connection.execute("FETCH 5 FROM c WITH (timeout = '60s')")
        thread.join(20)
        assert backend.sessions[0].arrival.cancelled()
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_client_that_goes_away_ends_its_wait(running: RunningServer, backend: FakeBackend) -> None:
    connection = connect(running)
    connection.pgconn.send_query(b"FETCH 5 FROM c WITH (timeout = '60s')")
    running.until(lambda: _waits(backend))
    connection.close()
    running.until(lambda: backend.sessions[0].closed)
    assert backend.sessions[0].arrival.cancelled()
