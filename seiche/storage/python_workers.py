"""Which Python the workers of Spark's executors run."""

from __future__ import annotations

import os
import sys

from pyspark import SparkContext


def use_this_python(context: SparkContext) -> None:
    """On one machine the workers run the Python that runs the engine, unless the user named another."""
    if context.master.startswith("local") and "PYSPARK_PYTHON" not in os.environ:
        context.pythonExec = sys.executable


__all__ = ["use_this_python"]
