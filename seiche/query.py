"""A bound query over relations at one epoch, as a Spark frame."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.serializers import NoOpSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.util import _create_local_socket
from sqlglot import exp

from seiche.model import Epoch, RelationId
from seiche.sql.bind import BoundQuery
from seiche.sql.bound import NOTHING
from seiche.sql.change_log import refuse_change_log
from seiche.sql.invocations import NOW, PROCTIME
from seiche.sql.limited import limited_sources
from seiche.sql.membership import null_aware
from seiche.sql.nodes import unnamed_subqueries
from seiche.sql.recursion import refuse_recursion
from seiche.sql.ties import without_ties
from seiche.storage.relation import RelationReader
from seiche.storage.versions import Versions

_numbers = itertools.count(1)

_ONE_BATCH = 1 << 40  # bytes
_LOCAL = "LocalRelation"
_DATA = 1  # where its rows stand among its fields
_COMPRESSED = 4  # how much larger rows are in memory than in files, about
_ROW_OVERHEAD = 8  # bytes that Spark adds to a row when it estimates sizes
_AROUND_ORDER = ("Project", "GlobalLimit", "LocalLimit", "Offset")

# Fails the task where its thread was told to stop. Spark looks for that between batches of rows that it reads, but not
# in a loop over all pairs of rows, which may go on for hours after its query was cancelled.
_GOES_ON = (
    "CASE WHEN reflect('java.lang.Thread', 'interrupted') = 'false' THEN true "
    "ELSE raise_error('canceling statement due to user request') END"
)
_ALL_PAIRS = ("BroadcastNestedLoopJoin", "CartesianProduct")
_FEW_ROWS = 1000  # a loop over so few of one side comes to the next batch of the other soon


class Scope:
    """Temporary views with names that no other thread uses, and rows that executors keep meanwhile.

    `stop_if_told` raises when whoever opened the scope no longer wants what is done in it.
    """

    def __init__(self, spark: SparkSession, stop_if_told: Callable[[], None] = lambda: None) -> None:
        self._spark = spark
        self._views: list[str] = []
        self._kept: list[Any] = []
        self.stop_if_told = stop_if_told

    def view(self, frame: DataFrame) -> str:
        """A name for the frame in SQL text."""
        name = f"f{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def sql(self, text: str) -> DataFrame:
        return self._spark.sql(text)

    def release_at_end(self, rows: Any) -> None:
        """Lets executors keep rows, as an RDD of Java, until the scope ends, or what `hand_over` gives is called."""
        self._kept.append(rows)

    def hand_over(self) -> Callable[[], None] | None:
        """How to release the kept rows, for whoever reads them after the scope has ended; None if there are none."""
        kept, self._kept = self._kept, []
        return partial(_release, kept) if kept else None

    def close(self) -> None:
        """Frees the names; frames made from them go on working, unless they need rows that were kept."""
        # Not spark.catalog.dropTempView: that looks for cached data of the view, which takes milliseconds.
        catalog = self._spark._jsparkSession.sessionState().catalog()
        for name in self._views:
            catalog.dropTempView(name)
        self._views = []
        _release(self._kept)
        self._kept = []


def _release(kept: list[Any]) -> None:
    for each in kept:
        each.unpersist(False)


@contextmanager
def open_scope(spark: SparkSession, stop_if_told: Callable[[], None] = lambda: None) -> Iterator[Scope]:
    scope = Scope(spark, stop_if_told)
    try:
        yield scope
    finally:
        scope.close()


def without_inference(frame: DataFrame) -> DataFrame:
    """The same rows, planned without asking what the equality of columns implies.

    Spark writes an equality down for all names that its columns go by. A union of joins by three columns, of which both
    sides are shown, has so many of them that planning does not end.
    """
    jvm: Any = frame.sparkSession._jvm
    plan = frame._jdf.queryExecution().analyzed()
    other = _sessions_without_inference.of(frame.sparkSession)
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(other._jsparkSession, plan), other)


class _SessionsWithoutInference:
    """Beside each session another one of the same Spark, which differs in one setting. Safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()

    def of(self, spark: SparkSession) -> SparkSession:
        with self._lock:
            found = self._known.get(spark)
            if found is None:
                found = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
                found.conf.set("spark.sql.constraintPropagation.enabled", "false")
                self._known[spark] = found
            return found


