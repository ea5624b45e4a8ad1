"""From a bound query to a plan.

Recognises the shapes that have a change rule and lowers them to the algebra; anything else ends as one
Recompute node for the whole query, with the reason. Nothing is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from seiche.model import RelationId, RelationSchema
from seiche.plan.algebra import (
    Aggregate,
    Call,
    Field,
    Function,
    Item,
    Plan,
    Reason,
    Recompute,
    Scan,
    input_column,
    make_aggregate,
    make_select,
    make_union,
    own_column,
    rewrite_columns,
)
from seiche.sql.bind import BoundQuery
from seiche.types import BIGINT, SMALLINT, SqlType


class _NotIncremental(Exception):
    """Raised inside lowering when a construct has no change rule."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = Reason(code, sentence)


Schemas = Mapping[RelationId, RelationSchema]

_CORE: dict[type[exp.Expr], Function] = {
    exp.Sum: Function.SUM,
    exp.Min: Function.MIN,
    exp.Max: Function.MAX,
    exp.LogicalAnd: Function.BOOL_AND,
    exp.LogicalOr: Function.BOOL_OR,
}


def lower(query: BoundQuery, schemas: Schemas) -> Plan:
    """The plan of a bound query; its visible fields are named and ordered as the query's columns."""
    try:
        if query.uses_now:
            raise _NotIncremental("time", "The query reads the clock with now().")
        plan = _query(query.ast, schemas)
    except _NotIncremental as stop:
        return Recompute(
            query.ast,
            tuple(sorted(RelationId(each) for each in query.relations)),
            tuple(Field(column.alias, column.type) for column in query.columns),
            stop.reason,
            time_driven=query.uses_now,
        )
    if isinstance(plan, Scan):
        plan = make_select([plan], [], [Item(f, input_column(0, f.name)) for f in plan.fields if not f.hidden])
    return plan


def _query(ast: exp.Expr, schemas: Schemas) -> Plan:
    match ast:
        case exp.Subquery():
            return _query(ast.this, schemas)
        case exp.Union():
            return _union(ast, schemas)
        case exp.SetOperation():
            raise _NotIncremental("set_operation", f"{type(ast).__name__.upper()} has no change rule yet.")
        case exp.Select():
            return _select(ast, schemas)
        case _:
            raise _NotIncremental("shape", f"{type(ast).__name__} has no change rule yet.")


def _union(ast: exp.Union, schemas: Schemas) -> Plan:
    if ast.args.get("with_") or ast.args.get("with"):
        raise _NotIncremental("with", "The query keeps a WITH clause.")
    _no_limit(ast)
    branches: list[Plan] = []
    for side in (ast.left, ast.right):
        inner = side.unnest() if isinstance(side, exp.Subquery) else side
        branches.append(_query(inner, schemas))
    union = make_union(branches)
    if ast.args.get("distinct"):
        return _distinct(union)
    return union


def _distinct(plan: Plan) -> Aggregate:
    visible = [field for field in plan.fields if not field.hidden]
    return make_aggregate(plan, visible, [], [Item(field, own_column(field.name)) for field in visible])


def _no_limit(ast: exp.Query) -> None:
    if ast.args.get("limit") or ast.args.get("offset"):
        raise _NotIncremental("limit", "LIMIT and OFFSET have no change rule yet.")


_REFUSED_CLAUSES = {
    "laterals": ("lateral", "LATERAL has no change rule yet."),
    "windows": ("window", "Window functions have no change rule yet."),
    "qualify": ("window", "QUALIFY has no change rule yet."),
    "with_": ("with", "The query keeps a WITH clause."),
    "with": ("with", "The query keeps a WITH clause."),
    "pivots": ("pivot", "PIVOT has no change rule."),
}


def _select(ast: exp.Select, schemas: Schemas) -> Plan:
    _no_limit(ast)
    for clause, (code, sentence) in _REFUSED_CLAUSES.items():
        if ast.args.get(clause):
            raise _NotIncremental(code, sentence)
    distinct = ast.args.get("distinct")
    inputs, places, conjuncts = _sources(ast, schemas)
    where = ast.args.get("where")
    if where is not None:
        conjuncts.extend(_split(where.this))
    for root in (*ast.expressions, *conjuncts, *_having(ast)):
        _check_expression(root)

    def place(column: exp.Column) -> exp.Expr:
        return _typed(input_column(places[column.table], column.name), column)

    bound = [rewrite_columns(each, place) for each in conjuncts]
    if ast.args.get("group") is not None or any(_aggregates(root) for root in (*ast.expressions, *_having(ast))):
        plan = _aggregate(ast, inputs, bound, place)
    else:
        items = [Item(_output(each), rewrite_columns(each.unalias(), place)) for each in ast.expressions]
        plan = make_select(inputs, bound, items)
    return _distinct(plan) if distinct is not None else plan


