"""Random schemas and random views over them.

A view is SQL text together with what the grammar knows of its columns, so that later views can read it. Every
query has one right answer as a multiset: what is ordered or cut off is ordered totally, and a float whose last
bits depend on the order of adding (`ROUGH`) is never compared, grouped or rounded.

The share `keyed` of the views has operators that are maintained by affected keys, or not at all; the others have
nothing but change rules.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.differential import domains
from tests.differential.domains import (
    ARRAY,
    BOOL,
    BYTES,
    DATE,
    FLOAT,
    INT,
    INTERVAL,
    JSON,
    NUM,
    RATIO,
    ROUGH,
    STRUCT,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
)
from tests.differential.harbour_tables import Table, random_table

# Rows that a view may be expected to have before nothing is joined to it any more.
ROWS_MAX = 4_000
TABLE_ROWS = 25


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a relation: its name, and what can be done with it."""

    name: str
    family: str


@dataclass(frozen=True, slots=True)
class Relation:
    name: str
    columns: tuple[Output, ...]
    rows: int  # about how many
    key: tuple[str, ...] = ()  # columns in which no two rows agree, where the grammar knows some


@dataclass(frozen=True, slots=True)
class View:
    name: str
    query: str
    columns: tuple[Output, ...]
    rows: int

    @property
    def ddl(self) -> str:
        return f"CREATE MATERIALIZED VIEW {self.name} AS {self.query}"

    @property
    def relation(self) -> Relation:
        return Relation(self.name, self.columns, self.rows)


def schema(rng: random.Random) -> list[Table]:
    """Two or three tables that together have columns of many types."""
    due = list(domains.ALL)
    rng.shuffle(due)
    kinds = rng.choice([["key", "rowid"], ["key", "pair", "rowid"], ["pair", "append"], ["key", "rowid", "append"]])
    return [random_table(rng, f"t{i}", kind, due) for i, kind in enumerate(kinds)]


def relation_of(table: Table) -> Relation:
    return Relation(table.name, tuple(Output(c.name, c.domain.family) for c in table.columns), TABLE_ROWS, table.key)


def views(rng: random.Random, tables: Sequence[Table], keyed: float = 0.45) -> Iterator[View]:
    """Views without end, each over the tables and the views before it."""
    known = [relation_of(table) for table in tables]
    for number in itertools.count():
        view = _Query(rng, known).view(f"v{number}", keyed=rng.random() < keyed)
        known.append(view.relation)
        yield view


# --- expressions -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Scope:
    """The columns that an expression may use, by their qualified names."""

    columns: tuple[Output, ...]

    def of(self, *families: str) -> list[str]:
        return [column.name for column in self.columns if column.family in families]


_LITERALS = {
    INT: ("0", "1", "2", "-3", "7"),
    NUM: ("1.25", "0.5", "-2.0", "0::numeric"),
    FLOAT: ("0.5::double precision", "2::double precision", "'NaN'::double precision"),
    TEXT: ("'a'::varchar", "'quay'::varchar", "''::varchar", "'7'::varchar"),
    BOOL: ("true", "false", "NULL::boolean"),
    DATE: ("DATE '2024-02-29'", "DATE '2024-03-01'"),
    TIME: ("TIME '06:00:00.5'",),
    TIMESTAMP: ("TIMESTAMP '2024-02-29 12:30:00'",),
    TIMESTAMPTZ: ("TIMESTAMPTZ '2024-02-29 12:30:00+00:00'",),
    INTERVAL: ("INTERVAL '1 day'",),
    BYTES: ("'\\x6162'::bytea",),
    JSON: ("'{\"k\": 1}'::jsonb",),
    ARRAY: ("ARRAY[1, 2]",),
    STRUCT: ("ROW(1, 'x')::struct<a integer, b varchar>",),
}
_ORDERED = (INT, NUM, FLOAT, TEXT, DATE, TIME, TIMESTAMP, TIMESTAMPTZ)
_SIMPLE = (INT, NUM, TEXT, BOOL, DATE, TIMESTAMP)
_ALL = tuple(_LITERALS)


