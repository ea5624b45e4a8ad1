"""CREATE FUNCTION and CREATE AGGREGATE: a user's function in SQL or in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seiche.catalog.objects import CatalogObject, ObjectKind
from seiche.errors import DependentObjects, DuplicateObject
from seiche.model import Column, ObjectId
from seiche.session import python_functions
from seiche.session.definitions import Definitions
from seiche.session.names import CatalogNames, user_function
from seiche.sql import statements as ast
from seiche.sql.bind import Settings, check_function
from seiche.sql.user_functions import UserFunction


def create_function(definitions: Definitions, statement: ast.CreateFunction, text: str) -> str | None:
    """Registers a function once its body makes sense over parameters of its types."""
    database = definitions.database
    name, schema = definitions.place(statement.name)
    function = user_function(statement)
    types = [type_ for _, type_ in function.parameters]
    existing = definitions.catalog.try_find((schema, name), kinds=(ObjectKind.FUNCTION,), parameters=types)
    if existing is not None and statement.if_not_exists:
        return f'function "{name}" already exists, skipping'
    if existing is not None and not statement.or_replace:
        told = ",".join(map(str, types))
        raise DuplicateObject(
            f'function "{name}" already exists',
            detail=f"In the catalog: function named {name}({told}) already exists.",
            hint="Drop it first, replace it with CREATE OR REPLACE, or choose another name.",
        )
    others = definitions.catalog.functions(name, search_path=(schema,))
    _refuse_aggregates(function, [each for each in others if existing is None or each.id != existing.id])
    names = CatalogNames(definitions.catalog, definitions.variables.search_path)
    if function.language == "python":
        python_functions.register(database.runtime.spark, function)
    else:
        check_function(function, names, Settings(timezone="UTC", now_ms=0, strict=True))
    parameters = tuple(Column(label or "", type_) for label, type_ in function.parameters)
    row = function.returns.element if function.columns else None
    signature = (*parameters, Column("", row or function.returns))
    flags = {"aggregate": function.aggregate, "rows": bool(function.columns)}
    properties = {"language": function.language, **{flag: True for flag, is_set in flags.items() if is_set}}
    item = definitions.new_object(ObjectKind.FUNCTION, schema, name, text, signature, None, properties)
    item = replace(item, dependencies=frozenset(ObjectId(each) for each in names.mentioned))
    if existing is not None and statement.or_replace:
        readers = [each for each in definitions.catalog.objects() if existing.id in each.dependencies]
        if readers:
            raise DependentObjects(
                f'function "{name}" cannot be replaced because other objects use it',
                detail=f"{readers[0]} uses it.",
                hint="Drop them first, or create the function under another name.",
            )
        item = replace(item, id=existing.id, owner=existing.owner)
    definitions.change(lambda catalog: catalog.with_objects(item))
    return None


def _refuse_aggregates(function: UserFunction, others: Sequence[CatalogObject]) -> None:
    """A call is known to be an aggregate's before the types of its arguments are."""
    for each in others:
        same = len(each.parameter_types) == len(function.parameters)
        if same and (function.aggregate or each.properties.get("aggregate")):
            raise DuplicateObject(
                f'function "{function.name}" already exists with as many parameters',
                detail="An aggregate must differ from others of its name in the number of its parameters.",
                hint="Choose another name.",
            )
