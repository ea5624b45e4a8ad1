"""A bound query over relations at one epoch, as a Spark frame."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.util import _create_local_socket
from sqlglot import exp

from seiche.model import Epoch, RelationId
from seiche.sql.bind import BoundQuery
from seiche.sql.expressions import NOW
from seiche.storage.relation import RelationReader
from seiche.storage.versions import Versions

_numbers = itertools.count(1)

_ONE_BATCH = 1 << 40  # bytes


class Scope:
    """Temporary views with names that no other thread uses."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._views: list[str] = []

    def view(self, frame: DataFrame) -> str:
        """A name for the frame in SQL text."""
        name = f"f{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def sql(self, text: str) -> DataFrame:
        return self._spark.sql(text)

    def close(self) -> None:
        """Frees the names; frames made from them go on working."""
        # Not spark.catalog.dropTempView: that looks for cached data of the view, which takes milliseconds.
        catalog = self._spark._jsparkSession.sessionState().catalog()
        for name in self._views:
            catalog.dropTempView(name)
        self._views = []


@contextmanager
def open_scope(spark: SparkSession) -> Iterator[Scope]:
    scope = Scope(spark)
    try:
        yield scope
    finally:
        scope.close()


def render(query: exp.Expr, view_of: Callable[[str], str], now_ms: int | None = None) -> str:
    """The query's text for Spark. `view_of` names the view behind each source of the query; `now_ms` is what
    now() answers where the query still asks for it."""

    def place(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            node.set("this", exp.to_identifier(view_of(node.name)))
        elif isinstance(node, exp.Anonymous) and str(node.this).lower() == NOW and now_ms is not None:
            return exp.Anonymous(this="timestamp_millis", expressions=[exp.Literal.number(now_ms)])
        return node

    return null_aware(query.copy()).transform(place, copy=False).sql("spark")


def null_aware(query: exp.Expr) -> exp.Expr:
    """`x IN (SELECT …)` inside an expression, spelled out: Spark answers false there where the answer is not known.

    A condition by itself is left alone: there Spark plans it well, and knows about NULL. So is a subquery that looks
    outside and is no plain selection, which cannot be asked any other way.
    """
    for node in list(query.find_all(exp.In)):
        subquery = node.args.get("query")
        if subquery is None or _is_condition(node):
            continue
        inner = subquery.unnest()
        if isinstance(inner, exp.Select) and not any(inner.args.get(each) for each in _NOT_PLAIN):
            value = inner.selects[0].unalias()
            rows = inner
        elif not _looks_outside(inner):
            value = exp.column(exp.to_identifier(inner.named_selects[0], quoted=True), table="members")
            rows = exp.select("1").from_(inner.subquery("members"))
        else:
            continue
        if not rows.args.get("from_") and not rows.args.get("from"):
            continue

        def some(*conditions: exp.Expr, rows: exp.Select = rows) -> exp.Expr:
            found = rows.copy()
            found.set("expressions", [exp.Literal.number(1)])
            return exp.Exists(this=found.where(*conditions, copy=False) if conditions else found)

        asked = exp.paren(node.this.copy(), copy=False)
        unknown = exp.or_(
            some(exp.Is(this=exp.paren(value.copy()), expression=exp.null())),
            exp.and_(exp.Is(this=asked.copy(), expression=exp.null()), some()),
        )
        spelled = (
            exp.Case()
            .when(some(exp.EQ(this=exp.paren(value.copy()), expression=asked)), exp.true())
            .when(unknown, exp.null())
            .else_(exp.false())
        )
        node.replace(exp.paren(spelled, copy=False))
    return query


_NOT_PLAIN = ("group", "having", "limit", "offset", "distinct", "qualify", "windows", "with_", "with")


def _is_condition(node: exp.Expr) -> bool:
    """Whether it stands, negated or not, among the conditions of a WHERE, HAVING or ON."""
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.And | exp.Not):
        parent = parent.parent
    return isinstance(parent, exp.Where | exp.Having | exp.Join)


def _looks_outside(query: exp.Expr) -> bool:
    inside = {each.alias_or_name for each in query.find_all(exp.Table, exp.Subquery)}
    return any(column.table and column.table not in inside for column in query.find_all(exp.Column))


def to_arrow(frame: DataFrame) -> pa.Table:
    """The frame's rows on the driver.

    Filters and projections of rows that came from the driver are evaluated by Spark's optimizer already: what is left
    of such a query is its answer, and no job has to run for it.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()
    if plan.nodeName() != "LocalRelation":
        return frame.toArrow()
    jvm = frame.sparkSession._jvm
    assert jvm is not None
    converters = getattr(getattr(jvm.org.apache.spark.sql.execution.arrow, "ArrowConverters$"), "MODULE$")
    batches = converters.toBatchWithSchemaIterator(
        plan.data().iterator(), plan.schema(), -1, _ONE_BATCH, "UTC", True, False
    )
    # Through a socket of its own: an answer of some kilobytes would wait 40 ms in the one for calls of Java.
    opened = _create_local_socket(jvm.PythonRDD.serveIterator(batches, "local rows"))
    file, *socket = opened if isinstance(opened, tuple) else (opened,)  # Spark 4.1 gives the file alone
    with ExitStack() as closed:
        for each in (*socket, file):
            closed.callback(each.close)
        streams = [pa.ipc.open_stream(each) for each in NoOpSerializer().load_stream(file)]
    tables = [stream.read_all() for stream in streams]
    return pa.concat_tables(tables) if tables else frame.toArrow()


def local_rows(frame: DataFrame) -> DataFrame | None:
    """A frame of the answer itself, where Spark's optimizer found it; None where a job has to run."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return _frame_of(plan, frame.sparkSession) if plan.nodeName() == "LocalRelation" else None


def _frame_of(plan: Any, spark: SparkSession) -> DataFrame:
    jvm = spark._jvm
    assert jvm is not None
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def adopt(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """A frame of another session of the same Spark as one of this session, where its name will be found."""
    return _frame_of(frame._jdf.queryExecution().analyzed(), spark)


def relation_of(source: str) -> RelationId:
    """The relation that a source `r<id>` of a bound query stands for."""
    return RelationId(int(source.removeprefix("r")))


def select(
    query: BoundQuery, versions: Versions, reader: RelationReader, spark: SparkSession, epoch: Epoch
) -> DataFrame:
    """The query's answer at `epoch`; the frame's columns are the aliases of the query's columns."""
    views: dict[str, str] = {}
    with open_scope(spark) as scope:

        def view_of(source: str) -> str:
            if source not in views:
                views[source] = scope.view(reader.exact(versions.at(relation_of(source), epoch)))
            return views[source]

        return typed(scope.sql(render(query.ast, view_of)), query)


def typed(frame: DataFrame, query: BoundQuery) -> DataFrame:
    """The frame with each column of the type that binding found."""
    return frame.selectExpr(*(f"cast(`{c.alias}` as {c.type.spark}) AS `{c.alias}`" for c in query.columns))
