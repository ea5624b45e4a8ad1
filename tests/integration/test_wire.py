"""A real server in a process of its own, with real drivers. One server serves all tests; each has its own tables."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import asyncpg
import psycopg
import psycopg2
import pytest
import sqlalchemy as sa
from sqlalchemy import orm

from seiche.cli.main import main
from tests.servers import HarbourServer, java_below, running_server

# Takes hours. Spark looks whether it was told to stop after every thousand rows of the longer series.
ENDLESS = "SELECT sum(a::bigint * b) FROM generate_series(1, 100000000) a, generate_series(1, 1000) b"

# Takes an hour or so, in one loop over all pairs of rows that Spark itself never interrupts.
ALL_PAIRS = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"

pytestmark = pytest.mark.spark


@pytest.fixture
def connection(server: HarbourServer) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with server.connect() as connection:
        yield connection


def test_writes_of_a_transaction_appear_together_at_its_commit(server: HarbourServer) -> None:
    with server.connect() as other, server.connect(autocommit=False) as mine:
        other.execute("CREATE TABLE berths (name varchar PRIMARY KEY, depth int)")
        other.execute("CREATE TABLE moves (berth varchar, ship int)")
        other.execute("CREATE MATERIALIZED VIEW totals AS SELECT berth, count(*) AS n FROM moves GROUP BY berth")
        mine.execute("INSERT INTO berths VALUES ('north', 10), ('south', 12)")
        mine.execute("INSERT INTO moves VALUES ('north', 1)")
        mine.execute("UPDATE berths SET depth = depth + 1 WHERE name = 'north'")
        assert mine.execute("DELETE FROM berths WHERE name = 'south'").rowcount == 1
        assert mine.execute("SELECT * FROM berths").fetchall() == [("north", 11)]
        assert mine.execute("SELECT count(*) FROM moves").fetchone() == (1,)
        assert other.execute("SELECT count(*) FROM berths").fetchone() == (0,)
        mine.commit()
        assert other.execute("SELECT * FROM berths").fetchall() == [("north", 11)]
        assert other.execute("SELECT * FROM totals").fetchall() == [("north", 1)]


def test_a_rolled_back_transaction_leaves_nothing(server: HarbourServer) -> None:
    with server.connect(autocommit=False) as connection:
        connection.execute("CREATE TABLE tides (at int PRIMARY KEY, height int)")
        connection.commit()
        connection.execute("INSERT INTO tides VALUES (1, 5)")
        connection.execute("SAVEPOINT low")
        connection.execute("INSERT INTO tides VALUES (2, 6)")
        connection.execute("ROLLBACK TO low")
        assert connection.execute("SELECT * FROM tides").fetchall() == [(1, 5)]
        connection.rollback()
        assert connection.execute("SELECT count(*) FROM tides").fetchone() == (0,)


def test_reads_of_a_transaction_see_one_epoch(server: HarbourServer) -> None:
    with server.connect() as other, server.connect(autocommit=False) as mine:
        other.execute("CREATE TABLE buoys (id int PRIMARY KEY)")
        other.execute("INSERT INTO buoys VALUES (1)")
        assert mine.execute("SELECT count(*) FROM buoys").fetchone() == (1,)
        other.execute("INSERT INTO buoys VALUES (2)")
        assert mine.execute("SELECT count(*) FROM buoys").fetchone() == (1,)
        mine.commit()
        assert mine.execute("SELECT count(*) FROM buoys").fetchone() == (2,)


def test_the_second_of_two_transactions_that_change_a_row_fails(server: HarbourServer) -> None:
    with server.connect(autocommit=False) as first, server.connect(autocommit=False) as second:
        first.execute("CREATE TABLE cranes (id int PRIMARY KEY, load int)")
        first.execute("INSERT INTO cranes VALUES (1, 10), (2, 10)")
        first.commit()
        assert first.execute("UPDATE cranes SET load = load + 1 WHERE id = 1").rowcount == 1
        assert second.execute("UPDATE cranes SET load = load + 5 WHERE id = 1").rowcount == 1
        first.commit()
        with pytest.raises(psycopg.errors.SerializationFailure):
            second.commit()
        second.rollback()
        second.execute("UPDATE cranes SET load = 0 WHERE id = 2")
        second.commit()
        assert second.execute("SELECT * FROM cranes ORDER BY id").fetchall() == [(1, 11), (2, 0)]


def test_every_type_survives_binary_copy_and_comes_back_in_both_formats(
    connection: psycopg.Connection[tuple[object, ...]],
) -> None:
    connection.execute(
        "CREATE TABLE cargo (i int, b bigint, s smallint, n numeric, d double precision, r real, t varchar, ok boolean,"
        " day date, at timestamp, seen timestamptz, took interval, clock time, raw bytea, doc jsonb, tags varchar[])"
    )
    row = (
        1, 2**40, 3, Decimal("12.5"), 1.25, 0.5, "Ærø\t\\ 'x'", True, date(2024, 2, 29),
        datetime(2024, 2, 29, 1, 2, 3, 400000), datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC), timedelta(days=2, hours=3),
        datetime(2024, 1, 1, 4, 5, 6).time(), b"\x00\xff", {"a": [1, None]}, ["x", "y z", None],
    )  # fmt: skip
    marks = ", ".join(["%s"] * 14 + ["%s::jsonb", "%s"])
    connection.execute(f"INSERT INTO cargo VALUES ({marks})", (*row[:14], '{"a": [1, null]}', row[15]))
    with connection.cursor() as cursor:
        with cursor.copy("COPY cargo TO STDOUT (FORMAT binary)") as copy:
            data = b"".join(bytes(part) for part in copy)
        with cursor.copy("COPY cargo FROM STDIN (FORMAT binary)") as copy:
            copy.write(data)
        with cursor.copy("COPY cargo TO STDOUT") as copy:
            lines = b"".join(bytes(part) for part in copy)
        with cursor.copy("COPY cargo FROM STDIN") as copy:
            copy.write(lines)
    for binary in (False, True):
        with connection.cursor(binary=binary) as cursor:
            assert cursor.execute("SELECT * FROM cargo").fetchall() == [row] * 4


def test_copy_takes_the_rows_that_meet_its_condition(server: HarbourServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        connection.execute(
            "CREATE TABLE leads (id int PRIMARY KEY, name varchar NOT NULL, depth int DEFAULT 4, twice int AS (id * 2))"
        )

        def copied(statement: str, rows: str) -> str | None:
            with cursor.copy(statement) as copy:
                copy.write(rows)
            return cursor.statusmessage

        rows = "1,Ada,3\n2,Bea,\n3,,9\n4,Cid,12\n"
        condition = "name IS NOT NULL AND leads.depth > 3.5"
        assert copied(f"COPY leads (id, name, depth) FROM STDIN (FORMAT csv) WHERE {condition}", rows) == "COPY 1"
        assert copied("COPY leads (id, name) FROM STDIN CSV WHERE depth = 4 AND id < 6", "5,Eve\n6,Fay\n") == "COPY 1"
        found = connection.execute("SELECT * FROM leads ORDER BY id").fetchall()
        assert found == [(4, "Cid", 12, 8), (5, "Eve", 4, 10)]
        for wrong, sqlstate in {
            "nosuch = 1": "42703",
            "id": "42804",
            "count(*) > 1": "42803",
            "id = (SELECT 1)": "0A000",
            "twice > 2": "42P10",
        }.items():
            with pytest.raises(psycopg.Error) as caught:
                copied(f"COPY leads (id, name) FROM STDIN WHERE {wrong}", "7\tGia\n")
            assert caught.value.sqlstate == sqlstate
        with pytest.raises(psycopg.errors.SyntaxError):
            copied("COPY leads TO STDOUT WHERE id = 1", "")


def test_asyncpg_prepares_fetches_and_uses_cursors(server: HarbourServer) -> None:
    async def talk() -> None:
        link = await asyncpg.connect(host="127.0.0.1", port=server.port, user="root", database="dev", ssl=False)
        await link.execute("CREATE TABLE pilots (id bigint PRIMARY KEY, name varchar)")
        await link.executemany("INSERT INTO pilots VALUES ($1, $2)", [(1, "Ada"), (2, None), (3, "x'; --")])
        assert await link.fetchval("SELECT name FROM pilots WHERE id = $1", 3) == "x'; --"
        assert await link.fetchval("SELECT count(*) FROM pilots WHERE id = ANY($1)", [1, 2]) == 2
        async with link.transaction():
            assert [row["id"] async for row in link.cursor("SELECT id FROM pilots ORDER BY id", prefetch=2)] == [
                1,
                2,
                3,
            ]
        await link.close()

    asyncio.run(talk())


def test_sqlalchemy_maps_objects(server: HarbourServer) -> None:
    class Base(orm.DeclarativeBase):
        pass

    class Tug(Base):
        __tablename__ = "tugs"
        id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, primary_key=True, autoincrement=False)
        name: orm.Mapped[str] = orm.mapped_column(sa.String)

    engine = sa.create_engine(f"postgresql+psycopg://root@127.0.0.1:{server.port}/dev")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE tugs (id bigint PRIMARY KEY, name varchar)"))
    with orm.Session(engine) as session:
        session.add_all([Tug(id=1, name="Odin"), Tug(id=2, name="Thor")])
        session.flush()
        session.get_one(Tug, 1).name = "Freya"
        session.commit()
        assert session.scalars(sa.select(Tug.name).order_by(Tug.id)).all() == ["Freya", "Thor"]
    engine.dispose()


def test_psycopg2_takes_rows_from_a_named_cursor(server: HarbourServer) -> None:
    link = psycopg2.connect(host="127.0.0.1", port=server.port, dbname="dev", user="root")
    with link.cursor("gulls") as cursor:
        cursor.itersize = 40
        cursor.execute("SELECT * FROM generate_series(1, 100)")
        assert [row[0] for row in cursor] == list(range(1, 101))
    link.close()


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_takes_rows_from_a_named_cursor(server: HarbourServer, binary: bool) -> None:
    """It asks for the columns of the cursor as for those of a portal."""
    with (
        server.connect(autocommit=False) as connection,
        connection.cursor("gulls", binary=binary) as cursor,
    ):
        cursor.itersize = 40
        cursor.execute("SELECT g, g::text AS t FROM generate_series(1, %s) g", (100,))
        assert [column.name for column in cursor.description or ()] == ["g", "t"]
        assert list(cursor) == [(number, str(number)) for number in range(1, 101)]


def test_a_cancel_request_stops_the_spark_job(server: HarbourServer) -> None:
    with server.connect() as connection:
        threading.Timer(1.5, connection.cancel_safe).start()
        started = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(ENDLESS)
        assert time.monotonic() - started < 20
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize("query", [ALL_PAIRS, f"{ALL_PAIRS} WHERE a + b < 0"])
def test_a_cancelled_query_leaves_no_task_that_goes_on(server: HarbourServer, query: str) -> None:
    java = java_below(server.pid)
    with server.connect() as connection:
        threading.Timer(4, connection.cancel_safe).start()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(query)
    deadline = time.monotonic() + 60
    while (busy := _busy_share(java)) > 0.1:
        assert time.monotonic() < deadline, f"Java still uses {busy:.0%} of a core"


def _busy_share(process: int, seconds: float = 1.0) -> float:
    """The time of processors that a process takes, as a share of one of them."""

    def ticks() -> int:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    time.sleep(seconds)
    return (ticks() - before) / os.sysconf("SC_CLK_TCK") / seconds


def test_short_statements_and_epochs_pass_queries_that_take_hours(server: HarbourServer) -> None:
    with ExitStack() as stack:
        long = [stack.enter_context(server.connect()) for _ in range(4)]
        short = stack.enter_context(server.connect())
        short.execute("CREATE TABLE passing (id int PRIMARY KEY, tons int)")
        short.execute("CREATE MATERIALIZED VIEW passed AS SELECT count(*) AS n, sum(tons) AS tons FROM passing")

        def run(connection: psycopg.Connection[tuple[object, ...]]) -> None:
            with suppress(psycopg.errors.QueryCanceled):
                connection.execute(ALL_PAIRS)

        runs = [threading.Thread(target=run, args=(each,)) for each in long]
        for thread in runs:
            thread.start()
        try:
            time.sleep(4)  # all of them compute by then
            short.execute("SET statement_timeout = '60s'")
            for number in range(3):
                short.execute(f"INSERT INTO passing SELECT i, i FROM generate_series({number}, {number}) AS s(i)")
                short.execute("FLUSH")
                assert short.execute("SELECT n FROM passed").fetchone() == (number + 1,)
                assert short.execute("SELECT sum(a) FROM generate_series(1, 10) a").fetchone() == (55,)
            assert all(thread.is_alive() for thread in runs)
        finally:
            for connection in long:
                connection.cancel_safe()
            for thread in runs:
                thread.join()


def test_a_statement_stops_at_its_timeout(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute("SET statement_timeout = 800")
    with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
        connection.execute(ENDLESS)


@pytest.mark.parametrize("ends", ["timeout", "cancel"])
def test_a_statement_ends_in_time_while_spark_plans_it(server: HarbourServer, ends: str) -> None:
    joined = ", ".join(f"generate_series(1, 1) AS t{number}" for number in range(250))
    with server.connect() as connection:
        if ends == "timeout":
            connection.execute("SET statement_timeout = 300")
        else:
            threading.Timer(0.3, connection.cancel_safe).start()
        started = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute(f"SELECT count(*) FROM {joined}")
        assert time.monotonic() - started < 12
        connection.execute("RESET statement_timeout")
        assert connection.execute("SELECT count(*) FROM generate_series(1, 3)").fetchone() == (3,)


def test_a_statement_that_spark_has_no_stack_to_plan_for_is_too_complex(tmp_path: Path) -> None:
    joined = ", ".join(f"generate_series(1, 1) AS t{number}" for number in range(1_000))
    small = "spark_conf.spark.driver.extraJavaOptions=-Xss1m"
    with running_server(tmp_path, small) as server, server.connect() as connection:
        with pytest.raises(psycopg.errors.StatementTooComplex):
            connection.execute(f"SELECT count(*) FROM {joined}")
        assert connection.execute("SELECT count(*) FROM generate_series(1, 3)").fetchone() == (3,)


def test_a_large_result_streams_through_scratch_files(server: HarbourServer) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        connection.execute("ALTER SYSTEM SET inline_bytes_max = 1000000")
        total = sum(row[0] for row in cursor.stream("SELECT g FROM generate_series(1, 300000) g ORDER BY g"))  # type: ignore[misc]
        assert total == 300_000 * 300_001 // 2
        connection.execute("ALTER SYSTEM SET inline_bytes_max TO DEFAULT")
    assert not list((server.folder / "scratch").glob("result-*"))


def test_a_query_without_columns_has_a_row_of_nothing_for_each_row(server: HarbourServer) -> None:
    with server.connect(autocommit=False) as connection:
        for prepared in (False, True):
            answered = connection.execute("SELECT FROM generate_series(1, 3)", prepare=prepared)
            assert (answered.statusmessage, answered.description) == ("SELECT 3", [])
            assert answered.fetchall() == [(), (), ()]
            assert connection.execute("SELECT", prepare=prepared).fetchall() == [()]
        connection.execute("DECLARE gulls CURSOR FOR SELECT FROM generate_series(1, 30)")
        assert connection.execute("FETCH 20 FROM gulls").fetchall() == [()] * 20
        assert connection.execute("FETCH ALL FROM gulls").fetchall() == [()] * 10
    with server.connect() as connection, connection.cursor() as cursor:
        connection.execute("ALTER SYSTEM SET inline_bytes_max = 1000000")
        assert sum(1 for _ in cursor.stream("SELECT FROM generate_series(1, 300000)")) == 300_000
        connection.execute("ALTER SYSTEM SET inline_bytes_max TO DEFAULT")


def test_the_shell_talks_to_the_running_server(server: HarbourServer, capsys: pytest.CaptureFixture[str]) -> None:
    folder = ["--data-dir", str(server.folder)]
    assert main(["sql", *folder, "-c", "SELECT 1 AS one, 2.50 AS n, 'x' AS t; SELEC"]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines()[2].split() == ["1", "|", "2.50", "|", "x"]
    assert "syntax error" in shown.err
    assert main(["status", *folder]) == 0
    assert str(server.port) in capsys.readouterr().out


def test_psql_runs_a_script(server: HarbourServer) -> None:
    script = (
        "BEGIN; DECLARE c CURSOR FOR SELECT * FROM generate_series(1, 3); FETCH 2 FROM c; COMMIT;\nSHOW timezone;\n"
    )
    address = f"host=127.0.0.1 port={server.port} dbname=dev user=root"
    done = subprocess.run(
        ["psql", "-X", "-A", "-t", "-q", address], input=script, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout.splitlines(), done.stderr) == (["1", "2", "UTC"], "")


def test_a_server_whose_spark_has_died_ends_and_a_restart_recovers(server: HarbourServer) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE moorings (id int PRIMARY KEY)")
        connection.execute("INSERT INTO moorings VALUES (1)")
    os.kill(java_of(server.pid), signal.SIGKILL)
    assert server.wait() == 1
    assert "Spark's Java process has ended" in server.log.read_text()
    server.start()
    with server.connect() as connection:
        assert connection.execute("SELECT * FROM moorings").fetchall() == [(1,)]


def java_of(process: int) -> int:
    """The Java that a process has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
            if name == "java" and int(rest.split()[1]) == process:
                return int(stat.parent.name)
    raise AssertionError(f"process {process} has no Java")


