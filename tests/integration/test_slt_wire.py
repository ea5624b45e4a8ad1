"""The runner through the wire, against a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from seiche.cli.main import main
from seiche.cli.slt.answers import Answered
from seiche.cli.slt.runner import Options, run_file
from seiche.cli.slt.wire import WireTarget
from seiche.errors import SurroundingsError
from tests.integration.postgres import PostgresServer, temporary_server

SCRIPT = r"""
statement ok
CREATE TABLE ships (id int PRIMARY KEY, name text, docked bool, tags int[])

statement count 3
INSERT INTO ships VALUES (1, 'Aurora', true, '{1,2}'), (2, '', false, NULL), (3, NULL, NULL, '{}')

query ITBT
SELECT * FROM ships ORDER BY id
----
1 Aurora t {1,2}
2 (empty) f NULL
3 NULL NULL {}

query I rowsort
SELECT id FROM ships
----
3
2
1

statement error division by zero
SELECT 1 / 0

statement error (42P01)
SELECT * FROM shps

query error
SELECT * FROM shps
----
db error: ERROR: relation "shps" does not exist


statement ok
CREATE SCHEMA "East Quay"; CREATE VIEW "East Quay".docked AS SELECT * FROM ships WHERE docked

connection pilot
statement ok
SET search_path = "East Quay"

connection pilot
query I
SELECT id FROM docked
----
1

statement error does not exist
SELECT id FROM docked

skipif postgres
statement ok
nonsense
"""


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with temporary_server() as running:
        yield running


def test_a_file_passes_through_the_wire_and_leaves_nothing(server: PostgresServer, tmp_path: Path) -> None:
    address = server.create_database()
    target = WireTarget(address)
    file = tmp_path / "harbour.slt"
    file.write_text(SCRIPT)
    before = target.inventory()
    for _ in range(2):
        report = run_file(file, target, Options())
        assert report.ok, report
        assert (report.passed, report.skipped) == (11, 1)
    assert target.inventory() == before
    target.close()


def test_the_command_tells_failures_and_ends_with_code_1(
    server: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = conninfo_to_dict(server.create_database())
    (tmp_path / "good.slt").write_text("query I\nSELECT 1\n----\n1\n")
    (tmp_path / "bad.slt").write_text("statement ok\nSELECT 1\n\nquery I\nSELECT 2\n----\n3\n")
    options = [f"--{key}={address[name]}" for key, name in (("host", "host"), ("port", "port"), ("user", "user"))]
    options.append(f"--dbname={address['dbname']}")
    assert main(["slt", *options, str(tmp_path / "good.slt")]) == 0
    assert "1 files, 0 failed; records: 1 passed, 0 failed, 0 skipped" in capsys.readouterr().out
    assert main(["slt", *options, str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "bad.slt:4" in out
    assert "- 3" in out
    assert "2 files, 1 failed; records: 2 passed, 1 failed, 0 skipped" in out


def test_a_lost_connection_is_no_expected_error(server: PostgresServer) -> None:
    address = server.create_database()
    target = WireTarget(address)
    connection = target.connect()
    own = connection.run("SELECT pg_backend_pid()")
    assert isinstance(own, Answered)
    assert own.rows is not None
    with psycopg.connect(address, autocommit=True) as other:
        other.execute(f"SELECT pg_terminate_backend({own.rows[0][0]})")
    with pytest.raises(SurroundingsError, match="closed the connection"):
        connection.run("SELECT 1")
    target.close()


def test_a_server_that_is_not_there_is_told(server: PostgresServer) -> None:
    with pytest.raises(SurroundingsError, match="cannot be reached"):
        WireTarget("host=127.0.0.1 port=1 user=harbour dbname=none")
