"""The rows of a query block while it is lowered, clause by clause.

A block begins with the inputs of its FROM clause, and each clause after it adds a condition or puts an operator on top.
`Rows` knows, for parts of the bound query, where their values are found by now: a column of a table is a field of an
input, and later a grouped expression, an aggregate call, a window function or a subquery is one too.

    SELECT flag, sum(tons) ...        after FROM:      ships.flag -> l0.flag, ships.tons -> l0.tons
    GROUP BY flag                     after GROUP BY:  ships.flag -> l0.g0,   sum(ships.tons) -> l0.c0
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from seiche.plan.algebra import Field, Item, Plan, input_column, is_variable, make_select, rewrite_columns
from seiche.plan.keyed import tidy
from seiche.plan.reasons import NotIncremental
from seiche.sql.written import in_place_of
from seiche.types import BIGINT, SqlType


@dataclass(slots=True)
class Rows:
    """Inputs with conditions between them, and what is known of the query's parts as expressions over the inputs."""

    inputs: list[Plan] = field(default_factory=list)
    conjuncts: list[exp.Expr] = field(default_factory=list)
    known: dict[exp.Expr, exp.Expr] = field(default_factory=dict)

    def add_input(self, plan: Plan, known: Mapping[exp.Expr, Field]) -> int:
        """Another input; `known` tells which parts of the query its fields hold."""
        index = len(self.inputs)
        self.inputs.append(plan)
        for node, its_field in known.items():
            self.known[node] = input_column(index, its_field.name)
        return index

    def copy(self) -> Rows:
        """The same rows, for more conditions of their own."""
        return Rows([*self.inputs], [*self.conjuncts], dict(self.known))

    def filter(self, condition: exp.Expr) -> None:
        """Adds a condition of the query."""
        self.conjuncts.append(self.resolve(condition))

    def resolve(self, node: exp.Expr) -> exp.Expr:
        """A part of the query as an expression over the inputs."""
        return self._placed(node.copy())

    def _placed(self, node: exp.Expr) -> exp.Expr:
        found = self.known.get(node)
        if found is not None:
            value = found.copy()
            shown = value if isinstance(value, exp.Column) else exp.paren(value, copy=False)
            return in_place_of(typed_as(shown, node), node)
        if isinstance(node, exp.Column) and not is_variable(node):
            raise NotIncremental("shape", f"The column {node.sql('spark')} is out of the planner's reach here.")
        if isinstance(node, exp.Query | exp.Exists):
            raise NotIncremental("subquery", "A subquery stands where the planner cannot turn it into a join.")
        for child in list(node.iter_expressions()):
            placed = self._placed(child)
            if placed is not child:
                child.replace(placed)
        return node

    def covers(self, node: exp.Expr) -> bool:
        """Whether everything in a part of the query is known here."""
        if node in self.known:
            return True
        if isinstance(node, exp.Column):
            return is_variable(node)
        return all(self.covers(child) for child in node.iter_expressions())

    def touches(self, node: exp.Expr) -> bool:
        """Whether anything in a part of the query is known here."""
        return node in self.known or any(self.touches(child) for child in node.iter_expressions())

    def used_by(self, nodes: Iterable[exp.Expr]) -> list[exp.Expr]:
        """The largest parts of the given ones that are known, each once; also those inside of subqueries."""
        return [node for node in distinct_parts(nodes, above=self.known) if node in self.known]

    def plan(self, wanted: Sequence[exp.Expr]) -> tuple[Plan, dict[exp.Expr, Field]]:
        """One plan with a field for each of the wanted parts of the query."""
        taken: set[str] = set()
        fields: dict[exp.Expr, Field] = {}
        for node in wanted:
            if node not in fields:
                fields[node] = Field(unique(_name_of(node), taken), type_of(node))
        items = [Item(each, self.resolve(node)) for node, each in fields.items()]
        return tidy(make_select(self.inputs, self.conjuncts, items)), fields


def distinct_parts(nodes: Iterable[exp.Expr], above: Container[exp.Expr] = ()) -> Iterator[exp.Expr]:
    """The given trees and all parts of them, equal ones once, and nothing inside of those in `above`.

    Conditions of joins in a row repeat each other: the columns of USING are one tree in the other.
    """
    seen: set[exp.Expr] = set()
    waiting = list(nodes)[::-1]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if node not in above:
            waiting += list(node.iter_expressions())[::-1]


def over(plan: Plan, known: Mapping[exp.Expr, Field]) -> Rows:
    """Rows with one input."""
    rows = Rows()
    rows.add_input(plan, known)
    return rows


def side_by_side(rows: Rows, other: Rows) -> Rows:
    """Every row of the one with every row of the other. Changes the first."""
    index = len(rows.inputs)
    rows.inputs += other.inputs
    for node, value in other.known.items():
        rows.known[node] = _shifted(value, index)
    rows.conjuncts += [_shifted(each, index) for each in other.conjuncts]
    return rows


def _shifted(expr: exp.Expr, by: int) -> exp.Expr:
    return rewrite_columns(expr, lambda column: input_column(int(column.table[1:]) + by, column.name))


def conjunction(conditions: Sequence[exp.Expr]) -> exp.Expr:
    return exp.and_(*(exp.paren(each, copy=False) for each in conditions), copy=False)


def equality(condition: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The two sides of an equality, null-safe or not."""
    inner = condition.unnest()
    return (inner.left, inner.right) if isinstance(inner, (exp.EQ, exp.NullSafeEQ)) else None


def type_of(node: exp.Expr) -> SqlType:
    """The type that binding found. Plain wrappers take that of what they hold."""
    current: exp.Expr | None = node
    while current is not None:
        found = current.meta.get("sql_type")
        if isinstance(found, SqlType):
            return found
        current = current.this if isinstance(current, (exp.Alias, exp.Paren)) else None
    if isinstance(node, exp.Count):
        return BIGINT
    raise NotIncremental("untyped", f"The type of {node.sql('spark')} is not known.")


def typed_as(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    if "sql_type" in old.meta:
        new.meta["sql_type"] = old.meta["sql_type"]
    return new


def unique(name: str, taken: set[str]) -> str:
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate


def _name_of(node: exp.Expr) -> str:
    """A field's name for a part of the query; it never looks like a hidden one."""
    match node.unnest():
        case exp.Column() as column:
            return column.name.lstrip("_") or "value"
        case exp.Window() as window:
            return str(window.this.name if isinstance(window.this, exp.Anonymous) else window.this.key).lower()
        case exp.AggFunc() as call:
            return str(call.key)
        case _:
            return "value"
