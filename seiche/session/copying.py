"""COPY FROM: rows that arrive as text, collected until all are there, then inserted as one statement.

The rows of one COPY become visible together. Until then they wait in memory while they are few and in scratch files
beyond that. What is written in a cell is read by Spark, as a cast from text to the column's type, like the cells of an
INSERT … SELECT; a cell that cannot be read fails the whole COPY.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from seiche.model import Column
from seiche.storage.changes import local_frame

SPILL_BYTES = 16 * 1024 * 1024
_BATCH_ROWS = 20_000


class CopiedRows:
    """Rows of text cells in arrival order. `close` removes what they took on disk."""

    def __init__(self, columns: Sequence[Column], scratch: Path) -> None:
        self.columns = tuple(columns)
        self.count = 0
        self._schema = pa.schema([pa.field(f"cell_{index}", pa.string()) for index in range(len(self.columns))])
        self._folder = scratch / f"copy-{uuid.uuid4().hex}"
        self._rows: list[Sequence[str | None]] = []
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._files = 0

    def add(self, rows: Sequence[Sequence[str | None]]) -> None:
        self.count += len(rows)
        self._rows.extend(rows)
        if len(self._rows) >= _BATCH_ROWS:
            self._pack()

    def frame(self, spark: SparkSession) -> DataFrame:
        """All rows, every column a string. Valid until `close`."""
        self._pack()
        if self._files:
            self._spill()
            return spark.read.parquet(self._folder.as_uri())
        return local_frame(spark, pa.Table.from_batches(self._batches, self._schema))

    def close(self) -> None:
        self._rows, self._batches = [], []
        shutil.rmtree(self._folder, ignore_errors=True)

    def _pack(self) -> None:
        if not self._rows:
            return
        cells = list(zip(*self._rows, strict=True)) if self.columns else []
        batch = pa.record_batch([pa.array(each, pa.string()) for each in cells], schema=self._schema)
        self._rows = []
        self._batches.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > SPILL_BYTES:
            self._spill()

    def _spill(self) -> None:
        if not self._batches:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._files += 1
        table = pa.Table.from_batches(self._batches, self._schema)
        pq.write_table(table, self._folder / f"part-{self._files:06d}.parquet")
        self._batches, self._bytes = [], 0
