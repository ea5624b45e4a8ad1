"""GROUP BY and aggregate calls.

count, sum, min, max, bool_and, bool_or     an Aggregate, whose groups are maintained from their state
count(DISTINCT x), sum(DISTINCT x)          an Aggregate over the distinct pairs of group and x; joined by group with
                                            what else is asked of the groups
any other aggregate                         a Keyed: the groups that changed are evaluated anew
GROUPING SETS, ROLLUP, CUBE                 one query for each set, united
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from sqlglot import exp

from seiche.plan.algebra import (
    Aggregate,
    Call,
    Field,
    Function,
    Item,
    Plan,
    Reason,
    input_column,
    make_aggregate,
    make_select,
    make_union,
    own_column,
)
from seiche.plan.grouped_join import grouped_first
from seiche.plan.keyed import Body, keyed, table, tidy
from seiche.plan.rows import Rows, over, type_of, unique
from seiche.sql.grouping_sets import in_set, sets_of
from seiche.types import BIGINT, BOOLEAN, SMALLINT, Kind, SqlType, numeric

_CORE: dict[type[exp.Expr], Function] = {
    exp.Sum: Function.SUM,
    exp.Min: Function.MIN,
    exp.Max: Function.MAX,
    exp.LogicalAnd: Function.BOOL_AND,
    exp.LogicalOr: Function.BOOL_OR,
}


def is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Window):
        return False
    if isinstance(node, exp.AggFunc):
        return not isinstance(node.parent, exp.Window | exp.IgnoreNulls)
    return isinstance(node, (exp.Anonymous, exp.Filter, exp.WithinGroup, exp.Cast)) and bool(node.meta.get("aggregate"))


def aggregates(root: exp.Expr) -> list[exp.Expr]:
    """The outermost aggregate calls in an expression, without those of its subqueries."""
    if is_aggregate(root):
        return [root]
    if isinstance(root, exp.Query):
        return []
    if isinstance(root, exp.Window):  # what stands in a window's call is no aggregate, what is inside of that may be
        inner = [each for child in root.this.iter_expressions() for each in aggregates(child)]
        rest = [child for child in root.iter_expressions() if child is not root.this]
        return inner + [each for child in rest for each in aggregates(child)]
    return [found for child in root.iter_expressions() for found in aggregates(child)]


def group(rows: Rows, keys: Sequence[exp.Expr], roots: Sequence[exp.Expr]) -> Rows:
    """The groups of the rows; afterwards the keys and the aggregate calls in `roots` are known. No keys: one group."""
    keys = list(dict.fromkeys(keys))
    calls = list(dict.fromkeys(call for root in roots for call in _units(root)))
    kinds = {call: _kind(call) for call in calls}
    if any(kind == "other" for kind in kinds.values()):
        return _evaluated(rows, keys, calls)
    arguments = list(dict.fromkeys(_distinct_argument(call) for call in calls if kinds[call] == "distinct"))
    plain = [call for call in calls if kinds[call] == "core"]
    parts: list[tuple[Plan, dict[exp.Expr, Field]]] = []
    if plain or not arguments:
        parts.append(_groups(rows, keys, {call: call for call in plain}))
    if arguments:
        calls = [call for call in calls if kinds[call] == "distinct"]
        parts.append(_distinct_groups(rows, keys, arguments, calls))
    found = Rows()
    for number, (plan, known) in enumerate(parts):
        found.add_input(plan, known)
        if number:
            for each in range(max(len(keys), 1)):
                same = exp.NullSafeEQ(this=input_column(0, f"g{each}"), expression=input_column(number, f"g{each}"))
                found.conjuncts.append(same)
    return found


def _units(root: exp.Expr) -> list[exp.Expr]:
    """The aggregate calls of an expression. Around one that Spark evaluates it is the whole expression: what such a
    call gives on the way, an array of structs to be sorted for instance, is no type that could be stored."""
    found = aggregates(root)
    if all(_kind(each) != "other" for each in found) or any(isinstance(each, exp.Window) for each in root.walk()):
        return found
    return [root]


def _kind(call: exp.Expr) -> str:
    argument = call.this if is_aggregate(call) else None
    if isinstance(call, exp.Count):
        if isinstance(argument, exp.Distinct):
            return "distinct" if len(argument.expressions) == 1 and not call.expressions else "other"
        return "other" if call.expressions else "core"
    if type(call) not in _CORE or isinstance(argument, (exp.Order, exp.HavingMax)):
        return "other"
    return "distinct" if isinstance(argument, exp.Distinct) and isinstance(call, exp.Sum) else "core"


def _distinct_argument(call: exp.Expr) -> exp.Expr:
    found: exp.Expr = call.this.expressions[0]
    return found


def _groups(
    rows: Rows, keys: Sequence[exp.Expr], calls: dict[exp.Expr, exp.Expr]
) -> tuple[Plan, dict[exp.Expr, Field]]:
    """An Aggregate that gives its keys and calls as they are; `calls` are the calls to make for those of the query."""
    inner_items: list[Item] = []
    key_fields: list[Field] = []
    known: dict[exp.Expr, Field] = {}
    for each in keys:
        known[each] = Field(f"g{len(key_fields)}", type_of(each))
        key_fields.append(known[each])
        inner_items.append(Item(known[each], rows.resolve(each)))
    total = not key_fields
    if total:
        key_fields.append(Field("g0", SMALLINT))
        inner_items.append(Item(key_fields[0], exp.cast(exp.Literal.number(0), "smallint")))
    arguments: dict[exp.Expr, Field] = {}
    made: list[Call] = []
    for asked, call in calls.items():
        function, argument = _core_call(call)
        if argument is not None and argument not in arguments:
            arguments[argument] = Field(f"a{len(arguments)}", type_of(argument))
            inner_items.append(Item(arguments[argument], rows.resolve(argument)))
        known[asked] = Field(f"c{len(made)}", type_of(asked))
        made.append(Call(known[asked], function, arguments[argument] if argument is not None else None))
    source = tidy(make_select(rows.inputs, rows.conjuncts, inner_items))
    joined = grouped_first(source, key_fields, made) if not total else None
    if joined is not None:
        return joined, known
    plain = [*key_fields, *(call.field for call in made)]
    items = [Item(each, own_column(each.name)) for each in plain]
    return make_aggregate(source, key_fields, made, items, total=total), known


def _core_call(call: exp.Expr) -> tuple[Function, exp.Expr | None]:
    argument = call.this
    if isinstance(call, exp.Count):
        if isinstance(argument, exp.Star) or argument is None:
            return Function.COUNT_ROWS, None
        return Function.COUNT, argument
    if isinstance(argument, exp.Distinct):
        argument = argument.expressions[0]  # min, max, bool_and and bool_or do not care
    if isinstance(call, exp.Sum):
        argument = summed(argument)
    return _CORE[type(call)], argument


def summed(argument: exp.Expr) -> exp.Expr:
    """What a sum adds up. A bigint that was made wide for the sum's sake stays one: it is widened when it is summed."""
    if isinstance(argument, exp.Cast) and type_of(argument) == numeric(38, 0):
        inner: exp.Expr = argument.this
        known = inner.meta.get("sql_type")
        return inner if isinstance(known, SqlType) and known.kind is Kind.BIGINT else argument
    return argument


