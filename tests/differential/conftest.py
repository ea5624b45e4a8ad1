"""One Spark for all differential tests: databases come and go inside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.differential.scenario import Harbour, Port
from tests.sparks import shared_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    yield from shared_spark("differential tests", tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(autouse=True)
def files_change_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folds take files of a few rows over as they are, as they do with large ones elsewhere."""
    monkeypatch.setattr("seiche.storage.fold.ROWS_TAKEN_OVER", 4)


@pytest.fixture
def port(spark: SparkSession, tmp_path: Path) -> Iterator[Port]:
    """Opens databases in folders of their own, and closes them."""
    opened: list[Harbour] = []

    def open_(**settings: Any) -> Harbour:
        harbour = Harbour(tmp_path / f"harbour{len(opened)}", spark, "", barrier_interval_ms=50, **settings)
        opened.append(harbour)
        return harbour

    yield open_
    for harbour in opened:
        harbour.__exit__()
