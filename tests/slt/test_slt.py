"""Every file below this folder, through a server's wire, plain and with kills, and through a real PostgreSQL.

PostgreSQL keeps the files honest: what they expect is what another database answers, not what ours happened to say.
Its materialized views do not follow their tables, so there they are plain views. What is Seiche's own stands under
`onlyif seiche`, or in a file that ends at once elsewhere.

The server is a process of its own. In runs with kills it is killed with -9 around each CREATE and DROP; every answer
has to be the one that the file expects all the same. A kill takes ten seconds, so all files share theirs, see
`tests.slt.crowd` (`make test-kills`); one by one they are long tests. There the server compiles its plans, which takes
half of the time; plain runs interpret them.

SEICHE_TEST_SLT names other files or folders to run instead.
"""

from __future__ import annotations

import os
import random
import re
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from seiche.cli.slt.answers import Answered, Refused
from seiche.cli.slt.command import find_files, report_text
from seiche.cli.slt.kills import Alone, KilledTarget
from seiche.cli.slt.runner import FileReport, Options, run_file
from seiche.cli.slt.servers import ServerProcess
from seiche.cli.slt.targets import Connection, Thing
from seiche.cli.slt.wire import WireTarget
from tests.integration.postgres import temporary_server
from tests.servers import running_server
from tests.slt.crowd import Crowd, CrowdTarget, Member
from tests.sparks import INTERPRETED

FOLDER = Path(__file__).parent
FILES = find_files(os.environ.get("SEICHE_TEST_SLT", str(FOLDER)).split(os.pathsep))
OPTIONS = Options(keep_going=True)
SEED = int(os.environ.get("SEICHE_TEST_SEED") or random.SystemRandom().getrandbits(32))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("slt"), "shuffle_partitions=2", driver_memory="2g") as running:
        yield running


@pytest.fixture(scope="module")
def interpreting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = [f"spark_conf.{name}={value}" for name, value in INTERPRETED.items()]
    folder = tmp_path_factory.mktemp("slt")
    with running_server(folder, "shuffle_partitions=2", *settings, driver_memory="2g") as running:
        yield running


class PlainViews:
    """A server whose materialized views are made plain views, and which need not be told to FLUSH."""

    def __init__(self, target: WireTarget) -> None:
        self._target = target
        self.labels = target.labels

    def connect(self) -> PlainConnection:
        return PlainConnection(self._target.connect())

    def inventory(self) -> frozenset[Thing]:
        return self._target.inventory()

    def drop(self, things: Iterable[Thing]) -> None:
        self._target.drop(things)


class PlainConnection:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, sql: str) -> Answered | Refused:
        if sql.strip().upper() == "FLUSH":
            return Answered()
        return self._connection.run(re.sub(r"\bMATERIALIZED VIEW\b", "VIEW", sql))

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[PlainViews]:
    with temporary_server() as server:
        target = WireTarget(server.create_database())
        yield PlainViews(target)
        target.close()


def _name(path: Path) -> str:
    return str(path.relative_to(FOLDER)) if path.is_relative_to(FOLDER) else str(path)


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_postgres_answers_as_the_file_says(file: Path, postgres: PlainViews) -> None:
    report = run_file(file, postgres, OPTIONS)
    assert report.ok, report_text(report)


@pytest.fixture
def wire(interpreting: ServerProcess) -> Iterator[WireTarget]:
    with closing(WireTarget(interpreting.address)) as target:
        yield target


@pytest.mark.spark
@pytest.mark.parametrize("file", FILES, ids=_name)
def test_the_server_answers_as_the_file_says(file: Path, wire: WireTarget) -> None:
    report = run_file(file, wire, OPTIONS)
    assert report.ok, report_text(report)
    assert report.passed


DEFINING = [path for path in FILES if re.search(r"^(CREATE|DROP)\b", path.read_text(), re.MULTILINE | re.IGNORECASE)]

# They name the schema `public`, look at all that there is, or go to other databases.
ALONE = {
    FOLDER / name
    for name in (
        "ddl/databases.slt",
        "ddl/schemas_and_rename.slt",
        "session/temporary_tables.slt",
        "show/analyze.slt",
        "show/show_and_describe.slt",
    )
}
IN_ANY_SCHEMA = [path for path in DEFINING if path not in ALONE]


def _killed(path: Path) -> object:
    marks = [pytest.mark.spark, pytest.mark.long, *([pytest.mark.kills] if path in ALONE else [])]
    return pytest.param(path, marks=marks, id=_name(path))


@pytest.mark.timeout(3600)  # up to twenty starts of a server
@pytest.mark.parametrize("file", [_killed(path) for path in DEFINING])
def test_the_server_answers_so_also_when_it_is_killed_around_each_create_and_drop(
    file: Path, server: ServerProcess
) -> None:
    with closing(KilledTarget(Alone(server, seed=zlib.crc32(_name(file).encode())))) as target:
        report = run_file(file, target, replace(OPTIONS, execute=target.execute))
        assert report.ok, report_text(report)
        assert target.kills


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.kills
@pytest.mark.timeout(3600)
def test_the_server_answers_all_files_so_when_it_is_killed_around_each_create_and_drop(tmp_path: Path) -> None:
    with running_server(tmp_path, "shuffle_partitions=2", driver_memory="3g") as server:
        crowd = Crowd(server, SEED)
        members = []
        with closing(WireTarget(server.address)) as own, closing(own.connect()) as connection:
            for number, file in enumerate(IN_ANY_SCHEMA):
                assert isinstance(connection.run(f"CREATE SCHEMA file_{number}"), Answered)
                members.append((file, f"file_{number}", crowd.join()))

        def run(file: Path, schema: str, member: Member) -> tuple[FileReport, int]:
            try:
                with closing(CrowdTarget(member, schema)) as target:
                    return run_file(file, target, replace(OPTIONS, execute=target.execute)), target.kills
            finally:
                member.leave()

        with ThreadPoolExecutor(len(members)) as pool:
            reports = list(pool.map(lambda each: run(*each), members))
        failed = [report_text(report) for report, _ in reports if not report.ok]
        assert not failed, f"seed {SEED} (SEICHE_TEST_SEED={SEED} repeats it)\n" + "\n".join(failed)
        assert all(kills for _, kills in reports)
