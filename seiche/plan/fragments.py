"""Cutting a plan into fragments: each maintains one relation by one rule.

    linear      a Select or UnionAll over stored relations, or over those filtered by the clock or by a watermark:
                changes are mapped and joined
    aggregate   an Aggregate over a linear plan: changes of groups, merged with the groups' stored state
    keyed       a Keyed over linear plans: evaluated anew for the keys that the changes mention
    top         a TopN over a linear plan
    log         a ChangeLog: every change of its input is added
    recursion   evaluated anew, round by round, over stored relations, and the difference merged
    recompute   a query is evaluated anew and the difference merged

Whatever is not linear and stands below another operator becomes a fragment of its own with an internal relation, so
that what reads it finds both its changes and its rows in storage. Parts that are equal, like a WITH query that is read
twice, share one. The order of fragments is the order in which they run, and it is the same whenever the same plan is
cut: ids of internal relations can be handed in again at recovery.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from seiche.model import RelationId, RelationSchema
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
    is_append_only,
    is_constant,
    relations_read,
    stored_schema,
)
from seiche.plan.state import aggregate_schema


@dataclass(frozen=True, slots=True)
class Fragment:
    relation: RelationId
    schema: RelationSchema
    plan: Plan

    @property
    def inputs(self) -> frozenset[RelationId]:
        return relations_read(self.plan)


def cut(
    plan: Plan,
    target: RelationId,
    new_internal: Callable[[], RelationId],
    existing: Mapping[RelationId, RelationSchema] = MappingProxyType({}),
) -> tuple[Fragment, ...]:
    """The fragments of a view stored as `target`, inputs before what reads them.

    Relations that exist already keep how their keys are spread, and what was not known of them when they were created:
    that their rows never leave.
    """
    fragments: list[Fragment] = []

    def stored(node: Plan) -> Scan:
        """The node in an internal relation, the same one for equal nodes."""
        for each in fragments:
            if each.plan == node:
                return Scan(each.relation, each.schema)
        return store(node, new_internal())

    def store(node: Plan, relation: RelationId) -> Scan:
        shape = fragment_schema(node)
        if (old := existing.get(relation)) is not None:
            shape = replace(shape, spread=old.spread, append_only=shape.append_only and old.append_only)
        fragments.append(Fragment(relation, shape, node))
        return Scan(relation, shape)

    def over_stored(node: Plan) -> Plan:
        """The node with everything under it linear over stored relations."""
        match node:
            case Scan() | ChangeLog() | Recompute():
                return node
            case Select() | UnionAll() | Keyed():
                return replace(node, inputs=tuple(below(child) for child in node.inputs))
            case Aggregate() | TopN() | Closing():
                return replace(node, input=below(node.input))
            case TemporalFilter():
                source = over_stored(node.input)
                return replace(node, input=source if isinstance(source, Scan) else stored(source))
            case Recursion() if is_constant(node):
                return node
            case Recursion():
                return replace(node, base=below(node.base), step=in_rounds(node.step, node.rounds))

    def below(node: Plan) -> Plan:
        """The node as an input: linear ones stay, any other is stored."""
        lowered = over_stored(node)
        return lowered if isinstance(lowered, (Scan, Select, UnionAll, TemporalFilter, Closing)) else stored(lowered)

    def in_rounds(node: Plan, rounds: RelationId) -> Plan:
        """The step of a recursion: what reads the rows of a round stays as it is, the rest is an input like any."""
        if rounds not in relations_read(node):
            return below(node)
        match node:
            case Scan() | ChangeLog() | Recompute():
                return node
            case Select() | UnionAll() | Keyed():
                return replace(node, inputs=tuple(in_rounds(child, rounds) for child in node.inputs))
            case Aggregate() | TopN() | Closing() | TemporalFilter():
                return replace(node, input=in_rounds(node.input, rounds))
            case Recursion():
                return replace(node, base=in_rounds(node.base, rounds), step=in_rounds(node.step, rounds))

    store(over_stored(plan), target)
    return tuple(fragments)


def fragment_schema(plan: Plan) -> RelationSchema:
    if isinstance(plan, Aggregate):
        return aggregate_schema(plan)
    return stored_schema(plan, append_only=is_append_only(plan))


def count_internal(plan: Plan) -> int:
    """How many internal relations `cut` will ask for."""
    asked = 0

    def ask() -> RelationId:
        nonlocal asked
        asked += 1
        return RelationId(-asked)

    cut(plan, RelationId(0), ask)
    return asked
