"""The one transaction of an epoch: what jobs staged and what commands changed, committed together.

Satisfies `seiche.epoch.checkpoint.CheckpointStore` on top of the metadata database.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.store import MetadataStore
from seiche.epoch.barrier import Barrier
from seiche.errors import InvariantError
from seiche.model import Epoch, ObjectId, RelationId
from seiche.storage.files import DataFolder
from seiche.storage.retention import Trash
from seiche.storage.segments import SegmentWriter
from seiche.storage.versions import Versions
from seiche.stream.rowids import RowIds


class Checkpoints:
    def __init__(
        self,
        store: MetadataStore,
        versions: Versions,
        writer: SegmentWriter,
        folder: DataFolder,
        trash: Trash,
        row_ids: RowIds,
    ) -> None:
        self._store = store
        self._versions = versions
        self._writer = writer
        self._folder = folder
        self._trash = trash
        self._row_ids = row_ids
        self._reading = ExitStack()
        self._in_doubt: Epoch | None = None

    def begin(self, barrier: Barrier) -> None:
        """Files that this epoch's jobs may read stay until it ends."""
        self._reading.close()
        self._reading.enter_context(self._trash.reading())

    def commit(self, barrier: Barrier, parts: Sequence[object]) -> None:
        whole = Checkpoint()
        for part in parts:
            if not isinstance(part, Checkpoint):
                raise InvariantError(f"a checkpoint cannot hold {type(part).__name__}")
            whole = whole.merge(part)
        gone = {segment.path for segment in whole.add_segments} | whole.remove_segments
        staged = tuple(
            segment
            for segment in self._versions.staged()
            if segment.path not in gone and ObjectId(segment.relation) not in whole.drop_objects
        )
        whole = whole.merge(Checkpoint(epoch=barrier.epoch, add_segments=staged, row_counters=self._counters(whole)))
        self._in_doubt = barrier.epoch
        self._store.commit(whole)
        self._published(barrier.epoch)

    def discard(self) -> None:
        """Removes the files of an epoch that will not be. What cannot be removed now the next start sweeps."""
        self._in_doubt = None
        lost = self._versions.discard()
        self._reading.close()
        self._writer.remove(lost)

    def committed_epoch(self) -> Epoch:
        epoch = self._store.committed_epoch()
        if self._in_doubt is not None and epoch == self._in_doubt:
            self._published(epoch)
        return epoch

    def _published(self, epoch: Epoch) -> None:
        self._in_doubt = None
        self._versions.publish(epoch)
        self._row_ids.settled()
        self._reading.close()

    def _counters(self, whole: Checkpoint) -> dict[RelationId, int]:
        moved = self._row_ids.moved().items()
        return {relation: number for relation, number in moved if ObjectId(relation) not in whole.drop_objects}