def _distinct_groups(
    rows: Rows, keys: Sequence[exp.Expr], arguments: Sequence[exp.Expr], calls: Sequence[exp.Expr]
) -> tuple[Plan, dict[exp.Expr, Field]]:
    """Groups over the distinct pairs of key and argument. Of several arguments each has rows of its own, told apart by
    its number, so that one relation holds all of them. One that is another one under a condition has no rows: those of
    the other tell whether any row of theirs has met it."""
    shared = {argument: _under_condition(argument, arguments) for argument in arguments}
    own = [argument for argument in arguments if shared[argument] is None]
    asked = {
        each: [condition for found in shared.values() if found for base, condition in [found] if base == each]
        for each in own
    }
    types = list(dict.fromkeys(type_of(argument) for argument in own))
    number = _made_up("argument", SMALLINT)
    values = {type_: _made_up(f"value{place}", type_) for place, type_ in enumerate(types)}
    met = [_made_up(f"met{place}", BOOLEAN) for place in range(max(map(len, asked.values())))]
    several = len(own) > 1
    pair = [*keys, *([number] if several else []), *values.values()]
    branches, fields = [], dict[exp.Expr, Field]()
    for place, argument in enumerate(own):
        known = dict(rows.known)
        known[number] = exp.cast(exp.Literal.number(place), "smallint")
        for type_, node in values.items():
            mine = type_ == type_of(argument)
            known[node] = rows.resolve(argument) if mine else exp.cast(exp.null(), type_.spark, dialect="spark")
        for node, condition in zip_longest(met, asked[argument]):
            known[node] = exp.cast(exp.null(), "boolean") if condition is None else rows.resolve(_where_true(condition))
        plan, fields = Rows(rows.inputs, rows.conjuncts, known).plan([*pair, *met])
        branches.append(plan)
    pairs, found = _pairs(make_union(branches) if several else branches[0], pair, met, fields)
    inner = over(pairs, found)
    without = {}
    for call in calls:
        argument = _distinct_argument(call)
        base, condition = shared[argument] or (argument, None)
        tests: list[exp.Expr] = []
        if several:
            tests.append(exp.EQ(this=number.copy(), expression=exp.Literal.number(own.index(base))))
        if condition is not None:
            tests.append(met[asked[base].index(condition)].copy())
        value = values[type_of(base)]
        plain = call.copy()
        plain.set("this", _if_true(exp.and_(*tests, copy=False), value) if tests else value.copy())
        without[call] = plain
    return _groups(inner, keys, without)


