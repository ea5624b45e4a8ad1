"""Recursion: the step is evaluated over the rows of the round before, until a round brings none.

    rows     = base
    round 1  = step(base)       less the rows that are there, with UNION
    round 2  = step(round 1)    …

Rounds stay with the executors: each is computed once, by one job, and kept there until the answer has been read. Rows
of a query without any join are found by Spark's optimizer already, and such a round needs no job. Nobody can tell
whether a recursion ends, so it is ended after so many rounds or rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import count

from pyspark.sql import DataFrame

from seiche.errors import RecursionLimit
from seiche.model import Epoch, RelationId
from seiche.plan.algebra import Plan, Recursion
from seiche.plan.fragments import Fragment, cut
from seiche.query import Scope, is_local, local_rows, open_scope
from seiche.stream.runtime import EpochReads

Build = Callable[[Fragment, EpochReads], DataFrame]

KEPT_APART = 8  # rounds that are looked at one by one; more are put together, since Spark plans every one of them


class _Inside(EpochReads):
    """Relations as a recursion sees them: stored ones, the rows of the round before, and parts of its base or step."""

    def __init__(self, around: EpochReads, scope: Scope, parts: dict[RelationId, str]) -> None:
        super().__init__(around.runtime, scope, around.before, around.after, {})
        self._around = around
        self._parts = parts

    def rows(self, fragments: Sequence[Fragment], build: Build) -> DataFrame:
        """The rows of the last fragment."""
        for each in fragments[:-1]:
            self._parts[each.relation] = self.scope.view(build(each, self))
        return build(fragments[-1], self)

    def exact(self, relation: RelationId, epoch: Epoch) -> str:
        return self._parts[relation] if relation in self._parts else self._around.exact(relation, epoch)

    def now_ms(self, epoch: Epoch) -> int:
        return self._around.now_ms(epoch)

    def watermark(self, relation: RelationId, epoch: Epoch) -> int | None:
        return self._around.watermark(relation, epoch)


class _Found:
    """The rows of all rounds so far, as few frames on the executors."""

    def __init__(self, scope: Scope, parallel: int) -> None:
        self._scope = scope
        self._parallel = parallel
        self._frames: list[DataFrame] = []
        self.rows = 0

    def add(self, frame: DataFrame) -> tuple[DataFrame, int]:
        """The frame computed, and how many rows it has."""
        kept, rows = _computed(frame, self._scope)
        if rows or not self._frames:
            self._frames.append(kept)
            self.rows += rows
        if len(self._frames) > KEPT_APART:
            self._frames = [_computed(self.all().coalesce(self._parallel), self._scope)[0]]
        return kept, rows

    def all(self) -> DataFrame:
        return reduce(DataFrame.unionAll, self._frames)


def evaluate(plan: Recursion, reads: EpochReads, build: Build) -> DataFrame:
    """All rows at `reads.after`; `build` evaluates a part of the base or the step. Raises RecursionLimit."""
    runtime, limits = reads.runtime, reads.runtime.limits
    own_ids = map(RelationId, count(plan.rounds * 1000, -1)).__next__
    base, step = (cut(part, own_ids(), own_ids) for part in (plan.base, plan.step))
    found = _Found(reads.scope, runtime.cores)
    first = _shown(plan, plan.base, _Inside(reads, reads.scope, {}).rows(base, build))
    newest, fresh = found.add(first.distinct() if plan.distinct else first)
    rounds = 0
    while fresh:
        rounds += 1
        _refuse_endless("rounds", rounds, limits.recursion_rounds_max)
        _refuse_endless("rows", found.rows, limits.recursion_rows_max)
        reads.scope.stop_if_told()
        with open_scope(runtime.spark) as scope:
            before = scope.view(_small(newest, fresh, reads))
            made = _shown(plan, plan.step, _Inside(reads, scope, {plan.rounds: before}).rows(step, build))
            if plan.distinct:
                made = _not_in(plan, made, _small(found.all(), found.rows, reads), scope)
            newest, fresh = found.add(made)
    return found.all()


def _shown(plan: Recursion, part: Plan, rows: DataFrame) -> DataFrame:
    """The columns of the node, filled by those of its base or its step in their order."""
    names = [field.name for field in part.fields if not field.hidden]
    return rows.selectExpr(
        *(
            f"cast(`{name}` as {field.type.spark}) AS `{field.name}`"
            for name, field in zip(names, plan.columns, strict=True)
        )
    )


def _not_in(plan: Recursion, made: DataFrame, known: DataFrame, scope: Scope) -> DataFrame:
    """Each row once, without those that are known."""
    same = " AND ".join(f"n.`{field.name}` <=> k.`{field.name}`" for field in plan.columns)
    names = ", ".join(f"`{field.name}`" for field in plan.columns)
    new = f"SELECT DISTINCT {names} FROM {scope.view(made)}"
    return scope.sql(f"SELECT {names} FROM ({new}) n LEFT ANTI JOIN {scope.view(known)} k ON {same}")


def _small(frame: DataFrame, rows: int, reads: EpochReads) -> DataFrame:
    """The frame, with the advice to bring few rows to what they join with: Spark does not know that they are few."""
    return frame.hint("broadcast") if rows <= reads.runtime.limits.inline_rows_max else frame


def _computed(frame: DataFrame, scope: Scope) -> tuple[DataFrame, int]:
    """The frame with its rows on the executors until the scope ends, and their number."""
    if is_local(frame):
        known = local_rows(frame)
        return known, known.count()
    kept = frame.localCheckpoint(eager=False)
    rows = kept._jdf.queryExecution().analyzed().rdd()
    scope.release_at_end(rows)
    return kept, int(rows.count())  # the job that computes them


def _refuse_endless(what: str, reached: int, limit: int) -> None:
    if reached > limit:
        raise RecursionLimit(
            f"recursive query has not ended after {limit:,} {what}",
            detail="It is taken for endless: with UNION ALL a circle in the data is followed for ever.",
            hint="Write UNION, which leaves out rows that were there before, or count the rounds in a column and "
            f"limit that in WHERE; or ALTER SYSTEM SET recursion_{what}_max.",
        )


__all__ = ["evaluate"]