_sessions_without_inference = _SessionsWithoutInference()


def render(query: exp.Expr, view_of: Callable[[str], str], now_ms: int | None = None) -> str:
    """The query's text for Spark. `view_of` names the view behind each source of the query; `now_ms` is what
    now() answers where the query still asks for it."""

    def place(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            node.set("this", exp.to_identifier(view_of(node.name)))
        elif isinstance(node, exp.Anonymous) and str(node.this).lower() in (NOW, PROCTIME) and now_ms is not None:
            return exp.Anonymous(this="timestamp_millis", expressions=[exp.Literal.number(now_ms)])
        return node

    refuse_change_log(query)
    refuse_recursion(query)
    return unnamed_subqueries(without_ties(null_aware(query.copy()))).transform(place, copy=False).sql("spark")


def to_arrow(frame: DataFrame) -> pa.Table:
    """The frame's rows on the driver.

    Filters and projections of rows that came from the driver are evaluated by Spark's optimizer already: what is left
    of such a query is its answer, and no job has to run for it. The order of such rows needs none either.
    """
    plan = frame._jdf.queryExecution().optimizedPlan()
    if plan.nodeName() != _LOCAL:
        plan = _ordered_locally(plan, frame.sparkSession)
    if plan is None:
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


def _ordered_locally(plan: Any, spark: SparkSession) -> Any | None:
    """The answer of ORDER BY, maybe with LIMIT, over rows on the driver, as such rows; None for any other plan.

    Spark would sample, shuffle and sort them, in jobs of their own.
    """
    above: list[Any] = []
    while plan.nodeName() in _AROUND_ORDER:
        above.append(plan)
        plan = plan.child()
    if plan.nodeName() != "Sort" or plan.child().nodeName() != _LOCAL:
        return None
    rows, order, jvm = plan.child(), plan.order(), spark._jvm
    assert jvm is not None
    each = [order.apply(index).child().nodeName() for index in range(order.length())]
    if any(name != "AttributeReference" for name in each):
        return None
    by = jvm.org.apache.spark.sql.catalyst.expressions.InterpretedOrdering(order, rows.output())
    made = _with_data(rows, rows.data().sorted(by), spark)
    for node in reversed(above):
        made = node.withNewChildren(jvm.PythonUtils.toSeq([made]))
    made = _frame_of(made, spark)._jdf.queryExecution().optimizedPlan() if above else made
    return made if made.nodeName() == _LOCAL else None


def _with_data(local: Any, data: Any, spark: SparkSession) -> Any:
    """The node with other rows. It is copied by position, since what else it has depends on Spark's version."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    count = local.productArity()
    fields = gateway.new_array(gateway.jvm.java.lang.Object, count)
    for index in range(count):
        fields[index] = data if index == _DATA else local.productElement(index)
    return local.makeCopy(fields)


def to_arrow_within_limits(frame: DataFrame) -> pa.Table | None:
    """As `to_arrow`; None when the rows are more than Spark may send to the driver."""
    try:
        return to_arrow(frame)
    except Exception as error:
        if is_too_large(error):
            return None
        raise


def is_too_large(error: Exception) -> bool:
    """Whether rows were more than Spark may send to the driver, which it tells only by failing the job."""
    return "spark.driver.maxResultSize" in str(error)


def estimated_bytes(frame: DataFrame) -> int:
    """Spark's own estimate of an answer's size; a wrong one only costs time."""
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def estimated_rows(frame: DataFrame) -> int | None:
    """How many rows a frame has that maps those of files, or of a range of numbers, one by one; None for any other.

    Of files only the size is known, which says how many rows there are about.
    """
    whole = frame._jdf.queryExecution().optimizedPlan()
    leaf = whole
    while leaf.nodeName() == "Project":
        leaf = leaf.child()
    if leaf.nodeName() == "Range":
        return int(str(leaf.numElements()))
    if leaf.nodeName() != "LogicalRelation":
        return None
    width = int(whole.schema().defaultSize()) + _ROW_OVERHEAD
    return int(str(whole.stats().sizeInBytes())) * _COMPRESSED // width


def is_local(frame: DataFrame) -> bool:
    """Whether Spark's optimizer finds the answer by itself."""
    return bool(frame._jdf.queryExecution().optimizedPlan().nodeName() == _LOCAL)


def local_rows(frame: DataFrame) -> DataFrame:
    """A frame of the answer of a frame that `is_local`: whoever builds on it does not evaluate it again."""
    return _frame_of(frame._jdf.queryExecution().optimizedPlan(), frame.sparkSession)


def _frame_of(plan: Any, spark: SparkSession) -> DataFrame:
    jvm = spark._jvm
    assert jvm is not None
    return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(spark._jsparkSession, plan), spark)


