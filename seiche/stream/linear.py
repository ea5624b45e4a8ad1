"""Select and UnionAll: mapping and joining changes.

With A the old value of an input, A' the new one and dA its changes, the changes of an n-ary join are one term
for each changed input, the inputs before it new and those after it old:

    d(A x B x C)  =  dA x B x C  +  A' x dB x C  +  A' x B' x dC

A term starts at its changes, which are few, and walks the join graph outwards, so that each step looks up the
partners of few rows. Other inputs are read from their own storage, weighted: rows of the change log join with
their sign, and what cancels is removed at the end. Terms of unchanged inputs are not even written down.

Everything here is SQL text. A query for a node gives its fields and `_op`.

Expressions of a view never fail: they give NULL instead. How often that happened is counted on the way: with
`counting`, the query for a node's changes also gives `_failed`, 1 for a row whose expressions failed. A condition that
failed has dropped its row, so such rows come as extra ones with `_op` = 0 and nothing but NULLs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from seiche.errors import InvariantError
from seiche.model import OP, Epoch, RelationSchema
from seiche.plan.algebra import (
    Closing,
    Item,
    Plan,
    Scan,
    Select,
    TemporalFilter,
    UnionAll,
    input_index,
)
from seiche.sql.failures import failure_of
from seiche.sql.nodes import disjunction, disjuncts
from seiche.storage.changes import vnode_sql
from seiche.stream import closing, near_join, temporal
from seiche.stream.joined_row import flat, flat_name, inputs_of, needed
from seiche.stream.predicates import Lookup, key_predicate
from seiche.stream.runtime import FAILED, EpochReads


def can_fail(plan: Plan) -> bool:
    """Whether an expression of the node itself may fail at run time."""
    match plan:
        case Select():
            exprs = (*plan.conjuncts, *(item.expr for item in plan.items))
            return any(failure_of(each) is not None for each in exprs)
        case UnionAll():
            return any(can_fail(child) for child in plan.inputs)
        case _:
            return False


def changes_sql(
    plan: Plan, reads: EpochReads, *, broadcast: bool, counting: bool = False, near: bool = True
) -> str | None:
    """The query for a node's changes; None when nothing under it changed.

    `near` is false where the driver is known not to be able to join them.
    """
    match plan:
        case Scan():
            if reads.changed(plan.relation) is None:
                return None
            return _scan(plan, reads.delta(plan.relation))
        case UnionAll():
            branches = [changes_sql(child, reads, broadcast=broadcast, counting=counting) for child in plan.inputs]
            return _union_all([each for each in branches if each is not None])
        case TemporalFilter():
            return _union_all(_through(plan, reads, broadcast=broadcast))
        case Closing():
            return _union_all(_closed(plan, reads, broadcast=broadcast))
        case Select():
            joined = near_join.joined(plan, reads) if broadcast and near else None
            if joined is not None:
                return joined_sql(plan, joined, reads, counting=counting)
            terms = []
            for index, child in enumerate(plan.inputs):
                start = changes_sql(child, reads, broadcast=broadcast)
                if start is None:
                    continue

                def partner(other: int, changed: int = index) -> str:
                    epoch = reads.after if other < changed else reads.before
                    lookup = _lookup(plan, changed, other, reads)
                    if lookup is None:
                        return weighted_sql(plan.inputs[other], reads, epoch)
                    copy = _index_of(plan, other, lookup, reads)
                    if copy is not None:
                        return weighted_sql(copy, reads, reads.before, lookup.sql)
                    return weighted_sql(plan.inputs[other], reads, epoch, lookup.sql)

                terms.append(_walk(plan, index, start, partner, broadcast=broadcast, counting=counting))
                if counting:
                    terms += _failed_conditions(plan, index, start)
            return _union_all(terms)
        case _:
            raise InvariantError(f"{type(plan).__name__} is not linear")


def weighted_sql(plan: Plan, reads: EpochReads, epoch: int, predicate: str | None = None) -> str:
    """The query for a node's whole value at an epoch, as weighted rows."""
    match plan:
        case Scan():
            return _scan(plan, reads.weighted(plan.relation, epoch, predicate))  # type: ignore[arg-type]
        case UnionAll():
            return _union_all_of([weighted_sql(child, reads, epoch) for child in plan.inputs])
        case TemporalFilter():
            return temporal.held(plan, weighted_sql(plan.input, reads, epoch, predicate), reads.now_ms(Epoch(epoch)))
        case Closing():
            bound = closing.bound_at(plan, reads, Epoch(epoch))
            return closing.held(plan, weighted_sql(plan.input, reads, epoch), bound)
        case Select():
            first = weighted_sql(plan.inputs[0], reads, epoch)
            return _walk(plan, 0, first, lambda i: weighted_sql(plan.inputs[i], reads, epoch), broadcast=False)
        case _:
            raise InvariantError(f"{type(plan).__name__} is not linear")


