"""EXPLAIN: how a view would be kept up to date, or how Spark would run a query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seiche.catalog.catalog import Catalog
from seiche.errors import FeatureNotSupported
from seiche.model import RelationId
from seiche.plan import explain
from seiche.session.definitions import Definitions
from seiche.session.reading import Reading
from seiche.session.result import Result
from seiche.session.views import ViewDefinitions
from seiche.sql import statements as ast
from seiche.sql.bind import OutputColumn
from seiche.types import VARCHAR


def explained(
    statement: ast.Explain, definitions: Callable[[], Definitions], reading: Reading, catalog: Catalog
) -> Result:
    match statement.statement:
        case ast.CreateMaterializedView() as view:
            views = ViewDefinitions(definitions())
            fragments = views.explain(view)
            root = explain.describe(fragments, lambda relation: _relation_name(catalog, relation, str(view.name)))
            match statement.format:
                case ast.ExplainFormat.TEXT:
                    shown = explain.text(root).rstrip() + "\n" + views.explained_backfill(view)
                case ast.ExplainFormat.JSON:
                    shown = explain.as_json(root)
                case ast.ExplainFormat.DOT:
                    shown = explain.dot(root)
        case ast.Select() as query:
            frame = reading.frame(reading.bound(query))
            mode = "formatted" if statement.verbose else "simple"
            shown = str(frame._sc._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), mode))
        case _:
            raise FeatureNotSupported(
                "EXPLAIN of this statement is not supported", hint="Explain a query or CREATE MATERIALIZED VIEW."
            )
    lines: list[tuple[Any, ...]] = [(line,) for line in shown.rstrip().splitlines()]
    return Result("EXPLAIN", (OutputColumn("QUERY PLAN", "QUERY PLAN", VARCHAR),), _rows=lines)


def _relation_name(catalog: Catalog, relation: RelationId, new: str) -> str:
    item = catalog.by_id.get(relation)  # type: ignore[call-overload]
    return str(item.qualified) if item is not None else new
