"""A Spark that has run out of memory: it ends instead of leaving everybody waiting, and says why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

# What Java does when one of its threads dies of this, which may be one that others wait for.
SCRIPT = """
import sys
import seiche
from py4j.protocol import Py4JNetworkError

with seiche.connect(sys.argv[1]) as db:
    db.execute("CREATE TABLE ships (id int PRIMARY KEY); INSERT INTO ships VALUES (1)")
    jvm = db.spark._jvm
    handler = jvm.java.lang.Thread.getDefaultUncaughtExceptionHandler()
    try:
        handler.uncaughtException(jvm.java.lang.Thread.currentThread(), jvm.java.lang.OutOfMemoryError())
    except (ConnectionError, Py4JNetworkError):
        pass
    db.spark.sparkContext._gateway.proc.wait(60)
    try:
        db.sql("SELECT sum(id) FROM ships").rows
    except seiche.errors.EngineStopped as error:
        told = db.broken()
        print(told.message, told.detail, told.hint, sep="; ")
print("closed")
"""


@pytest.mark.timeout(300)
def test_a_thread_without_memory_ends_spark_and_the_engine_tells_why(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "data")], capture_output=True, text=True, timeout=240, check=False
    )
    told, closed = done.stdout.splitlines()
    assert told.startswith("Spark's Java process has ended; It ran out of memory.; Start Seiche again with a larger")
    assert closed == "closed"
