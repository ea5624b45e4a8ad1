"""EXPLAIN: a plan as a tree with, for each operator, its technique, its stream key and its state.

One description serves every format: `describe` builds it from the fragments that really run, and `text`,
`as_json` and `dot` print it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from seiche.model import RelationId
from seiche.plan.algebra import Aggregate, Plan, Recompute, Scan, Select, UnionAll, input_index
from seiche.plan.fragments import Fragment
from seiche.plan.state import group_state


@dataclass(frozen=True, slots=True)
class Node:
    """An operator as a user reads it."""

    operator: str
    technique: str
    key: tuple[str, ...]
    details: tuple[str, ...]
    children: tuple[Node, ...] = ()


def describe(fragments: Sequence[Fragment], name_of: Callable[[RelationId], str]) -> Node:
    """The tree of a view; internal relations are shown as the operators that fill them."""
    by_relation = {fragment.relation: fragment for fragment in fragments}

    def node(plan: Plan) -> Node:
        match plan:
            case Scan() if plan.relation in by_relation:
                return node(by_relation[plan.relation].plan)
            case Scan():
                return Node(f"Scan {name_of(plan.relation)}", "stored changes", plan.key, ())
            case Select():
                return _select(plan, [node(child) for child in plan.inputs])
            case UnionAll():
                return Node("UnionAll", "change rule", plan.key, (), tuple(node(child) for child in plan.inputs))
            case Aggregate():
                return _aggregate(plan, node(plan.input))
            case Recompute():
                return Node(
                    "Recompute",
                    f"recompute ({plan.reason.code}): {plan.reason.sentence}",
                    plan.key,
                    ("merged by the difference of all rows",),
                    tuple(Node(f"Scan {name_of(relation)}", "whole relation", (), ()) for relation in plan.relations),
                )

    root = fragments[-1]
    return Node(
        f"Materialize {name_of(root.relation)}",
        "stored",
        root.schema.key,
        (f"columns: {', '.join(column.name for column in root.schema.visible)}",),
        (node(root.plan),),
    )


def _select(plan: Select, children: list[Node]) -> Node:
    shown = tuple(
        f"{item.field.name} = {sql(item.expr)}" if sql(item.expr).split(".")[-1] != item.field.name else item.field.name
        for item in plan.items
        if not item.field.hidden
    )
    details = [f"output: {', '.join(shown)}"]
    if plan.conjuncts:
        details.append("where: " + " AND ".join(sql(each) for each in plan.conjuncts))
    if len(plan.inputs) == 1:
        operator = "Filter and project" if plan.conjuncts else "Project"
        technique = "change rule: changes are mapped"
    else:
        operator = f"Join of {len(plan.inputs)} inputs"
        technique = "change rule: one term for each changed input, the others are looked up in their own storage"
    return Node(operator, technique, plan.key, tuple(details), tuple(children))


def _aggregate(plan: Aggregate, child: Node) -> Node:
    state = group_state(plan)
    keys = ", ".join(field.name for field in plan.keys) if not plan.total else "(one group)"
    if not plan.calls and not plan.total:
        operator = "Distinct"
    else:
        operator = "Aggregate"
    technique = "change rule: partial sums of the changes are added to the stored groups"
    if state.extremes:
        technique += "; affected keys: a group whose extreme value left is evaluated anew"
    elif state.inexact:
        technique += "; affected keys: a group with a float that is not exact as a decimal is evaluated anew"
    details = [f"group by: {keys}"]
    if plan.calls:
        calls = (
            f"{c.field.name} = {_call(c.function.value, c.argument.name if c.argument else '')}" for c in plan.calls
        )
        details.append("calls: " + ", ".join(calls))
    details.append("output: " + ", ".join(f"{i.field.name} = {sql(i.expr)}" for i in plan.items if not i.field.hidden))
    details.append("state: " + ", ".join(column.name for column in state.columns))
    return Node(operator, technique, plan.key, tuple(details), (child,))


def _call(function: str, argument: str) -> str:
    return function if not argument else f"{function}({argument})"


def sql(expr: Any) -> str:
    return str(expr.sql("spark"))


def text(root: Node) -> str:
    """The tree as indented lines."""
    lines: list[str] = []

    def visit(node: Node, depth: int) -> None:
        pad = "  " * depth
        lines.append(f"{pad}{node.operator}")
        lines.append(f"{pad}    technique: {node.technique}")
        if node.key:
            lines.append(f"{pad}    stream key: {', '.join(node.key)}")
        lines.extend(f"{pad}    {detail}" for detail in node.details)
        for child in node.children:
            visit(child, depth + 1)

    visit(root, 0)
    return "\n".join(lines)


def as_json(root: Node) -> str:
    def visit(node: Node) -> dict[str, Any]:
        return {
            "operator": node.operator,
            "technique": node.technique,
            "stream_key": list(node.key),
            "details": list(node.details),
            "inputs": [visit(child) for child in node.children],
        }

    return json.dumps(visit(root), indent=2)


def dot(root: Node) -> str:
    lines = ["digraph plan {", "  rankdir=BT; node [shape=box];"]
    counter = 0

    def visit(node: Node) -> int:
        nonlocal counter
        number = counter
        counter += 1
        label = json.dumps(f"{node.operator}\n{node.technique}")
        lines.append(f"  n{number} [label={label}];")
        for child in node.children:
            lines.append(f"  n{visit(child)} -> n{number};")
        return number

    visit(root)
    return "\n".join([*lines, "}"])


__all__ = ["Node", "as_json", "describe", "dot", "input_index", "text"]
