"""Which inputs a backfill steps through, and how: decided from the plan alone.

A fragment is built in one stage. In a stage some inputs are driven, that is, read slice by slice; the others are looked
up whole at the pinned epoch. Of a join only the largest input is driven, of a union one in every branch. With all
driven inputs empty such a plan gives nothing (a total aggregate aside), so reading them one after the other, slice
after slice, gives every row once.

    APPEND     linear, and no driven input is mentioned twice: the rows of a slice are simply added
    MAINTAIN   the snapshot is taken for a table that grows by a slice, and the fragment is maintained as ever:
               partial results are merged with those of the slices before
    WHOLE      no rule for a growing input, or driven by a relation of the job itself: one step. Under a rate limit it
               waits until the rows of the inputs it reads would be permitted
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from seiche.errors import InvalidDefinition, InvalidParameter
from seiche.model import RelationId
from seiche.plan.algebra import Aggregate, Closing, Plan, Scan, Select, TemporalFilter, UnionAll, scans
from seiche.plan.fragments import Fragment


class Method(Enum):
    APPEND = "append"
    MAINTAIN = "maintain"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Stage:
    fragment: Fragment
    method: Method
    driven: tuple[RelationId, ...] = ()  # in the order in which they are read
    at_once: tuple[RelationId, ...] = ()  # the inputs of others that one step reads whole

    @property
    def read(self) -> tuple[RelationId, ...]:
        """The inputs whose rows count as progress."""
        return self.driven or self.at_once


def stages(
    fragments: Sequence[Fragment],
    rows: Callable[[RelationId], int],
    order: Sequence[tuple[RelationId, RelationId]] = (),
) -> tuple[Stage, ...]:
    """A stage for each fragment. `rows` estimates the size of an input, `order` has pairs of before and after."""
    own = {each.relation for each in fragments}
    return tuple(_stage(each, own, rows, order) for each in fragments)


def _stage(
    fragment: Fragment,
    own: set[RelationId],
    rows: Callable[[RelationId], int],
    order: Sequence[tuple[RelationId, RelationId]],
) -> Stage:
    source = fragment.plan.input if isinstance(fragment.plan, Aggregate) else fragment.plan
    driven = _driven(source, own, rows)
    if driven is None:
        return Stage(fragment, Method.WHOLE, at_once=tuple(sorted(fragment.inputs - own)))
    chosen = tuple(sorted_by(order, dict.fromkeys(driven)))
    mentioned = Counter(scan.relation for scan in scans(source))
    append = not isinstance(fragment.plan, Aggregate) and all(mentioned[each] == 1 for each in chosen)
    return Stage(fragment, Method.APPEND if append else Method.MAINTAIN, chosen)


def _driven(plan: Plan, own: set[RelationId], rows: Callable[[RelationId], int]) -> list[RelationId] | None:
    """The relations that drive a linear plan; None when it cannot be stepped through."""
    match plan:
        case Scan():
            return None if plan.relation in own else [plan.relation]
        case TemporalFilter() | Closing():
            return _driven(plan.input, own, rows)
        case UnionAll():
            branches = [_driven(child, own, rows) for child in plan.inputs]
            if any(branch is None for branch in branches):
                return None
            return [relation for branch in branches for relation in branch or ()]
        case Select():
            found = [each for each in (_driven(child, own, rows) for child in plan.inputs) if each is not None]
            if not found or not all(_linear(child) for child in plan.inputs):
                return None
            return max(found, key=lambda branch: sum(rows(relation) for relation in branch))
        case _:
            return None


def _linear(plan: Plan) -> bool:
    match plan:
        case Scan() | TemporalFilter():
            return True
        case Closing():
            return _linear(plan.input)
        case Select() | UnionAll():
            return all(_linear(child) for child in plan.inputs)
        case _:
            return False


def sorted_by(
    order: Sequence[tuple[RelationId, RelationId]],
    relations: Mapping[RelationId, None],
    name: Callable[[RelationId], str] = str,
) -> list[RelationId]:
    """The relations with every `before` ahead of its `after`, otherwise as they came. Raises on a cycle."""
    following: dict[RelationId, set[RelationId]] = {}
    for before, after in order:
        following.setdefault(before, set()).add(after)
    nodes = dict.fromkeys([*relations, *(each for pair in order for each in pair)])
    done: list[RelationId] = []
    waiting = Counter(after for afters in following.values() for after in afters)
    ready = [each for each in nodes if not waiting[each]]
    while ready:
        each = ready.pop(0)
        done.append(each)
        for after in sorted(following.get(each, ())):
            waiting[after] -= 1
            if not waiting[after]:
                ready.append(after)
    if len(done) != len(nodes):
        cycle = _cycle(order, nodes.keys() - done)
        raise InvalidDefinition(
            f"backfill_order has a cycle: {' -> '.join(map(name, cycle))}",
            detail="Backfill order strategy has a cycle.",
            hint="Remove one of the arrows.",
        )
    return [each for each in done if each in relations]


def _cycle(order: Sequence[tuple[RelationId, RelationId]], left: Iterable[RelationId]) -> list[RelationId]:
    """One of the cycles among relations each of which comes after another one of them."""
    among = set(left)
    before = {after: first for first, after in order if first in among and after in among}
    path = [min(among)]
    while before[path[-1]] not in path:
        path.append(before[path[-1]])
    found = path[path.index(before[path[-1]]) :]
    return [*reversed(found), found[-1]]


def read_order(text: str) -> list[tuple[str, str]]:
    """The pairs of names that `backfill_order` holds: `FIXED(t1 -> t2, t2 -> t3)`; AUTO and NONE hold none."""
    word = text.strip()
    if word.lower() in ("auto", "none", "default"):
        return []
    if not (word.lower().startswith("fixed(") and word.endswith(")")):
        raise InvalidParameter(f'backfill_order "{text}" is not known', hint="Write FIXED(t1 -> t2), AUTO or NONE.")
    pairs = []
    for part in filter(None, _split(word[6:-1], ",")):
        names = _split(part, "->")
        if len(names) != 2 or not all(names):
            raise InvalidParameter(
                f"backfill_order has {part} where a pair of names should be", hint="Write each pair as before -> after."
            )
        pairs.append((names[0], names[1]))
    return pairs


def _split(text: str, separator: str) -> list[str]:
    """The parts between separators that are not inside of quotes: as many quotes are behind these as close again."""
    return [each.strip() for each in re.split(separator + r'(?=(?:[^"]*"[^"]*")*[^"]*$)', text)]
