"""Committing a step of an independent graph when the answer of the metadata database may get lost.

The main graph's epochs are settled by the coordinator. A graph of its own has its progress instead: stored with the
rows it stands for, it tells whether the transaction took place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from seiche.catalog.checkpoint import Checkpoint
from seiche.catalog.store import MetadataStore
from seiche.errors import CommitOutcomeUnknown, MetadataUnavailable
from seiche.model import JobId

log = logging.getLogger(__name__)

LOOK_AGAIN_SECONDS = 1.0


def commit_step(
    store: MetadataStore,
    checkpoint: Checkpoint,
    job: JobId,
    state: Mapping[str, Any],
    wait: Callable[[float], bool],
) -> None:
    """Commits a checkpoint that puts `state` as the job's progress; it differs from what was stored before.

    Returns when it is durable, and raises MetadataUnavailable when it is known not to be. `wait` passes some time and
    tells whether to give up; then the outcome stays unknown, which CommitOutcomeUnknown says.
    """
    try:
        store.commit(checkpoint)
        return
    except CommitOutcomeUnknown as doubt:
        log.warning("the outcome of a step of job %d is unknown: %s", job, doubt.message)
        while True:
            try:
                stored = store.load().progress.get(job)
                break
            except MetadataUnavailable as error:
                log.warning("the metadata database does not answer: %s", error.message)
                if wait(LOOK_AGAIN_SECONDS):
                    raise doubt from error
        if stored != state:
            raise MetadataUnavailable("a step could not be made durable", hint="It is tried again.") from doubt
