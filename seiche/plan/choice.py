"""Which technique brings a part of a view up to date in an epoch: the one that has the least to do.

    change rule     maps, joins and sums what changed, and adds it to what is stored
    affected keys   evaluates anew the groups, partitions or partners that a change mentions
    full            evaluates all of it anew, and writes the difference from what is stored

Each is right in every epoch, so the choice is about time alone. It is made anew for each part and epoch from numbers of
rows: those that changed, those that the inputs hold, those that are stored. Files and their sizes say little: a row in
memory has none, and a folded one shares its file with a million others.

The estimates are milliseconds on one small machine. Only their ratios matter, and those are coarse: a part leaves its
own technique only for one that promises to be clearly faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from seiche.model import RelationId
from seiche.plan import first_rows
from seiche.plan.algebra import (
    Aggregate,
    ChangeLog,
    Closing,
    Keyed,
    Plan,
    Recompute,
    Recursion,
    Scan,
    Select,
    TemporalFilter,
    TopN,
    UnionAll,
    closes,
    follows_clock,
    scans,
)
from seiche.plan.state import group_state


class Technique(Enum):
    CHANGE_RULE = "change rule"
    AFFECTED_KEYS = "affected keys"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Costs:
    """What the work on rows takes; docs/decisions/0016-choice.md tells how it was measured."""

    near_ms: float = 40.0  # a step whose changes are on the driver, whatever they are
    action_ms: float = 120.0  # one that reads stored rows by Spark, and gets few
    far_ms: float = 350.0  # one that executors write
    scan_us: float = 0.1  # reading a stored row that turns out not to be wanted
    work_us: float = 0.5  # joining or grouping a row
    write_us: float = 1.5  # a row that is compared with others by all its columns, and written where it differs
    rows_per_key: int = 10  # a guess, where nothing tells how many rows share a key
    margin: float = 0.8  # another technique has to promise this share of the usual one's time


MEASURED = Costs()


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of rows. `changed` has those inputs that did, `held` has all of them, `stored` is the part itself.

    `left` of the changed rows left, as far as that is known. `near` tells that the changes are on the driver, `few`
    that all rows there are could be, `fallible` that rows on which an expression fails are counted among the changes,
    whatever else is done.
    """

    changed: Mapping[RelationId, int]
    held: Mapping[RelationId, int]
    stored: int
    left: int
    near: bool
    few: bool = False
    fallible: bool = False

    @property
    def changes(self) -> int:
        return sum(self.changed.values())

    @property
    def inputs(self) -> int:
        return sum(self.held.values())


@dataclass(frozen=True, slots=True)
class Choice:
    technique: Technique
    reason: str
    estimates_ms: Mapping[Technique, float]


def techniques(plan: Plan) -> tuple[Technique, ...]:
    """Those that the root of a fragment has, its usual one first.

    A part that follows the clock or a watermark moves few rows at a time, by a rule that knows which. One that looked
    something up as rows came is a history: evaluating it anew would give another one.
    """
    match plan:
        case Recompute() | Recursion():
            return (Technique.FULL,)
        case ChangeLog():
            return (Technique.CHANGE_RULE,)
        case Keyed(looked_up=looked_up) if looked_up is not None:
            return (Technique.CHANGE_RULE,)
        case Keyed(partition=()):
            return (Technique.FULL,)
        case Keyed():
            found: tuple[Technique, ...] = (Technique.AFFECTED_KEYS, Technique.FULL)
        case Aggregate(total=False):
            found = (Technique.CHANGE_RULE, Technique.AFFECTED_KEYS, Technique.FULL)
        case Aggregate() | TopN() | Scan() | Select() | UnionAll() | TemporalFilter() | Closing():
            found = (Technique.CHANGE_RULE, Technique.FULL)
    return found[:1] if follows_clock(plan) or closes(plan) else found


def choose(plan: Plan, counts: Counts, costs: Costs) -> Choice:
    """The cheapest of the plan's techniques for an epoch with these numbers of rows."""
    usual, *others = techniques(plan)
    if not others:
        return Choice(usual, _only(plan), {})
    estimates = {each: _estimate(plan, each, counts, costs) for each in (usual, *others)}
    best = min(others, key=lambda each: estimates[each])
    chosen = best if estimates[best] < costs.margin * estimates[usual] else usual
    return Choice(chosen, _told(counts, chosen, estimates), estimates)


def _only(plan: Plan) -> str:
    if isinstance(plan, (Recompute, Recursion, Keyed)) and plan.reason is not None:
        return f"The only technique ({plan.reason.code}): {plan.reason.sentence}"
    if isinstance(plan, Keyed) and not plan.partition:
        return "The only technique: the first rows, which are few."
    return "The only technique: it moves as rows come, or as time passes."


