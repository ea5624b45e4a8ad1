"""EMIT ON WINDOW CLOSE: a plan that gives only what a watermark has closed.

`watermarks` tells which fields of a plan have a bound below which its rows are final: the watermarks of tables are
carried through projections, joins, groups and whatever falls apart by a key. `emit_on_close` then puts a Closing as far
down as it can go. Above it everything is maintained as ever, over rows that come once and stay: a group is evaluated
when its window closes, and not before.

    Aggregate, Keyed    where the bound is on what it groups or falls apart by: below it, on every input
    Keyed, a join       where a distance ties a bound of the side whose rows it keeps to the other: on top
    Window              where its order begins with a column that has a bound: below it; rows whose frame reaches
                        beyond what is closed are kept back
    anything linear     on top, or on the one relation that it reads
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from seiche.errors import FeatureNotSupported
from seiche.model import RelationId
from seiche.plan.algebra import (
    Aggregate,
    ChangeLog,
    Closing,
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
    field_of,
    input_column,
    input_index,
    is_constant,
    make_select,
    scans,
)
from seiche.plan.final_frames import final_rows
from seiche.plan.keyed import meaning
from seiche.plan.marks import carried, lowest, marks_in, reach, shifted, watermark_schema
from seiche.sql.nodes import conjuncts

Bounds = Mapping[str, exp.Expr]
Known = Callable[[RelationId], Bounds]  # the bounds of a stored relation's columns

# Joins that give every row of one input, or some of them, by its partners in the others: which input that is.
_KEPT_SIDES = {"Left join": 0, "Right join": 1, "Semi join": 0, "Anti join": 0, "Semi and anti join": 0}


def watermarks(plan: Plan, known: Known) -> dict[str, exp.Expr]:
    """The fields of a plan that have a bound: no change will concern rows that lie below it."""
    match plan:
        case Scan():
            found = known(plan.relation)
            return {field.name: found[field.name] for field in plan.fields if field.name in found}
        case Closing():
            return watermarks(plan.input, known)
        case UnionAll():
            branches = [watermarks(child, known) for child in plan.inputs]
            shared = [name for name in branches[0] if all(name in each for each in branches)]
            return {name: lowest([each[name] for each in branches]) for name in shared}
        case Select():
            return _joined(plan, known)
        case Aggregate():
            below = watermarks(plan.input, known)
            grouped = {field.name: below[field.name] for field in plan.keys if field.name in below}
            return _carried(plan.items, lambda column: grouped.get(column.name))
        case Keyed():
            return _by_key(plan, known)
        case TemporalFilter() | TopN() | ChangeLog() | Recursion() | Recompute():
            return {}


def _carried(items: Sequence[Item], bound_of: Callable[[exp.Column], exp.Expr | None]) -> dict[str, exp.Expr]:
    found = {}
    for item in items:
        followed = reach(item.expr)
        bound = bound_of(followed.column) if followed is not None else None
        if bound is not None:
            found[item.field.name] = carried(item.expr, bound, item.field.type)
    return found


def _joined(plan: Select, known: Known) -> dict[str, exp.Expr]:
    """A joined row is final when the rows that it is made of are, and none can come that would join."""
    below = [watermarks(child, known) for child in plan.inputs]
    return _carried(plan.items, lambda column: _settled(plan.inputs, plan.conjuncts, below, column))


def _settled(
    inputs: Sequence[Plan], conditions: Sequence[exp.Expr], below: Sequence[Bounds], column: exp.Column
) -> exp.Expr | None:
    """The bound of a column of one input below which its rows are final, and so are all partners in the others."""
    index = input_index(column)
    bounds = [below[index].get(column.name)]
    bounds += [
        _tied(conditions, column, other, below[other])
        for other, child in enumerate(inputs)
        if other != index and _may_change(child)
    ]
    settled = [each for each in bounds if each is not None]
    return lowest(settled) if len(settled) == len(bounds) else None


def _may_change(plan: Plan) -> bool:
    return not isinstance(plan, Recompute | Recursion) or not is_constant(plan)


def _tied(conditions: Sequence[exp.Expr], column: exp.Column, other: int, bounds: Bounds) -> exp.Expr | None:
    """The bound of a column below which all partners in another input are final, by a condition that ties the two.

    A partner's value is at most the column's and a difference, so it is below its own bound while the column is below
    that bound less the difference.
    """
    for condition in conditions:
        for mine, word, theirs in _sides(condition):
            found = reach(theirs) if word in ("=", ">=", ">") else None
            own = reach(mine)
            if found is None or own is None or own.column != column or input_index(found.column) != other:
                continue
            bound = bounds.get(found.column.name)
            if bound is not None:
                moved = shifted(bound, own.low - found.high)
                if moved is not None:
                    return moved
    return None


def _sides(condition: exp.Expr) -> list[tuple[exp.Expr, str, exp.Expr]]:
    """A comparison read from left to right and from right to left."""
    words: dict[type[exp.Expr], tuple[str, str]] = {
        exp.EQ: ("=", "="),
        exp.NullSafeEQ: ("=", "="),
        exp.GT: (">", "<"),
        exp.GTE: (">=", "<="),
        exp.LT: ("<", ">"),
        exp.LTE: ("<=", ">="),
    }
    inner = condition.unnest()
    found = words.get(type(inner))
    if found is None or not isinstance(inner, exp.Binary):
        return []
    return [(inner.left, found[0], inner.right), (inner.right, found[1], inner.left)]


def _by_key(plan: Keyed, known: Known) -> dict[str, exp.Expr]:
    below = [watermarks(child, known) for child in plan.inputs]
    found: dict[str, exp.Expr] = {}
    if plan.looked_up is None:
        for place, name in enumerate(plan.partition):
            bounds = [each.get(keys[place]) for each, keys in zip(below, plan.keys, strict=True)]
            settled = [each for each in bounds if each is not None]
            if len(settled) == len(bounds):
                found[name] = lowest(settled)
    if _is_by_row(plan):
        items = [Item(field, meaning(plan.body, field.name)) for field in plan.columns]
        of_rows = _carried(items, lambda column: below[0].get(column.name) if column.table == "l0" else None)
        found = {**of_rows, **found, **_of_elements(plan, below[0])}
    return {**_of_kept_side(plan, below), **found}


def _of_kept_side(plan: Keyed, below: Sequence[Bounds]) -> dict[str, exp.Expr]:
    """The bounds of an outer, semi or anti join, whose rows are those of one side, alone or with their partners."""
    kept = _KEPT_SIDES.get(plan.title)
    if kept is None or plan.looked_up is not None:
        return {}
    conditions = [each for join in _joins(plan.body) for each in conjuncts(join.args["on"])]

    def bound_of(column: exp.Column) -> exp.Expr | None:
        own = input_index(column) == kept
        return _settled(plan.inputs, conditions, below, column) if own else None

    return _carried([Item(field, meaning(plan.body, field.name)) for field in plan.columns], bound_of)


def _joins(body: exp.Query) -> list[exp.Join]:
    """The joins of a Keyed's query, below what `tidy` has put around it."""
    below = body.args["from_"].this
    return _joins(below.this) if isinstance(below, exp.Subquery) else body.args.get("joins") or []


