"""Every file below this folder, through the engine, and through a real PostgreSQL.

PostgreSQL keeps the files honest: what they expect is what another database answers, not what ours happened to say.
Its materialized views do not follow their tables, so there they are plain views. What is Seiche's own stands under
`onlyif seiche`, or in a file that ends at once elsewhere.

SEICHE_TEST_SLT names other files or folders to run instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import seiche
from seiche.cli.slt.answers import Answered, Refused
from seiche.cli.slt.command import find_files, report_text
from seiche.cli.slt.runner import Options, run_file
from seiche.cli.slt.targets import Connection, EngineTarget, Thing
from seiche.cli.slt.wire import WireTarget
from tests.integration.postgres import temporary_server

FOLDER = Path(__file__).parent
FILES = find_files(os.environ.get("SEICHE_TEST_SLT", str(FOLDER)).split(os.pathsep))
OPTIONS = Options(keep_going=True)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineTarget]:
    folder = tmp_path_factory.mktemp("slt")
    with seiche.connect(folder, master="local[2]", driver_memory="2g", shuffle_partitions=2) as database:
        yield EngineTarget(database)


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


@pytest.mark.spark
@pytest.mark.parametrize("file", FILES, ids=_name)
def test_the_engine_answers_as_the_file_says(file: Path, engine: EngineTarget) -> None:
    report = run_file(file, engine, OPTIONS)
    assert report.ok, report_text(report)
    assert report.passed
