"""EXPLAIN: a plan as a tree with, for each operator, its technique, its stream key and its state.

One description serves every format: `describe` builds it from the fragments that really run, and `text`,
`as_json` and `dot` print it.

How an expression reads is told in `wording`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from seiche.model import RelationId
from seiche.plan.algebra import (
    Aggregate,
    Call,
    ChangeLog,
    Closing,
    Field,
    Function,
    Item,
    Keyed,
    Plan,
    Recompute,
    Recursion,
    Scan,
    Select,
    TemporalFilter,
    TopN,
    UnionAll,
    follows_clock,
    is_constant,
    rewrite_columns,
)
from seiche.plan.choice import techniques
from seiche.plan.first_rows import stored_columns
from seiche.plan.fragments import Fragment
from seiche.plan.grouping import summed
from seiche.plan.keyed import meaning
from seiche.plan.marks import told
from seiche.plan.state import COUNT, group_state
from seiche.plan.temporal import bound_text
from seiche.plan.wording import Spellings, condition, named, qualified, resolved, typed, worded
from seiche.sql.aggregates import AggregateCall, aggregate, is_aggregate_node
from seiche.sql.invocations import NOW
from seiche.sql.nodes import Settings
from seiche.types import SqlType


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
    root = fragments[-1]
    shown = _Reader({fragment.relation: fragment for fragment in fragments}, name_of).read_stored(root.plan)
    details = [f"columns: {', '.join(column.name for column in root.schema.visible)}"]
    hidden = [f"{field.name} = {_hidden(shown, field)}" for field in root.plan.fields if field.hidden]
    if hidden:
        details.append(f"hidden columns: {', '.join(hidden)}")
    return Node(f"Materialize {name_of(root.relation)}", "stored", shown.node.key, tuple(details), (shown.node,))


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
        label = json.dumps("\n".join([node.operator, node.technique, *node.details]), ensure_ascii=False)
        lines.append(f"  n{number} [label={label}];")
        for child in node.children:
            lines.append(f"  n{visit(child)} -> n{number};")
        return number

    visit(root)
    return "\n".join([*lines, "}"])


# --- operators ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shown:
    """A node, what it is called where several meet, and how its fields read to the operator above it.

    `meanings` holds every field as an expression over the node's own inputs. `spellings` are expressions that
    stand for one aggregate call of the user's, such as the quotient behind an average.
    """

    node: Node
    name: str
    fields: Mapping[str, exp.Expr]
    meanings: Mapping[str, exp.Expr]
    spellings: tuple[tuple[exp.Expr, exp.Expr], ...] = ()


_ROUND_BEFORE = Node("Rows of the round before", "kept until the recursion has ended", (), ())


class _Reader:
    def __init__(self, stored: Mapping[RelationId, Fragment], name_of: Callable[[RelationId], str]) -> None:
        self._stored = stored
        self._name_of = name_of
        self._rounds: set[RelationId] = set()
        self._anew = ""  # inside of what is evaluated as a whole, how

    def read_stored(self, plan: Plan) -> _Shown:
        """The root of a fragment, with the techniques that there are to choose from."""
        around, self._anew = self._anew, ""
        shown = self.read(plan)
        self._anew = around
        found = techniques(plan)
        if len(found) == 1:
            return shown
        line = f"techniques: {', '.join(each.value for each in found)}"
        return replace(shown, node=replace(shown.node, details=(*shown.node.details, line)))

    def read(self, plan: Plan) -> _Shown:
        if isinstance(plan, Scan) and plan.relation in self._stored:
            return self.read_stored(self._stored[plan.relation].plan)
        shown = self._read(plan)
        return replace(shown, node=_evaluated(shown.node, self._anew)) if self._anew else shown

    def _read(self, plan: Plan) -> _Shown:
        match plan:
            case Scan() if plan.relation in self._rounds:
                columns = {field.name: named(field) for field in plan.fields}
                return _Shown(_ROUND_BEFORE, "rounds", columns, columns)
            case Scan():
                name = self._name_of(plan.relation)
                columns = {field.name: named(field) for field in plan.fields}
                return _Shown(Node(f"Scan {name}", "stored changes", plan.key, ()), name, columns, columns)
            case Select(inputs=(Closing() as inner,)) if _is_plain(plan):
                return self.read(inner)
            case Select():
                return self._select(plan)
            case UnionAll():
                return self._union(plan)
            case TemporalFilter():
                return self._temporal(plan)
            case Closing():
                return self._closing(plan)
            case Aggregate():
                return self._aggregate(plan)
            case Keyed():
                return self._keyed(plan)
            case TopN():
                return self._top(plan)
            case ChangeLog():
                return self._change_log(plan)
            case Recursion():
                return self._recursion(plan)
            case Recompute():
                return self._recompute(plan)

    def _select(self, plan: Select, *, below_aggregate: bool = False) -> _Shown:
        """Below an Aggregate, which shows the expressions itself, a Select is only what it filters and joins."""
        inputs = _told_apart([self.read(child) for child in plan.inputs])
        columns = _columns(inputs, several=len(inputs) > 1)
        spellings = tuple(each for shown in inputs for each in shown.spellings)
        meanings = {item.field.name: resolved(item.expr, columns, item.field.type) for item in plan.items}
        details = []
        if not below_aggregate:
            details.append(f"output: {_output(plan.items, meanings, spellings)}")
        if plan.conjuncts:
            conditions = (condition(resolved(each, columns), spellings) for each in plan.conjuncts)
            details.append(f"where: {' AND '.join(conditions)}")
        if len(inputs) > 1:
            operator = f"Join of {len(inputs)} inputs"
            technique = "change rule: one term for each changed input, the others are looked up in their own storage"
        elif below_aggregate and not plan.conjuncts:
            return replace(inputs[0], fields=meanings, meanings=meanings, spellings=spellings)
        else:
            operator = "Filter" if below_aggregate else "Filter and project" if plan.conjuncts else "Project"
            technique = "change rule: changes are mapped"
        key = tuple(_key_part(plan, name, meanings, shown=not below_aggregate) for name in plan.key)
        node = Node(operator, technique, key, tuple(details), tuple(shown.node for shown in inputs))
        fields = meanings if below_aggregate else {field.name: named(field) for field in plan.fields}
        name = inputs[0].name if len(inputs) == 1 else "rows"
        return _Shown(node, name, fields, meanings, spellings)

    def _temporal(self, plan: TemporalFilter) -> _Shown:
        below = self.read(plan.input)
        bounds = []
        for each in plan.bounds:
            value = rewrite_columns(each.value, lambda column: below.fields[column.name].copy())
            bounds.append(f"{worded(value, below.spellings)} {each.comparison} {bound_text(each.bound)}")
        technique = (
            "change rule: changes are filtered; "
            "as the clock moves, rows are looked up between the old and the new bound"
        )
        node = Node("Temporal filter", technique, below.node.key, (f"where: {' AND '.join(bounds)}",), (below.node,))
        return replace(below, node=node)

    def _closing(self, plan: Closing) -> _Shown:
        source = plan.input
        below = self._select(source, below_aggregate=True) if isinstance(source, Select) else self.read(source)
        bound = worded(told(plan.bound, self._name_of))
        where = f"where: {worded(below.fields[plan.field], below.spellings)} < {bound}"
        technique = (
            "change rule: changes are filtered; "
            "as the watermark moves, rows are looked up between its old and its new value"
        )
        node = Node("Emit on window close", technique, below.node.key, (where,), (below.node,))
        return replace(below, node=node)

    def _union(self, plan: UnionAll) -> _Shown:
        branches = [self.read(child) for child in plan.inputs]
        meanings = {field.name: named(field) for field in plan.fields}
        for child, branch in zip(plan.inputs, branches, strict=True):
            # A hidden field carries the key of one branch and is NULL in the others.
            for field in child.fields:
                value = branch.meanings[field.name]
                if field.hidden and isinstance(value, exp.Column):
                    meanings[field.name] = value if value.table else qualified(value, branch.name)
        key = tuple(worded(meanings[name]) for name in plan.key)
        technique = "change rule: changes of every branch are taken together"
        children = tuple(branch.node for branch in branches)
        return _Shown(Node("Union all", technique, key, (), children), "union", meanings, meanings)

    def _aggregate(self, plan: Aggregate) -> _Shown:
        source = plan.input
        if isinstance(source, Select):
            below = self._select(source, below_aggregate=True)
        else:
            below = self.read(source)
        known = {field.name: below.fields[field.name] for field in plan.keys}
        known |= {call.field.name: _call(call, below.fields) for call in plan.calls}
        spellings = tuple(_spellings(plan, below.fields))
        meanings = {item.field.name: resolved(item.expr, known, item.field.type) for item in plan.items}
        state = group_state(plan)
        technique = "change rule: partial sums of the changes are added to the stored groups"
        anew = ["whose extreme value left"] if state.extremes else []
        anew += ["with a float that is not exact as a decimal"] if state.inexact else []
        if anew:
            technique += f"; affected keys: a group {' or '.join(anew)} is evaluated anew"
        details = []
        if plan.total:
            details.append("group by: nothing, there is one group")
        elif plan.calls:
            details.append(f"group by: {', '.join(worded(known[field.name]) for field in plan.keys)}")
        generated = {item.field.name for item in plan.items} if all(map(_is_generated, plan.items)) else set()
        if generated:
            values = [worded(meanings[item.field.name], spellings) for item in plan.items if not item.field.hidden]
            details.append(f"output: {', '.join(values)}")
        else:
            details.append(f"output: {_output(plan.items, meanings, spellings)}")
        kept = (f"{column.name} = {_state(column.name, plan, below.fields)}" for column in state.columns)
        details.append(f"state: {', '.join(kept)}")
        is_distinct = not plan.calls and not plan.total and isinstance(plan.items[0].expr, exp.Column)
        key = () if plan.total else tuple(_key_part(plan, name, meanings, shown=not generated) for name in plan.key)
        node = Node("Distinct" if is_distinct else "Aggregate", technique, key, tuple(details), (below.node,))
        fields = {
            field.name: meanings[field.name] if field.name in generated else named(field) for field in plan.fields
        }
        return _Shown(node, "groups", fields, meanings, spellings)

    def _keyed(self, plan: Keyed) -> _Shown:
        inputs = _told_apart([self.read(child) for child in plan.inputs])
        columns = _columns(inputs, several=len(inputs) > 1)
        for index, child in enumerate(plan.inputs):  # hidden fields have no names of their own
            for field in child.fields:
                value = inputs[index].meanings[field.name]
                if field.hidden and isinstance(value, exp.Column):
                    told_apart = value.table or len(inputs) == 1
                    columns[f"l{index}.{field.name}"] = value if told_apart else qualified(value, inputs[index].name)
        own = {field.name: named(field) for field in plan.fields}
        if plan.reason is not None:
            technique = f"recompute ({plan.reason.code}): {plan.reason.sentence}"
        elif len(plan.inputs) == 1 and plan.looked_up is not None:
            technique = "change rule: a row gets the time of the epoch in which it comes or changes, and keeps it"
        elif plan.looked_up is not None:
            technique = (
                "change rule: changes of the left side look up the right one at their epoch; "
                "changes of the right side alter nothing"
            )
        elif not plan.partition:
            technique = "affected keys: all, of the first rows, which are few"
        else:
            sides = []
            for index, keys in enumerate(plan.keys):
                sides.append(", ".join(worded(columns[f"l{index}.{key}"]) for key in keys))
            technique = f"affected keys: {' = '.join(dict.fromkeys(sides))}"

        def shown(expr: exp.Expr) -> exp.Expr:
            return rewrite_columns(expr, lambda column: columns.get(f"{column.table}.{column.name}", column).copy())

        meanings = {field.name: shown(meaning(plan.body, field.name)) for field in plan.fields}
        details = [f"{word}: {condition(shown(expr), ())}" for word, expr in plan.shown]
        outputs = [
            (field.name, worded(meanings[field.name]).replace(f"{NOW}()", "proctime()"))
            for field in plan.fields
            if not field.hidden
        ]
        details.append(f"output: {', '.join(n if n == value else f'{n} = {value}' for n, value in outputs)}")
        unread = "; earlier rows of the input are not read" if stored_columns(plan) is not None else ""
        details.append(f"state: its own rows{', looked up by the key' if plan.partition else ''}{unread}")
        key = tuple(name if name in own and not name.startswith("_") else worded(meanings[name]) for name in plan.key)
        children = tuple(each.node for each in inputs)
        return _Shown(Node(plan.title, technique, key, tuple(details), children), "rows", own, meanings)

    def _change_log(self, plan: ChangeLog) -> _Shown:
        below = self.read(plan.input)
        own = {field.name: named(field) for field in plan.fields}
        technique = "change rule: every change of the input is added as a row, and stays"
        node = Node("Change log", technique, plan.key, (), (below.node,))
        return _Shown(node, below.name, own, own)

    def _top(self, plan: TopN) -> _Shown:
        below = self.read(plan.input)
        own = {field.name: named(field) for field in plan.fields}
        meanings = {
            field.name: below.meanings[field.name] if field.hidden else own[field.name] for field in plan.fields
        }
        order = [f"{_top_word(below, each.name)}{' desc' if each.descending else ''}" for each in plan.order]
        details = [f"order by: {', '.join(order)}"] if order else []
        tail = (f" after {plan.offset}" if plan.offset else "") + (", and those equal to the last" if plan.ties else "")
        details.append(f"rows: {plan.limit}{tail}")
        technique = (
            f"change rule: counted off from the {plan.limit + plan.offset} rows below"
            if plan.offset
            else "change rule: changes are sorted into the stored rows; "
            "the input is sorted anew when more of them leave than others take their places"
        )
        key = tuple(worded(meanings[name]) for name in plan.key)
        return _Shown(Node("Top", technique, key, tuple(details), (below.node,)), "rows", own, meanings)

    def _recursion(self, plan: Recursion) -> _Shown:
        columns = {field.name: named(field) for field in plan.fields}
        self._rounds.add(plan.rounds)
        children = (
            self._part(plan.base, "base", "evaluated in full"),
            self._part(plan.step, "step", "evaluated in every round"),
        )
        technique = f"recompute ({plan.reason.code}): {plan.reason.sentence}"
        if is_constant(plan):
            technique = "constant: Base and step read no relation, so it never changes."
        rows = "each once, those of earlier rounds are left out" if plan.distinct else "all of every round"
        details = [
            f"output: {', '.join(field.name for field in plan.columns)}",
            f"rows: {rows}",
            "merged by the difference of all rows",
        ]
        if follows_clock(plan):
            details.append("evaluated at every barrier, since its answer changes with the clock")
        return _Shown(Node("Recursion", technique, plan.key, tuple(details), children), "recursion", columns, columns)

    def _part(self, plan: Plan, word: str, anew: str) -> Node:
        around, self._anew = self._anew, anew
        node = self.read(plan).node
        self._anew = around
        return replace(node, operator=f"{node.operator} ({word})")

    def _recompute(self, plan: Recompute) -> _Shown:
        columns = {field.name: named(field) for field in plan.fields}
        children = [
            _ROUND_BEFORE if each in self._rounds else Node(f"Scan {self._name_of(each)}", "whole relation", (), ())
            for each in plan.relations
        ]
        technique = f"recompute ({plan.reason.code}): {plan.reason.sentence}"
        if is_constant(plan):
            technique = f"constant: {plan.reason.sentence}"
        details = ["merged by the difference of all rows"]
        if plan.time_driven:
            details.append("evaluated at every barrier, since its answer changes with the clock")
        node = Node("Recompute", technique, plan.key, tuple(details), tuple(children))
        return _Shown(node, "rows", columns, columns)


def _evaluated(node: Node, technique: str) -> Node:
    """An operator that keeps nothing, and has neither changes nor a key for them."""
    if node is _ROUND_BEFORE:
        return node
    if node.operator.startswith("Scan "):
        technique = "whole relation"
    elif node.technique.startswith("constant: "):
        technique = node.technique
    details = tuple(each for each in node.details if not each.startswith(("state: ", "merged by ")))
    return replace(node, technique=technique, key=(), details=details)


def _top_word(below: _Shown, name: str) -> str:
    """A sort column as the user wrote it; hidden ones have no name of their own."""
    return worded(below.meanings[name], below.spellings) if name.startswith("_") else name


def _told_apart(inputs: list[_Shown]) -> list[_Shown]:
    """The inputs of a join under names that differ."""
    taken: dict[str, int] = {}
    out = []
    for shown in inputs:
        number = taken[shown.name] = taken.get(shown.name, 0) + 1
        name = shown.name if number == 1 else f"{shown.name}_{number}"
        is_plain = shown.node.operator == f"Scan {name}"
        alias = "" if is_plain or len(inputs) == 1 else f" as {name}"
        out.append(replace(shown, name=name, node=replace(shown.node, operator=shown.node.operator + alias)))
    return out


def _is_plain(plan: Select) -> bool:
    """Whether it shows its only input as that is."""
    same = (isinstance(item.expr, exp.Column) and item.expr.name == item.field.name for item in plan.items)
    return not plan.conjuncts and all(same)


def _columns(inputs: Sequence[_Shown], *, several: bool) -> dict[str, exp.Expr]:
    """How the columns `l<i>.<field>` of a Select read."""
    found = {}
    for index, shown in enumerate(inputs):
        for name, value in shown.fields.items():
            plain = isinstance(value, exp.Column) and not value.table
            found[f"l{index}.{name}"] = qualified(value, shown.name) if several and plain else value
    return found


def _hidden(shown: _Shown, field: Field) -> str:
    if shown.node.operator in ("Recompute", "Recursion"):
        return "number of the row among equal ones"
    if field.name == "_n":
        return "number of the copy"
    if field.name == "_branch":
        return "number of the branch"
    return worded(shown.meanings[field.name], shown.spellings)


def _key_part(plan: Select | Aggregate, name: str, meanings: Mapping[str, exp.Expr], *, shown: bool) -> str:
    field = next(item.field for item in plan.items if item.field.name == name)
    return name if shown and not field.hidden else worded(meanings[name])


def _output(items: Sequence[Item], meanings: Mapping[str, exp.Expr], spellings: Spellings) -> str:
    shown = []
    for item in items:
        if not item.field.hidden:
            name, value = item.field.name, worded(meanings[item.field.name], spellings)
            shown.append(name if value == name else f"{name} = {value}")
    return ", ".join(shown)


def _is_generated(item: Item) -> bool:
    """Whether an item of an Aggregate only hands on a key or call to a HAVING above it."""
    name = item.field.name
    return isinstance(item.expr, exp.Column) and item.expr.name == name and bool(re.fullmatch(r"[gc]\d+", name))


# --- aggregate calls ---------------------------------------------------------------------------------

# What binding takes apart into sums and counts; a deviation holds a variance, so it is looked for first.
_COMPOSED = ("avg", "stddev_samp", "stddev_pop", "var_samp", "var_pop")


def _call(call: Call, fields: Mapping[str, exp.Expr]) -> exp.Expr:
    if call.argument is None:
        return typed(exp.Count(this=exp.Star()), call.field.type)
    return _function(call.function.value, fields[call.argument.name], call.field.type)


def _function(name: str, argument: exp.Expr, type_: SqlType) -> exp.Expr:
    return typed(exp.Anonymous(this=name, expressions=[argument.unnest().copy()]), type_)


def _spellings(plan: Aggregate, fields: Mapping[str, exp.Expr]) -> list[tuple[exp.Expr, exp.Expr]]:
    """For each average and the like that the calls could come from: its expression over them, and the call."""
    calls = {(call.function, fields[call.argument.name]): _call(call, fields) for call in plan.calls if call.argument}
    found = []
    for argument in dict.fromkeys(field for _, field in calls):
        for name in _COMPOSED:
            if not argument.meta.get("sql_type") or not argument.meta["sql_type"].is_number:
                continue
            whole = aggregate(AggregateCall(name, [argument.copy()]), Settings(strict=False))
            missing = False

            def place(node: exp.Expr) -> exp.Expr:
                nonlocal missing
                if not is_aggregate_node(node):
                    return node
                function = Function.SUM if isinstance(node, exp.Sum) else Function.COUNT
                over = summed(node.this) if isinstance(node, exp.Sum) else node.this
                call = calls.get((function, over)) if isinstance(node, exp.Sum | exp.Count) else None
                missing |= call is None
                return call.copy() if call is not None else node

            pattern = whole.copy().transform(place, copy=False)
            if not missing:
                found.append((pattern.unnest(), _function(name, argument, whole.meta["sql_type"])))
    return found


_STATE = {
    "n": "count({})",
    "s": "sum({})",
    "d": "sum({}) as a decimal",
    "u": "count({}) of values not exact as a decimal",
    "f": "count({}) of false",
    "t": "count({}) of true",
    "min": "min({})",
    "max": "max({})",
}


def _state(column: str, plan: Aggregate, fields: Mapping[str, exp.Expr]) -> str:
    """What a hidden column of a group's state holds."""
    if column == COUNT:
        return "count(*)"
    _, kind, argument = column.split("_", 2)
    return _STATE[kind].format(worded(fields[argument]))


__all__ = ["Node", "as_json", "describe", "dot", "text"]
