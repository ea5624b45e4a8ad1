"""Tables with their own Python model: what each should hold after every statement, known without the engine.

Statements are made together with their effect on the model. Conditions follow SQL's three-valued logic and are
evaluated in Python; what they compare is simple enough for that (a column with a constant).
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import pyarrow as pa

from tests.differential import domains
from tests.differential.domains import Domain, Value

Row = tuple[Any, ...]
Truth = bool | None


class Conflict(Enum):
    OVERWRITE = ""
    IGNORE = " ON CONFLICT IGNORE"
    FILL = " ON CONFLICT DO UPDATE IF NOT NULL"


@dataclass(frozen=True, slots=True)
class TableColumn:
    name: str
    domain: Domain
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    columns: tuple[TableColumn, ...]
    key: tuple[str, ...] = ()
    append_only: bool = False
    conflict: Conflict = Conflict.OVERWRITE

    @property
    def ddl(self) -> str:
        parts = [f"{c.name} {c.domain.ddl}{'' if c.nullable else ' NOT NULL'}" for c in self.columns]
        if self.key:
            parts.append(f"PRIMARY KEY ({', '.join(self.key)})")
        tail = (" APPEND ONLY" if self.append_only else "") + self.conflict.value
        return f"CREATE TABLE {self.name} ({', '.join(parts)}){tail}"

    def index(self, name: str) -> int:
        return next(i for i, column in enumerate(self.columns) if column.name == name)

    def key_of(self, row: Row) -> Row:
        return tuple(row[self.index(name)] for name in self.key)


@dataclass(slots=True)
class Contents:
    """A table's rows as the model has them."""

    table: Table
    rows: list[Row] = field(default_factory=list)

    def insert(self, new: list[Row]) -> None:
        if not self.table.key:
            self.rows.extend(new)
            return
        now = {self.table.key_of(row): row for row in self.rows}
        for row in new:
            key = self.table.key_of(row)
            match self.table.conflict:
                case Conflict.OVERWRITE:
                    now[key] = row
                case Conflict.IGNORE:
                    now.setdefault(key, row)
                case Conflict.FILL:
                    before = now.get(key, row)
                    now[key] = tuple(b if a is None else a for a, b in zip(row, before, strict=True))
        self.rows = list(now.values())

    def has_unique_keys(self, rows: list[Row]) -> bool:
        keys = [self.table.key_of(row) for row in rows]
        return not self.table.key or len(set(keys)) == len(keys)

    def to_arrow(self) -> pa.Table:
        columns = self.table.columns
        arrays = [pa.array([row[i] for row in self.rows], column.domain.type.arrow) for i, column in enumerate(columns)]
        return pa.Table.from_arrays(arrays, names=[column.name for column in columns])


# --- conditions ------------------------------------------------------------------------------------------

Test = Callable[[Row], Truth]


@dataclass(frozen=True, slots=True)
class Condition:
    sql: str
    test: Test


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    ">=": operator.ge,
}


def _comparable(value: Any) -> Any:
    """Floats compare as PostgreSQL's: NaN equals itself and is greater than anything else."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value


def condition(rng: random.Random, table: Table, depth: int = 0) -> Condition:
    """A random condition over a table's columns."""
    choice = rng.random()
    if depth < 2 and choice < 0.25:
        left, right = condition(rng, table, depth + 1), condition(rng, table, depth + 1)
        if rng.random() < 0.5:
            return Condition(f"({left.sql} AND {right.sql})", lambda row: _and(left.test(row), right.test(row)))
        return Condition(
            f"({left.sql} OR {right.sql})", lambda row: _not(_and(_not(left.test(row)), _not(right.test(row))))
        )
    if depth < 2 and choice < 0.32:
        inner = condition(rng, table, depth + 1)
        return Condition(f"NOT ({inner.sql})", lambda row: _not(inner.test(row)))
    column = rng.choice(table.columns)
    index = table.index(column.name)
    if choice < 0.45:
        if rng.random() < 0.5:
            return Condition(f"{column.name} IS NULL", lambda row: row[index] is None)
        return Condition(f"{column.name} IS NOT NULL", lambda row: row[index] is not None)
    if not column.domain.ordered:
        return condition(rng, table, depth)
    name = rng.choice(list(_OPERATORS)) if column.domain is not domains.BYTEA else "="
    value = column.domain.pick(rng)
    compare, constant = _OPERATORS[name], _comparable(value.python)

    def test(row: Row) -> Truth:
        return None if row[index] is None else compare(_comparable(row[index]), constant)

    return Condition(f"{column.name} {name} {value.sql}", test)


def _and(a: Truth, b: Truth) -> Truth:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def _not(a: Truth) -> Truth:
    return None if a is None else not a


# --- statements ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Write:
    """A statement and what the table holds after it. `rows` are given when it may go through the Python API."""

    table: str
    sql: str
    after: list[Row]
    rows: list[Row] | None = None


