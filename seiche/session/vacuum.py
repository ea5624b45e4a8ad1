"""VACUUM and ANALYZE, which maintenance scripts send: what they can mean here.

VACUUM of a relation folds its log into its base at once, and that of everything the relation keeps besides; without a
name it has housekeeping look at all relations, which folds what it pays for. ANALYZE has nothing to do: the figures
that Spark plans by come with the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from seiche.catalog import access
from seiche.catalog.catalog import Catalog
from seiche.catalog.objects import CatalogObject, ObjectKind, User
from seiche.catalog.system_views import try_system_view
from seiche.errors import FeatureNotSupported, TransactionState, UndefinedColumn, UndefinedTable, nearest
from seiche.model import RelationId
from seiche.sql import statements as ast
from seiche.stream.maintenance import Maintenance

_STORED = (ObjectKind.TABLE, ObjectKind.MATERIALIZED_VIEW, ObjectKind.SOURCE, ObjectKind.INDEX)


def vacuum(
    statement: ast.Vacuum,
    catalog: Catalog,
    search_path: Sequence[str],
    user: User,
    maintenance: Maintenance,
    wait: Callable[[Future[bool]], bool],
    *,
    in_block: bool,
) -> list[str]:
    """Runs the statement; what there is to tell. The metadata knows who may: `user` owns what is named."""
    if statement.folds and in_block:
        raise TransactionState("VACUUM cannot run inside a transaction block", sqlstate="25001", hint="COMMIT first.")
    verb = "vacuum" if statement.folds else "analyze"
    notices: list[str] = []
    stored = [(each, _stored(catalog, search_path, each, verb, notices)) for each in statement.relations]
    for each, item in stored:
        if item is None:
            continue
        _check_columns(item, each)
        if each.columns and not statement.analyzes:
            raise FeatureNotSupported("ANALYZE option must be specified when a column list is provided")
    for _, item in stored:
        if item is None:
            continue
        if not statement.folds:
            notices.append(f"nothing to analyze: the statistics of {item} come with its files")
            continue
        folded = [wait(maintenance.fold_soon(relation)) for relation in _relations(catalog, item)]
        if not any(folded):
            notices.append(f"{item} has no changes to fold")
        elif statement.verbose:
            notices.append(f"the changes of {item} were folded into its base")
    if not statement.relations and statement.folds:
        own = [each for each in catalog.objects(*_STORED) if access.owns(catalog, user, each)]
        maintenance.note(relation for each in own for relation in _relations(catalog, each))
    return notices


def _stored(
    catalog: Catalog, search_path: Sequence[str], named: ast.Tended, verb: str, notices: list[str]
) -> CatalogObject | None:
    """What is named, where it has rows of its own; of anything else it is told that it is passed over."""
    found = catalog.try_find(named.name.parts, search_path=search_path)
    if found is not None and found.kind in _STORED:
        return found
    if found is None and try_system_view(named.name.parts) is None:
        raise UndefinedTable(f'relation "{named.name}" does not exist')
    notices.append(f'skipping "{named.name.name}" --- cannot {verb} non-tables or special system tables')
    return None


def _check_columns(item: CatalogObject, named: ast.Tended) -> None:
    names = [column.name for column in item.columns if not column.hidden]
    for column in named.columns:
        if column not in names:
            raise UndefinedColumn(
                f'column "{column}" of relation "{item.name}" does not exist', hint=nearest(column, names)
            )


def _relations(catalog: Catalog, item: CatalogObject) -> list[RelationId]:
    """The item's own rows, and those that it keeps besides."""
    return [RelationId(each.id) for each in (item, *catalog.children(item.id)) if each.relation is not None]