def _of_elements(plan: Keyed, below: Bounds) -> dict[str, exp.Expr]:
    """The bound of the elements of an array that is written down: the lowest of theirs. Windows of HOP may be such."""
    array = dict(plan.shown).get("elements of")
    elements = array.expressions if isinstance(array, (exp.Array, exp.Anonymous)) else []
    bounds = []
    for each in elements:
        followed = reach(each)
        if followed is None or followed.column.name not in below:
            return {}
        bound = below[followed.column.name]
        bounds.append(carried(each, bound, bound.meta["sql_type"]))

    def named(node: exp.Expr) -> exp.Expr:
        return exp.column("element") if isinstance(node, exp.Dot) and node.name == "v" else node

    items = [Item(field, meaning(plan.body, field.name).transform(named)) for field in plan.columns]
    return _carried(items, lambda column: lowest(bounds) if bounds and column.name == "element" else None)


def _is_by_row(plan: Keyed) -> bool:
    """Whether what it gives depends on one row of its first input, and on what was there when that row came."""
    return plan.looked_up is not None or (len(plan.inputs) == 1 and plan.keys[0] == plan.inputs[0].key)


# --- where the closing goes --------------------------------------------------------------------------


def emit_on_close(plan: Plan, known: Known) -> Plan:
    """The plan with only the rows that are closed. Raises FeatureNotSupported where no watermark tells."""
    match plan:
        case Aggregate():
            below = watermarks(plan.input, known)
            for field in plan.keys:
                if field.name in below:
                    return replace(plan, input=_restricted(plan.input, field.name, below[field.name]))
        case Keyed():
            return _keyed(plan, known)
        case Select(inputs=(Aggregate() | Keyed() as child,)):
            return replace(plan, inputs=(emit_on_close(child, known),))
        case Select(inputs=(Scan() | Closing() as child,)):
            for name, bound in watermarks(child, known).items():
                return replace(plan, inputs=(_closing(child, name, bound),))
        case Select():
            return _joined_below(plan, known) or _on_top(plan, known)
        case Scan() | UnionAll():
            return _on_top(plan, known)
        case Closing() | TemporalFilter() | TopN() | Recursion() | Recompute():
            pass
    raise _refused(plan)