class _Expressions:
    """Expressions of a family over a scope. Many of them fail for some rows, and are NULL there."""

    def __init__(self, rng: random.Random, scope: _Scope) -> None:
        self._rng = rng
        self._scope = scope

    def any(self, families: Sequence[str] = _ALL) -> tuple[str, str]:
        """An expression of one of the families that the scope has columns of, and its family."""
        present = [family for family in families if self._scope.of(family)] or [INT]
        family = self._rng.choice(present)
        return self.of(family), family

    def column(self, families: Sequence[str] = (*_ALL, RATIO, ROUGH)) -> tuple[str, str] | None:
        found = [column for column in self._scope.columns if column.family in families]
        if not found:
            return None
        chosen = self._rng.choice(found)
        return chosen.name, chosen.family

    def of(self, family: str, depth: int = 2) -> str:
        columns = self._scope.of(family)
        if depth == 0 or self._rng.random() < 0.35:
            return self._rng.choice(columns) if columns and self._rng.random() < 0.85 else self._literal(family)
        return self._rng.choice(self._forms(family, depth - 1))()

    def _literal(self, family: str) -> str:
        return self._rng.choice(_LITERALS[family])

    def _forms(self, family: str, d: int) -> list:  # type: ignore[type-arg]
        rng, of = self._rng, self.of
        forms = [
            lambda: f"CASE WHEN {self.condition(d)} THEN {of(family, d)} ELSE {of(family, d)} END",
            lambda: f"coalesce({of(family, d)}, {of(family, d)})",
        ]
        match family:
            case domains.INT:
                forms += [
                    lambda: f"({of(INT, d)} {rng.choice('+-*')} {of(INT, d)})",
                    lambda: f"({of(INT, d)} {rng.choice('/%')} {of(INT, d)})",
                    lambda: f"abs({of(INT, d)})",
                    lambda: f"length({of(TEXT, d)})",
                    lambda: f"({of(TEXT, d)})::integer",
                    lambda: f"({of(NUM, d)})::integer",
                    lambda: f"nullif({of(INT, d)}, {of(INT, d)})",
                    lambda: f"greatest({of(INT, d)}, {of(INT, d)})",
                    lambda: f"({of(DATE, d)} - {of(DATE, d)})",
                    lambda: f"({of(INT, d)})::smallint",
                    lambda: f"cardinality({of(ARRAY, d)})",
                    lambda: f"({of(ARRAY, d)})[{rng.randint(1, 3)}]",
                    lambda: f"({of(STRUCT, 0)}).a",
                ]
            case domains.NUM:
                forms += [
                    lambda: f"({of(NUM, d)} {rng.choice('+-*')} {of(NUM, d)})",
                    lambda: f"({of(NUM, d)} / {of(NUM, d)})",
                    lambda: f"round({of(NUM, d)}, 1)",
                    lambda: f"({of(INT, d)})::numeric",
                    lambda: f"({of(NUM, d)})::numeric(6,1)",
                    lambda: f"least({of(NUM, d)}, {of(NUM, d)})",
                ]
            case domains.FLOAT:
                forms += [
                    lambda: f"({of(FLOAT, d)} + {of(FLOAT, d)})",
                    lambda: f"({of(FLOAT, d)} * 0.5::double precision)",
                    lambda: f"abs({of(FLOAT, d)})",
                ]
            case domains.TEXT:
                forms += [
                    lambda: f"({of(TEXT, d)} || {of(TEXT, d)})",
                    lambda: f"upper({of(TEXT, d)})",
                    lambda: f"substr({of(TEXT, d)}, 1, 2)",
                    lambda: f"trim({of(TEXT, d)})",
                    lambda: f"({of(INT, d)})::varchar",
                    lambda: f"({of(BOOL, d)})::varchar",
                    lambda: f"({of(DATE, d)})::varchar",
                    lambda: f"replace({of(TEXT, d)}, 'a', 'bb')",
                    lambda: f"left({of(TEXT, d)}, -1)",
                    lambda: f"({of(JSON, 0)} ->> 'k')",
                    lambda: f"concat({of(TEXT, d)}, {of(INT, d)})",
                ]
            case domains.BOOL:
                forms += [lambda: f"({self.condition(d)})"]
            case domains.DATE:
                forms += [
                    lambda: f"({of(DATE, d)} + {rng.randint(1, 3)})",
                    lambda: f"({of(TIMESTAMP, d)})::date",
                ]
            case domains.TIMESTAMP:
                forms += [
                    lambda: f"({of(TIMESTAMP, d)} + {of(INTERVAL, 0)})",
                    lambda: f"date_trunc('day', {of(TIMESTAMP, d)})",
                    lambda: f"({of(DATE, d)})::timestamp",
                ]
            case domains.TIMESTAMPTZ:
                forms += [lambda: f"({of(TIMESTAMPTZ, d)} - INTERVAL '1 hour')"]
            case domains.ARRAY:
                forms += [lambda: f"array_append({of(ARRAY, d)}, {of(INT, 0)}::integer)"]
            case _:
                pass
        return forms

    def condition(self, depth: int = 1) -> str:
        rng = self._rng
        choice = rng.random()
        if depth > 0 and choice < 0.2:
            return f"({self.condition(depth - 1)} {rng.choice(['AND', 'OR'])} {self.condition(depth - 1)})"
        if depth > 0 and choice < 0.26:
            return f"NOT ({self.condition(depth - 1)})"
        if choice < 0.38:
            column = self.column(_ALL)
            if column is not None:
                return f"{column[0]} IS {rng.choice(['', 'NOT '])}NULL"
        if choice < 0.45 and self._scope.of(TEXT):
            return f"{rng.choice(self._scope.of(TEXT))} LIKE {rng.choice(_PATTERNS)}"
        if choice < 0.5 and self._scope.of(BOOL):
            return rng.choice(self._scope.of(BOOL))
        present = [family for family in _ORDERED if self._scope.of(family)] or [INT]
        family = rng.choice(present)
        d = max(depth - 1, 0)
        left = rng.choice(self._scope.of(family) or ["1"])
        if choice < 0.58:
            return f"{left} IN ({self._literal(family)}, {self._literal(family)})"
        if choice < 0.66:
            return f"{left} BETWEEN {self._literal(family)} AND {self.of(family, d)}"
        if choice < 0.72:
            return f"{left} IS {rng.choice(['', 'NOT '])}DISTINCT FROM {self.of(family, d)}"
        return f"{left} {rng.choice(['=', '<>', '<', '<=', '>', '>='])} {self.of(family, d)}"