def exact_sql(
    plan: Plan, reads: EpochReads, epoch: int, predicate: str | None = None, *, counting: bool = False
) -> str:
    """The query for a node's rows at an epoch; `_op` is always 1, but for rows that are there to be counted.

    `predicate` is one on the columns of a Scan; `counting` is for a Select or a UnionAll of these.
    """
    match plan:
        case Scan():
            return _exact_scan(plan, reads, epoch) + (f" WHERE {predicate}" if predicate else "")
        case UnionAll():
            return _union_all_of([exact_sql(child, reads, epoch, counting=counting) for child in plan.inputs])
        case TemporalFilter():
            return temporal.held(plan, exact_sql(plan.input, reads, epoch, predicate), reads.now_ms(Epoch(epoch)))
        case Closing():
            bound = closing.bound_at(plan, reads, Epoch(epoch))
            return closing.held(plan, exact_sql(plan.input, reads, epoch), bound)
        case Select():
            inputs = [exact_sql(child, reads, epoch) for child in plan.inputs]
            rows = _walk(plan, 0, inputs[0], lambda i: inputs[i], broadcast=False, counting=counting)
            failed = [_failed_conditions(plan, index, each) for index, each in enumerate(inputs) if counting]
            return _union_all_of([rows, *itertools.chain(*failed)])
        case _:
            raise InvariantError(f"{type(plan).__name__} is not linear")


def restricted_sql(
    plan: Plan,
    reads: EpochReads,
    epoch: int,
    keys: Sequence[str],
    wanted: str,
    *,
    broadcast: bool,
    lookups: Mapping[int, Lookup] | None = None,
) -> str:
    """As `exact_sql`, for the rows whose fields `keys` are (null-safely) among the rows of the view `wanted`.

    `wanted` has the same column names. The walk starts there, so that only those rows are looked up. `lookups` are
    conditions on Scans among a Select's inputs that all such rows fulfil.
    """
    match plan:
        case UnionAll():
            parts = [restricted_sql(each, reads, epoch, keys, wanted, broadcast=broadcast) for each in plan.inputs]
            return _union_all_of(parts)
        case Select():
            by_name = {item.field.name: item for item in plan.items}
            extra = len(plan.inputs)
            matches = tuple(
                exp.NullSafeEQ(
                    this=exp.paren(by_name[key].expr.copy(), copy=False),
                    expression=exp.column(exp.to_identifier(key, quoted=True), table=f"l{extra}"),
                )
                for key in keys
            )
            widened = Select((*plan.inputs, plan.inputs[0]), (*plan.conjuncts, *matches), plan.items, plan.key)
            start = f"SELECT {_columns(keys)}, cast(1 as tinyint) AS `{OP}` FROM {wanted}"

            def looked_up(other: int) -> str:
                lookup = (lookups or {}).get(other)
                if lookup is None:
                    return exact_sql(plan.inputs[other], reads, epoch)
                copy = _index_of(plan, other, lookup, reads)
                if copy is not None:
                    return exact_sql(copy, reads, reads.before, lookup.sql)
                return exact_sql(plan.inputs[other], reads, epoch, lookup.sql)

            return _walk(widened, extra, start, looked_up, broadcast=broadcast)
        case _:
            raise InvariantError(f"{type(plan).__name__} cannot be restricted by key")


def restricted_rows_sql(plan: Select, joined: near_join.Joined, reads: EpochReads) -> str:
    """As `restricted_sql` at `reads.after`, for rows that the driver has put together."""
    return _shown(plan, _fulfilled(plan, joined, reads), counting=False)


def with_vnode(query: str, schema: RelationSchema, *, counting: bool = False) -> str:
    """The query's rows as a segment wants them, `_epoch` aside."""
    failed = f", `{FAILED}`" if counting else ""
    return f"SELECT {_columns(schema.names)}, {vnode_sql(schema)} AS `_vnode`, `{OP}`{failed} FROM ({query})"


# ----------------------------------------------------------------------------------------------------


def joined_sql(plan: Select, joined: near_join.Joined, reads: EpochReads, *, counting: bool = False) -> str | None:
    """The query for the changes of a join whose rows the driver has put together; None when there are none."""
    failed = [
        term
        for index, child in enumerate(plan.inputs)
        if counting and _failures(plan, index) and (start := changes_sql(child, reads, broadcast=True)) is not None
        for term in _failed_conditions(plan, index, start)
    ]
    if joined.rows.num_rows == 0 and not failed:
        return None
    return _union_all_of([_shown(plan, _fulfilled(plan, joined, reads), counting=counting), *failed])


