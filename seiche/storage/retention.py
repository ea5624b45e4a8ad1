"""What may be deleted, and when.

Three things keep a file: the metadata database registers it; Iceberg's current snapshot names it; or a reader
that started before it was unregistered is still running. Pins work one step earlier: they keep folds from
passing an epoch, and folded segments from being unregistered.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from seiche.model import Epoch, Pin, RelationId, Segment
from seiche.storage.base import IcebergBases
from seiche.storage.files import DataFolder, relation_folder, written_by_another_process
from seiche.storage.versions import Versions


class Pins:
    """The pins in force, by holder."""

    def __init__(self, pins: Iterable[Pin] = ()) -> None:
        self._lock = threading.Lock()
        self._pins: dict[tuple[str, RelationId | None], Pin] = {(pin.holder, pin.relation): pin for pin in pins}

    def put(self, pins: Iterable[Pin]) -> None:
        with self._lock:
            for pin in pins:
                self._pins[(pin.holder, pin.relation)] = pin

    def drop(self, holders: Iterable[str]) -> None:
        with self._lock:
            gone = set(holders)
            self._pins = {name: pin for name, pin in self._pins.items() if pin.holder not in gone}

    def oldest(self, relation: RelationId) -> Epoch | None:
        """The oldest epoch of a relation that somebody needs; None when nobody does."""
        with self._lock:
            epochs = [pin.epoch for pin in self._pins.values() if pin.relation in (None, relation)]
        return min(epochs, default=None)


class Trash:
    """Files that no new reader can find, deleted once the readers that might have found them are done."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._generation = 0
        self._readers: dict[int, int] = {}
        self._next_reader = 0
        self._waiting: list[tuple[int, str]] = []

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While this is open, no file that is registered now is deleted."""
        with self._lock:
            token = self._next_reader
            self._next_reader += 1
            self._readers[token] = self._generation
        try:
            yield
        finally:
            with self._lock:
                del self._readers[token]

    def add(self, paths: Iterable[str]) -> None:
        with self._lock:
            self._waiting.extend((self._generation, path) for path in paths)
            self._generation += 1

    def empty(self) -> int:
        """Deletes what no running reader can need; returns how many files went."""
        with self._lock:
            oldest = min(self._readers.values(), default=self._generation)
            ready = [path for generation, path in self._waiting if generation < oldest]
            self._waiting = [entry for entry in self._waiting if entry[0] >= oldest]
        for path in ready:
            self._folder.delete(path)
        return len(ready)

    def paths(self) -> list[str]:
        """The files that wait."""
        with self._lock:
            return [path for _, path in self._waiting]

    def __len__(self) -> int:
        with self._lock:
            return len(self._waiting)


def unneeded_segments(
    segments: Iterable[Segment], fold_epoch: Epoch, oldest_pin: Epoch | None, log_since: Epoch | None = None
) -> list[Segment]:
    """Segments that the base holds and whose changes nobody wants to replay: no pin, and no subscription to the changes
    after `log_since`."""
    limit = min(epoch for epoch in (fold_epoch, oldest_pin, log_since) if epoch is not None)
    return [segment for segment in segments if segment.epoch_hi <= limit]


def sweep_late(folder: DataFolder, versions: Versions, trash: Trash) -> list[str]:
    """Deletes what a process that is gone wrote after `sweep`; returns the paths.

    Executors outlive a killed driver by seconds. What they finish in that time carries the dead process's name, and
    such a file can only leave the registered ones, never join them: so this may run beside everything else but the
    rewriting of segments and bases.
    """
    known = set(trash.paths())
    heads = set()
    for relation in versions.relations():
        try:
            files = versions.committed(relation).base.files
            known.update(segment.path for segment in versions.segments(relation))
        except KeyError:  # dropped meanwhile: its whole folder goes
            continue
        known.update(file.path for file in files)
        heads.add(relation_folder(relation))
    orphans = [
        path
        for path in folder.walk()
        if path.partition("/")[0] in heads and written_by_another_process(path) and path not in known
    ]
    for path in orphans:
        folder.delete(path)
    return orphans


def sweep(folder: DataFolder, versions: Versions, bases: IcebergBases) -> list[str]:
    """Deletes every file that neither the metadata database nor Iceberg knows; returns their paths.

    Runs at start, before anything writes.
    """
    known: set[str] = set()
    relations = set(versions.relations())
    for relation in bases.relations() - relations:
        bases.drop(relation)
    for relation in relations:
        version = versions.at(relation, versions.committed_epoch)
        known.update(segment.path for segment in versions.segments(relation))
        known.update(file.path for file in version.base.files)
        known.update(bases.referenced(relation))
    orphans = [path for path in folder.walk() if _ours(path) and path not in known]
    for path in orphans:
        folder.delete(path)
    for name in folder.folders():
        if _ours(f"{name}/"):
            folder.remove_empty_folders(name)
    return orphans


def _ours(path: str) -> bool:
    """Whether a file lies where only Seiche writes: below r<number>/."""
    head, slash, _ = path.partition("/")
    return bool(slash) and head.startswith("r") and head[1:].isdigit()
