"""The whole engine with PostgreSQL as its metadata database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import seiche
from seiche import errors
from tests.integration.postgres import temporary_server

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with temporary_server() as server:
        yield server.create_database()


def test_a_database_with_its_metadata_in_postgresql_survives_restarts_and_folds(
    spark: SparkSession, tmp_path: Path, address: str
) -> None:
    def connect() -> seiche.Engine:
        return seiche.connect(tmp_path / "harbour", spark=spark, metadata=address)

    with connect() as db:
        db.execute("CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 1)")
        db.execute("CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS n FROM t GROUP BY v")
        with pytest.raises(errors.LeaseHeld):
            connect()
    with connect() as db:
        db.execute("INSERT INTO t VALUES (3, 2)")
        for item in db.database.catalog.objects():
            assert db.database.maintenance.fold_now(item.id)  # type: ignore[arg-type]
        db.execute("DELETE FROM t WHERE k = 1")
        assert sorted(db.sql("SELECT * FROM m").rows or []) == [(1, 1), (2, 1)]