def _fulfilled(plan: Select, joined: near_join.Joined, reads: EpochReads) -> str:
    """The query for those of the joined rows that fulfil the conditions, which Spark evaluates unless all are told."""
    view = reads.scope.view(near_join.frame_of(joined.rows, plan, reads.runtime.spark))
    return _where(f"SELECT * FROM {view}", [f"({flat(each)})" for each in plan.conjuncts if not joined.told])


def _through(plan: TemporalFilter, reads: EpochReads, *, broadcast: bool) -> list[str]:
    """The changes of the input that the clock lets through, and the rows that it moves across a bound."""
    old_ms, new_ms = reads.now_ms(reads.before), reads.now_ms(reads.after)
    changes = changes_sql(plan.input, reads, broadcast=broadcast)
    terms = [temporal.held(plan, changes, new_ms)] if changes is not None else []
    if reads.crossing(plan) is not temporal.Crossing.NONE:
        rows = weighted_sql(plan.input, reads, reads.before, temporal.crossed(plan, old_ms, new_ms))
        terms.append(temporal.crossing_rows(plan, rows, old_ms, new_ms))
    return terms


def _closed(plan: Closing, reads: EpochReads, *, broadcast: bool) -> list[str]:
    """The changes of the input below the new watermark, and the rows that it has passed."""
    old, new = (closing.bound_at(plan, reads, epoch) for epoch in (reads.before, reads.after))
    changes = changes_sql(plan.input, reads, broadcast=broadcast) if closing.may_concern(plan, reads, new) else None
    terms = [closing.held(plan, changes, new)] if changes is not None else []
    if new is not None and old != new:
        source, predicate = closing.narrowed(plan, old, new)
        terms.append(closing.between(plan, weighted_sql(source, reads, reads.before, predicate), old, new))
    return terms


def _scan(scan: Scan, view: str) -> str:
    return f"SELECT {_columns(scan.schema.names)}, `{OP}` FROM {view}"


def _exact_scan(scan: Scan, reads: EpochReads, epoch: int) -> str:
    view = reads.exact(scan.relation, epoch)  # type: ignore[arg-type]
    return f"SELECT {_columns(scan.schema.names)}, cast(1 as tinyint) AS `{OP}` FROM {view}"


