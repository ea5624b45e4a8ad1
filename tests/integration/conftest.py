"""One Spark for all integration tests: a JVM takes seconds to start, a database on it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import seiche
from tests.servers import HarbourServer, running_server
from tests.sparks import shared_spark

Open = Callable[..., seiche.Engine]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield from shared_spark("integration tests", tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarbourServer]:
    """A server in a process of its own, for all tests that talk to one. Each has tables of its own."""
    with running_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def open_database(spark: SparkSession, tmp_path: Path) -> Iterator[Open]:
    """Opens the database in the test's folder; again after it was closed."""
    opened: list[seiche.Engine] = []

    def open_(**settings: object) -> seiche.Engine:
        engine = seiche.connect(tmp_path / "harbour", spark=spark, **settings)
        opened.append(engine)
        return engine

    yield open_
    for engine in opened:
        engine.close()


@pytest.fixture
def db(open_database: Open) -> seiche.Engine:
    return open_database()
