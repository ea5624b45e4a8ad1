"""A table as a job: statements come in, changes of the table come out.

Small inserts of one epoch are taken together: their rows are on the driver already, and one lookup by key finds
the rows that they replace. An UPDATE, a DELETE or a large insert has the table for itself in its epoch (its
session sees to that), so it may be evaluated against what is stored without looking at other statements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from seiche.catalog.checkpoint import Checkpoint
from seiche.epoch.barrier import Barrier
from seiche.epoch.graph import Changes as AnyChanges
from seiche.epoch.graph import Failed, Outcome, Reply, Request, Succeeded
from seiche.errors import (
    CardinalityViolation,
    FeatureNotSupported,
    InvariantError,
    NotNullViolation,
    SeicheError,
    UniqueViolation,
    UserError,
)
from seiche.far_days import python_rows
from seiche.model import EPOCH, OP, ROW_ID, VNODE, Epoch, JobId, RelationId, RelationSchema
from seiche.query import relation_of, render, typed
from seiche.sql.bind import BoundQuery
from seiche.sql.failures import translate_spark_error
from seiche.sql.targets import GIVEN_SOURCE, MET, MET_SOURCE
from seiche.storage.bounds import KeyBounds
from seiche.storage.changes import (
    Changes,
    appearing,
    arrow_schema,
    consolidate,
    local_frame,
    number_sql,
    same_key_sql,
    vnode_sql,
)
from seiche.storage.versions import RelationVersion
from seiche.stream.conflict import Conflict, in_turn, not_outdated
from seiche.stream.predicates import lookup_condition
from seiche.stream.rowids import TASK_RANGE, RowIds, vnodes_of
from seiche.stream.runtime import Runtime, shape
from seiche.stream.watermark import Arrivals, Watermark

_SEQ = "_seq"

# Integers are close together when they are spread over at most this many times their number.
DENSE = 64


@dataclass(frozen=True, slots=True)
class InsertRows:
    """Rows on the driver: the visible columns, and `_vnode` where the table has a primary key."""

    table: pa.Table


@dataclass(frozen=True, slots=True)
class InsertFrame:
    """Rows that stay with the executors: the visible columns."""

    frame: DataFrame


@dataclass(frozen=True, slots=True)
class UpdateRows:
    """A query for old_<column> and new_<column> of the rows to change."""

    query: BoundQuery
    now_ms: int


@dataclass(frozen=True, slots=True)
class UpsertRows:
    """Rows as those of an `InsertRows` or an `InsertFrame`, which are written where they meet none with their key.

    What becomes of one that is met the query says (`bind_upsert`); without a query it stays, and of several new rows
    with one key the first is written.
    """

    rows: pa.Table | DataFrame
    query: BoundQuery | None
    now_ms: int


@dataclass(frozen=True, slots=True)
class DeleteRows:
    """A query for all columns of the rows to delete."""

    query: BoundQuery
    now_ms: int


@dataclass(frozen=True, slots=True)
class ApplyChanges:
    """Signed changes, checked already by a transaction that has the table for itself."""

    changes: pa.Table


@dataclass(frozen=True, slots=True)
class TakeChanges:
    """What a sink hands to the table: rows that come, and rows whose keys leave unless they are among those.

    Both are like those of an `InsertRows`, or both of an `InsertFrame`; where none comes, those that leave may be of
    the other kind. `part` is made durable together with them.
    """

    rows: pa.Table | DataFrame
    gone: pa.Table | DataFrame | None  # None: nothing leaves
    part: Checkpoint


Payload = InsertRows | InsertFrame | UpdateRows | UpsertRows | DeleteRows | ApplyChanges | TakeChanges


@dataclass(frozen=True, slots=True)
class Written:
    """The answer to a statement: how many rows it wrote, and its changes, those that change nothing among them if they
    are few."""

    rows: int
    changes: Changes | None
    epoch: Epoch


@dataclass(frozen=True, slots=True)
class TableJob:
    """Satisfies `seiche.epoch.graph.Job`."""

    id: JobId
    name: str
    relation: RelationId
    schema: RelationSchema
    conflict: Conflict
    runtime: Runtime
    row_ids: RowIds
    bounds: KeyBounds
    versions: tuple[str, ...] = ()  # the columns by which an older row is told
    watermark: Watermark | None = None

    @property
    def inputs(self) -> frozenset[RelationId]:
        return frozenset()

    @property
    def outputs(self) -> frozenset[RelationId]:
        return frozenset([self.relation, *([self.watermark.relation] if self.watermark is not None else [])])

    @property
    def has_row_ids(self) -> bool:
        return self.schema.key == (ROW_ID,)

    def wants(self, barrier: Barrier) -> bool:
        return False

    def run(self, barrier: Barrier, inputs: Mapping[RelationId, AnyChanges], requests: Sequence[Request]) -> Outcome:
        rows = [request for request in requests if isinstance(request.payload, InsertRows)]
        if len(rows) not in (0, len(requests)) or (not rows and len(requests) != 1):
            raise InvariantError(f"table {self.name!r} was handed statements that exclude each other")
        version = self.runtime.versions.at(self.relation, barrier.previous)
        replies: dict[int, Reply] = {}
        images: Changes | None = None
        arrivals = Arrivals(self.watermark, self.name, self.runtime, barrier)
        try:
            if rows:
                tables = [request.payload.table for request in rows]  # type: ignore[attr-defined]
                changes = self._insert_rows(version, arrivals.rows(pa.concat_tables(tables)), barrier.epoch)
                counts = [table.num_rows for table in tables]
            elif isinstance(requests[0].payload, UpdateRows):
                count, changes, images = self._update(version, requests[0].payload, barrier.epoch)
                counts = [count]
            elif isinstance(requests[0].payload, UpsertRows):
                count, changes, images = self._upsert(version, requests[0].payload, barrier.epoch)
                counts = [count]
            else:
                count, changes = self._alone(version, requests[0].payload, arrivals)
                counts = [count]
            marked = arrivals.raised()
        except Exception as error:  # a Spark job's failure arrives as one of many classes
            cause = error if isinstance(error, SeicheError) else translate_spark_error(error)
            if not rows and isinstance(cause, UserError):
                # The statement's own fault: it fails alone, and the epoch goes on.
                self._forget_staged()
                return Outcome(replies={requests[0].ticket: Failed(cause)})
            raise cause from error
        for request, count in zip(requests, counts, strict=True):
            replies[request.ticket] = Succeeded(Written(count, images or changes, barrier.epoch))
        moved = {self.relation: changes} if changes else {}
        part = arrivals.part
        if isinstance(requests[0].payload, TakeChanges):
            part = requests[0].payload.part.merge(part or Checkpoint())
        return Outcome(changes={**moved, **marked}, part=part, replies=replies)

    def _forget_staged(self) -> None:
        self.runtime.writer.remove(self.runtime.versions.discard(list(self.outputs)))

    # --- rows on the driver --------------------------------------------------------------------------

    def _insert_rows(self, version: RelationVersion, rows: pa.Table, epoch: Epoch) -> Changes | None:
        if rows.num_rows == 0:
            return None
        fresh = self.has_row_ids or (not version.base.files and not version.segments)
        changed = self.insert_changes(rows, lambda wanted: self.existing(version, wanted))
        return self.runtime.emit_table(self.relation, self.schema, changed, epoch, fresh=fresh)

    def insert_changes(self, rows: pa.Table, existing_of: Callable[[pa.Table], pa.Table]) -> pa.Table:
        """The signed changes that an insert of `rows` makes; `existing_of` finds the stored rows with their keys."""
        if self.has_row_ids:
            return self._numbered(rows)
        if self.versions or self.conflict is Conflict.UPDATE_IF_NOT_NULL:
            before = existing_of(rows)
            after = in_turn(rows, before, self.schema.key, self.versions, self.conflict)
            return pa.concat_tables([_signed(before, -1), _signed(after, 1)])
        first = self.conflict is Conflict.IGNORE
        rows = self._one_per_key(rows, first=first)
        existing = existing_of(rows)
        if first:
            rows = self._without_keys(rows, existing)
            existing = existing.slice(0, 0)
        return pa.concat_tables([_signed(existing, -1), _signed(rows.select(existing.column_names), 1)])

    def _numbered(self, rows: pa.Table) -> pa.Table:
        first = self.row_ids.take(self.relation, rows.num_rows)
        ids = np.arange(first, first + rows.num_rows, dtype=np.int64)
        numbered = rows.append_column(ROW_ID, pa.array(ids)).append_column(VNODE, pa.array(vnodes_of(ids)))
        return _signed(numbered, 1)

    def _one_per_key(self, rows: pa.Table, *, first: bool) -> pa.Table:
        """The first or last row of each key. A primary key has no nested types; NULL equals NULL in it."""
        key = list(self.schema.key)
        numbered = rows.select(key).append_column(_SEQ, pa.array(range(rows.num_rows), pa.int64()))
        chosen = numbered.group_by(key, use_threads=False).aggregate([(_SEQ, "min" if first else "max")])
        indices = pc.array_sort_indices(chosen[f"{_SEQ}_{'min' if first else 'max'}"])
        return rows.take(chosen[f"{_SEQ}_{'min' if first else 'max'}"].take(indices))

    def existing(self, version: RelationVersion, rows: pa.Table) -> pa.Table:
        """The stored rows whose keys are among `rows`: stored columns and `_vnode`."""
        columns = [*self.schema.names, VNODE]
        if not self.bounds.may_hold(version, rows):
            return shape(rows.select(columns).append_column(OP, pa.array([1] * rows.num_rows, pa.int8())), self.schema)[
                0:0
            ].select(columns)
        key = list(self.schema.key)
        wanted = rows.select(key).group_by(key, use_threads=False).aggregate([])
        condition, exact = lookup_condition(self.schema, wanted)
        found = self.runtime.reader.lookup(version, wanted, condition, exact=exact)
        if len(key) > 1:
            asked = {tuple(row.values()) for row in python_rows(wanted)}
            among = [tuple(row.values()) in asked for row in python_rows(found.select(key))]
            found = found.filter(pa.array(among, pa.bool_()))
        return consolidate(shape(found, self.schema), self.schema.columns).select(columns)

    def _without_keys(self, rows: pa.Table, existing: pa.Table) -> pa.Table:
        key = list(self.schema.key)
        taken = {tuple(row.values()) for row in python_rows(existing.select(key))}
        keep = [tuple(row.values()) not in taken for row in python_rows(rows.select(key))]
        return rows.filter(pa.array(keep, pa.bool_()))

    # --- statements that have the table for themselves -----------------------------------------------

    def _alone(self, version: RelationVersion, payload: object, arrivals: Arrivals) -> tuple[int, Changes | None]:
        epoch = arrivals.barrier.epoch
        match payload:
            case InsertFrame():
                count, changes = self._insert_frame(version, arrivals.frame(payload.frame), epoch)
                arrivals.written(changes)
                return count, changes
            case ApplyChanges():
                # Where rows may be updated, a row that left has to leave, however late it is.
                changed = arrivals.rows(payload.changes) if self.schema.append_only else payload.changes
                written = self.runtime.emit_table(self.relation, self.schema, changed, epoch)
                return payload.changes.num_rows, written
            case TakeChanges(rows, DataFrame() as gone) if isinstance(rows, pa.Table):
                changes = self._delete_keys(version, gone, epoch)
                return (changes.rows if changes else 0), changes
            case TakeChanges(rows, gone) if isinstance(rows, pa.Table):
                taken = self._taken(version, arrivals.rows(rows), gone)
                return rows.num_rows, self.runtime.emit_table(self.relation, self.schema, taken, epoch)
            case TakeChanges(frame, None):
                count, changes = self._insert_frame(version, arrivals.frame(frame), epoch)
                arrivals.written(changes)
                return count, changes
            case TakeChanges(frame, gone):
                changes = self._take_frames(version, arrivals.frame(frame), gone, epoch)
                arrivals.written(changes)
                return (changes.rows if changes else 0), changes
            case DeleteRows():
                with self.runtime.scope() as scope:
                    gone = scope.view(self._evaluate(version, payload.query, payload.now_ms))
                    names = ", ".join(f"`{name}`" for name in self.schema.names)
                    vnode = vnode_sql(self.schema)
                    frame = scope.sql(
                        f"SELECT {names}, {vnode} AS `{VNODE}`, cast(-1 as tinyint) AS `{OP}` FROM {gone}"
                    )
                changes = self.runtime.emit(self.relation, self.schema, frame, epoch, small=True)
                return (changes.rows if changes else 0), changes
            case _:
                raise InvariantError(f"table {self.name!r} was handed {type(payload).__name__}")

    def _taken(self, version: RelationVersion, rows: pa.Table, gone: pa.Table | None) -> pa.Table:
        """The signed changes of a sink's rows: those that come replace, those that leave alone delete."""
        parts = []
        if rows.num_rows:
            parts.append(self.insert_changes(rows, lambda wanted: self.existing(version, wanted)))
        alone = self._without_keys(gone, rows) if gone is not None and gone.num_rows else None
        if alone is not None and alone.num_rows:
            parts.append(_signed(self.existing(version, alone), -1))
        return pa.concat_tables(parts) if parts else arrow_schema(self.schema).empty_table()

    def _take_frames(self, version: RelationVersion, rows: DataFrame, gone: DataFrame, epoch: Epoch) -> Changes | None:
        """As `_taken`, for rows that stay with the executors."""
        came = self._upsert_changes(version, rows)
        same = same_key_sql(self.schema, "o", "k")
        columns = ", ".join(f"`{name}`" for name in (*self.schema.names, VNODE))
        with self.runtime.scope() as scope:
            stored, left, kept = (scope.view(each) for each in (self.runtime.reader.exact(version), gone, rows))
            deleted = scope.sql(
                f"SELECT {columns}, cast(-1 as tinyint) AS `{OP}` FROM"
                f" (SELECT o.* FROM {stored} o LEFT SEMI JOIN {left} k ON {same}) o LEFT ANTI JOIN {kept} k ON {same}"
            )
        both = came.select(*deleted.columns).unionAll(deleted)
        return self.runtime.emit(self.relation, self.schema, both, epoch, small=False)

    def _delete_keys(self, version: RelationVersion, gone: DataFrame, epoch: Epoch) -> Changes | None:
        """Deletes the rows that agree in the key with some of these."""
        same = same_key_sql(self.schema, "o", "k")
        columns = ", ".join(f"o.`{name}`" for name in (*self.schema.names, VNODE))
        key = ", ".join(f"`{name}`" for name in self.schema.key)
        with self.runtime.scope() as scope:
            stored, left = scope.view(self.runtime.reader.exact(version)), scope.view(gone)
            deleted = scope.sql(
                f"SELECT {columns}, cast(-1 as tinyint) AS `{OP}` FROM {stored} o"
                f" LEFT SEMI JOIN (SELECT {key} FROM {left}) k ON {same}"
            )
        # No row is in it twice, so nothing has to be added up.
        written = self.runtime.writer.write_frame(self.relation, self.schema, self.runtime.spread(deleted), epoch)
        return self.runtime.written(self.relation, self.schema, written)

    def _evaluate(
        self,
        version: RelationVersion,
        query: BoundQuery,
        now_ms: int,
        sources: Mapping[str, DataFrame] = MappingProxyType({}),
    ) -> DataFrame:
        """The statement's query: this table as it is now, other relations as of the epoch before, and `sources`."""
        with self.runtime.scope() as scope:
            views = {name: scope.view(frame) for name, frame in sources.items()}

            def view_of(source: str) -> str:
                if source not in views:
                    relation = relation_of(source)
                    at = version if relation == self.relation else self.runtime.versions.at(relation, version.epoch)
                    views[source] = scope.view(self.runtime.reader.exact(at))
                return views[source]

            return typed(scope.sql(render(query.ast, view_of, now_ms)), query)

    def update_images(self, matched: DataFrame, *, upserts: bool = False) -> DataFrame:
        """Old and new rows as changes. Where it `upserts`, there are old ones only for those that were met."""
        names = self.schema.names
        with self.runtime.scope() as scope:
            view = scope.view(matched)
            images = []
            for side, sign in (("old", -1), ("new", 1)):
                row = ", ".join(f"'{name}', `{side}_{name}`" for name in names)
                images.append(f"named_struct({row}, '{OP}', cast({sign} as tinyint))")
            both = f"SELECT *, explode(array({', '.join(images)})) AS r FROM {view}"
            there = f"r.`{OP}` > 0 OR `{MET}`" if upserts else "true"
            flat = ", ".join(f"r.`{name}` AS `{name}`" for name in (*names, OP))
            plain = ", ".join(f"`{name}`" for name in names)
            vnode = vnode_sql(self.schema)
            checked = ", ".join(self._checked(name, f"`{OP}` > 0") for name in names)
            rows = f"SELECT {checked}, `{OP}` FROM (SELECT {flat} FROM ({both}) WHERE {there})"
            return scope.sql(f"SELECT {plain}, {vnode} AS `{VNODE}`, `{OP}` FROM ({rows})")

    def _update(
        self, version: RelationVersion, statement: UpdateRows, epoch: Epoch
    ) -> tuple[int, Changes | None, Changes | None]:
        """How many rows matched, the table's changes, and both images of every row that matched, if they are few."""
        frame = self.update_images(self._evaluate(version, statement.query, statement.now_ms))
        table = self.runtime.collect(frame)
        if table is None:
            self._check_keys_stay(frame)
            changes = self.runtime.emit(self.relation, self.schema, frame, epoch, small=False)
            return (changes.rows // 2 if changes else 0), changes, None
        self.check_new_keys(table, lambda wanted: self.existing(version, wanted))
        return self._changed(table, epoch)

    def _changed(self, table: pa.Table, epoch: Epoch) -> tuple[int, Changes | None, Changes | None]:
        count = appearing(table)
        stamped = shape(table, self.schema).append_column(EPOCH, pa.array([epoch] * table.num_rows, pa.int64()))
        images = Changes(self.relation, self.schema, table.num_rows, (), stamped) if count else None
        return count, self.runtime.emit_table(self.relation, self.schema, table, epoch), images

    def check_new_keys(self, images: pa.Table, existing_of: Callable[[pa.Table], pa.Table]) -> None:
        """An UPDATE may move rows to other keys only if nobody else is there."""
        key = list(self.schema.key)
        old = images.filter(pc.equal(images[OP], -1))
        new = images.filter(pc.equal(images[OP], 1))
        left = {tuple(row.values()) for row in python_rows(old.select(key))}
        keys = [tuple(row.values()) for row in python_rows(new.select(key))]
        moved = pa.array([each not in left for each in keys], pa.bool_())
        taken = None
        if len(set(keys)) != len(keys):
            taken = next(each for index, each in enumerate(keys) if each in keys[:index])
        elif new.filter(moved).num_rows:
            found = python_rows(existing_of(new.filter(moved)).select(key))
            taken = tuple(found[0].values()) if found else None
        if taken is not None:
            shown = ", ".join(str(value) for value in taken)
            raise UniqueViolation(
                f'duplicate key value violates the primary key of "{self.name}"',
                detail=f"Key ({', '.join(key)})=({shown}) already exists.",
            )

    def _upsert(
        self, version: RelationVersion, statement: UpsertRows, epoch: Epoch
    ) -> tuple[int, Changes | None, Changes | None]:
        """As `_update`, of rows that may be new."""
        rows = statement.rows
        if isinstance(rows, pa.Table):
            existing = self.existing(version, rows)
            if statement.query is None:
                return self._changed(self.new_changes(rows, existing), epoch)
            sources = self.meeting(rows, existing)
        elif statement.query is None:
            count, changes = replace(self, conflict=Conflict.IGNORE, versions=())._insert_frame(version, rows, epoch)
            return count, changes, None
        else:
            sources = {GIVEN_SOURCE: self._fitted(rows), MET_SOURCE: self.runtime.reader.exact(version)}
            self._check_once(sources[GIVEN_SOURCE])
        matched = self._evaluate(version, statement.query, statement.now_ms, sources)
        frame = self.update_images(matched, upserts=True)
        table = self.runtime.collect(frame) if isinstance(rows, pa.Table) else None
        if table is not None:
            self.check_new_keys(table, lambda wanted: self.existing(version, wanted))
            return self._changed(table, epoch)
        self._check_once(frame.filter(f"`{OP}` > 0"))
        changes = self.runtime.emit(self.relation, self.schema, frame, epoch, small=False)
        came = 0 if changes is None else self.runtime.reader.changes(changes).filter(f"`{OP}` > 0").count()
        return came, changes, None

    def new_changes(self, rows: pa.Table, existing: pa.Table) -> pa.Table:
        """The changes of an insert that leaves the rows that are there alone."""
        fresh = self._without_keys(self._one_per_key(rows, first=True), existing)
        return _signed(fresh.select(existing.column_names), 1)

    def meeting(self, rows: pa.Table, existing: pa.Table) -> dict[str, DataFrame]:
        """Rows that come and those that they meet, as `bind_upsert` calls them. A key may come once."""
        if self._one_per_key(rows, first=True).num_rows < rows.num_rows:
            raise _twice()
        names = list(self.schema.names)
        given, met = (local_frame(self.runtime.spark, each.select(names)) for each in (rows, existing))
        return {GIVEN_SOURCE: given, MET_SOURCE: met}

    def _check_once(self, rows: DataFrame) -> None:
        key = ", ".join(f"`{name}`" for name in self.schema.key)
        with self.runtime.scope() as scope:
            view = scope.view(rows)
            if not scope.sql(f"SELECT 1 FROM {view} GROUP BY {key} HAVING count(*) > 1 LIMIT 1").isEmpty():
                raise _twice()

    def _fitted(self, frame: DataFrame) -> DataFrame:
        return frame.selectExpr(*(self._checked(column.name, "true") for column in self.schema.visible))

    def _check_keys_stay(self, images: DataFrame) -> None:
        """A large UPDATE must leave the keys as they are."""
        key = ", ".join(f"`{name}`" for name in self.schema.key)
        with self.runtime.scope() as scope:
            view = scope.view(images)
            moved = scope.sql(f"SELECT 1 FROM {view} GROUP BY {key} HAVING sum(`{OP}`) <> 0 OR count(*) <> 2 LIMIT 1")
            if moved.count():
                raise FeatureNotSupported(
                    f'an UPDATE this large cannot change the primary key of "{self.name}"',
                    hint="Update fewer rows at a time.",
                )

    def _insert_frame(self, version: RelationVersion, frame: DataFrame, epoch: Epoch) -> tuple[int, Changes | None]:
        checked = self._fitted(frame)
        if self.has_row_ids:
            tasks = max(checked.rdd.getNumPartitions(), 1)
            first = self.row_ids.take(self.relation, tasks * TASK_RANGE)
            numbered = checked.selectExpr("*", f"monotonically_increasing_id() + {number_sql(first)} AS `{ROW_ID}`")
            changes = self.runtime.emit_rows(self.relation, self.schema, numbered, epoch)
            return (changes.rows if changes else 0), changes
        return self._upsert_frame(version, checked, epoch)

    def _load_frame(self, rows: DataFrame, epoch: Epoch) -> Changes | None:
        """Writes rows into a table that was never filled as they are, if their keys turn out to differ.

        Looking for equal keys among what was written costs a read of the key alone; making rows with equal keys one
        beforehand would move every row.
        """
        written = self.runtime.emit_rows(self.relation, self.schema, rows, epoch)
        if written is not None and not self._keys_differ(written):
            self._forget_staged()
            return None
        return written

    def _keys_differ(self, written: Changes) -> bool:
        key = [f"`{name}`" for name in self.schema.key]
        with self.runtime.scope() as scope:
            keys = scope.view(self.runtime.reader.changes(written).selectExpr(*key))
            if len(key) == 1 and self.schema.column(self.schema.key[0]).type.is_integer:
                # Numbers that lie close together need one bit each, and no exchange worth mentioning.
                ends = self.bounds.of(self.schema, written.segments)
                if ends is not None and ends[1] - ends[0] < DENSE * written.rows:
                    number = f"(cast({key[0]} as bigint) - {ends[0]}L)"
                    buckets = (
                        f"SELECT bitmap_construct_agg(bitmap_bit_position({number})) AS bits FROM {keys}"
                        f" GROUP BY bitmap_bucket_number({number})"
                    )
                    found = scope.sql(f"SELECT sum(bitmap_count(bits)) AS n FROM ({buckets})").first()["n"]
                    return int(found) == written.rows
            return scope.sql(f"SELECT 1 FROM {keys} GROUP BY {', '.join(key)} HAVING count(*) > 1 LIMIT 1").isEmpty()

    def _upsert_frame(self, version: RelationVersion, rows: DataFrame, epoch: Epoch) -> tuple[int, Changes | None]:
        if not version.base.files and not version.segments:
            loaded = self._load_frame(rows, epoch)
            if loaded is not None:
                return loaded.rows, loaded
        changes = self.runtime.emit(self.relation, self.schema, self._upsert_changes(version, rows), epoch, small=False)
        return (changes.rows if changes else 0), changes

    def _upsert_changes(self, version: RelationVersion, rows: DataFrame) -> DataFrame:
        """The signed changes that an insert of rows into a table with a primary key makes."""
        key = ", ".join(f"`{name}`" for name in self.schema.key)
        others = [name for name in self.schema.names if name not in self.schema.key]
        pick = "min_by" if self.conflict is Conflict.IGNORE else "max_by"
        numbered = rows.selectExpr("*", f"monotonically_increasing_id() AS `{_SEQ}`")
        exact = self.runtime.reader.exact(version)
        if self.versions:
            numbered = not_outdated(self.runtime, numbered, exact, self.schema, self.versions, _SEQ)
        with self.runtime.scope() as scope:
            view = scope.view(numbered)
            if self.conflict is Conflict.UPDATE_IF_NOT_NULL:
                chosen = [f"max_by(`{c}`, `{_SEQ}`) FILTER (WHERE `{c}` IS NOT NULL) AS `{c}`" for c in others]
            else:
                whole = ", ".join(f"'{c}', `{c}`" for c in others) or "'_', 0"
                chosen = [f"{pick}(named_struct({whole}), `{_SEQ}`) AS _row"]
            grouped = f"SELECT {key}, {', '.join(chosen) or 'count(*)'} FROM {view} GROUP BY {key}"
            if self.conflict is not Conflict.UPDATE_IF_NOT_NULL:
                plain = ", ".join([key, *(f"_row.`{c}` AS `{c}`" for c in others)])
                grouped = f"SELECT {plain} FROM ({grouped})"
            vnode, order = vnode_sql(self.schema), ", ".join(f"`{name}`" for name in self.schema.names)
            incoming = f"SELECT {order}, {vnode} AS `{VNODE}` FROM ({grouped})"
            stored = scope.view(exact)
            same = same_key_sql(self.schema, "n", "o")
            new_row = ", ".join(f"'{name}', n.`{name}`" for name in (*self.schema.names, VNODE))
            old_row = ", ".join(f"'{name}', o.`{name}`" for name in (*self.schema.names, VNODE))
            if self.conflict is Conflict.UPDATE_IF_NOT_NULL:
                new_row = ", ".join(f"'{n}', coalesce(n.`{n}`, o.`{n}`)" for n in (*self.schema.names, VNODE))
            joined = f"SELECT named_struct({new_row}) AS n, if(o.`{VNODE}` IS NULL, null, named_struct({old_row})) AS o"
            joined += f" FROM ({incoming}) n LEFT JOIN {stored} o ON {same}"
            if self.conflict is Conflict.IGNORE:
                joined = f"SELECT n, o FROM ({joined}) WHERE o IS NULL"
            both = "filter(array(named_struct('s', -1, 'r', o), named_struct('s', 1, 'r', n)), e -> e.r is not null)"
            columns = ", ".join(f"e.r.`{name}` AS `{name}`" for name in (*self.schema.names, VNODE))
            return scope.sql(
                f"SELECT {columns}, cast(e.s as tinyint) AS `{OP}` FROM (SELECT explode({both}) AS e FROM ({joined}))"
            )

    def _checked(self, name: str, when: str) -> str:
        """The column, or an error at run time where it must not be NULL."""
        column = self.schema.column(name)
        if column.nullable:
            return f"`{name}`"
        message = null_message(name, self.name).replace("'", "\\'")
        return f"if(`{name}` IS NULL AND {when}, raise_error('{message}'), `{name}`) AS `{name}`"


def inserted_schema(schema: RelationSchema) -> pa.Schema:
    """The Arrow schema of the rows of an `InsertRows`."""
    fields = [pa.field(column.name, column.type.arrow) for column in schema.visible]
    if schema.key != (ROW_ID,):
        fields.append(pa.field(VNODE, pa.int16()))
    return pa.schema(fields)


def check_not_null(rows: pa.Table, schema: RelationSchema, table: str) -> None:
    """Raises for the first column that must have a value and has none."""
    for column in schema.visible:
        if not column.nullable and rows[column.name].null_count:
            raise NotNullViolation(
                null_message(column.name, table), hint=f'Give "{column.name}" a value, or a DEFAULT in the table.'
            )


def null_message(column: str, table: str) -> str:
    return f'null value in column "{column}" of relation "{table}" violates not-null constraint'


def _twice() -> CardinalityViolation:
    return CardinalityViolation(
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
        hint="Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )


def _signed(rows: pa.Table, sign: int) -> pa.Table:
    return rows.append_column(OP, pa.array(np.full(rows.num_rows, sign, np.int8)))