def test_what_was_acknowledged_is_there_after_a_kill_and_a_restart(server: HarbourServer) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE beacons (id int PRIMARY KEY)")
        connection.execute("INSERT INTO beacons VALUES (1)")
        connection.execute("CREATE DATABASE piers")
    with server.connect(dbname="piers") as elsewhere:
        elsewhere.execute("CREATE TABLE beacons (id int PRIMARY KEY)")
        elsewhere.execute("CREATE MATERIALIZED VIEW lit AS SELECT count(*) AS n FROM beacons")
        elsewhere.execute("INSERT INTO beacons VALUES (2), (3)")
    server.kill()
    assert main(["status", "--data-dir", str(server.folder)]) == 1
    server.start()
    with server.connect() as connection:
        assert connection.execute("SELECT * FROM beacons").fetchall() == [(1,)]
        with server.connect(dbname="piers") as elsewhere:
            elsewhere.execute("INSERT INTO beacons VALUES (4)")
            assert elsewhere.execute("SELECT b.id, n FROM dev.public.beacons b, lit").fetchall() == [(1, 3)]
        connection.execute("DROP DATABASE piers")
    with pytest.raises(psycopg.OperationalError, match='database "piers" does not exist'):
        server.connect(dbname="piers")
    assert server.stop() == 0
    assert not (server.folder / "server.json").exists()
    server.start()
    assert os.path.exists(server.folder / "server.json")
