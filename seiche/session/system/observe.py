"""The facts that system views show, taken from a running database. What is costly is looked at when it is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Generic, TypeVar, overload
from uuid import NAMESPACE_URL, uuid5

from seiche.catalog.facts import BackfillFact, Facts, Variable
from seiche.catalog.objects import FOLLOWING_KINDS, ObjectStatus
from seiche.config import SYSTEM_PARAMETERS
from seiche.model import RelationId
from seiche.session.database import Database
from seiche.session.shown import shown_definition
from seiche.session.variables import VARIABLES, Variables
from seiche.storage.versions import RelationVersion

T = TypeVar("T")

_EVENTS_SHOWN = 1000
_REFRESHES_SHOWN = 10_000


def observe(database: Database, variables: Variables) -> Facts:
    """The database as it is now, with one session's variables."""
    return Facts(
        database.catalog.seen_from(variables.database),
        settings={each.name: str(getattr(database.config, each.name)) for each in SYSTEM_PARAMETERS},
        events=_Later(lambda: database.store.events(_EVENTS_SHOWN)),
        sizes=_Measured(database, _bytes),
        counts=_Measured(database, lambda version: version.rows_estimate),
        variables=tuple(
            Variable(each.name, variables.get(each.name), variables.default(each), each.meaning)
            for each in VARIABLES.values()
        ),
        sessions=tuple(session.fact() for session in database.sessions.values()),
        backfills=tuple(_backfills(database)),
        refreshes=tuple(each for each in database.refreshes.facts() if each.id in database.catalog.by_id),
        refresh_history=_Later(lambda: database.store.refresh_history(_REFRESHES_SHOWN)),
        committed_epoch=database.runtime.versions.committed_epoch,
        cores=database.runtime.cores,
        cluster_id=_cluster_id(database.config.metadata_address),
        shown=shown_definition,
    )


def _cluster_id(metadata: str) -> str:
    """The same for all processes over one metadata database; who may open it has no part in it."""
    return str(uuid5(NAMESPACE_URL, re.sub(r"//[^/@]*@", "//", metadata)))


def _bytes(version: RelationVersion) -> int:
    return sum(file.bytes for file in version.base.files) + sum(segment.bytes for segment in version.segments)


def _backfills(database: Database) -> Iterator[BackfillFact]:
    for item in database.catalog.objects(*FOLLOWING_KINDS):
        if item.status is ObjectStatus.CREATING:
            progress = database.jobs.progress(item.id) or "Stopped"
            running = database.jobs.get(item.id)
            known = (running.rate_limit, dict(running.inputs_read), running.kind.value) if running is not None else ()
            yield BackfillFact(item.id, item.definition, progress, item.created_ms, *known)


class _Measured(Mapping[int, int]):
    """A number of each stored relation."""

    def __init__(self, database: Database, measure: Callable[[RelationVersion], int]) -> None:
        self._versions = database.runtime.versions
        self._measure = measure

    def __getitem__(self, id: int) -> int:
        relation = RelationId(id)
        if relation not in self._versions:
            raise KeyError(id)
        return self._measure(self._versions.committed(relation))

    def __iter__(self) -> Iterator[int]:
        return iter(self._versions.relations())

    def __len__(self) -> int:
        return len(self._versions.relations())


class _Later(Sequence[T], Generic[T]):
    """A list that is read when it is first looked at."""

    def __init__(self, load: Callable[[], Sequence[T]]) -> None:
        self._load = load

    @cached_property
    def _items(self) -> Sequence[T]:
        return self._load()

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)
