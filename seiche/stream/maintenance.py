"""Housekeeping beside the stream: small segments are joined, grown logs are folded, old files are deleted.

One thread looks at the relations that changed since it last looked. Everything it does is a transaction of its
own on the metadata database; readers and running epochs keep the files they started with until they are done.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.store import MetadataStore
from seiche.clock import Clock
from seiche.errors import SeicheError
from seiche.model import EPOCH_SHIFT, Epoch, RelationId, Segment
from seiche.sql.failures import translate_spark_error
from seiche.storage.base import IcebergBases
from seiche.storage.files import DataFolder, relation_folder
from seiche.storage.fold import FoldPolicy, fold
from seiche.storage.retention import Pins, Trash, sweep_late, unneeded_segments
from seiche.stream.runtime import Runtime

log = logging.getLogger(__name__)

# Segments up to this size are joined on the driver.
SMALL_SEGMENT_BYTES = 4 * 1024 * 1024

# When to look for files that executors of a process killed before this one's start finished after it. Minutes are
# enough on any cluster; the last look is for whatever is slower.
LATE_SWEEPS_MS = (5_000, 60_000, 600_000)

# How often to look for changes that subscriptions no longer retain, while nothing else calls for a look.
RELEASE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class MaintenancePolicy:
    fold: FoldPolicy
    segments_max: int  # small segments of one relation before they are joined
    retention_ms: int  # how far back a relation stays readable


class Maintenance:
    def __init__(
        self,
        runtime: Runtime,
        store: MetadataStore,
        bases: IcebergBases,
        folder: DataFolder,
        pins: Pins,
        trash: Trash,
        clock: Clock,
        policy: MaintenancePolicy,
    ) -> None:
        self.policy = policy
        self._runtime = runtime
        self._store = store
        self._bases = bases
        self._folder = folder
        self._pins = pins
        self._trash = trash
        self._clock = clock
        self._wake = threading.Condition()
        self._changed: set[RelationId] = set()
        self._asked: list[tuple[RelationId, Future[bool]]] = []  # folds that somebody waits for
        self._dropped: list[RelationId] = []
        self._emptying: list[RelationId] = []
        self._rewriting = threading.Lock()  # folds and joins of segments, one at a time
        self._late_sweeps = [clock.now_ms() + after for after in LATE_SWEEPS_MS]
        self._stopping = False
        self._idle = True
        self._retaining: set[RelationId] = set()  # relations whose folded segments are kept for a subscription
        self.log_since: Callable[[RelationId], Epoch | None] = lambda _: None  # what subscriptions retain, as of now
        self.folds = 0
        self.last_error: SeicheError | None = None
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with self._wake:
            self._stopping = True
            self._wake.notify_all()
        self._thread.join()
        for _, folding in self._asked:
            folding.cancel()
        self._delete()

    def note(self, relations: Iterable[RelationId]) -> None:
        """These relations changed."""
        with self._wake:
            self._changed.update(relations)
            self._wake.notify_all()

    def forget(self, relations: Iterable[RelationId]) -> None:
        """These relations are gone for every new reader; their folders go when the old ones are done."""
        with self._wake:
            self._dropped.extend(relations)
            self._wake.notify_all()

    def settle(self) -> None:
        """Waits until there is nothing left to do. For tests and for tools."""
        with self._wake:
            self._wake.wait_for(lambda: self._idle and not self._has_work)

    def fold_now(self, relation: RelationId) -> bool:
        """Folds a relation whether or not it pays; whether there was anything to fold."""
        with self._rewriting:
            return self._fold(relation)

    def fold_soon(self, relation: RelationId) -> Future[bool]:
        """As `fold_now`, on the thread of this housekeeping. Whoever cancels the future has it left out, or goes on
        without it."""
        folding: Future[bool] = Future()
        with self._wake:
            self._asked.append((relation, folding))
            self._wake.notify_all()
        return folding

    @property
    def _has_work(self) -> bool:
        return bool(self._changed or self._dropped or self._asked)

    def sweep_late(self) -> int:
        """Deletes files of killed processes that came after the sweep at start; how many there were."""
        with self._rewriting:
            late = sweep_late(self._folder, self._runtime.versions, self._trash)
        if late:
            log.info("swept %d files that executors of a killed process wrote after this one's start", len(late))
        return len(late)

    # ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._runtime.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "maintenance")
        while True:
            with self._wake:
                self._idle = not self._has_work
                self._wake.notify_all()
                self._wake.wait_for(lambda: self._has_work or self._stopping, timeout=self._seconds_to_next())
                if self._stopping:
                    return
                self._idle = False
                changed, self._changed = self._changed, set()
                dropped, self._dropped = self._dropped, []
                asked, self._asked = self._asked, []
            for relation, folding in asked:
                self._fold_for(relation, folding)
            try:
                for relation in dropped:
                    self._drop(relation)
                for relation in changed:
                    if relation in self._runtime.versions:
                        self._tend(relation)
                for relation in self._retaining - changed:
                    if relation in self._runtime.versions:
                        self._tend(relation)
                    else:
                        self._retaining.discard(relation)
                if self._late_sweeps and self._clock.now_ms() >= self._late_sweeps[0]:
                    self._late_sweeps.pop(0)
                    self.sweep_late()
                self._delete()
                self.last_error = None
            except Exception as error:  # noqa: BLE001  the edge of this thread: the stream goes on without housekeeping
                cause = error if isinstance(error, SeicheError) else translate_spark_error(error)
                if self.last_error is None or self.last_error.message != cause.message:
                    log.warning("housekeeping failed and is tried again after the next change: %s", cause)
                self.last_error = cause

    def _fold_for(self, relation: RelationId, folding: Future[bool]) -> None:
        """Folds for somebody who waits for it, and is told what fails."""
        if not folding.set_running_or_notify_cancel():
            return
        try:
            folding.set_result(relation in self._runtime.versions and self.fold_now(relation))
        except Exception as error:  # noqa: BLE001  the edge of this thread
            if relation not in self._runtime.versions:  # dropped meanwhile
                folding.set_result(False)
            else:
                folding.set_exception(error if isinstance(error, SeicheError) else translate_spark_error(error))

    def _seconds_to_next(self) -> float | None:
        """How long to wait for a change before looking after trash or late files."""
        if len(self._trash):
            return 1.0
        waits = [RELEASE_SECONDS] if self._retaining else []
        if self._late_sweeps:
            waits.append(max(self._late_sweeps[0] - self._clock.now_ms(), 0) / 1000)
        return min(waits, default=None)

    def _tend(self, relation: RelationId) -> None:
        try:
            with self._rewriting:
                if self.policy.fold.wants(self._runtime.versions.committed(relation)):
                    self._fold(relation)
                self._release(relation)
                self._join_small(relation)
        except KeyError:
            if relation in self._runtime.versions:
                raise
            self._drop(relation)  # it was dropped meanwhile: what was just written for it goes too

    def _fold(self, relation: RelationId) -> bool:
        versions = self._runtime.versions
        epoch = self._fold_limit(relation)
        version = versions.at(relation, epoch) if epoch >= versions.committed(relation).base.fold_epoch else None
        if version is None or version.log_rows == 0:
            return False
        with self._trash.reading():
            base = fold(version, self._runtime.reader, self._folder, self._bases)
        if relation not in versions:  # dropped meanwhile
            self._drop(relation)
            return False
        gone = self._unneeded(relation, base.fold_epoch)
        kept = {file.path for file in base.files}
        old_files = [file.path for file in version.base.files if file.path not in kept]
        self._store.commit(Checkpoint(put_bases=(base,), remove_segments=frozenset(each.path for each in gone)))
        versions.set_base(base)
        versions.forget_segments(each.path for each in gone)
        self._throw_away(relation, gone, [*old_files, *self._bases.stale_metadata(relation)])
        self.folds += 1
        return True

    def _unneeded(self, relation: RelationId, fold_epoch: Epoch) -> list[Segment]:
        segments = self._runtime.versions.segments(relation)
        return unneeded_segments(segments, fold_epoch, self._pins.oldest(relation), self.log_since(relation))

    def _release(self, relation: RelationId) -> None:
        """Lets go of folded segments whose changes nobody retains any longer."""
        versions = self._runtime.versions
        folded = versions.committed(relation).base.fold_epoch
        gone = self._unneeded(relation, folded)
        if gone:
            self._store.commit(Checkpoint(remove_segments=frozenset(each.path for each in gone)))
            versions.forget_segments(each.path for each in gone)
            self._throw_away(relation, gone)
        if any(each.epoch_hi <= folded for each in versions.segments(relation)):
            self._retaining.add(relation)
        else:
            self._retaining.discard(relation)

    def _fold_limit(self, relation: RelationId) -> Epoch:
        """The newest epoch that a base may stand for: nobody may need the relation at an older one."""
        limit = self._runtime.versions.committed_epoch
        frontier = self._runtime.versions.frontier(relation)
        if frontier is not None:
            limit = min(limit, frontier)
        oldest = self._pins.oldest(relation)
        if oldest is not None:
            limit = min(limit, oldest)
        if self.policy.retention_ms:
            limit = min(limit, Epoch((self._clock.now_ms() - self.policy.retention_ms) << EPOCH_SHIFT))
        return limit

    def _join_small(self, relation: RelationId) -> None:
        versions = self._runtime.versions
        schema = versions.schema(relation)
        folded = versions.committed(relation).base.fold_epoch
        # Segments that are kept for their changes alone stay apart from those that every reader lays over the base.
        for fresh, retained in itertools.product((False, True), repeat=2):
            small = [
                each
                for each in versions.segments(relation)
                if each.fresh is fresh
                and (each.epoch_hi <= folded) is retained
                and not each.bare
                and each.bytes <= SMALL_SEGMENT_BYTES
                and each.rows <= self._runtime.limits.inline_rows_max
            ]
            if len(small) <= self.policy.segments_max:
                continue
            chosen = _newest(small, self._runtime.limits.inline_rows_max)
            if len(chosen) < 2:
                continue
            whole = self._runtime.writer.join(schema, chosen)
            if relation not in versions:
                self._folder.delete(whole.path)
                return
            self._store.commit(
                Checkpoint(add_segments=(whole,), remove_segments=frozenset(each.path for each in chosen))
            )
            versions.replace_segments(chosen, whole)
            self._throw_away(relation, chosen)

    def _throw_away(self, relation: RelationId, segments: list[Segment], files: Sequence[str] = ()) -> None:
        """Deletes files once nobody reads them, but for those that a fold has taken over."""
        for each in segments:
            self._runtime.writer.forget(each)
        kept = self._runtime.versions.registered(relation)
        self._trash.add(path for path in (*(each.path for each in segments), *files) if path not in kept)

    def _drop(self, relation: RelationId) -> None:
        self._bases.drop(relation)
        self._trash.add(self._folder.walk(relation_folder(relation)))
        self._emptying.append(relation)

    def _delete(self) -> None:
        self._trash.empty()
        if self._emptying and not len(self._trash):
            for relation in self._emptying:
                self._folder.remove_empty_folders(relation_folder(relation))
            self._emptying = []


def _newest(segments: list[Segment], rows_max: int) -> list[Segment]:
    """Segments to join: the newer half, and older ones as long as they are not much larger than what is chosen.

    Like the levels of a merge tree this rewrites a row few times, and the number of segments stays bounded.
    """
    chosen: list[Segment] = []
    rows = 0
    for segment in reversed(segments):
        if rows + segment.rows > rows_max:
            break
        if len(chosen) >= len(segments) // 2 and segment.rows > rows:
            break
        chosen.append(segment)
        rows += segment.rows
    return chosen[::-1]
