"""The plan of a view: few operators, each with its fields and its stream key.

    Scan        a stored relation
    Select      select-project-join: any number of inputs, conditions between them, output items (one input:
                a filter and projection). Nested ones are merged into one, so an inner join is always n-ary
    UnionAll    the rows of all inputs, which have the same fields
    TemporalFilter  the rows of the input that lie within bounds that move with the clock
    Closing     the rows of the input that no change concerns any more, told by a watermark
    Aggregate   groups of the input, one row each
    Keyed       a query over its inputs that falls apart by a key: what it gives for one value of the key depends on
                the inputs' rows with that value alone. Outer joins, semi joins, windows, aggregates without a state
    TopN        the first rows of the input in an order
    ChangeLog   the changes of a stored relation, one row each: a history, which only grows
    Recursion   a base, and a step for the rows of each round, until there are no more; evaluated anew
    Recompute   anything else: a query that is evaluated anew, with the reason why

Expressions are sqlglot trees in Spark's dialect, bound and typed already. Inside a Select or a Keyed, a column is named
`l<i>.<field>`: field of input number i. Inside an Aggregate's items, columns are the names of its keys and
calls. Every node has a stream key among its fields; `make_*` add hidden fields where the key needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sqlglot import exp

from seiche.model import CHANGELOG_ROW_ID, Column, RelationId, RelationSchema
from seiche.sql.change_log import OPERATION
from seiche.sql.invocations import NOW
from seiche.sql.written import in_place_of
from seiche.types import BIGINT, INTEGER, SMALLINT, SqlType


@dataclass(frozen=True, slots=True)
class Field:
    """A named and typed output of a plan node; hidden ones serve the stream key or the state."""

    name: str
    type: SqlType
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """An expression and the field that it fills."""

    field: Field
    expr: exp.Expr


@dataclass(frozen=True, slots=True)
class Scan:
    relation: RelationId
    schema: RelationSchema

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(Field(column.name, column.type, column.hidden) for column in self.schema.columns)

    @property
    def key(self) -> tuple[str, ...]:
        return self.schema.key


@dataclass(frozen=True, slots=True)
class Select:
    inputs: tuple[Plan, ...]
    conjuncts: tuple[exp.Expr, ...]
    items: tuple[Item, ...]
    key: tuple[str, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(item.field for item in self.items)


@dataclass(frozen=True, slots=True)
class UnionAll:
    inputs: tuple[Plan, ...]
    key: tuple[str, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.inputs[0].fields


@dataclass(frozen=True, slots=True)
class ClockBound:
    """A comparison of a row's value with something that depends on the clock and on nothing else.

    `value` is over the input's fields, named by themselves; `comparison` is one of `<`, `<=`, `>`, `>=` and `=`.
    """

    value: exp.Expr
    comparison: str
    bound: exp.Expr


@dataclass(frozen=True, slots=True)
class TemporalFilter:
    """The rows of a stored input that fulfil all bounds at an epoch's time."""

    input: Plan
    bounds: tuple[ClockBound, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def key(self) -> tuple[str, ...]:
        return self.input.key


@dataclass(frozen=True, slots=True)
class Closing:
    """The rows of a linear input whose `field` is below `bound`, an expression over watermarks.

    The bound never goes back, and no change of the input concerns rows below it: they come once, and stay as they are.
    `marks` are the relations that hold the watermarks.
    """

    input: Plan
    field: str
    bound: exp.Expr
    marks: tuple[Scan, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def key(self) -> tuple[str, ...]:
        return self.input.key


class Function(Enum):
    """The aggregate functions whose groups are maintained from their stored state."""

    COUNT_ROWS = "count(*)"
    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate call over a field of the input."""

    field: Field
    function: Function
    argument: Field | None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Groups by `keys` (fields of the input); `items` are computed from keys and calls.

    `key` names the items that carry the group's keys. Without GROUP BY there is one constant key, and the
    group exists even when the input is empty (`total`).
    """

    input: Plan
    keys: tuple[Field, ...]
    calls: tuple[Call, ...]
    items: tuple[Item, ...]
    key: tuple[str, ...]
    total: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(item.field for item in self.items)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a part of a view is evaluated anew; the code has an entry in the documentation."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Keyed:
    """A query over tables `l0`, `l1` … whose answer is the union of its answers for each value of a key.

    `keys` names, for each input, the fields that hold the key, and `partition` the output columns that carry it.
    Keys are compared null-safely. Without any key all rows belong together and `reason` says why.

    With `looked_up`, the second input is only looked up for rows of the first, whose changes alone count. It holds the
    fields of the two that are equal.
    """

    title: str
    inputs: tuple[Plan, ...]
    keys: tuple[tuple[str, ...], ...]
    body: exp.Query
    columns: tuple[Field, ...]
    partition: tuple[str, ...]
    key: tuple[str, ...]
    shown: tuple[tuple[str, exp.Expr], ...] = ()  # what EXPLAIN tells: a word, and an expression over inputs or columns
    reason: Reason | None = None
    looked_up: tuple[tuple[str, str], ...] | None = None

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns


@dataclass(frozen=True, slots=True)
class SortField:
    name: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class TopN:
    """The input's rows number `offset` + 1 to `offset` + `limit`; rows equal in `order` go by the stream key.

    With `ties`, also those after them that are equal to the last one in `order`.
    """

    input: Plan
    order: tuple[SortField, ...]
    limit: int
    offset: int = 0
    ties: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def key(self) -> tuple[str, ...]:
        return self.input.key


@dataclass(frozen=True, slots=True)
class Recompute:
    """A query in Spark's dialect whose tables are named `r<relation>`."""

    query: exp.Query
    relations: tuple[RelationId, ...]
    columns: tuple[Field, ...]  # named as the query's projections
    reason: Reason
    time_driven: bool = False  # its answer changes with the clock

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.columns, Field("_n", INTEGER, hidden=True))

    @property
    def key(self) -> tuple[str, ...]:
        """All columns, and the number of the row among equal ones."""
        return tuple(field.name for field in self.fields)


@dataclass(frozen=True, slots=True)
class Recursion:
    """The rows of a base, and those that a step makes of the rows of one round for the next, until a round has none.

    The step reads the rows of the round before as the Scan of `rounds`, whose columns are those of the node. With
    `distinct`, a row that was there in an earlier round is not one of a later one. Base and step fill the columns in
    their order.
    """

    base: Plan
    step: Plan
    rounds: RelationId
    columns: tuple[Field, ...]
    distinct: bool
    reason: Reason

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.columns if self.distinct else (*self.columns, Field("_n", INTEGER, hidden=True))

    @property
    def key(self) -> tuple[str, ...]:
        """All columns, and where rows may be equal the number of the row among those."""
        return tuple(field.name for field in self.fields)


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """Every change of a stored relation as a row: its visible columns, what happened, and the number of the change."""

    input: Scan

    @property
    def fields(self) -> tuple[Field, ...]:
        shown = tuple(Field(column.name, column.type) for column in self.input.schema.visible)
        return (*shown, Field(OPERATION, SMALLINT), Field(CHANGELOG_ROW_ID, BIGINT, hidden=True))

    @property
    def key(self) -> tuple[str, ...]:
        return (CHANGELOG_ROW_ID,)


Plan = (
    Scan | Select | UnionAll | TemporalFilter | Closing | Aggregate | Keyed | TopN | ChangeLog | Recursion | Recompute
)


def stored_schema(plan: Plan, *, append_only: bool = False) -> RelationSchema:
    """The relation that stores a plan's rows."""
    columns = tuple(Column(field.name, field.type, hidden=field.hidden) for field in plan.fields)
    return RelationSchema(columns, plan.key, append_only)


def field_of(plan: Plan, name: str) -> Field:
    for field in plan.fields:
        if field.name == name:
            return field
    raise KeyError(name)


def scans(plan: Plan) -> Iterator[Scan]:
    """Every scan below a node, from left to right."""
    match plan:
        case Scan():
            yield plan
        case Select() | UnionAll() | Keyed():
            for child in plan.inputs:
                yield from scans(child)
        case Aggregate() | TopN() | TemporalFilter() | ChangeLog():
            yield from scans(plan.input)
        case Closing():
            yield from scans(plan.input)
            yield from plan.marks
        case Recursion():
            yield from (scan for part in (plan.base, plan.step) for scan in scans(part) if scan.relation != plan.rounds)
        case Recompute():
            return


def relations_read(plan: Plan) -> frozenset[RelationId]:
    """The relations that a plan reads."""
    match plan:
        case Recompute():
            return frozenset(plan.relations)
        case Recursion():
            return (relations_read(plan.base) | relations_read(plan.step)) - {plan.rounds}
        case _:
            return frozenset().union(*(relations_read(child) for child in children(plan)), _scanned(plan))


def _scanned(plan: Plan) -> frozenset[RelationId]:
    match plan:
        case Scan():
            return frozenset({plan.relation})
        case Closing():
            return frozenset(mark.relation for mark in plan.marks)
        case _:
            return frozenset()


def children(plan: Plan) -> tuple[Plan, ...]:
    """The plans that a node is over."""
    match plan:
        case Scan() | Recompute():
            return ()
        case Select() | UnionAll() | Keyed():
            return plan.inputs
        case Aggregate() | TopN() | TemporalFilter() | Closing() | ChangeLog():
            return (plan.input,)
        case Recursion():
            return (plan.base, plan.step)


def recomputed(plan: Plan) -> tuple[Reason, ...]:
    """Why parts of the plan are evaluated in full; parts without inputs never are again."""
    match plan:
        case Scan() | ChangeLog():
            return ()
        case Select() | UnionAll() | Keyed():
            own = (plan.reason,) if isinstance(plan, Keyed) and plan.reason is not None else ()
            return own + tuple(reason for child in plan.inputs for reason in recomputed(child))
        case Aggregate() | TopN() | TemporalFilter() | Closing():
            return recomputed(plan.input)
        case Recursion():
            own = (plan.reason,) if not is_constant(plan) else ()
            return own + recomputed(plan.base)
        case Recompute():
            return (plan.reason,) if not is_constant(plan) else ()


def is_constant(plan: Recompute | Recursion) -> bool:
    """Whether it reads nothing that changes, so that it is evaluated once."""
    return not relations_read(plan) and not follows_clock(plan)


def is_append_only(plan: Plan) -> bool:
    """Whether rows of the plan never leave when its inputs only grow."""
    match plan:
        case Scan():
            return plan.schema.append_only
        case Select() | UnionAll():
            return all(is_append_only(child) for child in plan.inputs)
        case Closing():
            return is_append_only(plan.input)
        case ChangeLog():
            return True
        case Recompute() | Recursion():
            return is_constant(plan)
        case Keyed():  # each row meets what it looks up once, and keeps it
            return plan.looked_up is not None and is_append_only(plan.inputs[0])
        case TemporalFilter() | Aggregate() | TopN():
            return False


def is_empty_over_nothing(plan: Plan) -> bool:
    """Whether the plan has no rows, for sure, while none of its inputs has any."""
    match plan:
        case Scan() | ChangeLog():
            return True
        case Select():
            return any(is_empty_over_nothing(child) for child in plan.inputs)
        case UnionAll():
            return all(is_empty_over_nothing(child) for child in plan.inputs)
        case TemporalFilter() | Closing() | TopN():
            return is_empty_over_nothing(plan.input)
        case Aggregate():
            return not plan.total and is_empty_over_nothing(plan.input)
        case Keyed():  # without a key it may have a row for all rows together
            return bool(plan.partition) and all(is_empty_over_nothing(child) for child in plan.inputs)
        case Recursion():
            return is_empty_over_nothing(plan.base)
        case Recompute():
            return False


def temporal_filters(plan: Plan) -> Iterator[TemporalFilter]:
    """Every filter by the clock in a plan, but for those in what is evaluated as a whole."""
    match plan:
        case Scan() | ChangeLog() | Recompute() | Recursion():
            return
        case Select() | UnionAll() | Keyed():
            for child in plan.inputs:
                yield from temporal_filters(child)
        case Aggregate() | TopN() | Closing():
            yield from temporal_filters(plan.input)
        case TemporalFilter():
            yield plan
            yield from temporal_filters(plan.input)


def follows_clock(plan: Plan) -> bool:
    """Whether the plan's rows change as time passes, without any change of its inputs."""
    if isinstance(plan, Recompute):
        return plan.time_driven
    if isinstance(plan, Recursion):
        return _reads_clock_inside(plan.base) or _reads_clock_inside(plan.step)
    return next(temporal_filters(plan), None) is not None


def _reads_clock_inside(plan: Plan) -> bool:
    return follows_clock(plan) or any(_reads_clock_inside(child) for child in children(plan))


def closes(plan: Plan) -> bool:
    """Whether rows of the plan come as a watermark moves."""
    match plan:
        case Closing():
            return True
        case Scan() | ChangeLog() | Recompute() | Recursion():
            return False
        case Select() | UnionAll() | Keyed():
            return any(closes(child) for child in plan.inputs)
        case Aggregate() | TopN() | TemporalFilter():
            return closes(plan.input)


def reads_clock(expr: exp.Expr) -> bool:
    return any(str(node.this).lower() == NOW for node in expr.find_all(exp.Anonymous))


def input_column(index: int, name: str) -> exp.Column:
    """The reference to a field of a Select's input."""
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(f"l{index}"), copy=False)


