"""EXPLAIN: how a view would be kept up to date, or how Spark would run a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import ObjectKind
from seiche.errors import FeatureNotSupported
from seiche.model import RelationId
from seiche.plan import explain
from seiche.session.create_index import IndexDefinitions
from seiche.session.definitions import Definitions
from seiche.session.reading import Reading
from seiche.session.result import Result
from seiche.session.tables import TableDefinitions
from seiche.session.views import ViewDefinitions
from seiche.sql import statements as ast
from seiche.sql.bind import OutputColumn
from seiche.types import VARCHAR


def explained(
    statement: ast.Explain, definitions: Callable[[], Definitions], reading: Reading, catalog: Catalog
) -> Result:
    match statement.statement:
        case ast.CreateMaterializedView() | ast.CreateSink() as view:
            views = ViewDefinitions(definitions())
            fragments = views.explain(view)
            root = explain.describe(fragments, lambda relation: _relation_name(catalog, relation, str(view.name)))
            shown = _shown(root, statement.format, views.explained_backfill(view))
        case ast.CreateIndex() as index:
            fragments = IndexDefinitions(definitions()).explain(index)
            name = str(index.name or "index")
            root = explain.describe(fragments, lambda relation: _relation_name(catalog, relation, name))
            shown = _shown(root, statement.format)
        case ast.CreateTable() as table:
            shown = _shown(TableDefinitions(definitions()).explain(table), statement.format)
        case ast.Select() as query:
            shown = reading.plan(reading.bound(query), "formatted" if statement.verbose else "simple")
        case _:
            raise FeatureNotSupported(
                "EXPLAIN of this statement is not supported",
                hint="Explain a query or the CREATE of a materialized view, a sink, an index or a table.",
            )
    lines: list[tuple[Any, ...]] = [(line,) for line in shown.rstrip().splitlines()]
    return Result("EXPLAIN", (OutputColumn("QUERY PLAN", "QUERY PLAN", VARCHAR),), _rows=lines)


def _shown(root: explain.Node, format_: ast.ExplainFormat, last: str = "") -> str:
    match format_:
        case ast.ExplainFormat.TEXT:
            return f"{explain.text(root).rstrip()}\n{last}"
        case ast.ExplainFormat.JSON:
            return explain.as_json(root)
        case ast.ExplainFormat.DOT:
            return explain.dot(root)


def _relation_name(catalog: Catalog, relation: RelationId, new: str) -> str:
    item = catalog.by_id.get(relation)  # type: ignore[call-overload]
    if item is not None and item.kind is ObjectKind.INTERNAL and item.parent is not None:  # a table's watermark
        item = catalog.by_id[item.parent]
    return str(item.qualified) if item is not None else new
