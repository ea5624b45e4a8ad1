"""`WITH name AS CHANGELOG FROM relation`: the changes of a relation as rows, one for each row that came or left.

the relation's columns    as they came, or as they were
changelog_op              1 a new row, 2 one that left, 3 what a row was changed to, 4 what it was before
_changelog_row_id         hidden; numbers the changes in the order in which they came
"""

from __future__ import annotations

from sqlglot import exp

from seiche.errors import FeatureNotSupported, InvalidDefinition
from seiche.model import CHANGELOG_ROW_ID, Column
from seiche.sql.binding import Binding, CommonTable
from seiche.sql.bound import CHANGES_OF, named_table
from seiche.sql.dialect import CHANGE_LOG
from seiche.sql.kept_fields import column_node
from seiche.sql.nodes import typed
from seiche.sql.scopes import Entry, RangeVariable, Scope
from seiche.types import BIGINT, SMALLINT

OPERATION = "changelog_op"
INSERTED, DELETED, UPDATED_TO, UPDATED_FROM = 1, 2, 3, 4


def logged_relation(table: CommonTable) -> exp.Table | None:
    """The relation whose changes a query of WITH stands for; None for any other query."""
    clause = table.query.args.get("from_") or table.query.args.get("from")
    found = clause.this if clause is not None else None
    return found if isinstance(found, exp.Table) and found.meta.get(CHANGE_LOG) else None


def bind_change_log(binding: Binding, node: exp.Table, name: str, names: tuple[str, ...], scope: Scope) -> exp.Expr:
    """The change log of the relation `node` as an item of FROM called `name`; `names` renames its first columns."""
    relation = binding.names.relation(tuple(part.name for part in node.parts))
    if relation.id is None or relation.view is not None:
        raise FeatureNotSupported(
            f'"{node.name}" has no change log', hint="Tables and materialized views have one; CREATE one of them."
        )
    if not binding.expanding:
        binding.usage.references.append((relation.id, node))
    binding.usage.relations.add(relation.id)
    ref = binding.ref(name)
    visible = [column for column in relation.columns if not column.hidden]
    if OPERATION in (column.name for column in visible):
        raise InvalidDefinition(f'"{node.name}" has a column "{OPERATION}", which its change log needs for itself')
    visible.append(Column(OPERATION, SMALLINT))
    entries = [
        Entry(names[index] if index < len(names) else column.name, column_node(column, ref))
        for index, column in enumerate(visible)
    ]
    number = typed(exp.column(CHANGELOG_ROW_ID, table=ref, quoted=True), BIGINT)
    binding.add(scope, RangeVariable(name, ref, (*entries, Entry(CHANGELOG_ROW_ID, number, True)), None))
    made = named_table(relation.source, ref)
    made.meta[CHANGES_OF] = True
    return made


def reads_change_log(tree: exp.Expr) -> bool:
    """Whether a bound query reads the changes of a relation."""
    return any(is_change_log(each) for each in tree.find_all(exp.Table))


def is_change_log(source: exp.Expr) -> bool:
    return isinstance(source, exp.Table) and bool(source.meta.get(CHANGES_OF))


def refuse_change_log(tree: exp.Expr) -> None:
    """Raises for a bound query that is to be answered, not followed."""
    if reads_change_log(tree):
        raise FeatureNotSupported(
            "a change log cannot be queried",
            detail="Changes are written down from the time on at which somebody follows them.",
            hint="CREATE MATERIALIZED VIEW … AS WITH … AS CHANGELOG FROM …, and query that.",
        )
