"""Subqueries in expressions become joins.

EXISTS, IN, NOT EXISTS, NOT IN      as a condition of WHERE or HAVING: a semi or anti join
a value, not correlated             a relation of one row, joined with every row
a value, correlated by equalities   its groups by the correlated columns. Where no value means no row, they are joined;
                                    else they are left joined, and a count without rows is 0
EXISTS inside of an expression      a count of rows that is compared with 0
correlated in any other way         evaluated for all values of the outer rows that it reads (plan/dependent.py), and
                                    joined by those values as if they were correlated by equalities
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from seiche.plan.algebra import Field, Plan, input_column
from seiche.plan.dependent import Domains, enclosed, opened, spread, with_domain
from seiche.plan.grouping import aggregates, distinct, group, is_aggregate
from seiche.plan.joins import Probe, Tied, across, common_type, never_null, outer_join, probe, tie
from seiche.plan.reasons import NotIncremental
from seiche.plan.rows import Rows, over, type_of
from seiche.plan.windows import windows_in
from seiche.sql.failures import SEVERAL_ROWS
from seiche.sql.nodes import conjuncts, raising
from seiche.types import BIGINT, BOOLEAN, SqlType


@dataclass(frozen=True, slots=True)
class Lowering:
    """How to lower what a subquery holds: its FROM clause with conditions on it, a whole query, and one that reads
    `domains` and can therefore not be recomputed. `strict` makes several rows in place of a value an error."""

    block: Callable[[exp.Select, Sequence[exp.Expr], Sequence[exp.Expr]], Rows]
    query: Callable[[exp.Expr], Plan]
    dependent: Callable[[exp.Expr], Plan]
    domains: Domains
    strict: bool = False


def holds_subquery(node: exp.Expr) -> bool:
    return any(isinstance(each, exp.Query | exp.Exists) for each in node.walk())


def filter_by(rows: Rows, conditions: Sequence[exp.Expr], remaining: Sequence[exp.Expr], lowering: Lowering) -> Rows:
    """The rows that fulfil conditions with subqueries in them; `remaining` is what the query asks of them later."""
    probes: list[Probe] = []
    values: list[exp.Expr] = []
    for condition in conditions:
        made = _probe(rows, condition, lowering)
        if made is None:
            values.append(condition)
        else:
            probes.append(made[0])
            values += made[1]
    by_values: dict[tuple[exp.Expr, ...], list[Probe]] = {}
    for each in probes:
        by_values.setdefault(each.tied.left, []).append(each)
    for position, (tied, members) in enumerate(by_values.items()):
        later = [node for known in list(by_values)[position + 1 :] for node in known]
        later += [other for one in probes if one.tied.left != tied for other in one.tied.others]
        rows = probe(rows, members, [*remaining, *values, *later])
    for position, condition in enumerate(values):
        rows = with_values(rows, [condition], [*remaining, *values[position:]], lowering, conditions=True)
        rows.filter(condition)
    return rows


def with_values(
    rows: Rows,
    roots: Sequence[exp.Expr],
    remaining: Sequence[exp.Expr],
    lowering: Lowering,
    *,
    conditions: bool = False,
) -> Rows:
    """The rows with every subquery in the given expressions known as a value; `conditions` are true or not."""
    for root in roots:
        for node in _subqueries(root, rows.known):
            rejecting = conditions and _rejects_null(root, node)
            if isinstance(node, exp.Exists):
                rows = _attach(rows, node, _any(node.this), remaining, lowering, rejecting=False)
            elif isinstance(node, exp.In):
                member = _membership(rows, node, decides=conditions and _only_decides(root, node))
                rows = with_values(rows, [member], [*remaining, member], lowering)
                rows.known[node] = rows.resolve(member)
            elif _is_bare(node.unnest()):
                rows.known[node] = rows.resolve(node.unnest().expressions[0].unalias())
            else:
                rows = _attach(rows, node, node.unnest(), remaining, lowering, rejecting=rejecting)
    return rows


def _subqueries(root: exp.Expr, known: Container[exp.Expr]) -> Iterator[exp.Expr]:
    """The outermost subqueries of an expression that are not known yet, be it as parts of something that is."""
    if root in known:
        return
    if isinstance(root, exp.Exists | exp.Subquery) or (isinstance(root, exp.In) and root.args.get("query")):
        yield root
    elif isinstance(root, exp.Query):
        raise NotIncremental("subquery", "A subquery stands where the planner cannot turn it into a join.")
    else:
        for child in list(root.iter_expressions()):
            yield from _subqueries(child, known)


# --- EXISTS and IN -----------------------------------------------------------------------------------


def _probe(rows: Rows, condition: exp.Expr, lowering: Lowering) -> tuple[Probe, list[exp.Expr]] | None:
    """A condition as a semi or anti join, and what must hold besides; None when it is neither."""
    inner, anti = condition.unnest(), False
    while isinstance(inner, exp.Not):
        inner, anti = inner.this.unnest(), not anti
    if isinstance(inner, exp.Exists):
        query = inner.this.unnest()
        if not is_correlated(query):
            return None
        if _is_movable(query, ()):
            found, tied = _correlation(rows, query, (), lowering)
            if not tied.pairs:
                found, tied = across(rows, found, tied.others)
        else:
            found, tied, _ = _spread(rows, query, lowering)
        return Probe(anti, found, tied), []
    if isinstance(inner, exp.In) and inner.args.get("query") is not None and not _is_one_group(inner.args["query"]):
        return _member(rows, inner, anti, lowering)
    return None


def _member(rows: Rows, node: exp.In, anti: bool, lowering: Lowering) -> tuple[Probe, list[exp.Expr]]:
    query = node.args["query"].unnest()
    tested = list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]
    if any(holds_subquery(each) for each in tested):
        raise NotIncremental("subquery", "A subquery stands left of IN.")
    if _is_movable(query, query.expressions if isinstance(query, exp.Select) else ()):
        candidates = [each.unalias() for each in query.expressions]
        inner, tied = _correlation(rows, query, candidates, lowering)
    elif is_correlated(query):
        inner, tied, candidates = _spread(rows, query, lowering)
    else:
        plan = lowering.query(query)
        visible = [field for field in plan.fields if not field.hidden]
        candidates = [_candidate(field, query) for field in visible]
        inner, tied = over(plan, dict(zip(candidates, visible, strict=True))), Tied()
    pairs = list(zip(tested, candidates, strict=True))
    if any(common_type(type_of(a), type_of(b)) is None for a, b in pairs):
        raise NotIncremental("subquery", "The types around IN differ.")
    if not anti:
        tied.others += [_equal(*pair) for pair in pairs if not tied.add(pair)]
        return Probe(False, inner, tied), []
    nullable = [(a, b) for a, b in pairs if not (_has_value(rows, a) and _has_value(inner, b))]
    if not nullable:
        tied.others += [_equal(*pair) for pair in pairs if not tied.add(pair)]
        return Probe(True, inner, tied), []
    # A row is in doubt, and so not in the answer, when it equals a candidate or cannot be told apart from it.
    if tied.pairs or len(pairs) > 1:
        tied.others += [exp.paren(exp.or_(_equal(a, b), _is_null(a), _is_null(b)), copy=False) for a, b in pairs]
        if not tied.pairs:
            inner, tied = across(rows, inner, tied.others)
        return Probe(True, inner, tied), []
    (pair,) = pairs
    return Probe(True, inner, Tied([pair])), [_safe(inner, pair, rows)]


def _safe(inner: Rows, pair: tuple[exp.Expr, exp.Expr], rows: Rows) -> exp.Expr:
    """NOT IN holds only if there are no candidates, or if neither the value nor any candidate is NULL."""
    tested, candidate = pair
    present = exp.Count(this=candidate.copy())
    every = exp.Count(this=exp.Star())
    groups = group(inner, [], [present, every])
    nothing = _boolean(exp.EQ(this=every.copy(), expression=exp.Literal.number(0)))
    complete = _boolean(exp.EQ(this=every.copy(), expression=present.copy()))
    plan, fields = groups.plan([nothing, complete])
    # Only a change of the two answers matters, not each change of the counts behind them.
    is_empty, is_complete = _made_up("is_empty", tested, BOOLEAN), _made_up("is_complete", tested, BOOLEAN)
    rows.add_input(distinct(plan), {is_empty: fields[nothing], is_complete: fields[complete]})
    clear = exp.and_(is_complete.copy(), exp.Not(this=exp.paren(_is_null(tested))))
    return _boolean(exp.Paren(this=exp.or_(is_empty.copy(), exp.paren(clear))))


def _made_up(name: str, origin: exp.Expr, type_: SqlType) -> exp.Expr:
    """A column that stands for a value which the query does not name; no other origin gives the same."""
    node = exp.column(name, table=origin.sql("spark"), quoted=True)
    node.meta["sql_type"] = type_
    return node


def _boolean(node: exp.Expr) -> exp.Expr:
    node.meta["sql_type"] = BOOLEAN
    return node


def _candidate(field: Field, query: exp.Expr) -> exp.Expr:
    return _made_up(field.name, query, field.type)


def _membership(rows: Rows, node: exp.In, *, decides: bool) -> exp.Expr:
    """IN (SELECT …) inside of an expression, as what EXISTS can tell. Where only the truth decides, NULL is false."""
    query = node.args["query"].unnest()
    tested = list(node.this.expressions) if isinstance(node.this, exp.Tuple) else [node.this]
    if _is_one_group(query) and len(tested) == 1:
        only = exp.Subquery(this=query.copy())
        only.meta["sql_type"] = type_of(query.expressions[0].unalias())
        return _equal(tested[0], only)
    if not _is_plain(query) or query.args.get("distinct") or len(tested) != 1:
        query = enclosed(query, f"candidates of {node.this.sql('spark')}")
    candidates = [each.unalias() for each in query.expressions]

    def exists(condition: exp.Expr | None) -> exp.Expr:
        made = query.copy()
        if condition is not None:
            made = made.where(condition, copy=False)
        return _boolean(exp.Exists(this=made))

    pairs = list(zip(tested, candidates, strict=True))
    found = exists(exp.and_(*(_equal(b, a) for a, b in pairs)))
    if decides:
        return found
    unknown: exp.Expr
    if len(pairs) == 1:
        unknown = exp.or_(exists(_is_null(candidates[0])), exp.paren(exp.and_(_is_null(tested[0]), exists(None))))
    else:
        unknown = exists(exp.and_(*(exp.paren(exp.or_(_equal(b, a), _is_null(a), _is_null(b))) for a, b in pairs)))
    nothing = exp.cast(exp.null(), "boolean")
    cases = [exp.If(this=found, true=exp.true()), exp.If(this=unknown, true=nothing)]
    return _boolean(exp.Case(ifs=cases, default=exp.false()))


def _only_decides(root: exp.Expr, node: exp.Expr) -> bool:
    """Whether the node stands under nothing but AND and OR in a condition."""
    above = node.parent
    while above is not None and above is not root.parent:
        if not isinstance(above, exp.And | exp.Or | exp.Paren):
            return False
        above = above.parent
    return above is root.parent


def _equal(a: exp.Expr, b: exp.Expr) -> exp.Expr:
    return _boolean(exp.EQ(this=a.copy(), expression=b.copy()))


def _is_null(node: exp.Expr) -> exp.Expr:
    return _boolean(exp.Is(this=node.copy(), expression=exp.null()))


def _has_value(rows: Rows, node: exp.Expr) -> bool:
    found = rows.known.get(node.unnest())
    return isinstance(found, exp.Column) and never_null(rows.inputs[int(found.table[1:])], found.name)


# --- correlation -------------------------------------------------------------------------------------


def _is_plain(query: exp.Expr) -> bool:
    """Whether the query only filters and joins, so that its conditions can be moved out of it."""
    if not isinstance(query, exp.Select) or not (query.args.get("from_") or query.args.get("from")):
        return False
    if any(query.args.get(part) for part in ("group", "having", "limit", "offset")):
        return False
    return not any(aggregates(each) for each in query.expressions)


def _is_bare(query: exp.Expr) -> bool:
    """Whether the query is a value of the row around it and nothing else, as (SELECT tons * 2)."""
    return isinstance(query, exp.Select) and not any(
        value for part, value in query.args.items() if part != "expressions"
    )


def _is_one_group(query: exp.Expr) -> bool:
    """Whether the query depends on the rows around it, and gives one row of aggregates for each."""
    inner = query.unnest()
    if not isinstance(inner, exp.Select) or not is_correlated(inner):
        return False
    if any(inner.args.get(part) for part in ("group", "having", "limit", "offset", "distinct")):
        return False
    return any(aggregates(each) for each in inner.expressions)


def _is_movable(query: exp.Expr, wanted: Sequence[exp.Expr]) -> bool:
    """Whether all that a query reads of the rows around it stands in conditions that can be moved out of it."""
    return isinstance(query, exp.Select) and _is_plain(query) and _moves_out(query, wanted)


def _moves_out(query: exp.Select, wanted: Sequence[exp.Expr]) -> bool:
    if windows_in(query.expressions):
        return False
    where = query.args.get("where")
    conditions = conjuncts(where.this) if where is not None else []
    outer = _outer(query)
    if any(outer(each) and holds_subquery(each) for each in conditions):
        return False
    sources = [query.args["from_"], *(query.args.get("joins") or ())]
    return not any(outer(each) for each in (*wanted, *sources))


def _outer(query: exp.Expr) -> Callable[[exp.Expr], bool]:
    """Tells of a part of the query whether it reads rows around the query."""
    inside = _defined(query)
    return lambda node: any(column.table and column.table not in inside for column in node.find_all(exp.Column))


def _spread(rows: Rows, query: exp.Expr, lowering: Lowering) -> tuple[Rows, Tied, list[exp.Expr]]:
    """What a subquery gives for all values that it reads of the rows, how it is tied to them, and its columns."""
    if not isinstance(query, exp.Query):
        raise NotIncremental("shape", f"{type(query).__name__} has no rule.")
    found = spread(rows, query, lowering.domains, lowering.dependent)
    candidates = [_candidate(field, query) for field in found.shown]
    return over(found.plan, found.known(candidates)), found.tied, candidates


def _defined(query: exp.Expr) -> set[str]:
    kinds = (exp.Table, exp.Subquery, exp.Lateral, exp.Values)
    return {node.alias_or_name for node in query.find_all(*kinds) if node.alias_or_name}


def is_correlated(query: exp.Expr) -> bool:
    return _outer(query)(query)


def _correlation(rows: Rows, query: exp.Select, wanted: Sequence[exp.Expr], lowering: Lowering) -> tuple[Rows, Tied]:
    """The rows of a plain subquery without its correlated conditions, and those, tied to the outer rows."""
    is_outer = _outer(query)
    where = query.args.get("where")
    conditions = conjuncts(where.this) if where is not None else []
    outer = [each for each in conditions if is_outer(each)]
    own = [each for each in conditions if not is_outer(each)]
    inner = lowering.block(query, own, [*outer, *wanted])
    tied = tie(outer, rows, inner)
    for each in tied.others:
        if not all(rows.covers(column) or inner.covers(column) for column in each.find_all(exp.Column)):
            raise NotIncremental("subquery", "A subquery refers to rows further out.")
    return inner, tied


# --- values ------------------------------------------------------------------------------------------


def _any(query: exp.Expr) -> exp.Expr:
    """A query for whether another one gives any rows."""
    inner = query.unnest()
    count = exp.Count(this=exp.Star())
    count.meta["sql_type"] = BIGINT
    count.meta["aggregate"] = True
    shown = exp.alias_(_boolean(exp.GT(this=count, expression=exp.Literal.number(0))), "found", quoted=True)
    if _is_plain(inner):
        made = inner.copy()
        made.set("expressions", [shown])
        for part in ("distinct", "order"):
            made.set(part, None)
        return made
    source = exp.Subquery(this=inner.copy(), alias=exp.TableAlias(this=exp.to_identifier("counted", quoted=True)))
    return exp.Select(expressions=[shown]).from_(source, copy=False)


def _attach(
    rows: Rows, node: exp.Expr, query: exp.Expr, remaining: Sequence[exp.Expr], lowering: Lowering, *, rejecting: bool
) -> Rows:
    """The rows with the value of a subquery known as `node`."""
    groups, value, tied = _value(rows, query, lowering)
    if not tied.pairs:
        plan, fields = groups.plan([value])
        rows.add_input(distinct(plan), {node: fields[value]})
        return rows
    if rejecting and _is_null_without_rows(value):
        plan, fields = groups.plan([*tied.right, value])
        index = rows.add_input(plan, {node: fields[value]})
        for pair in tied.pairs:
            other = input_column(index, fields[pair[1]].name)
            rows.conjuncts.append(tied.equal(pair, rows.resolve(pair[0]), other))
        return rows
    calls = [call for call in groups.used_by([value]) if call not in tied.right]
    present = _boolean(exp.true())
    doubtful = any(not is_aggregate(call) for call in calls)  # around aggregates no value may mean something
    plan, fields = groups.plan([*tied.right, *calls, *([present] if doubtful else ())])
    stand_in = {call: _made_up(f"value{number}", query, type_of(call)) for number, call in enumerate(calls)}
    if doubtful:
        stand_in[present] = _made_up("is_there", query, BOOLEAN)
    right = over(plan, {node: fields[node] for node in tied.right})
    right.known |= {made: input_column(0, fields[call].name) for call, made in stand_in.items()}
    on = exp.and_(*(tied.equal(pair, *pair) for pair in tied.pairs))
    joined = outer_join("LEFT", rows, right, on, [*remaining, *tied.left, *stand_in.values()])
    local = Rows(joined.inputs, [], {})
    found = {call: joined.known.pop(made) for call, made in stand_in.items()}
    for call in calls:
        nothing = _over_nothing(call)
        if is_aggregate(call):
            counts = isinstance(nothing.this, exp.Literal)
            local.known[call] = exp.Coalesce(this=found[call], expressions=[nothing]) if counts else found[call]
        else:
            there = exp.If(this=found[present].copy(), true=found[call])
            local.known[call] = exp.Case(ifs=[there], default=nothing)
    for mine, own in tied.pairs:  # the subquery's own columns are nobody else's
        local.known[own] = joined.resolve(mine)
        del joined.known[own]
    joined.known[node] = local.resolve(value)
    return joined


# Aggregates that are 0 where there are no rows; all others are NULL there.
_COUNTS = frozenset(("approx_count_distinct", "regr_count", "count_if"))
# What aggregates that list their rows are made of: NULL of nothing, whatever the types on the way.
_OF_LISTS = frozenset(("transform", "filter", "aggregate", "array_sort", "sort_array", "element_at", "size"))


def _names_a_value(expr: exp.Expr) -> bool:
    """Whether a lambda over an array of one element only gives that element a name."""
    first = expr.expressions[0] if expr.expressions else None
    return isinstance(first, exp.Array) or (isinstance(first, exp.Anonymous) and str(first.this).lower() == "array")


def _over_nothing(expr: exp.Expr) -> exp.Expr:
    """What an expression with aggregates is where there are no rows."""
    name = str(expr.this).lower() if isinstance(expr, exp.Anonymous) else ""
    if isinstance(expr, exp.Count | exp.ApproxDistinct) or name in _COUNTS:
        return exp.cast(exp.Literal.number(0), "bigint")
    if is_aggregate(expr) or (name in _OF_LISTS and not _names_a_value(expr)):
        known = expr.meta.get("sql_type")
        return exp.cast(exp.null(), known.spark, dialect="spark") if isinstance(known, SqlType) else exp.null()
    made = expr.copy()
    for child in list(made.iter_expressions()):
        if aggregates(child):
            child.replace(_over_nothing(child))
    return made


def _value(rows: Rows, query: exp.Expr, lowering: Lowering) -> tuple[Rows, exp.Expr, Tied]:
    """The groups that hold the value of a subquery, the value as an expression over them, and how they are tied."""
    if isinstance(query, exp.Select) and not any(
        query.args.get(part) for part in ("group", "having", "limit", "offset", "distinct")
    ):
        shown = query.expressions[0].unalias()
        calls = aggregates(shown)
        from_ = query.args.get("from_") or query.args.get("from")
        if from_ is not None and (calls or is_correlated(query)):
            if _moves_out(query, [shown]):
                value = shown if calls else _single(shown, lowering)
                inner, tied = _correlation(rows, query, [value], lowering)
                if tied.others:
                    inner, tied = across(rows, inner, tied.conditions)
                return group(inner, tied.right, [value]), value, tied
            if calls and is_correlated(query):
                return _aggregated(rows, query, lowering)
    if is_correlated(query):
        inner, tied, (candidate,) = _spread(rows, query, lowering)
        value = _single(candidate, lowering)
        return group(inner, tied.right, [value]), value, tied
    plan = lowering.query(query)
    field = next(each for each in plan.fields if not each.hidden)
    candidate = _candidate(field, query)
    value = _single(candidate, lowering)
    return group(over(plan, {candidate: field}), [], [value]), value, Tied()


def _aggregated(rows: Rows, query: exp.Select, lowering: Lowering) -> tuple[Rows, exp.Expr, Tied]:
    """The same for aggregates without GROUP BY over rows that depend on the outer ones anywhere."""
    asked, tied = opened(rows, query, lowering.domains)
    if not tied.pairs:
        raise NotIncremental("subquery", "A subquery refers to rows further out.")
    assert isinstance(asked, exp.Select)
    made = with_domain(asked, tied.right)
    value = made.expressions[0].unalias()
    where = made.args.get("where")
    inside = [*tied.right, *aggregates(value)]
    inner = lowering.block(made, conjuncts(where.this) if where is not None else [], inside)
    inner = with_values(inner, [each for each in inside if holds_subquery(each)], inside, lowering)
    return group(inner, tied.right, [value]), value, tied


def _single(value: exp.Expr, lowering: Lowering) -> exp.Expr:
    """The value of the only row there is; NULL where there are none, and where there are several, which is an error."""
    type_ = type_of(value)
    least = exp.Min(this=value.copy())
    least.meta["sql_type"] = type_
    every = exp.Count(this=exp.Star())
    every.meta["sql_type"] = BIGINT
    single = exp.LTE(this=every, expression=exp.Literal.number(1))
    made = exp.Case(
        ifs=[exp.If(this=single, true=least)], default=raising(SEVERAL_ROWS, type_) if lowering.strict else None
    )
    made.meta["sql_type"] = type_
    return made


# What holds a subquery that may have any number of rows.
_OF_ROWS = (
    exp.From,
    exp.Join,
    exp.Lateral,
    exp.In,
    exp.Exists,
    exp.Any,
    exp.All,
    exp.SetOperation,
    exp.CTE,
    exp.Subquery,
)


def with_single_values(query: exp.Query) -> exp.Query:
    """The query with NULL for the value of a subquery that has several rows, so that it cannot fail on them.

    A correlated one is left as it is.
    """
    query = query.copy()
    for node in list(query.find_all(exp.Subquery)):
        inner = node.this
        if isinstance(node.parent, _OF_ROWS) or not isinstance(inner, exp.Query) or is_correlated(inner):
            continue
        name = exp.to_identifier(inner.named_selects[0], quoted=True)
        several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
        value = exp.Anonymous(this="any_value", expressions=[exp.column(name, table="single")])
        only = exp.Case(ifs=[exp.If(this=exp.Not(this=exp.paren(several)), true=value)])
        node.set("this", exp.select(exp.alias_(only, name.copy())).from_(inner.subquery("single")))
    return query


_STRICT = (exp.Paren, exp.Cast, exp.TryCast, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div)
_COMPARED = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def _is_strict(node: exp.Expr) -> bool:
    """Whether the node is NULL when any of its operands is."""
    return isinstance(node, _STRICT) or (isinstance(node, exp.Anonymous) and str(node.this).lower().startswith("try_"))


def _rejects_null(root: exp.Expr, node: exp.Expr) -> bool:
    """Whether a condition cannot hold when the subquery in it is NULL."""
    inner = root.unnest()
    if not isinstance(inner, _COMPARED):
        return False
    above = node.parent
    while above is not None and above is not inner:
        if not _is_strict(above):
            return False
        above = above.parent
    return above is inner


def _is_null_without_rows(value: exp.Expr) -> bool:
    """Whether the value of an empty group is NULL."""
    if isinstance(value, (exp.Sum, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr)):
        return True
    if isinstance(value, exp.Nullif):
        return _is_null_without_rows(value.this)
    if isinstance(value, exp.Coalesce):
        return all(_is_null_without_rows(child) for child in value.iter_expressions())
    return _is_strict(value) and any(_is_null_without_rows(child) for child in value.iter_expressions())
