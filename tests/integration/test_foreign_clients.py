"""Clients that are not Python, as their users run them: pgjdbc, node-postgres and pgbench.

Their programs stand in `clients`. A client that is not installed is skipped, and says what to install.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers import HarbourServer

pytestmark = pytest.mark.spark

PROGRAMS = Path(__file__).parent / "clients"
JARS = (Path(sys.prefix, "clients", "postgresql.jar"), Path("/usr/share/java/postgresql.jar"))
NODE_MODULES = Path(sys.prefix, "clients", "node_modules")
SECONDS = 600  # only a client that hangs takes so long


def run(*command: object, **environment: str) -> str:
    """What the program printed; it has to end with code 0."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **environment},
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def java() -> str:
    """A Java that runs programs from their source."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None or "jdk.compiler" not in run(found, "--list-modules"):
        pytest.skip("A JDK IS NOT INSTALLED: install openjdk-17-jdk-headless to run this test")
    return found


@pytest.mark.timeout(700)
def test_programs_in_java_talk_and_ask_for_metadata_through_pgjdbc(server: HarbourServer) -> None:
    jar = next((each for each in JARS if each.exists()), None)
    if jar is None:
        pytest.skip("PGJDBC IS NOT INSTALLED: install libpostgresql-jdbc-java to run this test")
    said = run(java(), "-cp", jar, PROGRAMS / "Harbour.java", server.port)
    assert said.count("ok ") == 10


def test_programs_in_javascript_talk_through_node_postgres(server: HarbourServer) -> None:
    node = shutil.which("node")
    if node is None or not (NODE_MODULES / "pg").exists():
        pytest.skip("NODE-POSTGRES IS NOT INSTALLED: run scripts/install-clients to run this test")
    said = run(node, PROGRAMS / "harbour.js", server.port, NODE_PATH=str(NODE_MODULES))
    assert said.count("ok ") == 6


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_pgbench_reads_with_twenty_clients(server: HarbourServer, protocol: str) -> None:
    pgbench = shutil.which("pgbench") or next(map(str, Path("/usr/lib/postgresql").glob("*/bin/pgbench")), None)
    if pgbench is None:
        pytest.skip("PGBENCH IS NOT INSTALLED: install postgresql-contrib or postgresql to run this test")
    with server.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS calls (id int PRIMARY KEY, ship int)")
        connection.execute("INSERT INTO calls SELECT g, g % 100 + 1 FROM generate_series(1, 1000) g")
        connection.execute(
            "CREATE MATERIALIZED VIEW IF NOT EXISTS arrivals_by_ship AS "
            "SELECT ship, count(*) AS n FROM calls GROUP BY ship"
        )
    address = ["-h", "127.0.0.1", "-p", server.port, "-U", "root"]
    work = ["-n", "-M", protocol, "-f", PROGRAMS / "arrivals.pgbench", "-c", 20, "-j", 2, "-t", 2]
    assert "actually processed: 40/40" in run(pgbench, *address, *work, "dev")