_PATTERNS = ("'%a%'", "'_'", "'q%'", "'%it%'")


# --- queries ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _From:
    """A FROM clause, the scope it opens, and about how many rows it gives."""

    sql: str
    scope: _Scope
    rows: int


@dataclass(frozen=True, slots=True)
class _Body:
    sql: str
    columns: tuple[Output, ...]
    rows: int

    @property
    def is_exact(self) -> bool:
        return all(column.family != ROUGH for column in self.columns)


class _Query:
    def __init__(self, rng: random.Random, known: Sequence[Relation]) -> None:
        self._rng = rng
        self._known = known
        self._tables = [each for each in known if each.name.startswith("t")]
        self._aliases = (f"q{i}" for i in itertools.count())

    def view(self, name: str, *, keyed: bool) -> View:
        rng = self._rng
        if keyed:
            make = rng.choice(
                [
                    self._outer_join,
                    self._outer_join,
                    self._window,
                    self._subquery,
                    self._subquery,
                    self._value,
                    self._lateral,
                    self._limit,
                    self._except,
                    self._distinct_count,
                    self._grouping_sets,
                    self._first_of_group,
                    self._outer_join_of_groups,
                ]
            )
        else:
            make = rng.choices(
                [self._select, self._join, self._aggregate, self._distinct, self._union, self._derived],
                [2, 3, 5, 1, 2, 2],
            )[0]
        body = make()
        return View(name, body.sql, body.columns, body.rows)

    # --- sources ---

    def _source(self, rows_max: int = ROWS_MAX) -> Relation:
        small = [each for each in self._known if each.rows <= rows_max]
        chosen = self._rng.choice(small if self._rng.random() < 0.45 else self._tables)
        return chosen if chosen.rows <= rows_max else self._rng.choice(self._tables)

    def _from_one(self) -> _From:
        source = self._source()
        alias = next(self._aliases)
        return _From(f"{source.name} AS {alias}", _scope(source, alias), source.rows)

    def _from_join(self) -> _From:
        rng = self._rng
        count = rng.choices([2, 3, 4], [6, 3, 1])[0]
        first = self._source(300)
        alias = next(self._aliases)
        parts, columns, rows = [f"{first.name} AS {alias}"], list(_scope(first, alias).columns), first.rows
        for _ in range(count - 1):
            other = first if rng.random() < 0.25 else self._source(300)
            if rows * other.rows // 4 > ROWS_MAX:
                break
            alias = next(self._aliases)
            new = _scope(other, alias)
            pairs = [(a.name, b.name) for a in columns for b in new.columns if a.family == b.family in _JOINED]
            if not pairs or (rng.random() < 0.08 and rows * other.rows < ROWS_MAX):
                if rows * other.rows > ROWS_MAX:
                    break
                parts.append(f"{' CROSS JOIN' if rng.random() < 0.5 else ','} {other.name} AS {alias}")
                rows = rows * other.rows
            else:
                equal = [f"{a} = {b}" for a, b in rng.sample(pairs, min(len(pairs), rng.choice([1, 1, 2])))]
                if rng.random() < 0.1:
                    a, b = rng.choice(pairs)
                    equal[0] = f"{a} IS NOT DISTINCT FROM {b}"
                elif rng.random() < 0.1:
                    expressions = _Expressions(rng, new)
                    equal.append(f"{rng.choice([a for a, _ in pairs])} IS NOT NULL AND {expressions.condition()}")
                if rng.random() < 0.3:
                    a, b = rng.choice(pairs)
                    equal.append(f"{a} {rng.choice(['<', '<>', '>='])} {b}")
                # The condition sees nothing that stands before a comma.
                parts = [f" CROSS JOIN{each[1:]}" if each.startswith(",") else each for each in parts]
                parts.append(f" JOIN {other.name} AS {alias} ON {' AND '.join(equal)}")
                rows = rows * other.rows // 4
            columns.extend(new.columns)
        return _From("".join(parts), _Scope(tuple(columns)), rows)

    def _from(self) -> _From:
        return self._from_join() if self._rng.random() < 0.4 else self._from_one()

    def _where(self, source: _From, chance: float = 0.6) -> str:
        if self._rng.random() >= chance:
            return ""
        return f" WHERE {_Expressions(self._rng, source.scope).condition(2)}"

    # --- inside ---

    def _select(self, source: _From | None = None) -> _Body:
        source = source or self._from_one()
        items = self._items(source.scope)
        return _Body(f"SELECT {_listed(items)} FROM {source.sql}{self._where(source)}", _outputs(items), source.rows)

    def _items(self, scope: _Scope) -> list[tuple[str, str]]:
        rng = self._rng
        expressions = _Expressions(rng, scope)
        items: list[tuple[str, str]] = []
        for _ in range(rng.randint(2, 5)):
            plain = expressions.column() if rng.random() < 0.5 else None
            items.append(plain or expressions.any())
        if rng.random() < 0.15:
            items.append((f"({expressions.of(FLOAT)} / {expressions.of(FLOAT)})", RATIO))
        return items

    def _join(self) -> _Body:
        return self._select(self._from_join())

    def _aggregate(self, source: _From | None = None) -> _Body:
        rng = self._rng
        source = source or self._from()
        expressions = _Expressions(rng, source.scope)
        keys: list[tuple[str, str]] = []
        for _ in range(rng.choices([0, 1, 2, 3], [2, 5, 3, 1])[0]):
            key = expressions.column((*_ALL, RATIO)) if rng.random() < 0.7 else expressions.any(_SIMPLE)
            if key is not None and not _is_constant(key[0]) and key not in keys:
                keys.append(key)
        calls = [self._call(expressions) for _ in range(rng.randint(1, 4))]
        shown = [key for key in keys if rng.random() < 0.85]
        items = [*shown, *calls]
        if rng.random() < 0.25:
            items.append((f"(count(*) * 2 + coalesce(sum({expressions.of(INT)}), 0))", NUM))
        sql = f"SELECT {_listed(items)} FROM {source.sql}{self._where(source, 0.4)}"
        if keys:
            sql += f" GROUP BY {', '.join(key for key, _ in keys)}"
        if rng.random() < 0.3:
            sql += f" HAVING {self._having(expressions)}"
        return _Body(sql, _outputs(items), max(source.rows // 3, 1) if keys else 1)

    def _call(self, expressions: _Expressions) -> tuple[str, str]:
        rng = self._rng
        filter_ = f" FILTER (WHERE {expressions.condition()})" if rng.random() < 0.2 else ""
        match rng.choice(["rows", "count", "sum", "avg", "extreme", "extreme", "spread", "bool"]):
            case "rows":
                return f"count(*){filter_}", INT
            case "count":
                return f"count({expressions.any()[0]}){filter_}", INT
            case "sum":
                argument, family = self._number(expressions)
                return f"sum({argument}){filter_}", {INT: NUM, RATIO: ROUGH}.get(family, family)
            case "avg":
                argument, family = self._number(expressions)
                return f"avg({argument}){filter_}", {INT: NUM, NUM: NUM}.get(family, ROUGH)
            case "extreme":
                ratio = expressions.column((RATIO,)) if rng.random() < 0.3 else None
                argument, family = ratio or expressions.any(_ORDERED)
                return f"{rng.choice(['min', 'max'])}({argument}){filter_}", family
            case "spread":
                function = rng.choice(["var_pop", "var_samp", "stddev_pop", "stddev_samp"])
                ratio = expressions.column((RATIO,)) if rng.random() < 0.5 else None
                argument, _ = ratio or expressions.any((INT, NUM, FLOAT))
                return f"{function}({argument}){filter_}", ROUGH
            case _:
                return f"{rng.choice(['bool_and', 'bool_or'])}({expressions.condition()}){filter_}", BOOL

    def _number(self, expressions: _Expressions) -> tuple[str, str]:
        rough = expressions.column((RATIO, ROUGH))
        if rough is not None and self._rng.random() < 0.5:
            return rough[0], RATIO
        return expressions.any((INT, NUM, FLOAT))

    def _having(self, expressions: _Expressions) -> str:
        rng = self._rng
        return rng.choice(
            [
                f"count(*) {rng.choice(['>', '<=', '='])} {rng.randint(1, 4)}",
                f"count({expressions.any()[0]}) > 0",
                f"min({expressions.of(INT)}) < {rng.randint(0, 2)}",
                f"sum({expressions.of(NUM)}) >= {rng.randint(-2, 3)} OR count(*) = 1",
                f"bool_or({expressions.condition()})",
            ]
        )

    def _distinct(self) -> _Body:
        source = self._from()
        items = [item for item in self._items(source.scope) if item[1] != ROUGH] or [("1", INT)]
        sql = f"SELECT DISTINCT {_listed(items[:3])} FROM {source.sql}{self._where(source, 0.4)}"
        return _Body(sql, _outputs(items[:3]), max(source.rows // 2, 1))

    def _union(self) -> _Body:
        """Two or three branches of the same shape, at times of the same table."""
        rng = self._rng
        families = [rng.choice([INT, NUM, FLOAT, TEXT, BOOL, DATE]) for _ in range(rng.randint(1, 3))]
        branches, rows = [], 0
        first = self._from_one()
        for _ in range(rng.choice([2, 2, 3])):
            source = first if rng.random() < 0.3 else self._from()
            expressions = _Expressions(rng, source.scope)
            items = [(expressions.of(family), family) for family in families]
            branches.append(f"SELECT {_listed(items)} FROM {source.sql}{self._where(source)}")
            rows += source.rows
        word = rng.choice([" UNION ALL ", " UNION ALL ", " UNION "])
        return _Body(word.join(branches), _outputs([("", family) for family in families]), rows)

    def _derived(self) -> _Body:
        """A query over a derived table: an aggregate over an aggregate, a join with one, a filter of one."""
        rng = self._rng
        inner = self._aggregate() if rng.random() < 0.7 else self._union()
        alias = next(self._aliases)
        scope = _scope(Relation("", inner.columns, inner.rows), alias)
        source = _From(f"({inner.sql}) AS {alias}", scope, inner.rows)
        if rng.random() < 0.4:
            other = self._source(300)
            second = next(self._aliases)
            new = _scope(other, second)
            pairs = [(a.name, b.name) for a in scope.columns for b in new.columns if a.family == b.family in _JOINED]
            if pairs and source.rows * other.rows < 4 * ROWS_MAX:
                a, b = rng.choice(pairs)
                sql = f"{source.sql} JOIN {other.name} AS {second} ON {a} = {b}"
                source = _From(sql, _Scope((*scope.columns, *new.columns)), source.rows * other.rows // 4)
        return self._aggregate(source) if rng.random() < 0.5 else self._select(source)

    # --- outside ---

    def _outer_join(self) -> _Body:
        rng = self._rng
        left, right = self._source(300), self._source(300)
        a, b = next(self._aliases), next(self._aliases)
        first, second = _scope(left, a), _scope(right, b)
        pairs = [(x.name, y.name) for x in first.columns for y in second.columns if x.family == y.family in _JOINED]
        x, y = rng.choice(pairs) if pairs else ("1", "1")
        extra = f" AND {_Expressions(rng, second).condition()}" if rng.random() < 0.4 else ""
        kind = rng.choice(["LEFT", "RIGHT", "FULL"])
        untied = rng.random() < 0.3 and left.rows * right.rows < ROWS_MAX
        on = f"{x} {rng.choice(_COMPARED) if untied else '='} {y}{extra}"
        if untied and rng.random() < 0.3:  # read of one side alone, or of none
            on = rng.choice(["true", *(_Expressions(rng, side).condition() for side in (first, second))])
        sql = f"{left.name} AS {a} {kind} JOIN {right.name} AS {b} ON {on}"
        source = _From(sql, _Scope((*first.columns, *second.columns)), left.rows * right.rows // 4)
        return self._aggregate(source) if rng.random() < 0.3 else self._select(source)

    def _window(self) -> _Body:
        rng = self._rng
        source = self._from_one()
        expressions = _Expressions(rng, source.scope)
        partition, order = expressions.any(_SIMPLE)[0], expressions.any(_ORDERED)[0]
        plain = ["rank()", "dense_rank()", f"cardinality(array_agg({expressions.of(INT)}) OVER w)"]
        framed = ["count(*)", f"max({expressions.of(INT)})", f"sum({expressions.of(INT)})"]
        function = rng.choice([*plain, *framed])
        frame = rng.choice(_FRAMES) if function in framed else ""
        over = f"OVER (PARTITION BY {partition} ORDER BY {order} {frame})"
        window = function.replace("OVER w", over) if "OVER w" in function else f"{function} {over}"
        column, family = expressions.column(_ALL) or ("1", INT)
        items = [(column, family), (window, NUM if function.startswith("sum") else INT)]
        return _Body(f"SELECT {_listed(items)} FROM {source.sql}", _outputs(items), source.rows)

    def _subquery(self) -> _Body:
        rng = self._rng
        source, inner = self._from_one(), self._from_one()
        expressions, within = _Expressions(rng, source.scope), _Expressions(rng, inner.scope)
        items = self._items(source.scope)
        pairs = _pairs(source.scope, inner.scope)
        x, y = rng.choice(pairs) if pairs else ("1", "1")
        condition = rng.choice(
            [
                f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {inner.sql} WHERE {y} = {x})",
                f"{x} IN (SELECT {y} FROM {inner.sql} WHERE {within.condition()})",
                f"{x} NOT IN (SELECT {y} FROM {inner.sql} WHERE {within.condition()})",
                f"{expressions.of(INT)} < (SELECT count(*) FROM {inner.sql} WHERE {within.condition()})",
                (
                    f"EXISTS (SELECT 1 FROM {inner.sql} WHERE {y} = {x} AND {within.condition()})"
                    f" AND {expressions.condition()}"
                ),
                f"{expressions.condition()} OR {x} IN (SELECT {y} FROM {inner.sql})",
                f"{rng.choice(['', 'NOT '])}EXISTS (SELECT 1 FROM {inner.sql} WHERE {y} {rng.choice(_COMPARED)} {x})",
                f"{x} {rng.choice(_COMPARED)} {rng.choice(['ALL', 'ANY'])} (SELECT {y} FROM {inner.sql})",
                f"({x}, {x}) NOT IN (SELECT {y}, {y} FROM {inner.sql} WHERE {within.condition()})",
            ]
        )
        return _Body(f"SELECT {_listed(items)} FROM {source.sql} WHERE {condition}", _outputs(items), source.rows)

    def _value(self) -> _Body:
        """A subquery in place of a value, in the list or in a condition, tied by an equality or another comparison."""
        rng = self._rng
        source, inner = self._from_one(), self._from_one()
        within = _Expressions(rng, inner.scope)
        pairs = _pairs(source.scope, inner.scope)
        x, y = rng.choice(pairs) if pairs else ("1", "1")
        call = rng.choice(["count(*)", f"max({within.of(INT)})", f"count({y})", f"coalesce(sum({within.of(INT)}), 7)"])
        word = rng.choice(_COMPARED) if rng.random() < 0.4 else "="
        value = f"(SELECT {call} FROM {inner.sql} WHERE {y} {word} {x})"
        items = self._items(source.scope)
        if rng.random() < 0.5:
            items.append((value, NUM))
            return _Body(f"SELECT {_listed(items)} FROM {source.sql}", _outputs(items), source.rows)
        own = _Expressions(rng, source.scope).of(INT)
        return _Body(f"SELECT {_listed(items)} FROM {source.sql} WHERE {own} < {value}", _outputs(items), source.rows)

    def _lateral(self) -> _Body:
        """A LATERAL item that groups or limits its rows; what is shown of it decides their order."""
        rng = self._rng
        source, inner = self._from_one(), self._from_one()
        pairs = _pairs(source.scope, inner.scope)
        x, y = rng.choice(pairs) if pairs else ("1", "1")
        word = rng.choice(_COMPARED) if rng.random() < 0.3 and source.rows * inner.rows < ROWS_MAX else "="
        shown = [c for c in inner.scope.columns if c.family in _ORDERED and c.family != FLOAT] or [Output("1", INT)]
        value = rng.choice(shown)
        alias = next(self._aliases)
        body, end, outputs = rng.choice(
            [
                (f"{value.name} AS v", f"ORDER BY 1 LIMIT {rng.randint(1, 3)}", [Output(f"{alias}.v", value.family)]),
                (f"DISTINCT {value.name} AS v", "", [Output(f"{alias}.v", value.family)]),
                (
                    f"{value.name} AS v, count(*) AS n",
                    f"GROUP BY {value.name}" if not _is_constant(value.name) else "GROUP BY 1",
                    [Output(f"{alias}.v", value.family), Output(f"{alias}.n", INT)],
                ),
            ]
        )
        item = f"LATERAL (SELECT {body} FROM {inner.sql} WHERE {y} {word} {x} {end}) AS {alias}"
        kind = rng.choice([f"CROSS JOIN {item}", f"LEFT JOIN {item} ON true"])
        joined = _From(f"{source.sql} {kind}", _Scope((*source.scope.columns, *outputs)), source.rows * 3)
        return self._aggregate(joined) if rng.random() < 0.3 else self._select(joined)

    def _grouping_sets(self) -> _Body:
        rng = self._rng
        source = self._from()
        columns = [c for c in source.scope.columns if c.family in _SIMPLE] or [Output("1", INT)]
        keys = rng.sample(columns, min(len(columns), 2))
        calls = [("count(*)", INT), (f"grouping({keys[0].name})", INT)]
        items = [*((key.name, key.family) for key in keys), *calls]
        names = ", ".join(key.name for key in keys)
        word = rng.choice([f"ROLLUP ({names})", f"CUBE ({names})", f"GROUPING SETS (({names}), ({keys[0].name}), ())"])
        if _is_constant(keys[0].name):
            word = "ROLLUP (())"
            items = calls[:1]
        return _Body(f"SELECT {_listed(items)} FROM {source.sql} GROUP BY {word}", _outputs(items), source.rows)

    def _first_of_group(self) -> _Body:
        """The first rows of each group: all columns that are shown decide the order."""
        rng = self._rng
        source = self._from_one()
        columns = [c for c in source.scope.columns if c.family in _ORDERED and c.family != FLOAT] or [Output("1", INT)]
        chosen = rng.sample(columns, min(len(columns), 3))
        items = [(column.name, column.family) for column in chosen]
        order = ", ".join(f"{column.name} {rng.choice(['', 'DESC'])}" for column in chosen)
        number = f"row_number() OVER (PARTITION BY {chosen[0].name} ORDER BY {order})"
        inner = f"SELECT {_listed([*items, (number, INT)])} FROM {source.sql}{self._where(source)}"
        alias = next(self._aliases)
        shown = [(f"{alias}.c{i}", family) for i, (_, family) in enumerate(items)]
        sql = f"SELECT {_listed(shown)} FROM ({inner}) AS {alias} WHERE {alias}.c{len(items)} <= {rng.randint(1, 3)}"
        return _Body(sql, _outputs(items), source.rows // 2)

    def _outer_join_of_groups(self) -> _Body:
        """What has a rule of another kind above and below an outer join."""
        rng = self._rng
        inner = self._aggregate() if rng.random() < 0.6 else self._window()
        other = self._source(300)
        a, b = next(self._aliases), next(self._aliases)
        first, second = _scope(Relation("", inner.columns, inner.rows), a), _scope(other, b)
        pairs = [(x.name, y.name) for x in first.columns for y in second.columns if x.family == y.family in _JOINED]
        x, y = rng.choice(pairs) if pairs else ("1", "1")
        kind = rng.choice(["LEFT", "RIGHT", "FULL"])
        sql = f"({inner.sql}) AS {a} {kind} JOIN {other.name} AS {b} ON {x} = {y}"
        source = _From(sql, _Scope((*first.columns, *second.columns)), inner.rows * other.rows // 4)
        return self._aggregate(source) if rng.random() < 0.5 else self._select(source)

    def _limit(self) -> _Body:
        """The first rows of a total order: all columns that are shown decide it."""
        rng = self._rng
        source = self._from_one()
        columns = [c for c in source.scope.columns if c.family in _ORDERED and c.family != FLOAT] or [Output("1", INT)]
        chosen = rng.sample(columns, min(len(columns), 3))
        items = [(column.name, column.family) for column in chosen]
        order = ", ".join(f"{i + 1}{rng.choice(['', ' DESC', ' NULLS FIRST'])}" for i in range(len(items)))
        sql = f"SELECT {_listed(items)} FROM {source.sql}{self._where(source)} ORDER BY {order}"
        return _Body(f"{sql} LIMIT {rng.randint(0, 6)} OFFSET {rng.randint(0, 2)}", _outputs(items), 6)

    def _except(self) -> _Body:
        rng = self._rng
        families = [rng.choice([INT, NUM, TEXT, BOOL]) for _ in range(rng.randint(1, 2))]
        sides = []
        for _ in range(2):
            source = self._from_one()
            expressions = _Expressions(rng, source.scope)
            sides.append(f"SELECT {_listed([(expressions.of(f, 1), f) for f in families])} FROM {source.sql}")
        word = rng.choice(["EXCEPT", "INTERSECT", "EXCEPT ALL"])
        return _Body(f" {word} ".join(sides), _outputs([("", family) for family in families]), TABLE_ROWS)

    def _distinct_count(self) -> _Body:
        rng = self._rng
        source = self._from()
        expressions = _Expressions(rng, source.scope)
        key, family = expressions.column(_ALL) or ("1", INT)
        text = expressions.of(TEXT, 1)
        call, argument = rng.choice([("count", expressions.any(_SIMPLE)[0]), ("sum", expressions.of(INT))])
        distinct = f"{call}(DISTINCT {argument})"
        call = rng.choice(
            [
                distinct,
                f"{distinct} + coalesce({distinct} FILTER (WHERE {expressions.condition()}), 0)",
                f"length(string_agg({text}, ',' ORDER BY {text}))",
            ]
        )
        items = [(key, family), (call, NUM)]
        return _Body(f"SELECT {_listed(items)} FROM {source.sql} GROUP BY {key}", _outputs(items), source.rows // 3)


# Families on which relations are joined. Float keys are met as keys of groups, where NaN and -0.0 matter too.
# Frames that do not depend on which of equal rows comes first.
_FRAMES = (
    "",
    "GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE TIES",
)
_COMPARED = ("<", "<=", ">", ">=", "<>")
_JOINED = (INT, NUM, FLOAT, TEXT, DATE, TIMESTAMP, TIMESTAMPTZ, BOOL)


def _scope(relation: Relation, alias: str) -> _Scope:
    return _Scope(tuple(Output(f"{alias}.{column.name}", column.family) for column in relation.columns))


def _pairs(left: _Scope, right: _Scope) -> list[tuple[str, str]]:
    """Columns of two scopes that an equality may tie together."""
    return [(x.name, y.name) for x in left.columns for y in right.columns if x.family == y.family in _JOINED]


def _listed(items: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{sql} AS c{i}" for i, (sql, _) in enumerate(items))


def _outputs(items: Sequence[tuple[str, str]]) -> tuple[Output, ...]:
    return tuple(Output(f"c{i}", family) for i, (_, family) in enumerate(items))


def _is_constant(sql: str) -> bool:
    """PostgreSQL reads an integer in GROUP BY as the number of an output column."""
    return re.search(r"\bq\d+\.", sql) is None
