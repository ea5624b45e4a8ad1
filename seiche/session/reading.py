"""Reading: a query bound with a session's names and settings, at the epoch that the session reads, as rows to fetch.

Files that a result reads stay until the result is gone.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from seiche.catalog.catalog import Catalog
from seiche.catalog.system_views import SYSTEM_VIEWS
from seiche.errors import FeatureNotSupported, InvalidParameter
from seiche.far_days import python_values
from seiche.model import EPOCH_SHIFT, Epoch, RelationId
from seiche.query import is_stored, open_scope, relation_of, render, stoppable, through_indexes, typed
from seiche.session.database import Database, relation_schemas
from seiche.session.names import SYSTEM_SOURCE, CatalogNames
from seiche.session.point_reads import Found
from seiche.session.result import Piece, Result, fetch_rows, rows_of
from seiche.session.streaming import pieces
from seiche.session.system.evaluate import Answer, arrow_of
from seiche.session.system.observe import observe
from seiche.session.transaction import Transaction
from seiche.session.variables import Variables
from seiche.session.work import Work
from seiche.sql import statements as ast
from seiche.sql.bind import BoundQuery, Settings, bind_query
from seiche.sql.change_log import refuse_change_log
from seiche.sql.commit_time import epochs_of
from seiche.sql.failures import is_unplanned
from seiche.sql.parameters import Parameters
from seiche.sql.recursion import holds_recursion, only_stored
from seiche.sql.time_travel import past_of, reads_past
from seiche.storage.changes import local_frame
from seiche.storage.versions import RelationVersion
from seiche.stream.planned import planned

Versioned = Mapping[RelationId, RelationVersion]


class Reading:
    """The queries of one statement of a session. `begin` starts the time that fetching its rows may take."""

    def __init__(
        self,
        database: Database,
        user: str,
        variables: Variables,
        parameters: Parameters | None,
        transaction: Transaction | None,
        work: Work,
        begin: Callable[[], None],
    ) -> None:
        self._database = database
        self._user = user
        self._variables = variables
        self._parameters = parameters
        self._transaction = transaction
        self._work = work
        self._begin = begin

    def select(self, statement: ast.Select) -> Result:
        """The result, with its rows still to be fetched."""
        bound = self.bound(statement)
        held = self._hold()
        epoch = self._epoch(bound)
        try:
            bound = self._through_indexes(bound, epoch)
            versions = self._versions(bound, epoch)
            found = self._database.points.find(bound, versions)
            if found is not None and found.answer is not None:
                held.close()
                return answered(self._database, Answer(bound.columns, found.answer), epoch)
            frame = self._planned(bound, epoch, versions, found)
        except BaseException:
            held.close()
            raise
        width = len(bound.columns)
        result = Result(
            "SELECT",
            bound.columns,
            epoch=epoch,
            _pieces=lambda: self._pieces(frame, width),
            _frame=frame,
            _fetch=lambda frame: self._fetch(frame, width),
            _hold=self._hold,
        )
        weakref.finalize(result, held.close)
        return result

    def bound(self, statement: ast.Select) -> BoundQuery:
        names = CatalogNames(self._catalog, self._variables.search_path, progress=self._database.jobs.progress)
        timezone, now_ms = self._variables.get("timezone"), self._database.clock.now_ms()
        strict = self._variables.is_on("batch_expr_strict_mode")
        settings = Settings(timezone=timezone, now_ms=now_ms, strict=strict, parameters=self._parameters, past=True)
        asker = replace(settings, user=self._user, database=self._variables.database, schema=self._schema())
        found = bind_query(statement.query.tree, names, asker)
        refuse_change_log(found.ast)
        return found

    def plan(self, bound: BoundQuery, mode: str) -> str:
        """How Spark would run the query, as it explains it itself."""
        frame = self.frame(bound)
        utils = frame._sc._jvm.PythonSQLUtils
        return str(self._work.apart(lambda: utils.explainString(frame._jdf.queryExecution(), mode)))

    def frame(self, bound: BoundQuery) -> DataFrame:
        """The query's rows at the epoch that is read now."""
        epoch = self._epoch(bound)
        bound = self._through_indexes(bound, epoch)
        return self._frame_at(bound, epoch, self._versions(bound, epoch))

    @property
    def _catalog(self) -> Catalog:
        """What exists, seen from the session's database."""
        return self._database.catalog.seen_from(self._variables.database)

    def _schema(self) -> str | None:
        """Where something new would go: the first schema of the search path that exists."""
        catalog = self._catalog
        return next((name for name in self._variables.lasting_path if catalog.try_schema(name) is not None), None)

    def _epoch(self, bound: BoundQuery) -> Epoch:
        asked = self._variables.integer("query_epoch")
        if self._transaction is not None and not asked:
            return self._transaction.snapshot()
        committed = self._database.runtime.versions.committed_epoch
        if not asked:
            return committed
        for relation in bound.relations:
            created = Epoch(self._database.catalog.get(relation).created_ms << EPOCH_SHIFT)
            folded = self._database.runtime.versions.committed(RelationId(relation)).base.fold_epoch
            oldest = max(created, folded)
            if not oldest <= asked <= committed:
                raise InvalidParameter(
                    f"epoch {asked} is not retained",
                    detail=f"The relations of the query can be read from epoch {oldest} to {committed}.",
                    hint="ALTER SYSTEM SET retention_ms keeps more of the past.",
                )
        return Epoch(asked)

    def _through_indexes(self, bound: BoundQuery, epoch: Epoch) -> BoundQuery:
        """The query over indexes where they serve it. What a block has written is in no index."""
        if self._in_block(epoch):
            return bound
        return through_indexes(bound, self._database.runtime.versions, epoch)

    def _in_block(self, epoch: Epoch) -> bool:
        """Whether relations are seen as the block of the session sees them."""
        return self._transaction is not None and epoch == self._transaction.epoch

    def _versions(self, bound: BoundQuery, epoch: Epoch) -> Versioned:
        """The files of every stored relation of the query, all found at once: a fold may move a base on while others
        are looked up. None are needed in a block, which has its own."""
        known = self._database.runtime.versions
        if self._in_block(epoch):
            return {}
        return {RelationId(id): known.at(RelationId(id), epoch) for id in bound.relations if RelationId(id) in known}

    def _planned(self, bound: BoundQuery, epoch: Epoch, versions: Versioned, found: Found | None) -> DataFrame:
        """The query as a frame, which may have been made before."""
        plain = len(versions) == len(bound.relations) and not bound.volatile and f"`{SYSTEM_SOURCE}" not in bound.sql
        if found is not None or not plain or reads_past(bound.ast) or holds_recursion(bound.ast):
            return self._frame_at(bound, epoch, versions, found)
        files = [versions[each] for each in sorted(versions)]
        make = partial(self._frame_at, bound, epoch, versions)
        return self._database.plans.frame(bound, self._database.catalog, files, make)

    def _frame_at(self, bound: BoundQuery, epoch: Epoch, versions: Versioned, found: Found | None = None) -> DataFrame:
        runtime = self._database.runtime
        views: dict[str, str] = {}
        with open_scope(runtime.spark, self._work.stop_if_over()) as scope:

            def frame_of(source: str) -> DataFrame:
                timed = epochs_of(source)
                source, epochs = (source, False) if timed is None else (timed, True)
                past = past_of(source)
                if source.startswith(SYSTEM_SOURCE):
                    return self._system_frame(source.removeprefix(SYSTEM_SOURCE))
                if past is not None:
                    return runtime.reader.exact(self._past_version(*past), epochs=epochs)
                if found is not None and source == found.source and not epochs:
                    return runtime.reader.local(found.rows, runtime.versions.schema(relation_of(source)))
                if self._transaction is not None and epoch == self._transaction.epoch:
                    return self._transaction.frame(relation_of(source), epochs=epochs)
                return runtime.reader.exact(versions[relation_of(source)], epochs=epochs)

            def view_of(source: str) -> str:
                if source not in views:
                    views[source] = scope.view(frame_of(source))
                return views[source]

            def planned_frame() -> DataFrame | None:
                schemas = relation_schemas(self._catalog)
                return planned(bound, schemas, runtime, scope, epoch, lambda relation: view_of(f"r{relation}"))

            def recursive_frame() -> DataFrame:
                """Its rounds are over; their rows stay as long as the frame does."""
                if not only_stored(bound.ast, is_stored):
                    raise FeatureNotSupported(
                        "a recursive query can read tables and views as they are now, "
                        "but neither system views nor an earlier time"
                    )
                found = planned_frame()
                assert found is not None
                made = stoppable(typed(found, bound), bound)
                release = scope.hand_over()
                if release is not None:
                    weakref.finalize(made, release).atexit = False  # they go with Spark then
                return made

            def frame() -> DataFrame:
                if holds_recursion(bound.ast):
                    return recursive_frame()
                try:
                    found = scope.sql(render(bound.ast, view_of))
                except AnalysisException as refused:
                    found_otherwise = planned_frame() if is_unplanned(refused) else None
                    if found_otherwise is None:
                        raise
                    found = found_otherwise
                return stoppable(typed(found, bound), bound)

            return self._work.apart(frame)

    def _past_version(self, source: str, moment_ms: int) -> RelationVersion:
        """A relation as of the last epoch that had begun at a moment; raises when that is no longer kept."""
        relation, known = relation_of(source), self._database.runtime.versions
        epoch = Epoch(min(((moment_ms + 1) << EPOCH_SHIFT) - 1, known.committed_epoch))
        created = self._database.catalog.get(relation).created_ms
        version = known.committed(relation)
        if moment_ms < created or epoch < version.base.fold_epoch:
            raise InvalidParameter(
                f"Time-travel version expired: table {relation}, epoch {0 if moment_ms < created else epoch}",
                detail="It is from before the relation was created, or its files were folded into newer ones.",
                hint="ALTER SYSTEM SET retention_ms keeps more of the past.",
            )
        segments = tuple(each for each in version.segments if each.epoch_lo <= epoch)
        return replace(version, epoch=epoch, segments=segments)

    def _system_frame(self, name: str) -> DataFrame:
        schema, _, view = name.partition(".")
        rows = arrow_of(SYSTEM_VIEWS[schema, view], observe(self._database, self._variables))
        return local_frame(self._database.runtime.spark, rows)

    def _hold(self) -> ExitStack:
        """Keeps every file that is registered now, until it is closed."""
        held = ExitStack()
        held.enter_context(self._database.trash.reading())
        return held

    def _fetch(self, frame: DataFrame, width: int) -> list[tuple[Any, ...]]:
        with self._work.running():
            self._begin()
            self._work.stop_if_told()
            with self._database.plans.using(frame):
                return list(self._work.translated(lambda: self._work.apart(lambda: fetch_rows(frame, width))))

    def batches(self, frame: DataFrame) -> Iterator[pa.RecordBatch]:
        """The rows of a frame in its order, a bounded part at a time."""
        limit = self._database.runtime.limits.inline_bytes_max
        with self._database.plans.using(frame):
            scratch = scratch_folder(self._database)
            for batch in pieces(frame, inline_bytes=limit, scratch=scratch, apart=self._work.apart):
                self._work.stop_if_told()
                yield batch

    def _pieces(self, frame: DataFrame, width: int) -> Iterator[Piece]:
        for batch in self.batches(frame):
            yield [python_values(column) for column in batch.columns[:width]], batch.num_rows


def answered(database: Database, answer: Answer, epoch: Epoch | None = None) -> Result:
    """An answer that is on the driver already, as a result."""
    rows = rows_of(map(python_values, answer.table.columns), answer.table.num_rows)
    spark = database.runtime.spark
    return Result(
        f"SELECT {len(rows)}",
        answer.columns,
        epoch=epoch if epoch is not None else database.runtime.versions.committed_epoch,
        _rows=rows,
        _as_frame=lambda: local_frame(spark, answer.table),
    )


def scratch_folder(database: Database) -> Path:
    return Path(database.config.data_dir).absolute() / "scratch"