def _under_condition(argument: exp.Expr, arguments: Sequence[exp.Expr]) -> tuple[exp.Expr, exp.Expr] | None:
    """Another one of the arguments and the condition under which this one is that, and else NULL."""
    inner = argument.unnest()
    if (
        not isinstance(inner, exp.Case)
        or inner.this is not None
        or inner.args.get("default")
        or len(inner.args["ifs"]) > 1
    ):
        return None
    (branch,) = inner.args["ifs"]
    base = next((each for each in arguments if each == branch.args["true"]), None)
    if base is None or _under_condition(base, arguments) is not None:
        return None
    return base, branch.this


def _where_true(condition: exp.Expr) -> exp.Expr:
    true = exp.true()
    true.meta["sql_type"] = BOOLEAN
    return _if_true(condition, true)


def _if_true(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    made = exp.Case(ifs=[exp.If(this=condition.copy(), true=value.copy())])
    made.meta["sql_type"] = value.meta["sql_type"]
    return made


def _pairs(
    plan: Plan, pair: Sequence[exp.Expr], met: Sequence[exp.Expr], fields: Mapping[exp.Expr, Field]
) -> tuple[Plan, dict[exp.Expr, Field]]:
    """The distinct pairs, with which of the conditions some of their rows have met."""
    if not met:
        return distinct(plan), dict(fields)
    taken = {field.name for field in fields.values()}
    keys = list(dict.fromkeys(fields[each] for each in pair))
    known = {each: fields[each] for each in pair}
    calls, items = [], [Item(field, own_column(field.name)) for field in keys]
    for each in met:
        counted = Field(unique("counted", taken), BIGINT)
        calls.append(Call(counted, Function.COUNT, fields[each]))
        known[each] = Field(fields[each].name, BOOLEAN)
        more = exp.GT(this=own_column(counted.name), expression=exp.Literal.number(0))
        more.meta["sql_type"] = BOOLEAN
        items.append(Item(known[each], more))
    return make_aggregate(plan, keys, calls, items), known


def _made_up(name: str, type_: SqlType) -> exp.Expr:
    node = exp.column(name, table="distinct pairs", quoted=True)
    node.meta["sql_type"] = type_
    return node


def distinct(plan: Plan) -> Aggregate:
    visible = [field for field in plan.fields if not field.hidden]
    return make_aggregate(plan, visible, [], [Item(field, own_column(field.name)) for field in visible])


def _evaluated(rows: Rows, keys: Sequence[exp.Expr], calls: Sequence[exp.Expr]) -> Rows:
    """Groups whose calls Spark evaluates: those that changed, from all of their rows."""
    source, fields = rows.plan([*keys, *rows.used_by(calls)])
    inside = over(source, fields)
    body = Body()
    known: dict[exp.Expr, Field] = {}
    taken: set[str] = set()
    for number, each in enumerate(keys):
        known[each] = body.add(unique(f"g{number}", taken), fields[each], inside.resolve(each))
    for number, call in enumerate(calls):
        made = Field(f"c{number}", type_of(call))
        known[call] = body.add(made.name, made, inside.resolve(call))
    query = body.select().from_(table(0), copy=False)
    if keys:
        query = query.group_by(*(inside.resolve(each) for each in keys), copy=False)
        names = [known[each].name for each in keys]
        asked = [fields[each].name for each in keys]
        node = keyed("Aggregate", [source], [asked], query, body.columns, partition=names, key=names)
        return over(node, known)
    reason = Reason("aggregate", "An aggregate without a state to be maintained from covers all rows.")
    zero = body.add("_one", Field("_one", SMALLINT), exp.cast(exp.Literal.number(0), "smallint"), hidden=True)
    query = body.select().from_(table(0), copy=False)
    node = keyed("Aggregate", [source], [[]], query, body.columns, partition=[], key=[zero.name], reason=reason)
    return over(node, known)


# --- grouping sets -----------------------------------------------------------------------------------


def grouping_sets(ast: exp.Select) -> list[exp.Select] | None:
    """One SELECT for each grouping set; None when there is just a plain GROUP BY."""
    sets = sets_of(ast)
    if sets is None:
        return None
    everything = list(dict.fromkeys(key for each in sets for key in each))
    return [_of_set(ast, everything, chosen) for chosen in sets]


def _of_set(ast: exp.Select, everything: Sequence[exp.Expr], chosen: Sequence[exp.Expr]) -> exp.Select:
    made = ast.copy()
    # A set without columns that binding left here is a group that is there only while there are rows, as Spark has it.
    constant = exp.cast(exp.Literal.number(0), "smallint")
    constant.meta["sql_type"] = SMALLINT
    made.set("group", exp.Group(expressions=[each.copy() for each in chosen] or [constant]))
    for root in (*made.expressions, made.args.get("having")):
        if root is not None:
            root.set("this", in_set(root.this, everything, chosen))
    return made


__all__ = ["aggregates", "distinct", "group", "grouping_sets", "is_aggregate", "summed"]
