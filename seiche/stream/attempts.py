"""The function that is NULL where its argument fails, made known to Spark."""

from __future__ import annotations

from pyspark.sql import SparkSession

from seiche.sql.attempts import ATTEMPT

_CLASS = "org.apache.spark.sql.catalyst.expressions.TryEval"


def register(spark: SparkSession) -> None:
    """In this session alone. Spark has the expression, behind `try_to_binary` for instance, but no name for it."""
    java = spark.sparkContext._jvm
    assert java is not None
    tag = java.scala.reflect.ClassTag.apply(java.java.lang.Class.forName(_CLASS))
    build = java.org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase.build
    made = build(ATTEMPT, java.scala.Option.empty(), tag)
    state = spark._jsparkSession.sessionState()
    state.functionRegistry().createOrReplaceTempFunction(ATTEMPT, made._2(), "scala_udf")