def random_table(rng: random.Random, name: str, kind: str, domains_due: list[Domain]) -> Table:
    """A table of a kind ("key", "pair", "rowid", "append"); takes its columns' domains off `domains_due`."""
    key: tuple[TableColumn, ...] = ()
    if kind == "key":
        key = (TableColumn("k", rng.choice(domains.SINGLE_KEYS), rng.random() < 0.5),)
    elif kind == "pair":
        first, second = rng.sample(domains.PAIRED_KEYS, 2)
        key = (TableColumn("k", first, rng.random() < 0.5), TableColumn("k2", second, rng.random() < 0.5))
    # Two columns that every table has give joins something to meet on.
    columns = [TableColumn("n", domains.INTEGER), TableColumn("s", domains.VARCHAR)]
    for number in range(rng.randint(4, 6)):
        domain = domains_due.pop() if domains_due else rng.choice(domains.ALL)
        columns.append(TableColumn(f"x{number}", domain, nullable=rng.random() < 0.85))
    conflict = rng.choice(list(Conflict)) if key and rng.random() < 0.4 else Conflict.OVERWRITE
    table = Table(name, (*key, *columns), tuple(c.name for c in key), kind == "append", conflict)
    if conflict is Conflict.FILL:
        # Whether a NULL for a column that must have a value is refused before or after filling is not the point here.
        table = replace(table, columns=(*key, *(replace(c, nullable=True) for c in columns)))
    return table


def random_row(rng: random.Random, table: Table) -> tuple[Value, ...]:
    return tuple(
        Value(None, "NULL") if column.nullable and rng.random() < 0.25 else column.domain.pick(rng)
        for column in table.columns
    )


def insert(rng: random.Random, contents: Contents, count: int) -> Write:
    table = contents.table
    rows = [random_row(rng, table) for _ in range(count)]
    if rows and rng.random() < 0.3:
        rows.append(rng.choice(rows))  # the same row, or the same key, twice in one statement
    values = ", ".join("(" + ", ".join(value.sql for value in row) + ")" for row in rows)
    plain = [tuple(value.python for value in row) for row in rows]
    after = Contents(table, list(contents.rows))
    after.insert(plain)
    return Write(table.name, f"INSERT INTO {table.name} VALUES {values}", after.rows, plain)


def write(rng: random.Random, contents: Contents) -> Write:
    """A random statement against a table."""
    table = contents.table
    choice = rng.random()
    if choice < 0.4 or not contents.rows or (table.append_only and choice < 0.85):
        return insert(rng, contents, rng.choice([1, 1, 2, 3, 6]))
    if (not table.key and choice < 0.5) or table.append_only:
        if len(contents.rows) < 40:
            return _copy(rng, contents)
        return insert(rng, contents, 1)
    if choice < 0.75:
        return _update(rng, contents)
    return _delete(rng, contents)


def _copy(rng: random.Random, contents: Contents) -> Write:
    """Doubles some rows of a table without a key."""
    where = condition(rng, contents.table)
    again = [row for row in contents.rows if where.test(row) is True]
    name = contents.table.name
    return Write(name, f"INSERT INTO {name} SELECT * FROM {name} WHERE {where.sql}", contents.rows + again)


def _delete(rng: random.Random, contents: Contents) -> Write:
    name = contents.table.name
    if rng.random() < 0.06:
        return Write(name, f"DELETE FROM {name}", [])
    where = condition(rng, contents.table)
    left = [row for row in contents.rows if where.test(row) is not True]
    return Write(name, f"DELETE FROM {name} WHERE {where.sql}", left)


def _update(rng: random.Random, contents: Contents) -> Write:
    table = contents.table
    where = Condition("true", lambda row: True) if rng.random() < 0.15 else condition(rng, table)
    free = [column for column in table.columns if column.name not in table.key]
    changes = dict(_assignment(rng, table, column) for column in rng.sample(free, rng.randint(1, 2)))
    if table.key and rng.random() < 0.3:
        name, change = _assignment(rng, table, table.columns[0])
        changes[name] = change
    after = []
    for row in contents.rows:
        if where.test(row) is True:
            row = tuple(changes[c.name][1](row) if c.name in changes else row[i] for i, c in enumerate(table.columns))
        after.append(row)
    if not contents.has_unique_keys(after):
        return _delete(rng, contents)
    sets = ", ".join(f"{name} = {sql}" for name, (sql, _) in changes.items())
    return Write(table.name, f"UPDATE {table.name} SET {sets} WHERE {where.sql}", after)


def _assignment(rng: random.Random, table: Table, column: TableColumn) -> tuple[str, tuple[str, Callable[[Row], Any]]]:
    name, index = column.name, table.index(column.name)
    if name in table.key and column.domain is domains.KEY_INTEGER:
        step = rng.choice([100, -100, 1])
        return name, (f"{name} + {step}", lambda row: None if row[index] is None else row[index] + step)
    if rng.random() < 0.3:
        if column.domain.family == domains.INT:
            return name, (f"-{name}", lambda row: None if row[index] is None else -row[index])
        if column.domain.family == domains.TEXT:
            return name, (f"upper({name})", lambda row: None if row[index] is None else row[index].upper())
    twins = [c for c in table.columns if c.domain == column.domain and c.nullable <= column.nullable and c != column]
    if twins and rng.random() < 0.5:
        other = rng.choice(twins)
        source = table.index(other.name)
        return name, (other.name, lambda row: row[source])
    if column.nullable and rng.random() < 0.3:
        return name, ("NULL", lambda row: None)
    value = column.domain.pick(rng)
    return name, (value.sql, lambda row: value.python)