def _having(ast: exp.Select) -> list[exp.Expr]:
    having = ast.args.get("having")
    return [having.this] if having is not None else []


def _sources(ast: exp.Select, schemas: Schemas) -> tuple[list[Plan], dict[str, int], list[exp.Expr]]:
    """The inputs of a FROM clause, where each alias is found among them, and the join conditions."""
    start = ast.args.get("from_") or ast.args.get("from")
    if start is None:
        raise _NotIncremental("constant", "The query has no FROM clause.")
    sources = [start.this]
    conditions: list[exp.Expr] = []
    for join in ast.args.get("joins") or ():
        if join.side or join.kind not in ("", "INNER", "CROSS") or join.method:
            name = " ".join(part for part in (join.method, join.side, join.kind) if part).upper() or "JOIN"
            raise _NotIncremental("outer_join", f"{name} JOIN has no change rule yet.")
        if join.args.get("using"):
            raise _NotIncremental("using", "USING was not expanded.")
        sources.append(join.this)
        if join.args.get("on") is not None:
            conditions.extend(_split(join.args["on"]))
    inputs: list[Plan] = []
    places: dict[str, int] = {}
    for source in sources:
        places[source.alias_or_name] = len(inputs)
        match source:
            case exp.Table() if isinstance(source.this, exp.Identifier):
                relation = RelationId(int(source.name.removeprefix("r")))
                if source.args.get("joins") or source.args.get("pivots") or source.args.get("sample"):
                    raise _NotIncremental("shape", "The FROM clause has an unusual shape.")
                inputs.append(Scan(relation, schemas[relation]))
            case exp.Subquery():
                columns = source.args["alias"].args.get("columns") if source.args.get("alias") else None
                if columns:
                    raise _NotIncremental("shape", "A derived table renames its columns.")
                inputs.append(_query(source.this, schemas))
            case _:
                raise _NotIncremental("table_function", f"{source.key.upper()} in FROM has no change rule yet.")
    return inputs, places, conditions


def _split(condition: exp.Expr) -> list[exp.Expr]:
    """The conjuncts of a condition."""
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        return _split(inner.left) + _split(inner.right)
    return [inner]


def _check_expression(root: exp.Expr) -> None:
    for node in root.walk():
        if node.meta.get("distinct_on"):
            raise _NotIncremental("distinct_on", "DISTINCT ON has no change rule yet.")
        if isinstance(node, exp.Window):
            raise _NotIncremental("window", "Window functions have no change rule yet.")
        if isinstance(node, (exp.Subquery, exp.Select, exp.Exists)) or (
            isinstance(node, exp.In) and node.args.get("query") is not None
        ):
            raise _NotIncremental("subquery", "Subqueries in expressions have no change rule yet.")
        if isinstance(node, (exp.Explode, exp.Posexplode, exp.Inline, exp.Unnest)) or (
            isinstance(node, exp.Anonymous) and str(node.this).lower() in ("explode", "posexplode", "inline")
        ):
            raise _NotIncremental("table_function", "Set-returning functions have no change rule yet.")


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.AggFunc):
        return True
    return isinstance(node, (exp.Anonymous, exp.Filter, exp.WithinGroup)) and bool(node.meta.get("aggregate"))


