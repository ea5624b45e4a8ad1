"""The condition that a column has one of many values, handed to Spark as data.

Written down as text, thousands of values take Spark longer to read and to analyse than to look for; as a table, they
have to be sent to the executors by a job of its own before the scan can begin. A set of values inside of the condition
costs neither.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, SparkSession

from seiche.types import Kind, SqlType

# How Spark holds values of a type: the array's element, and the same as NumPy's type in Java's order of bytes.
_HELD = {
    Kind.SMALLINT: ("short", ">i2"),
    Kind.INTEGER: ("int", ">i4"),
    Kind.BIGINT: ("long", ">i8"),
    Kind.DATE: ("int", ">i4"),
}
_BUFFERS = {"short": "asShortBuffer", "int": "asIntBuffer", "long": "asLongBuffer"}


# Into so many parts are values cut at most, and only at gaps of at least this part of all that they span.
HEAPS_MAX = 4
GAP_MIN = 16


def can_list(type_: SqlType) -> bool:
    return type_.kind in _HELD


def among(spark: SparkSession, name: str, type_: SqlType, values: pa.Array) -> Column:
    """Whether column `name` has one of the values, none of which is NULL. The type is one that `can_list`.

    Parquet skips pages by the least and the greatest value of a set, so values that lie in heaps far apart, like new
    rows at one end of a table and old ones that leave at the other, are a set each. No value becomes part of the code
    that Spark generates: it would be compiled anew in every epoch.
    """
    element, order = _HELD[type_.kind]
    plain = values.cast(pa.int32()) if type_.kind is Kind.DATE else values
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.jvm
    expressions = jvm.org.apache.spark.sql.catalyst.expressions
    column = jvm.org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute(jvm.PythonUtils.toSeq([name]))
    found = None
    for heap in _heaps(plain.to_numpy(zero_copy_only=False)):
        held = gateway.new_array(getattr(jvm, element), len(heap))
        buffer = jvm.java.nio.ByteBuffer.wrap(heap.astype(order).tobytes())
        getattr(buffer, _BUFFERS[element])().get(held)
        one = expressions.InSet(column, jvm.scala.collection.immutable.ArraySeq.unsafeWrapArray(held).toSet())
        found = one if found is None else expressions.Or(found, one)
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(found))


def _heaps(values: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """The values in few parts, cut where the widest gaps are."""
    ordered = np.sort(values)
    if len(ordered) < 2:
        return [ordered]
    gaps = np.diff(ordered.astype(np.float64))
    widest = np.argsort(-gaps, kind="stable")[: HEAPS_MAX - 1]
    span = float(ordered[-1]) - float(ordered[0])
    return np.split(ordered, np.sort(widest[gaps[widest] * GAP_MIN > span]) + 1)


__all__ = ["among", "can_list"]