def own_column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), copy=False)


def input_index(column: exp.Column) -> int:
    return int(column.table[1:])


def rewrite_columns(expr: exp.Expr, replace: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """A copy of an expression with its columns replaced."""

    def visit(node: exp.Expr) -> exp.Expr:
        return in_place_of(replace(node), node) if isinstance(node, exp.Column) and not is_variable(node) else node

    if isinstance(expr, exp.Column):
        return in_place_of(replace(expr), expr) if not is_variable(expr) else expr.copy()
    return expr.copy().transform(visit, copy=False)


def columns_in(expr: exp.Expr) -> Iterator[exp.Column]:
    """The columns of an expression, without the variables of its lambdas."""
    return (column for column in expr.find_all(exp.Column) if not is_variable(column))


def is_variable(column: exp.Column) -> bool:
    """Whether it is a variable of a lambda around it; such a one looks like a column without a table."""
    above = None if column.table else column.parent
    while above is not None:
        if isinstance(above, exp.Lambda) and any(each.name == column.name for each in above.expressions):
            return True
        above = above.parent
    return False


def make_select(
    inputs: Sequence[Plan], conjuncts: Sequence[exp.Expr], items: Sequence[Item], *, keyed: bool = True
) -> Select:
    """A Select with nested ones merged into it, and hidden items for the parts of the key that no item carries."""
    flat_inputs: list[Plan] = []
    flat_conjuncts: list[exp.Expr] = []
    meaning: dict[tuple[int, str], exp.Expr] = {}
    for index, child in enumerate(inputs):
        start = len(flat_inputs)
        if isinstance(child, Select):

            def shifted(column: exp.Column, start: int = start) -> exp.Expr:
                return input_column(input_index(column) + start, column.name)

            flat_inputs.extend(child.inputs)
            flat_conjuncts.extend(rewrite_columns(each, shifted) for each in child.conjuncts)
            for item in child.items:
                meaning[(index, item.field.name)] = rewrite_columns(item.expr, shifted)
        else:
            flat_inputs.append(child)
            for field in child.fields:
                meaning[(index, field.name)] = input_column(start, field.name)

    def resolve(column: exp.Column) -> exp.Expr:
        found = meaning[(input_index(column), column.name)]
        return found.copy() if isinstance(found, exp.Column) else exp.paren(found.copy(), copy=False)

    flat_conjuncts.extend(rewrite_columns(each, resolve) for each in conjuncts)
    flat_items = [Item(item.field, rewrite_columns(item.expr, resolve)) for item in items]
    key = _carry_key(flat_inputs, flat_items) if keyed else ()
    return Select(tuple(flat_inputs), tuple(flat_conjuncts), tuple(flat_items), key)


def plain(aggregate: Aggregate) -> Select:
    """The groups without the state that is stored with them."""
    return make_select([aggregate], [], [Item(each, input_column(0, each.name)) for each in aggregate.fields])


def _carry_key(inputs: Sequence[Plan], items: list[Item]) -> tuple[str, ...]:
    """Appends hidden items for key columns that no item shows as they are; returns the names of the key's items."""
    carried = {
        (item.expr.table, item.expr.name): item.field.name for item in items if isinstance(item.expr, exp.Column)
    }
    taken = {item.field.name for item in items}
    key = []
    several = [index for index, child in enumerate(inputs) if not _has_one_row(child)] or range(len(inputs))
    for index, child in enumerate(inputs):
        for name in child.key if index in several else ():
            present = carried.get((f"l{index}", name))
            if present is None:
                # The number of a change keeps its name, by which a query may ask for it.
                present = name if name == CHANGELOG_ROW_ID else f"_k{index}_{name.lstrip('_')}"
                while present in taken:
                    present += "_"
                taken.add(present)
                field = Field(present, field_of(child, name).type, hidden=True)
                items.append(Item(field, input_column(index, name)))
            key.append(present)
    return tuple(key)


def _has_one_row(plan: Plan) -> bool:
    """Whether there is never more than one row, so that a join with it needs nothing of it in its key."""
    match plan:
        case Aggregate():
            return plan.total or (not plan.calls and _has_one_row(plan.input))
        case Select():
            return all(_has_one_row(child) for child in plan.inputs)
        case _:
            return False


def make_union(inputs: Sequence[Plan]) -> UnionAll:
    """A union whose rows carry the number of their branch and that branch's key."""
    visible = [field for field in inputs[0].fields if not field.hidden]
    key_fields = [
        (branch, name, Field(f"_u{branch}_{name.lstrip('_')}", field_of(child, name).type, hidden=True))
        for branch, child in enumerate(inputs)
        for name in child.key
    ]
    branch_field = Field("_branch", SMALLINT, hidden=True)
    branches = []
    for branch, child in enumerate(inputs):
        own = [field for field in child.fields if not field.hidden]
        items = [Item(field, input_column(0, source.name)) for field, source in zip(visible, own, strict=True)]
        items.append(Item(branch_field, exp.cast(exp.Literal.number(branch), "smallint")))
        for owner, name, field in key_fields:
            value = (
                input_column(0, name) if owner == branch else exp.cast(exp.null(), field.type.spark, dialect="spark")
            )
            items.append(Item(field, value))
        branches.append(make_select([child], [], items, keyed=False))
    key = ("_branch", *(field.name for _, _, field in key_fields))
    return UnionAll(tuple(branches), key)


def make_aggregate(
    source: Plan, keys: Sequence[Field], calls: Sequence[Call], items: Sequence[Item], *, total: bool = False
) -> Aggregate:
    """An Aggregate whose items carry its group keys, hidden where the query does not show them."""
    shown = {item.expr.name: item.field.name for item in items if isinstance(item.expr, exp.Column)}
    all_items = list(items)
    taken = {item.field.name for item in items}
    key = []
    for field in keys:
        present = shown.get(field.name)
        if present is None:
            present = f"_g_{field.name.lstrip('_')}"
            while present in taken:
                present += "_"
            taken.add(present)
            all_items.append(Item(Field(present, field.type, hidden=True), own_column(field.name)))
        key.append(present)
    return Aggregate(source, tuple(keys), tuple(calls), tuple(all_items), tuple(key), total)


def with_names(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with its visible fields named anew, in order."""
    visible = [field.name for field in plan.fields if not field.hidden]
    new = dict(zip(visible, names, strict=True))

    def renamed(field: Field) -> Field:
        return field if field.hidden else replace(field, name=new[field.name])

    key = tuple(new.get(name, name) for name in plan.key)
    match plan:
        case Select():
            items = tuple(Item(renamed(item.field), item.expr) for item in plan.items)
            return replace(plan, items=items, key=key)
        case Aggregate():
            items = tuple(Item(renamed(item.field), item.expr) for item in plan.items)
            return replace(plan, items=items, key=key)
        case UnionAll():
            return replace(plan, inputs=tuple(with_names(child, names) for child in plan.inputs), key=key)
        case Keyed():
            body = exp.select(
                *(
                    exp.alias_(own_column(field.name), exp.to_identifier(renamed(field).name, quoted=True))
                    for field in plan.columns
                )
            ).from_(plan.body.subquery("q"))
            partition = tuple(new.get(name, name) for name in plan.partition)
            columns = tuple(renamed(field) for field in plan.columns)
            return replace(plan, body=body, columns=columns, partition=partition, key=key)
        case TopN():
            order = tuple(replace(each, name=new.get(each.name, each.name)) for each in plan.order)
            return replace(plan, input=with_names(plan.input, names), order=order)
        case Recompute():
            shown = [exp.alias_(own_column(old), exp.to_identifier(new[old], quoted=True)) for old in visible]
            query = exp.select(*shown).from_(plan.query.subquery("q"))
            return replace(plan, query=query, columns=tuple(renamed(field) for field in plan.columns))
        case Recursion():
            return replace(plan, columns=tuple(renamed(field) for field in plan.columns))
        case Scan() | TemporalFilter() | Closing() | ChangeLog():
            shown_fields = [f for f in plan.fields if not f.hidden]
            return make_select([plan], [], [Item(renamed(f), input_column(0, f.name)) for f in shown_fields])
