"""The composition root: builds everything, in order, and takes it down again.

    config ─ metadata store ─ lease ─ Spark ─ storage ─ jobs ─ coordinator ─ sessions

Opening is recovery: it starts from the last committed epoch, sweeps files that nobody registered, plans the
stored views again, and goes on with views that were being created.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from seiche import class_archive, niceness
from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.lease import LeaseHolder
from seiche.catalog.objects import DEFAULT_DATABASE, SUPERUSER
from seiche.catalog.rows import StoredState
from seiche.catalog.store import MetadataStore
from seiche.clock import Clock, SystemClock
from seiche.config import Config
from seiche.epoch.coordinator import Coordinator
from seiche.epoch.report import CoordinatorState, EpochReport
from seiche.errors import EngineStopped, JavaNotUsable, LeaseLost, SeicheError
from seiche.model import Epoch, RelationId
from seiche.plan.choice import MEASURED
from seiche.session import python_functions
from seiche.session.database import Database, maintenance_policy, relation_schemas
from seiche.session.observed import Observer
from seiche.session.result import Result
from seiche.session.run import Session
from seiche.session.system_settings import session_defaults, system_parameters
from seiche.session.table_of_query import drop_unfinished
from seiche.sql.failures import spark_gone
from seiche.storage.base import IcebergBases
from seiche.storage.bounds import KeyBounds
from seiche.storage.column_memory import ColumnMemory
from seiche.storage.far_groups import FarGroups
from seiche.storage.files import DataFolder
from seiche.storage.relation import RelationReader
from seiche.storage.retention import Pins, Trash, sweep
from seiche.storage.row_groups import RowGroups
from seiche.storage.segments import SegmentCache, SegmentWriter
from seiche.storage.versions import Versions
from seiche.stream import attempts
from seiche.stream.checkpoint import Checkpoints
from seiche.stream.maintenance import Maintenance
from seiche.stream.rowids import RowIds
from seiche.stream.runtime import Limits, Runtime

log = logging.getLogger("seiche")

SEGMENT_CACHE_BYTES = 256 * 1024 * 1024

# Statements nest deeper than Python's default allows for.
RECURSION_LIMIT = 10_000

# Of each thread of Java: a regular expression takes a part of it for each letter that it matches in a loop. Memory is
# taken for what is used.
STACK = "-Xss16m"

# Libraries that log what we tell the user ourselves.
NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "sqlglot")


class Engine:
    """A running database. Close it, or use it as a context manager."""

    def __init__(self, config: Config, spark: SparkSession | None = None, clock: Clock | None = None) -> None:
        sys.setrecursionlimit(max(sys.getrecursionlimit(), RECURSION_LIMIT))
        self._closed = threading.Event()
        self._undo: list[Callable[[], object]] = []
        self._clock = clock or SystemClock()
        try:
            self._open(config, spark)
        except BaseException:
            self._take_down()
            raise
        self._default = self.session()

    # --- what users do -------------------------------------------------------------------------------

    def session(self, user: str = SUPERUSER, database: str = DEFAULT_DATABASE) -> Session:
        """A conversation of its own, with its own variables.

        Raises UndefinedObject for an unknown user, UndefinedDatabase for an unknown database.
        """
        return Session(self.database, user, database)

    def sql(self, text: str) -> Result:
        """Runs a text; the result of its last statement."""
        return self._default.run(text)[-1]

    def execute(self, text: str) -> list[Result]:
        """Runs a text; the results of all its statements, rows fetched."""
        return self._default.execute(text)

    def table(self, name: str) -> DataFrame:
        """A relation at the committed epoch, as a Spark frame."""
        return self._default.table(name)

    def insert(self, name: str, rows: Any) -> int:
        """Inserts a Spark frame, an Arrow table, or rows as tuples or dictionaries; returns how many.

        Returns when they are durable, and visible in every view.
        """
        return self._default.insert(name, rows)

    def cancel(self) -> None:
        self._default.cancel()

    def names(self) -> list[str]:
        return self._default.names()

    @property
    def spark(self) -> SparkSession:
        return self.database.runtime.spark

    @property
    def config(self) -> Config:
        return self.database.config

    @property
    def committed_epoch(self) -> Epoch:
        return self.database.runtime.versions.committed_epoch

    def broken(self) -> BaseException | None:
        """Why nothing works any more until a restart; None while all is well."""
        health = self.database.coordinator.health()
        if health.state is CoordinatorState.FAILED and health.last_error is not None:
            return health.last_error
        return _ended_spark()

    def on_epoch(self, listener: Callable[[EpochReport], None]) -> None:
        """Calls the listener after every epoch, on the coordinator's thread."""
        self.database.coordinator.add_listener(listener)

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends after a checkpoint. A second call does nothing."""
        if not self._closed.is_set():
            self._closed.set()
            self._take_down()
            self.database.plans.clear()

    # --- building ------------------------------------------------------------------------------------

    def _open(self, config: Config, spark: SparkSession | None) -> None:
        folder = DataFolder(str(config.data_dir))
        store = MetadataStore.open(config.metadata_address, clock=self._clock)
        self._undo.append(store.close)
        holder = LeaseHolder.this_process(self._clock.now_ms(), "seiche")
        store.acquire_lease(holder, config.lease_ttl_ms)
        self._undo.append(store.release_lease)
        self._renew_lease_beside(store, config.lease_ttl_ms)

        state = store.load()
        lasting = state.catalog.without_temporary()
        if lasting is not state.catalog:  # of sessions that were cut off
            store.commit(Checkpoint.between(state.catalog, lasting))
            state = store.load()
        config = config.with_stored(system_parameters(state.settings))
        logging.getLogger("seiche").setLevel(config.log_level.upper())
        for name in NOISY_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        session = _spark.open(config, spark)
        self._undo.append(_spark.close)

        versions = Versions()
        versions.load(state.committed_epoch, relation_schemas(state.catalog), state.bases.values(), state.segments)
        bases = IcebergBases(store.iceberg_uri, folder)
        self._undo.append(bases.close)
        orphans = sweep(folder, versions, bases)
        if orphans:
            log.info("swept %d files that no checkpoint registered", len(orphans))

        cache = SegmentCache(SEGMENT_CACHE_BYTES)
        writer = SegmentWriter(folder, cache)
        bounds = KeyBounds(folder, writer)
        memory = ColumnMemory(config.lookup_memory_bytes)
        groups = RowGroups(folder, memory, config.nearby_bytes_max, FarGroups(session.sparkContext, folder))
        reader = RelationReader(session, folder, writer, bounds, groups, config.nearby_rows_max)
        limits = Limits.of(config)
        cores = max(session.sparkContext.defaultParallelism, 1)
        costs = replace(MEASURED, margin=config.technique_margin)
        runtime = Runtime(session, versions, reader, writer, limits, cores=cores, costs=costs)
        row_ids = RowIds(state.row_counters)
        pins, trash = Pins(state.pins), Trash(folder)
        maintenance = Maintenance(runtime, store, bases, folder, pins, trash, self._clock, maintenance_policy(config))
        coordinator = Coordinator(
            Checkpoints(store, versions, writer, folder, trash, row_ids),
            clock=self._clock,
            barrier_interval_ms=config.barrier_interval_ms,
            checkpoint_frequency=config.checkpoint_frequency,
            parallelism=config.parallel_jobs,
        )
        self.database = Database(
            config,
            self._clock,
            store,
            runtime,
            row_ids,
            bounds,
            pins,
            trash,
            maintenance,
            coordinator,
            state.catalog,
            session_defaults(state.settings),
        )
        maintenance.log_since = self.database.log_since
        self._undo.append(self.database.system.close)
        self.observer = Observer(self.database)
        self._start(state)

    def _start(self, state: StoredState) -> None:
        database = self.database
        python_functions.register_all(database.runtime.spark, database.catalog)
        database.resume_in_graph(state)
        graph = database.main_graph(database.catalog)
        database.maintenance.start()
        self._undo.append(database.maintenance.stop)
        database.coordinator.add_listener(database.on_epoch)
        if database.config.pause_on_next_bootstrap == "true":
            self._start_paused()
        database.coordinator.start(graph, state.committed_epoch)
        self._undo.append(lambda: database.coordinator.stop(checkpoint=True))
        self._undo.append(database.jobs.stop)
        database.refreshes.start()
        self._undo.append(database.refreshes.stop)
        database.deliveries.start(state.progress)
        self._undo.append(database.deliveries.stop)
        database.feeds.start(state.offsets)
        self._undo.append(database.feeds.stop)
        database.resume(state)
        drop_unfinished(database)
        database.tell_recovered("start")
        database.maintenance.note(RelationId(each) for each in database.runtime.versions.relations())

    def _start_paused(self) -> None:
        """The database stands still until RESUME; the start after this one does not."""
        log.warning("the database starts paused, as pause_on_next_bootstrap asked; RESUME continues")
        database = self.database
        database.set_paused(True)
        database.store.commit(Checkpoint(settings={"pause_on_next_bootstrap": None}))
        database.config = database.config.with_parameter("pause_on_next_bootstrap", None)

    def _renew_lease_beside(self, store: MetadataStore, ttl_ms: int) -> None:
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(ttl_ms / 3000):
                try:
                    store.renew_lease()
                except LeaseLost as error:
                    log.error("%s", error)
                    return
                except SeicheError as error:  # tried again before the lease runs out
                    log.warning("lease could not be renewed: %s", error.message)

        thread = threading.Thread(target=renew, name="lease", daemon=True)
        thread.start()

        def stop() -> None:
            ended.set()
            thread.join()

        self._undo.append(stop)

    def _take_down(self) -> None:
        while self._undo:
            undo = self._undo.pop()
            try:
                undo()
            except SeicheError as error:  # the rest has to be closed all the same
                log.warning("closing: %s", error)


def connect(
    folder: str | os.PathLike[str] | None = None,
    *,
    config: Config | None = None,
    spark: SparkSession | None = None,
    **settings: Any,
) -> Engine:
    """Opens the database in a folder, creating it if it is new.

    `settings` are those of `seiche.config.Config`. With `spark` an existing session's Spark is used, in a session
    of its own, and left running afterwards.
    """
    if config is None:
        arguments = dict(settings)
        if folder is not None:
            arguments["data_dir"] = str(folder)
        config = Config.load(arguments=arguments)
    elif folder is not None or settings:
        raise TypeError("give either a config, or a folder and settings")
    return Engine(config, spark)


class _Spark:
    """The process's Spark, which all engines in it share. The last one that goes stops it, if we started it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: SparkSession | None = None
        self._users = 0

    def open(self, config: Config, given: SparkSession | None) -> SparkSession:
        """A session of its own with the SQL settings that Seiche relies on."""
        with self._lock:
            running = given or self._started
            if running is None and SparkContext._active_spark_context is not None:
                running = SparkSession.builder.getOrCreate()  # the user's own
            if running is None:
                running = self._started = _start_spark(config)
            self._users += 1
        session = running.newSession()
        for name, value in _sql_conf(config).items():
            session.conf.set(name, value)
        attempts.register(session)
        return session

    def close(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._started is not None:
                if _ended_spark() is None:
                    self._started.stop()
                self._started = None


_spark = _Spark()


def _ended_spark() -> EngineStopped | None:
    """What to say when the Java process of this one's Spark has ended by itself, such as for want of memory."""
    process = getattr(SparkContext._gateway, "proc", None)
    code = process.poll() if process is not None else None
    return spark_gone(code) if code is not None else None


def _sql_conf(config: Config) -> dict[str, str]:
    partitions = config.shuffle_partitions or os.cpu_count() or 1
    return {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(partitions),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        "spark.sql.caseSensitive": "true",
        "spark.sql.parquet.pushdown.inFilterThreshold": "200",
        # Keys to look up change with every epoch. As a set they are data, as literals they are part of the
        # generated code, which would be compiled anew each time.
        "spark.sql.optimizer.inSetConversionThreshold": "0",
        "spark.sql.optimizer.inSetSwitchThreshold": "0",
        "spark.sql.legacy.parquet.nanosAsLong": "false",
        # What the parser has learnt from statements it keeps, some 6 KB for each of its states, and by itself for ever.
        "spark.sql.parser.manageParserCaches": "true",
        "spark.sql.parser.parserDfaCacheFlushThreshold": "50000",
        # It fails on a correlated subquery over a union ("key not found"), and every relation with a log is one.
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.PushProjectionThroughUnion",
    }


def _scratch_folder(config: Config) -> Path:
    """Where Spark puts what it spills and shuffles. What a killed process left there goes first."""
    folder = Path(config.data_dir).absolute() / "scratch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


# Shares of the cores when several kinds of work want them: epochs come first, then people who wait for an answer.
# The main graph's threads name no pool, which is Spark's pool "default".
_POOLS = {"default": 16, "queries": 4, "maintenance": 1, "backfill": 1}


def _write_pools(path: Path) -> Path:
    """The file from which Spark's fair scheduler learns the shares."""
    pools = "".join(
        f'<pool name="{name}"><schedulingMode>FAIR</schedulingMode><weight>{weight}</weight>'
        f"<minShare>{1 if name == 'default' else 0}</minShare></pool>"
        for name, weight in _POOLS.items()
    )
    path.write_text(f'<?xml version="1.0"?><allocations>{pools}</allocations>', encoding="utf-8")
    return path


def _heartbeats(master: str) -> dict[str, str]:
    """Tasks tell with their heartbeats how much they have read.

    Executors inside this process live as long as it does. Where it was stopped for two minutes (a machine that slept, a
    container that was paused), Spark would take them for dead, and end the process that had just woken up.
    """
    often = {"spark.executor.heartbeatInterval": "2s"}
    if not master.startswith("local") or master.startswith("local-cluster"):
        return often
    patient = {
        "spark.storage.blockManagerHeartbeatTimeoutMs": "3650d",
        "spark.executor.heartbeat.maxFailures": "1000000000",
    }
    return often | patient


# A local Spark runs more tasks at a time than there are cores. A task keeps its place until it ends, so a query
# that takes hours would hold all places; with more of them, the system lets every task have its share of time.
_PLACES_PER_CORE = 8
_FURTHER_PLACES_MAX = 64


def local_places(master: str) -> tuple[str, dict[str, str]]:
    """A local master with places for short queries and epochs beside long queries, and what keeps the width of each.

    Other masters stay as they are: how many tasks an executor runs is for the cluster to say.
    """
    found = re.fullmatch(r"local(?:\[(\*|\d+)(,\s*\d+)?\])?", master)
    if found is None:
        return master, {}
    cores = 1 if master == "local" else (os.cpu_count() or 1) if found[1] == "*" else int(found[1])
    places = cores + min((_PLACES_PER_CORE - 1) * cores, _FURTHER_PLACES_MAX)
    width = {"spark.default.parallelism": str(cores), "spark.sql.files.maxPartitionNum": str(2 * cores)}
    return f"local[{places}{found[2] or ''}]", width


def _start_spark(config: Config) -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = _scratch_folder(config)
    master, width = local_places(config.master)
    builder = SparkSession.builder.master(master).appName("seiche")
    for name, value in {
        **_sql_conf(config),
        **width,
        "spark.sql.codegen.cache.maxEntries": "2000",
        "spark.driver.memory": config.driver_memory,
        "spark.driver.maxResultSize": f"{max(config.inline_bytes_max * 2 // (1024 * 1024), 64)}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_heartbeats(config.master),
        "spark.scheduler.mode": "FAIR",
        "spark.scheduler.allocation.file": _write_pools(scratch / "pools.xml").as_uri(),
        "spark.driver.extraJavaOptions": " ".join(("-XX:+UseParallelGC", STACK, *class_archive.java_options())),
        "spark.executor.defaultJavaOptions": STACK,  # `extraJavaOptions` of executors stay the user's
        "spark.log.level": "ERROR",
        "spark.local.dir": str(scratch),
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        **config.spark_conf,
    }.items():
        builder = builder.config(name, value)
    journal = scratch / "spark.log"
    try:
        with _stderr_to(journal):
            session = builder.getOrCreate()
        # A thread of Spark that runs out of memory dies, and whoever waits for it waits for ever: rather end all of it.
        handler = session._jvm.org.apache.spark.util.SparkUncaughtExceptionHandler(False)
        session._jvm.java.lang.Thread.setDefaultUncaughtExceptionHandler(handler)
        if config.master.startswith("local"):  # elsewhere the executors have cores of their own
            java = session._jvm.java.lang.ProcessHandle.current()
            niceness.step_back(java.pid(), config.spark_niceness)
        return session
    except Exception as error:  # the JVM did not come up: many ways to fail, one to tell
        raise JavaNotUsable(
            "Spark could not be started",
            detail=str(error).splitlines()[0] if str(error) else type(error).__name__,
            hint=f"Run `seiche doctor`: it checks Java and tells what to install. Spark's own words are in {journal}.",
        ) from error


@contextmanager
def _stderr_to(path: Path) -> Iterator[None]:
    """What a process started meanwhile writes to its standard error goes to a file, for as long as it lives.

    Spark greets with warnings that say nothing to a user; a shell must not be interrupted by them.
    """
    sys.stderr.flush()
    ours = os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(ours, 2)
        os.close(ours)
        os.close(target)


__all__ = ["Engine", "connect"]