def _told(counts: Counts, chosen: Technique, estimates: Mapping[Technique, float]) -> str:
    others = ", ".join(f"{ms:.0f} ms by {each.value}" for each, ms in estimates.items() if each is not chosen)
    changed = f"{counts.changes:,} changed row{'' if counts.changes == 1 else 's'}"
    return f"{changed} against {counts.inputs:,} of the inputs: about {estimates[chosen]:.0f} ms, and {others}."


# --- estimates ----------------------------------------------------------------------------------------


def _estimate(plan: Plan, technique: Technique, counts: Counts, costs: Costs) -> float:
    """Milliseconds that the technique takes."""
    rows, work = _changes(plan, counts, costs)
    counted = costs.action_ms + _us(work) if counts.fallible and technique is not Technique.CHANGE_RULE else 0.0
    if technique is Technique.FULL:
        grown = rows * (1 - 2 * counts.left / max(counts.changes, 1))
        compared = counts.stored + max(counts.stored + grown, 0)
        whole = _us(counts.inputs * costs.work_us + compared * costs.write_us)
        return counted + whole + (costs.action_ms if counts.few else costs.far_ms)
    asks = isinstance(plan, Keyed) or technique is Technique.AFFECTED_KEYS
    fixed = counted + (costs.far_ms if not counts.near else costs.action_ms if asks else costs.near_ms)
    if isinstance(plan, Aggregate):
        return fixed + _us(work) + _groups(plan, technique, rows, counts, costs)
    if isinstance(plan, Keyed):
        grows = first_rows.stored_columns(plan) is not None  # then the history of a partition is not read
        wanted = min(counts.stored + rows if grows else counts.inputs, rows * costs.rows_per_key)
        read = (counts.stored + (rows if grows else counts.inputs)) * costs.scan_us
        return fixed + _us(work + read + wanted * (costs.work_us + 2 * costs.write_us))
    return fixed + _us(work + rows * costs.write_us)


def _groups(plan: Aggregate, technique: Technique, rows: float, counts: Counts, costs: Costs) -> float:
    """What comes after the changes of an Aggregate's input: finding, merging and redoing groups."""
    held = max(counts.inputs, 1)
    size = held / max(counts.stored, 1)
    ways = max(counts.left, counts.changes - counts.left) / max(counts.changes, 1)
    touched = min(rows * ways, counts.stored) or rows  # both images of a row are mostly of one group
    each_read = costs.scan_us if counts.near else costs.work_us
    merged = _us(rows * costs.work_us + counts.stored * each_read + 2 * touched * costs.write_us)

    read = _us(counts.inputs * each_read)
    if technique is Technique.AFFECTED_KEYS:
        return merged + read + _us(touched * size * costs.work_us)
    # An extreme value leaves as likely as any other row does; its group is merged first, and then once more.
    extremes = len(group_state(plan).extremes)
    doubtful = min(touched, extremes * counts.left / size)
    again = doubtful * (size * costs.work_us + 2 * costs.write_us)
    return merged + min(doubtful, 1.0) * (costs.action_ms + read) + _us(again)


def _changes(plan: Plan, counts: Counts, costs: Costs) -> tuple[float, float]:
    """How many changes a node has, and the microseconds of work that finding them is."""
    match plan:
        case Scan():
            changed = counts.changed.get(plan.relation, 0)
            return changed, changed * costs.work_us
        case Aggregate() | TopN() | TemporalFilter() | Closing() | ChangeLog():
            return _changes(plan.input, counts, costs)
        case UnionAll() | Keyed():
            parts = [_changes(child, counts, costs) for child in plan.inputs]
            return sum(rows for rows, _ in parts), sum(work for _, work in parts)
        case Select():
            return _joined(plan, counts, costs)
        case Recompute() | Recursion():
            return counts.changes, 0.0


def _joined(plan: Select, counts: Counts, costs: Costs) -> tuple[float, float]:
    """One term for each changed input. A join has about as many rows as its largest input."""
    held = [max(sum(counts.held.get(scan.relation, 0) for scan in scans(child)), 1) for child in plan.inputs]
    each_read = costs.scan_us if counts.near else costs.work_us  # many changes cannot be broadcast
    found, work = 0.0, 0.0
    for index, child in enumerate(plan.inputs):
        rows, below = _changes(child, counts, costs)
        if rows:
            partners = rows * max(held) / held[index]
            others = sum(held) - held[index]
            found += partners
            work += below + others * each_read + (partners * costs.work_us if len(held) > 1 else 0.0)
    return found, work


def _us(microseconds: float) -> float:
    return microseconds / 1000


__all__ = ["MEASURED", "Choice", "Costs", "Counts", "Technique", "choose", "techniques"]
