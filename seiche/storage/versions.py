"""Which files make up a relation at an epoch.

A `RelationVersion` is a value: the base as of its fold epoch f, and the segments of (f, e]. `Versions` keeps
the current set in memory, in three strengths:

    staged       written in an epoch that is still running; seen by the jobs of that epoch only
    committed    registered in the metadata database; seen by readers
    retained     folded or joined already, but still needed to read an older epoch

It never touches files: what may be deleted is told by `retention`.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from seiche.errors import InvariantError
from seiche.model import EPOCH_ZERO, VNODES, Base, Epoch, RelationId, RelationSchema, Segment
from seiche.storage.indexes import Index, Indexes


@dataclass(frozen=True, slots=True)
class RelationVersion:
    """The files of a relation at one epoch."""

    relation: RelationId
    schema: RelationSchema
    epoch: Epoch
    base: Base
    segments: tuple[Segment, ...]

    @property
    def rows_estimate(self) -> int:
        """An upper bound of the rows alive."""
        return self.base_rows + self.log_rows

    @property
    def rows_by_vnode(self) -> tuple[int, ...]:
        """The same by vnode, as far as files tell: the rows of each are spread evenly over its vnodes.

        Rows of the log are taken to be spread as those of the base are.
        """
        shares = [0.0] * VNODES
        for file in self.base.files:
            for vnode in range(file.vnode_lo, file.vnode_hi + 1):
                shares[vnode] += file.rows / (file.vnode_hi - file.vnode_lo + 1)
        if not any(shares):
            shares = [1.0] * VNODES
        total = sum(shares)
        ends = [round(self.rows_estimate * share / total) for share in accumulate(shares)]
        return tuple(end - start for start, end in pairwise([0, *ends]))

    @property
    def base_rows(self) -> int:
        return sum(file.rows for file in self.base.files)

    @property
    def log_rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    @property
    def only_grows(self) -> bool:
        """Whether the log holds nothing but rows that came, with keys that never lived before."""
        return self.schema.append_only or all(segment.fresh for segment in self.segments)


@dataclass(slots=True)
class _Entry:
    schema: RelationSchema
    base: Base
    segments: list[Segment] = field(default_factory=list)  # committed, in order of epoch
    staged: list[Segment] = field(default_factory=list)
    trimmed: Epoch = EPOCH_ZERO  # changes up to here may be gone from the log


class Versions:
    """The relations of a database and their files. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._entries: dict[RelationId, _Entry] = {}
        self._committed = EPOCH_ZERO
        self._independent: dict[RelationId, Epoch] = {}  # and the epoch that each stands for
        self.indexes = Indexes()

    @property
    def committed_epoch(self) -> Epoch:
        with self._lock:
            return self._committed

    def load(
        self,
        epoch: Epoch,
        schemas: Mapping[RelationId, RelationSchema],
        bases: Iterable[Base],
        segments: Iterable[Segment],
    ) -> None:
        """Starts from what the metadata database holds."""
        with self._lock:
            self._committed = epoch
            self._entries = {}
            for relation, schema in schemas.items():
                self.add_relation(relation, schema)
            for base in bases:
                self._entries[base.relation].base = base
            for segment in segments:
                self._entries[segment.relation].segments.append(segment)
            for entry in self._entries.values():
                entry.segments.sort(key=lambda segment: (segment.epoch_lo, segment.path))

    def add_relation(self, relation: RelationId, schema: RelationSchema) -> None:
        with self._lock:
            self._entries[relation] = _Entry(schema, Base(relation, None, EPOCH_ZERO, ()))

    def set_schema(self, relation: RelationId, schema: RelationSchema) -> None:
        """The relation's columns have changed; its files stay as they are."""
        with self._lock:
            self._entries[relation].schema = schema

    def drop_relation(self, relation: RelationId) -> None:
        with self._lock:
            self._entries.pop(relation, None)

    def __contains__(self, relation: RelationId) -> bool:
        with self._lock:
            return relation in self._entries

    def relations(self) -> list[RelationId]:
        with self._lock:
            return list(self._entries)

    def schema(self, relation: RelationId) -> RelationSchema:
        with self._lock:
            return self._entries[relation].schema

    def at(self, relation: RelationId, epoch: Epoch) -> RelationVersion:
        """The relation at `epoch`, staged changes up to that epoch included."""
        with self._lock:
            entry = self._entries[relation]
            if epoch < entry.base.fold_epoch:
                raise InvariantError(
                    f"relation {relation} is asked for at epoch {epoch}, before its fold at {entry.base.fold_epoch}"
                )
            chosen = tuple(
                segment
                for segment in (*entry.segments, *entry.staged)
                if entry.base.fold_epoch < segment.epoch_hi and segment.epoch_lo <= epoch
            )
            return RelationVersion(relation, entry.schema, epoch, entry.base, chosen)

    def index_for(
        self, relation: RelationId, limited: Collection[str], needed: Collection[str], epoch: Epoch
    ) -> Index | None:
        """An index to read instead of a relation at an epoch, where few values of `limited` columns are wanted."""
        with self._lock:
            found = self.indexes.best(relation, self._entries[relation].schema.key, limited, needed, epoch)
            if found is None or found.relation not in self._entries:
                return None
            return found if self._entries[found.relation].base.fold_epoch <= epoch else None

    def committed(self, relation: RelationId) -> RelationVersion:
        with self._lock:
            return self.at(relation, self._committed)

    def between(self, relation: RelationId, after: Epoch, until: Epoch) -> tuple[Segment, ...]:
        """The segments that hold changes of the epochs (after, until]; a segment may hold others too."""
        with self._lock:
            entry = self._entries[relation]
            return tuple(
                segment
                for segment in (*entry.segments, *entry.staged)
                if segment.epoch_hi > after and segment.epoch_lo <= until
            )

    def log_rows(self, relations: Iterable[RelationId], after: Epoch, until: Epoch) -> dict[Epoch, int]:
        """How many changes of relations the segments of the epochs (after, until] hold, by the last epoch of each."""
        found: dict[Epoch, int] = {}
        for relation in relations:
            for segment in self.between(relation, after, until):
                last = min(segment.epoch_hi, until)
                found[last] = found.get(last, 0) + segment.rows
        return found

    def log_since(self, relation: RelationId, after: Epoch) -> tuple[tuple[Segment, ...], Epoch] | None:
        """The segments with all changes of the epochs (after, until] and until, the committed epoch.

        None when some of these changes are gone: their segments were folded, and nothing retained them.
        """
        with self._lock:
            if after < self._entries[relation].trimmed:
                return None
            return self.between(relation, after, self._committed), self._committed

    def segments(self, relation: RelationId) -> tuple[Segment, ...]:
        """All committed segments, folded ones that a pin still holds included."""
        with self._lock:
            return tuple(self._entries[relation].segments)

    def registered(self, relation: RelationId) -> set[str]:
        """The paths of all files that the metadata database knows for a relation. One may be a file of the base and a
        segment that is retained for its changes."""
        with self._lock:
            entry = self._entries[relation]
            return {file.path for file in entry.base.files} | {segment.path for segment in entry.segments}

    def set_independent(self, relations: Iterable[RelationId], independent: bool) -> None:
        """Relations of an independent graph are published and discarded by that graph, not with the main one."""
        with self._lock:
            for relation in relations:
                if independent:
                    self._independent.setdefault(relation, EPOCH_ZERO)
                else:
                    self._independent.pop(relation, None)

    def stands_at(self, relations: Iterable[RelationId], epoch: Epoch) -> None:
        """Relations of an independent graph hold all changes up to `epoch`; a later run may add any after it."""
        with self._lock:
            self._independent.update((relation, epoch) for relation in relations)

    def frontier(self, relation: RelationId) -> Epoch | None:
        """The epoch that a relation of an independent graph stands for; None for one of the main graph."""
        with self._lock:
            return self._independent.get(relation)

    def stage(self, segments: Iterable[Segment]) -> None:
        with self._lock:
            for segment in segments:
                self._entries[segment.relation].staged.append(segment)

    def staged(self, relations: Iterable[RelationId] | None = None) -> tuple[Segment, ...]:
        """What is staged for the given relations; without them, for all of the main graph's."""
        with self._lock:
            return tuple(segment for entry in self._chosen(relations) for segment in entry.staged)

    def publish(self, epoch: Epoch) -> None:
        """What the main graph staged is durable now, and `epoch` is the one that new readers see."""
        with self._lock:
            self.publish_relations(None)
            self._committed = epoch

    def publish_relations(self, relations: Iterable[RelationId] | None) -> None:
        """What is staged for these relations is durable now."""
        with self._lock:
            for entry in self._chosen(relations):
                entry.segments.extend(entry.staged)
                entry.staged = []

    def discard(self, relations: Iterable[RelationId] | None = None) -> tuple[Segment, ...]:
        """Forgets what was staged, and returns it so that its files can be removed."""
        with self._lock:
            lost = self.staged(relations)
            for entry in self._chosen(relations):
                entry.staged = []
            return lost

    def _chosen(self, relations: Iterable[RelationId] | None) -> list[_Entry]:
        if relations is None:
            return [entry for relation, entry in self._entries.items() if relation not in self._independent]
        return [self._entries[relation] for relation in relations if relation in self._entries]

    def replace_segments(self, old: Iterable[Segment], new: Segment) -> None:
        """Several small committed segments were joined into one that holds the same changes."""
        with self._lock:
            entry = self._entries[new.relation]
            gone = {segment.path for segment in old}
            entry.segments = [segment for segment in entry.segments if segment.path not in gone]
            entry.segments.append(new)
            entry.segments.sort(key=lambda segment: (segment.epoch_lo, segment.path))

    def forget_segments(self, paths: Iterable[str]) -> None:
        with self._lock:
            gone = set(paths)
            for entry in self._entries.values():
                lost = [segment.epoch_hi for segment in entry.segments if segment.path in gone]
                entry.trimmed = max([entry.trimmed, *lost])
                entry.segments = [segment for segment in entry.segments if segment.path not in gone]

    def set_base(self, base: Base) -> None:
        with self._lock:
            entry = self._entries[base.relation]
            if base.fold_epoch < entry.base.fold_epoch:
                raise InvariantError(f"relation {base.relation} would move back to an older base")
            entry.base = replace(base)