def _aggregates(root: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregate calls in an expression."""
    if _is_aggregate(root):
        return [root]
    return [found for child in root.iter_expressions() for found in _aggregates(child)]


def _aggregate(
    ast: exp.Select,
    inputs: list[Plan],
    conjuncts: list[exp.Expr],
    place: Callable[[exp.Column], exp.Expr],
) -> Plan:
    group = ast.args.get("group")
    group_exprs: list[exp.Expr] = []
    if group is not None:
        kinds = (exp.GroupingSets, exp.Rollup, exp.Cube)
        clauses = ("grouping_sets", "rollup", "cube", "totals", "all")
        if any(isinstance(each, kinds) for each in group.expressions) or any(group.args.get(each) for each in clauses):
            raise _NotIncremental("grouping_sets", "GROUPING SETS, ROLLUP and CUBE have no change rule yet.")
        group_exprs = [each.unnest() for each in group.expressions]
        for each in group_exprs:
            _check_expression(each)

    inner_items: list[Item] = []
    key_fields: list[Field] = []
    by_group: dict[exp.Expr, Field] = {}
    for each in group_exprs:
        if each in by_group:
            continue
        field = Field(f"g{len(key_fields)}", _type_of(each))
        by_group[each] = field
        key_fields.append(field)
        inner_items.append(Item(field, rewrite_columns(each, place)))
    total = not key_fields
    if total:
        field = Field("g0", SMALLINT)
        key_fields.append(field)
        inner_items.append(Item(field, exp.cast(exp.Literal.number(0), "smallint")))

    calls: list[Call] = []
    by_call: dict[exp.Expr, Call] = {}
    arguments: dict[exp.Expr, Field] = {}

    def call_of(node: exp.Expr) -> Call:
        if node not in by_call:
            function, argument = _core_call(node)
            source = None
            if argument is not None:
                if argument not in arguments:
                    source = Field(f"a{len(arguments)}", _type_of(argument))
                    arguments[argument] = source
                    inner_items.append(Item(source, rewrite_columns(argument, place)))
                source = arguments[argument]
            call = Call(Field(f"c{len(calls)}", _type_of(node)), function, source)
            calls.append(call)
            by_call[node] = call
        return by_call[node]

    def over_groups(node: exp.Expr) -> exp.Expr:
        """The expression with group keys and aggregate calls replaced by their fields."""
        if node in by_group:
            return _typed(own_column(by_group[node].name), node)
        if _is_aggregate(node):
            return _typed(own_column(call_of(node).field.name), node)
        if isinstance(node, exp.Column):
            raise _NotIncremental("grouping", f"Column {node.sql()} is neither grouped nor aggregated.")
        copy = node.copy()
        for child in list(copy.iter_expressions()):
            replaced = over_groups(child)
            if replaced is not child:
                child.replace(replaced)
        return copy

    outputs = [(_output(each), over_groups(each.unalias())) for each in ast.expressions]
    having = [over_groups(each) for root in _having(ast) for each in _split(root)]
    source = make_select(inputs, conjuncts, inner_items)
    if not having:
        items = [Item(field, expr) for field, expr in outputs]
        return make_aggregate(source, key_fields, calls, items, total=total)
    # The groups are kept whether or not they pass HAVING: a group that fails today may pass tomorrow.
    plain = [*key_fields, *(call.field for call in calls)]
    groups = make_aggregate(source, key_fields, calls, [Item(f, own_column(f.name)) for f in plain], total=total)

    def first_input(column: exp.Column) -> exp.Expr:
        return _typed(input_column(0, column.name), column)

    return make_select(
        [groups],
        [rewrite_columns(each, first_input) for each in having],
        [Item(field, rewrite_columns(expr, first_input)) for field, expr in outputs],
    )


def _core_call(node: exp.Expr) -> tuple[Function, exp.Expr | None]:
    if isinstance(node, exp.Count):
        argument = node.this
        if isinstance(argument, exp.Star) or argument is None:
            return Function.COUNT_ROWS, None
        if isinstance(argument, exp.Distinct) or node.expressions:
            raise _NotIncremental("distinct_aggregate", "DISTINCT aggregates have no change rule yet.")
        return Function.COUNT, argument
    function = _CORE.get(type(node))
    if function is None:
        raise _NotIncremental("aggregate", f"The aggregate {node.sql('spark')} has no change rule yet.")
    argument = node.this
    if isinstance(argument, exp.Distinct):
        if function in (Function.SUM,):
            raise _NotIncremental("distinct_aggregate", "DISTINCT aggregates have no change rule yet.")
        argument = argument.expressions[0]  # min, max, bool_and and bool_or do not care
    if isinstance(argument, (exp.Order, exp.HavingMax)):
        raise _NotIncremental("ordered_aggregate", "Ordered aggregates have no change rule yet.")
    return function, argument


def _output(projection: exp.Expr) -> Field:
    return Field(projection.alias_or_name, _type_of(projection))


def _type_of(node: exp.Expr) -> SqlType:
    """The type that binding found. Plain wrappers take that of what they hold."""
    current: exp.Expr | None = node
    while current is not None:
        found = current.meta.get("sql_type")
        if isinstance(found, SqlType):
            return found
        current = current.this if isinstance(current, (exp.Alias, exp.Paren)) else None
    if isinstance(node, exp.Count):
        return BIGINT
    raise _NotIncremental("untyped", f"The type of {node.sql('spark')} is not known.")


def _typed(new: exp.Expr, old: exp.Expr) -> exp.Expr:
    if "sql_type" in old.meta:
        new.meta["sql_type"] = old.meta["sql_type"]
    return new