def _columns(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _union_all(queries: list[str]) -> str | None:
    return _union_all_of(queries) if queries else None


def _union_all_of(queries: list[str]) -> str:
    return " UNION ALL ".join(f"({query})" if len(queries) > 1 else query for query in queries)


def _walk(
    plan: Select,
    start: int,
    first: str,
    partner: Callable[[int], str],
    *,
    broadcast: bool,
    counting: bool = False,
) -> str:
    """Joins the inputs of a Select one by one, beginning with input `start`, whose query is `first`."""
    fields = needed(plan)
    pending = list(plan.conjuncts)
    bound = {start}
    sql = _leaf(start, first, fields[start])
    sql = _where(sql, _take(pending, bound))
    while len(bound) < len(fields):
        following = _next_input(pending, bound, len(fields))
        bound.add(following)
        on = _take(pending, bound)
        right = _leaf(following, partner(following), fields[following], sign="_sign")
        kept = [*(f"x.`{name}`" for i in bound - {following} for name in _names(i, fields[i]))]
        kept += [f"y.`{name}`" for name in _names(following, fields[following])]
        hint = "/*+ BROADCAST(x) */ " if broadcast else ""
        join = f"JOIN ({right}) y ON {' AND '.join(on)}" if on else f"CROSS JOIN ({right}) y"
        sign = f"cast(x.`{OP}` * y.`_sign` as tinyint) AS `{OP}`"
        sql = f"SELECT {hint}{', '.join([*kept, sign])} FROM ({sql}) x {join}"
    return _shown(plan, sql, counting=counting)


def _shown(plan: Select, rows: str, *, counting: bool) -> str:
    """The items of a Select over a query for its joined rows."""
    items = [f"{_render(item)} AS `{item.field.name}`" for item in plan.items]
    items.append(f"`{OP}`")
    if counting:
        failures = [failure for item in plan.items if (failure := failure_of(item.expr)) is not None]
        items.append(f"if({flat(_any(failures))}, 1, 0) AS `{FAILED}`")
    return f"SELECT {', '.join(items)} FROM ({rows})"


def _any(failures: list[exp.Expr]) -> exp.Expr:
    """Items are often made of the same parts, which fail together: each is asked once."""
    return disjunction(list(dict.fromkeys(each for failure in failures for each in disjuncts(failure))))


def _failures(plan: Select, index: int) -> list[exp.Expr]:
    """When conditions on an input alone fail."""
    own = [each for each in plan.conjuncts if inputs_of(each) == {index}]
    return [failure for each in own if (failure := failure_of(each)) is not None]


def _failed_conditions(plan: Select, index: int, start: str) -> list[str]:
    """A row with `_op` = 0 for each changed row of an input on which one of its own conditions failed."""
    failures = _failures(plan, index)
    if not failures:
        return []
    nothing = [f"cast(null as {item.field.type.spark}) AS `{item.field.name}`" for item in plan.items]
    columns = ", ".join([*nothing, f"cast(0 as tinyint) AS `{OP}`", f"1 AS `{FAILED}`"])
    failed = flat(_any(failures))
    return [f"SELECT {columns} FROM ({_leaf(index, start, needed(plan)[index])}) WHERE `{OP}` > 0 AND ({failed})"]


def _names(index: int, fields: list[str]) -> list[str]:
    return [flat_name(index, name) for name in fields]


def _leaf(index: int, query: str, fields: list[str], *, sign: str = OP) -> str:
    columns = [f"`{name}` AS `l{index}_{name}`" for name in fields]
    return f"SELECT {', '.join([*columns, f'`{OP}` AS `{sign}`'])} FROM ({query})"


def _render(item: Item) -> str:
    return f"cast({flat(item.expr)} as {item.field.type.spark})"


def _take(pending: list[exp.Expr], bound: set[int]) -> list[str]:
    """Removes and renders the conditions that can be checked once `bound` inputs are joined."""
    ready = [each for each in pending if inputs_of(each) <= bound]
    pending[:] = [each for each in pending if not inputs_of(each) <= bound]
    return [f"({flat(each)})" for each in ready]


def _where(sql: str, conditions: list[str]) -> str:
    # Without an alias Spark takes WHERE (`column`) for one: a table named where that renames its columns.
    return f"SELECT * FROM ({sql}) AS x WHERE {' AND '.join(conditions)}" if conditions else sql


def _next_input(pending: list[exp.Expr], bound: set[int], count: int) -> int:
    """The next input to join: one that an equality ties to what is bound, if there is any."""
    for candidate in range(count):
        if candidate not in bound and any(_ties(each, bound, candidate) for each in pending):
            return candidate
    for condition in pending:
        loose = inputs_of(condition) - bound
        if len(loose) == 1 and inputs_of(condition) & bound:
            return loose.pop()
    return next(index for index in range(count) if index not in bound)


def _ties(condition: exp.Expr, bound: set[int], candidate: int) -> bool:
    if not isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
        return False
    sides = inputs_of(condition.left), inputs_of(condition.right)
    return any(a and a <= bound and b == {candidate} for a, b in (sides, sides[::-1]))


def _index_of(plan: Select, number: int, lookup: Lookup, reads: EpochReads) -> Scan | None:
    """The index to look rows of an input up in, as a scan of what the Select needs of it."""
    source = plan.inputs[number]
    return index_scan(source, lookup, needed(plan)[number], reads) if isinstance(source, Scan) else None


def index_scan(source: Scan, lookup: Lookup, wanted: Sequence[str], reads: EpochReads) -> Scan | None:
    """A scan of some columns of an index at `reads.before` that gives the same rows as the source; None without one."""
    relation = reads.index_for(source.relation, lookup.columns, wanted)
    if relation is None:
        return None
    columns = tuple(column for column in source.schema.columns if column.name in wanted)
    return Scan(relation, RelationSchema(columns, (), source.schema.append_only))


def _lookup(plan: Select, changed: int, other: int, reads: EpochReads) -> Lookup | None:
    """A condition on input `other` that all partners of the changed rows fulfil."""
    source, target = plan.inputs[changed], plan.inputs[other]
    if not isinstance(source, Scan) or not isinstance(target, Scan):
        return None
    changes = reads.changed(source.relation)
    if changes is None or changes.table is None:
        return None
    found = []
    for condition in plan.conjuncts:
        if not isinstance(condition, exp.EQ):
            continue
        sides = (condition.left.unnest(), condition.right.unnest())
        for mine, theirs in (sides, sides[::-1]):
            if (
                isinstance(mine, exp.Column)
                and isinstance(theirs, exp.Column)
                and input_index(mine) == changed
                and input_index(theirs) == other
            ):
                type_ = target.schema.column(theirs.name).type
                if type_ == source.schema.column(mine.name).type:
                    found.append((theirs.name, key_predicate(theirs.name, type_, changes.table[mine.name])))
    return Lookup.of(found)


__all__ = [
    "changes_sql",
    "exact_sql",
    "index_scan",
    "restricted_rows_sql",
    "restricted_sql",
    "weighted_sql",
    "with_vnode",
]
