"""Which queries of a WITH RECURSIVE refer to themselves, and whether PostgreSQL lets them.

A query that does is `base UNION [ALL] step`, and the step refers to it once, where rows that are added later can only
add rows: not in a subquery of an expression, not on the side of an outer join that may be missing, not in what EXCEPT
takes away. Nothing is bound here: names and places are all that is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from graphlib import CycleError, TopologicalSorter

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidRecursion
from seiche.sql.places import place_of


def readable_first(with_: exp.With) -> list[exp.Expr]:
    """The queries of a WITH RECURSIVE, in which any may read any other, each after those that it reads."""
    items = {item.alias: item for item in with_.expressions}
    read = {name: {each.name for each in _references(item, set(items))} - {name} for name, item in items.items()}
    sorter = TopologicalSorter(read)
    try:
        order = list(sorter.static_order())
    except CycleError as error:
        first = items[error.args[1][0]]
        raise FeatureNotSupported(
            "mutual recursion between WITH items is not implemented", position=place_of(first.args["alias"].this)
        ) from None
    return [items[name] for name in order]


def is_recursive(item: exp.Expr) -> bool:
    """Whether a query of WITH RECURSIVE refers to itself."""
    return any(True for _ in _references(item, {item.alias}))


def parts_of(query: exp.Expr, called: exp.Expr) -> exp.Union:
    """The union of a recursive query; raises what PostgreSQL raises where it is none, or refers to itself wrongly."""
    name = called.name
    union = query
    while isinstance(union, exp.Paren | exp.Subquery) and not _tail(union):
        union = union.this
    if not isinstance(union, exp.Union) or union.args.get("by_name"):
        raise InvalidRecursion(
            f'recursive query "{name}" does not have the form non-recursive-term UNION [ALL] recursive-term',
            position=place_of(called),
        )
    for word in _tail(union):
        raise FeatureNotSupported(f"{word} in a recursive query is not implemented")
    walk = _Walk(name)
    walk.visit(union.this, _Place.BASE)
    with_ = union.args.get("with_")
    for item in with_.expressions if with_ is not None else ():
        walk.visit(item.this, _Place.STEP)
    walk.visit(union.expression, _Place.STEP)
    return union


def _tail(query: exp.Expr) -> list[str]:
    words = {"order": "ORDER BY", "offset": "OFFSET", "limit": "LIMIT", "locks": "FOR UPDATE/SHARE"}
    return [word for part, word in words.items() if query.args.get(part)]


def _references(item: exp.Expr, names: set[str]) -> Iterator[exp.Table]:
    """The tables in a query of WITH that mean one of the names, which a WITH inside of it may take."""
    for table in item.find_all(exp.Table):
        if not table.db and table.name in names and not _is_taken(table, item):
            yield table


def _is_taken(table: exp.Table, top: exp.Expr) -> bool:
    node: exp.Expr = table
    while node is not top and node.parent is not None:
        above = node.parent
        if isinstance(above, exp.With):
            items = above.expressions
            known = items if above.recursive else items[: items.index(node)]
        else:
            with_ = above.args.get("with_")
            known = with_.expressions if with_ is not None and with_ is not node else []
        if any(each.alias == table.name for each in known):
            return True
        node = above
    return False


class _Place(Enum):
    """Where a reference stands; but for the step, what PostgreSQL calls it."""

    STEP = ""
    BASE = "its non-recursive term"
    SUBQUERY = "a subquery"
    OUTER_JOIN = "an outer join"
    INTERSECT = "INTERSECT"
    EXCEPT = "EXCEPT"


@dataclass(slots=True)
class _Walk:
    """Finds the references of a query to itself, in the order in which PostgreSQL does."""

    name: str
    found: list[exp.Table] = field(default_factory=list)

    def visit(self, node: exp.Expr, place: _Place) -> None:
        match node:
            case exp.Table():
                self._reference(node, place)
                self._joined(None, node.args.get("joins") or (), place)
            case exp.Select():
                self._with(node, place)
                start = node.args.get("from_")
                joins = node.args.get("joins") or ()
                if start is not None:
                    self._joined(start.this, joins, place)
                self._expressions(node, place, besides=("with_", "from_", "joins"))
            case exp.SetOperation():
                self._with(node, place)
                self._set_operation(node, place)
                self._expressions(node, place, besides=("with_", "this", "expression"))
            case exp.Subquery() | exp.Lateral() | exp.Paren():
                self._with(node, place)
                self.visit(node.this, place)
                self._joined(None, node.args.get("joins") or (), place)
            case _:
                self._expressions(node, place)

    def _reference(self, table: exp.Table, place: _Place) -> None:
        if table.db or table.name != self.name or _is_taken(table, _item_of(table)):
            return
        if place is not _Place.STEP:
            raise InvalidRecursion(
                f'recursive reference to query "{self.name}" must not appear within {place.value}',
                position=place_of(table),
            )
        self.found.append(table)
        if len(self.found) > 1:
            raise InvalidRecursion(
                f'recursive reference to query "{self.name}" must not appear more than once', position=place_of(table)
            )

    def _with(self, node: exp.Expr, place: _Place) -> None:
        with_ = node.args.get("with_")
        for item in with_.expressions if with_ is not None else ():
            self.visit(item.this, place)

    def _set_operation(self, node: exp.SetOperation, place: _Place) -> None:
        left = right = place
        every = not node.args.get("distinct")
        if place is _Place.STEP and isinstance(node, exp.Intersect) and every:
            left = right = _Place.INTERSECT
        elif place is _Place.STEP and isinstance(node, exp.Except):
            left, right = (_Place.EXCEPT if every else place), _Place.EXCEPT
        self.visit(node.this, left)
        self.visit(node.expression, right)

    def _joined(self, first: exp.Expr | None, joins: Sequence[exp.Join], place: _Place) -> None:
        """Items of FROM from left to right; a comma starts a join anew."""
        items = [(first, "")] if first is not None else []
        items += [(join.this, "," if _is_comma(join) else (join.side or "").upper()) for join in joins]
        for index, (item, side) in enumerate(items):
            missing = side in ("LEFT", "FULL")
            for _, later in items[index + 1 :]:
                if later == ",":
                    break
                missing = missing or later in ("RIGHT", "FULL")
            self.visit(item, _Place.OUTER_JOIN if missing and place is _Place.STEP else place)
        for join in joins:
            if (on := join.args.get("on")) is not None:
                self._expression(on, place)

    def _expressions(self, node: exp.Expr, place: _Place, besides: Sequence[str] = ()) -> None:
        for part, value in node.args.items():
            for each in value if isinstance(value, list) else [value]:
                if part not in besides and isinstance(each, exp.Expr):
                    self._expression(each, place)

    def _expression(self, node: exp.Expr, place: _Place) -> None:
        """A query in an expression is a subquery, which stands for itself."""
        if isinstance(node, exp.Query):
            self.visit(node, _Place.SUBQUERY)
        else:
            self._expressions(node, place)


def _is_comma(join: exp.Join) -> bool:
    return not (join.kind or join.side or join.method or join.args.get("on") or join.args.get("using"))


def _item_of(table: exp.Table) -> exp.Expr:
    """The query of WITH around a table that is outermost: names are taken inside of it."""
    node: exp.Expr = table
    found: exp.Expr = table
    while node.parent is not None:
        node = node.parent
        if isinstance(node, exp.CTE):
            found = node
    return found


__all__ = ["is_recursive", "parts_of", "readable_first"]
