"""One Spark for both workloads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.sparks import shared_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield from shared_spark("workload tests", tmp_path_factory.mktemp("warehouse"))
