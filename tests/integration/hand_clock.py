"""A clock that tests move by hand, and a database on it."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

import seiche
from seiche.config import Config

START_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC


class HandClock:
    """A wall clock that stands still until it is moved; waiting takes its real time."""

    def __init__(self) -> None:
        self.ms = START_MS

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return time.monotonic()


class TimedHarbour:
    """A database on a clock of its own that can be closed and opened again."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.clock = HandClock()
        self.spark = spark
        self._folder = folder
        self.db = self._opened()

    def _opened(self) -> seiche.Engine:
        return seiche.Engine(Config.load(arguments={"data_dir": str(self._folder)}), self.spark, self.clock)

    def restart(self) -> None:
        self.db.close()
        self.db = self._opened()

    def execute(self, *statements: str) -> None:
        for each in statements:
            self.db.execute(each)
