"""One Spark for all integration tests: a JVM takes seconds to start, a database on it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import seiche

Open = Callable[..., seiche.Engine]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.log.level", "OFF")
        .config("spark.driver.memory", "2g")
        .config("spark.driver.maxResultSize", "128m")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()


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
