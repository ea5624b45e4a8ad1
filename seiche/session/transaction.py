"""A transaction: one epoch to read, and writes that become visible together at COMMIT or not at all.

    first statement    the committed epoch is the snapshot; its files stay until the transaction ends
    SELECT             the snapshot, with this transaction's own writes laid over it
    INSERT, UPDATE …   evaluated at once against what the transaction sees; the changes wait on the driver
    COMMIT             the tables are held, rows that were changed are compared with what is stored now, and all
                       changes enter one epoch
    ROLLBACK           the changes are forgotten; nothing was ever written

Isolation is PostgreSQL's repeatable read: the first of two transactions that change the same row commits, the other
gets SerializationFailure and may try again. A transaction that only inserts into a table never fails so: the table's
own conflict rule decides, as outside a transaction.

A savepoint is a copy of the changes, which are values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from seiche.catalog.objects import CatalogObject
from seiche.errors import SerializationFailure, TransactionState, TransactionTooLarge, UndefinedTable
from seiche.model import EPOCH, EPOCH_ZERO, OP, VNODE, Epoch, JobId, RelationId, RelationSchema
from seiche.query import open_scope, relation_of, render, stoppable, typed
from seiche.session.database import Database
from seiche.session.variables import Variables
from seiche.sql.bind import BoundQuery
from seiche.storage.changes import Changes, appearing, consolidate, local_frame, vnode_sql
from seiche.storage.relation import with_keys
from seiche.storage.versions import RelationVersion
from seiche.stream.runtime import shape
from seiche.stream.table import ApplyChanges, InsertRows, Payload, TableJob, Written


@dataclass(frozen=True, slots=True)
class Writes:
    """What a transaction changed in one table: the net changes, and the rows as inserted while it only inserted."""

    table: CatalogObject
    changes: pa.Table
    inserted: tuple[pa.Table, ...] | None

    @property
    def schema(self) -> RelationSchema:
        assert self.table.relation is not None
        return self.table.relation


@dataclass(frozen=True, slots=True)
class _Savepoint:
    name: str
    writes: dict[RelationId, Writes]
    variables: Variables


@dataclass(slots=True)
class Transaction:
    """One block from BEGIN to COMMIT or ROLLBACK. Belongs to one session's thread."""

    database: Database
    variables: Variables  # as of BEGIN, to return to
    read_only: bool = False
    failed: bool = False
    epoch: Epoch | None = None
    local: dict[str, str | None] = field(default_factory=dict)  # values before SET LOCAL
    gated: frozenset[RelationId] = frozenset()  # tables that whoever made the transaction holds until it has ended
    _held: ExitStack = field(default_factory=ExitStack)
    _versions: dict[RelationId, RelationVersion] = field(default_factory=dict)
    _writes: dict[RelationId, Writes] = field(default_factory=dict)
    _savepoints: list[_Savepoint] = field(default_factory=list)

    # --- reading -----------------------------------------------------------------------------------------

    def snapshot(self) -> Epoch:
        """The epoch that the transaction reads: the committed one when it first asks."""
        if self.epoch is None:
            self._held.enter_context(self.database.trash.reading())
            versions = self.database.runtime.versions
            self.epoch = versions.committed_epoch
            self._versions = {each: versions.at(each, self.epoch) for each in versions.relations()}
        return self.epoch

    def frame(self, relation: RelationId, *, epochs: bool = False) -> DataFrame:
        """The rows of a relation as this transaction sees them: stored columns and `_vnode`.

        With `epochs`, also `_epoch`, which is 0 for what the transaction has written.
        """
        runtime = self.database.runtime
        rows = runtime.reader.exact(self._version(relation), epochs=epochs)
        writes = self._writes.get(relation)
        if writes is None:
            return rows
        names = [*writes.schema.names, VNODE]
        own = runtime.reader.local(_stamped(writes.changes), writes.schema)
        keys = F.broadcast(own.select(*writes.schema.key).distinct())
        others = with_keys(rows, keys, writes.schema, "left_anti")
        alive = own.filter(f"`{OP}` = 1").select(*names)
        return others.unionByName(alive.withColumn(EPOCH, F.lit(0).cast("bigint")) if epochs else alive)

    def _version(self, relation: RelationId) -> RelationVersion:
        """What the transaction reads of a relation, its own writes aside."""
        self.snapshot()
        if relation not in self._versions:  # created since, by this transaction's own DDL perhaps
            self._versions[relation] = self.database.runtime.versions.committed(relation)
        return self._versions[relation]

    def refuse_if_written(self, relation: RelationId, what: str) -> None:
        """For what changes the shape of a table: rows that wait for COMMIT have the one that it had."""
        if relation in self._writes:
            raise TransactionState(
                f"{what} cannot run inside a transaction block that wrote to the table",
                sqlstate="25001",
                hint="COMMIT what was written first.",
            )

    def read_anew(self, relation: RelationId) -> None:
        """The relation was altered, at once: from here on it is read as it is then, and no longer at the snapshot."""
        self._versions.pop(relation, None)

    def evaluate(
        self, query: BoundQuery, now_ms: int | None = None, sources: Mapping[str, DataFrame] = MappingProxyType({})
    ) -> DataFrame:
        """A bound query over what this transaction sees, and `sources`."""
        with open_scope(self.database.runtime.spark) as scope:
            views = {name: scope.view(frame) for name, frame in sources.items()}

            def view_of(source: str) -> str:
                if source not in views:
                    views[source] = scope.view(self.frame(relation_of(source)))
                return views[source]

            return stoppable(typed(scope.sql(render(query.ast, view_of, now_ms)), query), query)

    # --- writing -----------------------------------------------------------------------------------------

    def insert(self, table: CatalogObject, rows: pa.Table) -> int:
        """`rows` are as those of an `InsertRows`."""
        self.refuse_if_read_only("INSERT")
        job = self.database.table_job(table)
        before = self._writes.get(job.relation)
        changes = job.insert_changes(rows, lambda wanted: self._existing(job, wanted))
        inserted = before.inserted if before is not None else ()
        self._add(job, table, changes, None if inserted is None else (*inserted, rows))
        return int(rows.num_rows)

    def upsert(self, table: CatalogObject, rows: pa.Table, query: BoundQuery | None, now_ms: int) -> Written:
        """Rows and query are as those of an `UpsertRows`."""
        self.refuse_if_read_only("INSERT")
        job = self.database.table_job(table)
        existing = self._existing(job, rows)
        if query is None:
            images = job.new_changes(rows, existing)
        else:
            matched = self.evaluate(query, now_ms, job.meeting(rows, existing))
            images = self._collected(job.update_images(matched, upserts=True))
            job.check_new_keys(images, lambda wanted: self._existing(job, wanted))
        return self._changed(job, table, images, appearing(images))

    def update(self, table: CatalogObject, query: BoundQuery, now_ms: int) -> Written:
        self.refuse_if_read_only("UPDATE")
        job = self.database.table_job(table)
        images = self._collected(job.update_images(self.evaluate(query, now_ms)))
        job.check_new_keys(images, lambda wanted: self._existing(job, wanted))
        return self._changed(job, table, images, appearing(images))

    def delete(self, table: CatalogObject, query: BoundQuery, now_ms: int) -> Written:
        self.refuse_if_read_only("DELETE")
        job = self.database.table_job(table)
        gone = self.evaluate(query, now_ms)
        names = [f"`{name}`" for name in job.schema.names]
        signed = gone.selectExpr(*names, f"{vnode_sql(job.schema)} AS `{VNODE}`", f"cast(-1 as tinyint) AS `{OP}`")
        rows = self._collected(signed)
        return self._changed(job, table, rows, rows.num_rows)

    def refuse_if_read_only(self, verb: str) -> None:
        if self.read_only:
            raise TransactionState(f"cannot execute {verb} in a read-only transaction", sqlstate="25006")

    def _changed(self, job: TableJob, table: CatalogObject, changes: pa.Table, count: int) -> Written:
        if not count:
            return Written(0, None, self.snapshot())
        self._add(job, table, changes, None)
        stamped = _stamped(shape(changes, job.schema))
        return Written(count, Changes(job.relation, job.schema, stamped.num_rows, (), stamped), self.snapshot())

    def _add(
        self, job: TableJob, table: CatalogObject, changes: pa.Table, inserted: tuple[pa.Table, ...] | None
    ) -> None:
        shaped = shape(changes, job.schema)
        before = self._writes.get(job.relation)
        if before is not None:
            shaped = pa.concat_tables([before.changes, shaped])
        net = consolidate(shaped, job.schema.columns)
        limits = self.database.runtime.limits
        if net.num_rows > limits.inline_rows_max or net.nbytes > limits.inline_bytes_max:
            raise too_large()
        self._writes = {**self._writes, job.relation: Writes(table, net, inserted)}

    def _existing(self, job: TableJob, wanted: pa.Table) -> pa.Table:
        """The rows that this transaction sees under the keys of `wanted`: stored columns and `_vnode`."""
        if job.relation not in self._writes:
            return job.existing(self._version(job.relation), wanted)  # which knows where not to look
        return self._looked_up(self.frame(job.relation), job.schema, wanted)

    def _looked_up(self, rows: DataFrame, schema: RelationSchema, wanted: pa.Table) -> pa.Table:
        key = list(schema.key)
        keys = local_frame(self.database.runtime.spark, wanted.select(key))
        names = [*schema.names, VNODE]
        found = with_keys(rows.select(*names), F.broadcast(keys), schema, "left_semi").toArrow()
        return shape(found.append_column(OP, pa.array([1] * found.num_rows, pa.int8())), schema).select(names)

    def _collected(self, frame: DataFrame) -> pa.Table:
        rows = self.database.runtime.collect(frame)
        if rows is None or rows.num_rows > self.database.runtime.limits.inline_rows_max:
            raise too_large()
        return rows

    # --- savepoints --------------------------------------------------------------------------------------

    def savepoint(self, name: str, variables: Variables) -> None:
        self._savepoints.append(_Savepoint(name, self._writes, variables))

    def release(self, name: str) -> None:
        del self._savepoints[self._find(name) :]

    def rollback_to(self, name: str) -> Variables:
        """The savepoint stays, and may be returned to again."""
        index = self._find(name)
        del self._savepoints[index + 1 :]
        self._writes = self._savepoints[index].writes
        self.failed = False
        return self._savepoints[index].variables

    def _find(self, name: str) -> int:
        for index in reversed(range(len(self._savepoints))):
            if self._savepoints[index].name == name:
                return index
        raise TransactionState(f'savepoint "{name}" does not exist', sqlstate="3B001")

    # --- the end -----------------------------------------------------------------------------------------

    def commit(self, check: Callable[[], None]) -> None:
        """Makes the writes durable in one epoch. `check` may raise while the tables are waited for, not later."""
        try:
            if self._writes:
                self._commit(check)
        finally:
            self.close()

    def _commit(self, check: Callable[[], None]) -> None:
        with ExitStack() as inside:
            for relation in sorted(self._writes):  # always in the same order, so that nobody waits for each other
                if relation in self.gated:
                    continue
                gate = self.database.gate(relation)
                blind = self._writes[relation].inserted is not None
                inside.enter_context(gate.shared(check) if blind else gate.alone(check))
            requests = [(JobId(relation), self._payload(writes)) for relation, writes in self._writes.items()]
            for future in self.database.coordinator.submit_all(requests):
                future.result()  # an epoch has it: a cancel could no longer undo it

    def _payload(self, writes: Writes) -> Payload:
        current = self.database.catalog.by_id.get(writes.table.id)
        if current is None:
            raise UndefinedTable(f'table "{writes.table.name}" was dropped while the transaction ran')
        if current.relation != writes.schema:
            raise SerializationFailure(f'table "{writes.table.name}" was altered while the transaction ran')
        if writes.inserted is not None:
            return InsertRows(pa.concat_tables(writes.inserted))
        self._refuse_if_changed(writes)
        return ApplyChanges(writes.changes)

    def _refuse_if_changed(self, writes: Writes) -> None:
        """Rows that this transaction changed must be stored as it saw them. The table is held by us meanwhile."""
        runtime = self.database.runtime
        relation = RelationId(writes.table.id)
        now, then = runtime.versions.committed(relation), self._versions[relation]
        if (now.base, now.segments) == (then.base, then.segments):
            return
        stored = self._looked_up(runtime.reader.exact(now), writes.schema, writes.changes)
        seen = writes.changes.filter(pc.equal(writes.changes[OP], -1))
        plain = writes.schema.columns
        stored = stored.append_column(OP, pa.array([1] * stored.num_rows, pa.int8()))
        if consolidate(pa.concat_tables([stored, seen.select(stored.column_names)]), plain).num_rows:
            raise SerializationFailure(
                "could not serialize access due to concurrent update",
                detail=f'Another session changed rows of "{writes.table.name}" that this transaction changed too.',
                hint="Run the transaction again.",
            )

    def close(self) -> None:
        """Forgets everything."""
        self._held.close()
        self._writes = {}
        self._versions = {}
        self._savepoints = []


def without_local(variables: Variables, local: Iterable[tuple[str, str | None]]) -> Variables:
    """The variables with the values they had before SET LOCAL."""
    for name, value in local:
        variables = variables.with_value(name, value)
    return variables


def _stamped(changes: pa.Table) -> pa.Table:
    return changes.append_column(EPOCH, pa.array([int(EPOCH_ZERO)] * changes.num_rows, pa.int64()))


def too_large() -> TransactionTooLarge:
    return TransactionTooLarge(
        "a transaction this large is not supported",
        detail="The changes of a transaction wait on the driver, which holds inline_rows_max rows of each table.",
        hint="Run the statement outside a transaction block: every statement is atomic by itself.",
    )