def adopt(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """A frame of another session of the same Spark as one of this session, where its name will be found."""
    return _frame_of(frame._jdf.queryExecution().analyzed(), spark)


def is_stored(source: str) -> bool:
    """Whether a source of a bound query is a stored relation; others have names of another form."""
    return source.startswith("r") and source[1:].isdecimal()


def relation_of(source: str) -> RelationId:
    """The relation that a source `r<id>` of a bound query stands for."""
    return RelationId(int(source.removeprefix("r")))


def select(
    query: BoundQuery, versions: Versions, reader: RelationReader, spark: SparkSession, epoch: Epoch
) -> DataFrame:
    """The query's answer at `epoch`; the frame's columns are the aliases of the query's columns."""
    views: dict[str, str] = {}
    query = through_indexes(query, versions, epoch)
    with open_scope(spark) as scope:

        def view_of(source: str) -> str:
            if source not in views:
                views[source] = scope.view(reader.exact(versions.at(relation_of(source), epoch)))
            return views[source]

        return stoppable(typed(scope.sql(render(query.ast, view_of)), query), query)


def through_indexes(query: BoundQuery, versions: Versions, epoch: Epoch) -> BoundQuery:
    """The query with those of its sources replaced by an index that it asks for few values of an indexed column."""
    if not versions.indexes:
        return query
    ast = query.ast.copy()
    used = set()
    for source in limited_sources(ast):
        name = source.table.name
        if is_stored(name) and relation_of(name) in versions:
            index = versions.index_for(relation_of(name), source.limited, source.needed, epoch)
            if index is not None:
                alias = exp.to_identifier(source.table.alias_or_name, quoted=True)
                source.table.set("this", exp.to_identifier(f"r{index.relation}", quoted=True))
                source.table.set("alias", exp.TableAlias(this=alias))
                used.add(index.relation)
    return replace(query, ast=ast, relations=query.relations | used) if used else query


def stoppable(frame: DataFrame, query: BoundQuery) -> DataFrame:
    """The query's frame so that cancelling its jobs ends their tasks, also where they compare all pairs of rows."""
    if not any(isinstance(node, exp.Join | exp.Exists | exp.In) for node in query.ast.walk()):
        return frame
    plans = frame._jdf.queryExecution()
    planned = plans.sparkPlan().toString()
    if not any(name in planned for name in _ALL_PAIRS):
        return frame
    spark = frame.sparkSession
    checked = spark.range(1).where(_GOES_ON)._jdf.queryExecution().analyzed()
    return _frame_of(_with_checks(plans.optimizedPlan(), checked, spark), spark)


def _with_checks(plan: Any, checked: Any, spark: SparkSession) -> Any:
    """The plan with the filter `checked` around both sides of each join that has no equality to find its pairs by."""
    jvm = spark._jvm
    assert jvm is not None
    given = plan.children()
    children = [_with_checks(given.apply(index), checked, spark) for index in range(given.length())]
    keys = jvm.org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
    if plan.nodeName() == "Join" and not keys.unapply(plan).isDefined() and not any(map(_is_short, children)):
        children = [checked.withNewChildren(jvm.PythonUtils.toSeq([child])) for child in children]
    return plan.withNewChildren(jvm.PythonUtils.toSeq(children)) if children else plan


def _is_short(plan: Any) -> bool:
    most = plan.maxRows()
    return bool(most.isDefined()) and int(str(most.get())) <= _FEW_ROWS


def typed(frame: DataFrame, query: BoundQuery) -> DataFrame:
    """The frame with each column of the type that binding found. One without columns has one, which nobody is shown."""
    if not query.columns:
        return frame.selectExpr(f"`{NOTHING}`")
    return frame.selectExpr(*(f"cast(`{c.alias}` as {c.type.spark}) AS `{c.alias}`" for c in query.columns))
