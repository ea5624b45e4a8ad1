"""CREATE INDEX: which columns it copies, in which order, and what it is called when nobody says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from sqlglot import exp

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind, ObjectStatus
from seiche.errors import FeatureNotSupported, InvalidDefinition, InvariantError, UndefinedColumn, nearest
from seiche.model import Epoch, RelationId
from seiche.plan.algebra import Scan, Select
from seiche.plan.index import index_plan
from seiche.session.shapes import seen, shapes_of
from seiche.sql import statements as ast
from seiche.sql.bind import BoundExpression, Settings, bind_expression
from seiche.sql.parse import parse
from seiche.sql.statements import quote_name
from seiche.storage.indexes import Index

INDEXED_KINDS = (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW)


def plan_of(statement: ast.CreateIndex, source: CatalogObject) -> Select:
    """The plan that keeps an index on a table or a materialized view; raises what is wrong with it."""
    if source.relation is None:
        raise InvariantError(f"{source} has no stored shape")
    columns: dict[str, BoundExpression | None] = {}
    for number, each in enumerate(statement.columns):
        plain = _plain_name(each.expression)
        if plain is not None:
            _check_column(plain, source)
            columns.setdefault(plain, None)
        else:
            columns[_free_name(number, each.expression, source, columns)] = _bound(each.expression, source)
    for name in statement.include:
        _check_column(name, source)
    _check_distribution(statement)
    included = statement.include or tuple(column.name for column in source.relation.visible)
    plan = index_plan(Scan(RelationId(source.id), source.relation), list(columns.items()), included)
    for name in columns:
        type_ = next(item.field.type for item in plan.items if item.field.name == name)
        if not type_.is_hashable:
            raise InvalidDefinition(
                f'column "{name}" of type {type_} cannot be indexed', hint="Index a column of a plain type."
            )
    return plan


def stored_plan(index: CatalogObject, catalog: Catalog) -> Select:
    """The plan of an index that exists, made again from its definition."""
    (source,) = index.dependencies
    return plan_of(_statement(index), seen(catalog.get(source), shapes_of(index)))


def indexed_columns(statement: ast.CreateIndex) -> list[str]:
    """The indexed columns of the relation, up to the first that is an expression."""
    found = []
    for each in statement.columns:
        name = _plain_name(each.expression)
        if name is None:
            break
        found.append(name)
    return found


def default_name(statement: ast.CreateIndex, schema: str, catalog: Catalog) -> str:
    """The name of an index that nobody gave a name."""
    parts = [_plain_name(each.expression) or "expr" for each in statement.columns]
    name = stem = "_".join([statement.table.name, *parts, "idx"])
    number = 0
    while catalog.try_find((schema, name)) is not None:
        number += 1
        name = f"{stem}{number}"
    return name


def definition_of(statement: ast.CreateIndex, name: str, source: CatalogObject) -> str:
    """The statement that makes the index, with the names that it and its relation have now."""
    relation = f"{quote_name(source.schema)}.{quote_name(source.name)}"
    return f"CREATE INDEX {quote_name(name)} ON {relation}{columns_text(statement, ' ')}"


def columns_text(statement: ast.CreateIndex, space: str) -> str:
    """What stands behind the relation of an index, with `space` before each parenthesis."""
    text = f"{space}({', '.join(map(_column_text, statement.columns))})"
    if statement.include:
        text += f" INCLUDE{space}({', '.join(map(quote_name, statement.include))})"
    if statement.distributed_by:
        text += f" DISTRIBUTED BY{space}({', '.join(each.text for each in statement.distributed_by)})"
    return text


def listed(index: CatalogObject, source: CatalogObject) -> tuple[str, str, str]:
    """What SHOW INDEXES says of an index: its columns with their order, those that it has besides, and those that its
    rows are distributed by, which are the first one where nobody said."""
    statement = _statement(index)
    keyed = [_column_text(each, ascending=" ASC") for each in statement.columns]
    plain = {_plain_name(each.expression) for each in statement.columns}
    known = statement.include or [column.name for column in source.columns]
    spread = [_expression_text(each) for each in statement.distributed_by]
    spread = spread or [_expression_text(statement.columns[0].expression)]
    return ", ".join(keyed), ", ".join(quote_name(name) for name in known if name not in plain), ", ".join(spread)


def with_names(index: CatalogObject, name: str, source: CatalogObject) -> CatalogObject:
    """An index whose name, or whose relation's name, has changed."""
    return replace(index, name=name, definition=definition_of(_statement(index), name, source))


def readable(catalog: Catalog, since: Epoch) -> Iterator[tuple[RelationId, Index]]:
    """The indexes that are complete, each with the relation that it copies."""
    for index in catalog.objects(ObjectKind.INDEX):
        if index.status is ObjectStatus.CREATED and index.relation is not None:
            (source,) = index.dependencies
            columns = tuple(index.properties.get("columns", ()))
            yield RelationId(source), Index(RelationId(index.id), index.relation, columns, since)


def _statement(index: CatalogObject) -> ast.CreateIndex:
    (parsed,) = parse(index.definition)
    if not isinstance(parsed.statement, ast.CreateIndex):
        raise InvariantError(f"{index} is not defined by CREATE INDEX")
    return parsed.statement


def _expression_text(expression: ast.SqlExpression) -> str:
    """A column, or an expression in parentheses."""
    plain = _plain_name(expression)
    if plain is not None:
        return quote_name(plain)
    return expression.text if isinstance(expression.tree, exp.Paren) else f"({expression.text})"


def _column_text(column: ast.IndexColumn, *, ascending: str = "") -> str:
    """A column of an index, or an expression, with its order; `ascending` stands for the usual one."""
    text = _expression_text(column.expression) + (" DESC" if column.descending else ascending)
    if column.nulls_first is not None:
        text += f" NULLS {'FIRST' if column.nulls_first else 'LAST'}"
    return text


def _plain_name(expression: ast.SqlExpression) -> str | None:
    tree = expression.tree.unnest()
    return tree.name if isinstance(tree, exp.Column) and not tree.table else None


def _free_name(number: int, expression: ast.SqlExpression, source: CatalogObject, taken: Mapping[str, object]) -> str:
    tree = expression.tree.unnest()
    name = stem = tree.key if not isinstance(tree, exp.Anonymous) else str(tree.this).lower()
    assert source.relation is not None
    while name in taken or name in source.relation.names:
        name = f"{stem}_{number}"
        stem = name
    return name


def _check_column(name: str, source: CatalogObject) -> None:
    known = [column.name for column in source.columns]
    if name not in known:
        raise UndefinedColumn(f'column "{name}" does not exist', hint=nearest(name, known))


def _bound(expression: ast.SqlExpression, source: CatalogObject) -> BoundExpression:
    settings = Settings(timezone="UTC", now_ms=None, strict=False)
    bound = bind_expression(expression.tree, source.columns, settings)
    if bound.volatile or bound.uses_now:
        raise FeatureNotSupported(
            f"expression {expression.text} cannot be indexed", detail="Its value changes without a change of the row."
        )
    return bound


def _check_distribution(statement: ast.CreateIndex) -> None:
    first = [each.expression.tree.unnest() for each in statement.columns[: len(statement.distributed_by)]]
    if [each.tree.unnest() for each in statement.distributed_by] != first:
        raise InvalidDefinition(
            "DISTRIBUTED BY must name the first columns of the index, in their order",
            hint="Leave it out, or put these columns first.",
        )
