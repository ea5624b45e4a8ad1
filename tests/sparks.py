"""The Spark that a part of the tests shares."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from seiche import class_archive
from seiche.engine import STACK

# Plans of tests are tiny and seldom run twice: compiling them would take longer than interpreting them. Most of the
# servers that tests start compile.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def shared_spark(name: str, warehouse: Path, settings: Mapping[str, str] = {}) -> Iterator[SparkSession]:
    """A session for a fixture to yield, stopped at its end."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName(name)
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.scheduler.mode": "FAIR",
        "spark.log.level": "OFF",
        "spark.driver.maxResultSize": "128m",
        "spark.buffer.pageSize": "4m",  # each broadcast keeps a page at least, of 64 MiB by itself
        # Two other parts of the tests run beside: one thread that collects garbage takes less from them than four.
        "spark.driver.extraJavaOptions": " ".join(("-XX:+UseSerialGC", STACK, *class_archive.java_options())),
        "spark.sql.parser.manageParserCaches": "true",  # thousands of different queries fill a heap otherwise
        "spark.sql.parser.parserDfaCacheFlushThreshold": "50000",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(warehouse),
        **INTERPRETED,
        **settings,
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


class NoSpark:
    """Takes what a session tells Spark about itself; a statement that asks Spark for rows fails the test."""

    def __init__(self) -> None:
        self.sparkContext = self

    def setJobGroup(self, *_: object) -> None:  # noqa: N802  Spark's name
        pass

    def cancelJobGroup(self, *_: object) -> None:  # noqa: N802  Spark's name
        pass

    def setLocalProperty(self, *_: object) -> None:  # noqa: N802  Spark's name
        pass
