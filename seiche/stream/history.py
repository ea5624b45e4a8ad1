"""What was chosen for each part of a view in an epoch, as rw_catalog.rw_refresh_history tells it.

An entry is part of the checkpoint that makes the epoch durable: it is there if what it tells of is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow.compute as pc

from seiche.model import OP, Epoch, JobId, RelationId
from seiche.plan.choice import Choice, Counts
from seiche.plan.fragments import Fragment
from seiche.storage.changes import Changes
from seiche.stream.fragment import counts_failures
from seiche.stream.runtime import Runtime


class History:
    """The entries of one run of a view. `kind` tells a batch refresh from an epoch of the main graph."""

    def __init__(self, job: JobId, name: str, epoch: Epoch, kind: str = "epoch") -> None:
        self._head = {"job_id": job, "job_name": name, "epoch": epoch, "kind": kind}
        self._entries: list[Mapping[str, Any]] = []

    @property
    def entries(self) -> tuple[Mapping[str, Any], ...]:
        return tuple(self._entries)

    @property
    def notes(self) -> dict[str, float]:
        """How many parts each technique did, and what the estimates of them add up to, for metrics."""
        found: dict[str, float] = {}
        for each in self._entries:
            found[each["choice"]] = found.get(each["choice"], 0) + 1
            found["estimated_ms"] = found.get("estimated_ms", 0) + each["estimates_ms"].get(each["choice"], 0)
        return found

    def add(self, part: int, choice: Choice, counts: Counts, rows: int, seconds: float) -> None:
        """Part number `part` of the view took so long, and so many rows of it changed."""
        self._entries.append(
            {
                **self._head,
                "part": part,
                "choice": choice.technique.value,
                "reason": choice.reason,
                "changed_rows": counts.changes,
                "input_rows": counts.inputs,
                "stored_rows": counts.stored,
                "estimates_ms": {each.value: round(ms, 1) for each, ms in choice.estimates_ms.items()},
                "rows": rows,
                "took_ms": round(seconds * 1000, 1),
            }
        )


def counts_of(
    fragment: Fragment, runtime: Runtime, before: Epoch, after: Epoch, changes: Mapping[RelationId, Changes]
) -> Counts:
    """The numbers of rows that a step of the fragment has to do with. Looks at no file."""
    versions = runtime.versions
    held = {relation: versions.at(relation, after).rows_estimate for relation in fragment.inputs}
    stored = versions.at(fragment.relation, before).rows_estimate
    return Counts(
        changed={relation: each.rows for relation, each in changes.items()},
        held=held,
        stored=stored,
        left=sum(_left(each) for each in changes.values()),
        near=runtime.is_small(*changes.values()),
        few=sum(held.values()) + stored <= runtime.limits.inline_rows_max,
        fallible=counts_failures(fragment.plan),
    )


def _left(changes: Changes) -> int:
    """How many of the rows left. Where only their number is known, every other one did."""
    if changes.table is not None:
        return int(pc.sum(pc.less(changes.table[OP], 0)).as_py() or 0)
    return 0 if all(segment.fresh for segment in changes.segments) else changes.rows // 2
