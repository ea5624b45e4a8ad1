"""A checkpoint: everything that becomes durable together, as one value.

Storage, jobs and DDL each contribute a part; the parts of an epoch are merged and committed by
`MetadataStore.commit` in one transaction. Within a checkpoint drops come before puts. Ids and segment paths are
never used twice, so a put of something dropped by a later part is simply forgotten by `merge`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, Comment, Database, DefaultGrant, Grant, Schema, User
from seiche.errors import InvariantError
from seiche.model import Base, Epoch, JobId, ObjectId, Pin, RelationId, Segment

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)


RECOVERED = "GLOBAL_RECOVERY_SUCCESS"  # the kind of event that a start leaves, and RECOVER


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth telling an operator later. `info` holds JSON values."""

    time_ms: int
    kind: str
    info: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class VnodeProgress:
    """How far the backfill of a job has read one vnode of one input: up to and including the key `position`."""

    job: JobId
    relation: RelationId
    vnode: int
    position: bytes | None
    rows: int
    finished: bool


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One atomic change of the metadata database.

    epoch           the epoch that is committed by it; None leaves the committed epoch where it is
    drop_objects    also drops the segments, bases, pins, progress, offsets and counters of these ids
    put_bases       replaces the relation's base and its list of files
    put_pins        one for each (holder, relation); drop_pins drops all pins of these holders
    put_progress    the whole state of a job; None forgets it
    drop_backfill   drops the progress per vnode of these jobs
    source_offsets  the offset of each split; splits that are not named keep theirs
    settings        system parameters; None returns one to its default
    refresh_history JSON values, `job_id` among them; the last ones of each job are kept
    """

    epoch: Epoch | None = None
    put_databases: tuple[Database, ...] = ()
    drop_databases: frozenset[ObjectId] = frozenset()
    put_schemas: tuple[Schema, ...] = ()
    drop_schemas: frozenset[ObjectId] = frozenset()
    put_users: tuple[User, ...] = ()
    drop_users: frozenset[ObjectId] = frozenset()
    put_objects: tuple[CatalogObject, ...] = ()
    drop_objects: frozenset[ObjectId] = frozenset()
    put_grants: tuple[Grant, ...] = ()
    drop_grants: frozenset[tuple[int, int, str]] = frozenset()
    put_default_grants: tuple[DefaultGrant, ...] = ()
    drop_default_grants: frozenset[tuple[int, int, str, int, str]] = frozenset()
    put_comments: tuple[Comment, ...] = ()
    drop_comments: frozenset[tuple[int, str]] = frozenset()
    add_segments: tuple[Segment, ...] = ()
    remove_segments: frozenset[str] = frozenset()
    put_bases: tuple[Base, ...] = ()
    put_pins: tuple[Pin, ...] = ()
    drop_pins: frozenset[str] = frozenset()
    put_progress: Mapping[JobId, Mapping[str, Any] | None] = field(default_factory=dict)
    put_backfill: tuple[VnodeProgress, ...] = ()
    drop_backfill: frozenset[JobId] = frozenset()
    source_offsets: Mapping[ObjectId, Mapping[str, str]] = field(default_factory=dict)
    row_counters: Mapping[RelationId, int] = field(default_factory=dict)
    settings: Mapping[str, str | None] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    refresh_history: tuple[Mapping[str, Any], ...] = ()

    @property
    def is_empty(self) -> bool:
        return self == Checkpoint()

    @staticmethod
    def between(old: Catalog, new: Catalog) -> Checkpoint:
        """The checkpoint that turns one catalog into the other."""
        return Checkpoint(
            put_databases=_changed(old.databases, new.databases),
            drop_databases=_ids(old.databases) - _ids(new.databases),
            put_schemas=_changed(old.schemas, new.schemas),
            drop_schemas=_ids(old.schemas) - _ids(new.schemas),
            put_users=_changed(old.users, new.users),
            drop_users=_ids(old.users) - _ids(new.users),
            put_objects=_changed(old.objects(), new.objects()),
            drop_objects=frozenset(old.by_id) - frozenset(new.by_id),
            put_grants=tuple(sorted(new.grants - old.grants, key=_key)),
            drop_grants=_keys(old.grants) - _keys(new.grants),
            put_default_grants=tuple(sorted(new.default_grants - old.default_grants, key=_key)),
            drop_default_grants=_keys(old.default_grants) - _keys(new.default_grants),
            put_comments=tuple(sorted(new.comments - old.comments, key=_key)),
            drop_comments=_keys(old.comments) - _keys(new.comments),
        )

    def merge(self, later: Checkpoint) -> Checkpoint:
        """Both as one: what `later` says about the same thing wins."""
        if self.epoch is not None and later.epoch is not None and later.epoch < self.epoch:
            raise InvariantError(f"checkpoint of epoch {later.epoch} merged behind the one of epoch {self.epoch}")
        gone: frozenset[int] = later.drop_objects  # plain numbers: relations and jobs are objects too

        def kept_of(old: Mapping[K, T], new: Mapping[K, T]) -> dict[K, T]:
            return {**{key: value for key, value in old.items() if key not in gone}, **new}

        offsets = kept_of(self.source_offsets, {})
        for source, splits in later.source_offsets.items():
            offsets[source] = {**offsets.get(source, {}), **splits}
        return Checkpoint(
            epoch=later.epoch if later.epoch is not None else self.epoch,
            put_databases=_replaced(self.put_databases, later.put_databases, _id, later.drop_databases),
            drop_databases=self.drop_databases | later.drop_databases,
            put_schemas=_replaced(self.put_schemas, later.put_schemas, _id, later.drop_schemas),
            drop_schemas=self.drop_schemas | later.drop_schemas,
            put_users=_replaced(self.put_users, later.put_users, _id, later.drop_users),
            drop_users=self.drop_users | later.drop_users,
            put_objects=_replaced(self.put_objects, later.put_objects, _id, gone),
            drop_objects=self.drop_objects | later.drop_objects,
            put_grants=_replaced(self.put_grants, later.put_grants, _key, later.drop_grants),
            drop_grants=self.drop_grants | later.drop_grants,
            put_default_grants=_replaced(
                self.put_default_grants, later.put_default_grants, _key, later.drop_default_grants
            ),
            drop_default_grants=self.drop_default_grants | later.drop_default_grants,
            put_comments=_replaced(self.put_comments, later.put_comments, _key, later.drop_comments),
            drop_comments=self.drop_comments | later.drop_comments,
            add_segments=_replaced(
                [it for it in self.add_segments if it.relation not in gone],
                later.add_segments,
                lambda it: it.path,
                later.remove_segments,
            ),
            remove_segments=self.remove_segments | later.remove_segments,
            put_bases=_replaced(self.put_bases, later.put_bases, lambda it: it.relation, gone),
            put_pins=_replaced(
                [it for it in self.put_pins if it.holder not in later.drop_pins and (it.relation or 0) not in gone],
                later.put_pins,
                lambda it: (it.holder, it.relation),
            ),
            drop_pins=self.drop_pins | later.drop_pins,
            put_progress=kept_of(self.put_progress, later.put_progress),
            put_backfill=_replaced(
                [
                    it
                    for it in self.put_backfill
                    if it.job not in gone.union(later.drop_backfill) and it.relation not in gone
                ],
                later.put_backfill,
                lambda it: (it.job, it.relation, it.vnode),
            ),
            drop_backfill=self.drop_backfill | later.drop_backfill,
            source_offsets=offsets,
            row_counters=kept_of(self.row_counters, later.row_counters),
            settings={**self.settings, **later.settings},
            events=self.events + later.events,
            refresh_history=tuple(it for it in self.refresh_history if it["job_id"] not in gone)
            + later.refresh_history,
        )


def _id(item: Any) -> ObjectId:
    return ObjectId(item.id)


def _key(item: Grant | DefaultGrant | Comment) -> Any:
    return item.key


def _keys(items: Iterable[Grant | DefaultGrant | Comment]) -> frozenset[Any]:
    return frozenset(item.key for item in items)


def _ids(items: Iterable[Any]) -> frozenset[ObjectId]:
    return frozenset(_id(item) for item in items)


def _changed(old: tuple[T, ...], new: tuple[T, ...]) -> tuple[T, ...]:
    before = {_id(item): item for item in old}
    return tuple(item for item in new if before.get(_id(item)) != item)


def _replaced(
    old: Iterable[T], new: Iterable[T], key: Callable[[T], K], dropped: frozenset[Any] = frozenset()
) -> tuple[T, ...]:
    """`old` and then `new`, without the old ones that were dropped and keeping the last of each key."""
    last = {key(item): item for item in old if key(item) not in dropped}
    for item in new:
        last.pop(key(item), None)  # it moves to the end: the order of the parts is kept
        last[key(item)] = item
    return tuple(last.values())