def _keyed(plan: Keyed, known: Known) -> Plan:
    if plan.looked_up is not None:  # what was looked up when a row came is kept until the row is closed
        return _on_top(plan, known)
    by_key = _by_key(plan, known)
    for name in plan.partition:
        if name in by_key:
            return _restricted(plan, name, by_key[name])
    below = watermarks(plan.inputs[0], known)
    if _of_kept_side(plan, [watermarks(child, known) for child in plan.inputs]):
        return _on_top(plan, known)
    if _is_by_row(plan):
        for name, bound in below.items():
            return replace(plan, inputs=(_restricted(plan.inputs[0], name, bound),))
        return replace(plan, inputs=(emit_on_close(plan.inputs[0], known),))
    if plan.title == "Window":
        name, body = final_rows(plan, below)
        return replace(plan, inputs=(_restricted(plan.inputs[0], name, below[name]),), body=body)
    raise _refused(plan)


def _joined_below(plan: Select, known: Known) -> Plan | None:
    """The join of closed rows, where equalities tie the bound to a column of every input."""
    found = watermarks(plan, known)
    for item in plan.items:
        start = item.expr.unnest()
        if item.field.name not in found or not isinstance(start, exp.Column):
            continue
        tied = {input_index(start): start.name}
        for condition in plan.conjuncts:
            for mine, word, theirs in _sides(condition) if len(tied) < len(plan.inputs) else ():
                left, right = mine.unnest(), theirs.unnest()
                if word == "=" and left == start and isinstance(right, exp.Column):
                    tied.setdefault(input_index(right), right.name)
        if len(tied) == len(plan.inputs):
            bound = found[item.field.name]
            sides = enumerate(plan.inputs)
            return replace(plan, inputs=tuple(_restricted(each, tied[i], bound, bare=True) for i, each in sides))
    return None


def _on_top(plan: Plan, known: Known) -> Plan:
    found = watermarks(plan, known)
    shown = [field.name for field in sorted(plan.fields, key=lambda field: field.hidden) if field.name in found]
    if not shown:
        raise _refused(plan)
    return _closing(plan, shown[0], found[shown[0]])


def _restricted(plan: Plan, name: str, bound: exp.Expr, *, bare: bool = False) -> Plan:
    """The rows of a plan below a bound of one of its fields, as something to group, or to take apart by a key.

    Such a thing is a Select, unless it is to be `bare`.
    """
    match plan:
        case Select(inputs=(Aggregate() | Keyed() as child,)):
            shown = next(item.expr for item in plan.items if item.field.name == name).unnest()
            if isinstance(shown, exp.Column):
                return replace(plan, inputs=(_restricted(child, shown.name, bound),))
        case Aggregate():
            grouped = next(item.expr for item in plan.items if item.field.name == name).unnest()
            if isinstance(grouped, exp.Column):
                return replace(plan, input=_restricted(plan.input, grouped.name, bound))
        case Keyed(looked_up=None) if name in plan.partition:
            place = plan.partition.index(name)
            sides = zip(plan.inputs, plan.keys, strict=True)
            return replace(plan, inputs=tuple(_restricted(each, keys[place], bound) for each, keys in sides))
    closed = _closing(plan, name, bound)
    if bare:
        return closed
    return make_select([closed], [], [Item(field, input_column(0, field.name)) for field in closed.fields])


def _closing(plan: Plan, name: str, bound: exp.Expr) -> Closing:
    bound = bound.copy()
    bound.meta["sql_type"] = field_of(plan, name).type
    held = tuple(Scan(relation, watermark_schema(type_)) for relation, type_ in marks_in(bound).items())
    return Closing(plan, name, bound, held)


def _refused(plan: Plan) -> FeatureNotSupported:
    what = {Aggregate: "an aggregate", Keyed: "a join or a window", TopN: "ORDER BY with LIMIT"}.get(type(plan))
    reason = "No column that it shows, groups or is ordered by has a watermark." if any(scans(plan)) else ""
    if isinstance(plan, (TopN, TemporalFilter, Recursion, Recompute)):
        reason = f"{what.capitalize() if what else 'A part of it'} has rows that may always change."
    return FeatureNotSupported(
        "the query cannot be emitted on window close",
        detail=reason or "It reads no table.",
        hint="Declare WATERMARK FOR a column of an append-only table, and show that column, group by it or by a window "
        "over it, or order window functions by it.",
    )


__all__ = ["Bounds", "Known", "emit_on_close", "watermarks"]
